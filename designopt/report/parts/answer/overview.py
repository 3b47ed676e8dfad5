"""Report part `overview`: question, answer in short and effort."""

from __future__ import annotations

import numpy as np

from designopt.counts import plural
from designopt.plugin import report_part
from designopt.report.labels import duration, listed
from designopt.report.no_design import failed_baselines
from designopt.report.notable import (
    notable_of_recommended,
    notable_without_choice,
    program_doubts,
    remarks_on_recommended,
    unusual,
)
from designopt.report.parts.answer import recommendation, summary, violated_limits
from designopt.report.parts.answer.better_designs import better_in_other_stores
from designopt.report.parts.answer.limits import reached_bounds, sentence
from designopt.report.parts.answer.tolerances import (
    behind_front,
    end_of_front,
    fragile_in_short,
    narrow_front,
    robust_baseline,
    unknown_robustness,
)
from designopt.report.parts.answer.unfinished_search import constant_objectives, search_to_continue
from designopt.report.parts.answer.validation import rarely_valid, recommended_by_scenario
from designopt.report.parts.failures import invalid_designs
from designopt.report.section import Section
from designopt.store.result import Result
from designopt.study.remarks import study_remarks

#: Maximum number of parameters named in the question.
MAX_LISTED = 8
#: What is asked of an objective by its direction.
_SIZE = {"minimize": "small", "maximize": "large"}


@report_part("overview", version=1)
def overview(result: Result) -> Section:
    """The question in words, a short answer with its front, and the effort."""
    study, problem = result.study, result.problem
    outcomes = result.outcomes
    valid_count = int(np.sum(~outcomes.invalid))
    invalid = invalid_designs(result)
    failure_count = int(np.sum(outcomes.failed & ~invalid))
    front = result.front()
    best = "on the Pareto front" if len(problem.objectives) > 1 else "best designs"
    facts = [
        ("distinct designs", str(len(outcomes))),
        ("evaluations", str(result.counts["evaluations"])),
        *(
            (("cheap evaluations (not part of the results)", str(len(result.cheap))),)
            if result.cheap is not None
            else ()
        ),
        ("feasible designs", str(int(np.sum(outcomes.feasible)))),
        *(((best, str(len(front))),) if problem.objectives else ()),
        ("failed designs", str(failure_count)),
        *_incomplete(result),
        *((("invalid designs", str(int(invalid.sum()))),) if invalid.any() else ()),
        ("computing time", duration(computing_time(result))),
    ]
    findings = []
    if not len(outcomes):
        findings += [sentence(clause) for clause in program_doubts(result)] or ["Nothing has been evaluated yet."]
    elif not valid_count:
        findings.append("Every proposed design violates a relation of the space; none was evaluated.")
    else:
        findings += summary.sentence(result)
        findings += [
            sentence(clause)
            for clause in (
                *constant_objectives(result),
                *program_doubts(result),
                *notable_of_recommended(result),
                *notable_without_choice(result),
                *unusual(result),
                *study_remarks(study),
                *remarks_on_recommended(result),
                *fragile_in_short(result),
                *robust_baseline(result),
                *behind_front(result),
                *end_of_front(result),
                *rarely_valid(result),
                *failed_baselines(result),
                *narrow_front(result),
                *search_to_continue(result),
                *reached_bounds(result),
                *recommendation.search_without_gain(result),
                *better_in_other_stores(result),
                *unknown_robustness(result),
            )
        ]
        findings += recommendation.changes(result)
    if valid_count and not outcomes.feasible.any():
        findings.append("No feasible design was found." if problem.objectives else _nothing(result))
        findings += [f"{clause[0].upper()}{clause[1:]}."] if (clause := result.never_finite()) else []
        findings += violated_limits.findings(result)
    answer = problem.objectives and bool(outcomes.feasible.any())
    table, front_figure = (summary.table(result), summary.front(result)) if answer else (None, None)
    return Section(
        title="Overview",
        introduction="\n\n".join(filter(None, [study.description, _question(result)])),
        figures=(front_figure,) if front_figure is not None else (),
        tables=(
            *recommendation.tables(result),
            *((table,) if table is not None else ()),
            *recommended_by_scenario(result),
        ),
        facts=tuple(facts),
        findings=tuple(findings),
        notes=(*recommendation.meanings(result), recommendation.reproduce(result)) if len(outcomes) else (),
    )


def _incomplete(result: Result) -> tuple[tuple[str, str], ...]:
    """Number of designs scored with missing scenarios, if the study allows that."""
    if not result.problem.missing:
        return ()
    incomplete_count = int(np.sum((result.missing > 0) & ~result.outcomes.failed))
    return (("scored without all scenarios", str(incomplete_count)),)


def _nothing(result: Result) -> str:
    """Why an analysis has no design with a result."""
    if result.outcomes.failed.all():
        return "No evaluation gave a result; the failures say why."
    return "No design satisfies all limits."


def computing_time(result: Result) -> float:
    """Total time of evaluations, also cheap ones, and programs over the workers (s)."""
    return float(np.nansum(result.wall)) + result.cheap_wall + sum(program.wall for program in result.programs())


def _question(result: Result) -> str:
    problem = result.problem
    aims: dict[str, list[str]] = {}
    for o in problem.objectives:
        aims.setdefault(o.direction, []).append(o.name)
    limits = f", within {plural(len(problem.constraints), 'limit')}" if problem.constraints else ""
    in_scenarios = f" in {plural(len(problem.scenarios), 'scenario')}" if len(problem.scenarios) > 1 else ""
    if not problem.objectives:
        for_designs = f" for {plural(len(result.outcomes), 'design')}" if problem.space.free else ""
        return f"What does {result.study.name} give{for_designs}{in_scenarios}{limits}?"
    names = [p.name for p in problem.space.free]
    if not names:
        aim = " and ".join(
            f"how {_SIZE[direction]} can {listed(objective_names)}" for direction, objective_names in aims.items()
        )
        return f"{aim[0].upper()}{aim[1:]} of {result.study.name} be{limits}{in_scenarios}?"
    free = listed(names) if len(names) <= MAX_LISTED else f"{len(names)} parameters"
    verb_end = "s" if len(names) == 1 else ""
    aim = " and ".join(
        f"{direction}{verb_end} {listed(objective_names)}" for direction, objective_names in aims.items()
    )
    return f"Which {free} of {result.study.name} {aim}{limits}{in_scenarios}?"
