"""Rules that select designs of the front: ``report.choose``, its types and its second pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypedDict, get_args

from pydantic import WrapValidator

from designopt.plugin import Quantity
from designopt.study.language.checking.refusals import value_error, wrong_kind
from designopt.study.language.checking.words import JsonKeywords
from designopt.study.language.findings import Path, nearest
from designopt.study.language.units import Amount
from designopt.study.sections.context import Context
from designopt.study.sections.goals import Goals
from designopt.study.study import Choice

#: Maximum number of rules of a study: each one is a design in tables and plots.
MOST_RULES = 100

Method = Literal["knee", "utopia", "topsis", "nearest_to", "weighted_tchebycheff", "epsilon_constraint", "robust"]


_Weight = Annotated[float, Quantity("", "weight", ge=0.0)]


class KneeSection(TypedDict):
    """The knee has no settings."""


class UtopiaSection(TypedDict, total=False):
    """The design nearest to the best of every objective."""

    norm: Annotated[Literal["l1", "l2", "chebyshev"], Quantity("", "default l2")]
    weights: dict[str, _Weight]


class TopsisSection(TypedDict, total=False):
    """The design nearest to the best and farthest from the worst values."""

    norm: Annotated[Literal["vector", "minmax"], Quantity("", "default vector")]
    weights: dict[str, _Weight]


class TchebycheffSection(TypedDict, total=False):
    """The design with the smallest maximum weighted deviation from a reference point."""

    weights: dict[str, _Weight]
    reference: dict[str, Amount]


class EpsilonSection(TypedDict):
    """The best design in one objective within limits on the others."""

    of: str
    within: dict[str, Amount]


class RobustSection(TypedDict):
    """Robustness has no settings: the tolerances are those of the parameters."""


class RuleSection(TypedDict, total=False):
    """A rule with its settings."""

    knee: KneeSection
    utopia: UtopiaSection
    topsis: TopsisSection
    nearest_to: dict[str, Amount]
    weighted_tchebycheff: TchebycheffSection
    epsilon_constraint: EpsilonSection
    robust: RobustSection


_NORM = {"utopia": "l2", "topsis": "vector"}


def _rule(value: Any, handler: Any) -> tuple[str, Mapping[str, Any]]:
    alone = isinstance(value, str)
    if not alone and not isinstance(value, Mapping):
        raise wrong_kind("a rule such as knee or {topsis: {norm: vector}}", value)
    if not alone and len(value) != 1:
        raise value_error(f"one rule is expected here, not {len(value)}; write each as an item of the list")
    method, settings = (value, {}) if alone else next(iter(value.items()))
    if method not in get_args(Method):
        message = f"'{method[:40]}' is not one of {', '.join(get_args(Method))}{nearest(method, get_args(Method))}"
        raise value_error(message, key=None if alone else method)
    if alone and method == "nearest_to":
        raise value_error("give the values to approach: {nearest_to: {objective: value}}")
    if alone and method == "epsilon_constraint":
        raise value_error("give the limits: {epsilon_constraint: {of: objective, within: {objective: value}}}")
    return method, handler({method: settings})[method]


#: A rule that selects a design of the front: its name, or with settings as in ``{topsis: {norm: vector}}``.
Rule = Annotated[
    Literal["knee", "utopia", "topsis", "weighted_tchebycheff", "robust"]
    | Annotated[RuleSection, JsonKeywords(minProperties=1, maxProperties=1)],
    WrapValidator(_rule),
]


def choices(ctx: Context, rules: list[tuple[Method, Any] | None], goals: Goals, path: Path) -> list[Choice]:
    """The rules at `path`, with values in the objectives' units."""
    choices_so_far: list[Choice] = []
    if len(rules) > MOST_RULES:
        ctx.add(path, f"at most {MOST_RULES} rules are allowed, not {len(rules)}")
        return []
    for position, rule in enumerate(rules):
        rule_path: Path = (*path, position)
        if rule is None:
            continue
        method, settings = rule
        if goals.single and method != "robust":
            ctx.add(rule_path, f"'{method}' chooses from a front, which needs two or more objectives")
            continue
        choice = _choice(ctx, method, settings or {}, goals, (*rule_path, method))
        if not ctx.sound(rule_path):
            continue
        if choice in choices_so_far:
            ctx.add(rule_path, "this rule is given twice")
        choices_so_far.append(choice)
    return choices_so_far


def _choice(ctx: Context, method: Method, settings: Mapping[str, Any], goals: Goals, path: Path) -> Choice:
    if method == "nearest_to":
        if not settings and ctx.sound(path):
            ctx.add(path, "at least one objective is needed")
        return Choice(method, target=goals.amounts(ctx, settings, path, every=False))
    if method == "epsilon_constraint":
        goals.check_name(ctx, settings["of"], (*path, "of"))
        limits = goals.amounts(ctx, settings["within"], (*path, "within"), every=False)
        if not settings["within"] and ctx.sound(path):
            ctx.add((*path, "within"), "at least one limit is needed")
        elif settings["of"] in settings["within"]:
            ctx.add((*path, "within"), f"'{settings['of']}' is the objective to optimise; limit the others")
        return Choice(method, target=limits, objective=settings["of"])
    weights = dict(settings.get("weights") or {})
    for name in weights:
        goals.check_name(ctx, name, (*path, "weights", name))
    is_complete = goals.complete and goals.units and ctx.sound((*path, "weights"))
    if is_complete and not sum(weights.get(name, 1.0) for name in goals.units) > 0.0:
        ctx.add((*path, "weights"), "at least one weight must be above 0")
    if method == "weighted_tchebycheff":
        reference = goals.amounts(ctx, settings.get("reference") or {}, (*path, "reference"), every=False)
        return Choice(method, weights=weights, target=reference)
    return Choice(method, weights=weights, norm=settings.get("norm", _NORM.get(method, "")))


assert set(RuleSection.__annotations__) == set(get_args(Method))
