"""Comparison of two or more stores on one page: fronts, hypervolume, chosen designs, convergence, and differences."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from designopt import decision
from designopt.arrays import Floats
from designopt.counts import percent
from designopt.lazy import moocore
from designopt.report.colours import axis, category, layout
from designopt.report.comparison.bands import median_with_band
from designopt.report.comparison.best import best_values
from designopt.report.comparison.compared_store import ComparedStore
from designopt.report.comparison.differences import differences
from designopt.report.comparison.groups import run_groups
from designopt.report.comparison.seeds import Scores, seed_statistics
from designopt.report.comparison.subject import subjects
from designopt.report.labels import (
    chosen_once,
    duration,
    listed,
    objective_amounts,
    objective_label,
    objective_values,
    plain,
    thinned,
    with_unit,
)
from designopt.report.page.page import PageHead, page, write_page
from designopt.report.parts.answer.overview import computing_time
from designopt.report.section import Figure, Section, Table, with_a_value
from designopt.report.terminal import unfinished
from designopt.report.traces import above, beside, trace
from designopt.store.result import Result
from designopt.store.views.volume import volumes_after
from designopt.study.language import units

if TYPE_CHECKING:
    from designopt.study.study import Objective

#: Maximum number of drawn designs per front, and of drawn objectives.
DRAWN, PAIRED = 2000, 4
#: Number of points of the hypervolume history per run, and maximum number of objectives.
PLACES, OBJECTIVES = 40, 5
_SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "x", "star", "hexagon")


def write_comparison(results: Sequence[Result], path: Path | str) -> Path:
    """Write the page of `comparison` to `path` (HTML, self-contained); return the path."""
    return write_page(comparison(results), path)


def comparison(results: Sequence[Result], *, plotly: str | None = None) -> str:
    """A page that compares the stores of `results`; `plotly` as in `designopt.report.page.page`.

    It compares the objectives common to all by name and direction, in the unit of the first, and draws the figures of
    the subject over each other. Raises `ValueError`, with a sentence, for fewer than two stores, for stores of which
    some have objectives, but none in common, and for objectives of different dimension.
    """
    if len(results) < 2:
        raise ValueError("a comparison needs at least two stores")
    entries, objectives, notes = _common(results)
    title = f"Comparison of {listed([e.label for e in entries])}"
    banners = tuple(f"{e.label}: {text}" for e in entries if (text := unfinished(e.result)))
    parts = [_overview(entries, notes), _differences(entries)]
    fronts = [e.front for e in entries]
    if objectives and any(map(len, fronts)):
        parts.append(
            best_values(entries, objectives[0]) if len(objectives) == 1 else _fronts(entries, objectives, fronts)
        )
        if len(objectives) <= OBJECTIVES:
            repetitions = seed_statistics(entries, objectives, _scores(entries, objectives, fronts))
            parts += [repetitions] if repetitions else []
    if objectives:
        parts.append(_chosen_designs(entries, objectives))
    parts += subjects(results, [e.label for e in entries])
    return page(PageHead("comparison", title, f"{len(entries)} stores", banners), parts, plotly=plotly)


# ------------------------------------------------------------------------------------------------ what is common


def _common(results: Sequence[Result]) -> tuple[list[ComparedStore], tuple[Objective, ...], list[str]]:
    """The stores with their common objectives (of the first store), and the others."""
    objectives_of = [{o.name: o for o in r.problem.objectives} for r in results]
    names = [n for n in objectives_of[0] if all(n in k for k in objectives_of)]
    labels = _labels(results)
    if not names and any(objectives_of):
        each = "; ".join(
            f"{label}: {', '.join(o.name for o in k.values())}" for label, k in zip(labels, objectives_of, strict=True)
        )
        raise ValueError(
            f"the stores have no objective in common ({each}); a comparison needs an objective of the same name"
        )
    for name in names:
        directions = {k[name].direction for k in objectives_of}
        if len(directions) > 1:
            display_name = objectives_of[0][name].name
            raise ValueError(
                f"objective {display_name} is minimised in one store and maximised in another: not comparable"
            )
    notes = []
    left = sorted({o.name for k in objectives_of for n, o in k.items() if n not in names})
    if left:
        notes.append(f"Not compared, because not all stores have them: {listed(left)}.")
    entries = []
    for label, result, k in zip(labels, results, objectives_of, strict=True):
        names_here = list(k)
        columns = []
        for name in names:
            factor, offset = _conversion(k[name], objectives_of[0][name], label)
            values = objective_values(result)[:, names_here.index(name)] * factor + offset
            if (factor, offset) != (1.0, 0.0):
                notes.append(
                    f"{k[name].name} of {label} is converted from {k[name].unit} to {objectives_of[0][name].unit}."
                )
            columns.append(np.where(np.isfinite(values), k[name].sign * values, np.inf))
        values_of_store = np.column_stack(columns) if columns else np.empty((len(result.outcomes), 0))
        entries.append(ComparedStore(label, result, values_of_store))
    return entries, tuple(objectives_of[0][n] for n in names), notes


def _labels(results: Sequence[Result]) -> list[str]:
    """Names of the stores; equal ones are extended by the distinguishing part of the path."""
    paths = [r.path.resolve() for r in results]
    names = [p.name.removesuffix(".study") for p in paths]
    if len(set(names)) < len(names):
        names = ["/".join(p.parts[-2:]).removesuffix(".study") for p in paths]
    if len(set(names)) < len(names):
        names = [f"{n} ({i})" for i, n in enumerate(names, start=1)]
    return names


def _conversion(objective: Objective, common: Objective, label: str) -> tuple[float, float]:
    """Factor and offset from the unit of a store's objective to the common one."""
    if objective.unit == common.unit:
        return 1.0, 0.0
    if not units.same_dimension(objective.unit, common.unit):
        unit_names = (
            f"{common.unit or 'a plain number'} in the first store and {objective.unit or 'a plain number'} in {label}"
        )
        raise ValueError(f"objective {common.name} is in {unit_names}: not comparable")
    return units.factor_offset(objective.unit, common.unit)


