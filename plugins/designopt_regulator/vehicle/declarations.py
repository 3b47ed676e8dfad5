"""Inputs and outputs of the model of the tracked vehicle: names, units, meanings and ranges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NotRequired, Required, TypedDict

from designopt.plugin import Array, Quantity
from designopt_regulator.controllers.quantities import (
    Crossover,
    DelayMargin,
    DerivativeTime,
    GainMargin,
    GainMarginDown,
    IntegralTime,
    Ms,
    Mt,
    PhaseMargin,
    ProportionalGain,
    SetpointWeight,
    StabilityDegree,
    TrackingTime,
)
from designopt_regulator.vehicle.terrains import TerrainName

Q = Quantity


class VehicleDesign(TypedDict, total=False):
    """Settings of the tuned controller; if both are tuned, those of the heading, and with the ending _v the speed's."""

    kp: ProportionalGain
    ti: IntegralTime
    td: DerivativeTime
    tf: Annotated[float, Q("s", "time constant of the derivative's filter; 0.1 s if left out", gt=0)]
    b: SetpointWeight
    tt: TrackingTime
    kp_v: Annotated[float, Q("s/m", "proportional gain of the speed controller", gt=0)]
    ti_v: Annotated[float, Q("s", "integral time of the speed controller", gt=0)]
    td_v: Annotated[float, Q("s", "derivative time of the speed controller", ge=0)]
    tf_v: Annotated[float, Q("s", "filter of the speed controller's derivative; 0.1 s if left out", gt=0)]
    b_v: Annotated[float, Q("", "set-point weight of the speed controller; 1 if left out", ge=0, le=1.5)]
    tt_v: Annotated[float, Q("s", "tracking time of the speed controller; as tt if left out", gt=0)]


class Conditions(TypedDict, total=False):
    """A scenario: ground, speed, slope, and deviations of this vehicle from the nominal one."""

    terrain: Required[Annotated[TerrainName, Q("", "class of the ground")]]
    speed: Required[Annotated[float, Q("m/s", "speed before the references step", gt=0)]]
    grade: Annotated[float, Q("", "sine of the slope from the disturbance on, uphill positive", ge=-0.15, le=0.15)]
    mass_factor: Annotated[float, Q("", "on mass and yaw inertia", gt=0, sampled=(0.9, 1.2))]
    yaw_inertia_factor: Annotated[float, Q("", "on the yaw inertia besides", gt=0, sampled=(0.85, 1.25))]
    rotating_mass_factor: Annotated[float, Q("", "of the drive's rotating masses", ge=1, sampled=(1.05, 1.35))]
    force_factor: Annotated[float, Q("", "on the maximum force", gt=0, sampled=(0.9, 1.1))]
    power_factor: Annotated[float, Q("", "on the maximum power", gt=0, sampled=(0.9, 1.1))]
    lag: Annotated[float, Q("s", "time constant of the drive's force", gt=0, sampled=(0.2, 0.6))]
    delay: Annotated[float, Q("s", "of the commands, a whole number of integration steps", ge=0)]
    delay_samples: Annotated[int, Q("", "delay of the commands in samples, instead of 'delay'", ge=0, sampled=(1, 8))]
    rolling: Annotated[float, Q("", "coefficient of rolling resistance instead of the terrain's", ge=0)]
    turning: Annotated[float, Q("", "maximum coefficient of turning resistance instead of the terrain's", gt=0)]
    adhesion: Annotated[float, Q("", "coefficient of adhesion instead of the terrain's", gt=0)]
    rolling_at: Annotated[float, Q("", "position in the terrain's range of 'rolling'", ge=0, le=1, sampled=(0, 1))]
    turning_at: Annotated[float, Q("", "position in the terrain's range of 'turning'", ge=0, le=1, sampled=(0, 1))]
    adhesion_at: Annotated[float, Q("", "position in the terrain's range of 'adhesion'", ge=0, le=1, sampled=(0, 1))]


