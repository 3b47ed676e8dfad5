"""The task `equilibrium`: a posture at rest, whether it is stable, its stiffness, and the load at which it buckles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.lazy import casadi as ca
from designopt.plugin import Array, Declaration, Diverged, InvalidSetting, Quantity
from designopt.study.language.findings import nearest_or_all
from designopt_mechanics.mechanism.forces import LoopForces, MotionRows, RedundantLoop, SolvedForces
from designopt_mechanics.mechanism.loops import CannotClose, LoopSolver
from designopt_mechanics.mechanism.mechanism import Mechanism, MechanismParameter, PointLoad, ScopeValue, value_in
from designopt_mechanics.mechanism.scene import scene_of
from designopt_mechanics.mechanism.signals import MotionSignals
from designopt_mechanics.tasks.drives import check_drives, check_initial, with_drives
from designopt_mechanics.tasks.limits import value_notes
from designopt_mechanics.tasks.simulation import initial_state
from designopt_mechanics.tasks.task import TaskSettings, by_name, differences, refuse_obstacles, refuse_redundant

_STEPS = 200
#: Residual below which a posture is at rest, relative to the forces that act and to the stiffness times 1 rad or 1 m.
_AT_REST = 1e-12
#: Longest step (rad, m).
_LONGEST = 0.2
#: Load factor up to which buckling is sought, and its relative accuracy.
_LARGEST_FACTOR, _ACCURACY = 1e6, 1e-9
#: Step of the differences of the buckling factor, relative to the parameter: their error is that of the factor.
_SHARE = 5e-3
_FACTOR = "buckling_load_factor_"
#: Condition of the loops beyond which the independent coordinates hardly lead the mechanism.
_NEAR_DEAD_CENTRE = 1e3
#: Choices of leading coordinates in one search.
_LEADERS = 4


class NoRest(ValueError):
    """No posture at rest was reached."""


@dataclass(frozen=True, eq=False)
class RestPosture:
    """A posture `z` (m,) at rest with its `stiffness` (f, f) by the independent coordinates."""

    z: Floats
    stiffness: Floats

    @property
    def smallest(self) -> float:
        """The smallest eigenvalue of the symmetric part of the stiffness, infinite of a structure without freedom."""
        return float(np.linalg.eigvalsh(0.5 * (self.stiffness + self.stiffness.T)).min(initial=np.inf))


class EquilibriumTask:
    """The posture at rest near the `initial` one under weight, springs, loads, laws and drives at time 0.

    The search descends in the potential, so that it leaves unstable postures unless it starts in one. `buckling` names
    loads that grow together from 0; the critical factor is that at which the posture loses its stiffness.
    """

    def __init__(self, settings: TaskSettings) -> None:
        self.settings = settings

    def check(self) -> Iterator[InvalidSetting]:
        """Mistakes in drives, start and loads."""
        mechanism = self.settings.mechanism
        mistakes = [*check_drives(mechanism, self.settings.drives), *check_initial(mechanism, self.settings.initial)]
        loads = [load.name for load in mechanism.loads]
        for name in self.settings.buckling:
            if name not in loads:
                hint = nearest_or_all(name, loads)
                mistakes.append(InvalidSetting("buckling", f"the mechanism has no load '{name}'{hint}"))
        if self.settings.buckling and not len(self.settings.loops.independent):
            mistakes.append(InvalidSetting("buckling", "the mechanism has no freedom: its rigid bodies cannot buckle"))
        yield from mistakes
        if mistakes:
            return
        outputs = self._every_output
        for name in self.settings.outputs:
            if name not in outputs:
                yield InvalidSetting("outputs", f"there is no output '{name}'{nearest_or_all(name, outputs)}")
        yield from refuse_redundant(self.settings)

    @cached_property
    def loops(self) -> LoopSolver:
        """The loops of the mechanism; with `buckling` its loads have a factor, the last parameter."""
        mechanism = with_drives(self.settings.mechanism, self.settings.drives)
        if self.settings.buckling:
            mechanism = _with_factor(mechanism, self.settings.buckling)
        return self.settings.loops if mechanism is self.settings.mechanism else LoopSolver(mechanism)

    @cached_property
    def signals(self) -> MotionSignals:
        """Forces and measures of the posture."""
        return MotionSignals(LoopForces(self.loops, (), self.settings.redundant))

    @cached_property
    def _every_output(self) -> dict[str, Quantity]:
        tree = self.loops.mechanism.tree
        outputs = {
            s.name: Quantity(s.unit, s.meaning)
            for s in self.signals.signals
            if not s.name.startswith("power_") and not s.name.endswith("_speed")
        }
        outputs["stable"] = Quantity("", "1 where every small displacement is resisted, else 0")
        kinds = {tree.coordinates[i].unit for i in self.loops.independent}
        smallest = {"rad": "N m/rad", "m": "N/m"}.get(kinds.pop(), "") if len(kinds) == 1 else ""
        if len(self.loops.independent):
            meaning = "smallest eigenvalue of the stiffness by the independent coordinates"
            outputs["stiffness_min"] = Quantity(smallest, meaning)
        for i in self.loops.independent:
            c = tree.coordinates[i]
            unit = c.effort_unit if c.unit == "1" else f"{c.effort_unit}/{c.unit}"
            outputs[f"stiffness_{c.name}"] = Quantity(unit, "effort per displacement, other independent ones fixed")
        if self.settings.buckling:
            outputs["buckling_factor"] = Quantity("", "factor of the loads at which the posture loses its stiffness")
        return outputs

    def notes(self, numbers: Mapping[str, float]) -> Iterator[str]:
        """Notes where the initial posture passes limits of the file."""
        yield from value_notes(self.settings.mechanism, "initial", self.settings.initial)

    def declares(self) -> Declaration:
        """Outputs, and the scene."""
        outputs = {
            n: q for n, q in self._every_output.items() if not self.settings.outputs or n in self.settings.outputs
        }
        arrays = {
            "time": Array(("time",), "s", "0 of the start, 1 of the posture at rest"),
            "scene": Array(("time", "vertex", "axis"), "m", "start and rest; lines end where a place is not a number"),
        }
        return Declaration(outputs=outputs, arrays=arrays)

    def evaluate(
        self, numbers: Mapping[str, float], scenario: Mapping[str, Any], arrays: Set[str]
    ) -> tuple[dict[str, float], dict[str, Floats]]:
        """Find the posture. Raises `Diverged` if there is none near, or the loops do not close."""
        loops, p = self.loops, self.loops.mechanism.column(numbers)
        start, posture = self._solution(p, scenario)
        factor = self._factor(start, p) if self.settings.buckling else 0.0
        motion, joint_forces = self._motion_at_rest(posture, p)
        values = self.signals.rows(motion, joint_forces, p)[0]
        results = dict(zip(self.signals.names, (float(v) for v in values), strict=True))
        results |= {
            "stable": float(posture.smallest > 0.0),
            "stiffness_min": posture.smallest,
            "buckling_factor": factor,
        }
        for k, i in enumerate(loops.independent):
            results[f"stiffness_{loops.mechanism.tree.names[i]}"] = float(posture.stiffness[k, k])
        every: dict[str, Floats] = {"time": np.array([0.0, 1.0])}
        if "scene" in arrays:
            every["scene"] = scene_of(loops.mechanism, np.stack([start, posture.z]), p)
        return {n: results[n] for n in self.declares().outputs}, {name: every[name] for name in arrays}

    def gradient(
        self, numbers: Mapping[str, float], scenario: Mapping[str, Any], names: Sequence[str]
    ) -> dict[str, dict[str, float]]:
        """Derivatives of all outputs by the parameters `names`: of the balance and the loops by implicit
        differentiation, of the buckling factor by differences of fourth order; none of least-squares forces."""
        forces, loops = self.signals.forces, self.loops
        if forces.redundant == "least_squares" and forces.is_redundant:
            return {}
        p = loops.mechanism.column(numbers)
        start, posture = self._solution(p, scenario)
        motion, joint_forces = self._motion_at_rest(posture, p)
        of_signals, of_motion = (part[0] for part in self.signals.slopes(motion, joint_forces, p, None))
        derivatives: dict[str, Floats] = dict(zip(self.signals.names, of_signals, strict=True))
        stiffness = self._stiffness_slopes(posture.z, p, of_motion)
        vector = np.linalg.eigh(0.5 * (posture.stiffness + posture.stiffness.T))[1][:, :1].ravel()
        if len(vector):
            derivatives["stiffness_min"] = np.einsum("i,kij,j->k", vector, stiffness, vector)
        derivatives["stable"] = np.zeros(len(p))
        for k, i in enumerate(loops.independent):
            derivatives[f"stiffness_{loops.mechanism.tree.names[i]}"] = stiffness[:, k, k]
        results = by_name(
            {n: d for n, d in derivatives.items() if n in self.declares().outputs}, loops.mechanism, names
        )
        if "buckling_factor" in self.declares().outputs:
            columns = {name: [q.name for q in loops.mechanism.parameters].index(name) for name in names}
            results["buckling_factor"] = {
                name: differences(lambda q: {"": self._factor(start, list(q))}, p, column, _SHARE)[""]
                for name, column in columns.items()
            }
        return results

    # ------------------------------------------------------------------------------------------------------- solution

    def _solution(self, p: Sequence[float], scenario: Mapping[str, Any]) -> tuple[Floats, RestPosture]:
        """The start and the posture at rest. Raises `Diverged`."""
        branch = str(scenario.get("branch", self.settings.branch))
        try:
            start = initial_state(self.loops, self.settings, p, branch)[: len(self.loops.mechanism.tree.names)]
            posture = self.rest_posture(start, p)
        except CannotClose as error:
            raise Diverged(str(error), reason="cannot_close") from None
        except NoRest as error:
            raise Diverged(str(error), reason="no_equilibrium") from None
        refuse_obstacles(self.loops, posture.z[None], p)
        return start, posture

    def _motion_at_rest(self, posture: RestPosture, p: Sequence[float]) -> tuple[MotionRows, SolvedForces]:
        """The posture as a motion of one row, and its forces. Raises `Diverged`."""
        zero = np.zeros((1, len(posture.z)))
        motion = MotionRows(np.zeros(1), posture.z[None], zero, zero)
        try:
            return motion, self.signals.forces.solve(motion, p)
        except RedundantLoop as error:
            raise Diverged(str(error), reason="redundant") from None

    def _factor(self, start: Floats, p: Sequence[float]) -> float:
        """The critical factor of the loads. Raises `Diverged`."""
        try:
            return self._buckling(start, p)
        except NoRest as error:
            raise Diverged(str(error), reason="no_equilibrium") from None

    def _stiffness_slopes(self, z: Floats, p: Sequence[float], slopes: Floats) -> Floats:
        """(np, f, f) derivatives of the reduced stiffness, from `slopes` of the posture and the multipliers."""
        m, d = len(z), self.loops.dependent
        T = self.signals.forces.tangent(z[None], np.asarray(p, dtype=np.float64))[0]
        by_z, by_mu = slopes[:m], slopes[3 * m :]
        h, J, _ = (np.asarray(r, dtype=np.float64) for r in self._statics(z, np.zeros(len(self.loops.labels)), p))
        mu = self._multipliers(h.ravel(), J)
        K = np.asarray(self._statics(z, mu, p)[2], dtype=np.float64)
        results = np.empty((len(p), T.shape[1], T.shape[1]))
        for k, unit in enumerate(np.eye(len(p))):
            dJ, dK = (np.asarray(r, dtype=np.float64) for r in self._along(z, mu, p, by_z[:, k], by_mu[:, k], unit))
            dT = np.zeros_like(T)
            if len(d):
                dT[d] = -np.linalg.solve(J[:, d], dJ @ T)
            results[k] = dT.T @ K @ T + T.T @ dK @ T + T.T @ K @ dT
        return results

    @cached_property
    def _along(self) -> Any:
        """(z, mu, p and a direction of each) -> derivatives of the Jacobian of the loops and of d(h - J' mu)/dz."""
        at = [ca.SX.sym(f"at{i}", self._statics.numel_in(i)) for i in range(3)]
        direction = [ca.SX.sym(f"along{i}", symbol.numel()) for i, symbol in enumerate(at)]
        _, *matrices = self._statics(*at)
        slopes = [ca.densify(ca.jtimes(e, ca.vertcat(*at), ca.vertcat(*direction))) for e in matrices]
        return ca.Function("along", [*at, *direction], ca.cse(slopes))

    def rest_posture(self, z: Floats, p: Sequence[float], *, descend: bool = True) -> RestPosture:
        """The posture at rest near the closed posture `z`. Raises `NoRest`.

        The steps are Newton's with the absolute values of the stiffness' eigenvalues (they `descend`), or plain. Where
        they end at a dead centre of the coordinates that lead, others lead on.
        """
        task = self
        for _ in range(_LEADERS):
            z, rests = task._search(z, p, descend=descend)
            if rests or task.loops.condition(z[None], p)[0] < _NEAR_DEAD_CENTRE:
                break
            names = self.loops.mechanism.tree.names
            leading = tuple(names[i] for i in task.loops.leading_at(z, p))
            mechanism = replace(self.settings.mechanism, independent=leading)
            task = EquilibriumTask(replace(self.settings, mechanism=mechanism, loops=LoopSolver(mechanism)))
        if not rests:
            raise NoRest(
                f"no posture at rest was reached in {_STEPS} steps from the start: drives and loads exceed what weight "
                "and springs can balance, or the start is far: give another one in 'initial'"
            )
        return RestPosture(z, self._reduction(z, p)[1])

    def _search(self, z: Floats, p: Sequence[float], *, descend: bool) -> tuple[Floats, bool]:
        """The posture where the search from `z` ends, and whether it is at rest."""
        for _ in range(_STEPS):
            force, stiffness, size = self._reduction(z, p)
            if not np.isfinite(force).all():
                break
            if np.abs(force).max(initial=0.0) <= _AT_REST * size:
                return z, True
            candidate = self._posture_after(z, p, force, _step(force, stiffness, descend=descend))
            if np.array_equal(candidate, z):
                break
            z = candidate
        return z, False

    def _posture_after(self, z: Floats, p: Sequence[float], force: Floats, step: Floats) -> Floats:
        """The posture after a step that does not increase the force, or the shortest tried."""
        free = self.loops.independent
        step = step * min(1.0, _LONGEST / max(float(np.abs(step).max()), 1e-300))
        best, smallest = z, np.inf
        for _ in range(8):
            row = self.loops.follow(z, (z[free] + step)[None], p)
            if row.is_closed[0]:
                size = float(np.linalg.norm(self._reduction(row.z[0], p)[0]))
                if size < smallest:
                    best, smallest = row.z[0], size
                if size <= 1.5 * float(np.linalg.norm(force)):
                    break
            step = 0.5 * step
        return best

    def _reduction(self, z: Floats, p: Sequence[float]) -> tuple[Floats, Floats, float]:
        """Force and stiffness by the independent coordinates, and the size of the forces that act.

        With multipliers mu that balance the dependent rows, the derivative of T' h is T' d(h - J' mu)/dz T exactly.
        """
        loops = self.loops
        column = np.asarray(p, dtype=np.float64)
        T = self.signals.forces.tangent(z[None], column)[0]
        h, J, _ = (np.asarray(r, dtype=np.float64) for r in self._statics(z, np.zeros(len(loops.labels)), column))
        h = h.ravel()
        mu = self._multipliers(h, J)
        K = np.asarray(self._statics(z, mu, column)[2], dtype=np.float64)
        size = float(max(np.abs(part).max(initial=0.0) for part in (h, J.T @ mu, K)))
        return T.T @ h, T.T @ K @ T, size

    def _multipliers(self, h: Floats, J: Floats) -> Floats:
        """The multipliers that balance the dependent rows of `h` (m,)."""
        d = self.loops.dependent
        return np.asarray(np.linalg.solve(J[:, d].T, h[d])) if len(d) else np.zeros(len(self.loops.labels))

    @cached_property
    def _statics(self) -> Any:
        """(z, mu, p) -> needed forces h at rest, Jacobian of the loops, and d(h - J' mu)/dz."""
        forces, loops = self.signals.forces, self.loops
        state = forces.state
        zero = ca.SX.zeros(state.z.numel())
        h = ca.substitute([forces.generalised_forces], [state.dz, state.ddz, forces.time], [zero, zero, ca.SX(0.0)])[0]
        mu = ca.SX.sym("mu", len(loops.labels))
        J = loops.jacobian if loops.labels else ca.SX(0, state.z.numel())
        K = ca.jacobian(h - J.T @ mu, state.z)
        return ca.Function("statics", [state.z, mu, forces.p], ca.cse([ca.densify(e) for e in (h, J, K)]))

    def _buckling(self, start: Floats, p: Sequence[float]) -> float:
        """The factor of the loads at which the smallest stiffness becomes zero; infinite if it does not."""

        def at(factor: float, z: Floats) -> RestPosture | None:
            try:
                return self.rest_posture(z, [*p[:-1], factor], descend=False)
            except NoRest:
                return None

        posture = at(0.0, start)
        if posture is None or posture.smallest <= 0.0:
            raise NoRest("without the loads of 'buckling' there is no stable posture")
        low, high = 0.0, 1e-3
        while True:
            ahead = at(high, posture.z)
            if ahead is None or ahead.smallest <= 0.0:
                break
            posture, low = ahead, high
            if high >= _LARGEST_FACTOR:
                return float("inf")
            high *= 1.25
        while high - low > _ACCURACY * high:
            middle = 0.5 * (low + high)
            ahead = at(middle, posture.z)
            if ahead is not None and ahead.smallest > 0.0:
                posture, low = ahead, middle
            else:
                high = middle
        return 0.5 * (low + high)


def _step(force: Floats, stiffness: Floats, *, descend: bool) -> Floats:
    if not descend:
        return -np.asarray(np.linalg.lstsq(stiffness, force, rcond=None)[0])
    values, vectors = np.linalg.eigh(0.5 * (stiffness + stiffness.T))
    sizes = np.maximum(np.abs(values), 1e-9 * max(float(np.abs(values).max()), 1e-9))
    return np.asarray(-vectors @ ((vectors.T @ force) / sizes))


def _with_factor(mechanism: Mechanism, names: Sequence[str]) -> Mechanism:
    """The mechanism with the loads `names` times a further parameter, of value 1."""
    factor = MechanismParameter(_FACTOR, "", 1.0)

    def product(value: ScopeValue) -> ScopeValue:
        return lambda scope: factor.symbol * value_in(scope, value)

    loads: list[PointLoad] = [
        replace(load, force=[product(v) for v in load.force], moment=[product(v) for v in load.moment])
        if load.name in names
        else load
        for load in mechanism.loads
    ]
    return replace(mechanism, loads=tuple(loads), parameters=(*mechanism.parameters, factor))
