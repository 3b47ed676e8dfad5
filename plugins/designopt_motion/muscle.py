"""Curves of a muscle on a rigid tendon and its activation: functions of CasADi expressions and of numbers alike.

De Groote, Kinney, Rao, Fregly, Annals of Biomedical Engineering 44 (2016) 2922, with the constants to more digits for
which the curves pass through 1 at rest length and at rest, and through 0 at the greatest speed of shortening (those
of OpenSim's DeGrooteFregly2016Muscle). All are smooth, so that second derivatives exist everywhere.
"""

from __future__ import annotations

from typing import Any

_BUMPS = (  # b1, b2, b3, b4 of three bell curves
    (0.8150671134243542, 1.055033428970575, 0.162384573599574, 0.063303448465465),
    (0.433004984392647, 0.716775413397760, -0.029947116970696, 0.200356847296188),
    (0.1, 1.0, 0.3535533905932738, 0.0),
)
_D1, _D2, _D3, _D4 = -0.3211346127989808, -8.149, -0.374, 0.8825327733249912

#: Greatest speed of shortening in optimal lengths per second, as in the publication of the curves.
FASTEST = 10.0


def force_of_length(length: Any) -> Any:
    """Active force of a fibre of `length` (in optimal lengths), relative to the greatest isometric force."""
    import casadi as ca

    return sum(b1 * ca.exp(-0.5 * ((length - b2) / (b3 + b4 * length)) ** 2) for b1, b2, b3, b4 in _BUMPS)


def force_of_speed(speed: Any) -> Any:
    """Factor of the active force at `speed` (relative to the greatest one; shortening is negative)."""
    import casadi as ca

    return _D1 * ca.asinh(_D2 * speed + _D3) + _D4


def activation_rate(
    excitation: Any, activation: Any, *, rise: float = 0.015, fall: float = 0.060, sharpness: float = 10.0
) -> Any:
    """Rate of the activation (1/s) with time constants of `rise` and `fall` (s); between them it switches smoothly.

    The published `sharpness` of 0.1 makes both nearly equally fast (OpenSim issue 3990); 10 tells them apart.
    """
    import casadi as ca

    rising = 0.5 * ca.tanh(sharpness * (excitation - activation))
    stretch = 0.5 + 1.5 * activation
    return ((rising + 0.5) / (rise * stretch) + (0.5 - rising) * stretch / fall) * (excitation - activation)
