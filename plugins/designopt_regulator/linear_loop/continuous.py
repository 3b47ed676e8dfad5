"""Continuous PI(D) loops around plants with an exact delay: stability, margins, step responses and their integrals.

    u = K_p (b r - y) + (K_p / T_i) integral(r - y) - K_p T_d s / (T_f s + 1) y

The delay is never approximated. Stability is counted by the argument principle on the quasi-polynomial of the loop
(Mikhailov 1938). Responses are solved interval by interval (method of steps), each by Chebyshev collocation: the
solution is a smooth function on every one of them and the integral of |e| is split where e changes its sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt_regulator.frequency.grid import near
from designopt_regulator.frequency.margins import Margins, margins
from designopt_regulator.frequency.peaks import peaks, peaks_at_rest
from designopt_regulator.plants.linear import Plant

Array = NDArray[np.float64]

_NODES = 16  # of an interval in which nothing turns or decays by more than `_REACH`
_REACH = 2.0
_SETTLED = 1e-11  # of the largest value seen, at which a response has come to rest
_GONE = 45.0  # a mode is over when it has decayed by e^-45
_MOST_INTERVALS = 200_000
_POINTS_PER_DECADE = 100
_MOST_POINTS = 200_000  # of a grid of frequencies
_SHARP = 0.03  # damping of a pole below which the grid is made finer about it
_ROUNDING = 1e-14  # of the fastest pole, within which the real part of another has no sign
_PHASE_STEP = 0.3  # rad by which the delay may turn the loop between points of the grid


class NotSettled(Exception):
    """A response is not at rest after as many intervals as are computed: the loop is very slow beside its delay."""


@dataclass(frozen=True)
class Loop:
    """A single `plant` and its continuous regulator; times in s, `ti` inf for no I, `td` 0 for no D.

    Raises `ValueError` where the derivative needs a filter: without one (`tf` = 0) the output's rate has to be a state.
    """

    plant: Plant
    kp: float
    ti: float = np.inf
    td: float = 0.0
    tf: float = 0.0
    b: float = 1.0

    def __post_init__(self) -> None:
        if self.td != 0.0 and self.tf == 0.0 and self.plant.C @ self.plant.B != 0.0:
            raise ValueError("a derivative without filter (tf = 0) needs a plant whose output has no jumps in its rate")

    @property
    def delay(self) -> float:
        return float(self.plant.delay)

    def equations(self) -> tuple[Array, Array, Array, Array]:
        """M (n, n), N (n,), K (n,), R (n,): ``z' = M z + N u(t - delay) + R r`` and ``u = K z + kp b r``."""
        A, B, C = self.plant.A, self.plant.B, self.plant.C
        s = len(A)
        integral, filtered = np.isfinite(self.ti), self.td != 0.0 and self.tf > 0.0
        n = s + integral + filtered
        M, N, K, R = np.zeros((n, n)), np.zeros(n), np.zeros(n), np.zeros(n)
        M[:s, :s], N[:s], K[:s] = A, B, -self.kp * C
        if integral:
            M[s, :s], R[s], K[s] = -C, 1.0, self.kp / self.ti
        if filtered:
            M[-1, :s], M[-1, -1] = C / self.tf, -1.0 / self.tf
            K[:s] -= self.kp * self.td / self.tf * C
            K[-1] = self.kp * self.td / self.tf
        elif self.td != 0.0:
            K[:s] -= self.kp * self.td * C @ A
        return M, N, K, R

    def response(self, frequency: Array) -> NDArray[np.complex128]:
        """The open loop L(j w)."""
        w = np.asarray(frequency, dtype=np.float64)
        return np.asarray(self._regulator(1j * w) * self.plant.response(w))

    def parts(self, frequency: Array) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
        """K(j w) of the regulator from the measurement, and G(j w) of the plant."""
        w = np.asarray(frequency, dtype=np.float64)
        return self._regulator(1j * w), self.plant.response(w)

    def transfer(self, s: NDArray[np.complexfloating[Any, Any]]) -> NDArray[np.complex128]:
        """The open loop L(s)."""
        return np.asarray(self._regulator(s) * self.plant.transfer(s))

    def _regulator(self, s: NDArray[np.complexfloating[Any, Any]]) -> NDArray[np.complex128]:
        return np.asarray(self.kp * (1.0 + (1.0 / self.ti) / s + self.td * s / (self.tf * s + 1.0)))

    def at_rest(self) -> float:
        """L at frequency 0, NaN of a loop that integrates."""
        poles = np.abs(np.linalg.eigvals(self.plant.A))
        if np.isfinite(self.ti) or poles.min() <= _ROUNDING * poles.max():
            return np.nan
        return float(self.kp * self.plant.C @ np.linalg.solve(-self.plant.A, self.plant.B))

    def grid(self) -> Array:
        """Frequencies (rad/s) from below all that is slow to where the gain is small."""
        M, *_ = self.equations()
        rates = np.abs(np.linalg.eigvals(M))
        rates = [*rates[rates > 0.0], 1.0 / self.ti, *([1.0 / self.delay] if self.delay else [])]
        known = [r for r in rates if r > 0.0] or [1.0]
        low, high = 1e-3 * min(known), 10.0 * max(known)
        while abs(self.response(np.array([high]))[0]) > 0.01 and high < 1e12 * low:
            high *= 2.0
        while abs(self.response(np.array([low]))[0]) < 10.0 and low > 1e-6 * min(known):
            low *= 0.5
        w = np.geomspace(low, high, int(np.ceil(_POINTS_PER_DECADE * np.log10(high / low))) + 1)
        if self.delay > 0.0:
            step = _PHASE_STEP / self.delay
            if high > _MOST_POINTS * step:
                raise NotSettled(
                    f"the loop is too fast beside its delay: up to {high:.3g} rad/s with a delay of {self.delay:g} s"
                )
            sparse = int(np.searchsorted(np.diff(w), step))
            if sparse < len(w) - 1:
                w = np.concatenate([w[:sparse], np.arange(w[sparse], high + step, step)])
        poles = np.linalg.eigvals(self.plant.A)
        sharp = [p for p in poles if 0.0 <= abs(p.real) < _SHARP * p.imag]
        if sharp:  # between the points of the grid the loop would turn unseen; on a pole it has no value
            w = np.unique(np.concatenate([w, *(near(p) for p in sharp)]))
            w = w[np.all([np.abs(w - p.imag) > 1e-10 * p.imag for p in sharp], axis=0)]
        return np.asarray(w)

    def unstable_poles(self, w: Array | None = None) -> int:
        """Poles of the closed loop in the right half plane, by the argument of its quasi-polynomial along j w."""
        M, *_ = self.equations()
        poles = np.linalg.eigvals(M)
        w = self.grid() if w is None else w

        def curve(at: Array) -> NDArray[np.complex128]:
            factors = 1j * at[:, None] - poles
            return np.asarray(np.prod(factors / np.abs(factors), axis=1) * (1.0 + self.response(at)))

        values = curve(w)
        for _ in range(60):  # halve the steps in which the argument is not beyond doubt
            wide = np.flatnonzero(np.abs(np.angle(values[1:] / values[:-1])) > 1.0)
            if len(wide) == 0:
                break
            between = 0.5 * (w[wide] + w[wide + 1])
            w, values = np.insert(w, wide + 1, between), np.insert(values, wide + 1, curve(between))
        turned = float(np.angle(values[1:] / values[:-1]).sum())
        # At the ends the argument goes to a multiple of pi, and to that of s^n.
        start = np.angle(values[0])
        turned += start - np.pi * np.round(start / np.pi)
        full = 0.5 * np.pi * len(poles)
        turned += np.angle(np.exp(1j * (full - np.angle(values[-1]))))
        return int(np.round((full - turned) / np.pi))

    @property
    def stable(self) -> bool:
        return self._stable_with(None)

    def _stable_with(self, w: Array | None) -> bool:
        """Whether it is stable; without delay by its poles, with one by the argument along `w`."""
        if self.delay > 0.0:
            return self.unstable_poles(w) == 0
        M, N, K, _ = self.equations()
        poles = np.linalg.eigvals(M + np.outer(N, K))
        return bool((poles.real < -_ROUNDING * np.abs(poles).max()).all())

    def damping(self) -> float:
        """Damping ratio of the oscillation that decays slowest, 1 where nothing oscillates; of a stable loop.

        With a delay the rightmost roots of the characteristic equation are eigenvalues of its pseudospectral
        discretisation (Breda, Maset & Vermiglio 2005), improved by Newton's method.
        """
        M, N, K, _ = self.equations()
        if self.delay == 0.0:
            roots = np.linalg.eigvals(M + np.outer(N, K))
        else:
            _, D = _nodes()
            n = len(M)
            generator = np.kron(D * (2.0 / self.delay), np.eye(n))
            generator[-n:] = 0.0
            generator[-n:, -n:], generator[-n:, :n] = M, np.outer(N, K)
            roots = np.linalg.eigvals(generator)
        swinging = roots[np.abs(roots.imag) > 1e-9 * np.abs(roots)]
        if not len(swinging):
            return 1.0
        s = complex(swinging[swinging.real.argmax()])
        for _ in range(8 if self.delay else 0):
            size = 1e-6 * abs(s)
            value, ahead, behind = (1.0 + self.transfer(np.array([s + ds]))[0] for ds in (0.0, size, -size))
            step = value * 2.0 * size / (ahead - behind)
            s -= step if abs(step) < 0.1 * abs(s) else 0.1 * abs(s) * step / abs(step)
        return float(-s.real / abs(s))

    def sensitivity_peaks(self) -> tuple[float, float]:
        """Peaks of |K S| and |G S| of a stable loop; K is the regulator from the measurement, G the plant."""
        A, B, C = self.plant.A, self.plant.B, self.plant.C
        poles = np.abs(np.linalg.eigvals(A))
        integrates = bool(poles.min() <= _ROUNDING * poles.max())
        top = 0.0 if integrates else float(C @ np.linalg.solve(-A, B))
        rest = peaks_at_rest(*(np.array([v]) for v in (self.kp, np.isfinite(self.ti), top, 1.0, integrates)))

        def sizes(_: NDArray[np.intp], w: Array) -> tuple[Array, Array, Array]:
            G, K = self.plant.response(w), self._regulator(1j * w)
            return np.abs(1.0 + K * G) ** 2, np.abs(K) ** 2, np.abs(G) ** 2

        found = [float(peak[0]) for peak in peaks(sizes, self.grid(), 1)]
        at_once = np.inf if self.td > 0.0 and self.tf == 0.0 else abs(self.kp) * (1.0 + self.td / (self.tf or np.inf))
        return max(found[0], float(rest[0][0]), at_once), max(found[1], float(rest[1][0]))

    def margins(self) -> Margins | None:
        """Peaks and margins, arrays (1,); None for an unstable loop, which has none."""
        (found,) = loop_margins([self])
        if isinstance(found, NotSettled):
            raise found
        return found

    def ms(self) -> float:
        """Peak of the sensitivity, inf for an unstable loop."""
        found = self.margins()
        return np.inf if found is None else float(found.ms[0])


