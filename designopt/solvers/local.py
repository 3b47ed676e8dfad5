"""Local searches through SciPy: from a design to the nearest optimum, with derivatives where there are any.

All of them move real parameters only, in coordinates from 0 to 1 over the range of each (of its logarithm on a log
scale). They end by themselves, and say why.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from designopt.lazy import scipy
from designopt.plugin import InvalidSetting, Quantity, solver
from designopt.problem import Evaluate, Outcomes, Problem
from designopt.solvers.points import Point, Points, merits, starting_points
from designopt.solvers.relations import Relations
from designopt.space import Matrix

Starts = Annotated[
    int,
    Quantity(
        "",
        "searches, one after the other: from the best designs of start_from or the middle, then spread",
        ge=1,
        le=100_000,
    ),
]
Iterations = Annotated[int, Quantity("", "steps after which a search is ended", ge=1)]


@dataclass(kw_only=True)
class _ByDerivatives:
    """The settings of searches that follow derivatives; each of them says what its `tolerance` is about."""

    uses_start: ClassVar[bool] = True

    gradient: Annotated[
        Literal["auto", "model", "differences"],
        Quantity(
            "",
            "derivatives: the model's with differences where it has none (auto), the model's alone, differences alone",
        ),
    ] = "auto"
    differences: Annotated[
        Literal["forward", "central"],
        Quantity("", "differences from one design beside for each parameter, or from two: more exact, twice the cost"),
    ] = "forward"
    step: Annotated[
        float,
        Quantity(
            "", "step of differences, as a share of the parameter's range; larger for models with noise", gt=0, le=0.1
        ),
    ] = 1e-6
    tolerance: float
    iterations: Iterations = 200
    starts: Starts = 1

    def wants_gradient(self) -> bool:
        """Whether the model's derivatives are of use."""
        return self.gradient != "differences"


@solver("slsqp", version=1)
class SLSQP(_ByDerivatives):
    """Sequential quadratic programming for one smooth objective with limits, Kraft (1988), through SciPy.

    Limits enter with their own values and derivatives, relations between parameters as constraints of the search too;
    it ends twice its tolerance inside of limits that it comes to, relative to their size.
    Where an iterate has no result the step is shortened. It finds the optimum nearest to its start; `starts` tries
    several.
    """

    objectives: ClassVar[Literal["one", "several", "any"]] = "one"

    tolerance: Annotated[
        float, Quantity("", "change of the objective, relative to its size at the start, that ends a search", gt=0)
    ] = 1e-8

    def check(self, problem: Problem) -> None:
        """Raises `InvalidSetting` for anything but one objective of real parameters, or without derivatives."""
        _check_space("slsqp", problem)
        _check_single("slsqp", problem)
        _check_gradient(self.gradient, problem)

    def solve(self, problem: Problem, evaluate: Evaluate, rng: np.random.Generator, start: Outcomes) -> str:
        """Search from each start in turn; `rng` is not used. Returns why the searches ended."""
        self.check(problem)

        def measure(outcomes: Outcomes) -> Matrix:
            if not problem.limits:
                return outcomes.objectives
            return np.hstack([outcomes.objectives, problem.constraint_values(outcomes.figures)])

        def model(X: Matrix, figures: Any) -> Matrix:
            objectives, limits = problem.objective_gradients(X, figures), problem.constraint_gradients(X, figures)
            return np.concatenate([objectives, limits], axis=1)

        points = Points(problem, evaluate, measure, start)
        slopes = _Slopes(points, self, model)
        first = starting_points(points, start, start.objectives[:, 0], self.starts)
        return _each(first, lambda u: self._search(problem, _Path(points, slopes), u))

    def _search(self, problem: Problem, path: _Path, u: Matrix) -> str:
        here, slope = path.begin(u)
        size = max(abs(here[0]), float(np.abs(slope[0]).max())) or 1.0
        far = 10.0  # how much worse, in units of size, a design without a result looks: a step is cut to a tenth

        def objective(v: Matrix) -> float:
            values = path.values(v)
            return float(path.last[0] / size + far if values is None else values[0] / size)

        def limits(v: Matrix) -> Matrix:
            values = path.values(v)
            return path.last[1:] if values is None else values[1:]

        equal = np.array([limit.equality for limit in problem.limits], dtype=bool)
        # SLSQP takes limits that are passed by its tolerance for kept; its last design shall be feasible.
        margin = np.where(equal, 0.0, 2.0 * self.tolerance)
        relations = Relations(path.points)
        constraints: list[dict[str, Any]] = []
        for kind, rows, sign in (("eq", equal, 1.0), ("ineq", ~equal, -1.0)):
            if rows.any():
                constraints.append(
                    {
                        "type": kind,
                        "fun": lambda v, rows=rows, sign=sign: sign * (limits(v) + margin)[rows],
                        "jac": lambda v, rows=rows, sign=sign: sign * path.slopes(v)[1:][rows],
                    }
                )
        if len(relations):
            constraints.append(
                {"type": "ineq", "fun": lambda v: -relations.values(v), "jac": lambda v: -relations.slopes(v)}
            )
        with warnings.catch_warnings():
            # Iterates leave the box by rounding; they are clipped, there and here.
            warnings.filterwarnings("ignore", "Values in x were outside bounds", RuntimeWarning)
            found = scipy.optimize.minimize(
                objective,
                np.clip(u, 0.0, 1.0),
                method="SLSQP",
                jac=lambda v: path.slopes(v)[0] / size,
                bounds=[(0.0, 1.0)] * len(u),
                constraints=constraints,
                options={"maxiter": self.iterations, "ftol": self.tolerance},
            )
        passed = np.where(equal, np.abs(path.last[1:]), path.last[1:])
        if found.status == 8 and (passed > 1e-6).any():
            return _SLSQP_ENDS[4]
        return _SLSQP_ENDS.get(int(found.status), str(found.message))


