"""Step responses of continuous loops: solved interval by interval, their integrals, extremes and times.

With a delay the intervals are those of the method of steps; on each the solution is smooth and computed by Chebyshev
collocation, and the integral of |e| is split where e changes its sign.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats
from designopt_regulator.linear_loop.chebyshev import NODES, points
from designopt_regulator.linear_loop.continuous import Loop, NotSettled

#: Share of the largest deviation of an error from its final value within which its transient has ended.
TRANSIENT = 0.005
_REACH = 2.0  # rate of the fastest mode times the length of an interval
_SETTLED = 1e-11  # share of the largest value within which a response is at rest
_DECAYED = 45.0  # a mode is at rest when it has decayed by e^-45
_MOST_INTERVALS = 200_000
_NEAR = 0.01  # share of a response's range within which peaks on the grid may be the largest


@dataclass(frozen=True)
class StepResponse:
    """The response to a unit step, interval by interval: Chebyshev series (intervals, degree+1) of error and
    command."""

    steps: Floats  # (intervals,) lengths in s
    error: Floats
    command: Floats
    final_error: float
    final_command: float

    @property
    def iae(self) -> float:
        """Integral of |e|; inf with a final error."""
        return self._absolute(self.error) if self.final_error == 0.0 else np.inf

    @property
    def ise(self) -> float:
        """Integral of e^2; inf with a final error."""
        return self._square(self.error) if self.final_error == 0.0 else np.inf

    @property
    def effort(self) -> float:
        """Integral of the squared command less its final value."""
        return self._square(np.concatenate([self.command[:, :1] - self.final_command, self.command[:, 1:]], axis=1))

    @property
    def tv(self) -> float:
        """Total variation of the command, which is 0 before the step."""
        slope = np.asarray(np.polynomial.chebyshev.chebder(self.command.T).T, dtype=np.float64)
        ends = _ends(self.command)
        jumps = np.abs(ends[1:, 0] - ends[:-1, 1]).sum() + abs(ends[0, 0])
        return float(jumps + self._absolute(slope * (2.0 / self.steps)[:, None]))

    @property
    def overshoot(self) -> float:
        """The largest amount by which the output exceeds its final value, as a share of the step."""
        return max(0.0, self.final_error + _largest(-self.error))

    @property
    def peak_command(self) -> float:
        """Largest magnitude of the command."""
        return max(_largest(self.command), _largest(-self.command))

    @property
    def rise(self) -> float:
        """The time (s) from 10 to 90 % of the set-point; inf where 90 % is not reached."""
        begin, end = self._first_below(0.9), self._first_below(0.1)
        return end - begin if np.isfinite(end) else np.inf

    def settling(self, band: float) -> float:
        """The last time (s) at which the error is larger than `band`; inf if its final value is."""
        if abs(self.final_error) > band:
            return np.inf
        time, error = self._dense_response()
        last = int(np.flatnonzero(np.abs(error) > band).max(initial=-1))
        return 0.0 if last < 0 else self._root(time[last], time[last + 1], float(np.sign(error[last])) * band)

    def _first_below(self, level: float) -> float:
        time, error = self._dense_response()
        at = int((error <= level).argmax())
        if error[at] > level:
            return np.inf
        return 0.0 if at == 0 else self._root(time[at - 1], time[at], level)

    def _dense_response(self) -> tuple[Floats, Floats]:
        """Times in order and the error there."""
        x = -np.cos(np.linspace(0.0, np.pi, 4 * NODES))
        begin = np.cumsum(self.steps) - self.steps
        time = begin[:, None] + 0.5 * self.steps[:, None] * (x + 1.0)
        return time.ravel(), (self.error @ _chebyshev(4 * NODES, self.error.shape[1])).ravel()

    def _root(self, low: float, high: float, level: float) -> float:
        """The time (s) at which the error crosses `level` between two times."""
        from scipy.optimize import brentq

        ends = self.at(np.array([low, high]), self.error) - level
        if ends[0] * ends[1] >= 0.0:  # the same time twice, or a jump of the error between intervals
            return float(high)
        return float(brentq(lambda t: float(self.at(np.array([t]), self.error)[0]) - level, low, high, xtol=1e-12))

    @property
    def transient_time(self) -> float:
        """The time (s) from which on the error is within `TRANSIENT` times its largest deviation of its final value."""
        deviation = np.abs(self.error @ _chebyshev(2 * NODES, self.error.shape[1]) - self.final_error).max(axis=1)
        last = int(np.flatnonzero(deviation > TRANSIENT * deviation.max())[-1])
        return float(self.steps[: last + 1].sum())

    def at(self, time: Floats, columns: Floats) -> Floats:
        """Values of `error` or `command` at times (s) within the response."""
        ends = np.cumsum(self.steps)
        interval = np.minimum(np.searchsorted(ends, time, side="right"), len(ends) - 1)
        x = 2.0 * (time - ends[interval]) / self.steps[interval] + 1.0
        return np.asarray((columns[interval] * np.polynomial.chebyshev.chebvander(x, columns.shape[1] - 1)).sum(axis=1))

    def _absolute(self, series: Floats) -> float:
        """Integral of the absolute value over time, split where the sign changes."""
        cheb = np.polynomial.chebyshev
        primitive = np.asarray(0.5 * self.steps[:, None] * cheb.chebint(series.T, lbnd=-1).T, dtype=np.float64)
        before = np.concatenate([[0.0], np.cumsum(_ends(primitive)[:, 1])])
        x = -np.cos(np.linspace(0.0, np.pi, 4 * NODES))
        values = series @ cheb.chebvander(x, series.shape[1] - 1).T
        values[np.abs(values) < 1e-15 * np.abs(values).max()] = 0.0
        row, at = np.nonzero(values[:, :-1] * values[:, 1:] < 0.0)
        low, high = values[row, at], values[row, at + 1]
        root = x[at] + (x[at + 1] - x[at]) * low / (low - high)
        slope = cheb.chebder(series.T).T
        for _ in range(5):  # Newton; an error of the root changes the integral by its square
            basis = cheb.chebvander(root, series.shape[1] - 1)
            rate = (slope[row] * basis[:, :-1]).sum(axis=1)
            step = (series[row] * basis).sum(axis=1) / np.where(rate == 0.0, np.inf, rate)
            root = np.clip(root - step, x[at], x[at + 1])
        roots = before[row] + (primitive[row] * cheb.chebvander(root, primitive.shape[1] - 1)).sum(axis=1)
        jumps = np.flatnonzero((values[:-1, -1] > 0.0) != (values[1:, 0] > 0.0)) + 1
        order = np.argsort(np.concatenate([row + 0.5 * (root + 1.0), jumps]), kind="stable")
        breaks = np.concatenate([roots, before[jumps]])[order]
        return float(np.abs(np.diff(np.concatenate([[0.0], breaks, before[-1:]]))).sum())

    def _square(self, series: Floats) -> float:
        x, weight = np.polynomial.legendre.leggauss(NODES + 2)
        values = series @ np.polynomial.chebyshev.chebvander(x, series.shape[1] - 1).T
        return float(0.5 * self.steps @ ((values * values) @ weight))


def step_responses(loop: Loop) -> tuple[StepResponse, StepResponse]:
    """The responses to unit steps of the set-point and of the plant's input, both from rest.

    For a stable loop only: check `Loop.stable` before. The disturbance is delayed like the command. Raises
    `NotSettled`.
    """
    M, N, K, R, direct = loop.equations()
    n = len(M)
    final = [_rest(loop, r, d) for r, d in ((1.0, 0.0), (0.0, 1.0))]
    if loop.delay == 0.0:
        steps, nodes = _nodes_without_delay(M + np.outer(N, K), np.stack([R, N], axis=1) + np.outer(N, direct))
    else:
        steps, nodes = _nodes_with_delay(loop, final)
    C = np.concatenate([loop.plant.C, np.zeros(n - len(loop.plant.C))])
    u = K @ nodes + direct
    e = np.array([1.0, 0.0]) - C @ nodes
    if loop.plant.D != 0.0:
        e = e - float(loop.plant.D) * (u + np.array([0.0, 1.0]))
    to_series = np.linalg.inv(np.polynomial.chebyshev.chebvander(points()[0], NODES - 1))
    return tuple(  # type: ignore[return-value]
        StepResponse(
            steps,
            e[:, :, c] @ to_series.T,
            u[:, :, c] @ to_series.T,
            0.0 if np.isfinite(loop.ti) else float((1.0, 0.0)[c] - C @ final[c][0] - loop.plant.D * (final[c][1] + c)),
            final[c][1],
        )
        for c in range(2)
    )


def _nodes_without_delay(M: Floats, inputs: Floats) -> tuple[Floats, Floats]:
    """Lengths (k,) of intervals, and states (k, nodes, n, 2) of z' = M z + inputs; intervals grow as modes decay."""
    modes = np.linalg.eigvals(M)
    z, time = np.zeros((len(M), 2)), 0.0
    lengths: list[float] = []
    parts: list[Floats] = []
    while len(active_modes := modes[modes.real * time > -_DECAYED]):
        fastest = active_modes[np.abs(active_modes).argmax()]
        step = _REACH / float(np.abs(fastest))
        count = max(1, int(np.ceil((_DECAYED / -float(fastest.real) - time) / step)))
        if len(lengths) + count > _MOST_INTERVALS:
            raise NotSettled(f"the response is not at rest after {_MOST_INTERVALS} intervals, at {time:.3g} s")
        begin_map = _interval(M, inputs[:, 0], step)[1]
        constant = np.stack([_interval(M, column, step)[0].sum(axis=2) for column in inputs.T], axis=2)
        begins = []
        for _ in range(count):
            begins.append(z)
            z = begin_map[-1] @ z + constant[-1]
        parts.append(begin_map @ np.stack(begins)[:, None] + constant)
        lengths.extend([step] * count)
        time += count * step
    return np.array(lengths), np.concatenate(parts)


