"""What a checked study says. Plain immutable values: every name is resolved, every number is in a known unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from designopt.plugin import Use
from designopt.study.expression import Expression


@dataclass(frozen=True)
class Parameter:
    """A design variable, in the study's own unit.

    `factor` and `offset` lead to the model's unit: ``model value = factor * value + offset``.
    A ``choice`` has `values`; a ``fixed`` has one of them; ``real`` and ``int`` have `low` and `high`.
    """

    name: str
    kind: Literal["real", "int", "choice", "fixed"]
    low: float = 0.0
    high: float = 0.0
    values: tuple[str | float | int | bool, ...] = ()
    unit: str = ""
    scale: Literal["linear", "log"] = "linear"
    factor: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class Scenario:
    """A named set of external conditions, in the model's units."""

    name: str
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Objective:
    """`expression` of figures, aggregated `over` the scenarios, to be made small (or large), in `unit`."""

    name: str
    expression: Expression
    direction: Literal["minimize", "maximize"]
    over: Use
    unit: str = ""

    @property
    def sign(self) -> float:
        """1 or, for what is to be made large, -1: ``sign * value`` is always to be made small."""
        return 1.0 if self.direction == "minimize" else -1.0


@dataclass(frozen=True)
class Constraint:
    """Limits on an expression of figures; exactly one of `minimum`, `maximum`, `equals` or both of the first two."""

    name: str
    expression: Expression
    over: Use
    minimum: float | None = None
    maximum: float | None = None
    equals: float | None = None
    unit: str = ""


@dataclass(frozen=True)
class Budget:
    """Where a stage ends; None is no limit. `evaluations` counts proposed designs, `wall` is in seconds."""

    evaluations: int | None = None
    wall: float | None = None


@dataclass(frozen=True)
class StartFrom:
    """Designs of an earlier stage that a stage begins with: the `best` few, or the nondominated ones (None is all)."""

    stage: str
    select: Literal["nondominated", "best"] = "nondominated"
    count: int | None = None


@dataclass(frozen=True)
class Stage:
    """One solver with its budget."""

    name: str
    solver: Use
    budget: Budget = Budget()
    start_from: StartFrom | None = None


@dataclass(frozen=True)
class Execution:
    """When, where and how often. Times in seconds.

    `workers` None means as many as the machine has cores. `arrays` says which of the model's arrays are kept:
    of every evaluation (``all``) or of the final front and the chosen designs only (``front``).
    `retries` are by failure class. The run ends early when more than `stop_if_share_above` of at least `after`
    evaluations failed.
    """

    executor: Literal["auto", "serial", "dask"] = "auto"
    workers: int | None = None
    scheduler: str = "local"
    timeout: float | None = None
    grace: float = 10.0
    retries: Mapping[str, int] = field(default_factory=lambda: {"crashed": 1, "lost_worker": 2, "timeout": 0})
    arrays: Mapping[str, Literal["all", "front"]] = field(default_factory=dict)
    stop_if_share_above: float | None = None
    after: int = 50


@dataclass(frozen=True)
class Study:
    """A whole study: problem, stages, execution and report. `text` is the file as given, or an equivalent one
    when values were overridden or the study was built in Python.

    `figures` are objective plugins by the name under which expressions use them. `plots` are the report's parts.
    `plugin_files` are files given with ``--plugin``, as (name, content).
    """

    name: str
    model: Use
    space: tuple[Parameter, ...]
    objectives: tuple[Objective, ...]
    stages: tuple[Stage, ...]
    title: str = ""
    description: str = ""
    seed: int = 0
    scenarios: tuple[Scenario, ...] = (Scenario("nominal"),)
    relations: tuple[Expression, ...] = ()
    figures: Mapping[str, Use] = field(default_factory=dict)
    constraints: tuple[Constraint, ...] = ()
    execution: Execution = Execution()
    plots: tuple[Use, ...] = ()
    text: str = ""
    path: Path | None = None
    plugin_files: tuple[tuple[str, bytes], ...] = ()
