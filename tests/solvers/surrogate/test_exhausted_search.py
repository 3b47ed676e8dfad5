"""Search with Gaussian processes where no gain is left: independent length scales, then a search anew."""

from dataclasses import replace

import numpy as np
import pytest

from designopt.solvers.surrogate.solver import GaussianProcessSearch, _Search
from designopt.study.study import DesignVariable
from designopt.testing import InProcess, problem_from

SQUARE = [DesignVariable("x", "real", 0.0, 1.0), DesignVariable("y", "real", 0.0, 1.0)]


def waves(design, scenario):
    """Several minima; the least is near (0.141, 0.141)."""
    return {"f": sum(float(np.sin(10.0 * v + 3.2) + v) for v in (design["x"], design["y"]))}


WAVES = problem_from(waves, SQUARE, minimize=["f"])


class _Recorded:
    """A surrogate that appends its `name` to `uses` for each use."""

    def __init__(self, surrogate, name, uses):
        self.surrogate, self.name, self.uses = surrogate, name, uses

    def processes(self, *data):
        self.uses.append(self.name)
        return self.surrogate.processes(*data)


@pytest.mark.parametrize(("gain", "ways"), [(1e-3, ["likely"]), (1e-5, ["likely", "independent"])])
def test_without_improvements_and_expected_gain_processes_of_independent_length_scales_choose(gain, ways, monkeypatch):
    evaluate = InProcess(WAVES, 40)
    start = evaluate(np.random.default_rng(0).random((30, 2)))
    search = _Search(GaussianProcessSearch(), WAVES, np.random.default_rng(0), [start], set())
    uses = []
    monkeypatch.setattr(search, "_surrogate", _Recorded(search._surrogate, "likely", uses))
    monkeypatch.setattr(search, "_independent", _Recorded(search._independent, "independent", uses))
    expected = lambda *where: replace(_Search._maximum(search, *where), value=np.log(gain))  # noqa: E731
    monkeypatch.setattr(search, "_maximum", expected)
    for designs_without_gain in (0, 10, 9):
        uses.clear()
        search._since_gain = designs_without_gain
        search.ask()
        assert uses == (ways if designs_without_gain == 10 else ["likely"])


@pytest.fixture
def exhausted(monkeypatch):
    """A search of `WAVES` without a gain in 20 designs that expects none; arguments are settings of the solver."""

    def search(**settings):
        start = InProcess(WAVES, 30)(np.random.default_rng(0).random((30, 2)))
        search = _Search(GaussianProcessSearch(**settings), WAVES, np.random.default_rng(0), [start], set())
        search._since_gain = 20
        return search

    maximum = _Search._maximum
    monkeypatch.setattr(_Search, "_maximum", lambda *where: replace(maximum(*where), value=np.log(1e-5)))
    return search


def test_a_search_that_ends_without_a_gain_does_not_start_anew(exhausted):
    search = exhausted(min_gain=1e-9)
    assert len(search.ask()) == 1
    assert search._restart is None


def test_where_no_gain_is_left_a_search_without_the_known_designs_goes_on_until_it_has_one(exhausted):
    search, evaluate = exhausted(), InProcess(WAVES, 2)
    designs = np.vstack([search.ask() for _ in range(4)])
    assert (np.ptp(designs, axis=0) > 0.5).all()  # a start-up
    worst, best = evaluate(np.array([[1.0, 1.0]])), evaluate(np.array([[0.141, 0.141]]))
    search.tell(worst)  # in place of the first
    assert search._restart is not None
    assert len(search._restart._outcomes) == 1
    search.tell(best)
    assert search._restart is None
    assert search._since_gain == 0


def test_an_improvement_far_below_the_spread_of_values_is_no_gain_also_over_known_designs():
    problem = problem_from(lambda d, s: {"f": d["x"]}, SQUARE, minimize=["f"])
    evaluate = InProcess(problem, 40)
    start = evaluate(np.random.default_rng(0).random((20, 2)) * 0.8 + 0.2)
    search = _Search(GaussianProcessSearch(), problem, np.random.default_rng(0), [start], set())
    search.ask()  # determines the scale of the values
    best = float(start.objectives.min())
    for x, designs_without_gain in (
        *((best - 1e-6, 1), (0.1, 0), (0.1 - 1e-6, 1)),
        *((0.2, 2), (0.1 - 2e-5, 3), (0.09, 0)),
    ):
        search.tell(evaluate(np.array([[x, 0.5]])))
        assert search._since_gain == designs_without_gain
