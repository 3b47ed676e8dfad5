"""Optional refinements of the vehicle in a scenario or a design: side slope, slip, stiction, noise, inner loops.

All are off by default, so studies without them keep their results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NotRequired

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import InvalidDesign, Quantity
from designopt_regulator.controllers.pid import UNUSUAL, is_unusual
from designopt_regulator.vehicle.declarations import Conditions, VehicleDesign, VehicleOutputs
from designopt_regulator.vehicle.equations import (
    GRAVITY,
    STICTION_RATE,
    VehicleNumbers,
    trim,
    trim_difference,
    yaw_damping,
)
from designopt_regulator.vehicle.simulation import Loop, SimulatedRuns
from designopt_regulator.vehicle.slip import STABLE_PRODUCT, longest_step, trim_slip

Q = Quantity


class RefinedDesign(VehicleDesign, total=False):
    """Settings of the controllers, of an inner loop of the yaw rate, and of the feed-forward."""

    rate_gain: Annotated[
        float, Q("s", "command for an error of the yaw rate; the heading controller then commands a rate", gt=0)
    ]
    max_rate: Annotated[float, Q("rad/s", "yaw rate that the heading controller commands at full output", gt=0)]
    grade_share: Annotated[
        float,
        Q(
            "",
            "share of the nominal vehicle's weight on the grade that is fed forward to the speed's command",
            ge=0,
            le=2,
        ),
    ]


class RefinedConditions(Conditions, total=False):
    """A scenario with refinements of the ground, the vehicle and its sensors."""

    side_slope: Annotated[
        float, Q("", "sine of the slope across, from the start; positive: right side lower", ge=-0.3, le=0.3)
    ]
    mass_height: Annotated[
        float, Q("m", "of the centre of mass above the ground, for the side slope; 1 m if left out", ge=0)
    ]
    mass_ahead: Annotated[float, Q("m", "of the centre of mass before the middle of the tracks; 0 if left out")]
    yaw_stiction: Annotated[
        float, Q("", "moment that holds a vehicle that does not turn, as a share of mu_max W L / 4", ge=0, le=1)
    ]
    shear_modulus: Annotated[float, Q("m", "of the ground; the tracks then slip (Janosi & Hanamoto)", gt=0)]
    speed_noise: Annotated[float, Q("m/s", "standard deviation of the measured speed, white", ge=0)]
    course_noise: Annotated[float, Q("rad", "standard deviation of the measured heading, white", ge=0)]
    noise_draw: Annotated[int, Q("", "number of the noise sequence; 0 if left out", ge=0)]


class RefinedOutputs(VehicleOutputs, total=False):
    """Outputs of one run, including that of noise."""

    noise_command: NotRequired[
        Annotated[float, Q("", "with noise: root mean square of what it adds to the command of the tuned loop")]
    ]


def refined_numbers(numbers: Mapping[str, float], scenario: Mapping[str, Any]) -> dict[str, float]:
    """The values of `equations.plant` that a scenario's refinements change or add."""
    turning = 0.25 * numbers["turning"] * numbers["mass"] * GRAVITY * numbers["contact_length"]
    return {
        "stiction": scenario.get("yaw_stiction", 0.0) * turning,
        "shear_modulus": scenario.get("shear_modulus", 0.0),
        **_side_slope(numbers, scenario),
    }


def _side_slope(numbers: Mapping[str, float], scenario: Mapping[str, Any]) -> dict[str, float]:
    """The values that a side slope changes.

    The slope shifts weight to the lower track (moment W s h about the middle of the ground). The component of weight
    along the slope turns the nose down if the centre of mass is ahead of the tracks' middle. The ground also carries
    this component, so its resistance to turning decreases by the factor 1 - (s/mu)^2 (as for the side force of a bend,
    Wong 2008, chapter 6).
    """
    if "side_slope" not in scenario:
        if names := [name for name in ("mass_height", "mass_ahead") if name in scenario]:
            raise InvalidDesign(f"{names[0]}: has no effect without a side_slope; leave it out")
        return {"shift": 0.0, "side_moment": 0.0}
    s = scenario["side_slope"]
    height, weight, turning = scenario.get("mass_height", 1.0), numbers["mass"] * GRAVITY, numbers["turning"]
    shift = s * height / numbers["track_distance"]
    if abs(s) >= turning:
        raise InvalidDesign(f"side_slope: on {s:g} the vehicle slides where the coefficient of turning is {turning:g}")
    if abs(shift) >= 0.5:
        raise InvalidDesign(f"side_slope: on {s:g} the vehicle tips over with a mass_height of {height:g} m")
    return {
        "shift": shift,
        "side_moment": -weight * s * scenario.get("mass_ahead", 0.0),
        "turning": turning * (1.0 - (s / turning) ** 2),
    }


