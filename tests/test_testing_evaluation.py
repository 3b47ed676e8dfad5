"""Evaluation without a runner: derivatives on record, and solvers that ask ahead, with whom it talks as a run does."""

from dataclasses import replace

import numpy as np

from designopt.plugin import Diverged, InvalidDesign, Use, model
from designopt.problem import StageEnded
from designopt.study.study import DesignVariable
from designopt.testing import InProcess, problem_from

SQUARE = (DesignVariable("x", "real", 0.0, 1.0), DesignVariable("y", "real", 0.0, 1.0))


def line(design, scenario):
    """Derivatives of it are recorded nowhere: the model below takes its place."""
    return {"f": design["x"]}


def test_derivatives_are_recorded_where_the_problem_asks_for_them():
    @model("derived", version=1, unchecked=True)
    class Derived:
        def evaluate(self, design, scenario):
            return {"f": design["x"] ** 2}

        def gradient(self, design, scenario):
            if design["x"] > 0.5:
                raise Diverged("a kink")
            return {"f": {"x": 2.0 * design["x"]}}

    problem = replace(problem_from(line, SQUARE, minimize="f"), model=Use(Derived.__designopt__), gradients=True)
    X = np.array([[0.25, 0.0], [0.75, 0.0]])
    out = InProcess(problem)(X)
    np.testing.assert_array_equal(problem.objective_gradients(X, out.figures)[:, 0, 0], [0.5, np.nan])
    np.testing.assert_array_equal(out.figures["d(f)/d(x)"], [[0.5], [np.nan]])


def asked_ahead(look_ahead, budget=None, ends_after=None, refused=()):
    """What is asked and told, in order, when designs are numbered by their first value."""

    def function(design, scenario):
        if round(10 * design["x"]) in refused:
            raise InvalidDesign("refused")
        return {"f": design["x"]}

    evaluate = InProcess(problem_from(function, SQUARE, minimize="f"), budget)
    talk = []

    def ask():
        number = sum(event.startswith("ask") for event in talk)
        talk.append(f"ask {number}")
        return np.empty((0, 2)) if number == ends_after else np.array([[number / 10.0, 0.0]])

    def tell(outcomes):
        talk.append(f"tell {round(10 * outcomes.X[0, 0])}")

    try:
        evaluate.ahead(ask, tell, look_ahead)
        talk.append("done")
    except StageEnded:
        talk.append("ended")
    return ", ".join(talk)


def test_ask_i_comes_after_the_tell_of_i_minus_the_look_ahead_and_before_the_next():
    assert asked_ahead(1, ends_after=2) == "ask 0, tell 0, ask 1, tell 1, ask 2, done"
    assert asked_ahead(2, ends_after=3) == "ask 0, ask 1, tell 0, ask 2, tell 1, ask 3, tell 2, done"
    assert asked_ahead(5, ends_after=2) == "ask 0, ask 1, ask 2, tell 0, tell 1, done"


def test_designs_proposed_ahead_are_reported_before_a_spent_budget_ends_the_stage():
    """What there is no budget for is asked in its turn all the same, and evaluated when one before it is refused."""
    assert asked_ahead(2, budget=3) == "ask 0, ask 1, tell 0, ask 2, tell 1, ask 3, tell 2, ended"
    talk = "ask 0, ask 1, tell 0, ask 2, tell 1, ask 3, tell 2, ended"
    assert asked_ahead(2, budget=2, refused=(1,)) == talk
