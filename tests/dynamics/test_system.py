"""What a system refuses at its construction, and how values are given to it."""

import casadi as ca
import numpy as np
import pytest

from designopt.dynamics import System, Variable

NAMES = ["x", "u", "z", "p", "q", "t"]


def function(x=1, u=0, z=0, p=1, q=0, t=1, rows=1, names=NAMES):
    sizes = dict(zip(NAMES, (x, u, z, p, q, t), strict=True))
    arguments = [ca.SX.sym(n, size) for n, size in sizes.items()]
    return ca.Function("made", arguments, [ca.SX.ones(rows)], names, ["value"])


def system(**fields):
    base = {"name": "s", "states": (Variable("a", "m"),), "parameters": (Variable("k", "N/m"),), "rhs": function()}
    return System(**{**base, **fields})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "two words"}, "not a valid name for a system"),
        ({"states": ()}, "has no states"),
        ({"states": (Variable("a", "m"), Variable("a", "m"))}, "'a' more than once"),
        ({"rhs": function(p=2)}, r"argument p has shape \(2, 1\), but there are 1 \(parameters\)"),
        ({"rhs": function(x=2)}, "argument x"),
        ({"rhs": function(rows=2)}, "not one column of 1"),
        ({"rhs": function(names=["x", "u", "z", "q", "p", "t"])}, "arguments must be named"),
        ({"outputs": (Variable("y", ""),)}, "outputs but no function 'output'"),
        ({"output": function()}, "function 'output' but no outputs"),
        ({"guards": ("g",)}, "guards but no function 'guard'"),
        ({"guards": ("g", "h"), "guard": function()}, "not one column of 2"),
        ({"algebraic": (Variable("z", ""),), "rhs": function(z=1)}, "no function 'algebraic_residual'"),
    ],
)
def test_tables_and_functions_that_do_not_fit_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        system(**fields)


def test_a_variable_has_a_name_and_an_ordered_range():
    with pytest.raises(ValueError, match="not a valid name for a variable"):
        Variable("not a name", "")
    with pytest.raises(ValueError, match="is not below"):
        Variable("a", "", low=2.0, high=1.0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0], r"parameters have shape \(2,\), not \(1,\): gravity, limit"),
        ([[1.0, 2.0]], r"not \(1, 2\)"),
        ([1.0, np.nan], "limit is nan"),
        ([np.inf, 1.0], "gravity is inf"),
        ({"gravity": 1.0}, "no value for 'limit'"),
        ({"gravity": 1.0, "limit": 2.0, "limt": 2.0}, "'limt' not among its parameters: gravity, limit"),
    ],
)
def test_values_that_do_not_fit_are_refused_by_name(falling, values, message):
    with pytest.raises(ValueError, match=message):
        falling.values("parameters", values)


def test_values_are_taken_by_name_in_any_order(falling):
    assert falling.values("parameters", {"limit": 2.0, "gravity": 1.0}).tolist() == [1.0, 2.0]


def test_expressions_become_functions_of_the_six_arguments(falling):
    assert falling.rhs.name_in() == NAMES
    assert np.array(falling.rhs([1, 2], [], [], [9.81, 5], [], 0)).ravel().tolist() == [2.0, -9.81]
    assert np.array(falling.guard([1, -2], [], [], [9.81, 5], [], 0)).ravel().tolist() == [1.0, 3.0]
    assert [v.unit for v in falling.outputs] == ["J/kg"]


