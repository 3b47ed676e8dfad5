"""Derivatives of expressions, of objectives, limits and residuals in the study's units, and recorded by evaluations."""

import math
from dataclasses import replace
from typing import Annotated

import numpy as np
import pytest

from designopt.plugin import Diverged, Quantity, Use, aggregation, find, model, objective
from designopt.problem import Problem
from designopt.space import Space
from designopt.study.language.expressions.derivative import derivatives
from designopt.study.language.expressions.expression import Expression
from designopt.study.study import DesignVariable, Objective, Scenario, StudyConstraint
from designopt.workers.evaluation.evaluate import Evaluator

# --------------------------------------------------------------------------------------------------------- expressions

AT = {"x": 0.7, "y": -1.3, "z": 2.5}


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "3*x - y/z + 2",
        "-(x - y)*(x + z)",
        "x/(y*z)",
        "abs(y) + abs(x)",
        "sqrt(x*z) - log(z) + exp(-y)",
        "z**3 + x**-2 + y**2",
        "x**z + z**(x*y)",
        "min(x, y, z)*max(x, y, z)",
        "max(x*y, min(z, 4) - x)",
        "abs(x - y)**1.5/(1 + exp(-z))",
        "x + 2*x*x - x",
    ],
)
def test_the_derivative_of_an_expression_is_that_of_central_differences(text):
    expression = Expression.parse(text)
    slopes = derivatives(expression, {name: np.array([[value]]) for name, value in AT.items()})
    assert slopes.keys() == expression.names
    h = 1e-5
    for name, slope in slopes.items():
        high, low = (expression.evaluate({**AT, name: AT[name] + step}) for step in (h, -h))
        # Central differences are wrong by h^2/6 times a third derivative (below 100 here) and by rounding, 1e-16/h.
        assert slope.shape == (1, 1)
        assert slope[0, 0] == pytest.approx((high - low) / (2.0 * h), abs=5e-9, rel=5e-9)


def test_derivatives_are_taken_element_by_element():
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert derivatives(Expression.parse("x*x"), {"x": x})["x"].tolist() == (2.0 * x).tolist()


def test_at_a_kink_one_side_is_taken():
    at = {"x": 1.0, "y": 1.0, "z": 0.0}
    assert derivatives(Expression.parse("max(x, y)"), at) == {"x": 1.0, "y": 0.0}
    assert derivatives(Expression.parse("min(2*x, 3 - y)"), at) == {"x": 2.0, "y": 0.0}
    assert derivatives(Expression.parse("abs(z)"), at) == {"z": 0.0}


@pytest.mark.parametrize("text", ["sqrt(x)", "log(x)", "1/x"])
def test_a_missing_derivative_is_not_finite(text):
    assert not np.isfinite(derivatives(Expression.parse(text), {"x": 0.0})["x"])


def test_an_inactive_branch_does_not_enter_the_derivative():
    assert derivatives(Expression.parse("max(x, sqrt(y))"), {"x": 2.0, "y": 0.0}) == {"x": 1.0, "y": 0.0}


def test_a_relation_has_no_derivative():
    with pytest.raises(ValueError, match="is a relation"):
        derivatives(Expression.parse("x <= 1"), {"x": 0.0})


# ------------------------------------------------------------------------------------------------------------- problem


@model("gradients_plate", version=1, unchecked=True)
class Plate:
    """Smooth figures of two inputs, a condition and a choice."""

    broken: str = ""

    def evaluate(self, design, scenario):
        a, b, load = design["a"], design.get("b", 0.0), scenario.get("load", 1.0)
        return {"stress": load * a * a / (1.0 + b), "mass": 3.0 * a + b * b}

    def gradient(self, design, scenario):
        a, b, load = design["a"], design.get("b", 0.0), scenario.get("load", 1.0)
        if self.broken == "diverged" and a > 0.5:
            raise Diverged("a corner")
        slopes = {
            "stress": {"a": 2.0 * load * a / (1.0 + b), "b": -load * a * a / (1.0 + b) ** 2},
            "mass": {"a": 3.0, "b": 2.0 * b},
        }
        if self.broken == "nan":
            slopes["mass"]["b"] = math.nan
        if self.broken == "partly":
            del slopes["mass"], slopes["stress"]["b"]
        return slopes


@objective("gradients_twice", version=1)
def twice(mass) -> Annotated[float, Quantity("", "twice the mass")]:
    """A figure computed from an output."""
    return 2.0 * mass


@aggregation("gradients_square_mean", version=1)
def square_mean(values):
    """An aggregation that does not tell its derivative."""
    return (values**2).mean(axis=1)