# -------------------------------------------------------------------------------------------------------- sections


def _overview(entries: list[ComparedStore], notes: list[str]) -> Section:
    rows = []
    for e in entries:
        c, r = e.result.counts, e.result
        failures = int(np.sum(r.outcomes.failed & ~r.outcomes.invalid))
        rows.append(
            (
                e.label,
                r.study.name,
                ", ".join(dict.fromkeys(s.solver.plugin.name for s in r.study.stages)),
                c["designs"],
                c["evaluations"],
                "" if r.cheap is None else len(r.cheap),
                c["feasible"],
                failures,
                len(e.front) if e.result.problem.objectives else "",
                duration(computing_time(r)),
                "–" if r.elapsed is None else duration(r.elapsed),
                r.ended,
            )
        )
    head = (
        "store",
        "study",
        "solvers",
        "designs",
        "evaluations",
        "cheap evaluations (beside them)",
        "feasible",
        "failed",
        "on the front",
        "computing time",
        "elapsed",
        "ended",
    )
    columns, cells = with_a_value(head, rows)
    return Section(
        "Stores",
        tables=(Table("What was done", columns, cells),),
        notes=tuple(dict.fromkeys(notes)),
    )


def _differences(entries: list[ComparedStore]) -> Section:
    """Differences between the problems, in words: each store against the first."""
    findings = []
    for e in entries[1:]:
        clauses = differences(entries[0].result.study, e.result.study)
        who = f"{e.label} against {entries[0].label}"
        findings += [f"{who}: {text}." for text in clauses] or [f"{who}: the same study."]
    return Section("What differs", findings=tuple(findings))


def _reference(
    entries: list[ComparedStore], objectives: tuple[Objective, ...], fronts: list[NDArray[np.intp]]
) -> Floats:
    """One reference point for all: that of the first study if all agree, else the worst values of all fronts plus a
    tenth of the range."""
    points = [e.result.study_reference_point for e in entries]
    names = [o.name for o in objectives]
    if points[0] and all(g == points[0] for g in points) and set(names) <= set(points[0]):
        return np.array([o.sign * points[0][name] for name, o in zip(names, objectives, strict=True)])
    F = np.concatenate([e.objectives[rows] for e, rows in zip(entries, fronts, strict=True)])
    return decision.beyond(F.max(axis=0), np.ptp(F, axis=0))


