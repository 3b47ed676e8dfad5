"""What dynamic sharing minimises and what helps the muscles, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from designopt_mechanics.sharing.statement.criteria import Tracking, optimal_forces

from designopt.arrays import Floats

#: Quantities that a factor may scale, with the words for them.
SCALED = {
    "force": "maximum isometric force",
    "fibre": "optimal fibre length",
    "slack": "tendon slack length",
    "strain": "tendon strain at one normalised force",
}
#: Names of variables of the program, and how those of muscles and rows begin.
_TAKEN = (
    "strength",
    "stiffness",
    "rest",
    "assistance",
    "angle",
    "device",
    "effort_rate",
    "moving_rate",
    "tracking_rate",
    "fibres_rate",
)
_PREFIXES = (
    "activation_", "tendon_force_", "excitation_", "command_", "force_rate_", "reserve_", "length_", "speed_", "arm_",
    "needed_", "signal_", "known_", "least_", "most_", "fibre_length_", "fibre_speed_", "equilibrium_", "balance_",
    "muscle_force_", "seen_",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class DynamicReserves:
    """Reserves of the rows: `optimal` (m,) generalised force at control 1, 0 for none; `weight` of their squares;
    `limit` of the controls."""

    optimal: Floats
    weight: float = 1.0
    limit: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "optimal", optimal_forces(self.optimal))
        if not (0.0 < self.weight < np.inf and 0.0 < self.limit < np.inf):
            raise ValueError(f"weight {self.weight:g} and limit {self.limit:g} of reserves must be positive and finite")


@dataclass(frozen=True, eq=False)
class MeasuredFibres:
    """Fibre lengths from ultrasound: `lengths` (n, k) m, NaN without a measurement, tracked at the cost ``weight ((l
    - L) / l_o)^2`` with the given optimal length l_o of the muscle, without factors.
    """

    lengths: Floats
    weight: float = 1.0

    def __post_init__(self) -> None:
        lengths = np.array(self.lengths, dtype=np.float64)
        object.__setattr__(self, "lengths", lengths)
        if lengths.ndim != 2 or np.isinf(lengths).any():
            raise ValueError(
                "fibre lengths have the shape (frames, muscles) and must be finite, or NaN where there is none"
            )
        if not 0.0 <= self.weight < np.inf:
            raise ValueError(f"the weight of fibre lengths is {self.weight:g}; it must be finite and not negative")


@dataclass(frozen=True, eq=False)
class DynamicTerms:
    """The integral of ``effort w e^2 + tracking (e - s m)^2 + rates u^2`` over muscles, besides that of the reserves.

    `effort` weights the squared excitations, or the activations, whichever are `charged`; `weights` (k,) are those of
    single muscles; `rates` (s^2) weights the squared rates of tendon forces. `sharpness` is that of `activation_rate`;
    above 2.3, quick pulses maintain an activation at less effort than a steady excitation, and there is no smooth
    solution. With `start_from_rest` the initial activations equal the excitations: the activations are unknown, and
    without this constraint they would cost nothing. `tracking` has measured excitations m, `fibres` measured lengths.
    `synergies` (k, s), not negative: excitations are ``W h``, h >= 0.
    """

    effort: float = 1.0
    charged: Literal["excitation", "activation"] = "excitation"
    weights: Floats | None = None
    rates: float = 0.01
    sharpness: float = 1.0
    start_from_rest: bool = True
    tracking: Tracking | None = None
    fibres: MeasuredFibres | None = None
    synergies: Floats | None = None

    def __post_init__(self) -> None:
        for name in ("effort", "rates"):
            if not 0.0 <= getattr(self, name) < np.inf:
                raise ValueError(f"{name} is {getattr(self, name):g}; it must be finite and not negative")
        if not 0.0 < self.sharpness < np.inf:
            raise ValueError(f"sharpness is {self.sharpness:g}; it must be positive and finite")
        for name in ("weights", "synergies"):
            if getattr(self, name) is not None:
                value = np.array(getattr(self, name), dtype=np.float64)
                if not np.isfinite(value).all() or (value < 0).any():
                    raise ValueError(f"{name} must be finite and not negative")
                object.__setattr__(self, name, value)


@dataclass(frozen=True, eq=False)
class Device:
    """A spring and a drive about one row: the moment ``d = k (rest - angle)``, and of the moment that is left the share
    ``assistance``. `angle` (n,) rad of the row's coordinate. Parameters: stiffness (N m/rad), rest, assistance."""

    row: str
    angle: Floats

    def moment(self, net_moment: Any, parameters: Mapping[str, Any], angle: Any = None) -> Any:
        """The device's part of the `net_moment`, for arrays (n,) or expressions."""
        spring = parameters["stiffness"] * (parameters["rest"] - (self.angle if angle is None else angle))
        return spring + parameters["assistance"] * (net_moment - spring)


@dataclass(frozen=True)
class Factor:
    """A number called `name` that scales one quantity (a key of `SCALED`) of some muscles."""

    name: str
    scales: Literal["force", "fibre", "slack", "strain"]
    muscles: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "muscles", tuple(self.muscles))
        if self.scales not in SCALED:
            raise ValueError(f"'{self.scales}' cannot be scaled; {', '.join(SCALED)} can")
        if not self.name.isidentifier() or not self.muscles:
            raise ValueError(f"factor '{self.name}': a name of letters, digits and _, and at least one muscle")
        if self.name in _TAKEN or self.name.startswith(_PREFIXES):
            raise ValueError(f"factor '{self.name}' has a name that a variable of the program may have; choose another")


def checked_factors(factors: tuple[Factor, ...], muscles: tuple[str, ...]) -> dict[tuple[str, str], str]:
    """Names of the factors by (quantity, muscle). Raises `ValueError` for muscles that are not there, or twice."""
    factor_of: dict[tuple[str, str], str] = {}
    for factor in factors:
        for muscle in factor.muscles:
            key: Any = factor.scales, muscle
            if muscle not in muscles:
                raise ValueError(f"factor '{factor.name}': there is no muscle '{muscle}' ({', '.join(muscles)})")
            if key in factor_of:
                raise ValueError(f"the {SCALED[factor.scales]} of '{muscle}' is already scaled by '{factor_of[key]}'")
            factor_of[key] = factor.name
    return factor_of