def _nodes_with_delay(loop: Loop, final: list[tuple[Floats, float]]) -> tuple[Floats, Floats]:
    """`_nodes_without_delay` with the delayed command; the delay is a whole number of intervals."""
    M, N, K, R, direct = loop.equations()
    delay_intervals = max(1, int(np.ceil(float(np.abs(np.linalg.eigvals(M)).max()) * loop.delay / _REACH)))
    step = loop.delay / delay_intervals
    command_map, begin_map = _interval(M, N, step)
    constant = np.stack([_interval(M, column, step)[0].sum(axis=2) for column in (R, N)], axis=2)
    constant_before = constant * np.array([1.0, 0.0])  # until the disturbance arrives after the delay
    target = np.stack([z for z, _ in final], axis=1)
    z, scale = np.zeros_like(target), np.abs(target)
    commands: list[Floats] = []
    node_list: list[Floats] = []
    for k in range(_MOST_INTERVALS):
        from_input = constant_before if k < delay_intervals else constant + command_map @ commands[k - delay_intervals]
        nodes = begin_map @ z + from_input
        z = nodes[-1]
        node_list.append(nodes)
        commands.append(K @ nodes + direct)
        scale = np.maximum(scale, np.abs(nodes).max(axis=0))
        is_checked = k > 2 * delay_intervals and k % 8 == 0
        if is_checked and _at_rest(z, target, scale, commands[-delay_intervals - 1 :], final):
            return np.full(k + 1, step), np.stack(node_list)
    raise NotSettled(f"the response is not at rest after {_MOST_INTERVALS} intervals of {step:.3g} s")


