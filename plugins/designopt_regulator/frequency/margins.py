"""Margins and peaks of sensitivities from the frequency responses of stable loops, many at once.

A coarse grid brackets them; root finding and minimisation on the response itself locate them to the last digits.
Complex numbers are stored as two parts: with plain arithmetic a number has the same bits at any position.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt_regulator.frequency.chandrupatla import minima, roots

#: L of rows (k,) at frequencies (k,), real and imaginary part.
Response = Callable[[NDArray[np.intp], Floats], tuple[Floats, Floats]]


#: A value of L beyond which a change of sign is that at a pole on the axis, and no crossing.
_POLE = 1e6


@dataclass(frozen=True)
class Margins:
    """Arrays (n,), each of a stable loop; their meaning is that of `sampled_loop.LoopMeasures`."""

    ms: Floats
    mt: Floats
    gm: Floats
    gm_down: Floats
    pm: Floats
    delay_margin: Floats
    crossover: Floats


def no_margins(n: int) -> Margins:
    """Those of n unstable loops: each fails any limit."""
    lacking = {"ms": np.inf, "mt": np.inf, "gm_down": np.inf}
    return Margins(**{f.name: np.full(n, lacking.get(f.name, -np.inf)) for f in fields(Margins)})


def margins(response: Response, w: Floats, re: Floats, im: Floats, *, at_rest: Floats, real_at_end: bool) -> Margins:
    """The margins of n stable loops with `response`, whose values on the grids `w` (n, m) are `re` and `im` (n, m).

    A grid (m,) is that of all rows; one that is shorter than others repeats its last point. `at_rest` (n,) are the
    values at frequency 0, which are real; NaN where they are infinite or not known.
    With `real_at_end` the last point is half a sampling rate, where L is real and a crossing of the negative axis.
    """
    w = np.broadcast_to(w, re.shape)
    size = re * re + im * im
    with np.errstate(divide="ignore", invalid="ignore"):
        ms = _peak(response, w, _distance(re, im), _distance)
        mt = _peak(response, w, _inverse_distance(re, im), _inverse_distance)
    gains = _gain_margins(response, w, re, im, at_rest, real_at_end)
    return Margins(ms, mt, *gains, *_phase_margins(response, w, size))


def _distance(re: Floats, im: Floats) -> Floats:
    """|1 + L|^2."""
    return (1.0 + re) ** 2 + im * im


def _inverse_distance(re: Floats, im: Floats) -> Floats:
    """|1 + 1/L|^2."""
    return np.asarray(((1.0 + re) ** 2 + im * im) / (re * re + im * im))


def _peak(response: Response, w: Floats, values: Floats, function: Callable[[Floats, Floats], Floats]) -> Floats:
    """1/sqrt of the smallest value of `function` of L, which is `values` (n, m) on the grid, refined between points."""
    return np.asarray(1.0 / np.sqrt(lowest(lambda each, w: function(*response(each, w)), w, values)))


def lowest(function: Callable[[NDArray[np.intp], Floats], Floats], w: Floats, values: Floats) -> Floats:
    """The smallest value (n,) of `function` of rows (k,) and frequencies (k,), refined between points of the grid.

    `values` (n, m) are those on the grid `w` (n, m).
    """
    least = values.min(axis=1)
    middle = values[:, 1:-1]
    low = (middle < values[:, :-2]) & (middle <= values[:, 2:]) & (middle <= 2.0 * least[:, None])
    each, at = np.nonzero(low)
    if len(each):
        log = np.log(w[each, at]), np.log(w[each, at + 1]), np.log(w[each, at + 2])
        minimum_values = minima(lambda row, x: function(row, np.exp(x)), each, log, tolerance=1e-9, iterations=40)
        np.minimum.at(least, each, np.where(np.isfinite(minimum_values), minimum_values, np.inf))
    return np.asarray(least)


def _roots(
    response: Response,
    w: Floats,
    each: NDArray[np.intp],
    at: NDArray[np.intp],
    function: Callable[[Floats, Floats], Floats],
) -> Floats:
    """Where `function` of L changes its sign between points `at` and `at` + 1 of the grid, in rows `each`."""
    ends = np.log(w[each, at]), np.log(w[each, at + 1])
    root_values = roots(lambda row, x: function(*response(row, np.exp(x))), each, ends, tolerance=1e-13, iterations=60)
    # A bracket that is closed by rounding alone has its root at the end that it was closed by.
    return np.exp(np.where(np.isfinite(root_values), root_values, ends[1]))


def _gain_margins(
    response: Response, w: Floats, re: Floats, im: Floats, at_rest: Floats, real_at_end: bool
) -> tuple[Floats, Floats]:
    """The factors on L closest to 1, above and below, for which L passes -1: inf and 0 if there are none.

    At each crossing of the negative axis -1/L is such a factor. The loop is stable for all factors between the two.
    """
    last = im.shape[1] - real_at_end  # at half the sampling rate the sign of the imaginary part is noise
    above = im[:, :last] > 0.0
    left = re[:, :last] < 0.0
    each, at = np.nonzero((above[:, :-1] != above[:, 1:]) & (left[:, :-1] | left[:, 1:]))
    real = response(each, _roots(response, w, each, at, lambda _, part: part))[0] if len(each) else np.empty(0)
    rows = np.arange(len(re))
    if real_at_end:
        each, real = np.concatenate([each, rows]), np.concatenate([real, re[:, -1]])
    # A loop that is finite at rest is real there: a crossing at 0.
    flat = (np.abs(im[:, 0]) < 0.01 * np.abs(re[:, 0])) & (np.abs(re[:, 1] - re[:, 0]) < 0.01 * np.abs(re[:, 0]))
    start = np.where(np.isnan(at_rest), np.where(flat, re[:, 0], np.inf), at_rest)
    each, real = np.concatenate([each, rows]), np.concatenate([real, start])
    up, down = np.full(len(re), np.inf), np.zeros(len(re))
    inside = (real > -1.0) & (real < 0.0)
    np.minimum.at(up, each[inside], -1.0 / real[inside])
    beyond = (real < -1.0) & (real > -_POLE)
    np.maximum.at(down, each[beyond], -1.0 / real[beyond])
    return up, down


def _phase_margins(response: Response, w: Floats, size: Floats) -> tuple[Floats, Floats, Floats]:
    """Phase margin (rad), delay margin (s) and highest crossover (rad/s) from the crossings of |L| = 1."""
    n = len(size)
    phase, late, crossover = np.full(n, np.inf), np.full(n, np.inf), np.zeros(n)
    each, at = np.nonzero((size[:, :-1] > 1.0) != (size[:, 1:] > 1.0))
    if len(each):
        root = _roots(response, w, each, at, lambda re, im: re * re + im * im - 1.0)
        re, im = response(each, root)
        angle = np.arctan2(-im, -re)  # by which L is ahead of -1
        np.minimum.at(phase, each, np.abs(angle))
        np.minimum.at(late, each, np.where(angle > 0.0, angle, angle + 2.0 * np.pi) / root)
        np.maximum.at(crossover, each, root)
    return phase, late, crossover


#: |1 + L|^2, |K|^2 and |G|^2 of loops (k,) at frequencies (k,).
Sizes = Callable[[NDArray[np.intp], Floats], tuple[Floats, Floats, Floats]]


def peaks(sizes: Sizes, w: Floats, count: int) -> tuple[Floats, Floats]:
    """The largest |K S| and |G S| of `count` loops over the grid `w` (m,) of all, refined between its points."""
    peak_values = []
    each, at = np.repeat(np.arange(count), len(w)), np.tile(w, count)
    with np.errstate(divide="ignore", over="ignore"):
        for part in (1, 2):

            def inverse(each: NDArray[np.intp], w: Floats, part: int = part) -> Floats:
                parts = sizes(each, w)
                return np.asarray(parts[0] / parts[part])

            grids = np.broadcast_to(w, (count, len(w)))
            peak_values.append(
                np.asarray(1.0 / np.sqrt(lowest(inverse, grids, inverse(each, at).reshape(grids.shape))))
            )
    return peak_values[0], peak_values[1]


def peaks_at_rest(
    kp: Floats, integral: NDArray[np.bool_], top: Floats, bottom: Floats, integrates: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """|K S| and |G S| at frequency 0, where G is top / bottom, infinite of a plant that `integrates`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        G = top / np.where(integrates, 1.0, bottom)
        ks = np.where(integrates, 0.0, np.where(integral, 1.0 / np.abs(G), np.abs(kp / (1.0 + kp * G))))
        gs = np.where(integral, 0.0, np.where(integrates, 1.0 / np.abs(kp), np.abs(G / (1.0 + kp * G))))
    return ks, gs
