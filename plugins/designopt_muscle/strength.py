"""Forces that muscles can give in every frame: from lengths and speeds of their paths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from designopt_mechanics.sharing.muscles import Muscles
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt_muscle.curves import LENGTHS, OPENSIM, PUBLICATION, SPEEDS, TENDON_FORCES, Curves
from designopt_muscle.osim.model import OsimMuscle

Tendon = Literal["rigid", "equilibrium"]

#: Halvings of the interval in which a tendon's length is sought: to the last digit.
_HALVINGS = 60
#: Force that may be missing there, in maximum isometric forces.
_BALANCED = 1e-6


@dataclass(frozen=True, eq=False)
class Fibres:
    """The fibres of k muscles in n frames, all (n, k): `length` in optimal lengths, `speed` in maximum speeds of
    shortening (0 with an elastic tendon), cosine of the pennation, and the strain of the tendon (0 when rigid).
    `overloaded_muscles` names muscles that no tendon force in the range of the curves balances in some frame."""

    names: tuple[str, ...]
    length: Floats
    speed: Floats
    cosine: Floats
    strain: Floats
    overloaded_muscles: tuple[str, ...] = ()

    def outside(self) -> list[str]:
        """Sentences on fibres that leave the range in which the curves hold."""
        sentences = [
            f"{name}: fibre and tendon have no equilibrium up to {TENDON_FORCES[1]:g} maximum isometric forces"
            for name in self.overloaded_muscles
        ]
        for j, name in enumerate(self.names):
            low, high = float(self.length[:, j].min()), float(self.length[:, j].max())
            if low < LENGTHS[0] or high > LENGTHS[1]:
                sentences.append(f"{name}: fibre from {low:.3g} to {high:.3g} optimal lengths")
            fast = float(np.abs(self.speed[:, j]).max())
            if fast > SPEEDS[1]:
                sentences.append(f"{name}: fibre speed up to {fast:.3g} times the maximum")
        return sentences


def strengths(
    muscles: tuple[OsimMuscle, ...],
    lengths: Floats,
    speeds: Floats,
    *,
    tendon: Tendon = "rigid",
    passive: bool = False,
    curves: Literal["opensim", "publication"] = "opensim",
) -> tuple[Muscles, Fibres]:
    """The strengths of `muscles` with paths of `lengths` and `speeds` (n, k), and the state of their fibres.

    On a ``rigid`` tendon the fibre follows the path; with an ``equilibrium`` tendon fibre and tendon at activation 1
    hold each other at rest, and the force does not depend on the speed. Without `passive` the passive force is left
    out, as OpenSim's StaticOptimization does. Thelen2003 muscles have their own curves (Thelen, J. Biomech. Eng. 125,
    2003) on rigid tendons; all others, and all elastic tendons, the curves of De Groote et al. (2016).
    """
    n, k = lengths.shape
    table = OPENSIM if curves == "opensim" else PUBLICATION
    active, passive_force = np.zeros((n, k)), np.zeros((n, k))
    fibre = [np.zeros((n, k)) for _ in range(4)]
    overloaded_muscles = []
    for j, muscle in enumerate(muscles):
        stretch = np.zeros(n)
        if tendon == "equilibrium":
            stretch, in_balance = _elastic(muscle, lengths[:, j], table)
            overloaded_muscles += [] if in_balance.all() else [muscle.name]
        along = lengths[:, j] - muscle.slack * (1.0 + stretch)
        height = muscle.fibre * np.sin(muscle.pennation)
        length = np.sqrt(height**2 + along**2)
        cosine = along / np.maximum(length, 1e-300)
        speed = np.zeros(n) if tendon == "equilibrium" else speeds[:, j] * cosine / (muscle.fastest * muscle.fibre)
        normal = length / muscle.fibre
        if muscle.model == "thelen" and tendon == "rigid":
            force, resting = _thelen(muscle, normal, speed)
        else:
            force, resting = _degroote(muscle, normal, speed, table)
        taut = (along > 0) & (length > _shortest(muscle))
        active[:, j] = np.where(taut, np.maximum(muscle.force * force * cosine, 0.0), 0.0)
        passive_force[:, j] = np.where(taut, np.maximum(muscle.force * resting * cosine, 0.0), 0.0)
        for total, part in zip(fibre, (normal, speed, cosine, stretch), strict=True):
            total[:, j] = part
    names = tuple(m.name for m in muscles)
    muscles_of_trial = Muscles(
        names,
        active,
        passive_force if passive else np.zeros(0),
        lower=np.array([m.min_control for m in muscles]),
        upper=np.array([m.max_control for m in muscles]),
        isometric=np.array([m.force for m in muscles]),
        fibre=np.array([m.fibre for m in muscles]),
    )
    length, speed, cosine, strain = fibre
    return muscles_of_trial, Fibres(names, length, speed, cosine, strain, tuple(overloaded_muscles))


def isometric_curve(muscles: tuple[OsimMuscle, ...], lengths: Floats) -> Floats:
    """(n, k) active force at rest and full activation for fibre `lengths` (n, k), both relative to those of the muscles
    at optimal length."""
    curve = np.empty(lengths.shape)
    for j, muscle in enumerate(muscles):
        zeros = np.zeros(len(lengths))
        if muscle.model == "thelen":
            curve[:, j] = _thelen(muscle, lengths[:, j], zeros)[0]
        else:
            curve[:, j] = _degroote(muscle, lengths[:, j], zeros, OPENSIM)[0]
    return curve


def _shortest(muscle: OsimMuscle) -> float:
    """The least length of the fibre (m): at the maximum pennation, as in OpenSim."""
    if muscle.pennation <= 0.0:
        return 0.01 * muscle.fibre
    largest = muscle.shape.get("maximum_pennation_angle", float(np.arccos(0.1)))
    return float(muscle.fibre * np.sin(muscle.pennation) / np.sin(largest))


def _thelen(muscle: OsimMuscle, length: Floats, speed: Floats) -> tuple[Floats, Floats]:
    """Active force at activation 1 and passive force of Thelen (2003), relative to the maximum isometric force."""
    shape = muscle.shape
    af, flen = shape["Af"], shape["Flen"]
    k = (2.0 + 2.0 / af) / (flen - 1.0)
    shortening, lengthening = np.clip(speed, -1.0, 0.0), np.maximum(speed, 0.0)
    of_speed = np.where(
        speed <= 0.0,
        (1.0 + shortening) / (1.0 - shortening / af),
        (1.0 + k * flen * lengthening) / (1.0 + k * lengthening),
    )
    of_length = np.exp(-((length - 1.0) ** 2) / shape["KshapeActive"])
    kpe, strain = shape["KshapePassive"], shape["FmaxMuscleStrain"]
    resting = np.expm1(kpe * np.maximum(length - 1.0, 0.0) / strain) / np.expm1(kpe)
    return of_length * of_speed, resting


def _degroote(muscle: OsimMuscle, length: Floats, speed: Floats, curves: Curves) -> tuple[Floats, Floats]:
    """The same with the curves of De Groote et al. (2016)."""
    width = muscle.shape.get("active_force_width_scale", 1.0)
    strain = muscle.shape.get("passive_fiber_strain_at_one_norm_force", 0.6)
    resting = curves.passive(length, strain=strain)
    if muscle.shape.get("ignore_passive_fiber_force", 0.0):
        resting = np.zeros(length.shape)
    return curves.active_length(length, width=width) * curves.velocity(speed), np.maximum(resting, 0.0)


def _elastic(muscle: OsimMuscle, lengths: Floats, curves: Curves) -> tuple[Floats, NDArray[np.bool_]]:
    """(n,) strain of the tendon when fibre, at activation 1 and at rest, and tendon hold each other, and whether they
    do: beyond the range of the curves the largest strain in it is the answer. A slack tendon counts as balanced."""
    stated_strain = muscle.shape.get("tendon_strain_at_one_norm_force", muscle.shape.get("FmaxTendonStrain"))
    height = np.sin(muscle.pennation)

    def deficit(strain: Floats) -> Floats:
        along = (lengths - muscle.slack * (1.0 + strain)) / muscle.fibre
        length = np.sqrt(height**2 + along**2)
        force, resting = _degroote(muscle, length, np.zeros(len(lengths)), curves)
        pull = (force + resting) * along / np.maximum(length, 1e-300)
        return np.asarray(curves.tendon_force(1.0 + strain, strain=stated_strain) - np.where(along > 0, pull, 0.0))

    longest = float(curves.tendon_length(TENDON_FORCES[1], strain=stated_strain)) - 1.0
    low, high = np.full(len(lengths), -0.05), np.full(len(lengths), longest)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        slack = deficit(middle) < 0.0
        low, high = np.where(slack, middle, low), np.where(slack, high, middle)
    strain = np.asarray(np.maximum(0.5 * (low + high), 0.0))
    in_balance = (deficit(strain) >= -_BALANCED) | ~np.isfinite(lengths)
    return strain, np.asarray(in_balance)