def _at_rest(
    z: Floats, target: Floats, scale: Floats, commands: list[Floats], final: list[tuple[Floats, float]]
) -> bool:
    """Whether the state and the delayed commands are those at rest."""
    if (np.abs(z - target) > _SETTLED * np.maximum(scale, 1e-300)).any():
        return False
    u = np.stack(commands)
    largest = np.maximum(np.abs(u).max(axis=(0, 1)), [abs(final[0][1]), abs(final[1][1])]) + 1e-300
    return bool((np.abs(u - [final[0][1], final[1][1]]).max(axis=(0, 1)) <= _SETTLED * np.maximum(largest, 1.0)).all())


def _rest(loop: Loop, r: float, d: float) -> tuple[Floats, float]:
    """State and command at rest with set-point r and input disturbance d."""
    M, N, K, R, E = loop.equations()
    direct = float(E @ [r, d])
    z = np.asarray(np.linalg.solve(M + np.outer(N, K), -(N * (direct + d) + R * r)), dtype=np.float64)
    return z, float(K @ z + direct)


def _interval(M: Floats, N: Floats, step: float) -> tuple[Floats, Floats]:
    """The maps of z' = M z + N f over an interval: from f at the nodes, (nodes, n, nodes), and from z at the begin,
    (nodes, n, n)."""
    _, D = points()
    n, m = len(M), NODES - 1
    system = np.kron(D[1:, 1:] * (2.0 / step), np.eye(n)) - np.kron(np.eye(m), M)
    right = np.zeros((m, n, NODES + n))
    right[np.arange(m), :, np.arange(1, NODES)] = N
    right[:, :, NODES:] = -(2.0 / step) * D[1:, :1, None] * np.eye(n)
    solution = np.linalg.solve(system, right.reshape(m * n, -1)).reshape(m, n, -1)
    begin = np.concatenate([np.zeros((n, NODES)), np.eye(n)], axis=1)[None]
    values_at_nodes = np.concatenate([begin, solution])
    return values_at_nodes[:, :, :NODES], values_at_nodes[:, :, NODES:]


