"""All constraints of a subject: values, Jacobian and its rate for any number of frames at once.

All are quadratic in q except the contact of the scapula with the ribcage, which is of fourth order. It is quadratic in
q and p, where p = Aᵀ(r - r_centre), the contact point in axes of the thorax, is itself quadratic in q (Nunes 2017,
4.4-4.7). So two sets of quadratic rows, one inserted into the other, contain every constraint: the Jacobian is J = J_q
+ J_p ∂p/∂q, and no constraint needs its own derivatives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats
from designopt_wholebody.constraints.quadratic import Quadratic


@dataclass(frozen=True)
class RowName:
    """Origin of a row of φ: a body's rigidity (`kind` "rigid") or a joint by its type; `per_metre` converts its
    violation to metres (or radians): φ `per_metre`.
    """

    kind: str
    owner: str
    per_metre: float = 1.0


class Constraints:
    """φ(q) = 0 with m rows of n coordinates.

    `rows` are quadratic in (q, p); `products` (None without contact with a surface) are p as rows of q. Entry e of the
    Jacobian is at (`row_of[e]`, `column_of[e]`), sorted by row, then by column.
    """

    def __init__(self, n: int, rows: Quadratic, names: tuple[RowName, ...], products: Quadratic | None) -> None:
        self.n, self.m, self.names = n, rows.m, names
        self._rows, self._products = rows, products
        of_p = rows.columns >= n
        self._direct, self._through = np.flatnonzero(~of_p), np.flatnonzero(of_p)
        chain = [] if products is None else self._chain(products)
        positions = {(int(rows.rows[e]), int(rows.columns[e])) for e in self._direct}
        entries = sorted(positions | {position for position, _, _ in chain})
        index_of_position = {position: e for e, position in enumerate(entries)}
        self.row_of = np.array([r for r, _ in entries], dtype=np.int64)
        self.column_of = np.array([c for _, c in entries], dtype=np.int64)
        self._direct_to = np.array(
            [index_of_position[int(rows.rows[e]), int(rows.columns[e])] for e in self._direct], dtype=int
        )
        chain.sort(key=lambda link: index_of_position[link[0]])
        target = np.array([index_of_position[position] for position, _, _ in chain], dtype=np.int64)
        self._outer = np.array([e for _, e, _ in chain], dtype=np.int64)
        self._inner = np.array([e for _, _, e in chain], dtype=np.int64)
        self._sums = np.flatnonzero(np.r_[True, np.diff(target) > 0]) if len(target) else target
        self._chain_to = target[self._sums]
        self._row_starts = np.searchsorted(self.row_of, np.arange(self.m))

    def _chain(self, products: Quadratic) -> list[tuple[tuple[int, int], int, int]]:
        """(place in J, entry of the rows by p, entry of p by q) for every product in J_p ∂p/∂q."""
        links = []
        for e in self._through:
            for inner in np.flatnonzero(products.rows == self._rows.columns[e] - self.n):
                links.append(((int(self._rows.rows[e]), int(products.columns[inner])), int(e), int(inner)))
        return links

    def values(self, q: Floats) -> Floats:
        """(f, m) φ for q (f, n)."""
        return self._rows.values(self._extended(q))

    def entries(self, q: Floats) -> Floats:
        """(f, entries) of the Jacobian ∂φ/∂q for q (f, n)."""
        outer = self._rows.entries(self._extended(q))
        inner = None if self._products is None else self._products.entries(q)
        return self._joined(outer, [(outer, inner)])

    def rates(self, q: Floats, qdot: Floats) -> Floats:
        """(f, entries) of J̇ for q and q̇ (f, n)."""
        if self._products is None:
            return self._joined(self._rows.rates(qdot), [])
        inner = self._products.entries(q)
        moving = np.concatenate([qdot, self._products.product(inner, qdot)], axis=1)
        outer_rate = self._rows.rates(moving)
        outer = self._rows.entries(self._extended(q))
        return self._joined(outer_rate, [(outer_rate, inner), (outer, self._products.rates(qdot))])

    def product(self, entries: Floats, vector: Floats) -> Floats:
        """(f, m) Jacobian (as entries) times a vector (f, n)."""
        return np.asarray(np.add.reduceat(entries * np.take(vector, self.column_of, axis=1), self._row_starts, axis=1))

    def bias(self, q: Floats, qdot: Floats) -> Floats:
        """(f, m) J̇ q̇."""
        return self.product(self.rates(q, qdot), qdot)

    def dense(self, entries: Floats) -> Floats:
        """(f, m, n) Jacobian from its entries (f, k)."""
        full = np.zeros((len(entries), self.m, self.n))
        full[:, self.row_of, self.column_of] = entries
        return full

    def metres(self, values: Floats) -> Floats:
        """`values` (f, m) of φ in metres (distances) or unchanged (directions)."""
        return np.asarray(values * np.array([name.per_metre for name in self.names]))

    def _extended(self, q: Floats) -> Floats:
        return q if self._products is None else np.concatenate([q, self._products.values(q)], axis=1)

    def _joined(self, direct: Floats, chains: list[tuple[Floats, Floats | None]]) -> Floats:
        data = np.zeros((len(direct), len(self.row_of)))
        data[:, self._direct_to] = np.take(direct, self._direct, axis=1)
        for outer, inner in chains:
            if inner is not None and len(self._outer):
                products = np.take(outer, self._outer, axis=1) * np.take(inner, self._inner, axis=1)
                data[:, self._chain_to] += np.add.reduceat(products, self._sums, axis=1)
        return data
