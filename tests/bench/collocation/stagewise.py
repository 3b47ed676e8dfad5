"""A problem of one phase with Radau points as a program stage by stage, the form that Fatrop needs.

A stage has the state at its node as x and all that is inside its interval as u: the states at the collocation points,
of which the last is handed to the next stage, and the controls. A free duration and parameters are states that do not
change. Variables are divided by their sizes in a solution, the cost by its optimum.
"""

from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np

from designopt.collocation import Solution, Symbols, TrajectoryProblem, radau
from designopt.collocation.solve.guess.initial_point import default_trajectory, middle
from designopt.collocation.statement.stated_values import ends


class Stagewise:
    """The program of a problem as `ByHand` takes it, on so many `intervals`, with Radau points of a `degree`."""

    def __init__(
        self, problem: TrajectoryProblem, intervals: int, cost: str, solution: Solution, degree: int = 3
    ) -> None:
        [phase] = problem.phases
        system = phase.system
        [solved] = solution.phases.values()
        nx, nu = len(system.states), len(system.controls)
        scheme = radau(degree)
        A, weights, points = scheme.Q[:, 1:], scheme.weights[1:], scheme.points[1:]
        low, high = ends(phase.tf)
        constant = ([(low, high)] if low < high else []) + [
            ends(problem.parameters.get(v.name, (v.low, v.high))) for v in system.parameters
        ]
        sizes = [float(np.nanmax(np.abs(solved.values[v.name]))) or 1.0 for v in (*system.states, *system.controls)]
        constants = ([solved.tf] if low < high else []) + [solution.parameters[v.name] for v in system.parameters]
        states = np.array(sizes[:nx] + [abs(value) or 1.0 for value in constants])
        controls, wide = np.array(sizes[nx:]), nx + len(constant)
        names = [v.name for v in (*system.states, *system.controls, *system.parameters)]

        def at(x: Any, u: Any, time: Any) -> tuple[Any, Any, Any]:
            """Rates of all states (not scaled), named symbols and the duration at a point."""
            values, inputs = ca.DM(states) * x, ca.DM(controls) * u
            tf = values[nx] if low < high else low
            p = ca.vertcat(*ca.vertsplit(values)[wide - len(system.parameters) :])
            rates = system.rhs(values[:nx], inputs, [], p, [], time * tf)
            named = dict(zip(names, ca.vertsplit(ca.vertcat(values[:nx], inputs, p)), strict=True))
            return rates, Symbols(named, time * tf), tf

        boxes = np.array([phase.bounds.get(v.name, (v.low, v.high)) for v in (*system.states, *system.controls)])
        box = np.vstack([boxes[:nx], np.reshape(constant, (-1, 2))]) / states[:, None]
        inputs = boxes[nx:] / controls[:, None]
        first = default_trajectory(phase)
        starts = [problem.guess.get(v.name, middle(ends(problem.parameters.get(v.name, (v.low, v.high)))))
                  for v in system.parameters]  # fmt: skip
        starts = ([first.tf] if low < high else []) + starts

        def guess(fraction: float) -> tuple[Any, Any]:
            values = first.at(np.array([fraction]))
            x = [float(values[v.name][0]) for v in system.states] + starts
            return np.array(x) / states, np.array([float(values[v.name][0]) for v in system.controls]) / controls

        x, u, time = ca.SX.sym("x", wide), ca.SX.sym("u", nu), ca.SX.sym("time")
        rates, symbols, tf = at(x, u, time)
        path = [constraint.value(symbols) for constraint in phase.path.values()]
        integrand = next(iter(phase.integrals.values())).value(symbols) if cost == "integral" else ca.SX(0.0)
        point = ca.Function("point", [x, u, time], [tf * rates / states[:nx], tf * integrand, ca.vertcat(*path)])

        nodes = [ca.SX.sym(f"x{k}", wide) for k in range(intervals + 1)]
        variables: list[Any] = []
        rows: list[Any] = []
        equal: list[bool] = []
        begin: list[Any] = []
        lower: list[Any] = []
        upper: list[Any] = []
        counts = []
        objective: Any = 0.0

        def boundary(node: Any, values: Any) -> Any:
            fixed = [(j, ends(values[v.name])) for j, v in enumerate(system.states) if v.name in values]
            return ca.vertcat(*(node[j] - a / states[j] for j, (a, b) in fixed if a == b))

        def limits(values: Any, lows: Any, highs: Any) -> None:
            for j, v in enumerate(system.states):
                if v.name in values:
                    a, b = ends(values[v.name])
                    if a < b:
                        lows[j], highs[j] = max(lows[j], a / states[j]), min(highs[j], b / states[j])
                    else:
                        lows[j], highs[j] = -np.inf, np.inf

        for k in range(intervals):
            inner, control = ca.SX.sym(f"inner{k}", nx, degree), ca.SX.sym(f"u{k}", nu, degree)
            constants_here = ca.vertcat(*ca.vertsplit(nodes[k])[nx:])
            values = [
                point(ca.vertcat(inner[:, j], constants_here), control[:, j], (k + points[j]) / intervals)
                for j in range(degree)
            ]
            slopes = ca.horzcat(*(value[0] for value in values))
            variables += [nodes[k], ca.vec(inner), ca.vec(control)]
            lows, highs = box[:, 0].copy(), box[:, 1].copy()
            if k == 0:
                limits(phase.initial, lows, highs)
            lower += [lows, *[box[:nx, 0]] * degree, *[inputs[:, 0]] * degree]
            upper += [highs, *[box[:nx, 1]] * degree, *[inputs[:, 1]] * degree]
            inside = [guess((k + c) / intervals) for c in points]
            begin += [guess(k / intervals)[0], *(a[:nx] for a, _ in inside), *(b for _, b in inside)]
            # what leads to the next stage comes first
            rows.append(nodes[k + 1] - ca.vertcat(inner[:, -1], constants_here))
            stage_rows = [boundary(nodes[0], phase.initial)] if k == 0 else []
            stage_rows.append(ca.vec(inner - ca.repmat(nodes[k][:nx], 1, degree) - slopes @ A.T / intervals))
            equalities = sum(row.numel() for row in stage_rows)
            stage_rows += [value[2] for value in values]
            counts.append(sum(row.numel() for row in stage_rows))
            rows += stage_rows
            equal += [True] * (wide + equalities) + [False] * (counts[-1] - equalities)
            objective += sum(w * value[1] for w, value in zip(weights, values, strict=True)) / intervals
        last = boundary(nodes[-1], phase.final)
        variables.append(nodes[-1])
        begin.append(guess(1.0)[0])
        lows, highs = box[:, 0].copy(), box[:, 1].copy()
        limits(phase.final, lows, highs)
        lower.append(lows)
        upper.append(highs)
        rows.append(last)
        counts.append(last.numel())
        equal += [True] * last.numel()
        if cost != "integral":
            _, end, tf = at(nodes[-1], ca.SX.nan(nu, 1), 1.0)
            objective = tf if cost == "duration" else problem.cost(SimpleNamespace(final=end))
        self.size = abs(solution.objective)
        self.nlp = {"x": ca.vertcat(*variables), "f": objective / self.size, "g": ca.vertcat(*rows)}
        self.arguments = {
            "x0": np.clip(np.concatenate(begin), np.concatenate(lower), np.concatenate(upper)),
            "lbx": np.concatenate(lower),
            "ubx": np.concatenate(upper),
            "lbg": 0.0,
            "ubg": np.where(equal, 0.0, np.inf),  # path constraints are kept from zero on
        }
        self.structure: dict[str, Any] = {
            "structure_detection": "manual",
            "N": intervals,
            "nx": [wide] * (intervals + 1),
            "nu": [(nx + nu) * degree] * intervals + [0],
            "ng": counts,
            "equality": equal,
        }

    def solver(self) -> Any:
        """Fatrop for it."""
        quiet = {"print_time": False, "fatrop": {"print_level": 0, "tol": 1e-8, "max_iter": 1000}}
        return ca.nlpsol("stagewise", "fatrop", self.nlp, {"expand": True, **self.structure, **quiet})
