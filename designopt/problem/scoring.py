"""Scores of designs from raw figures: expressions, aggregated over scenarios, and limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from designopt.arrays import Floats, Mask
from designopt.plugin import AggregationPlugin, Use
from designopt.plugin.calling import calling, value_text, wrong_return
from designopt.problem.outcomes import Outcomes
from designopt.problem.statement import Statement, unequal
from designopt.study.language.expressions.expression import Expression
from designopt.study.study import Objective, StudyConstraint


def judge(
    problem: Statement,
    X: Floats,
    figures: Mapping[str, Floats],
    failed: Mask,
    relation_violation: Floats | None = None,
    refused: Mask | None = None,
) -> Outcomes:
    """Outcomes of designs `X` (n, d) from raw `figures` (name -> (n, scenarios)).

    `failed` (n, scenarios) marks evaluations without a result; a design with more of them than `missing` allows has
    failed. `refused` (n, scenarios) marks evaluations whose design the model rejected; one of them makes the design
    invalid, with an infinite violation. `relation_violation` (n,) is that of the space, computed by default. A design
    with an objective or constraint that is not finite although the evaluation succeeded (a logarithm of a negative
    figure, say) has also failed.
    """
    n = len(X)
    relation_violation = problem.space.relation_violation(X) if relation_violation is None else relation_violation
    if refused is not None:
        relation_violation = np.where(refused.any(axis=1) & (relation_violation <= 0.0), np.inf, relation_violation)
    invalid = relation_violation > 0.0
    lost = _lacks_too_many(problem, failed) | invalid
    if problem.missing and failed.any():
        figures = {name: np.where(failed, np.nan, values) for name, values in figures.items()}
    objectives = np.empty((n, len(problem.objectives)))
    violation = np.zeros(n)
    with np.errstate(all="ignore"):
        for j, objective in enumerate(problem.objectives):
            objectives[:, j] = objective.sign * aggregate(problem, objective, figures, n, objective.sign, failed)
        for constraint in problem.constraints:
            violation = violation + _violation(problem, constraint, figures, n, failed)
    lost |= ~np.isfinite(objectives).all(axis=1) | ~np.isfinite(violation)
    objectives[lost] = np.inf
    violation = np.where(lost, np.inf, violation)
    violation = np.where(invalid, relation_violation, violation)
    return Outcomes(X, objectives, violation, lost, invalid, figures)


def _lacks_too_many(problem: Statement, failed: Mask) -> Mask:
    """Mask (n,) of designs with more missing scenarios than allowed."""
    if not problem.missing:
        return np.asarray(failed.any(axis=1))
    return np.asarray(failed.sum(axis=1) > problem.missing * failed.shape[1] + 1e-9)


def aggregate(
    problem: Statement,
    item: Objective | StudyConstraint,
    figures: Mapping[str, Floats],
    n: int,
    sign: float,
    failed: Mask | None = None,
) -> Floats:
    """An expression aggregated over the scenarios (n,), without those that `failed` as far as allowed; by default these
    are the scenarios without a number."""
    raw = np.broadcast_to(item.expression.evaluate(figures), (n, len(problem.scenarios)))
    gaps = np.isnan(raw) if failed is None else failed
    if problem.missing and gaps.any():
        return _aggregate_with_gaps(problem, item, raw, sign, gaps)
    if len(problem.scenarios) == 1 and item.over.plugin.name in ("worst", "nominal", "mean"):
        return np.array(raw[:, 0])
    return sign * _aggregate_scenarios(item.over, sign * raw)


def _aggregate_scenarios(use: Use[AggregationPlugin], values: Floats) -> Floats:
    """`values` (n, scenarios) aggregated (n,). Raises `PluginFailed` if the aggregation raises or returns something
    else."""
    if not len(values):
        return np.empty(0)
    with calling(use.plugin):
        result = use.build()(values)
    return numbers(use.plugin, result, values.shape[:1], "one number for each design")


def numbers(plugin: AggregationPlugin, result: Any, shape: tuple[int, ...], expectation: str) -> Floats:
    """The `result` of an aggregation as an array of `shape`. Raises `PluginFailed` if it is something else."""
    try:
        array = np.asarray(result, dtype=float)
    except (TypeError, ValueError):
        array = None
    if array is not None and array.shape == shape:
        return array
    description = value_text(result) if array is None or not array.ndim else f"an array of shape {array.shape}"
    raise wrong_return(plugin, f"must return {expectation}, here an array of shape {shape}, not {description}")


def _aggregate_with_gaps(
    problem: Statement, item: Objective | StudyConstraint, raw: Floats, sign: float, gaps: Mask
) -> Floats:
    """Aggregation of `raw` (n, scenarios) outside `gaps`; NaN with too many gaps, or if the scenario that counts is
    one."""
    values = np.full(len(raw), np.nan)
    first_counts = item.over.plugin.name == "nominal"
    patterns, pattern_of = np.unique(gaps, axis=0, return_inverse=True)
    for k, pattern in enumerate(patterns):
        if _lacks_too_many(problem, pattern[None])[0] or pattern.all() or (first_counts and pattern[0]):
            continue
        rows = np.flatnonzero(pattern_of.reshape(-1) == k)
        complete = raw[np.ix_(rows, ~pattern)]
        values[rows] = sign * _aggregate_scenarios(item.over, sign * complete)
    return values


def limited_values(
    problem: Statement, c: StudyConstraint, figures: Mapping[str, Floats], n: int
) -> tuple[Floats, Floats]:
    """The values (n,) that `c` limits for `n` designs: aggregated towards the small end, for a minimum, and the large
    end."""
    with np.errstate(all="ignore"):
        return aggregate(problem, c, figures, n, -1.0), aggregate(problem, c, figures, n, 1.0)


def _violation(problem: Statement, c: StudyConstraint, figures: Mapping[str, Floats], n: int, failed: Mask) -> Floats:
    """Violation of a limit, relative to the limit's size (absolute for a limit of 0); NaN if not available."""
    low, high = (aggregate(problem, c, figures, n, sign, failed) for sign in (-1.0, 1.0))
    total = np.zeros(n)
    if c.maximum is not None:
        total += np.maximum(high - c.maximum, 0.0) / (abs(c.maximum) or 1.0)
    if c.minimum is not None:
        total += np.maximum(c.minimum - low, 0.0) / (abs(c.minimum) or 1.0)
    if c.equals is not None:
        total += unequal(low, high, c.equals) / (abs(c.equals) or 1.0)
    return np.where(np.isfinite(low) & np.isfinite(high), total, np.nan)


def constraint_values(problem: Statement, figures: Mapping[str, Floats]) -> Floats:
    """The values (n, k) that `limits` compare with 0, relative to their size; NaN if not available."""
    columns = []
    for limit in problem.limits:
        with np.errstate(all="ignore"):
            rows = len(each_scenario(problem, limit.constraint.expression, figures))
            value = aggregate(problem, limit.constraint, figures, rows, limit.sign)
        columns.append(limit.sign * (value - limit.bound) / limit.size)
    return np.column_stack(columns) if columns else np.empty((len(next(iter(figures.values()), ())), 0))


def each_scenario(problem: Statement, expression: Expression, figures: Mapping[str, Floats]) -> Floats:
    """An expression in each scenario (n, scenarios)."""
    values = np.atleast_2d(expression.evaluate(figures))
    return np.broadcast_to(values, (len(values), len(problem.scenarios)))
