"""Studies that a program cannot represent: rejected with a hint when the study is checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from designopt.aggregations import TIMES
from designopt.plugin import InvalidSetting, closest
from designopt.problem import Problem
from designopt.study.language import units
from designopt.study.study import Objective, StudyConstraint

if TYPE_CHECKING:
    from designopt.collocation.statement.problem import TrajectoryProblem
    from designopt.collocation.statement.terms import Peak

#: Aggregations with a smooth program.
OVER = ("nominal", "mean", "worst", "mean_plus_deviation")


def check_symbolic(problem: Problem) -> None:
    """Raises `InvalidSetting` for a model without equations."""
    plugin = problem.model.plugin
    if not plugin.has("trajectory_problem"):
        raise InvalidSetting(
            "use",
            f"model_not_symbolic: model '{plugin.name}' states no equations for a program (it has no"
            " 'trajectory_problem'); use a solver that evaluates designs: slsqp, cma_es, nsga2 ...",
        )
    if any(scenario.shift for scenario in problem.scenarios):
        raise InvalidSetting(
            "use",
            "'robust' evaluates each design with its neighbours, which a program cannot do; omit "
            "'robust' (report.tolerances evaluates the neighbours of the optimum), or use a solver that "
            "evaluates designs",
        )


def check_single(problem: Problem) -> Objective:
    """The objective. Raises `InvalidSetting` for several."""
    if len(problem.objectives) != 1:
        raise InvalidSetting(
            "use",
            f"collocation minimises one objective, not {len(problem.objectives)}; make the others limits "
            "under 'constraints', or use a solver for fronts (nsga2)",
        )
    return problem.objectives[0]


def check_parameters(problem: Problem, part: TrajectoryProblem) -> None:
    """Raises `InvalidSetting` if the parameters of the study and of the trajectory problem `part` do not match."""
    plugin = problem.model.plugin
    variables = {v.name: v for v in part.variables}
    by_name = {p.name: p for p in problem.space.parameters}
    for name, p in by_name.items():
        if name not in variables:
            names = ", ".join(variables) or "none"
            raise InvalidSetting(
                "use",
                f"the trajectory problem of model '{plugin.name}' has no parameter '{name}' (it has {names}); take it"
                " out of 'space', or use a solver that evaluates designs",
            )
        if any(isinstance(value, str) for value in p.values):
            raise InvalidSetting("use", f"'{name}' has text values; a program needs numbers")
        unit = plugin.inputs[name].quantity if plugin.inputs and name in plugin.inputs else None
        if unit is not None and not _same_unit(unit.unit, variables[name].unit):
            raise InvalidSetting(
                "use",
                f"'{name}' is in {units.unit_text(unit.unit)} in the model and in"
                f" {units.unit_text(variables[name].unit)} in its trajectory problem; they must be the same",
            )
        if p.when and isinstance(part.parameters.get(name), (tuple, type(None))):
            raise InvalidSetting(
                "use",
                f"'{name}' has a condition; where it does not hold, the trajectory problem must give it a number, but"
                " it gives a range",
            )
    for name, (low, high) in part.parameter_ranges.items():
        if name not in by_name and name in (plugin.inputs or ()) and low < high:
            raise InvalidSetting(
                "use", f"'{name}' would be chosen by the program; add it to 'space' (with one value, to fix it)"
            )


def _same_unit(first: str, second: str) -> bool:
    return first == second or (units.same_dimension(first, second) and units.factor_offset(first, second) == (1.0, 0.0))


def check_expression(problem: Problem, item: Objective | StudyConstraint, parts: Sequence[TrajectoryProblem]) -> None:
    """Raises `InvalidSetting` for figures that the trajectory problems `parts` of all scenarios do not state."""
    kind = "objective" if isinstance(item, Objective) else "constraint"
    over = item.over.plugin.name
    if len(parts) > 1 and over not in OVER:
        raise InvalidSetting(
            "use", f"{kind} '{item.name}' is taken over scenarios by '{over}'; collocation knows {', '.join(OVER)}"
        )
    if len(parts) > 1 and over == "mean_plus_deviation":
        _check_deviation(item, kind, parts)
    for name in sorted(item.expression.names):
        if all(name in part.figures for part in parts):
            continue
        if name in problem.figures:
            text = f"{kind} '{item.name}' uses '{name}', which is computed from results; a program needs its equations"
        else:
            figures = list(parts[0].figures)
            near = closest(name, figures)
            hint = f"; did you mean '{near}'?" if near else ""
            text = (
                f"{kind} '{item.name}' uses '{name}', which is not a figure of the trajectory problem{hint} (it has"
                f" {', '.join(figures) or 'none'})"
            )
        raise InvalidSetting("use", f"{text}; use a solver that evaluates designs")


def _check_deviation(item: Objective | StudyConstraint, kind: str, parts: Sequence[TrajectoryProblem]) -> None:
    """Raises `InvalidSetting` if a program could gain by a worse motion in a good scenario, which reduces the
    deviation."""
    if isinstance(item, StudyConstraint) and item.equals is not None:
        text = "fixes a value with a deviation over scenarios, which no program can meet; use 'mean'"
        raise InvalidSetting("use", f"{kind} '{item.name}' {text}")
    times, limit = float(item.over.settings.get("times", TIMES)), 1.0 / math.sqrt(len(parts) - 1)
    controls = [v.name for phase in parts[0].phases for v in phase.system.controls]
    if controls and times > limit * (1.0 + 1e-9):
        text = (
            f"adds {times:g} standard deviations over {len(parts)} scenarios, each with its own controls"
            f" ({', '.join(controls)}): above 1/sqrt({len(parts) - 1}) = {limit:.3g} a program gains by a worse motion"
            " in a good scenario; use fewer, or 'worst'"
        )
        raise InvalidSetting("use", f"{kind} '{item.name}' {text}")


def check_peak(item: Objective | StudyConstraint, name: str, peak: Peak, slope: float) -> None:
    """Raises `InvalidSetting` if `item`, with the derivative `slope` by the peak `name`, does not push it down.

    A maximum in a program is a variable above all values; only minimisation makes it equal to the largest value.
    """
    if isinstance(item, Objective):
        kind, presses = "objective", item.sign * slope
    else:
        two_sided = item.equals is not None or (item.minimum is not None and item.maximum is not None)
        kind, presses = "constraint", 0.0 if two_sided else slope if item.maximum is not None else -slope
    if not (presses < 0.0 if peak.extremum == "smallest" else presses > 0.0):
        direction = (
            "raised, or kept above a limit," if peak.extremum == "smallest" else "lowered, or kept below a limit,"
        )
        raise InvalidSetting(
            "use",
            f"{kind} '{item.name}' uses the {'smallest' if peak.extremum == 'smallest' else 'largest'} value '{name}'"
            f" in a way that collocation cannot: it can only be {direction} alone or in a weighted sum with other"
            " figures; use a solver that evaluates designs",
        )
