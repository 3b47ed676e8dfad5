"""Named signals of a motion: coordinates, efforts, powers, forces of joints and cuts, paths, clearances, angles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.dynamics.rows import Rows
from designopt.lazy import casadi as ca
from designopt_mechanics.contacts import contact_forces
from designopt_mechanics.mechanism.forces import LoopForces, MotionRows, SolvedForces
from designopt_mechanics.mechanism.measures import measures
from designopt_mechanics.springs import tensions
from designopt_mechanics.surfaces.over import WrapContact
from designopt_mechanics.wires import Wire, WirePath, wire_path

#: Reductions of a signal over a motion, with the unit's factor in time.
TAKES = {
    "peak": "largest magnitude",
    "max": "largest value",
    "min": "smallest value",
    "mean": "mean over time",
    "rms": "root mean square over time",
    "integral": "integral over time",
}


@dataclass(frozen=True)
class MechanismSignal:
    """One number over a motion: its name, unit and meaning."""

    name: str
    unit: str
    meaning: str


class MotionSignals:
    """All signals of a mechanism under `forces`.

    Names are those of the coordinates, ``<coordinate>_speed``, ``effort_<coordinate>`` and ``power_<coordinate>`` of
    drives, ``force_<frame>`` and ``moment_<frame>`` in the joint before a frame (magnitudes), ``cut_<meeting>``,
    ``tension_<spring>``, ``press_<spring>_<surface>``, ``contact_<contact>``, ``length_<wire>``,
    ``wrap_<wire>_<surface>``, ``path_<point>_x`` (y, z), ``clearance_<name>`` and
    ``angle_<name>``.
    """

    def __init__(self, forces: LoopForces) -> None:
        self.forces = forces
        self.efforts = ca.SX.sym("effort", len(forces.driven))
        parts = [*self._coordinates(), *self._drives(), *self._joints(), *self._elements(), *self._measures()]
        self.signals = tuple(signal for signal, _ in parts)
        self.expressions = [expression for _, expression in parts]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in their order."""
        return tuple(s.name for s in self.signals)

    def rows(self, motion: MotionRows, joint_forces: SolvedForces, p: Sequence[float]) -> Floats:
        """(n, s) the signals of a motion."""
        arrays = (motion.z, motion.dz, motion.ddz, motion.time, p, joint_forces.efforts, joint_forces.cuts)
        return self._rows(*arrays)[0].reshape(len(motion.time), -1)

    def slopes(
        self, motion: MotionRows, joint_forces: SolvedForces, p: Sequence[float], coordinate_slopes: Floats | None
    ) -> tuple[Floats, Floats]:
        """Derivatives by the parameters: of the signals (n, s, np), and of coordinates, rates, accelerations and
        multipliers of the loops (n, 3 m + r, np).

        `coordinate_slopes` (n, 3 f, np) are those of the independent coordinates, their rates and accelerations; None
        at rest, where a posture follows from the balance.
        """
        if joint_forces.cuts.shape[1] and self.forces.redundant == "least_squares" and self.forces.is_redundant:
            raise ValueError("least-squares forces of redundant loops have no derivatives")
        n, q = len(motion.time), len(p)
        multipliers = self.multipliers(motion, joint_forces, p)
        arrays = (motion.z, motion.dz, motion.ddz, motion.time, p, joint_forces.efforts, joint_forces.cuts, multipliers)
        R_y, R_p, s_y, s_p = self._slopes(*arrays)
        k = R_p.reshape(n, -1, q).shape[1] if q else 0
        R_y, R_p = R_y.reshape(n, k, -1), R_p.reshape(n, k, q)
        right = R_p.copy()
        if coordinate_slopes is None:
            free = len(self.forces.loops.independent)
            R_y, right = R_y[:, free:], right[:, free:]
        else:
            right[:, : coordinate_slopes.shape[1]] -= coordinate_slopes
        y_p = -np.linalg.pinv(R_y) @ right
        result: Floats = s_p.reshape(n, -1, q) + s_y.reshape(n, len(self.signals), -1) @ y_p
        return result, y_p[:, : 3 * motion.z.shape[1] + multipliers.shape[1]]

    # --------------------------------------------------------------------------------------------------- expressions

    @cached_property
    def arguments(self) -> list[Any]:
        """Coordinates, rates, accelerations, time, parameters, efforts and cuts: what `expressions` depend on."""
        f = self.forces
        return [f.state.z, f.state.dz, f.state.ddz, f.time, f.p, self.efforts, f.cut_forces]

    @cached_property
    def _rows(self) -> Rows:
        values = ca.vertcat(*self.expressions)
        return Rows(ca.Function("signals", self.arguments, [ca.cse(ca.densify(values))]))

    @cached_property
    def statics(self) -> tuple[Any, Any, Any]:
        """Multipliers (r, 1) of the loops' equations, the drives' columns E and the balance h - J' mu - E u."""
        f = self.forces
        J = f.loops.jacobian if len(f.loops.dependent) else ca.SX(0, f.state.z.numel())
        E = ca.SX.eye(f.state.z.numel())[:, [f.loops.mechanism.tree.names.index(n) for n in f.driven]]
        mu = ca.SX.sym("mu", J.shape[0])
        return mu, ca.horzcat(J.T, E), f.generalised_forces - J.T @ mu - E @ self.efforts

    def multipliers(self, motion: MotionRows, joint_forces: SolvedForces, p: Sequence[float]) -> Floats:
        """(n, r) of the loops' equations."""
        r, n = self.statics[0].numel(), len(motion.time)
        if not r:
            return np.zeros((n, 0))
        J = self.forces.loops.slopes(motion.z, p)
        (generalised_forces,) = self.forces._generalised_force_rows(motion.z, motion.dz, motion.ddz, motion.time, p)
        generalised_forces = generalised_forces.reshape(n, -1)
        columns = [self.forces.loops.mechanism.tree.names.index(name) for name in self.forces.driven]
        generalised_forces[:, columns] -= joint_forces.efforts
        result: Floats = (np.linalg.pinv(np.swapaxes(J, 1, 2)) @ generalised_forces[..., None])[..., 0]
        return result

    @cached_property
    def equations(self) -> tuple[Any, Any]:
        """The equations R = 0 that a motion and its forces fulfil, but for the values of the independent coordinates,
        their rates and accelerations, which are its first rows; and their unknowns Y."""
        f, loops = self.forces, self.forces.loops
        state = f.state
        mu, _, statics = self.statics
        free = [int(i) for i in loops.independent]
        R = [state.z[free], state.dz[free], state.ddz[free]]
        if len(loops.dependent):
            gap, curvature = loops.equations()
            R += [gap, loops.jacobian @ state.dz, loops.jacobian @ state.ddz + curvature]
        R.append(statics)
        if f.labels:
            A, b = f.balance
            R.append(A @ f.cut_forces - b)
        return ca.vertcat(*R), ca.vertcat(state.z, state.dz, state.ddz, mu, self.efforts, f.cut_forces)

    @cached_property
    def _slopes(self) -> Rows:
        """Derivatives of the equations and of the signals by the unknowns and the parameters."""
        (equations, Y), values = self.equations, ca.vertcat(*self.expressions)
        results = [ca.densify(ca.jacobian(e, v)) for e in (equations, values) for v in (Y, self.forces.p)]
        return Rows(ca.Function("slopes", [*self.arguments, self.statics[0]], ca.cse(results)))

    # -------------------------------------------------------------------------------------------------------- signals

    def _coordinates(self) -> list[tuple[MechanismSignal, Any]]:
        state, parts = self.forces.state, []
        for i, c in enumerate(state.tree.coordinates):
            parts.append((MechanismSignal(c.name, c.unit, "of the coordinate"), state.z[i]))
            parts.append(
                (MechanismSignal(f"{c.name}_speed", f"{c.unit}/s", "of the rate of the coordinate"), state.dz[i])
            )
        return parts

    def _drives(self) -> list[tuple[MechanismSignal, Any]]:
        state, mechanism, parts = self.forces.state, self.forces.loops.mechanism, []
        drives = mechanism.driven(state)
        for name in dict.fromkeys((*self.forces.driven, *mechanism.drives)):
            at = state.tree.names.index(name)
            unit = state.tree.coordinates[at].effort_unit
            is_driven = name in self.forces.driven
            effort = self.efforts[self.forces.driven.index(name)] if is_driven else drives[at]
            parts.append((MechanismSignal(f"effort_{name}", unit, f"of the drive of {name}"), effort))
            parts.append((MechanismSignal(f"power_{name}", "W", f"of the drive of {name}"), effort * state.dz[at]))
        return parts

    def _joints(self) -> list[tuple[MechanismSignal, Any]]:
        parts = []
        for name, (force, moment) in self.forces.wrenches.items():
            parts.append((MechanismSignal(f"force_{name}", "N", f"in the joint before {name}"), _size(force)))
            parts.append((MechanismSignal(f"moment_{name}", "N m", f"in the joint before {name}"), _size(moment)))
        for name, force in self.forces.cut_vectors.items():
            parts.append((MechanismSignal(f"cut_{name}", "N", f"between the points that meet in {name}"), _size(force)))
        return parts

    def _elements(self) -> list[tuple[MechanismSignal, Any]]:
        mechanism, state, parts = self.forces.loops.mechanism, self.forces.state, []
        for spring, tension in zip(mechanism.springs, ca.vertsplit(tensions(state, mechanism.springs)), strict=True):
            parts.append((MechanismSignal(f"tension_{spring.wire.name}", "N", "of the spring"), tension))
            for name, touch in _named_touches(spring.wire, wire_path(state, spring.wire)):
                press = tension * _size(touch.pulls[0] + touch.pulls[1])
                parts.append((MechanismSignal(f"press_{name}", "N", "of the spring on the surface"), press))
        forces = contact_forces(state, mechanism.contacts)
        for i, contact in enumerate(mechanism.contacts):
            parts.append((MechanismSignal(f"contact_{contact.name}", "N", "of the contact"), _size(forces[:, i])))
        for wire in mechanism.wires:
            path = wire_path(state, wire)
            parts.append((MechanismSignal(f"length_{wire.name}", "m", "of the wire"), path.length))
            for name, touch in _named_touches(wire, path):
                parts.append((MechanismSignal(f"wrap_{name}", "rad", "of the wire's arc on the surface"), touch.angle))
        return parts

    def _measures(self) -> list[tuple[MechanismSignal, Any]]:
        by_name = measures(self.forces.loops.mechanism, self.forces.state)
        return [(MechanismSignal(n, m.unit, "of the posture"), m.expression) for n, m in by_name.items()]


