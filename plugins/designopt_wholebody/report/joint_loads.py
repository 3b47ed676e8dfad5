"""Report part `joint_loads`: the movement, loads of joints over time and cycles, and how far to trust them.

The agreement of two measurements of a vector is drawn in three planes on axes at 120 degrees (Nunes 2017, appendix A).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
from designopt_recordings.frames import FrameStatus, StatusEnum

from designopt.arrays import Floats
from designopt.plugin import report_part
from designopt.report.colours import axis, category, layout
from designopt.report.designs import Arrays, Plot, line, missing, selectable, stored_arrays
from designopt.report.drawing import DrawnMotion, draw
from designopt.report.section import Section, Table
from designopt.store.result import Result
from designopt_wholebody.consistency.positions import ConsistencyStatus
from designopt_wholebody.models.trial_declarations import KINDS
from designopt_wholebody.trial.agreement import Agreement, agreement
from designopt_wholebody.trial.figures import ANGLES, JOINTS

NAMES = ("time", "sticks", "torque_sizes", "force_sizes", "residual_forces", "distances", "status")

#: Further drawings, by the arrays that they need.
CYCLES = ("cycle", "angle_mean", "angle_deviation", "torque_mean", "torque_deviation")
MOMENTS = ("cycle", "moment_names", "moment_mean", "moment_deviation")
#: Moments that are drawn over a cycle.
_DRAWN = 8
VIOLATIONS = ("raw_violations_by_type", "violations_by_type")


@report_part("joint_loads", version=2, arrays=NAMES)
def joint_loads(result: Result) -> Section | None:
    """Trials of the whole body: scene, joint torques and forces, cycles, residuals, violations, agreement, frames.

    Needs the arrays `NAMES`. Draws these too if recorded: raw_sticks, simulated_sticks, surfaces and ground_forces
    in the scene, cycles from `CYCLES`, moments from `MOMENTS`, violations from `VIOLATIONS`, agreement from
    differences.
    """
    title = "Joint loads"
    motions = stored_arrays(result, *NAMES)
    if not motions:
        return missing(title, *NAMES) if len(result.outcomes.X) else None
    first = next(iter(motions.values()))
    figures = [
        selectable("The movement", motions, scene, height=560,
                   note="Drawn to scale; arrows are forces from the ground. Choose lines by their names."),
        selectable("Torques of the joints", motions, _torques, height=420),
        selectable("Forces of the joints", motions, _forces, height=420),
    ]  # fmt: skip
    if set(CYCLES) <= first.keys():
        figures += [
            selectable("Angles over a cycle", motions, _angle_bands, height=420,
                       note="Right side: mean and one standard deviation of the cycles of the trial."),
            selectable("Torques over a cycle", motions, _torque_bands, height=420),
        ]  # fmt: skip
    if set(MOMENTS) <= first.keys():
        figures.append(
            selectable("Moments over a cycle", motions, _moment_bands, height=420,
                       note="About the axes of the joints' angles, both sides: mean and one standard deviation of the "
                       "cycles of the trial. The largest ones are drawn.")
        )  # fmt: skip
    figures.append(
        selectable("Residuals", motions, _residual, height=380,
                   note="Norm of the residual force on the trunk between motion and plates, and the distance of the "
                   "landmarks from the measured ones.")
    )  # fmt: skip
    if set(VIOLATIONS) <= first.keys():
        figures.append(
            selectable("Violation of the constraints", motions, _violations, height=380,
                       note="RMS of each type, distances in m and directions as they are: by the measured landmarks "
                       "(lines) and by the used coordinates (dashed).")
        )  # fmt: skip
    tables = [statuses(motions)]
    if "differences" in first:
        figures.append(
            selectable("Agreement of landmarks", motions, agreement_plot, height=520,
                       note="Measured minus used positions, seen along the three axes of the laboratory.")
        )  # fmt: skip
        tables.append(agreement_table(motions))
    return Section(
        title,
        introduction="Loads of torque actuators at the joints, the least that joints bear: muscles pull bones "
        "together and add to them. Of both sides the larger one is drawn.",
        figures=tuple(figures),
        tables=tuple(tables),
    )


def _angle_bands(arrays: Arrays) -> Plot:
    return _bands(arrays, "angle", "angle [deg]", tuple(name.replace("_", " ") for name in ANGLES), np.rad2deg(1.0))


def _torque_bands(arrays: Arrays) -> Plot:
    return _bands(arrays, "torque", "torque [N m/kg]", tuple(JOINTS), 1.0)


def _moment_bands(arrays: Arrays) -> Plot:
    peaks = np.nan_to_num(np.abs(np.asarray(arrays["moment_mean"]))).max(axis=0)
    largest = sorted(np.argsort(-peaks, kind="stable")[:_DRAWN].tolist())
    parts = {name: np.asarray(arrays[name])[:, largest] for name in ("moment_mean", "moment_deviation")}
    names = tuple(str(arrays["moment_names"][i]).replace("_", " ") for i in largest)
    return _bands({**arrays, **parts}, "moment", "moment [N m]", names, 1.0)


def _bands(arrays: Arrays, array: str, title: str, names: tuple[str, ...], factor: float) -> Plot:
    percent = np.asarray(arrays["cycle"])
    data = []
    for i, name in enumerate(names):
        mean = factor * np.asarray(arrays[f"{array}_mean"])[:, i]
        if not np.isfinite(mean).all() or not np.any(mean):
            continue
        half = np.nan_to_num(factor * np.asarray(arrays[f"{array}_deviation"])[:, i])
        if half.any():
            edge = line(
                np.concatenate([percent, percent[::-1]]),
                np.concatenate([mean + half, (mean - half)[::-1]]),
                name,
                fill="toself",
                opacity=0.25,
                showlegend=False,
                legendgroup=name,
                hoverinfo="skip",
                line={"color": category(i), "width": 0},
            )
            data.append(edge)
        data.append(line(percent, mean, name, legendgroup=name, line={"color": category(i)}))
    return {"data": data, "layout": layout(xaxis=axis("cycle [%]"), yaxis=axis(title))}


def _violations(arrays: Arrays) -> Plot:
    data = []
    for i, kind in enumerate(KINDS):
        for name, dash in zip(VIOLATIONS, ("solid", "dash"), strict=True):
            values = np.asarray(arrays[name])[:, i]
            if np.nanmax(values, initial=0.0) > 0.0:
                look = {"color": category(i), "dash": dash}
                data.append(
                    {"type": "scatter", "mode": "lines", "x": arrays["time"], "y": np.maximum(values, 1e-16),
                     "name": kind, "line": look, "legendgroup": kind, "showlegend": dash == "solid"}
                )  # fmt: skip
    scale = {**axis("RMS violation"), "type": "log", "exponentformat": "power"}
    return {"data": data, "layout": layout(xaxis=axis("time [s]"), yaxis=scale)}


def _torques(arrays: Arrays) -> Plot:
    return _by_joint(arrays, "torque_sizes", "torque [N m/kg]")


def _forces(arrays: Arrays) -> Plot:
    return _by_joint(arrays, "force_sizes", "force [body weights]")


def _by_joint(arrays: Arrays, name: str, title: str) -> Plot:
    values = arrays[name]
    data = [
        line(arrays["time"], values[:, i], joint, line={"color": category(i)})
        for i, joint in enumerate(JOINTS)
        if np.nanmax(values[:, i], initial=0.0) > 0.0
    ]
    return {"data": data, "layout": layout(xaxis=axis("time [s]"), yaxis=axis(title))}


def _residual(arrays: Arrays) -> Plot:
    force = np.linalg.norm(arrays["residual_forces"], axis=1)
    data = [
        line(arrays["time"], force, "residual force", line={"color": "@mark"}),
        line(arrays["time"], 1e3 * arrays["distances"], "landmarks", yaxis="y2", line={"color": "@accent"}),
    ]
    second = {**axis("distance [mm]"), "overlaying": "y", "side": "right", "rangemode": "tozero", "showgrid": False}
    return {"data": data, "layout": layout(xaxis=axis("time [s]"), yaxis=axis("force [N]"), yaxis2=second)}


def statuses(motions: Mapping[tuple[str, str], Arrays]) -> Table:
    """How many frames of each trial have which status, the worst first."""
    rows = []
    for (design, scenario), arrays in motions.items():
        status = np.asarray(arrays["status"]).astype(int)
        for value in np.unique(status[status > FrameStatus.EDGE]).tolist()[::-1]:
            count = int(np.sum(status == value))
            rows.append((design, scenario, count, len(status), sentence(value)))
    note = "Other frames are measured, complete and consistent." if rows else "There are none."
    note += " Both ends of a trial, where derivatives are one-sided, are not counted."
    return Table("Frames to check", ("design", "scenario", "frames", "of", "why"), tuple(rows), note=note)


def sentence(status: int) -> str:
    """Meaning of a frame's status."""
    kinds: itertools.chain[StatusEnum] = itertools.chain(ConsistencyStatus, FrameStatus)
    return next((member.sentence for member in kinds if int(member) == status), f"status {status}")


