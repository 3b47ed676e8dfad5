"""Robustness of sampled loops, many at once: stability first, then peaks of the sensitivities, margins and noise.

The loop is the sampled plant with zero-order hold and exact delay, and the difference equations of the controller,
without approximation by a continuous loop. The results of a row do not depend on other rows, to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from designopt.arrays import Floats
from designopt_regulator.controllers.pid import PID
from designopt_regulator.frequency.grid import coarse, grid, refine_grid
from designopt_regulator.frequency.margins import Margins, margins, no_margins, peaks, peaks_at_rest
from designopt_regulator.plants.linear import sample_plants

_ROWS = 256  # at a time, which bounds the memory
_INTEGRATES = 1e-12  # 1/s, below which a pole is one at 0


@dataclass(frozen=True)
class LoopMeasures:
    """Measures of n sampled loops, arrays (n,).

    With a spectral radius of 1 or more there are no margins: `ms`, `mt`, `gm_down` and `noise_gain` are inf, `gm`,
    `pm`, `delay_margin`, `crossover` and `damping` -inf. A stable loop whose gain never passes 1 has pm and
    delay_margin inf and the crossover 0; gm is inf where no larger gain makes it unstable, gm_down 0 where no smaller
    one does.
    """

    spectral_radius: Floats  # of the closed loop with its delay chain
    stab_degree: Floats  # 1/s: -ln(spectral_radius) / sample_time
    ms: Floats  # peak of |1/(1+L)|
    mt: Floats  # peak of |L/(1+L)|
    gm: Floats  # smallest factor above 1 on the gain that makes it unstable
    gm_down: Floats  # largest factor below 1 on the gain that makes it unstable
    pm: Floats  # rad: smallest distance in phase from -1
    delay_margin: Floats  # s: smallest delay more that makes it unstable
    crossover: Floats  # rad/s: highest frequency at which |L| is 1
    noise_gain: Floats  # standard deviation of the command for white measurement noise of deviation 1
    damping: Floats  # ratio, of the oscillation that decays slowest; 1 where nothing oscillates

    @property
    def stable(self) -> NDArray[np.bool_]:
        return self.spectral_radius < 1.0


def measures(A: Floats, B: Floats, C: Floats, delay_samples: ArrayLike, pid: PID) -> LoopMeasures:
    """Measures of n loops of plants `A` (n, s, s), `B` (n, s), `C` (n, s) with n controllers.

    `delay_samples` is the delay of the plants in samples, whole or not, a number or an array (n,).
    """
    loops = _loops(A, B, C, delay_samples, pid)
    n = len(A)
    result = LoopMeasures(*(np.empty(n) for _ in fields(LoopMeasures)))
    kinds = np.stack([loops.whole_samples, loops.late], axis=1)
    for kind in np.unique(kinds, axis=0):
        rows = np.flatnonzero((kinds == kind).all(axis=1))
        for first in range(0, len(rows), _ROWS):
            part = rows[first : first + _ROWS]
            for field, values in zip(fields(LoopMeasures), _measure(loops.rows(part)), strict=True):
                getattr(result, field.name)[part] = values
    return result


def frequency_response(
    A: Floats, B: Floats, C: Floats, delay_samples: ArrayLike, pid: PID, frequency: ArrayLike
) -> NDArray[np.complex128]:
    """The open loop L(exp(j w T)) (n, m) at `frequency` (m,) in rad/s; arguments as for `measures`."""
    loops = _loops(A, B, C, delay_samples, pid)
    n, w = len(A), np.asarray(frequency, dtype=np.float64)
    each = np.repeat(np.arange(n), len(w))
    re, im = _open_loop(loops, each, np.tile(w, n))
    return np.asarray(re + 1j * im).reshape(n, len(w))


# ------------------------------------------------------------------------------------------------------- the loop


@dataclass(frozen=True)
class _Loops:
    """Sampled loops: plants ``x' = x + R x + B0 u[k-d] + B1 u[k-d-1]`` and the terms of the controllers.

    With delta = z - 1 the plant is z^-(d+1) (tail + head z) / bottom, all polynomials of delta, highest power first:
    near z = 1 powers of z would cancel.
    """

    R: Floats
    B0: Floats
    B1: Floats
    C: Floats
    whole_samples: NDArray[np.int_]
    late: NDArray[np.bool_]  # whether u[k-d-1] acts
    head: Floats
    tail: Floats
    bottom: Floats
    delay: Floats  # samples
    kp: Floats
    integral: Floats  # T_s / T_i
    derivative: Floats  # T_d / (T_f + T_s)
    forget: Floats  # T_s / (T_f + T_s)
    sample_time: float

    def rows(self, rows: NDArray[np.intp]) -> _Loops:
        parts = {name: values[rows] for name, values in vars(self).items() if name != "sample_time"}
        return replace(self, **parts)


def _loops(A: Floats, B: Floats, C: Floats, delay: ArrayLike, pid: PID) -> _Loops:
    n, T = len(A), pid.sample_time
    delay, kp, ti, td, tf = (
        np.array(np.broadcast_to(np.asarray(v, dtype=np.float64), n)) for v in (delay, pid.kp, pid.ti, pid.td, pid.tf)
    )
    # Designs meet in the same few scenarios: each plant is discretised once.
    first, plant = _distinct_rows(A.reshape(n, -1), B, C, delay[:, None])
    R, B0, B1, whole_samples = sample_plants(A[first], B[first], delay[first], T)
    late = (B1 != 0.0).any(axis=1)
    head, tail, bottom = _polynomials(R, B0, B1, C[first])
    return _Loops(
        R=R[plant],
        B0=B0[plant],
        B1=B1[plant],
        C=C[first][plant],
        whole_samples=whole_samples[plant],
        late=late[plant],
        head=head[plant],
        tail=tail[plant],
        bottom=bottom[plant],
        delay=delay,
        kp=kp,
        integral=T / ti,
        derivative=td / (tf + T),
        forget=T / (tf + T),
        sample_time=T,
    )


def _distinct_rows(*columns: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows with different content: the first of each, and for every row which of them it is."""
    _, first, inverse = np.unique(np.concatenate(columns, axis=1), axis=0, return_index=True, return_inverse=True)
    return first, inverse.reshape(-1)


