"""Which segment bears on which plate: by the centre of pressure, a status where it is not clear."""

from collections.abc import Callable

import numpy as np
import pytest
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.read import read_recording, read_table
from designopt_recordings.frames import FrameStatus
from designopt_recordings.loads.frames import load_at
from designopt_recordings.loads.segments import Bearing, bearing_segment
from designopt_recordings.loads.tables import plates_from_table
from designopt_recordings.plate import ForcePlate
from designopt_recordings.recording import Recording

from designopt.plugin import InputFile

TIME = np.arange(100) / 100.0
FOOT = np.array([[0.0, 0.04, 0.0], [0.2, 0.03, 0.04], [0.18, 0.03, -0.06]])  # heel, first and fifth metatarsal
NAMES = tuple(f"{side}{part}" for side in "RL" for part in ("HEE", "MT1", "MT5"))
SEGMENTS = {"right": NAMES[:3], "left": NAMES[3:]}


def standing(right: np.ndarray, left: np.ndarray, point: np.ndarray) -> tuple[Recording, ForcePlate]:
    """Feet at `right` and `left` (3,) or (100, 3), a plate loaded in frames 20-79 at `point`."""
    feet = [np.broadcast_to(np.asarray(position), (100, 3))[:, None] + FOOT for position in (right, left)]
    force = np.zeros((100, 3))
    force[20:80, 1] = 700.0
    plate = ForcePlate("p", 100.0, force, np.cross(np.broadcast_to(point, (100, 3)), force))
    return Recording(100.0, TIME, NAMES, np.concatenate(feet, axis=1)), plate


def bearing(recording: Recording, plate: ForcePlate, **options: float) -> Bearing:
    return bearing_segment(recording, plate, load_at(plate, recording.time), SEGMENTS, **options)


RIGHT, LEFT = np.array([0.0, 0.0, 0.1]), np.array([0.0, 0.0, -0.2])


def test_the_foot_under_whose_outline_the_pressure_lies_bears_on_the_plate() -> None:
    bearings = bearing(*standing(RIGHT, LEFT, np.array([0.15, 0.0, 0.1])))
    assert (bearings.segment_indices[20:80] == 0).all()
    assert (bearings.segment_indices[:20] == -1).all()
    assert (bearings.distance[20:80] == 0.0).all()
    assert np.isnan(bearings.distance[:20]).all()
    assert (bearings.status == FrameStatus.OK).all()
    assert bearings.frames_of("right").sum() == 60
    assert bearings.frames_of("left").sum() == 0
    with pytest.raises(RecordingError, match="no segment 'hand'; known: right, left"):
        bearings.frames_of("hand")


def test_outside_the_outline_the_distance_to_its_nearest_edge_decides() -> None:
    bearings = bearing(*standing(RIGHT, LEFT, np.array([0.0, 0.0, -0.26])))
    assert (bearings.segment_indices[20:80] == 1).all()
    np.testing.assert_allclose(bearings.distance[20:80], 0.06 * np.cos(np.arctan(0.06 / 0.18)), rtol=1e-12)


def test_a_foot_in_the_air_does_not_bear_though_it_is_nearer() -> None:
    bearings = bearing(*standing(RIGHT + np.array([0.0, 0.4, 0.0]), LEFT, np.array([0.1, 0.0, -0.14])), reach=0.2)
    assert (bearings.segment_indices[20:80] == 1).all()


def test_two_feet_on_one_plate_are_a_status() -> None:
    bearings = bearing(*standing(RIGHT + np.array([0.0, 0.0, 0.15]), LEFT, np.array([0.1, 0.0, 0.0])))
    assert (bearings.status[20:80] == FrameStatus.AMBIGUOUS_PLATE).all()
    assert (bearings.status[:20] == FrameStatus.OK).all()
    assert (bearings.segment_indices == -1).all()  # the pressure is between them: no guess


def test_a_change_of_foot_within_a_contact_is_a_status() -> None:
    point = np.tile([0.1, 0.0, 0.1], (100, 1))
    point[60:] = [0.1, 0.0, -0.2]
    bearings = bearing(*standing(RIGHT, LEFT, point))
    assert (bearings.status[20:80] == FrameStatus.AMBIGUOUS_PLATE).all()


def test_missing_markers_leave_it_to_the_other_frames() -> None:
    recording, plate = standing(RIGHT, LEFT, np.array([0.15, 0.0, 0.1]))
    markers = recording.markers.copy()
    markers[30:40, 0] = np.nan
    gapped = Recording(100.0, TIME, NAMES, markers)
    bearings = bearing(gapped, plate)
    assert (bearings.segment_indices[20:80] == 0).all()
    markers[20:80] = np.nan
    assert (bearing(Recording(100.0, TIME, NAMES, markers), plate).status[20:80] == FrameStatus.AMBIGUOUS_PLATE).all()


def test_segments_and_their_markers_must_be_there() -> None:
    recording, plate = standing(RIGHT, LEFT, RIGHT)
    load = load_at(plate, TIME)
    with pytest.raises(RecordingError, match="no segments"):
        bearing_segment(recording, plate, load, {})
    with pytest.raises(RecordingError, match="no marker 'RTOE'"):
        bearing_segment(recording, plate, load, {"right": ["RTOE"]})


def test_the_steps_of_the_full_body_walk_alternate(shared: Callable[[str], InputFile]) -> None:
    walk = read_recording(shared("mocap/plugin_gait_fullbody/Movement_trial.c3d"))
    segments = {"right": ["RHEE", "RTOE", "RANK"], "left": ["LHEE", "LTOE", "LANK"]}
    feet = {}
    for plate in walk.plates:
        load = load_at(plate, walk.time, cutoff=20.0)
        bearings = bearing_segment(walk, plate, load, segments)
        assert (bearings.status == FrameStatus.OK).all()
        feet[plate.name] = {bearings.segments[i] for i in bearings.segment_indices[load.is_loaded]}
        assert np.nanmean(bearings.distance) < 0.03
    # README: right leg the contact around frames 50-130 (plate 4), left leg the one around 230-310 (plate 1)
    assert feet == {"plate 4": {"right"}, "plate 3": {"left"}, "plate 2": {"right"}, "plate 1": {"left"}}


def test_the_plates_of_the_shared_walk_carry_the_feet_they_are_named_after(
    shared: Callable[[str], InputFile],
) -> None:
    walk = read_recording(shared("mocap/walk_fullbody_opensim/markers_walk.trc"))
    segments = {side.lower(): [f"{side}.{part}" for part in ("Heel", "Toe", "MT5")] for side in "RL"}
    for plate in plates_from_table(read_table(shared("mocap/walk_fullbody_opensim/grf_walk.mot"))):
        load = load_at(plate, walk.time)
        bearings = bearing_segment(walk, plate, load, segments)
        assert {bearings.segments[i] for i in bearings.segment_indices[load.is_loaded]} == {plate.name}
        assert (bearings.status == FrameStatus.OK).all()
