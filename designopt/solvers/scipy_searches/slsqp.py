"""Sequential quadratic programming, with derivatives, limits and relations between parameters."""

from __future__ import annotations

import warnings
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from designopt.arrays import Floats
from designopt.lazy import scipy
from designopt.plugin import Quantity, solver
from designopt.problem import Evaluate, Outcomes, Problem
from designopt.solvers.scipy_searches.by_derivatives import ByDerivatives, Descent, SearchDerivatives
from designopt.solvers.scipy_searches.checks import check_real, check_single
from designopt.solvers.scipy_searches.points import EvaluatedPoints
from designopt.solvers.scipy_searches.starts import from_each, starting_points
from designopt.study.language.expressions.derivative import derivatives
from designopt.study.language.expressions.expression import Expression


@solver("slsqp", version=1)
class SLSQP(ByDerivatives):
    """Sequential quadratic programming for one smooth objective with limits, Kraft (1988), through SciPy.

    Limits enter with their own values and derivatives, relations between parameters as additional constraints. The
    search stays inside active limits by twice its tolerance, relative to their size. If an iterate has no result, the
    step is shortened. It finds the optimum nearest to its start; `starts` gives several.
    """

    objectives: ClassVar[Literal["one", "several", "any"]] = "one"

    tolerance: Annotated[
        float, Quantity("", "change of the objective, relative to its size at the start, that ends a search", gt=0)
    ] = 1e-8

    def check(self, problem: Problem) -> None:
        """Raises `InvalidSetting` unless there is one objective of real parameters with derivatives."""
        check_real("slsqp", problem)
        check_single("slsqp", problem)
        self.check_gradient(problem)

    def solve(self, problem: Problem, evaluate: Evaluate, rng: np.random.Generator, start: Outcomes) -> str:
        """Search from each start in turn; `rng` is not used. Returns why the searches ended."""
        self.check(problem)

        def measure(outcomes: Outcomes) -> Floats:
            if not problem.limits:
                return outcomes.objectives
            return np.hstack([outcomes.objectives, problem.constraint_values(outcomes.figures)])

        def model(X: Floats, figures: Any) -> Floats:
            objectives, limits = problem.objective_gradients(X, figures), problem.constraint_gradients(X, figures)
            return np.concatenate([objectives, limits], axis=1)

        points = EvaluatedPoints(problem, evaluate, measure, start)
        slopes = SearchDerivatives(points, self, model)
        first = starting_points(points, start, start.objectives[:, 0], self.starts)
        return from_each(first, lambda u: self._search(problem, Descent(points, slopes), u))

    def _search(self, problem: Problem, descent: Descent, u: Floats) -> str:
        start_values, slope = descent.begin(u)
        size = max(abs(start_values[0]), float(np.abs(slope[0]).max())) or 1.0
        far = 10.0  # penalty of a design without a result, in units of size: a step is cut to a tenth

        def objective(v: Floats) -> float:
            values = descent.values(v)
            return float(descent.last[0] / size + far if values is None else values[0] / size)

        def limits(v: Floats) -> Floats:
            values = descent.values(v)
            return descent.last[1:] if values is None else values[1:]

        equal = np.array([limit.equality for limit in problem.limits], dtype=bool)
        # SLSQP accepts violations within its tolerance; its last design must be feasible.
        margin = np.where(equal, 0.0, 2.0 * self.tolerance)
        relations = Relations(descent.points)
        constraints: list[dict[str, Any]] = []
        for kind, rows, sign in (("eq", equal, 1.0), ("ineq", ~equal, -1.0)):
            if rows.any():
                constraints.append(
                    {
                        "type": kind,
                        "fun": lambda v, rows=rows, sign=sign: sign * (limits(v) + margin)[rows],
                        "jac": lambda v, rows=rows, sign=sign: sign * descent.slopes(v)[1:][rows],
                    }
                )
        if len(relations):
            constraints.append(
                {"type": "ineq", "fun": lambda v: -relations.values(v), "jac": lambda v: -relations.slopes(v)}
            )
        with warnings.catch_warnings():
            # Iterates leave the box by rounding; they are clipped, there and here.
            warnings.filterwarnings("ignore", "Values in x were outside bounds", RuntimeWarning)
            minimum = scipy.optimize.minimize(
                objective,
                np.clip(u, 0.0, 1.0),
                method="SLSQP",
                jac=lambda v: descent.slopes(v)[0] / size,
                bounds=[(0.0, 1.0)] * len(u),
                constraints=constraints,
                options={"maxiter": self.iterations, "ftol": self.tolerance},
            )
        violations = np.where(equal, np.abs(descent.last[1:]), descent.last[1:])
        if minimum.status == 8 and (violations > 1e-6).any():
            return _SLSQP_ENDS[4]
        return _SLSQP_ENDS.get(int(minimum.status), str(minimum.message))


