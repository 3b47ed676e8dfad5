"""A checked study as immutable values: every name is resolved, every number has a unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from designopt.files import InputFile
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

    `factor` and `offset` convert to the model's unit: ``model value = factor * value + offset``. A ``choice`` has
    `values`; a ``fixed`` has one of them; ``real`` and ``int`` have `low` and `high`. It is active only in designs in
    which every parameter named in `when` is active and has one of the values there. `why` is the study's explanation of
    the range.
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
    stated: str = field(default="", compare=False)


@dataclass(frozen=True)
class Tolerance:
    """The tolerance of the value of `parameter`: `size` in the study's unit, or `relative` to the value.

    It is the half-width of a uniform distribution, or the standard deviation of a `normal` one. Values are limited to
    `low` and `high`, which the model admits (in the study's unit, None for no limit).
    """

    parameter: str
    size: float
    relative: bool = False
    normal: bool = False
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Tolerances:
    """The tolerances of the parameters, and the evaluations within them after the last stage.

    Each chosen design has this number of `neighbours`; `front` is the total for other designs of the front. None:
    derived from a tenth of the designs of the stages. `assumed`: default tolerances, not stated in the study.
    """

    of: tuple[Tolerance, ...]
    neighbours: int | None = None
    front: int | None = None
    assumed: bool = False


@dataclass(frozen=True)
class Shift:
    """Offset of a neighbour of a design in one parameter: ``factor * value + offset`` in the study's unit, within `low`
    and `high`."""

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
    """`expression` of figures, aggregated `over` the scenarios, to be minimised (or maximised), in `unit`."""

    name: str
    expression: Expression
    direction: Literal["minimize", "maximize"]
    over: Use[AggregationPlugin]
    unit: str = ""

    @property
    def sign(self) -> float:
        """1, or -1 for a maximised objective: ``sign * value`` is minimised."""
        return 1.0 if self.direction == "minimize" else -1.0


@dataclass(frozen=True)
class StudyConstraint:
    """Limits on an expression of figures; exactly one of `minimum`, `maximum`, `equals` or both of the first two.

    `stated` is the unit in the study, "" if none is given: results use it.
    """

    name: str
    expression: Expression
    over: Use[AggregationPlugin]
    minimum: float | None = None
    maximum: float | None = None
    equals: float | None = None
    unit: str = ""
    stated: str = field(default="", compare=False)


@dataclass(frozen=True)
class HypervolumeGain:
    """A stage ends when the hypervolume of its archive has grown by less than the share `gain_below` over a number of
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
    """Starting designs of a stage, from an earlier `stage` or another `store` (a folder; one of the two is given): the
    `best` designs, or the nondominated ones (None is all)."""

    stage: str | None = None
    select: Literal["nondominated", "best"] = "nondominated"
    count: int | None = None
    store: str | None = None


@dataclass(frozen=True)
class Stage:
    """One solver with its budget. A `baseline` stage evaluates the designs for comparison, before all others."""

    name: str
    solver: Use[SolverPlugin]
    budget: Budget = Budget()
    start_from: StartFrom | None = None
    baseline: bool = False


OnFailure = Literal["infeasible", "stop", "stop_repeated"]


@dataclass(frozen=True)
class Cluster:
    """Workers started by a batch system: `jobs` jobs of `cores` single-thread workers each.

    `memory` of a job in bytes, `walltime` in seconds. With `minimum` the pool shrinks to this number of jobs when there
    is little work. `queue` is the partition, `interface` the network interface of the workers. Lines of a job script
    (modules, further directives) are not part of a study: they are in the user's configuration of dask-jobqueue.
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
class Retry:
    """A failure that passes: one whose message or printed text contains `when` is repeated after `wait` seconds, at
    most this number of `times`."""

    when: str
    times: int
    wait: float


@dataclass(frozen=True)
class Execution:
    """Execution settings. Times in seconds.

    `workers` None means the number of cores of the machine. `arrays` defines which of the model's arrays are stored: of
    every evaluation (``all``), of the final front and the chosen designs (``front``), of the latter only (``chosen``),
    or of failed evaluations (``failed``). `retries` are further attempts by failure class. `on_failure` defines by
    failure class whether the run continues with an infeasible design, stops at once, or stops when the same error
    repeats. The run ends early when more than `stop_if_share_above` of at least `after` evaluations have failed.
    `at_most` limits the runs of a program at the same time, on all workers. `retry` is a failure that passes.
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
    arrays: Mapping[str, Literal["all", "front", "chosen", "failed"]] = field(default_factory=dict)
    stop_if_share_above: float | None = None
    after: int = 50
    at_most: Mapping[str, int] = field(default_factory=dict)
    retry: Retry | None = None


@dataclass(frozen=True)
class Choice:
    """A rule that selects one design of the front: ``{method: {setting: value}}`` of ``report.choose``.

    `weights` are by objective (missing ones 1) and are scaled to sum 1. `norm` is that of TOPSIS (``vector`` or
    ``minmax``) or the order of the utopia distance (``l1``, ``l2``, ``chebyshev``). `target` is by objective, in its
    unit and direction: the target of ``nearest_to``, the reference point of ``weighted_tchebycheff`` (default: the
    ideal point), the limits of ``epsilon_constraint``, within which `objective` is optimised.
    """

    method: Literal["knee", "utopia", "topsis", "nearest_to", "weighted_tchebycheff", "epsilon_constraint", "robust"]
    weights: Mapping[str, float] = field(default_factory=dict)
    norm: str = ""
    target: Mapping[str, float] = field(default_factory=dict)
    objective: str = ""


@dataclass(frozen=True)
class Validation:
    """Scenarios in which the chosen designs are evaluated after the last stage, and the reported quantiles."""

    scenarios: tuple[Scenario, ...]
    quantiles: tuple[float, ...] = (0.05, 0.5, 0.95)


@dataclass(frozen=True)
class StudyDefinition:
    """A whole study: problem, stages, execution and report. `text` is the file as given, or an equivalent one if values
    were overridden or the study was built in Python.

    `figures` are objective plugins by their names in expressions. `plots` are the report's parts, `choose` the rules
    that select designs of the front in addition to the best of each objective, `validate` the scenarios for their
    validation, `reference` the fixed reference point of the hypervolume, `export` the formats written beside the
    report. `plugin_files` are files given with ``--plugin``, as (name, content); `tables` those with designs and
    scenarios. `missing` is the share of the scenarios that may lack a result without failing their design. The chosen
    designs are also evaluated within `tolerances`. `evaluation_options` are settings of the last solver of programs
    that the model's own evaluations share, by name; empty if they are at their defaults.
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
    evaluation_options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def lists_designs(self) -> bool:
        """Whether the study itself lists all designs: then bounds of parameters are those of the list."""
        return bool(self.stages) and all(stage.solver.plugin.takes_designs for stage in self.stages)

    @property
    def judging(self) -> list[Use[Any]]:
        """The aggregations of objectives and constraints, and the solvers of the stages."""
        over = [o.over for o in self.objectives] + [c.over for c in self.constraints]
        return [*over, *(stage.solver for stage in self.stages)]

    @property
    def baseline(self) -> Stage | None:
        """The stage that evaluates the designs for comparison, which comes first; None without any."""
        return next((stage for stage in self.stages if stage.baseline), None)
