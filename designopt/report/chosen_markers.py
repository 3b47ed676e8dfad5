"""Markers of chosen designs: one symbol and colour for each kind of choice in all figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from designopt.store.views.choices import ROBUST

if TYPE_CHECKING:
    from designopt.store.result import Result

BEST, BASELINE, BY_RULE, COMPROMISE = "best of an objective", "baseline", "selected by a rule", "compromise"
#: Markers by kind of choice, the name in a legend.
MARKERS: Mapping[str, dict[str, Any]] = {
    BASELINE: {"symbol": "diamond", "size": 13, "color": "@good", "line": {"color": "@surface", "width": 1}},
    COMPROMISE: {"symbol": "star", "size": 17, "color": "@mark", "line": {"color": "@surface", "width": 1}},
    BY_RULE: {"symbol": "star", "size": 17, "color": "@mark", "line": {"color": "@surface", "width": 1}},
    ROBUST: {"symbol": "star-square", "size": 15, "color": "@mark", "line": {"color": "@surface", "width": 1}},
    BEST: {"symbol": "circle-open", "size": 14, "color": "@ink", "line": {"color": "@ink", "width": 1.5}},
}


def choice_kinds(result: Result) -> dict[str, str]:
    """The kind of choice of each chosen design, by its label."""
    best = {f"best {o.name}" for o in result.problem.objectives}
    return {label: _kind(label, label in best, label in result.baseline) for label in result.chosen()}


def kinds_of_rows(result: Result) -> dict[int, str]:
    """The kind of each chosen design, by its row: that of a rule, if an objective or the baseline names it too."""
    kinds, rows_by_label = choice_kinds(result), result.chosen()
    order = sorted(rows_by_label, key=lambda label: (kinds[label] != BASELINE, kinds[label] != BEST))
    return {rows_by_label[label]: kinds[label] for label in order}


def _kind(label: str, is_best: bool, is_baseline: bool) -> str:
    if label in (COMPROMISE, ROBUST):
        return label
    return BASELINE if is_baseline else BEST if is_best else BY_RULE