_AXES = "XYZ"
#: Directions of the three axes on the page.
_DIRECTIONS = np.array([[0.0, 1.0], [-np.sqrt(0.75), -0.5], [np.sqrt(0.75), -0.5]])
#: Share of the width that a label of an axis may need beside its tip.
LABEL = 0.15
_TEXT_POSITIONS = ("top center", "bottom center", "bottom center")
#: Differences that are drawn.
_SHOWN = 1500


def agreement_plot(arrays: Arrays) -> Plot:
    """Differences in mm and the ellipsoid of 95 % of normal ones; an axis starts at the lowest limit, or 0."""
    away = 1e3 * np.asarray(arrays["differences"], dtype=np.float64)
    if len(away) < 4:
        return {"data": [], "layout": layout()}
    normal_ellipsoid = agreement(away, np.zeros_like(away))
    shape = normal_ellipsoid.axes @ np.diag(normal_ellipsoid.radii**2) @ normal_ellipsoid.axes.T
    start = np.minimum(np.minimum(normal_ellipsoid.limits[0], normal_ellipsoid.bias - np.sqrt(np.diag(shape))), 0.0)
    shown_points = away[np.linspace(0, len(away) - 1, min(_SHOWN, len(away))).round().astype(int)]
    data: list[dict[str, Any]] = []
    for k, (i, j) in enumerate(((0, 1), (1, 2), (2, 0))):
        circle = np.linspace(0.0, 2.0 * np.pi, 61)
        root = np.linalg.cholesky(shape[np.ix_([i, j], [i, j])] + 1e-12 * np.eye(2))
        outline = normal_ellipsoid.bias[[i, j]] + np.stack([np.cos(circle), np.sin(circle)], axis=1) @ root.T
        points = _placed(shown_points[:, [i, j]], start, i, j)
        data.append(
            {"type": "scatter", "mode": "markers", "x": points[:, 0], "y": points[:, 1], "hoverinfo": "skip",
             "name": f"{_AXES[i]}{_AXES[j]}", "marker": {"size": 3, "opacity": 0.35, "color": category(k)}}
        )  # fmt: skip
        data.append(_path(_placed(outline, start, i, j), "95 % ellipsoid", k == 0, "@ink", "solid"))
        data.append(_path(_placed(normal_ellipsoid.bias[None, [i, j]], start, i, j), "bias", k == 0, "@mark", "solid"))
        zero = np.array([[start[i], 0.0], [0.0, 0.0], [0.0, start[j]]])
        data.append(_path(_placed(zero, start, i, j), "zero", k == 0, "@muted", "dot"))
    ends = np.maximum(normal_ellipsoid.limits[1], np.abs(away).max(axis=0)) - start
    for k, letter in enumerate(_AXES):
        tip = ends[k] * _DIRECTIONS[k]
        data.append(
            {"type": "scatter", "mode": "lines+text", "x": [0.0, tip[0]], "y": [0.0, tip[1]], "hoverinfo": "skip",
             "text": ["", f"{letter} {start[k]:.0f} to {ends[k] + start[k]:.0f} mm"],
             "textposition": _TEXT_POSITIONS[k], "showlegend": False, "line": {"color": "@ink", "width": 1}}
        )  # fmt: skip
    hidden = {"visible": False}
    low, high = min(np.min(trace["x"]) for trace in data), max(np.max(trace["x"]) for trace in data)
    around = LABEL * (high - low)
    across = {**hidden, "range": [low - around, high + around]}
    shape_to_scale = layout(xaxis=across, yaxis={**hidden, "scaleanchor": "x"}, showlegend=True)
    legend = {**shape_to_scale["legend"], "itemsizing": "constant"}  # the points are too small for it
    return {"data": data, "layout": {**shape_to_scale, "legend": legend}}


