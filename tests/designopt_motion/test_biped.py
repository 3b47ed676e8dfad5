"""The step of the five-link walker: two schemes agree on it, and springs at the hips are chosen with it."""

from dataclasses import replace

import numpy as np
import pytest
from designopt_motion.biped import ARRAYS, Biped
from designopt_motion.biped_equations import ANGLES, SPEEDS, TORQUES

from designopt.collocation import Guess, Options, Solution, solve
from designopt.plugin import Diverged
from designopt.testing import check_model

#: Nothing is published. Hermite-Simpson with 200 intervals gives 376.574743, Radau of degree 5 with 50 376.574758;
#: with other meshes it moves by 2e-6, as the times do at which the foot and the knee touch their limits.
EFFORT = 376.57475
#: The same of a walker on a point foot: 469.650100 and 469.650126.
EFFORT_ON_A_POINT = 469.65011


@pytest.fixture(scope="module")
def biped() -> Biped:
    return Biped()


@pytest.fixture(scope="module")
def step(biped: Biped) -> Solution:
    return solve(biped.trajectory_problem({}), Options(scheme="radau", intervals=40))


@pytest.mark.parametrize(
    "options",
    [Options(scheme="hermite_simpson", intervals=100), Options(scheme="radau", degree=5, intervals=40)],
    ids=["hermite_simpson", "radau"],
)
@pytest.mark.parametrize(("ankle", "effort"), [(100.0, EFFORT), (0.0, EFFORT_ON_A_POINT)])
def test_two_schemes_agree_on_the_effort_of_a_step(biped: Biped, options: Options, ankle: float, effort: float) -> None:
    """Kelly (2017), section 6: 0.5 m in 0.7 s; spec section 12 asks for an agreement of 1e-5."""
    solution = solve(biped.trajectory_problem({"max_ankle_torque": ankle}), options)
    assert solution.success, solution.message
    assert solution.objective == pytest.approx(effort, rel=5e-6)


def test_the_next_step_is_the_same_with_the_legs_exchanged(step: Solution) -> None:
    values = step.phase.values
    for names in zip(ANGLES, reversed(ANGLES), strict=True):
        assert values[names[1]][0] == pytest.approx(values[names[0]][-1], abs=1e-7)
    # The impact takes energy: rates before and after it are not the exchanged ones.
    assert abs(values[SPEEDS[0]][0] - values[SPEEDS[4]][-1]) > 0.5
    assert step.figures["impact_loss"] > 10.0


def test_the_swing_foot_goes_from_one_foothold_to_the_next_above_the_ground(biped: Biped) -> None:
    outputs, arrays = biped.evaluate({}, {"clearance": 0.02}, set(ARRAYS))
    foot = arrays["figure"][:, -1]
    assert foot[0] == pytest.approx([-0.5, 0.0], abs=1e-6)
    assert foot[-1] == pytest.approx([0.5, 0.0], abs=1e-6)
    assert foot[:, 1].min() > -1e-4  # constrained at the collocation points, looked at between them
    beside = np.abs(foot[:, 0]).argmin()
    assert foot[beside, 1] > 0.0199
    assert outputs["foot_clearance"] == pytest.approx(foot[35:-35, 1].min(), abs=1e-12)
    assert {name: array.shape[0] for name, array in arrays.items()} == dict.fromkeys(ARRAYS, 141)


def test_the_stance_foot_is_pressed_to_the_ground(biped: Biped) -> None:
    """Nothing constrains it; the step is one that a foot can make if friction is above a half."""
    outputs, _ = biped.evaluate({}, {})
    assert outputs["min_ground_force"] > 100.0
    assert 0.3 < outputs["friction_needed"] < 0.5
    # at the start, where Radau extrapolates: 41.087 with 200 intervals of Hermite-Simpson, 40.44 at its first point
    assert outputs["peak_torque"] == pytest.approx(41.087, abs=0.005)


def test_explicit_and_residual_form_reach_the_same_step(biped: Biped) -> None:
    problem = biped.trajectory_problem({})
    residual = solve(problem, Options(scheme="radau", intervals=15))
    explicit = solve(problem, Options(scheme="radau", intervals=15, form="explicit"), Guess.from_solution(residual))
    assert explicit.success, explicit.message
    assert explicit.objective == pytest.approx(residual.objective, rel=1e-7)


def test_a_hip_spring_is_chosen_with_the_motion(biped: Biped) -> None:
    """A design parameter in the program: its optimum is that of the efforts of neighbours, and a third of no spring."""
    problem = biped.trajectory_problem({})
    options = Options(scheme="radau", intervals=15)

    def with_spring(stiffness: float | tuple[float, float], start: Solution | None = None) -> Solution:
        stated = replace(problem, parameters={**problem.parameters, "hip_stiffness": stiffness})
        return solve(stated, options, Guess.from_solution(start) if start else None)

    free = with_spring((0.0, 200.0))
    k = free.parameters["hip_stiffness"]
    assert k == pytest.approx(36.3, abs=0.2)
    assert free.objective < 0.4 * EFFORT
    at, below, above = (with_spring(k + d, free).objective for d in (0.0, -1.0, 1.0))
    assert at == pytest.approx(free.objective, rel=1e-7)
    assert min(below, above) > free.objective
    # The multiplier of a held spring is the slope of the effort over it.
    fixed = with_spring(k + 10.0, free)
    slope = (with_spring(k + 10.1, free).objective - with_spring(k + 9.9, free).objective) / 0.2
    assert fixed.parameter_multipliers["hip_stiffness"] == pytest.approx(slope, rel=1e-4)


def test_torques_keep_their_limits(biped: Biped) -> None:
    limited = solve(biped.trajectory_problem({"max_torque": 30.0}), Options(scheme="radau", intervals=20))
    assert limited.success, limited.message
    assert max(np.abs(limited.phase.values[name][1:]).max() for name in TORQUES) <= 30.0 * (1.0 + 1e-6)
    assert limited.objective > EFFORT


def test_the_step_is_confirmed_by_a_simulation(biped: Biped) -> None:
    """Both are 3e-6 on 40 Radau intervals."""
    outputs, _ = biped.evaluate({}, {})
    assert outputs["error_estimate"] < 1e-5
    assert outputs["resimulation_error"] < 1e-5


def test_it_keeps_the_rules_for_models() -> None:
    check_model(
        Biped,
        {"intervals": 12},
        designs=[{"step_length": 0.45, "hip_stiffness": 20.0}],
        scenarios=[{"clearance": 0.01}],
    )


def test_a_step_that_no_motor_can_make_is_a_failed_evaluation() -> None:
    with pytest.raises(Diverged) as failed:
        Biped(intervals=8).evaluate({"step_length": 0.9, "step_time": 0.3}, {"max_torque": 5.0})
    assert failed.value.reason