@pytest.mark.parametrize(
    ("matrix", "residuals"),
    [
        pytest.param(lambda x, m: [[m, ca.cos(x - 1.0)], [ca.cos(1.0 - x), 2.0 * m]], 1.0, id="definite"),
        pytest.param(lambda x, m: [[m, ca.cos(x)], [ca.cos(x), 2.0 * m]], -1.0, id="negative definite"),
        pytest.param(lambda x, m: [[2.0, 0.5], [0.5, 1.0]], 1.0, id="constant"),
        pytest.param(lambda x, m: [[m, ca.sin(x)], [0.3, 2.0]], 1.0, id="not symmetric"),
        pytest.param(lambda x, m: [[ca.sin(x), m], [m, 0.0]], 1.0, id="indefinite, and its first entry passes zero"),
    ],
)
def test_unknown_rates_solve_their_equations(matrix, residuals):
    x, v, m, a, b = (ca.SX.sym(name) for name in ("x", "v", "m", "a", "b"))
    rows = matrix(x, m)
    forces = [v - x, x * v]
    unknowns = [
        (Variable(name, ""), symbol, residuals * (row[0] * a + row[1] * b - force))
        for name, symbol, row, force in zip("ab", (a, b), rows, forces, strict=True)
    ]
    system = System.from_expressions(
        "solved",
        states=[(Variable("x", ""), x, a), (Variable("v", ""), v, b)],
        parameters=[(Variable("m", "kg"), m)],
        unknowns=unknowns,
    )
    numbers = ca.Function("numbers", [x, m], [ca.vertcat(*(ca.horzcat(*row) for row in rows))])
    for at in (-2.0, 0.0, 0.7):
        expected = np.linalg.solve(np.array(numbers(at, 1.3), float), [0.4 - at, 0.4 * at])
        rates = np.array(system.rhs([at, 0.4], [], [], [1.3], [], 0.0), float).ravel()
        np.testing.assert_allclose(rates, expected, rtol=1e-13, atol=1e-14)


def stated(rate=None, **tables):
    x, k = ca.SX.sym("x"), ca.SX.sym("k")
    rate = -k * x if rate is None else rate(x, k)
    base = {"states": [(Variable("x", "m"), x, rate)], "parameters": [(Variable("k", "1/s"), k)]}
    return System.from_expressions("decay", **{**base, **{n: make(x, k) for n, make in tables.items()}})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"rate": lambda x, k: -k * x + ca.SX.sym("wind") * ca.SX.sym("area")},
            "system 'decay': the rate of 'x' contains 'wind', 'area', not declared as a state, control, parameter",
        ),
        (
            {"outputs": lambda x, _: [(Variable("y", ""), ca.SX.sym("c") * x)]},
            "output 'y' contains 'c', not declared as a",
        ),
        ({"guards": lambda *_: {"open": ca.SX.sym("c")}}, "guard 'open' contains 'c'"),
        ({"rate": lambda *_: ca.MX.sym("w") * 2}, "the rate of 'x' is made of the MX symbols 'w'; make them with"),
        ({"rate": lambda *_: None}, "the rate of 'x' is None, not an expression"),
        ({"rate": lambda *_: ca.SX.sym("v", 3)}, "the rate of 'x' is 3 x 1, not one scalar"),
        (
            {"parameters": lambda _, k: [(Variable("k", ""), 2 * k)]},
            r"parameter 'k' is given '\(2.?\*k\)', which is no",
        ),
        ({"parameters": lambda *_: [(Variable("k", ""), 2.0)]}, "parameter 'k' is given '2', which is not a symbol"),
        ({"parameters": lambda *_: [(Variable("k", ""), ca.MX.sym("k"))]}, "parameter 'k' is made of the MX symbols"),
        (
            {"controls": lambda x, _: [(Variable("u", ""), x)]},
            "control 'u' has the symbol 'x' of state 'x': each needs its own symbol",
        ),
        (
            {"unknowns": lambda x, k: [(Variable("a", ""), (a := ca.SX.sym("a")), a**2 - k * x)]},
            "system 'decay': the residuals are not linear in the unknowns",
        ),
        (
            {
                "unknowns": lambda x, k: [(Variable("a", ""), ca.SX.sym("a"), x + k)],
                "guards": lambda *_: {"g": ca.SX.sym("a")},
            },
            "guard 'g' contains 'a'",
        ),
    ],
)
def test_symbols_that_are_not_declared_and_things_that_are_no_expressions_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        stated(**options)


def test_numbers_are_expressions():
    assert np.array(stated(rate=lambda *_: 2.5).rhs(1, [], [], 3, [], 0)).item() == 2.5
