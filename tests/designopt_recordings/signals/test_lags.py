"""Lags: a known shift is found to a fraction of a sample, through gaps and between rates; and taken off."""

import numpy as np
import pytest
from designopt_recordings.channels import Channels
from designopt_recordings.errors import RecordingError
from designopt_recordings.signals.filters import lowpass
from designopt_recordings.signals.lags import delayed, find_lag, synchronised

RATE = 200.0
TIME = np.arange(2000) / RATE
NOISE = lowpass(np.random.default_rng(0).normal(size=4000), RATE, 8.0)


def signal(time: np.ndarray) -> np.ndarray:
    return np.interp(time, np.arange(-1000, 3000) / RATE, NOISE)


@pytest.mark.parametrize("lag", [-0.3, -0.0123, 0.0, 0.05, 0.7777])
def test_a_known_lag_is_found_to_a_fraction_of_a_sample(lag: float) -> None:
    shift = find_lag(TIME, signal(TIME), TIME, 3.0 * signal(TIME - lag) + 5.0)
    np.testing.assert_allclose(shift.seconds, lag, atol=0.1 / RATE)
    assert shift.correlation > 0.99


def test_rates_starts_and_gaps_may_differ() -> None:
    other_time = 1.0 + np.arange(800) / 120.0
    other_values = signal(other_time - 0.2)
    other_values[100:150] = np.nan
    shift = find_lag(TIME, signal(TIME), other_time, other_values)
    np.testing.assert_allclose(shift.seconds, 0.2, atol=0.5 / RATE)
    assert shift.correlation > 0.99


def test_only_lags_within_the_longest_are_considered() -> None:
    wave = np.sin(2 * np.pi * TIME)  # period 1 s
    shift = find_lag(TIME, wave, TIME, np.sin(2 * np.pi * (TIME - 0.1)), longest=0.4)
    np.testing.assert_allclose(shift.seconds, 0.1, atol=0.1 / RATE)


@pytest.mark.parametrize(
    ("other_time", "other_values", "message"),
    [
        (TIME, np.ones_like(TIME), "do not overlap, or one of them is constant"),
        (TIME + 100.0, signal(TIME), "do not overlap"),
        (TIME, np.full_like(TIME, np.nan), "no finite sample"),
        (TIME[:2], TIME[:2], "at least three samples"),
    ],
)
def test_signals_that_cannot_be_compared_are_refused(
    other_time: np.ndarray, other_values: np.ndarray, message: str
) -> None:
    with pytest.raises(RecordingError, match=message):
        find_lag(TIME, signal(TIME), other_time, other_values)


def test_a_delay_shifts_by_whole_samples_and_fractions() -> None:
    ramp = np.arange(10.0)[:, None] * [1.0, 2.0]
    later = delayed(ramp, 10.0, 0.2)
    assert np.isnan(later[:2]).all()
    np.testing.assert_allclose(later[2:], ramp[:-2])
    np.testing.assert_allclose(delayed(ramp, 10.0, 0.05)[1:, 0], np.arange(9.0) + 0.5)
    np.testing.assert_allclose(delayed(ramp, 10.0, -0.1)[:-1], ramp[1:])
    np.testing.assert_array_equal(delayed(ramp, 10.0, 0.0), ramp)


def test_channels_that_came_late_are_set_right() -> None:
    late = Channels(RATE, ("a",), ("V",), signal(TIME - 0.25)[:, None])
    lag = find_lag(TIME, signal(TIME), late.time, late.channel("a")).seconds
    right = synchronised(late, lag)
    np.testing.assert_allclose(find_lag(TIME, signal(TIME), right.time, right.channel("a")).seconds, 0.0, atol=1e-3)
