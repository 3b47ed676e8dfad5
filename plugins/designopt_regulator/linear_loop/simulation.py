"""Sampled loops around linear plants, many at once: steps of set-point and load, saturation, anti-windup.

Between samples the input is held, so that the plant's motion with its exact delay is known in closed form; only the
integrals of the error are sums (trapezoidal rule over the substeps).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from designopt_regulator.controllers.pid import PID, Limits, Running
from designopt_regulator.plants.linear import Plant, sampled

Vector = NDArray[np.float64]

_BOUND = 1e6  # of the output, in steps of the set-point
_NO_LIMITS = Limits()
SETTLED = 0.02  # share of the step within which a loop counts as settled


@dataclass(frozen=True)
class Steps:
    """What happens: a unit step of the set-point at 0 and of the plant's input at `load_at`, times in s."""

    sample_time: float
    substeps: int
    horizon: float
    load_at: float
    limits: Limits = _NO_LIMITS  # of the command


@dataclass(frozen=True)
class SampledRuns:
    """`figures` by name (n,), rows that `failed` (n,), and `trace` (n, samples) by name, if asked for."""

    figures: dict[str, Vector]
    failed: NDArray[np.bool_]
    trace: dict[str, Vector]


def simulate(plant: Plant, settings: PID, steps: Steps, *, trace: bool = False) -> SampledRuns:
    """Run n loops from rest; plants are (n, s, s), settings (n,)."""
    n, count = len(plant.A), steps.substeps
    h = steps.sample_time / count
    R, B0, B1, late = sampled(plant.A, plant.B, plant.delay / h, h)
    samples, load_from = round(steps.horizon / steps.sample_time), round(steps.load_at / steps.sample_time)

    regulator = Running(settings, np.zeros(n), np.zeros(n), limits=steps.limits)
    held = np.zeros((n, samples + 1))  # commands with the load, column k + 1 for sample k
    rows = np.arange(n)
    x, y, u, before = np.zeros_like(plant.B), np.zeros(n), np.zeros(n), np.zeros(n)
    e = np.ones(n)
    sums = {name: np.zeros(n) for name in ("iae_setpoint", "iae_load", "ise_setpoint", "ise_load", "tv", "tv_load")}
    most, largest = np.ones(n), np.zeros(n)
    reached = {0.1: np.full(n, np.inf), 0.9: np.full(n, np.inf)}
    outside, left = np.zeros(n), np.ones(n)
    failed = np.zeros(n, dtype=bool)
    outputs, commands = np.empty((n, samples + 1)), np.empty((n, samples + 1))
    one = np.ones(n)
    for k in range(samples):
        u = regulator.sample(one, y)
        part = "setpoint" if k < load_from else "load"
        sums["tv" if k < load_from else "tv_load"] += np.abs(u - before)
        before = u
        if part == "setpoint":
            largest = np.maximum(largest, np.abs(u))
        outputs[:, k], commands[:, k] = y, u
        held[:, k + 1] = u + (k >= load_from)
        for sub in range(count):
            at = k * count + sub
            first = np.maximum((at - late) // count + 1, 0)
            second = np.maximum((at - late - 1) // count + 1, 0)
            x = x + (R @ x[:, :, None])[..., 0] + B0 * held[rows, first][:, None] + B1 * held[rows, second][:, None]
            y = (plant.C[:, None, :] @ x[:, :, None])[:, 0, 0]
            e, last = 1.0 - y, e
            sums[f"iae_{part}"] += 0.5 * h * (np.abs(e) + np.abs(last))
            sums[f"ise_{part}"] += 0.5 * h * (e * e + last * last)
            if part == "setpoint":
                most = np.maximum(most, y)
                for level, when in reached.items():
                    new = np.isinf(when) & (y >= level)
                    passed = (level - (1.0 - last)) / np.where(new, last - e, 1.0)
                    when[new] = ((at + passed) * h)[new]
                left = np.abs(e)
                outside = np.where(left > SETTLED, (at + 1) * h, outside)
        wild = ~(np.abs(y) <= _BOUND)
        if wild.any():
            failed |= wild
            x[wild], y[wild], held[wild] = 0.0, 0.0, 0.0
            regulator.reset(wild)
    outputs[:, -1], commands[:, -1] = y, u
    setpoint = commands[:, :load_from]
    effort = steps.sample_time * ((setpoint - setpoint[:, -1:]) ** 2).sum(axis=1)
    figures = {
        **sums,
        "overshoot": most - 1.0,
        "effort": effort,
        "rise": reached[0.9] - np.where(np.isinf(reached[0.1]), 0.0, reached[0.1]),
        "settling": outside,
        "not_settled": (left > SETTLED).astype(float),
        "error_left": left,
        "largest_command": largest,
    }
    kept = {"time": np.tile(np.arange(samples + 1) * steps.sample_time, (n, 1)), "output": outputs, "command": commands}
    return SampledRuns(figures, failed, kept if trace else {})