class LoopOutputs(TypedDict, total=False):
    """Outputs of the speed loop if both loops are tuned."""

    speed_iae: Annotated[float, Q("s", "iae of the speed")]
    speed_itae: Annotated[float, Q("s^2", "itae of the speed")]
    speed_overshoot: Annotated[float, Q("", "overshoot of the speed")]
    speed_settling: Annotated[float, Q("s", "settling of the speed")]
    speed_residual_error: Annotated[float, Q("", "residual_error of the speed")]
    speed_load_peak: Annotated[float, Q("", "load_peak of the speed")]
    speed_tv: Annotated[float, Q("", "tv of the speed's command")]
    speed_effort: Annotated[float, Q("s", "effort of the speed's command")]
    speed_sat_fraction: Annotated[float, Q("", "sat_fraction of the speed's command")]
    speed_ms: Annotated[float, Q("", "ms of the speed loop")]
    speed_mt: Annotated[float, Q("", "mt of the speed loop")]
    speed_stab_degree: Annotated[float, Q("1/s", "stab_degree of the speed loop")]
    speed_noise_gain: Annotated[float, Q("", "noise_gain of the speed loop")]


class VehicleOutputs(LoopOutputs):
    """Outputs of one run. Errors are shares of the reference's step; t1 is the time of the step, t2 that of the
    disturbance.
    """

    iae: Annotated[float, Q("s", "integral of the absolute error")]
    ise: Annotated[float, Q("s", "integral of the squared error")]
    itae: Annotated[float, Q("s^2", "integral of the absolute error times the time since t1, from t2 on since t2")]
    iae_step: Annotated[float, Q("s", "iae before t2")]
    iae_load: Annotated[float, Q("s", "iae from t2 on")]
    overshoot: Annotated[float, Q("", "largest error beyond the reference between t1 and t2")]
    settling: Annotated[float, Q("s", "from t1 to the last time before t2 outside the settling band")]
    not_settled: Annotated[float, Q("", "1 where the error is outside the settling band at t2")]
    residual_error: Annotated[float, Q("", "absolute error at t2")]
    rise: NotRequired[Annotated[float, Q("s", "from 10 to 90 %; none where 90 % is not reached before t2")]]
    not_risen: Annotated[float, Q("", "1 where 90 % is not reached before t2")]
    load_peak: Annotated[float, Q("", "largest error from t2 on")]
    tv: Annotated[float, Q("", "total variation of the command")]
    effort: Annotated[float, Q("s", "integral of the squared command less trim")]
    sat_fraction: Annotated[float, Q("", "share of samples at which the command is clipped")]
    energy: Annotated[float, Q("J", "delivered by the tracks; recovered energy does not count")]
    sharp_turn: Annotated[
        float, Q("", "share of samples turning about a point between the tracks, where the turning law is extrapolated")
    ]
    spectral_radius: Annotated[float, Q("", "of the sampled linear loop with its delay; stable below 1")]
    stab_degree: StabilityDegree
    ms: NotRequired[Ms]
    mt: NotRequired[Mt]
    gm: NotRequired[GainMargin]
    gm_down: NotRequired[GainMarginDown]
    pm: NotRequired[PhaseMargin]
    delay_margin: NotRequired[DelayMargin]
    crossover: NotRequired[Crossover]
    noise_gain: NotRequired[
        Annotated[float, Q("", "deviation of the command over that of white measurement noise; inf if unstable")]
    ]


ARRAYS = {
    "time": Array(("time",), "s", "of the samples"),
    "course": Array(("time",), "rad"),
    "speed": Array(("time",), "m/s"),
    "yaw_rate": Array(("time",), "rad/s"),
    "course_command": Array(("time",), "", "of the heading controller, from this sample to the next"),
    "speed_command": Array(("time",), "", "of the speed controller, from this sample to the next"),
    "course_reference": Array(("time",), "rad"),
    "speed_reference": Array(("time",), "m/s"),
}


@dataclass(frozen=True, kw_only=True)
class FixedController:
    """A PID with fixed settings."""

    kp: ProportionalGain
    ti: Annotated[float | None, Q("s", "integral time; none: no I", gt=0)] = None
    td: DerivativeTime = 0.0
    tf: Annotated[float, Q("s", "time constant of the derivative's filter", gt=0)] = 0.1
    b: Annotated[float, Q("", "set-point weight", ge=0, le=1.5)] = 1.0
    tt: Annotated[float | None, Q("s", "tracking time; sqrt(ti td), without D ti, if none", gt=0)] = None


@dataclass(frozen=True, kw_only=True)
class Disturbance:
    """Load on the vehicle from a given time on, besides the scenario's grade."""

    moment: Annotated[float, Q("N m", "about the vertical axis")] = 0.0
    at: Annotated[float, Q("s", "when it and the grade begin, and stay", gt=0)] = 15.0
