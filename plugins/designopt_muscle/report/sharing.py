"""Report part of muscle-force sharing: activations, moments by muscle, reserves, fibres, frames beyond the muscles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from designopt.plugin import report
from designopt.report.colours import axis, layout
from designopt.report.designs import Arrays, Plot, kept, line, missing, selectable
from designopt.report.section import Section
from designopt.store.result import Result
from designopt_muscle.report.balances import balance_figures
from designopt_muscle.report.fibres import fibre_ranges
from designopt_muscle.report.frames import frame_table, short_frames
from designopt_muscle.report.margins import margin_figure
from designopt_muscle.report.named import drawn, key_of_lines, signals_of
from designopt_muscle.report.reactions import reaction_figure

#: Notes on the trials that are shown.
_MOST_NOTES = 30

_NAMES = (
    "time", "muscles", "coordinates", "activations", "muscle_moments", "net_moments", "reserves", "shortfall",
    "strength_factor", "status",
)  # fmt: skip


@report("muscle_sharing", version=2)
def muscle_sharing(result: Result) -> Section | None:
    """Activations (with measured ones), balances stacked by muscle, reserves, fibre ranges, frames and what they lack.

    Measured activity, margins, forces in joints and fibres are drawn where the arrays `signals`, `margin`, `reactions`
    with `joints`, and `fibre_lengths` are kept.
    """
    title = "Muscles"
    found = kept(result, *_NAMES)
    if not found:
        return missing(title, *_NAMES) if len(result.outcomes.X) else None
    short, reactions = short_frames(found), reaction_figure(found)
    note = key_of_lines(found, "Dotted: measured activity, scaled.", "The most active muscles are named.")
    balanced = "In all designs shown, every frame is balanced by the muscles." if short is None else ""
    figures = [
        selectable("Activations", found, _activations, height=420, note=note),
        *balance_figures(found),
        *([margin_figure(found)] if all("margin" in arrays for arrays in found.values()) else []),
        *([reactions] if reactions is not None else []),
        *([fibre_ranges(found)] if all("fibre_lengths" in arrays for arrays in found.values()) else []),
        *([short] if short is not None else []),
    ]
    return Section(
        title,
        introduction=f"Frames without an answer are left out of the lines. {balanced}".strip(),
        figures=tuple(figures),
        tables=(frame_table(found),),
        notes=_notes(found),
    )


def _notes(found: Mapping[tuple[str, str], Arrays]) -> tuple[str, ...]:
    """What is to be known of the trials: assumed units, replaced curves, jumps of paths, fibres out of range."""
    notes: dict[str, None] = {}
    several = len({scenario for _, scenario in found}) > 1
    for (_, scenario), arrays in found.items():
        for note in arrays.get("notes", ()):
            notes[f"{scenario}: {note}" if several else str(note)] = None
    return tuple(notes)[:_MOST_NOTES]


def _activations(arrays: Arrays) -> Plot:
    time, a, signals = arrays["time"], np.asarray(arrays["activations"], dtype=float), signals_of(arrays)
    data: list[dict[str, Any]] = []
    for j, name, style in drawn(arrays, "activations"):
        group: dict[str, Any] = {"legendgroup": name} if name else {}
        data.append(line(time, a[:, j], name, line=style, **group))
        if name and np.isfinite(signals[:, j]).any():
            data.append(line(time, signals[:, j], line={**style, "dash": "dot"}, **group))
    highest = max(float(np.nanmax(part, initial=0.0)) for part in (a, signals))
    top = 1.05 if 0.5 < highest <= 1.0 else 1.1 * max(highest, 0.01)
    return {"data": data, "layout": layout(xaxis=axis("time [s]"), yaxis=axis("activation", range=[0.0, top]))}