def reduce_values(take: str, time: Floats, values: Floats) -> tuple[float, Floats]:
    """One reduction of `values` (n,), and its derivative by them (n,)."""
    weights = _weights(time)
    duration = float(weights.sum()) or 1.0
    if take in ("peak", "max", "min"):
        at = int({"peak": np.argmax(np.abs(values)), "max": np.argmax(values), "min": np.argmin(values)}[take])
        slope = np.zeros_like(values)
        slope[at] = np.sign(values[at]) if take == "peak" else 1.0
        return float(values @ slope), slope
    if take == "rms":
        size = float(np.sqrt(weights @ values**2 / duration))
        return size, weights * values / (duration * size) if size else np.zeros_like(values)
    weights = weights if take == "integral" else weights / duration
    return float(weights @ values), weights


def unit_of(take: str, unit: str) -> str:
    """The unit of a reduction of a signal in `unit`."""
    return unit if take != "integral" else f"{unit} s" if unit else "s"


def _weights(time: Floats) -> Floats:
    """(n,) of the trapezoidal rule."""
    if len(time) < 2:
        return np.ones(len(time))
    steps = np.diff(time)
    return np.concatenate([[0.5 * steps[0]], 0.5 * (steps[1:] + steps[:-1]), [0.5 * steps[-1]]])


def _named_touches(wire: Wire, path: WirePath) -> list[tuple[str, WrapContact]]:
    """The contacts of a wire with surfaces, named ``<wire>_<surface>``; with a number where it touches a surface
    again."""
    surfaces = [touch.over.surface.name for touch in path.touches]
    times = [surfaces[: i + 1].count(name) for i, name in enumerate(surfaces)]
    names = (f"{wire.name}_{name}{f'_{k}' if k > 1 else ''}" for name, k in zip(surfaces, times, strict=True))
    return list(zip(names, path.touches, strict=True))


def _size(vector: Any) -> Any:
    """Length of a vector, with a derivative where it is zero."""
    return ca.sqrt(ca.sumsqr(vector) + 1e-24)