def loop_margins(loops: Sequence[Loop]) -> list[Margins | NotSettled | None]:
    """`Loop.margins` of many loops with plants of one order, or why not, for little more time than of one."""
    answers: list[Margins | NotSettled | None] = [None] * len(loops)
    grids: dict[int, Array] = {}
    for i, loop in enumerate(loops):
        try:
            w = loop.grid()
        except NotSettled as error:
            answers[i] = error
            continue
        if loop._stable_with(w):
            grids[i] = w
    stable = list(grids)
    if not stable:
        return answers
    count = max(len(grids[i]) for i in stable)
    w = np.stack([np.pad(grids[i], (0, count - len(grids[i])), mode="edge") for i in stable])
    A, B, C, delay = (np.stack([getattr(loops[i].plant, name) for i in stable]) for name in ("A", "B", "C", "delay"))
    kp, ti, td, tf = (np.array([getattr(loops[i], name) for i in stable]) for name in ("kp", "ti", "td", "tf"))

    def value(each: NDArray[np.intp], at: Array) -> tuple[Array, Array]:
        s = 1j * at
        inner = np.linalg.solve(s[:, None, None] * np.eye(A.shape[-1]) - A[each], B[each][:, :, None])[..., 0]
        plant = (inner * C[each]).sum(axis=1) * np.exp(-s * delay[each])
        L = kp[each] * (1.0 + (1.0 / ti[each]) / s + td[each] * s / (tf[each] * s + 1.0)) * plant
        return L.real.copy(), L.imag.copy()

    re, im = (part.reshape(w.shape) for part in value(np.repeat(np.arange(len(stable)), count), w.ravel()))
    at_rest = np.array([loops[i].at_rest() for i in stable])
    found = margins(value, w, re, im, at_rest=at_rest, real_at_end=False)
    for k, i in enumerate(stable):
        answers[i] = Margins(*(getattr(found, f.name)[k : k + 1] for f in fields(Margins)))
    return answers