_SLSQP_ENDS = {
    0: "converged",
    2: "has more equalities than parameters",
    3: "has limits that contradict each other near its last design",
    4: "has limits that contradict each other near its last design",
    5: "has limits that are not independent of each other at its last design",
    6: "has limits that are not independent of each other at its last design",
    7: "has limits that are not independent of each other at its last design",
    8: "found no better design along its last direction (converged as far as the derivatives are exact)",
    9: "reached its maximum number of iterations",
}


#: Margin to a relation, relative to its sides: an active one may be violated by rounding.
MARGIN = 1e-9


class Relations:
    """The relations of a problem at search coordinates: at most 0 if they hold. Equalities are omitted."""

    def __init__(self, points: EvaluatedPoints) -> None:
        self._points = points
        self._sides = [_sides(r) for r in points.problem.space.relations if r.root.kind != "=="]
        _, middle = self._columns(np.full(len(points.problem.space.free), 0.5))
        self._sizes = [_size(smaller, larger, middle) for smaller, larger in self._sides]

    def __len__(self) -> int:
        return len(self._sides)

    def values(self, u: Floats) -> Floats:
        """``smaller side - larger side`` (k,), relative to the size of both at the centre, plus the margin."""
        _, columns = self._columns(u)
        values = [
            (smaller.evaluate(columns) - larger.evaluate(columns)) / size + MARGIN
            if _is_decidable(smaller, larger, columns)
            else -1.0
            for (smaller, larger), size in zip(self._sides, self._sizes, strict=True)
        ]
        return np.asarray(np.nan_to_num(np.array(values, dtype=float), nan=1.0, posinf=1e6, neginf=-1e6))

    def slopes(self, u: Floats) -> Floats:
        """The derivatives (k, d) of `values` with respect to the coordinates."""
        X, columns = self._columns(u)
        free = self._points.problem.space.free
        rows = np.zeros((len(self._sides), len(free)))
        for row, (smaller, larger), size in zip(rows, self._sides, self._sizes, strict=True):
            if _is_decidable(smaller, larger, columns):
                for side, sign in ((smaller, 1.0), (larger, -1.0)):
                    slope_of = derivatives(side, columns)
                    row += [sign * float(slope_of.get(p.name, 0.0)) / size for p in free]
        return np.asarray(np.nan_to_num(rows * self._points.scale(X), nan=0.0, posinf=1e6, neginf=-1e6))

    def _columns(self, u: Floats) -> tuple[Floats, dict[str, float]]:
        X = self._points.designs(u[None])
        return X, self._points.problem.space.values(X[0].tolist())


def _sides(relation: Expression) -> tuple[Expression, Expression]:
    """The side that must be smaller, and the other."""
    left, right = (Expression(part) for part in relation.root.parts)
    return (left, right) if relation.root.kind in ("<=", "<") else (right, left)


def _is_decidable(smaller: Expression, larger: Expression, columns: dict[str, float]) -> bool:
    """Whether all parameters of the relation are active; otherwise it holds."""
    return smaller.names | larger.names <= columns.keys()


def _size(smaller: Expression, larger: Expression, columns: dict[str, float]) -> float:
    size = (
        float(abs(smaller.evaluate(columns)) + abs(larger.evaluate(columns)))
        if _is_decidable(smaller, larger, columns)
        else 1.0
    )
    return size if np.isfinite(size) and size > 0.0 else 1.0
