"""Expressions: grammar, values, units, canonical text."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from designopt.study.language.expressions.expression import Expression
from designopt.study.language.expressions.grammar import MAX_DEPTH, ExpressionError

VALUES = {"a": 2.0, "b": 3.0, "c": -4.0, "x_1": 0.5}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 - a", -1.0),
        ("a - b - c", 3.0),
        ("a / b / c", 2.0 / 3.0 / -4.0),
        ("-a**2", -4.0),
        ("2**-1", 0.5),
        ("2**3**2", 512.0),
        ("(2**3)**2", 64.0),
        ("a + b * c", -10.0),
        ("(a + b) * c", -20.0),
        ("abs(c) + min(a, b, c) + max(a, b)", 3.0),
        ("sqrt(4) + log(exp(1))", 3.0),
        ("+a - -b", 5.0),
        (".5e1*x_1", 2.5),
        ("a*-b", -6.0),
    ],
)
def test_values(text, value) -> None:
    assert Expression.parse(text).evaluate(VALUES) == pytest.approx(value, rel=1e-15)


def test_arrays_are_taken_elementwise_and_domain_errors_are_nan() -> None:
    a = np.array([[-1.0, 0.0], [1.0, 4.0]])
    values = Expression.parse("sqrt(a) + 1/a").evaluate({"a": a})
    assert values.shape == (2, 2)
    assert np.isnan(values[0, 0])
    assert np.isinf(values[0, 1])
    assert values[1].tolist() == [2.0, 2.25]
    assert np.isnan(Expression.parse("log(a)").evaluate({"a": -1.0}))
    assert np.isinf(Expression.parse("a/0").evaluate({"a": 1.0}))
    assert Expression.parse("a**(-2)").evaluate({"a": np.array([2])}).tolist() == [0.25]


@pytest.mark.parametrize(
    ("text", "relation_violation"),
    [("a <= b", -1.0), ("a < b", -1.0), ("a >= b", 1.0), ("b > a", -1.0), ("a == b", 1.0)],
)
def test_how_far_a_relation_is_broken(text, relation_violation) -> None:
    relation = Expression.parse(text)
    assert relation.is_relation
    assert relation.relation_violation(VALUES) == relation_violation
    assert relation.evaluate(VALUES) == (relation_violation <= 0.0)


@pytest.mark.parametrize(
    ("text", "offset", "length", "message"),
    [
        ("", 0, 1, "ends too early"),
        ("1 +", 2, 1, "ends too early"),
        ("1 + * 2", 4, 1, "unexpected '*'"),
        ("a b", 2, 1, "unexpected 'b'"),
        ("(a", 0, 1, "never closed"),
        ("a)", 1, 1, "unexpected ')'"),
        ("foo(1)", 0, 3, "no function 'foo'"),
        ("a <= b <= c", 7, 2, "only one comparison"),
        ("(a <= b)", 3, 2, "not allowed inside parentheses"),
        ("a != b", 2, 2, "'!=' is not supported"),
        ("a = b", 2, 1, "write '=='"),
        ("a; b", 1, 1, "';' is not allowed in an expression"),
        ("a.b", 1, 1, "'.' is not allowed in an expression"),
        ("__import__('os')", 11, 1, "is not allowed in an expression"),
        ("5 [mm", 2, 1, "']' is missing"),
        ("5 [qq]", 3, 2, "unknown unit 'qq'"),
        ("5 []", 2, 2, "a unit is missing"),
        ("a [mm]", 2, 1, "directly after a number"),
        ("1e999", 0, 5, "too large"),
        ("min(a)", 0, 3, "at least two"),
        ("sqrt(a, b)", 0, 4, "takes one value"),
        ("abs()", 4, 1, "unexpected ')'"),
        ("(" * 500 + "a", MAX_DEPTH, 1, "nested"),
        ("-" * 500 + "a", MAX_DEPTH, 1, "nested"),
        ("+".join("a" * 500), 2 * MAX_DEPTH - 1, 1, "nested"),
        ("2**" * 500 + "2", None, None, "nested"),
        ("abs(" * 350 + "a" + ")" * 350, None, None, "nested"),
        ("a" * 2001, 0, 1, "at most 2000 characters"),
    ],
)
def test_a_mistake_has_its_place(text, offset, length, message) -> None:
    with pytest.raises(ExpressionError) as caught:
        Expression.parse(text)
    error = caught.value
    assert message in error.message
    assert offset is None or error.offset == offset
    assert length is None or error.length == length


def _texts() -> st.SearchStrategy[str]:
    numbers = st.floats(0, 1e6, allow_nan=False).map(repr)
    leaves = st.one_of(numbers, st.sampled_from(["a", "b", "c", "x_1", "5 [mm]", "2"]))

    def extend(inner):
        return st.one_of(
            st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "**"]), inner).map(
                lambda t: f"({t[0]}){t[1]}({t[2]})"
            ),
            inner.map(lambda t: f"-({t})"),
            inner.map(lambda t: f"-{t}"),
            st.tuples(inner, inner).map(lambda t: f"max({t[0]}, {t[1]})"),
            inner.map(lambda t: f"sqrt({t})"),
        )

    return st.recursive(leaves, extend, max_leaves=12)


@settings(max_examples=200, deadline=None)
@given(_texts())
def test_the_canonical_text_reads_back_as_the_same_expression(text) -> None:
    first = Expression.parse(text)
    second = Expression.parse(str(first))
    assert str(second) == str(first)
    assert second == first
    if "[" not in text:
        assert np.array_equal(first.evaluate(VALUES), second.evaluate(VALUES), equal_nan=True)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab1. +-*/()<>=[],m$\n", max_size=40))
def test_any_text_is_an_expression_or_an_expression_error(text) -> None:
    try:
        span = (0, 1) if Expression.parse(text).root else (-1, 0)
    except ExpressionError as error:
        span = (error.offset, error.length)
    assert 0 <= span[0] <= len(text)
    assert span[1] >= 1


UNITS = {"x": "m", "y": "mm", "f": "N", "phi": "deg", "r": "", "bare": None, "v": "m/s", "t": "s", "T": "degC"}


@pytest.mark.parametrize(
    ("text", "bound", "unit"),
    [
        ("x + y", "x + 0.001*y", "m"),
        ("y - x", "y - 1000*x", "mm"),
        ("x + 5 [mm]", "x + 0.005", "m"),
        ("5 [mm] + x", "5 + 1000*x", "mm"),
        ("x + 5", "x + 5", "m"),
        ("1 - r", "1 - r", ""),
        ("bare + x", "bare + x", "m"),
        ("min(x, y, 3)", "min(x, 0.001*y, 3)", "m"),
        ("f*x", "f*x", "N m"),
        ("f*x/t", "f*x/t", "N m/s"),
        ("x/x + 1", "x/x + 1", ""),
        ("sqrt(x**2 + y**2)", "sqrt(x**2 + 1e-06*y**2)", "m"),
        ("x**-1", "x**-1", "1/m"),
        ("log(x/y)", "log(1000*(x/y))", ""),
        ("abs(phi) + 1 [rad]", f"abs(phi) + {math.degrees(1.0)!r}", "deg"),
        ("exp(r)*x", "exp(r)*x", "m"),
        ("x <= y", "x <= 0.001*y", "m"),
        ("2*3", "2*3", None),
        ("v*t + x", "v*t + x", "m"),
        ("r**bare", "r**bare", ""),
    ],
)
def test_units_are_resolved(text, bound, unit) -> None:
    expression, bound_unit = Expression.parse(text).bound(UNITS)
    assert (str(expression), bound_unit) == (bound, unit)


@pytest.mark.parametrize(
    ("text", "offset", "length"),
    [
        ("x + f", 4, 1),
        ("x + 3 [N]", 4, 5),
        ("x <= 2*f", 5, 3),
        ("max(x, t)", 7, 1),
        ("log(x)", 4, 1),
        ("exp(2*x)", 4, 3),
        ("x**r", 3, 1),
        ("x**x", 3, 1),
        ("x**100", 3, 3),
        ("2**t", 3, 1),
        ("T + 300 [K]", 4, 7),
        ("x**9*x**9 + x", 0, 13),
    ],
)
def test_units_that_do_not_fit_are_reported_at_their_place(text, offset, length) -> None:
    with pytest.raises(ExpressionError) as caught:
        Expression.parse(text).bound(UNITS)
    assert (caught.value.offset, caught.value.length) == (offset, length)


def test_a_unit_must_be_resolved_before_values_are_asked_for() -> None:
    with pytest.raises(ValueError, match="call bind"):
        Expression.parse("5 [mm]").evaluate({})


def test_names_and_pickles() -> None:
    expression = Expression.parse("a + max(b, a) - 2")
    assert expression.names == {"a", "b"}
    assert pickle.loads(pickle.dumps(expression)) == expression
    assert len({expression, Expression.parse("a+max(b,a)-2")}) == 1


def test_the_written_value_is_stored_beside_the_converted_one() -> None:
    parsed = Expression.parse(" 2*length  +  5 [mm] ")
    bound, unit = parsed.bound({"length": "m"})
    scaled = bound.in_unit(unit, "mm")
    assert str(scaled) == "1000*(2*length + 0.005)"
    assert [e.text for e in (parsed, bound, scaled, pickle.loads(pickle.dumps(scaled)))] == ["2*length + 5 [mm]"] * 4
    assert scaled == Expression.parse("1000*(2*length + 0.005)")
    assert Expression(scaled.root).text == str(scaled)


@pytest.mark.parametrize(
    ("text", "offset", "length", "message"),
    [
        ("x + 1/0", 6, 1, "division by zero"),
        ("x/(2 - 2)", 3, 5, "division by zero"),
        ("x + 1/0 [mm]", 6, 6, "division by zero"),
        ("x <= 0/0.0", 7, 3, "division by zero"),
        ("x + log(0)", 4, 6, "not a finite number"),
        ("x*sqrt(-1)", 2, 8, "not a finite number"),
        ("max(x, exp(1000))", 7, 9, "not a finite number"),
        ("1e300*1e300*x", 0, 11, "not a finite number"),
        ("x + (-8)**(1/3)", 5, 9, "not a finite number"),
        ("x + 0**-1", 4, 5, "not a finite number"),
    ],
)
def test_a_constant_that_is_no_finite_number_is_found_at_its_place(text, offset, length, message) -> None:
    with pytest.raises(ExpressionError, match=message) as caught:
        Expression.parse(text).check_constants()
    constant = text[caught.value.offset :][: caught.value.length]
    assert (caught.value.offset, caught.value.length) == (offset, length), constant


@pytest.mark.parametrize("text", ["1/x", "x/0.5", "log(x)", "x - 1 <= 2/3", "0*x", "(1 - x)/(x - x)", "exp(-1000)"])
def test_the_use_of_names_is_not_judged_in_advance(text) -> None:
    Expression.parse(text).check_constants()


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("sag > 10 mm", r"a unit stands in brackets, 10 \[mm\]"),
        ("2 sag", r"a product needs a '\*'"),
        ("sag^2", r"a power is written a \*\* b"),
    ],
)
def test_a_number_with_a_bare_unit_and_a_caret_get_the_way_to_write_them(text, hint):
    with pytest.raises(ExpressionError, match=hint):
        Expression.parse(text)
