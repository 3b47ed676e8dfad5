"""What commands print about a store. The sentence on an unfinished run also heads its page."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from designopt.counts import plural
from designopt.printable import one_line
from designopt.problem import ENDED_WITH_CAUSE
from designopt.report.labels import (
    answer_digits,
    as_subject,
    chosen_labels,
    design_names,
    design_values,
    displayed_figures,
    failure_class,
    marked_designs,
    number,
    objective_values,
    parameter_text,
    with_unit,
)
from designopt.report.no_design import failed_baselines, without_feasible, without_number
from designopt.report.notable import LINES, diagnosis, notable, remarks_on_recommended, unusual
from designopt.report.parts.answer import summary, violated_limits
from designopt.report.parts.answer.better_designs import better_in_other_stores
from designopt.report.parts.answer.limits import limits_of_most, reached_bounds
from designopt.report.parts.answer.recommendation import search_without_gain, used_budget
from designopt.report.parts.answer.tolerances import (
    behind_front,
    end_of_front,
    fragile_designs,
    fragile_in_short,
    narrow_front,
    robust_baseline,
    unknown_robustness,
    without_robust_choice,
)
from designopt.report.parts.answer.unfinished_search import constant_objectives, search_to_continue
from designopt.report.parts.answer.validation import feasible_shares, rarely_valid
from designopt.report.parts.designs.influence import influence_sentences
from designopt.report.parts.failures import invalid_designs
from designopt.report.parts.motion.estimation import undetermined_unknowns
from designopt.store.errors import ask_and_tell, resume_command
from designopt.study.remarks import study_remarks

if TYPE_CHECKING:
    from designopt.store.result import Result

#: Maximum figures on the terminal for a study without objectives.
FIGURES = 6
#: Maximum number of failure classes in a note.
CLASSES = 4


def summary_table(result: Result) -> str:
    """The chosen designs as aligned plain text, one line each: free parameters, then objectives; no final newline.

    Above are the recommended design, if it is not the first choice, and a note for each chosen one that violates limits
    within its tolerances. Below are notes on notable outputs above 0, on the bounds that the front and the
    recommended design reach, on each limit active for most of the front, and on the one that most designs violate where
    fewer than half are feasible. For a study without objectives it is the `analysis_table`.
    """
    if not result.problem.objectives:
        return analysis_table(result)
    result = result.in_stated_units
    rows_by_label = marked_designs(result)
    if not rows_by_label:
        why = [without_feasible(result), *broken_limits(result), most_frequent_failure(result)]
        notes = [f"note: {text}" for text in (*diagnosis(result), *study_remarks(result.study))]
        return "\n".join([*filter(None, why), *notes])
    problem = result.problem
    head = ["design"]
    head += [with_unit(p.name, p.unit) for p in problem.space.free]
    head += [with_unit(o.name, o.unit) for o in problem.objectives]
    shares = feasible_shares(result)
    head += shares
    values, digits = objective_values(result), answer_digits(result)
    lines, better = [head], result.better_motions
    for label, row in rows_by_label.items():
        design = zip(problem.space.free, design_values(result, row), strict=True)
        parameters = [parameter_text(result, p.name, v) for p, v in design]
        cells = [*parameters, *(number(v, digits) for v in map(float, values[row]))]
        violation = "" if result.outcomes.feasible[row] else " (violates limits)"
        cells += [words(row) for words in shares.values()]
        lines.append([label + violation, *cells])
        if row in better:
            motion = ["  its program found", *parameters, number(better[row], digits)]
            lines.append([*motion, *[""] * len(shares)])
    first = (
        [f"the recommended design is {summary.recommendation_clause(result)}"]
        if result.recommended() != result.first_choice()
        else []
    )
    first += [f"warning: {text}" for text in result.code_differences]
    clauses = (
        *constant_objectives(result),
        *remarks_on_recommended(result),
        *fragile_in_short(result),
        *robust_baseline(result),
        *without_robust_choice(result),
        *behind_front(result),
        *end_of_front(result),
        *rarely_valid(result),
        *narrow_front(result),
        *undetermined_unknowns(result),
    )
    first += [f"note: {clause}" for clause in clauses]
    last = [
        *_all_digits(result),
        *violated_limits.mostly_infeasible(result),
        *search_to_continue(result),
        *search_without_gain(result),
        *better_in_other_stores(result),
        *unknown_robustness(result),
    ]
    notes = [
        *(f"warning: {clause}" for clause in unusual(result)),
        *_lacking(result),
        *_failure_notes(result),
        *notable(result),
        *(f"note: {clause}" for clause in (*reached_bounds(result), *limits_of_most(result), *last)),
    ]
    return "\n".join([*first, *aligned(lines, 1), *notes])


def _all_digits(result: Result) -> list[str]:
    """Where all digits of the parameters are, if a chosen design may violate limits with the rounded ones."""
    labels = fragile_designs(result)
    if not labels:
        return []
    command = f"designopt show {shlex.quote(f'{result.path}/{labels[0]}')}"
    return [f"with the rounded parameters of the table such a design may violate limits; all digits: {command}"]


def _lacking(result: Result) -> list[str]:
    """Which of the chosen designs are scored with missing scenarios."""
    total, missing = len(result.problem.scenarios), result.missing
    return [
        f"note: {as_subject(labels)} has no result in {int(missing[row])} of {total} scenarios"
        for row, labels in chosen_labels(result).items()
        if missing[row]
    ]


def _failure_notes(result: Result) -> list[str]:
    """The share of evaluations without a result, and the baselines without one."""
    failures = {key: n for key, n in result.failures().items() if key[0] != "invalid"}
    notes = [f"note: {reason}"] if (reason := without_number(result)) else []
    if failures:
        lost, total = sum(failures.values()), result.counts["evaluations"]
        how = ", ".join(f"{failure_class(result, *key)} {n}" for key, n in list(failures.items())[:CLASSES])
        ellipsis = ", ..." if len(failures) > CLASSES else ""
        notes.append(
            f"note: {number(100 * lost / total, 3)} % of {plural(total, 'evaluation')} failed: {how}{ellipsis}"
            f"{first_message(result, *next(iter(failures)))}"
        )
    notes += [f"note: {clause}" for clause in failed_baselines(result)]
    return notes


def first_message(result: Result, status: str, reason: str) -> str:
    """``, the first: travel is nan``: the first message of failures of this class; "" without any."""
    rows, scenarios = ((result.status == status) & (result.reason == reason)).nonzero()
    lines = result.message(int(rows[0]), int(scenarios[0])).strip().splitlines() if len(rows) else []
    cause = -1 if status in ENDED_WITH_CAUSE else 0
    return f", the first: {lines[cause]}" if lines else ""


def most_frequent_failure(result: Result) -> str:
    """Class, reason, number and first message, in one line; "" if every evaluation gave a result."""
    for (status, reason), n in result.failures().items():
        message = first_message(result, status, reason)
        kind = failure_class(result, status, reason)
        return f"Most frequent failure: {kind}, {n} of {result.status.size}{message}"
    return ""


def analysis_table(result: Result) -> str:
    """The results of the first designs in the first scenarios, one line each, as aligned plain text without a final
    newline; of sensitivity stages a sentence on each output instead.

    It ends with the number of omitted lines, a warning for each output of a single design beyond its usual range, and
    a note for each notable output above 0.
    """
    if not len(result.outcomes):
        return without_feasible(result)
    problem, names = result.problem, design_names(result)
    several = len(problem.scenarios) > 1
    figures = dict(list(displayed_figures(result).items())[:FIGURES])
    head = ["design", *(["scenario"] if several else []), "status"]
    head += [with_unit(name, unit) for name, (unit, _) in figures.items()]
    evaluations = [(i, s) for i in range(len(result.outcomes)) for s in range(len(problem.scenarios))]
    lines, sentences = [head], influence_sentences(result)
    for i, s in [] if sentences else evaluations[:LINES]:
        label = [names[i], *([problem.scenarios[s].name] if several else []), str(result.status[i, s])]
        lines.append([*label, *(number(float(values[i, s])) for _, values in figures.values())])
    left = [
        f"{n} more {noun}"
        for n, noun in (
            (0 if sentences else len(evaluations) - LINES, "lines"),
            (len(result.outcomes.figures) - FIGURES, "figures"),
        )
        if n > 0
    ]
    if sentences:
        left = [plural(len(result.outcomes), "design")]
    notes = [f"{' and '.join(left)} in the report"] if left else []
    notes += [f"warning: {clause}" for clause in unusual(result)]
    table = sentences or aligned(lines, len(head) - len(figures))
    return "\n".join([*table, *notes, *notable(result), *broken_limits(result)])


def broken_limits(result: Result) -> list[str]:
    """Lines on limits that no design meets together: number of violations of each and the best value, the worst first,
    then pairs that no design meets together."""
    limits = violated_limits.broken_limits(result)
    remaining_count = len(limits) - LINES
    remainder = [f"and {remaining_count} further limits, in the report"] if remaining_count > 0 else []
    sentences = [*violated_limits.conflicts(limits), *violated_limits.nearest(result)]
    return [*aligned(violated_limits.lines(limits[:LINES]), 1), *remainder, *sentences] if limits else []


def aligned(lines: Sequence[Sequence[str]], words: int) -> list[str]:
    """The lines in columns; the first `words` columns are left-aligned, the others right-aligned."""
    lines = [[one_line(cell) for cell in line] for line in lines]
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    return [
        "  ".join(
            c.ljust(w) if k < words else c.rjust(w) for k, (c, w) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def state(result: Result) -> str:
    """The progress of the run, as aligned plain text: evaluations, failures, results that were taken over or corrected,
    end of the last session."""
    counts = result.counts
    designs = f"{plural(counts['designs'], 'design')}, {counts['feasible']} of them feasible"
    failures = [
        f"{failure_class(result, status, reason)} {n}"
        for (status, reason), n in result.failures().items()
        if status != "invalid"
    ]
    invalid = int(invalid_designs(result).sum())
    cheap = 0 if result.cheap is None else len(result.cheap)
    programs = Counter(record.status for record in result.programs())
    ends = ", ".join(f"{status} {n}" for status, n in programs.most_common(6))
    return "\n".join(
        [
            f"study        {one_line(result.study.name)}",
            *([f"programs     {programs.total()}: {ends}"] if programs else []),
            f"evaluated    {plural(counts['evaluations'], 'evaluation')} of {designs}",
            *([f"cheap        {plural(cheap, 'cheap evaluation')}, not part of the results"] if cheap else []),
            f"failed       {', '.join(failures[:6]) or 'none'}{', ...' if len(failures) > 6 else ''}",
            *(
                [f"invalid      {plural(invalid, 'design')}: a relation is violated or the model rejects the values"]
                if invalid
                else []
            ),
            *(
                f"{head:13}{one_line(str(event['text']).replace(' taken over from ', ' from '))}"
                for event in result.events
                if (head := _HAPPENED.get(event["kind"]))
            ),
            f"last session {one_line(result.ended)}",
        ]
    )


#: Kinds of events that change where results come from, with the head of their line.
_HAPPENED = {"recalled": "taken over", "corrected": "corrected"}


def unfinished(result: Result) -> str:
    """Why the run is incomplete, its progress and the command that continues it; "" if it is complete."""
    if result.ended == "done":
        return ""
    stage_names = set(result.stage.tolist())
    stages = [stage for stage in result.study.stages if stage.name in stage_names] or list(result.study.stages[:1])
    design_count = used_budget(result, stages[-1].name) if stages else 0
    # The total requests of all stages are those of this stage as long as there was no other.
    points = result.counts["points"] if len(stages) == 1 else None
    budget = stages[-1].budget.evaluations or points if stages else None
    if budget and budget > design_count:
        far = f"{design_count} of {plural(budget, 'design')}"
    else:
        used_up = bool(stages) and stages[-1].budget.evaluations is not None
        far = f"{'all ' if used_up else ''}{plural(design_count, 'design')}"
    of_stage = f" of stage {stages[-1].name}" if stages else ""
    if result.ended == "not ended":
        why = f"Unfinished: the run is active or was killed; so far {far}{of_stage}. If it is not active, continue"
    else:
        why = f"Unfinished: {_WHY.get(result.ended, result.ended)} after {far}{of_stage}. Continue"
    if result.made_elsewhere:
        why = f"Unfinished: evaluations are asked for; so far {far}{of_stage}. Continue"
    return f"{why} with: {ask_and_tell(result.path) if result.made_elsewhere else resume_command(result.path)}"


#: Reasons for the end of a session, as clauses.
_WHY = {"failure policy": "ended by the failure policy", "error": "ended by an error"}
