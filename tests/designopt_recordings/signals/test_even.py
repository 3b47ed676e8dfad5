"""Tables whose times are not even: resampled before a filter, differentiated or refused with the row."""

import numpy as np
import pytest
from designopt_recordings.errors import RecordingError
from designopt_recordings.recording import Recording
from designopt_recordings.signals.derivatives import derivatives
from designopt_recordings.signals.even_steps import (
    check_steps,
    even_rate,
    for_filter,
    gap_notes,
    in_gaps,
    irregular_steps,
    linear_values,
)
from designopt_recordings.signals.filters import lowpass
from designopt_recordings.table import TimeTable


def angle(time):
    """A movement of 1 and 3 Hz, rad."""
    return 0.5 * np.sin(2.0 * np.pi * time) + 0.1 * np.cos(6.0 * np.pi * time)


def table(time, values=None):
    return TimeTable(time, ("knee",), (angle(time) if values is None else values)[:, None])


def filtered(result):
    return lowpass(result.values, 1.0 / float(np.median(np.diff(result.time))), 6.0, 3)[:, 0]


EVEN = np.arange(201) / 100.0


@pytest.mark.parametrize("row", [1, 50, 100, 199])
def test_a_table_without_one_row_is_filtered_as_the_whole_one(row):
    result = for_filter(table(np.delete(EVEN, row)), 6.0)
    assert result.time == pytest.approx(EVEN, abs=1e-12)
    assert np.abs(filtered(result) - filtered(table(EVEN))).max() < 1e-5
    assert "resampled every 0.01 s" in result.notes[-1]


def test_rows_at_random_times_are_filtered_as_even_ones():
    """The output of an integrator with variable steps: some rows nearly coincide, numbers have eight decimals."""
    rng = np.random.default_rng(3)
    steps = rng.uniform(0.001, 0.015, 240)
    steps[rng.random(240) < 0.1] = 1e-6
    time = np.round(np.concatenate([[0.0], np.cumsum(steps)]), 8)
    result = for_filter(table(time, np.round(angle(time), 8)), 6.0)
    inner = slice(60, -60)
    expected = filtered(table(result.time))
    assert np.abs(filtered(result) - expected)[inner].max() < 1e-5
    acceleration = derivatives(result.time, filtered(result))[1]
    assert np.abs(acceleration - derivatives(result.time, expected)[1])[inner].max() < 0.05  # of 55 rad/s^2


def test_an_even_table_and_its_rounding_are_left_alone():
    even = table(np.round(EVEN / 1.2, 7))
    assert for_filter(even, 6.0) is even


def test_a_gap_longer_than_half_a_period_of_the_cut_off_is_refused_with_its_row():
    time = np.delete(EVEN, np.arange(50, 60))
    with pytest.raises(RecordingError, match=r"6 Hz needs steps of at most 0\.083.*row 51 \(0\.6 s\) is 0\.11 s after"):
        for_filter(table(time), 6.0)


def test_missing_numbers_stay_missing_when_a_table_is_resampled():
    values = angle(EVEN)
    values[80:90] = np.nan
    result = for_filter(table(np.delete(EVEN, 30), np.delete(values, 30)), 6.0)
    assert np.isnan(result.values[80:90]).all()
    assert np.isfinite(np.delete(result.values, np.arange(80, 90))).all()


def test_steps_that_turn_rounding_into_accelerations_are_refused():
    time = np.sort(np.append(EVEN, 1.0 + 1e-6))
    with pytest.raises(
        RecordingError, match=r"too unevenly spaced for derivatives: row .*filter the table with a cutoff"
    ):
        check_steps(time)


@pytest.mark.parametrize("row", [30, 100])
def test_samples_of_a_device_without_a_row_have_no_rate(row):
    with pytest.raises(RecordingError, match=r"row \d+ is off by more than a quarter of a step"):
        even_rate(np.delete(EVEN, row))
    assert even_rate(np.round(np.arange(100) / 60.0, 3)) == pytest.approx(60.0, rel=1e-3)


def test_a_recording_keeps_its_rate():
    time = np.delete(EVEN, 70)
    with pytest.raises(RecordingError, match=r"frame 71 \(0\.71 s\) is off the rate of 100 Hz"):
        Recording(100.0, time, ("knee",), np.zeros((len(time), 1, 3)))


def test_times_between_rows_that_are_far_apart_are_in_a_gap_and_those_of_rows_are_not():
    rows = np.delete(EVEN, np.arange(50, 80))  # rows 49 and 80 stay
    assert EVEN[in_gaps(rows, EVEN)] == pytest.approx(EVEN[50:80])
    assert not in_gaps(np.delete(EVEN, np.arange(50, 58)), EVEN).any()  # 9 steps


def test_the_output_of_an_integrator_with_variable_steps_has_no_gaps():
    steps = 10.0 ** np.random.default_rng(1).uniform(-6.0, -2.0, 4000)
    assert steps.max() > 50.0 * np.median(steps)
    assert not in_gaps(np.cumsum(steps), EVEN).any()


def test_linear_values_are_not_known_in_gaps_and_outside():
    rows = np.delete(EVEN, np.arange(50, 80))
    at = np.array([-0.1, 0.0, 0.255, 0.49, 0.6, 0.8, 2.1])
    values = linear_values(rows, 3.0 * rows, at)
    assert values == pytest.approx([np.nan, 0.0, 0.765, 1.47, np.nan, 2.4, np.nan], nan_ok=True)


def test_a_note_names_the_first_gap_and_counts_the_others():
    assert gap_notes(EVEN) == gap_notes(EVEN[:2]) == gap_notes(EVEN[:0]) == []
    rows = np.delete(EVEN, np.r_[50:80, 120:140])
    assert gap_notes(rows) == ["no rows between 0.49 and 0.8 s, nor in 1 further gap: nothing is known there"]


@pytest.mark.parametrize(
    ("time", "clause"),
    [
        (np.delete(EVEN, 50), "the samples are 0.01 s apart, and a sample seems to be missing, the first after 0.49 s"),
        (np.delete(EVEN, [50, 51, 120]), "3 samples seem to be missing, the first after 0.49 s"),
        (np.where(EVEN == 0.5, 0.495, EVEN), "2 samples are not, the first after 0.49 s"),
        (EVEN, ""),
        (EVEN[:2], ""),
        (EVEN[:0], ""),
        (np.round(np.arange(200) / 300.0, 3), ""),  # rounded: steps of 3 and 4 ms
        (np.cumsum(np.random.default_rng(1).uniform(0.001, 0.01, 200)), ""),  # of an integrator
    ],
)
def test_rows_that_are_missing_in_even_times_or_stand_between_are_named(time, clause):
    assert irregular_steps(time).endswith(clause) if clause else irregular_steps(time) == ""
