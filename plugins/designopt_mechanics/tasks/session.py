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
    _check_parameters(mechanism, parameters)
    stated_task: MechanismTask = TASKS[task](TaskSettings(mechanism, LoopSolver(mechanism), **settings))
    if mistakes := list(stated_task.check()):
        raise ValueError("; ".join(str(mistake) for mistake in mistakes))
    outputs, arrays = stated_task.evaluate(
        {**mechanism.values, **(parameters or {})}, {}, set(stated_task.declares().arrays)
    )
    return TaskResult(outputs, arrays)


def draw(
    mechanism: Mechanism | Tree,
    posture: ArrayLike | Mapping[str, Any] | None = None,
    parameters: Mapping[str, float] | None = None,
) -> plotly.graph_objects.Figure:
    """A Plotly figure for notebooks, with a slider where there are several postures.

    `posture` is (m,) or (n, m) in the order of the coordinates; or values by name, of the independent coordinates or as
    many others, which the loops complete; or the arrays of a result, with a column of each coordinate; by default the
    closed reference posture. `parameters` replace numbers of the file. Raises `CannotClose` for a posture that does not
    close, and `ValueError` for unknown names and other shapes.
    """
    full_mechanism = mechanism if isinstance(mechanism, Mechanism) else Mechanism(mechanism, (0.0, 0.0, 0.0))
    _check_parameters(full_mechanism, parameters)
    p = full_mechanism.column(parameters)
    lines = scene_of(full_mechanism, _postures(full_mechanism, posture, p), p)
    return _figure(lines)


def _check_parameters(mechanism: Mechanism, parameters: Mapping[str, float] | None) -> None:
    if unknown := sorted(set(parameters or {}) - set(mechanism.values)):
        raise ValueError(f"there is no parameter '{unknown[0]}'; there are {', '.join(mechanism.values) or 'none'}")


def _postures(mechanism: Mechanism, posture: ArrayLike | Mapping[str, Any] | None, p: list[float]) -> Floats:
    """(n, m) postures to draw."""
    names = mechanism.tree.names
    if posture is None:
        return LoopSolver(mechanism).start(p)[None]
    if isinstance(posture, Mapping) and not all(np.ndim(posture.get(name, 0.0)) == 1 for name in names):
        if any(np.ndim(value) for value in posture.values()):
            raise ValueError(f"columns of all coordinates are needed: {', '.join(names)}")
        return LoopSolver(mechanism).posture({name: float(value) for name, value in posture.items()}, p)[None]
    rows = np.column_stack([posture[name] for name in names]) if isinstance(posture, Mapping) else posture
    z = np.atleast_2d(np.asarray(rows, dtype=np.float64))
    if z.ndim != 2 or z.shape[1] != len(names) or not np.isfinite(z).all():
        raise ValueError(f"a posture has a finite value of each of the {len(names)} coordinates {', '.join(names)}")
    return z


def _figure(lines: Floats) -> plotly.graph_objects.Figure:
    """The figure of lines (n, vertices, 3), flat where all have the same depth."""
    import plotly.graph_objects as go

    points = lines[np.isfinite(lines).all(axis=2)]
    low, high = points.min(axis=0), points.max(axis=0)
    flat = high[2] == low[2]
    margin = 0.05 * float((high - low).max())

    def curve(vertices: Floats) -> Any:
        axes = dict(zip("xy" if flat else "xyz", vertices.T, strict=False))
        return (go.Scatter if flat else go.Scatter3d)(**axes, mode="lines+markers", connectgaps=False)

    ranges = {
        f"{axis}axis": {"range": [float(a) - margin, float(b) + margin], "title": f"{axis} [m]"}
        for axis, a, b in zip("xyz", low, high, strict=True)
    }
    figure = go.Figure(curve(lines[0]))
    if flat:
        figure.update_layout(xaxis=ranges["xaxis"], yaxis={**ranges["yaxis"], "scaleanchor": "x"})
    else:
        figure.update_layout(scene={**ranges, "aspectmode": "data"})
    if len(lines) > 1:
        figure.frames = [go.Frame(data=[curve(vertices)], name=str(i)) for i, vertices in enumerate(lines)]
        at_once = {"frame": {"duration": 0, "redraw": True}, "mode": "immediate"}
        steps = [{"args": [[str(i)], at_once], "label": str(i), "method": "animate"} for i in range(len(lines))]
        figure.update_layout(sliders=[{"steps": steps, "currentvalue": {"prefix": "posture "}}])
    return figure
