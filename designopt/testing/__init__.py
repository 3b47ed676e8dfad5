"""Tests for plugin authors: `check_model` and `check_solver`, and evaluation without a runner.

Examples:
    >>> from designopt.testing import check_model
    >>> check_model(my_model, {"mass": 3.0}, designs=[{"stiffness": 2e4}, {"stiffness": 3e4}])  # doctest: +SKIP

Both raise `AssertionError` with a sentence that states the actual and the required behaviour.
"""

from designopt.testing.evaluation import InProcess, no_outcomes, problem_from
from designopt.testing.models import check_model
from designopt.testing.problems import conformance_problems
from designopt.testing.solvers import check_solver

__all__ = ["InProcess", "check_model", "check_solver", "conformance_problems", "no_outcomes", "problem_from"]
