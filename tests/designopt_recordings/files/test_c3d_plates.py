"""Force plates of C3D files: a known force at a known point comes back from channels of every type."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from designopt_recordings.files.c3d import read_c3d
from designopt_recordings.loads.frames import load_at
from designopt_recordings.recording import Recording

from designopt.plugin import InputFile

Make = Callable[..., InputFile]

# A plate of 600 by 400 mm, 50 mm above the floor, X to the right, Y forward, Z up; corners +x +y, -x +y, -x -y, +x -y
# of the plate's axes, whose Z points down (c3d.org, FORCE_PLATFORM:CORNERS).
CORNERS = np.array([[700.0, 1000.0, 50.0], [700.0, 600.0, 50.0], [100.0, 600.0, 50.0], [100.0, 1000.0, 50.0]])
CENTRE = np.array([400.0, 800.0, 50.0])
AXES = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]]).T  # columns: plate X, Y, Z in the laboratory

FORCE = np.array([30.0, -40.0, 800.0])  # N on the subject, laboratory
POINT = np.array([450.0, 700.0, 50.0])  # mm
FREE = np.array([0.0, 0.0, 5000.0])  # N·mm about the vertical
DEPTH = -40.0  # mm, ORIGIN: the surface lies 40 mm above the transducers, against Z
A, B = 120.0, 200.0  # mm, places of the transducers of a plate of type 3


def in_plate(force: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Force and moment (N, N·mm) in plate axes about `at`, laboratory, mm."""
    moment = np.cross(POINT - at, force) + FREE
    return AXES.T @ force, AXES.T @ moment


def transducers() -> np.ndarray:
    """The transducers' origin in the laboratory, mm."""
    return CENTRE - AXES @ [0.0, 0.0, DEPTH]


def type_1() -> np.ndarray:
    force, _ = in_plate(FORCE, CENTRE)
    x, y, _ = AXES.T @ (POINT - CENTRE)
    return np.array([*force, x, y, -FREE[2]])  # about plate Z, downwards


def type_2() -> np.ndarray:
    return np.concatenate(in_plate(FORCE, transducers()))


def type_3() -> np.ndarray:
    """Four transducers at (+-A, +-B): a split of the wrench that has exactly its resultants."""
    (fx, fy, fz), (mx, my, mz) = in_plate(FORCE, transducers())
    # z1 + z2 - z3 - z4 = mx / B; -z1 + z2 + z3 - z4 = my / A; the remaining freedom is zero
    z = np.linalg.solve([[1, 1, 1, 1], [1, 1, -1, -1], [-1, 1, 1, -1], [1, -1, 1, -1]], [fz, mx / B, my / A, 0.0])
    x34 = (fx + mz / B) / 2.0
    return np.array([fx - x34, x34, fy / 2.0, fy / 2.0, *z])


MATRIX = np.diag([2.0, 2.0, 5.0, 900.0, 900.0, 700.0]) + 0.05 * np.random.default_rng(3).normal(size=(6, 6))


def type_4() -> np.ndarray:
    return np.linalg.solve(MATRIX, type_2())


CHANNELS = {1: type_1, 2: type_2, 3: type_3, 4: type_4}
UNITS = {
    1: ["N", "N", "N", "mm", "mm", "Nmm"],
    2: ["N", "N", "N", "Nmm", "Nmm", "Nmm"],
    3: ["N"] * 8,
    4: ["V"] * 6,
}
ORIGIN = {1: [0.0, 0.0, DEPTH], 2: [0.0, 0.0, DEPTH], 3: [A, B, DEPTH], 4: [0.0, 0.0, DEPTH]}


