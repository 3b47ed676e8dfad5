"""Report part `tolerances`: designs with deviations of their parameters."""

from __future__ import annotations

import numpy as np

from designopt import decision
from designopt.arrays import Floats, Mask
from designopt.counts import plural
from designopt.plugin import report_part
from designopt.report.labels import (
    EQUAL,
    as_subject,
    chosen_labels,
    chosen_once,
    listed,
    number,
    objective_labels,
    objective_values,
)
from designopt.report.section import Section, Table
from designopt.store.result import Result
from designopt.store.views.tolerances import ENOUGH, ToleranceResults, enough_for
from designopt.study.sections.tolerances import ASSUMED
from designopt.study.study import Tolerance

#: Where designs lie that no rule chose.
_ON, _BEHIND = "of the front", "behind the front"


@report_part("tolerances", version=1)
def tolerances(result: Result) -> Section | None:
    """Designs and their neighbours within the tolerances: share that meets the limits, worst value and spread of each
    objective, and the most important parameter."""
    neighbours = result.tolerated()
    study = (result.original or result).study
    if neighbours is None or study.tolerances is None:
        return None
    words = listed([tolerance_text(t, _unit(result, t)) for t in study.tolerances.of])
    source = "assumed, because the study states none" if study.tolerances.assumed else "stated in the study"
    index_by_label = {
        label: index for label, row in chosen_once(result).items() if (index := neighbours.index_of(row)) is not None
    }
    label_by_index = {index: label for label, index in index_by_label.items()}
    several = len(result.problem.objectives) > 1  # else all others are worse
    order = [*label_by_index, *(i for i in range(len(neighbours)) if several and i not in label_by_index)]
    on_front = np.isin(neighbours.rows[order[len(label_by_index) :]], result.front())
    sizes = {_ON: int(on_front.sum()), _BEHIND: int((~on_front).sum())}
    remainder = [f"{size} {position}" for position, size in sizes.items() if size]
    neighbour_count = plural(int(neighbours.is_recorded.sum(axis=1).max()), "neighbour")
    findings = [f"{clause[:1].upper()}{clause[1:]}." for clause in (*fragile(result), *narrow_front(result))]
    if result.problem.constraints and label_by_index and all(neighbours.share[i] >= ENOUGH for i in label_by_index):
        findings.append(
            f"At least {number(100.0 * ENOUGH)} % of the neighbours of every chosen design satisfy all limits."
        )
    return Section(
        "Tolerances",
        introduction=f"Designs with parameter deviations of {words} ({source}): each has "
        f"{neighbour_count}, points of a Sobol' sequence within these tolerances.",
        findings=tuple(findings),
        tables=(_table(result, neighbours, order, label_by_index), _effects(result, neighbours, label_by_index)),
        notes=(f"Further designs are listed below the chosen ones: {listed(remainder)}.",) if remainder else (),
    )


def fragile(result: Result) -> list[str]:
    """A clause for each chosen design with too few neighbours within the limits."""
    return [
        f"{label} {_lost(violations, without)} of {total} neighbours within its tolerances{assumed_size(result)}"
        f"{_because(name)}"
        for label, violations, without, total, name in _fragile(result)
    ]


def fragile_in_short(result: Result) -> list[str]:
    """All of `fragile` in one clause; none without any."""
    fragile_designs = _fragile(result)
    if len(fragile_designs) < 2:
        return fragile(result)
    violate, have_none = (
        any(violations for _, violations, *_ in fragile_designs),
        any(without for _, _, without, *_ in fragile_designs),
    )
    predicate = " or ".join(["violate limits"] * violate + ["have no result"] * have_none)
    shares = [
        f"{label} {_lost(violations, without) if violate and have_none else f'in {violations + without}'} of {total}"
        for label, violations, without, total, _ in fragile_designs
    ]
    names = dict.fromkeys(name for *_, name in fragile_designs if name)
    in_neighbours = f"in some neighbours within their tolerances{assumed_size(result)}"
    return [
        f"{len(fragile_designs)} of the chosen designs {predicate} {in_neighbours}: {listed(shares)}"
        + _because(listed(list(names)))
    ]


