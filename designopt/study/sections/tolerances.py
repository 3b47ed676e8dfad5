"""Second pass over `tolerance` of parameters and ``report.tolerances``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from designopt.plugin import Field, ModelPlugin
from designopt.study.language import units
from designopt.study.language.findings import Path, nearest_or_all
from designopt.study.language.units import Amount, UnitError
from designopt.study.sections.context import Context
from designopt.study.sections.scenarios.spread import model_range
from designopt.study.study import DesignVariable, Tolerance, Tolerances

#: Default tolerance of parameters in a study without tolerances: a share of the value.
ASSUMED = 0.01


def tolerances(
    ctx: Context,
    space: Mapping[str, Any],
    parameters: Sequence[DesignVariable],
    report: Mapping[str, Any] | None,
    model: ModelPlugin | None,
) -> Tolerances | None:
    """The tolerances in sections of `space` and the report; default ones if there are none; None without a continuous
    parameter."""
    section = (report or {}).get("tolerances") or {}
    path: Path = ("report", "tolerances")
    entries: dict[str, tuple[Any, Path]] = {}
    for name, entry in space.items():
        if entry is not None and entry.get("tolerance") is not None:
            entries[name] = (entry["tolerance"], ("space", name, "tolerance"))
    for name, value in (section.get("of") or {}).items():
        entry_path: Path = (*path, "of", name)
        if name not in space:
            ctx.add(entry_path, f"'{name}' is not in space{nearest_or_all(name, space)}", key="")
        elif name in entries:
            ctx.add(entry_path, f"'{name}' has a tolerance in space already", key="")
        elif value is not None:
            entries[name] = (value, entry_path)
    inputs = (model.inputs if model else None) or {}
    parameter_of = {p.name: p for p in parameters}
    valid = []
    for name, (value, entry_path) in entries.items():
        if name in parameter_of:
            tolerance = _tolerance(ctx, value, parameter_of[name], inputs.get(name), entry_path)
            valid += [] if tolerance is None else [tolerance]
    if not entries:
        valid = [_default_tolerance(p, inputs.get(p.name)) for p in parameters if p.kind == "real"]
    return Tolerances(tuple(valid), section.get("neighbours"), section.get("front"), not entries) if valid else None


def _tolerance(ctx: Context, value: Any, p: DesignVariable, field: Field | None, path: Path) -> Tolerance | None:
    """The tolerance at `path`, in the study's unit."""
    normal = isinstance(value, Mapping)
    amount: Amount | None = value.get("deviation") if normal else value
    if amount is None:
        return None
    if p.kind != "real":
        ctx.add(path, f"only a parameter of type real has a tolerance, this is {p.kind}", key="")
        return None
    relative = amount.unit == "%"
    try:
        scale = 0.01 if relative else units.factor_offset(amount.unit, p.unit)[0] if amount.unit is not None else 1.0
    except UnitError as error:
        ctx.add(path, f"incompatible units: {error}")
        return None
    if relative and _has_other_zero(p):
        ctx.add(
            path,
            f"a share of a value in {p.stated} depends on its zero: give the tolerance as a difference in {p.stated}",
        )
        return None
    if not amount.value > 0.0:
        ctx.add(path, f"must be above 0, not {amount.value:g}")
        return None
    return Tolerance(p.name, scale * amount.value, relative, normal, *_limits(p, field))


def _default_tolerance(p: DesignVariable, field: Field | None) -> Tolerance:
    """A share of the value; of the largest one if the range contains 0, or its zero is not that of the model."""
    if _has_other_zero(p):
        low, high = (units.convert(end, p.unit, p.stated) for end in (p.low, p.high))
        size = ASSUMED * max(abs(low), abs(high)) * units.factor_offset(p.stated, p.unit)[0]
        return Tolerance(p.name, size, False, False, *_limits(p, field))
    relative = p.low > 0.0 or p.high < 0.0
    size = ASSUMED * (1.0 if relative else max(abs(p.low), abs(p.high)))
    return Tolerance(p.name, size, relative, False, *_limits(p, field))


def _has_other_zero(p: DesignVariable) -> bool:
    """Whether a parameter is shown in a unit with another zero than that in which it is searched: degC for K."""
    return bool(p.stated) and units.factor_offset(p.stated, p.unit)[1] != 0.0


def _limits(p: DesignVariable, field: Field | None) -> tuple[float | None, float | None]:
    """The range admitted by the model, in the study's unit, ends included."""
    ends = [(end - p.offset) / p.factor for end in model_range(field)]
    low, high = sorted(ends)
    return (None if low == float("-inf") else low), (None if high == float("inf") else high)
