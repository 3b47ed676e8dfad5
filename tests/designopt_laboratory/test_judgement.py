"""Judging of a trial: loads not those of the motion are refused with the reason; doubtful ones have figures."""

import re

import numpy as np
import pytest
import walking_laboratory as laboratory
from designopt_laboratory.trial.judgement import factor_notes
from designopt_laboratory.trial.poses import TrialStatus

from designopt.plugin import Diverged, InputFile, InvalidSetting

WALK = laboratory.walk(cycles=2.4)
FEET = {"1": "calcn_r", "2": "calcn_l"}
NAMES = (
    "foot_forces",
    "foot_points",
    "cycle_sides",
    "cycle_times",
    "doubts",
    "notes",
    "pose_status",
    "residuals",
    "moments",
)


def assignment(bodies: dict[str, str]) -> InputFile:
    """An ExternalLoads file: plates to bodies."""
    forces = "".join(
        f'<ExternalForce name="{plate}"><applied_to_body>{body}</applied_to_body>'
        f"<force_identifier>ground_force_{plate}_v</force_identifier>"
        f"<point_identifier>ground_force_{plate}_p</point_identifier>"
        f"<torque_identifier>ground_torque_{plate}_</torque_identifier></ExternalForce>"
        for plate, body in bodies.items()
    )
    text = f'<OpenSimDocument Version="30000"><ExternalLoads name="g"><objects>{forces}</objects></ExternalLoads>'
    return InputFile("loads.xml", f"{text}</OpenSimDocument>".encode())


def edited(content: bytes, change) -> bytes:
    """A table whose rows (time first; force, point, torque of each plate) were changed."""
    head, _, rows = content.partition(b"endheader\n")
    names, *lines = rows.decode().splitlines()
    table = np.array([line.split() for line in lines], dtype=float)
    force, point = ([i for i, name in enumerate(names.split()) if re.search(rf"_{k}[xyz]$", name)] for k in "vp")
    change(table, force, point)
    text = "\n".join([names, *("\t".join(f"{v:.9g}" for v in row) for row in table)])
    return head + b"endheader\n" + text.encode() + b"\n"


def trial(walk=WALK, change=None, bodies=None):
    table = walk.mot(8) if change is None else edited(walk.mot(8), change)
    files = {"recording": InputFile("walk.trc", walk.trc()), "reactions": InputFile("walk.mot", table)}
    return files if bodies is None else {**files, "external_loads": assignment(bodies)}


def sentences(arrays) -> str:
    return "\n".join(arrays["notes"])


@pytest.fixture(scope="module")
def by_position(analysed):
    return analysed(trial(), *NAMES, until="moments", cycles="plates")


def test_assigned_loads_give_the_strikes_and_the_loads_of_the_feet_as_plates_do(analysed, by_position):
    figures, arrays = analysed(trial(bodies=FEET), *NAMES, until="moments", cycles="plates")
    reference = by_position[1]
    assert figures["cycles"] == 3  # two right, one left
    assert list(arrays["cycle_sides"]) == list(reference["cycle_sides"])
    assert arrays["cycle_times"] == pytest.approx(reference["cycle_times"], abs=1e-6)
    loaded = np.linalg.norm(reference["foot_forces"], axis=2) > 40.0
    assert arrays["foot_forces"][loaded] == pytest.approx(reference["foot_forces"][loaded], abs=1e-6)
    assert arrays["foot_points"][loaded] == pytest.approx(reference["foot_points"][loaded], abs=1e-5)
    smooth, _ = analysed(trial(bodies=FEET), until="moments", design={"load_cutoff": 5.0})
    assert smooth["residual_force"] > 1.05 * figures["residual_force"]  # the filter acts on assigned loads too


def test_loads_on_a_body_that_is_no_foot_are_named(analysed):
    _, arrays = analysed(trial(bodies={**FEET, "2": "tibia_l"}), *NAMES, until="moments")
    assert re.search(r"loads.xml: up to \d+ N act on tibia_l, which is no foot", sentences(arrays))
    assert "left cycles" not in sentences(arrays)


def test_a_contact_that_begins_in_the_last_instants_belongs_to_its_foot(analysed):
    walk = laboratory.walk(cycles=1.55)  # the left foot strikes 0.02 s before the end
    _, arrays = analysed(trial(walk), *NAMES, until="moments")
    assert arrays["foot_forces"][-1, 1, 1] > 20.0
    assert ["left", True] in [
        [s, t[1] > 1.65] for s, t in zip(arrays["cycle_sides"], arrays["cycle_times"], strict=True)
    ]
    noted = re.findall(
        r"plate (\d): beside its contacts .* up to ([\d.]+) N at ([\d.]+) s are left out", sentences(arrays)
    )
    assert noted
    assert all(float(force) < 30.0 for _, force, _ in noted)


