"""Zero-phase filters: gain of both passes at the cut-off, no shift, gaps that do not spread."""

import numpy as np
import pytest
from designopt_recordings.errors import RecordingError
from designopt_recordings.signals.filters import bandpass, design_frequency, highpass, lowpass
from designopt_recordings.signals.runs import edge_status, near_ends, runs

RATE = 100.0
TIME = np.arange(4000) / RATE


def gain(filtered: np.ndarray, frequency: float) -> tuple[float, float]:
    """Amplitude and phase shift (rad) of the middle of a filtered unit sine."""
    middle = slice(1000, 3000)  # whole periods of multiples of 0.05 Hz
    wave = np.exp(-2j * np.pi * frequency * TIME[middle])
    component = 2j * np.mean(filtered[middle] * wave)
    return float(np.abs(component)), float(np.angle(component))


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("cutoff", [2.0, 6.0, 30.0])
def test_the_gain_of_both_passes_at_the_cutoff_is_one_over_root_two(order: int, cutoff: float) -> None:
    wave = np.sin(2 * np.pi * cutoff * TIME)
    for kind in (lowpass, highpass):
        amplitude, phase = gain(kind(wave, RATE, cutoff, order), cutoff)
        np.testing.assert_allclose(amplitude, np.sqrt(0.5), atol=1e-6)
        np.testing.assert_allclose(phase, 0.0, atol=1e-6)


def test_the_gain_at_half_and_double_the_cutoff_is_that_of_the_squared_butterworth() -> None:
    # two passes: 1 / (1 + (tan(pi f / f_s) / tan(pi f_d / f_s))^(2 n)), n = 2
    tangent = np.tan(np.pi * design_frequency(6.0, RATE) / RATE)
    for frequency in (3.0, 12.0):
        expected = 1.0 / (1.0 + (np.tan(np.pi * frequency / RATE) / tangent) ** 4)
        amplitude, _ = gain(lowpass(np.sin(2 * np.pi * frequency * TIME), RATE, 6.0), frequency)
        np.testing.assert_allclose(amplitude, expected, atol=1e-6)


def test_the_correction_divides_by_0_802() -> None:
    # whole_body_natural_coordinates, section 10: dividing is right (gain 0.707), multiplying gives 0.29, none 0.5
    tangents = np.tan(np.pi * design_frequency(5.0, 1000.0) / 1000.0) / np.tan(np.pi * 5.0 / 1000.0)
    np.testing.assert_allclose(1.0 / tangents, 0.8022, atol=5e-5)


def test_a_band_keeps_its_middle_and_removes_what_is_outside() -> None:
    wave = np.sin(2 * np.pi * 10.0 * TIME) + 3.0 + np.sin(2 * np.pi * 45.0 * TIME)
    amplitude, phase = gain(bandpass(wave, RATE, (2.0, 30.0), 4), 10.0)
    np.testing.assert_allclose([amplitude, phase], [1.0, 0.0], atol=1e-3)
    assert abs(np.mean(bandpass(wave, RATE, (2.0, 30.0))[1000:3000])) < 1e-6


def test_constants_and_lines_pass_to_the_ends() -> None:
    line = np.stack([np.full(50, 2.0), np.linspace(0.0, 1.0, 50)], axis=1)
    np.testing.assert_allclose(lowpass(line, RATE, 6.0), line, atol=1e-3)
    np.testing.assert_allclose(lowpass(np.full(50, 2.0), RATE, 6.0), 2.0, rtol=1e-12)


def test_a_gap_stays_a_gap_and_changes_nothing_beyond_its_run() -> None:
    values = np.random.default_rng(0).normal(size=(300, 2, 3))
    gapped = values.copy()
    gapped[100:110, 1, :] = np.nan
    filtered = lowpass(gapped, RATE, 6.0)
    assert (np.isnan(filtered) == np.isnan(gapped)).all()
    np.testing.assert_array_equal(filtered[:, 0], lowpass(values[:, 0], RATE, 6.0))
    np.testing.assert_allclose(filtered[110:, 1], lowpass(values[110:, 1], RATE, 6.0), rtol=1e-12)
    assert np.isnan(lowpass(np.full((5, 2), np.nan), RATE, 6.0)).all()


def test_short_runs_are_filtered_as_far_as_they_reach() -> None:
    for count in (1, 2, 3, 5, 12):
        assert np.isfinite(lowpass(np.arange(float(count)), RATE, 6.0)).all()
        assert np.isfinite(highpass(np.arange(float(count)), RATE, 6.0)).all()


@pytest.mark.parametrize("cutoff", [0.0, -1.0, 50.0, 60.0, float("nan")])
def test_a_cutoff_that_the_rate_cannot_have_is_refused(cutoff: float) -> None:
    with pytest.raises(RecordingError, match=r"is not possible at 100 Hz; it must be above 0 and below 50 Hz"):
        lowpass(TIME, RATE, cutoff)


def test_a_band_upside_down_is_refused() -> None:
    with pytest.raises(RecordingError, match="the band 30 to 20 Hz is none"):
        bandpass(TIME, RATE, (30.0, 20.0))


def test_runs_and_their_ends() -> None:
    mask = np.array([1, 1, 0, 1, 0, 0, 1, 1, 1], dtype=bool)
    assert runs(mask) == [(0, 2), (3, 4), (6, 9)]
    assert runs(np.zeros(3, dtype=bool)) == []
    assert np.flatnonzero(near_ends(np.ones(20, dtype=bool))).tolist() == [0, 1, 2, 3, 4, 15, 16, 17, 18, 19]
    assert edge_status(mask, 1).tolist() == [10, 10, 0, 10, 0, 0, 10, 0, 10]
    assert near_ends(mask, 1).tolist() == [True, True, False, True, False, False, True, False, True]
