"""Drawing of a motion: bodies as lines, wires coloured by a number, forces as arrows, in 2D or 3D."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.report.animation import animation_frames, play_buttons, time_labels, time_slider
from designopt.report.colours import STEP_COUNT, STEPS, axis, category, layout, level_line

#: Maximum number of frames of an animation, and maximum bytes of its coordinates: a larger one has fewer frames.
FRAMES, BYTES = 200, 900_000
#: View of a box of size 1: from the right, ahead and above of who moves along x.
CAMERA = {"eye": {"x": 0.75, "y": -1.25, "z": 0.45}, "center": {"x": 0.0, "y": 0.0, "z": -0.08}}
#: Length of the longest arrow, relative to the drawing.
LONGEST = 0.25
#: Look of the ground.
FLOOR = {"color": "@muted", "width": 1.5}
#: Ratio of the smallest to the largest extent up to which a motion is planar.
FLAT = 1e-6
#: Share of its largest extent along an axis up to which a drawing is flat at an instant.
FLAT_SHARE = 0.2


@dataclass(frozen=True)
class DrawnMotion:
    """The content of a drawing over `time` (n,) in s; positions in m, in 2D (axes x, y) or 3D (x, y, z).

    `lines` by name (n, vertices, 2 or 3): each a set of lines separated by NaN; several sets are superposed. `wires`
    (n, wires, vertices, axes) are coloured by `values` (n, wires) from `lowest` to `highest`, named `meaning`. `forces`
    by name (n, arrows, 2, axes): the point of application (m) and the force (N). `colours` are those of lines and
    forces by name, where the usual ones do not suit; `floor` is the height (m) of level ground, which a plane figure
    draws across its width. `axes` are the names of three axes, the last of which points up, and of which a drawing in
    2D has the first and the last; by default x, y and z.
    """

    time: Floats
    lines: Mapping[str, Floats]
    wires: Floats | None = None
    values: Floats | None = None
    lowest: float = 0.0
    highest: float = 1.0
    meaning: str = ""
    forces: Mapping[str, Floats] = field(default_factory=dict)
    colours: Mapping[str, str] = field(default_factory=dict)
    floor: float | None = None
    axes: Sequence[str] = ()


def draw(motion: DrawnMotion) -> dict[str, Any]:
    """The Plotly figure with its animation. ``layout.meta.times`` has the time of each frame."""
    low, high = _box(motion)
    names = list("xyz"[: len(low)])
    if motion.axes:
        names = [*motion.axes] if len(low) == 3 else [motion.axes[0], motion.axes[-1]]
    if len(flat := np.flatnonzero(high - low <= FLAT * (high - low).max())) == 1 and len(low) == 3:
        axes = [k for k in range(3) if k != flat[0]]  # seen edge-on a plane would be a line
        motion, low, high = _projected(motion, axes), low[axes], high[axes]
        names = [names[k] for k in axes]
    spatial = len(low) == 3
    floor = [] if motion.floor is None or spatial else [level_line(motion.floor, layer="below", line=FLOOR)]
    arrow = _arrow_scale(motion, float((high - low).max()))
    size = 7 * sum(len(column) for trace in _frame(motion, 0, arrow) for column in trace.values())
    frame_numbers = animation_frames(len(motion.time), min(FRAMES, max(2, BYTES // max(size, 1))))
    frames = [_frame(motion, int(i), arrow) for i in frame_numbers]
    kind = "scatter3d" if spatial else "scatter"
    traces = [{"type": kind, "hoverinfo": "skip", **look} for look in _looks(motion)]
    still = _spread_instant(motion, frame_numbers)
    data = [{**look, **coordinates} for look, coordinates in zip(traces, frames[still], strict=True)]
    margin = 0.05 * float((high - low).max())
    ranges = [[float(a) - margin, float(b) + margin] for a, b in zip(low, high, strict=True)]
    times = motion.time[frame_numbers]
    return {
        "data": data,
        "frames": [
            {"name": str(k), "data": coordinates, "traces": [*range(len(data))]} for k, coordinates in enumerate(frames)
        ],
        "layout": layout(
            **_axes(ranges, names),
            **({"shapes": floor} if floor else {}),
            updatemenus=[play_buttons()],
            sliders=[time_slider(time_labels(times)) | {"active": still}],
            showlegend=len(motion.lines) + len(motion.forces) > 1,
            margin={"l": 0, "r": 0, "t": 40, "b": 20} if spatial else {"l": 60, "r": 20, "t": 40, "b": 20},
            meta={"times": [round(float(t), 6) for t in times]},
        ),
    }


def _projected(motion: DrawnMotion, axes: list[int]) -> DrawnMotion:
    """The motion in the plane of two of its axes."""
    return replace(
        motion,
        lines={name: points[..., axes] for name, points in motion.lines.items()},
        wires=None if motion.wires is None else motion.wires[..., axes],
        forces={name: force[..., axes] for name, force in motion.forces.items()},
    )


def _box(motion: DrawnMotion) -> tuple[Floats, Floats]:
    """The corners of the bounding box of all finite positions; a unit box without any."""
    parts = [*motion.lines.values(), *([motion.wires] if motion.wires is not None else [])]
    flat = np.concatenate([part.reshape(-1, part.shape[-1]) for part in parts])
    flat = flat[np.isfinite(flat).all(axis=1)]
    if not len(flat):
        return -np.ones(parts[0].shape[-1]), np.ones(parts[0].shape[-1])
    return flat.min(axis=0), flat.max(axis=0)


def _spread_instant(motion: DrawnMotion, instants: NDArray[np.intp]) -> int:
    """Which of the `instants` the figure shows at the beginning: the first, or where the drawing is flat there, as a
    mechanism with its links in line is, the one at which it is spread out most."""
    parts = [*motion.lines.values(), *([motion.wires] if motion.wires is not None else [])]
    points = np.concatenate([part[instants].reshape(len(instants), -1, part.shape[-1]) for part in parts], axis=1)
    is_drawn = np.isfinite(points)
    extents = np.where(is_drawn, points, -np.inf).max(axis=1) - np.where(is_drawn, points, np.inf).min(axis=1)
    extents = np.where(np.isfinite(extents), extents, 0.0)
    largest = extents.max(axis=0)
    spread = (extents / np.where(largest > 0.0, largest, 1.0))[:, largest > 0.0]
    least = spread.min(axis=1) if spread.size else np.ones(len(instants))
    return 0 if least[0] > FLAT_SHARE else int(np.argmax(least))


def _arrow_scale(motion: DrawnMotion, size: float) -> float:
    """Length of an arrow per force (m/N)."""
    longest = max((_longest(force) for force in motion.forces.values()), default=0.0)
    return LONGEST * size / longest if longest > 0.0 else 0.0


def _longest(force: Floats) -> float:
    lengths = np.linalg.norm(force[:, :, 1], axis=-1)
    finite = lengths[np.isfinite(lengths)]
    return float(finite.max()) if len(finite) else 0.0


def _frame(motion: DrawnMotion, i: int, arrow: float) -> list[dict[str, Any]]:
    """The coordinates of every trace at instant `i`."""
    traces = [_coordinates(lines[i]) for lines in motion.lines.values()]
    if motion.wires is not None:
        step = _colour_steps(motion, i)
        traces += [_coordinates(_joined(motion.wires[i][step == k])) for k in range(STEP_COUNT)]
    for force in motion.forces.values():
        point, vector = force[i, :, 0], force[i, :, 1]
        ends = np.stack([point, point + arrow * vector, np.full_like(point, np.nan)], axis=1)
        traces.append(_coordinates(ends.reshape(-1, ends.shape[-1])))
    return traces


def _colour_steps(motion: DrawnMotion, i: int) -> NDArray[np.intp]:
    assert motion.wires is not None
    if motion.values is None:
        return np.zeros(motion.wires.shape[1], np.intp)
    share = (motion.values[i] - motion.lowest) / max(motion.highest - motion.lowest, 1e-300)
    steps: NDArray[np.intp] = np.clip(np.nan_to_num(share) * STEP_COUNT, 0, STEP_COUNT - 1).astype(np.intp)
    return steps


def _joined(wires: Floats) -> Floats:
    """Wires (k, vertices, axes) in sequence, separated by NaN."""
    gap = np.full((len(wires), 1, wires.shape[-1]), np.nan)
    return np.concatenate([wires, gap], axis=1).reshape(-1, wires.shape[-1])


def _coordinates(points: Floats) -> dict[str, list[float | None]]:
    """Coordinates in m, rounded to a tenth of a millimetre; None for missing ones."""
    return {
        name: [None if v != v else round(v, 4) for v in column.tolist()]
        for name, column in zip("xyz", points.T, strict=False)
    }


def _looks(motion: DrawnMotion) -> list[dict[str, Any]]:
    """Appearance of each trace, in the order of `_frame`."""
    looks: list[dict[str, Any]] = []
    for k, name in enumerate(motion.lines):
        colour = motion.colours.get(name) or ("@ink" if k == 0 else category(k))
        width = 4 if k == 0 or name in motion.colours else 2
        looks.append({"name": name, "mode": "lines+markers", "line": {"color": colour, "width": width},
                      "marker": {"size": 4, "color": colour}})  # fmt: skip
    if motion.wires is not None:
        for k, colour in enumerate(STEPS):
            bar = {} if k or motion.values is None else {"marker": _colour_bar(motion)}
            looks.append({"mode": "lines+markers" if bar else "lines", "showlegend": False, **bar,
                          "line": {"color": colour, "width": 3}})  # fmt: skip
    for k, (name, force) in enumerate(motion.forces.items()):
        colour = motion.colours.get(name) or ("@mark" if k == 0 else category(k + 3))
        looks.append({"name": name, "mode": "lines+markers", "line": {"color": colour, "width": 3},
                      "marker": _heads(colour, force)})  # fmt: skip
    return looks


def _heads(colour: str, force: Floats) -> dict[str, Any]:
    """Markers at the tips of arrows, whose coordinates are point, tip and gap in turn."""
    count, spatial = force.shape[1], force.shape[-1] == 3
    head = {} if spatial else {"symbol": "arrow", "angleref": "previous"}
    return {"size": [0, 5 if spatial else 12, 0] * count, "color": colour, "opacity": 1.0, **head}


def _colour_bar(motion: DrawnMotion) -> dict[str, Any]:
    """An invisible marker that carries the scale of the wires' colours."""
    steps = [[(k + e) / STEP_COUNT, colour] for k, colour in enumerate(STEPS) for e in (0, 1)]
    bar = {"title": {"text": motion.meaning, "side": "right"}, "thickness": 12, "outlinewidth": 0, "len": 0.8}
    limits = {"cmin": motion.lowest, "cmax": motion.highest}
    return {"size": 0.01, "opacity": 0.0, "color": [motion.lowest], "colorscale": steps, "colorbar": bar, **limits,
            "showscale": True}  # fmt: skip


def _axes(ranges: list[list[float]], names: Sequence[str]) -> dict[str, Any]:
    sides = [axis(f"{name} [m]", range=r, zeroline=False) for name, r in zip(names, ranges, strict=True)]
    if len(names) == 3:
        # Plotly's aspectmode "data" takes that of the first frame, not the ranges; a box of size 1 is within view.
        spans = np.array([high - low for low, high in ranges])
        sizes = spans / spans.max()
        ratio = dict(zip("xyz", sizes.tolist(), strict=True))
        near = min(1.0, 1.05 * float(np.linalg.norm(sizes)) / math.sqrt(2.0))  # nearer to what fills a part of the box
        camera = {**CAMERA, "eye": {letter: near * value for letter, value in CAMERA["eye"].items()}}
        axes = {f"{letter}axis": side for letter, side in zip("xyz", sides, strict=True)}
        return {"scene": {"aspectmode": "manual", "aspectratio": ratio, "camera": camera, **axes}}
    return {"xaxis": sides[0], "yaxis": {**sides[1], "scaleanchor": "x"}}
