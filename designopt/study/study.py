"""What a checked study says. Plain immutable values: every name is resolved, every number is in a known unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from designopt.files import InputFile
from designopt.former import former_names
from designopt.plugin import (
    AggregationPlugin,
    ExportPlugin,
    ModelPlugin,
    ObjectivePlugin,
    ReportPlugin,
    SolverPlugin,
    Use,
)
from designopt.study.language.expressions.expression import Expression


@dataclass(frozen=True)
class DesignVariable:
    """A design variable, in the study's own unit.

    `factor` and `offset` lead to the model's unit: ``model value = factor * value + offset``.
    A ``choice`` has `values`; a ``fixed`` has one of them; ``real`` and ``int`` have `low` and `high`.
    It is active only in designs in which every parameter named in `when` is active and has one of the values there.
    `why` is what the study says of where its range ends, for people.
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
    when: Mapping[str, tuple[str | float | int | bool, ...]] = field(default_factory=dict)
    why: str = field(default="", compare=False)


@dataclass(frozen=True)
class Tolerance:
    """How far the value of `parameter` may be off: by `size` in the study's unit, or `relative` to the value.

    Every value within it is as likely as any other, or it is the standard deviation of a `normal` distribution. Nothing
    lies beyond `low` and `high`, which the model admits (in the study's unit, None for no limit).
    """

    parameter: str
    size: float
    relative: bool = False
    normal: bool = False
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Tolerances:
    """The tolerances of the parameters, and what is evaluated within them after the last stage.

    Each chosen design has so many `neighbours`; `front` is the number of neighbours that other designs of the front
    have together. None is what a tenth of the designs of the stages allows. `assumed` are tolerances that the study
    does not state.
    """

    of: tuple[Tolerance, ...]
    neighbours: int | None = None
    front: int | None = None
    assumed: bool = False


@dataclass(frozen=True)
class Shift:
    """Where a neighbour of a design lies in one parameter: at ``factor * value + offset`` in the study's unit, within
    `low` and `high`."""

    parameter: str
    factor: float = 1.0
    offset: float = 0.0
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Scenario:
    """A named set of external conditions, in the model's units; with `shift` a neighbour of the design is evaluated."""

    name: str
    values: Mapping[str, Any] = field(default_factory=dict)
    shift: tuple[Shift, ...] = ()


@dataclass(frozen=True)
class Objective:
    """`expression` of figures, aggregated `over` the scenarios, to be made small (or large), in `unit`.

    `former` is the name that it had when the study was run; the store goes by it.
    """

    name: str
    expression: Expression
    direction: Literal["minimize", "maximize"]
    over: Use[AggregationPlugin]
    unit: str = ""
    former: str = ""

    @property
    def sign(self) -> float:
        """1 or, for what is to be made large, -1: ``sign * value`` is always to be made small."""
        return 1.0 if self.direction == "minimize" else -1.0


@dataclass(frozen=True)
class StudyConstraint:
    """Limits on an expression of figures; exactly one of `minimum`, `maximum`, `equals` or both of the first two.

    `stated` is the unit in which the study writes them, "" where it names none: results show them in it.
    `former` as in `Objective`.
    """

    name: str
    expression: Expression
    over: Use[AggregationPlugin]
    minimum: float | None = None
    maximum: float | None = None
    equals: float | None = None
    unit: str = ""
    stated: str = field(default="", compare=False)
    former: str = ""


@dataclass(frozen=True)
class HypervolumeGain:
    """A stage ends when the hypervolume of its archive grew by less than the share `gain_below` over so many
    generations (batches). `reference` has one value for each objective, in its unit and direction."""

    reference: tuple[float, ...]
    gain_below: float
    over_generations: int


@dataclass(frozen=True)
class Budget:
    """Where a stage ends; None is no limit. `evaluations` counts proposed designs, `wall` is in seconds."""

    evaluations: int | None = None
    wall: float | None = None
    hypervolume: HypervolumeGain | None = None


@dataclass(frozen=True)
class StartFrom:
    """Designs that a stage begins with, of an earlier `stage` or of another `store` (a folder, one of the two is
    given): the `best` few, or the nondominated ones (None is all)."""

    stage: str | None = None
    select: Literal["nondominated", "best"] = "nondominated"
    count: int | None = None
    store: str | None = None


@dataclass(frozen=True)
class Stage:
    """One solver with its budget. A `baseline` stage evaluates the designs to compare with, before all others."""

    name: str
    solver: Use[SolverPlugin]
    budget: Budget = Budget()
    start_from: StartFrom | None = None
    baseline: bool = False


OnFailure = Literal["infeasible", "stop", "stop_repeated"]


