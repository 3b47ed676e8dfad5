"""Walks of an amputee: the program's mirror image, limits of the knee, failures with a reason, reference values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from designopt_muscle.osim.read import read_model
from designopt_walking.amputee import model as amputee_model
from designopt_walking.amputee import problem as problem_module
from designopt_walking.amputee import shared_walks
from designopt_walking.amputee import start as amputee_start
from designopt_walking.amputee.model import AmputeeWalk
from designopt_walking.amputee.problem import (
    RANGES,
    AmputeeCost,
    KneeLimits,
    Prosthesis,
    amputee_problem,
    amputee_system,
    amputee_walker,
)
from designopt_walking.bundled import planar_walker
from designopt_walking.devices.four_bar import FourBar
from designopt_walking.devices.joint_springs import stop_torque
from designopt_walking.programs.gait import mirror_name, program_options, with_interval_errors
from designopt_walking.walker import Device, DeviceForces, Walker
from recorded_walks import guess
from single_intervals import interval_differences

import designopt
from designopt.collocation import Guess, Program, Solution
from designopt.lazy import casadi as ca
from designopt.plugin import Diverged, InputFile, InvalidDesign, InvalidSetting
from designopt.study.language.errors import StudyError
from designopt.study.load import study_from_text
from designopt.study.remarks import inputs_at_defaults

MODEL = read_model(planar_walker().content)


def residual(walker: Walker) -> ca.Function:
    state, muscles = walker.state, walker.muscles
    parameters = [s for device in walker.devices for _, s in device.parameters]
    controls = [s for device in walker.devices for _, s in device.controls]
    arguments = [state.z, state.dz, state.ddz, muscles.activation, ca.vertcat(*controls), ca.vertcat(*parameters)]
    return ca.Function("residual", [*arguments, *walker.drives.values()], [walker.residual])


@pytest.mark.parametrize("linkage", [None, FourBar()])
def test_an_amputation_of_the_left_leg_is_the_mirror_image_of_one_of_the_right(linkage: FourBar | None) -> None:
    """Equal equations make equal optima: the same objective for both sides."""
    right, left = (amputee_walker(MODEL, Prosthesis(side, linkage), KneeLimits()) for side in "rl")
    rng = np.random.default_rng(0)
    swap = [left.coordinates.index(mirror_name(name)) for name in right.coordinates]
    muscles = [left.muscles.names.index(mirror_name(name)) for name in right.muscles.names]
    z, dz, ddz = rng.uniform(-0.3, 0.0, 10), rng.normal(size=10), rng.normal(size=10)
    z[right.coordinates.index("pelvis_ty")] = 0.87
    a, help_controls, device = rng.uniform(0.1, 0.9, 11), rng.normal(size=3), np.array([2e4, 2e3, 300.0])

    def image(values: np.ndarray, order: list[int]) -> np.ndarray:
        result = np.empty_like(values)
        result[order] = values
        return result

    one = np.asarray(residual(right)(z, dz, ddz, a, help_controls, device, 3.0)).ravel()
    mirrored_residual = np.asarray(
        residual(left)(*(image(v, swap) for v in (z, dz, ddz)), image(a, muscles), help_controls, device, 3.0)
    ).ravel()
    np.testing.assert_allclose(image(one, swap), mirrored_residual, rtol=1e-12, atol=1e-9)
    ranges = [{c.name: (c.low, c.high) for c in w.state.tree.coordinates} for w in (right, left)]
    assert ranges[1] == {mirror_name(name): values for name, values in ranges[0].items()}


def test_limits_of_the_knee_bound_its_angle_where_the_stop_has_that_torque() -> None:
    low, high = KneeLimits(swing_flexion=1.1, stop_torque=40.0).knee_range(0.05)
    assert low == -1.1
    assert -float(stop_torque(high)) == pytest.approx(40.0)
    assert KneeLimits().knee_range(0.05)[1] == 0.05
    walker = amputee_walker(MODEL, Prosthesis(), KneeLimits(1.1, 40.0))
    knee = next(c for c in walker.state.tree.coordinates if c.name == "knee_angle_r")
    assert (knee.low, knee.high) == (low, high)


def test_help_torques_are_zero_without_a_price_and_the_expressions_stay() -> None:
    system = amputee_system(amputee_walker(MODEL, Prosthesis(), KneeLimits()))
    plain = amputee_problem(system, "r", 1.2, AmputeeCost())
    helped = amputee_problem(system, "r", 1.2, AmputeeCost(), help_price=30.0)
    names = [v.name for v in system.controls if v.name.startswith("help_")]
    assert [plain.phases[0].bounds[n] for n in names] == [(0.0, 0.0)] * 3
    assert [helped.phases[0].bounds[n] for n in names] == [(-2.0, 2.0)] * 3
    assert helped.parameters["help_price"] == 30.0
    assert {v.name for v in plain.variables} == {v.name for v in helped.variables}
    assert {"knee_stiffness", "knee_damping", "ankle_stiffness"} <= {v.name for v in plain.variables}


def without_spheres(ending: str) -> InputFile:
    """The bundled model without the contact spheres whose names end like this."""
    element = "SmoothSphereHalfSpaceForce"
    pattern = rf'<{element} name="[^"]*{ending}">.*?</{element}>'
    return InputFile("walker.osim", re.sub(pattern, "", planar_walker().content.decode(), flags=re.DOTALL).encode())


@pytest.mark.parametrize(
    ("settings", "field", "message"),
    [
        ({"choose": ["knee_spring"]}, "choose", "'knee_spring' is no parameter of this device; known: knee_stiffness"),
        ({"knee": "four_bar", "choose": ["knee_damping"]}, "choose", "known: damper_stiffness, damper_damping"),
        ({"model": InputFile("leg.osim", b"<a/>")}, "model", "leg.osim: "),
        ({"model": without_spheres("_l")}, "model", r"walker.osim: has no contact sphere .* on its left foot"),
        ({"model": without_spheres("")}, "model", r"walker.osim: has no contact sphere .* nothing carries it"),
        ({"recording": InputFile("cycle.txt", b"")}, "recording", r"from \.sto, \.mot and \.csv"),
    ],
)
def test_settings_that_cannot_be_are_refused_by_name(settings: dict, field: str, message: str) -> None:
    with pytest.raises(InvalidSetting, match=message) as refused:
        AmputeeWalk(**settings).check()
    assert refused.value.name == field


@pytest.fixture
def at_reference(walking_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The symmetric walk is the reference, doubled roughly; stages of the start end after one iteration."""
    file = walking_data / "reference" / "D_amputee_fixed_15_2_400.csv"
    names = list(RANGES) + [f"{name}_speed" for name in RANGES]
    monkeypatch.setattr(amputee_model, "symmetric_walk", lambda *_: guess(file, names))
    monkeypatch.setattr(amputee_start, "STAGE_ITERATIONS", 1)
    monkeypatch.setattr(amputee_start, "START_INTERVALS", 8)


