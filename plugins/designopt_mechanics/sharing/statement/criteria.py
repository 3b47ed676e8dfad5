"""The objective as values: the criterion of a sharing problem, the weights of its muscles, its reserves.

Each criterion says whether it needs limits of the activations (`needs_limits`: its optimum depends on the strengths
even if they are all equal), whether the shares are `differentiable`, and has its `slope`, the derivative by a at weight
1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from designopt.arrays import Floats


@dataclass(frozen=True)
class Power:
    """Sum of ``w a^p``, p >= 1: 2 as most codes, 3 as Crowninshield & Brand (J. Biomech. 14, 1981)."""

    p: float = 2.0
    needs_limits: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.p >= 1.0 or not np.isfinite(self.p):
            raise ValueError(f"the exponent p is {self.p:g}; it must be finite and at least 1")

    @property
    def differentiable(self) -> bool:
        """Whether the shares have derivatives: a linear cost jumps between muscles."""
        return self.p > 1.0

    def slope(self, a: Any) -> Any:
        """Slope at activations `a`, an array or an expression."""
        return self.p * a ** (self.p - 1.0)


@dataclass(frozen=True)
class MinMax:
    """The largest ``w a``, after Rasmussen, Damsgaard & Voigt (J. Biomech. 34, 2001).

    `tie_break` times the sum of squares decides the rest; if `strict`, the largest of the muscles that can still be
    lowered, and so on.
    """

    tie_break: float = 1e-4
    strict: bool = False
    needs_limits: ClassVar[bool] = False
    differentiable: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0.0 < self.tie_break < 1.0:
            raise ValueError(f"tie_break is {self.tie_break:g}; it must be between 0 and 1")

    def slope(self, a: Any) -> Any:
        """Raises `ValueError`: the largest activation has none."""
        raise ValueError("the largest activation is no differentiable criterion")


@dataclass(frozen=True)
class QuadraticLinear:
    """Sum of ``w (a^2 + c a)``, c >= 0."""

    linear: float = 0.1
    needs_limits: ClassVar[bool] = True
    differentiable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0.0 <= self.linear < np.inf:
            raise ValueError(f"the linear coefficient is {self.linear:g}; it must be finite and not negative")

    def slope(self, a: Any) -> Any:
        """Slope at activations `a`, an array or an expression."""
        return 2.0 * a + self.linear


@dataclass(frozen=True)
class SoftSaturation:
    """Sum of ``-w sqrt(1 - a^2)``: no muscle reaches its limit (Siemienski, J. Biomech. 25, 1992)."""

    needs_limits: ClassVar[bool] = True
    differentiable: ClassVar[bool] = True

    def slope(self, a: Any) -> Any:
        """Slope at activations `a`, an array or an expression."""
        return a / (1.0 - a * a) ** 0.5


Criterion = Power | MinMax | QuadraticLinear | SoftSaturation

#: The criterion of each word of study files, from its exponent, its linear part and the tie break of a maximum.
CRITERIA: Mapping[str, Callable[[float, float, float], Criterion]] = {
    "power": lambda exponent, linear, tie_break: Power(exponent),
    "minmax": lambda exponent, linear, tie_break: MinMax(tie_break),
    "strict_minmax": lambda exponent, linear, tie_break: MinMax(tie_break, strict=True),
    "quadratic_linear": lambda exponent, linear, tie_break: QuadraticLinear(linear),
    "soft_saturation": lambda exponent, linear, tie_break: SoftSaturation(),
}

if TYPE_CHECKING:
    CriterionName = str
else:
    CriterionName = Literal[tuple(CRITERIA)]


def criterion_of(values: Mapping[str, Any], linear: float, tie_break: float) -> Criterion:
    """The criterion that the `values` ``criterion`` and ``exponent`` of a design name.

    `linear` is the linear part of ``quadratic_linear``, `tie_break` the share of the squares in ``minmax``. Raises
    `ValueError` for another word.
    """
    if values["criterion"] not in CRITERIA:
        raise ValueError(f"no criterion '{values['criterion']}'")
    return CRITERIA[values["criterion"]](float(values["exponent"]), linear, tie_break)


def optimal_forces(forces: Floats) -> Floats:
    """A copy of the optimal forces (m,) of reserves. Raises `ValueError` unless they are finite and not negative."""
    copy = np.array(forces, dtype=np.float64)
    if copy.ndim != 1 or not np.isfinite(copy).all() or (copy < 0).any():
        raise ValueError("optimal forces of reserves must be finite and not negative, one for each row")
    return copy


def check_band(band: tuple[float, float] | None, *, free_scale: bool) -> None:
    """Raises `ValueError` for a `band` around signals that is empty or has no fixed scale."""
    if band is not None and not band[0] <= band[1]:
        raise ValueError(f"the band from {band[0]:g} to {band[1]:g} is empty")
    if band is not None and free_scale:
        raise ValueError("a band needs a fixed scale: with a free one it would move while the scale is found")


@dataclass(frozen=True, eq=False)
class Reserves:
    """Drives that help where muscles cannot: ``optimal * r`` acts on a row at the cost ``weight |r|^p``.

    `optimal` (m,) is the generalised force at r = 1 in the unit of the row, 0 for a row without a reserve. `p` is 1 or
    from 2 on.
    """

    optimal: Floats
    weight: float = 1.0
    p: float = 2.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "optimal", optimal_forces(self.optimal))
        if not 0.0 < self.weight < np.inf:
            raise ValueError(f"the weight of reserves is {self.weight:g}; it must be positive and finite")
        if self.p != 1.0 and not 2.0 <= self.p < np.inf:
            raise ValueError(f"the exponent of reserves is {self.p:g}; it must be 1 or at least 2")


@dataclass(frozen=True, eq=False)
class Tracking:
    """Measured activity that activations follow at the cost ``weight (a - s e)^2``.

    `signals` (n, k) is e, NaN for muscles and frames without one. The scale s of each muscle is 1, or found together
    with the activations of all frames if `free_scale`. `band`, if given, keeps a within ``s e + band[0]`` and
    ``s e + band[1]`` and within the muscle's own bounds.
    """

    signals: Floats
    weight: float = 1.0
    free_scale: bool = False
    band: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        signals = np.array(self.signals, dtype=np.float64)
        object.__setattr__(self, "signals", signals)
        if signals.ndim != 2 or np.isinf(signals).any():
            raise ValueError("signals have the shape (frames, muscles) and must be finite, or NaN where there is none")
        if not 0.0 <= self.weight < np.inf:
            raise ValueError(f"the weight of tracking is {self.weight:g}; it must be finite and not negative")
        check_band(self.band, free_scale=self.free_scale)


@dataclass(frozen=True, eq=False)
class JointReaction:
    """A contact force that counts or is limited: ``c = offset + gain f`` with the muscle forces f.

    `offset` (n, 3) N and `gain` (n, 3, k). `weight` (1/N^2) times the squared norm is added to the cost, or the squared
    `component` (0, 1 or 2). `maximum` (N) limits the norm, or the size of the component.
    """

    offset: Floats
    gain: Floats
    weight: float = 0.0
    component: int | None = None
    maximum: float | None = None
    name: str = field(default="joint")

    def __post_init__(self) -> None:
        if self.component not in (None, 0, 1, 2):
            raise ValueError(f"the component of a joint reaction must be 0, 1 or 2, not {self.component}")
        if not 0.0 <= self.weight < np.inf:
            raise ValueError(f"the weight of a joint reaction is {self.weight:g}; it must be finite and not negative")
        if self.maximum is not None and not 0.0 < self.maximum < np.inf:
            raise ValueError(f"the maximum of a joint reaction is {self.maximum:g}; it must be positive and finite")
        if np.shape(self.gain)[:2] != np.shape(self.offset) or np.shape(self.offset)[1:] != (3,):
            raise ValueError("a joint reaction needs an offset (frames, 3) and a gain (frames, 3, muscles)")
