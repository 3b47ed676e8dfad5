"""The model ``shoulder_rhythm``: effect of a simplified rhythm on torques and motion."""

from __future__ import annotations

import math
from collections.abc import Set
from functools import lru_cache
from typing import Annotated, Any, TypedDict

import numpy as np

from designopt.arrays import Floats
from designopt.dynamics.simulation.simulator import Simulator
from designopt.dynamics.simulation.trajectory import SimulationStatus
from designopt.dynamics.system import System, Variable
from designopt.lazy import casadi as ca
from designopt.plugin import Array, Diverged, filled, model
from designopt.plugin import Quantity as Q
from designopt_mechanics import scene
from designopt_mechanics.dynamics.recursion import inverse_dynamics
from designopt_mechanics.equations import equations_of
from designopt_mechanics.shoulder.chain import GRAVITY, Rhythm, shoulder
from designopt_mechanics.state import TreeState
from designopt_mechanics.tree import Point
from designopt_mechanics.tree_rows import TreeRows

_SAMPLES = 201
_ROTATION = math.radians(-30.0)


class Arm(TypedDict, total=False):
    """The motion, and the rhythm with which torques are computed."""

    rhythm: Annotated[Rhythm, Q("", "of the model that computes torques", default="simplified")]
    elevation_angle: Annotated[float, Q("rad", "constant during the motion", gt=-3.0, lt=3.0, default=math.pi / 2)]
    travel: Annotated[float, Q("rad", "of the plane of elevation", gt=0, lt=3.0, default=math.pi / 2)]


class Timing(TypedDict, total=False):
    """How fast, and how well it begins."""

    duration: Annotated[float, Q("s", "of the motion", gt=0, default=1.0)]
    initial_error: Annotated[float, Q("rad", "of the plane of elevation at the beginning", default=0.0)]


class RhythmOutputs(TypedDict):
    """Differences between the rhythm of the computing model and the original one."""

    plane_difference: Annotated[float, Q("", "RMS difference of the torque of the plane by the reference's range")]
    elevation_difference: Annotated[float, Q("", "the same of the torque of elevation")]
    plane_rms: Annotated[float, Q("N m", "RMS difference of the torque of the plane")]
    elevation_rms: Annotated[float, Q("N m", "RMS difference of the torque of elevation")]
    plane_peak: Annotated[float, Q("N m", "largest difference of the torque of the plane")]
    elevation_peak: Annotated[float, Q("N m", "largest difference of the torque of elevation")]
    plane_correlation: Annotated[float, Q("", "of Pearson; 0 where a torque does not change")]
    elevation_correlation: Annotated[float, Q("", "of Pearson; 0 where a torque does not change")]
    angle_error: Annotated[float, Q("rad", "largest of the controlled arm, whose true rhythm is the original one")]
    effort: Annotated[float, Q("N^2 m^2 s", "integral of the squared torques of the original arm")]


ARRAYS = {
    "time": Array(("time",), "s", "of the motion"),
    "torques": Array(("time", "coordinate"), "N m", "of the computing model, along the wanted motion"),
    "reference": Array(("time", "coordinate"), "N m", "of the original rhythm, along the wanted motion"),
    "errors": Array(("time", "coordinate"), "rad", "of the controlled arm"),
    "scene": Array(("time", "vertex", "axis"), "m", "drawing of the bones; lines end where a place is not a number"),
}


