"""Simulated annealing: a global search for one objective, design by design."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np

from designopt.lazy import scipy
from designopt.plugin import Quantity, solver
from designopt.problem import Evaluate, Outcomes, Problem
from designopt.solvers.scipy_searches.checks import check_free, check_single
from designopt.solvers.scipy_searches.nelder_mead import Polish, polish
from designopt.solvers.scipy_searches.points import compared, merits_at
from designopt.solvers.scipy_searches.starts import best_known


@solver("dual_annealing", version=1)
class DualAnnealing:
    """Generalised simulated annealing with restarts, Xiang et al. (1997, 2013), through SciPy.

    Evaluates one design at a time: for very fast models, or objectives with very many local optima. A worse design is
    accepted with a probability that decreases with the temperature; an infeasible one never replaces a feasible one. It
    starts from the best design of ``start_from``, else at random.
    """

    uses_start: ClassVar[bool] = True
    objectives: ClassVar[Literal["one", "several", "any"]] = "one"

    temperature: Annotated[
        float, Quantity("", "at the start, in the objective's unit; differences below it hardly count", gt=0.01, le=5e4)
    ] = 5230.0
    restart: Annotated[
        float, Quantity("", "temperature, relative to the initial one, of a restart", gt=0.0, lt=1.0)
    ] = 2e-5
    visit: Annotated[float, Quantity("", "tail of the steps: larger ones jump farther", gt=1.0, le=3.0)] = 2.62
    accept: Annotated[
        float, Quantity("", "the lower, the less likely a worse design is accepted", gt=-1e4, le=-5.0)
    ] = -5.0
    iterations: Annotated[int, Quantity("", "temperatures, with two designs for each parameter at each", ge=1)] = 1000
    polish: Polish = False

    def check(self, problem: Problem) -> None:
        """Raises `InvalidSetting` unless there is one objective."""
        check_free("dual_annealing", problem)
        check_single("dual_annealing", problem)

    def solve(self, problem: Problem, evaluate: Evaluate, rng: np.random.Generator, start: Outcomes) -> str:
        """Evaluate one design after another; all random numbers come from `rng`. Returns why it ended."""
        self.check(problem)
        points = compared(problem, evaluate, start)
        start_points = best_known(points, start, 1)
        minimum = scipy.optimize.dual_annealing(
            lambda u: float(merits_at(points, u[None])[0]),
            [(0.0, 1.0)] * len(problem.space.free),
            maxiter=self.iterations,
            initial_temp=self.temperature,
            restart_temp_ratio=self.restart,
            visit=self.visit,
            accept=self.accept,
            maxfun=np.inf,
            rng=rng,
            no_local_search=True,  # it would take differences of merits
            x0=start_points[0] if len(start_points) else None,
        )
        if self.polish:
            polish(points, minimum.x)
        return "it reached its last temperature"