def _polynomials(R: Floats, B0: Floats, B1: Floats, C: Floats) -> tuple[Floats, Floats, Floats]:
    """``C adj(delta - R) B0``, the same with B1 (n, s), and ``det(delta - R)`` (n, s+1) by Faddeev and LeVerrier."""
    n, s = B0.shape
    head, tail, bottom = np.empty((n, s)), np.empty((n, s)), np.ones((n, s + 1))
    adjugate = np.broadcast_to(np.eye(s), (n, s, s))
    for k in range(s):
        row = (C[:, None, :] @ adjugate)[:, 0]
        head[:, k], tail[:, k] = (row * B0).sum(axis=1), (row * B1).sum(axis=1)
        product = R @ adjugate
        bottom[:, k + 1] = -np.trace(product, axis1=1, axis2=2) / (k + 1)
        adjugate = product + bottom[:, k + 1, None, None] * np.eye(s)
    return head, tail, bottom


def _close_loops(loops: _Loops) -> tuple[Floats, Floats, Floats]:
    """Closed loops of equal delay: transition (n, N, N), effect of measurement noise (n, N), and the command (n, N).

    States are those of the plant, the chain of past commands, the integral part and the filtered output.
    """
    n, s = loops.B0.shape
    d = int(loops.whole_samples[0])
    chain = d + bool(loops.late[0])
    size = s + chain + 2
    integral_state, filter_state = size - 2, size - 1
    direct = loops.kp * (1.0 + loops.derivative)
    command = np.zeros((n, size))
    command[:, :s] = -direct[:, None] * loops.C
    command[:, integral_state] = loops.integral != 0.0
    command[:, filter_state] = loops.kp * loops.derivative

    M = np.zeros((n, size, size))
    M[:, :s, :s] = loops.R + np.eye(s)
    noise = np.zeros((n, size))
    for ago, effect in ((d, loops.B0), (d + 1, loops.B1))[: 1 + bool(loops.late[0])]:
        if ago == 0:
            M[:, :s] += effect[:, :, None] * command[:, None, :]
            noise[:, :s] -= effect * direct[:, None]
        else:
            M[:, :s, s + ago - 1] += effect
    if chain:
        M[:, s] = command
        noise[:, s] = -direct
    for k in range(1, chain):
        M[:, s + k, s + k - 1] = 1.0
    # What a controller does not have holds no eigenvalue: its state stays 0.
    gain = loops.kp * loops.integral
    M[:, integral_state, integral_state] = loops.integral != 0.0
    M[:, integral_state, :s] = -gain[:, None] * loops.C
    noise[:, integral_state] = -gain
    forget = np.where(loops.derivative != 0.0, loops.forget, 0.0)
    M[:, filter_state, filter_state] = np.where(loops.derivative != 0.0, 1.0 - forget, 0.0)
    M[:, filter_state, :s] = forget[:, None] * loops.C
    noise[:, filter_state] = forget
    return M, noise, command


