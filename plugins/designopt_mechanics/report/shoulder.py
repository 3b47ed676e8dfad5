"""Report part `shoulder_torques`: torques with a simplified rhythm against the original one, and the arm's errors."""

from __future__ import annotations

import numpy as np

from designopt.plugin import report_part
from designopt.report.colours import axis, category, layout
from designopt.report.designs import Arrays, Plot, line, motion_section
from designopt.report.section import Section
from designopt.store.result import Result
from designopt_mechanics.shoulder.chain import COORDINATES

_NAMES = ("time", "torques", "reference", "errors")


@report_part("shoulder_torques", version=1, arrays=_NAMES)
def shoulder_torques(result: Result) -> Section | None:
    """Torques over time as in figures 6 and 7 of Ehsani et al. (2016), and the errors of the controlled arm."""
    return motion_section(
        result,
        "Torques of the shoulder",
        _NAMES,
        ("Torques", _torques, {"height": 420}),
        ("Errors of the controlled arm", _errors, {"height": 340}),
        introduction="Full lines are computed with the design's rhythm, dashed ones with the original.",
        notes=(
            "The paper's path and segment data are not public: the model class and the pattern are the "
            "same, the numbers are not.",
        ),
    )


def _torques(arrays: Arrays) -> Plot:
    data = []
    for i, name in enumerate(COORDINATES):
        style = {"color": category(i), "width": 2}
        data.append(line(arrays["time"], arrays["torques"][:, i], name, line=style))
        data.append(line(arrays["time"], arrays["reference"][:, i], line={**style, "dash": "dash"}))
    return {"data": data, "layout": layout(xaxis=axis("time [s]"), yaxis=axis("torque [N m]"))}


def _errors(arrays: Arrays) -> Plot:
    errors = np.degrees(np.asarray(arrays["errors"]))
    data = [line(arrays["time"], errors[:, i], n, line={"color": category(i)}) for i, n in enumerate(COORDINATES)]
    return {"data": data, "layout": layout(xaxis=axis("time [s]"), yaxis=axis("error [deg]"))}
