"""Tables of a benchmark: medians with quartiles, as CSV, Markdown and LaTeX; all scores, as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from designopt.benchmarking.cells import RecordedScore
from designopt.benchmarking.ranks import behind_best, ranks
from designopt.benchmarking.scores import BenchmarkScores
from designopt.counts import plural
from designopt.study.language.tables import TableError

#: Distance from the score 1 below which it is written out.
CLOSE = 5e-4
#: Files of the table with their formats.
FILES = ("table.csv", "table.md", "table.tex")
_SPECIAL = str.maketrans({c: f"\\{c}" for c in "&%$#_{}"} | {"~": "\\textasciitilde{}", "^": "\\textasciicircum{}"})


@dataclass(frozen=True)
class ScoreSpread:
    """Median and quartiles of the scores of `runs` runs. The median of the `best` solver of a problem is the largest;
    that of an `equal` one is not significantly worse."""

    runs: int
    median: float
    low: float
    high: float
    best: bool
    equal: bool


@dataclass(frozen=True)
class MedianTable:
    """The scores after a number of `evaluations`: for each problem a `ScoreSpread` by solver, None without a run.

    `average` are the ranks of the solvers over the `problem_count` problems that all of them have run; NaN without any.
    """

    evaluations: int
    solvers: tuple[str, ...]
    rows: tuple[tuple[str, tuple[ScoreSpread | None, ...]], ...]
    average: tuple[float, ...]
    problem_count: int

    @property
    def seeds(self) -> int:
        """The largest number of runs of a solver on a problem: others are not complete."""
        return max((s.runs for _, spreads in self.rows for s in spreads if s is not None), default=0)


def median_table(scores: BenchmarkScores, evaluations: int) -> MedianTable:
    """The table after a number of `evaluations`."""
    rows = []
    for problem in scores.problem_names:
        values = [scores.values(problem, solver, evaluations) for solver in scores.solvers]
        best, worse = behind_best(values)
        spreads: list[ScoreSpread | None] = []
        for j, v in enumerate(values):
            if not len(v):
                spreads.append(None)
                continue
            low, median, high = (float(q) for q in np.quantile(v, (0.25, 0.5, 0.75)))
            spreads.append(ScoreSpread(len(v), median, low, high, j == best, best not in (None, j) and not worse[j]))
        rows.append((problem, tuple(spreads)))
    full = scores.complete_medians(evaluations)
    average = (np.nan,) * len(scores.solvers)
    if len(full) and len(scores.solvers) > 1:
        average = tuple(ranks(full).average.tolist())
    return MedianTable(evaluations, scores.solvers, tuple(rows), average, len(full))


def failed_runs(failures: Mapping[tuple[str, str, int], str]) -> str:
    """How many runs of which solvers failed, and why the first did; `failures` are messages by problem, solver and
    seed."""
    by_solver = Counter(solver for _, solver, _ in failures)
    counts = ", ".join(f"{count} of {solver}" for solver, count in by_solver.items())
    (problem, solver, seed), message = next(iter(failures.items()))
    return (
        f"{plural(len(failures), 'run')} failed ({counts}) and are in no table; the first, {problem}, {solver}, seed "
        f"{seed}: {message}"
    )


def tables(scores: BenchmarkScores) -> list[MedianTable]:
    """The tables of all budgets with a score."""
    budgets = sorted({record.evaluations for record in scores.records})
    return [median_table(scores, budget) for budget in scores.benchmark.budgets if budget in budgets]


def as_csv(several: Sequence[MedianTable]) -> str:
    """One row for each problem, number of evaluations and solver, in full precision."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("problem", "evaluations", "solver", "runs", "median", "quartile_1", "quartile_3", "best", "equal"))
    for table in several:
        for problem, spreads in table.rows:
            for solver, s in zip(table.solvers, spreads, strict=True):
                if s is not None:
                    numbers = (repr(s.median), repr(s.low), repr(s.high))
                    writer.writerow((problem, table.evaluations, solver, s.runs, *numbers, int(s.best), int(s.equal)))
    return text.getvalue()


