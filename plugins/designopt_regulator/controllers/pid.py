"""The sampled PID of all loops: its settings, its kinds, its difference equations.

A controller with two degrees of freedom, a filtered derivative of the measurement only, saturation at ±1 and
anti-windup by back-calculation (Åström & Hägglund 2006, chapters 3 and 13). Every number may be an array (n,): row i is
one controller.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from designopt.arrays import Floats
from designopt.plugin import InvalidSetting
from designopt_regulator.controllers.nested import leaves, with_structure
from designopt_regulator.controllers.sections import DifferenceEquation

if TYPE_CHECKING:
    from designopt.study.study import DesignVariable

Kind = Literal["P", "PI", "PD", "PID", "I_PD", "PI_D"]

#: Free parameters of a controller of each kind; the others are off (no I, no D) or fixed by the kind (b).
PARAMETERS: Mapping[Kind, tuple[str, ...]] = {
    "P": ("kp", "b"),
    "PI": ("kp", "ti", "b", "tt"),
    "PD": ("kp", "td", "tf", "b"),
    "PID": ("kp", "ti", "td", "tf", "b", "tt"),
    "I_PD": ("kp", "ti", "td", "tf", "tt"),
    "PI_D": ("kp", "ti", "td", "tf", "tt"),
}

#: Time constant (s) of the derivative filter where none is given; without D it has no effect.
DEFAULT_FILTER = 0.1


@dataclass(frozen=True)
class PID:
    """Settings of n controllers with one `sample_time` (s).

    Gain `kp`, integral time `ti` (s, inf: no I), derivative time `td` (s, 0: no D), its filter `tf` (s), set-point
    weight `b`, tracking time of the anti-windup `tt` (s, inf: none); arrays (n,). All n have the same kinds of
    `sections` in series.
    """

    kp: Floats
    ti: Floats
    td: Floats
    tf: Floats
    b: Floats
    tt: Floats
    sample_time: float
    sections: tuple[DifferenceEquation, ...] = ()

    def rows(self, rows: NDArray[np.intp]) -> PID:
        """Some of the controllers."""
        numbers = {name: getattr(self, name)[rows] for name in ("kp", "ti", "td", "tf", "b", "tt")}
        return replace(self, **numbers)


def pid(
    *,
    kp: ArrayLike,
    ti: ArrayLike = np.inf,
    td: ArrayLike = 0.0,
    tf: ArrayLike = DEFAULT_FILTER,
    b: ArrayLike = 1.0,
    tt: ArrayLike = np.nan,
    sample_time: float = 0.05,
) -> PID:
    """Settings broadcast to one length; a NaN `tt` is replaced by `tracking_time`."""
    rows = np.broadcast_arrays(*(np.atleast_1d(np.asarray(v, float)) for v in (kp, ti, td, tf, b, tt)))
    kp_, ti_, td_, tf_, b_, tt_ = (np.array(v) for v in rows)
    return PID(kp_, ti_, td_, tf_, b_, np.where(np.isnan(tt_), tracking_time(ti_, td_), tt_), sample_time)


def absent_parameters(kind: Kind, names: Collection[str]) -> list[str]:
    """Those of `names` that a controller of this kind lacks."""
    return [name for name in names if name not in PARAMETERS[kind]]


_RANGE = (1e-30, 1e30)
UNUSUAL = "is beyond what can be computed: 1e-30 to 1e30"


def is_unusual(value: float) -> bool:
    """Whether a number that is finite and not 0 is so large or small that squares of products would overflow."""
    return bool(np.isfinite(value)) and value != 0.0 and not _RANGE[0] <= abs(value) <= _RANGE[1]


def unusual_ends(parameters: Iterable[DesignVariable]) -> Iterator[InvalidSetting]:
    """The parameters of a study whose ranges reach values at which no loop can be computed."""
    for p in parameters:
        for end in (float(v) for v in (*p.values, p.low, p.high) if not isinstance(v, str)):
            if is_unusual(value := p.factor * end + p.offset):
                yield InvalidSetting(p.name, f"{value:g} {UNUSUAL}")


def tracking_time(ti: ArrayLike, td: ArrayLike) -> Floats:
    """The usual tracking time: sqrt(ti td) of a PID, ti of a PI; infinite without I, whose state stays constant."""
    ti, td = np.asarray(ti, float), np.asarray(td, float)
    with np.errstate(invalid="ignore"):  # inf * 0 of a P controller, which the outer branch replaces
        return np.where(np.isinf(ti), np.inf, np.where(td > 0.0, np.sqrt(ti * td), ti))


class Law(NamedTuple):
    """The difference equations of the controller (specification, section 3), with the numbers that they need.

    Stated once, for the module `m` that computes: with numpy the numbers are arrays (n,), with casadi symbols.
    """

    kp: Any
    ki: Any  # of one sample
    kd: Any  # of one sample
    kt: Any  # of one sample
    forget: Any
    off: Any  # 1 - b
    origin: Any  # the measurement at rest
    sections: tuple[DifferenceEquation, ...] = ()  # in series, before the limits

    @classmethod
    def with_settings(cls, settings: PID, origin: Floats) -> Law:
        """The law of n controllers that rest at measurements `origin` (n,)."""
        T = settings.sample_time
        forget = settings.tf / (settings.tf + T)
        return cls(
            kp=settings.kp,
            ki=T * settings.kp / settings.ti,
            kd=settings.kp * settings.td * (1.0 - forget) / T,
            kt=T / settings.tt,
            forget=forget,
            off=1.0 - settings.b,
            origin=origin,
            sections=settings.sections,
        )

    def at_rest(self, y: Any, u: Any) -> Memory:
        """State for a bumpless start at measurement `y` and output `u`."""
        return Memory.at_rest(y, u, self.sections)

    def sample(
        self,
        m: Any,
        memory: Memory,
        r: Any,
        y: Any,
        *,
        scale: Any = 1.0,
        feed: Any = None,
        angle: bool = False,
        limits: Limits | None = None,
        last: Any = 0.0,
    ) -> tuple[Any, Any, Memory]:
        """Limited output, output before limiting, and memory after a sample of reference `r`, measurement `y`.

        `scale` multiplies kp (gain schedule), `feed`, if any, is added to the output, an error of `angle` is wrapped.
        The limits are ±1 if none are given; `last` is the output of the sample before, from which the rate is limited.
        """
        e = wrap_angle(m, r - y) if angle else r - y
        D = self.forget * memory.derivative - self.kd * scale * (y - memory.measurement)
        # b (r - r0) - (y - r0), by the error so that it is the wrapped one of angles
        raw = self.kp * scale * (e - self.off * (r - self.origin)) + memory.integral + D
        raw = raw if feed is None else raw + feed
        section_states = []
        for section, before in zip(self.sections, memory.sections, strict=True):
            raw, after = section.filter(before, raw)
            section_states.append(after)
        output = m.fmax(m.fmin(raw, 1.0), -1.0) if limits is None else limits.apply(m, raw, last)
        integral = memory.integral + (self.ki * scale * e + self.kt * (output - raw))
        return output, raw, Memory(D, integral, y, tuple(section_states))


class Memory(NamedTuple):
    """State of a controller between samples."""

    derivative: Any
    integral: Any
    measurement: Any
    sections: tuple[tuple[Any, ...], ...] = ()  # of each in series

    @classmethod
    def at_rest(cls, y: Any, u: Any, sections: tuple[DifferenceEquation, ...] = ()) -> Memory:
        """The memory at measurement `y` and output `u`, without bump."""
        return cls(0.0 * y, u, y, tuple(tuple(u * share for share in section.at_rest()) for section in sections))


class Limits(NamedTuple):
    """Limits of the output, and of its change from one sample to the next; infinite by default."""

    low: Any = -np.inf
    high: Any = np.inf
    fall: Any = np.inf  # in a sample
    climb: Any = np.inf  # in a sample

    def per(self, size: float) -> Limits:
        """The limits of signals that are divided by `size`, which is not 0."""
        low, high, fall, climb = (bound / abs(size) for bound in self)
        return Limits(low, high, fall, climb) if size > 0.0 else Limits(-high, -low, climb, fall)

    def apply(self, m: Any, raw: Any, last: Any) -> Any:
        """The output allowed next to `raw` after an output `last`."""
        inside = m.fmax(m.fmin(raw, self.high), self.low)
        return m.fmax(m.fmin(inside, last + self.climb), last - self.fall)


class RunningPID:
    """n running controllers. Before the first sample they are at rest at measurement `y` and output `u`, without bump.

    `output` (n,) is the limited output of the last sample, `raw` (n,) the one before the limits, ±1 by default.
    """

    def __init__(
        self, settings: PID, y: Floats, u: Floats, *, angle: bool = False, limits: Limits | None = None
    ) -> None:
        self._law, self._angle, self._limits = Law.with_settings(settings, y.copy()), angle, limits
        self._memory = self._law.at_rest(y.copy(), u.copy())
        self.raw = u.copy()
        self.output = u.copy()

    @property
    def setpoint(self) -> Floats:
        """Placeholder for the set-point of an inner controller, which a single PID lacks."""
        return self.output

    def sample(self, r: Floats, y: Floats, inner_y: Floats | None = None, *, scale: Floats | float = 1.0) -> Floats:
        """The output for reference `r` and measurement `y` of this sample; `scale` multiplies kp (gain schedule).

        An error of `angle` is wrapped to (-pi, pi].
        """
        self.output, self.raw, self._memory = self._law.sample(
            np, self._memory, r, y.copy(), scale=scale, angle=self._angle, limits=self._limits, last=self.output
        )
        return self.output

    def reset(self, rows: NDArray[np.bool_]) -> None:
        """Put the states of these rows to rest."""
        self._memory = with_structure(self._memory, (np.where(rows, 0.0, state) for state in leaves(self._memory)))
        self.output = np.where(rows, 0.0, self.output)


def wrap_angle(m: Any, angle: Any) -> Any:
    """An angle (rad) wrapped to (-pi, pi]; angles in this range keep every bit."""
    return angle - 2.0 * np.pi * m.ceil((angle - np.pi) / (2.0 * np.pi))