def check_steps(p: VehicleNumbers, speeds: Floats, sample_time: float, substeps: int) -> None:
    """Raises `InvalidDesign` if integration steps are too long for one vehicle, or if its tracks spin at the speed.

    Longer steps make motions grow, or oscillate between the limits, in the classical Runge-Kutta method.
    """
    step = sample_time / substeps
    for name, applies, longest in (
        ("lag", np.True_, STABLE_PRODUCT * float(p.lag.min())),
        ("speed", np.True_, _longest_turning_step(p, speeds)),
        ("yaw_stiction", p.stiction > 0.0, _longest_stiction_step(p, speeds)),
        ("shear_modulus", p.shear_modulus > 0.0, _longest_slip_step(p, speeds)),
    ):
        if applies.any() and step > longest:
            raise InvalidDesign(
                f"{name}: integration steps of {step:g} s are too long for it; "
                f"take 'substeps: {int(np.ceil(sample_time / longest))}'"
            )
    if p.shear_modulus.any():
        for speed in speeds:
            middle, side = trim(p, speed), trim_difference(p, speed)
            slip = np.max(trim_slip(p, p.max_force * (middle - side), p.max_force * (middle + side)))
            if not slip < 1.0:
                raise InvalidDesign(f"shear_modulus: the tracks spin when they must hold {speed:g} m/s")


def _longest_slip_step(p: VehicleNumbers, speeds: Floats) -> float:
    if not p.shear_modulus.any():
        return np.inf
    if not (p.inertial_mass > p.weight / GRAVITY).all():
        raise InvalidDesign("shear_modulus: tracks that slip need a rotating_mass_factor above 1")
    return float(longest_step(p, speeds.min(keepdims=True)).min())


def _longest_stiction_step(p: VehicleNumbers, speeds: Floats) -> float:
    """The longest step (s) with which stiction is integrated without growing oscillations."""
    slope = p.stiction / STICTION_RATE + yaw_damping(p, speeds.min(keepdims=True))
    return float((STABLE_PRODUCT * p.yaw_inertia / slope).min())


def _longest_turning_step(p: VehicleNumbers, speeds: Floats) -> float:
    """The longest step (s) with which the resistance to turning, strongest at low speed, is integrated without
    growing oscillations.
    """
    return float((STABLE_PRODUCT * p.yaw_inertia / yaw_damping(p, speeds.min(keepdims=True))).min())


def noise(scenario: Mapping[str, Any], samples: int) -> Floats | None:
    """White noise (2, samples) of the measured speed (m/s) and heading (rad); None for a scenario without noise.

    A draw gives the same sequence for every design, whichever designs are evaluated together.
    Raises `InvalidDesign` for a draw without noise.
    """
    names = ("speed_noise", "course_noise")
    if not any(name in scenario for name in names):
        if "noise_draw" in scenario:
            raise InvalidDesign("noise_draw: has no effect without speed_noise or course_noise; leave it out")
        return None
    deviations = [scenario.get(name, 0.0) for name in names]
    rng = np.random.default_rng(scenario.get("noise_draw", 0))
    return np.asarray(rng.standard_normal((2, samples)) * np.array(deviations)[:, None])


def noises(noise_of_rows: Sequence[Floats | None]) -> Floats | None:
    """The noise of all rows (n, 2, samples), 0 in rows without noise; None if no row has noise."""
    noise = next((values for values in noise_of_rows if values is not None), None)
    if noise is None:
        return None
    return np.stack([np.zeros_like(noise) if values is None else values for values in noise_of_rows])


def noise_command(noisy: SimulatedRuns, quiet: SimulatedRuns, loop: Loop) -> Floats:
    """Root mean square (n,) of a loop's command due to noise."""
    assert noisy.trace is not None
    assert quiet.trace is not None
    difference = getattr(noisy.trace, f"{loop}_command")[:-1] - getattr(quiet.trace, f"{loop}_command")[:-1]
    return np.asarray(np.sqrt((np.ascontiguousarray(difference.T) ** 2).mean(axis=1)))


def rate_loop(design: Mapping[str, float]) -> dict[str, float]:
    """Gain and maximum rate of the inner loop of the yaw rate; gain 0 for a design without one.

    Raises `InvalidDesign` for missing or non-positive values.
    """
    names = ("rate_gain", "max_rate")
    settings = {name: design[name] for name in names if name in design}
    if len(settings) == 1:
        missing = next(name for name in names if name not in settings)
        raise InvalidDesign(
            f"{missing}: is missing; the inner loop of the yaw rate needs it with {next(iter(settings))}"
        )
    for name, value in settings.items():
        if not 0.0 < value < np.inf:
            raise InvalidDesign(f"{name}: {value:g} must be above 0")
        if is_unusual(value):
            raise InvalidDesign(f"{name}: {value:g} {UNUSUAL}")
    return settings or dict.fromkeys(names, 0.0)


def feed_forward(design: Mapping[str, float]) -> dict[str, float]:
    """Feed-forward share of the grade's force, 0 by default. Raises `InvalidDesign` outside 0 to 2."""
    share = design.get("grade_share", 0.0)
    if not 0.0 <= share <= 2.0:
        raise InvalidDesign(f"grade_share: {share:g} must be between 0 and 2")
    return {"grade_share": share}
