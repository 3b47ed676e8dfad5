"""The cart-pole by Hermite-Simpson as a program is usually written: symbols for every point, loops over intervals, and
derivatives of the whole left to CasADi."""

import math

import casadi as ca
from cart_pole import CART_MASS, DURATION, FORCE_LIMIT, GRAVITY, POLE_MASS, TRACK_LIMIT


class UnrolledCartPole:
    """The program with `intervals`, built; `solve` gives its optimum."""

    def __init__(self, intervals: int, pole_length: float = 0.5) -> None:
        n, h = intervals, DURATION / intervals
        x = [ca.SX.sym(f"x{k}", 4) for k in range(2 * n + 1)]
        u = [ca.SX.sym(f"u{k}") for k in range(2 * n + 1)]

        def rates(x, u):
            s, c = ca.sin(x[1]), ca.cos(x[1])
            inertia = CART_MASS + POLE_MASS * (1.0 - c**2)
            cart = (pole_length * POLE_MASS * s * x[3] ** 2 + u + POLE_MASS * GRAVITY * c * s) / inertia
            pole = -(pole_length * POLE_MASS * c * s * x[3] ** 2 + u * c + (CART_MASS + POLE_MASS) * GRAVITY * s)
            return ca.vertcat(x[2], x[3], cart, pole / (pole_length * inertia))

        f = [rates(a, b) for a, b in zip(x, u, strict=True)]
        rows, cost = [], 0.0
        for k in range(0, 2 * n, 2):
            rows.append(x[k + 1] - (x[k] + x[k + 2]) / 2.0 - h / 8.0 * (f[k] - f[k + 2]))
            rows.append(x[k + 2] - x[k] - h / 6.0 * (f[k] + 4.0 * f[k + 1] + f[k + 2]))
            cost += h / 6.0 * (u[k] ** 2 + 4.0 * u[k + 1] ** 2 + u[k + 2] ** 2)
        w = ca.vertcat(*(ca.vertcat(a, b) for a, b in zip(x, u, strict=True)))
        ipopt = {"print_level": 0, "sb": "yes", "tol": 1e-8, "mumps_permuting_scaling": 0}
        self._solver = ca.nlpsol(
            "unrolled", "ipopt", {"x": w, "f": cost, "g": ca.vertcat(*rows)}, {"print_time": False, "ipopt": ipopt}
        )
        self.low, self.high, self.guess = [], [], []
        start, end = (0.0,) * 4, (1.0, math.pi, 0.0, 0.0)
        for k in range(2 * n + 1):
            share = k / (2 * n)
            fixed = start if k == 0 else end if k == 2 * n else None
            self.low += [*(fixed or (-TRACK_LIMIT, -math.inf, -math.inf, -math.inf)), -FORCE_LIMIT]
            self.high += [*(fixed or (TRACK_LIMIT, math.inf, math.inf, math.inf)), FORCE_LIMIT]
            self.guess += [share, share * math.pi, 0.0, 0.0, 0.0]

    def solve(self) -> float:
        """The least integral of the squared force."""
        solution = self._solver(x0=self.guess, lbx=self.low, ubx=self.high, lbg=0.0, ubg=0.0)
        assert self._solver.stats()["success"]
        return float(solution["f"])
