"""The page on benchmarks: what `results/benchmarks/rows.csv` holds, a table and a small plot for each figure."""

from __future__ import annotations

import csv
import math
import statistics
from pathlib import Path

from designopt.benchmarking.cells import Benchmark
from designopt.benchmarking.scores import BenchmarkScores
from designopt.benchmarking.table import as_markdown, read_records, tables

ROWS = Path(__file__).parents[1] / "results" / "benchmarks" / "rows.csv"
SHARES = ROWS.with_name("few_evaluations.csv")

HEAD = """# Benchmarks

`python -m pytest -m bench -n 0 -s tests/bench` compares with peers on the same work in one run, and leaves a row for
each figure in `results/benchmarks/rows.csv`. Ratios above 1 are in favour of designopt; they compare from machine to
machine, seconds do not. Peers run in environments of their own; `tests/bench/collocation/README.md` tells how they are
found.
"""


FEW = """## Best results after few evaluations

Median (first to third quartile) over runs with different seeds: of several objectives the hypervolume relative to that
of a front from many thousand evaluations, of one the way from a value that one of a hundred random designs within the
limits is below (of the quarter car one of four) to the optimum. The largest median is bold, one that is not
significantly smaller in italics (Mann & Whitney 1947, one-sided, with Holm's correction); one or two runs cannot show a
difference. `gp` with its defaults (four designs at a time, derivatives and cheap evaluations not used), `gp_sequential`
with one design at a time; BoTorch's qLogNEHVI with four at a time, 64 samples, 4 restarts from 64 points, one thread
(seed 0: 128 and 128); Optuna's TPE and GP samplers with their defaults, one design at a time; NSGA-II of pymoo and
`nsga2` with a population of 20.

The twelve problems from `zdt3_5` to `pressure_vessel` were chosen before any run of theirs, for rugged functions, one
objective and limits that few designs meet (2026-11-29, seeds 0 to 4; Optuna 5.0, BoTorch 0.18.1, SMAC 2.4.0, the slow
ones to 100 evaluations). Runs of other packages on the other problems are of 2026-11-22 and 23; BoTorch and Optuna's GP
take minutes of a core for each run. The runs of `gp` are of its version 10 (2026-11-30), `gp_sequential` to 100
evaluations, with the seeds of versions 8 and 9: 3 to 7 of the first twelve problems, 5 to 9 of the others. What version
9 does otherwise was found on OSY, DTLZ2 and the functions of Hartmann, Levy and Michalewicz, that of version 10 on
DTLZ2, with other random numbers: gains on these flatter it, those on the other problems do not. Several of the
published functions are sums over parameters (Levy, Styblinski-Tang, Michalewicz, Kursawe), which models of effects that
add up fit: gains on these say little about a model whose parameters interact. Times in the records are those of busy
machines. "not run": no seed of that search came so far. Behind each table stands, for every problem, which other search
has the largest median, its runs, gp's median over it, and the probability that the other's runs rank so far above those
of gp by chance (one-sided). One run against five cannot tell (p is 1/6 at least); 0.000 everywhere says that no search
had come below the worst corner of the front by then.

The table is a [benchmark file](benchmark_files.md), `tests/bench/few_evaluations/few_evaluations.yaml`: problems,
solvers, the other packages as a solver of a plugin file, and `results/benchmarks/few_evaluations.csv` as the records
of its runs.
"""

#: The searches of this project with Gaussian processes.
OWN = ("gp", "gp_sequential")
#: Below this probability another search is ahead of gp.
AHEAD = 0.05


def few_evaluations() -> str:
    """The table of shares, one for each number of evaluations."""
    if not SHARES.exists():
        return ""
    records = read_records(SHARES)
    budgets = tuple(sorted({record.evaluations for record in records}))
    benchmark = Benchmark("few_evaluations", "", "", (), (), budgets, (), records)
    scores = BenchmarkScores(benchmark, SHARES.parent, (), records, ())
    parts = [FEW]
    for table in tables(scores):
        shares = {
            (problem, solver): scores.values(problem, solver, table.evaluations).tolist()
            for problem in scores.problem_names
            for solver in scores.solvers
        }
        parts += [
            as_markdown([table]).replace("|  ", "| not run "),
            *(
                line
                for search in OWN
                for line in (*_standing({key: values for key, values in shares.items() if values}, search), "")
            ),
        ]
    return "\n".join(parts)


def _standing(shares: dict[tuple[str, str], list[float]], search: str) -> list[str]:
    """How `search` stands beside the best other package of each problem: a table, and a sentence before it."""
    from scipy.stats import mannwhitneyu

    rows, behind, largest, ratios = [], [], 0, {}
    for problem in dict.fromkeys(name for name, _ in shares):
        own = shares.get((problem, search), [])
        others = {other: values for (name, other), values in shares.items() if name == problem and other not in OWN}
        if not own or not others:
            continue
        best = max(others, key=lambda other: statistics.median(others[other]))
        mine, theirs = statistics.median(own), statistics.median(others[best])
        p = float(mannwhitneyu(others[best], own, alternative="greater").pvalue)
        if theirs > 0.0:
            ratios[problem] = mine / theirs
        largest += mine > 0.0 and round(mine, 3) >= round(theirs, 3)
        if theirs > mine and p < AHEAD:
            behind.append(problem)
        ratio = f"{mine / theirs:.3f}" if theirs > 0.0 else ""
        rows.append(f"| `{problem}` | {best} ({len(others[best])}) | {ratio} | {p:.3f} |")
    if not ratios:
        return []
    least = min(ratios, key=ratios.__getitem__)
    summary = (
        f"With these runs `{search}` has the largest median above 0, or an equal one to three decimals, on"
        f" {largest} of {len(rows)} problems, and is not behind by the rank test on {len(rows) - len(behind)};"
        f" its smallest median is {ratios[least]:.3f} of the best other one (`{least}`)."
    )
    return [summary, "", f"| problem | best other | {search} over it | p |", "|---|---|---|---|", *rows]


def benchmarks() -> str:
    """The page as Markdown."""
    rows = []
    if ROWS.exists():
        with ROWS.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    if not rows:
        return f"{HEAD}\nNo row is recorded yet.\n"
    figures: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows:
        figures.setdefault((row["benchmark"], row["figure"]), []).append(row)
    parts = [HEAD, few_evaluations()]
    for (benchmark, figure), found in figures.items():
        parts.append(f"## {figure}\n\n`{benchmark}`\n\n{_plot([float(r['value']) for r in found])}\n")
        parts.append("| date | commit | machine | cores | outcome | value |\n|---|---|---|---|---|---|")
        parts += [
            f"| {r['date']} | {r['commit']} | {r['machine']} | {r['cores']} | {r['outcome']} | {r['value']} |"
            for r in found
        ]
        parts.append("")
    return "\n".join(parts)


def _plot(values: list[float]) -> str:
    """The values in their order as dots in an SVG, the axis from 0."""
    top = 10.0 ** math.ceil(math.log10(max([*values, 1e-12])))
    step = 480.0 / max(1, len(values) - 1)
    dots = "".join(
        f'<circle cx="{20 + i * step:.1f}" cy="{100 - 90 * value / top:.1f}" r="3"><title>{value:g}</title></circle>'
        for i, value in enumerate(values)
    )
    axis = '<line x1="10" y1="100" x2="510" y2="100" stroke="currentColor"/>'
    label = f'<text x="515" y="14" font-size="11">{top:g}</text><text x="515" y="104" font-size="11">0</text>'
    return f'<svg viewBox="0 0 560 110" width="560" height="110" fill="currentColor">{axis}{dots}{label}</svg>'
