"""Continuous PI(D) loops around plants with an exact delay: equations, stability and margins.

    u = K_p (b r - y) + (K_p / T_i) integral(r - y) - K_p T_d s / (T_f s + 1) y

The delay is never approximated. Stability is counted by the argument principle on the quasi-polynomial of the loop
(Mikhailov 1938). Step responses: `step_response`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt_regulator.controllers.sections import Transfer
from designopt_regulator.frequency.grid import near_pole
from designopt_regulator.frequency.margins import Margins, margins, peaks, peaks_at_rest
from designopt_regulator.linear_loop.chebyshev import points
from designopt_regulator.plants.linear import Plant

_POINTS_PER_DECADE = 100
_MOST_POINTS = 200_000  # of a grid of frequencies
_SHARP = 0.03  # damping of a pole below which the grid is made finer about it
_ROUNDING = 1e-14  # of the fastest pole, within which the real part of another has no sign
_PHASE_STEP = 0.3  # rad by which the delay may turn the loop between points of the grid
_SMALL = 0.1  # |L| up to which the grid need not resolve the turns of the delay


class NotSettled(Exception):
    """The response has not settled within the maximum number of intervals: the loop is slow for its delay."""


@dataclass(frozen=True)
class Loop:
    """A single `plant` and its continuous controller; times in s, `ti` inf for no I, `td` 0 for no D.

    `sections` follow the controller in series. Raises `ValueError` if the derivative needs a filter: without one
    (`tf` = 0) the output's rate must be a state; if command and output form an algebraic loop without a solution; and
    for a plant with delay and direct feedthrough.
    """

    plant: Plant
    kp: float
    ti: float = np.inf
    td: float = 0.0
    tf: float = 0.0
    b: float = 1.0
    sections: tuple[Transfer, ...] = ()

    def __post_init__(self) -> None:
        if self.td != 0.0 and self.tf == 0.0 and (self.plant.C @ self.plant.B != 0.0 or self.plant.D != 0.0):
            raise ValueError("a derivative without filter (tf = 0) needs a plant whose output has no jumps in its rate")
        if self.plant.D != 0.0 and self.delay > 0.0:
            raise ValueError(
                "a plant with direct feedthrough must have no delay here: with one the loop would be neutral"
            )
        if abs(1.0 + self.high_frequency_gain) <= 1e-12 * (1.0 + abs(self.high_frequency_gain)):
            raise ValueError(
                f"the algebraic loop has no solution: the direct feedthrough of the plant, {float(self.plant.D):g}, "
                f"times that of the controller, {self._direct:g}, is -1: no command is consistent with its own output"
            )

    @property
    def delay(self) -> float:
        return float(self.plant.delay)

    @property
    def _direct(self) -> float:
        """Gain of the controller at infinite frequency, without that of an unfiltered derivative."""
        gain_at_infinity = float(np.prod([section.numerator[0] / section.denominator[0] for section in self.sections]))
        return self.kp * (1.0 + self.td / (self.tf or np.inf)) * gain_at_infinity

    @property
    def high_frequency_gain(self) -> float:
        """L at infinite frequency; 0 for a plant without direct feedthrough."""
        return 0.0 if self.plant.D == 0.0 else float(self.plant.D) * self._direct

    def equations(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """M (n, n), N (n,), K (n,), R (n,), E (2,) of a set-point r and a load d.

        ``z' = M z + N (u + d)(t - delay) + R r`` and ``u = K z + E[0] r + E[1] d``. The direct
        feedthrough of the plant, ``y = C x + D (u + d)``, is contained: the algebraic loop is solved.
        """
        A, B, C, D = self.plant.A, self.plant.B, self.plant.C, float(self.plant.D)
        s = len(A)
        has_integral, has_filter = np.isfinite(self.ti), self.td != 0.0 and self.tf > 0.0
        pid_states = s + has_integral + has_filter
        n = pid_states + sum(len(section.denominator) - 1 for section in self.sections)
        M, N, R = np.zeros((n, n)), np.zeros(n), np.zeros(n)
        # v = V z - g D (u + d) + kp b r is the controller's output before the sections
        V, g, r_gain = np.zeros(n), self.kp, self.kp * self.b
        M[:s, :s], N[:s], V[:s] = A, B, -self.kp * C
        if has_integral:
            M[s, :s], N[s], R[s], V[s] = -C, -D, 1.0, self.kp / self.ti
        if has_filter:
            k = pid_states - 1
            M[k, :s], M[k, k], N[k] = C / self.tf, -1.0 / self.tf, D / self.tf
            V[:s] -= self.kp * self.td / self.tf * C
            V[k] = self.kp * self.td / self.tf
            g += self.kp * self.td / self.tf
        elif self.td != 0.0:
            V[:s] -= self.kp * self.td * C @ A
        u_gain = -g * D
        begin = pid_states
        for section in self.sections:  # v is the input, then the output
            Q, q, row, gain = _controllable(section)
            end = begin + len(q)
            M[begin:end, begin:end] = Q
            M[begin:end] += np.outer(q, V)
            N[begin:end], R[begin:end] = q * u_gain, q * r_gain
            V, u_gain, r_gain = gain * V, gain * u_gain, gain * r_gain
            V[begin:end] += row
            begin = end
        loop_factor = 1.0 / (1.0 - u_gain)  # u = V z + u_gain (u + d) + r_gain r
        return M, N, V * loop_factor, R, np.array([r_gain * loop_factor, u_gain * loop_factor])

    def response(self, frequency: Floats) -> NDArray[np.complex128]:
        """The open loop L(j w)."""
        w = np.asarray(frequency, dtype=np.float64)
        return np.asarray(self._controller(1j * w) * self.plant.response(w))

    def parts(self, frequency: Floats) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
        """K(j w) of the controller from the measurement, and G(j w) of the plant."""
        w = np.asarray(frequency, dtype=np.float64)
        return self._controller(1j * w), self.plant.response(w)

    def transfer(self, s: NDArray[np.complexfloating[Any, Any]]) -> NDArray[np.complex128]:
        """The open loop L(s)."""
        return np.asarray(self._controller(s) * self.plant.transfer(s))

    def _controller(self, s: NDArray[np.complexfloating[Any, Any]]) -> NDArray[np.complex128]:
        K = np.asarray(self.kp * (1.0 + (1.0 / self.ti) / s + self.td * s / (self.tf * s + 1.0)))
        for section in self.sections:
            K = K * section.value(s)
        return K

    def at_rest(self) -> float:
        """L at frequency 0, NaN of a loop that integrates."""
        poles = np.abs(np.linalg.eigvals(self.plant.A))
        if np.isfinite(self.ti) or poles.min() <= _ROUNDING * poles.max():
            return np.nan
        return self.kp * self._gain()

    def _gain(self) -> float:
        """The gain of the plant at rest."""
        return float(self.plant.C @ np.linalg.solve(-self.plant.A, self.plant.B) + self.plant.D)

    def grid(self) -> Floats:
        """Frequencies (rad/s) from below the slowest dynamics to a small gain. Raises `NotSettled` for a long delay."""
        M, *_ = self.equations()
        rates = np.abs(np.linalg.eigvals(M))
        rates = [*rates[rates > 0.0], 1.0 / self.ti, *([1.0 / self.delay] if self.delay else [])]
        positive_rates = [r for r in rates if r > 0.0] or [1.0]
        low, high = 1e-3 * min(positive_rates), 10.0 * max(positive_rates)
        while abs(self.response(np.array([high]))[0] - self.high_frequency_gain) > 0.01 and high < 1e12 * low:
            high *= 2.0
        while abs(self.response(np.array([low]))[0]) < 10.0 and low > 1e-6 * min(positive_rates):
            low *= 0.5
        w = np.geomspace(low, high, int(np.ceil(_POINTS_PER_DECADE * np.log10(high / low))) + 1)
        if self.delay > 0.0:
            step, end = _PHASE_STEP / self.delay, min(high, self._resolved)
            beyond = w[w > end + step]
            if len(beyond) and np.abs(self.response(beyond)).max() > _SMALL:
                raise NotSettled(
                    f"the loop is too fast beside its delay: up to {high:.3g} rad/s with a delay of {self.delay:g} s"
                )
            sparse = int(np.searchsorted(np.diff(w), step))
            if sparse < len(w) - 1:
                w = np.concatenate([w[:sparse], np.arange(w[sparse], end + step, step), beyond])
        ends = [np.roots(part) for section in self.sections for part in (section.numerator, section.denominator)]
        poles = np.concatenate([np.linalg.eigvals(self.plant.A), *ends])
        sharp = [p for p in poles if 0.0 <= abs(p.real) < _SHARP * p.imag]
        if sharp:  # the grid must resolve the turn about a lightly damped pole, and not contain the pole itself
            w = np.unique(np.concatenate([w, *(near_pole(p) for p in sharp)]))
            w = w[np.all([np.abs(w - p.imag) > 1e-10 * p.imag for p in sharp], axis=0)]
        return np.asarray(w)

    @property
    def _resolved(self) -> float:
        """rad/s up to which the grid resolves the turns of the delay; a loop that is large beyond has no figures."""
        return _MOST_POINTS * _PHASE_STEP / self.delay if self.delay else np.inf

    def unstable_poles(self, w: Floats | None = None) -> int:
        """Poles of the closed loop in the right half plane, by the argument of its quasi-polynomial along j w."""
        M, *_ = self.equations()
        poles = np.linalg.eigvals(M)
        w = self.grid() if w is None else w

        def curve(at: Floats) -> NDArray[np.complex128]:
            factors = 1j * at[:, None] - poles
            return np.asarray(np.prod(factors / np.abs(factors), axis=1) * (1.0 + self.response(at)))

        values = curve(w)
        for _ in range(60):  # halve the steps in which the argument may turn by more than pi
            wide = np.flatnonzero(np.abs(np.angle(values[1:] / values[:-1])) > 1.0)
            if len(wide) == 0:
                break
            between = 0.5 * (w[wide] + w[wide + 1])
            w, values = np.insert(w, wide + 1, between), np.insert(values, wide + 1, curve(between))
        phase_change = float(np.angle(values[1:] / values[:-1]).sum())
        # The argument tends to a multiple of pi at low frequencies, and to that of s^n at high ones.
        start = np.angle(values[0])
        phase_change += start - np.pi * np.round(start / np.pi)
        full = 0.5 * np.pi * len(poles)
        phase_change += np.angle(np.exp(1j * (full - np.angle(values[-1]))))
        return int(np.round((full - phase_change) / np.pi))

    @property
    def stable(self) -> bool:
        return self._stable_with(None)

    def _stable_with(self, w: Floats | None) -> bool:
        """Whether the loop is stable: without delay by its poles, with one by the argument along `w`."""
        if self.delay > 0.0:
            return self.unstable_poles(w) == 0
        M, N, K, *_ = self.equations()
        poles = np.linalg.eigvals(M + np.outer(N, K))
        return bool((poles.real < -_ROUNDING * np.abs(poles).max()).all())

    def damping(self) -> float:
        """Damping ratio of the oscillation that decays slowest, 1 where nothing oscillates; of a stable loop.

        With a delay the rightmost roots of the characteristic equation are eigenvalues of its pseudospectral
        discretisation (Breda, Maset & Vermiglio 2005), improved by Newton's method.
        """
        M, N, K, *_ = self.equations()
        if self.delay == 0.0:
            roots = np.linalg.eigvals(M + np.outer(N, K))
        else:
            _, D = points()
            n = len(M)
            generator = np.kron(D * (2.0 / self.delay), np.eye(n))
            generator[-n:] = 0.0
            generator[-n:, -n:], generator[-n:, :n] = M, np.outer(N, K)
            roots = np.linalg.eigvals(generator)
        oscillating_roots = roots[np.abs(roots.imag) > 1e-9 * np.abs(roots)]
        if not len(oscillating_roots):
            return 1.0
        s = complex(oscillating_roots[oscillating_roots.real.argmax()])
        for _ in range(8 if self.delay else 0):
            step_size = 1e-6 * abs(s)
            value, ahead, behind = (1.0 + self.transfer(np.array([s + ds]))[0] for ds in (0.0, step_size, -step_size))
            step = value * 2.0 * step_size / (ahead - behind)
            s -= step if abs(step) < 0.1 * abs(s) else 0.1 * abs(s) * step / abs(step)
        return float(-s.real / abs(s))

    def sensitivity_peaks(self) -> tuple[float, float]:
        """Peaks of |K S| and |G S| of a stable loop; K is the controller from the measurement, G the plant."""
        poles = np.abs(np.linalg.eigvals(self.plant.A))
        integrates = bool(poles.min() <= _ROUNDING * poles.max())
        top = 0.0 if integrates else self._gain()
        static_peaks = peaks_at_rest(*(np.array([v]) for v in (self.kp, np.isfinite(self.ti), top, 1.0, integrates)))

        def sizes(_: NDArray[np.intp], w: Floats) -> tuple[Floats, Floats, Floats]:
            G, K = self.plant.response(w), self._controller(1j * w)
            L = np.where(w > self._resolved, -np.abs(K * G), K * G)  # some turn there has the phase of -1
            return np.abs(1.0 + L) ** 2, np.abs(K) ** 2, np.abs(G) ** 2

        largest = [float(peak[0]) for peak in peaks(sizes, self.grid(), 1)]
        ends = np.array([self._direct, float(self.plant.D)]) / (1.0 + self.high_frequency_gain)  # of K S and of G S
        if self.td > 0.0 and self.tf == 0.0:
            ends[0] = np.inf
        ks_peak, gs_peak = (max(largest[i], float(static_peaks[i][0]), abs(float(ends[i]))) for i in range(2))
        return ks_peak, gs_peak

    def margins(self) -> Margins | None:
        """Peaks and margins, arrays (1,); None for an unstable loop."""
        (margins_of_loop,) = loop_margins([self])
        if isinstance(margins_of_loop, NotSettled):
            raise margins_of_loop
        return margins_of_loop


def loop_margins(loops: Sequence[Loop]) -> list[Margins | NotSettled | None]:
    """`Loop.margins` of many loops with plants of one order, or why there are none, in little more time than one."""
    answers: list[Margins | NotSettled | None] = [None] * len(loops)
    grids: dict[int, Floats] = {}
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
    A, B, C, D, delay = (
        np.stack([getattr(loops[i].plant, name) for i in stable]) for name in ("A", "B", "C", "D", "delay")
    )
    has_sections = any(loop.sections for loop in loops)
    section_polynomials = _polynomials([loops[i].sections for i in stable]) if has_sections else None
    kp, ti, td, tf = (np.array([getattr(loops[i], name) for i in stable]) for name in ("kp", "ti", "td", "tf"))

    def value(each: NDArray[np.intp], at: Floats) -> tuple[Floats, Floats]:
        s = 1j * at
        inner = np.linalg.solve(s[:, None, None] * np.eye(A.shape[-1]) - A[each], B[each][:, :, None])[..., 0]
        plant = ((inner * C[each]).sum(axis=1) + D[each]) * np.exp(-s * delay[each])
        L = kp[each] * (1.0 + (1.0 / ti[each]) / s + td[each] * s / (tf[each] * s + 1.0)) * plant
        if section_polynomials is not None:
            L = L * _value(section_polynomials[0][each], s) / _value(section_polynomials[1][each], s)
        return L.real.copy(), L.imag.copy()

    re, im = (part.reshape(w.shape) for part in value(np.repeat(np.arange(len(stable)), count), w.ravel()))
    at_rest = np.array([loops[i].at_rest() for i in stable])
    margin_values = margins(value, w, re, im, at_rest=at_rest, real_at_end=False)
    # At rest a loop that integrates has the complementary sensitivity 1, which the grid only comes near to.
    highest = np.where(np.isnan(at_rest), np.maximum(margin_values.mt, 1.0), margin_values.mt)
    margin_values = replace(margin_values, mt=highest)
    for k, i in enumerate(stable):
        margins_of_loop = Margins(*(getattr(margin_values, f.name)[k : k + 1] for f in fields(Margins)))
        has_end = loops[i].plant.D != 0.0
        answers[i] = _with_end(margins_of_loop, loops[i].high_frequency_gain) if has_end else margins_of_loop
    return answers


def _with_end(margin_values: Margins, L: float) -> Margins:
    """Margins of a loop that has the real value `L` at infinite frequency, where no grid ends."""
    ms, mt = 1.0 / abs(1.0 + L), abs(L / (1.0 + L))
    margin_values = replace(margin_values, ms=np.maximum(margin_values.ms, ms), mt=np.maximum(margin_values.mt, mt))
    if -1.0 < L < 0.0:
        margin_values = replace(margin_values, gm=np.minimum(margin_values.gm, -1.0 / L))
    if L < -1.0:
        margin_values = replace(margin_values, gm_down=np.maximum(margin_values.gm_down, -1.0 / L))
    if abs(L) >= 1.0:  # the smallest delay turns L about -1 at a sufficiently high frequency
        margin_values = replace(margin_values, delay_margin=np.zeros(1), crossover=np.full(1, np.inf))
    return margin_values


def _controllable(section: Transfer) -> tuple[Floats, Floats, Floats, float]:
    """``q' = Q q + e v``, ``output = row q + gain v``: Q, e, row and gain of a section."""
    bottom = np.asarray(section.denominator) / section.denominator[0]
    top = np.asarray(section.numerator) / section.denominator[0]
    n = len(bottom) - 1
    Q = np.eye(n, k=-1)
    Q[0] = -bottom[1:]
    return Q, np.eye(n)[0], top[1:] - top[0] * bottom[1:], float(top[0])


def _polynomials(sections: Sequence[Sequence[Transfer]]) -> tuple[Floats, Floats]:
    """Numerators and denominators of sections in series, (loops, degree + 1), padded at the high powers."""
    products = []
    for part in (0, 1):
        rows = [np.array([1.0]) for _ in sections]
        for k, row in enumerate(sections):
            for section in row:
                rows[k] = np.polymul(rows[k], section[part])
        size = max(len(row) for row in rows)
        products.append(np.stack([np.pad(row, (size - len(row), 0)) for row in rows]))
    return products[0], products[1]


def _value(polynomials: Floats, s: NDArray[np.complexfloating[Any, Any]]) -> NDArray[np.complex128]:
    value = np.zeros(s.shape, np.complex128)
    for column in polynomials.T:
        value = value * s + column
    return value