def in_mm(table, force, point):
    table[:, point] *= 1e3


def turned(axis):
    def change(table, force, point):
        table[:, force[axis::3]] *= -1.0

    return change


def with_z_up(table, force, point):
    for columns in (force, point):
        y, z = columns[1::3], columns[2::3]
        table[:, y], table[:, z] = table[:, z].copy(), table[:, y].copy()


def torque_in_n_mm(table, force, point):
    table[:, -2] = 3.0 * table[:, force[4]]  # 3 mm times the vertical force


def later(by):
    def change(table, force, point):
        table[:, 0] += by

    return change


def beside(table, force, point):
    table[:, point[0::3]] += 0.6


@pytest.mark.parametrize(
    ("change", "bodies", "error", "text"),
    [
        (in_mm, None, InvalidSetting, r"walk.mot: plate 1: the force acts .* are its points in mm\? They must be in m"),
        (in_mm, FEET, InvalidSetting, r"walk.mot: calcn_r: the force acts .* are its points in mm\?"),
        (with_z_up, FEET, InvalidSetting, "walk.mot: the forces of the ground are largest along Z"),
        (turned(1), FEET, InvalidSetting, "walk.mot: the ground pulls with up to .* turn the sign"),
        (torque_in_n_mm, FEET, InvalidSetting, "walk.mot: .*: is it in N mm"),
        (turned(0), FEET, Diverged, "walk.mot: along X the motion needs the opposite of the recorded forces"),
        (turned(0), None, Diverged, "walk.mot: along X the motion needs the opposite of the recorded forces"),
        (later(60.0), FEET, InvalidSetting, "walk.mot: calcn_r: the forces are from 60 to .* no time in common"),
        (later(0.5), FEET, Diverged, "walk.mot: the loads on the right foot act .* m beside it .* belong to the trial"),
        (beside, FEET, Diverged, "walk.mot: the loads on the right foot act .* m beside it"),
        (beside, None, Diverged, "no frame has moments.* plate 1: no foot is over the contact from .* is left out"),
        (None, {"1": "calcn_l", "2": "calcn_r"}, InvalidSetting, "loads.xml: the loads .* are the feet exchanged"),
    ],
)  # fmt: skip
def test_loads_that_cannot_be_those_of_the_motion_are_refused_with_the_reason(analysed, change, bodies, error, text):
    with pytest.raises(error, match=text):
        analysed(trial(change=change, bodies=bodies), until="moments")
    figures, _ = analysed(trial(change=change, bodies=bodies), until="angles", cycles="feet")  # angles need no loads
    assert figures["usable"] == 1.0


def with_offset(table, force, point):
    table[:, force[1::3]] += 30.0


@pytest.mark.parametrize(
    ("change", "bodies", "design", "text"),
    [
        (with_offset, FEET, {}, "walk.mot: calcn_r: the force never falls below 30 N: take the offset"),
        (None, {"1": "calcn_r"}, {}, "loads.xml: no load acts on calcn_l, the left foot"),
        (None, FEET, {"mass_factor": 1.2}, r"walk.mot: .* needs 1\.[12]\d* times these forces: check"),
    ],
)
def test_loads_that_are_doubtful_are_noted(analysed, change, bodies, design, text):
    _, arrays = analysed(trial(change=change, bodies=bodies), *NAMES, until="moments", design=design)
    assert re.search(text, sentences(arrays))
    _, arrays = analysed(trial(bodies=FEET), *NAMES, until="moments")
    assert not re.search(text, sentences(arrays))


@pytest.mark.parametrize("bodies", [None, FEET])
def test_points_that_are_missing_below_the_threshold_of_a_contact_cost_no_frame(analysed, bodies):
    def without_points(table, force, point):
        for k in range(2):
            light = np.linalg.norm(table[:, force[3 * k : 3 * k + 3]], axis=1) < 20.0
            table[np.ix_(light, point[3 * k : 3 * k + 3])] = np.nan
            assert light.sum() > 20

    figures, arrays = analysed(trial(WALK, without_points, bodies), *NAMES, until="moments")
    reference_figures, reference = analysed(trial(WALK, None, bodies), *NAMES, until="moments")
    assert figures["usable"] == reference_figures["usable"] > 0.97
    assert arrays["moments"] == pytest.approx(reference["moments"], abs=20.0, nan_ok=True)  # forces below 20 N


