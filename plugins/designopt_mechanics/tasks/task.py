"""What a task of the model `mechanism` gets and provides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import Declaration, Diverged, InputFile, InvalidSetting
from designopt_mechanics.mechanism.forces import LoopForces, RedundantLoop
from designopt_mechanics.mechanism.loops import CLOSED, LoopSolver
from designopt_mechanics.mechanism.mechanism import Mechanism


@dataclass(frozen=True, eq=False)
class TaskSettings:
    """The settings of the model, and the mechanism with its solved loops.

    `motion` are formulas of time by coordinate, `motion_file` a table; `initial` are values of coordinates and
    ``<coordinate>_speed``; `targets` are points that a path should meet, by path; `outputs` names the outputs that are
    reported, all when it is empty. `grid`, `program` and `sharing` (of `carried_by`) are sections.
    """

    mechanism: Mechanism
    loops: LoopSolver
    motion: Mapping[str, str | float] = field(default_factory=dict)
    motion_file: InputFile | None = None
    duration: float = 1.0
    samples: int = 201
    branch: str = ""
    initial: Mapping[str, float] = field(default_factory=dict)
    drives: Mapping[str, str | float] = field(default_factory=dict)
    targets: Mapping[str, Any] = field(default_factory=dict)
    outputs: Sequence[str] = ()
    grid: Mapping[str, Any] = field(default_factory=dict)
    program: Mapping[str, Any] = field(default_factory=dict)
    buckling: Sequence[str] = ()
    carried_by: Sequence[str] = ()
    sharing: Mapping[str, Any] = field(default_factory=dict)
    redundant: Literal["refuse", "least_squares"] = "refuse"


def refuse_structure(setting: str, loops: LoopSolver) -> Iterable[InvalidSetting]:
    """A mistake in `setting` where the mechanism is a structure that cannot move."""
    if not len(loops.independent):
        yield InvalidSetting(setting, "the mechanism has no freedom to move; task: equilibrium has its forces")


def refuse_redundant(settings: TaskSettings) -> Iterable[InvalidSetting]:
    """A mistake where rigid bodies do not determine the forces of the loops. Raises `TreeError` as `LoopForces`."""
    try:
        LoopForces(settings.loops, redundant=settings.redundant).refuse_redundant()
    except RedundantLoop as error:
        yield InvalidSetting("redundant", str(error))


def refuse_obstacles(loops: LoopSolver, z: Floats, p: Any) -> None:
    """Raises `Diverged` where bars of a dyad do not reach each other, or a wire cannot run over its surfaces, in one of
    the postures `z` (n, m)."""
    gap, meaning = loops.obstacle(z, p)
    if not gap.max() <= CLOSED:
        raise Diverged(f"{meaning}: a gap of {gap.max():.3g} m (or rad) stays", reason="cannot_close")


def by_name(
    derivatives: Mapping[str, Floats], mechanism: Mechanism, names: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Derivatives (np,) of outputs by the parameters `names` alone."""
    columns = [parameter.name for parameter in mechanism.parameters]
    return {output: {name: float(row[columns.index(name)]) for name in names} for output, row in derivatives.items()}


def differences(
    figures: Callable[[Floats], Mapping[str, float]], p: Sequence[float], column: int, share: float
) -> dict[str, float]:
    """Derivatives of `figures` by the parameter `column` of `p`: central differences of fourth order, with steps of a
    `share` of its size."""
    step = share * (abs(p[column]) or 1.0)
    rows = [figures(np.array(p) + n * step * np.eye(len(p))[column]) for n in (-2, -1, 1, 2)]
    return {
        name: (rows[0][name] - 8.0 * rows[1][name] + 8.0 * rows[2][name] - rows[3][name]) / (12.0 * step)
        for name in rows[0]
    }


class MechanismTask(Protocol):
    """One task; its class is constructed with `TaskSettings`."""

    def check(self) -> Iterable[InvalidSetting]:
        """Mistakes in the settings. Raises `TreeError` and `CannotClose` for what the file does not allow."""

    def declares(self) -> Declaration:
        """Outputs and arrays."""

    def notes(self, numbers: Mapping[str, float]) -> Iterable[str]:
        """Remarks on the settings at the `numbers` of all parameters."""

    def gradient(
        self, numbers: Mapping[str, float], scenario: Mapping[str, Any], names: Sequence[str]
    ) -> dict[str, dict[str, float]]:
        """Derivatives of the outputs that have them by the parameters `names`. Raises as `evaluate`."""

    def evaluate(
        self, numbers: Mapping[str, float], scenario: Mapping[str, Any], arrays: Set[str]
    ) -> tuple[dict[str, float], dict[str, Floats]]:
        """Outputs and arrays at the `numbers` of all parameters. Raises `Diverged` and `InvalidDesign`."""
