"""What can be wrong with a tree as a whole and is seen only with numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats
from designopt.lazy import casadi as ca
from designopt_mechanics.dynamics.matrices import mass_matrix
from designopt_mechanics.state import TreeState
from designopt_mechanics.surfaces.over import SurfaceError
from designopt_mechanics.tree import Tree, TreeError, values_of
from designopt_mechanics.wires import Wire, obstacles

#: Part of the largest eigenvalue of the mass matrix, scaled to a unit diagonal, below which a direction has no mass.
_MASSLESS = 1e-11
#: Relative difference between a derivative and its finite difference that indicates a jump.
_JUMP = 1e-5
#: Points of a wire that are nearer to each other than this (m) are one.
_SAME = 1e-9


def check(tree: Tree, postures: ArrayLike | None = None, tangent: Floats | None = None) -> None:
    """Try a tree at its reference posture and at `postures` (n, m): joint functions and masses.

    With closed loops the columns of `tangent` (m, f) are the directions in which it can move. Raises `TreeError` where
    a joint variable is not finite, where its first or second derivative does not agree with finite differences (a
    jump), and where the mass matrix is not positive definite, with the direction that has no mass.
    """
    all_postures = [tree.reference] if postures is None else list(np.atleast_2d(np.asarray(postures, dtype=np.float64)))
    for z in all_postures:
        if z.shape != (len(tree.names),) or not np.isfinite(z).all():
            raise TreeError("coordinates", "values", f"{z.tolist()} are not {len(tree.names)} finite numbers")
        _check_functions(tree, z)
        _check_masses(tree, z, tangent)


def check_wires(tree: Tree, wires: Sequence[Wire], z: Floats | None = None) -> None:
    """Try `wires` in the posture `z` (m,), by default that of reference.

    Raises `TreeError` with the name of a wire where two points that lie one after the other are within 1e-9 m, where
    one is inside of the surface beside it, and where the axes of pulleys in a row are not parallel.
    """
    state = TreeState(tree, ca.SX.sym("z", len(tree.names)))
    for wire in wires:
        if any(wire.overs):
            _check_overs(state, wire, tree.reference if z is None else z)
        positions = ca.horzcat(*(state.position(point) for point in wire.points))
        at = np.asarray(
            ca.Function("places", [state.z], [positions])(tree.reference if z is None else z), dtype=np.float64
        )
        apart = np.linalg.norm(np.diff(at, axis=1), axis=0)
        if any(gap < _SAME and not overs for gap, overs in zip(apart, wire.overs, strict=True)):
            raise TreeError(wire.name, "points", "two points one after the other meet in the reference posture")


def _check_overs(state: TreeState, wire: Wire, z: Floats) -> None:
    try:
        gaps = obstacles(state, wire)
    except SurfaceError as error:
        raise TreeError(wire.name, "points", error.message) from None
    values = np.asarray(ca.Function("gaps", [state.z], [ca.vertcat(*gaps.values())])(z), dtype=np.float64).ravel()
    for meaning, value in zip(gaps, values, strict=True):
        if not value <= _SAME:
            raise TreeError(wire.name, "points", f"{meaning}, by {value:.3g}")


def _check_functions(tree: Tree, z: Floats) -> None:
    q = ca.SX.sym("q", len(tree.names))
    coordinates = {name: q[i] for i, name in enumerate(tree.names)}
    for frame in tree.frames:
        for value in values_of(frame):
            if not callable(value):
                continue
            variable = ca.SX(value(coordinates))
            gradient = ca.densify(ca.gradient(variable, q))
            hessian = ca.densify(ca.jacobian(gradient, q))
            f = ca.Function("f", [q], [variable, gradient, hessian])
            function_value, slope, curvature = (np.asarray(r, dtype=np.float64) for r in f(z))
            if not (np.isfinite(function_value).all() and np.isfinite(slope).all() and np.isfinite(curvature).all()):
                raise TreeError(
                    frame.name,
                    "motions",
                    f"a joint function or its derivative is not finite at {_as_text(tree.names, z)}",
                )
            for i, name in enumerate(tree.names):
                h = 1e-5 * max(1.0, abs(z[i]))
                neighbours = [z + step * h * np.eye(len(z))[i] for step in (-1.0, 1.0)]
                low, high = (tuple(np.asarray(r, dtype=np.float64) for r in f(m)) for m in neighbours)
                if not all(np.isfinite(r).all() for r in (*low, *high)):
                    continue  # at the end of a range there are no differences to both sides
                for derivative, exact, a, b in (
                    ("slope", slope[i], low[0], high[0]),
                    ("curvature", curvature[i], low[1].T, high[1].T),
                ):
                    difference = (b - a).ravel() / (2.0 * h)
                    size = max(1.0, float(np.abs(slope).max()), float(np.abs(curvature).max()))
                    if np.abs(difference - exact).max() > _JUMP * size:
                        raise TreeError(
                            frame.name, "motions", f"a joint function jumps in its {derivative} at {name} = {z[i]:.6g}"
                        )


def _check_masses(tree: Tree, z: Floats, tangent: Floats | None = None) -> None:
    if not tree.names:
        return
    state = TreeState(tree, ca.SX.sym("z", len(tree.names)))
    M = mass_matrix(state)
    if ca.depends_on(ca.substitute(M, state.z, ca.SX.zeros(state.z.shape)), ca.vertcat(*ca.symvar(M))):
        return  # masses that are parameters are known later
    matrix = np.asarray(ca.Function("M", [state.z], [M])(z), dtype=np.float64)
    if tangent is not None:
        _check_moving_masses(tree, tangent.T @ matrix @ tangent, z, tangent)
        return
    diagonal = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    if (diagonal <= 0.0).any():
        name = tree.names[int(np.argmin(diagonal))]
        raise TreeError(name, "mass", f"no mass moves with this coordinate alone at {_as_text(tree.names, z)}")
    values, vectors = np.linalg.eigh(matrix / np.outer(diagonal, diagonal))
    if values[0] < _MASSLESS * values[-1]:
        direction = vectors[:, 0] / diagonal
        direction /= np.abs(direction).max()
        direction_text = ", ".join(f"{n} {v:+.3g}" for n, v in zip(tree.names, direction, strict=True) if abs(v) > 1e-6)
        name = tree.names[int(np.argmax(np.abs(direction)))]
        raise TreeError(name, "mass", f"no mass moves along {direction_text} at {_as_text(tree.names, z)}")


def _check_moving_masses(tree: Tree, matrix: Floats, z: Floats, tangent: Floats) -> None:
    values, vectors = np.linalg.eigh(matrix)
    if len(values) and values[0] <= _MASSLESS * max(values[-1], 1e-300):
        direction = tangent @ vectors[:, 0]
        name = tree.names[int(np.argmax(np.abs(direction)))]
        raise TreeError(name, "mass", f"no mass moves when it moves in its closed loops at {_as_text(tree.names, z)}")


def _as_text(names: Sequence[str], z: Floats) -> str:
    return ", ".join(f"{n} = {v:.6g}" for n, v in zip(names, z, strict=True))
