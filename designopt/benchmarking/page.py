"""The page of a benchmark: ranks, medians, convergence, attainment surfaces, tests, and what is incomplete."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from designopt.benchmarking.ranks import Ranks, pair_tests, ranks
from designopt.benchmarking.scores import POINTS, BenchmarkScores, ProblemScores
from designopt.benchmarking.table import MedianTable, failed_runs, quartiles_text, score_text, tables
from designopt.counts import plural
from designopt.report.colours import axis, category, layout, log_ticks
from designopt.report.comparison.bands import median_with_band
from designopt.report.comparison.seeds import LEVEL, attainment
from designopt.report.labels import listed, number, objective_amounts, objective_label, plain
from designopt.report.page.page import PageHead, page, write_page
from designopt.report.parts.answer.problem import limit_with_unit, range_text, use_text
from designopt.report.section import Figure, Section, Table, with_a_value
from designopt.report.traces import Trace, selected, trace
from designopt.store.views.table import stated_constraints

#: Maximum number of objectives of a drawn attainment surface.
DRAWN = 3
#: Maximum number of problems with a figure each of the score over the designs; more have one with a choice.
FIGURES = 6
#: Maximum number of listed seeds.
SEEDS = 8
#: Least drawn distance of a score from 1: rounding of the score itself.
SMALLEST = 1e-16
#: The first part, which is no decision: all parts are printed.
_FIRST = "Ranks and medians"
#: Problems below which tests over problems say little (Demsar 2006, section 3.2.2).
FEW_PROBLEMS = 10


def write_benchmark_page(
    scores: BenchmarkScores, path: Path, failures: Mapping[tuple[str, str, int], str], command: str = ""
) -> Path:
    """Write the page of `scores` to `path` (HTML, self-contained); `failures` are messages of failed runs,
    `command` repeats or continues the benchmark. Raises `OSError`."""
    benchmark = scores.benchmark
    several = tables(scores)
    sections = [_overview(scores, several, failures), *_curves(scores), *_attainment(scores), *_tests(scores, several)]
    sections += [_statement(scores), _runs(scores, failures, command)]
    banners: tuple[str, ...] = ()
    if cells := [cell for cell in scores.incomplete if cell.key not in failures]:
        count = f"{len(cells)} of {plural(len(benchmark.cells), 'run')}"
        banners = (f"{count} are not complete; give the command again to continue.",)
    about = f"{plural(len(scores.problem_names), 'problem')}, {plural(len(scores.solvers), 'solver')}"
    return write_page(page(PageHead(benchmark.name, benchmark.title, about, banners), sections), path)


# -------------------------------------------------------------------------------------------------------- overview


def _overview(
    scores: BenchmarkScores, several: Sequence[MedianTable], failures: Mapping[tuple[str, str, int], str]
) -> Section:
    benchmark = scores.benchmark
    failure_lines = [failed_runs(failures)] if failures else []
    if not several:
        return Section(_FIRST, introduction="No run is complete yet.", findings=tuple(failure_lines))
    seeds = sorted({record.seed for record in scores.records})
    facts = (
        ("problems", str(len(scores.problem_names))),
        ("solvers", str(len(scores.solvers))),
        ("seeds", listed(list(map(str, seeds))) if len(seeds) <= SEEDS else f"{len(seeds)}: {seeds[0]} to {seeds[-1]}"),
        ("designs of a run", number(several[-1].evaluations)),
    )
    last = several[-1]
    findings = [*failure_lines, *_findings(scores, last), *scores.cautions]
    notes = [
        "A score is the share of the known hypervolume that the designs of a run dominate; with one objective, the "
        "share of the way from the reference value to the best known value. 1 is the best; 1−2e−7 is 2e−7 below it.",
        "In the tables: median (first to third quartile) over the runs; ● marks the largest median of a problem, ○ a "
        f"solver that is not significantly worse (Mann and Whitney, one-sided, with Holm's correction, level {LEVEL}).",
    ]
    return Section(
        _FIRST,
        introduction=benchmark.description,
        facts=facts,
        findings=tuple(findings),
        figures=rank_figures(scores),
        tables=tuple(medians_on_page(table) for table in reversed(several)),
        notes=tuple(notes),
    )


def medians_on_page(table: MedianTable) -> Table:
    """Medians with quartiles, and the number of runs of solvers with fewer than others."""
    rows: list[tuple[Any, ...]] = []
    for problem, spreads in table.rows:
        cells = []
        for s in spreads:
            mark = "" if s is None else "\u00a0●" if s.best else "\u00a0○" if s.equal else ""
            quartiles = "" if s is None else quartiles_text(s, "\u2060–\u2060").replace(" ", "\u00a0")
            runs = "" if s is None or s.runs == table.seeds else f", {plural(s.runs, 'run')}"
            band = "" if s is None or s.runs < 2 else f"\n({quartiles}{runs})"
            cells.append("" if s is None else f"{score_text(s.median)}{mark}{band}")
        rows.append((problem, *cells))
    if table.problem_count > 1 and not any(map(math.isnan, table.average)):
        over = "" if table.problem_count == len(rows) else f" over {table.problem_count} problems"
        rows.append((f"average rank{over}", *(f"{rank:.2f}" for rank in table.average)))
    title = f"Median scores after {table.evaluations} designs"
    return Table(title, ("problem", *table.solvers), tuple(rows), visible_rows=100)


def _ranks(scores: BenchmarkScores, table: MedianTable) -> Ranks | None:
    full = scores.complete_medians(table.evaluations)
    return ranks(full) if len(full) > 1 and len(scores.solvers) > 1 else None


def _findings(scores: BenchmarkScores, table: MedianTable) -> list[str]:
    ranking = _ranks(scores, table)
    if ranking is None:
        return []
    order = np.argsort(ranking.average, kind="stable")
    first, least = scores.solvers[order[0]], float(ranking.average[order[0]])
    leaders = [s for s, rank in zip(scores.solvers, ranking.average, strict=True) if rank <= least + 1e-9]
    have = f"{first} has the best" if len(leaders) == 1 else f"{listed(leaders)} share the best"
    over = f"{len(scores.solvers)} over {plural(ranking.problems, 'problem')}"
    findings = [f"{have} average rank after {table.evaluations} designs, {least:.2f} of {over}."]
    if not math.isnan(ranking.p):
        differ = "differ" if ranking.p < LEVEL else "do not differ"
        findings.append(f"The ranks {differ} significantly (Friedman, p = {number(ranking.p, 2)}).")
    behind = ranking.average - ranking.average[order[0]] > ranking.critical_difference
    names = [s for s, b in zip(scores.solvers, behind, strict=True) if b]
    if names and not ranking.p >= LEVEL:
        difference = number(ranking.critical_difference, 3)
        findings.append(
            f"{listed(names)} {'ranks' if len(names) == 1 else 'rank'} significantly behind {first} (Nemenyi, critical "
            f"difference {difference})."
        )
    return findings


def _rank_figure(ranking: Ranks, solvers: Sequence[str], evaluations: int) -> Figure:
    """Average ranks with half the critical difference on either side."""
    order = np.argsort(-ranking.average, kind="stable")
    names = [plain(solvers[j]) for j in order]
    half = ranking.critical_difference / 2.0
    average = ranking.average[order]
    reach = {"array": np.minimum(half, len(names) - average), "arrayminus": np.minimum(half, average - 1.0)}
    data = trace(
        average, names, mode="markers", marker={"size": 10, "color": "@accent"},
        error_x={"type": "data", "symmetric": False, **reach, "color": "@muted", "thickness": 1.5, "width": 6},
        hover="%{y}: average rank <b>%{x:.3~g}</b>",
    )  # fmt: skip
    plot = {
        "data": [data],
        "layout": layout(xaxis=axis("average rank (1 is the best)"), yaxis=axis("", type="category"), showlegend=False),
    }
    note = (
        f"Two solvers differ significantly (level {LEVEL}) if their bars do not overlap: Nemenyi's critical difference."
    )
    title = f"Average ranks after {evaluations} designs, over {ranking.problems} problems"
    return Figure(title, plot, height=130 + 34 * len(names), note=note)


# ------------------------------------------------------------------------------------------------------- the runs


def _curves(scores: BenchmarkScores) -> list[Section]:
    """Median score of each solver over the designs, with the quartiles."""
    if not scores.problems:
        return []
    bands = {p.problem.name: _bands(p, scores.solvers) for p in scores.problems}
    names = list(bands)
    y_axes = [_score_axis(p, bands[p.problem.name]) for p in scores.problems]
    x_axes = [axis("designs", range=[0, max(len(run.F) for run in p.runs)]) for p in scores.problems]
    if len(names) <= FIGURES:
        figures = convergence_figures(scores)
    else:
        figure = selected(
            "Score over the designs", {"problem": names}, lambda i: bands[names[i]], layout(xaxis=x_axes[0]),
            view=lambda i: {"xaxis": x_axes[i], "yaxis": y_axes[i]}, height=460,
        )  # fmt: skip
        figures = (figure,)
    note = "Line: the median of the runs. Band: between the first and the third quartile."
    if any(map(_resolved, scores.problems)):
        note += " Where the best value is known, the distance of the score from 1 is drawn."
    return [Section("Score over the designs", figures=figures, notes=(note,))]


def convergence_figures(scores: BenchmarkScores) -> tuple[Figure, ...]:
    """The median score of each solver over the designs, with the quartiles, problem by problem."""
    figures = []
    for p in scores.problems:
        bands = _bands(p, scores.solvers)
        designs = axis("designs", range=[0, max(len(run.F) for run in p.runs)])
        plot = {"data": bands, "layout": layout(xaxis=designs, yaxis=_score_axis(p, bands))}
        figures.append(Figure(p.problem.name, plot, height=380))
    return tuple(figures)


def rank_figures(scores: BenchmarkScores) -> tuple[Figure, ...]:
    """The average ranks of the solvers after the last number of designs; none with one problem or solver."""
    last = tables(scores)[-1:]
    ranking = _ranks(scores, last[0]) if last else None
    return () if ranking is None else (_rank_figure(ranking, scores.solvers, last[0].evaluations),)


def attainment_figures(scores: BenchmarkScores) -> tuple[Figure, ...]:
    """The median attainment surfaces of the solvers, of each problem with two or three objectives."""
    return tuple(_surfaces(p, scores.solvers) for p in scores.problems if 2 <= len(p.objectives) <= DRAWN)


#: The figures of a benchmark's page by part, whose names are those of files.
FIGURES_OF_PARTS: Mapping[str, Callable[[BenchmarkScores], tuple[Figure, ...]]] = {
    "ranks": rank_figures,
    "convergence": convergence_figures,
    "attainment": attainment_figures,
}


def _resolved(p: ProblemScores) -> bool:
    """Whether scores near 1 differ by orders of magnitude: the best value of the only objective is known."""
    return len(p.objectives) == 1 and p.problem.best is not None


def _score_axis(p: ProblemScores, bands: Sequence[Trace]) -> dict[str, Any]:
    """The axis of the score, or of its distance from 1, for the curves `bands`."""
    if _resolved(p):
        y = np.concatenate([np.asarray(band["y"], dtype=float) for band in bands])
        y = y[np.isfinite(y) & (y > 0.0)]
        few_decades = y.size and 1.5 * y.min() < y.max() < 100.0 * y.min()
        ticks = {"tickvals": log_ticks(float(y.min()), float(y.max()), 6)} if few_decades else {}
        return axis("1 − score", type="log", exponentformat="power", **ticks)
    return axis("score", rangemode="tozero", type="linear")


def _bands(p: ProblemScores, solvers: Sequence[str]) -> list[Trace]:
    longest = max(len(run.F) for run in p.runs)
    evaluations = np.unique(np.linspace(1, longest, min(POINTS, longest)).round().astype(int)).tolist()
    traces: list[Trace] = []
    for i, solver in enumerate(solvers):
        curves = np.array([p.curve(run, evaluations) for run in p.runs if run.cell.solver == solver])
        if len(curves):
            curves = np.maximum(1.0 - curves, SMALLEST) if _resolved(p) else curves
            traces += median_with_band(evaluations, curves, solver, i)
    return traces


def _attainment(scores: BenchmarkScores) -> list[Section]:
    """Median attainment surface of each solver, by problem."""
    figures = attainment_figures(scores)
    if not figures:
        return []
    introduction = (
        "A point is attained by a run that found a design at least as good in every objective. The median attainment "
        "surface is attained by half of the runs (Grunert da Fonseca, Fonseca and Hall 2001)."
    )
    left = [p.problem.name for p in scores.problems if len(p.objectives) > DRAWN]
    notes = (f"Not drawn, with more than {DRAWN} objectives: {listed(left)}.",) if left else ()
    return [Section("Median attainment surfaces", introduction=introduction, figures=figures, notes=notes)]


def _surfaces(p: ProblemScores, solvers: Sequence[str]) -> Figure:
    signs = [o.sign for o in p.objectives]
    labels = [plain(objective_label(o)) for o in p.objectives]
    data: list[Trace] = []
    for i, solver in enumerate(solvers):
        fronts = [run.front() for run in p.runs if run.cell.solver == solver]
        points = attainment(fronts, 50.0) if fronts else np.empty((0, len(signs)))
        if not len(points):
            continue
        columns = [sign * column for sign, column in zip(signs, points.T, strict=True)]
        hover = f"{plain(solver)}<br>%{{x:.5~g}}, %{{y:.5~g}}"
        if len(columns) == 2:
            stair = {"color": category(i), "width": 2.2, "shape": "hv"}
            data.append(trace(columns[0], columns[1], plain(solver), line=stair, hover=hover))
        else:
            marker = {"size": 3, "color": category(i)}
            hover += ", %{z:.5~g}"
            points_3d = trace(columns[0], columns[1], plain(solver), mode="markers", marker=marker, hover=hover)
            data.append({**points_3d, "type": "scatter3d", "z": columns[2]})
    axes = {"xaxis": axis(labels[0]), "yaxis": axis(labels[1])}
    if len(labels) == DRAWN:
        axes = {"scene": {f"{a}axis": {"title": {"text": t}} for a, t in zip("xyz", labels, strict=True)}}
    return Figure(p.problem.name, {"data": data, "layout": layout(**axes)}, height=440)


# ---------------------------------------------------------------------------------------------------------- tests


def _tests(scores: BenchmarkScores, several: Sequence[MedianTable]) -> list[Section]:
    """Ranks at all budgets, and the pairs after the last one."""
    rows = []
    for table in several:
        ranking = _ranks(scores, table)
        if ranking is not None:
            averages = (round(float(rank), 2) for rank in ranking.average)
            numbers = (float(f"{value:.3g}") for value in (ranking.p, ranking.critical_difference))
            rows.append((table.evaluations, ranking.problems, *averages, *numbers))
    if not rows:
        return []
    head = ("designs", "problems", *scores.solvers, "p (Friedman)", "critical difference")
    full = scores.complete_medians(several[-1].evaluations)
    pairs = [
        (
            scores.solvers[t.first],
            scores.solvers[t.second],
            t.won,
            t.lost,
            float(f"{t.p:.2g}"),
            float(f"{t.p_corrected:.2g}"),
        )
        for t in pair_tests(full)
    ]
    pair_head = ("first", "second", "problems won by the first", "lost", "p (Wilcoxon)", "p with Holm's correction")
    notes = ["Ranks of medians, tests and their interpretation: Demšar (2006), Journal of Machine Learning Research 7."]
    if len(full) < FEW_PROBLEMS:
        notes.append(f"Tests over {plural(len(full), 'problem')} find large differences only.")
    return [
        Section(
            "Ranks and tests over problems",
            tables=(
                Table("Average ranks", head, tuple(rows)),
                Table(f"Pairs after {several[-1].evaluations} designs", pair_head, tuple(pairs), visible_rows=100),
            ),
            notes=tuple(notes),
        )
    ]


def _statement(scores: BenchmarkScores) -> Section:
    """The compared problems with their limits, and the solvers with their settings."""
    benchmark = scores.benchmark
    problems = tuple(
        (
            p.name,
            f"{use_text(p.study.model)}, version {p.study.model.plugin.version}",
            "; ".join(f"{v.name} {range_text(v)} {v.unit}".rstrip() for v in p.study.space),
            "; ".join(f"{o.direction} {o.expression.text}" for o in p.study.objectives),
            "; ".join([*map(limit_with_unit, stated_constraints(p.study)), *(r.text for r in p.study.relations)]),
            len(p.study.scenarios),
        )
        for p in benchmark.problems
    )
    use_of = {cell.solver: cell.study.stages[-1].solver for cell in benchmark.cells}
    solvers = tuple((name, use_text(use_of[name]), use_of[name].plugin.version) for name in benchmark.solvers)
    head = ("problem", "model", "parameters", "objectives", "limits and relations", "scenarios")
    columns, rows = with_a_value(head, problems)
    return Section(
        "Problems and solvers",
        tables=(
            Table("Problems", columns, rows, visible_rows=100),
            Table("Solvers", ("solver", "plugin, with settings that differ from the defaults", "version"), solvers),
        ),
    )


def _runs(scores: BenchmarkScores, failures: Mapping[tuple[str, str, int], str], command: str) -> Section:
    """The costs of the solvers, incomplete runs, and the command that repeats the benchmark."""
    spent: dict[str, dict[tuple[str, int], float]] = {}
    for r in scores.records:
        if math.isfinite(r.search_ms):
            spent.setdefault(r.solver, {})[r.problem, r.seed] = r.search_ms
    cost = tuple((s, float(np.median(list(spent[s].values()))), len(spent[s])) for s in scores.solvers if s in spent)
    tables_ = [Table("Time of the search itself", ("solver", "median per design [ms]", "runs"), cost)] if cost else []
    rows = tuple((*cell.key, failures.get(cell.key, "not complete")) for cell in scores.incomplete)
    if rows:
        tables_.append(Table("Failed and incomplete runs", ("problem", "solver", "seed", "reason"), rows))
    findings = []
    for p in scores.problems:
        at = objective_amounts(p.objectives, p.reference)
        best = f"a hypervolume of {number(p.volume)}"
        if len(p.objectives) == 1:
            best = objective_amounts(p.objectives, p.reference - p.volume)
        findings.append(f"{p.problem.name}: score 0 at {at}; score 1 at {best}.")
    notes = ["Each run is a store: designopt show, report and resume work on it."]
    if command:
        notes.append(f"Repeat or continue: {command}")
    return Section("Runs", findings=tuple(findings), tables=tuple(tables_), notes=tuple(notes))
