"""Which parameters matter is read from whatever designs are on record."""

import numpy as np
import pytest

from designopt.problem import Outcomes
from designopt.report.parts.designs.importance import importance as part
from designopt.store.views.importance import importance
from designopt.study.study import DesignVariable
from designopt.testing import problem_from

SPACE = (
    DesignVariable("a", "real", -1, 1),
    DesignVariable("b", "real", -1, 1),
    DesignVariable("c", "choice", values=("x", "y", "z")),
)


def outcomes(problem, n, f, seed=0):
    rng = np.random.default_rng(seed)
    X = np.c_[rng.uniform(-1, 1, (n, 2)), rng.integers(0, 3, n)]
    y = f(X)
    return Outcomes(X, y[:, None], np.zeros(n), np.isnan(y), np.zeros(n, bool), {})


PROBLEM = problem_from(lambda design, scenario: {"f": 0.0}, SPACE, minimize=["f"])


def test_the_shares_of_a_sum_of_effects_are_those_of_its_variance():
    """Var(a) = 1/3, Var(c) = 2/3 for values 0, 1, 2: shares 1/3 and 2/3 of the sum, as first-order Sobol' indices."""
    shares = importance(PROBLEM, outcomes(PROBLEM, 4000, lambda X: X[:, 0] + X[:, 2]))
    assert shares.shape == (1, 3)
    assert shares[0] == pytest.approx([1 / 3, 0.0, 2 / 3], abs=0.04)


def test_an_interior_optimum_is_detected_and_scatter_is_not():
    shares = importance(PROBLEM, outcomes(PROBLEM, 200, lambda X: (X[:, 1] - 0.1) ** 2))
    assert shares[0, 1] > 0.85
    assert max(shares[0, 0], shares[0, 2]) < 0.06


def test_designs_without_a_result_do_not_count_and_few_designs_give_no_indices():
    def gaps(X):
        return np.where(X[:, 0] > 0.5, np.nan, X[:, 0])

    assert importance(PROBLEM, outcomes(PROBLEM, 400, gaps))[0, 0] > 0.95
    assert np.isnan(importance(PROBLEM, outcomes(PROBLEM, 19, gaps))).all()
    assert np.isnan(importance(PROBLEM, outcomes(PROBLEM, 100, lambda X: np.zeros(len(X))))).all()


def test_the_part_of_the_report_names_the_parameter_that_explains_most(tmp_path):
    import designopt

    def two_bowls(x, y):
        return {"low": x**2 + 0.01 * y, "high": (x - 1) ** 2}

    result = designopt.minimize(two_bowls, {"x": [-1, 2], "y": [0, 1]}, evaluations=100, store=tmp_path / "s")
    section = part(result)
    assert section.findings[0].startswith("x explains ")
    assert [trace["name"] for trace in section.figures[0].plot["data"]] == ["low", "high"]
    assert result.plot("importance").data[0].type == "bar"
    assert result.plot().layout.title.text
    assert "<td>parameter</td><td>x</td>" in designopt.define(
        study="s", model=two_bowls, space={"x": [-1, 2], "y": [0, 1]}, objectives=[{"minimize": "low"}],
        solver={"use": "sobol", "samples": 4},
    )._repr_html_()  # fmt: skip
