"""Inputs and outputs of the model `linear_loop`: names, units, meanings and ranges."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from designopt.plugin import Array, Quantity
from designopt.study.language.units import power_unit, product
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
    SetpointWeight,
    StabilityDegree,
    TrackingTime,
)
from designopt_regulator.controllers.structure import StructureName

Q = Quantity
SectionsName = Literal["none", "lead", "notch", "lead_notch"]


class LinearDesign(TypedDict, total=False):
    """Settings of the controller; omitted ones are absent."""

    kp: Annotated[
        float, Q("", "proportional gain; its unit follows from the heads of the plant's record, or plant.units", gt=0)
    ]
    ti: IntegralTime
    ki: Annotated[float, Q("1/s", "integral gain kp/ti, instead of ti", gt=0)]
    td: DerivativeTime
    kd: Annotated[float, Q("s", "derivative gain kp*td, instead of td", ge=0)]
    tf: Annotated[float, Q("s", "time constant of the derivative's filter; no filter if left out", ge=0)]
    b: SetpointWeight
    tt: TrackingTime
    structure: Annotated[
        StructureName, Q("", "one controller, one with a Smith predictor, or two; if left out, what the design gives")
    ]
    sections: Annotated[SectionsName, Q("", "in series before the command; if left out, those that the design gives")]
    lead_frequency: Annotated[float, Q("rad/s", "at which the lead-lag turns the phase most", gt=0)]
    lead_ratio: Annotated[float, Q("", "gain of the lead-lag far above it: a lead above 1, a lag below", gt=0)]
    notch_frequency: Annotated[float, Q("rad/s", "of the notch", gt=0)]
    notch_width: Annotated[float, Q("", "bandwidth of the notch as a share of its frequency", gt=0)]
    notch_depth: Annotated[float, Q("", "gain of the notch at its frequency", ge=0, le=1)]
    kp_inner: Annotated[float, Q("", "proportional gain of the inner controller of a cascade; needed there", gt=0)]
    ti_inner: Annotated[float, Q("s", "integral time of the inner controller", gt=0)]
    td_inner: Annotated[float, Q("s", "derivative time of the inner controller", ge=0)]
    tf_inner: Annotated[float, Q("s", "filter of the inner controller's derivative; none if left out", ge=0)]
    b_inner: Annotated[float, Q("", "set-point weight of the inner controller; 1 if left out", ge=0, le=1.5)]
    tt_inner: Annotated[float, Q("s", "tracking time of the inner controller; as tt if left out", gt=0)]


class LinearConditions(TypedDict, total=False):
    """How the plant differs from the nominal one."""

    gain_factor: Annotated[float, Q("", "on the plant's gain", gt=0, sampled=(0.8, 1.25))]
    lag_factor: Annotated[float, Q("", "on all times of the plant but its delay", gt=0, sampled=(0.8, 1.25))]
    delay_factor: Annotated[float, Q("", "on the plant's delay", ge=0, sampled=(0.8, 1.25))]


class LinearOutputs(TypedDict):
    """Figures of steps of the set-point and of the plant's input (load).

    Where an error stays, its integrals are inf. Those of a sampled loop are of the simulated time: after the set-point
    until the load comes, after the load from then on.
    """

    iae_setpoint: NotRequired[Annotated[float, Q("s", "integral of the absolute error after the set-point")]]
    iae_load: NotRequired[Annotated[float, Q("s", "integral of the absolute error after the load")]]
    ise_setpoint: NotRequired[Annotated[float, Q("s", "integral of the squared error after the set-point")]]
    ise_load: NotRequired[Annotated[float, Q("s", "integral of the squared error after the load")]]
    overshoot: Annotated[
        float, Q("", "largest error beyond the final value after the set-point, as a share of it", usual=(0.0, 1.0))
    ]
    effort: Annotated[float, Q("s", "integral of the squared command, less its final value, after the set-point")]
    tv: Annotated[float, Q("", "total variation of the command after the set-point")]
    tv_load: Annotated[float, Q("", "total variation of the command after the load")]
    peak_command: Annotated[float, Q("", "largest magnitude of the command after the set-point")]
    rise: NotRequired[Annotated[float, Q("s", "from 10 to 90 % of the set-point; none where 90 % is not reached")]]
    settling: NotRequired[
        Annotated[float, Q("s", "last time outside 2 % of the set-point; none of a continuous loop that stays so")]
    ]
    not_settled: Annotated[float, Q("", "1 where the error stays outside 2 %, sampled: until the load comes")]
    residual_error: Annotated[
        float, Q("", "error at the end of the set-point's step, when the load comes, as a share of the step")
    ]
    ks_peak: NotRequired[
        Annotated[float, Q("", "peak of |K S|, from measurement noise to the command; inf if unstable")]
    ]
    gs_peak: NotRequired[Annotated[float, Q("", "peak of |G S|, from the load to the output; inf if unstable")]]
    damping: NotRequired[
        Annotated[float, Q("", "damping ratio of the oscillation that decays slowest; 1 without any, -inf if unstable")]
    ]
    stable: Annotated[float, Q("", "1 for a stable linear loop")]
    ms: NotRequired[Ms]
    mt: NotRequired[Mt]
    gm: NotRequired[GainMargin]
    gm_down: NotRequired[GainMarginDown]
    pm: NotRequired[PhaseMargin]
    delay_margin: NotRequired[DelayMargin]
    crossover: NotRequired[Crossover]
    spectral_radius: NotRequired[Annotated[float, Q("", "of a sampled loop; stable below 1")]]
    stab_degree: NotRequired[StabilityDegree]
    noise_gain: NotRequired[
        Annotated[float, Q("", "of a sampled loop: deviation of the command over that of white measurement noise")]
    ]
    inner_ms: NotRequired[Annotated[float, Q("", "ms of the inner loop of a cascade alone")]]
    inner_gm: NotRequired[Annotated[float, Q("", "gm of the inner loop of a cascade alone")]]
    inner_gm_down: NotRequired[Annotated[float, Q("", "gm_down of the inner loop of a cascade alone")]]
    inner_pm: NotRequired[Annotated[float, Q("rad", "pm of the inner loop of a cascade alone")]]
    inner_delay_margin: NotRequired[Annotated[float, Q("s", "delay_margin of the inner loop of a cascade alone")]]
    inner_crossover: NotRequired[Annotated[float, Q("rad/s", "crossover of the inner loop of a cascade alone")]]
    outer_ms: NotRequired[Annotated[float, Q("", "ms of the outer loop of a cascade, the inner one closed")]]
    outer_gm: NotRequired[Annotated[float, Q("", "gm of the outer loop of a cascade")]]
    outer_gm_down: NotRequired[Annotated[float, Q("", "gm_down of the outer loop of a cascade")]]
    outer_pm: NotRequired[Annotated[float, Q("rad", "pm of the outer loop of a cascade")]]
    outer_delay_margin: NotRequired[Annotated[float, Q("s", "delay_margin of the outer loop of a cascade")]]
    outer_crossover: NotRequired[Annotated[float, Q("rad/s", "crossover of the outer loop of a cascade")]]


ARRAYS = {
    "time": Array(("time",), "s", "from the step of the set-point on; the load follows"),
    "output": Array(("time",), "", "of the plant"),
    "command": Array(("time",), "", "of the controller"),
}


def gain_units(command: str, output: str) -> dict[str, str]:
    """Units of the gains of a controller between an output and a command; none where a unit is not known."""
    if not command or not output:
        return {}
    top, bottom = (f"({unit})" if set(unit) & set(" */") else unit for unit in (command, output))
    return {"kp": f"{top}/{bottom}", "ki": f"{top}/({bottom} s)", "kd": f"{top} s/{bottom}"}


def figure_units(command: str, output: str) -> dict[str, str]:
    """Units of the figures of steps, from those of the output and of the command; none where a unit is not known."""
    figures: dict[str, str] = {}
    if output:
        figures |= dict.fromkeys(("iae_setpoint", "iae_load"), product(output, "s"))
        figures |= dict.fromkeys(("ise_setpoint", "ise_load"), product(power_unit(output, 2.0), "s"))
    if command:
        figures |= {"effort": product(power_unit(command, 2.0), "s")}
        figures |= dict.fromkeys(("tv", "tv_load", "peak_command"), command)
    if command and output:
        figures |= dict.fromkeys(("ks_peak", "noise_gain"), gain_units(command, output)["kp"])
        figures["gs_peak"] = gain_units(output, command)["kp"]
    return figures
