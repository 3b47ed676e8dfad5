"""Winter's residual analysis: known noise is found, smooth data are told apart."""

from collections.abc import Callable

import numpy as np
import pytest
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.read import read_recording
from designopt_recordings.signals.filters import lowpass
from designopt_recordings.signals.residuals import analyse_residuals

from designopt.plugin import InputFile

RATE = 200.0
TIME = np.arange(4000) / RATE
SIGNAL = np.sin(2 * np.pi * 0.7 * TIME) + 0.3 * np.sin(2 * np.pi * 1.9 * TIME + 1.0)


def test_known_white_noise_is_found_for_each_channel() -> None:
    # A zero-phase low-pass that keeps little of the band leaves nearly all the noise in the residual.
    noise = np.array([0.02, 0.05])
    noisy = SIGNAL[:, None] + noise * np.random.default_rng(1).normal(size=(len(TIME), 2))
    residuals = analyse_residuals(noisy, RATE)
    assert residuals.straight.all()
    np.testing.assert_allclose(residuals.noise, noise, rtol=0.05)
    assert residuals.residual.shape == (len(residuals.grid), 2)
    assert (np.diff(residuals.residual, axis=0) < 0.0).all()


def test_the_cutoff_is_where_the_residual_equals_the_noise() -> None:
    noisy = SIGNAL + 0.05 * np.random.default_rng(2).normal(size=len(TIME))
    residuals = analyse_residuals(noisy, RATE)
    at_cutoff = np.sqrt(np.mean((noisy - lowpass(noisy, RATE, float(residuals.cutoff))) ** 2))
    np.testing.assert_allclose(at_cutoff, residuals.noise, rtol=0.01)
    assert 1.9 < residuals.cutoff < 8.0  # above the signal's highest frequency


def test_more_noise_asks_for_a_lower_cutoff() -> None:
    noise = np.random.default_rng(3).normal(size=len(TIME))
    cutoffs = [float(analyse_residuals(SIGNAL + s * noise, RATE).cutoff) for s in (0.003, 0.03, 0.3)]
    assert cutoffs[0] > cutoffs[1] > cutoffs[2]


def test_gaps_are_left_out() -> None:
    noisy = SIGNAL + 0.05 * np.random.default_rng(4).normal(size=len(TIME))
    gapped = noisy.copy()
    gapped[1000:1100] = np.nan
    np.testing.assert_allclose(analyse_residuals(gapped, RATE).noise, analyse_residuals(noisy, RATE).noise, rtol=0.1)
    assert np.isnan(analyse_residuals(np.full(100, np.nan), RATE).cutoff)


def test_a_signal_without_noise_has_no_falling_line() -> None:
    residuals = analyse_residuals(np.stack([np.ones(500), np.zeros(500)], axis=1), RATE)
    assert not residuals.straight.any()
    assert np.isnan(residuals.noise).all()
    assert (residuals.cutoff == residuals.grid[-1]).all()


def test_a_grid_needs_four_frequencies_that_increase() -> None:
    for grid in ([1.0, 2.0, 3.0], [1.0, 2.0, 2.0, 3.0]):
        with pytest.raises(RecordingError, match="at least four frequencies that increase"):
            analyse_residuals(SIGNAL, RATE, grid)


def test_the_smoothed_walk_shows_the_little_noise_that_is_known(shared: Callable[[str], InputFile]) -> None:
    walk = read_recording(shared("mocap/plugin_gait_fullbody/Movement_trial.c3d"))
    residuals = analyse_residuals(walk.selected(["LASI", "LKNE", "LANK", "LTOE", "C7", "LWRA"]), walk.rate)
    # "sample gait file: ~10 Hz, 0.02-0.2 mm 'noise'" (whole_body_natural_coordinates, section 10)
    assert 8.0 < np.median(residuals.cutoff) < 14.0
    assert 0.02e-3 < np.nanmedian(residuals.noise) < 0.2e-3