def read(make: Make, kind: int, values: np.ndarray, *, units: list[str] | None = None, **changes: object) -> Recording:
    samples = np.tile(values, (50, 1))
    samples[25:] = 0.0  # unloaded
    plate = {
        "USED": [1],
        "TYPE": [kind],
        "ZERO": [1, 0],
        "CORNERS": CORNERS.T[:, :, None],
        "ORIGIN": np.array(ORIGIN[kind])[:, None],
        "CHANNEL": np.arange(1, len(values) + 1)[:, None],
        **({"CAL_MATRIX": MATRIX[:, :, None]} if kind == 4 else {}),
        **changes,
    }
    points = 1000.0 * np.ones((10, 1, 3))
    channels = [(f"c{i}", unit) for i, unit in enumerate(units or UNITS[kind])]
    parameters = {"FORCE_PLATFORM": plate, "POINT": {"Y_SCREEN": ["+Z"]}}
    return read_c3d(make(points, ["A"], analog=samples, channels=channels, parameters=parameters))


def turned(vector: np.ndarray) -> np.ndarray:
    x, y, z = vector
    return np.array([x, z, -y])


def check(recording: Recording) -> None:
    (plate,) = recording.plates
    np.testing.assert_allclose(plate.force[:25], np.tile(turned(FORCE), (25, 1)), rtol=1e-5, atol=1e-3)
    moment = turned(np.cross(POINT, FORCE) + FREE) / 1000.0
    np.testing.assert_allclose(plate.moment[:25], np.tile(moment, (25, 1)), rtol=1e-5, atol=2e-3)
    np.testing.assert_allclose(plate.force[25:], 0.0)
    np.testing.assert_allclose(plate.moment[25:], 0.0)
    np.testing.assert_allclose(plate.centre, turned(CENTRE) / 1000.0, atol=1e-7)
    np.testing.assert_allclose(plate.normal, [0.0, 1.0, 0.0], atol=1e-12)
    assert plate.rate == 500.0


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_the_wrench_on_the_subject_is_found_from_the_channels(made_c3d: Make, kind: int) -> None:
    recording = read(made_c3d, kind, CHANNELS[kind]())
    assert recording.notes == ()
    check(recording)


@pytest.mark.parametrize("kind", [2, 3, 4])
def test_the_force_on_the_plate_is_turned_into_that_on_the_subject(made_c3d: Make, kind: int) -> None:
    recording = read(made_c3d, kind, -CHANNELS[kind]())
    assert recording.notes == (
        "plate 1: it recorded the forces on the plate; their opposites, the forces on the subject, are used",
    )
    check(recording)


@pytest.mark.parametrize("kind", [2, 3, 4])
def test_an_origin_with_the_wrong_sign_is_corrected_and_noted(made_c3d: Make, kind: int) -> None:
    origin = np.array(ORIGIN[kind]) * [1.0, 1.0, -1.0]
    recording = read(made_c3d, kind, CHANNELS[kind](), ORIGIN=origin[:, None])
    assert recording.notes == ("plate 1: ORIGIN has the surface below the transducers; the opposite is assumed",)
    check(recording)


def test_moments_are_read_in_their_own_unit(made_c3d: Make) -> None:
    newton_metres = type_2() * np.array([1.0, 1.0, 1.0, 1e-3, 1e-3, 1e-3])
    check(read(made_c3d, 2, newton_metres, units=["N", "N", "N", "Nm", "Nm", "N.m"]))
    unknown = read(made_c3d, 2, type_2(), units=["N", "N", "N", "", "", ""])
    assert unknown.notes == ("plate 1: the unit of its moments is not known; N times the unit of length is assumed",)
    check(unknown)


def test_frames_in_which_the_file_calls_the_plates_unloaded_are_noted(made_c3d: Make) -> None:
    recording = read(made_c3d, 2, type_2(), ZERO=[1, 10])
    assert recording.notes == (
        "plate 1: ZERO declares it unloaded in frames 1 to 10; nothing is subtracted from its forces",
    )
    check(recording)