def _placed(values: Floats, start: Floats, i: int, j: int) -> Floats:
    """(n, 2) places on the page of values (n, 2) along two axes; what lies before their start is put there."""
    ahead = np.maximum(values - start[[i, j]], 0.0)
    return np.asarray(ahead @ _DIRECTIONS[[i, j]])


def _path(points: Floats, name: str, in_legend: bool, colour: str, dash: str) -> dict[str, Any]:
    mode = {"mode": "markers", "marker": {"size": 9, "color": colour, "symbol": "x"}} if len(points) == 1 else {
        "mode": "lines", "line": {"color": colour, "width": 2, "dash": dash}
    }  # fmt: skip
    return {"type": "scatter", "x": points[:, 0], "y": points[:, 1], "name": name, "showlegend": in_legend,
            "hoverinfo": "skip", **mode}  # fmt: skip


def agreement_table(motions: Mapping[tuple[str, str], Arrays]) -> Table:
    """Bias, limits and coverage of every trial, of the ellipsoid by χ² and of the thesis's."""
    rows = []
    for (design, scenario), arrays in motions.items():
        away = 1e3 * np.asarray(arrays["differences"], dtype=np.float64)
        if len(away) >= 4:
            by_chi_squared, thesis = (agreement(away, np.zeros_like(away), kind=k) for k in ("chi_squared", "thesis"))
            rows.append((design, scenario, *_cells(by_chi_squared), by_chi_squared.coverage, thesis.coverage))
    columns = ("design", "scenario", "landmarks", "bias X [mm]", "Y [mm]", "Z [mm]", "limits ± X [mm]", "± Y [mm]",
               "± Z [mm]", "in the 95 % ellipsoid", "in that of 1.96 σ per axis")  # fmt: skip
    note = (
        "An ellipsoid of 1.96 standard deviations along each axis, as in the thesis, holds 72 % of normal differences, "
        "not 95 %."
    )
    return Table("Agreement of landmarks with the measured ones", columns, tuple(rows), note=note)


