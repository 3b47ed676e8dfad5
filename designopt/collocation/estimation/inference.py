"""Accuracy of estimates from measurements: confidence intervals, goodness of fit, identifiability."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.collocation.estimation.fitting import (
    MISFIT,
    MeasurementResiduals,
    is_measured,
    measured_guess,
    measured_phases,
    with_measurements,
)
from designopt.collocation.estimation.information import Information, information
from designopt.collocation.estimation.measurements import Measurements
from designopt.collocation.estimation.result import ConfidenceInterval, Estimate, Fit
from designopt.collocation.postoptimal.kkt import ActiveSet, Kkt, active_set
from designopt.collocation.postoptimal.sensitivities import at_optimum
from designopt.collocation.solution.reading import Reader
from designopt.collocation.solution.solution import Solution
from designopt.collocation.solve.solve import solve
from designopt.collocation.statement.guess import Guess
from designopt.collocation.statement.options import Options
from designopt.collocation.statement.problem import TrajectoryProblem
from designopt.collocation.statement.stated_values import ProblemError
from designopt.collocation.statement.symbols import Ends
from designopt.collocation.transcription.boxes import ProgramBounds
from designopt.collocation.transcription.functions.samples import SamplePoint, numeric_arguments
from designopt.collocation.transcription.transcription import Transcription
from designopt.lazy import scipy

#: An unknown with a larger relative change along an undetermined direction is undetermined.
FREE = 1e-6
#: Smallest component of a combination that messages name, relative to its largest.
SMALL = 0.02
#: Relative difference below which the cost equals the misfit.
SAME = 1e-9


class FitError(ProblemError):
    """A fit has failed; ``Guess.from_solution(error.solution)`` continues from its `solution`, the last iterate."""

    def __init__(self, solution: Solution) -> None:
        super().__init__(
            "bad_guess",
            "guess",
            f"a solve from it does not find the fit again ({solution.status.name}): {solution.message}",
        )
        self.solution = solution


def estimate(
    problem: TrajectoryProblem,
    measurements: Measurements | Mapping[str, Measurements],
    options: Options | None = None,
    guess: Guess | None = None,
    *,
    prior: Callable[[Ends], Any] | None = None,
    level: float = 0.95,
) -> Estimate:
    """Fit the free parameters, end values and controls of `problem` to `measurements` trajectories by weighted least
    squares.

    The default guess follows the measurements. Raises `ProblemError` for missing columns, `FitError` if the solve
    fails.
    """
    _check_level(level)
    fitted_problem = with_measurements(problem, measurements, prior)
    solution = solve(fitted_problem, options, guess or measured_guess(fitted_problem))
    if not solution.success:
        raise FitError(solution)
    return inference(fitted_problem, solution, level=level, options=options)


def inference(
    problem: TrajectoryProblem, solution: Solution, *, level: float = 0.95, options: Options | None = None
) -> Estimate:
    """Confidence intervals, goodness and identifiability of a fit `solution` of a `problem` `with_measurements`.

    First-order approximation with the Gauss-Newton information of the residuals (independent normal errors with the
    given standard deviations). With a prior, or another cost besides the misfit, the covariance contains the effect of
    the measurement errors on the optimum, but not its bias. Raises `ProblemError` for a problem without measurements,
    `ValueError` for a level that is not between 0 and 1.
    """
    _check_level(level)
    if not is_measured(problem):
        raise ProblemError("bad_statement", "problem", "has no measurements: add them with `with_measurements`")
    transcription, bounds, optimum, doubts = at_optimum(problem, solution, options)
    rows = np.asarray(transcription.constraints(optimum.iterate.x, bounds.parameters), float).ravel()
    kkt = Kkt(transcription, bounds, optimum.iterate, active_set(transcription, bounds, optimum.iterate, rows))
    x = transcription.shift + transcription.scale * optimum.iterate.x
    parts = [_residuals(transcription, bounds, i, names, x) for i, _, names, _ in measured_phases(problem)]
    jacobian = scipy.sparse.vstack([part for part, _ in parts]).tocsr()
    values = np.concatenate([value for _, value in parts])
    jacobian = jacobian[_weight_mask(problem)]
    fisher = information(kkt, jacobian, np.array(list(_unknowns(problem, transcription).values()), np.int64))
    if not kkt.independent:
        doubts.append("the active constraints are not independent: there are no intervals")
    elif fisher is None:
        doubts.append("there are too many unknown inputs to tell which are determined")
    root = _root(transcription, kkt, jacobian, fisher, pure=_is_misfit(problem, transcription, bounds, x))
    if root is None:
        doubts.append("the cost does not determine all variables: there are no intervals")
        root = np.full((len(x), 1), np.nan)
    fit = _SolvedFit(problem, transcription, bounds, optimum, kkt.active, fisher)
    return _inference(fit, root, values, level, doubts)


def _check_level(level: float) -> None:
    if not isinstance(level, Real) or not 0.0 < level < 1.0:
        raise ValueError(f"level is {level!r}, not between 0 and 1")


def _weight_mask(problem: TrajectoryProblem) -> Any:
    """Mask (all,) of the residuals of measured values."""
    masks = []
    for _, _, residuals, samples in measured_phases(problem):
        weights = [np.broadcast_to(samples.data[f"weight {n}"], samples.times.shape) for n in residuals.names]
        masks.append(np.stack(weights, axis=1).ravel() > 0.0)
    return np.concatenate(masks)


def _residuals(
    transcription: Transcription,
    bounds: ProgramBounds,
    i: int,
    residuals: MeasurementResiduals,
    x: Floats,
) -> tuple[Any, Floats]:
    """The Jacobian (n k, N) of the residuals of a phase with respect to all scaled variables, sample by sample, and
    their values."""
    index, sample = next(
        (j, s) for j, s in enumerate(transcription.problem_functions.samples) if (s.phase, s.name) == (i, MISFIT)
    )
    phase_layout = transcription.layout.samples[index]
    point = transcription.problem_functions.points[i]
    column = _ResidualPoint(sample, residuals, point)
    theta = transcription.layout.phases[i].theta
    constants = bounds.parameters[transcription.layout.phases[i].constants : transcription.layout.phases[i].signals]
    arguments = numeric_arguments(sample, phase_layout, x, x[theta], constants, bounds.parameters)
    function, of_row, variable = column.jacobian
    numbers = np.asarray(function.map(phase_layout.count)(*arguments), float).reshape(-1, phase_layout.count).T.ravel()
    values = np.asarray(column.values.map(phase_layout.count)(*arguments), float).T.ravel()
    samples = np.repeat(np.arange(phase_layout.count), len(of_row))
    each, entry = phase_layout.joined(samples, np.tile(variable, phase_layout.count), sample.nw + len(theta))
    rows = samples * column.size + np.tile(of_row, phase_layout.count)
    columns = phase_layout.columns[entry]
    entries = numbers[each] * phase_layout.weights[entry] * transcription.scale[columns]
    shape = (phase_layout.count * column.size, transcription.layout.size)
    return scipy.sparse.csr_matrix((entries, (rows[each], columns)), shape=shape), values


class _ResidualPoint(SamplePoint):
    """The residuals of a sample as a column, instead of their sum of squares."""

    def __init__(self, sample: SamplePoint, residuals: MeasurementResiduals, point: Any) -> None:
        super().__init__(sample.phase, point, sample.kind, sample.name, sample.number)
        self.value = residuals(self.symbols)


def _unknowns(problem: TrajectoryProblem, transcription: Transcription) -> dict[str, int]:
    """Parameters, free times and initial states by name, with their indices among the variables."""
    index_of = dict(transcription.layout.parameters)
    for phase, phase_layout, point in zip(
        problem.phases, transcription.layout.phases, transcription.problem_functions.points, strict=True
    ):
        for name, k in phase_layout.times.items():
            if k not in index_of.values():
                index_of[f"{phase.name}.{name}"] = k
        index_of.update(
            {f"{phase.name}.initial.{n}": int(k) for n, k in zip(point.names, phase_layout.states[0], strict=False)}
        )
    return index_of


def _is_misfit(problem: TrajectoryProblem, transcription: Transcription, bounds: ProgramBounds, x: Floats) -> bool:
    """Whether the cost is a multiple of the misfit alone, tested at the optimum and near it."""
    reader = Reader(transcription.problem_functions, transcription.layout)
    ratios = []
    for at in (x, x + 1e-3 * transcription.scale * np.random.default_rng(0).standard_normal(len(x))):
        values = [reader.phase(i, at, bounds.parameters) for i in range(len(problem.phases))]
        misfit = 0.0
        for i, phase, _, _ in measured_phases(problem):
            misfit += values[i].integrals[list(phase.integrals).index(MISFIT)]
        ratios.append((reader.figures(values, at)[0], misfit))
    (a, b), (c, d) = ratios
    return abs(a * d - c * b) <= SAME * max(abs(a * d), abs(c * b), 1e-300)


def _root(
    transcription: Transcription, kkt: Kkt, jacobian: Any, information: Information | None, *, pure: bool
) -> Floats | None:
    """A matrix (n, r) whose product with its transpose is the covariance of all scaled variables."""
    if pure:
        return None if information is None else information.root
    if kkt.factor is None:
        return None
    size = len(kkt.active.free)
    gradient = -2.0 * transcription.cost_scale * jacobian.T.toarray()
    count = gradient.shape[1]
    changes, _ = kkt.changes(gradient, np.zeros((len(kkt.active.rows), count)), np.zeros((size, count)))
    return changes


@dataclass(frozen=True, eq=False)
class _SolvedFit:
    """A solved fit: its program, its optimum, and what the measurements tell."""

    problem: TrajectoryProblem
    transcription: Transcription
    bounds: ProgramBounds
    solution: Solution
    active: ActiveSet
    information: Information | None


def _inference(fit: _SolvedFit, root: Floats, residuals: Floats, level: float, doubts: list[str]) -> Estimate:
    """The estimate with the `root` (n, r) of the covariance of all scaled variables."""
    problem, transcription, bounds, solution = fit.problem, fit.transcription, fit.bounds, fit.solution
    information = fit.information
    x = transcription.shift + transcription.scale * solution.iterate.x
    count = int(_weight_mask(problem).sum())
    chi_squared = float(residuals @ residuals)
    dimension, rank = (information.dimension, information.rank) if information else (0, 0)
    quantile = float(scipy.stats.norm.ppf(0.5 + 0.5 * level))
    deviations = transcription.scale * np.linalg.norm(root, axis=1)
    indices, units = _unknowns(problem, transcription), _units(problem)
    free = {name: k for name, k in indices.items() if fit.active.free[k]}
    lost = _undetermined_unknowns(transcription, information, x, free)
    unknowns = {}
    for name, k in indices.items():
        value, deviation = float(x[k]), math.inf if name in lost else float(deviations[k])
        if name in free:
            half = quantile * deviation
            unknowns[name] = ConfidenceInterval(value, deviation, value - half, value + half, units[name])
        elif bounds.low[k] < bounds.high[k]:
            unknowns[name] = ConfidenceInterval(value, 0.0, value, value, units[name], at_bound=True)
    rows = transcription.scale[list(free.values())][:, None] * root[list(free.values())]
    covariance = rows @ rows.T
    for j, name in enumerate(free):
        if name in lost:
            covariance[j], covariance[:, j] = np.nan, np.nan
            covariance[j, j] = np.inf
    weakest, condition = _weakest(transcription, x, free, covariance)
    null = information.null.T if information else np.empty((0, len(x)))
    return Estimate(
        solution=solution,
        level=level,
        unknowns=unknowns,
        names=tuple(free),
        covariance=covariance,
        chi_squared=chi_squared,
        count=count,
        degrees_of_freedom=count - rank,
        p_value=float(scipy.stats.chi2.sf(chi_squared, count - rank)) if count > rank else math.nan,
        dimension=dimension,
        rank=rank,
        condition=condition,
        undetermined=tuple(dict.fromkeys(_words(transcription, x, free, direction) for direction in null)),
        weakest=weakest,
        fits=dict(_fits(problem, transcription, residuals, deviations)),
        doubts=tuple(doubts),
    )


def _units(problem: TrajectoryProblem) -> dict[str, str]:
    """Units of all possible unknowns."""
    unit_of = {v.name: v.unit for v in problem.variables}
    for phase in problem.phases:
        unit_of |= {f"{phase.name}.t0": "s", f"{phase.name}.tf": "s"}
        unit_of |= {f"{phase.name}.initial.{v.name}": v.unit for v in phase.system.states}
    return unit_of


def _sizes(transcription: Transcription, x: Floats, free: Mapping[str, int]) -> Floats:
    """Reference sizes (k,) of the unknowns: their values, or their scales if these are near zero."""
    indices = list(free.values())
    scale = transcription.scale[indices]
    return np.where(np.abs(x[indices]) > 1e-3 * scale, np.abs(x[indices]), scale)


def _relative_changes(transcription: Transcription, x: Floats, free: Mapping[str, int], direction: Floats) -> Floats:
    """Relative changes (k,) of the unknowns along a direction of the scaled variables."""
    indices = list(free.values())
    return np.asarray(transcription.scale[indices] * direction[indices] / _sizes(transcription, x, free))


def _weakest(transcription: Transcription, x: Floats, free: Mapping[str, int], covariance: Floats) -> tuple[str, float]:
    """One standard deviation along the least determined combination of unknowns, in words, and its ratio to that of the
    best determined one, all relative to the values."""
    size = _sizes(transcription, x, free)
    with_variance = np.flatnonzero(np.isfinite(covariance.diagonal()))
    if not len(with_variance):
        return "", math.nan
    values, vectors = np.linalg.eigh(
        covariance[np.ix_(with_variance, with_variance)] / np.outer(size[with_variance], size[with_variance])
    )
    deviation = 100.0 * math.sqrt(max(values[-1], 0.0)) * vectors[:, -1]
    deviation = deviation * np.sign(deviation[np.abs(deviation).argmax()])
    names, largest = list(free), float(np.abs(deviation).max())
    parts = [
        f"{names[k]} {_in_percent(d)}"
        for k, d in zip(with_variance, deviation.tolist(), strict=True)
        if abs(d) > SMALL * largest
    ]
    ratio = math.sqrt(values[-1] / values[0]) if values[0] > 0.0 else math.inf
    return ", ".join(parts), ratio if len(with_variance) == len(free) else math.inf


def _undetermined_unknowns(
    transcription: Transcription, information: Information | None, x: Floats, free: Mapping[str, int]
) -> set[str]:
    """The unknowns that change along the undetermined directions."""
    if information is None or not information.null.shape[1] or not free:
        return set()
    shares = np.abs(
        np.array([_relative_changes(transcription, x, free, direction) for direction in information.null.T])
    ).max(axis=0)
    return {name for name, size in zip(free, shares, strict=True) if size > FREE * max(1.0, shares.max())}


def _words(transcription: Transcription, x: Floats, free: Mapping[str, int], direction: Floats) -> str:
    """A combination of unknowns in words, scaled to a largest change of one percent."""
    change = _relative_changes(transcription, x, free, direction)
    largest = float(np.abs(change).max(initial=0.0))
    if largest <= FREE * float(np.abs(direction).max(initial=0.0)):
        return "unknown inputs alone"
    change = change / change[np.abs(change).argmax()]
    return ", ".join(f"{n} {_in_percent(c)}" for n, c in zip(free, change.tolist(), strict=True) if abs(c) > SMALL)


def _fits(
    problem: TrajectoryProblem, transcription: Transcription, residuals: Floats, deviations: Floats
) -> Iterator[tuple[str, Fit]]:
    begin = 0
    for i, phase, measurements, samples in measured_phases(problem):
        n, names = len(samples.times), measurements.names
        phase_residuals = residuals[begin : begin + n * len(names)].reshape(n, len(names))
        begin += phase_residuals.size
        measured_values, fit_values, sigma, standard_residuals = {}, {}, {}, {}
        for j, name in enumerate(names):
            weight = np.broadcast_to(samples.data[f"weight {name}"], (n,))
            is_measured = weight > 0.0
            with np.errstate(divide="ignore"):
                sigma[name] = np.where(is_measured, 1.0 / weight, np.nan)
            measured_values[name] = np.where(is_measured, samples.data[f"measured {name}"], np.nan)
            standard_residuals[name] = np.where(is_measured, phase_residuals[:, j], np.nan)
            fit_values[name] = measured_values[name] + standard_residuals[name] * sigma[name]
        layout, point = transcription.layout.phases[i], transcription.problem_functions.points[i]
        at_points = deviations[layout.point]
        bands = {
            v: np.concatenate([at_points[: layout.mesh.first, j], at_points[:, j]]) for j, v in enumerate(point.names)
        }
        bands |= {v: deviations[layout.states[:, j]] for j, v in enumerate(point.names[: point.nx])}
        yield phase.name, Fit(samples.times, measured_values, fit_values, sigma, standard_residuals, bands)


def _in_percent(change: float) -> str:
    """``+330 %``: two significant digits without an exponent, as long as they are readable."""
    return f"{float(f'{change:.2g}'):+g} %"
