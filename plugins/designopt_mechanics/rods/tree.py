"""Rods as data, and the weights with which their masses enter the equations of motion."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import closest
from designopt_mechanics.body import is_number
from designopt_mechanics.tree import GROUND


class RodError(ValueError):
    """A rod that cannot be: `rod` is its name, `field` what of it."""

    def __init__(self, rod: str, field: str, message: str) -> None:
        super().__init__(f"rod '{rod}', {field}: {message}")
        self.rod = rod
        self.field = field
        self.message = message


@dataclass(frozen=True)
class Rod:
    """A rod from the end of its `parent` rod (or an anchor of the ground) along its own direction.

    `mass` (kg), its centre at the fraction `com` of the length from the near end; `spread` is the second moment of the
    mass along the rod by mass and squared length: com^2 for a point (when not given), 1/3 with com 1/2 for a uniform
    rod. `Ix`, `Iy` (kg m^2) are constant moments of inertia of azimuth and elevation. `stiffness` (N/m) and `damping`
    (N s/m) act on the length, relaxed at `rest_length` (m). With `sign` -1 the direction points to the near end, as for
    a limb that is traversed against its direction. Stiffness, damping and rest length may be CasADi expressions.
    """

    name: str
    parent: str = GROUND
    mass: Any = 1.0
    com: float = 0.5
    spread: float | None = None
    Ix: Any = 0.0
    Iy: Any = 0.0
    rest_length: Any = 1.0
    stiffness: Any = 0.0
    damping: Any = 0.0
    sign: int = 1

    @property
    def second(self) -> float:
        """`spread`, or com^2."""
        return self.com * self.com if self.spread is None else self.spread


@dataclass(frozen=True, eq=False)
class RodTree:
    """Rods, parents before their children, with `gravity` (3) m/s^2.

    Raises `RodError` for names given twice, unknown parents and cycles, numbers out of range, and a rod that leaves the
    mass matrix singular.
    """

    rods: tuple[Rod, ...]
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rods", tuple(self.rods))
        if not self.rods:
            raise RodError("", "rods", "there are none")
        if len(self.gravity) != 3 or not np.isfinite(self.gravity).all():
            raise RodError(self.rods[0].name, "gravity", f"{self.gravity} is not three finite numbers")
        names = [rod.name for rod in self.rods]
        rod_names = [GROUND]
        for rod in self.rods:
            if rod.name in rod_names:
                raise RodError(rod.name, "name", "is given twice")
            if rod.parent not in rod_names:
                if rod.parent in names:
                    raise RodError(rod.name, "parent", f"'{rod.parent}' is attached to it or comes after it")
                near = closest(rod.parent, rod_names)
                hint = f"; did you mean '{near}'?" if near else ""
                raise RodError(rod.name, "parent", f"no rod '{rod.parent}'{hint}")
            rod_names.append(rod.name)
            self._check(rod)
        for i, rod in enumerate(self.rods):
            if is_number(rod.mass) and not self.children[i] and rod.com == 0.0 and rod.second == 0.0:
                raise RodError(rod.name, "com", "0 without inertia leaves directions without mass")

    @property
    def n(self) -> int:
        """Number of rods."""
        return len(self.rods)

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """Number of each rod's parent, -1 for the ground."""
        number = {GROUND: -1} | {rod.name: i for i, rod in enumerate(self.rods)}
        return tuple(number[rod.parent] for rod in self.rods)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of each rod's children."""
        return tuple(tuple(c for c, p in enumerate(self.parents) if p == i) for i in range(self.n))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the 3 n coordinates in order: azimuths, elevations, lengths."""
        return tuple(f"{kind}_{rod.name}" for kind in ("phi", "psi", "l") for rod in self.rods)

    def column(self, field: str) -> Any:
        """(n,) of one field; objects where some are expressions."""
        values = [getattr(rod, field) for rod in self.rods]
        return np.array(values, dtype=np.float64 if all(is_number(v) for v in values) else object)

    @cached_property
    def weights(self) -> Floats:
        """W (n, n): what of rod i's vector is in the centre of mass of rod k (section 2.1 of the specification)."""
        W = np.zeros((self.n, self.n))
        for k, rod in enumerate(self.rods):
            W[k, k] = rod.sign * rod.com
            i = self.parents[k]
            while i >= 0:
                W[k, i] = self.rods[i].sign
                i = self.parents[i]
        return W

    @cached_property
    def mu(self) -> Any:
        """(n, n) kg: mu_ij = sum over k of m_k W_ki W_kj, and m_i (spread - com^2) on the diagonal."""
        m, W = self.column("mass"), self.weights
        about_centre = m * (self.column("second") - self.column("com") ** 2)
        return (W * m[:, None]).T @ W + np.diag(about_centre)

    def _check(self, rod: Rod) -> None:
        def fail(field: str, message: str) -> RodError:
            return RodError(rod.name, field, message)

        if not rod.name.isidentifier():
            raise fail("name", "is not a valid name: use only letters, digits and _")
        for field in ("mass", "com", "second", "Ix", "Iy", "rest_length", "stiffness", "damping"):
            value = getattr(rod, field)
            if is_number(value) and not np.isfinite(value):
                raise fail(field, f"{value} is not finite")
        for field in ("mass", "rest_length"):
            value = getattr(rod, field)
            if is_number(value) and value <= 0.0:
                raise fail(field, f"{value:g} is not positive")
        for field in ("Ix", "Iy", "stiffness", "damping"):
            value = getattr(rod, field)
            if is_number(value) and value < 0.0:
                raise fail(field, f"{value:g} is negative")
        if not 0.0 <= rod.com <= 1.0:
            raise fail("com", f"{rod.com:g} is not between 0 and 1")
        if rod.second < rod.com**2 - 1e-15:
            raise fail(
                "spread", f"{rod.second:g} is less than com^2 = {rod.com**2:g}, which no mass distribution can have"
            )
        if rod.sign not in (1, -1):
            raise fail("sign", f"{rod.sign} is neither 1 nor -1")
