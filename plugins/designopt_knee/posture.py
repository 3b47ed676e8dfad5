"""The leg in the recorded posture, and how far it is from one that walks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from designopt.arrays import Floats
from designopt_knee import linkage
from designopt_knee.gait import SIGNALS, Gait
from designopt_knee.mistakes import Angles

#: Phases at which postures are compared.
PHASE = np.linspace(0.0, 1.0, 201)
#: Phases after heel strike between which the sole stands.
_STANDING = (0.1, 0.4)
_TURN, _HEIGHT = np.radians(20.0), 0.1  # rad, m: of a foot that turns, rises or is in the air while it should stand
#: Angles (rad) that no leg reaches in a walk: extension of the knee, and the toe's above the heel.
_EXTENDED, _TOE_HIGH = np.radians(10.0), np.radians(35.0)

Posture = Mapping[str, linkage.Point]


def recorded_signals(gait: Gait) -> dict[str, Floats]:
    """The signals (m, rad) at `PHASE`."""
    return {signal: gait.series(signal, PHASE) for signal in SIGNALS}


def recorded_posture(signals: Angles, g: Mapping[str, float]) -> dict[str, linkage.Point]:
    """Positions of the joints (m) of the leg `g` with the recorded hip, thigh, knee and ankle."""
    thigh, hip = signals["thigh"], (signals["hip_x"], g["hip_hike"] * signals["hip_y"])
    eta = linkage.eta_of_flexion(g, np.maximum(signals["knee"], 0.0))
    ad, shank = linkage.relative_angles(g, eta)
    return linkage.points(g, hip, thigh, thigh + shank, thigh + ad, thigh + eta, thigh + shank + signals["ankle"])


def sole_height(posture: Posture) -> Floats:
    """Height (m) of the lower end of the sole."""
    return np.asarray(np.minimum(posture["heel"][1], posture["toe"][1]))


def heel_strike(posture: Posture) -> float:
    """The phase at which the heel is farthest in front of the hip (Zeni, Richards & Higginson 2008, Gait & Posture 27,
    710-714)."""
    return float(PHASE[np.argmax(posture["heel"][0] - posture["hip"][0])])


def standing(posture: Posture) -> Floats:
    """Which of `PHASE` lie where the sole stands after heel strike."""
    after = (PHASE - heel_strike(posture)) % 1.0
    return np.asarray((after >= _STANDING[0]) & (after <= _STANDING[1]))


def sole_angle(posture: Posture) -> Floats:
    """Angle (rad) of the sole, toe up positive."""
    rise, run = (posture["toe"][i] - posture["heel"][i] for i in (1, 0))
    return np.asarray(np.arctan2(rise, run))


def backward_speed(x: Floats, period: float) -> Floats:
    """Backward speed (m/s) of a position `x` (m) over one cycle."""
    return np.asarray(-np.gradient(x, period * PHASE))


def misfit(signals: Angles, gait: Gait, g: Mapping[str, float]) -> float:
    """How far the leg is from one that walks: a sum of terms that are 1 for what is absurd, and 0.5 together in
    recorded walks.

    While the foot should stand, it moves with the belt (mean and scatter of its speed), neither rises nor turns, is
    level and lower than else; the knee does not extend, the toe is never high, the cycle begins at heel strike.
    """
    posture = recorded_posture(signals, g)
    strike = heel_strike(posture)
    stands, sole, angle = standing(posture), sole_height(posture), sole_angle(posture)
    speed = backward_speed(posture["ankle"][0], gait.period)[stands] / max(gait.belt_speed, 1e-3)
    terms = (
        speed.mean() - 1.0,
        speed.std(),
        np.ptp(posture["ankle"][1][stands]) / _HEIGHT,
        (sole[stands].mean() - sole.min()) / _HEIGHT,
        np.median(angle[stands]) / _TURN,
        angle[stands].std() / _TURN,
        max(0.0, -signals["knee"].min() - _EXTENDED) / _TURN,
        max(0.0, angle.max() - _TOE_HIGH) / _TURN,
        min(strike, 1.0 - strike),
    )
    return float(np.abs(terms).sum())