def _scores(entries: list[ComparedStore], objectives: tuple[Objective, ...], fronts: list[NDArray[np.intp]]) -> Scores:
    """One number for each store: the hypervolume of its front, or its best value."""
    if len(objectives) == 1:
        best = [float(e.objectives[f, 0].min(initial=np.inf)) for e, f in zip(entries, fronts, strict=True)]
        objective = objectives[0]
        name = with_unit(f"best {objective.name}", objective.unit)
        return Scores(name, objective.sign * np.array(best), objective.direction == "maximize")
    reference = _reference(entries, objectives, fronts)
    volumes = [decision.hypervolume(e.objectives[f], reference) for e, f in zip(entries, fronts, strict=True)]
    return Scores("hypervolume", np.array(volumes), True)


def _fronts(entries: list[ComparedStore], objectives: tuple[Objective, ...], fronts: list[NDArray[np.intp]]) -> Section:
    m = len(objectives)
    figures = []
    tables: list[Table] = []
    notes = []
    findings = []
    figures.append(_planes(entries, objectives, fronts))
    if m > PAIRED:
        notes.append(f"The first {PAIRED} of {m} objectives are drawn.")
    for e, rows in zip(entries, fronts, strict=True):
        if len(rows) > DRAWN:
            notes.append(f"{DRAWN} of {len(rows)} designs on the front of {e.label} are drawn.")
    if m <= OBJECTIVES:
        reference = _reference(entries, objectives, fronts)
        scale = _scale(entries, reference, fronts)
        volumes = [decision.hypervolume(e.objectives[f], reference) for e, f in zip(entries, fronts, strict=True)]
        best = max(volumes)
        shares = _nondominated_shares(entries, fronts)
        tables.append(
            Table(
                "Hypervolume with one reference",
                ("store", "hypervolume", "of the largest", "of its front not dominated by another store"),
                tuple(
                    (e.label, v, percent(v / best, 1) if best > 0.0 else "–", share)
                    for e, v, share in zip(entries, volumes, shares, strict=True)
                ),
            )
        )
        notes.append(f"Reference point: {objective_amounts(objectives, reference)}.")
        order = np.argsort(volumes)[::-1]
        if best > 0.0:
            first, second = entries[order[0]], entries[order[1]]
            lead = 1.0 - volumes[order[1]] / best
            findings.append(
                f"{first.label} has the largest hypervolume, {percent(lead, 1)} more than {second.label}."
                if lead > 5e-4
                else f"{first.label} and {second.label} have the same hypervolume within 0.05 %."
            )
        figures.append(_convergence(entries, reference, scale))
    return Section(
        "Fronts",
        introduction="The designs of each store that are nondominated within the store in the common objectives.",
        findings=tuple(findings),
        figures=tuple(figures),
        tables=tuple(tables),
        notes=tuple(notes),
    )


def _nondominated_shares(entries: list[ComparedStore], fronts: list[NDArray[np.intp]]) -> list[str]:
    """The share of each front that no design of another store dominates."""
    F = np.concatenate([e.objectives[rows] for e, rows in zip(entries, fronts, strict=True)])
    good = moocore.is_nondominated(F, keep_weakly=True)
    parts = np.split(good, np.cumsum([len(f) for f in fronts])[:-1])
    return [percent(float(part.mean())) if len(part) else "–" for part in parts]


