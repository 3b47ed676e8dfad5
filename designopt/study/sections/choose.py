"""Rules that pick designs of the front: ``report.choose``, its types and its second pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypedDict, get_args

from pydantic import PlainValidator, WithJsonSchema

from designopt.plugin import Quantity
from designopt.study.language.checking.refusals import refused, several, wrong_kind
from designopt.study.language.checking.values import check, known_checker
from designopt.study.language.findings import Path, nearest_or_all
from designopt.study.language.units import Amount
from designopt.study.sections.context import Context
from designopt.study.sections.goals import Goals
from designopt.study.study import Choice

#: Rules of a study: each one is a design in tables and plots.
MOST_RULES = 100

Method = Literal["knee", "utopia", "topsis", "nearest_to", "weighted_tchebycheff", "epsilon_constraint", "robust"]


_Weight = Annotated[float, Quantity("", "weight", ge=0.0)]


class KneeSection(TypedDict):
    """The knee has no settings."""


class UtopiaSection(TypedDict, total=False):
    """The design nearest to the best of every objective."""

    norm: Literal["l1", "l2", "chebyshev"]
    weights: dict[str, _Weight]


class TopsisSection(TypedDict, total=False):
    """Nearest to the best and farthest from the worst."""

    norm: Literal["vector", "minmax"]
    weights: dict[str, _Weight]


class TchebycheffSection(TypedDict, total=False):
    """Smallest weighted deviation from a reference point in the worst objective."""

    weights: dict[str, _Weight]
    reference: dict[str, Amount]


class EpsilonSection(TypedDict):
    """The best of one objective among designs that keep limits on others."""

    of: str
    within: dict[str, Amount]


class RobustSection(TypedDict):
    """Robustness has no settings: the tolerances are those of the parameters."""


_SETTINGS: dict[str, Any] = {
    "knee": KneeSection,
    "utopia": UtopiaSection,
    "topsis": TopsisSection,
    "nearest_to": dict[str, Amount],
    "weighted_tchebycheff": TchebycheffSection,
    "epsilon_constraint": EpsilonSection,
    "robust": RobustSection,
}
_NORM = {"utopia": "l2", "topsis": "vector"}


def _rule(value: Any, info: Any) -> tuple[str, Mapping[str, Any]]:
    alone = isinstance(value, str)
    if not alone and not isinstance(value, Mapping):
        raise wrong_kind("a rule such as knee or {topsis: {norm: vector}}", value)
    if not alone and len(value) != 1:
        raise refused(f"one rule is needed here, these are {len(value)}; write each as a member of the list")
    method, settings = (value, {}) if alone else next(iter(value.items()))
    if method not in _SETTINGS:
        message = f"'{method[:40]}' is not one of {', '.join(_SETTINGS)}{nearest_or_none(method)}"
        raise refused(message, key=None if alone else method)
    if alone and method == "nearest_to":
        raise refused("write the values to be near to: {nearest_to: {objective: value}}")
    if alone and method == "epsilon_constraint":
        raise refused("write what is limited: {epsilon_constraint: {of: objective, within: {objective: value}}}")
    checked, findings = check(known_checker(_SETTINGS[method]), settings, info.context["read"])
    if findings and not info.context.get("lenient"):
        raise several([finding.below((method,)) for finding in findings])
    return method, checked


def nearest_or_none(word: str) -> str:
    """The rule that was meant, if one is near."""
    hint = nearest_or_all(word, _SETTINGS)
    return hint if hint.startswith(";") else ""


_WEIGHTS = {"type": "object", "additionalProperties": {"type": "number", "minimum": 0}}
_AMOUNTS = {"type": "object", "additionalProperties": {"type": ["number", "string"]}}
_JSON_SCHEMA = {
    "anyOf": [
        {"enum": ["knee", "utopia", "topsis", "weighted_tchebycheff", "robust"]},
        {
            "type": "object",
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": False,
            "properties": {
                "knee": {"type": "object", "additionalProperties": False},
                "robust": {"type": "object", "additionalProperties": False},
                "utopia": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {"norm": {"enum": ["l1", "l2", "chebyshev"], "default": "l2"}, "weights": _WEIGHTS},
                },
                "topsis": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {
                        "norm": {"enum": ["vector", "minmax"], "default": "vector"},
                        "weights": _WEIGHTS,
                    },
                },
                "nearest_to": _AMOUNTS,
                "weighted_tchebycheff": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {"weights": _WEIGHTS, "reference": _AMOUNTS},
                },
                "epsilon_constraint": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["of", "within"],
                    "properties": {"of": {"type": "string"}, "within": _AMOUNTS},
                },
            },
        },
    ]
}
#: A rule that picks a design of the front: its name and its settings.
Rule = Annotated[tuple[str, Mapping[str, Any]], PlainValidator(_rule), WithJsonSchema(_JSON_SCHEMA)]


def choices(ctx: Context, rules: list[tuple[Method, Any] | None], goals: Goals, path: Path) -> list[Choice]:
    """The rules at `path`, with values in the objectives' units."""
    made: list[Choice] = []
    if len(rules) > MOST_RULES:
        ctx.add(path, f"at most {MOST_RULES} rules are possible, there are {len(rules)}")
        return []
    for position, rule in enumerate(rules):
        here: Path = (*path, position)
        if rule is None:
            continue
        method, settings = rule
        if goals.single and method != "robust":
            ctx.add(here, f"'{method}' chooses from a front, which needs two or more objectives")
            continue
        choice = _choice(ctx, method, settings or {}, goals, (*here, method))
        if not ctx.sound(here):
            continue
        if choice in made:
            ctx.add(here, "this rule is given twice")
        made.append(choice)
    return made


def _choice(ctx: Context, method: Method, settings: Mapping[str, Any], goals: Goals, path: Path) -> Choice:
    if method == "nearest_to":
        if not settings and ctx.sound(path):
            ctx.add(path, "at least one objective is needed")
        return Choice(method, target=goals.amounts(ctx, settings, path, every=False))
    if method == "epsilon_constraint":
        goals.known(ctx, settings["of"], (*path, "of"))
        limits = goals.amounts(ctx, settings["within"], (*path, "within"), every=False)
        if not settings["within"] and ctx.sound(path):
            ctx.add((*path, "within"), "at least one limit is needed")
        elif settings["of"] in settings["within"]:
            ctx.add((*path, "within"), f"'{settings['of']}' is what is made best; limit the others")
        return Choice(method, target=limits, objective=settings["of"])
    weights = dict(settings.get("weights") or {})
    for name in weights:
        goals.known(ctx, name, (*path, "weights", name))
    judged = goals.complete and goals.units and ctx.sound((*path, "weights"))
    if judged and not sum(weights.get(name, 1.0) for name in goals.units) > 0.0:
        ctx.add((*path, "weights"), "at least one weight must be above 0")
    if method == "weighted_tchebycheff":
        reference = goals.amounts(ctx, settings.get("reference") or {}, (*path, "reference"), every=False)
        return Choice(method, weights=weights, target=reference)
    return Choice(method, weights=weights, norm=settings.get("norm", _NORM.get(method, "")))


assert set(_SETTINGS) == set(get_args(Method))