def as_markdown(several: Sequence[MedianTable]) -> str:
    """One table for each number of evaluations; the best median is bold, an equal one in italics."""
    parts = []
    for table in several:
        lines = [f"| {table.evaluations} evaluations | {' | '.join(table.solvers)} |"]
        lines.append(f"|---|{'---|' * len(table.solvers)}")
        lines += [
            f"| `{problem}` | {' | '.join(_cell(s, table.seeds, '**{}**', '*{}*') for s in spreads)} |"
            for problem, spreads in table.rows
        ]
        lines += [f"| average rank | {' | '.join(cells)} |" for cells in _ranks(table)]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def as_latex(several: Sequence[MedianTable]) -> str:
    """One ``tabular`` for each number of evaluations, with the rules of the package booktabs."""
    parts = []
    for table in several:
        names = " & ".join(solver.translate(_SPECIAL) for solver in table.solvers)
        lines = [f"\\begin{{tabular}}{{l{'r' * len(table.solvers)}}}", "\\toprule"]
        lines += [f"{table.evaluations} evaluations & {names} \\\\", "\\midrule"]
        for problem, spreads in table.rows:
            cells = " & ".join(_cell(s, table.seeds, "\\textbf{{{}}}", "\\emph{{{}}}", "$-$", "--") for s in spreads)
            lines.append(f"{problem.translate(_SPECIAL)} & {cells} \\\\")
        lines += [f"\\midrule\naverage rank & {' & '.join(cells)} \\\\" for cells in _ranks(table)]
        parts.append("\n".join([*lines, "\\bottomrule", "\\end{tabular}"]) + "\n")
    return "\n".join(parts)


def score_text(score: float) -> str:
    """A score with three decimals, or with its distance from 1 if these would not show it: ``1−2e−7``."""
    left = 1.0 - score
    if not 0.0 < left < CLOSE:
        return f"{score:.3f}"
    mantissa, exponent = f"{left:.0e}".split("e")
    return f"1−{mantissa}e−{-int(exponent)}"


def quartiles_text(s: ScoreSpread, dash: str) -> str:
    """The quartiles with a `dash` between them, or a word where their own signs would hide it."""
    low, high = score_text(s.low), score_text(s.high)
    return f"{low} to {high}" if "−" in low + high else f"{low}{dash}{high}"


def _cell(s: ScoreSpread | None, seeds: int, best: str, equal: str, minus: str = "−", dash: str = "–") -> str:
    """Median and quartiles, with the number of runs where these are fewer than `seeds`."""
    if s is None:
        return ""
    median = score_text(s.median)
    median = best.format(median) if s.best else equal.format(median) if s.equal else median
    remarks = [quartiles_text(s, dash)] if s.runs > 1 else []
    remarks += [plural(s.runs, "run")] if s.runs < seeds else []
    return (f"{median} ({', '.join(remarks)})" if remarks else median).replace("−", minus)


def _ranks(table: MedianTable) -> list[list[str]]:
    """The row of average ranks, if there are any over all problems."""
    complete = table.problem_count == len(table.rows) and table.problem_count > 1 and len(table.solvers) > 1
    return [[f"{rank:.2f}" for rank in table.average]] if complete else []


def write_tables(scores: BenchmarkScores, folder: Path) -> list[Path]:
    """Write the table in all formats; return the files. Raises `OSError`."""
    several = tables(scores)
    forms: tuple[Callable[[Sequence[MedianTable]], str], ...] = (as_csv, as_markdown, as_latex)
    paths = []
    for name, form in zip(FILES, forms, strict=True):
        (folder / name).write_text(form(several), encoding="utf-8")
        paths.append(folder / name)
    return paths


#: Columns of the table.
HEAD = ("problem", "solver", "seed", "evaluations", "score", "search_ms")


def read_records(path: Path) -> tuple[RecordedScore, ...]:
    """The rows of the CSV table `path`. Raises `TableError` with the line of a mistake, `OSError`."""
    try:
        rows = list(csv.reader(path.read_text(encoding="utf-8-sig").splitlines()))
    except (UnicodeDecodeError, csv.Error) as error:
        raise TableError(f"{path.name}: is not a CSV table in UTF-8 ({error})") from None
    if not rows or tuple(rows[0]) != HEAD:
        raise TableError(f"{path.name}:1: the columns must be {','.join(HEAD)}")
    return tuple(_record(path, line, row) for line, row in enumerate(rows[1:], start=2) if row)


def _record(path: Path, line: int, row: list[str]) -> RecordedScore:
    if len(row) != len(HEAD):
        raise TableError(f"{path.name}:{line}: {len(row)} values instead of {len(HEAD)}")
    problem, solver, seed, evaluations, score, search_ms = row
    try:
        record = RecordedScore(
            problem, solver, int(seed), int(evaluations), float(score), float(search_ms) if search_ms else math.nan
        )
    except ValueError as error:
        raise TableError(f"{path.name}:{line}: {error}") from None
    if not math.isfinite(record.score):
        raise TableError(f"{path.name}:{line}: the score must be a finite number, not {score}")
    return record


def write_records(path: Path, records: Iterable[RecordedScore]) -> None:
    """Write the rows as a CSV table."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEAD)
        for r in records:
            spent = f"{r.search_ms:.1f}" if math.isfinite(r.search_ms) else ""
            writer.writerow((r.problem, r.solver, r.seed, r.evaluations, repr(r.score), spent))
