"""The criterion as a design says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from designopt_muscle.sharing.statement.criteria import Criterion, MinMax, Power, QuadraticLinear, SoftSaturation

CriterionName = Literal["power", "minmax", "strict_minmax", "quadratic_linear", "soft_saturation"]


def criterion_of(values: Mapping[str, Any], linear: float, tie_break: float) -> Criterion:
    """Of the `values` ``criterion`` and ``exponent``, with the settings of two of them."""
    match values["criterion"]:
        case "minmax":
            return MinMax(tie_break)
        case "strict_minmax":
            return MinMax(tie_break, strict=True)
        case "quadratic_linear":
            return QuadraticLinear(linear)
        case "soft_saturation":
            return SoftSaturation()
    return Power(float(values["exponent"]))
