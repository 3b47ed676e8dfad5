"""Muscles of a dynamic sharing problem: parameters, and their paths over the motion."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt_muscle.curves import OPENSIM

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DynamicMuscles:
    """k muscles in n frames, with the curves of De Groote et al. (2016) in OpenSim's constants.

    `lengths` and `speeds` (n, k) m and m/s of the paths. Parameters (k,): `force` N, `fibre` m, `slack` m, `pennation`
    rad, `fastest` (optimal fibre lengths per second), `rigid` tendon or not, `tendon_strain` at one normalised force,
    `width` of the active curve, `damping`, time constants `rise` and `fall` s, `passive_strain` at one normalised force
    (infinite: no passive force), `least` activation and excitation.

    Raises `ValueError` for shapes that do not fit and numbers that are not finite or out of range, naming the muscle.
    """

    names: tuple[str, ...]
    lengths: Vector
    speeds: Vector
    force: Vector
    fibre: Vector
    slack: Vector
    pennation: Vector
    fastest: Vector
    rigid: NDArray[np.bool_]
    tendon_strain: Vector
    width: Vector
    damping: Vector
    rise: Vector
    fall: Vector
    passive_strain: Vector
    least: Vector

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

    def fibre_force(self, j: int, activation: Any, tendon: tuple[Any, Any], path: tuple[Any, Any]) -> Any:
        """Force of the fibre of muscle `j` along its tendon, relative to its isometric force, of CasADi expressions.

        `tendon` is its length and lengthening speed, `path` those of the whole.
        """
        import casadi as ca

        along = path[0] - tendon[0]
        height = self.fibre[j] * np.sin(self.pennation[j])
        length = ca.sqrt(height**2 + along**2)
        cosine = along / length
        speed = (path[1] - tendon[1]) * cosine / (self.fastest[j] * self.fibre[j])
        normal = length / self.fibre[j]
        active = activation * OPENSIM.active_length(normal, width=float(self.width[j])) * OPENSIM.velocity(speed)
        resting = 0.0
        if np.isfinite(self.passive_strain[j]):
            resting = OPENSIM.passive(normal, strain=float(self.passive_strain[j]))
        return (active + resting + self.damping[j] * speed) * cosine