def _planes(entries: list[ComparedStore], objectives: tuple[Objective, ...], fronts: list[NDArray[np.intp]]) -> Figure:
    """Every pair of the common objectives, one colour and symbol for each store."""
    m = min(len(objectives), PAIRED)
    across, down = beside(m - 1, 0.08), above(m - 1, 0.08)
    labels = [plain(objective_label(o)) for o in objectives]
    data: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    for k, (x, y) in enumerate(combinations(range(m), 2), start=1):
        suffix = "" if k == 1 else str(k)
        axes[f"xaxis{suffix}"] = axis(labels[x] if y == m - 1 else "", domain=across[x], anchor=f"y{suffix}")
        axes[f"yaxis{suffix}"] = axis(labels[y] if x == 0 else "", domain=down[y - 1], anchor=f"x{suffix}")
        for i, (e, every) in enumerate(zip(entries, fronts, strict=True)):
            rows = thinned(every, DRAWN)
            values = {j: objectives[j].sign * e.objectives[rows, j] for j in (x, y)}
            data.append(
                trace(values[x], values[y], plain(e.label), mode="lines+markers" if m == 2 else "markers",
                      line={"color": category(i), "width": 1, "shape": "hv"},
                      marker={"color": category(i), "size": 7, "symbol": _SYMBOLS[i % len(_SYMBOLS)]},
                      hover=f"<b>{plain(e.label)}</b> design %{{customdata}}<br>%{{x:.5~g}}, %{{y:.5~g}}",
                      customdata=rows.tolist(), legendgroup=str(i), showlegend=k == 1, xaxis=f"x{suffix}",
                      yaxis=f"y{suffix}")
            )  # fmt: skip
    return Figure(
        "Fronts, overlaid",
        {"data": data, "layout": layout(**axes)},
        height=520 if m == 2 else 300 * (m - 1) + 120,
    )


def _scale(entries: list[ComparedStore], reference: Floats, fronts: list[NDArray[np.intp]]) -> float:
    """Normalisation of hypervolumes: that of all fronts together."""
    F = np.concatenate([e.objectives[rows] for e, rows in zip(entries, fronts, strict=True)])
    return decision.hypervolume(F, reference) or 1.0


def _convergence(entries: list[ComparedStore], reference: Floats, scale: float) -> Figure:
    """Hypervolume with the common reference over the requested designs; of several runs of a search the median."""
    data = []
    groups, repeats = run_groups(entries)
    for i, group in enumerate([*groups, *repeats]):
        n = max(len(e.objectives) for e in group.entries)
        design_counts = np.unique(np.linspace(1, n, PLACES).astype(int)) if n else np.zeros(0, dtype=int)
        histories = np.array(
            [
                volumes_after(design_counts, e.objectives, e.result.outcomes.feasible, reference) / scale
                for e in group.entries
            ]
        )
        if len(histories) > 1:
            data += median_with_band(design_counts.tolist(), histories, group.label, i)
            continue
        data.append(
            trace(design_counts, histories[0], plain(group.label), mode="lines+markers", colour=category(i), width=2,
                  marker={"size": 5, "symbol": _SYMBOLS[i % len(_SYMBOLS)]},
                  hover=f"{plain(group.label)}, %{{x}} designs: <b>%{{y:.2%}}</b>")
        )  # fmt: skip
    axes = {
        "xaxis": axis("designs asked for"),
        "yaxis": axis("share of their joint hypervolume", tickformat=".0%", rangemode="tozero"),
    }
    return Figure("Hypervolume over the designs", {"data": data, "layout": layout(**axes)}, height=360)


def _chosen_designs(entries: list[ComparedStore], objectives: tuple[Objective, ...]) -> Section:
    """The chosen designs of each store in the common units."""
    results = [e.result.in_stated_units for e in entries]
    parameters = list(dict.fromkeys(with_unit(p.name, p.unit) for r in results for p in r.problem.space.free))
    limited_stores = any(r.problem.constraints for r in results)
    rows = []
    for e, result in zip(entries, results, strict=True):
        space = result.problem.space
        for label, row in chosen_once(e.result).items():
            values = space.values(result.outcomes.X[row].tolist())
            parameter_values = {with_unit(p.name, p.unit): values.get(p.name, "–") for p in space.free}
            aims = [float(o.sign * e.objectives[row, j]) for j, o in enumerate(objectives)]
            limits = "met" if result.outcomes.feasible[row] else "violated"
            limit_cells = [limits] if limited_stores else []
            rows.append((e.label, label, row, *aims, *limit_cells, *(parameter_values.get(p, "–") for p in parameters)))
    head = ("store", "chosen as", "design", *map(objective_label, objectives))
    head += ("its limits",) if limited_stores else ()
    if not rows:
        return Section("Chosen designs", introduction="No store has a design within its limits.")
    return Section(
        "Chosen designs", tables=(Table("Side by side", (*head, *parameters), tuple(rows), visible_rows=60),)
    )
