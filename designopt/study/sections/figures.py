"""Second pass over `figures`, `objectives` and `constraints`: names, units, limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from designopt.plugin import AggregationPlugin, ModelPlugin, ObjectivePlugin, Use
from designopt.study.language import units
from designopt.study.language.checking.part import Part
from designopt.study.language.expressions.expression import Expression
from designopt.study.language.expressions.grammar import ExpressionError
from designopt.study.language.findings import Path, nearest_or_all
from designopt.study.language.units import UnitError
from designopt.study.sections.context import Context, unit_of
from designopt.study.sections.contradictions import Placed, contradictions
from designopt.study.study import Objective, StudyConstraint


@dataclass
class Namespace:
    """The possible meanings of a name in an expression: an output of the model, a figure, an installed objective.

    `units` contains the unit of every name resolved so far (None: no unit); `open` is a model with undeclared outputs,
    so that any name may be one. `invalid_names` are invalid figures, reported elsewhere; `complete` is false if there
    are others with unknown names.
    """

    model: ModelPlugin | None
    units: dict[str, str | None] = field(default_factory=dict)
    figures: dict[str, Use[ObjectivePlugin]] = field(default_factory=dict)
    invalid_names: set[str] = field(default_factory=set)
    parameters: frozenset[str] = frozenset()
    open: bool = False
    complete: bool = True


def namespace(
    ctx: Context, sections: Mapping[str, Part | None] | None, model: ModelPlugin | None, parameters: Iterable[str]
) -> Namespace:
    """The names of the model's outputs and of the study's `figures` (None: invalid); `parameters` are in `space`."""
    complete = sections is not None
    space = Namespace(
        model, parameters=frozenset(parameters), open=model is None or not model.outputs, complete=complete
    )
    if model:
        space.units.update({name: unit_of(item) for name, item in model.outputs.items()})
    for name, part in (sections or {}).items():
        path: Path = ("figures", name)
        if not name.isidentifier():
            ctx.add(path, "the name of a figure has only letters, digits and underscores", key="")
            part = None
        elif model and name in model.outputs:
            ctx.add(path, f"model '{model.name}' has an output '{name}'; give the figure another name", key="")
            continue
        use = ctx.use(ObjectivePlugin, part, path)
        if use is None or not _has_needs(ctx, use.plugin, model, path, None):
            space.invalid_names.add(name)
            continue
        space.figures[name] = use
        space.units[name] = use.plugin.unit
    return space


def _has_needs(
    ctx: Context, plugin: ObjectivePlugin, model: ModelPlugin | None, path: Path, part: tuple[int, int] | None
) -> bool:
    """Whether the model has the outputs that the objective `plugin` needs."""
    if model is None or (not model.outputs and not model.arrays):
        return True
    available = {**model.outputs, **model.arrays}
    lacking = [name for name in plugin.needs if name not in available]
    if lacking:
        words = ", ".join(f"'{name}'" for name in lacking)
        message = f"objective '{plugin.name}' needs {words}, which model '{model.name}' does not return"
        ctx.add(path, message, part=part, at=None if part else "use")
    return not lacking


def _defines_all(ctx: Context, namespace: Namespace, expression: Expression, path: Path) -> bool:
    """Whether every name is defined; adds objective plugins used by their own name to the figures."""
    good = True
    for name, at, length in expression.uses():
        part = (at, length)
        if namespace.model and name in namespace.model.outputs:
            explicit = any(use.plugin.name == name for use in namespace.figures.values())
            if name in ctx.objective_names and not explicit:
                message = (
                    f"'{name}' is an output of model '{namespace.model.name}' and also an installed objective; "
                    f"give the objective another name under 'figures', then '{name}' is the output"
                )
                ctx.add(path, message, part=part)
                good = False
        elif name in namespace.figures:
            continue
        elif name in namespace.invalid_names or (not namespace.complete and name not in ctx.objective_names):
            good = False
        elif name in ctx.objective_names:
            good = _adopt(ctx, namespace, name, path, part) and good
        elif namespace.open:
            namespace.units.setdefault(name, None)
            good = good and namespace.model is not None
        else:
            ctx.add(path, _unknown(ctx, namespace, name), part=part)
            good = False
    return good


def _adopt(ctx: Context, namespace: Namespace, name: str, path: Path, part: tuple[int, int]) -> bool:
    before = len(ctx.findings)
    use = ctx.use(ObjectivePlugin, Part(name, {}, bare=True), path)
    for finding in ctx.findings[before:]:
        ctx.findings.remove(finding)
        ctx.add(path, f"objective '{name}': {finding.message}", part=part)
    if use is None or not _has_needs(ctx, use.plugin, namespace.model, path, part):
        namespace.invalid_names.add(name)
        return False
    namespace.figures[name] = use
    namespace.units[name] = use.plugin.unit
    return True


def _unknown(ctx: Context, namespace: Namespace, name: str) -> str:
    assert namespace.model is not None
    if name in namespace.parameters:
        way = (
            "let the model return it as an output (use: program: write it by a template into a file, and read it there)"
        )
        return f"'{name}' is a parameter; expressions here are made of outputs of the model and figures: {way}"
    candidates = [*namespace.units, *(n for n in ctx.objective_names if n not in namespace.units)]
    hint = nearest_or_all(name, candidates)
    return f"model '{namespace.model.name}' has no output '{name}' and there is no figure of this name{hint}"


def _expression(
    ctx: Context, namespace: Namespace, text: str | None, unit: str | None, path: Path, unit_path: Path
) -> tuple[Expression, str] | None:
    """The expression of a figure in the study's `unit` (its own for None), and that unit."""
    expression = ctx.formula(text, path)
    if expression is None:
        return None
    if expression.is_relation:
        ctx.add(path, "a comparison is not allowed here; put the limit under 'constraints' with min, max or equals")
        return None
    if not expression.names:
        ctx.add(path, "this is a constant: an output of the model or a figure is needed")
        return None
    if not _defines_all(ctx, namespace, expression, path):
        return None
    bound = ctx.bound(expression, namespace.units, path)
    if bound is None:
        return None
    bare, natural_unit = bound
    if unit is None or natural_unit is None or unit == natural_unit:
        return bare, natural_unit or unit or ""
    try:
        return bare.in_unit(natural_unit, unit), unit
    except UnitError as error:
        ctx.add(unit_path, f"incompatible units: {error}")
    except ExpressionError as error:
        ctx.add(unit_path, error.message)
    return None


