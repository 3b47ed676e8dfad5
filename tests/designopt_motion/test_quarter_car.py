"""The quarter car by simulation and by collocation: the same ride, the same best suspension."""

from dataclasses import replace

import numpy as np
import pytest
from designopt_motion.quarter_car import QuarterCar
from scipy.integrate import solve_ivp

from designopt.collocation import Options, ProblemError, solve
from designopt.plugin import InvalidDesign
from designopt.testing import check_model

BEST = {"stiffness": 2000.0, "damping": 510.55}


@pytest.fixture(scope="module")
def car():
    model = QuarterCar()
    model.prepare()
    return model


def test_it_keeps_the_rules_for_models():
    # differences of simulations are exact to their tolerance only, and at the best damping those of the cost are zero
    check_model(
        QuarterCar,
        {"rtol": 1e-10},
        [{**BEST, "damping": 800.0}, {"stiffness": 5e4, "damping": 3000.0}],
        gradient_tolerance=1e-4,
    )


def test_the_cost_of_the_best_suspension_is_that_of_independent_computations(car):
    # specification of the benchmark: nested simulation gives 1.9417812, two transcriptions 1.9417811
    outputs, _ = car.evaluate(BEST, {})
    assert outputs["cost"] == pytest.approx(1.9417812, abs=2e-7)


def test_the_ride_is_that_of_an_independent_integrator(car):
    k, c, ms, mu, kt = 2e4, 1500.0, 300.0, 40.0, 1.8e5

    def rhs(t, y):
        xs, xu, vs, vu = y[:4]
        z = 0.05 * np.exp(-(((t - 0.7) / 0.1) ** 2))
        force = k * (xu - xs) + c * (vu - vs)
        a = force / ms
        return [vs, vu, a, (-force - kt * (xu - z)) / mu, a**2, (xs - xu) ** 2, (xu - z) ** 2]

    expected = solve_ivp(rhs, (0.0, 3.0), np.zeros(7), method="DOP853", rtol=1e-11, atol=1e-14, max_step=0.02).y[:, -1]
    scenario = {
        "body_mass": ms, "wheel_mass": mu, "tyre_stiffness": kt,
        "bump_height": 0.05, "bump_time": 0.7, "bump_width": 0.1,
    }  # fmt: skip
    outputs, arrays = car.evaluate({"stiffness": k, "damping": c}, scenario, frozenset({"time", "body", "road"}))
    measures = [outputs["discomfort"], outputs["travel"], outputs["tyre"]]
    np.testing.assert_allclose(measures, expected[4:], rtol=1e-6)
    assert arrays["body"][-1] == pytest.approx(expected[0], abs=1e-8)
    assert arrays["road"].max() == pytest.approx(0.05, rel=1e-3)
    assert (np.diff(arrays["time"]) > 0.0).all()


@pytest.mark.parametrize("bump_time", [0.05, 0.5, 2.0, 2.95])
def test_no_bump_is_stepped_over(car, bump_time):
    outputs, _ = car.evaluate(BEST, {"bump_time": bump_time, "bump_width": 0.02})
    assert outputs["discomfort"] > 1e-3


def test_a_bump_after_the_end_is_refused(car):
    with pytest.raises(InvalidDesign, match="comes after the end"):
        car.evaluate(BEST, {"bump_time": 4.0})
    with pytest.raises(ProblemError, match="bump_time: the bump at 4 s comes after the end at 3 s"):
        car.trajectory_problem({"bump_time": 4.0})


def test_the_program_finds_the_best_suspension(car):
    # reference of the benchmark: J = 1.9417811, c = 510.55, k at its lower bound
    problem = car.trajectory_problem({})
    problem = replace(problem, parameters={"stiffness": (2e3, 2e5), "damping": (1e2, 2e4)})
    solution = solve(problem, Options(scheme="radau", degree=5, intervals=100))
    assert solution.success
    assert solution.objective == pytest.approx(1.9417811, rel=1e-7)
    assert solution.parameters["damping"] == pytest.approx(510.55, abs=0.01)
    assert solution.parameters["stiffness"] == pytest.approx(2000.0, abs=0.01)
    simulated, _ = car.evaluate({"stiffness": 2000.0, "damping": solution.parameters["damping"]}, {})
    assert simulated["cost"] == pytest.approx(solution.objective, rel=1e-6)


def test_figures_of_the_program_are_the_outputs_of_the_simulation(car):
    design = {"stiffness": 2e4, "damping": 1500.0}
    fixed = replace(car.trajectory_problem({"bump_height": 0.05}), parameters=design)
    figures = solve(fixed, Options(scheme="radau", degree=5, intervals=60, check=False)).figures
    outputs, _ = car.evaluate(design, {"bump_height": 0.05})
    assert set(figures) <= set(outputs)
    for name, value in figures.items():
        assert value == pytest.approx(outputs[name], rel=1e-6)
