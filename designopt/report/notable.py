"""Notable outputs at the end of a run: their numbers, and the sentences of the array that lists what they count."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from designopt.arrays import Floats, Mask
from designopt.collocation.solution.explain import explain
from designopt.counts import plural, with_subject
from designopt.files import InputFileError
from designopt.plugin.calling import calling
from designopt.printable import one_line
from designopt.report.labels import design_names, display_scales, listed, number
from designopt.report.no_design import first_sentences, most_frequent_end
from designopt.report.traces import scenario_names
from designopt.store.errors import StoreError

if TYPE_CHECKING:
    from designopt.plugin import Quantity
    from designopt.store.result import Result

#: Maximum number of scenarios and of sentences in a note, of evaluations whose sentences are read, of names before one.
LINES, _READ, _NAMED = 20, 100, 3
#: Maximum number of warnings of a program.
WARNINGS = 5
#: Kinds of warnings about the way in which a model is written: they do not concern the result of a program that is
#: solved.
OF_MODEL = ("nonsmooth_model", "badly_scaled: entries")
#: Maximum number of violated constraints of a program without a result.
VIOLATIONS = 3
_NUMBER = re.compile(r"\d[\d.,]*(?:e[+-]?\d+)?")


def notable(result: Result) -> list[str]:
    """Notes on the outputs declared as notable, wherever they are above 0, with the sentences that explain them; where
    the model evaluates optima differently from their programs; and the warnings of the best program."""
    notes = [f"note: {text}" for text in program_notes(result)]
    for name, quantity, positive in _notable_outputs(result):
        notes.append(f"note: {_extent(result, name, positive)}: {quantity.description}")
        if quantity.listed_by:
            notes += _sentence_lines(result, positive, quantity.listed_by)
    return notes


def program_notes(result: Result) -> list[str]:
    """Clauses on the programs: where the model evaluates optima differently, an inaccurate result or none and what was
    violated, and the warnings of the best program."""
    return [*_ends_of_programs(result), *first_of_each_kind(_best_program_warnings(result))[0][:WARNINGS]]


def program_doubts(result: Result) -> list[str]:
    """The same for the reader of the answer: what the warnings of the best program (``kind: what is found; advice``)
    say of its result, and where the advice is, with the hints on the model."""
    warnings = _best_program_warnings(result)
    of_result = [text for text in warnings if not text.startswith(OF_MODEL)]
    doubts = first_of_each_kind([text.partition("; ")[0] for text in of_result])[0][:WARNINGS]
    elsewhere = ["advice on this"] if any("; " in text for text in of_result) else []
    elsewhere += ["hints on how the model is written"] if len(of_result) < len(warnings) else []
    verb = "is" if elsewhere == ["advice on this"] else "are"
    command = f"designopt show {shlex.quote(str(result.path))}"
    return [
        *_ends_of_programs(result),
        *(text.partition(": ")[2] for text in doubts),
        *([f"{' and '.join(elsewhere)} {verb} in the part Programs and in {command}"] if elsewhere else []),
    ]


def _ends_of_programs(result: Result) -> list[str]:
    return [*_differences(result), *_uncertain(result), *diagnosis(result)]


def notable_without_choice(result: Result) -> list[str]:
    """Clauses on the notable outputs above 0 of a study without objectives, which has no recommended design."""
    if result.problem.objectives:
        return []
    clauses = []
    for name, quantity, positive in _notable_outputs(result):
        texts = _sentence_lines(result, positive, quantity.listed_by) if quantity.listed_by else []
        texts = [text.strip() for text in texts[:_NAMED]] + ["and others"] * (len(texts) > _NAMED)
        listing = f" ({'; '.join(texts)})" if texts else ""
        clauses.append(f"{_extent(result, name, positive)}: {quantity.description}{listing}")
    return clauses


def remarks_on_recommended(result: Result) -> list[str]:
    """What the model says of the recommended design; nothing where a file that it needs is not there."""
    recommendation, plugin = result.recommended(), result.problem.model.plugin
    if recommendation is None or not plugin.has("design_remarks"):
        return []
    in_model_units = result.stored or result
    design = in_model_units.problem.space.design(in_model_units.outcomes.X[recommendation[1]].tolist())
    with contextlib.suppress(InputFileError), calling(plugin, InputFileError):
        scenarios = [scenario.values for scenario in in_model_units.problem.scenarios]
        return [str(text) for text in in_model_units.problem.model.build().design_remarks(design, scenarios)]
    return []


def _notable_outputs(result: Result) -> Iterator[tuple[str, Quantity, Mask]]:
    """Each output declared as notable that is above 0 somewhere, its quantity, and where (designs, scenarios)."""
    for name, output in result.problem.model.plugin.outputs.items():
        if output.quantity is not None and output.quantity.notable and name in result.outcomes.figures:
            positive = np.asarray(result.outcomes.figures[name] > 0.0)
            if positive.any():
                yield name, output.quantity, positive


def _extent(result: Result, name: str, positive: Mask) -> str:
    """The largest value of an output, the number of evaluations where it is above 0, and their scenarios."""
    values, scenarios = result.outcomes.figures[name], result.problem.scenarios
    names = [s.name for s, above in zip(scenarios, np.any(positive, axis=0), strict=True) if above]
    in_scenarios = f" ({listed(names[:LINES])})" if len(scenarios) > 1 else ""
    largest = number(float(values[positive].max()))
    share = f"{int(positive.sum())} of {plural(positive.size, 'evaluation')}"
    return f"{name} is up to {largest} in {share}{in_scenarios}"


def _differences(result: Result) -> list[str]:
    """How the model's evaluations of optima differ from their programs, a sentence each."""
    kinds = ("objective_differs", "limits_differ")
    return list(dict.fromkeys(str(event["text"]) for event in result.events if event["kind"] in kinds))


