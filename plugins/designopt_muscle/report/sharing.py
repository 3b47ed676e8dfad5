"""Report part of muscle-force sharing: activations, moments by muscle, reserves, fibres, frames beyond the muscles."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from designopt.plugin import report
from designopt.report.colours import axis, category, layout
from designopt.report.designs import Arrays, Plot, kept, line, missing, selectable
from designopt.report.section import Figure, Section
from designopt.store.result import Result
from designopt_muscle.report.fibres import fibre_ranges
from designopt_muscle.report.frames import frame_table, short_frames

#: Muscles with a colour of their own; the others are summed, or drawn faintly.
_NAMED = 8
#: Coordinates whose balance is drawn: those with the largest moments.
_ROWS = 8
#: Share of the largest needed moment from which a reserve marks its frame, as in the statuses.
_SHARE = 0.05

#: Notes on the trials that are told.
_NOTES = 30

_NAMES = (
    "time", "muscles", "coordinates", "activations", "muscle_moments", "net_moments", "reserves", "shortfall",
    "strength_factor", "status",
)  # fmt: skip


@report("muscle_sharing", version=2)
def muscle_sharing(result: Result) -> Section | None:
    """Activations (with measured ones), balances stacked by muscle, reserves, fibre ranges, frames and what they lack.

    Measured activity and fibres are drawn where the arrays `signals` and `fibre_lengths` are kept.
    """
    title = "Muscles"
    found = kept(result, *_NAMES)
    if not found:
        return missing(title, *_NAMES) if len(result.outcomes.X) else None
    short = short_frames(found)
    balanced = "In all designs shown, every frame is balanced by the muscles." if short is None else ""
    figures = [
        selectable("Activations", found, _activations, height=420, note=_measured(found)),
        *_balances(found),
        *([_reserve_figure(found)] if _helped(found) else []),
        *([fibre_ranges(found)] if all("fibre_lengths" in arrays for arrays in found.values()) else []),
        *([short] if short is not None else []),
    ]
    return Section(
        title,
        introduction=f"Frames without an answer are left out of the lines. {balanced}".strip(),
        figures=tuple(figures),
        tables=(frame_table(found),),
        notes=_told(found),
    )


def _told(found: Mapping[tuple[str, str], Arrays]) -> tuple[str, ...]:
    """What is to be known of the trials: assumed units, replaced curves, jumps of paths, fibres out of range."""
    told: dict[str, None] = {}
    several = len({scenario for _, scenario in found}) > 1
    for (_, scenario), arrays in found.items():
        for note in arrays.get("notes", ()):
            told[f"{scenario}: {note}" if several else str(note)] = None
    return tuple(told)[:_NOTES]


def _measured(found: Mapping[tuple[str, str], Arrays]) -> str:
    signals = [np.asarray(arrays["signals"], dtype=float) for arrays in found.values() if "signals" in arrays]
    told = "Dotted: measured activity, scaled." if any(np.isfinite(s).any() for s in signals) else ""
    count = max(len(arrays["muscles"]) for arrays in found.values())
    return f"{told} The most active muscles are named.".strip() if count > _NAMED else told


def _activations(arrays: Arrays) -> Plot:
    time, a = arrays["time"], np.asarray(arrays["activations"], dtype=float)
    signals = np.asarray(arrays["signals"], dtype=float) if "signals" in arrays else np.full(a.shape, np.nan)
    size = np.nan_to_num(a).max(axis=0) + np.isfinite(signals).any(axis=0)  # measured muscles come first
    order = [int(j) for j in np.argsort(-size, kind="stable")]
    data: list[dict[str, Any]] = []
    for j in order[_NAMED:][::-1]:
        data.append(line(time, a[:, j], line={"color": "@faint", "width": 0.8}))
    for n, j in enumerate(order[:_NAMED]):
        name = str(arrays["muscles"][j])
        data.append(line(time, a[:, j], name, line={"color": category(n), "width": 1.8}, legendgroup=name))
        if np.isfinite(signals[:, j]).any():
            dotted = {"color": category(n), "width": 1.6, "dash": "dot"}
            data.append(line(time, signals[:, j], line=dotted, legendgroup=name))
    highest = max(float(np.nanmax(part, initial=0.0)) for part in (a, signals))
    top = 1.05 if 0.5 < highest <= 1.0 else 1.1 * max(highest, 0.01)
    return {"data": data, "layout": layout(xaxis=axis("time [s]"), yaxis=axis("activation", range=[0.0, top]))}


def _balances(found: Mapping[tuple[str, str], Arrays]) -> list[Figure]:
    """A figure for each of the coordinates with the largest moments."""
    first = next(iter(found.values()))
    size = np.nanmax(np.abs(np.asarray(first["net_moments"], dtype=float)), axis=0, initial=0.0)
    rows = sorted(int(i) for i in np.argsort(-size, kind="stable")[:_ROWS])
    left = len(size) - len(rows)
    note = "Moments of the muscles stacked, the largest named; dashed the moment that is needed."
    more = f" {left} coordinates with smaller moments are not drawn." if left else ""
    return [
        selectable(
            f"Balance about {first['coordinates'][i]}", found, partial(_balance, row=i), height=360,
            note=note + (more if i == rows[-1] else ""),
        )
        for i in rows
    ]  # fmt: skip


def _balance(arrays: Arrays, *, row: int) -> Plot:
    time, moments = arrays["time"], np.asarray(arrays["muscle_moments"], dtype=float)[:, row]
    size = np.abs(np.nan_to_num(moments)).max(axis=0)
    order = [int(j) for j in np.argsort(-size, kind="stable") if size[j] > 1e-9]
    data: list[dict[str, Any]] = []

    def stacked(values: Any, name: str, colour: str) -> None:
        for sign, part in ((1, np.maximum(values, 0.0)), (-1, np.minimum(values, 0.0))):
            if np.nanmax(np.abs(part), initial=0.0) > 0.0:
                shown = not any(trace.get("legendgroup") == name for trace in data)
                data.append(line(time, part, name, line={"color": colour, "width": 0.5}, stackgroup=str(sign),
                                 legendgroup=name, showlegend=shown))  # fmt: skip

    for n, j in enumerate(order[:_NAMED]):
        stacked(moments[:, j], str(arrays["muscles"][j]), category(n))
    if len(order) > _NAMED:
        stacked(moments[:, order[_NAMED:]].sum(axis=1), "other muscles", "@faint")
    if np.nanmax(np.abs(arrays["reserves"][:, row]), initial=0.0) > 1e-9:
        stacked(arrays["reserves"][:, row], "reserve", "@mark")
    needed = {"color": "@ink", "width": 2, "dash": "dash"}
    data.append(line(time, arrays["net_moments"][:, row], "needed", line=needed))
    return {"data": data, "layout": layout(xaxis=axis("time [s]"), yaxis=axis("moment [N m or N]"))}


def _helped(found: Mapping[tuple[str, str], Arrays]) -> bool:
    return any(np.nanmax(np.abs(arrays["reserves"]), initial=0.0) > 1e-9 for arrays in found.values())


def _reserve_figure(found: Mapping[tuple[str, str], Arrays]) -> Figure:
    return selectable(
        "Reserves", found, _reserves, height=340,
        note=f"By the size from which a frame is marked: 1 N m (N), or {_SHARE:.0%} of the largest needed moment.",
    )  # fmt: skip


def _reserves(arrays: Arrays) -> Plot:
    time, given = arrays["time"], np.abs(np.asarray(arrays["reserves"], dtype=float))
    peak = np.nanmax(np.abs(np.asarray(arrays["net_moments"], dtype=float)), axis=0, initial=0.0)
    share = given / np.maximum(1.0, _SHARE * peak)
    size = np.nan_to_num(share).max(axis=0)
    order = [int(i) for i in np.argsort(-size, kind="stable") if size[i] > 0.0][:_NAMED]
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
