"""A solve from a smooth control, after one that ended with pulses of single intervals in a control.

A control that is free at every point of a mesh may take at each point either of two values that are both stationary
(two headings, two configurations): every choice is a local optimum of the program. With a penalty on the rates of
controls most of these optima do not exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from designopt.collocation.solution.solution import PhaseSolution, Solution, Status
from designopt.collocation.solution.verification.between_points import has_pulses
from designopt.collocation.solve.program import Program
from designopt.collocation.statement.added.rates import Rate, with_rates
from designopt.collocation.statement.guess import Guess, SampledTrajectory
from designopt.collocation.statement.problem import TrajectoryProblem
from designopt.collocation.statement.stated_values import ProblemError

#: Cost, as a share of the size of the objective, of a control that crosses its range once in the duration of its phase:
#: in turn, each from the best solution before.
PENALTIES = (0.01, 0.03, 0.003)
#: Relative decrease of the objective that makes another solution the better one.
BETTER = 1e-6
#: Limit of the iterations with a penalty: a multiple of those of the solution before, and a minimum.
PATIENCE, MIN_ITERATIONS = 2, 200


def without_pulses(program: Program, problem: TrajectoryProblem, first: Solution) -> Solution:
    """The best of the successful solution `first` of `problem`, a variant of that of `program`, and of solutions from
    smooth controls.

    If a control that is not on a singular arc has pulses of hardly more than an interval, the problem is solved with a
    penalty on the rates of all such controls, and from there again as stated; then with other penalties, until the
    best solution has no pulses or results again, or a solve fails. The message of a solution other than the first tells
    its origin.
    """
    best, seconds = first, first.timing["solve"]
    names: dict[str, None] = {}
    for penalty in PENALTIES:
        pulsed_controls = controls_with_pulses(best)
        if not pulsed_controls or best.objective == 0.0:
            break
        try:
            second, more_seconds = _from_smooth(program, problem, best, pulsed_controls, penalty)
        except ProblemError:  # the names of the rates are in use, or the control is held
            break
        seconds += more_seconds
        if second.status is Status.CANCELLED:
            return replace(best, status=Status.CANCELLED, message=second.message)
        gain = best.objective - second.objective
        if not second.success or abs(gain) <= BETTER * abs(best.objective):
            break
        if gain > 0.0:
            best = second
            names |= dict.fromkeys(pulsed_controls)
    if best is first:
        return replace(first, timing={**first.timing, "solve": seconds})
    text = (
        f"The first solution, with pulses of single intervals in {', '.join(names)}, had the objective"
        f" {first.objective:.6g}: this one was found from an optimum with a penalty on the rates."
    )
    return replace(
        best,
        message=f"{best.message} {text}",
        timing={**best.timing, "solve": seconds},
        starts=first.starts,
        attempts=first.attempts,
        seed=first.seed,
        warm_path=first.warm_path,
    )


def _from_smooth(
    program: Program,
    problem: TrajectoryProblem,
    solution: Solution,
    pulsed_controls: Mapping[str, PhaseSolution],
    penalty: float,
) -> tuple[Solution, float]:
    """The solution from an optimum with a `penalty` on the rates of `pulsed_controls`, or the failed one of the two
    solves, and the time (s) of both. Raises `ProblemError` if the rates cannot be stated."""
    size = abs(solution.objective)
    rates = {
        name: Rate(penalty=penalty * size * (phase.tf - phase.t0) / float(np.ptp(phase.values[name])) ** 2)
        for name, phase in pulsed_controls.items()
    }
    guess, limit = Guess.from_solution(solution), max(PATIENCE * solution.iterations, MIN_ITERATIONS)
    options = replace(program.options, max_iterations=min(limit, program.options.max_iterations), starts=1)
    smooth_program = Program(with_rates(problem, rates), options, guess, meshes=program.meshes)
    smooth = smooth_program.attempt(guess=guess)
    if not smooth.success:
        return smooth, sum(smooth.timing.values())
    second = program.attempt(problem, guess=_of_variables(smooth, solution))
    return second, sum(smooth.timing.values()) + second.timing["solve"]


def controls_with_pulses(solution: Solution) -> dict[str, PhaseSolution]:
    """The controls with pulses, by name, each with the first phase in which it has them."""
    on_arcs = {(arc.phase, name) for arc in solution.singular_arcs for name in arc.controls}
    pulsed_controls: dict[str, PhaseSolution] = {}
    for phase in solution.phases.values():
        for name in phase.of_kind("control"):
            if (phase.name, name) not in on_arcs and has_pulses(phase, name):
                pulsed_controls.setdefault(name, phase)
    return pulsed_controls


def _of_variables(smooth: Solution, solution: Solution) -> Guess:
    """The `smooth` trajectories of the variables of `solution` as a guess."""
    phases = {
        name: SampledTrajectory(
            (phase.times - phase.t0) / (phase.tf - phase.t0),
            {
                n: values
                for n, values in phase.values.items()
                if solution.phases[name].kinds.get(n, "output") != "output"
            },
            phase.t0,
            phase.tf,
        )
        for name, phase in smooth.phases.items()
    }
    return Guess(phases, smooth.parameters)