@pytest.mark.usefixtures("at_reference")
def test_a_walk_that_is_not_solved_has_the_reason_and_no_numbers() -> None:
    walk = AmputeeWalk(intervals=12, max_iterations=1)
    with pytest.raises(Diverged, match=r"no walk with the middle device at 1\.1 m/s") as refused:
        walk.evaluate({}, {"speed": 1.1})
    assert refused.value.reason == "start_iteration_limit"


def test_chosen_parameters_and_their_number_at_bounds_are_outputs_only_where_the_program_chooses() -> None:
    chosen = AmputeeWalk(knee="four_bar", choose=["damper_damping"]).declares().outputs
    assert list(chosen) == ["chosen_damper_damping", "chosen_at_bounds"]
    assert (chosen["chosen_at_bounds"].notable, chosen["chosen_at_bounds"].listed_by) == (True, "bounds")
    assert not AmputeeWalk(knee="four_bar").declares().outputs


def test_inputs_are_those_of_the_chosen_knee() -> None:
    text = """study: walk
model: {use: amputee_walk, knee: four_bar, choose: [damper_stiffness]}
space: {ankle_stiffness: [300 N m/rad, 500 N m/rad]}
objectives: [{name: effort, minimize: effort}]
solver: {use: sobol, samples: 2}
"""
    definition = study_from_text(text, "walk.yaml")
    assert definition.model.plugin.inputs is not None
    assert set(definition.model.plugin.inputs) == {"damper_damping", "ankle_stiffness"}
    assert inputs_at_defaults(definition) == "inputs at the model's defaults: damper_damping 2500 N s/m"
    with pytest.raises(StudyError, match="has no design input 'knee_stiffness'"):
        study_from_text(text.replace("ankle_stiffness", "knee_stiffness"), "walk.yaml")


