"""Programs of the solver and their results: the best of each point, and differences between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats, Integers, Mask
from designopt.problem import Outcomes, Problem, SolvedPrograms
from designopt.solvers.collocation.controls import AS_STATED, Controls

#: Relative difference below which objectives of two programs belong to the same optimum.
SAME = 1e-6
#: Relative difference between the objective of a program and the model's evaluation beyond which it is reported.
APART = 1e-4
#: Multiple of a program's error estimate that a coarse mesh cannot explain.
BEYOND_MESH = 100.0


@dataclass(frozen=True)
class RequestedPrograms:
    """Programs row by row: starting designs, chains, seeds of perturbed guesses (0 for none), their point of the sweep,
    and whether they verify another program."""

    X: Floats
    chains: Integers
    seeds: Integers
    owners: Integers
    cold: Mask


def best(problem: Problem, programs: RequestedPrograms, results: SolvedPrograms, points: int) -> Integers:
    """The row of the best program for each point, the first among ties; -1 if none was solved."""
    sign = problem.objectives[0].sign
    values = sign * results.figures.get("program(objective)", np.full(len(results), np.nan))
    values = values + results.figures.get("program(rate_penalty)", 0.0)
    best = np.full(points, -1)
    for row in np.flatnonzero(results.ok & np.isfinite(values)).tolist():
        point = programs.owners[row]
        best_row = best[point]
        if best_row < 0 or values[row] < values[best_row] - SAME * max(abs(values[best_row]), 1e-300):
            best[point] = row
    return best


def starts_message(problem: Problem, programs: RequestedPrograms, results: SolvedPrograms) -> str:
    """``; objective 1.2 to 3 N by start, 5 of 12 reach the best``: the range over the solved starts of a point if they
    end at different optima, of the point with the widest one; else ""."""
    objective = problem.objectives[0]
    values = results.figures.get("program(objective)", np.full(len(results), np.nan))
    is_start = results.ok & np.isfinite(values) & ~programs.cold
    of_points = [values[is_start & (programs.owners == point)] for point in np.unique(programs.owners[is_start])]
    sizes = [float(np.ptp(v) / max(np.abs(v).max(), 1e-300)) for v in of_points]
    apart_count = sum(size > APART for size in sizes)
    if not apart_count:
        return ""
    widest = of_points[int(np.argmax(sizes))]
    best_value = objective.sign * (objective.sign * widest).min()
    near = np.abs(widest - best_value) <= APART * np.abs(widest).max()
    at = f" at {apart_count} of {len(of_points)} points, most of all" if len(of_points) > 1 else ""
    unit = f" {objective.unit}" if objective.unit else ""
    return (
        f"; the starts end at different optima{at}: {objective.name} {widest.min():.4g} to {widest.max():.4g}{unit},"
        f" {int(near.sum())} of {len(widest)} starts reach the best"
    )


def verification_message(programs: RequestedPrograms, results: SolvedPrograms) -> str | None:
    """The outcome of cold solves that verify points, as a sentence; None without any."""
    rows = np.flatnonzero(programs.cold)
    if not len(rows) or "program(objective)" not in results.figures:
        return None
    values = results.figures["program(objective)"]
    first = programs.owners[rows]  # the first rows are the points in their chains, with the same numbers
    size = np.maximum(np.maximum(np.abs(values[rows]), np.abs(values[first])), 1e-300)
    apart = np.where(results.ok[rows] & results.ok[first], np.abs(values[rows] - values[first]) / size, 0.0)
    only_one_way = results.ok[rows] != results.ok[first]
    differs = (apart > SAME) | only_one_way
    if not differs.any():
        return None
    how = [f"objectives differ by up to {apart.max():.2g}, relative"] if (apart > SAME).any() else []
    how += (
        [f"{int(only_one_way.sum())} {'was' if only_one_way.sum() == 1 else 'were'} solved in one of the two ways only"]
        if only_one_way.any()
        else []
    )
    return (
        f"{int(differs.sum())} of {len(rows)} points that were also solved cold have other optima ({'; '.join(how)}):"
        " there are several local optima; try starts, or shorter chains"
    )


def model_differences(
    problem: Problem,
    outcomes: Outcomes,
    objectives: Floats,
    *,
    errors: Floats,
    starts: int,
    controls: Controls = AS_STATED,
) -> list[tuple[str, str]]:
    """Differences between the model's evaluation of the optima and their programs: kinds and texts of events.

    `errors` (n,) are the error estimates of the programs, NaN for unknown ones, `starts` the number of guesses of
    each.
    """
    objective = problem.objectives[0]
    events = []
    model_objectives = objective.sign * outcomes.objectives[:, 0]
    comparable = np.isfinite(model_objectives) & np.isfinite(objectives)
    apart = np.zeros(len(model_objectives))
    apart[comparable] = relative_difference(model_objectives[comparable], objectives[comparable])
    if (apart > APART).any():
        worst = int(apart.argmax())
        causes = ["the model's own motions do not include the solver's 'rates' and 'held'"] if controls else []
        if apart[worst] > BEYOND_MESH * errors[worst]:  # never with an unknown error
            causes.append(_other_optimum(problem, starts))
        else:
            causes += [_mesh(problem), "one of the two found another local optimum"]
        text = (
            f"the model evaluates '{objective.name}' of {_optima(int((apart > APART).sum()), len(model_objectives))} "
            f"differently from the program, by up to {model_objectives[worst]:.6g} instead of {objectives[worst]:.6g}: "
            f"{'; or '.join(causes)}; or the model minimises another objective over its motions than the study"
        )
        events.append(("objective_differs", text))
    if (violates := comparable & (outcomes.violation > 0.0)).any():
        text = (
            f"the model's own evaluation of {_optima(int(violates.sum()), len(model_objectives))} violates limits that "
            f"the program satisfies, by up to {outcomes.violation[violates].max():.2g} of their size: "
            "refine the mesh or raise 'margin'"
        )
        events.append(("limits_differ", text))
    return events


def relative_difference(values: Floats, references: Floats) -> Floats:
    """The differences of finite numbers (n,), relative to the larger ones."""
    return np.abs(values - references) / np.maximum(np.maximum(np.abs(values), np.abs(references)), 1e-300)


def _other_optimum(problem: Problem, starts: int) -> str:
    """The cause of a difference between two accurate motions, and what to do."""
    if not problem.model.plugin.takes_options:
        return "the two are different local optima: give the model a better guess, or more starts (see its settings)"
    return (
        f"the two are different local optima: raise 'starts' of the solver ({starts} here), which evaluations of the"
        " model share"
    )


def _mesh(problem: Problem) -> str:
    """The cause of a difference on a coarse mesh, and what to do."""
    if not problem.model.plugin.takes_options:
        return "the model's evaluation does not use the solver's mesh: refine both (see the settings of the model)"
    if problem.evaluation_options:
        return "the mesh, which both share, is too coarse: refine it"
    return (
        "the mesh is too coarse: state 'refine' or 'intervals' of the solver, which evaluations of the model then share"
    )


def _optima(count: int, total: int) -> str:
    return "the optimum" if total == 1 else f"{count} of {total} optima"
