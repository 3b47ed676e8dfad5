"""Outcome of every frame, and the shortfall of frames beyond the muscles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from designopt_mechanics.sharing.status import SharingStatus

from designopt.report.colours import axis, category, layout
from designopt.report.designs import Arrays, Plot, line, selectable
from designopt.report.labels import number
from designopt.report.section import Figure, Table, with_a_value

#: Colours of the statuses: solved, to be checked, infeasible, without solution.
_COLOURS = {
    SharingStatus.OPTIMAL: "@accent",
    SharingStatus.EDGE: "@faint",
    SharingStatus.RESERVE_ACTIVE: "@mark",
    SharingStatus.INFEASIBLE: "@ink",
}

_SHORT = SharingStatus.INFEASIBLE
_KINDS = {int(kind): kind for kind in SharingStatus}


def short_frames(motions: Mapping[tuple[str, str], Arrays]) -> Figure | None:
    """Shortfall and strength on the time axis of the motions that have frames beyond the muscles; None without one."""
    short_motions = {key: arrays for key, arrays in motions.items() if (np.asarray(arrays["status"]) == _SHORT).any()}
    if not short_motions:
        return None
    return selectable(
        "Frames beyond the muscles", short_motions, _plot, height=340,
        note="The missing part of each moment, and the factor on the strength that would be sufficient. "
        "Below, the status of"
        " each frame. Designs whose frames are all balanced are left out.",
    )  # fmt: skip


def _plot(arrays: Arrays) -> Plot:
    time, status = np.asarray(arrays["time"]), np.asarray(arrays["status"])
    missing = np.asarray(arrays["shortfall"], dtype=float)
    short = [i for i in range(missing.shape[1]) if np.nanmax(np.abs(missing[:, i]), initial=0.0) > 1e-9]
    data = [
        line(time, missing[:, i], f"missing about {arrays['coordinates'][i]}", line={"color": category(n)})
        for n, i in enumerate(short)
    ]
    factor = np.where(status == SharingStatus.INFEASIBLE, np.asarray(arrays["strength_factor"], dtype=float), np.nan)
    factor = np.where(np.isfinite(factor), factor, np.nan)
    if np.isfinite(factor).any():
        style = {"color": "@ink", "dash": "dot"}
        data.append(line(time, factor, "sufficient strength", line=style, yaxis="y2"))
    for value in sorted(set(status.tolist())):
        has_status = status == value
        kind = _KINDS[value]
        data.append(
            {"type": "scatter", "mode": "markers", "x": np.round(time[has_status], 5),
             "y": np.zeros(int(has_status.sum())), "yaxis": "y3", "name": words(kind),
             "marker": {"size": 7, "symbol": "square", "color": _COLOURS.get(kind, "@faint")},
             "hovertemplate": "%{x:.4g} s<extra>" + words(kind) + "</extra>"}
        )  # fmt: skip
    return {
        "data": data,
        "layout": layout(
            xaxis=axis("time [s]", anchor="y3"),
            yaxis=axis("missing [N m or N]", domain=[0.16, 1.0]),
            yaxis2=axis("factor", overlaying="y", side="right", showgrid=False),
            yaxis3=axis("", domain=[0.0, 0.08], showticklabels=False, showgrid=False, zeroline=False),
            meta={"jump": True},
        ),
    }


def words(status: SharingStatus) -> str:
    """``reserve active``."""
    return status.name.lower().replace("_", " ")


def frame_table(motions: Mapping[tuple[str, str], Arrays]) -> Table:
    """Number of frames of each motion with each status, their times, and their shortfall."""
    rows: list[tuple[Any, ...]] = []
    for (design, scenario), arrays in motions.items():
        status, time = np.asarray(arrays["status"]), np.asarray(arrays["time"])
        for value in sorted(set(status.tolist())):
            frame_numbers = np.flatnonzero(status == value)
            when = f"{number(time[frame_numbers[0]])} to {number(time[frame_numbers[-1]])}"
            lack = _lack(arrays, frame_numbers) if value >= 100 else ""
            rows.append((design, scenario, words(_KINDS[value]), f"{len(frame_numbers)} of {len(status)}", when, lack))
    note = "; ".join(f"{words(kind)}: {kind.sentence}" for kind in SharingStatus if words(kind) in {r[2] for r in rows})
    columns, lines = with_a_value(("design", "scenario", "status", "frames", "time [s]", "lack [N m or N]"), rows)
    return Table("Frames by status", columns, lines, note=note)


def _lack(arrays: Arrays, frames: Any) -> str:
    missing = np.abs(np.nan_to_num(np.asarray(arrays["shortfall"], dtype=float)[frames]))
    if not missing.size or missing.max() == 0.0:
        return ""
    shortfalls = missing.max(axis=0)
    order = [int(i) for i in np.argsort(-shortfalls, kind="stable") if shortfalls[i] > 1e-6 * shortfalls.max()][:4]
    text = ", ".join(f"{arrays['coordinates'][i]} {number(shortfalls[i])}" for i in order)
    factor = np.asarray(arrays["strength_factor"], dtype=float)[frames]
    if np.isnan(factor).all():
        return text
    largest = float(np.nanmax(factor))
    return f"{text}; strength x {number(largest)}" if np.isfinite(largest) else f"{text}; no strength is sufficient"
