"""A device at one coordinate: a spring, and a drive that gives a share of the moment that is needed besides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from designopt_mechanics.sharing.static.derivatives import FrameDerivatives
from designopt_mechanics.sharing.static.sharing import Sharing

from designopt.arrays import Floats
from designopt.plugin import InvalidDesign
from designopt_muscle.models.trial import Trial


@dataclass(frozen=True, eq=False)
class DeviceMoments:
    """Moments (n,) N m of `spring` and `drive` at the assisted coordinate, and its `rate` (n,) rad/s."""

    spring: Floats
    drive: Floats
    rate: Floats

    @property
    def total(self) -> Floats:
        """(n,) N m of both together."""
        return self.spring + self.drive

    def drive_work(self, time: Floats) -> float:
        """Integral of the absolute power of the drive (J); frames with missing numbers count as 0. A spring returns its
        energy and is not included."""
        power = np.abs(self.drive * self.rate)
        return float(np.trapezoid(np.where(np.isfinite(power), power, 0.0), time)) if len(time) > 1 else 0.0


def device_moments(trial: Trial, coordinate: str | None, values: Mapping[str, Any]) -> DeviceMoments:
    """Spring and drive at the assisted `coordinate`; 0 without one.

    `values` have the `stiffness`, the angle `rest` and the share of `assistance` that the drive gives of what the
    spring leaves. Raises `InvalidDesign` for a device without a coordinate, and for a coordinate without a net moment.
    """
    time = trial.balance.time
    if coordinate is None:
        if values["stiffness"] or values["assistance"]:
            raise InvalidDesign("a device needs a coordinate: name it with the model's setting 'assisted'")
        return DeviceMoments(*(np.zeros(len(time)) for _ in range(3)))
    if coordinate not in trial.balance.rows:
        raise InvalidDesign(f"the trial has no net moment about the assisted coordinate '{coordinate}'")
    angle = trial.values[coordinate]
    spring = values["stiffness"] * (values["rest"] - angle)
    net_moment = trial.balance.moments[:, trial.balance.rows.index(coordinate)]
    rate = np.gradient(angle, time) if len(time) > 1 else np.zeros(len(time))
    return DeviceMoments(spring, values["assistance"] * (net_moment - spring), rate)


def design_slopes(
    trial: Trial, sharing: Sharing, coordinate: str | None, values: Mapping[str, Any], slopes: FrameDerivatives
) -> dict[str, float]:
    """Derivatives of a number by the design: by strength, and by the device through the needed moment of its row."""
    forces = (slopes.by_strength * trial.muscles.strength).sum() + (slopes.by_passive * trial.muscles.passive).sum()
    slope_of = {"strength": float(forces)}
    if coordinate is None or coordinate not in sharing.balance.rows:
        return slope_of
    by_moment = slopes.by_moment[:, sharing.balance.rows.index(coordinate)]
    net_moment = trial.balance.moments[:, trial.balance.rows.index(coordinate)]
    stretch = values["rest"] - trial.values[coordinate]
    left = 1.0 - values["assistance"]
    slope_of["stiffness"] = -left * float((by_moment * stretch).sum())
    slope_of["rest"] = -left * values["stiffness"] * float(by_moment.sum())
    slope_of["assistance"] = -float((by_moment * (net_moment - values["stiffness"] * stretch)).sum())
    return slope_of
