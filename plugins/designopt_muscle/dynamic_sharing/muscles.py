"""Muscles of a dynamic sharing problem: parameters, and their paths over the motion."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt_muscle.curves import OPENSIM


class Fibre(NamedTuple):
    """Length in optimal lengths, speed in maximum speeds of shortening, cosine of the pennation."""

    length: Any
    speed: Any
    cosine: Any


@dataclass(frozen=True, eq=False)
class DynamicMuscles:
    """k muscles in n frames, with the curves of De Groote et al. (2016) in OpenSim's constants.

    `lengths` and `speeds` (n, k) m and m/s of the paths. Parameters (k,): `force` N, `optimal` m of the fibre, `slack`
    m, `pennation` rad, `fastest` (optimal fibre lengths per second), `rigid` tendon or not, `tendon_strain` at one
    normalised force, `width` of the active curve, `damping`, time constants `rise` and `fall` s, `passive_strain` at
    one normalised force (infinite: no passive force), `min_activation` activation and excitation.

    Raises `ValueError` for shapes that do not fit and numbers that are not finite or out of range, naming the muscle.
    """

    names: tuple[str, ...]
    lengths: Floats
    speeds: Floats
    force: Floats
    optimal: Floats
    slack: Floats
    pennation: Floats
    fastest: Floats
    rigid: NDArray[np.bool_]
    tendon_strain: Floats
    width: Floats
    damping: Floats
    rise: Floats
    fall: Floats
    passive_strain: Floats
    min_activation: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        k = len(self.names)
        for field in fields(self)[1:]:
            kind: Any = np.bool_ if field.name == "rigid" else np.float64
            value: NDArray[Any] = np.array(getattr(self, field.name), dtype=kind)
            object.__setattr__(self, field.name, value)
            shape = (len(np.atleast_1d(self.lengths)), k) if field.name in ("lengths", "speeds") else (k,)
            if value.shape != shape:
                raise ValueError(f"{field.name} has the shape {value.shape}, not {shape}")
            endless = field.name == "passive_strain"
            bad = ~(np.isfinite(value) | (endless & (value == np.inf)))
            if field.name not in ("speeds", "rigid", "damping", "pennation", "lengths"):
                bad |= value <= 0
            if bad.any():
                muscle = self.names[int(np.argwhere(bad)[0][-1])]
                raise ValueError(f"{field.name} of '{muscle}' is out of range or not finite")

    @property
    def compliant(self) -> NDArray[np.int64]:
        """Indices of the muscles with an elastic tendon."""
        return np.flatnonzero(~self.rigid)

    def fibre(self, j: int, tendon: tuple[Any, Any], path: tuple[Any, Any], optimal: Any = None) -> Fibre:
        """The fibre of muscle `j`, of numbers, arrays or CasADi expressions.

        `tendon` is its length (m) and lengthening speed (m/s), `path` those of the whole; `optimal` (m) replaces the
        optimal fibre length.
        """
        optimal = self.optimal[j] if optimal is None else optimal
        along = path[0] - tendon[0]
        length, cosine = along, 1.0  # not the root of a square, whose slope jumps
        if self.pennation[j] != 0.0:
            length = ((optimal * np.sin(self.pennation[j])) ** 2 + along**2) ** 0.5
            cosine = along / length
        speed = (path[1] - tendon[1]) * cosine / (self.fastest[j] * optimal)
        return Fibre(length / optimal, speed, cosine)

    def forces(self, j: int, fibre: Fibre) -> tuple[Any, Any]:
        """Force of `fibre` of muscle `j` along its tendon, relative to its isometric force: for each unit of
        activation, and without any."""
        active = OPENSIM.active_length(fibre.length, width=float(self.width[j])) * OPENSIM.velocity(fibre.speed)
        resting = self.damping[j] * fibre.speed
        if np.isfinite(self.passive_strain[j]):
            resting = resting + OPENSIM.passive(fibre.length, strain=float(self.passive_strain[j]))
        return active * fibre.cosine, resting * fibre.cosine