# ----------------------------------------------------------------------------------------------------- measures


def _measure(loops: _Loops) -> tuple[Floats, ...]:
    """The fields of `LoopMeasures` for loops of equal delay and sample time."""
    n, T = len(loops.kp), loops.sample_time
    M, noise, command = _close_loops(loops)
    modes = np.linalg.eigvals(M)
    radius = largest(modes)
    degree = -np.log(np.maximum(radius, np.finfo(float).tiny)) / T
    noise_gain = np.full(n, np.inf)
    loop_margins = no_margins(n)
    stable = np.flatnonzero(radius < 1.0)
    if len(stable):
        good = loops.rows(stable)
        direct = good.kp * (1.0 + good.derivative)
        variance = variance_of(M[stable], noise[stable], command[stable], radius[stable]) + direct**2
        noise_gain[stable] = np.sqrt(variance)
        w = grid(T, float(good.delay[0]))
        re, im = _grid_loop(good, w)
        _read(good, w, re, im, stable, loop_margins)
        slowest, poles = rates(modes[stable]).min(axis=1) / T, _poles(good)
        for row in np.flatnonzero(coarse(w, re, im, slowest, poles)):  # rare, and each in its own way
            loop, poles_of_loop = good.rows(np.array([row])), refine_grid(w, float(slowest[row]), poles[row])
            _read(loop, poles_of_loop, *_grid_loop(loop, poles_of_loop), stable[row : row + 1], loop_margins)
        # At rest a loop that integrates has the complementary sensitivity 1, which the grid only comes near to.
        rests = stable[(good.integral != 0.0) | (np.abs(poles) < _INTEGRATES).any(axis=1)]
        loop_margins.mt[rests] = np.maximum(loop_margins.mt[rests], 1.0)
    return radius, degree, *(getattr(loop_margins, f.name) for f in fields(Margins)), noise_gain, damping_ratio(modes)


def _read(loops: _Loops, w: Floats, re: Floats, im: Floats, rows: NDArray[np.intp], loop_margins: Margins) -> None:
    """Put the margins of stable `loops` with the values `re`, `im` at `w` into these rows of `loop_margins`."""
    margin_values = margins(
        lambda each, w: _open_loop(loops, each, w), w, re, im, at_rest=_at_rest(loops), real_at_end=True
    )
    for field in fields(Margins):
        getattr(loop_margins, field.name)[rows] = getattr(margin_values, field.name)


def damping_ratio(modes: NDArray[np.inexact]) -> Floats:
    """The damping ratio of the oscillation that decays slowest, of sampled loops with the eigenvalues `modes` (n, N).

    1 where nothing oscillates, -inf of an unstable loop.
    """
    z = modes.astype(np.complex128)
    size = np.abs(z)
    swings = ((z.imag != 0.0) | (z.real < 0.0)) & (size > 1e-12)
    slowest = np.where(swings, size, -1.0).argmax(axis=1)
    s = np.log(np.take_along_axis(np.where(swings, z, 0.5), slowest[:, None], axis=1)[:, 0])
    ratio = np.where(swings.any(axis=1), -s.real / np.abs(s), 1.0)
    return np.where(size.max(axis=1) < 1.0, ratio, -np.inf)


