"""Derivatives of objectives, limits and residuals with respect to the parameters, from the recorded ones of the
model."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from designopt.arrays import Floats
from designopt.plugin.calling import calling
from designopt.problem.scoring import each_scenario, numbers
from designopt.problem.statement import Statement
from designopt.study.language.expressions.derivative import derivatives
from designopt.study.language.expressions.expression import Expression
from designopt.study.language.expressions.grammar import Term
from designopt.study.study import Objective, StudyConstraint


def constraint_gradients(problem: Statement, X: Floats, figures: Mapping[str, Floats]) -> Floats:
    """The derivatives (n, k, d) of `constraint_values` with respect to the parameters, in the study's units.

    NaN where the model (or an aggregation) provides none, and for integers and choices.
    """
    slopes = [
        limit.sign / limit.size * _aggregated_slopes(problem, limit.constraint, limit.sign, X, figures)
        for limit in problem.limits
    ]
    return np.stack(slopes, axis=1) if slopes else np.empty((len(X), 0, X.shape[1]))


def objective_gradients(problem: Statement, X: Floats, figures: Mapping[str, Floats]) -> Floats:
    """The derivatives (n, m, d) of the minimised objectives with respect to the parameters, in the study's units.

    NaN where the model (or an aggregation) provides none, and for integers and choices.
    """
    slopes = [o.sign * _aggregated_slopes(problem, o, o.sign, X, figures) for o in problem.objectives]
    return np.stack(slopes, axis=1) if slopes else np.empty((len(X), 0, X.shape[1]))


def residuals(problem: Statement, figures: Mapping[str, Floats]) -> Floats:
    """The expression of every objective in every scenario (n, objectives * scenarios), not aggregated.

    An absolute value is replaced by its argument: the square is the same, and smooth.
    """
    with np.errstate(all="ignore"):
        return np.concatenate(
            [each_scenario(problem, _without_abs(o.expression), figures) for o in problem.objectives], axis=1
        )


def residual_gradients(problem: Statement, X: Floats, figures: Mapping[str, Floats]) -> Floats:
    """The derivatives (n, objectives * scenarios, d) of `residuals` with respect to the parameters, in the study's
    units."""
    return np.concatenate(
        [_slopes(problem, _without_abs(o.expression), X, figures) for o in problem.objectives], axis=1
    )


def _aggregated_slopes(
    problem: Statement, item: Objective | StudyConstraint, sign: float, X: Floats, figures: Mapping[str, Floats]
) -> Floats:
    """The derivatives of an aggregated expression (n, d)."""
    slopes = _slopes(problem, item.expression, X, figures)
    plugin = item.over.plugin
    if len(problem.scenarios) == 1 and plugin.name in ("worst", "nominal", "mean"):
        return slopes[:, 0]
    if plugin.weights is None:
        return np.full_like(slopes[:, 0], np.nan)
    with np.errstate(all="ignore"):
        values = sign * each_scenario(problem, item.expression, figures)
        with calling(plugin):
            answer = plugin.weights(values, **item.over.settings)
        weights = numbers(plugin, answer, values.shape, "a weight for each value")
        parts: Floats = np.where(weights[:, :, None] == 0.0, 0.0, weights[:, :, None] * slopes)
    return np.asarray(parts.sum(axis=1))


def _slopes(problem: Statement, expression: Expression, X: Floats, figures: Mapping[str, Floats]) -> Floats:
    """The derivatives of an expression in each scenario (n, scenarios, d)."""
    partial = derivatives(expression, figures)
    slopes = np.zeros((len(X), len(problem.scenarios), len(problem.space.free)))
    unknown = np.full(slopes.shape[:2], np.nan)
    stretch = np.array([problem.space.stretch(s.shift) for s in problem.scenarios])
    for j, p in enumerate(problem.space.free):
        for name, outer in partial.items():
            is_real = p.kind == "real" and name not in problem.figures
            inner = p.factor * figures.get(derivative_name(name, p.name), unknown) if is_real else unknown
            with np.errstate(all="ignore"):
                slopes[:, :, j] += np.where(outer == 0.0, 0.0, outer * inner * stretch[:, j])
    return np.where(problem.space.active(X)[:, None, :], slopes, 0.0)


def derivative_name(output: str, parameter: str) -> str:
    """The name of the recorded derivative of an output."""
    return f"d({output})/d({parameter})"


def _without_abs(expression: Expression) -> Expression:
    """The expression without an outermost ``abs``, also inside a unit conversion."""
    root, factor = expression.root, None
    if root.kind == "*" and root.parts[0].kind == "number":
        factor, root = root.parts
    if root.kind != "call" or root.text != "abs":
        return expression
    inner = root.parts[0]
    return Expression(inner if factor is None else Term("*", (factor, inner), depth=inner.depth + 1))
