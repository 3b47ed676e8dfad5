"""Report part `exoskeleton_support`: moments of drives, stretch of links and distance from the recorded gait."""

from __future__ import annotations

import numpy as np

from designopt.plugin import report_part
from designopt.report.colours import axis, category, layout
from designopt.report.designs import Arrays, Plot, line, motion_section
from designopt.report.section import Section
from designopt.store.result import Result
from designopt_mechanics.exoskeleton.anthropometry import build

_NAMES = ("time", "moments", "stretch", "distance")


@report_part("exoskeleton_support", version=1, arrays=_NAMES)
def exoskeleton_support(result: Result) -> Section | None:
    """Moments, stretch and distance over the single support of an exoskeleton."""
    note = "Root mean square of hip, stance knee and swing ankle."
    return motion_section(
        result,
        "The single support",
        _NAMES,
        ("Moments of the drives in the sagittal plane", _moments, {"height": 400}),
        ("Lengthening of the links", _stretch, {"height": 380}),
        ("Distance from the recorded motion", _distance, {"height": 320, "note": note}),
        notes=("Anthropometry and gait are substitutes: the paper of the rods prints no data.",),
    )


def _moments(arrays: Arrays) -> Plot:
    moments = np.asarray(arrays["moments"])
    drives = moments.shape[1] // 2
    labels = _names(drives_only=True, drives=drives)
    data = [line(arrays["time"], moments[:, i], labels[i], line={"color": category(i)}) for i in range(drives)]
    return {"data": data, "layout": layout(xaxis=axis("time [s]"), yaxis=axis("moment [N m]"))}


def _stretch(arrays: Arrays) -> Plot:
    stretch = 100.0 * np.asarray(arrays["stretch"])
    labels = _names(drives_only=False, drives=5 if stretch.shape[1] == 4 else 7)
    data = [line(arrays["time"], column, labels[i], line={"color": category(i)}) for i, column in enumerate(stretch.T)]
    return {"data": data, "layout": layout(xaxis=axis("time [s]"), yaxis=axis("lengthening [%]"))}


def _distance(arrays: Arrays) -> Plot:
    data = [line(arrays["time"], 1e3 * np.asarray(arrays["distance"]), line={"color": "@accent"})]
    return {"data": data, "layout": layout(xaxis=axis("time [s]"), yaxis=axis("distance [mm]", rangemode="tozero"))}


def _names(*, drives_only: bool, drives: int) -> list[str]:
    """Words for the rods with a drive at their near joint, or for the links."""
    exoskeleton = build(5 if drives == 5 else 11, 80.0, 1.8, 1e5, 0.1)
    rods_shown = exoskeleton.driven if drives_only else exoskeleton.legs
    return [exoskeleton.tree.rods[i].name.replace("_", " ") for i in rods_shown]