def _uncertain(result: Result) -> list[str]:
    """A clause on programs without an accurate result: that of the answer, or the reason why none has a result."""
    programs, best = result.programs(), result.best_program()
    if not programs:
        return []
    if best is None:
        return [f"no program has a result. {most_frequent_end(result).rstrip('.')}"]
    if best.status == "solved":
        return []
    error = best.figures.get("program(error_estimate)")
    size = "" if error is None else f" with an error estimate of {error:.1e}"
    return [f"the best program ended as {best.status}{size}: {first_sentences(best.message).rstrip('.')}"]


def diagnosis(result: Result) -> list[str]:
    """Clauses on the last iterate of the first program if none has a result: its warnings and worst violations."""
    programs = result.programs()
    if not programs or result.best_program() is not None:
        return []
    try:
        solution = programs[0].solution
    except StoreError:  # the report and `designopt show` name it
        return []
    if solution is None:
        return []
    groups = [str(group) for group in explain(solution).groups[:VIOLATIONS]]
    worst = [f"violated at the last iterate, the worst first: {'; '.join(groups)}"] if groups else []
    return [*worst, *first_of_each_kind(solution.warnings)[0][:WARNINGS]]


def _best_program_warnings(result: Result) -> tuple[str, ...]:
    """The warnings of the program with the best objective."""
    best = result.best_program()
    try:
        solution = None if best is None else best.solution
    except StoreError:  # the report and `designopt show` name it
        return ()
    return () if solution is None else tuple(solution.warnings)


def first_of_each_kind(warnings: Sequence[str]) -> tuple[list[str], list[str]]:
    """The first warning of each kind (``oscillating_control: ...``) with the number of others of its kind, and those
    others."""
    kinds: dict[str, list[str]] = {}
    for text in warnings:
        kinds.setdefault(text.partition(":")[0], []).append(text)
    first = [f"{texts[0]} ({len(texts) - 1} more of this kind)" if texts[1:] else texts[0] for texts in kinds.values()]
    return first, [text for texts in kinds.values() for text in texts[1:]]


def unusual(result: Result) -> list[str]:
    """Clauses on outputs of the recommended design beyond the ranges that the model declares as usual, with the number
    of feasible designs within them in all scenarios, or what to do against a numerical cause; of the only design in a
    study without objectives."""
    recommendation, problem, clauses = result.recommended(), result.problem, list[str]()
    if recommendation is not None:
        row = recommendation[1]
    elif not problem.objectives and len(result.outcomes) == 1:
        row = 0
    else:
        return []
    scales, clause_index, mistakes, remedies = display_scales(result), None, "", dict[str, int]()
    for name, output in problem.model.plugin.outputs.items():
        quantity = output.quantity
        if quantity is None or quantity.usual is None or name not in result.outcomes.figures:
            continue
        low, high = quantity.usual
        values = result.outcomes.figures[name]
        beyond = np.where(np.isfinite(values), np.maximum(low - values, values - high), -np.inf)
        worst = int(np.argmax(beyond[row]))
        if beyond[row, worst] > 0.0:
            in_scenario = f" in {problem.scenarios[worst].name}" if len(problem.scenarios) > 1 else ""
            factor, unit = scales[name]
            unit_text = f" {unit}" if unit else ""
            texts = [number(factor * v) for v in (float(values[row, worst]), low, high)]
            share = "" if quantity.remedy else _within(result, beyond.max(axis=1))
            if quantity.remedy:
                remedies[quantity.remedy] = len(clauses)
            elif not share:
                clause_index, mistakes = len(clauses), mistakes or quantity.mistakes
                share = "no feasible design is within"
            clauses.append(
                f"{_having(result, name)} {texts[0]}{unit_text}{in_scenario}, "
                f"beyond {texts[1]} to {texts[2]}{unit_text}"
                f" ({quantity.description}){f'; {share}' if share and problem.objectives else ''}"
            )
    for remedy, last in remedies.items():
        clauses[last] += f": {remedy}{_finer_program(result)}"
    if clause_index is not None and problem.objectives:
        questions = f" ({mistakes})" if mistakes else ""
        clauses[clause_index] += f": check the inputs{questions}{', widen the space' if problem.space.free else ''}"
    return clauses


