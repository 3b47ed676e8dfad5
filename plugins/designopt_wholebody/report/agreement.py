"""Agreement of two measurements of a vector, drawn: three planes on axes at 120 degrees (Nunes 2017, appendix A)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from designopt.arrays import Array
from designopt.report.colours import category, layout
from designopt.report.designs import Arrays, Plot
from designopt.report.section import Table
from designopt_wholebody.trial.agreement import Agreement, agreement

_AXES = "XYZ"
#: Directions of the three axes on the page.
_DIRECTIONS = np.array([[0.0, 1.0], [-np.sqrt(0.75), -0.5], [np.sqrt(0.75), -0.5]])
#: Differences that are drawn.
_SHOWN = 1500


def agreement_plot(arrays: Arrays) -> Plot:
    """Differences in mm and the ellipsoid of 95 % of normal ones; an axis starts at the lowest limit, or 0."""
    away = 1e3 * np.asarray(arrays["differences"], dtype=np.float64)
    if len(away) < 4:
        return {"data": [], "layout": layout()}
    found = agreement(away, np.zeros_like(away))
    shape = found.axes @ np.diag(found.radii**2) @ found.axes.T
    start = np.minimum(np.minimum(found.limits[0], found.bias - np.sqrt(np.diag(shape))), 0.0)
    shown = away[np.linspace(0, len(away) - 1, min(_SHOWN, len(away))).round().astype(int)]
    data: list[dict[str, Any]] = []
    for k, (i, j) in enumerate(((0, 1), (1, 2), (2, 0))):
        circle = np.linspace(0.0, 2.0 * np.pi, 61)
        root = np.linalg.cholesky(shape[np.ix_([i, j], [i, j])] + 1e-12 * np.eye(2))
        outline = found.bias[[i, j]] + np.stack([np.cos(circle), np.sin(circle)], axis=1) @ root.T
        points = _placed(shown[:, [i, j]], start, i, j)
        data.append(
            {"type": "scatter", "mode": "markers", "x": points[:, 0], "y": points[:, 1], "hoverinfo": "skip",
             "name": f"{_AXES[i]}{_AXES[j]}", "marker": {"size": 3, "opacity": 0.35, "color": category(k)}}
        )  # fmt: skip
        data.append(_path(_placed(outline, start, i, j), "95 % ellipsoid", k == 0, "@ink", "solid"))
        data.append(_path(_placed(found.bias[None, [i, j]], start, i, j), "bias", k == 0, "@mark", "solid"))
        zero = np.array([[start[i], 0.0], [0.0, 0.0], [0.0, start[j]]])
        data.append(_path(_placed(zero, start, i, j), "zero", k == 0, "@muted", "dot"))
    ends = np.maximum(found.limits[1], np.abs(away).max(axis=0)) - start
    for k, letter in enumerate(_AXES):
        tip = ends[k] * _DIRECTIONS[k]
        data.append(
            {"type": "scatter", "mode": "lines+text", "x": [0.0, tip[0]], "y": [0.0, tip[1]], "hoverinfo": "skip",
             "text": ["", f"{letter} {start[k]:.0f} to {ends[k] + start[k]:.0f} mm"],
             "textposition": "top center", "showlegend": False, "line": {"color": "@ink", "width": 1}}
        )  # fmt: skip
    hidden = {"visible": False}
    return {"data": data, "layout": layout(xaxis=hidden, yaxis={**hidden, "scaleanchor": "x"}, showlegend=True)}


def _placed(values: Array, start: Array, i: int, j: int) -> Array:
    """(n, 2) places on the page of values (n, 2) along two axes; what lies before their start is put there."""
    ahead = np.maximum(values - start[[i, j]], 0.0)
    return np.asarray(ahead @ _DIRECTIONS[[i, j]])


def _path(points: Array, name: str, named: bool, colour: str, dash: str) -> dict[str, Any]:
    mode = {"mode": "markers", "marker": {"size": 9, "color": colour, "symbol": "x"}} if len(points) == 1 else {
        "mode": "lines", "line": {"color": colour, "width": 2, "dash": dash}
    }  # fmt: skip
    return {"type": "scatter", "x": points[:, 0], "y": points[:, 1], "name": name, "showlegend": named,
            "hoverinfo": "skip", **mode}  # fmt: skip


def agreement_table(motions: Mapping[tuple[str, str], Arrays]) -> Table:
    """Bias, limits and coverage of every trial, of the ellipsoid by χ² and of the thesis's."""
    rows = []
    for (design, scenario), arrays in motions.items():
        away = 1e3 * np.asarray(arrays["differences"], dtype=np.float64)
        if len(away) >= 4:
            found, thesis = (agreement(away, np.zeros_like(away), kind=k) for k in ("chi_squared", "thesis"))
            rows.append((design, scenario, *_cells(found), found.coverage, thesis.coverage))
    columns = ("design", "scenario", "landmarks", "bias X [mm]", "Y [mm]", "Z [mm]", "limits ± X [mm]", "± Y [mm]",
               "± Z [mm]", "in the 95 % ellipsoid", "in that of 1.96 σ per axis")  # fmt: skip
    note = (
        "An ellipsoid of 1.96 standard deviations along each axis, as in the thesis, holds 72 % of normal differences, "
        "not 95 %."
    )
    return Table("Agreement of landmarks with the measured ones", columns, tuple(rows), note=note)


def _cells(found: Agreement) -> tuple[float, ...]:
    half = 0.5 * (found.limits[1] - found.limits[0])
    return (found.count, *found.bias.tolist(), *half.tolist())
