"""Simplex search without derivatives, alone or at the end of another search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, ClassVar, Literal

import numpy as np

from designopt.arrays import Floats
from designopt.lazy import scipy
from designopt.plugin import Quantity, solver
from designopt.problem import Evaluate, Outcomes, Problem
from designopt.solvers.scipy_searches.checks import check_real, check_single
from designopt.solvers.scipy_searches.points import EvaluatedPoints, compared, merits_at
from designopt.solvers.scipy_searches.starts import Starts, from_each, starting_points

#: Setting of searches that may end with a simplex search (`polish`).
Polish = Annotated[bool, Quantity("", "end with a simplex search (nelder_mead) from the best design")]


@solver("nelder_mead", version=1)
class NelderMead:
    """The simplex search of Nelder & Mead (1965) for one objective without derivatives, through SciPy.

    Designs are compared exactly: feasible ones by objective, then infeasible ones by violation, then invalid, then
    failed ones. For few parameters (up to about ten), noise and kinks.
    """

    uses_start: ClassVar[bool] = True
    objectives: ClassVar[Literal["one", "several", "any"]] = "one"

    simplex: Annotated[
        float, Quantity("", "edge of the first simplex, as a share of each parameter's range", gt=0, le=0.5)
    ] = 0.1
    tolerance: Annotated[
        float, Quantity("", "edge of the simplex, as a share of the ranges, that ends a search", gt=0)
    ] = 1e-5
    adaptive: Annotated[
        bool, Quantity("", "steps that depend on the number of parameters, Gao & Han (2012); for more than five")
    ] = False
    iterations: Annotated[int, Quantity("", "maximum number of steps of a search", ge=1)] = 1000
    starts: Starts = 1

    def check(self, problem: Problem) -> None:
        """Raises `InvalidSetting` unless there is one objective of real parameters."""
        check_real("nelder_mead", problem)
        check_single("nelder_mead", problem)

    def solve(self, problem: Problem, evaluate: Evaluate, rng: np.random.Generator, start: Outcomes) -> str:
        """Search from each start in turn; `rng` is not used. Returns why the searches ended."""
        self.check(problem)

        points = compared(problem, evaluate, start)
        return from_each(starting_points(points, start, start.objectives[:, 0], self.starts), self.searching(points))

    def searching(self, points: EvaluatedPoints) -> Callable[[Floats], str]:
        """The search over `points`, from coordinates (d,) to the reason for its end."""

        def search(u: Floats) -> str:
            # The initial simplex points inwards; one batch.
            simplex = np.vstack([u, u + np.diag(np.where(u + self.simplex <= 1.0, self.simplex, -self.simplex))])
            if not any(point.ok for point in points.at(simplex)):
                return "began where no design has a result"
            minimum = scipy.optimize.minimize(
                lambda v: float(merits_at(points, v[None])[0]),
                u,
                method="Nelder-Mead",
                bounds=[(0.0, 1.0)] * len(u),
                options={
                    "initial_simplex": simplex,
                    "xatol": self.tolerance,
                    "fatol": np.inf,
                    "maxiter": self.iterations,
                    "maxfev": np.inf,
                    "adaptive": self.adaptive,
                },
            )
            return "converged" if minimum.status == 0 else "reached its maximum number of iterations"

        return search


def polish(points: EvaluatedPoints, u: Floats) -> None:
    """A small simplex search that starts at `u` (d,)."""
    settings = {"simplex": 0.02}
    NelderMead(**settings).searching(points)(u)
