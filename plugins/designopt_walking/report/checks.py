"""Report part `walking_checks`: whether a walk obeys mechanics, how it was solved, and which bounds it touches."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from designopt.arrays import Floats
from designopt.counts import plural
from designopt.plugin import report_part
from designopt.report.designs import short_label, stored_arrays
from designopt.report.labels import listed
from designopt.report.section import Section, Table
from designopt.store.result import Result
from designopt_walking.results.physics import CHECKS, ENERGY_ERROR, FORCE_ERROR, IMPULSE_ERROR, MESH_CHANGE, MOST_PEAKS

_PHYSICS = {
    "mean_force_error": f"mean vertical force (at most {FORCE_ERROR:g})",
    "impulse_error": f"fore-aft impulse (at most {IMPULSE_ERROR:g})",
    "energy_error": f"energy (at most {ENERGY_ERROR:g})",
    "force_peaks": f"peaks of a foot's force (at most {MOST_PEAKS})",
    "resimulation_error": "re-simulation of intervals",
    "error_estimate": "estimate of the discretisation",
    "mesh_difference": "rms of angles on twice the intervals [rad]",
    "mesh_change": f"change on twice the intervals (at most {MESH_CHANGE:g})",
    "constraint_violation": "constraints",
}
_SOLVED = {
    "iterations": "iterations",
    "attempts": "solves",
    "warm": "warm",
    "starts": "starts",
    "agreeing_starts": "starts that agree",
    "start_spread": "spread of the starts",
}
#: A touched bound that is the largest flexion of a knee.
_LEAST_KNEE_ANGLE = re.compile(r"knee_angle_[rl], least: ")
#: Columns of a single start, which are of no interest beside others.
_OF_ONE_START = {"starts": 1.0, "agreeing_starts": 1.0, "start_spread": 0.0}
#: Knee flexion of persons in swing at their usual speed (deg).
_SWING = 60.0
#: Designs in the tables.
_ROWS = 60


@report_part("walking_checks", version=1)
def walking_checks(result: Result) -> Section | None:
    """Errors of the balances of every walk, how it was solved with the spread of its starts, and bounds it touches."""
    figures = result.outcomes.figures
    if not len(result.outcomes.X) or "mean_force_error" not in figures:
        return None
    chosen_rows = list(dict.fromkeys(result.chosen().values()))
    rows = [*chosen_rows, *(k for k in range(len(result.outcomes.X)) if k not in chosen_rows)][:_ROWS]
    failed = np.isfinite(figures["mean_force_error"]).sum(axis=None)
    failures = int((figures["failed_checks"] > 0.0).sum())
    total = figures["mean_force_error"].size
    findings = ["Every walk has a result."] if failed == total else [f"{failed} of {total} walks have a result."]
    if failures:
        findings.append(
            f"{plural(failures, 'walk')} {'fails' if failures == 1 else 'fail'} a check of mechanics: not to be used. "
            f"Raise 'intervals': {'; '.join(_failed_checks(figures))}."
        )
    findings.append(_mesh(figures))
    if "warm" in figures and failed:
        warm = int(np.nansum(figures["warm"]))
        findings += [f"{plural(warm, 'solve')} started from a walk with its multipliers."] if warm else []
    findings += _flexion_at_bound(result)
    one_start = all((np.nan_to_num(figures[n]) <= limit).all() for n, limit in _OF_ONE_START.items() if n in figures)
    columns = {name: words for name, words in _SOLVED.items() if not one_start or name not in _OF_ONE_START}
    tables = [
        _table(result, rows, "Errors relative to weight, impulse and muscle work", _present(_PHYSICS, figures)),
        _table(result, rows, "How each walk was solved", _present(columns, figures)),
        *_bounds(result),
    ]
    return Section("Checks of the walks", findings=tuple(findings), tables=tuple(tables), notes=_notes(result))


def _failed_checks(figures: Mapping[str, Floats]) -> list[str]:
    """A clause for each check that walks fail, with the largest value, the limit and the number of walks."""
    return [
        f"the {words} is up to {figures[name][failed].max():.3g} (at most {limit:g}) in "
        f"{plural(int(failed.sum()), 'walk')}"
        for name, (words, limit) in CHECKS.items()
        if (failed := figures[name] > limit).any()
    ]


def _flexion_at_bound(result: Result) -> list[str]:
    """Where the range of the knee, instead of the cost, decides its flexion in swing."""
    limits = {
        str(bound).rpartition(": ")[2]: (design, scenario)
        for (design, scenario), arrays in stored_arrays(result, "bounds").items()
        for bound in arrays["bounds"]
        if _LEAST_KNEE_ANGLE.match(str(bound))
    }
    return [
        f"The knee bends to its bound ({limit}), as in {design}, {scenario}: the range decides this flexion, which is"
        f" no prediction. The knee of a walking person bends to about {_SWING:g} deg (Winter 2009)."
        for limit, (design, scenario) in limits.items()
    ]


def _present(columns: Mapping[str, str], figures: Mapping[str, Floats]) -> dict[str, str]:
    return {name: words for name, words in columns.items() if name in figures}


def _mesh(figures: Mapping[str, Floats]) -> str:
    """Whether finer meshes confirm the walks."""
    if "mesh_change" not in figures:
        return "No walk is confirmed on a finer mesh (setting confirm)."
    changes = figures["mesh_change"][np.isfinite(figures["mesh_change"])]
    failures = int((changes > MESH_CHANGE).sum())
    if not failures:
        return f"On twice the intervals no objective changes by more than {100.0 * MESH_CHANGE:g} %."
    return (
        f"{failures} of {len(changes)} walks are not converged with the mesh: on twice the intervals their objective"
        f" changes by up to {100.0 * changes.max():.2g} % (at most {100.0 * MESH_CHANGE:g} %)."
    )


def _notes(result: Result) -> tuple[str, ...]:
    """Remarks on the chosen walks, each once."""
    notes = {
        f"{design}, {scenario}: {note}": None
        for (design, scenario), arrays in stored_arrays(result, "notes").items()
        for note in arrays["notes"]
    }
    return tuple(notes)[:_ROWS]


def _table(result: Result, rows: Sequence[int], title: str, columns: dict[str, str]) -> Table:
    figures, entries = result.outcomes.figures, []
    for row in rows:
        for s, scenario in enumerate(result.problem.scenarios):
            values = [float(figures[name][row, s]) for name in columns]
            reason = str(result.reason[row, s]) or str(result.status[row, s])
            entries.append((short_label(result, row), scenario.name, reason, *values))
    return Table(title, ("design", "scenario", "status", *columns.values()), tuple(entries))


def _bounds(result: Result) -> tuple[Table, ...]:
    entries = [
        (design, scenario, str(name), f"{100.0 * float(share):.3g} %")
        for (design, scenario), arrays in stored_arrays(result, "bounds", "bound_shares").items()
        for name, share in zip(arrays["bounds"], arrays["bound_shares"], strict=True)
    ]
    if not entries:
        return ()
    joints = sorted({str(name).partition(",")[0] for _, _, name, _ in entries})
    note = f"Without the bounds of {listed(joints)} the walks would be others."
    return (
        Table("Bounds that the walks touch", ("design", "scenario", "bound", "share of time"), tuple(entries), note),
    )
