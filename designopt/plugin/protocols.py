"""What the methods of models and solvers take and give. Optional methods stand in protocols of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np

    from designopt.plugin.declared import Declared
    from designopt.plugin.values import InvalidSetting

Values = Mapping[str, Any]


class Model(Protocol):
    """Evaluates one design in one scenario; a model without arrays takes no `arrays` and gives the outputs alone."""

    def evaluate(self, design: Values, scenario: Values, arrays: Set[str]) -> tuple[Values, Values]:
        """Outputs (numbers by name), and the wanted `arrays` by name.

        Raises `Diverged` where the physics has no answer, `InvalidDesign` for what is refused before computing.
        """


class Prepares(Protocol):
    """A model with work that all evaluations share: tables, compiled code."""

    def prepare(self) -> None:
        """Called once on each worker, before the first evaluation."""


class PreparesScenarios(Protocol):
    """A model with work that all designs share in one scenario; its other methods take the result as `prepared`."""

    def prepare_scenario(self, conditions: Values) -> Any:
        """What is needed once for these conditions; kept on a worker within a bound of memory."""


class ChecksSettings(Protocol):
    """A model whose settings depend on each other."""

    def check(self) -> None:
        """Raises `InvalidSetting`."""


class Declares(Protocol):
    """A model of which inputs, outputs or arrays follow from its settings."""

    def declares(self) -> Declared:
        """What its annotations do not say; asked after `check`, and the same for the same settings."""


class ChecksSpace(Protocol):
    """A model that knows which parameters it can do with."""

    def check_space(self, parameters: Mapping[str, Any]) -> Iterable[InvalidSetting] | None:
        """Mistakes in the parameters, by name `designopt.study.study.DesignVariable`; they may be raised too."""


class ChecksScenarios(Protocol):
    """A model that knows which scenarios it can do with."""

    def check_scenario(self, conditions: Values) -> Iterable[InvalidSetting] | None:
        """Mistakes in the conditions of one scenario; they may be raised too."""


class Differentiates(Protocol):
    """A model that knows the derivatives of its outputs."""

    def gradient(self, design: Values, scenario: Values) -> Mapping[str, Mapping[str, float]]:
        """``{output: {input: derivative}}`` in the model's units, after `evaluate` of the same design."""


class EvaluatesTogether(Protocol):
    """A model that computes several evaluations in one call faster than one by one."""

    #: How many it likes to compute in one call.
    batch_size: int

    def batch(
        self, designs: Sequence[Values], scenarios: Sequence[Values], arrays: Set[str]
    ) -> Sequence[tuple[Values, Values] | Exception]:
        """Row i is what `evaluate` gives, or raises, for design i in scenario i."""


class StatesTrajectory(Protocol):
    """A model whose evaluation can be stated as an optimal-control problem."""

    def trajectory_problem(self, scenario: Values) -> Any:
        """The `designopt.collocation.TrajectoryProblem` in one scenario."""


class Solver(Protocol):
    """Asks for designs and learns from their outcomes.

    What it needs and uses is said by class attributes, each with a default: ``needs_budget``, ``uses_start``,
    ``needs_objectives``, ``needs_parameters``, ``takes_designs``, ``objectives``, ``wants_gradient``, ``wants_cheap``
    (see `designopt.solver`), and ``later_settings`` as models have it.
    """

    def solve(self, problem: Any, evaluate: Any, rng: np.random.Generator, start: Any) -> str | None:
        """Search; ``evaluate(X)`` of designs (n, d) gives `designopt.problem.Outcomes`. A sentence why it ended, or
        None."""


class ChecksProblem(Protocol):
    """A solver whose settings must fit the problem."""

    def check(self, problem: Any) -> None:
        """Raises `InvalidSetting`."""


class NeedsEvaluations(Protocol):
    """A solver that cannot work below a number of evaluations."""

    def minimum_budget(self, problem: Any) -> int:
        """That number."""


class SolvesPrograms(Protocol):
    """A solver that solves trajectory problems on the workers instead of evaluating designs."""

    def program(self, problem: Any) -> Any:
        """A `designopt.problem.Programs`, built on every worker."""


class UnitSampler(Protocol):
    """A solver whose points can be scenarios too."""

    def unit_sample(self, dimension: int, rng: np.random.Generator) -> Any:
        """Points (n, dimension) in the unit cube."""


class GivesIndices(Protocol):
    """A solver that estimates how much each parameter matters."""

    def indices(self, problem: Any, outcomes: Any) -> Any:
        """Sensitivity indices from the outcomes of the whole sample, in the order in which it was asked for."""