# ------------------------------------------------------------------------------------------------------- responses


@dataclass(frozen=True)
class StepResponse:
    """What follows a unit step, interval by interval: Chebyshev series (intervals, degree+1) of error and command."""

    steps: Array  # (intervals,) lengths in s
    error: Array
    command: Array
    final_error: float
    final_command: float

    @property
    def iae(self) -> float:
        """Integral of |e|; inf where an error stays."""
        return self._absolute(self.error) if self.final_error == 0.0 else np.inf

    @property
    def ise(self) -> float:
        """Integral of e^2; inf where an error stays."""
        return self._square(self.error) if self.final_error == 0.0 else np.inf

    @property
    def effort(self) -> float:
        """Integral of (u - its final value)^2."""
        return self._square(np.concatenate([self.command[:, :1] - self.final_command, self.command[:, 1:]], axis=1))

    @property
    def tv(self) -> float:
        """Total variation of the command from 0 before the step on."""
        slope = np.asarray(np.polynomial.chebyshev.chebder(self.command.T).T, dtype=np.float64)
        ends = _ends(self.command)
        jumps = np.abs(ends[1:, 0] - ends[:-1, 1]).sum() + abs(ends[0, 0])
        return float(jumps + self._absolute(slope * (2.0 / self.steps)[:, None]))

    @property
    def overshoot(self) -> float:
        """By how much the output passes its final value, as a share of the step."""
        values = self.error @ _chebyshev(8 * _NODES, self.error.shape[1])
        return float(max(0.0, (self.final_error - values).max()))

    @property
    def largest_command(self) -> float:
        """Largest size of the command."""
        return float(np.abs(self.command @ _chebyshev(8 * _NODES, self.command.shape[1])).max())

    @property
    def rise(self) -> float:
        """From 10 to 90 % of the set-point (s); inf where 90 % is not reached."""
        begin, end = self._first_below(0.9), self._first_below(0.1)
        return end - begin if np.isfinite(end) else np.inf

    def settling(self, band: float) -> float:
        """The last time (s) at which the error is larger than `band`; inf where it stays so."""
        if abs(self.final_error) > band:
            return np.inf
        time, error = self._dense()
        last = int(np.flatnonzero(np.abs(error) > band).max(initial=-1))
        return 0.0 if last < 0 else self._root(time[last], time[last + 1], float(np.sign(error[last])) * band)

    def _first_below(self, level: float) -> float:
        time, error = self._dense()
        at = int((error <= level).argmax())
        if error[at] > level:
            return np.inf
        return 0.0 if at == 0 else self._root(time[at - 1], time[at], level)

    def _dense(self) -> tuple[Array, Array]:
        """Times in order and the error there."""
        x = -np.cos(np.linspace(0.0, np.pi, 4 * _NODES))
        begin = np.cumsum(self.steps) - self.steps
        time = begin[:, None] + 0.5 * self.steps[:, None] * (x + 1.0)
        return time.ravel(), (self.error @ _chebyshev(4 * _NODES, self.error.shape[1])).ravel()

    def _root(self, low: float, high: float, level: float) -> float:
        """When the error passes `level` between two times."""
        from scipy.optimize import brentq

        ends = self.at(np.array([low, high]), self.error) - level
        if ends[0] * ends[1] >= 0.0:  # the same time twice, or a jump of the error between intervals
            return float(high)
        return float(brentq(lambda t: float(self.at(np.array([t]), self.error)[0]) - level, low, high, xtol=1e-12))

    def settled(self, share: float) -> float:
        """The time (s) from which on the error differs from its final value by no more than `share` of its largest."""
        away = np.abs(self.error @ _chebyshev(2 * _NODES, self.error.shape[1]) - self.final_error).max(axis=1)
        last = int(np.flatnonzero(away > share * away.max())[-1])
        return float(self.steps[: last + 1].sum())

    def at(self, time: Array, which: Array) -> Array:
        """Values of `error` or `command` at times (s) within the response."""
        ends = np.cumsum(self.steps)
        interval = np.minimum(np.searchsorted(ends, time, side="right"), len(ends) - 1)
        x = 2.0 * (time - ends[interval]) / self.steps[interval] + 1.0
        return np.asarray((which[interval] * np.polynomial.chebyshev.chebvander(x, which.shape[1] - 1)).sum(axis=1))

    def _absolute(self, series: Array) -> float:
        """Integral of the absolute value over time, split where the sign changes."""
        cheb = np.polynomial.chebyshev
        whole = np.asarray(0.5 * self.steps[:, None] * cheb.chebint(series.T, lbnd=-1).T, dtype=np.float64)
        before = np.concatenate([[0.0], np.cumsum(_ends(whole)[:, 1])])
        x = -np.cos(np.linspace(0.0, np.pi, 4 * _NODES))
        values = series @ cheb.chebvander(x, series.shape[1] - 1).T
        values[np.abs(values) < 1e-15 * np.abs(values).max()] = 0.0
        row, at = np.nonzero(values[:, :-1] * values[:, 1:] < 0.0)
        low, high = values[row, at], values[row, at + 1]
        root = x[at] + (x[at + 1] - x[at]) * low / (low - high)
        slope = cheb.chebder(series.T).T
        for _ in range(5):  # Newton; what is left of an error counts squared
            basis = cheb.chebvander(root, series.shape[1] - 1)
            rate = (slope[row] * basis[:, :-1]).sum(axis=1)
            step = (series[row] * basis).sum(axis=1) / np.where(rate == 0.0, np.inf, rate)
            root = np.clip(root - step, x[at], x[at + 1])
        roots = before[row] + (whole[row] * cheb.chebvander(root, whole.shape[1] - 1)).sum(axis=1)
        jumps = np.flatnonzero((values[:-1, -1] > 0.0) != (values[1:, 0] > 0.0)) + 1
        order = np.argsort(np.concatenate([row + 0.5 * (root + 1.0), jumps]), kind="stable")
        breaks = np.concatenate([roots, before[jumps]])[order]
        return float(np.abs(np.diff(np.concatenate([[0.0], breaks, before[-1:]]))).sum())

    def _square(self, series: Array) -> float:
        x, weight = np.polynomial.legendre.leggauss(_NODES + 2)
        values = series @ np.polynomial.chebyshev.chebvander(x, series.shape[1] - 1).T
        return float(0.5 * self.steps @ ((values * values) @ weight))


