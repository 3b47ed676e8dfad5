"""Cycles: cut at events, on a common time, mean and deviation of the complete ones."""

from collections.abc import Callable

import numpy as np
import pytest
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.read import read_recording, read_table
from designopt_recordings.loads.contacts import contacts
from designopt_recordings.loads.tables import plates_from_table
from designopt_recordings.recording import MarkedEvent, Recording
from designopt_recordings.signals.cycles import (
    Cycle,
    band,
    cycles_between,
    event_times,
    normalised,
)

from designopt.plugin import InputFile

TIME = np.arange(500) / 100.0


def test_cycles_go_from_event_to_event_and_a_missed_event_makes_none() -> None:
    assert cycles_between([2.1, 0.0, 1.0]) == (Cycle(0.0, 1.0), Cycle(1.0, 2.1))
    assert cycles_between([0.0, 1.0, 3.0, 4.0], longest=1.5) == (Cycle(0.0, 1.0), Cycle(3.0, 4.0))
    assert cycles_between([1.0]) == ()
    with pytest.raises(RecordingError, match="has no duration"):
        Cycle(1.0, 1.0)


def test_events_are_found_by_label_and_side() -> None:
    events = (
        MarkedEvent("Foot Strike", 0.5, "Left"),
        MarkedEvent("Foot Strike", 1.0, "Right"),
        MarkedEvent("Foot Off", 1.2, "Left"),
    )
    recording = Recording(100.0, TIME, ("A",), np.zeros((500, 1, 3)), events=events)
    assert event_times(recording, "foot strike") == (0.5, 1.0)
    assert event_times(recording, "Foot Strike", "left") == (0.5,)
    with pytest.raises(RecordingError, match="no event is 'Right Foot Off'; known: Left Foot Off, Left Foot Strike"):
        event_times(recording, "Foot Off", "Right")


def test_a_cycle_may_begin_and_end_half_a_sample_beyond_the_measured_frames() -> None:
    """Events fall between samples; frames from 1 s to 3 s are measured. A parabola goes on as itself."""
    values = np.where((TIME >= 1.0) & (TIME <= 3.0), TIME**2, np.nan)
    inside, beyond = Cycle(0.996, 3.004), Cycle(0.994, 3.0)
    resampled, complete = normalised(TIME, values, [inside, beyond])
    assert complete.tolist() == [True, False]
    np.testing.assert_allclose(resampled[0], np.linspace(0.996, 3.004, 101) ** 2, atol=1e-9)


def test_cycles_of_different_length_fall_on_each_other() -> None:
    ends = np.array([0.113, 1.0, 2.2, 3.15, 4.4])
    phase = np.interp(TIME, ends, np.arange(5.0))
    values = np.stack([np.sin(2 * np.pi * phase), phase % 1.0 * 0.0 + 3.0], axis=1)
    cycles = cycles_between(ends.tolist())
    resampled, complete = normalised(TIME, values, cycles)
    assert resampled.shape == (4, 101, 2)
    assert complete.all()
    expected = np.sin(2 * np.pi * np.linspace(0.0, 1.0, 101))
    np.testing.assert_allclose(resampled[:, 5:-5, 0], np.tile(expected[5:-5], (4, 1)), atol=2e-3)
    np.testing.assert_allclose(resampled[:, :, 1], 3.0)
    statistics = band(resampled)
    assert statistics.count == 4
    np.testing.assert_allclose(statistics.mean[5:-5, 0], expected[5:-5], atol=1e-3)
    assert statistics.deviation[5:-5].max() < 2e-3


def test_bounded_values_stay_between_those_of_their_frames_and_end_as_they_do() -> None:
    values = np.clip(3.0 * np.sin(2.0 * np.pi * TIME), 0.0, 1.0)  # active at the bound, with kinks
    cycles = [Cycle(0.996, 2.25), Cycle(1.5, 3.0)]
    splines, _ = normalised(TIME, values, cycles)
    monotone, complete = normalised(TIME, np.where(TIME >= 1.0, values, np.nan), cycles, bounded=True)
    assert complete.all()
    assert splines.max() > 1.001
    assert splines.min() < -0.001
    assert monotone.min() >= 0.0
    assert monotone.max() <= 1.0
    np.testing.assert_allclose(monotone[1], np.interp(np.linspace(1.5, 3.0, 101), TIME, values), atol=0.02)


def test_mean_and_deviation_are_those_of_the_sample() -> None:
    cycles = np.array([[1.0, 2.0], [3.0, 2.0], [np.nan, 7.0]])
    statistics = band(cycles)
    assert statistics.mean.tolist() == [2.0, 2.0]
    np.testing.assert_allclose(statistics.deviation, [np.sqrt(2.0), 0.0])
    assert statistics.count == 2
    assert np.isnan(band(cycles[:1]).deviation).all()
    with pytest.raises(RecordingError, match="none of 1 cycles is complete"):
        band(cycles[2:])


def test_a_cycle_with_a_gap_or_beyond_the_recording_is_not_complete() -> None:
    values = np.sin(TIME)
    values[150:152] = np.nan
    cycles = (Cycle(0.0, 1.0), Cycle(1.0, 2.0), Cycle(2.0, 3.0), Cycle(4.5, 5.5))
    resampled, complete = normalised(TIME, values, cycles, samples=51)
    assert complete.tolist() == [True, False, True, False]
    assert np.isnan(resampled[~complete]).all()
    np.testing.assert_allclose(resampled[2], np.sin(np.linspace(2.0, 3.0, 51)), atol=1e-6)


def test_the_stride_of_the_shared_walk(shared: Callable[[str], InputFile]) -> None:
    walk = read_recording(shared("mocap/walk_fullbody_opensim/markers_walk.trc"))
    right, _ = plates_from_table(read_table(shared("mocap/walk_fullbody_opensim/grf_walk.mot")))
    cycles = cycles_between([contact.start for contact in contacts(right)])
    assert [round(cycle.end - cycle.start, 2) for cycle in cycles] == [1.14]
    heel, complete = normalised(walk.time, walk.marker("R.Heel"), cycles)
    assert complete.all()
    assert abs(heel[0, 0, 1] - heel[0, -1, 1]) < 0.02  # m: the heel is at the same height at both strikes
