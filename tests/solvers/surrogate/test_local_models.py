"""Search with Gaussian processes: how often local models choose."""

import moocore
import numpy as np
import pytest

from designopt.solvers.surrogate.solver import GaussianProcessSearch, _Search
from designopt.study.study import DesignVariable
from designopt.testing import InProcess, problem_from

SQUARE = [DesignVariable("x", "real", 0.0, 1.0), DesignVariable("y", "real", 0.0, 1.0)]
BOWL = problem_from(lambda d, s: {"f": d["x"] ** 2 + d["y"] ** 2}, SQUARE, minimize=["f"])


@pytest.fixture
def search(monkeypatch):
    """A search whose local models are those of the whole space in a bounding box."""
    search = _Search(GaussianProcessSearch(), BOWL, np.random.default_rng(0), [], set())
    monkeypatch.setattr(search, "_nearby_processes", lambda processes, X: (processes, (np.zeros(2), np.ones(2))))
    return search


def local_share(search):
    """The share of designs that local models choose first."""
    return np.mean([next(search._ways(None, np.empty((0, 2))))[1] is not None for _ in range(400)])


@pytest.mark.parametrize(("improvements", "share"), [(0, 0.2), (30, 0.5)])
def test_where_values_jump_the_front_is_looked_around_less_often_without_success(improvements, share, search):
    search._jumps = True
    search._recent.extend([False] * 10)
    search._worth += [[3.0, 30.0], [improvements, 30.0]]
    assert local_share(search) == pytest.approx(share, abs=0.06)


@pytest.mark.parametrize(
    ("gains", "improvements", "share"),
    [
        ([], True, 0.0),
        ([(1.0, 0.9), (3.0, 5.0)], True, 0.0),
        ([(1.0, 0.0), (4.0, 3.0)], True, 0.4),
        ([(1.0, 0.0)], True, 0.8),
        ([(1.0, 1.0)], False, 0.5),
        ([(1.0, 0.0)], False, 0.8),
    ],
)
def test_the_less_of_the_expected_gains_was_real_the_more_often_a_local_model_chooses(
    gains, improvements, share, search
):
    search._gains.extend(gains)
    search._recent.extend([improvements] * 10)
    assert local_share(search) == pytest.approx(share, abs=0.06)


@pytest.mark.parametrize("names", [["f"], ["f", "g"]])
def test_expected_gains_are_compared_with_real_ones(names):
    problem = problem_from(lambda d, s: {"f": (d["x"] - 0.3) ** 2, "g": (d["y"] - d["x"]) ** 2}, SQUARE, minimize=names)
    evaluate = InProcess(problem, 30)
    start = evaluate(np.random.default_rng(0).random((8, 2)))
    search = _Search(GaussianProcessSearch(), problem, np.random.default_rng(0), [start], set())
    design = search.ask()
    (expectation,) = search._expectations.values()
    outcomes = evaluate(design)
    search.tell(outcomes)
    processes = expectation.processes
    ((expected, real),) = search._gains
    values = np.array([scale.scaled(v) for scale, v in zip(processes.scales, outcomes.objectives[0], strict=True)])
    reference = processes.boxes.upper.max(axis=0)
    front = processes.front_values
    gain = moocore.hypervolume(np.vstack([front, values]), ref=reference) - moocore.hypervolume(front, ref=reference)
    assert expected == np.exp(expectation.value)
    assert real == pytest.approx(gain, abs=1e-14)
