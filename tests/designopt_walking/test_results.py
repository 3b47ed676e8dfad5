"""Outputs, arrays and checks of a solved walk: those that the reference walks are known to have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from designopt_muscle.osim.read import read_model
from designopt_recordings.errors import RecordingError
from designopt_walking.amputee.model import AmputeeWalk
from designopt_walking.amputee.problem import KneeLimits, Prosthesis, amputee_walker
from designopt_walking.bundled import planar_walker
from designopt_walking.devices import DEVICES
from designopt_walking.models.predict import WalkPredict
from designopt_walking.results.arrays import WALK_ARRAYS, touched_bounds, walk_arrays
from designopt_walking.results.cycle import SolvedWalk
from designopt_walking.results.observables import observables
from designopt_walking.results.outputs import WalkOutputs, mesh_outputs, walk_outputs
from designopt_walking.results.physics import failed_check_sentences, fibre_warnings, physics, refuse_implausible
from designopt_walking.results.recording import bands, recorded_cycle
from designopt_walking.spatial.walker import Sphere, sphere_contacts
from designopt_walking.walker import walker_of, with_pull
from recorded_walks import recorded_walk

from designopt.collocation.solution.solution import Status
from designopt.plugin import Diverged, InputFile


@pytest.fixture(scope="module")
def walk(walking_data: Path) -> SolvedWalk:
    walker = walker_of(read_model(planar_walker().content), friction="opensim")
    return recorded_walk(walker, walking_data / "reference" / "C_walk_1p2_opensim_friction.csv", half=True)


@pytest.fixture(scope="module")
def outputs(walk: SolvedWalk) -> WalkOutputs:
    return walk_outputs(walk)


def test_the_reference_walk_has_its_published_outputs(outputs: WalkOutputs) -> None:
    """Walk at 1.2 m/s, 50 intervals: cost of transport 3.377 (2.377 net), peak 1.561 body weights, T 0.498454 s."""
    assert outputs["cost_of_transport"] == pytest.approx(3.377, abs=5e-4)
    assert outputs["net_cost_of_transport"] == pytest.approx(2.377, abs=5e-4)
    assert outputs["early_peak_r"] == pytest.approx(1.561, abs=5e-4)
    assert outputs["final_time"] == pytest.approx(0.498454, abs=1e-6)
    assert outputs["step_length"] == pytest.approx(0.598144, abs=1e-6)
    assert outputs["speed"] == pytest.approx(1.2, abs=1e-6)
    assert outputs["cadence"] == pytest.approx(60.0 / 0.498454, rel=1e-5)
    assert outputs["peak_activation"] == pytest.approx(0.26, abs=0.005)


def test_the_reference_walk_passes_the_checks_of_physics(walk: SolvedWalk, outputs: WalkOutputs) -> None:
    assert outputs["mean_force_error"] < 1e-4
    assert outputs["impulse_error"] < 1e-4
    assert outputs["energy_error"] < 0.01
    assert outputs["failed_checks"] == 0.0
    assert outputs["fibres_outside"] == 0.0
    assert outputs["braking_impulse"] == pytest.approx(outputs["propulsion_impulse"], rel=1e-4)
    assert fibre_warnings(walk) == []


def test_a_chosen_parameter_at_an_end_of_its_range_is_a_bound_that_the_walk_touches(walk: SolvedWalk) -> None:
    solution = replace(walk.solution, parameters={"spring_stiffness": 299.99995, "spring_rest": -0.3})
    sprung = replace(walk, walker=walk.walker.with_device(DEVICES["ankle_springs"]), solution=solution)
    assert not [name for name in touched_bounds(sprung) if name.startswith("spring")]
    bounds = touched_bounds(replace(sprung, chosen_parameters=("spring_stiffness",)))
    assert {name: share for name, share in bounds.items() if name.startswith("spring")} == {
        "spring_stiffness, largest: 300 N m/rad": 1.0
    }


def test_a_half_cycle_and_its_mirror_image_are_symmetric(outputs: WalkOutputs) -> None:
    for name in ("loading", "peak_force", "stance", "step_length", "step_time", "swing_flexion"):
        assert abs(outputs[f"{name}_asymmetry"]) < 1e-9  # type: ignore[literal-required]


def test_arrays_begin_at_right_heel_strike_and_go_on_where_the_cycle_ends(walk: SolvedWalk) -> None:
    arrays = walk_arrays(walk)
    assert arrays.keys() == WALK_ARRAYS.keys()
    for name, declared in WALK_ARRAYS.items():
        assert arrays[name].ndim == len(declared.axes), name
    force = arrays["ground_force"][:, 0, 1] / walk.walker.weight
    assert force[0] == pytest.approx(0.05, abs=0.02)
    assert force[3] > 0.05
    assert arrays["percent"][[0, -1]].tolist() == [0.0, 100.0]
    forward = arrays["positions"][:, list(arrays["coordinates"]).index("pelvis_tx")]
    assert (np.diff(forward) > 0.0).all()
    assert forward[-1] - forward[0] == pytest.approx(walk.stride, rel=1e-9)
    columns = [k for k, name in enumerate(arrays["coordinates"]) if name != "pelvis_tx"]
    np.testing.assert_allclose(arrays["positions"][0, columns], arrays["positions"][-1, columns], atol=1e-6)
    assert arrays["effort_shares"].sum() == pytest.approx(1.0)


def test_fore_aft_forces_do_not_alternate_with_the_points_of_the_mesh(walk: SolvedWalk) -> None:
    """Sliding that alternates as Hermite-Simpson leaves stiff parts, by 2 mm/s at nodes and -1 mm/s at midpoints."""
    speed = walk.phase.values["pelvis_tx_speed"]
    off = np.where(np.arange(len(speed)) % 2, -1e-3, 2e-3)
    phase = replace(walk.phase, values={**walk.phase.values, "pelvis_tx_speed": speed + off})
    alternating = replace(walk, solution=replace(walk.solution, phase=phase))
    at_points = alternating.points.observed.ground_force - walk.points.observed.ground_force
    in_arrays = walk_arrays(alternating)["ground_force"] - walk_arrays(walk)["ground_force"]
    assert np.abs(in_arrays[:, :, 0]).mean() < 0.03 * np.abs(at_points[:, :, 0]).mean()
    arrays = walk_arrays(walk)
    forces, moments = arrays["ground_force"][:, :, 0].sum(axis=1), arrays["contact_moments"]
    np.testing.assert_allclose(moments[:, walk.walker.coordinates.index("pelvis_tx")], forces, atol=1e-9)
    braking = walk.samples.integral(np.minimum(arrays["ground_force"][:, :, 0], 0.0)).sum()
    assert -braking == pytest.approx(walk_outputs(walk)["braking_impulse"], rel=0.02)


def test_the_right_side_half_a_cycle_later_is_the_left_side(walk: SolvedWalk) -> None:
    arrays = walk_arrays(walk)
    right, left = arrays["ground_force"][:-1, 0, 1], arrays["ground_force"][:-1, 1, 1]
    np.testing.assert_allclose(np.roll(right, len(right) // 2), left, atol=2.0)


@pytest.mark.parametrize(("name", "value"), [("penetration", 0.031), ("peak_foot_force", 4.1)])
def test_an_implausible_walk_has_no_result(name: str, value: float) -> None:
    plausible = {"penetration": 0.029, "peak_foot_force": 3.9, "effort": 0.1, "cost_of_transport": 3.0}
    refuse_implausible(plausible, {})
    with pytest.raises(Diverged, match=r"sinks .* body weights") as refused:
        refuse_implausible({**plausible, name: value}, {"time": np.zeros(2)})
    assert refused.value.reason == "implausible"
    assert "time" in refused.value.arrays


@pytest.mark.parametrize(
    ("durations", "bounds"),
    [(None, []), ((0.4, 0.6), []), ((0.4, 0.49846), ["duration of the half cycle, largest: 0.49846 s"])],
)
def test_a_bound_of_the_duration_is_among_those_that_a_walk_touches(
    walk: SolvedWalk, durations: tuple[float, float] | None, bounds: list[str]
) -> None:
    touched = touched_bounds(replace(walk, durations=durations))
    assert [name for name in touched if name.startswith("duration")] == bounds


def ended(objective: float, status: Status = Status.SOLVED, knee: float = 0.0) -> Any:
    """What `mesh_outputs` reads of a solution."""
    phase = SimpleNamespace(at=lambda fractions: {"knee": np.full(len(fractions), knee), "hip": 0.0 * fractions})
    return SimpleNamespace(
        objective=objective, status=status, success=status.success, message="not solved", phase=phase
    )


@pytest.mark.parametrize(("objective", "unconverged"), [(0.10009, 0.0), (0.1002, 1.0), (0.0998, 1.0)])
def test_a_walk_whose_cost_changes_on_a_finer_mesh_is_not_converged(objective: float, unconverged: float) -> None:
    assert mesh_outputs(ended(objective), ended(0.1, knee=-0.02), ["hip", "knee"]) == {
        "mesh_change": pytest.approx(abs(objective / 0.1 - 1.0)),
        "mesh_difference": pytest.approx(0.02),
        "mesh_unconverged": unconverged,
    }


@pytest.mark.parametrize("model", [WalkPredict, AmputeeWalk])
def test_the_change_with_the_mesh_is_an_output_where_a_study_asks_for_it(
    model: type[WalkPredict] | type[AmputeeWalk],
) -> None:
    assert set(model(confirm=True).declares().outputs) == {
        "mesh_change", "mesh_difference", "mesh_unconverged",
    }  # fmt: skip
    assert not model().declares().outputs


def test_a_walk_that_the_finer_mesh_does_not_confirm_has_no_result() -> None:
    with pytest.raises(Diverged, match=r"not on twice the intervals \(setting 'confirm'\)") as refused:
        mesh_outputs(ended(0.1), ended(0.1, Status.ITERATION_LIMIT), ["knee"])
    assert refused.value.reason == "confirmation_iteration_limit"


def test_another_walk_on_the_finer_mesh_is_no_result() -> None:
    """Also where both cost the same."""
    with pytest.raises(
        Diverged, match=r"another walk, whose knee differs by 5\.7 deg .* 0\.1 instead of 0\.1"
    ) as refused:
        mesh_outputs(ended(0.1), ended(0.1, knee=0.1), ["hip", "knee"])
    assert refused.value.reason == "confirmation_another_walk"


def test_a_vertical_force_that_alternates_with_the_mesh_fails_a_check(walk: SolvedWalk, outputs: WalkOutputs) -> None:
    """The pelvis goes up and down by 2 mm within two intervals; the mean force stays."""
    height = walk.phase.values["pelvis_ty"]
    alternating = height + 2e-3 * np.sin(0.5 * np.pi * np.arange(len(height)))
    phase = replace(walk.phase, values={**walk.phase.values, "pelvis_ty": alternating})
    ringing = walk_outputs(replace(walk, solution=replace(walk.solution, phase=phase)))
    assert outputs["force_peaks"] == 2.0
    assert ringing["force_peaks"] > 8.0
    assert ringing["failed_checks"] == 1.0 + sum(
        ringing[name] > limit
        for name, limit in {"mean_force_error": 1e-3, "impulse_error": 5e-3, "energy_error": 1e-2}.items()
    )


def test_the_checks_balance_a_pull_with_the_ground_and_with_the_work_of_muscles(
    walk: SolvedWalk, outputs: WalkOutputs
) -> None:
    """A walk that was solved without the pull lacks its impulse and its work."""
    pull = -30.0
    errors = walk_outputs(replace(walk, walker=with_pull(walk.walker, "pelvis_tx", pull)))
    assert errors["impulse_error"] == pytest.approx(-pull / walk.walker.weight, rel=1e-3)
    points = walk.points
    speeds = np.stack([points.values[f"{name}_speed"] for name in walk.walker.coordinates], axis=1)
    muscles = np.abs((points.observed.moments[:, 0] * speeds).sum(axis=1))
    work = -pull * walk.stride / float(points.integral(muscles))
    assert abs(errors["energy_error"] - work) == pytest.approx(outputs["energy_error"], rel=1e-6)


def test_a_wrong_walk_fails_the_checks(walk: SolvedWalk) -> None:
    """A walk whose pelvis is 5 mm higher does not carry its weight."""
    values = {**walk.phase.values, "pelvis_ty": walk.phase.values["pelvis_ty"] + 0.005}
    lifted = replace(walk, solution=replace(walk.solution, phase=replace(walk.phase, values=values)))
    assert walk_outputs(lifted)["failed_checks"] >= 1.0


def test_muscles_outside_the_range_of_their_curves_are_named(walk: SolvedWalk) -> None:
    values = dict(walk.phase.values)
    for side in "rl":
        values[f"ankle_angle_{side}_speed"] = 60.0 + 0.0 * values[f"ankle_angle_{side}_speed"]
    fast = replace(walk, solution=replace(walk.solution, phase=replace(walk.phase, values=values)))
    assert any("soleus_r" in sentence for sentence in fibre_warnings(fast))
    assert walk_outputs(fast)["fibres_outside"] >= 2.0


def test_an_asymmetric_walk_is_read_as_a_full_cycle(walking_data: Path) -> None:
    """The reference walk of an amputee with an ankle of 284.15 N m/rad and no knee spring: T 0.97577 s, d 1.17092 m."""
    walker = amputee_walker(read_model(planar_walker().content), Prosthesis(), KneeLimits())
    device = {"knee_stiffness": 0.0, "knee_damping": 0.0, "ankle_stiffness": 284.15}
    file = walking_data / "reference" / "D_amputee_free_device.csv"
    walk = recorded_walk(walker, file, half=False, parameters=device)
    outputs = walk_outputs(walk)
    assert outputs["stride_time"] == pytest.approx(0.97577, abs=1e-5)
    assert walk.stride == pytest.approx(1.17092, abs=1e-5)
    assert outputs["failed_checks"] == 0.0
    assert outputs["loading_asymmetry"] ** 2 == pytest.approx(1.8e-4, abs=5e-6)
    assert outputs["negative_device_work"] < -10.0 < 10.0 < outputs["positive_device_work"]
    arrays = walk_arrays(walk)
    assert arrays["device_moments"][:, list(arrays["coordinates"]).index("ankle_angle_r")].min() < -50.0
    assert not arrays["device_moments"][:, list(arrays["coordinates"]).index("ankle_angle_l")].any()


def test_a_recorded_cycle_becomes_a_band_over_the_cycle(tmp_path: Path) -> None:
    rows = [f"{t},{10.0 * t},{2.0},{0.1}" for t in range(5)]
    file = tmp_path / "cycle.csv"
    file.write_text("# inDegrees=yes\ntime,knee_angle_r,knee_angle_r_deviation,soleus_r\n" + "\n".join(rows) + "\n")
    cycle = recorded_cycle(InputFile("cycle.csv", file.read_bytes()))
    angles = bands(cycle, ("hip_flexion_r", "knee_angle_r"), ("hip_flexion_r", "knee_angle_r"))
    assert np.isnan(angles[:, 0]).all()
    np.testing.assert_allclose(angles[[0, 100, 200], 1, 0], np.radians([0.0, 20.0, 40.0]))
    np.testing.assert_allclose(angles[:, 1, 1], np.radians(2.0))
    activations = bands(cycle, ("soleus_r",))
    np.testing.assert_allclose(activations[:, 0, 0], 0.1)
    assert np.isnan(activations[:, 0, 1]).all()
    assert np.isnan(bands(None, ("soleus_r",))).all()


@pytest.mark.parametrize(
    ("head", "value", "message"),
    [
        ("knee_angle_r_deviation", 1.0, "there is no column 'knee_angle_r' for 'knee_angle_r_deviation'"),
        ("knee_angle_r,knee_angle_r_deviation", -1.0, "'knee_angle_r_deviation' has negative values"),
    ],
)
def test_unusable_recordings_are_refused_by_column(head: str, value: float, message: str) -> None:
    rows = "\n".join(f"{t}{f',{value}' * (head.count(',') + 1)}" for t in range(5))
    with pytest.raises(RecordingError, match=message):
        recorded_cycle(InputFile("cycle.csv", f"time,{head}\n{rows}\n".encode()))


def test_a_vertical_force_that_alternates_between_the_points_of_the_mesh_fails_a_check(walk: SolvedWalk) -> None:
    """As on a coarse mesh, whose points alone have the two peaks of a stance."""
    between = replace(walk)
    observed = walk.samples.observed
    swings = 1.0 + 0.5 * np.sin(2.0 * np.pi * np.arange(len(walk.samples.time)) / 20.0)
    forces = observed.ground_force * swings[:, None, None]
    between.__dict__["samples"] = replace(walk.samples, observed=replace(observed, ground_force=forces))
    assert physics(walk)["force_peaks"] == 2.0
    assert physics(between)["force_peaks"] > 4.0
    assert physics(between)["failed_checks"] == physics(walk)["failed_checks"] + 1.0
    peaks = physics(between)["force_peaks"]
    assert failed_check_sentences(walk) == []
    assert failed_check_sentences(between) == [
        f"the number of peaks of a foot's force (force_peaks) is {peaks:g}, more than 4: raise 'intervals' (here 50 "
        "intervals of the half cycle), the mesh is too coarse for this walk"
    ]


def test_a_foot_of_two_bodies_has_the_force_of_both_at_their_common_centre() -> None:
    model = read_model(planar_walker().content)
    contacts = sphere_contacts(model, [Sphere("toes", (0.02, 0.01, 0.0), 0.035)])
    subsets = (contacts, contacts[:-2], contacts[-2:])
    walkers = {len(spheres): walker_of(replace(model, contacts=spheres)) for spheres in subsets}
    observed = {}
    for number, walker in walkers.items():
        names = [*walker.coordinates, *(f"{name}_speed" for name in walker.coordinates), *walker.drives]
        names += [f"{kind}_{name}" for kind in ("activation", "excitation") for name in walker.muscles.names]
        values = {name: np.full(1, 0.75 if name == "pelvis_ty" else 0.0) for name in names}
        observed[number] = observables(walker, values, {})
    foot, heel, toes = (observed[number] for number in (6, 4, 2))
    assert min(heel.ground_force[..., 1].min(), toes.ground_force[..., 1].min()) > 1.0
    np.testing.assert_allclose(foot.ground_force, heel.ground_force + toes.ground_force)
    moments = [part.ground_force[..., 1] * part.pressure_centre for part in (foot, heel, toes)]
    np.testing.assert_allclose(moments[0], moments[1] + moments[2])
    np.testing.assert_allclose(foot.heel, heel.heel)
