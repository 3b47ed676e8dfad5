"""Coordinates of Gaussian processes: the unit cube, choices as one column for each value."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.space import Space


@dataclass(frozen=True)
class Coordinates:
    """Designs `X` (n, d) as search coordinates from 0 to 1, `U` (n, d), and as features `E` (n, e) of a process.

    Real parameters and integers have one feature, their position in their range (of the logarithm on a log scale), for
    integers rounded (Garrido-Merchán & Hernández-Lobato 2020). A choice has one feature for each value, all with one
    length scale: designs with different values are equally distant, whatever the values are.
    """

    space: Space

    @cached_property
    def _widths(self) -> Floats:
        return np.asarray(self.space.upper - self.space.lower)

    @cached_property
    def groups(self) -> NDArray[np.int64]:
        """The parameter (e,) of each feature."""
        counts = [len(p.values) if p.kind == "choice" else 1 for p in self.space.free]
        return np.repeat(np.arange(len(counts)), counts)

    @cached_property
    def real(self) -> NDArray[np.int64]:
        """Indices of the real parameters."""
        return np.array([j for j, p in enumerate(self.space.free) if p.kind == "real"], dtype=np.int64)

    @cached_property
    def real_features(self) -> NDArray[np.int64]:
        """The features of the real parameters, in the order of `real`."""
        return np.flatnonzero(np.isin(self.groups, self.real))

    def designs(self, U: Floats) -> Floats:
        """Designs at coordinates `U`, inactive parameters imputed."""
        return self.space.from_search(self.space.lower + self._widths * np.clip(U, 0.0, 1.0)) + 0.0

    def coordinates(self, X: Floats) -> Floats:
        """The inverse of `designs`."""
        return np.clip((self.space.to_search(X) - self.space.lower) / self._widths, 0.0, 1.0)

    def stretch(self, X: Floats) -> Floats:
        """The derivatives (n, d) of the parameters with respect to their coordinates at designs `X`; 0 for integers and
        choices."""
        by_place = [
            np.zeros(len(X)) if p.kind != "real" else X[:, j] if p.scale == "log" else np.ones(len(X))
            for j, p in enumerate(self.space.free)
        ]
        return np.column_stack(by_place) * self._widths

    def features(self, X: Floats) -> Floats:
        """The features (n, e) of designs `X`."""
        U = self.coordinates(X)
        columns = []
        for j, p in enumerate(self.space.free):
            if p.kind == "choice":
                columns.append((X[:, j : j + 1] == np.arange(len(p.values))) / np.sqrt(2.0))
            else:
                columns.append(U[:, j : j + 1])
        return np.concatenate(columns, axis=1)
