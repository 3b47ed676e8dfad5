"""Linear plants as state spaces with one exact delay at their input, single or many at once.

``dx/dt = A x + B u(t - delay)``, ``y = C x + D u(t - delay)``. The delay is never approximated by a rational function:
the frequency response has its factor, and `sample_plants` discretises with it, whole number of samples or not.

Functions that make plants take numbers, or arrays (n,) for n plants in one call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from designopt.arrays import Floats

Entry = float | Floats


@dataclass(frozen=True)
class Plant:
    """One input, one output: `A` (..., s, s), `B` (..., s), `C` (..., s) and the `delay` (...) of the input in s.

    `D` (...) is the direct feedthrough from input to output, 0 for most plants.
    """

    A: Floats
    B: Floats
    C: Floats
    delay: Floats
    D: Floats = field(default_factory=lambda: np.zeros(()))

    def response(self, frequency: ArrayLike) -> NDArray[np.complex128]:
        """G(j w) of a single plant at `frequency` (rad/s), any shape; the delay's factor included."""
        return self.transfer(1j * np.asarray(frequency, dtype=np.float64))

    def transfer(self, s: NDArray[np.complexfloating[Any, Any]]) -> NDArray[np.complex128]:
        """G(s) of a single plant at complex `s`, any shape; the delay's factor included."""
        matrix = s[..., None, None] * np.eye(len(self.A)) - self.A
        inner = np.linalg.solve(matrix, self.B[:, None])[..., 0] @ self.C + self.D
        return np.asarray(inner * np.exp(-s * self.delay))


def fopdt(gain: ArrayLike, time_constant: ArrayLike, delay: ArrayLike) -> Plant:
    """First order plus delay, ``gain e^(-delay s) / (time_constant s + 1)``."""
    gain, time_constant, delay = _broadcast(gain, time_constant, delay)
    return _plant([[-1.0 / time_constant]], [gain / time_constant], [1.0], delay)


def ipdt(gain: ArrayLike, delay: ArrayLike) -> Plant:
    """Integrator plus delay, ``gain e^(-delay s) / s``; `gain` in output per (input s)."""
    gain, delay = _broadcast(gain, delay)
    return _plant([[0.0]], [gain], [1.0], delay)


def sopdt(gain: ArrayLike, time_constant: ArrayLike, time_constant_2: ArrayLike, delay: ArrayLike) -> Plant:
    """Second order plus delay, ``gain e^(-delay s) / ((time_constant s + 1)(time_constant_2 s + 1))``."""
    gain, first, second, delay = _broadcast(gain, time_constant, time_constant_2, delay)
    return _plant([[-1.0 / first, 0.0], [1.0 / second, -1.0 / second]], [gain / first, 0.0], [0.0, 1.0], delay)


def lag(order: int, gain: ArrayLike = 1.0, time_constant: ArrayLike = 1.0, delay: ArrayLike = 0.0) -> Plant:
    """Equal lags in series, ``gain e^(-delay s) / (time_constant s + 1)^order``."""
    gain, time_constant, delay = _broadcast(gain, time_constant, delay)
    rate = 1.0 / time_constant
    A: list[list[Entry]] = [[0.0] * order for _ in range(order)]
    for k in range(order):
        A[k][k] = -rate
        if k:
            A[k][k - 1] = rate
    return _plant(A, [gain * rate, *[0.0] * (order - 1)], [*[0.0] * (order - 1), 1.0], delay)


def double_integrator(gain: ArrayLike = 1.0, delay: ArrayLike = 0.0) -> Plant:
    """``gain e^(-delay s) / s^2``; the states are the output and its rate."""
    gain, delay = _broadcast(gain, delay)
    return _plant([[0.0, 1.0], [0.0, 0.0]], [0.0, gain], [1.0, 0.0], delay)


def transfer_function(numerator: Sequence[float], denominator: Sequence[float], delay: float = 0.0) -> Plant:
    """``numerator(s) / denominator(s) e^(-delay s)``; coefficients in descending powers.

    Raises `ValueError` for an improper transfer function, whose numerator has the higher degree.
    """
    from scipy.signal import tf2ss

    top = np.trim_zeros(np.asarray(numerator, dtype=np.float64), "f")
    bottom = np.asarray(denominator, dtype=np.float64)
    if not (np.isfinite(top).all() and np.isfinite(bottom).all()):
        raise ValueError("coefficients must be finite numbers")
    if len(bottom) < 2 or bottom[0] == 0.0:
        raise ValueError(
            "the denominator begins with the coefficient of its highest power, at least s, which must not be 0"
        )
    if len(top) == 0:
        raise ValueError("the numerator is 0")
    if len(top) > len(bottom):
        raise ValueError(
            f"the numerator has the degree {len(top) - 1} and the denominator {len(bottom) - 1}: "
            "a step at the input would be an impulse at the output; the degree of the numerator must not be higher"
        )
    # With time in units of 1/rate the coefficients are of like size: those of slow or fast plants span many decades.
    degree = len(bottom) - 1
    rate = float(np.abs(np.roots(bottom)).max()) or 1.0
    A, B, C, D = tf2ss(top * rate ** np.arange(len(top) - 1, -1, -1.0), bottom * rate ** np.arange(degree, -1, -1.0))
    return Plant(rate * A, rate * B[:, 0], C[0], np.asarray(delay, dtype=np.float64), np.asarray(D[0, 0]))


