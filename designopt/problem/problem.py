"""The problem of a study."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from designopt.arrays import Floats
from designopt.plugin import Fidelity, Use
from designopt.problem import gradients, scoring
from designopt.problem.keys import Keys, program_keys
from designopt.problem.statement import Statement
from designopt.space import Space
from designopt.study.study import StudyDefinition


@dataclass(frozen=True)
class Problem(Statement):
    """A statement, the keys of its evaluations, and the scoring of their figures."""

    @classmethod
    def from_study(cls, study: StudyDefinition) -> Problem:
        """The problem of `study`."""
        return cls(
            model=study.model,
            space=Space(study.space, study.relations),
            scenarios=study.scenarios,
            objectives=study.objectives,
            constraints=study.constraints,
            figures=dict(study.figures),
            gradients=study.model.plugin.has("gradient")
            and any(s.solver.plugin.wants_gradient(s.solver.settings) for s in study.stages),
            seed=study.seed if study.model.plugin.takes_rng else None,
            missing=study.missing,
            fidelity=_fidelity(study),
            evaluation_options=study.evaluation_options,
        )

    @cached_property
    def cheap(self) -> Problem | None:
        """The same problem with cheap evaluations; None without a `fidelity`."""
        if self.fidelity is None:
            return None
        model = Use(self.model.plugin, {**self.model.settings, **self.fidelity.settings})
        return dataclasses.replace(self, model=model, gradients=False, fidelity=None)

    @cached_property
    def without_shifts(self) -> Problem:
        """The same problem in the scenarios that evaluate a design itself, not its neighbours; these come first."""
        scenarios = tuple(s for s in self.scenarios if not s.shift)
        return self if len(scenarios) == len(self.scenarios) else dataclasses.replace(self, scenarios=scenarios)

    # ------------------------------------------------------------------------------------------------------- keys

    @cached_property
    def _keys(self) -> Keys:
        return Keys(self)

    @cached_property
    def first_occurrence(self) -> tuple[int, ...]:
        """The index of the first scenario with the same conditions, for each scenario; usually itself. The two share
        evaluations."""
        first: dict[bytes, int] = {}
        return tuple(first.setdefault(identity, s) for s, identity in enumerate(self._keys.scenarios))

    def keys(self, X: Floats) -> list[list[bytes]]:
        """Evaluation keys (16 bytes each) of designs `X` (n, d), a list over scenarios per design (see `Keys`)."""
        return self._keys.for_designs(X)

    program_keys = program_keys

    # ----------------------------------------------------------------------------------------------------- scores

    judge = scoring.judge
    limited = scoring.limited_values
    constraint_values = scoring.constraint_values
    objective_gradients = gradients.objective_gradients
    constraint_gradients = gradients.constraint_gradients
    residuals = gradients.residuals
    residual_gradients = gradients.residual_gradients


def _fidelity(study: StudyDefinition) -> Fidelity | None:
    """The model's fidelity, if a solver learns from cheap evaluations and those of the study cost more: the settings
    that it makes cheaper than the study's."""
    fidelity, plugin = study.model.plugin.fidelity, study.model.plugin
    if fidelity is None or not any(s.solver.plugin.wants_cheap(s.solver.settings) for s in study.stages):
        return None
    defaults = {name: setting.default for name, setting in plugin.settings.items()}
    cheaper = {
        name: value
        for name, value in fidelity.settings.items()
        if _is_cheaper(value, study.model.settings.get(name), defaults.get(name))
    }
    return dataclasses.replace(fidelity, settings=cheaper) if cheaper else None


def _is_cheaper(cheap: Any, value: Any, default: Any) -> bool:
    """Whether the setting `cheap` costs less than the study's `value`: it differs, and among numbers it is less than
    `value` if it is less than another `default`, else greater."""
    numbers = all(isinstance(number, int | float) for number in (cheap, value, default))
    if numbers and default != cheap:
        return bool(value != cheap and (value > cheap) == (default > cheap))
    return bool(value != cheap)


def figure_unit(problem: Problem, name: str) -> str:
    """Unit of an output of the model, or of a figure computed by an objective plugin."""
    if name in problem.figures:
        return problem.figures[name].plugin.unit
    output = problem.model.plugin.outputs.get(name)
    return output.quantity.unit if output is not None and output.quantity is not None else ""


def figure_meaning(problem: Problem, name: str) -> str:
    """The meaning of a figure from the plugin that computes it; "" if not declared."""
    if name in problem.figures:
        return problem.figures[name].plugin.description.partition("\n")[0]
    output = problem.model.plugin.outputs.get(name)
    return output.quantity.description if output is not None and output.quantity is not None else ""