@pytest.mark.parametrize("bodies", [None, FEET])
def test_a_load_that_comes_back_after_a_gap_is_no_foot_strike(analysed, by_position, bodies):
    def with_gap(table, force, point):
        table[15:18, 1:] = np.nan  # within a stance of the right foot

    _, arrays = analysed(trial(change=with_gap, bodies=bodies), *NAMES, until="moments", cycles="plates")
    assert arrays["cycle_times"] == pytest.approx(by_position[1]["cycle_times"], abs=1e-6)


def test_a_single_row_of_forces_is_refused(analysed):
    files = trial(bodies=FEET)
    rows = files["reactions"].content.splitlines(keepends=True)
    head = next(i for i, row in enumerate(rows) if row.startswith(b"time"))
    files["reactions"] = InputFile("walk.mot", b"".join([*rows[: head + 1], rows[head + 30]]))
    with pytest.raises(InvalidSetting, match=r"walk.mot: a single row of forces"):
        analysed(files, until="moments")


def test_loads_that_end_before_the_trial_are_announced_and_cost_its_other_frames(analysed):
    model_trial = trial(bodies=FEET)
    rows = model_trial["reactions"].content.splitlines(keepends=True)
    model_trial["reactions"] = InputFile("walk.mot", b"".join(rows[:-60]))
    _, arrays = analysed(model_trial, *NAMES, until="moments")
    assert re.search(
        r"walk.mot: the forces of the ground are from 0 to [\d.]+ s; other frames of walk", sentences(arrays)
    )
    assert (arrays["pose_status"][-60:] == TrialStatus.MISSING_LOAD).all()


def test_a_body_on_the_ground_without_its_forces_has_no_loads_unless_the_study_states_so(analysed):
    files = {"recording": InputFile("walk.trc", WALK.trc())}
    with pytest.raises(Diverged, match=r"the trial has no force plate and no reactions.* residual_limit: null"):
        analysed(files, until="moments")
    figures, arrays = analysed(files, *NAMES, until="moments", residual_limit=None)
    assert figures["usable"] == 1.0
    assert "residual_force_share" not in figures
    assert "no force plate and no reactions" in sentences(arrays)


def test_frames_that_unfiltered_accelerations_cost_have_that_reason(analysed):
    noisy = laboratory.walk(cycles=1.3, noise=2e-4)  # m
    _, rough = analysed(trial(noisy), *NAMES, until="moments", design={"cutoff": 0.0})
    _, smooth = analysed(trial(noisy), *NAMES, until="moments")
    assert (rough["pose_status"] == TrialStatus.ROUGH).sum() > 10
    assert not (rough["pose_status"] == TrialStatus.BESIDE_PLATES).any()
    assert "unfiltered accelerations (cutoff: 0)" in sentences(rough)
    assert not (smooth["pose_status"][2:-2] >= 100).any()
    assert smooth["pose_status"][-1] == TrialStatus.ROUGH
    assert "poor: they are those at an end of the record" in sentences(smooth)


def test_figures_of_loads_count_the_frames_within_the_cycles(analysed):
    names = (*NAMES, "reactions", "moments", "moment_names", "activations", "reserves", "net_moments")
    figures, arrays = analysed(trial(), *names, cycles="plates", window=(0.4, 2.3))
    time = arrays["time"]
    inside = np.logical_or.reduce([(time >= start) & (time <= end) for start, end in arrays["cycle_times"]])
    assert 0 < inside.sum() < len(time)
    weight = 67.4 * 9.81
    sizes = np.linalg.norm(arrays["reactions"], axis=2)
    assert figures["peak_joint_force"] == pytest.approx(np.nanmax(sizes[inside]) / weight)
    assert figures["peak_activation"] == pytest.approx(np.nanmax(arrays["activations"][inside]))
    usable = inside & (arrays["pose_status"] < 100)
    ground = np.linalg.norm(arrays["foot_forces"].sum(axis=1), axis=1)
    share = arrays["residuals"][usable, 0].max() / ground[usable].max()
    assert figures["residual_force_share"] == pytest.approx(share)
    # the centre of mass of the walker is about 1 m above its heels
    moment = arrays["residuals"][usable, 1].max() / ground[usable].max()
    assert figures["residual_moment_share"] == pytest.approx(moment, rel=0.2)


