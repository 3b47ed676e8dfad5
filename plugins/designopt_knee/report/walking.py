"""Report part `leg_walking`: the leg of the chosen designs walking, side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import report_part
from designopt.report.animation import animation_frames, play_buttons, time_slider
from designopt.report.colours import axis, caption, layout
from designopt.report.designs import missing
from designopt.report.labels import drawn_designs, plain
from designopt.report.section import Figure, Section, Selector
from designopt.store.result import Result
from designopt_knee.linkage import JOINTS
from designopt_knee.report.angle import design_words, reservations

#: Designs drawn side by side.
SIDE_BY_SIDE = 4
#: Least pixels of a design beside others: a narrow screen scrolls them.
PANEL = 230
#: Frames per gait cycle in the animation.
FRAMES = 40
#: Milliseconds of a frame at the speed of life.
LIFE = round(1230 / FRAMES)
#: Range (m) that the camera shows around the leg: behind and in front of its path, below the ground, above the hip.
AROUND, BELOW, ABOVE = 0.06, 0.05, 0.05
#: Distance of the marks on the ground (m).
MARK = 0.25

_LINES = {
    "thigh": (("hip", "E"), {"color": "@ink", "width": 9}),
    "shank": (("F", "ankle"), {"color": "@accent", "width": 7}),
    "foot": (("heel", "ankle", "toe", "heel"), {"color": "@accent", "width": 4}),
    "four-bar linkage": (("E", "B", "C", "D", "A", "B", None, "D", "F"), {"color": "@mark", "width": 2.5}),
    "joints": (("A", "B", "C", "D", "ankle", "hip"), {}),
}


@report_part("leg_walking", version=1, arrays=("walk",))
def leg_walking(result: Result) -> Section | None:
    """The leg of the chosen designs walking over the ground, side by side, with the knee angle below."""
    title = "The leg walking"
    designs = dict(list(drawn_designs(result).items())[:SIDE_BY_SIDE])
    if not designs:
        return None
    plots: dict[tuple[int, ...], dict[str, Any]] = {}
    labels: list[str] = []
    for s, scenario in enumerate(result.problem.scenarios):
        walks = {label: result.arrays(row, s) for label, row in designs.items()}
        if not all("walk" in arrays for arrays in walks.values()):
            continue
        for k, selection in enumerate(_selections(list(designs))):
            plots[k, len(labels)] = _plot(result, {label: designs[label] for label in selection}, walks)
        labels.append(scenario.name)
    if not plots:
        return missing(title, "walk")
    choices = [Selector("Design", tuple(["side by side", *designs] if len(designs) > 1 else designs))]
    if len(labels) > 1:
        choices.append(Selector("Scenario", tuple(labels)))
    else:
        plots = {key[:1]: plot for key, plot in plots.items()}
    return Section(
        title,
        introduction="The last two simulated gait cycles. The camera goes along at the walking speed; the marks on the "
        "ground are 25 cm apart and stand still. Faint lines are the paths of heel and toe seen from the camera. "
        "Below, the knee angle of the same moments: the dashed line is the recorded one.",
        figures=(
            Figure(
                "Chosen designs",
                next(iter(plots.values())),
                note="Drawn to scale. Zoom in on the linkage while it moves.",
                height=660,
                width=PANEL * len(designs) if len(designs) > 1 else 0,
                choices=tuple(choices) if len(plots) > 1 else (),
                variants=plots if len(plots) > 1 else {},
                loop=True,
            ),
        ),
        notes=reservations(result),
    )


def _selections(labels: list[str]) -> list[list[str]]:
    """Choices of the selector: all designs side by side, then each alone."""
    return [labels, *([label] for label in labels)] if len(labels) > 1 else [labels]


def _plot(result: Result, designs: dict[str, int], walks: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The whole Plotly figure: for each design the leg in the upper row and its knee angle in the lower one."""
    panels = [_Panel(k, len(designs), walks[label]) for k, label in enumerate(designs)]
    for panel in panels:  # one scale for all
        panel.view = [min(p.view[0] for p in panels), max(p.view[1] for p in panels)]
    data = [trace for panel in panels for trace in [*panel.still(), *panel.moving(0)]]
    moving = [number for panel in panels for number in panel.numbers]
    count = len(panels[0].frames)
    names = [f"{panels[0].phase(i):.0f} %" for i in range(count)]
    frames = [
        {"name": f"{i}", "data": [t for panel in panels for t in panel.moving(i, only_data=True)], "traces": moving}
        for i in range(count)
    ]
    axes: dict[str, Any] = {}
    annotations = []
    for panel, (label, row) in zip(panels, designs.items(), strict=True):
        axes |= panel.axes()
        annotations.append(
            caption(f"<b>{plain(label)}</b><br>{plain(design_words(result, row))}",
                    (panel.left + panel.right) / 2, 1.0, xanchor="center", font={"size": 12})
        )  # fmt: skip
    return {
        "data": data,
        "frames": frames,
        "layout": layout(
            **axes,
            annotations=annotations,
            showlegend=False,
            margin={"l": 60, "r": 20, "t": 76, "b": 20},
            updatemenus=[play_buttons(LIFE, slow=4 * LIFE, redraw=False, below=28)],
            sliders=[time_slider(names, "gait cycle ", redraw=False, below=18)],
        ),
    }


