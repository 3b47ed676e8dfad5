"""The model ``cable_robot``: places of anchors in, wrench-feasible workspace and stiffness out."""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import cached_property
from typing import Annotated, Literal, NotRequired, TypedDict, cast

import numpy as np

from designopt.arrays import Floats
from designopt.dynamics.rows import Rows
from designopt.lazy import casadi as ca
from designopt.plugin import Array, filled, model
from designopt.plugin import Quantity as Q
from designopt_mechanics.cables.robot import (
    DEPTH,
    HALF,
    HEIGHT,
    MASS,
    WIDTH,
    least_tensions,
    margins,
    positive_share,
    robot,
    stiffness,
)
from designopt_mechanics.state import TreeState
from designopt_mechanics.wires import moment_arms

#: Stiffness of a cable (N/m), the same for all.
CABLE = 1e5


class Anchors(TypedDict, total=False):
    """Where the cables are anchored; with 0 in the corners of the frame."""

    upper_inset: Annotated[float, Q("m", "of the upper anchors from the frame's corners", ge=0, le=0.8, default=0.0)]
    lower_inset: Annotated[float, Q("m", "of the lower anchors from the frame's corners", ge=0, le=0.8, default=0.0)]
    lower_height: Annotated[float, Q("m", "of the lower anchors above the floor", ge=0, le=1.2, default=0.0)]


class Task(TypedDict, total=False):
    """The loads on the platform."""

    force: Annotated[float, Q("N", "outer force along each axis, to both sides", ge=0, default=20.0)]
    moment: Annotated[float, Q("N m", "outer moment about each axis, to both sides", ge=0, default=1.0)]
    payload: Annotated[float, Q("kg", "on the platform", ge=0, default=0.0)]


class RobotOutputs(TypedDict):
    """Over the box of poses."""

    workspace: Annotated[
        float, Q("", "share of the box of poses where every wrench of the box is feasible, margins linear in between")
    ]
    min_margin: Annotated[float, Q("N", "of all poses, along the worst direction of force and moment by 1 m")]
    stiffness: Annotated[float, Q("N/m", "least eigenvalue of the translations at the middle of the frame")]
    turning_stiffness: Annotated[float, Q("N m/rad", "least eigenvalue of the turns at the middle of the frame")]
    mean_stiffness: Annotated[float, Q("N/m", "mean over the feasible poses of the least eigenvalue; 0 without any")]
    effort: NotRequired[
        Annotated[
            float,
            Q(
                "N^2 s",
                "integral of the squared tensions of standing in the middle for a second; none without tensions within "
                "their bounds that carry the platform",
            ),
        ]
    ]


ARRAYS = {
    "poses": Array(("pose", "axis"), "m", "of the platform"),
    "margin": Array(("pose",), "N", "of feasibility"),
    "time": Array(("time",), "", "0 and 1: the drawing stands still"),
    "scene": Array(
        ("time", "vertex", "axis"), "m", "drawing of frame, platform and cables; lines end where not a number"
    ),
}


