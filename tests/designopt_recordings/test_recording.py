"""A recording, its channels, plates and tables: what they take, what they refuse, how parts are found, a summary."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from designopt_recordings.channels import Channels
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.read import read_recording
from designopt_recordings.frames import FrameStatus, StatusEnum, count_statuses, usable, worst_status
from designopt_recordings.plate import ForcePlate
from designopt_recordings.recording import MarkedEvent, Recording
from designopt_recordings.summary import summary
from designopt_recordings.table import TimeTable

from designopt.plugin import InputFile

TIME = np.arange(4) / 100.0


def recording(**changes: Any) -> Recording:
    fields = {"rate": 100.0, "time": TIME, "marker_names": ("LASI", "RASI"), "markers": np.zeros((4, 2, 3))}
    return Recording(**{**fields, **changes})


def table(*names: str, **changes: Any) -> TimeTable:
    values = np.arange(4.0 * len(names)).reshape(4, len(names))
    return TimeTable(**{"time": TIME, "names": names, "values": values, **changes})


def test_parts_are_found_by_name() -> None:
    markers = np.arange(24.0).reshape(4, 2, 3)
    plate = ForcePlate("left", 1000.0, np.ones((40, 3)), np.zeros((40, 3)))
    full = recording(markers=markers, plates=(plate,))
    assert (full.marker("RASI") == markers[:, 1]).all()
    assert (full.selected(["RASI", "LASI"]) == markers[:, ::-1]).all()
    assert full.plate("left") is plate
    channels = Channels(10.0, ("a", "b"), ("V", "V"), [[1.0, 2.0], [3.0, 4.0]], start=2.0)  # type: ignore[arg-type]
    assert channels.channel("b").tolist() == [2.0, 4.0]
    assert channels.time.tolist() == [2.0, 2.1]
    assert channels.selected(["b", "a"]).values.tolist() == [[2.0, 1.0], [4.0, 3.0]]


def test_a_wrong_name_is_answered_with_the_nearest_ones() -> None:
    with pytest.raises(RecordingError, match=r"no marker 'LASIS'; did you mean LASI"):
        recording().marker("LASIS")


def test_markers_without_a_position_are_missing() -> None:
    markers = np.zeros((4, 2, 3))
    markers[2, 1, 0] = np.nan
    assert np.argwhere(recording(markers=markers).missing()).tolist() == [[2, 1]]


def test_the_arrays_of_a_recording_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        recording().markers[0, 0, 0] = 1.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: recording(rate=0.0), "rate of the recording is 0 Hz"),
        (lambda: recording(rate=float("nan")), "rate of the recording is nan Hz"),
        (lambda: recording(markers=np.zeros((4, 3, 3))), r"shape \(4, 3, 3\), not \(4, 2, 3\)"),
        (lambda: recording(marker_names=("A", "A")), "marker 'A' appears 2 times"),
        (lambda: recording(marker_names=("A", " ")), "marker 2 has no name"),
        (lambda: recording(time=[0.0, 0.01, 0.01, 0.02]), r"row 3 \(0.01 s\) is not later than row 2"),
        (lambda: recording(time=[0.0, np.nan, 0.02, 0.03]), "time of row 2 is not a number"),
        (lambda: table("a", time=[0.0, 0.1, 0.05, 0.2]), "row 3"),
        (lambda: table("a", "a"), "column 'a' appears 2 times"),
        (lambda: Channels(1.0, ("a",), (), np.zeros((3, 1))), "1 channels, but 0 units"),
        (lambda: Channels(-1.0, ("a",), ("V",), np.zeros((3, 1))), "must be positive"),
        (lambda: ForcePlate("p", 1.0, np.zeros((3, 3)), np.zeros((2, 3))), "moment of plate 'p'"),
    ],
)
def test_inconsistent_input_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(RecordingError, match=message):
        make()


def test_the_surface_of_a_plate_has_a_centre_and_a_normal_upwards() -> None:
    corners = np.array([[0.0, 0.1, 0.0], [0.6, 0.1, 0.0], [0.6, 0.1, 0.4], [0.0, 0.1, 0.4]])
    for order in (corners, corners[::-1]):
        plate = ForcePlate("p", 1000.0, np.zeros((5, 3)), np.zeros((5, 3)), corners=order)
        np.testing.assert_allclose(plate.centre, [0.3, 0.1, 0.2], atol=1e-15)
        np.testing.assert_allclose(plate.normal, [0.0, 1.0, 0.0], atol=1e-15)


def test_the_normal_of_a_wall_points_to_who_pushes_against_it() -> None:
    # seen from +Z, X to the right and Y up: clockwise from the top left
    wall = np.array([[-0.3, 1.0, 0.0], [0.3, 1.0, 0.0], [0.3, 0.6, 0.0], [-0.3, 0.6, 0.0]])
    plate = ForcePlate("wall", 1000.0, np.zeros((5, 3)), np.zeros((5, 3)), corners=wall)
    np.testing.assert_allclose(plate.normal, [0.0, 0.0, 1.0], atol=1e-15)


# ------------------------------------------------------------------------------------------------------------ tables


def test_a_coordinate_is_found_by_its_plain_name_and_by_its_path() -> None:
    paths = ("/jointset/knee_r/knee_angle_r/value", "/jointset/knee_r/knee_angle_r/speed", "/forceset/soleus_r")
    coordinates = table(*paths)
    assert coordinates.label("knee_angle_r") == paths[0]
    assert coordinates.label("knee_angle_r", "speed") == paths[1]
    assert coordinates.label("soleus_r") == paths[2]
    assert (coordinates.column("knee_angle_r") == coordinates.values[:, 0]).all()
    assert table("knee_angle_r", *paths).label("knee_angle_r") == "knee_angle_r"


def test_two_paths_for_one_coordinate_are_refused() -> None:
    with pytest.raises(RecordingError, match="both fit 'q'"):
        table("/jointset/a/q/value", "/jointset/b/q/value").label("q")
    with pytest.raises(RecordingError, match="did you mean knee_angle_r"):
        table("/jointset/knee_r/knee_angle_r/value").label("knee_angle")
    with pytest.raises(RecordingError, match="not as 'knee_angle_r/value'"):
        table("/jointset/knee_r/knee_angle_r/speed").label("knee_angle_r")


def test_only_rotations_are_converted_from_degrees() -> None:
    original = table("/jointset/hip/hip_flexion/value", "pelvis_ty", in_degrees=True)
    converted = original.radians(["hip_flexion"])
    np.testing.assert_allclose(converted.column("hip_flexion"), np.radians(original.values[:, 0]))
    assert (converted.column("pelvis_ty") == original.column("pelvis_ty")).all()
    assert not converted.in_degrees
    assert converted.radians(["hip_flexion"]).values.tolist() == converted.values.tolist()


def test_degrees_in_a_table_that_says_radians_are_noted() -> None:
    angles = table("knee_angle_r", "knee_angle_r_beta", values=[[0.378, 21.0], [0.4, 57.0], [0.4, np.nan], [0.4, 30.0]])
    notes = angles.radians(["knee_angle_r", "knee_angle_r_beta"]).notes
    assert notes == ("column 'knee_angle_r_beta' reaches 57 in a table that says radians; it is probably in degrees",)


# ---------------------------------------------------------------------------------------------------------- statuses


def test_every_status_says_a_sentence_and_the_worst_one_counts() -> None:
    assert all(member.sentence for member in FrameStatus)
    assert FrameStatus(30) is FrameStatus.INTERPOLATED
    statuses = worst_status([0, 20, 30, 100], [10, 0, 0, 40])
    assert statuses.tolist() == [10, 20, 30, 100]
    assert usable(statuses).tolist() == [True, True, True, False]
    assert FrameStatus.EDGE.usable
    assert count_statuses(statuses.tolist() * 2)[FrameStatus.EDGE] == 2


def test_other_packages_declare_statuses_of_their_own() -> None:
    class Sharing(StatusEnum):
        OPTIMAL = 0, "balanced"
        INFEASIBLE = 100, "no forces within the limits balance the moments"

    assert count_statuses([0, 100, 100], Sharing) == {Sharing.OPTIMAL: 1, Sharing.INFEASIBLE: 2}
    assert not Sharing.INFEASIBLE.usable


def test_a_small_recording_is_summed_up() -> None:
    markers = np.ones((101, 2, 3))
    markers[:25, 1] = np.nan
    force = np.zeros((1001, 3))
    force[200:700, 1] = 812.4
    plates = (
        ForcePlate("left", 1000.0, force, np.zeros((1001, 3))),
        ForcePlate("right", 1000.0, np.zeros((1001, 3)), np.zeros((1001, 3))),
    )
    recording = Recording(
        100.0, np.arange(101) / 100.0, ("A", "B"), markers, Channels(1000.0, ("e",), ("V",), np.zeros((1001, 1))),
        plates, (MarkedEvent("Foot Off", 0.7, "Left"),), notes=("the file is odd",),
    )  # fmt: skip
    assert summary(recording) == (
        "101 frames at 100 Hz, 1.000 s",
        "2 markers, 12.4% of their positions missing: B 25%",
        "left: up to 812 N, in contact 0.199-0.700 s",
        "right: unloaded",
        "1 channels at 1000 Hz",
        "events: Left Foot Off 0.700 s",
        "note: the file is odd",
    )


def test_the_shared_walk_is_summed_up(shared: Callable[[str], InputFile]) -> None:
    lines = summary(read_recording(shared("mocap/plugin_gait_fullbody/Movement_trial.c3d")))
    assert lines[0] == "323 frames at 120 Hz, 2.683 s"
    assert "117 markers, complete" in lines
    assert "plate 1: up to 1214 N, in contact 7.696-8.474 s (cut off)" in lines
