"""Closed loops in numbers: a posture solved from its start and followed, rates and accelerations.

The dependent coordinates are solved by Newton's method from the posture before, along the tangent, with shorter steps
where it misses: a crank may turn for ever, and the branch is that of the start. Where a mechanism cannot close, the
posture is that of the smallest gap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from designopt.arrays import Floats
from designopt.dynamics.rows import Rows
from designopt.lazy import casadi as ca
from designopt.lazy import scipy
from designopt_mechanics.mechanism.lifted import LiftedTree, gap_along, lift
from designopt_mechanics.mechanism.mechanism import Mechanism
from designopt_mechanics.state import TreeState
from designopt_mechanics.tree import TreeError
from designopt_mechanics.wires import obstacles

#: Gap (m, rad) below which a loop is closed, relative to the size of the coordinates.
CLOSED = 1e-10
#: A row or column whose independent part is below this share of its size depends on the others.
_DEPENDENT = 1e-7
_STEPS, _IDLE = 30, 5
#: Maximum number of times that a step is halved, and the same where the posture before did not close.
_PATIENCE, _IMPATIENT = 12, 2
#: Number of starts that search an assembly where the reference posture leads to none, and the range (m) of their slides
#: around it.
_ASSEMBLIES, _REACH = 40, 1.0
#: Number of postures that are solved together from the one before them.
_AHEAD = 12
#: Largest step (rad or m) of an independent coordinate: a longer one may end on another branch, with closed loops.
_LONGEST = 0.5
#: Depth (m) below a surface at which a point still lies on its rim.
_TOUCHES = 1e-9
#: A solution belongs to the branch if its distance from the end of the tangent is less than half the step plus this.
_SAME_BRANCH = 0.05


class CannotClose(ValueError):
    """A posture in which the loops do not close; `gap` (m or rad) is what stays open."""

    def __init__(self, message: str, gap: float) -> None:
        super().__init__(message)
        self.gap = gap


@dataclass(frozen=True, eq=False)
class ClosedRows:
    """Postures `z` (n, m), the `gap` (n,) that stays open, and whether each `is_closed` (n,)."""

    z: Floats
    gap: Floats
    is_closed: NDArray[np.bool_]


class LoopSolver:
    """The loops of a `mechanism`, with symbols `state` and `p` of its coordinates and parameters.

    `gap` (k, 1) are the independent equations, `labels` name them; `independent` and `dependent` are indices of
    coordinates. All of them are chosen at the reference posture with the file's numbers.

    Raises `TreeError` for independent coordinates that do not determine the posture, and `CannotClose` if the loops do
    not close from the reference posture.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.lifted_tree: LiftedTree = lift(mechanism)
        self.state = TreeState.symbols(mechanism.tree)
        self.p = mechanism.p
        parts = [gap_along(self.state, cut.meet, cut.axes) for cut in self.lifted_tree.cuts]
        labels = [cut.meet.name for cut in self.lifted_tree.cuts for _ in range(cut.axes.shape[1])]
        parts += [ca.SX(relation.equation(self.state.named)) for relation in mechanism.relations]
        self._every = ca.vertcat(ca.SX(0, 1), *parts)
        labels += [relation.name for relation in mechanism.relations]
        self.gap, self.labels = self._every, labels
        m = len(mechanism.tree.names)
        self.independent, self.dependent = np.arange(m), np.arange(0)
        if labels:
            self._choose()

    # ------------------------------------------------------------------------------------------------------ postures

    def start(self, p: ArrayLike, branch: str = "", near: ArrayLike | None = None) -> Floats:
        """(m,) the closed posture near the reference posture (or `near`), in a `branch` if it is named.

        Raises `CannotClose` with the gap, and `ValueError` for an unknown branch.
        """
        z = np.array(self.mechanism.tree.reference if near is None else near, dtype=np.float64)
        if branch:
            if branch not in self.mechanism.branches:
                branches = ", ".join(self.mechanism.branches) or "none"
                raise ValueError(f"there is no branch '{branch}' (in the file: {branches})")
            for name, value in self.mechanism.branches[branch].items():
                z[self.mechanism.tree.names.index(name)] = value
        solution, gap = self._newton(z, np.asarray(p, dtype=np.float64))
        if gap > CLOSED:
            raise CannotClose(
                f"the loops do not close at {self._text(z)}: a gap of {gap:.3g} stays at"
                f" {self._widest_gap_message(solution, p)}",
                gap,
            )
        return solution

    def posture(self, coordinates: Mapping[str, float], p: ArrayLike, branch: str = "") -> Floats:
        """(m,) the closed posture at the independent `coordinates`, or as many others, followed from the start.

        Raises `CannotClose` with the gap, and `ValueError` for other coordinates.
        """
        names, loops = self.mechanism.tree.names, self
        start = self.start(p, branch)
        leading = [names[i] for i in self.independent]
        if not set(coordinates) <= set(leading):
            if len(coordinates) != len(leading) or not set(coordinates) <= set(names):
                raise ValueError(
                    f"give values of the independent coordinates ({', '.join(leading)}), or of as many others"
                )
            loops = LoopSolver(replace(self.mechanism, independent=tuple(coordinates)))
        target = start[loops.independent].copy()
        for i, index in enumerate(loops.independent):
            target[i] = coordinates.get(names[index], target[i])
        rows = loops.follow(start, target[None], p)
        if not rows.is_closed[0]:
            text = ", ".join(f"{n} = {v:g}" for n, v in coordinates.items())
            raise CannotClose(f"the loops do not close at {text}: a gap of {rows.gap[0]:.3g} stays", rows.gap[0])
        return np.asarray(rows.z[0])

    def follow(self, z0: ArrayLike, zi: ArrayLike, p: ArrayLike) -> ClosedRows:
        """Postures at the independent coordinates `zi` (n, f), each followed from the one before, the first from the
        closed posture `z0` (m,)."""
        rows = np.atleast_2d(np.asarray(zi, dtype=np.float64))
        column, z = np.asarray(p, dtype=np.float64), np.array(z0, dtype=np.float64)
        postures, gaps = np.empty((len(rows), len(z))), np.zeros(len(rows))
        at = 0
        while at < len(rows):
            patience = _IMPATIENT if at and gaps[at - 1] > CLOSED else _PATIENCE
            postures[at], gaps[at] = self._advance(z, rows[at], column, patience)
            if gaps[at] <= CLOSED:
                z = postures[at]
                ahead = self._nearby_postures(z, rows[at + 1 : at + 1 + _AHEAD], column)
                postures[at + 1 : at + 1 + len(ahead)] = ahead
                at += len(ahead)
                z = postures[at]
            at += 1
        gaps = np.maximum(gaps, self.obstacle(postures, column)[0])
        return ClosedRows(postures, gaps, gaps <= CLOSED)

    def obstacle(self, z: Floats, p: ArrayLike) -> tuple[Floats, str]:
        """(n,) the largest gap (m) of dyads and of wires over surfaces, at most 0 where all fit, and what the largest
        one above 0 means."""
        meanings = [*(f"dyad '{name}'" for name in self.mechanism.reaches), *self.wire_gaps]
        if not meanings:
            return np.zeros(len(z)), ""
        gaps = self._gaps(z, p)
        gaps[:, len(self.mechanism.reaches) :] -= _TOUCHES
        largest = gaps.max(axis=0)
        return gaps.max(axis=1), meanings[int(np.argmax(largest))] if not largest.max() <= 0.0 else ""

    def _gaps(self, z: Floats, p: ArrayLike) -> Floats:
        """(n, k) gaps of dyads, then those of wires."""
        return self._reach(z, p)[0].reshape(len(z), -1)

    def wire_gaps_at(self, z: Floats, p: ArrayLike) -> Floats:
        """(n, k) the `wire_gaps` in postures `z` (n, m)."""
        if not self.wire_gaps:
            return np.zeros((len(z), 0))
        return self._gaps(z, p)[:, len(self.mechanism.reaches) :]

    @cached_property
    def wire_gaps(self) -> dict[str, Any]:
        """Gaps (m or rad) of wires over surfaces by what they mean: positive where there is no such way."""
        wires = (*self.mechanism.wires, *(spring.wire for spring in self.mechanism.springs))
        return {meaning: gap for w in wires if any(w.overs) for meaning, gap in obstacles(self.state, w).items()}

    def rates(self, z: Floats, dzi: ArrayLike, p: ArrayLike) -> Floats:
        """(n, m) rates of all coordinates at rates `dzi` (n, f) of the independent ones."""
        dz = np.zeros_like(z)
        dz[:, self.independent] = dzi
        if len(self.dependent):
            J = self.slopes(z, p)
            independent_part = np.einsum("nkm,nm->nk", J, dz)
            dz[:, self.dependent] = -_solutions(J[:, :, self.dependent], independent_part)
        return dz

    def accelerations(self, z: Floats, dz: Floats, ddzi: ArrayLike, p: ArrayLike) -> Floats:
        """(n, m) accelerations of all coordinates at those `ddzi` (n, f) of the independent ones."""
        ddz = np.zeros_like(z)
        ddz[:, self.independent] = ddzi
        if len(self.dependent):
            J, (curvature,) = self.slopes(z, p), self._curvature(z, dz, p)
            independent_part = np.einsum("nkm,nm->nk", J, ddz) + curvature.reshape(len(z), -1)
            ddz[:, self.dependent] = -_solutions(J[:, :, self.dependent], independent_part)
        return ddz

    def condition(self, z: Floats, p: ArrayLike) -> Floats:
        """(n,) condition of the loops' equations by the dependent coordinates: large near a dead centre."""
        if not len(self.dependent):
            return np.ones(len(z))
        J = self.slopes(z, p)
        return np.asarray(np.linalg.cond(J[:, :, self.dependent]))

    def leading_at(self, z: Floats, p: ArrayLike) -> list[int]:
        """Indices of coordinates that lead the mechanism well in the posture `z` (m,): those that move most freely."""
        J = self.slopes(z[None], p)[0]
        freedoms = np.linalg.svd(J)[2][len(J) :]
        return sorted(int(i) for i in scipy.linalg.qr(freedoms, mode="r", pivoting=True)[1][: len(freedoms)])

    # ------------------------------------------------------------------------------------------------------ equations

    def equations(self) -> tuple[Any, Any]:
        """The gap (k, 1) and its second rate at no acceleration (k, 1)."""
        along = ca.SX.sym("along", self.state.z.numel())
        curvature = ca.jtimes(ca.jtimes(self.gap, self.state.z, along), self.state.z, along)
        return self.gap, ca.substitute(curvature, along, self.state.dz)

    @cached_property
    def jacobian(self) -> Any:
        """(k, m) derivatives of the gap."""
        return ca.densify(ca.jacobian(self.gap, self.state.z))

    def slopes(self, z: Floats, p: ArrayLike) -> Floats:
        """(n, k, m) derivatives of the gap."""
        return self._slopes(z, p)[0].reshape(len(z), len(self.labels), -1)

    @cached_property
    def _slopes(self) -> Rows:
        return Rows(ca.Function("loop_slopes", [self.state.z, self.p], [ca.cse(self.jacobian)]), compiled=False)

    @cached_property
    def _several(self) -> Rows:
        f = ca.Function("several_loops", [self.state.z, self.p], ca.cse([ca.densify(self.gap), self.jacobian]))
        return Rows(f, compiled=False)

    @cached_property
    def _curvature(self) -> Rows:
        f = ca.Function("loop_curvature", [self.state.z, self.state.dz, self.p], [ca.densify(self.equations()[1])])
        return Rows(f, compiled=False)

    @cached_property
    def _reach(self) -> Rows:
        gaps = [ca.SX(reach(self.state.named)) for reach in self.mechanism.reaches.values()]
        gaps += list(self.wire_gaps.values())
        return Rows(ca.Function("reach", [self.state.z, self.p], [ca.vertcat(*gaps)]), compiled=False)

    @cached_property
    def _function(self) -> Any:
        return ca.Function("loops", [self.state.z, self.p], [ca.densify(self.gap), self.jacobian])

    def _values(self, z: Floats, p: Floats) -> tuple[Floats, Floats]:
        gap, J = self._function(z, p)
        return np.asarray(gap, dtype=np.float64).ravel(), np.asarray(J, dtype=np.float64)

    def _newton(self, z: Floats, p: Floats, columns: Any = None) -> tuple[Floats, float]:
        """The closed posture near `z` and its gap; the smallest gap where none closes."""
        free = self.dependent if columns is None else columns
        if not len(free):
            return z, 0.0
        z = z.copy()
        best, smallest, idle = z, np.inf, 0
        for _ in range(_STEPS):
            value, J = self._values(z, p)
            size = float(np.abs(value).max())
            idle = 0 if size < 0.99 * smallest else idle + 1
            if size < smallest:
                best, smallest = z, size
            if idle > _IDLE or not np.isfinite(size):
                break
            step = _least_squares(J[:, free], value, idle)
            largest = float(np.abs(step).max())
            if largest < 1e-13 or size < 1e-15:
                break
            z = z.copy()
            z[free] -= step if largest <= 0.5 else step * (0.5 / largest)
        return best, smallest

    def _nearby_postures(self, z: Floats, rows: Floats, p: Floats) -> Floats:
        """The first postures at `rows` that Newton's method reaches from the closed posture `z` on its branch."""
        far = np.abs(rows - z[self.independent]).max(axis=1, initial=0.0) > _LONGEST
        rows = rows[: int(np.argmax(far)) if far.any() else len(rows)]
        if not len(self.dependent) or len(rows) < 2:
            return np.empty((0, len(z)))
        _, J = self._values(z, p)
        tangent = np.linalg.lstsq(J[:, self.dependent], J[:, self.independent], rcond=1e-12)[0]
        step = -(rows - z[self.independent]) @ tangent.T
        guess = np.tile(z, (len(rows), 1))
        guess[:, self.independent] = rows
        guess[:, self.dependent] += step
        postures, good = guess.copy(), np.zeros(len(rows), dtype=bool)
        for _ in range(6):
            gap, J = (part.reshape(len(rows), len(self.dependent), -1) for part in self._several(postures, p))
            if not (np.isfinite(gap).all() and np.isfinite(J).all()):
                break
            good = np.abs(gap).max(axis=(1, 2)) <= 0.01 * CLOSED
            if good.all():
                break
            postures[:, self.dependent] -= _solutions(J[:, :, self.dependent], gap[..., 0])
            if not np.isfinite(postures).all():
                break
        prediction_errors = np.abs(postures - guess).max(axis=1)
        good &= prediction_errors <= 0.5 * np.abs(step).max(axis=1) + _SAME_BRANCH
        return postures[: len(rows) if good.all() else int(np.argmin(good))]

    def _advance(self, z: Floats, target: Floats, p: Floats, patience: int = _PATIENCE) -> tuple[Floats, float]:
        """The posture with independent coordinates `target` on the branch of the closed posture `z`, and its gap.

        Steps are halved up to `patience` times; then the target is tried at once.
        """
        z = z.copy()
        if not len(self.dependent):
            z[self.independent] = target
            return z, 0.0
        begin, progress = z[self.independent].copy(), 0.0
        longest = _LONGEST / max(float(np.abs(target - begin).max(initial=0.0)), _LONGEST)
        stride = longest
        while progress < 1.0:
            stride = min(stride, longest, 1.0 - progress)
            goal = begin + (progress + stride) * (target - begin)
            _, J = self._values(z, p)
            step = _least_squares(J[:, self.dependent], -J[:, self.independent] @ (goal - z[self.independent]))
            guess = z.copy()
            guess[self.independent] = goal
            guess[self.dependent] += step
            posture, gap = self._newton(guess, p)
            if gap <= CLOSED:
                prediction_error = float(np.abs(posture - guess).max())
                if prediction_error <= 0.5 * float(np.abs(step).max()) + _SAME_BRANCH:
                    z, progress, stride = posture, progress + stride, 2.0 * stride
                    continue
            stride, patience = 0.5 * stride, patience - 1
            if patience < 0:  # the way to the target does not close, or loses its branch
                is_open = gap > CLOSED
                z[self.independent] = target
                z, gap = self._newton(z, p)
                return z, gap if is_open else max(gap, 2.0 * CLOSED)
        return z, 0.0

    # ---------------------------------------------------------------------------------------------------------- choice

    def _choose(self) -> None:
        """Equations that do not follow from those before them, and coordinates that they determine."""
        m = len(self.mechanism.tree.names)
        p = np.array(self.mechanism.column())
        posture, gap = self._newton(self.mechanism.tree.reference.copy(), p, self._movable())
        if gap > CLOSED:
            raise self._no_assembly(posture, gap, p)
        _, J = self._values(posture, p)
        if not np.isfinite(J).all():
            raise TreeError(self.labels[0], "meet", "its equations are not finite in the reference posture")
        rows = _independent_rows(J)
        self.gap, self.labels = self.gap[rows], [self.labels[i] for i in rows]
        for name in ("_function", "jacobian"):
            self.__dict__.pop(name, None)
        J = J[rows]
        names = self.mechanism.tree.names
        if self.mechanism.independent:
            independent = {names.index(n) for n in self.mechanism.independent}
            dependent = [i for i in range(m) if i not in independent]
        else:
            columns = _independent_rows(J.T[::-1], 1e-3)
            dependent = sorted(m - 1 - i for i in columns)
        if len(dependent) != len(rows) or np.linalg.matrix_rank(J[:, dependent], 1e-9 * np.linalg.norm(J, 2)) < len(
            rows
        ):
            free = m - len(rows)
            raise TreeError(
                ", ".join(self.mechanism.independent) or ", ".join(names),
                "independent",
                f"the loops leave {free} of {m} coordinates free in the reference posture; name {free} independent "
                "coordinates that determine it, and a reference away from dead centres",
            )
        self.dependent = np.array(dependent, dtype=int)
        self.independent = np.array([i for i in range(m) if i not in dependent], dtype=int)

    def _no_assembly(self, posture: Floats, gap: float, p: Floats) -> CannotClose:
        """The mistake of a reference posture near which the loops leave the `gap` of `posture`: there is an assembly
        far from it, or none of many starts reaches one."""
        tree, rng = self.mechanism.tree, np.random.default_rng(0)
        low, high = (np.array([getattr(c, end) for c in tree.coordinates]) for end in ("low", "high"))
        middle, half = tree.reference.copy(), np.array([_REACH if c.unit == "m" else np.pi for c in tree.coordinates])
        low, high = np.maximum(low, middle - half), np.minimum(high, middle + half)
        for _ in range(_ASSEMBLIES):
            assembly, smallest = self._newton(rng.uniform(low, high), p, self._movable())
            if smallest <= CLOSED:
                return CannotClose(
                    f"the loops do not close near the reference posture ({self._text(middle)}), but do at "
                    f"{self._text(assembly)}: give reference values near such an assembly",
                    gap,
                )
            if smallest < gap:
                posture, gap = assembly, smallest
        return CannotClose(
            f"the loops close in no posture: from the reference ({self._text(middle)}) and {_ASSEMBLIES} others "
            f"a gap of at least {gap:.3g} stays, at {self._widest_gap_message(posture, p)} in {self._text(posture)}; "
            "check the lengths and places of its bodies",
            gap,
        )

    def _movable(self) -> list[int]:
        """Columns that close the reference posture: all but the independent ones that the user names."""
        names = self.mechanism.tree.names
        return [i for i, n in enumerate(names) if n not in self.mechanism.independent]

    def _widest_gap_message(self, z: Floats, p: ArrayLike) -> str:
        values, _ = self._values(z, np.asarray(p, dtype=np.float64))
        return f"'{self.labels[int(np.argmax(np.abs(values)))]}'"

    def _text(self, z: Sequence[float] | Floats) -> str:
        return ", ".join(f"{n} = {v:.6g}" for n, v in zip(self.mechanism.tree.names, z, strict=True))


