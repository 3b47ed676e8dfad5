"""Forces of the ground that do not fit a motion are named with the cause, where net moments are computed."""

import re
from dataclasses import replace

import numpy as np
import pytest
from designopt_muscle.geometry.kinematics import Kinematics
from designopt_muscle.geometry.loads import BodyLoad
from designopt_muscle.models.standing_feet import sliding
from designopt_muscle.models.static_sharing import StaticSharing
from designopt_recordings.files.read import read_table
from designopt_recordings.files.write import storage_text

from designopt.plugin import InputFile

#: Of the OpenSim project: model, motion, external loads and their table.
WALKS = {
    "10dof": (
        "gait10dof18musc_subject01.osim",
        "gait10dof18musc_walk_IK.mot",
        "gait10dof18musc_walk_grf.xml",
        "subject01_walk_grf.mot",
    ),
    "2392": ("gait2392_subject01.osim", "gait2392_walk1_IK.mot", "gait2392_walk1_grf.xml", "subject01_walk_grf.mot"),
    "80 muscles": (
        "walk_scaled_80musc.osim",
        "walk_scaled_80musc_kinematics.sto",
        "walk_scaled_external_loads.xml",
        "walk_scaled_grf.mot",
    ),
    "two plates": (
        "walk_armless_18musc.osim",
        "walk_armless_coordinates.mot",
        "walk_armless_external_loads.xml",
        "walk_armless_grfs.mot",
    ),
}
HIPS_AND_KNEES = (("hip_flexion_r", "knee_angle_r"), ("hip_flexion_l", "knee_angle_l"))
#: Rows of a walk without one in the middle.
DROPPED = np.delete(np.arange(151), 40)
SIDES = tuple((f"{name}_r", f"{name}_l") for name in ("hip_flexion", "knee_angle", "ankle_angle"))


@pytest.fixture
def notes(opensim):
    """The remarks on a changed trial: exchanged columns of the motion, noise (rad, m) in it, some of its rows, forces s
    later, masses times a factor."""

    def notes_of(walk="10dof", exchanged=(), noise=0.0, later=0.0, mass=1.0, cutoff=6.0, window=None, rows=None):
        model, motion, loads, forces = (
            InputFile(name, (opensim / folder / name).read_bytes())
            for folder, name in zip(("models", "motion", "motion", "motion"), WALKS[walk], strict=True)
        )
        heavier = re.sub(rb"<mass>([^<]*)</mass>", lambda m: b"<mass>%r</mass>" % (mass * float(m[1])), model.content)
        table, reactions = read_table(motion), read_table(forces)
        values = np.array(table.values, dtype=float)
        for pair in exchanged:
            columns = [table.names.index(name) for name in pair]
            values[:, columns] = values[:, columns[::-1]]
        rotations = [i for i, name in enumerate(table.names) if not name.startswith(("pelvis_t", "mtp"))]
        size = np.degrees(noise) if table.in_degrees else noise
        values[:, rotations] += size * np.random.default_rng(0).standard_normal((len(values), len(rotations)))
        rows = np.arange(len(values)) if rows is None else rows
        changed_table = replace(table, time=table.time[rows], values=values[rows])
        scenario = {
            "motion": InputFile("walk.sto", storage_text(changed_table).encode()),
            "external_loads": loads,
            "external_forces": InputFile(
                "forces.sto", storage_text(replace(reactions, time=reactions.time + later)).encode()
            ),
        }
        sharing = StaticSharing(
            model=InputFile("model.osim", heavier), inverse_dynamics="compute", cutoff=cutoff, window=window
        )
        return [note for note in sharing.remarks(scenario) if note.startswith(("walk.sto", "forces.sto"))]

    return notes_of


@pytest.mark.parametrize("walk", ["10dof", "2392", "80 muscles"])
def test_public_walks_have_no_note_and_forces_of_another_time_are_named_with_the_lag(notes, walk):
    usual = [note for note in notes(walk) if "left at the default" not in note]
    assert usual == []
    for later in (0.3, -0.05):
        (note,) = (note for note in notes(walk, later=later) if "the forces of the ground" in note)
        match = re.search(
            r"(lag behind|are ahead of) .* about (\d\.\d+) s: (subtract it from|add it to) the times", note
        )
        assert match is not None
        assert (match[1], match[3]) == (
            ("lag behind", "subtract it from") if later > 0.0 else ("are ahead of", "add it to")
        )
        assert float(match[2]) == pytest.approx(abs(later), abs=0.012)


