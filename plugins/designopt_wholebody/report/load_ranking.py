"""Report part `load_ranking`: which design loads which joint least, by force and its parts and by torque."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from designopt.plugin import report_part
from designopt.report.colours import axis, category, layout
from designopt.report.designs import OFFERED, design_label
from designopt.report.labels import listed, number, plain
from designopt.report.section import Figure, Section, Table
from designopt.store.result import Result
from designopt_wholebody.trial.figures import JOINTS

#: Loads by the ends of the outputs' names.
LOADS = {
    "force": "body weights",
    "compression": "body weights",
    "traction": "body weights",
    "shear": "body weights",
    "torque": "N m/kg",
    "off_axis": "N m/kg",
}

#: Loads that differ by less than this share between designs are equal.
EQUAL = 0.05

Values = NDArray[np.float64]


@report_part("load_ranking", version=1)
def load_ranking(result: Result) -> Section | None:
    """Peak loads of joints of the first designs, means over the scenarios, and the design with the lowest of each.

    Nothing for fewer than two designs, and for other models.
    """
    rows = np.flatnonzero(~result.outcomes.failed)[:OFFERED]
    outputs = {f"{joint}_{part}" for joint in JOINTS for part in LOADS}
    if len(rows) < 2 or not outputs <= result.outcomes.figures.keys():
        return None
    names = [design_label(result, int(row)) for row in rows]
    loads = _loads(result, rows)
    table = Table(
        "Peak loads of joints",
        ("joint", "load", "unit", *names, "least with", "most by least"),
        tuple(
            (joint, part.replace("_", " "), LOADS[part], *values.tolist(), names[np.nanargmin(values)], _ratio(values))
            for (joint, part), values in loads.items()
        ),
        note="Means over the scenarios, larger side; – for a joint that the model of a design does not have.",
        visible_rows=60,
    )
    return Section(
        "Loads of joints, ranked",
        introduction="The design with the lowest load of each joint: peaks of joint forces, of their "
        "compression, traction and "
        f"shear in body weights, and of joint torques in N m/kg. Differences below {100 * EQUAL:.0f} % are not listed.",
        findings=tuple(_finding(joint, {p: v for (j, p), v in loads.items() if j == joint}, names) for joint in JOINTS
                       if any(j == joint for j, _ in loads)),
        figures=(_bars(loads, names, "torque"), _bars(loads, names, "force")),
        tables=(table,),
    )  # fmt: skip


def _loads(result: Result, rows: NDArray[np.intp]) -> dict[tuple[str, str], Values]:
    """Peak loads (designs,) by joint and load, means over the scenarios; NaN where a design has no such joint. Loads
    that no design has are left out."""
    peak_loads: dict[tuple[str, str], Values] = {}
    for joint in JOINTS:
        loads = {part: result.outcomes.figures[f"{joint}_{part}"][rows].mean(axis=1) for part in LOADS}
        present = loads["force"] > 0.0
        peak_loads |= {
            (joint, part): np.where(present, values, np.nan)
            for part, values in loads.items()
            if np.nanmax(values, initial=0.0) > 0.0
        }
    return peak_loads


def _ratio(values: Values) -> float:
    """The most by the least; NaN where the least is 0."""
    least = np.nanmin(values)
    return float(np.nanmax(values) / least) if least > 0.0 else float("nan")


def _finding(joint: str, loads: dict[str, Values], names: list[str]) -> str:
    """A sentence with the loads in which each design is the lightest on one joint."""
    lightest: dict[str, list[str]] = {}
    for part, values in loads.items():
        smallest, largest = float(np.nanmin(values)), float(np.nanmax(values))
        if largest > (1.0 + EQUAL) * smallest:
            text = f"{part.replace('_', '-')} ({number(smallest, 3)} to {number(largest, 3)})"
            lightest.setdefault(names[np.nanargmin(values)], []).append(text)
    if not lightest:
        return f"{joint}: equal."
    clauses = [f"{listed(parts)} least with {name}" for name, parts in lightest.items()]
    return f"{joint}: {'; '.join(clauses)}."


def _bars(loads: dict[tuple[str, str], Values], names: list[str], part: str) -> Figure:
    """Peak of one load for every joint, a bar for each design."""
    joints = [joint for joint, values in loads if values == part]
    data = [
        {"type": "bar", "x": joints, "y": [float(loads[joint, part][i]) for joint in joints], "name": plain(name),
         "marker": {"color": category(i)}}
        for i, name in enumerate(names)
    ]  # fmt: skip
    title = f"{part} [{LOADS[part]}]"
    return Figure(
        f"Peak joint {part}s",
        {"data": data, "layout": layout(barmode="group", yaxis=axis(title), showlegend=True)},
        height=340,
    )
