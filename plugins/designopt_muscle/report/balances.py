"""Figures of balances: the moments of the muscles about each coordinate, and what reserves add."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from designopt.counts import percent
from designopt.report.colours import axis, category, layout
from designopt.report.designs import Arrays, Plot, line, selectable
from designopt.report.section import Figure
from designopt_muscle.report.named_muscles import NAMED, largest

#: Coordinates whose balance is drawn: those with the largest moments.
_ROWS = 8
#: Share of the largest needed moment from which a reserve marks its frame, as in the statuses.
_SHARE = 0.05

#: Arrays that the figures need.
BALANCE = frozenset({"time", "muscles", "coordinates", "muscle_moments", "net_moments", "reserves"})


def balance_figures(motions: Mapping[tuple[str, str], Arrays]) -> list[Figure]:
    """A figure for each of the coordinates with the largest moments, and one of the reserves if there are any."""
    return [*_balances(motions), *([_reserve_figure(motions)] if _has_reserves(motions) else [])]


def _balances(motions: Mapping[tuple[str, str], Arrays]) -> list[Figure]:
    """A figure for each of the coordinates with the largest moments."""
    first = next(iter(motions.values()))
    size = np.nanmax(np.abs(np.asarray(first["net_moments"], dtype=float)), axis=0, initial=0.0)
    rows = sorted(int(i) for i in np.argsort(-size, kind="stable")[:_ROWS])
    left = len(size) - len(rows)
    note = "Balances: moments of the muscles, stacked, with the largest named; the dashed line is the required moment."
    remainder = f" {left} coordinates with smaller moments are not drawn." if left else ""
    return [
        selectable(
            f"Balance about {first['coordinates'][i]}",
            motions,
            partial(_balance, row=i, highlights=_muscles_about(motions, i)),
            height=360,
            note=note + remainder if i == rows[-1] else "",
        )
        for i in rows
    ]


def _muscles_about(motions: Mapping[tuple[str, str], Arrays], row: int) -> tuple[str, ...]:
    """Names of the muscles with the largest moments of all motions; those with separate colours are the same in all."""
    sizes = [
        np.nan_to_num(np.abs(np.asarray(arrays["muscle_moments"], dtype=float)[:, row])).max(axis=0, initial=0.0)
        for arrays in motions.values()
    ]
    return largest([arrays["muscles"] for arrays in motions.values()], sizes)[:NAMED]


def _balance(arrays: Arrays, *, row: int, highlights: Sequence[str]) -> Plot:
    time, moments = arrays["time"], np.asarray(arrays["muscle_moments"], dtype=float)[:, row]
    columns = {str(name): j for j, name in enumerate(arrays["muscles"])}
    other_columns = [j for name, j in columns.items() if name not in highlights]
    data: list[dict[str, Any]] = []
    frames = np.flatnonzero(np.isfinite(moments).any(axis=1))
    first, last = (int(frames[0]), int(frames[-1]) + 1) if len(frames) else (0, 0)  # areas would fall to 0 elsewhere

    def stack(values: Any, name: str, colour: str) -> None:
        for sign, part in ((1, np.maximum(values, 0.0)), (-1, np.minimum(values, 0.0))):
            if np.nanmax(np.abs(part), initial=0.0) > 1e-9:
                in_legend = not any(trace.get("legendgroup") == name for trace in data)
                data.append(line(time[first:last], part[first:last], name,
                                 line={"color": colour, "width": 0.5}, stackgroup=str(sign),
                                 legendgroup=name, showlegend=in_legend))  # fmt: skip

    for n, name in enumerate(highlights):
        if name in columns:
            stack(moments[:, columns[name]], name, category(n))
    stack(moments[:, other_columns].sum(axis=1), "other muscles", "@faint")
    if np.nanmax(np.abs(arrays["reserves"][:, row]), initial=0.0) > 1e-9:
        stack(arrays["reserves"][:, row], "reserve", "@ink")
    style = {"color": "@ink", "width": 2, "dash": "dash"}
    data.append(line(time, arrays["net_moments"][:, row], "needed", line=style))
    return {"data": data, "layout": layout(xaxis=axis("time [s]"), yaxis=axis(_load(str(arrays["coordinates"][row]))))}


def _load(coordinate: str) -> str:
    """The load along a coordinate, with its unit: force or moment by the name of the coordinate, else both."""
    if re.search(r"_t[xyz](_[rl])?$", coordinate):
        return "force [N]"
    if re.search("angle|flexion|extension|tilt|list|rotation|bending|duction|version|deviation|supination", coordinate):
        return "moment [N m]"
    return "moment [N m] or force [N]"


def _has_reserves(motions: Mapping[tuple[str, str], Arrays]) -> bool:
    return any(np.nanmax(np.abs(arrays["reserves"]), initial=0.0) > 1e-9 for arrays in motions.values())


def _reserve_figure(motions: Mapping[tuple[str, str], Arrays]) -> Figure:
    return selectable(
        "Reserves", motions, _reserves, height=340,
        note=f"Relative to the size above which a frame is marked: 1 N m or 1 N, or {percent(_SHARE)} of the "
        f"largest needed moment.",
    )  # fmt: skip


def _reserves(arrays: Arrays) -> Plot:
    time, moments = arrays["time"], np.abs(np.asarray(arrays["reserves"], dtype=float))
    peak = np.nanmax(np.abs(np.asarray(arrays["net_moments"], dtype=float)), axis=0, initial=0.0)
    share = moments / np.maximum(1.0, _SHARE * peak)
    size = np.nan_to_num(share).max(axis=0)
    order = [int(i) for i in np.argsort(-size, kind="stable") if size[i] > 0.0][:NAMED]
    data = [
        line(time, share[:, i], str(arrays["coordinates"][i]), line={"color": category(n), "width": 1.5})
        for n, i in enumerate(order)
    ]
    threshold = {"color": "@ink", "width": 1.5, "dash": "dash"}
    data.append(line(np.asarray(time)[[0, -1]], np.ones(2), "marked above", line=threshold))
    return {
        "data": data,
        "layout": layout(xaxis=axis("time [s]"), yaxis=axis("reserve by its mark", rangemode="tozero")),
    }
