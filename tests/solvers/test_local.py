"""SciPy's local searches: published optima, derivatives, limits and relations, failures, and why they ended."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

from designopt.plugin import Diverged, InvalidSetting, Use, find, model
from designopt.problem import Problem, StageEnded
from designopt.solvers.scipy_searches.least_squares import LeastSquares
from designopt.solvers.scipy_searches.nelder_mead import NelderMead
from designopt.solvers.scipy_searches.slsqp import SLSQP
from designopt.space import Space
from designopt.study.language.expressions.expression import Expression
from designopt.study.study import DesignVariable, Objective, Scenario, StudyConstraint
from designopt.testing import InProcess, check_solver, no_outcomes, problem_from

# ------------------------------------------------------------------------------------------------------------ problems


def formulas(name: str, x: list[ca.SX]) -> dict[str, ca.SX]:
    """Objective `f` and what limits look at."""
    if name == "rosenbrock":  # Rosenbrock (1960)
        return {"f": 100.0 * (x[1] - x[0] ** 2) ** 2 + (1.0 - x[0]) ** 2}
    # Hock & Schittkowski (1981), Test Examples for Nonlinear Programming Codes, by their numbers.
    if name == "hs6":
        return {"f": (1.0 - x[0]) ** 2, "g": 10.0 * (x[1] - x[0] ** 2)}
    if name == "hs35":
        quadratic = 2 * x[0] ** 2 + 2 * x[1] ** 2 + x[2] ** 2 + 2 * x[0] * x[1] + 2 * x[0] * x[2]
        return {"f": 9 - 8 * x[0] - 6 * x[1] - 4 * x[2] + quadratic, "g": x[0] + x[1] + 2 * x[2]}
    if name == "hs43":
        squares = [v**2 for v in x]
        return {
            "f": squares[0] + squares[1] + 2 * squares[2] + squares[3] - 5 * (x[0] + x[1]) - 21 * x[2] + 7 * x[3],
            "g": sum(squares) + x[0] - x[1] + x[2] - x[3],
            "h": squares[0] + 2 * squares[1] + squares[2] + 2 * squares[3] - x[0] - x[3],
            "k": 2 * squares[0] + squares[1] + squares[2] + 2 * x[0] - x[1] - x[3],
        }
    assert name == "hs71"
    return {
        "f": x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2],
        "g": x[0] * x[1] * x[2] * x[3],
        "h": sum(v**2 for v in x),
    }


@model("local_formulas", version=1, unchecked=True)
class Formulas:
    """One symbolic statement; values and derivatives both come from it."""

    name: str
    count: int

    def prepare(self):
        x = ca.SX.sym("x", self.count)
        outputs = formulas(self.name, ca.vertsplit(x))
        self.outputs = list(outputs)
        stacked = ca.vertcat(*outputs.values())
        self.value = ca.Function("value", [x], [stacked])
        self.jacobian = ca.Function("jacobian", [x], [ca.jacobian(stacked, x)])

    def evaluate(self, design, scenario):
        return dict(zip(self.outputs, np.asarray(self.value([*design.values()])).ravel().tolist(), strict=True))

    def gradient(self, design, scenario):
        rows = np.asarray(self.jacobian([*design.values()])).tolist()
        return {name: dict(zip(design, row, strict=True)) for name, row in zip(self.outputs, rows, strict=True)}


WORST = Use(find("aggregation", "worst"))


def limit(text: str, **bounds: float) -> StudyConstraint:
    return StudyConstraint(text, Expression.parse(text), WORST, **bounds)


def posed(name: str, low: float, high: float, count: int, *limits: StudyConstraint, gradients: bool = True) -> Problem:
    return Problem(
        model=Use(find("model", "local_formulas"), {"name": name, "count": count}),
        space=Space(tuple(DesignVariable(f"x{i}", "real", low, high) for i in range(count))),
        scenarios=(Scenario("nominal"),),
        objectives=(Objective("f", Expression.parse("f"), "minimize", WORST),),
        constraints=limits,
        gradients=gradients,
    )


ROSENBROCK = posed("rosenbrock", -2.0, 2.0, 2), [-1.2, 1.0], [1.0, 1.0], 0.0
HOCK_SCHITTKOWSKI = {
    "hs6": (posed("hs6", -5.0, 5.0, 2, limit("g", equals=0.0)), [-1.2, 1.0], [1.0, 1.0], 0.0),
    "hs35": (posed("hs35", 0.0, 5.0, 3, limit("g", maximum=3.0)), [0.5, 0.5, 0.5], [4 / 3, 7 / 9, 4 / 9], 1 / 9),
    "hs43": (
        posed("hs43", -5.0, 5.0, 4, limit("g", maximum=8.0), limit("h", maximum=10.0), limit("k", maximum=5.0)),
        [0.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, 2.0, -1.0],
        -44.0,
    ),
    "hs71": (
        posed("hs71", 1.0, 5.0, 4, limit("g", minimum=25.0), limit("h", equals=40.0)),
        [1.0, 5.0, 5.0, 1.0],
        [1.0, 4.7429994, 3.8211503, 1.3794082],
        17.0140173,
    ),
}


def run(solver, problem: Problem, start=None, budget: int | None = None) -> tuple[InProcess, str]:
    """What was asked, and why it ended ("budget" when that was it)."""
    evaluate = InProcess(problem, budget)
    start_outcomes = no_outcomes(problem) if start is None else evaluate.outcomes(np.array(start, ndmin=2, dtype=float))
    try:
        return evaluate, solver.solve(problem, evaluate, np.random.default_rng(1), start_outcomes)
    except StageEnded:
        return evaluate, "budget"


def best(evaluate: InProcess, start=None) -> np.ndarray:
    """The best design."""
    X = evaluate.X if start is None else np.vstack([evaluate.X, start])
    outcomes = evaluate.outcomes(X)
    return X[np.lexsort((outcomes.objectives[:, 0], outcomes.rank_violation))[0]]


# --------------------------------------------------------------------------------------------------------------- rules


@pytest.mark.parametrize(
    ("solver", "settings"),
    [
        (SLSQP, {"starts": 3, "differences": "central"}),
        (NelderMead, {"starts": 2, "adaptive": True}),
        (LeastSquares, {"starts": 3, "differences": "central"}),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else ",".join(value) or "plain",
)
def test_they_keep_the_rules_of_solvers(solver, settings):
    check_solver(solver, settings, budget=40)


@pytest.mark.parametrize("solver", [SLSQP, NelderMead, LeastSquares])
def test_they_keep_the_rules_also_with_derivatives_and_without_limits(solver):
    check_solver(solver, problems=[ROSENBROCK[0]], budget=40)


# --------------------------------------------------------------------------------------------------------------- slsqp


@pytest.mark.parametrize("name", HOCK_SCHITTKOWSKI)
@pytest.mark.parametrize("gradient", ["model", "differences"])
def test_slsqp_finds_published_optima(name, gradient):
    problem, start, optimum, value = HOCK_SCHITTKOWSKI[name]
    evaluate, ended = run(SLSQP(gradient=gradient), problem, start)
    assert ended == "the search converged"
    design = best(evaluate)
    assert evaluate.outcomes(design[None]).feasible.all()  # also where a limit decides
    # The objective is exact to the tolerance of the search; flat around the optimum, so that designs are to its root.
    assert evaluate.outcomes(design[None]).objectives[0, 0] == pytest.approx(value, rel=1e-6, abs=1e-6)
    np.testing.assert_allclose(design, optimum, atol=2e-3)


@pytest.mark.parametrize("name", ["hs6", "hs35", "hs43", "hs71"])
def test_derivatives_of_the_model_save_evaluations(name):
    problem, start, *_ = HOCK_SCHITTKOWSKI[name]
    exact, forward, central = (
        len(run(SLSQP(gradient=g, differences=d), problem, start)[0].X)
        for g, d in (("auto", "forward"), ("differences", "forward"), ("differences", "central"))
    )
    assert exact < 0.6 * forward < 0.6 * central


def test_differences_are_asked_in_one_batch_with_the_start():
    problem, start, *_ = HOCK_SCHITTKOWSKI["hs71"]
    # The start is known; x1 = 5 and x2 = 5 are at their upper bounds, where differences turn round.
    batches = run(SLSQP(gradient="differences", step=1e-4), problem, start)[0].batches
    moved = batches[0] - np.array(start)
    np.testing.assert_allclose(moved, 4e-4 * np.diag([1.0, -1.0, -1.0, 1.0]), atol=1e-12)
    fresh = run(SLSQP(gradient="differences"), problem)[0].batches
    assert len(fresh[0]) == 5
    assert len(run(SLSQP(gradient="differences", differences="central"), problem)[0].batches[0]) == 9


def test_derivatives_of_the_model_and_differences_lead_the_same_way():
    # Same line search from the same start: iterates agree as far as differences are exact.
    problem, start, *_ = HOCK_SCHITTKOWSKI["hs71"]
    exact = run(SLSQP(gradient="model"), problem, start)[0].X
    singles = [
        b[0] for b in run(SLSQP(gradient="differences", differences="central", step=1e-5), problem, start)[0].batches
    ]
    walked = [x for x in singles if min(np.abs(exact - x).max(axis=1)) < 1e-4]
    assert len(walked) >= len(exact) - 1


def test_a_log_scale_parameter_is_searched_in_its_logarithm():
    def function(design, scenario):
        return {"f": (np.log(design["k"]) - 2.0) ** 2 + (design["x"] - 0.3) ** 2}

    space = [DesignVariable("k", "real", 1e-4, 1e4, scale="log"), DesignVariable("x", "real", 0.0, 1.0)]
    evaluate, _ = run(SLSQP(), problem_from(function, space, minimize=["f"]))
    assert evaluate.X[0].tolist() == [pytest.approx(1.0), 0.5]  # the middle of the space
    np.testing.assert_allclose(best(evaluate), [np.exp(2.0), 0.3], rtol=1e-4)
    assert len(evaluate.X) < 25  # quadratic in the logarithm: a few steps of d + 1 designs and a line search each


@model("local_log", version=1, unchecked=True)
class Logarithmic:
    """A bowl in the logarithm of k, in units of the model."""

    def evaluate(self, design, scenario):
        return {"f": (np.log(design["k"]) - 2.0) ** 2}

    def gradient(self, design, scenario):
        return {"f": {"k": 2.0 * (np.log(design["k"]) - 2.0) / design["k"]}}


def test_the_models_derivatives_are_carried_over_units_and_logarithms():
    problem = replace(
        posed("rosenbrock", 0.0, 1.0, 1),
        model=Use(find("model", "local_log")),
        space=Space((DesignVariable("k", "real", 10.0, 1e7, scale="log", factor=1e-3),)),
    )
    evaluate, _ = run(SLSQP(gradient="model"), problem)
    assert best(evaluate)[0] == pytest.approx(1e3 * np.exp(2.0), rel=1e-6)
    assert len(evaluate.X) <= 5


def test_relations_are_constraints_of_the_search_and_are_never_broken_on_the_way_in():
    def function(design, scenario):
        return {"f": (design["x"] - 1.0) ** 2 + (design["y"] - 1.0) ** 2}

    space = [DesignVariable(n, "real", 0.0, 1.0) for n in "xy"]
    problem = problem_from(function, space, minimize=["f"], relations=("x*x + y*y <= 1", "y >= 0.2"))
    evaluate, ended = run(SLSQP(), problem, [[0.3, 0.4]])
    assert ended == "the search converged"
    np.testing.assert_allclose(best(evaluate), [np.sqrt(0.5)] * 2, atol=1e-5)
    assert (problem.space.relation_violation(best(evaluate)[None]) == 0.0).all()


def test_the_worst_scenario_is_followed():
    # min over x of max((x - 0.2)^2, (x - 0.8)^2): at 0.5, where both are 0.09.
    def function(design, scenario):
        return {"f": (design["x"] - scenario["at"]) ** 2 + design["y"] ** 2}

    space = [DesignVariable("x", "real", 0.0, 1.0), DesignVariable("y", "real", -1.0, 1.0)]
    scenarios = (Scenario("left", {"at": 0.2}), Scenario("right", {"at": 0.8}))
    problem = problem_from(function, space, minimize=["f"], scenarios=scenarios)
    evaluate, _ = run(SLSQP(), problem, [[0.1, 0.5]])
    # The worst case has a kink there, for which SLSQP is not made: it comes near.
    assert best(evaluate)[0] == pytest.approx(0.5, abs=0.05)


# ---------------------------------------------------------------------------------------------- failures and endings


def cliff(design, scenario):
    """Falls towards x = 1, but has no result beyond 0.7."""
    if design["x"] > 0.7:
        raise Diverged("over the edge")
    return {"f": (design["x"] - 1.0) ** 2 + design["y"] ** 2}


PLANE = [DesignVariable("x", "real", 0.0, 1.0), DesignVariable("y", "real", -1.0, 1.0)]


@pytest.mark.parametrize("solver", [SLSQP(), NelderMead(), LeastSquares()], ids=lambda s: type(s).__name__)
def test_failed_designs_are_backed_away_from(solver):
    problem = problem_from(cliff, PLANE, minimize=["f"])
    evaluate, ended = run(solver, problem, [[0.2, 0.3]])
    assert len(evaluate.X) < 500
    assert ended.startswith("the search ")
    assert best(evaluate)[0] > 0.6  # near the edge at least, where it cannot go on


@pytest.mark.parametrize("solver", [SLSQP, NelderMead, LeastSquares])
def test_a_search_that_begins_without_a_result_ends_with_the_reason_and_the_next_begins(solver):
    problem = problem_from(cliff, [replace(PLANE[0], low=0.4), PLANE[1]], minimize=["f"])
    evaluate, ended = run(solver(starts=3), problem, [[0.5, 0.1], [0.45, 0.2]])
    assert ended.startswith("of 3 searches ")
    hopeless = problem_from(cliff, [replace(PLANE[0], low=0.75), PLANE[1]], minimize=["f"])
    evaluate, ended = run(solver(), hopeless)
    assert "began" in ended
    assert "result" in ended
    assert len(evaluate.X) <= 3


def test_searches_start_at_the_best_known_design_then_the_next_best_then_all_over_the_space():
    problem = problem_from(cliff, PLANE, minimize=["f"])
    designs = [[0.9, 0.0], [0.1, 0.0], [0.5, 0.0]]  # the first one fails
    firsts = [batch[0] for batch in run(NelderMead(starts=4, iterations=1), problem, designs)[0].batches]
    # The first simplex around each start is one batch; starts themselves are known.
    np.testing.assert_allclose(firsts[0], [0.6, 0.0], atol=1e-12)
    assert any(np.allclose(x, [0.2, 0.0]) for x in firsts)
    assert any(np.allclose(x, [0.75, -0.5]) for x in firsts)  # third point of the Sobol' sequence


def test_recorded_designs_are_not_requested_again():
    for solver in (SLSQP(), SLSQP(gradient="differences"), NelderMead(), LeastSquares()):
        X = run(solver, ROSENBROCK[0], ROSENBROCK[1])[0].X
        assert len(np.unique(X, axis=0)) == len(X)
        assert not (np.array(ROSENBROCK[1]) == X).all(axis=1).any()


def test_a_known_design_without_the_derivatives_that_are_recorded_is_evaluated_again():
    problem, start, *_ = HOCK_SCHITTKOWSKI["hs71"]
    for start_from, first in ((problem, 0), (replace(problem, gradients=False), 1)):
        start_outcomes = InProcess(start_from).outcomes(np.array([start]))
        evaluate = InProcess(problem)
        SLSQP(gradient="model").solve(problem, evaluate, np.random.default_rng(1), start_outcomes)
        assert (start == evaluate.X).all(axis=1).sum() == first


@model("local_shy", version=1, unchecked=True)
class Shy:
    """Keeps its derivative by y to itself where x is small."""

    def evaluate(self, design, scenario):
        return {"f": design["x"] ** 2 + (design["y"] - 0.5) ** 2}

    def gradient(self, design, scenario):
        slopes = {"x": 2.0 * design["x"], "y": 2.0 * (design["y"] - 0.5)}
        return {"f": slopes if design["x"] > 0.4 else {"x": slopes["x"], "y": np.nan}}


def test_a_derivative_that_the_model_does_not_know_is_replaced_or_the_reason_for_the_end():
    problem = replace(
        posed("rosenbrock", 0.0, 1.0, 2), model=Use(find("model", "local_shy")), space=Space(tuple(PLANE))
    )
    evaluate, ended = run(SLSQP(gradient="auto"), problem, [[0.9, -0.5]])
    assert ended == "the search converged"
    np.testing.assert_allclose(best(evaluate), [0.0, 0.5], atol=1e-4)
    _, ended = run(SLSQP(gradient="model"), problem, [[0.9, -0.5]])
    assert ended == "the search ended where the model's derivative with respect to 'y' is not known"


def test_a_search_reports_its_iteration_limit():
    problem, start, *_ = ROSENBROCK
    for solver in (SLSQP(iterations=3), NelderMead(iterations=3), LeastSquares(iterations=3)):
        assert run(solver, problem, start)[1] == "the search reached its maximum number of iterations"


def test_limits_that_cannot_be_met_together_are_reported():
    problem = posed("hs35", 0.0, 5.0, 3, limit("g", maximum=1.0), limit("g", minimum=30.0))
    assert "contradict" in run(SLSQP(), problem)[1]


def test_the_budget_ends_a_search():
    evaluate, ended = run(SLSQP(), HOCK_SCHITTKOWSKI["hs71"][0], budget=4)
    assert ended == "budget"
    assert len(evaluate.X) == 4


# --------------------------------------------------------------------------------------------------------- nelder_mead


def test_the_simplex_finds_the_minimum_of_rosenbrocks_valley():
    problem, start, optimum, _ = ROSENBROCK
    evaluate, ended = run(NelderMead(tolerance=1e-7), problem, start)
    assert ended == "the search converged"
    np.testing.assert_allclose(best(evaluate), optimum, atol=1e-5)
    assert len(evaluate.batches[0]) == 2  # the first simplex, its start known


def test_the_simplex_keeps_to_limits_by_order():
    problem, start, _, value = HOCK_SCHITTKOWSKI["hs35"]
    evaluate, _ = run(NelderMead(tolerance=1e-7, starts=3), problem, start)
    outcomes = evaluate.outcomes(evaluate.X)
    # On an active limit a simplex collapses early: it comes near (here within 2 %), not to the digit.
    assert outcomes.objectives[outcomes.feasible].min() == pytest.approx(value, rel=0.02)


def test_the_simplex_finds_the_end_of_a_front_in_the_objective_that_is_named():
    """x² + y² and (x - 1)² + 2 y² over [-2, 2]²: the ends of the front are (0, 0) and (1, 0)."""
    problem = Problem(
        model=Use(find("model", "local_two_bowls")),
        space=Space((DesignVariable("x", "real", -2.0, 2.0), DesignVariable("y", "real", -2.0, 2.0))),
        scenarios=(Scenario("only", {}),),
        objectives=tuple(Objective(name, Expression.parse(name), "minimize", WORST) for name in ("near", "far")),
    )
    for name, end in (("near", [0.0, 0.0]), ("far", [1.0, 0.0])):
        evaluate, ended = run(NelderMead(tolerance=1e-6, objective=name), problem, [0.4, 0.3])
        outcomes = evaluate.outcomes(evaluate.X)
        column = ("near", "far").index(name)
        assert ended == "the search converged"
        np.testing.assert_allclose(evaluate.X[outcomes.objectives[:, column].argmin()], end, atol=1e-4)
    with pytest.raises(InvalidSetting, match="name one of near, far, an end of the front"):
        NelderMead().check(problem)
    with pytest.raises(InvalidSetting, match="'mass' is no objective; known: near, far"):
        NelderMead(objective="mass").check(problem)


@model("local_two_bowls", version=1, unchecked=True)
def two_bowls(design, scenario):
    return {
        "near": design["x"] ** 2 + design["y"] ** 2,
        "far": (design["x"] - 1.0) ** 2 + 2.0 * design["y"] ** 2,
    }


# ------------------------------------------------------------------------------------------------------- least_squares

#: NIST Statistical Reference Datasets, nonlinear regression, Misra1a (Misra, D., NIST 1978: monomolecular adsorption).
MISRA1A = [
    (10.07, 77.6), (14.73, 114.9), (17.94, 141.1), (23.93, 190.8), (29.61, 239.9), (35.18, 289.0), (40.02, 332.8),
    (44.82, 378.4), (50.76, 434.8), (55.05, 477.3), (61.01, 536.8), (66.40, 593.1), (75.47, 689.1), (81.78, 760.0),
]  # fmt: skip
#: Certified there: parameters and residual sum of squares.
CERTIFIED = [2.3894212918e02, 5.5015643181e-04], 1.2455138894e-01


@model("local_misra1a", version=1, unchecked=True)
class Misra1a:
    """Adsorbed volume over pressure; one observation is one scenario."""

    def evaluate(self, design, scenario):
        return {"y": design["b1"] * (1.0 - np.exp(-design["b2"] * scenario["x"])), "measured": scenario["y"]}

    def gradient(self, design, scenario):
        e = np.exp(-design["b2"] * scenario["x"])
        slopes = {"b1": 1.0 - e, "b2": design["b1"] * scenario["x"] * e}
        return {"y": slopes, "measured": {"b1": 0.0, "b2": 0.0}}


def misra1a(text: str, gradients: bool) -> Problem:
    return Problem(
        model=Use(find("model", "local_misra1a")),
        space=Space((DesignVariable("b1", "real", 1.0, 1000.0), DesignVariable("b2", "real", 1e-5, 1e-2, scale="log"))),
        scenarios=tuple(Scenario(f"{x}", {"x": x, "y": y}) for y, x in MISRA1A),
        objectives=(Objective("misfit", Expression.parse(text), "minimize", Use(find("aggregation", "mean"))),),
        gradients=gradients,
    )


@pytest.mark.parametrize("text", ["y - measured", "abs(y - measured)", "1000*abs(measured - y)"])
@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("start", [[500.0, 0.0001], [250.0, 0.0005]])  # as given there
def test_least_squares_reproduces_certified_parameters(text, gradients, start):
    problem = misra1a(text, gradients)
    evaluate, ended = run(LeastSquares(differences="central", step=1e-5), problem, start)
    assert ended == "the search converged"
    squares = (evaluate.outcomes(evaluate.X).figures["y"] - [y for y, _ in MISRA1A]) ** 2
    row = int(np.argmin(squares.sum(axis=1)))
    # Certified to 11 digits; the data have 4, and the search ends at relative changes of 1e-10 in the sum.
    assert squares.sum(axis=1)[row] == pytest.approx(CERTIFIED[1], rel=1e-8)
    np.testing.assert_allclose(evaluate.X[row], CERTIFIED[0], rtol=1e-5)
    assert len(evaluate.X) < (60 if gradients else 200)


def test_every_objective_and_scenario_is_a_residual():
    # Two lines through a point that no single objective knows: x + y = 1 and x - y = s for s in (0.2, 0.4).
    def function(design, scenario):
        return {"sum": design["x"] + design["y"] - 1.0, "difference": design["x"] - design["y"] - scenario["s"]}

    scenarios = (Scenario("a", {"s": 0.2}), Scenario("b", {"s": 0.4}))
    problem = problem_from(function, PLANE, minimize=["sum", "difference"], scenarios=scenarios)
    evaluate, _ = run(LeastSquares(), problem)
    np.testing.assert_allclose(evaluate.X[-1], [0.65, 0.35], atol=1e-4)  # the mean of both scenarios


# -------------------------------------------------------------------------------------------------------------- checks


@pytest.mark.parametrize("solver", [SLSQP(), NelderMead(), LeastSquares()], ids=lambda s: type(s).__name__)
def test_fixed_parts_are_refused_as_variables(solver):
    def function(design, scenario):
        raise AssertionError("declared to be refused, never to be run")

    for parameter, what in (
        (DesignVariable("n", "int", 0, 3), "'n' is an integer"),
        (DesignVariable("kind", "choice", values=("a", "b")), "'kind' is a choice"),
    ):
        with pytest.raises(InvalidSetting, match=f"moves real parameters only and {what}"):
            solver.check(problem_from(function, [*PLANE, parameter], minimize=["f"]))
    with pytest.raises(InvalidSetting, match="needs a free parameter"):
        solver.check(problem_from(function, [DesignVariable("x", "fixed", values=(1.0,))], minimize=["f"]))


def test_questions_that_they_cannot_answer_are_refused():
    problem_of_two = replace(ROSENBROCK[0], objectives=ROSENBROCK[0].objectives * 2)
    with pytest.raises(InvalidSetting, match="has one objective; this study has 2"):
        SLSQP().check(problem_of_two)
    with pytest.raises(InvalidSetting, match="supports bounds but no limits"):
        LeastSquares().check(HOCK_SCHITTKOWSKI["hs35"][0])
    largest = replace(ROSENBROCK[0].objectives[0], direction="maximize")
    with pytest.raises(InvalidSetting, match="cannot maximise 'f'"):
        LeastSquares().check(replace(ROSENBROCK[0], objectives=(largest,)))
    for solver in (SLSQP(gradient="model"), LeastSquares(gradient="model")):
        with pytest.raises(InvalidSetting, match=r"^gradient: model 'local_formulas' has no derivatives"):
            solver.check(replace(ROSENBROCK[0], gradients=False))
