"""Report part `laboratory_differences`: where curves of sides and groups differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Annotated, Any

import numpy as np

from designopt.counts import plural
from designopt.plugin import Quantity, report_part
from designopt.report.colours import axis, category, layout
from designopt.report.designs import missing
from designopt.report.section import Section, Table
from designopt.report.traces import Trace, above, selected
from designopt.store.result import Result
from designopt_laboratory.curves.differences import CurveDifference, curve_difference
from designopt_laboratory.curves.pool import NEEDED, CurveSet, PooledCurves, pool_curves
from designopt_laboratory.report.curves import band_traces, label, trials_by_design

Test = tuple[PooledCurves, tuple[CurveSet, CurveSet], CurveDifference]

#: Quantities that are tested; others need the module `curves.differences`.
_KINDS = ("angle", "moment", "power", "joint force")


@report_part("laboratory_differences", version=1, arrays=NEEDED)
def laboratory_differences(
    result: Result,
    *,
    level: Annotated[float, Quantity("", "probability of a false difference in a curve", gt=0, lt=1)] = 0.05,
) -> Section | None:
    """Sides and groups compared over the complete cycle by permutation tests, with the stretches that differ.

    The first design is tested. Subjects are the observations where a group has several, else the cycles of one subject:
    then a difference holds for that subject alone.
    """
    title = "Differences between curves"
    by_design = trials_by_design(result, *NEEDED)
    if not by_design:
        return missing(title, *NEEDED) if len(result.outcomes.X) else None
    tests = [
        (curve, pair, difference)
        for curve in pool_curves(next(iter(by_design.values())))
        if curve.kind in _KINDS
        for pair, difference in _tests(curve, level)
    ]
    if not tests:
        return Section(
            title,
            introduction="There are fewer than three curves on each side and in each group: nothing can be tested.",
        )
    rows = tuple(_row(curve, pair, difference) for curve, pair, difference in tests)
    most_different = sorted(tests, key=lambda test: float(test[2].p.min()))[:60]
    names = [f"{curve.kind} {curve.name}: {label(pair[0])} - {label(pair[1])}" for curve, pair, _ in most_different]
    count = len(tests)
    expectation = f"Of {count} tests, {level * count:.1f} find a difference by chance."
    return Section(
        title,
        introduction=(
            "Permutation tests of the largest statistic of a curve (Nichols & Holmes 2002): the probability of a false"
            f" difference anywhere in a curve is at most {level:g}. {expectation if count > 1 else ''}"
        ),
        figures=(
            selected(
                "Curves that differ most", {"Curve": names}, lambda k: _draw(*most_different[k][1:]),
                layout(
                    xaxis=axis("cycle [%]", range=[0, 100], anchor="y2"),
                    yaxis=axis("", domain=above(2, 0.1)[0]), yaxis2=axis("statistic t", domain=above(2, 0.1)[1]),
                ),
                view=lambda k: {"yaxis": axis(most_different[k][0].title)}, height=480,
            ),
        ),
        tables=(Table("Tests", ("quantity", "name", "first", "second", "p", "differs at [% of the cycle]",
                                "largest difference", "at [%]", "curves"), rows, visible_rows=40),),
        notes=_notes(tests, level),
    )  # fmt: skip


def _notes(tests: Sequence[Test], level: float) -> tuple[str, ...]:
    """Sentences on the limits of the tests."""
    notes = []
    if not tests[0][1][0].of_subjects:
        notes.append(
            "Observations are cycles of one subject: a difference holds for this subject, not for a population."
        )
    powerless = [difference.least_p for _, _, difference in tests if difference.least_p > level]
    if powerless:
        notes.append(
            f"{len(powerless)} of {len(tests)} tests have too few curves to find anything at the level {level:g}: their"
            f" smallest possible p is {max(powerless):.3g}."
        )
    return tuple(notes)


def _tests(curve: PooledCurves, level: float) -> Iterator[tuple[tuple[CurveSet, CurveSet], CurveDifference]]:
    """Both sides of each group, and groups on each side, as far as there are three curves of each."""
    for first, second in combinations(curve.sets, 2):
        if (first.group == second.group) == (first.side == second.side):
            continue
        if min(len(first.curves), len(second.curves)) < 3 or first.of_subjects != second.of_subjects:
            continue
        are_paired = first.of_subjects and first.subjects == second.subjects
        yield (first, second), curve_difference(first.curves, second.curves, paired=are_paired, level=level)


def _row(curve: PooledCurves, pair: tuple[CurveSet, CurveSet], difference: CurveDifference) -> tuple[Any, ...]:
    ranges = ", ".join(f"{a:.0f}-{b:.0f}" for a, b in difference.ranges()) or "nowhere"
    largest = int(np.argmax(np.abs(difference.difference)))
    counts = f"{len(pair[0].curves)} and {plural(len(pair[1].curves), 'subject' if pair[0].of_subjects else 'cycle')}"
    size = f"{difference.difference[largest]:.4g} {curve.unit}".strip()
    percent = 100.0 * largest / (len(difference.p) - 1)
    return (
        curve.kind,
        curve.name,
        label(pair[0]),
        label(pair[1]),
        float(difference.p.min()),
        ranges,
        size,
        percent,
        counts,
    )


def _draw(pair: tuple[CurveSet, CurveSet], difference: CurveDifference) -> list[Trace]:
    percent = np.linspace(0.0, 100.0, len(difference.p))
    traces = [t for k, curve_set in enumerate(pair) for t in band_traces(curve_set, category(k), name=label(curve_set))]
    statistic = np.round(difference.statistic, 3)
    inside = np.where(difference.significant, statistic, np.nan)
    edge = [difference.threshold] * 2
    for y, colour, name, dash in (
        (statistic, "@muted", "t", "solid"),
        (inside, "@mark", "differs", "solid"),
    ):
        traces.append(
            {"type": "scatter", "mode": "lines", "x": percent, "y": y, "yaxis": "y2", "name": name,
             "line": {"color": colour, "width": 2 if colour == "@muted" else 4, "dash": dash}, "hoverinfo": "skip"}
        )  # fmt: skip
    for sign in (1.0, -1.0):
        traces.append(
            {"type": "scatter", "mode": "lines", "x": [0, 100], "y": [sign * v for v in edge], "yaxis": "y2",
             "line": {"color": "@faint", "dash": "dash"}, "showlegend": False, "hoverinfo": "skip"}
        )  # fmt: skip
    return traces
