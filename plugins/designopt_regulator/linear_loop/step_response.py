"""Step responses of continuous loops: solved interval by interval, their integrals, extremes and times.

With a delay the intervals are those of the method of steps; on each the solution is smooth and computed by Chebyshev
collocation, and the integral of |e| is split where e changes its sign. A loop that is slow, or has a fast filter,
beside its delay has graded intervals until its command is smooth over a delay; then the delayed command is a polynomial
in time (the pseudospectral generator of Breda, Maset & Vermiglio 2005), and intervals grow as modes decay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt_regulator.linear_loop.chebyshev import NODES, points
from designopt_regulator.linear_loop.continuous import Loop, NotSettled

#: Share of the largest deviation of an error from its final value within which its transient has ended.
TRANSIENT = 0.005
_REACH = 2.0  # rate of the fastest mode times the length of an interval
_SETTLED = 1e-11  # share of the largest value within which a response is at rest
_DECAYED = 45.0  # a mode is at rest when it has decayed by e^-45
_MOST_INTERVALS = 200_000
_EVEN_INTERVALS = 2000  # with a delay, of one length, before they are graded
_SMOOTH = 1e-12  # share of a command's largest deviation, within which a polynomial is its course over a delay
_ROUNDING = 1e-14  # of the parts of a command, within which it has no digits
_LAYERS = 3.0  # times a fast mode by which its layer after a jump grows in each passage of the loop
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
        steps, nodes = _nodes_with_delay(loop, final) or _graded_nodes(loop, final)
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


def _nodes_without_delay(M: Floats, inputs: Floats, z: Floats | None = None) -> tuple[Floats, Floats]:
    """Lengths (k,) of intervals, and states (k, nodes, n, 2) of z' = M z + inputs from `z` (n, 2), 0 by default;
    intervals grow as modes decay."""
    modes = np.linalg.eigvals(M)
    z, time = np.zeros((len(M), 2)) if z is None else z, 0.0
    lengths: list[float] = []
    parts: list[Floats] = []
    while len(active_modes := modes[modes.real * time > -_DECAYED]):
        fastest = active_modes[np.abs(active_modes).argmax()]
        step = _REACH / float(np.abs(fastest))
        count = max(1, int(np.ceil((_DECAYED / -float(fastest.real) - time) / step)))
        if len(lengths) + count > _MOST_INTERVALS:
            raise NotSettled(f"the response is not at rest after {_MOST_INTERVALS} intervals, at {time:.3g} s")
        maps = [_interval(M, column, step) for column in inputs.T]
        begin_map = maps[0][1]
        constant = np.stack([input_map.sum(axis=2) for input_map, _ in maps], axis=2)
        begins = []
        for _ in range(count):
            begins.append(z)
            z = begin_map[-1] @ z + constant[-1]
        parts.append(begin_map @ np.stack(begins)[:, None] + constant)
        lengths.extend([step] * count)
        time += count * step
    return np.array(lengths), np.concatenate(parts)


def _nodes_with_delay(loop: Loop, final: list[tuple[Floats, float]]) -> tuple[Floats, Floats] | None:
    """`_nodes_without_delay` with the delayed command; the delay is a whole number of intervals. None for a response
    that takes more than `_EVEN_INTERVALS`."""
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
    for k in range(_EVEN_INTERVALS):
        from_input = constant_before if k < delay_intervals else constant + command_map @ commands[k - delay_intervals]
        nodes = begin_map @ z + from_input
        z = nodes[-1]
        node_list.append(nodes)
        commands.append(K @ nodes + direct)
        scale = np.maximum(scale, np.abs(nodes).max(axis=0))
        is_checked = k > 2 * delay_intervals and k % 8 == 0
        if is_checked and _at_rest(z, target, scale, commands[-delay_intervals - 1 :], final):
            return np.full(k + 1, step), np.stack(node_list)
    return None


def _graded_nodes(loop: Loop, final: list[tuple[Floats, float]]) -> tuple[Floats, Floats]:
    """`_nodes_with_delay` with intervals that are short after the arrival of a jump and grow as modes decay, in each
    delay alike; where the command has become smooth, `_smooth_nodes` follow. Raises `NotSettled`."""
    M, N, K, R, direct = loop.equations()
    target = np.stack([z for z, _ in final], axis=1)
    final_commands = np.array([u for _, u in final])
    z, largest = np.zeros_like(target), np.abs(final_commands)
    step_list: list[Floats] = []
    node_list: list[Floats] = []
    commands: list[Floats] = []
    last_periods: list[tuple[Floats, Floats]] = []
    interval_count, periods = 0, 0
    while interval_count <= _MOST_INTERVALS:
        if periods & (periods - 1) == 0:  # layers grow with the number of passages: new grades at 1, 2, 4, 8 ...
            steps = _graded_steps(np.linalg.eigvals(M), loop.delay, _DECAYED + 2.0 * _LAYERS * periods)
            commands = [] if not commands else list(_resampled(commands, step_list[-1], steps))
            maps = {step: _interval(M, N, step) for step in set(steps.tolist())}
            loads = {s: np.stack([_interval(M, c, s)[0].sum(axis=2) for c in (R, N)], axis=2) for s in maps}
        later_commands = []
        for j, step in enumerate(steps.tolist()):
            command_map, begin_map = maps[step]
            from_input = loads[step] + command_map @ commands[j] if commands else loads[step] * np.array([1.0, 0.0])
            nodes = begin_map @ z + from_input  # the disturbance arrives after the delay
            z = nodes[-1]
            node_list.append(nodes)
            later_commands.append(K @ nodes + direct)
        commands = later_commands
        step_list.append(steps)
        interval_count, periods = interval_count + len(steps), periods + 1
        deviation = np.stack(commands) - final_commands
        largest = np.maximum(largest, np.abs(deviation).max(axis=(0, 1)))
        rounding = _ROUNDING * float(np.abs(K) @ np.abs(z).max(axis=1))
        tolerance = np.maximum(_SMOOTH * largest, rounding)
        last_periods = [*last_periods[-1:], (steps, deviation)]
        course = _smooth_course(last_periods, tolerance) if periods > 2 else None
        if course is not None:
            tail = _smooth_nodes(loop, z - target, course)
            if tail is not None:
                return np.concatenate([*step_list, tail[0]]), np.concatenate([np.stack(node_list), tail[1] + target])
    raise NotSettled(f"the response is not at rest after {interval_count} intervals of {periods} delays")


def _graded_steps(
    modes: NDArray[np.complexfloating[Any, Any] | np.floating[Any]], delay: float, exponent: float
) -> Floats:
    """(k,) lengths of intervals of a delay: 2 over the rate of the fastest mode that has not decayed by e^-exponent."""
    lengths: list[float] = []
    time = 0.0
    while True:
        active_modes = modes[-modes.real * time <= exponent]
        fastest = active_modes[np.abs(active_modes).argmax()] if len(active_modes) else 0.0
        end = min(delay, exponent / -float(np.real(fastest)) if np.real(fastest) < 0.0 else delay)
        end = delay if delay - end < 0.1 * delay else end
        count = max(1, int(np.ceil(np.abs(fastest) * (end - time) / _REACH)))
        if len(lengths) + count > _MOST_INTERVALS:
            raise NotSettled(f"a delay of {delay:g} s takes more than {_MOST_INTERVALS} intervals")
        lengths.extend([(end - time) / count] * count)
        if end == delay:
            return np.array(lengths)
        time = end * (1.0 + 1e-12)


def _values_at(time: Floats, steps: Floats, values: Floats) -> Floats:
    """(n, 2) at `time` (n,) s of what has `values` (k, nodes, 2) at the nodes of intervals of the lengths `steps`."""
    ends = np.cumsum(steps)
    interval = np.minimum(np.searchsorted(ends, time, side="left"), len(ends) - 1)
    x = 2.0 * (time - ends[interval]) / steps[interval] + 1.0
    to_series = np.linalg.inv(np.polynomial.chebyshev.chebvander(points()[0], NODES - 1))
    basis = np.polynomial.chebyshev.chebvander(x, NODES - 1) @ to_series
    return np.asarray(np.einsum("nj,njc->nc", basis, values[interval]))


def _node_times(steps: Floats) -> Floats:
    """(k, nodes) s, the nodes of intervals of the lengths `steps` (k,)."""
    return np.asarray((np.cumsum(steps) - steps)[:, None] + 0.5 * steps[:, None] * (points()[0] + 1.0))


def _resampled(commands: list[Floats], before: Floats, after: Floats) -> Floats:
    """Commands at the nodes of the intervals `after`, (k, nodes, 2), from those at the nodes of the ones `before`."""
    if len(before) == len(after) and (before == after).all():
        return np.stack(commands)
    return _values_at(_node_times(after).ravel(), before, np.stack(commands)).reshape(len(after), NODES, 2)


def _smooth_course(periods: Sequence[tuple[Floats, Floats]], tolerance: Floats) -> Floats | None:
    """The values (nodes, 2) of the last of two `periods` of a delay at the nodes of a polynomial over it; None where no
    polynomial is within the `tolerance` (2,) of it, or of a delay about the instant between the two.

    A period has the lengths (k,) of its intervals and the command at their nodes, (k, nodes, 2), less that at rest.
    """
    steps, values = (np.concatenate(parts) for parts in zip(*periods, strict=True))
    delay = 0.5 * float(steps.sum())
    times, courses = _node_times(steps), []
    for begin in (0.5 * delay, delay):
        within = (times >= begin) & (times <= begin + delay * (1.0 + 1e-12))
        course = _values_at(begin + 0.5 * delay * (points()[0] + 1.0), steps, values)
        polynomial = _values_at(np.minimum(times[within] - begin, delay), np.array([delay]), course[None])
        is_smooth = (np.abs(polynomial - values[within]) <= tolerance).all()
        if not is_smooth:
            return None
        courses.append(course)
    return np.asarray(courses[-1])


def _smooth_nodes(loop: Loop, z: Floats, course: Floats) -> tuple[Floats, Floats] | None:
    """Lengths (k,) and states (k, nodes, n, 2), less those at rest, that follow the state `z` (n, 2) after a delay in
    which the command, less that at rest, had the values `course` (nodes, 2); None if the generator is not stable."""
    M, N, K, *_ = loop.equations()
    n, m = len(M), NODES - 1
    D = points()[1][:m] * (2.0 / loop.delay)
    generator = np.zeros((n + m, n + m))
    generator[:n, :n], generator[:n, n] = M, N
    generator[n:, :n], generator[n:, n:] = np.outer(D[:, m], K), D[:, :m]
    if not (np.linalg.eigvals(generator).real < 0.0).all():
        return None
    steps, nodes = _nodes_without_delay(generator, np.zeros((n + m, 2)), np.concatenate([z, course[:m]]))
    return steps, nodes[:, :, :n]


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
