"""Generated C in parts: the same numbers, whatever is cut and whatever stays whole."""

import casadi as ca
import numpy as np
import pytest

from designopt.dynamics import compile as compiling
from designopt.dynamics.compile import PART, in_parts, load_library


def chain(length):
    """A function of some `length` scalar operations of all kinds, its last values as one output, a sum as another."""
    x, p = ca.SX.sym("x", 12), ca.SX.sym("p", 2)
    values = [x[i] for i in range(12)]
    while len(values) < length // 4:
        a, b, c = values[-1], values[-5], values[-11]
        step = a * b - 0.5 * p[0] * c
        values.append(ca.if_else(step > p[1], ca.sin(step), ca.fmax(step, -ca.exp(-a * a))))
    return ca.Function("chain", [x, p], [ca.vertcat(*values[-12:]), ca.sum1(ca.vertcat(*values))])


def generated(*functions):
    generator = ca.CodeGenerator("code", {"with_header": False})
    for function in functions:
        generator.add(function)
    return generator.dump()


def test_a_large_function_in_parts_has_the_numbers_of_casadi_to_the_bit(compiler, tmp_path, monkeypatch):
    monkeypatch.setenv("DESIGNOPT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiling, "LARGE", 4 * PART)
    function = chain(9 * PART)
    source = generated(function)
    assert in_parts(source).count("noinline") >= 8
    compiled = ca.external("chain", load_library(source)._name)
    rng = np.random.default_rng(1)
    for _ in range(20):
        x, p = rng.uniform(-1.0, 1.0, 12), rng.uniform(-1.0, 1.0, 2)
        for ours, casadis in zip(compiled(x, p), function(x, p), strict=True):
            assert np.array_equal(np.array(ours), np.array(casadis))


def test_an_output_that_is_not_asked_for_is_not_written(compiler, tmp_path, monkeypatch):
    monkeypatch.setenv("DESIGNOPT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiling, "LARGE", 4 * PART)
    function = chain(6 * PART)
    compiled = ca.external("chain", load_library(generated(function))._name)
    point = {"i0": np.full(12, 0.3), "i1": [0.1, 0.2]}
    only = compiled.factory("only", ["i0", "i1"], ["o1"])
    assert float(only(*point.values())) == float(function(*point.values())[1])


def test_small_functions_and_those_of_other_statements_stay_as_they_are():
    small = generated(chain(PART))
    assert in_parts(small) == small
    X = ca.MX.sym("X", 12)
    calls = generated(ca.Function("calls", [X], [chain(8 * PART)(X, ca.vertcat(0.1, 0.2))[0] @ X.T]))
    cut = in_parts(calls)
    assert cut.count("noinline") >= 7
    vector_calls = [line for line in calls.split("\n") if "casadi_mtimes" in line or "casadi_f1(arg1" in line]
    assert vector_calls
    assert set(vector_calls) <= set(cut.split("\n"))


@pytest.mark.parametrize("text", ["", "int x;", "static int f(void) {\n  return 0;\n}\n"])
def test_text_that_casadi_has_not_generated_stays_as_it_is(text):
    assert in_parts(text) == text
