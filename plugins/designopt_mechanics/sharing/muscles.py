"""What muscles can do in every frame of a trial."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from designopt.arrays import Floats, Mask


def _empty() -> Floats:
    return np.zeros(0)


@dataclass(frozen=True, eq=False)
class Muscles:
    """Strength and range of k muscles in n frames.

    `strength` (n, k) N is the active force along the tendon at activation 1, `passive` (n, k) N the force at activation
    0 (none when not given). `lower` and `upper` (k,) or (n, k) bound the activation; 0 and 1 when not given.
    `isometric` (k,) N is the maximum isometric force, `fibre` (k,) m the optimal fibre length: weights need them.

    Raises `ValueError` for shapes that do not fit and numbers out of range, naming the muscle.
    """

    names: tuple[str, ...]
    strength: Floats
    passive: Floats = field(default_factory=_empty)
    lower: Floats = field(default_factory=_empty)
    upper: Floats = field(default_factory=_empty)
    isometric: Floats = field(default_factory=_empty)
    fibre: Floats = field(default_factory=_empty)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        strength = np.array(self.strength, dtype=np.float64)
        if strength.ndim != 2 or strength.shape[1] != len(self.names):
            raise ValueError(f"strength has the shape {strength.shape}, not (frames, {len(self.names)} muscles)")
        k = len(self.names)
        defaults = {"strength": strength, "passive": self._array_or_default("passive", 0.0, strength.shape)}
        for name, default in (("lower", 0.0), ("upper", 1.0)):
            defaults[name] = self._array_or_default(name, default, strength.shape)
        for name in ("isometric", "fibre"):
            value = np.array(getattr(self, name), dtype=np.float64)
            if value.size and (value.shape != (k,) or not np.isfinite(value).all() or (value <= 0).any()):
                raise ValueError(f"{name} needs a positive number for each of the {k} muscles")
            defaults[name] = value
        for name, value in defaults.items():
            value.flags.writeable = False
            object.__setattr__(self, name, value)
        for j, muscle in enumerate(self.names):
            low, up = self.lower[:, j], self.upper[:, j]
            if (low < 0).any() or (up > 1).any() or (low > up).any():
                raise ValueError(f"bounds of the activation of '{muscle}' are not within 0 and 1, or cross")
            if (strength[:, j] < 0).any() or (self.passive[:, j] < 0).any():
                raise ValueError(f"'{muscle}' has a negative force; a muscle only pulls")

    def _array_or_default(self, name: str, default: float, shape: tuple[int, ...]) -> Floats:
        value = np.array(getattr(self, name), dtype=np.float64)
        if not value.size:
            return np.full(shape, default)
        if value.shape not in (shape, shape[1:]):
            raise ValueError(f"{name} has the shape {value.shape}, not {shape} or {shape[1:]}")
        return np.array(np.broadcast_to(value, shape))

    @property
    def usable(self) -> Mask:
        """(n,) whether all numbers of a frame are finite."""
        return np.asarray(
            np.isfinite(self.strength).all(axis=1)
            & np.isfinite(self.passive).all(axis=1)
            & np.isfinite(self.lower + self.upper).all(axis=1)
        )

    def scaled(self, factor: float | Floats) -> Muscles:
        """Muscles whose maximum isometric force is `factor` times as large: a number or (k,)."""
        isometric = self.isometric * factor if self.isometric.size else self.isometric
        return Muscles(
            self.names,
            self.strength * factor,
            self.passive * factor,
            self.lower,
            self.upper,
            isometric,
            self.fibre,
        )

    def volumes(self) -> Floats:
        """(k,) weights F_o l_o, relative to their mean. Raises `ValueError` where one of the two is not given."""
        volume = self._property_values("isometric") * self._property_values("fibre")
        return np.asarray(volume / volume.mean())

    def areas(self) -> Floats:
        """(k,) weights in proportion to the physiological cross-section (to F_o), relative to their mean."""
        force = self._property_values("isometric")
        return np.asarray(force / force.mean())

    def _property_values(self, name: str) -> Floats:
        value: Floats = getattr(self, name)
        if not value.size:
            word = {"isometric": "maximum isometric forces", "fibre": "optimal fibre lengths"}[name]
            raise ValueError(f"weights of this kind need the {word} of the muscles, and none are given")
        return value