def step_responses(loop: Loop) -> tuple[StepResponse, StepResponse]:
    """The responses to unit steps of the set-point and of the plant's input, both from rest.

    For a stable loop only: ask `Loop.stable` before. The disturbance is delayed as the command is. Raises `NotSettled`.
    """
    M, N, K, R = loop.equations()
    n = len(M)
    final = [_rest(loop, r, d) for r, d in ((1.0, 0.0), (0.0, 1.0))]
    if loop.delay == 0.0:
        steps, nodes = _nodes_without_delay(M + np.outer(N, K), np.stack([R + N * loop.kp * loop.b, N], axis=1))
    else:
        steps, nodes = _nodes_with_delay(loop, final)
    C = np.concatenate([loop.plant.C, np.zeros(n - len(loop.plant.C))])
    e = np.array([1.0, 0.0]) - C @ nodes
    u = K @ nodes + np.array([loop.kp * loop.b, 0.0])
    to_series = np.linalg.inv(np.polynomial.chebyshev.chebvander(_nodes()[0], _NODES - 1))
    return tuple(  # type: ignore[return-value]
        StepResponse(
            steps,
            e[:, :, c] @ to_series.T,
            u[:, :, c] @ to_series.T,
            0.0 if np.isfinite(loop.ti) else float((1.0, 0.0)[c] - C @ final[c][0]),
            final[c][1],
        )
        for c in range(2)
    )