A = DesignVariable("a", "real", 100.0, 900.0, factor=1e-3)  # mm in the study, m in the model
B = DesignVariable("b", "real", 0.0, 2.0)
LOADS = tuple(Scenario(f"s{load}", {"load": load}) for load in (1.0, 3.0, 2.0, 5.0))


def over(name: str, **settings) -> Use:
    return Use(find("aggregation", name), settings)


def scored(text: str, aggregated: Use, direction: str = "minimize") -> Objective:
    return Objective(text, Expression.parse(text), direction, aggregated)


def plate(*objectives: Objective, parameters=(A, B), limits=(), settings=None, scenarios=LOADS) -> Problem:
    return Problem(
        model=Use(find("model", "gradients_plate"), settings or {}),
        space=Space(parameters),
        scenarios=scenarios,
        objectives=objectives or (scored("stress", over("worst")),),
        constraints=limits,
        figures={"twice": Use(find("objective", "gradients_twice"))},
        gradients=True,
    )


def figures_at(problem: Problem, X: np.ndarray) -> dict[str, np.ndarray]:
    evaluator = Evaluator.for_problem(problem)
    outputs_of_rows = [
        [evaluator.evaluate(problem.space.design(x), s).outputs for s in range(len(problem.scenarios))]
        for x in X.tolist()
    ]
    names = dict.fromkeys(name for row in outputs_of_rows for outputs in row for name in outputs)
    return {
        name: np.array([[outputs.get(name, np.nan) for outputs in row] for row in outputs_of_rows]) for name in names
    }


X = np.array([[300.0, 0.5], [800.0, 1.5]])


def differences(problem: Problem, values) -> np.ndarray:
    """Central differences of `values`, a function of figures, by the parameters in the study's units: (n, k, d)."""
    columns = []
    for j, step in enumerate((1e-2, 1e-5)):
        move = step * np.eye(2)[j]
        columns.append((values(figures_at(problem, X + move)) - values(figures_at(problem, X - move))) / (2.0 * step))
    return np.stack(columns, axis=2)


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize(
    "aggregated",
    [
        over("nominal"),
        over("worst"),
        over("mean"),
        over("quantile", level=0.6),
        over("cvar", level=0.4),
        over("mean_plus_deviation", times=2.0),
    ],
    ids=lambda use: use.plugin.name,
)
def test_gradients_of_objectives_are_in_the_studys_units_and_of_the_scenarios_that_count(direction, aggregated):
    problem = plate(scored("log(stress)*mass - abs(mass - 4)", aggregated, direction), scored("mass", over("mean")))

    def objectives(figures):
        return problem.judge(X, figures, np.zeros((2, 4), bool)).objectives

    gradients = problem.objective_gradients(X, figures_at(problem, X))
    assert gradients.shape == (2, 2, 2)
    np.testing.assert_allclose(gradients, differences(problem, objectives), rtol=1e-7, atol=1e-9)


def test_limits_are_one_sided_relative_to_their_size_and_have_gradients():
    limits = (
        StudyConstraint("both", Expression.parse("stress"), over("worst"), minimum=0.1, maximum=2.0),
        StudyConstraint("equal", Expression.parse("mass"), over("mean"), equals=-4.0),
        StudyConstraint("zero", Expression.parse("mass*stress"), over("worst"), equals=0.0),
    )
    problem = plate(limits=limits)
    assert [(limit.constraint.name, limit.sign, limit.equality) for limit in problem.limits] == [
        ("both", -1.0, False),
        ("both", 1.0, False),
        ("equal", 1.0, True),
        ("zero", 1.0, True),
        ("zero", -1.0, True),
    ]
    figures = figures_at(problem, X)
    values = problem.constraint_values(figures)
    stress, mass = figures["stress"], figures["mass"]
    np.testing.assert_allclose(values[:, 0], (0.1 - stress.min(axis=1)) / 0.1)
    np.testing.assert_allclose(values[:, 1], (stress.max(axis=1) - 2.0) / 2.0)
    np.testing.assert_allclose(values[:, 2], (mass[:, 0] + 4.0) / 4.0)
    np.testing.assert_allclose(values[:, 3:], np.column_stack([mass[:, 0]] * 2) * stress[:, [3, 0]] * [1, -1])
    slopes = problem.constraint_gradients(X, figures)
    np.testing.assert_allclose(slopes, differences(problem, problem.constraint_values), rtol=1e-7, atol=1e-9)


