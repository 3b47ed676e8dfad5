"""A figure of small panels over the cycle, one for each quantity, with both sides in one panel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from designopt.report.colours import axis, caption, layout
from designopt.report.designs import Plot
from designopt_walking.report.sides import STYLES

#: Panels beside each other.
COLUMNS = 3
#: Pixels between two rows, for titles and the tick labels below the last ones, and of the margins above and below all.
GAP, MARGIN = 48, 116


def by_quantity(names: Sequence[str]) -> dict[str, dict[str, int]]:
    """Columns of each quantity by side ("r", "l" or "", in this order), from names such as ``hip_flexion_r``."""
    columns: dict[str, dict[str, int]] = {}
    for k, name in enumerate(names):
        side = name[-1] if name[-2:] in ("_r", "_l") else ""
        columns.setdefault(name[:-2] if side else name, {})[side] = k
    return {name: {side: of_side[side] for side in STYLES if side in of_side} for name, of_side in columns.items()}


def panels(titles: Sequence[str], draw: Callable[[int], Sequence[dict[str, Any]]], **axes_of: Any) -> Plot:
    """A panel for each title, with the traces of ``draw(number)`` without their axes; `axes_of` concerns all y axes."""
    rows = -(-len(titles) // COLUMNS)
    gap = GAP / (panel_height(len(titles)) - MARGIN)
    width, height = (1.0 - 0.06 * (COLUMNS - 1)) / COLUMNS, (1.0 - gap * (rows - 1)) / rows
    data: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    annotations = []
    legend_names: set[str] = set()
    for i, title in enumerate(titles):
        row, column = divmod(i, COLUMNS)
        suffix = "" if i == 0 else str(i + 1)
        left, upper = column * (width + 0.06), 1.0 - row * (height + gap)
        for trace in draw(i):
            name = str(trace.get("name", ""))
            legend = {"legendgroup": name, "showlegend": name not in legend_names} if name else {}
            legend_names.add(name)
            data.append({**trace, **legend, "xaxis": f"x{suffix}", "yaxis": f"y{suffix}"})
        last = i + COLUMNS >= len(titles)
        axes[f"xaxis{suffix}"] = axis(
            "cycle [%]" if last else "",
            domain=[left, left + width],
            anchor=f"y{suffix}",
            range=[0, 100],
            dtick=50,
            showticklabels=last,
        )
        axes[f"yaxis{suffix}"] = axis("", domain=[upper - height, upper], anchor=f"x{suffix}", **axes_of)
        annotations.append(caption(title, left, upper, font={"size": 12}))
    figure_layout = layout(**axes, annotations=annotations)
    figure_layout["meta"] = {"panels": {"columns": min(COLUMNS, len(titles)), "gap": GAP, "margin": MARGIN}}
    figure_layout["legend"] = {**figure_layout["legend"], "y": 1.0 + 0.5 * gap}  # above the titles of the first row
    return {"data": data, "layout": figure_layout}


def panel_height(count: int) -> int:
    """Pixels of a figure of `count` panels."""
    return 90 + 170 * -(-count // COLUMNS)
