"""Differences between two studies, in clauses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

from designopt.canonical_form import plain
from designopt.plugin import InputFile, Plugin, Use
from designopt.printable import one_line
from designopt.report.labels import listed, number
from designopt.report.parts.answer.problem import limit_text, range_text, short_text, value_text
from designopt.store.result import Result
from designopt.store.views.table import stated_constraints
from designopt.study.language.checking.refusals import is_number
from designopt.study.stated_units import in_stated_units
from designopt.study.study import DesignVariable, Objective, StudyConstraint, StudyDefinition

#: Maximum number of listed differences of one kind, and of letters of a line of a file.
MOST, LINE = 40, 60


def differences(a: StudyDefinition, b: StudyDefinition) -> list[str]:
    """Clauses about the differences of `b` from `a`: model, space, scenarios, objectives, limits, stages, seed."""
    clauses = [*_use("model", a.model, b.model), *_space(a, b), *_scenarios(a, b), *_figures(a, b)]
    clauses += [*_objectives_and_limits(a, b), *_stages(a, b)]
    if a.seed != b.seed:
        clauses.append(f"seed {b.seed} instead of {a.seed}")
    relations = [{str(r.text) for r in s.relations} for s in (a, b)]
    clauses += [f"without the relation {r}" for r in sorted(relations[0] - relations[1])]
    clauses += [f"with the relation {r}" for r in sorted(relations[1] - relations[0])]
    if not clauses and a.evaluation_options != b.evaluation_options:  # of a store from before evaluations shared them
        clauses = [f"evaluations with the mesh of the solver ({_settings_text(b)}), not with {_settings_text(a)}"]
    return clauses[:MOST] + ([f"and {len(clauses) - MOST} more differences"] if len(clauses) > MOST else [])


def other_question(a: Result, b: Result) -> bool:
    """Whether two stores differ in more than the way of the search."""
    of_search = ("stage ", "seed ")
    return any(not clause.startswith(of_search) for clause in differences(a.study, b.study))


def _use(role: str, a: Use[Plugin], b: Use[Plugin]) -> Iterator[str]:
    """Plugin, version and settings; an omitted setting equals its default."""
    if a.plugin.name != b.plugin.name:
        yield f"{role} {b.plugin.name} instead of {a.plugin.name}"
        return
    if a.plugin.version != b.plugin.version:
        yield f"{role} {b.plugin.name} in version {b.plugin.version} instead of {a.plugin.version}"
    new_settings, old_settings = b.all_settings, a.all_settings
    for name in [*old_settings, *(n for n in new_settings if n not in old_settings)]:
        new, old = new_settings.get(name), old_settings.get(name)
        if plain(new) == plain(old):
            continue
        files = [file_difference(f, g) for f, g in zip(_files(old), _files(new), strict=False) if f != g]
        field = b.plugin.settings.get(name)
        unit = field.quantity.unit if field is not None and field.quantity is not None else ""
        texts = _with_unit(new, unit), _with_unit(old, unit)
        if files and value_text(new) == value_text(old):
            yield f"{role} with another content of {listed(files)}"
        elif texts[0] != texts[1]:
            yield f"{role} with {name} {' instead of '.join(texts)}"
        else:
            yield f"{role} with other {name}"


def _with_unit(value: Any, unit: str) -> str:
    return f"{_as_text(value)} {unit}" if is_number(value) and unit else _as_text(value)


def _files(value: Any) -> list[InputFile]:
    """The files in a setting, in their order."""
    if isinstance(value, InputFile):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    return [file for entry in value for file in _files(entry)] if isinstance(value, (list, tuple)) else []


def file_difference(old: InputFile, new: InputFile) -> str:
    """``beam.inp (line 3: '2, 5' instead of '2, 4')``: the first line that differs; the name alone of a file that is
    not text, or not available."""
    try:
        lines, earlier = new.text().splitlines(), old.text().splitlines()
    except (OSError, UnicodeDecodeError):
        return new.name
    for k, (line, was) in enumerate(zip_longest(lines, earlier, fillvalue=""), 1):
        if line != was:
            return (
                f"{new.name} (line {k}: '{one_line(line.strip())[:LINE]}' instead of '{one_line(was.strip())[:LINE]}')"
            )
    return new.name


def _settings_text(study: StudyDefinition) -> str:
    return ", ".join(f"{n} {value_text(v)}" for n, v in study.evaluation_options.items()) or "the default mesh"


def _as_text(value: Any) -> str:
    """A setting; a file with the beginning of its digest, because the name may be the same."""
    return f"{value.name} ({value.digest[:8]})" if isinstance(value, InputFile) else short_text(value)


def _space(a: StudyDefinition, b: StudyDefinition) -> Iterator[str]:
    old, new = ({p.name: p for p in s.space} for s in (a, b))
    old_range, new_range = ({p.name: range_of(p) for p in in_stated_units(s).space} for s in (a, b))
    for name, p in new.items():
        if name not in old:
            yield f"parameter {name} ({new_range[name]}) added"
        elif p != old[name]:
            yield f"{name} {new_range[name]} instead of {old_range[name]}"
    for name in old:
        if name not in new:
            yield f"parameter {name} left out"


def range_of(p: DesignVariable) -> str:
    scale = " on a log scale" if p.kind == "real" and p.scale == "log" else ""
    when = " when " + " and ".join(f"{n} is {' or '.join(map(number, v))}" for n, v in p.when.items()) if p.when else ""
    return f"{range_text(p)} {p.unit}".rstrip() + scale + when


def _scenarios(a: StudyDefinition, b: StudyDefinition) -> Iterator[str]:
    old, new = ({s.name: dict(s.values) for s in study.scenarios} for study in (a, b))
    if old == new:
        return
    additions, removals = [n for n in new if n not in old], [n for n in old if n not in new]
    changes = [n for n in new if n in old and new[n] != old[n]]
    if len(additions) + len(removals) + len(changes) > 8:
        yield f"other scenarios ({len(new)} instead of {len(old)})"
        return
    if additions:
        yield f"scenario {listed(additions)} added"
    if removals:
        yield f"scenario {listed(removals)} left out"
    for name in changes:
        for key in sorted(new[name].keys() | old[name].keys()):
            was, new_value = old[name].get(key), new[name].get(key)
            if plain(was) != plain(new_value):
                yield f"{key} {_as_text(new_value)} instead of {_as_text(was)} in scenario {name}"


def _objectives_and_limits(a: StudyDefinition, b: StudyDefinition) -> Iterator[str]:
    limits = stated_constraints(a), stated_constraints(b)
    in_scenarios = len(a.scenarios) > 1 or len(b.scenarios) > 1
    for kind, olds, news in (("objective", a.objectives, b.objectives), ("limit", *limits)):
        old: Mapping[str, Any] = {item.name: item for item in olds}
        new: Mapping[str, Any] = {item.name: item for item in news}
        for name, item in new.items():
            if name not in old:
                yield f"{kind} {item.name} ({score_of(item, in_scenarios)}) added"
            elif (score := score_of(item, in_scenarios)) != (old_score := score_of(old[name], in_scenarios)):
                yield f"{kind} {item.name} is {score} instead of {old_score}"
        for name, item in old.items():
            if name not in new:
                yield f"{kind} {item.name} left out"
    if a.missing != b.missing:
        yield f"missing {number(b.missing)} instead of {number(a.missing)}"


def _figures(a: StudyDefinition, b: StudyDefinition) -> Iterator[str]:
    for name, use in b.figures.items():
        if name in a.figures:
            yield from _use(f"figure {name}:", a.figures[name], use)
        else:
            yield f"figure {name} ({use.plugin.name}) added"
    yield from (f"figure {name} left out" for name in a.figures if name not in b.figures)


def score_of(item: Objective | StudyConstraint, in_scenarios: bool) -> str:
    """An objective or a limit with its unit and, where there are several scenarios, its aggregation over them."""
    text = limit_text(item) if isinstance(item, StudyConstraint) else f"{item.direction} {item.expression.text}"
    settings = ", ".join(f"{k}: {value_text(v)}" for k, v in item.over.settings.items())
    over = item.over.plugin.name + (f" ({settings})" if settings else "")
    is_objective = not isinstance(item, StudyConstraint)
    unit = f"in {item.unit}" if item.unit and is_objective else item.unit
    return f"{text} {unit}".rstrip() + (f", over scenarios: {over}" if in_scenarios else "")


def _stages(a: StudyDefinition, b: StudyDefinition) -> Iterator[str]:
    old, new = ({s.name: s for s in study.stages} for study in (a, b))
    for name, stage in new.items():
        if name not in old:
            yield f"stage {name} ({stage.solver.plugin.name}) added"
            continue
        yield from _use(f"stage {name}: solver", old[name].solver, stage.solver)
        for limit, template in (("evaluations", "a budget of {} designs"), ("wall", "a budget of {} s")):
            new_limit, was = getattr(stage.budget, limit), getattr(old[name].budget, limit)
            if new_limit != was:
                text = template.format("any number of" if new_limit is None else number(new_limit))
                yield f"stage {name}: {text} instead of {'any number' if was is None else number(was)}"
    for name in old:
        if name not in new:
            yield f"stage {name} left out"
