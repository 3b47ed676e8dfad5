"""A model that costs a pause and little else, for runs that are looked at while they go on."""

import time
from typing import Annotated, TypedDict

from designopt import Quantity as Q
from designopt import model


class Design(TypedDict):
    stiffness: Annotated[float, Q("N/m", "of the spring", gt=0)]
    damping: Annotated[float, Q("N s/m", "of the damper", gt=0)]


class Out(TypedDict):
    cost: Annotated[float, Q("", "of the ride")]
    peak_travel: Annotated[float, Q("m", "of the spring")]


@model("slow_car", version=1)
def slow_car(design: Design, scenario, *, pause: Annotated[float, Q("s", "time that it takes", ge=0)] = 0.003) -> Out:
    """Two formulas."""
    time.sleep(pause)
    return {"cost": design["damping"] / 1e3, "peak_travel": 1e3 / design["stiffness"] + 10.0 / design["damping"]}
