"""Report part `instant_centre`: about which point the shank turns, and how stable the straight knee is under load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import InvalidDesign, report_part
from designopt.report.colours import axis, layout
from designopt.report.labels import drawn_designs, plain
from designopt.report.section import Figure, Section, Table
from designopt.report.traces import Trace, trace
from designopt.store.result import Result
from designopt_knee import linkage
from designopt_knee.parameters import PARAMETER_SETS, complete
from designopt_knee.report.angle import design_words, line_colour, reservations

#: Knee angles (deg) of the path, and those that are marked on it.
FLEXIONS = np.arange(0.0, 111.0)
MARKED = {
    0: "middle right",
    10: "middle right",
    20: "middle right",
    30: "middle right",
    60: "bottom center",
    110: "top left",
}
#: Range shown above and below A (m): the links extend below.
_ABOVE, _BELOW = 0.15, 0.04
#: The linkage of the straight knee, drawn below the path.
_LINKS = ("A", "B", "C", "D", "A")
_CORNERS = ["bottom right", "bottom left", "bottom left", "bottom right", "top right"]


@report_part("instant_centre", version=1)
def instant_centre(result: Result) -> Section | None:
    """Path of the instant centre in flexion, linkage and load line of the straight leg, its stability."""
    legs = _legs(result)
    if not legs:
        return None
    data: list[Trace] = []
    rows = []
    for k, (label, g) in enumerate(legs.items()):
        data += _traces(label, g, k)
        height, offset = linkage.centre_offset(g)
        rows.append((label, 1e3 * height, 1e3 * offset, hip_moment(g)))
    axes = {
        "xaxis": axis("forward of A [mm]", constrain="domain"),
        "yaxis": axis("above A [mm]", scaleanchor="x", constrain="domain", range=[-1e3 * _BELOW, 1e3 * _ABOVE]),
    }
    head = ("leg", "centre above A [mm]", "behind the load line [mm]", "hip moment for each N of load [N mm]")
    return Section(
        "Instant centre of the knee",
        introduction="Lines along the links AD and BC meet in the point about which the shank turns relative to the "
        "thigh. It is high while the knee is straight and stable at heel strike, and comes down in flexion. "
        "Seen with the thigh upright; marks are at knee angles in degrees. Dotted is the load line "
        "of the straight leg, from heel to hip: a centre behind it is held straight by the load.",
        figures=(
            Figure(
                "Path of the instant centre",
                {"data": data, "layout": layout(**axes)},
                height=560,
                note="Drawn to scale, front to the right.",
            ),
        ),
        tables=(
            Table(
                "Stability of the straight knee",
                head,
                tuple(rows),
                note="The hip's extension moment that keeps the knee straight at heel strike (Radcliffe 1994). Below "
                "0: the load keeps it straight, and the hip bends it by a flexion moment of that size.",
            ),
        ),
        notes=reservations(result),
    )


def hip_moment(g: Mapping[str, float]) -> float:
    """Moment of the hip (N mm, extension positive) that keeps the straight knee from bending, for each N of load.

    The leg is in balance under the moment and a load from the heel that passes the hip at a distance of the moment over
    the load; it does not bend the knee if it goes through the instant centre (Radcliffe 1994).
    """
    _, offset = linkage.centre_offset(g)
    positions = _straight(g)
    heel, hip = np.array(positions["heel"]), np.array(positions["hip"])
    along = (hip - heel) / np.hypot(*(hip - heel))
    centre = np.array(linkage.instant_centre(g, 0.0), dtype=float) + np.array(positions["A"])
    return float(-1e3 * offset * np.hypot(*(hip - heel)) / (along @ (centre - heel)))


def _legs(result: Result) -> dict[str, dict[str, float]]:
    """The leg of each chosen design; one for all whose linkage and lengths are the same."""
    settings = result.problem.model.settings
    if "parameter_set" not in result.problem.model.plugin.settings:
        return {}
    parameters = PARAMETER_SETS[settings.get("parameter_set", "substitute_v1")]
    base = {name: parameter.value for name, parameter in parameters.items()} | dict(settings.get("parameters", {}))
    legs: dict[tuple[Any, ...], tuple[list[str], dict[str, float]]] = {}
    for label, row in drawn_designs(result).items():
        design = {"stiffness": 1.0, **result.problem.space.design(result.outcomes.X[row].tolist())}
        try:
            g = complete(base, {}, design, allow_low_instant_centre=True)
        except InvalidDesign:  # what a scenario alone completes
            continue
        key = tuple(np.round([*linkage.centre_offset(g), *_path(g).ravel()], 9))
        words, _ = legs.setdefault(key, ([], g))
        words.append(f"{label}: {design_words(result, row)}")
    if len(legs) == 1:
        ((_, g),) = legs.values()
        return {"all chosen designs": g}
    return {"; ".join(words): g for words, g in legs.values()}


def _path(g: Mapping[str, float]) -> Floats:
    """Instant centre (m) seen from A at `FLEXIONS` (n, 2)."""
    return np.stack(linkage.instant_centre(g, linkage.eta_of_flexion(g, np.radians(FLEXIONS))), axis=1)


def _straight(g: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """Joints (m) of the straight leg, seen from the hip."""
    return linkage.points(g, (0.0, 0.0), 0.0, 0.0, float(linkage.relative_angles(g, 0.0)[0]), 0.0, 0.0)


def _traces(label: str, g: Mapping[str, float], k: int) -> list[Trace]:
    positions = {name: np.array(point, dtype=float) for name, point in _straight(g).items()}
    origin = positions["A"]
    path = 1e3 * _path(g)
    links = 1e3 * np.array([positions[name] - origin for name in _LINKS])
    heel, hip = positions["heel"], positions["hip"]
    ends = np.array([heel + (y + origin[1] - heel[1]) / (hip[1] - heel[1]) * (hip - heel) for y in (-_BELOW, _ABOVE)])
    load = 1e3 * (ends - origin)
    colour, has_marker = line_colour(k), np.isin(FLEXIONS, list(MARKED))
    group: Trace = {"legendgroup": str(k)}
    names: Trace = {"text": [*_LINKS[:-1], ""], "textposition": _CORNERS, "marker": {"size": 6, "color": "@muted"}}
    first: Trace = {"showlegend": k == 0, **group}
    return [
        trace(path[:, 0], path[:, 1], plain(label), colour=colour, width=2, customdata=FLEXIONS, **group,
              hover="%{customdata} deg: <b>%{x:.0f}, %{y:.0f} mm</b>"),
        trace(path[has_marker, 0], path[has_marker, 1], mode="markers+text", text=[f"{flexion}" for flexion in MARKED],
              textposition=list(MARKED.values()), marker={"color": colour, "size": 7}, **group),
        trace(links[:, 0], links[:, 1], "linkage of the straight knee", mode="lines+markers+text", colour="@muted",
              width=2, **names, **first),
        trace(load[:, 0], load[:, 1], "load line, heel to hip", colour="@mark", width=1.6, dash="dot", **first),
    ]  # fmt: skip
