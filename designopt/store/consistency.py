"""Names and numbers of the study in a store that refer to each other.

`designopt validate` ensures them; the data of a received store may contain anything.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable

from designopt.study.language import units
from designopt.study.study import Choice, DesignVariable, StudyDefinition, Tolerances

#: Admissible norms of the rules of choice that have one.
NORMS = {"utopia": ("", "l1", "l2", "chebyshev"), "topsis": ("", "vector", "minmax")}
#: Maximum numbers of neighbours within the tolerances: of a chosen design, and of the front.
MOST_NEIGHBOURS, MOST_OF_FRONT = 4096, 10**6


def check_consistent(study: StudyDefinition) -> None:
    """Raise `ValueError` with the place in `study` if a name has no counterpart or a number is out of its range."""
    for i, p in enumerate(study.space):
        if p.stated:
            _check_stated_unit(p, f"study.space.{i}.stated")
    objectives = {o.name for o in study.objectives}
    for i, rule in enumerate(study.choose):
        _check_rule(rule, objectives, f"study.choose.{i}")
    _check_names("study.reference", study.reference, objectives)
    stages: list[str] = []
    for i, stage in enumerate(study.stages):
        origin = stage.start_from
        if stage.name in stages:
            raise ValueError(f"'study.stages.{i}.name' is also the name of an earlier stage")
        if origin is not None and (origin.stage is None) == (origin.store is None):
            raise ValueError(f"'study.stages.{i}.start_from' needs either a stage or a store")
        if origin is not None and origin.stage is not None:
            _check_names(f"study.stages.{i}.start_from.stage", [origin.stage], stages)
        stages.append(stage.name)
    if study.tolerances is not None:
        _check_tolerances(study.tolerances, [p.name for p in study.space])
    for i, quantile in enumerate(study.validate.quantiles if study.validate is not None else ()):
        if not 0.0 <= quantile <= 1.0:
            raise ValueError(f"'study.validate.quantiles.{i}' is {quantile}, not between 0 and 1")


def _check_stated_unit(p: DesignVariable, position: str) -> None:
    try:
        has_same_dimension = units.same_dimension(p.stated, p.unit)
    except units.UnitError as error:
        raise ValueError(f"'{position}': {error}") from error
    if not has_same_dimension:
        raise ValueError(f"'{position}' is '{p.stated}', which does not convert to '{p.unit}'")


def _check_tolerances(tolerances: Tolerances, parameters: Collection[str]) -> None:
    for i, tolerance in enumerate(tolerances.of):
        _check_names(f"study.tolerances.of.{i}.parameter", [tolerance.parameter], parameters)
        if not 0.0 < tolerance.size < math.inf:
            raise ValueError(f"'study.tolerances.of.{i}.size' is {tolerance.size}, not a positive number")
    for name, number, limit in (
        ("neighbours", tolerances.neighbours, MOST_NEIGHBOURS),
        ("front", tolerances.front, MOST_OF_FRONT),
    ):
        if number is not None and not 0 <= number <= limit:
            raise ValueError(f"'study.tolerances.{name}' is {number}, not from 0 to {limit}")


def _check_rule(choice: Choice, objectives: set[str], position: str) -> None:
    if choice.norm not in NORMS.get(choice.method, ("",)):
        raise ValueError(f"'{position}.norm' is '{choice.norm}', which {choice.method} does not have")
    if choice.method == "epsilon_constraint":
        _check_names(f"{position}.objective", [choice.objective], objectives)
    _check_names(f"{position}.weights", choice.weights, objectives)
    _check_names(f"{position}.target", choice.target, objectives)


def _check_names(position: str, names: Iterable[str], study_names: Collection[str]) -> None:
    for name in names:
        if name not in study_names:
            raise ValueError(f"'{position}' names '{name}', which the study does not have")