def _unit(ctx: Context, section: Mapping[str, Any], path: Path) -> str | None:
    """The given unit; None for none or an unknown one."""
    unit: str | None = section.get("unit")
    try:
        units.check(unit or "")
    except UnitError as error:
        ctx.add((*path, "unit"), str(error))
        return None
    return "" if unit == "1" else unit


def _aggregation(ctx: Context, section: Mapping[str, Any], path: Path, scenarios: int) -> Use[AggregationPlugin] | None:
    if "over" not in section:
        return ctx.use(AggregationPlugin, Part("worst" if scenarios > 1 else "nominal", {}, bare=True), path)
    return ctx.use(AggregationPlugin, section["over"], (*path, "over"))


def objectives(ctx: Context, sections: list[Any], namespace: Namespace, scenarios: int) -> list[Objective]:
    """The objectives from the valid sections."""
    valid: list[Objective] = []
    names: set[str] = set()
    for position, section in enumerate(sections):
        path: Path = ("objectives", position)
        if section is None or ctx.full:
            continue
        _unique(ctx, section["name"], names, path, "objective")
        over = _aggregation(ctx, section, path, scenarios)
        directions = [key for key in ("minimize", "maximize") if key in section]
        if len(directions) != 1:
            if directions:
                ctx.add(path, "give 'minimize' or 'maximize', not both", key="maximize")
            elif not ctx.unknown_key(path):
                ctx.add(path, "'minimize' or 'maximize' is missing")
            continue
        direction = directions[0]
        unit = _unit(ctx, section, path)
        figure = _expression(ctx, namespace, section[direction], unit, (*path, direction), (*path, "unit"))
        if figure and over and ctx.sound(path):
            expression, unit = figure
            valid.append(
                Objective(
                    section["name"],
                    expression,
                    "minimize" if direction == "minimize" else "maximize",
                    over,
                    unit,
                )
            )
    return valid


