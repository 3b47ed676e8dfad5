"""One design of a trajectory problem, and how results show themselves."""

import pytest
from designopt_motion.cart_pole import CartPole

from designopt.collocation import Options, ProblemError, solve_design

PROBLEM = CartPole().trajectory_problem({})
OPTIONS = Options(intervals=12, check=False)


def test_a_design_holds_every_parameter_of_the_problem():
    solution = solve_design(PROBLEM, {"pole_length": 0.5, "duration": 2.0, "colour": 3.0}, OPTIONS)
    assert solution.parameters == pytest.approx({"pole_length": 0.5, "duration": 2.0}, abs=1e-9)


@pytest.mark.parametrize("design", [{}, {"pole_lenght": 0.5, "duration": 2.0}])
def test_a_parameter_that_the_design_leaves_out_is_not_freed_but_named(design):
    with pytest.raises(ProblemError, match=r"parameters.pole_length: the design has no value for it"):
        solve_design(PROBLEM, design, OPTIONS)


def test_a_result_shows_itself_in_a_line():
    solution = solve_design(PROBLEM, {"pole_length": 0.5, "duration": 2.0}, OPTIONS)
    assert repr(solution).startswith("Solution(SOLVED, objective=57.")
    assert "pole_length=0.5" in repr(solution)
    assert len(repr(solution)) < 300
    assert repr(solution.phase).startswith("PhaseSolution('swing_up', 0 to 2, 12 intervals: cart, angle")


def test_a_coarse_mesh_is_reported():
    design = {"pole_length": 0.5, "duration": 2.0}
    assert (
        "The mesh is coarse: take more intervals, or refine."
        in solve_design(PROBLEM, design, Options(intervals=10)).message
    )
    assert "coarse" not in solve_design(PROBLEM, design, Options(intervals=80)).message
