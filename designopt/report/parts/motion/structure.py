"""The sparsity of a program's derivatives as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from designopt.report.colours import ORDERED, axis, layout
from designopt.report.labels import number, plain
from designopt.report.section import Figure

if TYPE_CHECKING:
    from designopt.collocation import Pattern, Sparsity
    from designopt.store.views.programs import ProgramRecord

#: Distance, as a share of a side, below which names of blocks are omitted.
APART = 0.075
#: Maximum length of names of blocks.
LONGEST = 22
_NOTE = (
    "Jacobian of the constraints (left) and Hessian of the Lagrangian (right) of the program on "
    "its first mesh. A cell represents many entries; its colour is their share of nonzeros."
)


def structure(records: Sequence[ProgramRecord]) -> tuple[Figure, ...]:
    """The figure of the first program with stored sparsity; none without any."""
    sparsity = next((s for record in records if (s := record.sparsity) is not None), None)
    return () if sparsity is None else (Figure("Structure of the program", _plot(sparsity), _NOTE, 460, width=640),)


def _plot(sparsity: Sparsity) -> dict[str, Any]:
    data: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    for k, (name, pattern, domain) in enumerate(
        (("Jacobian", sparsity.jacobian, [0.0, 0.46]), ("Hessian", sparsity.hessian, [0.54, 1.0]))
    ):
        suffix = "" if k == 0 else "2"
        data.append(_map(name, pattern, suffix))
        size = f"{pattern.shape[0]} x {pattern.shape[1]},<br>{number(pattern.nonzeros)} entries"
        axes[f"xaxis{suffix}"] = axis(
            f"{name}: {size}", domain=domain, tickangle=45, **_ticks(pattern.columns, pattern.shape[1])
        )
        rows = _ticks(pattern.rows, pattern.shape[0]) if k == 0 else {"showticklabels": False}  # it is symmetric
        axes[f"yaxis{suffix}"] = axis("", autorange="reversed", anchor=f"x{suffix}", **rows)
    return {"data": data, "layout": layout(**axes)}


def _map(name: str, pattern: Pattern, suffix: str) -> dict[str, Any]:
    rows, columns = pattern.counts.shape
    cell = pattern.shape[0] * pattern.shape[1] / (rows * columns)
    share = np.where(pattern.counts > 0, pattern.counts / cell, np.nan)
    return {
        "type": "heatmap", "name": name, "z": np.round(share, 4), "xaxis": f"x{suffix}", "yaxis": f"y{suffix}",
        "x": (np.arange(columns) + 0.5) * pattern.shape[1] / columns,
        "y": (np.arange(rows) + 0.5) * pattern.shape[0] / rows,
        "colorscale": ORDERED, "reversescale": True, "showscale": False, "hoverongaps": False,
        "hovertemplate": "row %{y:.0f}, column %{x:.0f}: <b>%{z:.1%}</b> filled<extra></extra>",
    }  # fmt: skip


def _ticks(blocks: Sequence[tuple[str, int]], size: int) -> dict[str, Any]:
    """The names of blocks at their beginnings, without overlaps."""
    ticks: list[tuple[str, int]] = []
    for name, first in blocks:
        if not ticks or first - ticks[-1][1] >= APART * size:
            ticks.append((name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…", first))
    return {"tickvals": [first for _, first in ticks], "ticktext": [plain(name) for name, _ in ticks]}