def _cells(measure: Agreement) -> tuple[float, ...]:
    half = 0.5 * (measure.limits[1] - measure.limits[0])
    return (measure.count, *measure.bias.tolist(), *half.tolist())


#: Arrays of lines by the name in the drawing; only the first is needed.
LINES = {"used": "sticks", "measured": "raw_sticks", "simulated": "simulated_sticks"}


def scene(arrays: Arrays) -> Plot:
    """The Plotly figure with its animation, Y up, seen from the right and ahead."""
    lines = {name: _joined(arrays[array]) for name, array in LINES.items() if array in arrays}
    if "surfaces" in arrays and np.isfinite(arrays["surfaces"]).any():
        lines["surfaces"] = np.asarray(arrays["surfaces"], dtype=np.float64)
    forces = {}
    if "ground_forces" in arrays and np.isfinite(arrays["ground_forces"]).any():
        forces["ground"] = np.asarray(arrays["ground_forces"], dtype=np.float64)
    plot = draw(DrawnMotion(np.asarray(arrays["time"], dtype=np.float64), lines, forces=forces))
    if "scene" in plot["layout"]:
        plot["layout"]["scene"]["camera"] = {
            "up": {"x": 0, "y": 1, "z": 0},
            "eye": {"x": 0.5, "y": 0.25, "z": 1.6},
            "projection": {"type": "orthographic"},
        }
    for trace in plot["data"]:
        trace["marker"] = {**trace.get("marker", {}), "size": trace["marker"]["size"] if trace["name"] in forces else 2}
    return plot


def _joined(sticks: Floats) -> Floats:
    """(n, vertices, 3) lines with NaN between them of sticks (n, k, 2, 3)."""
    sticks = np.asarray(sticks, dtype=np.float64)
    gap = np.full((*sticks.shape[:2], 1, 3), np.nan)
    return np.concatenate([sticks, gap], axis=2).reshape(len(sticks), -1, 3)