def fragile_designs(result: Result) -> list[str]:
    """The first label of each chosen design with too few neighbours within the limits."""
    return [label.partition(" (also ")[0] for label, *_ in _fragile(result)]


def assumed_size(result: Result) -> str:
    """`` (±1 % assumed)``, or "" for tolerances that the study states."""
    tolerances = (result.original or result).study.tolerances
    return f" (±{number(100.0 * ASSUMED)} % assumed)" if tolerances is not None and tolerances.assumed else ""


def _fragile_recommendation(result: Result) -> ToleranceResults | None:
    """The designs with neighbours, if limits are violated by too many neighbours of the recommended one; else None."""
    recommendation, near = result.recommended(), result.tolerated()
    index = near.index_of(recommendation[1]) if near is not None and recommendation is not None else None
    is_fragile = near is not None and index is not None and near.share[index] < ENOUGH
    return near if is_fragile and result.problem.constraints else None


def without_robust_choice(result: Result) -> list[str]:
    """A clause on the rule that looks for more robust designs, if neighbours of the recommended one violate limits and
    no rule of choice does; else none."""
    if _fragile_recommendation(result) is None or any(choice.method == "robust" for choice in result.study.choose):
        return []
    return ["'report: {choose: [robust]}' looks for a design whose neighbours satisfy the limits"]


def end_of_front(result: Result) -> list[str]:
    """A clause if the recommended design is an end of a wide front that no rule of choice but robustness selects: the
    best in one objective, and in the worse half of the range of another; else none."""
    recommendation, front = result.recommended(), np.asarray(result.front(), dtype=np.intp)
    objectives, has_robust = result.problem.objectives, any(c.method == "robust" for c in result.study.choose)
    if recommendation is None or len(objectives) < 2 or len(front) < 3 or narrow_front(result):
        return []
    rules = {"compromise", *(decision.label(c) for c in result.study.choose if c.method != "robust")}
    if any(row == recommendation[1] for rule, row in result.chosen().items() if rule in rules):
        return []
    values, row = result.outcomes.objectives, recommendation[1]
    low, high = values[front].min(axis=0), values[front].max(axis=0)
    best = [o.name for o, is_least in zip(objectives, values[row] <= low, strict=True) if is_least]
    if not best or not (values[row] > 0.5 * (low + high)).any():
        return []
    way = (
        "more designs may have a compromise whose neighbours satisfy the limits"
        if has_robust
        else "'report: {choose: [knee, robust]}' looks for a compromise whose neighbours satisfy the limits"
    )
    return [f"the recommended design is an end of the front, the best {listed(best)}: {way}"]


def behind_front(result: Result) -> list[str]:
    """A clause if a recommended design is behind the front: its costs beside the most robust design that is better or
    equal in every objective (of equals, the one nearest to the ideal point); else none."""
    recommendation, near, front = result.recommended(), result.tolerated(), np.asarray(result.front(), dtype=np.intp)
    if recommendation is None or near is None or recommendation[1] in front or not len(front):
        return []
    F, row = result.outcomes.objectives, recommendation[1]
    dominates = result.outcomes.feasible[near.rows] & (F[near.rows] <= F[row]).all(axis=1) & (near.rows != row)
    if near.index_of(row) is None or not dominates.any():
        return []
    rows, shares = near.rows[dominates], near.share[dominates]
    rows = rows[shares >= shares.max() - 1e-9]
    better = int(rows[np.argmin(decision.distance_from_ideal(F[rows], F[front]))])
    signs = np.array([o.sign for o in result.problem.objectives])
    values, worst = objective_values(result), near.worst(signs)
    gains = _comparison(result, values[better], values[row], values[better] != values[row])
    worst_better, worst_recommended = worst[near.rows == better][0], worst[near.rows == row][0]
    losses = _comparison(result, worst_better, worst_recommended, signs * worst_better > signs * worst_recommended)
    return [
        f"the recommended design is behind the front, for the sake of its neighbours ({near.words(row)} satisfy the "
        f"limits): design {better} has {gains}, with {near.words(better)}"
        f"{f', and among its neighbours at worst {losses}' if losses else ''}"
    ]


