"""Stores whose studies differ only in the seed, named by what differs between the groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from designopt.report.comparison.compared_store import ComparedStore
from designopt.report.comparison.differences import differences, range_of, score_of
from designopt.report.labels import number
from designopt.report.parts.answer.problem import value_text
from designopt.store.views.table import stated_constraints
from designopt.study.stated_units import in_stated_units
from designopt.study.study import StudyDefinition


@dataclass(frozen=True)
class RunGroup:
    """Runs of one search with different seeds: `entries`, and `rows`, their numbers among all stores."""

    label: str
    entries: tuple[ComparedStore, ...]
    rows: tuple[int, ...]


def run_groups(entries: Sequence[ComparedStore]) -> tuple[list[RunGroup], list[RunGroup]]:
    """The groups in the order of their first stores, and the stores that repeat a seed of a group, each for itself."""
    together: list[list[int]] = []
    repeats = []
    for i, entry in enumerate(entries):
        without_seed = replace(entry.result.study, seed=0)
        for members in together:
            first = replace(entries[members[0]].result.study, seed=0)
            if not differences(first, without_seed):
                seeds = [entries[k].result.study.seed for k in members]
                if entry.result.study.seed in seeds:
                    repeats.append(RunGroup(entry.label, (entry,), (i,)))
                else:
                    members.append(i)
                break
        else:
            together.append([i])
    names = _names([entries[members[0]] for members in together])
    groups = [
        RunGroup(
            name if len(members) > 1 else entries[members[0]].label, tuple(entries[i] for i in members), tuple(members)
        )
        for name, members in zip(names, together, strict=True)
    ]
    return groups, repeats


def _names(entries: Sequence[ComparedStore]) -> list[str]:
    """The few words that distinguish each study from the others; a single study has its name."""
    if len(entries) == 1:
        return [entries[0].result.study.name]
    facts = [_facts(entry.result.study) for entry in entries]
    names: list[str] = [""] * len(entries)
    for key in dict.fromkeys(key for study_facts in facts for key in study_facts):
        texts = [study_facts.get(key, f"without {key}") for study_facts in facts]
        if len(set(texts)) > 1 and len(set(names)) < len(names):
            names = [", ".join(filter(None, pair)) for pair in zip(names, texts, strict=True)]
    return names if len(set(names)) == len(names) else [entry.label for entry in entries]


def _facts(study: StudyDefinition) -> Mapping[str, str]:
    """The properties that may distinguish a study, in words, the most telling first."""
    stages = [stage for stage in study.stages if not stage.baseline]
    facts = {"solvers": " + ".join(stage.solver.plugin.name for stage in stages)}
    for stage in stages:
        for key, value in stage.solver.all_settings.items():
            facts[f"{stage.name}.{key}"] = f"{key} {value_text(value)}"
        if stage.budget.evaluations is not None:
            facts[f"{stage.name}: budget"] = f"{number(stage.budget.evaluations)} designs"
    facts["model"] = study.model.plugin.name
    facts |= {f"model.{key}": f"{key} {value_text(value)}" for key, value in study.model.all_settings.items()}
    facts |= {f"space.{p.name}": f"{p.name} {range_of(p)}" for p in in_stated_units(study).space}
    in_scenarios = len(study.scenarios) > 1
    facts |= {f"objective {o.name}": score_of(o, in_scenarios) for o in study.objectives}
    facts |= {f"limit {c.name}": score_of(c, in_scenarios) for c in stated_constraints(study)}
    facts["name"] = study.name
    return facts
