"""Model `marker_filter`: signal lost and noise left by a cut-off frequency in a recorded trial."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import numpy as np

from designopt import Array, Diverged, InputFile, InvalidDesign, model
from designopt import Quantity as Q
from designopt.arrays import Floats
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.read import read_recording
from designopt_recordings.gaps.fill import Filling, fill
from designopt_recordings.signals.filters import design_frequency, lowpass
from designopt_recordings.signals.residuals import ResidualAnalysis, analyse_residuals


class Filter(TypedDict):
    cutoff: Annotated[float, Q("Hz", "of both passes together", gt=0)]


class RecordedTrial(TypedDict):
    trial: InputFile


class FilterOutputs(TypedDict):
    distortion: Annotated[float, Q("mm", "RMS of the signal that the filter removes, without the noise")]
    acceleration_noise: Annotated[float, Q("m/s^2", "RMS of the noise that remains in the accelerations of markers")]
    position_noise: Annotated[float, Q("mm", "RMS of the noise that remains in the positions of markers")]
    noise: Annotated[float, Q("mm", "RMS of the noise of the recording, by residual analysis")]
    suggested: Annotated[float, Q("Hz", "median of the cut-offs by residual analysis, one for each marker and axis")]
    missing: Annotated[float, Q("", "share of positions that were not recorded")]
    bad_frames: Annotated[float, Q("", "share of frames in which a marker is missing and could not be interpolated")]


ARRAYS = {
    "time": Array(("time",), "s", "of the frames"),
    "status": Array(("time",), "", "of the frames: FrameStatus of designopt_recordings"),
    "cutoffs": Array(("cutoffs",), "Hz", "grid of the residual analysis"),
    "residual": Array(("cutoffs",), "mm", "RMS difference between raw and filtered positions"),
}


@dataclass(frozen=True)
class _FilledTrial:
    filling: Filling
    missing: float
    residuals: ResidualAnalysis
    positions: Floats  # (n, c) m, the channels whose noise is known
    noise: Floats  # (c,) m


@model("marker_filter", version=1, arrays=ARRAYS)
class MarkerFilter:
    """The trade-off of a low-pass filter on a trial of markers (C3D or TRC): lost signal against remaining noise.

    Gaps are interpolated; the noise of every marker and axis is estimated by residual analysis (Winter 2009) and
    assumed white. Removed power beyond that noise counts as lost signal. The remaining noise of the accelerations grows
    with the fourth power of the frequency.
    """

    order: Annotated[int, Q("", "of the Butterworth filter, forwards and backwards", ge=1, le=8)] = 2
    max_gap: Annotated[float, Q("s", "that is interpolated", ge=0)] = 0.2

    def remarks(self, conditions: RecordedTrial) -> list[str]:
        """Sentences on what the reader of the trial left out or assumed, and on a trial that cannot be read, whose
        scenario fails."""
        trial = conditions["trial"]
        try:
            return [f"{trial.name}: {note}" for note in read_recording(trial).notes]
        except RecordingError as problem:
            return [f"{problem}: no result"]

    def prepare_scenario(self, conditions: RecordedTrial) -> _FilledTrial:
        """Read the trial, fill its gaps, find its noise. Raises `Diverged` for an unusable or smoothed trial."""
        try:
            recording = read_recording(conditions["trial"])
            filling = fill(recording, {}, longest=self.max_gap)
            residuals = analyse_residuals(filling.recording.markers, recording.rate, order=self.order)
        except RecordingError as problem:
            raise Diverged(str(problem), reason="unreadable") from None
        if not residuals.straight.any():
            message = f"{conditions['trial'].name}: no marker shows white noise; was the recording smoothed before?"
            raise Diverged(message, reason="smoothed")
        positions, noise = filling.recording.markers[:, residuals.straight], residuals.noise[residuals.straight]
        return _FilledTrial(filling, float(recording.missing().mean()), residuals, positions, noise)

    def evaluate(
        self, design: Filter, scenario: RecordedTrial, arrays: Set[str], prepared: _FilledTrial
    ) -> tuple[FilterOutputs, Mapping[str, Any]]:
        """Filter at the cut-off. Raises `InvalidDesign` for a cut-off that the rate excludes."""
        recording, cutoff = prepared.filling.recording, design["cutoff"]
        try:
            design_frequency(cutoff, recording.rate, self.order)
        except RecordingError as problem:
            raise InvalidDesign(str(problem)) from None
        removed_variance = np.nanmean(
            (prepared.positions - lowpass(prepared.positions, recording.rate, cutoff, self.order)) ** 2, axis=0
        )
        gain = _Gain.for_marker_filter(recording.rate, cutoff, self.order)
        lost = np.maximum(removed_variance - prepared.noise**2 * gain.removed_variance, 0.0)
        noise = float(np.sqrt(np.mean(prepared.noise**2)))
        status = prepared.filling.frames
        residual = np.sqrt(np.nanmean(prepared.residuals.residual**2, axis=(1, 2)))
        outputs = FilterOutputs(
            distortion=1e3 * math.sqrt(float(lost.mean())),
            acceleration_noise=noise * math.sqrt(gain.acceleration),
            position_noise=1e3 * noise * math.sqrt(gain.left),
            noise=1e3 * noise,
            suggested=float(np.median(prepared.residuals.cutoff[prepared.residuals.straight])),
            missing=prepared.missing,
            bad_frames=float(np.mean(status >= 100)),
        )
        all_arrays = {
            "time": recording.time,
            "status": status,
            "cutoffs": prepared.residuals.grid,
            "residual": 1e3 * residual,
        }
        return outputs, {name: all_arrays[name] for name in arrays}


#: Frequencies of the means of gains.
_FREQUENCIES = 20_000


@dataclass(frozen=True)
class _Gain:
    """Gains for white noise of variance 1: the variance removed, that left, and that of its acceleration."""

    removed_variance: float
    left: float
    acceleration: float

    @classmethod
    def for_marker_filter(cls, rate: float, cutoff: float, order: int) -> _Gain:
        """Means over the frequencies up to half the rate of |1 - H|², |H|² and |H|² (2 pi f)⁴, H of both passes."""
        frequency = (np.arange(_FREQUENCIES) + 0.5) * rate / (2.0 * _FREQUENCIES)
        corner = math.tan(math.pi * design_frequency(cutoff, rate, order) / rate)
        gain = 1.0 / (1.0 + (np.tan(np.pi * frequency / rate) / corner) ** (2 * order))
        power = gain**2
        return cls(
            float(np.mean((1.0 - gain) ** 2)),
            float(np.mean(power)),
            float(np.mean(power * (2.0 * np.pi * frequency) ** 4)),
        )
