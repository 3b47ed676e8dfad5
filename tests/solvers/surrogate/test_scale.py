"""Scales of values: inverses, slopes, and which of them a quantity gets."""

import numpy as np
import pytest

from designopt.solvers.surrogate.model import Surrogate
from designopt.solvers.surrogate.observations import Observations
from designopt.solvers.surrogate.scale import Scale
from designopt.study.study import DesignVariable
from designopt.testing import InProcess, problem_from

VALUES = np.array([-3.0, 0.0, 0.5, 2.0, 9.0, 400.0])
FEASIBLE = np.array([False, False, True, True, True, False])


@pytest.mark.parametrize("scale", [*Scale.choices(VALUES, FEASIBLE), *Scale.choices_of_limit(VALUES)])
def test_displayed_values_are_parsed_back(scale):
    assert scale.values(scale.scaled(VALUES)) == pytest.approx(VALUES, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("scale", [*Scale.choices(VALUES, FEASIBLE), *Scale.choices_of_limit(VALUES)])
def test_the_slopes_of_a_scale_are_those_that_differences_show(scale):
    h = 1e-6 * (1.0 + np.abs(VALUES))
    slopes = (scale.scaled(VALUES + h) - scale.scaled(VALUES - h)) / (2.0 * h)
    assert scale.log_slopes(VALUES) == pytest.approx(np.log(slopes).sum(), rel=1e-5)


def test_a_limit_that_is_met_exactly_stays_at_zero():
    assert [float(s.scaled(np.zeros(1))[0]) for s in Scale.choices_of_limit(VALUES)] == [0.0, 0.0]


@pytest.mark.parametrize(("power", "drawn_in"), [(1, False), (24, True)])
def test_few_huge_values_are_drawn_in_and_others_are_left_as_they_are(power, drawn_in):
    space = [DesignVariable("x", "real", 0.0, 1.0), DesignVariable("y", "real", 0.0, 1.0)]
    problem = problem_from(lambda d, s: {"f": (0.6 + d["x"] + 0.2 * d["y"]) ** power}, space, minimize=["f"])
    X = np.random.default_rng(0).random((20, 2))
    observations = Observations.from_outcomes(problem, [InProcess(problem).outcomes(X)])
    processes = Surrogate(problem).processes(observations, np.empty((0, 2)))
    assert np.isfinite(processes.scales[0].knee) == drawn_in
