"""Outputs and arrays of the model ``wholebody_trial`` for an analysed trial."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from designopt_mechanics.moment_balance import MomentBalance
from designopt_recordings.signals.cycles import Cycle
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt_wholebody.dynamics.balance import moment_balance
from designopt_wholebody.dynamics.loads import JointLoads
from designopt_wholebody.forward.simulation import replay
from designopt_wholebody.models.trial_declarations import KINDS, TrialOutputs
from designopt_wholebody.trial.agreement import agreement
from designopt_wholebody.trial.analysis import Analysis
from designopt_wholebody.trial.cycles import PERCENT, bands, trial_cycles
from designopt_wholebody.trial.figures import joint_figures, joint_sizes, peak, ranges, rms, torque_noise, usual_angles
from designopt_wholebody.trial.scene import ground_forces, sticks, surfaces

#: Frames at each end whose derivatives and filters are less accurate.
ENDS = 5


@dataclass(frozen=True, eq=False)
class AnalysedTrial:
    """An analysed trial of a recording at `rate` Hz; `truth` are the joint loads of a synthetic one.

    Torques above `noise_above` Hz are noise. Cycles are cut by the angle `cycle_angle`, see `trial_cycles`.
    """

    analysis: Analysis
    rate: float
    truth: JointLoads | None
    noise_above: float
    cycle_angle: str | None

    @cached_property
    def cycles(self) -> tuple[Cycle, ...]:
        return trial_cycles(self.analysis.motion.time, self.analysis.angles, self.cycle_angle)

    @cached_property
    def inner_frames(self) -> NDArray[np.bool_]:
        """(n,) frames with loads that are not at an end."""
        inner = self.analysis.complete_frames.copy()
        inner[:ENDS] = inner[-ENDS:] = False
        return inner

    @property
    def differences(self) -> Floats:
        """(k, 3) m of landmarks from the measured ones, where both are known."""
        flat = self.analysis.differences[:, self.inner_frames].reshape(-1, 3)
        return flat[np.isfinite(flat).all(axis=1)]

    def outputs(self, rebuilt: float | None) -> TrialOutputs:
        """All outputs that are known; `rebuilt` m is the error of a hidden marker, if there is one."""
        analysis, truth, inner = self.analysis, self.truth, self.inner_frames
        force = np.linalg.norm(analysis.loads.residual_force[inner], axis=1)
        torque = np.linalg.norm(analysis.loads.residual_torque[inner], axis=1)
        search = analysis.consistency
        figures = {
            "used": float(analysis.complete_frames.mean()),
            "marker_distance": rms(analysis.landmark_distance[inner]),
            "violation": rms(analysis.violation[inner]),
            "iterations": 0.0 if search is None else float(search.iterations[search.usable].mean()),
            "residual_force": rms(force),
            "residual_force_peak": peak(force),
            "residual_torque": rms(torque),
            "residual_torque_peak": peak(torque),
            "torque_noise": torque_noise(analysis, self.rate, self.noise_above),
            **({} if rebuilt is None else {"rebuilt_error": rebuilt}),
            "cycles": float(bands(analysis.motion.time, analysis.motion.q, self.cycles).count),
            **self._agreement(),
            **({} if truth is None else _errors(analysis.loads, truth, inner)),
            **joint_figures(analysis, inner),
            **ranges(analysis, inner),
        }
        return TrialOutputs(**figures)  # type: ignore[typeddict-item, no-any-return]

    def _agreement(self) -> dict[str, float]:
        away = self.differences
        if len(away) < 4:
            return {}
        normal_ellipsoid = agreement(away, np.zeros_like(away))
        thesis = agreement(away, np.zeros_like(away), kind="thesis")
        return {
            "agreement_bias": float(np.linalg.norm(normal_ellipsoid.bias)),
            "agreement_coverage": normal_ellipsoid.coverage,
            "agreement_thesis": thesis.coverage,
        }

    @cached_property
    def balance(self) -> MomentBalance:
        return moment_balance(self.analysis.subject, self.analysis.motion, self.analysis.loads)

    def arrays(self, names: Set[str]) -> dict[str, NDArray[Any]]:
        """The arrays of these names; no other is computed."""
        analysis = self.analysis
        subject, q, search, loads = analysis.subject, analysis.motion.q, analysis.consistency, analysis.loads
        time, angles = analysis.motion.time, analysis.angles.values
        forces, torques = joint_sizes(analysis)
        makers: dict[str, Callable[[], NDArray[Any]]] = {
            "time": lambda: time,
            "angles": lambda: angles,
            "angle_names": lambda: np.array(analysis.angles.names),
            "moments": lambda: self.balance.moments,
            "moment_names": lambda: np.array(self.balance.rows),
            "joint_names": lambda: np.array(loads.joints),
            "forces": lambda: loads.force,
            "torques": lambda: loads.torque,
            "residual_forces": lambda: loads.residual_force,
            "residual_torques": lambda: loads.residual_torque,
            "distances": lambda: analysis.landmark_distance,
            "violations": lambda: analysis.violation,
            "violations_by_type": lambda: self._by_type(q),
            "raw_violations_by_type": lambda: self._by_type(analysis.raw),
            "frame_iterations": lambda: np.zeros(len(q)) if search is None else search.iterations.astype(float),
            "frame_increments": lambda: np.zeros(len(q)) if search is None else search.increment,
            "frame_seconds": lambda: np.zeros(len(q)) if search is None else search.seconds,
            "status": lambda: analysis.status.astype(float),
            "torque_sizes": lambda: torques,
            "force_sizes": lambda: forces,
            "sticks": lambda: sticks(subject, q),
            "raw_sticks": lambda: sticks(subject, analysis.raw),
            "simulated_sticks": lambda: sticks(subject, replay(subject, analysis.motion)),
            "surfaces": lambda: surfaces(subject, q),
            "ground_forces": lambda: ground_forces(analysis.plates.loads),
            "differences": lambda: self.differences,
            "cycle": lambda: PERCENT,
            "angle_mean": lambda: bands(time, usual_angles(analysis), self.cycles).mean,
            "angle_deviation": lambda: bands(time, usual_angles(analysis), self.cycles).deviation,
            "torque_mean": lambda: bands(time, torques, self.cycles).mean,
            "torque_deviation": lambda: bands(time, torques, self.cycles).deviation,
            "moment_mean": lambda: bands(time, self.balance.moments, self.cycles).mean,
            "moment_deviation": lambda: bands(time, self.balance.moments, self.cycles).deviation,
        }
        return {name: makers[name]() for name in names}

    def _by_type(self, q: Floats) -> Floats:
        """(n, types) RMS of the rows of each of `KINDS`; 0 for types that the model does not have."""
        constraints = self.analysis.subject.constraints
        squares = constraints.metres(constraints.values(q)) ** 2
        by_type = np.zeros((len(q), len(KINDS)))
        for k, kind in enumerate(KINDS):
            rows = [i for i, name in enumerate(constraints.names) if name.kind == kind]
            if rows:
                by_type[:, k] = np.sqrt(squares[:, rows].mean(axis=1))
        return by_type


def _errors(loads: JointLoads, truth: JointLoads, inner: NDArray[np.bool_]) -> dict[str, float]:
    """RMS errors of forces and torques over the joints that both have; none without such a joint."""
    common = [joint for joint in truth.joints if joint in loads.joints]
    parts = {"force_error": 0, "torque_error": 1} if common else {}
    return {
        name: rms(np.stack([(loads.at(joint)[part] - truth.at(joint)[part])[inner] for joint in common]))
        for name, part in parts.items()
    }