_SLSQP_ENDS = {
    0: "converged",
    2: "has more equalities than parameters",
    3: "has limits that contradict each other near its last design",
    4: "has limits that contradict each other near its last design",
    5: "has limits that are not independent of each other at its last design",
    6: "has limits that are not independent of each other at its last design",
    7: "has limits that are not independent of each other at its last design",
    8: "found no better design along its last direction (converged as far as the derivatives are exact)",
    9: "reached its largest number of iterations",
}


@solver("nelder_mead", version=1)
class NelderMead:
    """The simplex search of Nelder & Mead (1965) for one objective without derivatives, through SciPy.

    Designs are compared exactly as everywhere: feasible ones by the objective, then infeasible ones by how far they
    pass limits, then invalid, then failed ones. For few parameters (up to ten or so), noise and kinks.
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
    iterations: Iterations = 1000
    starts: Starts = 1

    def check(self, problem: Problem) -> None:
        """Raises `InvalidSetting` for anything but one objective of real parameters."""
        _check_space("nelder_mead", problem)
        _check_single("nelder_mead", problem)

    def solve(self, problem: Problem, evaluate: Evaluate, rng: np.random.Generator, start: Outcomes) -> str:
        """Search from each start in turn; `rng` is not used. Returns why the searches ended."""
        self.check(problem)

        points = Points(problem, evaluate, lambda outcomes: outcomes.objectives, start)
        return _each(starting_points(points, start, start.objectives[:, 0], self.starts), self.searching(points))

    def searching(self, points: Points) -> Callable[[Matrix], str]:
        """The search among `points`, from coordinates (d,) to why it ended."""

        def search(u: Matrix) -> str:
            # Inwards, and around the start: one batch.
            simplex = np.vstack([u, u + np.diag(np.where(u + self.simplex <= 1.0, self.simplex, -self.simplex))])
            if not any(point.ok for point in points.at(simplex)):
                return "began where no design has a result"
            found = scipy.optimize.minimize(
                lambda v: float(merits(points.at(v[None])[0].outcomes)[0]),
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
            return "converged" if found.status == 0 else "reached its largest number of iterations"

        return search


@solver("least_squares", version=1)
class LeastSquares(_ByDerivatives):
    """Least squares by a trust region within the bounds, Branch, Coleman & Li (1999), through SciPy: for calibration.

    The residuals are the expressions of all objectives in all scenarios, each by itself, whatever `over` says: a
    scenario is an experiment, an objective the deviation from what was measured in it, divided by its uncertainty.
    Write ``abs(...)`` around it, so that rankings and reports see small deviations as good: the squares are the same.
    """

    tolerance: Annotated[
        float, Quantity("", "relative change of the sum of squares or of the parameters that ends a search", gt=0)
    ] = 1e-10

    def check(self, problem: Problem) -> None:
        """Raises `InvalidSetting` for limits, maximised objectives, and what is not a real parameter."""
        _check_space("least_squares", problem)
        if not problem.objectives:
            raise InvalidSetting("use", "least_squares needs an objective: its values are the residuals")
        if largest := [o.name for o in problem.objectives if o.direction == "maximize"]:
            raise InvalidSetting("use", f"least_squares makes squares small, it cannot maximise '{largest[0]}'")
        if problem.missing:
            raise InvalidSetting("use", "least_squares needs every residual; leave 'missing' out, or use slsqp")
        if problem.constraints:
            raise InvalidSetting(
                "use", "least_squares knows bounds but no limits; use slsqp, or leave 'constraints' out"
            )
        _check_gradient(self.gradient, problem)

    def solve(self, problem: Problem, evaluate: Evaluate, rng: np.random.Generator, start: Outcomes) -> str:
        """Search from each start in turn; `rng` is not used. Returns why the searches ended."""
        self.check(problem)
        points = Points(problem, evaluate, lambda outcomes: problem.residuals(outcomes.figures), start)
        slopes = _Slopes(points, self, problem.residual_gradients)
        squares = (problem.residuals(start.figures) ** 2).sum(axis=1) if len(start) else np.empty(0)
        return _each(
            starting_points(points, start, squares, self.starts), lambda u: self._search(_Path(points, slopes), u)
        )

    def _search(self, path: _Path, u: Matrix) -> str:
        here, _ = path.begin(u)
        size = float(np.abs(here).max()) or 1.0

        def residuals(v: Matrix) -> Matrix:
            values = path.values(v)
            # Without a result: worse by far than where the search is, so that the trust region shrinks.
            return np.abs(path.last) / size + 10.0 if values is None else values / size

        found = scipy.optimize.least_squares(
            residuals,
            np.clip(u, 0.0, 1.0),
            jac=lambda v: path.slopes(v) / size,
            bounds=(0.0, 1.0),
            method="trf",
            ftol=self.tolerance,
            xtol=self.tolerance,
            gtol=self.tolerance,
            max_nfev=self.iterations,
        )
        return "converged" if found.status > 0 else "reached its largest number of iterations"


# ------------------------------------------------------------------------------------------------- searches, starts


class _Ended(Exception):
    """A search cannot go on, and why."""


def _each(starts: Matrix, search: Callable[[Matrix], str]) -> str:
    """Search from one start after the other; a sentence about how that ended."""
    ends = []
    for u in starts:
        try:
            ends.append(search(u))
        except _Ended as error:
            ends.append(str(error))
    if len(ends) == 1:
        return f"the search {ends[0]}"
    counts = Counter(ends).most_common()
    return f"of {len(ends)} searches " + "; ".join(f"{count} {end}" for end, count in counts)


class _Path:
    """Where a search has been: values and derivatives as SciPy asks for them, and the last values that are known."""

    def __init__(self, points: Points, slopes: _Slopes) -> None:
        self.points = points
        self._slopes = slopes
        self.last: Matrix = np.empty(0)

    def begin(self, u: Matrix) -> tuple[Matrix, Matrix]:
        """Values and derivatives at the start, in one batch."""
        slopes = self._slopes.at(u, "began at a design without a result")
        values = self.values(u)
        assert values is not None
        return values, slopes

    def values(self, u: Matrix) -> Matrix | None:
        """Values at `u`; None where there is no result."""
        point = self.points.at(u[None])[0]
        if not point.ok:
            return None
        self.last = point.values
        return point.values

    def slopes(self, u: Matrix) -> Matrix:
        """Derivatives at `u` (k, d)."""
        return self._slopes.at(u, "ended at the edge of designs that have a result")


class _Slopes:
    """Derivatives of a search's values by its coordinates: the model's, and differences where there are none."""

    def __init__(self, points: Points, settings: _ByDerivatives, model: Callable[[Matrix, Any], Matrix]) -> None:
        self._points = points
        self._settings = settings
        self._model = model
        self._known: dict[bytes, Matrix] = {}

    def at(self, u: Matrix, without_result: str) -> Matrix:
        """Derivatives at `u` (k, d); `_Ended` with the reason where they cannot be had."""
        key = u.tobytes()
        if key not in self._known:
            self._known[key] = self._slopes(u, without_result)
        return self._known[key]

    def _slopes(self, u: Matrix, without_result: str) -> Matrix:
        settings, points = self._settings, self._points
        from_model = settings.wants_gradient() and points.problem.gradients
        if from_model:
            slopes = self._of_model(points.at(u[None])[0], without_result)
            if np.isfinite(slopes).all():
                return slopes
            if settings.gradient == "model":
                raise _Ended(f"ended where the model's derivative by '{self._unknown(slopes)}' is not known")
        taken = points.differences(u, settings.step, central=settings.differences == "central")
        if not points.at(u[None])[0].ok:
            raise _Ended(without_result)
        slopes = np.where(np.isfinite(slopes), slopes, taken) if from_model else taken
        if not np.isfinite(slopes).all():
            raise _Ended(f"ended where designs beside it, along '{self._unknown(slopes)}', have no result")
        return slopes

    def _of_model(self, point: Point, without_result: str) -> Matrix:
        if not point.ok:
            raise _Ended(without_result)
        X = point.outcomes.X
        return np.asarray(self._model(X, point.outcomes.figures)[0] * self._points.scale(X))

    def _unknown(self, slopes: Matrix) -> str:
        column = int(np.argmin(np.isfinite(slopes).all(axis=0)))
        return self._points.problem.space.names[column]


# ------------------------------------------------------------------------------------------------------------ checks


def _check_space(name: str, problem: Problem) -> None:
    if not problem.space.free:
        raise InvalidSetting("use", f"{name} needs a parameter that is free")
    for p in problem.space.free:
        if p.kind != "real":
            what = "an integer" if p.kind == "int" else "a choice"
            raise InvalidSetting(
                "use", f"{name} moves real parameters only and '{p.name}' is {what}; give it one value"
            )


def _check_single(name: str, problem: Problem) -> None:
    if len(problem.objectives) != 1:
        raise InvalidSetting("use", f"{name} has one objective; this study has {len(problem.objectives)}")


def _check_gradient(gradient: str, problem: Problem) -> None:
    if gradient == "model" and not problem.gradients:
        name = problem.model.plugin.name
        raise InvalidSetting("gradient", f"model '{name}' has no derivatives; use 'differences'")