def _ends(series: Floats) -> Floats:
    """Values of Chebyshev series at -1 and 1, (rows, 2)."""
    signs = (-1.0) ** np.arange(series.shape[1])
    return np.stack([series @ signs, series.sum(axis=1)], axis=1)


def _largest(series: Floats) -> float:
    """The largest value of Chebyshev series (intervals, degree + 1): on a grid, then where the slope beside it is 0."""
    cheb = np.polynomial.chebyshev
    size, x = series.shape[1], -np.cos(np.linspace(0.0, np.pi, 4 * NODES))
    values = series @ _chebyshev(4 * NODES, size)
    at, largest = values.argmax(axis=1), values.max(axis=1)
    inside = (largest >= largest.max() - _NEAR * (largest.max() - values.min())) & (at > 0) & (at < len(x) - 1)
    rows, at = series[inside], at[inside]
    slopes = cheb.chebder(rows.T).T
    bends = cheb.chebder(slopes.T).T
    peak = x[at]
    for _ in range(4):  # Newton
        slope, bend = ((part * cheb.chebvander(peak, part.shape[1] - 1)).sum(axis=1) for part in (slopes, bends))
        peak = np.clip(peak - slope / np.where(bend < 0.0, bend, -np.inf), x[at - 1], x[at + 1])
    peak_values = (rows * cheb.chebvander(peak, size - 1)).sum(axis=1)
    return float(max(largest.max(), peak_values.max(initial=-np.inf)))


def _chebyshev(count: int, size: int) -> Floats:
    """Values of `size` polynomials at `count` points, (size, count)."""
    return np.asarray(np.polynomial.chebyshev.chebvander(-np.cos(np.linspace(0.0, np.pi, count)), size - 1).T)
