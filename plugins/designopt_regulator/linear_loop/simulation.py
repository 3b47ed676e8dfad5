"""Sampled loops around linear plants, many at once: steps of set-point and load, saturation, anti-windup.

Between samples the input is constant: the plant's motion with its exact delay has a closed form, which gives overshoot
and settling time (`between_samples`). Only the integrals of the error are sums: by the trapezoidal rule over the
substeps, split where a command arrives if the plant has direct feedthrough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from designopt.arrays import Floats, Mask
from designopt_regulator.linear_loop.between_samples import peak_and_settling
from designopt_regulator.plants.linear import Plant, sample_plants

_BOUND = 1e6  # of the output, in steps of the set-point
SETTLED = 0.02  # share of the step within which a loop is settled


@dataclass(frozen=True)
class Steps:
    """A unit step of the set-point at 0, and one by `load` of the plant's input at `load_at`; times in s."""

    sample_time: float
    substeps: int
    horizon: float
    load_at: float
    load: float = 1.0


class Controller(Protocol):
    """n running controllers; those of a cascade also take the output of the inner plant and have its `setpoint`."""

    @property
    def setpoint(self) -> Floats: ...
    def sample(self, r: Floats, y: Floats, inner_y: Floats | None = None) -> Floats: ...
    def reset(self, rows: Mask) -> None: ...


