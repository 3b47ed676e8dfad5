"""Searches that end while the best designs still improve."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from designopt.counts import plural
from designopt.report.labels import listed, number
from designopt.report.parts.answer.front_ends import improvable_ends
from designopt.report.parts.designs.surrogate import expected_gain
from designopt.solvers.ends import FAR_APART
from designopt.store.errors import budget_option, resume_command

if TYPE_CHECKING:
    from designopt.store.result import Result

#: Last share of the designs of a stage, and least gain in it as a share of the best value, before or after.
_LAST_SHARE, _GAIN = 0.1, 0.02
#: Feasible designs in a row of which half are near the best once a search has converged, and shares of the best value
#: and of the first differences from it that are near.
_CLOSE, _APART, _NARROWED = 20, 0.01, 1e-4
#: Expected gain, as a share of the standard deviation of the only objective or of the hypervolume, up to which a search
#: by gp has converged.
_EXPECTED = 0.01
#: Gain of a neighbour, relative to the best value, from which on the best design is no optimum if the gain also exceeds
#: the standard deviation of the neighbours' values. In 55 searches it named nine, each with a small budget.
_BETTER = 2e-3
#: Share of an even number of designs below which a value of a choice was rarely tried.
_RARELY = 0.5
#: Designs of a stage below which a gain at its end says little.
_MIN_DESIGNS = 50
#: Designs of a front from which on a gap is reported, and least share of the rectangle of its ranges between two
#: successive designs there. On bundled studies it is below 0.02, but for the knee, whose front is in two parts (0.6).
_MIN_FRONT, _GAP = 10, 0.04
#: Feasible designs from which on an equal objective is no coincidence.
_MIN_EQUAL = 3


def search_to_continue(result: Result) -> list[str]:
    """Clauses if a completed search would find better designs: near the ends of its front, with a larger budget, or
    with a value of a choice that it left early. None for other objectives or limits than those that were searched."""
    if result.ended != "done" or result.study.lists_designs or _is_rescored(result):
        return []
    clauses = improvable_ends(result) or still_improving(result) or not_converged(result) or gain_expected(result)
    clauses = clauses or better_neighbour(result)
    return [*clauses, *ends_apart(result), *gap_in_front(result), *rarely_tried(result)]


def constant_objectives(result: Result) -> list[str]:
    """A clause for each objective with one value in all feasible designs, at least `_MIN_EQUAL` different ones."""
    outcomes = result.outcomes
    X, values = outcomes.X[outcomes.feasible], outcomes.objectives[outcomes.feasible]
    if len(np.unique(X, axis=0)) < _MIN_EQUAL:
        return []
    return [
        f"objective '{o.name}' is {number(o.sign * float(column[0]))} {o.unit}".rstrip()
        + f" in all {len(X)} feasible designs: no parameter changes it"
        for o, column in zip(result.problem.objectives, values.T, strict=True)
        if (column == column[0]).all()
    ]


def _is_rescored(result: Result) -> bool:
    if result.original is None:
        return False
    study, question = result.study, result.original.study
    return (study.objectives, study.constraints) != (question.objectives, question.constraints)


def ends_apart(result: Result) -> list[str]:
    """A clause for each stage whose searches, from several starts, ended at different optima."""
    ends = [str(event["text"]) for event in result.events if event["kind"] == "solver_ended"]
    way = "there may be better optima: raise their number, or begin with a search of the whole space (gp, cma_es)"
    return [f"{text}; {way}" for text in ends if FAR_APART in text]


def _spent_budget(result: Result, least: int = 0) -> int | None:
    """The budget of the last stage, if its search used it up and has at least so many designs; else None."""
    stage = result.study.stages[-1] if result.study.stages else None
    budget = None if stage is None or stage.baseline else stage.budget.evaluations
    if stage is None or budget is None or len(result.designs_of(stage.name)) < max(budget, least):
        return None
    return budget


def _with_twice(result: Result, budget: int) -> str:
    """The advice to continue the last stage with twice its `budget`."""
    option = budget_option(result.study.stages, result.study.stages[-1].name, 2 * budget)
    return f"continue with {resume_command(result.path)}{option}"


def still_improving(result: Result) -> list[str]:
    """A clause if the best feasible value of an objective improved in the last tenth of the designs of a search that
    used up its budget."""
    outcomes, objectives = result.outcomes, result.problem.objectives
    budget = _spent_budget(result, _MIN_DESIGNS)
    if not objectives or budget is None:
        return []
    rows = result.designs_of(result.study.stages[-1].name)
    rows = rows[rows >= 0]  # without incomplete designs
    number_before = len(rows) - round(_LAST_SHARE * len(rows))
    last = np.setdiff1d(rows[number_before:], rows[:number_before])
    values = np.where(outcomes.feasible[:, None], outcomes.objectives, np.inf)
    is_before = np.ones(len(values), dtype=bool)
    is_before[last] = False
    best, before = values.min(axis=0), values[is_before].min(axis=0, initial=np.inf)
    advice = _with_twice(result, budget)
    if not np.isfinite(best).all():
        return []
    if not np.isfinite(before).all():
        return [f"the first feasible design is among the last tenth of the designs: {advice}"]
    sizes = np.maximum(np.abs(before), np.abs(best))
    gains = np.divide(before - best, sizes, out=np.zeros_like(best), where=sizes > 0.0)
    improvements = [
        f"{o.name} by {number(100.0 * g, 2)} %" for o, g in zip(objectives, gains, strict=True) if g > _GAIN
    ]
    if not improvements:
        return []
    return [f"the last tenth of the designs still improved the best {listed(improvements)}: {advice}"]


def not_converged(result: Result) -> list[str]:
    """A clause if the designs of `cma_es` never came close to its best one before the budget ended.

    A run of it that converges proposes designs whose objectives become equal: the better half of `_CLOSE` feasible ones
    in a row is then within `_APART` of the best.
    """
    outcomes, budget = result.outcomes, _spent_budget(result, _MIN_DESIGNS)
    if budget is None or any(p.kind != "real" for p in result.problem.space.free):
        return []
    stage = result.study.stages[-1]
    if stage.solver.plugin.name != "cma_es":
        return []
    rows = result.designs_of(stage.name)
    rows = rows[rows >= 0]
    values = outcomes.objectives[rows[outcomes.feasible[rows]], 0]
    if len(values) < 2 * _CLOSE:
        return []
    medians = np.median(np.lib.stride_tricks.sliding_window_view(values, _CLOSE), axis=1)
    best, nearest = float(values.min()), float(medians.min())
    if nearest - best <= max(_APART * abs(best), _NARROWED * float(medians[0] - best)):
        return []
    distance = f"at least {number(100.0 * (nearest - best) / abs(best), 2)} %" if best else "far"
    return [
        f"{stage.name} has not converged: half of any {_CLOSE} designs in a row are"
        f" {distance} worse than the best; {_with_twice(result, budget)}"
    ]


def gain_expected(result: Result) -> list[str]:
    """A clause if the processes of the solver gp expect a gain of more than `_EXPECTED` at the end of its budget."""
    budget = _spent_budget(result)
    expectation = None if budget is None else expected_gain(result)
    if budget is None or expectation is None or expectation[0] <= _EXPECTED:
        return []
    share, reference = expectation
    way = "raise the budget" if result.made_elsewhere else _with_twice(result, budget)
    return [
        f"{result.study.stages[-1].name} is not finished: the next design is expected to gain"
        f" {number(100.0 * share, 2)} % of {reference}; {way}"
    ]


def better_neighbour(result: Result) -> list[str]:
    """A clause if a neighbour of the best design of the only objective meets all limits and is clearly better: at an
    optimum, neighbours that are better violate a limit."""
    tolerance_results, outcomes, objectives = result.tolerated(), result.outcomes, result.problem.objectives
    if len(objectives) != 1 or tolerance_results is None or not outcomes.feasible.any():
        return []
    values = np.where(outcomes.feasible, outcomes.objectives[:, 0], np.inf)
    row = int(values.argmin())
    index = tolerance_results.index_of(row)
    if index is None:
        return []
    is_usable = tolerance_results.is_recorded[index] & tolerance_results.feasible[index]
    neighbours = objectives[0].sign * tolerance_results.objectives[index, :, 0]
    gain = float(values[row] - np.min(neighbours, initial=np.inf, where=is_usable))
    if gain <= max(_BETTER * abs(values[row]), float(tolerance_results.spread[index, 0])):
        return []
    amount = f"{number(100.0 * gain / abs(values[row]), 2)} %" if values[row] else number(gain, 2)
    budget = result.study.stages[-1].budget.evaluations
    way = "raise the budget" if result.made_elsewhere or not budget else _with_twice(result, budget)
    return [
        f"a design beside the best one, within the tolerances, meets all limits and is better by {amount}: the search"
        f" has not converged; {way}"
    ]


def gap_in_front(result: Result) -> list[str]:
    """A clause if a wide range of both objectives lies between two successive designs of the front, with the search
    that shows whether the front has a gap there."""
    objectives, front = result.problem.objectives, result.front()
    if len(objectives) != 2 or len(front) < _MIN_FRONT:
        return []
    values = result.outcomes.objectives[front]
    values = values[np.argsort(values[:, 0])]
    steps = np.abs(np.diff(values, axis=0)) / np.where((widths := np.ptp(values, axis=0)) > 0.0, widths, 1.0)
    shares = steps.prod(axis=1)
    widest = int(shares.argmax())
    if not shares[widest] >= _GAP:
        return []
    ends = [
        f"{o.name} {number(low)} and {number(high)} {o.unit}".rstrip()
        for o, (low, high) in zip(
            objectives, (sorted(o.sign * values[widest : widest + 2, j]) for j, o in enumerate(objectives)), strict=True
        )
    ]
    first, second = objectives
    middle = first.sign * float(values[widest : widest + 2, 0].mean())
    over = first.over.plugin.name
    limit = f"of: {first.expression.text}, {'max' if first.sign > 0 else 'min'}: {number(middle)} {first.unit}".rstrip()
    limit += f", over: {over}" if over != "worst" and len(result.problem.scenarios) > 1 else ""
    value = f"{number(second.sign * float(values[widest, 1]))} {second.unit}".rstrip()
    budget = _spent_budget(result)
    continuation = "" if budget is None or result.made_elsewhere else f", or {_with_twice(result, budget)}"
    return [
        f"no design of the front lies between {listed(ends)}: the front has a gap there, or the search has not reached"
        f" it; search {second.name} alone with the further limit {{{limit}}} (a gap if nothing is clearly better than"
        f" {value}){continuation}"
    ]


def rarely_tried(result: Result) -> list[str]:
    """A clause for each choice with values that few designs have, none of them feasible: the search left them before
    it met the limits."""
    outcomes, space = result.outcomes, result.problem.space
    if not result.problem.objectives or not outcomes.feasible.any():
        return []
    is_active = space.active(outcomes.X) & ~outcomes.invalid[:, None]
    solver, clauses = result.study.stages[-1].solver.plugin.name, []
    or_with_gp = "" if solver in ("gp", "auto") else ", or with gp"
    for j, parameter in enumerate(space.free):
        if parameter.kind != "choice":
            continue
        values = outcomes.X[is_active[:, j], j].astype(int)
        is_feasible = outcomes.feasible[is_active[:, j]]
        counts = np.bincount(values, minlength=len(parameter.values))
        feasible_counts = np.bincount(values[is_feasible], minlength=len(parameter.values))
        is_rare = (counts < _RARELY * len(values) / len(parameter.values)) & (feasible_counts == 0)
        rare = [f"{parameter.values[i]} ({plural(int(counts[i]), 'design')})" for i in np.flatnonzero(is_rare)]
        if rare:
            verb, with_it = ("was", "with it") if len(rare) == 1 else ("were", "with each")
            clauses.append(
                f"{parameter.name} {listed(rare)} {verb} hardly tried, without a feasible design: the best design"
                f" {with_it} is not known; search with {parameter.name} fixed{or_with_gp}"
            )
    return clauses
