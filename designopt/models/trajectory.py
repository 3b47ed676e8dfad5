"""The trajectory problem of a declared model: its motion and its parameters in one program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from designopt.collocation import Constraint, Integral, Peak, Phase, Samples, TrajectoryProblem
from designopt.dynamics.expressions import column
from designopt.models import quantities
from designopt.models.equations import Equations
from designopt.models.quantities import Final, Parameter, State


def trajectory_problem(
    equations: Equations, numbers: Mapping[str, float], cost: str, samples: int
) -> TrajectoryProblem:
    """Minimise the figure `cost` over the parameters, for the conditions and settings `numbers`.

    The figures of the problem are the integrals and final values, and on request the peaks, at as many `samples` as a
    simulation has; events are not available.
    """
    system, states = equations.system(), equations.names(State)
    constants = [numbers[n] for n in equations.constants()]
    initial: dict[str, float] = {}
    follows: dict[str, Constraint] = {}
    for n in states:
        start = equations.quantities[n].initial  # type: ignore[attr-defined]
        if isinstance(equations.quantities.get(start), Parameter):
            follows[f"initial {n}"] = Constraint(_follows(n, start), 0.0, 0.0)
        else:
            initial[n] = float(numbers[start] if isinstance(start, str) else start)

    def figure(name: str) -> Callable[[Any], Any]:
        if not isinstance(equations.quantities[name], Final):
            return lambda e: e.integral[name]
        function = equations.function([name])

        def value(e: Any) -> Any:
            end_values = [
                e.final[n] if n in states else e.integral[n] for n in equations.names(State, quantities.Integral)
            ]
            unknowns = [e.final[n] for n in equations.names(quantities.Unknown)] if function.numel_in(1) else []
            p = [e[n] for n in equations.names(Parameter)]
            return function(*(column(entries) for entries in (end_values, unknowns, p)), constants, e.tf)

        return value

    def integrand(name: str) -> Callable[[Any], Any]:
        function = equations.function([name])

        def value(v: Any) -> Any:
            rates = [v[n] for n in states] + [0.0] * len(equations.names(quantities.Integral))
            unknowns_and_parameters = (
                [v[n] for n in equations.names(kind)] for kind in (quantities.Unknown, Parameter)
            )
            constants = [v[n] if n in equations.used() else numbers[n] for n in equations.constants()]
            return function(*(column(entries) for entries in (rates, *unknowns_and_parameters, constants)), v.time)

        return value

    figures = {n: figure(n) for n in equations.names(quantities.Integral, Final)}
    phase = Phase(
        system,
        tf=numbers["duration"],
        initial=initial,
        integrals={
            n: Integral(integrand(n), unit=equations.quantities[n].unit) for n in equations.names(quantities.Integral)
        },
        data={n: numbers[n] for n in equations.used()},
    )
    at = Samples(np.linspace(0.0, 1.0, samples), of_duration=True)
    peaks = {n: _peak(equations.quantities[n], integrand(n), at) for n in equations.names(quantities.Peak)}
    return TrajectoryProblem([phase], cost=figures[cost], constraints=follows, figures=figures, peaks=peaks)


def _peak(peak: Any, value: Callable[[Any], Any], samples: Samples) -> Peak:
    return Peak(value, peak.extremum, peak.unit, at=samples)


def _follows(state: str, parameter: str) -> Callable[[Any], Any]:
    return lambda e: e.initial[state] - e[parameter]
