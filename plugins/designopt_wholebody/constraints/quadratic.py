"""Rows φ_k = ½ qᵀ A_k q + b_kᵀ q + c_k, with Jacobian and its rate as products of constant arrays with q and q̇.

Their terms are products of `VectorExpression`s, which are linear in the coordinates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from designopt.arrays import Floats, Integers
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


@dataclass(frozen=True, eq=False)
class Quadratic:
    """m quadratic rows of n coordinates, for any number of frames at once.

    Entry e of the Jacobian stands at (`rows[e]`, `columns[e]`), sorted by row, and is
    ``linear[e] + sum of factors[t] q[sources[t]]`` over the terms t that belong to e (`starts` says where those of an
    entry with terms, `owners`, begin).
    """

    m: int
    n: int
    constant: Floats
    rows: Integers
    columns: Integers
    linear: Floats
    factors: Floats
    sources: Integers
    owners: Integers
    starts: Integers

    def _varying_entries(self, q: Floats) -> Floats:
        """(f, terms' entries) what q (f, n) adds to the entries `owners`."""
        if not len(self.owners):
            return np.zeros((len(q), 0))
        return np.asarray(np.add.reduceat(np.take(q, self.sources, axis=1) * self.factors, self.starts, axis=1))

    def entries(self, q: Floats) -> Floats:
        """(f, entries) of the Jacobian for q (f, n)."""
        data = np.repeat(self.linear[None], len(q), axis=0)
        data[:, self.owners] += self._varying_entries(q)
        return data

    def rates(self, qdot: Floats) -> Floats:
        """(f, entries) of the Jacobian's derivative by time for q̇ (f, n); it does not depend on q."""
        data = np.zeros((len(qdot), len(self.linear)))
        data[:, self.owners] = self._varying_entries(qdot)
        return data

    def product(self, data: Floats, vector: Floats) -> Floats:
        """(f, m) Jacobian (as entries) times a vector (f, n)."""
        return _sum_rows(data * np.take(vector, self.columns, axis=1), self.rows, self.m)

    def values(self, q: Floats) -> Floats:
        """(f, m) φ for q (f, n)."""
        data = np.repeat(self.linear[None], len(q), axis=0)
        data[:, self.owners] += 0.5 * self._varying_entries(q)
        return self.product(data, q) + self.constant


def _sum_rows(values: Floats, rows: Integers, m: int) -> Floats:
    """(f, m) sums of values (f, k) over equal `rows`, which are sorted."""
    total = np.zeros((len(values), m))
    if rows.size:
        starts = np.flatnonzero(np.r_[True, np.diff(rows) > 0])
        total[:, rows[starts]] = np.add.reduceat(values, starts, axis=1)
    return total


class QuadraticRows:
    """Rows in the making: each is stated by dot products of expressions, then all become one `Quadratic`."""

    def __init__(self) -> None:
        self._constant: list[float] = []
        self._linear: dict[tuple[int, int], float] = {}
        self._terms: dict[tuple[int, int], dict[int, float]] = {}

    def __len__(self) -> int:
        return len(self._constant)

    def vector(self, zero: VectorExpression) -> None:
        """Three rows: an expression that must vanish."""
        for k in range(3):
            row = self._new_row(float(zero.constant[k]))
            for offset, value in zero.triples.items():
                self._add_linear(row, offset + k, value)

    def dot(
        self, a: VectorExpression, b: VectorExpression, value: float = 0.0, *, weights: Floats | None = None
    ) -> None:
        """One row: aᵀ H b - value = 0, with `weights` H (3, 3), the identity where none are given."""
        H = np.eye(3) if weights is None else weights
        row = self._new_row(float(a.constant @ H @ b.constant) - value)
        for k in range(3):
            for offset, factor in a.triples.items():
                self._add_linear(row, offset + k, factor * float(H[k] @ b.constant))
            for offset, factor in b.triples.items():
                self._add_linear(row, offset + k, factor * float(a.constant @ H[:, k]))
        for i, j in zip(*np.nonzero(H), strict=True):
            for p, fp in a.triples.items():
                for r, fr in b.triples.items():
                    self._add_product(row, p + int(i), r + int(j), fp * fr * float(H[i, j]))

    def _new_row(self, constant: float) -> int:
        self._constant.append(constant)
        return len(self._constant) - 1

    def _add_linear(self, row: int, column: int, value: float) -> None:
        if value:
            self._linear[row, column] = self._linear.get((row, column), 0.0) + value

    def _add_product(self, row: int, first: int, second: int, value: float) -> None:
        """Add value q_first q_second to φ: two entries of the symmetric A."""
        for column, source in ((first, second), (second, first)):
            terms = self._terms.setdefault((row, column), {})
            terms[source] = terms.get(source, 0.0) + value

    def rows_of(self, n: int) -> Quadratic:
        """All rows stated so far, of n coordinates."""
        offsets = sorted({*self._linear, *self._terms})
        index_of_offset = {offset: e for e, offset in enumerate(offsets)}
        owner_offsets = sorted(self._terms)
        sizes = [len(self._terms[offset]) for offset in owner_offsets]
        terms = [term for offset in owner_offsets for term in self._terms[offset].items()]
        return Quadratic(
            m=len(self._constant),
            n=n,
            constant=np.array(self._constant),
            rows=np.array([r for r, _ in offsets], dtype=np.int64),
            columns=np.array([c for _, c in offsets], dtype=np.int64),
            linear=np.array([self._linear.get(offset, 0.0) for offset in offsets]),
            factors=np.array([f for _, f in terms]),
            sources=np.array([s for s, _ in terms], dtype=np.int64),
            owners=np.array([index_of_offset[offset] for offset in owner_offsets], dtype=np.int64),
            starts=np.cumsum([0, *sizes])[:-1].astype(np.int64) if sizes else np.zeros(0, dtype=np.int64),
        )
