"""Trajectory problems whose cost is the distance from measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.collocation.estimation.measurements import Measurements
from designopt.collocation.statement.guess import Guess, SampledTrajectory
from designopt.collocation.statement.problem import Phase, TrajectoryProblem
from designopt.collocation.statement.stated_values import ProblemError, check_names
from designopt.collocation.statement.symbols import Ends, Symbols
from designopt.collocation.statement.terms import Integral, Samples
from designopt.lazy import casadi as ca

#: Names of the sum of squared residuals of a phase, and of the total sum.
MISFIT, CHI_SQUARED = "misfit", "chi_squared"


@dataclass(frozen=True)
class MeasurementResiduals:
    """Residuals of the measured variables `names` at a sample, in units of their standard deviations; zero without a
    value."""

    names: tuple[str, ...]

    def __call__(self, v: Symbols) -> Any:
        return ca.vertcat(*(v[f"weight {n}"] * (v[n] - v[f"measured {n}"]) for n in self.names))


@dataclass(frozen=True)
class Misfit:
    """The sum of squared `residuals` of a sample."""

    residuals: MeasurementResiduals

    def __call__(self, v: Symbols) -> Any:
        return ca.sumsqr(self.residuals(v))


@dataclass(frozen=True)
class ChiSquared:
    """The sum of all squared residuals of the `phases`, plus a `prior`."""

    phases: tuple[str, ...]
    prior: Callable[[Ends], Any] | None = None

    def __call__(self, e: Ends) -> Any:
        misfit = sum(e.phase[name].integral[MISFIT] for name in self.phases)
        return misfit if self.prior is None else misfit + self.prior(e)


def with_measurements(
    problem: TrajectoryProblem,
    measurements: Measurements | Mapping[str, Measurements],
    prior: Callable[[Ends], Any] | None = None,
) -> TrajectoryProblem:
    """`problem` with the sum of squared residuals of `measurements` (of its only phase, or by phase) as its cost.

    Residuals are in units of the standard deviations, so that the cost is chi squared. A `prior`, a function of the
    ends, is added to it: prior knowledge of parameters, a penalty on unknown inputs. The cost of `problem` is dropped.
    Free parameters, end values and controls are estimated. The figure "chi_squared" is the sum. Several experiments are
    several phases with shared parameters. Raises `ProblemError` for columns that a phase does not have.
    """
    tables = _by_phase(problem, measurements)
    phases = [_phase(phase, tables[phase.name]) if phase.name in tables else phase for phase in problem.phases]
    chi_squared = ChiSquared(tuple(tables))
    return replace(
        problem,
        phases=phases,
        cost=ChiSquared(tuple(tables), prior),
        figures={**problem.figures, CHI_SQUARED: chi_squared},
    )


def _by_phase(
    problem: TrajectoryProblem, measurements: Measurements | Mapping[str, Measurements]
) -> dict[str, Measurements]:
    names = [phase.name for phase in problem.phases]
    if isinstance(measurements, Measurements):
        if len(names) != 1:
            text = f"there are several phases: give measurements by phase, of {', '.join(names)}"
            raise ProblemError("bad_statement", "measured", text)
        return {names[0]: measurements}
    if not measurements:
        raise ProblemError("bad_statement", "measured", "there are none: give those of at least one phase")
    check_names("measured", measurements, names, "phase", "bad_statement")
    return {name: measurements[name] for name in names if name in measurements}


def _units(phase: Phase) -> dict[str, str]:
    """Units of all measurable variables."""
    system = phase.system
    form = system.residual_form
    tables = (system.states, system.controls, system.algebraic, form.unknowns if form else (), system.outputs)
    return {v.name: v.unit for table in tables for v in table}


def _phase(phase: Phase, measurements: Measurements) -> Phase:
    units = _units(phase)
    data: dict[str, Floats] = {}
    check_names(f"{phase.name}: measured", measurements.values, units, "variable or output", "bad_statement")
    for name in measurements.values:
        try:
            values, sigma = measurements.converted(name, units[name])
        except ValueError as error:
            raise ProblemError("bad_statement", f"{phase.name}: measured.{name}", str(error)) from error
        is_measured = np.isfinite(values)
        data[f"measured {name}"] = np.where(is_measured, values, 0.0)
        data[f"weight {name}"] = np.where(is_measured, 1.0 / np.where(is_measured, sigma, 1.0), 0.0)
    if MISFIT in phase.integrals:
        raise ProblemError(
            "bad_statement", f"{phase.name}: integrals.{MISFIT}", "is added by the measurements: rename it"
        )
    misfit = Integral(Misfit(MeasurementResiduals(tuple(measurements.values))), at=Samples(measurements.times, data))
    return replace(phase, integrals={**phase.integrals, MISFIT: misfit})


def measured_phases(problem: TrajectoryProblem) -> Iterator[tuple[int, Phase, MeasurementResiduals, Samples]]:
    """The phases of `problem` with measurements: numbers, residuals and samples."""
    for i, phase in enumerate(problem.phases):
        integral = phase.integrals.get(MISFIT)
        if integral is not None and integral.at is not None and isinstance(integral.value, Misfit):
            yield i, phase, integral.value.residuals, integral.at


def is_measured(problem: TrajectoryProblem) -> bool:
    """Whether `problem` has measurements."""
    return next(measured_phases(problem), None) is not None


def measured_guess(problem: TrajectoryProblem) -> Guess:
    """A guess that follows the measurements, linear between the times."""
    phases = {}
    for _, phase, residuals, samples in measured_phases(problem):
        if not isinstance(phase.tf, float) or not isinstance(phase.t0, float):
            continue
        variable_names = {v.name for v in (*phase.system.states, *phase.system.controls, *phase.system.algebraic)}
        fractions = np.linspace(0.0, 1.0, 201)
        times = phase.t0 + fractions * (phase.tf - phase.t0)
        values = {}
        for name in residuals.names:
            has_weight = np.broadcast_to(samples.data[f"weight {name}"] > 0.0, samples.times.shape)
            if name in variable_names:
                order = np.argsort(samples.times[has_weight], kind="stable")
                measured_values = np.broadcast_to(samples.data[f"measured {name}"], samples.times.shape)[has_weight][
                    order
                ]
                values[name] = np.interp(times, samples.times[has_weight][order], measured_values)
        phases[phase.name] = SampledTrajectory(fractions, values, phase.t0, phase.tf)
    return Guess(dict(phases))