def _comparison(result: Result, values: Floats, reference: Floats, mask: Mask) -> str:
    """The objectives in the `mask` (m,) with their `values` (m,) "instead of" those of a `reference` (m,), in words."""
    return listed(
        [
            f"{o.name} {number(float(a))} instead of {number(float(b))}{f' {o.unit}' if o.unit else ''}"
            for o, a, b, is_named in zip(result.problem.objectives, values, reference, mask, strict=True)
            if is_named
        ]
    )


def robust_baseline(result: Result) -> list[str]:
    """A clause on the designs of the baseline whose neighbours satisfy the limits, if those of the recommended design
    do not; else none."""
    near = _fragile_recommendation(result)
    if near is None:
        return []
    index_of = {name: near.index_of(row) for name, row in result.baseline.items() if result.outcomes.feasible[row]}
    robust = [
        f"{near.words(result.baseline[name])} neighbours of {name}"
        for name, baseline_index in index_of.items()
        if baseline_index is not None and near.share[baseline_index] >= ENOUGH
    ]
    if not robust:
        return []
    return [f"the limits hold in {listed(robust)}: a baseline is compared, not recommended"]


def unknown_robustness(result: Result) -> list[str]:
    """A clause if a completed run had too few designs for an evaluation of neighbours; else none."""
    tolerances, rows_of_choices = (result.original or result).study.tolerances, set(result.chosen().values())
    if tolerances is None or not tolerances.assumed or tolerances.neighbours is not None or result.ended != "done":
        return []
    if result.programs() or result.study.lists_designs:  # few are meant
        return []
    designs, enough = len(result.outcomes), enough_for(len(rows_of_choices))
    if designs < 2 or designs >= enough or result.tolerated() is not None:
        return []
    shortage = f"{plural(designs, 'design')} are too few to check the robustness of the chosen ones"
    return [f"{shortage}: at least {enough} are needed, or a tolerance in the space"]


def narrow_front(result: Result) -> list[str]:
    """A clause about objectives that vary less over the front than their tolerances: those of the neighbours of the
    recommended design, or the largest share by which a parameter may be off."""
    front, near, recommendation = result.front(), result.tolerated(), result.recommended()
    objectives, tolerances = result.problem.objectives, (result.original or result).study.tolerances
    if tolerances is None or recommendation is None or len(objectives) < 2 or len(front) < 2:
        return []
    values = objective_values(result)[front]
    low, high = values.min(axis=0), values.max(axis=0)
    share = max((t.size for t in tolerances.of if t.relative and not tolerances.assumed), default=0.0)
    tolerance = share * np.abs(values).max(axis=0)
    index = None if near is None else near.index_of(recommendation[1])
    if near is not None and index is not None:
        around = np.vstack([near.objectives[index], objective_values(result)[recommendation[1]]])
        tolerance = np.maximum(tolerance, np.nanmax(around, axis=0) - np.nanmin(around, axis=0))
    narrow = high - low <= tolerance
    ranges = [
        f"{o.name} ({number(float(a))} to {number(float(b))}{f' {o.unit}' if o.unit else ''})"
        for o, a, b, is_narrow in zip(objectives, low, high, narrow, strict=True)
        if is_narrow
    ]
    if not ranges:
        return []
    trade_off = "; the front has no trade-off to choose from" if (~narrow).sum() < 2 else ""
    if narrow.all() and recommendation[1] in front:
        trade_off = "; the front is a single answer"
    return [
        f"over the front {listed(ranges)} var{'ies' if len(ranges) == 1 else 'y'} less than the "
        f"tolerances{assumed_size(result)}{trade_off}"
    ]


def _because(name: str) -> str:
    several = " and " in name
    return f"; {name} {'have' if several else 'has'} the largest influence" if name else ""


def _lost(violations: int, without: int) -> str:
    """Status of the infeasible neighbours; " of 16" follows."""
    clauses = [f"violates limits in {violations}"] * (violations > 0) + [f"has no result in {without}"] * (without > 0)
    return " and ".join(clauses)