def state_space(
    A: Sequence[float], B: Sequence[float], C: Sequence[float], delay: float = 0.0, D: float = 0.0
) -> Plant:
    """``x' = A x + B u(t - delay)``, ``y = C x + D u(t - delay)``; `A` is given row after row.

    Raises `ValueError` for other lengths.
    """
    s = len(B)
    if s == 0 or len(A) != s * s or len(C) != s:
        raise ValueError(f"A, B, C have {len(A)}, {s}, {len(C)} numbers; {s} states need {s * s}, {s}, {s}")
    matrix, b, c, late, d = (np.asarray(v, dtype=np.float64) for v in (A, B, C, delay, D))
    return Plant(matrix.reshape(s, s), b, c, late, d)


def series(first: Plant, second: Plant) -> Plant:
    """The plant of one behind the other, single ones; its states are those of the `first`, then of the `second`."""
    a, b = len(first.A), len(second.A)
    A = np.zeros((a + b, a + b))
    A[:a, :a], A[a:, :a], A[a:, a:] = first.A, np.outer(second.B, first.C), second.A
    return Plant(
        A,
        np.concatenate([first.B, second.B * first.D]),
        np.concatenate([second.D * first.C, second.C]),
        first.delay + second.delay,
        first.D * second.D,
    )


def discrete(numerator: Sequence[float], denominator: Sequence[float], sample_time: float, delay: float = 0.0) -> Plant:
    """The continuous plant between samples for ``numerator(z) / denominator(z)`` with a held input; coefficients in
    descending powers.

    Poles at z = 0 are samples of delay. The other poles become exp(pole T) of the plant, so its samples are those of
    the difference equation. Raises `ValueError` if there is no such plant: a pole on the negative axis, or a numerator
    whose degree is not below that of the remaining denominator.
    """
    from scipy.linalg import logm
    from scipy.signal import tf2ss

    top, bottom = (np.trim_zeros(np.asarray(p, dtype=np.float64), "f") for p in (numerator, denominator))
    if not (np.isfinite(top).all() and np.isfinite(bottom).all()):
        raise ValueError("coefficients must be finite numbers")
    if len(top) == 0 or len(bottom) < 2:
        raise ValueError("the numerator is not 0, and the denominator has a power of z")
    lower = np.trim_zeros(bottom, "b")
    late = len(bottom) - len(lower)
    if len(top) >= len(lower):
        raise ValueError(
            f"the numerator has the degree {len(top) - 1}; it must be below {len(lower) - 1}, the number of poles "
            "that are not at z = 0"
        )
    poles = np.roots(lower)
    if ((np.abs(poles.imag) <= 1e-12 * np.abs(poles)) & (poles.real < 0.0)).any():
        raise ValueError(f"the pole z = {poles.real.min():.4g} alternates from sample to sample, as no plant does")
    R, B, C, _ = tf2ss(top, lower)
    n = len(R)
    # exp([[A, B], [0, 0]] T) = [[R, G], [0, 1]] for an input that is held.
    transition = np.zeros((n + 1, n + 1))
    transition[:n, :n], transition[:n, n:], transition[n, n] = R, B, 1.0
    generator = np.real(logm(transition)) / sample_time
    return Plant(generator[:n, :n], generator[:n, n], C[0], np.asarray(delay + late * sample_time, dtype=np.float64))


def exponentials(matrices: Floats) -> Floats:
    """exp of square matrices (n, s, s), computed once for those that are equal."""
    from scipy.linalg import expm

    different, row = np.unique(matrices.reshape(len(matrices), -1), axis=0, return_inverse=True)
    return np.asarray(expm(different.reshape(-1, *matrices.shape[1:])))[row.ravel()]


def sample_plants(
    A: Floats, B: Floats, delay: ArrayLike, sample_time: ArrayLike
) -> tuple[Floats, Floats, Floats, NDArray[np.int_]]:
    """Exact samples of n plants whose input is held: ``x' = x + R x + B0 u[k-d] + B1 u[k-d-1]``.

    `A` (n, s, s), `B` (n, s); `delay` in samples, (n,). Returns R (n, s, s), which is the transition matrix less the
    identity, B0, B1 (n, s) and d (n,). B1 is 0 where the delay is a whole number of samples.
    """
    delay, sample_time = np.broadcast_to(delay, len(A)), np.broadcast_to(sample_time, len(A))
    whole_samples = np.floor(delay + 1e-9).astype(np.int_)
    late = np.maximum(delay - whole_samples, 0.0)
    late = np.where(late < 1e-9, 0.0, late)

    s = A.shape[-1]
    generator = np.zeros((len(A), s + 1, s + 1))
    generator[:, :s, :s] = A
    generator[:, :s, s] = B

    def over(time: Floats) -> Floats:
        return exponentials(generator * time[:, None, None])

    first, second = over(late * sample_time), over((1.0 - late) * sample_time)
    R = np.where((late == 0.0)[:, None, None], second, second @ first)[:, :s, :s] - np.eye(s)
    B0 = second[:, :s, s]
    B1 = (second[:, :s, :s] @ first[:, :s, s, None])[..., 0]
    return R, B0, B1, whole_samples


def _broadcast(*values: ArrayLike) -> tuple[Floats, ...]:
    """The values as arrays of one shape."""
    return tuple(np.array(v) for v in np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in values)))


def _plant(A: list[list[Entry]], B: list[Entry], C: list[Entry], delay: Floats) -> Plant:
    """A plant of entries that are numbers or arrays of the shape of `delay`."""

    def vector(entries: list[Entry]) -> Floats:
        return np.stack([np.broadcast_to(np.asarray(e, dtype=np.float64), delay.shape) for e in entries], axis=-1)

    return Plant(np.stack([vector(row) for row in A], axis=-2), vector(B), vector(C), delay)
