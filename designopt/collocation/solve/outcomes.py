"""Messages and warnings of a solve, with the names of constraints, times and variables; alternatives after a
failure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from designopt.collocation.solution.explain import KEPT, WORST, worst_violations
from designopt.collocation.solution.solution import Attempt, PhaseSolution, Solution, Status, at_limits
from designopt.collocation.statement.options import Options
from designopt.collocation.statement.problem import Phase
from designopt.collocation.statement.stated_values import ProblemError

#: Suffix of the new control that `with_rates` makes of a control.
OF_RATE = "_rate"
#: Multiple of its scale above which a variable diverges.
RUNAWAY = 1e3
#: Ratio of the ends of the range of a free duration above which it is a likely cause of a failure.
WIDE_RANGE = 10.0
#: Share of the time on a bound above which the bound may cause infeasibility.
OFTEN = 0.2
#: Multiple of the relative tolerance above which the error of the cost is reported.
LOOSE = 100.0
#: Multiple of the tolerance of its scale below which a state has fewer than three correct digits.
SEEN = 1e3


def with_message(solution: Solution, options: Options, remark: str = "") -> Solution:
    """`solution` with the message of its status, followed by the `remark` of the program, and with warnings."""
    facts = [*_facts(solution, options), *([remark] if remark else [])]
    doubts = tuple(_doubts(solution, options)) if solution.success else ()
    message = " ".join([solution.status.value, *facts])
    if message == solution.message and not doubts:
        return solution
    return replace(solution, message=message, warnings=(*solution.warnings, *doubts))


def _doubts(solution: Solution, options: Options) -> Iterator[str]:
    """Warnings about a successful solve."""
    for name, value in {**solution.terms, **solution.figures}.items():
        if not math.isfinite(value):
            yield f"invalid_figure: '{name}' is {value} at the solution"
    error, size = solution.optimisation_error, abs(solution.objective)
    if error > LOOSE * options.tolerance and error * size > (1.0 if error < 1.0 else LOOSE) * options.tolerance:
        accuracy = f"{error:.1e} of its size" if error < 1.0 else f"{error * size:.1e}"  # of a cost of zero
        yield (
            f"optimisation_error: the objective is accurate only to {accuracy}; give a scale to the variables that are"
            " badly scaled, or a smaller tolerance"
        )
    for arc in solution.singular_arcs:
        yield (
            f"singular_arc: from {arc.begin:.6g} to {arc.end:.6g} s the cost does not bend with"
            f" {', '.join(arc.controls)} of {arc.phase}: a control that is known less well there and may ring;"
            f" {against_ringing(solution.phases[arc.phase], arc.controls)}"
        )
    for phase in solution.phases.values():
        for name, limits in phase.ends.items():
            scale = solution.scales[f"{phase.name}.{name}"]
            bound = max(abs(low) if low == high else 0.0 for low, high in limits)
            if not 0.0 < bound < SEEN * options.tolerance * scale:
                continue
            largest = max(float(np.abs(phase.values[name]).max()), bound)
            if largest < SEEN * options.tolerance * scale:
                unit = f" {phase.units[name]}".rstrip()
                yield (
                    f"badly_scaled: {name} of {phase.name} stays below {largest:.2g}{unit} but is solved to"
                    f" {options.tolerance:g} of {scale:.3g}{unit}; give it bounds or a scale of its own size"
                )


def against_ringing(phase: PhaseSolution, controls: Sequence[str]) -> str:
    """Advice against oscillating controls, which may already be the rates of `with_rates`."""
    rate_controls = [n.removesuffix(OF_RATE) for n in controls if n.endswith(OF_RATE)]
    rate_controls = [name for name in rate_controls if name in phase.ends]
    ways = []
    if len(controls) > len(rate_controls):
        free_midpoints = any(scheme.has_free_midpoints for scheme in phase.mesh.schemes)
        ways += ["state midpoint_control: linear"] if free_midpoints else []
        ways.append("limit or penalise its rate (rates of the solver collocation, with_rates in Python)")
    if rate_controls:
        is_penalised = all(f"{name}{OF_RATE}_squared" in phase.integrals for name in rate_controls)
        ways.append(
            f"give the rate of {', '.join(rate_controls)} a {'larger ' if is_penalised else ''}penalty (under rates of"
            " the solver collocation, Rate in Python), or take fewer intervals"
        )
    return ", or ".join(ways)


def wide_durations(phases: Iterable[Phase]) -> str:
    """A sentence on phases with a free duration in a wide range, a likely cause of a failure; "" without any."""
    texts = []
    for phase in phases:
        if phase.t0_range is not None:
            low, high = phase.tf_range[0] - phase.t0_range[1], phase.tf_range[1] - phase.t0_range[0]
            if low < high and high > WIDE_RANGE * low:
                texts.append(f"the duration of {phase.name} is free from {max(low, 0.0):.4g} to {high:.4g} s")
    if not texts:
        return ""
    return (
        f"A likely cause: {' and '.join(texts)}. Narrow so wide a range around the expected duration, or start from a"
        " guess near it."
    )


def _facts(solution: Solution, options: Options) -> Iterator[str]:
    status = solution.status
    if status is Status.ACCEPTABLE:
        yield _residual_sentence(solution, options)
    if status in (Status.ITERATION_LIMIT, Status.TIME_LIMIT, Status.CANCELLED):
        yield _progress(solution, options)
    if status is Status.LOCALLY_INFEASIBLE:
        yield from _saturation_sentences(solution)
    if status in (Status.LOCALLY_INFEASIBLE, Status.RESTORATION_FAILED, Status.STALLED):
        yield _worst(solution)
    if status in (Status.RESTORATION_FAILED, Status.STALLED):
        yield _conditioning(solution)
    if status is Status.DIVERGING:
        yield from _growing(solution)
    badly_scaled = any(warning.startswith("badly_scaled") for warning in solution.warnings)
    if status in (Status.LOCALLY_INFEASIBLE, Status.DIVERGING) and badly_scaled:
        yield "The program is badly scaled, which may be the only cause: see the warnings."


def _residuals(solution: Solution) -> dict[str, float]:
    """Violation of constraints, gradient of the Lagrangian, complementarity: all relative to scales."""

    def last(name: str) -> float:
        trajectory = solution.history.get(name)
        return float(trajectory[-1]) if trajectory is not None and len(trajectory) else math.nan

    return {
        "constraint violation": solution.violation,
        "dual infeasibility": last("dual"),
        "complementarity": last("barrier"),
    }


def _residual_sentence(solution: Solution, options: Options) -> str:
    residuals = _residuals(solution)
    residual_texts = [f"{name} {value:.2g}" for name, value in residuals.items() if value > options.tolerance]
    if not residual_texts:  # the solver scales residuals by its own factors
        residual_texts = [
            f"{name} {residuals[name]:.2g}" for name in [max(residuals, key=lambda n: np.nan_to_num(residuals[n]))]
        ]
    return f"Above the tolerance of {options.tolerance:g}: {', '.join(residual_texts)}."


def _progress(solution: Solution, options: Options) -> str:
    residuals = ", ".join(f"{name} {value:.2g}" for name, value in _residuals(solution).items())
    feasible = solution.violation <= options.acceptable_tolerance
    hint = "Guess.from_solution continues from it in Python; in a study state more max_iterations, or starts."
    word = "feasible" if feasible else "infeasible"
    return f"After {solution.iterations} iterations the iterate is {word}: {residuals}. {hint}"


def _worst(solution: Solution) -> str:
    violations = worst_violations(solution.constraints, solution.phases)
    if not violations:
        return f"No constraint is violated by more than {KEPT:g} of its scale."
    return f"Worst constraints: {'; '.join(map(str, violations))}."


def _saturation_sentences(solution: Solution) -> Iterator[str]:
    texts = [*_parameters_at_bounds(solution), *_limits_reached(solution)]
    for phase in solution.phases.values():
        saturations = [(name, shares, phase.bounds[name]) for name, shares in phase.saturation.items()]
        saturations += [(f"path constraint '{n}'", at, phase.path_limits[n]) for n, at in phase.path_saturation.items()]
        texts += [
            f"{name} of {phase.name} is at {limit:.4g} for {100.0 * share:.0f} % of the time"
            for name, shares, limits in saturations
            for share, limit in zip(shares, limits, strict=True)
            if share >= OFTEN
        ]
        texts += _bounds_beside_violations(solution, phase)
    if texts:
        yield f"On bounds: {'; '.join(texts)}."


def _bounds_beside_violations(solution: Solution, phase: PhaseSolution) -> list[str]:
    """Variables at a bound for a short time, except at a fixed end, in a phase with one of the worst violations; the
    nearest to such a violation first, at most `WORST`."""
    violations = worst_violations(solution.constraints, solution.phases)
    worst_times = np.array([v.time for v in violations if v.phase == phase.name and math.isfinite(v.time)])
    if not len(worst_times):
        return []
    distances = np.abs(phase.times[:, None] - worst_times).min(axis=1)
    texts = []
    for name, shares in phase.saturation.items():
        limits = phase.bounds[name]
        sides = zip(("lower", "upper"), limits, shares, at_limits(phase.values[name], limits), strict=True)
        for side, limit, share, is_at in sides:
            for slot, (low, high) in zip((0, -1), phase.ends.get(name, ()), strict=False):
                is_at[slot] &= low != high
            if share < OFTEN and is_at.any():
                slot = np.flatnonzero(is_at)[distances[is_at].argmin()]
                unit = f" {phase.units[name]}".rstrip()
                text = (
                    f"{name} of {phase.name} is at its {side} bound of {limit:.4g}{unit} at {phase.times[slot]:.4g} s"
                )
                texts.append((distances[slot], text))
    return [text for _, text in sorted(texts)[:WORST]]


def _parameters_at_bounds(solution: Solution) -> Iterator[str]:
    for name, end in solution.at_bound.items():
        low, high = solution.parameter_bounds[name]
        if end in ("low", "high") and low < high:
            word, bound = ("lower", low) if end == "low" else ("upper", high)
            unit = f" {solution.parameter_units.get(name, '')}".rstrip()
            yield f"{name} is at its {word} bound of {bound:.6g}{unit}"


def _limits_reached(solution: Solution) -> Iterator[str]:
    """Constraints between ends that are at a limit."""
    constraints = solution.constraints
    for number, block in enumerate(constraints.blocks):
        for k, name in enumerate(block.names if block.kind == "ends" else ()):
            row = int(block.rows[0, k])
            value, low, high = constraints.values[row], constraints.low[row], constraints.high[row]
            limit = min((low, high), key=lambda end: abs(value - end))
            if low < high and abs(value - limit) <= KEPT * max(1.0, abs(limit)):
                unit = f" {constraints.units[number]}".rstrip()
                yield f"constraint '{name}' is at its limit of {limit:.6g}{unit}"


def _conditioning(solution: Solution) -> str:
    low, high = solution.scaling_range
    sizes = np.abs(solution.iterate.constraint_multipliers)
    sizes = sizes[np.isfinite(sizes) & (sizes > 0.0)]
    multipliers = f"{sizes.min():.2g}, the largest {sizes.max():.2g}" if len(sizes) else "not known"
    ratio = high / low if low > 0.0 else math.nan
    return f"Entries of the scaled Jacobian differ by a factor {ratio:.2g}; the smallest multiplier is {multipliers}."


def _growing(solution: Solution) -> Iterator[str]:
    sentences = []
    for phase in solution.phases.values():
        for name, limits in phase.bounds.items():
            values = phase.values[name]
            slot = int(np.abs(values).argmax())
            location = f"{name} of {phase.name} reaches {values[slot]:.3g} {phase.units[name]}".rstrip()
            scale = solution.scales.get(f"{phase.name}.{name}", 1.0)
            sentences.append(_runaway(location, float(values[slot]), scale, limits))
        for name, time in (("t0", phase.t0), ("tf", phase.tf)):
            if f"{phase.name}.{name}" in solution.scales:
                scale = solution.scales[f"{phase.name}.{name}"]
                sentences.append(
                    _runaway(f"{name} of {phase.name} reaches {time:.3g} s", time, scale, (-math.inf, math.inf))
                )
    for name, value in solution.parameters.items():
        scale = solution.scales.get(name, 1.0)
        sentences.append(_runaway(f"{name} reaches {value:.3g}", value, scale, solution.parameter_bounds[name]))
    grown = sorted((f for f in sentences if f[0] > RUNAWAY), key=lambda f: -f[0])[:5]
    if grown:
        yield f"Growing: {'; '.join(text for _, text in grown)}."
    yield f"The objective is {solution.objective:.3g}."


def _runaway(location: str, value: float, scale: float, limits: tuple[float, float]) -> tuple[float, str]:
    bound = limits[1] if value > 0.0 else limits[0]
    if math.isfinite(bound):
        return 0.0, location
    return abs(value) / scale, f"{location}, which has no {'upper' if value > 0.0 else 'lower'} bound"


#: A way is one solve or a chain of them; the last counts.
Way = Callable[[], tuple[Solution, ...]]

#: Name of the way from the same guess, by IPOPT with an adaptive barrier.
ADAPTIVE_BARRIER = "adaptive barrier"
#: Name of the way from the same guess with other scales.
SMALL_TIMES = "small scales of free times"
#: Statuses after which another way may succeed.
WORTH = frozenset(
    (
        Status.LOCALLY_INFEASIBLE,
        Status.ITERATION_LIMIT,
        Status.RESTORATION_FAILED,
        Status.STALLED,
        Status.INVALID_NUMBER,
        Status.FAILED,
    )
)
#: Limit of the iterations of all attempts: a multiple of those of the failed solve, and a minimum.
PATIENCE, MIN_ITERATIONS = 6, 1500


def first_success(failure: Solution, ways: Iterable[tuple[str, Way]]) -> Solution:
    """The solution by the first of the `ways`, by name, that succeeds; else `failure`. `Solution.attempts` records the
    attempts, and the message names the successful one. Ways that raise `ProblemError` are skipped."""
    if failure.status not in WORTH:
        return failure
    attempts = [Attempt("as stated", failure.status, failure.iterations)]
    spent = 0
    for name, way in ways:
        if spent > max(PATIENCE * failure.iterations, MIN_ITERATIONS):
            break
        try:
            chain = way()
        except ProblemError:
            continue
        solution, iterations = chain[-1], sum(attempt.iterations for attempt in chain)
        attempts.append(Attempt(name, solution.status, iterations))
        spent += iterations
        if solution.success:
            before = ", ".join(f"{a.way} ({a.status.name.lower()})" for a in attempts[:-1])
            text = f"{solution.message} It was found by attempt {len(attempts)}, {name}, after: {before}."
            return replace(solution, attempts=tuple(attempts), message=text, seed=failure.seed, starts=failure.starts)
        if solution.status is Status.CANCELLED:  # its iterate may be one of another mesh, or of other end values
            return replace(failure, status=Status.CANCELLED, attempts=tuple(attempts), message=solution.message)
    text = f"{failure.message} Other attempts failed too: {', '.join(a.way for a in attempts[1:]) or 'none'}."
    return replace(failure, attempts=tuple(attempts), message=text)