@model("cable_robot", version=3, arrays=ARRAYS)
class CableRobot:
    """Robot whose platform hangs on cables that only pull: four in a plane, or eight in space.

    A pose counts if tensions within their bounds balance every wrench of a box (wrench-feasible workspace). The
    frame is 2 m wide (and deep) and 1.6 m high, the platform 0.2 by 0.12 m with 5 kg, cables have 1e5 N/m.
    """

    kind: Annotated[Literal["planar", "spatial"], Q("", "four cables in a plane, or eight in space")] = "planar"
    min_tension: Annotated[float, Q("N", "of a cable", ge=0)] = 5.0
    max_tension: Annotated[float, Q("N", "of a cable", gt=0)] = 300.0
    grid: Annotated[int, Q("", "poses along each axis", ge=2, le=41)] = 13

    def evaluate(
        self, design: Anchors, scenario: Task, arrays: Set[str] = frozenset()
    ) -> tuple[RobotOutputs, dict[str, Floats]]:
        """Go through the poses."""
        anchors, task = [*cast(Mapping[str, float], filled(Anchors, design)).values()], filled(Task, scenario)
        poses = self._poses()
        moves = poses.shape[1]
        turns = 1 if moves == 2 else 3
        z = np.column_stack([poses, np.zeros((len(poses), turns))])
        arms = self._arms(z, anchors)[0]
        box = np.array([task["force"]] * moves + [task["moment"]] * turns)
        weight = np.zeros(moves + turns)
        weight[moves - 1] = -9.81 * (MASS + task["payload"])
        margin = margins(arms, self.min_tension, self.max_tension, weight, box)
        feasible = margin >= 0.0
        middle = np.zeros((1, moves + turns))
        middle[0, moves - 1] = 0.5 * HEIGHT
        K = stiffness(self._arms(middle, anchors)[0], CABLE)[0]
        everywhere = np.linalg.eigvalsh(stiffness(arms, CABLE)[:, :moves, :moves])[:, 0]
        middle_arms = self._arms(middle, anchors)[0][0]
        tensions = least_tensions(middle_arms, -weight, self.min_tension, self.max_tension)
        outputs = RobotOutputs(
            workspace=positive_share(margin.reshape((self.grid,) * moves)),
            min_margin=float(margin.min()),
            stiffness=float(np.linalg.eigvalsh(K[:moves, :moves])[0]),
            turning_stiffness=float(np.linalg.eigvalsh(K[moves:, moves:])[0]),
            mean_stiffness=float(everywhere[feasible].mean()) if feasible.any() else 0.0,
        )
        if tensions is not None:
            outputs["effort"] = float((tensions**2).sum())
        all_arrays: dict[str, Floats] = {"poses": poses, "margin": margin, "time": np.array([0.0, 1.0])}
        if "scene" in arrays:
            cables = self._drawing(anchors, poses[feasible])
            all_arrays["scene"] = np.stack([cables, cables])
        return outputs, {name: all_arrays[name] for name in arrays}

    def _poses(self) -> Floats:
        """Places of the platform over the inner four fifths of the frame."""
        spans = [(-0.4 * WIDTH, 0.4 * WIDTH)]
        if self.kind == "spatial":
            spans.append((-0.4 * DEPTH, 0.4 * DEPTH))
        spans.append((0.1 * HEIGHT, 0.9 * HEIGHT))
        axes = [np.linspace(low, high, self.grid) for low, high in spans]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(spans))

    @cached_property
    def _arms(self) -> Rows:
        anchors = ca.SX.sym("anchors", 3)
        machine = robot(self.kind, anchors[0], anchors[1], anchors[2])
        state = TreeState(machine.tree, ca.SX.sym("z", len(machine.tree.names)))
        return Rows(ca.Function("arms", [state.z, anchors], [ca.cse(moment_arms(state, machine.cables))]))

    def _drawing(self, anchors: list[float], feasible: Floats) -> Floats:
        """(vertices, axes) of cables, platform in the middle, and feasible poses as dots."""
        machine = robot(self.kind, *anchors)
        moves = feasible.shape[1]
        middle = np.zeros(moves)
        middle[-1] = 0.5 * HEIGHT
        gap = np.full((1, moves), np.nan)
        parts: list[Floats] = []
        for cable in machine.cables:
            anchor = np.asarray(ca.evalf(cable.points[0].position), dtype=np.float64).ravel()[:moves]
            end = middle + np.asarray(cable.points[1].position)[:moves]
            parts += [np.stack([anchor, end]), gap]
        half = np.array(HALF)[[0, 2]] if moves == 2 else np.array(HALF)
        corners = [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0)]
        outline = [np.array(c) if moves == 2 else np.array([c[0], c[1], -1.0]) for c in corners]
        parts += [np.array([middle + half * c for c in outline]), gap]
        for pose in feasible:
            parts += [pose[None], gap]
        return np.concatenate(parts[:-1])
