"""Simplex search without derivatives, alone or at the end of another search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, ClassVar, Literal

import numpy as np

from designopt.arrays import Floats
from designopt.lazy import scipy
from designopt.plugin import InvalidSetting, Quantity, solver
from designopt.problem import Evaluate, Outcomes, Problem
from designopt.solvers.scipy_searches.checks import check_real
from designopt.solvers.scipy_searches.points import EvaluatedPoints, comparison_points, merits_at
from designopt.solvers.scipy_searches.starts import Starts, from_each, starting_points

#: Setting of searches that may end with a simplex search (`polish`).
Polish = Annotated[bool, Quantity("", "end with a simplex search (nelder_mead) from the best design")]


@solver("nelder_mead", version=1)
class NelderMead:
    """The simplex search of Nelder & Mead (1965) for one objective without derivatives, through SciPy.

    Designs are compared exactly: feasible ones by objective, then infeasible ones by violation, then invalid, then
    failed ones. For few parameters (up to about ten), noise and kinks. With several objectives it minimises (or
    maximises) the one named by `objective` alone: an end of the front, from the best designs of an earlier stage.
    """

    later_settings: ClassVar[tuple[str, ...]] = ("objective",)
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
    objective: Annotated[str | None, Quantity("", "the objective of several that is searched alone")] = None

    def check(self, problem: Problem) -> None:
        """Raises `InvalidSetting` unless there is one objective of real parameters, or one of several is named."""
        check_real("nelder_mead", problem)
        self._column(problem)

    def _column(self, problem: Problem) -> int:
        """The number of the objective that is searched."""
        names = [objective.name for objective in problem.objectives]
        if self.objective is None and len(names) > 1:
            raise InvalidSetting(
                "objective", f"nelder_mead searches one objective; name one of {', '.join(names)}, an end of the front"
            )
        if self.objective is not None and self.objective not in names:
            raise InvalidSetting("objective", f"'{self.objective}' is no objective; known: {', '.join(names)}")
        return names.index(self.objective) if self.objective is not None else 0

    def solve(self, problem: Problem, evaluate: Evaluate, rng: np.random.Generator, start: Outcomes) -> str:
        """Search from each start in turn; `rng` is not used. Returns why the searches ended."""
        self.check(problem)
        column = self._column(problem)
        points = comparison_points(problem, evaluate, start)
        first = starting_points(points, start, start.objectives[:, column], self.starts)
        return from_each(points, first, self.searching(points, column), column)

    def searching(self, points: EvaluatedPoints, objective: int = 0) -> Callable[[Floats], str]:
        """The search over `points` in the objective of that number, from coordinates (d,) to the reason for its end."""

        def search(u: Floats) -> str:
            # The initial simplex points inwards; one batch.
            simplex = np.vstack([u, u + np.diag(np.where(u + self.simplex <= 1.0, self.simplex, -self.simplex))])
            if not any(point.ok for point in points.at(simplex)):
                return "began where no design has a result"
            minimum = scipy.optimize.minimize(
                lambda v: float(merits_at(points, v[None], objective)[0]),
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