def _nodes_without_delay(M: Array, inputs: Array) -> tuple[Array, Array]:
    """Lengths (k,) of intervals, and states (k, nodes, n, 2) of z' = M z + inputs; intervals grow as modes die away."""
    modes = np.linalg.eigvals(M)
    z, time = np.zeros((len(M), 2)), 0.0
    lengths: list[float] = []
    parts: list[Array] = []
    while len(going := modes[modes.real * time > -_GONE]):
        fastest = going[np.abs(going).argmax()]
        step = _REACH / float(np.abs(fastest))
        count = max(1, int(np.ceil((_GONE / -float(fastest.real) - time) / step)))
        if len(lengths) + count > _MOST_INTERVALS:
            raise NotSettled(f"the response is not at rest after {_MOST_INTERVALS} intervals, at {time:.3g} s")
        of_begin = _interval(M, inputs[:, 0], step)[1]
        constant = np.stack([_interval(M, column, step)[0].sum(axis=2) for column in inputs.T], axis=2)
        begins = []
        for _ in range(count):
            begins.append(z)
            z = of_begin[-1] @ z + constant[-1]
        parts.append(of_begin @ np.stack(begins)[:, None] + constant)
        lengths.extend([step] * count)
        time += count * step
    return np.array(lengths), np.concatenate(parts)


