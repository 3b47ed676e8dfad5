"""Collocation schemes as data, and the mesh: a phase divided into intervals with one scheme each.

On an interval of length h a scheme has points c_0 = 0 < ... < c_m = 1. Its defects are

    sum_r P[i, r] x_r - h sum_r Q[i, r] f_r = 0,   i = 1..m,   r = 0..m

with f the rates of the states; the quadrature of g is h sum_r w_r g_r. Sources: Betts, Practical Methods for Optimal
Control and Estimation, 2010 (trapezoidal, Hermite-Simpson); Kelly, SIAM Review 59 (2017) 849; Hairer and Wanner,
Solving ODE II, 1996, section IV.5 (Radau IIA).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats, Indices
from designopt.lazy import casadi as ca

SchemeName = Literal["trapezoidal", "hermite_simpson", "radau"]

#: Degrees of the Radau scheme.
DEGREES = range(1, 10)


@dataclass(frozen=True, eq=False)
class Scheme:
    """One scheme on the unit interval.

    `order` is that of the error of the states at the nodes, `estimate_order` the power of the width in the error
    estimate of an interval: one more than the degree of its states. `points` (m+1,), `P` and `Q` (m, m+1), `weights`
    (m+1,) as in the module docstring. `collocates_left_end`: the equations hold there, too; otherwise controls
    and algebraic variables have no value there. `control_rows` (k, m+1) are combinations of the controls that are zero.
    `degree` is that of the Radau scheme, 0 for others. Between the points the states are the first one plus h times the
    rates with the `rate_factors` (n, m+1) at places (n,) in [0, 1]; without them they are the polynomial through all
    points.
    """

    name: SchemeName
    order: int
    estimate_order: int
    points: Floats
    P: Floats
    Q: Floats
    weights: Floats
    collocates_left_end: bool
    control_rows: Floats
    degree: int = 0
    rate_factors: Callable[[Floats], Floats] | None = None

    @cached_property
    def steps(self) -> int:
        """m, the number of points beyond the left end."""
        return len(self.points) - 1

    @cached_property
    def collocation_points(self) -> Floats:
        """The points at which the equations hold."""
        return self.points if self.collocates_left_end else self.points[1:]

    def states_at(self, tau: Floats) -> tuple[Floats, Floats]:
        """States at `tau` (n,) in [0, 1] as linear functions of those at the points and of h times their rates.

        Two matrices (n, m+1).
        """
        tau = np.asarray(tau, dtype=float)
        if self.rate_factors is None:
            values = lagrange(self.points, tau)
            return values, np.zeros_like(values)
        rates = self.rate_factors(tau)
        values = np.zeros_like(rates)
        values[:, 0] = 1.0
        return values, rates

    @property
    def has_free_midpoints(self) -> bool:
        """Whether the control at the midpoint of an interval is independent of those at its ends."""
        return self.collocates_left_end and self.steps == 2 and not len(self.control_rows)

    @cached_property
    def damps_stiff_parts(self) -> bool:
        """Whether an infinitely stiff part is gone at the end of an interval: R(inf) = 0 (Hairer and Wanner, section
        IV.3), where the defects of ``x' = lambda x`` become ``Q x = 0``."""
        return bool(abs(np.linalg.solve(self.Q[:, 1:], self.Q[:, 0])[-1]) < 1e-9)

    @property
    def has_linear_states(self) -> bool:
        """Whether states between points are linear in those at the points, without the rates."""
        return self.rate_factors is None

    def controls_at(self, tau: Floats) -> Floats:
        """Matrix (n, m+1) from the controls at the points to those at `tau` (n,): the interpolating polynomial."""
        tau = np.asarray(tau, dtype=float)
        if self.collocates_left_end:
            return lagrange(self.points, tau)
        return np.concatenate([np.zeros((len(tau), 1)), lagrange(self.points[1:], tau)], axis=1)


def lagrange(points: Floats, tau: Floats) -> Floats:
    """Values (n, k) at `tau` (n,) of the Lagrange polynomials on `points` (k,)."""
    values = np.ones((len(tau), len(points)))
    for j, node in enumerate(points):
        for i, other_node in enumerate(points):
            if i != j:
                values[:, j] *= (tau - other_node) / (node - other_node)
    return values


def derivative_matrix(points: Floats) -> Floats:
    """D[j, r], the derivative at point j of the Lagrange polynomial r on `points` (k,)."""
    difference = points[:, None] - points[None, :]
    np.fill_diagonal(difference, 1.0)
    barycentric = 1.0 / difference.prod(axis=1)
    D: Floats = barycentric[None, :] / barycentric[:, None] / difference
    np.fill_diagonal(D, 0.0)
    np.fill_diagonal(D, -D.sum(axis=1))
    return D


