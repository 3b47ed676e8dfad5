"""A trajectory problem as a nonlinear program, built once and solved any number of times."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from designopt.collocation.boxes import Boxes, boxes
from designopt.collocation.evaluate import cost_at, integrals_at
from designopt.collocation.guess import Guess, initial_point
from designopt.collocation.layout import Layout, layout
from designopt.collocation.mesh import Mesh
from designopt.collocation.options import Options
from designopt.collocation.problem import TrajectoryProblem
from designopt.collocation.reading import read_solution
from designopt.collocation.scaling import scales
from designopt.collocation.solution import Iterate, Solution
from designopt.collocation.status import OF_SOLVER, Status
from designopt.collocation.transcription import Statement, state, transcribe

Vector = NDArray[np.float64]
Warm = Literal["none", "primal", "full"]

#: A warm start with multipliers begins so close to bounds and so deep in the barrier.
WARM = {
    "warm_start_init_point": "yes",
    "warm_start_bound_push": 1e-8,
    "warm_start_bound_frac": 1e-8,
    "warm_start_slack_bound_push": 1e-8,
    "warm_start_slack_bound_frac": 1e-8,
    "warm_start_mult_bound_push": 1e-8,
    "mu_init": 1e-5,
}


class Program:
    """The program of `problem` on `meshes` (one per phase; else uniform ones of the options).

    Boxes, limits, data and fixed times may change from solve to solve; expressions and meshes may not. Scales follow
    from the boxes of `problem` and from `guess`. Raises `ProblemError` for statements that cannot be solved.
    """

    def __init__(
        self,
        problem: TrajectoryProblem,
        options: Options | None = None,
        guess: Guess | None = None,
        *,
        meshes: Sequence[Mesh] | None = None,
        statement: Statement | None = None,
    ) -> None:
        begin = time.perf_counter()
        options = options or Options()
        self.problem, self.options = problem, options
        self.statement = statement or state(problem, residual=options.residual_for(problem))
        stated = time.perf_counter()
        if meshes is None:
            meshes = [Mesh.uniform(options.scheme_for(problem), options.intervals) for _ in problem.phases]
        self.meshes = tuple(meshes)
        places = layout(problem, self.statement.points, self.meshes, self.statement.kept)
        guess = guess or Guess()
        given = boxes(self.statement, problem, places, ())
        x = self._first(problem, places, given, guess)
        scale, shift = scales(self.statement, places, given, x, options.scales)
        cost = cost_at(self.statement, places, x, given.parameters)
        cost_scale = 1.0 / max(1.0, abs(cost)) if np.isfinite(cost) else 1.0
        self.transcription = transcribe(self.statement, self.meshes, scale, shift, cost_scale, places)
        self.timing = {"model": stated - begin, "build": time.perf_counter() - stated}
        self._solvers: dict[bool, Any] = {}

    @cached_property
    def _nlp(self) -> dict[str, Any]:
        import casadi as ca

        made = self.transcription
        x, p = ca.MX.sym("x", made.layout.size), ca.MX.sym("p", made.parameter_size)
        return {"x": x, "p": p, "f": made.objective(x, p), "g": made.constraints(x, p)}

    def _solver(self, *, warm: bool) -> Any:
        import casadi as ca

        if warm not in self._solvers:
            made, options = self.transcription, self.options
            ipopt: dict[str, Any] = {
                "print_level": 0,
                "sb": "yes",
                "tol": options.tolerance,
                "acceptable_tol": options.acceptable_tolerance,
                "max_iter": options.max_iterations,
                "mumps_permuting_scaling": 0,
                **(WARM if warm else {}),
            }
            if options.time_limit is not None:
                ipopt["max_wall_time"] = options.time_limit
            given: dict[str, Any] = {"grad_f": made.gradient, "jac_g": made.jacobian}
            if options.hessian == "exact":
                given["hess_lag"] = made.hessian
            else:
                ipopt["hessian_approximation"] = "limited-memory"
            settings = {"print_time": False, "ipopt": ipopt, "calc_lam_p": False, "no_nlp_grad": True, **given}
            self._solvers[warm] = ca.nlpsol("program", "ipopt", self._nlp, settings)
        return self._solvers[warm]

    def solve(
        self,
        problem: TrajectoryProblem | None = None,
        guess: Guess | None = None,
        *,
        warm: Warm = "none",
        previous: Solution | None = None,
    ) -> Solution:
        """Solve for the numbers of `problem`, which states the same expressions as the program's own.

        From `guess`; or from the `previous` solution of this program, its variables alone (`warm` primal) or with its
        multipliers (full). A failed solve is a solution with its status; raises `ProblemError` for bad numbers only.
        """
        made = self.transcription
        problem = problem or self.problem
        given = boxes(self.statement, problem, made.layout, made.blocks)
        if warm != "none" and previous is None:
            raise ValueError(f"warm is '{warm}', but there is no previous solution")
        if previous is not None and warm != "none":
            x = previous.iterate.x
        else:
            start = guess or (previous.to_guess() if previous else Guess())
            x = (self._first(problem, made.layout, given, start) - made.shift) / made.scale
        return self._run(problem, given, x, previous.iterate if warm == "full" and previous else None)

    def _first(self, problem: TrajectoryProblem, places: Layout, given: Boxes, guess: Guess) -> Vector:
        """All variables (n,) at the guess, not scaled; integrals have the values that it gives them."""
        x = initial_point(self.statement, problem, places, given, guess)
        if places.integrals:
            integrals = integrals_at(self.statement, places, x, given.parameters)
            for (phase, number), index in places.integrals.items():
                x[index] = np.nan_to_num(integrals[phase][number])
        return x

    def _run(self, problem: TrajectoryProblem, given: Boxes, x: Vector, warm: Iterate | None) -> Solution:
        made = self.transcription
        begin = time.perf_counter()
        solver = self._solver(warm=warm is not None)
        arguments = {
            "x0": x,
            "p": given.parameters,
            "lbx": (given.low - made.shift) / made.scale,
            "ubx": (given.high - made.shift) / made.scale,
            "lbg": given.row_low / made.row_scale,
            "ubg": given.row_high / made.row_scale,
        }
        if warm is not None:
            arguments |= {"lam_x0": warm.of_bounds, "lam_g0": warm.of_rows}
        ready = time.perf_counter()
        result = solver(**arguments)
        timing = {**self.timing, "solver": ready - begin, "solve": time.perf_counter() - ready}
        stats = solver.stats()
        status = OF_SOLVER.get(stats["return_status"], Status.FAILED)
        iterate = Iterate(*(np.asarray(result[key], float).ravel() for key in ("x", "lam_g", "lam_x")))
        return read_solution(self.statement, problem, made, given, iterate, status, stats, timing)
