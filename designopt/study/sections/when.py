"""Second pass over `when`: the conditions under which a parameter is active."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from designopt.plugin import ModelPlugin
from designopt.study.language import units
from designopt.study.language.checking.refusals import is_number
from designopt.study.language.findings import Path, nearest, nearest_or_all
from designopt.study.language.units import UnitError
from designopt.study.sections.context import Context
from designopt.study.study import DesignVariable

#: Maximum number of values in a condition.
MOST_ADMITTED = 100

Admitted = tuple[str | float | int | bool, ...]


def conditional(
    ctx: Context, sections: Mapping[str, Any], parameters: Sequence[DesignVariable], model: ModelPlugin | None
) -> list[DesignVariable]:
    """The `parameters` with their conditions; `sections` are those of all parameters, None for an invalid one."""
    parameter_of = {p.name: p for p in parameters}
    inputs = (model.inputs if model else None) or {}
    conditions: dict[str, dict[str, Admitted]] = {}
    for name, section in sections.items():
        if section is None or section.get("when") is None or ctx.full:
            continue
        path: Path = ("space", name, "when")
        if name in inputs and inputs[name].required:
            assert model is not None
            fix = "it cannot be conditional unless its annotation there is NotRequired[...]"
            ctx.add(path, f"model '{model.name}' needs '{name}' in every design; {fix}", key="")
        if not section["when"] and ctx.sound(path):
            ctx.add(path, "names no parameter; leave it out or write {parameter: value}")
        conditions[name] = {
            controller: _admissible(ctx, value, parameter_of.get(controller), controller, sections, (*path, controller))
            for controller, value in section["when"].items()
        }
    _refuse_circles(ctx, conditions)
    return [replace(p, when=conditions[p.name]) if p.name in conditions else p for p in parameters]


def _admissible(
    ctx: Context, value: Any, controller: DesignVariable | None, name: str, sections: Mapping[str, Any], path: Path
) -> Admitted:
    """The values of the parameter `name` under which another one is active, in its own form."""
    if name not in sections:
        ctx.add(path, f"'{name}' is not in space{nearest_or_all(name, sections)}", key="")
    if controller is None:
        return ()
    if controller.kind == "real":
        ctx.add(path, f"'{name}' is a real parameter; a condition needs one of type choice, int or fixed", key="")
        return ()
    is_list = isinstance(value, list)
    values = value if is_list else [value]
    if not values:
        ctx.add(path, "at least one value is needed")
    elif len(values) > MOST_ADMITTED:
        ctx.add(path, f"a condition lists at most {MOST_ADMITTED} values, not {len(values)}")
        return ()
    choices: list[Any] = []
    for position, item in enumerate(values):
        value_path: Path = (*path, position) if is_list else path
        if item is None:
            continue
        before = len(ctx.findings)
        admitted_value = activating_value(ctx, item, controller, value_path)
        if admitted_value is None:
            if len(ctx.findings) == before:
                ctx.add(value_path, f"'{name}' cannot be {_word(item)}{alternatives_text(item, controller)}")
        elif any(admitted_value is earlier_value for earlier_value in choices):
            ctx.add(value_path, f"value {_word(item)} is given twice")
        else:
            choices.append(admitted_value)
    return tuple(choices)


def activating_value(ctx: Context, item: Any, controller: DesignVariable, path: Path) -> Any:
    """The value of `controller` for `item`; None if there is none."""
    number: Any = item
    numeric = controller.kind == "int" or any(is_number(v) for v in controller.values)
    if isinstance(item, str) and numeric and item not in controller.values:
        try:
            amount = units.parse_amount(item)
        except UnitError:
            return None  # a word
        number = ctx.in_unit(amount, controller.unit, path)
        if number is None:
            return None
    if controller.kind == "int":
        if not is_number(number) or number != round(number) or not controller.low <= number <= controller.high:
            return None
        return int(number)
    alike = (v for v in controller.values if v == number and isinstance(v, bool) == isinstance(number, bool))
    return next(alike, None)


def alternatives_text(item: Any, controller: DesignVariable) -> str:
    """The admissible alternatives."""
    if controller.kind == "int":
        return f"; it is an integer from {controller.low:g} to {controller.high:g}"
    if controller.kind == "fixed":
        return f"; it is fixed at {_word(controller.values[0])}"
    words = [_word(v) for v in controller.values]
    return nearest(_word(item), words) or f" (known: {', '.join(words[:20])})"


def _refuse_circles(ctx: Context, conditions: Mapping[str, Mapping[str, Admitted]]) -> None:
    """Reject circular conditions; one finding for each circle."""
    finished_names: set[str] = set()
    for start in conditions:
        trail: list[str] = []
        stack = [(start, iter(conditions[start]))] if start not in finished_names else []
        while stack:
            name, others_of_name = stack[-1]
            if len(trail) < len(stack):
                trail.append(name)
            following = next(others_of_name, None)
            if following is None:
                finished_names.add(name)
                stack.pop()
                trail.pop()
            elif following in trail:
                circle = [*trail[trail.index(following) :], following]
                first = min(circle, key=list(conditions).index)
                turn = circle.index(first)
                cycle_names = [*circle[turn:-1], *circle[:turn], first]
                ctx.add(("space", first, "when"), f"circular conditions: {' -> '.join(cycle_names[:20])}", key="")
                finished_names.update(circle)
            elif following in conditions and following not in finished_names:
                stack.append((following, iter(conditions[following])))


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)[:40]