def _nodes_with_delay(loop: Loop, final: list[tuple[Array, float]]) -> tuple[Array, Array]:
    """The same with the delayed command; the delay is a whole number of intervals."""
    M, N, K, R = loop.equations()
    late = max(1, int(np.ceil(float(np.abs(np.linalg.eigvals(M)).max()) * loop.delay / _REACH)))
    step = loop.delay / late
    of_past, of_begin = _interval(M, N, step)
    constant = np.stack([_interval(M, column, step)[0].sum(axis=2) for column in (R, N)], axis=2)
    before = constant * np.array([1.0, 0.0])  # the disturbance has not passed the delay
    target = np.stack([z for z, _ in final], axis=1)
    direct = np.array([loop.kp * loop.b, 0.0])
    z, scale = np.zeros_like(target), np.abs(target)
    commands: list[Array] = []
    found: list[Array] = []
    for k in range(_MOST_INTERVALS):
        nodes = of_begin @ z + (before if k < late else constant + of_past @ commands[k - late])
        z = nodes[-1]
        found.append(nodes)
        commands.append(K @ nodes + direct)
        scale = np.maximum(scale, np.abs(nodes).max(axis=0))
        if k > 2 * late and k % 8 == 0 and _at_rest(z, target, scale, commands[-late - 1 :], final):
            return np.full(k + 1, step), np.stack(found)
    raise NotSettled(f"the response is not at rest after {_MOST_INTERVALS} intervals of {step:.3g} s")


def _at_rest(z: Array, target: Array, scale: Array, commands: list[Array], final: list[tuple[Array, float]]) -> bool:
    """Whether the state and the commands on their way are those of rest."""
    if (np.abs(z - target) > _SETTLED * np.maximum(scale, 1e-300)).any():
        return False
    u = np.stack(commands)
    most = np.maximum(np.abs(u).max(axis=(0, 1)), [abs(final[0][1]), abs(final[1][1])]) + 1e-300
    return bool((np.abs(u - [final[0][1], final[1][1]]).max(axis=(0, 1)) <= _SETTLED * np.maximum(most, 1.0)).all())


def _rest(loop: Loop, r: float, d: float) -> tuple[Array, float]:
    """State and command at rest with set-point r and input disturbance d."""
    M, N, K, R = loop.equations()
    direct = loop.kp * loop.b * r
    z = np.asarray(np.linalg.solve(M + np.outer(N, K), -(N * (direct + d) + R * r)), dtype=np.float64)
    return z, float(K @ z + direct)


@lru_cache(maxsize=1)
def _nodes() -> tuple[Array, Array]:
    """Chebyshev-Lobatto nodes from -1 to 1 and the matrix that differentiates values there (Trefethen 2000, ch. 6)."""
    x = -np.cos(np.pi * np.arange(_NODES) / (_NODES - 1))
    c = np.where((np.arange(_NODES) == 0) | (np.arange(_NODES) == _NODES - 1), 2.0, 1.0) * (-1.0) ** np.arange(_NODES)
    D = np.outer(c, 1.0 / c) / (x[:, None] - x + np.eye(_NODES))
    return x, D - np.diag(D.sum(axis=1))


def _interval(M: Array, N: Array, step: float) -> tuple[Array, Array]:
    """What z' = M z + N f makes of f at the nodes, (nodes, n, nodes), and of z at the begin, (nodes, n, n)."""
    _, D = _nodes()
    n, m = len(M), _NODES - 1
    system = np.kron(D[1:, 1:] * (2.0 / step), np.eye(n)) - np.kron(np.eye(m), M)
    right = np.zeros((m, n, _NODES + n))
    right[np.arange(m), :, np.arange(1, _NODES)] = N
    right[:, :, _NODES:] = -(2.0 / step) * D[1:, :1, None] * np.eye(n)
    found = np.linalg.solve(system, right.reshape(m * n, -1)).reshape(m, n, -1)
    begin = np.concatenate([np.zeros((n, _NODES)), np.eye(n)], axis=1)[None]
    whole = np.concatenate([begin, found])
    return whole[:, :, :_NODES], whole[:, :, _NODES:]


def _ends(series: Array) -> Array:
    """Values of Chebyshev series at -1 and 1, (rows, 2)."""
    signs = (-1.0) ** np.arange(series.shape[1])
    return np.stack([series @ signs, series.sum(axis=1)], axis=1)


def _chebyshev(count: int, size: int) -> Array:
    """Values of `size` polynomials at `count` points, (size, count)."""
    return np.asarray(np.polynomial.chebyshev.chebvander(-np.cos(np.linspace(0.0, np.pi, count)), size - 1).T)
