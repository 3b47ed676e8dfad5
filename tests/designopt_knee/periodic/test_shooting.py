"""Motions of period T by Newton's method, and their multipliers against differences of neighbouring walks."""

import numpy as np
import pytest
from designopt_knee.parameters import EQUATION_PARAMETERS, complete
from designopt_knee.periodic import shooting
from designopt_knee.periodic.shooting import extrapolated, shoot, shoot_between
from designopt_knee.periodic.strides import Integrators, Strides, distance
from designopt_knee.periodic.walk import walk, walk_through

from designopt.dynamics.simulation.side_by_side import run_alone

START = np.array([-0.15, 0.25, 0.0, 0.0])


@pytest.fixture(scope="module")
def fine(knee):
    """The same equations at tolerances at which differences of walks mean something."""
    return Integrators(knee._integrators.system, "rosenbrock4", (1e-8, 3e-10), 10**7, "auto")


def values(base, stiffness, ratio):
    leg = complete(base, {}, {"stiffness": stiffness, "damping_ratio": ratio})
    return np.array([leg[name] for name in EQUATION_PARAMETERS])


def settled(strides, cycles):
    state = START
    for _ in range(cycles):
        state = run_alone(strides(state)).x[-1]
    return state


@pytest.mark.parametrize(("stiffness", "ratio"), [(24000.0, 0.10), (16400.0, 0.05), (20000.0, 0.12)])
def test_multipliers_are_those_of_neighbouring_walks(knee, fine, base, gait, stiffness, ratio):
    """Central differences of the map of one cycle at a tolerance of 1e-8, angles moved by 0.001 rad."""
    p = values(base, stiffness, ratio)
    motion = run_alone(shoot(knee.strides(p), settled(knee.strides(p), 10)))
    strides = Strides(fine, p, gait.data(), gait.period, 40)
    columns = []
    for j, size in enumerate((1e-3, 1e-3, 1e-2, 1e-2)):
        step = size * np.eye(4)[j]
        ends = [run_alone(strides(motion.state + sign * step)).x[-1] for sign in (1.0, -1.0)]
        columns.append((ends[0] - ends[1]) / (2.0 * size))
    expected = np.linalg.eigvals(np.column_stack(columns))
    assert motion.modulus == pytest.approx(np.abs(expected).max(), abs=0.05)
    assert motion.multipliers[0].real == pytest.approx(expected[np.argmax(np.abs(expected))].real, abs=0.05)


def test_the_motion_repeats_and_is_the_one_that_the_walk_comes_to(knee, base):
    strides = knee.strides(values(base, 18000.0, 0.05))
    motion = run_alone(shoot(strides, settled(strides, 4)))
    assert distance(motion.stride.gap) < 0.05
    assert motion.stable
    assert distance(settled(strides, 40) - motion.state) < 0.01


def test_newton_needs_few_cycles_where_walking_needs_many(knee, base):
    """Multiplier -0.75: 0.75^n settles to 0.01 deg within 20 cycles or so."""
    strides = knee.strides(values(base, 20000.0, 0.12))
    outcome = run_alone(walk(strides, START, 20))
    assert outcome.is_periodic
    assert len(outcome.strides) <= 5
    assert outcome.motion.multipliers[0].real == pytest.approx(-0.75, abs=0.02)


def test_an_unstable_motion_is_found_but_not_taken_for_the_walk(knee, base):
    """At 14.8 kN/m and 0.03 s the walk leaves a motion of period T by -1.37 a cycle (differences of runs at 1e-10)."""
    strides = knee.strides(values(base, 14800.0, 0.03))
    outcome = run_alone(walk(strides, START, 20))
    assert not outcome.is_periodic
    assert outcome.motion is not None
    assert outcome.motion.multipliers[0].real == pytest.approx(-1.37, abs=0.05)
    assert outcome.motion.flip_margin == pytest.approx(-0.37, abs=0.05)


def test_motion_between_the_states_of_a_doubled_period_is_found(knee, base):
    strides = knee.strides(values(base, 18000.0, 0.12))
    a = settled(strides, 12)
    b = run_alone(strides(a)).x[-1]
    assert distance(a - b) > 3.0
    motion = run_alone(shoot_between(strides, a, b))
    assert motion is not None
    assert distance(motion.stride.gap) < 0.05
    assert motion.flip_margin < 0.0
    assert min(a[0], b[0]) < motion.state[0] < max(a[0], b[0])


def test_states_on_one_side_have_no_motion_between_them(knee, base):
    strides = knee.strides(values(base, 18000.0, 0.05))
    fixed_point = settled(strides, 8)
    assert run_alone(shoot_between(strides, fixed_point, fixed_point + np.array([1e-3, 0.0, 0.0, 0.0]))) is None


def test_newton_gives_up_far_from_any_motion(knee, base, monkeypatch):
    monkeypatch.setattr(shooting, "ITERATIONS", 2)
    strides = knee.strides(values(base, 12000.0, 0.02))
    assert run_alone(shoot(strides, np.array([-1.5, 0.8, 5.0, -20.0]))) is None


def test_extrapolation_is_exact_for_differences_that_shrink_by_a_factor():
    goal, direction = np.array([0.3, -0.2, 1.0, 2.0]), np.array([0.01, 0.02, 0.1, 0.0])
    states = [goal + (-0.6) ** n * direction for n in range(3)]
    ahead, factor = extrapolated(states[1] - states[0], states[2] - states[1])
    assert factor == pytest.approx(-0.6)
    assert states[2] + ahead == pytest.approx(goal, abs=1e-12)


def test_all_cycles_can_be_simulated_and_lead_to_the_same_motion(knee, base):
    strides = knee.strides(values(base, 24000.0, 0.10))
    early, late = run_alone(walk(strides, START, 20)), run_alone(walk_through(strides, START, 12, None))
    assert len(late.strides) == 12
    assert late.motion.modulus == pytest.approx(early.motion.modulus, abs=0.05)
    assert distance(late.strides[-1].x[-1] - early.motion.state) < 0.02


def test_a_walk_that_has_left_one_motion_comes_to_another_close_by(knee, base):
    """At 15.6 kN/m and 0.08 s it passes an unstable motion (multiplier 2.3) and settles a degree beside it."""
    outcome = run_alone(walk(knee.strides(values(base, 15600.0, 0.08)), START, 20))
    assert outcome.is_periodic
    assert outcome.motion.modulus == pytest.approx(0.30, abs=0.1)
    assert not outcome.leaving
