"""Integrators for q̈ = f(t, q, q̇) with a fixed step, and SciPy's BDF as a reference.

Each gives q, q̇, q̈ at equal steps with the iterations and the last increment of every step (Nunes 2017, 2.122, 5.21).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from designopt.arrays import Floats, Integers

Acceleration = Callable[[float, Floats, Floats], Floats]

Integrator = Literal["trapezoidal", "adams", "bdf"]

#: Iterations of a step at most.
MOST = 20
#: Adams-Bashforth: coefficients of f_i, f_{i-1}, ...; Adams-Moulton: of f_{i+1}, f_i, ... by order.
BASHFORTH = {1: (1.0,), 2: (3 / 2, -1 / 2), 3: (23 / 12, -16 / 12, 5 / 12), 4: (55 / 24, -59 / 24, 37 / 24, -9 / 24)}
MOULTON = {1: (1.0,), 2: (1 / 2, 1 / 2), 3: (5 / 12, 8 / 12, -1 / 12), 4: (9 / 24, 19 / 24, -5 / 24, 1 / 24)}


@dataclass(frozen=True, eq=False)
class IntegratedMotion:
    """q, q̇, q̈ (k, n) at `time` (k,); `iterations` (k,) and `increment` (k,) m of the step that ends there.

    `systems` counts the linear systems solved. `message` is empty, or gives the reason for an early end.
    """

    time: Floats
    q: Floats
    qdot: Floats
    qddot: Floats
    iterations: Integers
    increment: Floats
    systems: int = 0
    message: str = ""


class Recorder:
    """A trajectory in the making."""

    def __init__(self, steps: int, q: Floats, qdot: Floats, qddot: Floats, step: float) -> None:
        self.h, self.at = step, 0
        self.q, self.qdot, self.qddot = (np.full((steps + 1, len(q)), np.nan) for _ in range(3))
        self.iterations = np.zeros(steps + 1, dtype=np.int64)
        self.increment = np.zeros(steps + 1)
        self.q[0], self.qdot[0], self.qddot[0] = q, qdot, qddot

    def add(self, q: Floats, qdot: Floats, qddot: Floats, iterations: int, increment: float) -> bool:
        """Record a step; False when it cannot go on from there."""
        if not (np.isfinite(q).all() and np.isfinite(qdot).all() and np.isfinite(qddot).all()):
            return False
        self.at += 1
        self.q[self.at], self.qdot[self.at], self.qddot[self.at] = q, qdot, qddot
        self.iterations[self.at], self.increment[self.at] = iterations, increment
        return True

    def trajectory(self) -> IntegratedMotion:
        k = self.at + 1
        early = k < len(self.q)
        message = f"the simulation diverged after {self.at * self.h:g} s: take a shorter step" if early else ""
        return IntegratedMotion(
            np.asarray(np.arange(k) * self.h, dtype=np.float64),
            self.q[:k],
            self.qdot[:k],
            self.qddot[:k],
            self.iterations[:k],
            self.increment[:k],
            message=message,
        )


def trapezoidal(
    f: Acceleration, q: Floats, qdot: Floats, step: float, steps: int, *, tolerance: float = 1e-10
) -> IntegratedMotion:
    """Trapezoidal rule with fixed-point iteration, from q + h q̇ + ½ h² q̈ (the full step; the thesis prints h/2)."""
    h = step
    recorder = Recorder(steps, q, qdot, f(0.0, q, qdot), h)
    for k in range(steps):
        q, v, a = recorder.q[k], recorder.qdot[k], recorder.qddot[k]
        t = (k + 1) * h
        q1, v1 = q + h * v + 0.5 * h**2 * a, v + h * a
        count, change = 0, np.inf
        while change > tolerance and count < MOST:
            a1 = f(t, q1, v1)
            v2 = v + 0.5 * h * (a + a1)
            q2 = q + 0.5 * h * (v + v2)
            change = float(np.linalg.norm(q2 - q1))
            q1, v1, count = q2, v2, count + 1
        if not recorder.add(q1, v1, f(t, q1, v1), count, change):
            break
    return recorder.trajectory()


def adams(
    f: Acceleration,
    q: Floats,
    qdot: Floats,
    step: float,
    steps: int,
    *,
    order: int = 4,
    tolerance: float = 1e-10,
) -> IntegratedMotion:
    """Adams-Bashforth of order k - 1 predicts, Adams-Moulton of order k corrects until the positions change no more.

    Runge-Kutta of order 4 makes the first steps. Raises `ValueError` for another order than 2, 3 or 4.
    """
    if order not in (2, 3, 4):
        raise ValueError(f"the order must be 2, 3 or 4, not {order}")
    h, n = step, len(q)

    def rate(t: float, y: Floats) -> Floats:
        return np.concatenate([y[n:], f(t, y[:n], y[n:])])

    y = np.concatenate([q, qdot])
    rates = [rate(0.0, y)]
    recorder = Recorder(steps, q, qdot, rates[0][n:], h)
    explicit, implicit = BASHFORTH[order - 1], MOULTON[order]
    for k in range(steps):
        t = (k + 1) * h
        if len(rates) < order - 1:
            y, count, change = _runge_kutta(rate, k * h, y, rates[0], h), 1, 0.0
        else:
            prediction = y + h * sum(c * r for c, r in zip(explicit, rates, strict=False))
            count, change = 0, np.inf
            while change > tolerance and count < MOST:
                predicted_rates = [rate(t, prediction), *rates]
                correction = y + h * sum(c * r for c, r in zip(implicit, predicted_rates, strict=False))
                change = float(np.linalg.norm((correction - prediction)[:n]))
                prediction, count = correction, count + 1
            y = prediction
        rates = [rate(t, y), *rates][: order - 1]
        if not recorder.add(y[:n], y[n:], rates[0][n:], count, change):
            break
    return recorder.trajectory()


def _runge_kutta(rate: Callable[[float, Floats], Floats], t: float, y: Floats, first: Floats, h: float) -> Floats:
    """One step of order 4."""
    second = rate(t + h / 2, y + h / 2 * first)
    third = rate(t + h / 2, y + h / 2 * second)
    fourth = rate(t + h, y + h * third)
    return np.asarray(y + h / 6 * (first + 2 * second + 2 * third + fourth))


def bdf(f: Acceleration, q: Floats, qdot: Floats, step: float, steps: int) -> IntegratedMotion:
    """SciPy's BDF with variable step and order, sampled at equal steps; the iterations are unknown (0)."""
    from scipy.integrate import solve_ivp

    n = len(q)
    times = np.arange(steps + 1) * step
    integration = solve_ivp(
        lambda t, y: np.concatenate([y[n:], f(t, y[:n], y[n:])]),
        (0.0, float(times[-1])),
        np.concatenate([q, qdot]),
        method="BDF",
        t_eval=times,
        rtol=1e-8,
        atol=1e-10,
    )
    recorder = Recorder(steps, q, qdot, f(0.0, q, qdot), step)
    for t, y in zip(integration.t[1:], integration.y.T[1:], strict=True):
        if not recorder.add(y[:n], y[n:], f(float(t), y[:n], y[n:]), 0, 0.0):
            break
    return recorder.trajectory()
