"""Maxima along a phase as figures: a variable that path constraints keep above every value."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from designopt.collocation.statement.added.augmented import augment
from designopt.collocation.statement.problem import Phase, TrajectoryProblem
from designopt.collocation.statement.stated_values import ProblemError
from designopt.collocation.statement.symbols import Ends
from designopt.collocation.statement.terms import Constraint, Peak
from designopt.dynamics.variable import Variable


def with_peaks(
    problem: TrajectoryProblem, names: Iterable[str], sizes: Mapping[str, float] | None = None
) -> TrajectoryProblem:
    """`problem` with some of its `peaks` among its figures, for use in costs and constraints.

    A peak is a constant state ``largest_<name>`` (``smallest_<name>``) that path constraints keep beyond the value at
    all its points. It equals the peak if a cost or an active limit pushes it there, and lies beyond it otherwise:
    `peak_values` reads the peaks of a solution. `sizes` are approximate magnitudes, for scales; 1 by default. Raises
    `ProblemError` (bad_statement) for unknown peaks and names already in use.
    """
    sizes = sizes or {}
    peaks = {}
    phases = {phase.name: phase for phase in problem.phases}
    for name in names:
        peak = problem.peaks.get(name)
        if peak is None or peak.phase not in phases:
            peak_names = ", ".join(problem.peaks) or "none"
            raise ProblemError(
                "bad_statement", f"peaks.{name}", f"there is no such peak of a phase; known: {peak_names}"
            )
        state = f"{'smallest' if peak.extremum == 'smallest' else 'largest'}_{name}"
        peaks[name] = replace(peak, state=state)
        phases[peak.phase] = _phase(phases[peak.phase], name, peaks[name], sizes.get(name, 1.0))
    if names_twice := [name for name in peaks if name in problem.figures]:
        raise ProblemError("bad_statement", f"peaks.{names_twice[0]}", "is also the name of a figure: rename it")
    figures = {name: _Level(peak.phase, peak.state) for name, peak in peaks.items()}
    return replace(problem, phases=list(phases.values()), figures={**problem.figures, **figures}, peaks=peaks)


@dataclass(frozen=True)
class _Level:
    """A peak as a function of the ends."""

    phase: str
    state: str

    def __call__(self, e: Ends) -> Any:
        return e.phase[self.phase].initial[self.state]


@dataclass(frozen=True)
class _DistanceToPeak:
    """The distance of a value from its peak."""

    value: Callable[[Any], Any]
    state: str
    sign: float

    def __call__(self, v: Any) -> Any:
        room = v[self.state] - self.sign * self.value(v)
        return -room if self.state.startswith("smallest") else room


def path_rows(peak: Peak) -> dict[str, float]:
    """The path constraints of a peak, with the sign of the value in them."""
    return {peak.state: 1.0, f"{peak.state} of the other sign": -1.0} if peak.extremum == "size" else {peak.state: 1.0}


def _phase(phase: Phase, name: str, peak: Peak, size: float) -> Phase:
    """`phase` with a constant state beyond the values of `peak`."""
    system = phase.system
    tables = (system.states, system.controls, system.algebraic, system.parameters, system.data, system.outputs)
    rows = path_rows(peak)
    if peak.state in {v.name for table in tables for v in table} or set(rows) & {*phase.path, *phase.samples}:
        text = f"'{peak.state}' is the name of this peak: rename the variable or the path constraint"
        raise ProblemError("bad_statement", f"peaks.{name}", text)
    low = 0.0 if peak.extremum == "size" else -math.inf
    limits = {
        label: Constraint(_DistanceToPeak(peak.value, peak.state, sign), 0.0, unit=peak.unit, at=peak.at)
        for label, sign in rows.items()
    }
    level = Variable(peak.state, peak.unit, low, description=f"the peak {name}")
    first = -size if peak.extremum == "smallest" else size
    return replace(
        phase,
        system=augment(system, [level], system.controls, lambda x, u: (x[:-1], u, 0.0)),
        path={**phase.path, **({} if peak.at else limits)},
        samples={**phase.samples, **(limits if peak.at else {})},
        guess={**phase.guess, peak.state: (first, first)},
    )