def test_samples_that_are_not_finite_are_missing_and_stay_in_their_place(made_c3d: Make) -> None:
    values = type_2()
    values[1] = np.inf
    recording = read(made_c3d, 2, values)
    assert recording.analog is not None
    assert recording.notes == ("25 values of channels are not finite; they are treated as missing",)
    assert np.isnan(recording.analog.values[:25, 1]).all()
    (plate,) = recording.plates
    assert np.isfinite(plate.force[25:]).all()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"TYPE": [21]}, "its type is 21; types 1 to 4 are read"),
        ({"CORNERS": np.zeros((3, 4, 1))}, "its corners span no surface"),
        ({"CORNERS": np.zeros((3, 2, 1))}, "FORCE_PLATFORM:CORNERS has no values for it"),
        ({"CHANNEL": np.arange(4, 10)[:, None]}, "names channels beyond the 6 of the file"),
        ({"CHANNEL": np.array([[1, 2, 3]]).T}, "FORCE_PLATFORM:CHANNEL does not name its 6 channels"),
        ({"ORIGIN": np.array([[np.nan, 0.0, 0.0]]).T}, "FORCE_PLATFORM:ORIGIN has values that are not numbers"),
    ],
)
def test_a_plate_that_cannot_be_used_is_left_out_and_noted(
    made_c3d: Make, changes: dict[str, object], reason: str
) -> None:
    recording = read(made_c3d, 2, type_2(), **changes)
    assert recording.plates == ()
    assert recording.notes[0].startswith("plate 1: it is skipped: ")
    assert reason in recording.notes[0]


@pytest.mark.parametrize(
    ("path", "peaks"),
    [
        ("mocap/plugin_gait_fullbody/Movement_trial.c3d", [1214.2, 1126.5, 1106.1, 1161.9]),
        ("mocap/walk_treadmill_c3d/walking5.c3d", [774.9, 910.5]),
    ],
)
def test_shared_plates_agree_with_the_library_s_own(
    shared: Callable[[str], InputFile], tmp_path: Path, path: str, peaks: list[float]
) -> None:
    ezc3d = pytest.importorskip("ezc3d")
    file = shared(path)
    (tmp_path / "x.c3d").write_bytes(file.content)
    theirs = ezc3d.c3d(str(tmp_path / "x.c3d"), extract_forceplat_data=True)["data"]["platform"]
    ours = read_c3d(file).plates
    assert len(ours) == len(theirs)
    for plate, their, peak in zip(ours, theirs, peaks, strict=True):
        turn = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
        np.testing.assert_allclose(plate.force, (turn @ their["force"]).T, atol=1e-9)
        np.testing.assert_allclose(plate.force[:, 1].max(), peak, atol=0.1)
        about_centre = plate.moment - np.cross(plate.centre, plate.force)
        np.testing.assert_allclose(about_centre, (turn @ their["moment"]).T / 1000.0, atol=1e-9)


def test_the_vendor_s_own_moments_about_the_surface_confirm_the_sign_of_origin(
    shared: Callable[[str], InputFile],
) -> None:
    # The file says +41 mm. Its software stores ground reactions per body mass: forces, and moments about the centre of
    # the surface, smoothed. The opposite sign of ORIGIN, or none, fits them worse.
    walk = read_c3d(shared("mocap/plugin_gait_fullbody/Movement_trial.c3d"))
    assert walk.results is not None
    mass = walk.parameters["Bodymass"]
    for side, name, frames in (("L", "plate 1", slice(235, 310)), ("R", "plate 4", slice(50, 120))):
        plate = walk.plate(name)
        load = load_at(plate, walk.time)
        to_vendor = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])  # Z up
        force = walk.results.result(f"{side}GroundReactionForce")[frames]
        moment = walk.results.result(f"{side}GroundReactionMoment")[frames]
        assert rms(load.force[frames] @ to_vendor.T / mass - force) < 0.1  # N/kg of 14
        off = {}
        for depth in (0.0, 0.041, 0.082):
            centre = plate.centre - depth * plate.normal
            about = load.moment[frames] - np.cross(centre, load.force[frames])
            off[depth] = rms(about @ to_vendor.T / mass - moment)
        assert off[0.0] < 0.015  # N·m/kg of 1.2
        assert off[0.0] < off[0.041] < off[0.082]


def rms(values: np.ndarray) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(values**2)))
