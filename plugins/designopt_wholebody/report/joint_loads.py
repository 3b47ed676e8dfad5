"""Report part `joint_loads`: the movement, loads of joints over time, residuals, and frames that need a look."""

from __future__ import annotations

import itertools

import numpy as np
from designopt_recordings.frames import FrameStatus, Status

from designopt.plugin import report
from designopt.report.colours import axis, category, layout
from designopt.report.designs import Arrays, Plot, kept, line, missing, poses, selectable
from designopt.report.section import Section, Table
from designopt.store.result import Result
from designopt_wholebody.consistency.positions import ConsistencyStatus
from designopt_wholebody.trial.figures import JOINTS

NAMES = ("time", "sticks", "torque_sizes", "force_sizes", "residual_forces", "distances", "status")


@report("joint_loads", version=1)
def joint_loads(result: Result) -> Section | None:
    """Trials of the whole body: stick figures, joint torques and forces, residuals, frames by their status."""
    title = "Joint loads"
    motions = kept(result, *NAMES)
    if not motions:
        return missing(title, *NAMES) if len(result.outcomes.X) else None
    return Section(
        title,
        introduction="Loads of torque actuators at the joints, the least that joints bear: muscles pull bones "
        "together and add to them. Of both sides the larger one is drawn.",
        figures=(
            selectable("The movement", motions, _movement, height=420,
                       note="Seen from the right, drawn to scale at equal times."),
            selectable("Torques of the joints", motions, _torques, height=420),
            selectable("Forces of the joints", motions, _forces, height=420),
            selectable("What is not explained", motions, _residual, height=380,
                       note="Norm of the force that motion and plates leave on the trunk, and the distance of the "
                       "landmarks from the measured ones."),
        ),
        tables=(_statuses(motions),),
    )  # fmt: skip


def _movement(arrays: Arrays) -> Plot:
    sticks = arrays["sticks"]
    data = []
    shown = [i for i in poses(len(sticks)) if np.isfinite(sticks[i]).all()]
    for k, i in enumerate(shown):
        gap = np.full((len(sticks[i]), 1, 3), np.nan)
        path = np.concatenate([sticks[i], gap], axis=1).reshape(-1, 3)
        opacity = 0.2 + 0.8 * (k + 1) / len(shown)
        data.append(line(path[:, 0], path[:, 1], opacity=opacity, line={"color": "@ink", "width": 2}))
    axes = {
        "xaxis": axis("x [m]", zeroline=False),
        "yaxis": axis("height [m]", zeroline=False, scaleanchor="x"),
    }
    return {"data": data, "layout": layout(**axes)}


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


def _statuses(motions: dict[tuple[str, str], Arrays]) -> Table:
    rows = []
    for (design, scenario), arrays in motions.items():
        status = np.asarray(arrays["status"]).astype(int)
        for value in np.unique(status[status > 0]).tolist():
            count = int(np.sum(status == value))
            rows.append((design, scenario, count, len(status), sentence(value)))
    note = "Frames that are not named are measured, complete and consistent." if rows else "There are none."
    return Table("Frames that need a look", ("design", "scenario", "frames", "of", "why"), tuple(rows), note=note)


def sentence(status: int) -> str:
    """What the status of a frame means."""
    kinds: itertools.chain[Status] = itertools.chain(ConsistencyStatus, FrameStatus)
    return next((member.sentence for member in kinds if int(member) == status), f"status {status}")
