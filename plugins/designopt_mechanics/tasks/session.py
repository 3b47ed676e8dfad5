"""Mechanisms from Python: read a file, solve a task, draw a posture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats
from designopt_mechanics.mechanism.loops import LoopSolver
from designopt_mechanics.mechanism.mechanism import Mechanism
from designopt_mechanics.mechanism.scene import scene_of
from designopt_mechanics.model_file.reading import read
from designopt_mechanics.robot_files.reading import is_robot_file, read_robot
from designopt_mechanics.tasks.model import TASKS
from designopt_mechanics.tasks.task import MechanismTask, TaskSettings
from designopt_mechanics.tree import Tree

if TYPE_CHECKING:
    import plotly.graph_objects


@dataclass(frozen=True, eq=False)
class TaskResult:
    """The `outputs` of a task by name, and its `arrays`: signals over time and the scene."""

    outputs: Mapping[str, float]
    arrays: Mapping[str, Floats]


def read_mechanism(path: str | Path, by_path: Mapping[str, str] | None = None) -> Mechanism:
    """The mechanism in a YAML, URDF or MJCF file.

    `by_path` makes further numbers of it parameters: ``{"load": "frames.hand.body.mass"}``. Raises `StudyError` (YAML)
    or `ModelError` (URDF, MJCF), each with line and column, `ValueError` for a path to no number, and `OSError`.
    """
    file = Path(path)
    content = file.read_bytes()
    if is_robot_file(content):
        return read_robot(content, file.name, by_path).mechanism
    return read(content, file.name, by_path)


def solve(
    mechanism: Mechanism, task: str, parameters: Mapping[str, float] | None = None, **settings: Any
) -> TaskResult:
    """The results of a `task` (``inverse_dynamics``, ``simulation``, ``equilibrium``, ``trajectory``, ``kinematics``).

    `parameters` replace numbers of the file, in its SI units; `settings` are those of the model ``mechanism``
    (`designopt show mechanism`). Raises `ValueError` for a wrong task, setting or parameter, `Diverged` where there is
    no result.
    """
    names = [f.name for f in fields(TaskSettings) if f.name not in ("mechanism", "loops")]
    if task not in TASKS:
        raise ValueError(f"there is no task '{task}'; there are {', '.join(TASKS)}")
    if unknown := sorted(set(settings) - set(names)):
        raise ValueError(f"there is no setting '{unknown[0]}'; there are {', '.join(names)}")
    if unknown := sorted(set(parameters or {}) - set(mechanism.values)):
        raise ValueError(f"there is no parameter '{unknown[0]}'; there are {', '.join(mechanism.values) or 'none'}")
    stated_task: MechanismTask = TASKS[task](TaskSettings(mechanism, LoopSolver(mechanism), **settings))
    if mistakes := list(stated_task.check()):
        raise ValueError("; ".join(str(mistake) for mistake in mistakes))
    outputs, arrays = stated_task.evaluate(
        {**mechanism.values, **(parameters or {})}, {}, set(stated_task.declares().arrays)
    )
    return TaskResult(outputs, arrays)


def draw(mechanism: Mechanism | Tree, z: ArrayLike | None = None) -> plotly.graph_objects.Figure:
    """A Plotly figure of the posture `z` (m,), for notebooks; by default of the closed reference posture."""
    import plotly.graph_objects as go

    stated = mechanism if isinstance(mechanism, Mechanism) else Mechanism(mechanism, (0.0, 0.0, 0.0))
    p = stated.column()
    posture = LoopSolver(stated).start(p) if z is None else np.asarray(z, dtype=np.float64)
    x, y, depth = scene_of(stated, posture, p)[0].T
    if np.ptp(depth[np.isfinite(depth)]) > 0.0:
        figure = go.Figure(go.Scatter3d(x=x, y=y, z=depth, mode="lines+markers", connectgaps=False))
        return figure.update_layout(scene={"aspectmode": "data"})
    figure = go.Figure(go.Scatter(x=x, y=y, mode="lines+markers", connectgaps=False))
    return figure.update_yaxes(scaleanchor="x")