class _Motion:
    """The motion of n plants over substeps of `h` s, `count` of them in a sample."""

    def __init__(self, plant: Plant, h: float, count: int) -> None:
        self._R, self._B0, self._B1, self._late = sample_plants(plant.A, plant.B, plant.delay / h, h)
        self._plant, self._count = plant, count
        self._x, self._rows = np.zeros_like(plant.B), np.arange(len(plant.A))
        self.share = plant.delay / h - self._late  # of a substep, after which a new input acts
        self.share = np.where(self.share < 1e-9, 0.0, self.share)
        self._C, self._split = plant.C[:, None, :], self.share > 0.0
        self._has_feedthrough = bool((plant.D != 0.0).any())
        self._zeros = np.zeros_like(plant.D)

    def step(self, inputs: Floats, at: int) -> tuple[Floats, Floats, Floats]:
        """The output at the end of substep `at` without direct feedthrough; that of the old and of the new input.

        Inputs are `inputs` (n, samples + 1), column k + 1 is that of sample k.
        """
        since = at - self._late
        new = inputs[self._rows, np.maximum(since // self._count + 1, 0)]
        old = inputs[self._rows, np.maximum((since - 1) // self._count + 1, 0)]
        self._x = self._x + (self._R @ self._x[:, :, None])[..., 0] + self._B0 * new[:, None] + self._B1 * old[:, None]
        output = (self._C @ self._x[:, :, None])[:, 0, 0]
        if not self._has_feedthrough:
            return output, self._zeros, self._zeros
        D = self._plant.D
        return output, D * np.where(self._split, old, new), D * new

    @property
    def state(self) -> Floats:
        """States (n, s) at the end of the last substep."""
        return self._x

    def reset(self, rows: Mask) -> None:
        self._x[rows] = 0.0


@dataclass(frozen=True)
class SampledRuns:
    """`figures` by name (n,), rows that `failed` (n,), and optionally `trace` (n, samples) by name."""

    figures: dict[str, Floats]
    failed: Mask
    trace: dict[str, Floats]


class _Figures:
    """Integrals and rise times of n steps of `h` s, added piece by piece; times are in substeps."""

    def __init__(self, n: int, h: float) -> None:
        self._h, self.sums = h, {name: np.zeros(n) for name in _SUMS}
        self._peak_command = np.zeros(n)
        self._crossing_times = {0.1: np.full(n, np.inf), 0.9: np.full(n, np.inf)}
        self._open_levels = set(self._crossing_times)  # levels that some outputs have not reached yet
        self._error = np.ones(n)

    def command(self, part: str, change: Floats, u: Floats) -> None:
        self.sums["tv" if part == "setpoint" else "tv_load"] += np.abs(change)
        if part == "setpoint":
            self._peak_command = np.maximum(self._peak_command, np.abs(u))

    def piece(
        self, part: str, begin: Floats, end: Floats, high: Floats, start: Floats | float, length: Floats | float
    ) -> None:
        """Errors at `begin` and `end` of a piece, the output `high` at its end, its start and its length."""
        h, error = self._h, np.abs(end)
        self.sums[f"iae_{part}"] += 0.5 * h * length * (error + np.abs(begin))
        self.sums[f"ise_{part}"] += 0.5 * h * length * (end * end + begin * begin)
        if part != "setpoint":
            return
        for level in tuple(self._open_levels):
            crossing_time = self._crossing_times[level]
            reaches_level = np.isinf(crossing_time) & (high >= level)
            if not reaches_level.any():
                continue
            fraction = (level - (1.0 - begin)) / np.where(reaches_level & (begin != end), begin - end, 1.0)
            share = np.maximum(fraction, 0.0)  # a jump reaches the level at its start
            crossing_time[reaches_level] = ((start + share * length) * h)[reaches_level]
            if not np.isinf(crossing_time).any():
                self._open_levels.remove(level)
        self._error = error

    def figures(self, setpoint: Floats, sample_time: float) -> dict[str, Floats]:
        """All figures; `setpoint` (n, samples) are the commands before the load acts."""
        rise = self._crossing_times[0.9] - np.where(np.isinf(self._crossing_times[0.1]), 0.0, self._crossing_times[0.1])
        return {
            **self.sums,
            "effort": sample_time * ((setpoint - setpoint[:, -1:]) ** 2).sum(axis=1),
            "rise": rise,
            "not_settled": (self._error > SETTLED).astype(float),
            "residual_error": self._error,
            "peak_command": self._peak_command,
        }


_SUMS = ("iae_setpoint", "iae_load", "ise_setpoint", "ise_load", "tv", "tv_load")


def simulate(
    plant: Plant, controller: Controller, steps: Steps, *, inner: Plant | None = None, trace: bool = False
) -> SampledRuns:
    """Run n loops from rest; plants are (n, s, s). The `inner` one, of a cascade, has the same input as the `plant`."""
    n, count, T = len(plant.A), steps.substeps, steps.sample_time
    samples, load_from = round(steps.horizon / T), round(steps.load_at / T)
    motion, inner_motion = _Motion(plant, T / count, count), None if inner is None else _Motion(inner, T / count, count)
    has_feedthrough = bool((plant.D != 0.0).any())
    inputs = np.zeros((n, samples + 1))  # commands with the load, column k + 1 for sample k
    y, u, failed, figures = np.zeros(n), np.zeros(n), np.zeros(n, dtype=bool), _Figures(n, T / count)
    inner_y = None if inner is None else np.zeros(n)
    e, c = np.ones(n), np.zeros(n)  # c is the output without direct feedthrough
    states: list[Floats] = []  # at the samples before the load acts
    signals: dict[str, list[Floats]] = {"output": [], "command": []}
    if inner is not None:
        signals |= {"inner_output": [], "inner_setpoint": []}

    def record() -> None:
        for name, values in zip(signals, (y, u, inner_y, controller.setpoint), strict=False):
            assert values is not None
            signals[name].append(values.copy())

    for k in range(samples):
        before, u = u, controller.sample(np.ones(n), y, inner_y)
        part = "setpoint" if k < load_from else "load"
        figures.command(part, u - before, u)
        record()
        if part == "setpoint":
            states.append(motion.state)
        inputs[:, k + 1] = u + steps.load * (k >= load_from)
        for at in range(k * count, (k + 1) * count):
            c_before, (c, old, new) = c, motion.step(inputs, at)
            y, e_before = c + new if has_feedthrough else c, e
            e = 1.0 - y
            if has_feedthrough:
                share = motion.share
                c_arrival = c_before + share * (c - c_before)
                figures.piece(part, 1.0 - c_before - old, 1.0 - c_arrival - old, c_arrival + old, at, share)
                figures.piece(part, 1.0 - c_arrival - new, e, y, at + share, 1.0 - share)
            else:
                figures.piece(part, e_before, e, y, at, 1.0)
            if inner_motion is not None:
                c_inner, _, feedthrough = inner_motion.step(inputs, at)
                inner_y = c_inner + feedthrough
        has_diverged = ~(np.abs(y) <= _BOUND)
        if has_diverged.any():
            failed |= has_diverged
            for values in (y, c, inputs, *(() if inner_y is None else (inner_y,))):
                values[has_diverged] = 0.0
            for system in (motion, controller, *(() if inner_motion is None else (inner_motion,))):
                system.reset(has_diverged)
    record()
    trace_of = {name: np.stack(values, axis=1) for name, values in signals.items()}
    sampled_figures = figures.figures(trace_of["command"][:, :load_from], T)
    at_samples = np.stack(states, axis=1)
    at_samples[failed] = 0.0
    peak, settling = peak_and_settling(plant, T, at_samples, inputs, SETTLED)
    sampled_figures |= {"overshoot": np.maximum(0.0, peak - 1.0), "settling": settling}
    trace_of["time"] = np.tile(np.arange(samples + 1) * T, (n, 1))
    return SampledRuns(sampled_figures, failed, trace_of if trace else {})