def constraints(ctx: Context, sections: list[Any], namespace: Namespace, scenarios: int) -> list[StudyConstraint]:
    """The constraints from the valid sections."""
    placed_constraints: list[Placed] = []
    names: set[str] = set()
    for position, section in enumerate(sections):
        path: Path = ("constraints", position)
        if section is None or ctx.full:
            continue
        _unique(ctx, section["name"], names, path, "constraint")
        over = _aggregation(ctx, section, path, scenarios)
        consistent = _stated_limits(ctx, section, path)
        stated_unit = _unit(ctx, section, path)
        figure = _expression(ctx, namespace, section["of"], stated_unit, (*path, "of"), (*path, "unit"))
        if figure is None:
            continue
        expression, unit = figure
        limits = {
            key: ctx.in_unit(section[key], unit, (*path, key)) for key in ("min", "max", "equals") if key in section
        }
        if not consistent or over is None or not ctx.sound(path):
            continue
        low, high, equals = limits.get("min"), limits.get("max"), limits.get("equals")
        if low is not None and high is not None and low > high:
            name, unit_suffix = section["name"], _space(unit)
            ctx.add(path, f"'{name}': min ({low:g}{unit_suffix}) must not be above max ({high:g}{unit_suffix})")
            continue
        _reachable(ctx, namespace, expression, limits, path)
        unit_in_study = stated_unit or next((section[key].unit for key in limits if section[key].unit), "")
        placed_constraints.append(
            (StudyConstraint(section["name"], expression, over, low, high, equals, unit, unit_in_study), path)
        )
    contradictions(ctx, placed_constraints, scenarios)
    return [constraint for constraint, _ in placed_constraints]


def _stated_limits(ctx: Context, section: Mapping[str, Any], path: Path) -> bool:
    limits = [key for key in ("min", "max", "equals") if key in section]
    if not limits:
        if not ctx.unknown_key(path):
            ctx.add(path, "'min', 'max' or 'equals' is missing")
    elif "equals" in limits and len(limits) > 1:
        ctx.add(path, "'equals' cannot be combined with 'min' or 'max'", key="equals")
    else:
        return True
    return False


def _reachable(
    ctx: Context, namespace: Namespace, expression: Expression, limits: Mapping[str, float | None], path: Path
) -> None:
    """Reject a limit outside the declared range of its output, which can never be met."""
    item = namespace.model.outputs.get(str(expression)) if namespace.model else None
    if item is None or item.quantity is None:
        return
    q = item.quantity
    floor = max((b for b in (q.gt, q.ge) if b is not None), default=None)
    ceiling = min((b for b in (q.lt, q.le) if b is not None), default=None)
    for key, limit in limits.items():
        assert limit is not None
        if floor is not None and key in ("max", "equals") and (limit < floor or (limit == floor and q.gt == floor)):
            ctx.add((*path, key), f"can never hold: '{expression}' is never below {floor:g}{_space(q.unit)}")
        if ceiling is not None and key in ("min", "equals") and (limit > ceiling or (limit == ceiling == q.lt)):
            ctx.add((*path, key), f"can never hold: '{expression}' is never above {ceiling:g}{_space(q.unit)}")


def _space(unit: str) -> str:
    return f" {unit}" if unit else ""


def _unique(ctx: Context, name: str | None, earlier_names: set[str], path: Path, kind: str) -> None:
    if name is None:
        return
    if name in earlier_names:
        ctx.add((*path, "name"), f"there is another {kind} named '{name}'")
    earlier_names.add(name)
