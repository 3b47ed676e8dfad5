"""Report parts of wires: `wire_moment_arm` over a coordinate, `wire_tensions` of wires that balance each other."""

from __future__ import annotations

import numpy as np

from designopt.plugin import report_part
from designopt.report.colours import axis, category, layout
from designopt.report.designs import Arrays, Plot, line, motion_section
from designopt.report.labels import displayed_in, with_unit
from designopt.report.section import Section
from designopt.store.result import Result
from designopt_mechanics.model_file.wire_arms import WireArms

_OF_WIRE = ("time", "arm", "length", "tension")
_OF_WIRES = ("time", "tensions", "moments")


@report_part("wire_moment_arm", version=1, arrays=_OF_WIRE)
def wire_moment_arm(result: Result) -> Section | None:
    """Moment arm, length and tension of a wire over a coordinate of its mechanism."""
    model = result.problem.model.build()
    name, unit = (model.coordinate, model.unit) if isinstance(model, WireArms) else ("coordinate", "")
    over = (name, *displayed_in(unit))
    return motion_section(
        result,
        "Moment arm of the wire",
        _OF_WIRE,
        ("Moment arm", lambda a: _curve(a, over, "arm", "moment arm [mm]", 1e3), {"height": 360}),
        ("Length", lambda a: _curve(a, over, "length", "length [mm]", 1e3), {"height": 320}),
        ("Tension that holds the weight", lambda a: _curve(a, over, "tension", "tension [N]", 1.0), {"height": 320}),
    )


@report_part("wire_tensions", version=1, arrays=_OF_WIRES)
def wire_tensions(result: Result) -> Section | None:
    """Tensions of all wires, and their moments on the joints, over the sweep of a coordinate."""
    return motion_section(
        result,
        "Tensions of the wires",
        _OF_WIRES,
        ("Tensions", lambda a: _curves(a, "tensions", "wire", "tension [N]"), {"height": 380}),
        ("Moments on the joints", lambda a: _curves(a, "moments", "joint", "moment [N m]"), {"height": 340}),
        introduction="Wires and joints are numbered in the order of the files.",
    )


def _curves(arrays: Arrays, name: str, label: str, title: str) -> Plot:
    data = [
        line(arrays["time"], column, f"{label} {i + 1}", line={"color": category(i)})
        for i, column in enumerate(arrays[name].T)
    ]
    return {"data": data, "layout": layout(xaxis=axis("first coordinate [rad]"), yaxis=axis(title))}


def _curve(arrays: Arrays, over: tuple[str, float, str], name: str, title: str, factor: float) -> Plot:
    coordinate, scale, unit = over
    data = [line(scale * np.asarray(arrays["time"]), factor * arrays[name], line={"color": "@accent"})]
    return {"data": data, "layout": layout(xaxis=axis(with_unit(coordinate, unit)), yaxis=axis(title))}
