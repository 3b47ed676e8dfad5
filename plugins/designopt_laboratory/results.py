"""Figures, arrays and curves of the steps of a trial."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from designopt_mechanics.sharing.status import SharingStatus
from designopt_muscle.geometry.drawing import drawing
from designopt_muscle.models.figures import reserve_shares
from designopt_muscle.models.root_balance import root_rows
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.counts import plural
from designopt_laboratory.curves.curves import SAMPLES, CurveBlock, CycleCurves, cycle_curves
from designopt_laboratory.declared import ARRAYS, TrialFigures
from designopt_laboratory.trial.feet import SIDES
from designopt_laboratory.trial.files import TrialFiles
from designopt_laboratory.trial.judgement import residual_notes, residual_shares, sharing_notes
from designopt_laboratory.trial.steps import TrialSteps
from designopt_laboratory.trial.strikes import Source, TrialCycles, strikes_of_events, trial_cycles

_AXES = "xyz"


@dataclass(frozen=True)
class TrialResults:
    """Results of the `steps` of a trial, whose cycles come from a `source`; `signals` (n, k) is measured activity, NaN
    without; `labels` are subject and group."""

    steps: TrialSteps
    files: TrialFiles
    source: Source
    signals: Floats | None
    labels: tuple[str, str]

    @cached_property
    def cycles(self) -> TrialCycles:
        """The cycles within the window. Raises `TrialError` where the source has none and is not ``auto``."""
        steps, recording = self.steps, self.files.recording
        time = steps.coordinates.time
        sources = {
            "events": strikes_of_events(() if recording is None else recording.events),
            "plates": {} if steps.feet is None else steps.feet.strikes,
            "feet": steps.foot_strikes,
        }
        half = 0.5 * float(np.median(np.diff(time))) if len(time) > 1 else 0.0
        return trial_cycles(self.source, sources, (float(time[0]) - half, float(time[-1]) + half), self.files.name)

    @cached_property
    def curves(self) -> CycleCurves:
        """All signals over normalised cycles."""
        return cycle_curves(self.steps.coordinates.time, self._blocks(), self.cycles.cycles)

    @cached_property
    def _counted_frames(self) -> NDArray[np.bool_]:
        """(n,) frames that figures of loads count: those within cycles, or all without a cycle."""
        time = self.steps.coordinates.time
        inside = [(time >= cycle.start) & (time <= cycle.end) for _, cycle in self.cycles.cycles]
        return np.logical_or.reduce(inside) if inside else np.ones(len(time), dtype=bool)

    @cached_property
    def _judgement(self) -> list[str]:
        """Sentences on the residuals, reserves and activations of the trial."""
        notes = residual_notes(self._residual_shares)
        return notes if self.steps.sharing is None else notes + sharing_notes(self.steps.sharing, self._counted_frames)

    @cached_property
    def _gaps(self) -> list[str]:
        """A sentence on cycles that have no curves, because frames within them have no result."""
        time, lost = self.steps.coordinates.time, self.steps.status >= 100
        cycles = [cycle for _, cycle in self.cycles.cycles]
        cut = [cycle for cycle in cycles if lost[(time >= cycle.start) & (time <= cycle.end)].any()]
        if not cut:
            return []
        spans = ", ".join(f"{cycle.start:.4g} to {cycle.end:.4g} s" for cycle in cut[:3])
        count = f"{len(cut)} of {plural(len(cycles), 'cycle')} {'has' if len(cut) == 1 else 'have'}"
        return [f"{self.files.name}: {count} frames without a result, and so no curves of them: {spans}"]

    @cached_property
    def _doubts(self) -> list[str]:
        """Sentences on what is doubtful in the trial."""
        return list(dict.fromkeys([*self.steps.doubts, *self._judgement, *self.cycles.lacking, *self._gaps]))

    @cached_property
    def _notes(self) -> list[str]:
        """Sentences on what is doubtful, and on what was read, assumed and left out."""
        return list(dict.fromkeys([*self._doubts, *self.steps.notes, *self.cycles.notes]))

    @cached_property
    def _residual_shares(self) -> tuple[float, ...]:
        steps = self.steps
        if steps.residual is None or steps.feet is None:
            return ()
        frames = np.flatnonzero(self._counted_frames & (steps.status < 100))
        loads = {body: load[frames] for body, load in steps.feet.by_body.items()}
        return residual_shares(steps.residual[frames], loads, steps.motion.take(frames))

    def figures(self) -> TrialFigures:
        """Figures over the usable frames."""
        steps = self.steps
        good = steps.status < 100
        figures: dict[str, float] = {
            "frames": float(len(good)),
            "usable": float(good.mean()),
            "cycles": float(len(self.curves.sides)),
            "mass": steps.mass,
            "doubts": float(len(self._doubts)),
        }
        figures |= self._subject_figures()
        if np.isfinite(steps.series.errors).any():
            figures["marker_rms"] = float(np.sqrt(np.nanmean(steps.series.errors**2)))
            figures["marker_max"] = float(np.nanmax(steps.series.errors))
        if steps.net is not None:
            figures |= self._moment_figures(good & self._counted_frames)
        if steps.sharing is not None:
            figures |= self._force_figures()
        return cast(TrialFigures, {name: value for name, value in figures.items() if np.isfinite(value)})

    def _subject_figures(self) -> dict[str, float]:
        figures: dict[str, float] = {}
        if self.files.factors:
            figures |= {"smallest_scale": float(self._factors.min()), "largest_scale": float(self._factors.max())}
        if self.files.static is not None and np.isfinite(self.files.static.errors).any():
            figures["static_rms"] = float(self.files.static.rms[0])
            figures["static_max"] = float(np.nanmax(self.files.static.errors))
        return figures

    @property
    def _factors(self) -> Floats:
        """(b, 3) scale factors of the bodies."""
        ones = np.ones(3)
        return np.stack([self.files.factors.get(body.name, ones) for body in self.steps.model.bodies])

    def _moment_figures(self, good: NDArray[np.bool_]) -> dict[str, float]:
        steps = self.steps
        assert steps.net is not None
        figures: dict[str, float] = {}
        if steps.residual is not None and steps.residual.shape[1] and good.any():
            force, *moment = np.sqrt(np.nanmean(steps.residual[good] ** 2, axis=0))
            figures["residual_force"] = float(force)
            figures |= {"residual_moment": float(moment[0])} if moment else {}
        figures |= dict(zip(("residual_force_share", "residual_moment_share"), self._residual_shares, strict=False))
        at_root = {name for names in root_rows(steps.model) for name in names}
        turning = {c.name for c in steps.model.coordinates if c.rotational} - at_root
        columns = [i for i, name in enumerate(steps.net.rows) if name in turning]
        inner = np.abs(steps.net.values[self._counted_frames][:, columns])
        if np.isfinite(inner).any():
            figures["peak_moment"] = float(np.nanmax(inner)) / steps.mass
        return figures

    def _force_figures(self) -> dict[str, float]:
        steps = self.steps
        assert steps.sharing is not None
        sharing, a = steps.sharing, steps.sharing.activations
        has_answer = np.isfinite(a).all(axis=1) & self._counted_frames
        figures = {"infeasible_frames": float((sharing.status == SharingStatus.INFEASIBLE).sum())}
        if not has_answer.any():
            return figures
        figures |= {
            "mean_cost": float(sharing.cost[has_answer].mean()),
            "peak_activation": float(a[has_answer].max()),
            "mean_activation": float(a[has_answer].mean()),
            "peak_reserve": float(np.abs(sharing.reserves[has_answer]).max(initial=0.0)),
            "reserve_share": max(reserve_shares(sharing, self._counted_frames).values(), default=0.0),
        }
        if self.signals is not None:
            figures["emg_correlation"] = emg_correlation(a[self._counted_frames], self.signals[self._counted_frames])
        if steps.metabolic is not None:
            figures["metabolic_rate"] = float(np.nansum(steps.metabolic[has_answer], axis=1).mean()) / steps.mass
        if steps.wrenches is not None and steps.wrenches.joints:
            sizes = np.linalg.norm(steps.wrenches.force[has_answer], axis=2)
            figures["peak_joint_force"] = float(np.nanmax(sizes)) / self._weight
        return figures

    @property
    def _weight(self) -> float:
        """N, of the model; its mass where there is no gravity."""
        return self.steps.mass * (float(np.linalg.norm(self.steps.model.gravity)) or 1.0)

    # --------------------------------------------------------------------------------------------------------- curves

    def _blocks(self) -> list[CurveBlock]:
        steps = self.steps
        turning = {c.name: c.rotational for c in steps.model.coordinates}
        lost = (steps.status >= 100)[:, None]
        degrees = np.array([180.0 / np.pi if turning[name] else 1.0 for name in steps.coordinates.names])
        units = tuple("deg" if turning[name] else "m" for name in steps.coordinates.names)
        no_pose = (steps.series.status >= 100)[:, None]
        angles = np.where(no_pose, np.nan, steps.coordinates.values * degrees)
        blocks = [CurveBlock("angle", steps.coordinates.names, units, angles)]
        if steps.feet is not None:
            names = tuple(f"ground_{side[0]}_{axis}" for side in SIDES for axis in _AXES)
            force = steps.feet.force.reshape(len(lost), -1) / self._weight
            blocks.append(CurveBlock("ground force", names, ("BW",) * len(names), force))
        if steps.net is not None:
            rows = steps.net.rows
            units = tuple("N m/kg" if turning[name] else "N/kg" for name in rows)
            blocks.append(CurveBlock("moment", rows, units, steps.net.values / steps.mass))
            blocks.append(CurveBlock("power", rows, ("W/kg",) * len(rows), self._powers() / steps.mass))
        if steps.sharing is not None:
            blocks += self._muscle_blocks()
        if steps.wrenches is not None:
            joints = steps.wrenches.joints
            names = tuple(f"{joint}_{part}" for joint in joints for part in ("size", *_AXES))
            force = steps.wrenches.force
            components = np.concatenate([np.linalg.norm(force, axis=2, keepdims=True), force], axis=2)
            values = components.reshape(len(lost), -1) / self._weight
            blocks.append(CurveBlock("joint force", names, ("BW",) * len(names), values))
            names = tuple(f"{joint}_{axis}" for joint in joints for axis in _AXES)
            values = steps.wrenches.moment.reshape(len(lost), -1) / steps.mass
            blocks.append(CurveBlock("joint reaction moment", names, ("N m/kg",) * len(names), values))
        return blocks

    def _muscle_blocks(self) -> list[CurveBlock]:
        steps = self.steps
        assert steps.sharing is not None
        assert steps.trial is not None
        names = steps.trial.muscles.names
        count = len(names)
        blocks = [
            CurveBlock("activation", names, ("",) * count, steps.sharing.activations, bounded=True),
            CurveBlock("muscle force", names, ("N",) * count, steps.sharing.forces, bounded=True),
            CurveBlock("fibre length", names, ("optimal lengths",) * count, steps.trial.fibres.length),
        ]
        if self.signals is not None:
            columns = [j for j in range(count) if np.isfinite(self.signals[:, j]).any()]
            signals = self.signals[:, columns]
            blocks.append(
                CurveBlock("EMG", tuple(names[j] for j in columns), ("",) * len(columns), signals, bounded=True)
            )
        if steps.metabolic is not None:
            total = steps.metabolic.sum(axis=1, keepdims=True) / steps.mass
            blocks.append(CurveBlock("metabolic rate", names, ("W",) * count, steps.metabolic, bounded=True))
            blocks.append(CurveBlock("metabolic rate", ("all_muscles",), ("W/kg",), total, bounded=True))
        return blocks

    def _powers(self) -> Floats:
        steps = self.steps
        assert steps.net is not None
        columns = {name: steps.coordinates.rates[:, i] for i, name in enumerate(steps.coordinates.names)}
        zero = np.zeros(len(steps.coordinates.time))
        return steps.net.values * np.column_stack([columns.get(name, zero) for name in steps.net.rows])

    # --------------------------------------------------------------------------------------------------------- arrays

    def arrays(self, names: Set[str]) -> dict[str, NDArray[Any]]:
        """The arrays with these names; those of steps that were not taken are empty."""
        available: dict[str, Callable[[], Any]] = {
            **self._of_subject(), **self._of_motion(), **self._of_muscles(), **self._of_cycles(),
        }  # fmt: skip
        if names & {"skeleton", "paths"}:
            finite = {name: np.nan_to_num(self.steps.motion.coordinates[name]) for name in self.steps.model.free}
            skeleton, paths = drawing(self.steps.model, finite)
            available |= {"skeleton": lambda: skeleton, "paths": lambda: paths}
        return {name: np.asarray(available[name]() if name in available else self._empty(name)) for name in names}

    def _empty(self, name: str) -> NDArray[Any]:
        array, n = ARRAYS[name], len(self.steps.coordinates.time)
        shape = tuple(n if axis == "time" else 0 for axis in array.axes)
        if shape == (n,):
            return np.full(n, np.nan)
        return np.zeros(shape, dtype=str if array.dtype == "str" else float)

    def _of_subject(self) -> dict[str, Callable[[], Any]]:
        bodies, static = self.steps.model.bodies, self.files.static
        arrays: dict[str, Callable[[], Any]] = {
            "bodies": lambda: np.array([body.name for body in bodies], dtype=str),
            "body_masses": lambda: np.array([body.mass for body in bodies]),
            "scale_factors": lambda: self._factors,
            "labels": lambda: np.array([*self.labels, self.files.name]),
            "scaled_model": lambda: np.array(self.files.content.decode("utf-8", "replace").splitlines()),
        }
        if static is not None:
            arrays |= {
                "static_markers": lambda: np.array(static.markers, dtype=str),
                "static_errors": lambda: static.errors[0],
            }
        return arrays

    def _of_motion(self) -> dict[str, Callable[[], Any]]:
        steps, series = self.steps, self.steps.series
        arrays: dict[str, Callable[[], Any]] = {
            "time": lambda: steps.coordinates.time,
            "pose_status": lambda: steps.status,
            "angles": lambda: steps.coordinates.values,
            "rates": lambda: steps.coordinates.rates,
            "coordinate_names": lambda: np.array(steps.coordinates.names),
            "markers": lambda: np.array(series.markers, dtype=str),
            "marker_errors": lambda: series.errors,
            "measured_markers": self._measured_markers,
            "doubts": lambda: np.array(self._doubts, dtype=str),
            "notes": lambda: np.array(self._notes, dtype=str),
        }
        if (feet := steps.feet) is not None:
            arrays |= {
                "feet": lambda: np.array(SIDES),
                "foot_forces": lambda: feet.force,
                "foot_points": lambda: feet.point,
                "foot_torques": lambda: feet.torque,
            }
        if (net := steps.net) is not None:
            arrays |= {
                "moment_names": lambda: np.array(net.rows),
                "moments": lambda: net.values,
                "powers": self._powers,
                "residuals": lambda: steps.residual,
            }
        return arrays

    def _measured_markers(self) -> Floats:
        recording, steps = self.files.recording, self.steps
        if recording is None:
            return np.zeros((len(steps.coordinates.time), 0, 3))
        frames = np.searchsorted(recording.time, steps.coordinates.time - 0.25 / recording.rate)
        return recording.selected(steps.series.markers)[np.clip(frames, 0, len(recording.time) - 1)]

    def _of_muscles(self) -> dict[str, Callable[[], Any]]:
        sharing, trial, wrenches = self.steps.sharing, self.steps.trial, self.steps.wrenches
        if sharing is None or trial is None or trial.paths is None:
            return {}
        paths = trial.paths
        nothing = np.full(sharing.forces.shape, np.nan)
        arrays: dict[str, Callable[[], Any]] = {
            "muscles": lambda: np.array(sharing.balance.columns),
            "coordinates": lambda: np.array(sharing.balance.rows),
            "activations": lambda: sharing.activations,
            "forces": lambda: sharing.forces,
            "muscle_moments": lambda: sharing.moments,
            "net_moments": lambda: sharing.balance.moments,
            "reserves": lambda: sharing.reserves,
            "shortfall": lambda: sharing.shortfall,
            "strength_factor": lambda: sharing.strength_factor,
            "status": lambda: sharing.status,
            "signals": lambda: nothing if self.signals is None else self.signals * sharing.scales,
            "muscle_lengths": lambda: paths.lengths,
            "moment_arms": lambda: sharing.balance.arms,
            "fibre_lengths": lambda: trial.fibres.length,
            "fibre_speeds": lambda: trial.fibres.speed,
            "muscle_powers": lambda: -sharing.forces * paths.speeds,
        }
        if (rates := self.steps.metabolic) is not None:
            arrays["metabolic_rates"] = lambda: rates
        if wrenches is not None:
            arrays |= {
                "joints": lambda: np.array(wrenches.joints),
                "reactions": lambda: wrenches.force,
                "reaction_moments": lambda: wrenches.moment,
                "reaction_points": lambda: wrenches.point,
            }
        return arrays

    def _of_cycles(self) -> dict[str, Callable[[], Any]]:
        return {
            "cycle_sides": lambda: np.array(self.curves.sides, dtype=str),
            "cycle_times": lambda: np.stack([self.curves.starts, self.curves.ends], axis=1),
            "percent": lambda: np.linspace(0.0, 100.0, SAMPLES),
            "curve_kinds": lambda: np.array(self.curves.kinds, dtype=str),
            "curve_names": lambda: np.array(self.curves.names, dtype=str),
            "curve_units": lambda: np.array(self.curves.units, dtype=str),
            "curves": lambda: self.curves.values,
        }


def emg_correlation(activations: Floats, signals: Floats) -> float:
    """Mean over the measured muscles of the correlation (Pearson) between `activations` and `signals` (n, k); NaN
    without one that varies."""
    correlations = []
    for a, e in zip(activations.T, signals.T, strict=True):
        both_finite = np.isfinite(a) & np.isfinite(e)
        if both_finite.sum() > 2 and np.ptp(a[both_finite]) > 0.0 and np.ptp(e[both_finite]) > 0.0:
            correlations.append(float(np.corrcoef(a[both_finite], e[both_finite])[0, 1]))
    return float(np.mean(correlations)) if correlations else float("nan")