@dataclass(frozen=True)
class Cluster:
    """Workers that a batch system starts: `jobs` jobs of `cores` single-thread workers each.

    `memory` of a job in bytes, `walltime` in seconds. With `minimum` the pool shrinks to so many jobs when there is
    little to do. `queue` is the partition, `interface` the network interface that they listen on. Lines of a job script
    (modules, further directives) are no part of a study: they are in the user's configuration of dask-jobqueue.
    """

    use: Literal["slurm", "pbs"]
    jobs: int
    cores: int
    memory: int
    walltime: float
    minimum: int | None = None
    queue: str | None = None
    account: str | None = None
    interface: str | None = None


@dataclass(frozen=True)
class Execution:
    """When, where and how often. Times in seconds.

    `workers` None means as many as the machine has cores. `arrays` says which of the model's arrays are kept:
    of every evaluation (``all``), of the final front and the chosen designs (``front``), or of these only (``chosen``).
    `retries` are by failure class. `on_failure` says by failure class whether the run goes on with an infeasible
    design, stops at once, or stops when the same error shows repeatedly. The run ends early when more than
    `stop_if_share_above` of at least `after` evaluations failed. `order` is ``completion`` in stores of an earlier
    version only: a solver that asked ahead received results as they came.
    """

    executor: Literal["auto", "serial", "dask"] = "auto"
    workers: int | None = None
    scheduler: str = "local"
    cluster: Cluster | None = None
    timeout: float | None = None
    grace: float = 10.0
    retries: Mapping[str, int] = field(
        default_factory=lambda: {"crashed": 1, "lost_worker": 2, "timeout": 0, "error": 0}
    )
    on_failure: Mapping[str, OnFailure] = field(default_factory=lambda: {"error": "stop_repeated"})
    arrays: Mapping[str, Literal["all", "front", "chosen"]] = field(default_factory=dict)
    stop_if_share_above: float | None = None
    after: int = 50
    order: Literal["ask", "completion"] = "ask"


@dataclass(frozen=True)
class Choice:
    """A rule that picks one design of the front: ``{method: {setting: value}}`` of ``report.choose``.

    `weights` are by objective (missing ones 1) and are scaled to sum 1. `norm` is that of TOPSIS (``vector`` or
    ``minmax``) or the order of the utopia distance (``l1``, ``l2``, ``chebyshev``). `target` is by objective, in its
    unit and direction: what to be near to for ``nearest_to``, the reference point (the ideal point where none is given)
    of ``weighted_tchebycheff``, the limits of ``epsilon_constraint``, under which `objective` is the best.
    """

    method: Literal["knee", "utopia", "topsis", "nearest_to", "weighted_tchebycheff", "epsilon_constraint", "robust"]
    weights: Mapping[str, float] = field(default_factory=dict)
    norm: str = ""
    target: Mapping[str, float] = field(default_factory=dict)
    objective: str = ""


@dataclass(frozen=True)
class Validation:
    """Scenarios in which the chosen designs are evaluated after the last stage, and the quantiles to be shown."""

    scenarios: tuple[Scenario, ...]
    quantiles: tuple[float, ...] = (0.05, 0.5, 0.95)


@dataclass(frozen=True)
class StudyDefinition:
    """A whole study: problem, stages, execution and report. `text` is the file as given, or an equivalent one
    when values were overridden or the study was built in Python.

    `figures` are objective plugins by the name under which expressions use them. `plots` are the report's parts,
    `choose` the rules that pick designs of the front besides the best of each objective, `validate` where these are
    tried out, `reference` the fixed reference point of the hypervolume, `export` the formats written beside the report.
    `plugin_files` are files given with ``--plugin``, as (name, content); `tables` those of which designs and scenarios
    were taken. `missing` is the share of the scenarios that may lack a result without failing their design. Within
    `tolerances` the chosen designs are evaluated once more.
    """

    name: str
    model: Use[ModelPlugin]
    space: tuple[DesignVariable, ...]
    objectives: tuple[Objective, ...]
    stages: tuple[Stage, ...]
    title: str = ""
    description: str = ""
    seed: int = 0
    scenarios: tuple[Scenario, ...] = (Scenario("nominal"),)
    relations: tuple[Expression, ...] = ()
    figures: Mapping[str, Use[ObjectivePlugin]] = field(default_factory=dict)
    constraints: tuple[StudyConstraint, ...] = ()
    execution: Execution = Execution()
    plots: tuple[Use[ReportPlugin], ...] = ()
    choose: tuple[Choice, ...] = ()
    validate: Validation | None = None
    reference: Mapping[str, float] = field(default_factory=dict)
    export: tuple[Use[ExportPlugin], ...] = ()
    text: str = ""
    path: Path | None = None
    plugin_files: tuple[tuple[str, bytes], ...] = ()
    tables: tuple[InputFile, ...] = ()
    missing: float = 0.0
    tolerances: Tolerances | None = None

    @property
    def baseline(self) -> Stage | None:
        """The stage that evaluates the designs to compare with, which comes first; None without any."""
        return next((stage for stage in self.stages if stage.baseline), None)


if not TYPE_CHECKING:
    __getattr__ = former_names(
        __name__, {"Study": "StudyDefinition", "Parameter": "DesignVariable", "Constraint": "StudyConstraint"}
    )