@pytest.mark.parametrize(
    ("exchanged", "words"),
    [
        (HIPS_AND_KNEES, "hip_flexion_r and knee_angle_r exchanged, hip_flexion_l and knee_angle_l exchanged"),
        (HIPS_AND_KNEES[:1], "hip_flexion_r and knee_angle_r exchanged"),
        ((("knee_angle_l", "ankle_angle_l"),), "knee_angle_l and ankle_angle_l exchanged"),
        (SIDES, "left and right exchanged"),
    ],
    ids=["hips and knees", "one hip and knee", "knee and ankle", "sides"],
)
def test_exchanged_columns_make_loaded_feet_slide_and_are_named(notes, exchanged, words):
    (note,) = (note for note in notes(exchanged=exchanged) if "slide" in note)
    assert re.search(rf"^walk.sto: .*slide by \d.*and by 0\.0\d+ m/s with {words}: correct the columns$", note)


def test_a_motion_without_a_simple_mistake_whose_feet_slide_is_a_question(notes):
    mixed = (*HIPS_AND_KNEES, ("ankle_angle_r", "pelvis_tilt"))
    (note,) = (note for note in notes(exchanged=mixed) if "slide" in note)
    assert "are columns exchanged or of the opposite sign" in note


@pytest.mark.parametrize(("acceleration", "slip"), [(0.0, 0.0), (1.0, 0.5)])
def test_feet_on_two_belts_of_constant_speed_stand(acceleration, slip):
    """Each foot stands for 2 s on its belt; with 1 m/s² over 2 s the velocity is spread over 2 m/s."""
    time = np.arange(0.0, 4.0, 0.01)
    loads, origins = [], {}
    for body, speed, stands in (("calcn_r", 0.5, time < 2.0), ("calcn_l", 1.5, time >= 2.0)):
        since = time - time[stands][0]
        origins[body] = np.outer(-speed * time + 0.5 * acceleration * since**2, [1.0, 0.0, 0.0])
        force = np.outer(np.where(stands, 700.0, 0.0), [0.0, 1.0, 0.0])
        loads.append(BodyLoad(body, force, origins[body], np.zeros_like(force)))
    rotations = {body: np.broadcast_to(np.eye(3), (len(time), 3, 3)) for body in origins}
    motion = Kinematics(None, {}, rotations, origins, {}, {})
    assert sliding(motion, time, loads, 700.0) == pytest.approx(slip * 2.0 / np.sqrt(3.0), rel=0.02, abs=1e-9)


def test_a_motion_with_missing_rows_that_can_be_differentiated_is_compared_without_an_error(notes):
    rows = np.r_[0:50, 58:151]  # a step of 0.15 s, over which no filter of 6 Hz is possible
    assert not [note for note in notes(cutoff=None, rows=rows) if note.startswith("forces.sto")]


def test_a_motion_of_few_rows_per_second_is_not_told_to_set_a_filter_that_it_cannot_have(notes):
    (note,) = (note for note in notes(cutoff=None, rows=np.arange(0, 151, 15)) if "noise" in note)
    assert note.endswith("4 rows per second may be too few for the motion; if they are not, set a lower cutoff")


def test_masses_that_do_not_fit_the_forces_are_named(notes):
    (note,) = notes(mass=1.3)
    assert re.search(r"^forces.sto: the motion needs 1\.3 times the recorded vertical forces: .*94\.4 kg", note)


def test_frames_of_a_foot_beside_the_plates_are_counted(notes):
    """Two plates carry a step each of 2.4 s of walking."""
    (note,) = (note for note in notes("two plates") if "frames" in note)
    assert re.search(r"in \d+ of \d+ frames from \S+ to \S+ s the forces leave more than 25% of the weight", note)
    assert not [note for note in notes("two plates", window=(0.6, 1.6)) if "frames" in note]


def test_a_dropped_row_of_a_motion_is_named_with_and_without_a_filter(notes):
    unfiltered = "a sample seems to be missing, the first after"
    assert not [note for note in notes(cutoff=None) if unfiltered in note]
    assert len([note for note in notes(rows=DROPPED, cutoff=None) if unfiltered in note]) == 1
    (note,) = (note for note in notes(rows=DROPPED) if "resampled" in note)
    assert unfiltered not in note


def test_noise_of_an_unfiltered_motion_is_named_with_its_size_and_the_filter(notes):
    noisy = notes(noise=np.radians(0.5), cutoff=None)
    (note,) = (note for note in noisy if "noise" in note)
    size = re.search(
        r"has noise of about (\S+) deg, which differentiated twice is (\S+) rad/s² .* beside (\S+) rad/s²", note
    )
    assert size is not None
    assert float(size[1]) == pytest.approx(0.5, rel=0.3)
    assert float(size[2]) > 3.0 * float(size[3])
    assert note.endswith("Set a cutoff, such as 6 Hz for walking")
    assert not [note for note in notes(noise=np.radians(0.5)) if "noise" in note]  # filtered


def test_a_large_reserve_that_carries_the_motion_is_beyond_the_usual_share():
    small, _ = StaticSharing(reserve=1.0).evaluate({}, {}, set())
    large, _ = StaticSharing(reserve=1000.0).evaluate({}, {}, set())
    assert small["reserve_share"] < 0.1 < 0.9 < large["reserve_share"]
