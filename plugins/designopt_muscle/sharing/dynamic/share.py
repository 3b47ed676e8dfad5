"""Share the moments of a motion with activation and tendon dynamics, over all its frames at once.

States are the activations a and the normalised forces f of compliant tendons, controls the excitations e, the rates u
of f and the reserves r. ``minimise integral of sum e^2 + rho sum r^2 + kappa sum u^2`` subject to activation dynamics,
``f' = u``, the equilibrium of fibre and tendon and the balance of moments at all points (De Groote et al., Ann. Biomed.
Eng. 44, 2016; Dembia et al., PLoS Comput. Biol. 16, 2020). Hermite-Simpson collocation in its separated form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from designopt_mechanics.moment_balance import MomentBalance
from numpy.typing import NDArray

from designopt_muscle.curves import OPENSIM, TENDON_FORCES, activation_rate
from designopt_muscle.sharing.dynamic.muscles import DynamicMuscles

Vector = NDArray[np.float64]

#: Largest rate of a normalised tendon force, 1/s.
_FASTEST_RATE = 100.0


@dataclass(frozen=True, eq=False)
class DynamicSharing:
    """A solution at the n points of the mesh and its midpoints, or the last iterate if not `converged`.

    `activations`, `excitations` (n, k); `tendon_forces`, `tendon_rates` (n, c) of the compliant muscles, normalised;
    `reserves` (n, m) the controls of the rows' reserves; `forces` (n, k) N along the tendons. `objective` with its
    part `effort` (excitations and reserves). `largest_residual` is that of any equation, named by `worst`.
    """

    time: Vector
    converged: bool
    message: str
    activations: Vector
    excitations: Vector
    tendon_forces: Vector
    tendon_rates: Vector
    reserves: Vector
    forces: Vector
    objective: float
    effort: float
    iterations: int
    largest_residual: float
    worst: str


@dataclass(frozen=True, eq=False)
class DynamicReserves:
    """Reserves of the rows: `optimal` (m,) generalised force at control 1, 0 for none; `weight` of their squares."""

    optimal: Vector
    weight: float = 1.0
    limit: float = 1.0


def share_dynamic(
    balance: MomentBalance,
    muscles: DynamicMuscles,
    reserves: DynamicReserves,
    *,
    rate_weight: float = 0.01,
    sharpness: float = 10.0,
    start_from_rest: bool = True,
    tolerance: float = 1e-8,
    iterations: int = 500,
) -> DynamicSharing:
    """Excitations, activations and tendon forces that balance the moments at the least effort.

    `balance` has an odd number of frames at equal distances of time: mesh points and the midpoints between them, in
    turn. `sharpness` is that of `activation_rate`, `rate_weight` that of the squared rates of tendon forces. With
    `start_from_rest` the activations at the beginning equal the excitations: they are unknown, and this keeps them from
    being free of charge. Raises `ValueError` for frames that are no such mesh, or that cannot be used.
    """
    time = balance.time
    steps = np.diff(time)
    if len(time) < 3 or len(time) % 2 == 0 or np.abs(steps - steps[0]).max() > 1e-6 * steps[0]:
        raise ValueError(f"{len(time)} frames: collocation needs an odd number, 3 at least, at equal distances of time")
    if not balance.usable.all():
        raise ValueError(
            f"the frame at {time[~balance.usable][0]:g} s cannot be used; dynamic sharing needs all of them"
        )
    if muscles.names != balance.columns or len(muscles.lengths) != len(time):
        raise ValueError("the muscles are not the columns of the balance, or have other frames")
    program = _Program(balance, muscles, reserves, rate_weight, sharpness, start_from_rest)
    return program.solve(tolerance, iterations)


class _Program:
    """The sparse program: variables of all points, one column each."""

    def __init__(
        self,
        balance: MomentBalance,
        muscles: DynamicMuscles,
        reserves: DynamicReserves,
        rate_weight: float,
        sharpness: float,
        start_from_rest: bool,
    ) -> None:
        self.balance, self.muscles, self.reserves = balance, muscles, reserves
        self.helped = np.flatnonzero(np.asarray(reserves.optimal) > 0)
        self.rate_weight, self.sharpness, self.start_from_rest = rate_weight, sharpness, start_from_rest
        k, c = len(muscles.names), len(muscles.compliant)
        self.sizes = {"a": k, "f": c, "e": k, "u": c, "r": len(self.helped)}
        self.rows = np.maximum(1.0, np.abs(balance.moments).max(axis=0))

    def _point(self) -> Any:
        """What one point adds: (variables, data) -> state rates, equations, effort, cost of rates, muscle forces."""
        import casadi as ca

        muscles, k = self.muscles, len(self.muscles.names)
        m = len(self.balance.rows)
        v = {name: ca.SX.sym(name, size) for name, size in self.sizes.items()}
        length, speed = ca.SX.sym("l", k), ca.SX.sym("v", k)
        arms, needed = ca.SX.sym("arms", m, k), ca.SX.sym("needed", m)
        of_compliant = {int(j): i for i, j in enumerate(muscles.compliant)}
        forces, equilibrium = [], []
        for j in range(k):
            path = length[j], speed[j]
            if j in of_compliant:
                f, u = v["f"][of_compliant[j]], v["u"][of_compliant[j]]
                strain = float(muscles.tendon_strain[j])
                tendon = (
                    muscles.slack[j] * OPENSIM.tendon_length(f, strain=strain),
                    muscles.slack[j] * OPENSIM.tendon_speed(f, u, strain=strain),
                )
                equilibrium.append(f - muscles.fibre_force(j, v["a"][j], tendon, path))
                forces.append(muscles.force[j] * f)
            else:
                fibre = muscles.fibre_force(j, v["a"][j], (muscles.slack[j], 0.0), path)
                forces.append(muscles.force[j] * fibre)
        moments = arms @ ca.vertcat(*forces)
        for i, row in enumerate(self.helped):
            moments[int(row)] += self.reserves.optimal[row] * v["r"][i]
        rates = ca.vertcat(
            *(
                activation_rate(
                    v["e"][j], v["a"][j], rise=muscles.rise[j], fall=muscles.fall[j], sharpness=self.sharpness
                )
                for j in range(k)
            ),
            v["u"],
        )
        equations = ca.vertcat(*equilibrium, (moments - needed) / self.rows)
        effort = ca.sumsqr(v["e"]) + self.reserves.weight * ca.sumsqr(v["r"])
        given = [ca.vertcat(*v.values()), length, speed, ca.vec(arms), needed]
        outputs = [rates, equations, effort, ca.sumsqr(v["u"]), ca.vertcat(*forces)]
        return ca.Function("point", given, outputs)

    def solve(self, tolerance: float, iterations: int) -> DynamicSharing:
        """Solve with IPOPT from equal activations."""
        import casadi as ca

        balance, muscles = self.balance, self.muscles
        n, states = len(balance.time), self.sizes["a"] + self.sizes["f"]
        h = 2.0 * float(balance.time[1] - balance.time[0])
        x = ca.MX.sym("x", sum(self.sizes.values()), n)
        arms = balance.arms.transpose(0, 2, 1).reshape(n, -1).T  # columns of each frame's matrix, one after the other
        data = [muscles.lengths.T, muscles.speeds.T, arms, balance.moments.T]
        point = self._point()
        rates, equations, effort, moving, forces = point.map(n)(x, *data)
        s, middle = x[:states, :], slice(1, n, 2)
        left, right = s[:, 0 : n - 1 : 2], s[:, 2:n:2]
        of_left, of_right = rates[:, 0 : n - 1 : 2], rates[:, 2:n:2]
        at_middle, of_middle = s[:, middle], rates[:, middle]
        hermite = at_middle - 0.5 * (left + right) - h / 8.0 * (of_left - of_right)
        simpson = right - left - h / 6.0 * (of_left + 4.0 * of_middle + of_right)
        weights = np.full(n, h / 3.0)
        weights[middle] = 2.0 * h / 3.0
        weights[[0, -1]] = h / 6.0
        total_effort = ca.dot(effort, ca.DM(weights[None, :]))
        cost = total_effort + self.rate_weight * ca.dot(moving, ca.DM(weights[None, :]))
        constraints = [ca.vec(equations), ca.vec(hermite), ca.vec(simpson)]
        if self.start_from_rest:
            first = states + self.sizes["a"]
            constraints.append(x[states:first, 0] - x[: self.sizes["a"], 0])
        g = ca.vertcat(*constraints)
        options: Any = {
            "expand": True,
            "print_time": False,
            "ipopt": {
                "print_level": 0,
                "sb": "yes",
                "tol": tolerance,
                "max_iter": iterations,
                "mu_strategy": "adaptive",
            },
        }
        program: Any = {"x": ca.vec(x), "f": cost, "g": g}
        solver = ca.nlpsol("dynamic", "ipopt", program, options)
        low, high, start = (np.tile(column, n) for column in self._bounds())
        found = solver(x0=start, lbx=low, ubx=high, lbg=0.0, ubg=0.0)
        stats = solver.stats()
        values = np.asarray(found["x"]).reshape(n, -1)
        residuals = np.asarray(found["g"]).ravel()
        pieces = ca.Function("pieces", [x], [total_effort, forces])(values.T)
        parts = np.split(values, np.cumsum(list(self.sizes.values()))[:-1], axis=1)
        a, f, e, u, r = parts
        whole = np.zeros((n, len(balance.rows)))
        whole[:, self.helped] = r
        worst = int(np.abs(residuals).argmax())
        return DynamicSharing(
            time=balance.time,
            converged=bool(stats["success"]),
            message=str(stats["return_status"]),
            activations=a,
            excitations=e,
            tendon_forces=f,
            tendon_rates=u,
            reserves=whole,
            forces=np.asarray(pieces[1]).T,
            objective=float(found["f"]),
            effort=float(pieces[0]),
            iterations=int(stats["iter_count"]),
            largest_residual=float(np.abs(residuals[worst])),
            worst=self._equation(worst),
        )

    def _bounds(self) -> tuple[Vector, Vector, Vector]:
        """Lower and upper bounds and first values of one point."""
        least, limit = self.muscles.least, self.reserves.limit
        c, h = self.sizes["f"], self.sizes["r"]
        low = [least, np.full(c, TENDON_FORCES[0]), least, np.full(c, -_FASTEST_RATE), np.full(h, -limit)]
        high = [np.ones(len(least)), np.full(c, TENDON_FORCES[1]), np.ones(len(least)), np.full(c, _FASTEST_RATE)]
        start = [np.maximum(0.1, least), np.full(c, 0.1), np.maximum(0.1, least), np.zeros(c), np.zeros(h)]
        return np.concatenate(low), np.concatenate([*high, np.full(h, limit)]), np.concatenate(start)

    def _equation(self, index: int) -> str:
        """What the equation of this index is, and when."""
        muscles, time = self.muscles, self.balance.time
        c, n = self.sizes["f"], len(time)
        each = c + len(self.balance.rows)
        if index < each * n:
            point, i = divmod(index, each)
            if i < c:
                return f"equilibrium of '{muscles.names[int(muscles.compliant[i])]}' at {time[point]:.4g} s"
            return f"balance about '{self.balance.rows[i - c]}' at {time[point]:.4g} s"
        states = self.sizes["a"] + c
        interval, i = divmod(index - each * n, states)
        interval %= n // 2
        if index >= each * n + 2 * states * (n // 2):
            return "activation at the beginning"
        what = muscles.names[i] if i < self.sizes["a"] else muscles.names[int(muscles.compliant[i - self.sizes["a"]])]
        return f"collocation of '{what}' from {time[2 * interval]:.4g} s on"
