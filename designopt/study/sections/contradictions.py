"""Contradictory limits of different constraints on one expression."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from designopt.study.language import units
from designopt.study.language.findings import Path
from designopt.study.sections.context import Context
from designopt.study.study import StudyConstraint

#: A constraint and the path of its section.
Placed = tuple[StudyConstraint, Path]

#: Aggregations whose value towards the large end is never below that towards the small end.
_ORDERED = ("worst", "nominal", "mean", "cvar", "mean_plus_deviation")
#: Relative tolerance of an equality.
_EQUAL = 1e-6


class _End(NamedTuple):
    """One limit of a constraint: its value in the unit of the expression's first constraint, the position and path of
    its number, and a clause for messages."""

    value: float
    position: int
    path: Path
    clause: str
    name: str


def contradictions(ctx: Context, placed_constraints: Sequence[Placed], scenarios: int) -> None:
    """Add a finding for contradictory constraints on the same expression with the same aggregation: at the later one,
    with the position of the other."""
    alike: dict[tuple[str, str], list[Placed]] = defaultdict(list)
    for c, path in placed_constraints:
        if scenarios == 1 or c.over.plugin.name in _ORDERED:
            expression = ctx.formula(c.expression.text, path)
            alike[str(expression), "" if scenarios == 1 else _aggregation(c)].append((c, path))
    for group in alike.values():
        unit = group[0][0].unit
        low = max(_ends(group, "min", unit), key=lambda end: end.value, default=None)
        high = min(_ends(group, "max", unit), key=lambda end: end.value, default=None)
        if low is None or high is None or low.value - high.value <= _EQUAL * abs(high.value):
            continue
        first, later = sorted((low, high), key=lambda end: end.position)
        figure = group[0][0].expression.text
        message = (
            f"no design satisfies both: '{figure}' must be {later.clause} here and {first.clause} in '{first.name}'"
        )
        ctx.add(later.path, message, contradiction=first.path)


def _aggregation(c: StudyConstraint) -> str:
    """The aggregation with all settings, including defaults."""
    defaults = {name: item.default for name, item in c.over.plugin.settings.items()}
    return f"{c.over.plugin.name} {sorted({**defaults, **c.over.settings}.items())}"


def _ends(constraints: Sequence[Placed], side: str, unit: str) -> Iterator[_End]:
    """The lower (`min`) or upper (`max`) ends of the constraints; an equality has both."""
    for position, (c, path) in enumerate(constraints):
        key = side if c.equals is None else "equals"
        value = {"min": c.minimum, "max": c.maximum, "equals": c.equals}[key]
        if value is not None:
            words = {"min": "at least", "max": "at most", "equals": "equal to"}[key]
            clause = f"{words} {units.convert(value, c.unit, c.stated or c.unit):g} {c.stated or c.unit}".rstrip()
            yield _End(units.convert(value, c.unit, unit), position, (*path, key), clause, c.name)
