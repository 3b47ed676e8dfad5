"""What goes into and comes out of the model `linear_loop`: names, units, meanings and ranges."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

from designopt.plugin import Array, Quantity

Q = Quantity


class LinearDesign(TypedDict, total=False):
    """Settings of the regulator; what is left out is absent."""

    kp: Annotated[float, Q("", "proportional gain; needed", gt=0)]
    ti: Annotated[float, Q("s", "integral time", gt=0)]
    ki: Annotated[float, Q("1/s", "integral gain kp/ti, instead of ti", gt=0)]
    td: Annotated[float, Q("s", "derivative time", ge=0)]
    kd: Annotated[float, Q("s", "derivative gain kp*td, instead of td", ge=0)]
    tf: Annotated[float, Q("s", "time constant of the derivative's filter; no filter if left out", ge=0)]
    b: Annotated[float, Q("", "set-point weight; 1 if left out", ge=0, le=1.5)]
    tt: Annotated[float, Q("s", "tracking time of the anti-windup; sqrt(ti td), without D ti, if left out", gt=0)]


class LinearConditions(TypedDict, total=False):
    """How the plant differs from the nominal one."""

    gain_factor: Annotated[float, Q("", "on the plant's gain", gt=0, sampled=(0.8, 1.25))]
    lag_factor: Annotated[float, Q("", "on all times of the plant but its delay", gt=0, sampled=(0.8, 1.25))]
    delay_factor: Annotated[float, Q("", "on the plant's delay", ge=0, sampled=(0.8, 1.25))]


class LinearOutputs(TypedDict):
    """Figures of unit steps of the set-point and of the plant's input (load).

    Where an error stays, its integrals are inf. Those of a sampled loop are of the simulated time: after the set-point
    until the load comes, after the load from then on.
    """

    iae_setpoint: NotRequired[Annotated[float, Q("s", "integral of the error's size after the set-point")]]
    iae_load: NotRequired[Annotated[float, Q("s", "integral of the error's size after the load")]]
    ise_setpoint: NotRequired[Annotated[float, Q("s", "integral of the squared error after the set-point")]]
    ise_load: NotRequired[Annotated[float, Q("s", "integral of the squared error after the load")]]
    overshoot: Annotated[float, Q("", "farthest beyond the final value after the set-point")]
    effort: Annotated[float, Q("s", "integral of the squared command, less its final value, after the set-point")]
    tv: Annotated[float, Q("", "total variation of the command after the set-point")]
    tv_load: Annotated[float, Q("", "total variation of the command after the load")]
    largest_command: Annotated[float, Q("", "largest size of the command after the set-point")]
    rise: NotRequired[Annotated[float, Q("s", "from 10 to 90 % of the set-point; none where 90 % is not reached")]]
    settling: NotRequired[
        Annotated[float, Q("s", "last time outside of 2 % of the set-point; none of a continuous loop that stays so")]
    ]
    not_settled: Annotated[float, Q("", "1 where the error stays outside of 2 %, sampled: until the load comes")]
    error_left: Annotated[float, Q("", "size of the error at the end of the set-point's step, when the load comes")]
    ks_peak: NotRequired[
        Annotated[float, Q("", "peak of |K S|, from measurement noise to the command; inf if unstable")]
    ]
    gs_peak: NotRequired[Annotated[float, Q("", "peak of |G S|, from the load to the output; inf if unstable")]]
    damping: NotRequired[
        Annotated[float, Q("", "damping ratio of the oscillation that decays slowest; 1 without any, -inf if unstable")]
    ]
    stable: Annotated[float, Q("", "1 for a stable linear loop")]
    ms: NotRequired[Annotated[float, Q("", "peak of the sensitivity; inf if unstable")]]
    mt: NotRequired[Annotated[float, Q("", "peak of the complementary sensitivity; inf if unstable")]]
    gm: NotRequired[
        Annotated[float, Q("", "smallest factor above 1 on the gain that makes the loop unstable; -inf if unstable")]
    ]
    gm_down: NotRequired[
        Annotated[float, Q("", "largest factor below 1 on the gain that makes the loop unstable; inf if unstable")]
    ]
    pm: NotRequired[Annotated[float, Q("rad", "phase margin; -inf if unstable")]]
    delay_margin: NotRequired[Annotated[float, Q("s", "smallest further delay that is too much; -inf if unstable")]]
    crossover: NotRequired[Annotated[float, Q("rad/s", "highest frequency at which the loop's gain is 1")]]
    spectral_radius: NotRequired[Annotated[float, Q("", "of a sampled loop; stable below 1")]]
    stab_degree: NotRequired[Annotated[float, Q("1/s", "-ln(spectral_radius) / sample time of a sampled loop")]]
    noise_gain: NotRequired[
        Annotated[float, Q("", "of a sampled loop: deviation of the command over that of white measurement noise")]
    ]


ARRAYS = {
    "time": Array(("time",), "s", "from the step of the set-point on; the load follows"),
    "output": Array(("time",), "", "of the plant"),
    "command": Array(("time",), "", "of the regulator"),
}
