"""Sections in series with a controller: notch and lead-lag, as transfer functions and as difference equations.

A section stands between the controller and its limits, has the gain 1 at rest, and is discretised by the bilinear
transformation with prewarping (Franklin, Powell & Workman 1998, section 6.1), so that its response at its own frequency
is the continuous one. Its difference equation is the transposed direct form II.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: The parameters of each kind of section, in the order in which they stand in series.
SECTIONS: Mapping[str, tuple[str, ...]] = {
    "lead": ("lead_frequency", "lead_ratio"),
    "notch": ("notch_frequency", "notch_width", "notch_depth"),
}


class Transfer(NamedTuple):
    """``numerator(s) / denominator(s)``, coefficients of falling powers of s; `frequency` (rad/s) is its own."""

    numerator: tuple[float, ...]
    denominator: tuple[float, ...]
    frequency: float

    def value(self, s: NDArray[np.complexfloating[Any, Any]]) -> NDArray[np.complex128]:
        return np.asarray(np.polyval(self.numerator, s) / np.polyval(self.denominator, s), dtype=np.complex128)


def notch(frequency: float, width: float, depth: float) -> Transfer:
    """``(s^2 + depth width w s + w^2) / (s^2 + width w s + w^2)``: the gain is `depth` at w, 1 far from it.

    `width` is the distance, as a share of w, between the two frequencies at which a notch of depth 0 passes half of
    the power.
    """
    bandwidth = width * frequency
    return Transfer((1.0, depth * bandwidth, frequency**2), (1.0, bandwidth, frequency**2), frequency)


def lead(frequency: float, ratio: float) -> Transfer:
    """``(s sqrt(ratio) / w + 1) / (s / (w sqrt(ratio)) + 1)``: largest phase at w, gain 1 at rest and `ratio` far up.

    A lead for `ratio` above 1, a lag below it. The phase at w is ``arcsin((ratio - 1) / (ratio + 1))``.
    """
    root = float(np.sqrt(ratio))
    return Transfer((root / frequency, 1.0), (1.0 / (root * frequency), 1.0), frequency)


def transfers(design_values: Mapping[str, float]) -> tuple[Transfer, ...]:
    """The sections of a design, of which it has all parameters or none."""
    constructors: dict[str, Callable[..., Transfer]] = {"lead": lead, "notch": notch}
    return tuple(
        constructors[kind](*(design_values[name] for name in names))
        for kind, names in SECTIONS.items()
        if names[0] in design_values
    )


class DifferenceEquation(NamedTuple):
    """The difference equation ``y[k] = sum b[i] x[k-i] - sum a[i] y[k-i]``: its `b` from i = 0 on, its `a` from 1 on.

    Numbers, or arrays (n,) of n sections side by side.
    """

    b: tuple[Any, ...]
    a: tuple[Any, ...]

    @classmethod
    def from_transfer(cls, transfer: Transfer, sample_time: float) -> DifferenceEquation:
        """The sampled section; its frequency must be below half the sampling rate."""
        from scipy.signal import bilinear

        w = transfer.frequency
        rate = 0.5 * w / np.tan(0.5 * w * sample_time)
        b, a = bilinear(transfer.numerator, transfer.denominator, rate)
        return cls(tuple(float(v) for v in b), tuple(float(v) for v in a[1:]))

    def at_rest(self) -> tuple[Any, ...]:
        """State at rest for the input 1, for which the output is 1."""
        states: list[Any] = []
        for b, a in zip(reversed(self.b[1:]), reversed(self.a), strict=True):
            states.append(b - a + (states[-1] if states else 0.0))
        return tuple(reversed(states))

    def filter(self, states: tuple[Any, ...], x: Any) -> tuple[Any, tuple[Any, ...]]:
        """Output for the input `x`, and the state for the next sample."""
        y = self.b[0] * x + states[0]
        after = [b * x - a * y for b, a in zip(self.b[1:], self.a, strict=True)]
        return y, (*(v + later for v, later in zip(after, states[1:], strict=False)), after[-1])

    def response(self, z: NDArray[np.complexfloating[Any, Any]]) -> NDArray[np.complex128]:
        """H(z); numbers only."""
        late = 1.0 / z
        return np.asarray(np.polyval(self.b[::-1], late) / np.polyval((*self.a[::-1], 1.0), late), dtype=np.complex128)