@model("shoulder_rhythm", version=2, arrays=ARRAYS)
class ShoulderRhythm:
    """Raised arm that swings from the frontal plane forwards, with clavicle and scapula following by a rhythm.

    Computed torque (Ehsani, Rostami and Parnianpour 2016, section on control) with gains of 100 1/s^2 and 20 1/s: the
    arm has the original rhythm of de Groot and Brand (2001), the torques are computed with the original, the simplified
    (by elevation alone) or the distributed one. The plane of elevation goes from 0 over `travel` on a quintic path,
    elevation and axial rotation (-30 degrees) are fixed. The paper's path and segments are not public: its table is not
    reproduced.
    """

    rtol: Annotated[float, Q("", "relative tolerance of the simulation", gt=0, le=1e-3)] = 1e-8

    def prepare(self) -> None:
        """Derive and compile the equations."""
        for rhythm in ("original", "simplified"):
            _simulator(rhythm, self.rtol)

    def evaluate(
        self, design: Arm, scenario: Timing, arrays: Set[str] = frozenset()
    ) -> tuple[RhythmOutputs, dict[str, Floats]]:
        """Compare torques along the motion, and control it. Raises `Diverged` if the simulation fails."""
        arm, timing = filled(Arm, design), filled(Timing, scenario)
        elevation, travel, duration = arm["elevation_angle"], arm["travel"], timing["duration"]
        time = np.linspace(0.0, duration, _SAMPLES)
        z, dz, ddz = _reference_motion(time, elevation, travel, duration)
        torques, reference = (_rows(r).inverse_dynamics(z, dz, ddz) for r in (arm["rhythm"], "original"))
        away = torques - reference
        spans = np.ptp(reference, axis=0)
        rms = np.sqrt((away**2).mean(axis=0))
        data = {"elevation": elevation, "travel": travel, "duration": duration}
        begin = [*z[0], *dz[0]]
        begin[0] += timing["initial_error"]
        run = _simulator(arm["rhythm"], self.rtol).run(begin, time, q=data)
        if run.status is not SimulationStatus.DONE:
            raise Diverged(run.message, reason=run.status.name.lower())
        errors = run.x[:, :3] - z
        outputs = RhythmOutputs(
            plane_difference=float(rms[0] / spans[0]),
            elevation_difference=float(rms[1] / spans[1]),
            plane_rms=float(rms[0]),
            elevation_rms=float(rms[1]),
            plane_peak=float(np.abs(away[:, 0]).max()),
            elevation_peak=float(np.abs(away[:, 1]).max()),
            plane_correlation=_correlation(torques[:, 0], reference[:, 0]),
            elevation_correlation=_correlation(torques[:, 1], reference[:, 1]),
            angle_error=float(np.abs(errors).max()),
            effort=float(np.trapezoid((reference**2).sum(axis=1), time)),
        )
        all_arrays = {"time": time, "torques": torques, "reference": reference, "errors": errors}
        if "scene" in arrays:
            all_arrays["scene"] = scene.drawing(_rows("original"), _BONES, run.x[:, :3])[
                :, :, [2, 0, 1]
            ]  # upwards is z
        return outputs, {name: all_arrays[name] for name in arrays}


_BONES = (
    (Point("ground"), Point("joint_1")),
    (Point("clavicle"), Point("joint_3")),
    (Point("scapula"), Point("joint_8")),
    (Point("joint_8"), Point("humerus"), Point("humerus", (0.0061, -0.2904, -0.0123))),
)  # fmt: skip


def _reference_motion(time: Any, elevation: Any, travel: Any, duration: Any) -> tuple[Any, Any, Any]:
    """Coordinates, rates and accelerations (n, 3) of the reference motion: the plane of elevation by a quintic, the
    others fixed.
    """
    s = time / duration
    path = 10.0 * s**3 - 15.0 * s**4 + 6.0 * s**5
    rate = (30.0 * s**2 - 60.0 * s**3 + 30.0 * s**4) / duration
    second = (60.0 * s - 180.0 * s**2 + 120.0 * s**3) / duration**2
    none = 0.0 * s
    z = np.column_stack([travel * path, elevation + none, _ROTATION + none])
    return z, np.column_stack([travel * rate, none, none]), np.column_stack([travel * second, none, none])


def _correlation(first: Floats, second: Floats) -> float:
    if not (np.ptp(first) > 1e-12 and np.ptp(second) > 1e-12):
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


@lru_cache(maxsize=3)
def _rows(rhythm: Rhythm) -> TreeRows:
    return TreeRows(shoulder(rhythm), GRAVITY)


@lru_cache(maxsize=12)
def _simulator(rhythm: Rhythm, rtol: float) -> Simulator:
    return Simulator(controlled_arm(rhythm), rtol=rtol, atol=1e-2 * rtol)


def controlled_arm(rhythm: Rhythm) -> System:
    """The arm of original rhythm under torques that are computed with `rhythm`; gains of 100 1/s^2 and 20 1/s."""
    state = TreeState.symbols(shoulder("original"))
    time, elevation, travel, duration = (ca.SX.sym(n) for n in ("t", "elevation", "travel", "duration"))
    s = time / duration
    plane = travel * (10.0 * s**3 - 15.0 * s**4 + 6.0 * s**5)
    reference = ca.vertcat(plane, elevation, _ROTATION)
    rate = ca.jtimes(reference, time, ca.SX(1.0))
    second = ca.jtimes(rate, time, ca.SX(1.0))
    accelerations = second - 20.0 * (state.dz - rate) - 100.0 * (state.z - reference)
    torques = inverse_dynamics(TreeState(shoulder(rhythm), state.z, state.dz, accelerations), GRAVITY)
    parts = equations_of(state, torques, GRAVITY)
    return System.from_expressions(
        f"shoulder_{rhythm}",
        states=parts.states,
        unknowns=parts.unknowns,
        data=[
            (Variable("elevation", "rad"), elevation),
            (Variable("travel", "rad"), travel),
            (Variable("duration", "s"), duration),
        ],
        time=time,
    )