@pytest.mark.parametrize(
    ("settings", "design", "message"),
    [
        ({}, {"damper_stiffness": 2e4}, "damper_stiffness: the knee is single_axis, which has knee_stiffness"),
        ({"choose": ["knee_damping"]}, {"knee_damping": 1.0}, "knee_damping: the program chooses it"),
    ],
)
def test_values_of_another_device_are_refused(settings: dict, design: dict, message: str) -> None:
    walk = AmputeeWalk(**settings)
    with pytest.raises(InvalidDesign, match=message):
        walk.evaluate(design, {})


def test_a_device_outside_its_range_is_refused_before_the_run() -> None:
    with pytest.raises(StudyError, match="knee_stiffness"):
        designopt.define(
            study="stiff", model={"use": "amputee_walk"}, space={"knee_stiffness": -1.0},
            solver={"use": "evaluate", "designs": [{"name": "one"}]}, execution={"executor": "serial"},
        )  # fmt: skip


def test_the_solver_collocation_takes_device_and_walk_with_limits_on_the_asymmetry() -> None:
    study = designopt.define(
        study="inside",
        model={"use": "amputee_walk", "intervals": 12},
        space={
            "knee_stiffness": {"low": 0, "high": 60, "unit": "N m/rad"},
            "knee_damping": 2.0,
            "ankle_stiffness": 400.0,
        },
        objectives=[{"name": "cost", "minimize": "objective"}],
        constraints=[{"name": "even", "of": "loading_asymmetry", "min": -0.01, "max": 0.01}],
        solver={"use": "collocation", "scheme": "hermite_simpson", "midpoint_control": "linear", "intervals": 12},
        execution={"executor": "serial"},
    )
    assert study.definition.stages[0].solver.plugin.has("program")


FIXED = {"knee_stiffness": 15.0, "knee_damping": 2.0, "ankle_stiffness": 400.0}
REFERENCES = [
    ("D_amputee_free_device.csv", {}, 0.524325, 0.97577),
    ("D_amputee_fixed_15_2_400.csv", FIXED, 0.820503, None),
]


def reference_program(file: Path, device: dict[str, float], side: str = "r") -> tuple[Program, Guess]:
    """The walk at 1.2 m/s on 40 intervals, from a reference solution or from its mirror image for the left side."""
    system = amputee_system(amputee_walker(MODEL, Prosthesis(side), KneeLimits()))
    problem = amputee_problem(system, side, 1.2, AmputeeCost())
    problem = replace(problem, parameters={**problem.parameters, **device})
    form = system.residual_form
    assert form is not None
    names = [v.name for v in (*system.states, *system.controls, *form.unknowns)]
    image = mirror_name if side == "l" else str
    reference = guess(file, [image(name) for name in names])
    motion = replace(reference, values={image(name): values for name, values in reference.values.items()})
    start = Guess({"cycle": motion}, device)
    return Program(problem, program_options(40, 1e-6), start), start


def solved_from_reference(file: Path, device: dict[str, float], side: str = "r") -> Solution:
    program, start = reference_program(file, device, side)
    solution = program.solve(guess=start)
    assert solution.success
    assert solution.violation < 1e-5
    return solution


@pytest.mark.slow
@pytest.mark.parametrize(("file", "device", "objective", "duration"), REFERENCES)
def test_reference_walks_are_reproduced_on_their_mesh(
    walking_data: Path, file: str, device: dict[str, float], objective: float, duration: float | None
) -> None:
    """Prototype of the specification, 40 intervals, at 1.2 m/s; a lower objective is a better local optimum."""
    solution = solved_from_reference(walking_data / "reference" / file, device)
    assert solution.objective <= objective * 1.001
    if duration is not None:
        assert solution.phase.tf == pytest.approx(duration, rel=2e-3)
        assert solution.parameters["knee_stiffness"] == pytest.approx(0.0, abs=1e-3)
        assert solution.parameters["ankle_stiffness"] == pytest.approx(284.15, rel=1e-2)


