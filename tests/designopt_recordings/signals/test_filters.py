"""Zero-phase filters: gain of both passes at the cut-off, no shift, gaps that do not spread."""

from collections.abc import Callable

import numpy as np
import pytest
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.read import read_table
from designopt_recordings.signals.filters import bandpass, cutoff_of_both_passes, design_frequency, highpass, lowpass
from designopt_recordings.signals.runs import edge_status, near_ends, runs
from scipy import signal
from scipy.interpolate import make_interp_spline

from designopt.plugin import InputFile

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


@pytest.mark.parametrize("order", [2, 3, 4])
def test_a_filter_designed_for_one_pass_has_a_lower_cutoff_of_both(order: int) -> None:
    cutoff = cutoff_of_both_passes(6.0, RATE, order)
    np.testing.assert_allclose(design_frequency(cutoff, RATE, order), 6.0, rtol=1e-12)
    wave = np.random.default_rng(0).normal(size=1000)
    theirs = signal.sosfiltfilt(signal.butter(order, 6.0, fs=RATE, output="sos"), wave)
    np.testing.assert_allclose(lowpass(wave, RATE, cutoff, order)[200:-200], theirs[200:-200], atol=1e-9)


def test_opensim_designs_for_one_pass() -> None:
    # amplitudes that OpenSim 4.6 (TableUtilities.filterLowpass, Storage.lowpassIIR; 6 Hz) left of unit sines at 100 Hz
    cutoff = cutoff_of_both_passes(6.0, RATE, 3)
    np.testing.assert_allclose(cutoff, 5.2, atol=0.01)
    for frequency, left in ((3.0, 0.9854102), (6.0, 0.5), (12.0, 0.0123546)):
        amplitude, phase = gain(lowpass(np.sin(2 * np.pi * frequency * TIME), RATE, cutoff, 3), frequency)
        np.testing.assert_allclose([amplitude, phase], [left, 0.0], atol=1e-6)


def test_the_shared_coordinates_were_filtered_so(shared: Callable[[str], InputFile]) -> None:
    # README of the data: quintic spline, zero-phase third-order Butterworth low-pass at 6 Hz, resampled to 100 Hz
    names = ["hip_flexion_r", "knee_angle_r", "ankle_angle_r"]
    raw = read_table(shared("opensim/motion/gait10dof18musc_walk_IK.mot")).radians(names)
    reference = read_table(shared("opensim/motion/gait10dof18musc_kinematics.sto"))
    angles = np.stack([raw.column(name) for name in names], axis=1)
    even = make_interp_spline(raw.time, angles, k=5)(reference.time)
    expected = np.stack([reference.column(name) for name in names], axis=1)
    filtered = lowpass(even, 100.0, cutoff_of_both_passes(6.0, 100.0, 3), 3)
    np.testing.assert_allclose(filtered[20:-20], expected[20:-20], atol=2e-4)  # rad; the ends depend on their extension
    assert np.abs(lowpass(even, 100.0, 6.0, 3) - expected)[20:-20].max() > 5e-3


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
    with pytest.raises(RecordingError, match="the band 30 to 20 Hz is empty"):
        bandpass(TIME, RATE, (30.0, 20.0))


def test_runs_and_their_ends() -> None:
    mask = np.array([1, 1, 0, 1, 0, 0, 1, 1, 1], dtype=bool)
    assert runs(mask) == [(0, 2), (3, 4), (6, 9)]
    assert runs(np.zeros(3, dtype=bool)) == []
    assert np.flatnonzero(near_ends(np.ones(20, dtype=bool))).tolist() == [0, 1, 2, 3, 4, 15, 16, 17, 18, 19]
    assert edge_status(mask, 1).tolist() == [10, 10, 0, 10, 0, 0, 10, 0, 10]
    assert near_ends(mask, 1).tolist() == [True, True, False, True, False, False, True, False, True]
