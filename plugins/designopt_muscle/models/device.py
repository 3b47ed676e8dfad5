"""A device at one coordinate: a spring, and a drive that gives a share of the moment that is needed besides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from designopt.arrays import Vector
from designopt.plugin import InvalidDesign
from designopt_muscle.models.trial import Trial
from designopt_muscle.sharing.static.derivatives import FrameDerivatives
from designopt_muscle.sharing.static.sharing import Sharing


def device_moment(trial: Trial, coordinate: str | None, values: Mapping[str, Any]) -> Vector:
    """(n,) N m of spring and drive together at the assisted `coordinate`; 0 without one.

    `values` have the `stiffness`, the angle `rest` and the share of `assistance`. Raises `InvalidDesign` for a device
    without a coordinate, and for a coordinate without a net moment.
    """
    if coordinate is None:
        if values["stiffness"] or values["assistance"]:
            raise InvalidDesign("a device needs a coordinate: name it with the model's setting 'assisted'")
        return np.zeros(len(trial.balance.time))
    if coordinate not in trial.balance.rows:
        raise InvalidDesign(f"the trial has no net moment about the assisted coordinate '{coordinate}'")
    spring = values["stiffness"] * (values["rest"] - trial.values[coordinate])
    needed = trial.balance.moments[:, trial.balance.rows.index(coordinate)]
    return np.asarray(spring + values["assistance"] * (needed - spring))


def device_rate(trial: Trial, coordinate: str | None) -> Vector:
    """(n,) rad/s of the assisted `coordinate`; 0 without one."""
    if coordinate is None or len(trial.balance.time) < 2:
        return np.zeros(len(trial.balance.time))
    return np.asarray(np.gradient(trial.values[coordinate], trial.balance.time))


def design_slopes(
    trial: Trial, sharing: Sharing, coordinate: str | None, values: Mapping[str, Any], slopes: FrameDerivatives
) -> dict[str, float]:
    """Derivatives of a number by the design: by strength, and by the device through the needed moment of its row."""
    forces = (slopes.by_strength * trial.muscles.strength).sum() + (slopes.by_passive * trial.muscles.passive).sum()
    found = {"strength": float(forces)}
    if coordinate is None or coordinate not in sharing.balance.rows:
        return found
    by_moment = slopes.by_moment[:, sharing.balance.rows.index(coordinate)]
    needed = trial.balance.moments[:, trial.balance.rows.index(coordinate)]
    stretch = values["rest"] - trial.values[coordinate]
    left = 1.0 - values["assistance"]
    found["stiffness"] = -left * float((by_moment * stretch).sum())
    found["rest"] = -left * values["stiffness"] * float(by_moment.sum())
    found["assistance"] = -float((by_moment * (needed - values["stiffness"] * stretch)).sum())
    return found
