"""EMG: the envelope of a modulated noise is its modulation; references, normalisation, delay."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from designopt_recordings.channels import Channels
from designopt_recordings.emg import at_frames, channels_of, envelope, normalised, reference
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.read import read_recording, read_table

from designopt.plugin import InputFile

RATE = 2000.0
TIME = np.arange(20_000) / RATE
BURST = 0.1 + np.maximum(0.0, np.sin(2 * np.pi * 0.5 * TIME))  # 0.5 Hz


def raw() -> Channels:
    """Noise with a slow modulation, an offset and a drift, as of two muscles; the second is half as strong."""
    noise = np.random.default_rng(0).normal(size=(len(TIME), 2))
    values = noise * BURST[:, None] * [1.0, 0.5] + 0.8 + 0.3 * np.sin(2 * np.pi * 0.2 * TIME)[:, None]
    return Channels(RATE, ("biceps", "triceps"), ("V", "V"), values)


def test_the_envelope_follows_the_modulation_and_not_the_offset() -> None:
    curve = envelope(raw())
    assert (curve.values >= 0.0).all()
    assert np.corrcoef(curve.channel("biceps"), BURST)[0, 1] > 0.97
    np.testing.assert_allclose(curve.values[:, 1].mean() / curve.values[:, 0].mean(), 0.5, rtol=0.03)


def test_an_envelope_of_a_sine_in_the_band_is_its_mean_rectified_value() -> None:
    sine = Channels(RATE, ("a",), ("V",), np.sin(2 * np.pi * 103.7 * TIME)[:, None])
    middle = envelope(sine).values[4000:-4000]
    np.testing.assert_allclose(middle, 2.0 / np.pi, rtol=5e-3)  # mean of |sin|


def test_channels_are_normalised_by_the_greatest_mean_over_a_window() -> None:
    steady = np.zeros((1000, 1))
    steady[200:700] = 2.0
    steady[500:505] = 50.0  # a spike counts little
    one = Channels(1000.0, ("a",), ("V",), steady)
    np.testing.assert_allclose(reference(one, 0.25), 2.0 + 5 * 48.0 / 250, rtol=1e-12)
    channels = normalised(one, [2.0])
    assert channels.units == ("1",)
    assert channels.values[300, 0] == 1.0
    gapped = replace(one, values=np.where(np.arange(1000)[:, None] == 400, np.nan, steady))
    assert np.isfinite(reference(gapped, 0.05)).all()
    assert np.isnan(reference(gapped, 0.65)).all()


def test_columns_that_cannot_be_normalised_are_named() -> None:
    with pytest.raises(RecordingError, match="2 channels need one reference each, not 1"):
        normalised(raw(), [1.0])
    with pytest.raises(RecordingError, match="the reference of triceps is not positive"):
        normalised(raw(), [1.0, 0.0])
    with pytest.raises(RecordingError, match="fewer than a window of 20 s"):
        reference(raw(), 20.0)


def test_a_band_beyond_half_the_rate_is_refused() -> None:
    slow = replace(raw(), rate=800.0)
    with pytest.raises(RecordingError, match=r"cut-off of 450 Hz is not possible at 800 Hz; .* below 400 Hz"):
        envelope(slow)
    assert np.isfinite(envelope(slow, band=(20.0, 300.0)).values).all()


def test_envelopes_come_to_the_frames_after_their_delay() -> None:
    ramp = Channels(1000.0, ("a",), ("1",), np.arange(1001.0)[:, None] / 1000.0, start=2.0)
    values = at_frames(ramp, [1.0, 2.0, 2.5, 3.0, 3.1], delay=0.05)
    np.testing.assert_allclose(values[:, 0], [np.nan, np.nan, 0.45, 0.95, np.nan], atol=1e-12)


def test_channels_may_come_from_a_table() -> None:
    text = "time,biceps,triceps\n" + "".join(f"{i / 1000!r},{i}.5,{-i}.5\n" for i in range(5))
    table = read_table(InputFile("emg.csv", text.encode()))
    channels = channels_of(table, ["triceps", "biceps"], "mV")
    assert (channels.names, channels.units) == (("triceps", "biceps"), ("mV", "mV"))
    np.testing.assert_allclose(channels.rate, 1000.0)
    assert channels.channel("biceps").tolist() == [0.5, 1.5, 2.5, 3.5, 4.5]
    with pytest.raises(RecordingError, match="not evenly spaced: row 2"):
        channels_of(replace(table, time=table.time**2), ["biceps"])


def test_the_shoulder_recording_has_envelopes(shared: Callable[[str], InputFile]) -> None:
    girdle = read_recording(shared("mocap/shoulder_girdle/markers_analogs.c3d"))
    assert girdle.analog is not None
    muscles = girdle.analog.selected(["Delt_ant.EMG1", "Biceps.EMG4", "Trap_sup.EMG6"])
    envelopes = envelope(muscles)
    share = normalised(envelopes, reference(envelopes))
    at = at_frames(share, girdle.time)
    assert at.shape == (580, 3)
    assert np.isfinite(at).all()
    assert (at.max(axis=0) > 0.9).all()
    assert (at.max(axis=0) < 2.0).all()
    assert (at.min(axis=0) < 0.3).all()  # rest and effort are told apart
