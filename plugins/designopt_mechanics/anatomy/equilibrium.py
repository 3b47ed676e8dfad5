"""Poses of virtual links for given muscle tensions: the least potential of all wires (formulation P3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats
from designopt.lazy import casadi as ca
from designopt_mechanics.anatomy.companion import Anatomy, ElasticStrand
from designopt_mechanics.dynamics.recursion import efforts
from designopt_mechanics.state import TreeState
from designopt_mechanics.wires import lengths, moment_arms, pulls

_STEPS = 100


def tensions_and_potential(anatomy: Anatomy, length: Any, pull: Any) -> tuple[Any, Any]:
    """Tensions of all wires (N) and the potential (J) that they come from, as CasADi expressions of their `length` (m).

    `pull` has the tensions of the muscles, in the order of the wires; those of all other wires follow from their laws.
    """
    energy, tension, muscle = ca.SX(0.0), [], 0
    for i, wire in enumerate(anatomy.wires):
        law = anatomy.laws[wire.name]
        if isinstance(law, ElasticStrand):
            tension.append(law.tension(length[i]))
            energy += law.energy(length[i])
        else:
            tension.append(pull[muscle])
            energy += pull[muscle] * length[i]
            muscle += 1
    return ca.vertcat(ca.SX(0, 1), *tension), energy


class NoEquilibrium(ValueError):
    """The links find no pose; the message has the wire without a direction, or the resultant that is left."""


@dataclass(frozen=True, eq=False)
class EquilibriumState:
    """The equilibrium at one posture.

    `pose` (k) of the links, `lengths` (w) m and `tensions` (w) N of all wires in order, generalised forces `tau` (m) of
    the wires on the joints, `resultant` (k) left on the links; `contact` of each frame the force and moment (6) in its
    joint at rest; `follows` (k, m) the derivative of the pose by the joints' coordinates; `steps` of Newton's method.
    """

    pose: Floats
    lengths: Floats
    tensions: Floats
    tau: Floats
    resultant: Floats
    contact: dict[str, Floats]
    follows: Floats
    steps: int


class Equilibrium:
    """Newton's method with backtracking on the potential of the wires, convex for links that are points."""

    def __init__(self, anatomy: Anatomy) -> None:
        self.anatomy = anatomy
        self.muscles = tuple(w.name for w in anatomy.wires if not isinstance(anatomy.laws[w.name], ElasticStrand))

    def at(self, q: ArrayLike, muscles: ArrayLike, pose: ArrayLike | None = None) -> EquilibriumState:
        """The balance at joints `q` (m) under tensions (N) of `muscles`, from `pose` (the reference when not given).

        Raises `ValueError` for arrays that do not fit and `NoEquilibrium`.
        """
        a = self.anatomy
        joints, pull = np.asarray(q, dtype=np.float64), np.asarray(muscles, dtype=np.float64)
        for argument, array, size in (("q", joints, len(a.joints)), ("muscles", pull, len(self.muscles))):
            if array.shape != (size,) or not np.isfinite(array).all():
                raise ValueError(f"{argument} must be {size} finite numbers, not of shape {array.shape}")
        if (pull < 0.0).any():
            name = self.muscles[int(np.argmax(pull < 0.0))]
            raise ValueError(f"muscle '{name}' has a tension of {pull.min():g} N; a muscle only pulls")
        reference = a.tree.reference[len(a.joints) :]
        x = np.array(reference if pose is None else pose, dtype=np.float64)
        x, steps = self._minimise(joints, pull, x)
        z = np.concatenate([joints, x])
        results = [np.asarray(r, dtype=np.float64) for r in self._results(z, pull)]
        length, tension, force, cross_stiffness, pose_stiffness, contact = results
        m = len(joints)
        follows: Floats = np.zeros((0, m))
        if len(x):
            try:
                follows = np.asarray(-np.linalg.solve(pose_stiffness, cross_stiffness), dtype=np.float64)
            except np.linalg.LinAlgError:
                loose = int(np.abs(pose_stiffness).sum(axis=1).argmin())
                raise NoEquilibrium(
                    f"the tensions do not determine the pose of the virtual links: nothing holds '{a.links[loose]}'"
                ) from None
        names = [f.name for f in a.tree.frames]
        parts = {n: contact.ravel()[6 * i : 6 * i + 6] for i, n in enumerate(names)}
        tau = force.ravel()
        return EquilibriumState(x, length.ravel(), tension.ravel(), tau[:m], tau[m:], parts, follows, steps)

    def _minimise(self, q: Floats, pull: Floats, x: Floats) -> tuple[Floats, int]:
        if not len(x):
            return x, 0
        scale = max(1.0, float(np.abs(pull).sum()))
        for step in range(_STEPS):
            value, gradient, hessian = (np.asarray(r, dtype=np.float64) for r in self._potential(q, x, pull))
            g = gradient.ravel()
            if not np.isfinite(g).all():
                raise NoEquilibrium(
                    f"wire '{self._shortest(q, x, pull)}' has no length at the pose of its virtual link"
                )
            if np.abs(g).max() < 1e-13 * scale:
                return x, step
            values, vectors = np.linalg.eigh(hessian)
            stiff = np.maximum(values, 1e-9 * max(1e-9, float(values.max())))
            way = -vectors @ ((vectors.T @ g) / stiff)
            part, last = 1.0, float(value.item())
            while part > 1e-12:
                trial = float(self._potential(q, x + part * way, pull)[0])
                if trial <= last + 1e-4 * part * float(g @ way) or abs(trial - last) <= 1e-14 * max(1.0, abs(last)):
                    break
                part *= 0.5
            x = x + part * way
            if np.abs(part * way).max() < 1e-15:
                break
        _, gradient, _ = self._potential(q, x, pull)
        left = np.abs(np.asarray(gradient, dtype=np.float64)).ravel()
        if not left.max() <= 1e-8 * scale:
            k = int(left.argmax())
            unit = "N m" if self.anatomy.tree.coordinates[len(q) + k].unit == "rad" else "N"
            raise NoEquilibrium(
                f"the virtual links find no equilibrium: a resultant of {left[k]:.3g} {unit} remains along "
                f"'{self.anatomy.links[k]}'"
            )
        return x, step

    def _shortest(self, q: Floats, x: Floats, pull: Floats) -> str:
        """The wire of least length."""
        length = np.asarray(self._results(np.concatenate([q, x]), pull)[0], dtype=np.float64)
        return self.anatomy.wires[int(length.argmin())].name

    @cached_property
    def _symbols(self) -> tuple[TreeState, Any, Any, Any]:
        a = self.anatomy
        z = ca.SX.sym("z", len(a.tree.names))
        state = TreeState(a.tree, z, ca.SX.zeros(z.shape), ca.SX.zeros(z.shape))
        pull = ca.SX.sym("pull", len(self.muscles))
        length = lengths(state, a.wires)
        return state, pull, *tensions_and_potential(a, length, pull)

    @cached_property
    def _potential(self) -> Any:
        state, pull, _, energy = self._symbols
        m = len(self.anatomy.joints)
        q, x = state.z[:m], ca.SX.sym("x", state.z.numel() - m)
        potential = ca.substitute(energy, state.z[m:], x)
        gradient = ca.gradient(potential, x)
        hessian = ca.densify(ca.jacobian(gradient, x))
        return ca.Function("potential", [q, x, pull], [potential, gradient, hessian])

    @cached_property
    def _results(self) -> Any:
        state, pull, tension, energy = self._symbols
        a, m = self.anatomy, len(self.anatomy.joints)
        force = moment_arms(state, a.wires) @ tension
        joints = efforts(state, a.gravity, pulls(state, a.wires, tension)).joints
        contact = ca.vertcat(*(ca.vertcat(*joints[f.name]) for f in a.tree.frames))
        gradient = ca.gradient(energy, state.z)[m:]
        cross_stiffness, pose_stiffness = (
            ca.densify(ca.jacobian(gradient, part)) for part in (state.z[:m], state.z[m:])
        )
        return ca.Function(
            "results",
            [state.z, pull],
            [lengths(state, a.wires), tension, ca.densify(force), cross_stiffness, pose_stiffness, contact],
        )
