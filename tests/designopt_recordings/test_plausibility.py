"""What a person sees at a glance in recorded curves is said, with its probable cause; plausible ones have no note."""

import re
from dataclasses import replace

import numpy as np
import pytest
from designopt_recordings.plausibility import (
    UsualRange,
    force_notes,
    jump_notes,
    noise_notes,
    range_notes,
    side_notes,
    side_unit_notes,
    time_notes,
)
from designopt_recordings.recording import Recording

TIME = np.linspace(0.0, 1.0, 101)
KNEE = -np.radians(35.0) * (1.0 - np.cos(2.0 * np.pi * TIME))  # to -70 deg
RANGES = {"knee": UsualRange(-2.1, 0.2, True), "height": UsualRange(0.0, 2.0)}


@pytest.mark.parametrize(
    ("time", "doubt"),
    [
        (TIME, ""),
        (np.arange(8.0), ""),  # eight postures
        (1e3 * TIME, "milliseconds"),
        (100.0 * TIME, "percent of a cycle"),
        (1e-3 * TIME, "its head or the file says milliseconds"),
        (1e-2 * TIME, ""),  # 10 kHz
    ],
)
def test_rows_that_are_seconds_or_microseconds_apart_are_doubted(time, doubt):
    notes = time_notes(time)
    assert len(notes) == bool(doubt)
    assert all(doubt in note and "in seconds" in note for note in notes)


@pytest.mark.parametrize(
    ("name", "curve", "doubt"),
    [
        ("knee", KNEE, ""),
        ("knee", KNEE + 0.1, ""),  # a little beyond the end of the range
        ("knee", -KNEE, "with the opposite sign: reverse it"),
        ("knee", KNEE - np.pi, "check its sign, its unit and the posture at zero"),
        ("knee", np.where(TIME < 0.5, np.nan, -KNEE), "with the opposite sign"),
        ("knee", np.full(101, np.nan), ""),
        ("height", 0.95 + 0.02 * TIME, ""),
        ("height", 950.0 + 20.0 * TIME, "as mm: divide it by 1000"),
        ("height", 95.0 + 2.0 * TIME, "as cm: divide it by 100"),
        ("no_range", 1e6 * TIME, ""),
    ],
)
def test_a_curve_outside_of_its_range_is_drawn_in_numbers_with_its_probable_cause(name, curve, doubt):
    notes = range_notes({name: curve}, RANGES)
    assert len(notes) == bool(doubt)
    assert all(
        doubt in note and f"{name} is outside the range" in note and "at 0, 25, 50, 75 %" in note for note in notes
    )


@pytest.mark.parametrize(
    ("curve", "row"),
    [
        (KNEE, None),
        (KNEE + 0.01 * np.random.default_rng(0).normal(size=101), None),
        (np.clip(2.0 * TIME, 0.5, 1.5), None),  # held, moved, held
        (np.full(101, 0.3), None),
        (np.where(np.arange(101) == 30, 1.0, KNEE), 30),
        (np.where((TIME > 0.295) & (TIME < 0.395), 0.0, KNEE), 39),
        (np.concatenate([KNEE[:20], KNEE[30:], KNEE[1:11]]), 19),
    ],
)
def test_outliers_filled_gaps_and_lost_frames_are_doubted(curve, row):
    notes = jump_notes({"knee": curve}, TIME)
    assert len(notes) == (row is not None)
    assert all(
        float(re.search(r"knee at ([0-9.]+) s;", note)[1]) == pytest.approx(TIME[row], abs=0.011) for note in notes
    )


def test_a_rotation_in_radians_beside_the_other_side_in_degrees_is_doubted():
    small = np.radians(KNEE)  # radians read as degrees
    (note,) = side_unit_notes({"knee_r": small, "knee_l": KNEE, "hip_r": 0.5 * KNEE, "hip_l": KNEE})
    assert note.startswith("knee_r moves by 1.2 deg, far less than knee_l: is it in radians")
    assert side_unit_notes({"knee_r": 0.0 * KNEE, "knee_l": KNEE}) == []  # locked
    assert side_unit_notes({"knee_r": small, "hip_l": KNEE}) == []
    assert side_unit_notes({"knee_r": np.full(9, np.nan), "knee_l": KNEE}) == []  # not recorded


@pytest.mark.parametrize(
    ("vertical", "doubt"),
    [
        (800.0 * np.sin(np.pi * TIME), ""),
        (-800.0 * np.sin(np.pi * TIME), "the ground pulls with up to 800 N: reverse the sign"),
        (0.8 * np.sin(np.pi * TIME), "check the unit of the forces"),  # kN, or body weights
        (8e5 * np.sin(np.pi * TIME), "check the unit of the forces"),
        (np.full(101, np.nan), ""),
    ],
)
def test_forces_of_the_ground_are_compared_with_the_weight(vertical, doubt):
    notes = force_notes(vertical, 700.0)
    assert len(notes) == bool(doubt)
    assert all(doubt in note for note in notes)
    assert force_notes(vertical, 0.0) == []


def walked(way: float = 2.0, side: float = 1.0) -> Recording:
    """Two pairs of markers that move along X; the left is along -Z, Y is up."""
    places = np.array([[0.0, 1.0, -0.15], [0.0, 1.0, 0.15], [0.0, 0.1, -0.1], [0.0, 0.1, 0.1], [0.0, 1.7, 0.0]])
    markers = places + np.array([1.0, 0.0, 0.0]) * (way * TIME)[:, None, None]
    markers[:, :, 2] *= side
    markers[:3], markers[40:50, 0] = np.nan, np.nan
    return Recording(100.0, TIME, ("LASI", "RASI", "ankle_L", "ankle_R", "HEAD"), markers)


def test_a_mirrored_recording_is_doubted_where_the_subject_walks():
    (note,) = side_notes(walked(side=-1.0))
    assert "the left markers (LASI) are to the right of the right ones (RASI)" in note
    assert "mirrored" in note
    assert side_notes(walked(way=-2.0)) == [note]  # backward
    for plausible in (walked(), walked(way=0.3, side=-1.0), replace(walked(side=-1.0), marker_names=tuple("abcde"))):
        assert side_notes(plausible) == []


@pytest.mark.parametrize(
    ("curve", "noisy"),
    [
        (KNEE, False),
        (KNEE + np.radians(0.5) * np.random.default_rng(1).standard_normal(101), True),
        (0.3 * np.sin(2.0 * np.pi * 10.0 * TIME), False),  # ten samples per period
        (np.round(KNEE, 5), False),
        (1e-6 * np.random.default_rng(1).standard_normal(101), False),  # a coordinate at rest in a file
        (np.where(TIME == 0.5, np.nan, KNEE), False),
    ],
    ids=["smooth", "noise", "fast", "rounded", "at rest", "gap"],
)
def test_a_curve_whose_accelerations_are_noise_is_named_with_its_size(curve, noisy):
    notes = noise_notes({"knee": curve, "height": 0.0 * TIME}, TIME, {"knee"}, "Filter it.")
    assert len(notes) == noisy
    if noisy:
        size = re.match(r"knee has noise of about (\S+) deg, which differentiated twice is (\S+) rad/s² ", notes[0])
        assert size is not None
        assert float(size[1]) == pytest.approx(0.5, rel=0.2)
        assert notes[0].endswith("Filter it.")