def _independent_rows(matrix: Floats, tolerance: float = _DEPENDENT) -> list[int]:
    """Indices of rows that do not depend on those before them."""
    indices: list[int] = []
    basis = np.zeros((0, matrix.shape[1]))
    largest = float(np.linalg.norm(matrix, axis=1).max(initial=0.0))
    for i, row in enumerate(matrix):
        residual = row - basis.T @ (basis @ row)
        residual -= basis.T @ (basis @ residual)
        length = float(np.linalg.norm(residual))
        if length > tolerance * max(float(np.linalg.norm(row)), 1e-9 * largest) and length > 1e-12:
            indices.append(i)
            basis = np.vstack([basis, residual / length])
    return indices


def _least_squares(matrix: Floats, right: Floats, damping: int = 0) -> Floats:
    """The solution of least squares; of the square system where it has one.

    `damping` counts steps without success: they are shortened (Levenberg), since a gap that stays has a singular slope.
    """
    if damping:
        size = 0.01 * 4.0**damping * float(np.linalg.norm(matrix, 2)) ** 2 / 16.0
        normal_matrix = matrix.T @ matrix + size * np.eye(matrix.shape[1])
        return np.asarray(np.linalg.solve(normal_matrix, matrix.T @ right), dtype=np.float64)
    if matrix.shape[0] == matrix.shape[1]:
        try:
            solution = np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)
        except np.linalg.LinAlgError:
            pass
        else:
            if np.abs(solution).max() < 1e6:
                return solution
    return np.asarray(np.linalg.lstsq(matrix, right, rcond=1e-12)[0], dtype=np.float64)


def _solutions(matrices: Floats, right: Floats) -> Floats:
    """Solutions (n, k) of (n, k, k) systems, NaN where one is singular."""
    try:
        return np.asarray(np.linalg.solve(matrices, right[..., None])[..., 0], dtype=np.float64)
    except np.linalg.LinAlgError:
        solutions = np.full_like(right, np.nan)
        for i, (matrix, column) in enumerate(zip(matrices, right, strict=True)):
            if np.linalg.matrix_rank(matrix) == len(matrix):
                solutions[i] = np.linalg.solve(matrix, column)
        return solutions
