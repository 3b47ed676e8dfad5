"""Report part `joint_loads`: the movement, loads of joints over time and cycles, and how far to trust them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
from designopt_recordings.frames import FrameStatus, StatusEnum

from designopt.plugin import report
from designopt.report.colours import axis, category, layout
from designopt.report.designs import Arrays, Plot, kept, line, missing, selectable
from designopt.report.section import Section, Table
from designopt.store.result import Result
from designopt_wholebody.consistency.positions import ConsistencyStatus
from designopt_wholebody.models.declared import KINDS
from designopt_wholebody.report.agreement import agreement_plot, agreement_table
from designopt_wholebody.report.scene import scene
from designopt_wholebody.trial.figures import ANGLES, JOINTS

NAMES = ("time", "sticks", "torque_sizes", "force_sizes", "residual_forces", "distances", "status")

#: Further drawings, by the arrays that they need.
CYCLES = ("cycle", "angle_mean", "angle_deviation", "torque_mean", "torque_deviation")
VIOLATIONS = ("raw_violations_by_type", "violations_by_type")


@report("joint_loads", version=2)
def joint_loads(result: Result) -> Section | None:
    """Trials of the whole body: scene, joint torques and forces, cycles, residuals, violations, agreement, frames.

    Needs the arrays `NAMES`. What else is kept is drawn too: raw_sticks, simulated_sticks, surfaces and ground_forces
    in the scene, cycles from `CYCLES`, violations from `VIOLATIONS`, agreement from differences.
    """
    title = "Joint loads"
    motions = kept(result, *NAMES)
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
    figures.append(
        selectable("What is not explained", motions, _residual, height=380,
                   note="Norm of the force that motion and plates leave on the trunk, and the distance of the "
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
                       note="Measured less used positions, seen along the three axes of the laboratory.")
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


def _bands(arrays: Arrays, what: str, title: str, names: tuple[str, ...], factor: float) -> Plot:
    percent = np.asarray(arrays["cycle"])
    data = []
    for i, name in enumerate(names):
        mean = factor * np.asarray(arrays[f"{what}_mean"])[:, i]
        if not np.isfinite(mean).all() or not np.any(mean):
            continue
        half = np.nan_to_num(factor * np.asarray(arrays[f"{what}_deviation"])[:, i])
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
    return Table("Frames that need a look", ("design", "scenario", "frames", "of", "why"), tuple(rows), note=note)


def sentence(status: int) -> str:
    """What the status of a frame means."""
    kinds: itertools.chain[StatusEnum] = itertools.chain(ConsistencyStatus, FrameStatus)
    return next((member.sentence for member in kinds if int(member) == status), f"status {status}")
