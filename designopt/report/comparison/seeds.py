"""Comparison of stores of one study with different seeds: attained fronts, and tests between groups.

A stochastic search is assessed by several runs. The empirical attainment function gives for each point the share of the
runs that attain it (Grunert da Fonseca, Fonseca & Hall 2001, EMO, LNCS 1993, 213-225). Groups are compared by the ranks
of one number for each run (Knowles, Thiele & Zitzler 2006, TIK report 214): Kruskal & Wallis (1952) for all groups,
Mann & Whitney (1947) for pairs, with the correction of Holm (1979).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.lazy import moocore, scipy
from designopt.report.colours import axis, category, layout
from designopt.report.comparison.compared_store import ComparedStore
from designopt.report.comparison.groups import RunGroup, run_groups
from designopt.report.labels import listed, number, objective_label, plain
from designopt.report.section import Figure, Section, Table
from designopt.report.traces import trace
from designopt.study.study import Objective

#: Significance level of differences.
LEVEL = 0.05
#: Shares of the runs (%) of the drawn attainment surfaces: best, median and worst.
_SURFACES = ((0.0, "attained by one run at least", "dot"), (50.0, "by half", "solid"), (100.0, "by all", "dash"))


@dataclass(frozen=True)
class Scores:
    """The ranking criterion of stores: its name, `values` (n,), and whether larger is better."""

    name: str
    values: Floats
    rising: bool


def seed_statistics(
    entries: Sequence[ComparedStore], objectives: Sequence[Objective], scores: Scores
) -> Section | None:
    """Attainment of runs with several seeds, and a rank test of groups; None if no study was run with two seeds.

    A seed counts once in a group.
    """
    groups, repeats = run_groups(entries)
    notes = [f"{g.label} repeats the seed of another store and does not count as a separate run." for g in repeats]
    samples = [g for g in groups if len(g.rows) > 1]
    if not samples:
        return None
    findings: list[str] = []
    tables = [_spread(groups, scores)]
    if len(samples) > 1:
        findings, table = _tests(samples, scores)
        tables.append(table)
    else:
        notes.append("A rank test needs a second study with at least two seeds.")
    figures = [_attainment(groups, objectives)] if len(objectives) == 2 else []
    return Section(
        "Repeated runs",
        introduction="Stores whose studies differ only in the seed are runs of one search. A run attains a point "
        "if it found a design at least as good in every objective.",
        findings=tuple(findings),
        figures=tuple(figures),
        tables=tuple(tables),
        notes=tuple(notes),
    )


def _spread(groups: list[RunGroup], scores: Scores) -> Table:
    rows = []
    for g in groups:
        values = scores.values[list(g.rows)]
        seeds = listed([number(e.result.study.seed) for e in g.entries])
        rows.append((g.label, len(values), seeds, *(float(v) for v in (np.median(values), values.min(), values.max()))))
    return Table(
        "Runs with different seeds",
        ("stores", "runs", "seeds", f"median {scores.name}", "least", "largest"),
        tuple(rows),
    )


def _tests(groups: list[RunGroup], scores: Scores) -> tuple[list[str], Table]:
    """Findings, and every pair with its p-value without and with Holm's correction."""
    findings = []
    score_name = scores.name.partition(" [")[0]
    if len(groups) > 2:
        p = kruskal([scores.values[list(g.rows)] for g in groups])
        findings.append(
            f"Over all {len(groups)} studies: {score_name} {_significance(p)} (Kruskal and Wallis, p = {number(p, 2)})."
        )
    pairs = list(combinations(groups, 2))
    sign = 1.0 if scores.rising else -1.0
    single = [mann_whitney(sign * scores.values[list(a.rows)], sign * scores.values[list(b.rows)]) for a, b in pairs]
    holm_p = holm(np.array([p for p, _ in single]))
    rows = []
    for (a, b), (p, share), together in zip(pairs, single, holm_p.tolist(), strict=True):
        rows.append((a.label, b.label, share, p, together))
        better, worse, part = (a, b, share) if share >= 0.5 else (b, a, 1.0 - share)
        text = f"a run of {better.label} is better than one of {worse.label} with a probability of {number(part, 3)}"
        findings.append(
            f"{score_name[0].upper()}{score_name[1:]} {_significance(together)} (p = {number(together, 2)}): {text}."
        )
    n = [len(g.rows) for g in groups]
    least = min(2.0 / math.comb(a + b, a) for a, b in combinations(n, 2))
    note = "Two-sided test of Mann and Whitney."
    if least > LEVEL / 10.0:
        note += f" With this few runs, p cannot be below {number(least, 2)}."
    head = ("first", "second", "share of pairs won by the first", "p", "p with Holm's correction")
    return findings, Table("Rank test", head, tuple(rows), note=note, visible_rows=60)


