"""Curves of muscle and tendon, and activation dynamics: of numbers, arrays and CasADi expressions alike.

De Groote, Kinney, Rao, Fregly, Annals of Biomedical Engineering 44 (2016) 2922. `OPENSIM` has the constants of
OpenSim's DeGrooteFregly2016Muscle, for which the curves pass through 1 at optimal length, at rest and at the tendon's
strain at one normalised force, and through 0 at the maximum speed of shortening; `PUBLICATION` has the rounded ones
of the paper. All curves are smooth.

Lengths of fibres are in optimal lengths, of tendons in slack lengths, speeds in maximum speeds of shortening
(shortening is negative), forces in maximum isometric forces.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from designopt.lazy import casadi

#: Maximum speed of shortening in optimal lengths per second.
FASTEST = 10.0
#: Where the curves hold: fibre lengths, fibre speeds, tendon forces.
LENGTHS, SPEEDS, TENDON_FORCES = (0.2, 1.8), (-1.0, 1.0), (0.0, 5.0)
#: Shape of the passive force, k_PE.
PASSIVE_SHAPE = 4.0


@dataclass(frozen=True)
class Curves:
    """One set of constants: `bumps` (b1, b2, b3, b4) of three bell curves, `speed` d1 to d4, `tendon` c1 to c3.

    `passive_zero` is the fibre length at which the passive curve is 0; None: its offset is 1, as in the paper.
    `tendon_strain` is the default strain at one normalised force.
    """

    bumps: tuple[tuple[float, float, float, float], ...]
    speed: tuple[float, float, float, float]
    tendon: tuple[float, float, float]
    tendon_strain: float
    passive_zero: float | None

    def active_length(self, length: Any, *, width: float = 1.0) -> Any:
        """Active force of a fibre over its length; `width` >= 1 stretches the curve about 1."""
        exp = _library(length).exp
        x = (length - 1.0) / width + 1.0
        return sum(b1 * exp(-0.5 * ((x - b2) / (b3 + b4 * x)) ** 2) for b1, b2, b3, b4 in self.bumps)

    def velocity(self, speed: Any) -> Any:
        """Factor of the active force over the fibre's speed."""
        d1, d2, d3, d4 = self.speed
        return d1 * _library(speed).arcsinh(d2 * speed + d3) + d4

    def passive(self, length: Any, *, strain: Any = 0.6) -> Any:
        """Passive force of a fibre over its length: 1 at the length 1 + `strain`."""
        exp = _library(length, strain).exp
        offset = 1.0 if self.passive_zero is None else exp(PASSIVE_SHAPE * (self.passive_zero - 1.0) / strain)
        return (exp(PASSIVE_SHAPE * (length - 1.0) / strain) - offset) / (math.exp(PASSIVE_SHAPE) - offset)

    def stiffness(self, strain: Any = None) -> Any:
        """k_T of a tendon with this strain at one normalised force."""
        c1, c2, c3 = self.tendon
        return math.log((1.0 + c3) / c1) / (1.0 + (self.tendon_strain if strain is None else strain) - c2)

    def tendon_force(self, length: Any, *, strain: Any = None) -> Any:
        """Force of a tendon over its length."""
        c1, c2, c3 = self.tendon
        k = self.stiffness(strain)
        return c1 * _library(length, k).exp(k * (length - c2)) - c3

    def tendon_length(self, force: Any, *, strain: Any = None) -> Any:
        """The length at which the tendon has this force."""
        c1, c2, c3 = self.tendon
        return _library(force).log((force + c3) / c1) / self.stiffness(strain) + c2

    def tendon_speed(self, force: Any, rate: Any, *, strain: Any = None) -> Any:
        """Slack lengths per second at which a tendon lengthens whose `force` changes with `rate` (1/s)."""
        return rate / (self.stiffness(strain) * (force + self.tendon[2]))

    def tendon_energy(self, force: Any, *, strain: Any = None) -> Any:
        """Energy stored in a tendon by its `force`, in maximum isometric forces times slack lengths: the integral of
        the force over the length from where it is 0."""
        offset = self.tendon[2]
        return (force - offset * _library(force).log((force + offset) / offset)) / self.stiffness(strain)


OPENSIM = Curves(
    bumps=(
        (0.8150671134243542, 1.055033428970575, 0.162384573599574, 0.063303448465465),
        (0.433004984392647, 0.716775413397760, -0.029947116970696, 0.200356847296188),
        (0.1, 1.0, 0.5 * math.sqrt(0.5), 0.0),
    ),
    speed=(-0.3211346127989808, -8.149, -0.374, 0.8825327733249912),
    tendon=(0.2, 1.0, 0.2),
    tendon_strain=0.049,
    passive_zero=0.2,
)

PUBLICATION = Curves(
    bumps=((0.815, 1.055, 0.162, 0.063), (0.433, 0.717, -0.030, 0.200), (0.1, 1.0, 0.354, 0.0)),
    speed=(-0.318, -8.149, -0.374, 0.886),
    tendon=(0.2, 0.995, 0.25),
    tendon_strain=math.log(1.25 / 0.2) / 35.0 - 0.005,  # so that k_T is 35
    passive_zero=None,
)


def activation_rate(
    excitation: Any, activation: Any, *, rise: Any = 0.015, fall: Any = 0.060, sharpness: float = 10.0
) -> Any:
    """Rate of the activation (1/s) with time constants of `rise` and `fall` (s) and a smooth switch between them.

    The published `sharpness` of 0.1 makes both nearly equally fast (OpenSim issue 3990); 10 separates them.
    """
    rising = 0.5 * _library(excitation, activation).tanh(sharpness * (excitation - activation))
    stretch = 0.5 + 1.5 * activation
    return ((rising + 0.5) / (rise * stretch) + (0.5 - rising) * stretch / fall) * (excitation - activation)


def _library(*values: Any) -> Any:
    """CasADi for its expressions, NumPy for anything else."""
    if any(type(value).__module__.partition(".")[0] == "casadi" for value in values):
        return casadi
    return np
