"""Report part `laboratory_markers`: how well the model follows the markers, and which frames are usable."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from designopt.plugin import report_part
from designopt.report.colours import axis, category, layout
from designopt.report.designs import Arrays, Plot, line, missing, selectable, stored_arrays
from designopt.report.section import Figure, Section, Table, with_folded_rest
from designopt.store.result import Result
from designopt.store.views.table import stated_units
from designopt_laboratory.trial.poses import TrialStatus

_NAMES = ("time", "markers", "marker_errors", "pose_status", "notes")
#: Markers that are drawn with a name: those with the largest errors.
_DRAWN = 8
#: Sentences on frames by the numbers of their statuses.
SENTENCES = {int(member): member.sentence for member in TrialStatus}


@report_part("laboratory_markers", version=1, arrays=_NAMES)
def laboratory_markers(result: Result) -> Section | None:
    """Errors of markers over time and by marker, statuses of frames, and what was noted about the files."""
    title = "Markers and frames"
    motions = stored_arrays(result, *_NAMES)
    if not motions:
        return missing(title, *_NAMES) if len(result.outcomes.X) else None
    with_markers = {key: arrays for key, arrays in motions.items() if np.isfinite(arrays["marker_errors"]).any()}
    figures: tuple[Figure, ...] = ()
    if with_markers:
        figures = (
            selectable(
                "Errors of markers", with_markers, partial(_errors, unit=error_unit(result)), height=360,
                note="Distance of a measured marker from the same one on the model; the largest ones are named.",
            ),
        )  # fmt: skip
    notes = dict.fromkeys(
        f"{scenario}: {note}" for (_, scenario), arrays in motions.items() for note in arrays["notes"]
    )
    tables = (*((_table(with_markers, error_unit(result)),) if with_markers else ()), _frames(motions))
    return with_folded_rest(Section(title, figures=figures, tables=tables), list(notes))


def error_unit(result: Result) -> tuple[float, str]:
    """The factor from m and the unit of distances between markers: that in which the study writes `marker_rms` or
    `marker_max`, else mm."""
    units = stated_units(result.problem)
    return units.get("marker_rms") or units.get("marker_max") or (1e3, "mm")


def _errors(arrays: Arrays, unit: tuple[float, str]) -> Plot:
    errors = unit[0] * np.asarray(arrays["marker_errors"], dtype=float)
    with np.errstate(invalid="ignore"):
        size = np.sqrt(np.nanmean(errors**2, axis=0))
    order = [int(j) for j in np.argsort(-np.nan_to_num(size), kind="stable")]
    data: list[dict[str, Any]] = [
        line(arrays["time"], errors[:, j], line={"color": "@faint", "width": 0.8}) for j in order[_DRAWN:][::-1]
    ]
    data += [
        line(arrays["time"], errors[:, j], str(arrays["markers"][j]), line={"color": category(k), "width": 1.5})
        for k, j in enumerate(order[:_DRAWN])
    ]
    return {
        "data": data,
        "layout": layout(xaxis=axis("time [s]"), yaxis=axis(f"error [{unit[1]}]", rangemode="tozero")),
    }


def _table(motions: dict[tuple[str, str], Arrays], unit: tuple[float, str]) -> Table:
    rows = []
    for (design, scenario), arrays in motions.items():
        errors = unit[0] * np.asarray(arrays["marker_errors"], dtype=float)
        for j, name in enumerate(arrays["markers"]):
            finite = errors[np.isfinite(errors[:, j]), j]
            if len(finite):
                share = 1.0 - len(finite) / len(errors)
                cells = (float(np.sqrt((finite**2).mean())), float(finite.max()), f"{share:.1%}")
                rows.append((design, scenario, str(name), *cells))
    rows.sort(key=lambda row: (row[0], row[1], -row[3]))
    columns = ("design", "scenario", "marker", f"RMS [{unit[1]}]", f"maximum [{unit[1]}]", "missing")
    return Table("Errors by marker", columns, tuple(rows))


def _frames(motions: dict[tuple[str, str], Arrays]) -> Table:
    """Frames by status."""
    rows = []
    for (design, scenario), arrays in motions.items():
        status = np.asarray(arrays["pose_status"], dtype=int)
        for value in np.unique(status).tolist():
            frames = np.flatnonzero(status == value)
            times = np.asarray(arrays["time"])[frames]
            when = f"{times[0]:.4g} to {times[-1]:.4g}"
            sentence = SENTENCES[value]
            rows.append((design, scenario, sentence, f"{len(frames)} of {len(status)}", when))
    return Table("Frames of poses and loads", ("design", "scenario", "status", "frames", "time [s]"), tuple(rows))