def sensitivity_peaks(A: Floats, B: Floats, C: Floats, delay_samples: ArrayLike, pid: PID) -> tuple[Floats, Floats]:
    """Peaks (n,) of |K S| and |G S| of sampled loops that are stable; arguments as for `measures`.

    K is the controller's transfer from the measurement, G that of the plant.
    """
    loops, T = _loops(A, B, C, delay_samples, pid), pid.sample_time
    poles = _poles(loops)
    integrates = np.asarray((np.abs(poles) < _INTEGRATES).any(axis=1))
    ks, gs = peaks_at_rest(
        loops.kp, loops.integral != 0.0, (loops.head[:, -1] + loops.tail[:, -1]), loops.bottom[:, -1], integrates
    )
    resonant = np.asarray((np.abs(poles.real) < 0.3 * np.abs(poles.imag)).any(axis=1))
    together = [np.flatnonzero(~resonant & (loops.delay == delay)) for delay in np.unique(loops.delay)]
    for rows in [*together, *np.flatnonzero(resonant)[:, None]]:
        if not len(rows):
            continue
        selection, w = loops.rows(rows), grid(T, float(loops.delay[rows[0]]))
        if resonant[rows[0]]:
            loop_poles = poles[rows[0]]
            w = refine_grid(w, float(w[0]), loop_poles[np.abs(loop_poles.real) < 0.3 * np.abs(loop_poles.imag)])

        def sizes(each: NDArray[np.intp], w: Floats, selection: _Loops = selection) -> tuple[Floats, Floats, Floats]:
            re, im = _open_loop(selection, each, w)
            angle = w * T
            plant = _plant_value(selection, each, angle)
            k = (selection.kp[each], selection.integral[each], selection.derivative[each], selection.forget[each])
            controller = _controller_value(*k, _delta(angle))
            K, G = (np.asarray(v[0] * v[0] + v[1] * v[1]) for v in (controller, plant))
            return (1.0 + re) ** 2 + im * im, K, G

        largest = peaks(sizes, w, len(rows))
        ks[rows], gs[rows] = np.maximum(ks[rows], largest[0]), np.maximum(gs[rows], largest[1])
    return ks, gs


def _at_rest(loops: _Loops) -> Floats:
    """L at frequency 0; NaN of a loop that integrates."""
    poles = _poles(loops)
    integrates = (loops.integral != 0.0) | (np.abs(poles) < _INTEGRATES).any(axis=1)
    top, bottom = loops.head[:, -1] + loops.tail[:, -1], np.where(integrates, 1.0, loops.bottom[:, -1])
    return np.where(integrates, np.nan, loops.kp * top / bottom)


def rates(modes: NDArray[np.inexact]) -> Floats:
    """|ln z| of modes z; inf for z = 0."""
    modes = modes.astype(np.complex128)  # of negative ones real logarithms would be refused
    size = np.abs(modes)
    return np.asarray(np.where(size > 0.0, np.abs(np.log(np.where(size > 0.0, modes, 1.0))), np.inf))


def _poles(loops: _Loops) -> NDArray[np.complex128]:
    """Poles (n, s) of the plants in 1/s."""
    first, plant = _distinct_rows(loops.R.reshape(len(loops.R), -1))
    z = (1.0 + np.linalg.eigvals(loops.R[first])).astype(np.complex128)
    gone = np.abs(z) == 0.0
    poles = np.where(gone, -np.inf, np.log(np.where(gone, 1.0, z)) / loops.sample_time)
    return np.asarray(poles[plant], dtype=np.complex128)


def largest(values: NDArray[np.inexact]) -> Floats:
    """The largest size (n,) of eigenvalues (n, N)."""
    return np.asarray(np.sqrt((values.real * values.real + values.imag * values.imag).max(axis=1)))


