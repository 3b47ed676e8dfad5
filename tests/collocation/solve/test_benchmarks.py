"""Problems with known optima, each with the mesh and the relative error that is asked of it.

The sources of the optima stand with the problems. The objective counts, unless a case says what does.
"""

import math

import benchmark_problems as problems
import numpy as np
import pytest

from designopt.collocation import Mesh, Options, Program, Status
from designopt.collocation.statement.mesh import radau

CASES = {
    "block_move": (problems.block_move, {"intervals": 10}, 12.0, 1e-8),
    "block_move trapezoidal": (problems.block_move, {"scheme": "trapezoidal", "intervals": 40}, 12.0, 3e-3),
    "double_integrator": (problems.double_integrator, {"intervals": 40}, 2.0, 1e-6),
    "sliding_mass": (problems.sliding_mass, {"intervals": 40}, 0.4, 1e-6),
    "brachistochrone": (problems.brachistochrone, {"intervals": 40}, problems.brachistochrone_time(), 1e-6),
    "linear_tangent": (problems.linear_tangent, {"intervals": 40}, 0.554570879, 1e-8),
    "goddard": (problems.goddard, {"intervals": 100}, -1.012838, 1e-5),
    "van_der_pol": (problems.van_der_pol, {"scheme": "radau", "degree": 3, "intervals": 40}, 3.61518, 3e-4),
    "cart_pole": (problems.cart_pole, {"intervals": 50}, 58.80766746, 1e-6),
    "cart_pole radau": (problems.cart_pole, {"scheme": "radau", "degree": 5, "intervals": 40}, 58.80766746, 1e-8),
    "damped_start": (problems.damped_start, {"scheme": "radau", "degree": 3, "intervals": 100}, 1.0, 5e-6),
    "quarter_car": (problems.quarter_car, {"scheme": "radau", "degree": 5, "intervals": 100}, 1.9417811, 1e-7),
}


@pytest.mark.parametrize(("problem", "options", "optimum", "tolerance"), CASES.values(), ids=CASES)
def test_the_optimum_is_that_of_the_source(problem, options, optimum, tolerance):
    solution = Program(problem(), Options(**options)).solve()

    assert solution.status is Status.SOLVED
    assert solution.objective == pytest.approx(optimum, rel=tolerance)


@pytest.mark.parametrize("form", ["explicit", "residual"])
@pytest.mark.parametrize(
    ("midpoint", "intervals", "optimum"),
    [
        ("linear", 50, 58.8095736),  # the Hermite-Simpson of OpenSim Moco
        ("linear", 100, 58.8077791),
        ("free", 50, 58.8076422),  # Gauss-Lobatto of order 3 in dymos
    ],
)
def test_the_same_discretisation_gives_the_digits_of_other_codes(form, midpoint, intervals, optimum):
    options = Options(scheme="hermite_simpson", intervals=intervals, midpoint_control=midpoint, form=form)

    solution = Program(problems.cart_pole(), options).solve()

    assert solution.objective == pytest.approx(optimum, rel=1e-8)  # so many digits are printed


def test_a_hyper_sensitive_motion_is_resolved_by_a_graded_mesh():
    mesh = Mesh.at(radau(5), problems.hyper_sensitive_nodes(80))

    solution = Program(problems.hyper_sensitive(), meshes=[mesh]).solve()

    assert solution.status is Status.SOLVED
    assert len(mesh) == 80
    assert solution.objective == pytest.approx(problems.hyper_sensitive_cost(), rel=1e-7)
    assert problems.hyper_sensitive_cost() == pytest.approx(3.3620569049, abs=1e-10)


def test_the_control_of_the_block_is_the_straight_line():
    solution = Program(problems.block_move(), Options(intervals=10)).solve()

    motion = solution.phase
    np.testing.assert_allclose(motion.values["u"], 6.0 - 12.0 * motion.times, atol=1e-8)
    np.testing.assert_allclose(motion.values["x"], motion.times**2 * (3.0 - 2.0 * motion.times), atol=1e-9)


def test_the_control_of_the_fastest_motion_switches_once_in_the_middle():
    motion = Program(problems.double_integrator(), Options(intervals=40)).solve().phase

    early, late = motion.times < 0.95, motion.times > 1.05  # the intervals beside the switch are fixed less firmly
    np.testing.assert_allclose(motion.values["u"][early], 1.0, atol=1e-4)
    np.testing.assert_allclose(motion.values["u"][late], -1.0, atol=1e-4)


def test_the_bead_follows_the_cycloid():
    options = Options(scheme="radau", degree=5, intervals=10)
    motion = Program(problems.brachistochrone(), options).solve().phase

    some = motion.times > 0.2  # the angle at rest is of no consequence, and little of the fall is made before
    rolled = 2.0 * motion.values["angle"][some]  # the angle of the wheel is twice that of the path to the vertical
    radius = (10.0 - motion.values["y"][some]) / (1.0 - np.cos(rolled))
    np.testing.assert_allclose(radius, radius[-1], rtol=1e-4)
    np.testing.assert_allclose(motion.values["x"][some], radius * (rolled - np.sin(rolled)), atol=1e-4)


def test_the_rocket_burns_its_fuel_and_ends_at_the_top():
    solution = Program(problems.goddard(), Options(intervals=100)).solve()

    motion = solution.phase
    assert motion.tf == pytest.approx(0.1989, abs=5e-5)  # COPS 3.0, table for problem 10
    assert motion.values["v"][-1] == pytest.approx(0.0, abs=1e-3)
    assert (motion.values["thrust"] > -1e-6).all()
    assert (motion.values["thrust"] < 3.5 + 1e-6).all()


def test_the_best_damping_of_a_released_mass_is_the_analytic_one():
    options = Options(scheme="radau", degree=3, intervals=100)

    solution = Program(problems.damped_start(1.0), options).solve()

    assert solution.parameters["c"] == pytest.approx(1.0, rel=5e-6)


def test_the_best_quarter_car_has_its_softest_spring():
    options = Options(scheme="radau", degree=5, intervals=100)

    solution = Program(problems.quarter_car(), options).solve()

    assert solution.parameters["k"] == pytest.approx(2000.0, rel=1e-5)
    assert solution.parameters["c"] == pytest.approx(510.55, abs=0.005)


def test_the_mass_follows_from_half_a_period():
    solution = Program(problems.oscillator_mass(), Options(intervals=40)).solve()

    assert solution.status is Status.SOLVED
    assert solution.parameters["m"] == pytest.approx(5.0, rel=1e-5)
    assert solution.objective == pytest.approx(0.0, abs=1e-10)
    assert solution.phase.tf == pytest.approx(math.pi * math.sqrt(0.05))