@pytest.mark.slow
def test_a_walk_costs_the_same_on_either_amputated_side(walking_data: Path) -> None:
    file = walking_data / "reference" / "D_amputee_fixed_15_2_400.csv"
    right, left = (solved_from_reference(file, FIXED, side) for side in "rl")
    assert left.objective == pytest.approx(right.objective, rel=1e-6)


@pytest.mark.slow
def test_motions_of_single_intervals_are_within_the_error_estimate(walking_data: Path) -> None:
    """Section 10.4, on each of 40 intervals, with LSODA at a relative error of 1e-9."""
    program, start = reference_program(walking_data / "reference" / "D_amputee_fixed_15_2_400.csv", FIXED)
    solution = with_interval_errors(program.problem, program.solve(guess=start))
    walker = amputee_walker(MODEL, Prosthesis(), KneeLimits())
    differences = interval_differences(walker, solution.phase, solution.parameters)
    assert (differences <= solution.phase.error).all()
    assert solution.phase.segment_errors == pytest.approx(differences, rel=1e-4)


def stop_alone(side: str) -> Device:
    """A knee without spring and damper."""
    name = f"knee_angle_{side}"
    return lambda walker: DeviceForces({name: stop_torque(walker.state.named[name])})


@pytest.mark.slow
def test_a_knee_without_stiffness_and_damping_costs_what_no_device_costs(
    walking_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Section 10.4: equal equations, equal optimum, also without the parameters of the knee in the program."""
    file, ankle = walking_data / "reference" / "D_amputee_free_device.csv", {"ankle_stiffness": 284.15}
    device = solved_from_reference(file, {"knee_stiffness": 0.0, "knee_damping": 0.0, **ankle})
    monkeypatch.setattr(problem_module, "single_axis_knee", stop_alone)
    bare = solved_from_reference(file, ankle)
    assert device.parameters.keys() - bare.parameters.keys() == {"knee_stiffness", "knee_damping"}
    assert bare.objective == pytest.approx(device.objective, rel=1e-8)


@pytest.mark.slow
def test_a_walk_is_more_even_where_asymmetry_is_dearer(walking_data: Path) -> None:
    program, start = reference_program(walking_data / "reference" / "D_amputee_free_device.csv", {})
    usual = program.solve(guess=start)
    weights = {**program.problem.parameters, "asymmetry_weight": 3.0}
    even = program.solve(replace(program.problem, parameters=weights), warm="full", previous=usual)
    assert even.success, even.message
    asymmetry = abs(usual.figures["loading_asymmetry"])
    assert abs(even.figures["loading_asymmetry"]) < asymmetry
    assert usual.objective < even.objective < usual.objective + 2.0 * asymmetry**2


@pytest.mark.timeout(3600)
@pytest.mark.slow
def test_an_amputee_walks_uphill_and_against_a_pull_with_more_energy_and_downhill_with_less() -> None:
    """Uphill, muscles also lift the body: 9.81 J/(kg m) times the sine, at an efficiency of at most 1. A pull of -30 N
    takes its work. The knee is that of `studies/prosthesis_walks.yaml`."""
    model = AmputeeWalk(knee="four_bar", intervals=60, max_swing_flexion=np.radians(65.0), max_stop_torque=40.0)
    knee = {"damper_stiffness": 1e4, "damper_damping": 1250.0}
    conditions = [{"slope": -0.05}, {}, {"slope": 0.05}, {"pull": -30.0}]
    outputs = [model.evaluate(knee, {"speed": 0.9, **ground})[0] for ground in conditions]
    assert all(o["mean_force_error"] < 1e-3 and o["impulse_error"] < 5e-3 for o in outputs)
    down, level, up, against = (o["net_cost_of_transport"] for o in outputs)
    assert up - level > 9.81 * 0.05
    assert against - level > 30.0 / model._walks(0.0).programs.walker.mass
    assert down < level


@pytest.mark.timeout(3600)
@pytest.mark.slow
def test_a_finer_mesh_confirms_the_walk_with_the_recommended_knee() -> None:
    """Of `docs/walking.md`: with a large barrier the search ended in a walk with an effort of 0.655."""
    model = AmputeeWalk(
        knee="four_bar", intervals=60, confirm=True, max_swing_flexion=np.radians(65.0), max_stop_torque=40.0
    )
    outputs, _ = model.evaluate({"damper_stiffness": 16.8e3, "damper_damping": 2569.0}, {"speed": 0.9})
    assert outputs["mesh_unconverged"] == 0.0
    assert outputs["mesh_difference"] < np.radians(1.0)
    assert outputs["effort"] == pytest.approx(0.484, rel=0.02)
    assert outputs["failed_checks"] == 0.0


@pytest.mark.timeout(3600)
@pytest.mark.slow
def test_the_usual_device_ends_in_the_best_walk_that_is_known() -> None:
    """0.820503 at 1.2 m/s, with a nearly straight knee; the walk continued from soft knees costs 1.01."""
    outputs, _ = AmputeeWalk(intervals=40).evaluate({}, {"speed": 1.2})
    assert outputs["objective"] <= 0.820503
    assert outputs["start_spread"] > 0.1
    assert outputs["mean_force_error"] < 1e-3
    assert outputs["impulse_error"] < 5e-3


@pytest.mark.timeout(3600)
@pytest.mark.slow
def test_designs_have_the_same_walk_in_any_order_or_a_reason() -> None:
    """Soft, middle and stiff, at the speed of the first walk and beside it (specification 10.6)."""

    def result(model: AmputeeWalk, design: tuple[float, float, float]) -> float | str:
        values = {"knee_stiffness": design[0], "knee_damping": design[1]}
        try:
            outputs, _ = model.evaluate(values, {"speed": design[2]})
        except Diverged as error:
            return error.reason
        assert outputs["mean_force_error"] < 1e-3
        assert outputs["impulse_error"] < 5e-3
        return outputs["objective"]

    designs = [(0.0, 0.0, 0.9), (5.0, 1.0, 1.0), (15.0, 2.0, 0.9)]
    one, second_walk = AmputeeWalk(intervals=40), AmputeeWalk(intervals=40)
    results = [result(one, design) for design in designs]
    assert all(results)
    assert [result(second_walk, design) for design in reversed(designs)] == results[::-1]


def test_a_coarse_mesh_of_a_cycle_is_remarked() -> None:
    assert AmputeeWalk(intervals=40).remarks({}) == []
    (remark,) = AmputeeWalk(intervals=30).remarks({})
    assert remark.startswith("on 30 intervals of a cycle the ground forces may alternate")


def outcomes(folder: Path) -> tuple[np.ndarray, Mapping[str, np.ndarray]]:
    """Designs and figures of a search over the four-bar knee."""
    study = designopt.define(
        study="knees",
        seed=4,
        model={
            "use": "amputee_walk", "knee": "four_bar", "intervals": 40,
            "max_swing_flexion": float(np.radians(65.0)), "max_stop_torque": 40.0,
        },
        scenarios=[{"name": "slow", "speed": 0.9}],
        space={
            "damper_stiffness": {"low": 4e3, "high": 2e4, "unit": "N/m"},
            "damper_damping": {"low": 400.0, "high": 3e3, "unit": "N s/m"},
        },
        objectives=[
            {"name": "effort", "minimize": "effort"},
            {"name": "asymmetry", "minimize": "abs(loading_asymmetry)"},
        ],
        solver={"use": "nsga2", "population": 6},
        budget={"evaluations": 30},
        execution={"executor": "serial"},
    )  # fmt: skip
    result = study.run(folder)
    return result.outcomes.X, result.outcomes.figures


@pytest.mark.timeout(7200)
@pytest.mark.slow
def test_a_search_over_thirty_knees_has_the_same_numbers_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Specification 10.7: no crash, a walk or a reason for each knee, and most walks from neighbouring ones. The second
    search reads the waypoints of the first."""
    monkeypatch.setattr(shared_walks, "cache_dir", lambda: tmp_path)
    (designs, figures), (same_designs, same_figures) = (outcomes(tmp_path / name) for name in ("first", "again"))
    assert len(designs) == 30
    np.testing.assert_array_equal(same_designs, designs)
    assert same_figures.keys() == figures.keys()
    for name, values in figures.items():
        np.testing.assert_array_equal(same_figures[name], values)
    assert np.nanmean(figures["warm"]) > 0.5
    assert np.isfinite(figures["effort"]).mean() > 0.5