def _finer_program(result: Result) -> str:
    """That the program of the answer has a mesh of its own, with its error estimate, where the model's evaluation does
    not share the solver's."""
    best = result.best_program()
    error = None if best is None else best.figures.get("program(error_estimate)")
    if error is None or result.problem.model.plugin.takes_options:
        return ""
    return (
        f"; the program of the solver has its own mesh (error estimate {error:.1e}), which the model's evaluation does"
        " not take over"
    )


def _within(result: Result, beyond: Floats) -> str:
    """How many of the feasible designs are not beyond (positive) their usual range; "" for none."""
    count_within = int((beyond[result.outcomes.feasible] <= 0.0).sum())
    return f"a limit of it leaves {plural(count_within, 'feasible design')}" if count_within else ""


def notable_of_recommended(result: Result) -> list[str]:
    """Clauses on the notable outputs of the recommended design that are above 0."""
    recommendation, problem, clauses = result.recommended(), result.problem, []
    if recommendation is None:
        return []
    row = recommendation[1]
    for name, quantity, positive in _notable_outputs(result):
        if positive[row].any():
            values = result.outcomes.figures[name][row]
            worst = int(np.nanargmax(values))
            in_scenario = f" in {problem.scenarios[worst].name}" if len(problem.scenarios) > 1 else ""
            clauses.append(
                f"{_having(result, name)} {number(float(values[worst]))}{in_scenario}: {quantity.description}"
            )
    return clauses


def _having(result: Result, name: str) -> str:
    has_choice = result.problem.space.free and result.problem.objectives
    return f"the recommended design has {name}" if has_choice else f"{name} is"


def sentences(result: Result, row: int) -> Iterator[str]:
    """The sentences on what the notable outputs of one design count, each after the name of its scenario."""
    arrays = [o.quantity.listed_by for o in result.problem.model.plugin.outputs.values() if o.quantity]
    for k, scenario in enumerate(result.problem.scenarios):
        for array in filter(None, arrays):
            yield from (
                with_subject(scenario.name, one_line(sentence)) for sentence in _sentences(result, row, k, array) or ()
            )


def _sentence_lines(result: Result, positive: np.ndarray, array: str) -> list[str]:
    """The sentences of evaluations (designs, scenarios), those that differ only in numbers and names in one line."""
    evaluations = [(int(i), int(s)) for i, s in np.argwhere(positive)]
    names, read_count = _labels(result), 0
    alike: dict[tuple[str, int], dict[str, str]] = {}
    for i, s in evaluations[:_READ]:
        texts = _sentences(result, i, s, array)
        read_count += texts is not None
        counts: Counter[str] = Counter()  # an evaluation may have several: one line each
        for text in texts or ():
            # a sentence without its numbers and the name of its scenario
            pattern = _NUMBER.sub("#", text.replace(result.problem.scenarios[s].name, "@"))
            counts[pattern] += 1
            alike.setdefault((pattern, counts[pattern]), {})[names[i, s]] = text
    if not read_count:
        return [f"  to read them, keep the array {array}: execution: {{arrays: [{array}, ...]}}"]
    lines = [_line(of_names) for of_names in sorted(alike.values(), key=len, reverse=True)]
    hidden_count = len(lines) - LINES
    unread = len(evaluations) - _READ
    return [
        *(f"  {one_line(line)}" for line in lines[:LINES]),
        *([f"  {hidden_count} more sentences in the array {array}"] if hidden_count > 0 else []),
        *([f"  {plural(unread, 'more evaluation')} not read"] if unread > 0 else []),
    ]


def _line(text_by_name: Mapping[str, str]) -> str:
    """``walk_1, walk_2, walk_3 and 5 more: sentence``; figures that differ are those of the first."""
    names = list(text_by_name)
    remainder = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
    first = text_by_name[names[0]].removeprefix(f"{names[0]}: ")
    differs = f" (figures of {names[0]})" if len(set(text_by_name.values())) > 1 else ""
    return f"{listed([*names[:_NAMED], *remainder])}: {first}{differs}"


def _labels(result: Result) -> Mapping[tuple[int, int], str]:
    """Names of evaluations by design and scenario: of the one that there are several of, or both."""
    designs, scenarios = design_names(result), scenario_names(result)
    alone = len(designs) == 1
    return {
        (i, s): scenario if alone else design if len(scenarios) == 1 else f"{scenario} ({design})"
        for i, design in enumerate(designs)
        for s, scenario in enumerate(scenarios)
    }


def _sentences(result: Result, row: int, scenario: int, array: str) -> list[str] | None:
    """The sentences of an evaluation; None where the array is not kept or not readable."""
    try:
        arrays = result.arrays(row, scenario)
    except StoreError:  # the report and `designopt show` name it
        return None
    return [str(text) for text in arrays[array]] if array in arrays else None