def test_limits_and_judges_find_the_same_violations():
    limits = (
        StudyConstraint("both", Expression.parse("stress"), over("worst"), minimum=1.0, maximum=1.1),
        StudyConstraint("equal", Expression.parse("mass"), over("worst"), equals=2.0),
    )
    problem = plate(limits=limits, scenarios=LOADS[:1])
    figures = figures_at(problem, X)
    values = problem.constraint_values(figures)
    passed = np.where([limit.equality for limit in problem.limits], np.abs(values), np.maximum(values, 0.0))
    violation = problem.judge(X, figures, np.zeros((2, 1), bool)).violation
    np.testing.assert_allclose(passed.sum(axis=1), violation, rtol=1e-14)


def test_no_limits_have_no_columns():
    problem = plate()
    figures = figures_at(problem, X)
    assert problem.constraint_values(figures).shape == (2, 0)
    assert problem.constraint_gradients(X, figures).shape == (2, 0, 2)


def test_residuals_are_not_aggregated():
    problem = plate(scored("stress - 1", over("worst")), scored("mass", over("mean"), "maximize"))
    figures = figures_at(problem, X)
    residuals = problem.residuals(figures)
    assert residuals.tolist() == np.hstack([figures["stress"] - 1.0, figures["mass"]]).tolist()
    slopes = problem.residual_gradients(X, figures)
    np.testing.assert_allclose(slopes, differences(problem, problem.residuals), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("text", ["twice", "mass + twice"])
def test_figures_of_objective_plugins_have_no_gradient(text):
    problem = plate(scored(text, over("mean")))
    assert np.isnan(problem.objective_gradients(X, figures_at(problem, X))).all()


def test_an_aggregation_without_weights_has_no_gradient():
    problem = plate(scored("mass", over("gradients_square_mean")))
    assert np.isnan(problem.objective_gradients(X, figures_at(problem, X))).all()


def test_integers_and_choices_have_no_gradient():
    parameters = (A, DesignVariable("b", "int", 0, 3), DesignVariable("kind", "choice", values=("u", "v")))
    problem = plate(scored("mass", over("mean")), parameters=parameters)
    rows = np.array([[300.0, 1.0, 0.0]])
    figures = figures_at(problem, rows)
    assert "d(mass)/d(b)" not in figures
    gradients = problem.objective_gradients(rows, figures)[0, 0]
    assert gradients[0] == pytest.approx(3e-3, rel=1e-15)
    assert np.isnan(gradients[1:]).all()


def test_inactive_parameters_do_not_change_anything():
    parameters = (A, DesignVariable("kind", "fixed", values=("u",)), replace(B, when={"kind": ("v",)}))
    problem = plate(scored("mass", over("mean")), parameters=parameters)
    assert problem.objective_gradients(X, figures_at(problem, X))[:, 0].tolist() == [[0.003, 0.0], [0.003, 0.0]]


# ----------------------------------------------------------------------------------------------------------- recorded


def test_evaluations_record_derivatives_only_when_the_problem_says_so():
    problem = plate()
    design = problem.space.design(X[0].tolist())
    assert set(Evaluator.for_problem(problem).evaluate(design).outputs) == {
        "stress", "mass", "twice", "d(stress)/d(a)", "d(stress)/d(b)", "d(mass)/d(a)", "d(mass)/d(b)"
    }  # fmt: skip
    assert set(Evaluator.for_problem(replace(problem, gradients=False)).evaluate(design).outputs) == {
        "stress",
        "mass",
        "twice",
    }


def test_a_derivative_that_is_not_finite_does_not_spoil_the_result():
    problem = plate(scored("mass", over("mean")), settings={"broken": "nan"})
    evaluation = Evaluator.for_problem(problem).evaluate(problem.space.design(X[0].tolist()))
    assert evaluation.ok
    gradients = problem.objective_gradients(X, figures_at(problem, X))
    assert np.isnan(gradients[:, 0, 1]).all()
    assert np.isfinite(gradients[:, 0, 0]).all()


def test_derivatives_that_are_left_out_are_not_known():
    problem = plate(scored("mass", over("mean")), scored("stress", over("worst")), settings={"broken": "partly"})
    gradients = problem.objective_gradients(X, figures_at(problem, X))
    assert np.isnan(gradients[:, 0]).all()
    assert np.isnan(gradients[:, 1]).tolist() == [[False, True], [False, True]]


def test_a_design_without_derivatives_keeps_its_result():
    problem = plate(scored("mass", over("mean")), settings={"broken": "diverged"})
    figures = figures_at(problem, X)
    assert np.isfinite(figures["mass"]).all()
    assert np.isnan(problem.objective_gradients(X, figures)).any(axis=(1, 2)).tolist() == [False, True]