def trapezoidal() -> Scheme:
    """Order 2, linear controls."""
    return Scheme(
        "trapezoidal", 2, 3, np.array([0.0, 1.0]), np.array([[-1.0, 1.0]]), np.array([[0.5, 0.5]]),
        np.array([0.5, 0.5]), True, np.empty((0, 2)), rate_factors=_quadratic,
    )  # fmt: skip


def _quadratic(tau: Floats) -> Floats:
    """Integral of the line through both rates (Kelly 2017, section 3.4)."""
    return np.stack([tau - 0.5 * tau**2, 0.5 * tau**2], axis=1)


def hermite_simpson(*, linear_midpoint: bool = False) -> Scheme:
    """Order 4 in its separated form, quadratic controls; with `linear_midpoint` they are linear on each interval."""
    return Scheme(
        "hermite_simpson",
        4,
        4,
        np.array([0.0, 0.5, 1.0]),
        np.array([[-0.5, 1.0, -0.5], [-1.0, 0.0, 1.0]]),
        np.array([[1.0, 0.0, -1.0], [4.0 / 3.0, 16.0 / 3.0, 4.0 / 3.0]]) / 8.0,
        np.array([1.0, 4.0, 1.0]) / 6.0,
        True,
        np.array([[-0.5, 1.0, -0.5]]) if linear_midpoint else np.empty((0, 3)),
        rate_factors=_cubic,
    )


def _cubic(tau: Floats) -> Floats:
    """Integral of the quadratic through the three rates (Kelly 2017, section 4.4)."""
    return np.stack(
        [
            tau - 1.5 * tau**2 + 2.0 / 3.0 * tau**3,
            2.0 * tau**2 - 4.0 / 3.0 * tau**3,
            -0.5 * tau**2 + 2.0 / 3.0 * tau**3,
        ],
        axis=1,
    )


@lru_cache(maxsize=32)
def radau(degree: int) -> Scheme:
    """Legendre-Gauss-Radau of a degree 1..9, order 2 degree - 1, in its integral form.

    Raises `ValueError` for another degree.
    """
    if degree not in DEGREES:
        raise ValueError(f"degree must be from {DEGREES.start} to {DEGREES.stop - 1}, not {degree}")
    inner = np.array(ca.collocation_points(degree, "radau"))
    points = np.concatenate([[0.0], inner])
    D = derivative_matrix(points)[1:]
    A = np.linalg.inv(D[:, 1:])
    weights = np.concatenate([[0.0], A[-1]])  # the last row of A is the quadrature over the interval
    P, Q = np.hstack([-np.ones((degree, 1)), np.eye(degree)]), np.hstack([np.zeros((degree, 1)), A])
    return Scheme("radau", 2 * degree - 1, degree + 1, points, P, Q, weights, False, np.empty((0, degree + 1)), degree)


#: Makes each scheme from the values of all settings: degree, linear controls at midpoints.
SCHEMES: Mapping[SchemeName, Callable[[int, bool], Scheme]] = {
    "trapezoidal": lambda degree, linear_midpoint: trapezoidal(),
    "hermite_simpson": lambda degree, linear_midpoint: hermite_simpson(linear_midpoint=linear_midpoint),
    "radau": lambda degree, linear_midpoint: radau(degree),
}

#: The scheme of each setting that belongs to one.
SCHEME_OF_SETTING: Mapping[str, SchemeName] = {
    "midpoint_control": "hermite_simpson",
    "degree": "radau",
    "refine.method": "radau",
}


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
        return 0 if self.schemes[0].collocates_left_end or self.left_point else 1

    @cached_property
    def left(self) -> Floats:
        """Weights (m,) of the points of the first interval except its left end, for the polynomial's value there."""
        end_weights: Floats = lagrange(self.schemes[0].points[1:], np.zeros(1))[0]
        return end_weights

    @cached_property
    def fractions(self) -> Floats:
        """Fractions (slots,) of the phase at all points."""
        point_fractions = np.empty(self.slots)
        for scheme, intervals in self.groups:
            inner = self.nodes[intervals, None] + self.widths[intervals, None] * scheme.points[None, :]
            point_fractions[self.bases[intervals, None] + np.arange(scheme.steps + 1)] = inner
        point_fractions[self.bases] = self.nodes
        return point_fractions

    @cached_property
    def weights(self) -> Floats:
        """Weights (slots,) of the quadrature over the fractions."""
        quadrature = np.zeros(self.slots)
        for scheme, intervals in self.groups:
            np.add.at(
                quadrature,
                self.bases[intervals, None] + np.arange(scheme.steps + 1),
                self.widths[intervals, None] * scheme.weights[None, :],
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
