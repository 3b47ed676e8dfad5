"""Performance of transients and their commands.

Integrals follow the trapezoidal rule over the integration steps. Set points, disturbances and commands change only
between samples, so no step contains a jump: each step is integrated with its own reference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt_regulator.controllers.pid import wrap_angle

SETTLED = 0.02  # share of the step within which a transient counts as settled, by default
_RISE = (0.9, 0.1)  # error left, as a share of the step, where the rise begins and ends


@dataclass(frozen=True)
class Quality:
    """Figures of n transients, arrays (n,); errors are shares of the step, times in s."""

    iae: Floats
    ise: Floats
    itae: Floats
    iae_step: Floats
    iae_load: Floats
    overshoot: Floats
    settling: Floats
    not_settled: Floats
    residual_error: Floats
    rise: Floats  # inf where the transient does not reach 90 %
    load_peak: Floats
    tv: Floats
    effort: Floats
    sat_fraction: Floats


@dataclass(frozen=True)
class Times:
    """Times (s) of the reference step and the disturbance, the sample time (s) and its integration steps `substeps`.

    `band` is the share of the step within which a transient counts as settled.
    """

    step_at: float
    load_at: float
    sample_time: float
    substeps: int
    band: float = SETTLED


def quality(
    y: Floats, before: Floats, after: Floats, output: Floats, raw: Floats, trim: Floats, times: Times,
    *, angle: bool = False,
) -> Quality:  # fmt: skip
    """Performance of n measurements `y` (n, steps + 1) and of their commands (n, samples).

    `before` and `after` (n,) are the references before and after the step. Errors are shares of the difference, or
    absolute if it is 0. `output` are the commands, `raw` those before clipping, `trim` (n,) those at rest.
    """
    T, h = times.sample_time, times.sample_time / times.substeps
    step, load = (round(at / T) * times.substeps for at in (times.step_at, times.load_at))
    per_step = (1.0 / np.where(after == before, 1.0, after - before))[:, None]

    def errors(reference: Floats, first: int, end: int | None) -> Floats:
        e = reference[:, None] - y[:, first:end]
        if angle and not (np.abs(e) <= np.pi).all():
            e = wrap_angle(np, e)
        return np.asarray(e * per_step)

    start, turn, recovery = errors(before, 0, step + 1), errors(after, step, load + 1), errors(after, load, None)
    rise = _crossing_time(turn, _RISE[1], h) - np.where(
        np.isinf(rise_start := _crossing_time(turn, _RISE[0], h)), 0.0, rise_start
    )
    overshoot = np.maximum(-turn.min(axis=1), 0.0)  # up to t2: what comes then has not moved the output yet
    ise = sum(trapezoids(e * e, h) for e in (start, turn, recovery))
    start, turn, recovery = np.abs(start), np.abs(turn), np.abs(recovery)
    itae = sum(trapezoids(e * (h * np.arange(e.shape[1])), h) for e in (turn, recovery))
    iae_step, iae_load = trapezoids(start, h) + trapezoids(turn, h), trapezoids(recovery, h)
    window = load - step
    outside = _last(turn > times.band)
    not_settled = outside == window
    return Quality(
        iae=iae_step + iae_load,
        ise=np.asarray(ise),
        itae=np.asarray(itae),
        iae_step=iae_step,
        iae_load=iae_load,
        overshoot=overshoot,
        settling=np.maximum(outside, 0) * h,
        not_settled=not_settled.astype(float),
        residual_error=turn[:, -1],
        rise=rise,
        load_peak=recovery.max(axis=1),
        tv=np.abs(np.diff(output, axis=1, prepend=trim[:, None])).sum(axis=1),
        effort=T * ((output - trim[:, None]) ** 2).sum(axis=1),
        sat_fraction=(output != raw).mean(axis=1),
    )


def trapezoids(values: Floats, h: float) -> Floats:
    """Integral over time of each row of `values` (n, steps + 1) at steps of `h` (s)."""
    # Sums run along rows, whose bits then do not depend on how many there are.
    return np.asarray(h * (values.sum(axis=1) - 0.5 * (values[:, 0] + values[:, -1])))


def _crossing_time(error: Floats, level: float, h: float) -> Floats:
    """Time (s) at which an error first falls to a level, interpolated between nodes; inf if it does not."""
    low = error <= level
    rows = np.arange(len(error))
    first = low.argmax(axis=1)
    above, below = error[rows, np.maximum(first - 1, 0)], error[rows, first]
    share = np.where(first > 0, (above - level) / np.where(first > 0, above - below, 1.0), 0.0)
    return np.where(low[rows, first], (np.maximum(first - 1, 0) + share) * h, np.inf)


def _last(mask: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The last index (n,) in each row that is True; -1 if there is none."""
    reverse = mask[:, ::-1]
    from_end = reverse.argmax(axis=1)
    return np.where(mask.any(axis=1), mask.shape[1] - 1 - from_end, -1)
