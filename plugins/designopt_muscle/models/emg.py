"""Measured activity of a trial: from a file of envelopes or raw channels to signals of muscles at the frames."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import Annotated, Literal

import numpy as np
from designopt_mechanics.sharing.statement.criteria import check_band
from designopt_recordings.channels import Channels
from designopt_recordings.emg import at_frames, channels_of, envelope, normalised, reference
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.read import read_recording, read_table

from designopt.arrays import Floats
from designopt.plugin import InputFile
from designopt.plugin import Quantity as Q
from designopt_muscle.models.errors import readable


@dataclass(frozen=True)
class MeasuredActivity:
    """Settings of EMG: the channel of each muscle, and the relation to activations."""

    track: Annotated[dict[str, str], Q("", "channel of each measured muscle; several muscles may have the same one")]
    weight: Annotated[float, Q("", "of the squared difference between activation and signal", ge=0)] = 1.0
    scale: Annotated[Literal["fixed", "free"], Q("", "free: a scale for each muscle, with the minimum total cost")] = (
        "fixed"
    )
    band: Annotated[
        tuple[float, float] | None,
        Q("", "lowest and highest difference between activation and signal; unlimited if none"),
    ] = None
    delay: Annotated[float, Q("s", "electromechanical delay: activations follow the signal", ge=0)] = 0.0
    signal: Annotated[
        Literal["envelope", "raw"], Q("", "raw: filtered, rectified and divided by the trial's largest 0.25 s")
    ] = "envelope"

    def __post_init__(self) -> None:
        if not self.track:
            raise ValueError("track names no muscle")
        check_band(self.band, free_scale=self.scale == "free")


def read_activity(file: InputFile, setting: MeasuredActivity, muscles: tuple[str, ...], time: Floats) -> Floats:
    """(n, k) signals of `muscles` at `time` (n,) s; NaN for muscles without a channel and frames without a sample.

    The file is a table (STO, MOT, CSV) with even times or a C3D recording with analog channels. Envelopes are fractions
    of the maximum activity. Raises `TrialError` for channels that are not there and envelopes that are no fractions.
    """
    channels = sorted(set(setting.track.values()))
    with readable(file):
        if PurePath(file.name).suffix.lower() == ".c3d":
            analog = read_recording(file).analog
            if analog is None:
                raise RecordingError("it has no analog channels")
            channel_signals = analog.selected(channels)
        else:
            channel_signals = channels_of(read_table(file), channels, "1")
        channel_signals = _envelopes(channel_signals) if setting.signal == "raw" else _fractions(channel_signals)
        values = at_frames(channel_signals, time, setting.delay)
    signals = np.full((len(time), len(muscles)), np.nan)
    for muscle, channel in setting.track.items():
        signals[:, muscles.index(muscle)] = values[:, channel_signals.names.index(channel)]
    return signals


def _envelopes(raw: Channels) -> Channels:
    smooth = envelope(raw)
    return normalised(smooth, reference(smooth))


def _fractions(envelopes: Channels) -> Channels:
    """The channels, if they can be fractions of the maximum activity."""
    for name, values in zip(envelopes.names, envelopes.values.T, strict=True):
        low, high = (float(f(values[np.isfinite(values)], initial=0.0)) for f in (np.min, np.max))
        if low < -1e-6 or high > 1.5:
            raise RecordingError(
                f"the channel '{name}' ranges from {low:.3g} to {high:.3g}: envelopes must be fractions of the maximum"
                " activity; set 'signal: raw' for raw EMG, or divide by a reference"
            )
    return envelopes
