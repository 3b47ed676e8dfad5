"""Report part `laboratory_subject`: how the model of each subject was scaled, and how it stands in the static pose."""

from __future__ import annotations

import numpy as np

from designopt.plugin import report_part
from designopt.report.designs import Arrays, missing, stored_arrays
from designopt.report.section import Section, Table
from designopt.store.result import Result
from designopt_laboratory.exports import SUBJECT_ARRAYS
from designopt_laboratory.report.markers import error_unit


@report_part("laboratory_subject", version=1, arrays=SUBJECT_ARRAYS)
def laboratory_subject(result: Result) -> Section | None:
    """Scale factors and masses of the bodies, and errors of the markers in the static pose, of each subject."""
    title = "Subjects"
    motions = stored_arrays(result, *SUBJECT_ARRAYS)
    if not motions:
        return missing(title, *SUBJECT_ARRAYS) if len(result.outcomes.X) else None
    subjects = _subjects(motions)
    factor, unit = error_unit(result)
    static = tuple(
        (*key, str(marker), factor * float(error))
        for key, arrays in subjects.items()
        for marker, error in sorted(
            zip(arrays["static_markers"], arrays["static_errors"], strict=True), key=lambda pair: -pair[1]
        )
        if np.isfinite(error)
    )
    tables = [_bodies(subjects)]
    if static:
        columns = ("design", "trial", "marker", f"error [{unit}]")
        tables.append(Table("Markers of the static pose, before they are placed on the scaled model", columns, static))
    return Section(title, tables=tuple(tables))


def _subjects(motions: dict[tuple[str, str], Arrays]) -> dict[tuple[str, str], Arrays]:
    """The arrays of trials with different subjects: of several trials with the same values the first, with the number
    of the others."""
    trials: dict[tuple[str, bytes], list[str]] = {}
    arrays_of: dict[tuple[str, bytes], Arrays] = {}
    for (design, scenario), arrays in motions.items():
        values = (np.asarray(arrays[name]) for name in ("body_masses", "scale_factors", "static_errors"))
        key = design, b"".join(value.tobytes() for value in values)
        trials.setdefault(key, []).append(scenario)
        arrays_of.setdefault(key, arrays)
    names = {key: t[0] if len(t) == 1 else f"{t[0]} and {len(t) - 1} more" for key, t in trials.items()}
    return {(key[0], names[key]): arrays for key, arrays in arrays_of.items()}


def _bodies(subjects: dict[tuple[str, str], Arrays]) -> Table:
    rows: list[tuple[str | float, ...]] = []
    for key, arrays in subjects.items():
        masses = np.asarray(arrays["body_masses"], dtype=float)
        for body, factors, mass in zip(arrays["bodies"], arrays["scale_factors"], masses, strict=True):
            rows.append((*key, str(body), *(round(float(factor), 4) for factor in factors), float(mass)))
        rows.append((*key, "all bodies", "", "", "", float(masses.sum())))
    columns = ("design", "trial", "body", "factor x", "factor y", "factor z", "mass [kg]")
    return Table("Scale factors and masses", columns, tuple(rows))
