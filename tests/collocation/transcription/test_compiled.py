"""Compiled functions of a point give the numbers of the interpreted ones; a compiler is never required."""

import logging

import benchmark_problems
import numpy as np
import pytest
from chains import raised
from designopt_motion.cart_pole import CartPole
from small_motions import unending

from designopt.collocation import Options, Program, Status
from designopt.collocation.interior import functions
from designopt.collocation.solve.solver import SOLVES
from designopt.collocation.transcription.functions.functions import state, with_compiled
from designopt.dynamics.compile import CompilerError, find_compiler

PROBLEM = CartPole().trajectory_problem({})
needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="no C compiler")


@needs_compiler
def test_the_same_optimum_in_as_many_iterations():
    problem = raised(3)
    interpreted = state(problem, residual=False)
    compiled = with_compiled(interpreted, Options(compile="always"), solves=1)
    assert compiled.functions[0].hessian is not interpreted.functions[0].hessian
    options = Options(intervals=5)
    a = Program(problem, options, problem_functions=interpreted).solve()
    b = Program(problem, options, problem_functions=compiled).solve()
    assert b.iterations == a.iterations
    assert b.objective == pytest.approx(a.objective, rel=1e-12)


@needs_compiler
@pytest.mark.parametrize("name", ["van_der_pol", "linear_tangent", "brachistochrone"])
def test_a_program_of_a_small_model_is_compiled_as_a_whole_and_keeps_its_bits(name):
    """Also where the search fails and IPOPT goes on."""
    problem = getattr(benchmark_problems, name)()
    program = Program(problem, Options(intervals=5, compile="always"))
    interpreted, compiled = program.solve(), program.solve()

    assert program._solver._interior.functions.calls is not None
    assert compiled.iterations == interpreted.iterations
    np.testing.assert_array_equal(compiled.iterate.x, interpreted.iterate.x)
    np.testing.assert_array_equal(compiled.iterate.constraint_multipliers, interpreted.iterate.constraint_multipliers)


@needs_compiler
def test_the_text_of_a_program_has_the_fast_product_with_a_vector(monkeypatch):
    texts = []
    load = functions.load_library
    monkeypatch.setattr(functions, "load_library", lambda text, *rest: texts.append(text) or load(text, *rest))
    program = Program(benchmark_problems.van_der_pol(), Options(intervals=5, compile="always"))
    program.solve(), program.solve()
    [text] = texts
    assert functions.PRODUCT + functions.PRODUCT_WITH_VECTOR in text  # CasADi's function has the name it had


@needs_compiler
def test_a_program_is_compiled_when_it_has_been_solved_often(monkeypatch):
    monkeypatch.setitem(SOLVES, "auto", 2)
    program = Program(benchmark_problems.block_move(), Options(intervals=5))
    compiled = [program.solve() and program._solver._interior.functions.calls is not None for _ in range(3)]

    assert compiled == [False, False, True]


@needs_compiler
def test_a_program_that_cannot_be_compiled_stays_interpreted_with_a_warning(monkeypatch, caplog):
    def failing(*_):
        raise CompilerError("no memory")

    monkeypatch.setattr(functions, "load_library", failing)
    program = Program(benchmark_problems.block_move(), Options(intervals=5, compile="always"))
    with caplog.at_level(logging.WARNING):
        objectives = [program.solve().objective for _ in range(3)]

    assert objectives == 3 * [objectives[0]]
    assert caplog.text.count("the program is solved with interpreted functions: no memory") == 1


@needs_compiler
def test_a_solve_with_compiled_functions_ends_at_its_time_limit():
    program = Program(unending(), Options(compile="always", time_limit=0.3, max_iterations=10**6))
    statuses = [program.solve().status for _ in range(2)]

    assert program._solver._interior.functions.calls is not None
    assert statuses == 2 * [Status.TIME_LIMIT]


def test_small_models_and_few_solves_stay_interpreted():
    statement = state(PROBLEM)
    assert statement.functions[0].operations < 2000
    assert with_compiled(statement, Options(), solves=1000) is statement
    assert with_compiled(statement, Options(compile="never"), solves=1000) is statement


@needs_compiler
def test_large_models_are_compiled_for_many_solves():
    problem = raised(5)
    statement = state(problem, residual=False)
    assert statement.functions[0].operations > 2000
    assert with_compiled(statement, Options(), solves=20) is statement
    assert with_compiled(statement, Options(), solves=21) is not statement
    # a program knows of its starts, each of which is a solve
    for starts, many in ((20, False), (21, True)):
        program = Program(problem, Options(form="explicit", starts=starts, intervals=4))
        assert program.problem_functions.functions[0].hessian.is_a("External") is many


def test_without_a_compiler_the_functions_stay_interpreted_with_a_warning(monkeypatch, caplog):
    monkeypatch.setenv("CC", "no-such-compiler")
    statement = state(PROBLEM)
    with caplog.at_level(logging.WARNING):
        assert with_compiled(statement, Options(compile="always"), solves=1) is statement
    assert "no-such-compiler" in caplog.text
