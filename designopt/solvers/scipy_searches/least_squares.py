"""Least squares: calibration of parameters to measurements."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from designopt.arrays import Floats
from designopt.lazy import scipy
from designopt.plugin import InvalidSetting, Quantity, solver
from designopt.problem import Evaluate, Outcomes, Problem
from designopt.solvers.scipy_searches.by_derivatives import ByDerivatives, Descent, SearchDerivatives
from designopt.solvers.scipy_searches.checks import check_real
from designopt.solvers.scipy_searches.points import EvaluatedPoints
from designopt.solvers.scipy_searches.starts import from_each, starting_points


@solver("least_squares", version=1)
class LeastSquares(ByDerivatives):
    """Least squares by a trust region within the bounds, Branch, Coleman & Li (1999), through SciPy: for calibration.

    The residuals are the expressions of all objectives in all scenarios, without aggregation (`over` is ignored): a
    scenario is an experiment, an objective the deviation from the measurement divided by its uncertainty. Write
    ``abs(...)`` around it, so that rankings and reports prefer small deviations: the squares are the same.
    """

    tolerance: Annotated[
        float, Quantity("", "relative change of the sum of squares or of the parameters that ends a search", gt=0)
    ] = 1e-10

    def check(self, problem: Problem) -> None:
        """Raises `InvalidSetting` for limits, maximised objectives, and parameters that are not real."""
        check_real("least_squares", problem)
        if not problem.objectives:
            raise InvalidSetting("use", "least_squares needs an objective: its values are the residuals")
        if largest := [o.name for o in problem.objectives if o.direction == "maximize"]:
            raise InvalidSetting("use", f"least_squares minimises squares and cannot maximise '{largest[0]}'")
        if problem.missing:
            raise InvalidSetting("use", "least_squares needs every residual; leave 'missing' out, or use slsqp")
        if problem.constraints:
            raise InvalidSetting(
                "use", "least_squares supports bounds but no limits; use slsqp, or leave 'constraints' out"
            )
        self.check_gradient(problem)

    def solve(self, problem: Problem, evaluate: Evaluate, rng: np.random.Generator, start: Outcomes) -> str:
        """Search from each start in turn; `rng` is not used. Returns why the searches ended."""
        self.check(problem)
        points = EvaluatedPoints(problem, evaluate, lambda outcomes: problem.residuals(outcomes.figures), start)
        slopes = SearchDerivatives(points, self, problem.residual_gradients)
        squares = (problem.residuals(start.figures) ** 2).sum(axis=1) if len(start) else np.empty(0)
        first = starting_points(points, start, squares, self.starts)
        return from_each(points, first, lambda u: self._search(Descent(points, slopes), u))

    def _search(self, descent: Descent, u: Floats) -> str:
        start_values, _ = descent.begin(u)
        size = float(np.abs(start_values).max()) or 1.0

        def residuals(v: Floats) -> Floats:
            values = descent.values(v)
            # Without a result: much worse than the current point, so that the trust region shrinks.
            return np.abs(descent.last) / size + 10.0 if values is None else values / size

        minimum = scipy.optimize.least_squares(
            residuals,
            np.clip(u, 0.0, 1.0),
            jac=lambda v: descent.slopes(v) / size,
            bounds=(0.0, 1.0),
            method="trf",
            ftol=self.tolerance,
            xtol=self.tolerance,
            gtol=self.tolerance,
            max_nfev=self.iterations,
        )
        return "converged" if minimum.status > 0 else "reached its maximum number of iterations"