def test_muscles_that_are_fully_active_and_reserves_that_carry_much_are_named(analysed):
    names = (*NAMES, "curves", "curve_kinds")
    figures, arrays = analysed(trial(laboratory.walk(cycles=1.3)), *names, until="forces", design={"strength": 0.3})
    active = arrays["curves"][:, :, arrays["curve_kinds"] == "activation"]
    assert 0.0 <= np.nanmin(active) < np.nanmax(active) <= 1.0 + 1e-9  # no curve passes full activation
    assert re.search(r"muscles are fully active in this share of the frames: \w+ \d+%", sentences(arrays))
    assert figures["reserve_share"] > 0.1
    assert re.search(r"reserves carry up to this share of the largest net moment: \w+_[rl] \d+%", sentences(arrays))
    strong, arrays = analysed(trial(laboratory.walk(cycles=1.3)), *NAMES, until="forces", design={"strength": 3.0})
    assert strong["reserve_share"] < 0.5 * figures["reserve_share"]  # few muscles turn the walker's hips
    assert "fully active" not in sentences(arrays)


def test_the_public_walk_has_its_cycles_by_assigned_loads_and_refuses_exchanged_feet(analysed, shared):
    """Gait2392: strikes are where the vertical force of a foot passes 20 N, the last one 0.04 s before the end."""
    folder = "opensim/pipeline_gait2392"
    files = {
        "motion": shared(f"{folder}/reference/subject01_walk1_ik.mot"),
        "subject_model": shared(f"{folder}/reference/subject01_simbody.osim"),
        "reactions": shared("opensim/motion/subject01_walk_grf.mot"),
        "external_loads": shared(f"{folder}/subject01_walk1_grf.xml"),
    }
    settings = {"model": shared(f"{folder}/gait2392_generic.osim"), "until": "moments", "cycles": "plates"}
    figures, arrays = analysed(files, *NAMES, **settings)
    assert list(arrays["cycle_sides"]) == ["right", "left"]
    assert arrays["cycle_times"] == pytest.approx(np.array([[0.618, 1.852], [1.245, 2.459]]), abs=2e-3)
    assert 0.05 < figures["residual_force_share"] < 0.15  # as raw data have it, beyond the guideline for simulations
    assert figures["doubts"] == len(arrays["doubts"]) >= 2
    assert "guideline of Hicks et al. 2015: 5%" in sentences(arrays)
    loads = files["external_loads"].content
    exchanged = loads.replace(b"calcn_r", b"other").replace(b"calcn_l", b"calcn_r").replace(b"other", b"calcn_l")
    with pytest.raises(InvalidSetting, match=r"exchanged.xml: .*: are the feet exchanged"):
        analysed(files | {"external_loads": InputFile("exchanged.xml", exchanged)}, **settings)


def test_a_load_far_beside_its_foot_costs_its_frames_alone(analysed):
    def wandering(table, force, point):
        table[60:66, point[0]] += 0.5

    _, arrays = analysed(trial(change=wandering, bodies=FEET), *NAMES, until="moments")
    assert np.flatnonzero(arrays["pose_status"] == TrialStatus.OFF_FOOT).tolist() == list(range(60, 66))
    assert "act more than 0.2 m beside their foot" in sentences(arrays)


@pytest.mark.parametrize(("lowered", "which"), [(0.1, r"0\.14 m above"), (-0.1, r"0\.06\d* m below"), (0.0, None)])
def test_feet_that_float_above_their_points_of_application_or_sink_below_are_a_doubt(analysed, lowered, which):
    def moved(table, force, point):
        table[:, [point[1], point[4]]] -= lowered * (table[:, [force[1], force[4]]] > 0.0)

    _, arrays = analysed(trial(change=moved, bodies=FEET), *NAMES, until="moments")
    doubts = "\n".join(arrays["doubts"])
    assert bool(re.search(rf"foot is {which} its points of application", doubts)) == (which is not None)


def test_vertical_forces_that_the_motion_needs_with_the_opposite_sign_are_those_of_no_mass():
    (note,) = factor_notes(-0.4, "walk.mot", 70.0)
    assert note.startswith("walk.mot: the motion needs -0.4 times the recorded vertical forces: check their sign")
    assert "are those of 100 kg, the subject has 70 kg" in factor_notes(0.7, "walk.mot", 70.0)[0]