class _Panel:
    """One design: its joints seen by the camera, its knee angle, and the axes and traces that show them."""

    def __init__(self, k: int, count: int, arrays: dict[str, Any]) -> None:
        walk = np.asarray(arrays["walk"])
        hip = walk[:, 0, 0]
        moments = np.arange(len(walk))
        # The camera's steady speed is the hip's mean one: the slope of its path by least squares.
        speed, start = np.polyfit(moments, hip, 1)
        self.camera = start + speed * moments
        self.walk = walk
        in_view = walk[:, :, 0] - self.camera[:, None]
        self.view = [float(in_view.min()) - AROUND, float(in_view.max()) + AROUND]
        # Narrow panels leave less height to the leg, and more to the curves.
        self.divide = 0.40 if count < 3 else 0.52
        self.knee = knee_angle(walk)
        self.percent = 200.0 * moments / (len(walk) - 1)
        self.frames = animation_frames(len(walk), 2 * FRAMES)
        self.recorded_curve = _recorded(arrays)
        gap = 0.05 if count > 1 else 0.0
        width = (1.0 - gap * (count - 1)) / count
        self.left, self.right = k * (width + gap), k * (width + gap) + width
        self.first = k == 0
        self.upper, self.lower = 2 * k + 1, 2 * k + 2
        self.still_count = 5 if self.recorded_curve is not None else 4
        self.moving_count = len(_LINES) + 2
        at = k * (self.still_count + self.moving_count) + self.still_count
        self.numbers = list(range(at, at + self.moving_count))

    def phase(self, i: int) -> float:
        """Percent of the gait cycle in frame `i` of the animation."""
        return float(self.percent[self.frames[i]])

    def still(self) -> list[dict[str, Any]]:
        """Ground, paths of heel and toe, and the knee angle over the whole cycle."""
        ground = {"x": self.view, "y": [0, 0], "line": {"color": "@muted", "width": 2}}
        traces = [self._upper(**ground)]
        for joint in ("heel", "toe"):
            x, y = self._path(joint)
            traces.append(self._upper(x=x, y=y, line={"color": "@faint", "width": 1}))
        half = self.percent < 100.0
        halves = [(self.percent[half], self.knee[half]), (self.percent[~half] - 100.0, self.knee[~half])]
        x = np.concatenate([halves[0][0], [np.nan], halves[1][0]])
        y = np.concatenate([halves[0][1], [np.nan], halves[1][1]])
        traces.append(self._lower(x=x, y=y, mode="lines", line={"color": "@accent", "width": 1.6}))
        if self.recorded_curve is not None:
            line = {"color": "@good", "width": 1.4, "dash": "dash"}
            traces.append(self._lower(x=self.recorded_curve[0], y=self.recorded_curve[1], mode="lines", line=line))
        return traces

    def moving(self, i: int, *, only_data: bool = False) -> list[dict[str, Any]]:
        """Traces that change in frame `i`: the parts of the leg, the marks on the ground, the point on the curve."""
        frame = int(self.frames[i])
        positions = {name: self.walk[frame, j] - [self.camera[frame], 0.0] for j, name in enumerate(JOINTS)}
        traces = []
        camera = self.camera[frame]
        marks = np.arange(np.ceil((camera + self.view[0]) / MARK), (camera + self.view[1]) / MARK) * MARK
        x, y = np.repeat(marks - camera, 3), np.tile([0.0, -0.03, np.nan], len(marks))
        traces.append(({"x": _short(x), "y": _short(y)}, {"line": {"color": "@muted", "width": 2}}))
        for name, (joints, line) in _LINES.items():
            points = np.array([positions[j] if j else [np.nan, np.nan] for j in joints])
            xy = {"x": _short(points[:, 0]), "y": _short(points[:, 1])}
            dot: dict[str, Any] = {"size": 5, "color": "@surface", "line": {"color": "@ink", "width": 1}}
            style: dict[str, Any] = {"mode": "markers", "marker": dot} if name == "joints" else {"line": line}
            traces.append((xy, style))
        present = {"x": _short(self.percent[[frame]] % 100.0), "y": _short(self.knee[[frame]])}
        if only_data:
            return [xy for xy, _ in traces] + [present]
        point = {"mode": "markers", "marker": {"size": 9, "color": "@mark"}}
        return [self._upper(**xy, **style) for xy, style in traces] + [self._lower(**present, **point)]

    def axes(self) -> dict[str, Any]:
        """Axes of both rows; metres are as long along x as along y."""
        a, b = self._suffix(self.upper), self._suffix(self.lower)
        domain = [self.left, self.right]
        top = float(self.walk[:, :, 1].max()) + ABOVE
        bare = {"showgrid": False, "zeroline": False, "showline": False, "ticks": "", "showticklabels": False}
        upper = {"domain": [self.divide + 0.05, 1.0], "range": [-BELOW, top], "scaleanchor": f"x{a}"}
        lower = {"domain": [0.14, self.divide - 0.04], "range": [-12, 92], "dtick": 30, "showticklabels": self.first}
        return {
            f"xaxis{a}": axis("", domain=domain, anchor=f"y{a}", range=self.view, constrain="domain", **bare),
            f"yaxis{a}": axis("", anchor=f"x{a}", constrain="domain", constraintoward="bottom", **upper, **bare),
            f"xaxis{b}": axis("gait cycle [%]", domain=domain, anchor=f"y{b}", range=[0, 100], dtick=25),
            f"yaxis{b}": axis("knee angle [deg]" if self.first else "", anchor=f"x{b}", **lower),
        }

    def _path(self, joint: str) -> tuple[Floats, Floats]:
        position = self.walk[:, JOINTS.index(joint)]
        return position[:, 0] - self.camera, position[:, 1]

    def _upper(self, **values: Any) -> dict[str, Any]:
        return self._trace(self.upper, {"mode": "lines", **values})

    def _lower(self, **values: Any) -> dict[str, Any]:
        return self._trace(self.lower, values)

    def _trace(self, number: int, values: dict[str, Any]) -> dict[str, Any]:
        suffix = self._suffix(number)
        return {"type": "scatter", "hoverinfo": "skip", "xaxis": f"x{suffix}", "yaxis": f"y{suffix}", **values}

    @staticmethod
    def _suffix(number: int) -> str:
        return "" if number == 1 else str(number)


def knee_angle(walk: Floats) -> Floats:
    """Knee angle (deg, flexion positive) from joint positions `walk` (frame, joint, axis): thigh less shank angle."""

    def from_vertical(upper: str, lower: str) -> Floats:
        d = walk[:, JOINTS.index(lower)] - walk[:, JOINTS.index(upper)]
        return np.asarray(np.degrees(np.arctan2(d[:, 0], -d[:, 1])))

    return from_vertical("hip", "E") - from_vertical("F", "ankle")


def _recorded(arrays: dict[str, Any]) -> tuple[Floats, Floats] | None:
    """Percent of the cycle and recorded knee angle of one cycle, when kept."""
    if not {"phase", "knee_angle_recorded"} <= arrays.keys():
        return None
    phase = arrays["phase"] - arrays["phase"][0]
    first_cycle = phase <= 1.0 + 1e-9
    return 100.0 * phase[first_cycle], arrays["knee_angle_recorded"][first_cycle]


def _short(values: Floats) -> list[float | None]:
    """Rounded to a tenth of a millimetre: there are many frames."""
    return [None if np.isnan(v) else round(float(v), 4) for v in values]
