"""Search coordinates, values and units, relations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problem_cases import MIXED, real

from designopt.space import Space
from designopt.study.language.expressions.expression import Expression
from designopt.study.study import DesignVariable

# ------------------------------------------------------------------------------------------------- search coordinates


def test_columns_are_the_free_parameters_in_their_order():
    assert MIXED.names == ("x", "k", "n", "kind")


def test_bounds_in_search_coordinates_leave_half_a_step_around_integers_and_choices():
    assert MIXED.lower.tolist() == [-1.0, np.log(0.3), -2.5, -0.5]
    assert MIXED.upper.tolist() == [2.0, np.log(700.0), 3.5, 2.5]


def test_search_bounds_lead_exactly_to_the_bounds_of_the_parameters():
    assert MIXED.from_search(np.array([MIXED.lower, MIXED.upper])).tolist() == [[-1.0, 0.3, -2, 0], [2.0, 700.0, 3, 2]]


def test_search_coordinates_beyond_the_bounds_are_clipped():
    assert MIXED.from_search(np.array([[-9.0, -99.0, -99.0, -99.0]])).tolist() == [[-1.0, 0.3, -2, 0]]


@given(st.lists(st.floats(0.0, 1.0), min_size=4, max_size=4))
def test_designs_are_in_bounds_whole_where_they_must_be_and_come_back_from_search_coordinates(u):
    X = MIXED.from_search(MIXED.lower + np.array([u]) * (MIXED.upper - MIXED.lower))
    assert np.all(X >= [-1.0, 0.3, -2, 0])
    assert np.all(X <= [2.0, 700.0, 3, 2])
    assert np.array_equal(X[:, 2:], np.rint(X[:, 2:]))
    assert not np.any(np.signbit(X[:, 2:]) & (X[:, 2:] == 0.0))  # no -0.0: it would look like another design
    np.testing.assert_allclose(MIXED.from_search(MIXED.to_search(X)), X, rtol=1e-14)


def test_integers_are_equally_likely_in_search_coordinates():
    S = np.linspace(MIXED.lower, MIXED.upper, 60001)
    counts = np.unique(MIXED.from_search(S)[:, 2], return_counts=True)[1]
    assert counts.max() - counts.min() <= 2


# -------------------------------------------------------------------------------------------------- values and units


def test_values_are_in_the_studys_units_with_the_right_types():
    values = MIXED.values([0.5, 3.0, 2.0, 1.0])
    assert values == {"x": 0.5, "k": 3.0, "mass": 3.5, "n": 2, "kind": "hard"}
    assert type(values["n"]) is int


def test_the_model_receives_its_own_units():
    space = Space(
        (
            real("temperature", 0.0, 100.0, unit="degC", offset=273.15),
            DesignVariable("length", "choice", values=(10, 25), unit="mm", factor=1e-3),
            DesignVariable("force", "fixed", values=(2,), unit="kN", factor=1e3),
            DesignVariable("offset", "int", -3, 3, unit="mm", factor=1e-3),
        )
    )
    assert space.design([20.0, 1.0, -2.0]) == pytest.approx(
        {"temperature": 293.15, "length": 0.025, "force": 2000.0, "offset": -0.002}
    )
    assert space.values([20.0, 1.0, -2.0]) == {"temperature": 20.0, "length": 25, "force": 2, "offset": -2}


def test_excess_adds_up_what_breaks_the_relations():
    space = Space((real("x"), real("y")), (Expression.parse("x <= 0.5"), Expression.parse("y >= 2*x")))
    X = np.array([[0.25, 0.5], [0.75, 1.75], [0.5, 0.5], [1.0, 1.0]])
    assert space.relation_violation(X).tolist() == [0.0, 0.25, 0.5, 1.5]


def test_relations_see_choices_by_value_and_fixed_parameters():
    parameters = (DesignVariable("n", "choice", values=(2, 8)), DesignVariable("most", "fixed", values=(5,)))
    assert Space(parameters, (Expression.parse("n <= most"),)).relation_violation(
        np.array([[0.0], [1.0]])
    ).tolist() == [0.0, 3.0]


def test_a_relation_that_cannot_be_computed_is_broken_without_bound():
    space = Space((real("x", -1.0, 1.0),), (Expression.parse("log(x) <= 1"),))
    assert space.relation_violation(np.array([[0.5], [-0.5], [0.0]])).tolist() == [0.0, np.inf, np.inf]
