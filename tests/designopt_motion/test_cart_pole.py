"""The swing-up of a cart-pole as a model: one evaluation is one trajectory problem."""

from dataclasses import replace

import numpy as np
import pytest
from designopt_motion.cart_pole import GRAVITY, CartPole

from designopt.collocation import Options, Program, solve
from designopt.collocation.solve.guess.warm import solve_chain
from designopt.plugin import Diverged
from designopt.testing import check_model

KELLY = {"pole_length": 0.5, "duration": 2.0}


def test_it_keeps_the_rules_for_models():
    check_model(CartPole, designs=[KELLY, {"pole_length": 0.6, "duration": 2.2}], scenarios=[{}])


def test_the_effort_is_that_of_the_published_problem():
    # four codes agree on 58.80766746 (converged); Hermite-Simpson with 50 intervals has 58.8076422
    outputs, _ = CartPole().evaluate(KELLY, {})
    assert outputs["effort"] == pytest.approx(58.8076422, rel=1e-8)
    fine, _ = CartPole(scheme="radau", intervals=80).evaluate(KELLY, {})
    assert fine["effort"] == pytest.approx(58.80766746, rel=1e-5)


def test_the_equations_are_those_of_the_paper():
    """Kelly 2017, equations 6.1 and 6.2: the accelerations written out."""
    system = CartPole().trajectory_problem({}).phases[0].system
    rng = np.random.default_rng(3)
    for _ in range(20):
        q1, q2, v1, v2, u = rng.normal(size=5) * 3.0
        m1, m2, length = rng.uniform(0.2, 2.0, 3)
        s, c = np.sin(q2), np.cos(q2)
        a1 = (length * m2 * s * v2**2 + u + m2 * GRAVITY * c * s) / (m1 + m2 * (1.0 - c**2))
        a2 = -(length * m2 * c * s * v2**2 + u * c + (m1 + m2) * GRAVITY * s) / (length * (m1 + m2 * (1.0 - c**2)))
        rates = np.array(system.rhs([q1, q2, v1, v2], u, [], [length, 2.0], [m1, m2], 0.0)).ravel()
        np.testing.assert_allclose(rates, [v1, v2, a1, a2], rtol=1e-12)


def test_both_forms_of_the_equations_reach_the_same_swing_up():
    problem = replace(CartPole().trajectory_problem({}), parameters=KELLY)
    explicit = solve(problem, Options(form="explicit"))
    residual = solve(problem, Options(form="residual"))
    assert residual.objective == pytest.approx(explicit.objective, rel=1e-8)


def test_arrays_are_the_motion_asked_for():
    outputs, arrays = CartPole().evaluate(KELLY, {"max_force": 12.0}, frozenset({"time", "cart", "angle", "force"}))
    assert arrays["time"][[0, -1]].tolist() == pytest.approx([0.0, 2.0])
    assert arrays["cart"][[0, -1]].tolist() == pytest.approx([0.0, 1.0], abs=1e-6)
    assert arrays["angle"][-1] == pytest.approx(np.pi, abs=1e-6)
    assert outputs["peak_force"] <= 12.0 + 1e-6
    assert np.abs(arrays["force"]).max() <= 12.6  # the quadratic between points passes the bound a little
    assert outputs["effort"] > 58.8


def test_infeasible_movements_are_designs_without_result():
    with pytest.raises(Diverged) as caught:
        CartPole(intervals=20).evaluate({"pole_length": 0.5, "duration": 0.3}, {})
    assert caught.value.reason in ("locally_infeasible", "restoration_failed")


def test_the_published_swing_up_is_a_local_optimum():
    """Followed from a shorter pole the cart first moves backwards, and needs less."""
    problem = CartPole().trajectory_problem({})
    poles = [replace(problem, parameters={"pole_length": v, "duration": 2.0}) for v in (0.42, 0.45, 0.48, 0.5)]
    program = Program(poles[0], Options(intervals=60))
    better, published = list(solve_chain(program, poles))[-1], program.solve(poles[-1])
    assert published.objective == pytest.approx(58.80767, rel=1e-6)
    assert better.objective == pytest.approx(57.9448, rel=1e-5)
    assert better.phase.values["cart"].min() < -0.05
    assert published.phase.values["cart"].min() > -1e-6
