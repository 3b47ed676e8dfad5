"""Settings for the controls of a program: limits and costs of rates, piecewise constant controls."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from designopt.collocation import ProblemError, Rate, Solution, TrajectoryProblem, with_rates
from designopt.plugin import InvalidSetting, Quantity, closest


@dataclass(frozen=True)
class RateLimits:
    """Limits and weight of the rate of a control, in the control's unit per second."""

    low: Annotated[float, Quantity("", "of the rate, in the control's unit per second")] = -math.inf
    high: Annotated[float, Quantity("", "of the rate, in the control's unit per second")] = math.inf
    penalty: Annotated[
        float, Quantity("", "weight of the integral of the squared rate, in the unit of the objective", ge=0)
    ] = 0.0


@dataclass(frozen=True)
class Controls:
    """`rates` by the name of a control; `held` gives the number of equal pieces on which a control is constant.

    A control with a rate becomes a state; its rate is the new control ``<name>_rate``. If this rate is held, the
    original control is linear on every piece.
    """

    rates: Mapping[str, Rate] = field(default_factory=dict)
    pieces: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def from_settings(cls, rates: Mapping[str, Any], pieces: Mapping[str, int]) -> Controls:
        """The controls that the settings of the solver state. Raises `InvalidSetting` for contradictory limits."""
        limits = {}
        for name, setting in rates.items():
            try:
                limits[name] = Rate(**(setting if isinstance(setting, Mapping) else vars(setting)))
            except ValueError as error:
                raise InvalidSetting(f"rates.{name}", str(error)) from error
        return cls(limits, dict(pieces))

    def __bool__(self) -> bool:
        return bool(self.rates or self.pieces)

    def apply(self, problem: TrajectoryProblem, scenarios: int) -> TrajectoryProblem:
        """`problem`, with phases for that many scenarios, with these controls in all phases that contain them.

        The cost includes the mean over the scenarios of the
        cost of rates. Raises `InvalidSetting` for names that are not controls.
        """
        if self.rates:
            rates = {name: replace(rate, penalty=rate.penalty / scenarios) for name, rate in self.rates.items()}
            _check("rates", self.rates, problem)
            try:
                problem = with_rates(problem, rates)
            except ProblemError as error:
                raise InvalidSetting("rates", str(error)) from error
        if not self.pieces:
            return problem
        _check("held", self.pieces, problem)
        phases = []
        for phase in problem.phases:
            names = {v.name for v in phase.system.controls}
            phases.append(
                replace(
                    phase, held_controls={**phase.held_controls, **{n: k for n, k in self.pieces.items() if n in names}}
                )
            )
        return replace(problem, phases=phases)

    def penalty(self, solution: Solution, scenarios: int) -> float:
        """The cost of rates in a solution."""
        return sum(self._penalties(solution)) / scenarios

    def _penalties(self, solution: Solution) -> Iterator[float]:
        for name, rate in self.rates.items():
            for phase in solution.phases.values():
                yield rate.penalty * phase.integrals.get(f"{name}_rate_squared", 0.0)


def _check(setting: str, settings: Mapping[str, Any], problem: TrajectoryProblem) -> None:
    control_names = list(dict.fromkeys(v.name for phase in problem.phases for v in phase.system.controls))
    for name in settings:
        if name not in control_names:
            near = closest(name, control_names)
            hint = f"; did you mean '{near}'?" if near else ""
            text = f"the trajectory problem has no such control{hint} (it has {', '.join(control_names) or 'none'})"
            raise InvalidSetting(f"{setting}.{name}", text)


#: Controls as the model declares them.
AS_STATED = Controls()