def _fragile(result: Result) -> list[tuple[str, int, int, int, str]]:
    """The chosen designs, except the baseline, with too few neighbours within the limits: label, number that violate
    limits, number without a result, their total, and the most important parameter."""
    neighbours = result.tolerated()
    if neighbours is None:
        return []
    baseline_rows = set(result.baseline.values())
    fragile_designs = []
    for row, labels in chosen_labels(result).items():
        index = neighbours.index_of(row)
        if (
            index is None
            or row in baseline_rows
            or not result.outcomes.feasible[row]
            or neighbours.share[index] >= ENOUGH
        ):
            continue
        is_recorded, feasible = neighbours.is_recorded[index], neighbours.feasible[index]
        without = int((is_recorded & np.isnan(neighbours.objectives[index]).any(axis=1)).sum())
        violations = int((is_recorded & ~feasible).sum()) - without
        fragile_designs.append(
            (as_subject(labels), violations, without, int(is_recorded.sum()), neighbours.matters(index))
        )
    return fragile_designs


def tolerance_text(tolerance: Tolerance, unit: str) -> str:
    """A tolerance in words."""
    size = f"{number(100.0 * tolerance.size)} %" if tolerance.relative else f"{number(tolerance.size)} {unit}".rstrip()
    return f"{tolerance.parameter} {'a standard deviation of' if tolerance.normal else '±'} {size}".replace("± ", "±")


def _unit(result: Result, tolerance: Tolerance) -> str:
    return next(p.unit for p in result.problem.space.parameters if p.name == tolerance.parameter)


def _table(result: Result, neighbours: ToleranceResults, order: list[int], label_by_index: dict[int, str]) -> Table:
    """Results of the neighbours, design by design: the chosen ones, then others of the front and behind it."""
    signs = np.array([o.sign for o in result.problem.objectives])
    values, worst, spread = objective_values(result), neighbours.worst(signs), neighbours.spread
    spread = np.where(spread <= EQUAL * np.abs(worst), 0.0, spread)
    labels = objective_labels(result.problem)
    head = ["design", "row", "neighbours feasible", "share [%]", "matters most"]
    head += [name for label in labels for name in (label, "worst", "spread")]
    rows, front = [], set(result.front())
    for i in order:
        row = int(neighbours.rows[i])
        each = [float(v) for j in range(len(labels)) for v in (values[row, j], worst[i, j], spread[i, j])]
        feasible = f"{int(neighbours.feasible[i].sum())} of {int(neighbours.is_recorded[i].sum())}"
        share = 100.0 * float(neighbours.share[i])
        label = label_by_index.get(i, _ON if row in front else _BEHIND)
        rows.append((label, row, feasible, share, neighbours.matters(i) or "–", *each))
    note = "Worst value and standard deviation over all neighbours with a result."
    return Table("Designs within their tolerances", tuple(head), tuple(rows), visible_rows=40, note=note)


def _effects(result: Result, neighbours: ToleranceResults, label_by_index: dict[int, str]) -> Table:
    """Variance explained by each parameter, for the chosen designs."""
    labels = [*(o.name for o in result.problem.objectives), *(["limits"] if result.problem.constraints else [])]
    rows = []
    space = result.problem.space
    for index, label in label_by_index.items():
        active = space.active(result.outcomes.X[[int(neighbours.rows[index])]])[0]
        for name, shares in zip(neighbours.names, neighbours.effects[index], strict=True):
            if active[space.names.index(name)]:
                cells = ("–" if np.isnan(v) else round(100.0 * float(v), 1) for v in shares[: len(labels)])
                rows.append((label, name, *cells))
    return Table(
        "Variance explained by the parameters [%]",
        ("design", "parameter", *labels),
        tuple(rows),
        visible_rows=60,
        note="Share of the variance over the neighbours explained by a linear dependence on the parameter "
        "(squared correlation); for limits, that of the nearest or violated one. –: no variation, or "
        "too few neighbours.",
    )
