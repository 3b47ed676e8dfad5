"""Made-up results of studies of the knee whose periods, peaks and angles are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from designopt_knee import linkage
from designopt_knee.gait import bundled_text, read_gait
from designopt_knee.model import FourBarKnee
from designopt_knee.parameters import PARAMETER_SETS, complete

from designopt import aggregations
from designopt.plugin import Plugin, Use, find
from designopt.problem import Problem
from designopt.store.result import Result
from designopt.study.language.expressions.expression import Expression
from designopt.study.study import DesignVariable, Objective, Scenario, Stage, StudyDefinition

SAMPLES, WINDOW = 200, 5
STIFFNESS = np.linspace(12.0, 24.0, 13)  # kN/m
RATIOS = np.array([0.03, 0.05, 0.1])  # s
CRITICAL = {0.03: 17.0, 0.05: 16.0, 0.1: 15.0}
GAIT = read_gait(bundled_text())


def plugin(target: Any) -> Plugin:
    return target.__designopt__  # type: ignore[no-any-return]


def minimize(name: str, text: str, unit: str = "") -> Objective:
    return Objective(name, Expression.parse(text), "minimize", Use(plugin(aggregations.worst)), unit)


@dataclass(frozen=True)
class MadeUp(Result):
    """A result whose table is given and whose arrays are made from the design: 2T below the critical stiffness."""

    table: Mapping[str, Any] = field(default_factory=dict)
    array_names: frozenset[str] = frozenset(plugin(FourBarKnee).arrays)

    outcomes = property(lambda self: self.table["outcomes"])
    status = property(lambda self: self.table["status"])
    reason = property(lambda self: np.full(self.status.shape, "", dtype=object))
    stage = property(lambda self: np.full(len(self.outcomes), "sweep"))
    wall = property(lambda self: np.full(self.status.shape, 0.05))
    counts = property(lambda self: {"evaluations": self.status.size})
    sessions = ({"reason": "done"},)
    events = ()

    def tolerated(self) -> None:
        """No neighbours."""

    def programs(self) -> tuple[Any, ...]:
        return ()

    def message(self, i: int, scenario: int = 0) -> str:
        return ""

    def arrays(self, i: int, scenario: int = 0) -> dict[str, Any]:
        k, _ratio = self.outcomes.X[i]
        series = arrays(k, self.outcomes.figures["period_n"][i, scenario])
        return {name: value for name, value in series.items() if name in self.array_names}


def arrays(k: float, period: float) -> dict[str, Any]:
    """A recorded knee scaled to a peak that falls with stiffness; every second cycle 6 deg lower for a period of 2."""
    n = WINDOW * SAMPLES + 1
    phase = 15.0 + np.arange(n) / SAMPLES
    recorded = np.degrees(GAIT.series("knee", phase))
    low = np.where((np.floor(phase + 1e-9) % 2 == 1) & (period == 2), 6.0, 0.0)
    peak = 70.0 - 1.2 * (k - 12.0)
    angle = recorded * (peak - low) / recorded.max()
    frequency = np.arange(1, 49) / 12
    amplitude = np.where(np.isclose(frequency % 1, 0), 20.0 / frequency**2, 1e-4)
    amplitude = np.where(np.isclose(frequency, 0.5) & (period == 2), 2.5, amplitude)
    return {
        "time": phase * GAIT.period,
        "phase": phase,
        "knee_angle": angle,
        "knee_angle_recorded": recorded,
        "knee_peaks": peak - np.tile([0.0, 6.0 if period == 2 else 0.0], 6),
        "spectrum_frequency": frequency,
        "spectrum_amplitude": amplitude,
        "walk": walk(k),
    }


def walk(k: float) -> Any:
    """Joints of a leg whose linkage follows a made-up course; hip and thigh are the recorded ones."""
    base = {name: parameter.value for name, parameter in PARAMETER_SETS["substitute_v1"].items()}
    g = complete(base, {}, {"stiffness": 1000 * k, "damping_ratio": 0.05})
    phase = np.arange(0, 401, 4) / SAMPLES
    eta = -0.02 - 0.55 * np.sin(np.pi * np.clip((phase % 1 - 0.5) / 0.45, 0, 1)) ** 2
    thigh = GAIT.series("thigh", phase)
    hip = (GAIT.belt_speed * GAIT.period * phase + GAIT.series("hip_x", phase), GAIT.series("hip_y", phase))
    ad, shank = linkage.relative_angles(g, eta)
    places = linkage.points(g, hip, thigh, thigh + shank, thigh + ad, thigh + eta, thigh + shank)
    return np.stack([np.stack(places[name], axis=1) for name in linkage.JOINTS], axis=1)


def made_up(
    *,
    scenarios: tuple[str, ...] = ("nominal",),
    array_names: frozenset[str] | None = None,
    clearance: float | None = None,
) -> MadeUp:
    X = np.array([(k, c) for c in RATIOS for k in STIFFNESS])
    critical = np.array([CRITICAL[c] for c in X[:, 1].tolist()])
    # The second scenario stands for a raised hip: it has period T everywhere.
    period = np.stack([np.where(X[:, 0] < critical, 2.0, 1.0)] + [np.ones(len(X))] * (len(scenarios) - 1), axis=1)
    status = np.full(period.shape, "ok", dtype="U12")
    status[0, 0] = "diverged"
    figures = {
        "rho": 0.99 - 0.01 * abs(X[:, :1] - 14.0) - 0.1 * X[:, 1:] + 0 * period,
        "peak_flexion": 70.0 - 1.2 * (X[:, :1] - 12.0) + 0 * period,
        "peak_error": 1.4 - 1.2 * (X[:, :1] - 12.0) + 0 * period,
        "period_n": period,
        "subharmonic": np.where(period == 2, 2.5, 0.0),
        "subharmonic_half": np.where(period == 2, 2.5, 0.0),
        "subharmonic_third": 0 * period,
    }
    if clearance is not None:
        figures["toe_clearance"] = clearance + 0 * period
    figures = {name: np.where(status == "ok", values, np.nan) for name, values in figures.items()}
    study = StudyDefinition(
        name="knee",
        title="Made-up knee",
        model=Use(plugin(FourBarKnee)),
        space=(
            DesignVariable("stiffness", "real", low=12.0, high=24.0, unit="kN/m", scale="log", factor=1000.0),
            DesignVariable("damping_ratio", "real", low=0.03, high=0.1, unit="s"),
        ),
        objectives=(minimize("mismatch", "1 - rho"), minimize("flexion", "abs(peak_error)", "deg")),
        stages=(Stage("sweep", Use(find("solver", "random"), {"samples": 8})),),
        scenarios=tuple(Scenario(name) for name in scenarios),
    )
    problem = Problem.from_study(study)
    table = {"outcomes": problem.judge(X, figures, status != "ok"), "status": status}
    more = {} if array_names is None else {"array_names": array_names}
    return MadeUp(Path("knee.study"), study, problem, table, **more)
