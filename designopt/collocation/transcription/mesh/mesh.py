"""Division of a phase into intervals, each with its scheme."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats, Indices
from designopt.collocation.statement.scheme import Scheme, lagrange


@dataclass(frozen=True, eq=False)
class Mesh:
    """Intervals between `nodes` (N+1,), fractions 0 = s_0 < ... < s_N = 1 of the phase, with one scheme each.

    The points of all intervals, called slots, are numbered in the order of time; a node is one point of two intervals.
    With `left_point` the equations of the system also hold at the left end of the phase, where the scheme itself has no
    point: nothing is integrated from there, and controls lie on the polynomial through the first interval. Raises
    `ValueError` for nodes that do not increase from 0 to 1.
    """

    nodes: Floats
    schemes: tuple[Scheme, ...]
    left_point: bool = False

    def __post_init__(self) -> None:
        nodes = np.asarray(self.nodes, float)
        object.__setattr__(self, "nodes", nodes)
        if nodes.ndim != 1 or len(nodes) < 2 or nodes[0] != 0.0 or nodes[-1] != 1.0 or not (np.diff(nodes) > 0).all():
            raise ValueError("nodes of a mesh are fractions that rise from 0 to 1")
        if len(self.schemes) != len(nodes) - 1:
            raise ValueError(f"{len(self.schemes)} schemes for {len(nodes) - 1} intervals")
        if len({s.name for s in self.schemes}) != 1:
            raise ValueError("all intervals of a mesh have schemes of one family")

    @classmethod
    def uniform(cls, scheme: Scheme, intervals: int, pieces: Iterable[int] = ()) -> Mesh:
        """Equal intervals, rounded up to whole ones in each of the `pieces` of held controls. Raises `ValueError` for
        fewer than one."""
        if intervals < 1:
            raise ValueError(f"intervals must be at least 1, not {intervals}")
        together = math.lcm(*pieces)
        intervals = together * math.ceil(intervals / together)
        return cls(np.linspace(0.0, 1.0, intervals + 1), (scheme,) * intervals)

    @classmethod
    def at(cls, scheme: Scheme, nodes: ArrayLike) -> Mesh:
        """Intervals between given fractions, all with one scheme. Raises `ValueError` for invalid ones."""
        nodes = np.asarray(nodes, float)
        return cls(nodes, (scheme,) * (len(nodes) - 1))

    def __len__(self) -> int:
        return len(self.schemes)

    @cached_property
    def widths(self) -> Floats:
        """Widths (N,) of the intervals."""
        return np.diff(self.nodes)

    @cached_property
    def bases(self) -> Indices:
        """The slots (N+1,) of the nodes."""
        return np.concatenate([[0], np.cumsum([s.steps for s in self.schemes])]).astype(np.int64)

    @cached_property
    def slots(self) -> int:
        """Number of points."""
        return int(self.bases[-1]) + 1

    @cached_property
    def first(self) -> int:
        """The first collocated slot: 0, or 1 for a scheme without equations at the left end."""
        return 0 if self.schemes[0].starts or self.left_point else 1

    @cached_property
    def left(self) -> Floats:
        """Weights (m,) of the points of the first interval except its left end, for the polynomial's value there."""
        end_weights: Floats = lagrange(self.schemes[0].points[1:], np.zeros(1))[0]
        return end_weights

    @cached_property
    def fractions(self) -> Floats:
        """Fractions (slots,) of the phase at all points."""
        point_fractions = np.empty(self.slots)
        for scheme, some in self.groups:
            inner = self.nodes[some, None] + self.widths[some, None] * scheme.points[None, :]
            point_fractions[self.bases[some, None] + np.arange(scheme.steps + 1)] = inner
        point_fractions[self.bases] = self.nodes
        return point_fractions

    @cached_property
    def weights(self) -> Floats:
        """Weights (slots,) of the quadrature over the fractions."""
        quadrature = np.zeros(self.slots)
        for scheme, some in self.groups:
            np.add.at(
                quadrature,
                self.bases[some, None] + np.arange(scheme.steps + 1),
                self.widths[some, None] * scheme.weights[None, :],
            )
        return quadrature

    @cached_property
    def groups(self) -> tuple[tuple[Scheme, Indices], ...]:
        """The distinct schemes with their intervals."""
        distinct = {id(scheme): scheme for scheme in self.schemes}
        scheme_ids = np.fromiter(map(id, self.schemes), np.int64, len(self))
        return tuple((scheme, np.flatnonzero(scheme_ids == key)) for key, scheme in distinct.items())

    def interval_of(self, fractions: ArrayLike) -> tuple[Indices, Floats]:
        """The intervals (n,) of the fractions and the places (n,) in [0, 1] there."""
        fractions = np.asarray(fractions, float)
        k = np.clip(np.searchsorted(self.nodes, fractions, side="right") - 1, 0, len(self) - 1)
        return k, np.clip((fractions - self.nodes[k]) / self.widths[k], 0.0, 1.0)


def refined(mesh: Mesh, parts: Sequence[int]) -> Mesh:
    """Every interval k divided into ``parts[k]`` equal ones with its scheme."""
    nodes = [np.linspace(a, b, n, endpoint=False) for a, b, n in zip(mesh.nodes, mesh.nodes[1:], parts, strict=False)]
    schemes = [s for s, n in zip(mesh.schemes, parts, strict=True) for _ in range(n)]
    return Mesh(np.concatenate([*nodes, [1.0]]), tuple(schemes))
