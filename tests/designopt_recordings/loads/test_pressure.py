"""Centre of pressure, contacts, loads at frames: known wrenches come back, unloaded plates spread nothing."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.read import read_recording, read_table
from designopt_recordings.files.write import motion_text
from designopt_recordings.frames import FrameStatus
from designopt_recordings.loads.contacts import contacts, loaded_samples
from designopt_recordings.loads.frames import load_at
from designopt_recordings.loads.tables import Columns, plates_from_table, reaction_table
from designopt_recordings.plate import ForcePlate
from designopt_recordings.table import TimeTable
from scipy.spatial.transform import Rotation

from designopt.plugin import InputFile

RATE = 1000.0
COUNT = 1000
TIME = np.arange(COUNT) / RATE
STANCE = slice(300, 700)
TILT = Rotation.from_euler("zx", [12.0, -7.0], degrees=True).as_matrix()
CORNERS = np.array([[-0.3, 0.0, -0.2], [0.3, 0.0, -0.2], [0.3, 0.0, 0.2], [-0.3, 0.0, 0.2]]) @ TILT.T + [1.0, 0.4, -0.5]
NORMAL = TILT[:, 1]


def stance(noise: float = 0.0) -> tuple[ForcePlate, np.ndarray, np.ndarray]:
    """A tilted plate with one contact of 0.4 s, the centre of pressure (k, 3) and the free moment (k,) in it."""
    share = np.linspace(0.0, 1.0, 400)
    push = 800.0 * np.sin(np.pi * (0.02 + 0.96 * share))
    force, point, free = np.zeros((COUNT, 3)), np.tile(CORNERS.mean(axis=0), (COUNT, 1)), np.zeros(COUNT)
    force[STANCE] = (np.stack([0.2 * push * np.cos(3 * share), push, -0.1 * push], axis=1)) @ TILT.T
    point[STANCE] += np.stack([0.2 * share - 0.1, 0.0 * share, 0.05 * share], axis=1) @ TILT.T
    free[STANCE] = 6.0 * np.sin(2 * np.pi * share)
    moment = np.cross(point, force) + free[:, None] * NORMAL
    generator = np.random.default_rng(0)
    force, moment = (
        force + noise * generator.normal(size=force.shape),
        moment + noise * generator.normal(size=force.shape),
    )
    return ForcePlate("tilted", RATE, force, moment, CORNERS), point, free


def test_the_wrench_is_a_force_through_the_centre_of_pressure_and_a_free_moment() -> None:
    plate, point, free = stance()
    np.testing.assert_allclose(plate.normal, NORMAL, atol=1e-12)
    loaded = loaded_samples(plate)
    centre, moment = plate.centre_of_pressure(loaded)
    np.testing.assert_allclose(centre[STANCE], point[STANCE], atol=1e-12)
    np.testing.assert_allclose(moment[STANCE], free[STANCE], atol=1e-10)
    np.testing.assert_allclose((centre - plate.centre) @ NORMAL, 0.0, atol=1e-12)  # on the surface


def test_while_unloaded_the_centre_of_pressure_is_the_centre_of_the_surface() -> None:
    plate, _, _ = stance(noise=3.0)
    loaded = loaded_samples(plate)
    centre, moment = plate.centre_of_pressure(loaded)
    assert (centre[~loaded] == plate.centre).all()
    assert (moment[~loaded] == 0.0).all()
    with pytest.raises(RecordingError, match="'tilted' counts as loaded where its normal force is not positive"):
        plate.centre_of_pressure(np.ones(COUNT, dtype=bool))


def test_contacts_begin_and_end_where_the_threshold_is_crossed() -> None:
    plate, _, _ = stance()
    (contact,) = contacts(plate)
    assert contact.is_complete
    np.testing.assert_allclose([contact.start, contact.end], [0.300, 0.700], atol=1e-3)
    rising = ForcePlate("ramp", 10.0, np.outer(10.0 * np.arange(20), [0.0, 1.0, 0.0]), np.zeros((20, 3)))
    (contact,) = contacts(rising, threshold=25.0)
    np.testing.assert_allclose([contact.start, contact.end], [0.25, 1.9])
    assert not contact.is_complete  # the recording ends in it


def test_noise_is_no_contact_and_a_dip_does_not_end_one() -> None:
    force = np.zeros((COUNT, 3))
    force[100:110, 1] = 200.0  # 10 ms: an impact on the frame of the plate
    force[300:700, 1] = 500.0
    force[400:420, 1] = 15.0  # 20 ms below the threshold
    plate = ForcePlate("p", RATE, force, np.zeros_like(force))
    assert [(round(c.start, 2), round(c.end, 2)) for c in contacts(plate)] == [(0.3, 0.7)]
    assert len(contacts(plate, shortest=0.005)) == 3
    with pytest.raises(RecordingError, match="the threshold of a contact is 0 N; it must be positive"):
        contacts(plate, threshold=0.0)


def test_a_contact_that_the_records_end_cuts_off_counts_with_open_ends_only() -> None:
    plate, _, _ = stance()
    first = int(np.flatnonzero(loaded_samples(plate))[0])
    rising = replace(plate, force=plate.force[: first + 3], moment=plate.moment[: first + 3])
    assert not contacts(rising)
    (contact,) = contacts(rising, open_ends=True)
    assert contact.start == pytest.approx(contacts(plate)[0].start)
    assert not contact.is_complete
    assert load_at(rising, rising.time, open_ends=True).is_loaded.sum() == 3


def test_the_load_at_frames_is_exactly_zero_outside_contacts() -> None:
    plate, point, free = stance(noise=0.2)
    frames = np.arange(0.0, 0.999, 0.01)
    load = load_at(plate, frames, cutoff=50.0)
    assert np.flatnonzero(load.is_loaded).tolist() == list(range(30, 70))
    assert (load.force[~load.is_loaded] == 0.0).all()
    assert (load.moment[~load.is_loaded] == 0.0).all()
    assert (load.status == FrameStatus.OK).all()
    middle = slice(35, 65)
    np.testing.assert_allclose(load.point[middle], point[::10][middle], atol=2e-3)
    np.testing.assert_allclose(load.free[middle], free[::10][middle], atol=0.5)


def test_without_a_filter_the_samples_of_the_frames_are_taken_as_they_are() -> None:
    plate, _, _ = stance()
    load = load_at(plate, TIME[::8])
    np.testing.assert_allclose(load.force, plate.force[::8], atol=1e-12)
    between = load_at(plate, TIME[400:410] + 0.0005)
    np.testing.assert_allclose(between.force, (plate.force[400:410] + plate.force[401:411]) / 2.0, atol=1e-9)


@pytest.mark.parametrize("cutoff", [None, 20.0])
def test_samples_that_are_missing_mark_their_frames_and_no_others(cutoff: float | None) -> None:
    complete, _, _ = stance()
    force = complete.force.copy()
    force[500:520, 0] = np.nan
    plate = ForcePlate("p", RATE, force, complete.moment, CORNERS)
    load = load_at(plate, TIME[::10], cutoff=cutoff)
    assert np.flatnonzero(load.status).tolist() == [50, 51]
    assert np.isnan(load.force[50:52]).all()
    assert np.isfinite(np.delete(load.force, [50, 51], axis=0)).all()
    assert np.isfinite(np.delete(load.point, [50, 51], axis=0)).all()


def test_a_contact_cut_by_a_missing_sample_stays_loaded() -> None:
    complete, _, _ = stance()
    last = int(np.flatnonzero(loaded_samples(complete))[-1])
    force = complete.force.copy()
    gap = last - round(0.02 * RATE)  # the rest is shorter than a contact
    force[gap] = np.nan
    plate = ForcePlate("p", RATE, force, complete.moment, CORNERS)
    same = np.arange(COUNT) != gap
    assert (loaded_samples(plate) == loaded_samples(complete))[same].all()
    np.testing.assert_array_equal(load_at(plate, TIME).force[same], load_at(complete, TIME).force[same])


def test_an_unloaded_plate_stays_zero_and_a_plate_without_values_is_missing() -> None:
    quiet = ForcePlate("quiet", RATE, np.random.default_rng(1).normal(size=(COUNT, 3)), np.zeros((COUNT, 3)))
    load = load_at(quiet, TIME[::10], cutoff=20.0)
    assert not load.is_loaded.any()
    assert (load.force == 0.0).all()
    assert np.isfinite(load.point).all()
    broken = ForcePlate("broken", RATE, np.full((COUNT, 3), np.nan), np.zeros((COUNT, 3)))
    assert (load_at(broken, TIME[::10]).status == FrameStatus.MISSING_LOAD).all()


def test_frames_beyond_the_samples_are_missing() -> None:
    plate, _, _ = stance()
    load = load_at(plate, [-0.1, 0.0, 0.5, 0.999, 1.1])
    assert (load.status == FrameStatus.MISSING_LOAD).tolist() == [True, False, False, False, True]


# --------------------------------------------------------------------------------------------------------- from tables


def reactions(**changes: np.ndarray) -> TimeTable:
    columns = {
        "ground_force_r_vx": np.array([0.0, 10.0, 20.0]),
        "ground_force_r_vy": np.array([0.0, 500.0, 600.0]),
        "ground_force_r_vz": np.zeros(3),
        "ground_force_r_px": np.array([331.7, 0.5, 0.6]),
        "ground_force_r_py": np.zeros(3),
        "ground_force_r_pz": np.array([np.nan, 0.1, 0.1]),
        "ground_torque_r_x": np.zeros(3),
        "ground_torque_r_y": np.array([0.0, 2.0, -1.0]),
        "ground_torque_r_z": np.zeros(3),
        **changes,
    }
    return TimeTable(np.array([0.0, 0.001, 0.002]), tuple(columns), np.stack(list(columns.values()), axis=1))


def test_points_of_application_are_meaningless_without_a_force() -> None:
    (plate,) = plates_from_table(reactions())
    assert plate.name == "r"
    assert (plate.moment[0] == 0.0).all()
    point, free = plate.centre_of_pressure(np.array([False, True, True]))
    np.testing.assert_allclose(point[1:], [[0.5, 0.0, 0.1], [0.6, 0.0, 0.1]], atol=1e-12)
    np.testing.assert_allclose(free[1:], [2.0, -1.0], atol=1e-10)


def test_columns_can_be_named_as_an_external_force_does() -> None:
    columns = Columns("heel", "ground_force_r_v", "ground_force_r_p")
    (plate,) = plates_from_table(reactions(), [columns])
    assert plate.name == "heel"
    with pytest.raises(RecordingError, match="no column 'ground_force_l_vx'; did you mean ground_force_r_vx"):
        plates_from_table(reactions(), [Columns("l", "ground_force_l_v", "ground_force_l_p")])


def test_tables_without_reactions_or_with_uneven_times_are_refused() -> None:
    nothing = TimeTable(np.array([0.0, 1.0]), ("a",), np.zeros((2, 1)))
    with pytest.raises(RecordingError, match="no columns of ground reactions"):
        plates_from_table(nothing)
    uneven = reactions()
    uneven = TimeTable(np.array([0.0, 0.001, 0.01]), uneven.names, uneven.values)
    with pytest.raises(RecordingError, match="not evenly spaced: row 2"):
        plates_from_table(uneven)


def test_loads_go_to_a_table_and_back() -> None:
    plate, _, _ = stance(noise=0.5)
    loads = [load_at(plate, TIME, cutoff=50.0), load_at(replace(plate, name="plate 2"), TIME)]
    text = motion_text(reaction_table(TIME, loads))
    table = read_table(InputFile("reactions.mot", text.encode()))
    back = plates_from_table(table)
    assert [plate.name for plate in back] == ["tilted", "plate_2"]
    for load, restored in zip(loads, back, strict=True):
        np.testing.assert_array_equal(restored.force, load.force)
        np.testing.assert_allclose(restored.moment, load.moment, atol=1e-11)
    with pytest.raises(RecordingError, match="there are no loads"):
        reaction_table(TIME, [])


# ------------------------------------------------------------------------------------- the recordings of ../shared/data


def test_the_reactions_of_the_shared_walk(shared: Callable[[str], InputFile]) -> None:
    table = read_table(shared("mocap/walk_fullbody_opensim/grf_walk.mot"))
    right, left = plates_from_table(table)
    assert (right.name, left.name, right.rate) == ("r", "l", 2000.0)
    assert [round(float(plate.force[:, 1].max())) for plate in (right, left)] == [942, 930]  # README of the data
    loaded = loaded_samples(right)
    point, free = right.centre_of_pressure(loaded)
    columns = np.stack([table.column(f"ground_force_r_p{axis}") for axis in "xyz"], axis=1)
    np.testing.assert_allclose(point[loaded], columns[loaded], atol=1e-10)  # a table is already its own answer
    np.testing.assert_allclose(free[loaded], table.column("ground_torque_r_y")[loaded], atol=1e-8)
    assert np.abs(columns[~loaded]).max() > 100.0  # m: the meaningless numbers that the mask keeps out
    assert np.abs(right.moment[~loaded]).max() < 50.0


def test_rounded_times_have_their_rate(shared: Callable[[str], InputFile]) -> None:
    plates = plates_from_table(read_table(shared("opensim/motion/subject01_walk_grf.mot")))
    assert [round(plate.rate, 3) for plate in plates] == [600.0, 600.0]


def test_the_plates_of_the_full_body_walk_are_hit_one_after_the_other(shared: Callable[[str], InputFile]) -> None:
    walk = read_recording(shared("mocap/plugin_gait_fullbody/Movement_trial.c3d"))
    frames = {}
    for plate in walk.plates:
        (contact,) = contacts(plate)
        frames[plate.name] = [(contact.start - walk.time[0]) * 120.0, (contact.end - walk.time[0]) * 120.0]
        assert 1100.0 < plate.normal_force.max() < 1220.0
    expected = {"plate 4": [41, 124], "plate 3": [105, 186], "plate 2": [166, 251], "plate 1": [229, 322]}  # README
    for name, interval in expected.items():
        np.testing.assert_allclose(frames[name], interval, atol=1.5)
