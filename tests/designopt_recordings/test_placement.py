"""A recording moved as a whole stays the same recording: distances, pressures on the surface, free moments."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.read import read_recording
from designopt_recordings.loads.frames import load_at
from designopt_recordings.placement import about_vertical, heading, moved
from designopt_recordings.plate import ForcePlate
from designopt_recordings.recording import Recording
from scipy.spatial.transform import Rotation

from designopt.plugin import InputFile

TIME = np.arange(50) / 100.0
TILT = Rotation.from_euler("zxy", [20.0, -30.0, 100.0], degrees=True).as_matrix()
SHIFT = np.array([3.0, -0.4, 1.5])


def recording(corners: bool = True) -> Recording:
    generator = np.random.default_rng(0)
    force = generator.normal(size=(50, 3)) * 20.0 + [0.0, 600.0, 0.0]
    moment = generator.normal(size=(50, 3)) * 100.0
    surface = np.array([[0.0, 0.1, 0.0], [0.0, 0.1, 0.6], [0.4, 0.1, 0.6], [0.4, 0.1, 0.0]])
    plate = ForcePlate("p", 100.0, force, moment, surface if corners else None, level=0.1)
    markers = generator.normal(size=(50, 2, 3)) + TIME[:, None, None] * [2.0, 0.0, 3.0]
    return Recording(100.0, TIME, ("A", "B"), markers, plates=(plate,))


@pytest.mark.parametrize(("turn", "corners"), [(TILT, True), (about_vertical(0.7), False)])
def test_the_load_moves_with_the_markers(turn: np.ndarray, corners: bool) -> None:
    before = recording(corners)
    after = moved(before, turn, SHIFT)
    np.testing.assert_allclose(after.marker("B"), before.marker("B") @ turn.T + SHIFT, atol=1e-12)
    original, turned = load_at(before.plates[0], TIME), load_at(after.plates[0], TIME)
    np.testing.assert_allclose(turned.force, original.force @ turn.T, atol=1e-9)
    np.testing.assert_allclose(turned.point, original.point @ turn.T + SHIFT, atol=1e-9)
    np.testing.assert_allclose(turned.free, original.free, atol=1e-9)


def test_back_and_forth_is_the_same_recording() -> None:
    turn = about_vertical(1.1)
    displaced = moved(recording(), turn, SHIFT)
    back = moved(displaced, turn.T, -turn.T @ SHIFT)
    np.testing.assert_allclose(back.markers, recording().markers, atol=1e-12)
    np.testing.assert_allclose(back.plates[0].moment, recording().plates[0].moment, atol=1e-9)


def test_invalid_rotations_are_refused() -> None:
    for matrix in (2.0 * np.eye(3), np.diag([1.0, 1.0, -1.0]), np.ones((3, 2))):
        with pytest.raises(RecordingError, match="the matrix is not a rotation"):
            moved(recording(), matrix)
    with pytest.raises(RecordingError, match="'p' has no corners; its surface can only be turned about the vertical"):
        moved(recording(corners=False), Rotation.from_euler("x", 0.1).as_matrix())


@pytest.mark.parametrize("angle", [-2.5, -0.4, 0.0, 1.2, 3.0])
def test_a_heading_is_the_turn_that_makes_a_path_one_along_x(angle: float) -> None:
    path = np.linspace(0.0, 2.0, 50)[:, None] * np.array([np.cos(angle), 0.0, np.sin(angle)])
    walk = Recording(100.0, TIME, ("A",), path[:, None])
    way = moved(walk, about_vertical(heading(walk, "A"))).marker("A")[-1]
    np.testing.assert_allclose(way, [2.0, 0.0, 0.0], atol=1e-12)


def test_a_walk_is_turned_into_x(shared: Callable[[str], InputFile]) -> None:
    walk = read_recording(shared("mocap/plugin_gait_fullbody/Movement_trial.c3d"))
    turned = moved(walk, about_vertical(heading(walk, "LPSI")))
    way = turned.marker("LPSI")[-1] - turned.marker("LPSI")[0]
    assert way[0] > 1.0
    np.testing.assert_allclose(way[2], 0.0, atol=1e-9)
    still = replace(walk, markers=np.ones_like(walk.markers))
    with pytest.raises(RecordingError, match=r"'LPSI' travels less than 0.1 m"):
        heading(still, "LPSI")