def _significance(p: float) -> str:
    return "differs significantly" if p < LEVEL else "does not differ significantly"


def mann_whitney(a: Floats, b: Floats) -> tuple[float, float]:
    """Two-sided p-value of the rank test of `a` (n,) and `b` (m,); share of pairs that `a` wins.

    Exact without ties up to eight values on either side (SciPy's rule), else by the normal approximation. A tie counts
    half, and p is 1 if all values are equal.
    """
    if np.ptp(np.concatenate([a, b])) == 0.0:  # without a p-value from SciPy 1.18 on
        return 1.0, 0.5
    test = scipy.stats.mannwhitneyu(a, b, alternative="two-sided")
    return float(test.pvalue), float(test.statistic) / (len(a) * len(b))


def kruskal(samples: Sequence[Floats]) -> float:
    """The p-value of the rank test of `samples`; 1 if all values are equal."""
    together = np.concatenate(samples)
    return 1.0 if np.ptp(together) == 0.0 else float(scipy.stats.kruskal(*samples).pvalue)


def holm(p: Floats) -> Floats:
    """p-values (n,) of several tests with Holm's correction of the family-wise error rate."""
    order = np.argsort(p, kind="stable")
    rising = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    p_values = np.empty(len(p))
    p_values[order] = np.minimum(rising, 1.0)
    return p_values


def attainment(fronts: Sequence[Floats], share: float) -> Floats:
    """Nondominated points (k, m) attained by at least `share` percent of the runs, at least one run; sorted.

    `fronts` has a matrix (n, m) of minimised objectives for each run, m being 2 or 3. Runs without a point attain
    nothing: the result is empty if too few other runs remain.
    """
    run_count = max(1, math.ceil(share / 100.0 * len(fronts) - 1e-9))
    nonempty = [f for f in fronts if len(f)]
    if run_count > len(nonempty):
        return np.empty((0, fronts[0].shape[1]))
    sets = np.repeat(np.arange(1, len(nonempty) + 1), [len(f) for f in nonempty])
    surface = moocore.eaf(np.concatenate(nonempty), sets, percentiles=[100.0 * run_count / len(nonempty)])
    return np.asarray(surface[np.lexsort(surface[:, -2::-1].T)][:, :-1])


def _attainment(groups: list[RunGroup], objectives: Sequence[Objective]) -> Figure:
    """Best, median and worst attainment surface of each group as staircases."""
    signs = [o.sign for o in objectives]
    data: list[dict[str, Any]] = []
    for i, group in enumerate(g for g in groups if len(g.rows) > 1):
        fronts = [e.objectives[e.front] for e in group.entries]
        for share, words, dash in _SURFACES:
            points = attainment(fronts, share)
            name = plain(f"{group.label}: {words}")
            stair = {"color": category(i), "width": 2.4 if share == 50.0 else 1.2, "dash": dash, "shape": "hv"}
            hover = f"{name}<br>%{{x:.5~g}}, %{{y:.5~g}}"
            x, y = signs[0] * points[:, 0], signs[1] * points[:, 1]
            data.append(trace(x, y, name, line=stair, hover=hover, legendgroup=str(i)))
    labels = [plain(objective_label(o)) for o in objectives]
    axes = {"xaxis": axis(labels[0]), "yaxis": axis(labels[1])}
    return Figure(
        "Attainment surfaces",
        {"data": data, "layout": layout(**axes)},
        height=520,
        note="The region between best and worst depends on the seed. Solid line: the median surface.",
    )
