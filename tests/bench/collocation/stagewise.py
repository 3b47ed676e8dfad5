"""The cart-pole with Radau points as a program stage by stage, the form that Fatrop needs.

A stage has the state at its node as x and all that is inside its interval as u: the states at the collocation points,
of which the last is handed to the next stage, and the controls. Variables are scaled by their ranges.
"""

from typing import Any

import casadi as ca
import numpy as np

from designopt.collocation import radau
from designopt.dynamics.system import System

SCALE = np.array([2.0, np.pi, 4.0, 8.0])
FORCE, DURATION = 20.0, 2.0
END = np.array([1.0, np.pi, 0.0, 0.0]) / SCALE


class Stagewise:
    """The program of `system` on so many `intervals`, with Radau points of a `degree`."""

    def __init__(self, system: System, intervals: int, degree: int = 3) -> None:
        scheme = radau(degree)
        A, weights, h = scheme.Q[:, 1:], scheme.weights[1:], DURATION / intervals
        x, u = ca.SX.sym("x", 4), ca.SX.sym("u")
        rates = ca.Function("rates", [x, u], [system.rhs(SCALE * x, FORCE * u, [], [], [], 0.0) / SCALE])
        nodes = [ca.SX.sym(f"x{k}", 4) for k in range(intervals + 1)]
        variables, rows, guess, cost = [], [], [], 0.0
        for k in range(intervals):
            inner, force = ca.SX.sym(f"inner{k}", 4, degree), ca.SX.sym(f"u{k}", degree)
            slopes = ca.horzcat(*(rates(inner[:, j], force[j]) for j in range(degree)))
            variables += [nodes[k], ca.vec(inner), force]
            guess += [END * k / intervals, *(END * (k + c) / intervals for c in scheme.points[1:]), np.zeros(degree)]
            # what leads to the next stage comes first
            rows += [nodes[k + 1] - inner[:, -1], *([nodes[0]] if k == 0 else [])]
            rows.append(ca.vec(inner - ca.repmat(nodes[k], 1, degree) - h * slopes @ A.T))
            cost += h * ca.dot(weights, force**2)
        variables.append(nodes[-1])
        guess.append(END)
        rows.append(nodes[-1] - END)
        self.nlp = {"x": ca.vertcat(*variables), "f": cost, "g": ca.vertcat(*rows)}
        inside = 5 * degree
        limit = np.full(4 + inside, np.inf)
        limit[0 : 4 * (degree + 1) : 4] = 1.0  # the track
        limit[4 * (degree + 1) :] = 1.0  # the force
        limits = np.concatenate([np.tile(limit, intervals), limit[:4]])
        self.arguments = {"x0": np.concatenate(guess), "lbx": -limits, "ubx": limits, "lbg": 0.0, "ubg": 0.0}
        count = int(self.nlp["g"].numel())
        self.structure: dict[str, Any] = {
            "structure_detection": "manual",
            "N": intervals,
            "nx": [4] * (intervals + 1),
            "nu": [inside] * intervals + [0],
            "ng": [4 * degree + 4] + [4 * degree] * (intervals - 1) + [4],
            "equality": [True] * count,
        }

    def fatrop(self) -> Any:
        """Fatrop for it."""
        quiet = {"print_time": False, "fatrop": {"print_level": 0, "tol": 1e-8}}
        return ca.nlpsol("stagewise", "fatrop", self.nlp, {**self.structure, **quiet})
