"""Reference solutions (CSV) as solved walks, whose points are those of the mesh."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from designopt_walking.results.cycle import SolvedWalk
from designopt_walking.walker import Walker

from designopt.collocation import Mesh, PhaseSolution, SampledTrajectory, hermite_simpson, sampled

_PREFIXES = {"act_": "activation_", "exc_": "excitation_", "R_": "help_"}


def columns(file: Path) -> dict[str, Any]:
    """Columns (n,) by the names of `walking_system`; `time` among them."""
    with file.open() as lines:
        table = np.genfromtxt((line for line in lines if not line.startswith("#")), delimiter=",", names=True)
    names = {}
    for name in table.dtype.names:
        new = name.replace("_acc", "_acceleration") if name.endswith("_acc") else name
        for prefix, longer in _PREFIXES.items():
            new = longer + name.removeprefix(prefix) if name.startswith(prefix) else new
        names["lumbarAct" if name == "lumbar_torque" else new] = table[name]
    return names


def guess(file: Path, names: list[str]) -> SampledTrajectory:
    """The reference as a guess of these variables."""
    values = columns(file)
    return sampled(values["time"], {name: values[name] for name in names if name in values})


@dataclass(frozen=True, eq=False)
class Recorded:
    """What `results` read of a solution."""

    phase: PhaseSolution
    parameters: dict[str, float] = field(default_factory=dict)
    objective: float = 0.0
    violation: float = 0.0
    error_estimate: float = 0.0
    iterations: int = 0
    terms: dict[str, float] = field(default_factory=dict)
    figures: dict[str, float] = field(default_factory=dict)


def recorded_walk(walker: Walker, file: Path, *, half: bool, parameters: dict[str, float] | None = None) -> SolvedWalk:
    """A reference solution (Hermite-Simpson) of `walker`."""
    values = columns(file)
    time = values["time"]
    intervals = (len(time) - 1) // 2
    speeds = [f"{name}_speed" for name in walker.coordinates]
    activations = [f"activation_{name}" for name in walker.muscles.names]
    states = [*walker.coordinates, *speeds, *activations]
    controls = [f"excitation_{name}" for name in walker.muscles.names] + list(walker.drives)
    controls += [v.name for device in walker.devices for v, _ in device.controls]
    named = {name: values[name] for name in (*states, *controls)}
    mesh = Mesh(time[::2] / time[-1], (hermite_simpson(linear_midpoint=True),) * intervals)
    rates = {name: np.gradient(named[name], time) for name in states}
    kinds = {name: "state" if name in states else "control" for name in named}
    phase = PhaseSolution("motion", mesh, 0.0, float(time[-1]), time, named, rates, kinds, {}, {})
    return SolvedWalk(walker, Recorded(phase, dict(parameters or {})), half)  # type: ignore[arg-type]