def variance_of(M: Floats, noise: Floats, command: Floats, radius: Floats) -> Floats:
    """Variance of ``command x`` for x' = M x + noise e with white e of variance 1.

    The sum of M^k noise noise' M'^k doubles its terms with each step (discrete Lyapunov equation; Smith 1968).
    """
    X = noise[:, :, None] * noise[:, None, :]
    # Terms beyond rho^k = e^-60 are below the last digit, with room for growth before the decay.
    steps = np.ceil(np.log2(60.0 / -np.log(np.clip(radius, 1e-12, 1.0 - 1e-16)))).astype(int) + 2
    for step in range(int(steps.max())):
        going = np.flatnonzero(steps > step)
        power = M[going]
        X[going] += power @ X[going] @ power.transpose(0, 2, 1)
        M[going] = power @ power
    return np.asarray((command * (X @ command[:, :, None])[..., 0]).sum(axis=1))


def _times(a: tuple[Floats, Floats], b: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Product of complex numbers given as parts: plain arithmetic gives the same bits wherever a number stands."""
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _over(a: tuple[Floats, Floats], b: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    size = b[0] * b[0] + b[1] * b[1]
    return (a[0] * b[0] + a[1] * b[1]) / size, (a[1] * b[0] - a[0] * b[1]) / size


def _value(polynomials: Floats, x: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Polynomials (k, degree+1) at the points x (k,)."""
    value = polynomials[:, 0], np.zeros_like(x[0])
    for column in polynomials.T[1:]:
        value = _times(value, x)
        value = value[0] + column, value[1]
    return value


def _delta(angle: Floats) -> tuple[Floats, Floats]:
    """exp(j angle) - 1 without cancellation."""
    return -2.0 * np.sin(0.5 * angle) ** 2, np.sin(angle)


def _plant_value(loops: _Loops, each: NDArray[np.intp], angle: Floats) -> tuple[Floats, Floats]:
    """The plants of rows `each` (k,) at ``w T`` = `angle` (k,)."""
    x = _delta(angle)
    z = 1.0 + x[0], x[1]
    head, tail = _times(_value(loops.head[each], x), z), _value(loops.tail[each], x)
    turn = (loops.whole_samples[each] + 1) * angle
    top = _times((head[0] + tail[0], head[1] + tail[1]), (np.cos(turn), -np.sin(turn)))
    return _over(top, _value(loops.bottom[each], x))


def _controller_value(
    kp: Floats, integral: Floats, derivative: Floats, forget: Floats, x: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    """The controllers at delta = x: K_p (1 + (T_s/T_i)/delta + T_d/(T_f+T_s) delta/(delta + forget))."""
    unity = np.ones_like(x[0]), np.zeros_like(x[0])
    slow, fast = _over(unity, x), _over(x, (x[0] + forget, x[1]))
    return kp * (1.0 + integral * slow[0] + derivative * fast[0]), kp * (integral * slow[1] + derivative * fast[1])


def _open_loop(loops: _Loops, each: NDArray[np.intp], w: Floats) -> tuple[Floats, Floats]:
    """L of rows `each` (k,) at frequencies `w` (k,)."""
    angle = w * loops.sample_time
    controller = _controller_value(
        loops.kp[each], loops.integral[each], loops.derivative[each], loops.forget[each], _delta(angle)
    )
    return _times(_plant_value(loops, each, angle), controller)


def _grid_loop(loops: _Loops, w: Floats) -> tuple[Floats, Floats]:
    """L of all rows on the common grid, (n, m); plants that several rows have are evaluated once."""
    m = len(w)
    first, plant = _distinct_rows(loops.head, loops.tail, loops.bottom)
    angle = w * loops.sample_time
    values = _plant_value(loops, np.repeat(first, m), np.tile(angle, len(first)))
    plants = tuple(v.reshape(len(first), m)[plant] for v in values)
    kp, integral, derivative, forget = (v[:, None] for v in (loops.kp, loops.integral, loops.derivative, loops.forget))
    return _times((plants[0], plants[1]), _controller_value(kp, integral, derivative, forget, _delta(angle)))
