"""Protocols of models and solvers. Each optional method has its own protocol."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    from designopt.plugin.declared import Declared
    from designopt.plugin.permission import ForeignCode, Permission
    from designopt.plugin.values import InputFile, InvalidSetting

Values = Mapping[str, Any]


class Model(Protocol):
    """Evaluates one design in one scenario; a model without arrays has no argument `arrays` and returns the outputs
    alone."""

    def evaluate(self, design: Values, scenario: Values, arrays: Set[str]) -> tuple[Values, Values]:
        """Outputs (numbers by name), and the requested `arrays` by name.

        Raises `Diverged` if the physics has no solution, `InvalidDesign` for a design rejected before the computation.
        """


class Prepares(Protocol):
    """A model with preparation common to all evaluations: tables, compiled code."""

    def prepare(self) -> None:
        """Called once on each worker, before the first evaluation."""


class PreparesScenarios(Protocol):
    """A model with preparation common to all designs in one scenario; its other methods receive the result as
    `prepared`."""

    def prepare_scenario(self, conditions: Values) -> Any:
        """Data computed once for these conditions; a worker keeps it within a memory limit."""


class ChecksSettings(Protocol):
    """A model whose settings depend on each other."""

    def check(self) -> Iterable[InvalidSetting] | None:
        """Errors in the settings; they may also be raised."""


class Declares(Protocol):
    """A model whose inputs, outputs or arrays depend on its settings."""

    def declares(self) -> Declared:
        """Declarations beyond the annotations; called after `check`, and equal for equal settings."""


class RunsPrograms(Protocol):
    """A model that runs programs, or compiled code in files of the study, which the user has to allow."""

    def runs(self) -> Sequence[ForeignCode]:
        """What it runs, by the names under which the user allows it; must not run anything."""

    def prepare(self, permission: Permission) -> None:
        """As in `Prepares`; `permission` contains the resolved paths."""


class WritesFiles(Protocol):
    """A model whose evaluation begins with input files."""

    def write_files(self, folder: Path, values: Values) -> None:
        """Write the input files of a design with these inputs and conditions; must not run anything."""


class ReadsModelFiles(Protocol):
    """A model named after the suffix of its model files, such as ``fmu``; neither method may run anything."""

    @staticmethod
    def file_table(file: InputFile) -> str:
        """The contents of a model file for the terminal. Raises `ValueError` for an unusable file."""

    @staticmethod
    def file_study(file: InputFile, name: str) -> str:
        """The text of a study file `name` that runs the model file. Raises `ValueError` for an unusable file."""


class ChecksSpace(Protocol):
    """A model that checks the parameters of a study."""

    def check_space(self, parameters: Mapping[str, Any]) -> Iterable[InvalidSetting] | None:
        """Errors in the parameters (`designopt.study.study.DesignVariable` by name); they may also be raised."""


class ChecksScenarios(Protocol):
    """A model that checks the scenarios of a study."""

    def check_scenario(self, conditions: Values) -> Iterable[InvalidSetting] | None:
        """Errors in the conditions of one scenario; they may also be raised."""


class RemarksOnScenarios(Protocol):
    """A model that tells what it left out or assumed when it read settings and files."""

    def remarks(self, conditions: Values) -> Iterable[str]:
        """Sentences about a scenario that passed its check, for the terminal and the report."""


class ProposesBaselines(Protocol):
    """A model with designs by well-known rules, which studies compare with: ``baseline: [{rule: NAME}]``."""

    def baselines(self, parameters: Collection[str]) -> Mapping[str, Mapping[str, float]]:
        """Values by rule, in the model's units, for a design with these `parameters`; others are ignored."""


class Differentiates(Protocol):
    """A model that computes derivatives of its outputs."""

    def gradient(self, design: Values, scenario: Values) -> Mapping[str, Mapping[str, float]]:
        """``{output: {input: derivative}}`` in the model's units, after `evaluate` of the same design."""


class EvaluatesTogether(Protocol):
    """A model that evaluates several designs in one call faster than one by one."""

    #: Preferred number of evaluations per call.
    batch_size: int

    def batch(
        self, designs: Sequence[Values], scenarios: Sequence[Values], arrays: Set[str]
    ) -> Sequence[tuple[Values, Values] | Exception]:
        """Row i is the result of `evaluate` for design i in scenario i, or its exception."""


class StatesTrajectory(Protocol):
    """A model whose evaluation can be stated as an optimal-control problem."""

    def trajectory_problem(self, scenario: Values) -> Any:
        """The `designopt.collocation.TrajectoryProblem` in one scenario."""


class Solver(Protocol):
    """Proposes designs and learns from their outcomes.

    Class attributes, each with a default, state its requirements: ``needs_budget``, ``uses_start``,
    ``needs_objectives``, ``needs_parameters``, ``takes_designs``, ``objectives``, ``wants_gradient``, ``wants_cheap``
    (see `designopt.solver`), and ``later_settings`` as for models.
    """

    def solve(self, problem: Any, evaluate: Any, rng: np.random.Generator, start: Any) -> str | None:
        """Search; ``evaluate(X)`` of designs (n, d) returns `designopt.problem.Outcomes`. Returns the reason for its
        end as a sentence, or None."""


class ChecksProblem(Protocol):
    """A solver whose settings must fit the problem."""

    def check(self, problem: Any) -> None:
        """Raises `InvalidSetting` for settings that do not fit the problem."""


class NeedsEvaluations(Protocol):
    """A solver that needs a minimum number of evaluations."""

    def minimum_budget(self, problem: Any) -> int:
        """The minimum number of evaluations."""


class SolvesPrograms(Protocol):
    """A solver that solves trajectory problems on the workers instead of evaluating designs."""

    def program(self, problem: Any) -> Any:
        """A `designopt.problem.Programs`, built on every worker."""


class UnitSampler(Protocol):
    """A solver whose points can also be scenarios."""

    def unit_sample(self, dimension: int, rng: np.random.Generator) -> Any:
        """Points (n, dimension) in the unit cube."""


class GivesIndices(Protocol):
    """A solver that estimates the influence of each parameter."""

    def indices(self, problem: Any, outcomes: Any) -> Any:
        """Sensitivity indices from the outcomes of the whole sample, in the order of its points."""
