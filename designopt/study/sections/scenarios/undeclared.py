"""Conditions of a model that declares none: plain numbers and words, because units could not be converted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from designopt.study.language import units
from designopt.study.language.findings import Path
from designopt.study.sections.context import Context

UNIT = (
    "the model does not declare its conditions, so a unit cannot be converted; write a plain number, or annotate the "
    "model's scenario argument with a TypedDict"
)


def refuse_units(ctx: Context, values: Mapping[str, Any], path: Path) -> None:
    """Add a finding for each condition in `values` at `path` that is a number with a unit: the model would receive the
    text."""
    for name, value in values.items():
        refuse_unit(ctx, value, (*path, name))


def refuse_unit(ctx: Context, value: Any, path: Path) -> None:
    """Add a finding if the value at `path`, or one in its list, is a number with a unit."""
    if isinstance(value, (list, tuple)):
        for position, item in enumerate(value):
            refuse_unit(ctx, item, (*path, position))
        return
    try:
        unit = units.parse_amount(value).unit if isinstance(value, str) else None
    except units.UnitError:
        return  # a word
    if unit:
        ctx.add(path, UNIT)
