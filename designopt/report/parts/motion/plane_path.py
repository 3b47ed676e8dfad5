"""The path of a point in the plane, from the trajectories of a program, with obstacles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import Quantity
from designopt.report.colours import axis, category, layout
from designopt.report.labels import plain, with_unit
from designopt.report.traces import trace

if TYPE_CHECKING:
    from designopt.collocation.solution.solution import Solution

#: Points of a curve.
SAMPLES = 401
#: Note of the figure.
ENDS = "The open circle is the start of a phase, the full one its end."


class Obstacle(TypedDict, total=False):
    """A circle (`x`, `y`, `radius`) or a polygon (`corners`) beside a path, in the unit of the path."""

    x: Annotated[float, Quantity("", "of the centre")]
    y: Annotated[float, Quantity("", "of the centre")]
    radius: Annotated[float, Quantity("", "of a circle", gt=0.0)]
    corners: Annotated[list[list[float]], Quantity("", "pairs of coordinates of a polygon")]
    name: Annotated[str, Quantity("", "for the pointer")]


def path_names(solution: Solution, names: Sequence[str] | None) -> tuple[str, str] | None:
    """The two variables of the path; None without any. Raises `ValueError` for names that no phase has."""
    phases = list(solution.phases.values())
    if names is None:
        plane = all(
            {"x", "y"} <= set(phase.of_kind("state")) and phase.units.get("x", "") == phase.units.get("y", "")
            for phase in phases
        )
        return ("x", "y") if plane else None
    if len(names) != 2:
        raise ValueError(f"path names two variables, as in path: [x, y], not {len(names)}")
    for name in names:
        if not any(name in phase.values for phase in phases):
            raise ValueError(f"path: no phase has a variable '{name}' (known: {', '.join(phases[0].values)})")
    return names[0], names[1]


def plane(solution: Solution, names: tuple[str, str], obstacles: Sequence[Obstacle]) -> dict[str, Any]:
    """The path in the plane, in one colour for each phase, with its ends and the obstacles."""
    data: list[dict[str, Any]] = []
    for obstacle in obstacles:
        x, y = _outline(obstacle)
        data.append(
            trace(x, y, fill="toself", fillcolor="@faint", line={"color": "@muted", "width": 1},
                  hover=plain(obstacle.get("name", "obstacle")))
        )  # fmt: skip
    units = ("", "")
    for j, phase in enumerate(solution.phases.values()):
        if not all(name in phase.values for name in names):
            continue
        times = np.linspace(phase.t0, phase.tf, SAMPLES)
        fine = phase.interpolate(times)
        units = (phase.units.get(names[0], ""), phase.units.get(names[1], ""))
        hover = f"{plain(phase.name)}<br>%{{customdata:.4~g}} s: <b>%{{x:.4~g}}, %{{y:.4~g}}</b>"
        curve = trace(fine[names[0]], fine[names[1]], plain(phase.name), colour=category(j), width=2, hover=hover)
        data.append({**curve, "customdata": times})
        ends = fine[names[0]][[0, -1]], fine[names[1]][[0, -1]]
        symbols = {"size": 9, "color": category(j), "symbol": ["circle-open", "circle"]}
        data.append(trace(*ends, mode="markers", marker=symbols))
    axes = {
        "xaxis": axis(plain(with_unit(names[0], units[0]))),
        "yaxis": axis(plain(with_unit(names[1], units[1]))),
    }
    if units[0] == units[1]:
        axes["yaxis"] |= {"scaleanchor": "x", "scaleratio": 1, "constrain": "domain"}
        axes["xaxis"] |= {"constrain": "domain"}
    return {"data": data, "layout": layout(**axes, showlegend=len(solution.phases) > 1)}


def _outline(obstacle: Obstacle) -> tuple[Floats, Floats]:
    """The closed outline (n,) of an obstacle. Raises `ValueError` for one that is neither a circle nor a polygon."""
    if "corners" in obstacle:
        corners = np.array([*obstacle["corners"], obstacle["corners"][0]], dtype=float)
        if corners.ndim != 2 or corners.shape[1] != 2 or len(corners) < 4:
            raise ValueError("the corners of an obstacle are three or more pairs [x, y]")
        return corners[:, 0], corners[:, 1]
    if not {"x", "y", "radius"} <= obstacle.keys():
        raise ValueError("an obstacle has x, y and radius, or corners")
    angle = np.linspace(0.0, 2.0 * np.pi, 73)
    return obstacle["x"] + obstacle["radius"] * np.cos(angle), obstacle["y"] + obstacle["radius"] * np.sin(angle)
