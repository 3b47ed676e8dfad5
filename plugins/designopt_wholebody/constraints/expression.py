"""Vectors that are linear in the coordinates, from which constraints are stated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from designopt.arrays import Floats
from designopt_wholebody.body.body import BodySegment


@dataclass(frozen=True, eq=False)
class VectorExpression:
    """A vector of three components: a sum of triples of q, by the place of each, and a `constant` (3,)."""

    triples: Mapping[int, float] = field(default_factory=dict)
    constant: Floats = field(default_factory=lambda: np.zeros(3))

    def __sub__(self, second: VectorExpression) -> VectorExpression:
        triples = dict(self.triples)
        for offset, value in second.triples.items():
            triples[offset] = triples.get(offset, 0.0) - value
        return VectorExpression(triples, self.constant - second.constant)

    def value(self, q: Floats) -> Floats:
        """(..., 3) for coordinates q (..., n)."""
        total = np.broadcast_to(self.constant, (*q.shape[:-1], 3)).copy()
        for offset, value in self.triples.items():
            total += value * q[..., offset : offset + 3]
        return total


def expression(body: BodySegment, coefficients: Floats) -> VectorExpression:
    """Point or direction of a body by its coefficients (`Body.point`, `Body.direction`, `Body.landmark`)."""
    pairs = enumerate(coefficients.tolist())
    return VectorExpression({body.start + 3 * k: value for k, value in pairs if abs(value) > 1e-15})


def basic_point(body: BodySegment, index: int) -> VectorExpression:
    """One of the basic points of a body."""
    return VectorExpression({body.start + 3 * index: 1.0})


def unit_vector(body: BodySegment, index: int) -> VectorExpression:
    """One of the unit vectors of a body."""
    return VectorExpression({body.start + 3 * (len(body.points) + index): 1.0})


def axis(body: BodySegment, name: str) -> VectorExpression:
    """The axis u, v or w of a body: a coordinate where it is one, else a sum of them."""
    if name in body.vectors:
        return unit_vector(body, body.vectors.index(name))
    return expression(body, body.direction(np.eye(3)["uvw".index(name)]))
