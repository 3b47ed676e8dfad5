"""Report part `andrews_angles`: the angles of the squeezing mechanism over time, and the gaps of its loops."""

from __future__ import annotations

from functools import partial

import numpy as np

from designopt.plugin import report_part
from designopt.report.colours import axis, category, layout
from designopt.report.designs import Arrays, Plot, line, motion_section
from designopt.report.section import Section
from designopt.store.result import Result
from designopt_mechanics.andrews.mechanism import ANGLES, END

#: The crank and the coupler turn over and over; the other angles swing.
_TURNING = ("beta", "Theta")


_NAMES = ("time", "angles", "gap")


@report_part("andrews_angles", version=1, arrays=_NAMES)
def andrews_angles(result: Result) -> Section | None:
    """Angles over time as in figures 4 and 5 of Ehsani et al. (2016), with the reference at 30 ms, and the gaps."""
    note = "Largest distance between points that are one in the closed mechanism; there is none with joint functions."
    return motion_section(
        result,
        "Angles of the mechanism",
        _NAMES,
        ("Crank and coupler", partial(_angles, turning=True), {"height": 380}),
        ("Angles that swing", partial(_angles, turning=False), {"height": 420}),
        ("Gap of the loops", _gap, {"height": 340, "note": note}),
        introduction="Circles are the reference state after 30 ms with the published spring and torque.",
    )


def _angles(arrays: Arrays, *, turning: bool) -> Plot:
    time, data = 1e3 * np.asarray(arrays["time"]), []
    for i, name in enumerate(ANGLES):
        if (name in _TURNING) == turning:
            data.append(line(time, arrays["angles"][:, i], name, line={"color": category(i)}))
            circle = {"size": 9, "color": category(i), "symbol": "circle-open"}
            data.append({**line([30.0], [END[name]]), "mode": "markers", "marker": circle})
    return {"data": data, "layout": layout(xaxis=axis("time [ms]"), yaxis=axis("angle [rad]"))}


def _gap(arrays: Arrays) -> Plot:
    gap = 1e9 * np.asarray(arrays["gap"])
    vertical = axis("gap [nm]", rangemode="tozero")
    if gap.any():
        gap = np.where(gap > 0.0, gap, np.nan)  # a logarithmic axis has no place for 0
        vertical = axis("gap [nm]", type="log", exponentformat="power")
    data = [line(1e3 * np.asarray(arrays["time"]), gap, line={"color": "@accent"})]
    return {"data": data, "layout": layout(xaxis=axis("time [ms]"), yaxis=vertical)}
