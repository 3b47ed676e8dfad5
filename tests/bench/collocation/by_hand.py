"""Hermite-Simpson in its separated form as a competent user of CasADi writes it: one symbol per point and loops.

The whole program is handed to IPOPT, whose derivatives CasADi forms; with expanded functions, the solver built once,
the same guess, tolerance and linear solver as designopt's, and the cost divided by its optimum.
"""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np

from designopt.collocation import SampledTrajectory, Symbols, TrajectoryProblem
from designopt.collocation.solve.guess.initial_point import default_trajectory, middle
from designopt.collocation.statement.stated_values import ends


class ByHand:
    """A problem of one phase of explicit equations, whose cost is its only integral, its duration or one of its end.

    With another `tolerance` than 1e-8 complementarity has it too and bounds are not relaxed, which would move the
    optimum by more.
    """

    def __init__(
        self, problem: TrajectoryProblem, intervals: int, cost: str, size: float, tolerance: float = 1e-8
    ) -> None:
        [phase] = problem.phases
        system = phase.system
        nx, nu, points = len(system.states), len(system.controls), 2 * intervals + 1
        X, U = ca.SX.sym("X", nx, points), ca.SX.sym("U", nu, points)
        low, high = ends(phase.tf)
        tf, p = ca.SX.sym("tf"), ca.SX.sym("p", len(system.parameters))
        h = tf / intervals
        times = [k * tf / (points - 1) for k in range(points)]
        rates = [system.rhs(X[:, k], U[:, k], [], p, [], times[k]) for k in range(points)]
        names = [v.name for v in (*system.states, *system.controls, *system.parameters)]
        named = [
            Symbols(dict(zip(names, ca.vertsplit(ca.vertcat(X[:, k], U[:, k], p)), strict=True)), times[k])
            for k in range(points)
        ]
        rows: list[Any] = []
        for k in range(0, points - 1, 2):
            a, m, b = rates[k], rates[k + 1], rates[k + 2]
            rows.append(X[:, k + 1] - 0.5 * (X[:, k] + X[:, k + 2]) - h / 8.0 * (a - b))
            rows.append(X[:, k + 2] - X[:, k] - h / 6.0 * (a + 4.0 * m + b))
        objective: Any = tf
        if cost == "integral":
            [integral] = phase.integrals.values()
            values = [integral.value(v) for v in named]
            weights = np.tile([2.0, 4.0], intervals + 1)[:points]
            weights[[0, -1]] = 1.0
            objective = h / 6.0 * sum(w * v for w, v in zip(weights, values, strict=True))
        elif cost == "final":
            objective = problem.cost(SimpleNamespace(final=named[-1]))
        defects = ca.vertcat(*rows).numel()
        rows += [constraint.value(v) for constraint in phase.path.values() for v in named]
        w = ca.vertcat(ca.vec(ca.vertcat(X, U)), tf, p)
        g = ca.vertcat(*rows)
        nlp = {"x": w, "f": objective / size, "g": g}
        ipopt = {"print_level": 0, "sb": "yes", "tol": tolerance, "mumps_permuting_scaling": 0}
        if tolerance != 1e-8:
            ipopt |= {"compl_inf_tol": tolerance, "bound_relax_factor": 0.0}
        self._solver = ca.nlpsol("by_hand", "ipopt", nlp, {"print_time": False, "expand": True, "ipopt": ipopt})
        self._size = size
        variables = (*system.states, *system.controls)
        boxes = np.array([phase.bounds.get(v.name, (v.low, v.high)) for v in variables])
        lower, upper = (np.repeat(boxes[:, [j]], points, axis=1) for j in (0, 1))
        for slot, boundary in ((0, phase.initial), (-1, phase.final)):
            for j, v in enumerate(system.states):
                if v.name in boundary:
                    lower[j, slot], upper[j, slot] = ends(boundary[v.name])
        first = default_trajectory(phase)
        guess = first.at(np.linspace(0.0, 1.0, points))
        self._names, self._box = [v.name for v in variables], (lower, upper)
        limits = [ends(problem.parameters.get(v.name, (v.low, v.high))) for v in system.parameters]
        self._first = {
            v.name: problem.guess.get(v.name, middle(box)) for v, box in zip(system.parameters, limits, strict=True)
        }
        self._arguments = {
            "x0": self._start(guess, first.tf, self._first),
            "lbx": [*lower.T.ravel(), low, *(box[0] for box in limits)],
            "ubx": [*upper.T.ravel(), high, *(box[1] for box in limits)],
            "lbg": 0.0,
            "ubg": np.where(np.arange(g.numel()) < defects, 0.0, np.inf),  # path constraints are kept from zero on
        }

    def _start(self, values: Mapping[str, Any], tf: float, parameters: Mapping[str, float]) -> list[float]:
        start = np.clip(np.array([values[name] for name in self._names]), *self._box)
        return [*start.T.ravel(), tf, *(parameters[name] for name in self._first)]

    def solve(self) -> float:
        """The optimum."""
        solution = self._solver(**self._arguments)
        assert self._solver.stats()["success"]
        return self._size * float(solution["f"])

    def objective(self) -> float | None:
        """The optimum; None for a failed solve."""
        solution = self._solver(**self._arguments)
        return self._size * float(solution["f"]) if self._solver.stats()["success"] else None

    @property
    def iterations(self) -> int:
        """Iterations of the last solve."""
        return int(self._solver.stats()["iter_count"])

    def solve_from(self, guess: SampledTrajectory, parameters: Mapping[str, float]) -> float | None:
        """The objective that is found from a guess; None for a failed solve."""
        values = guess.at(np.linspace(0.0, 1.0, self._box[0].shape[1]))
        solution = self._solver(**{**self._arguments, "x0": self._start(values, guess.tf, parameters)})
        return self._size * float(solution["f"]) if self._solver.stats()["success"] else None
