"""Compiled functions of a point give the numbers of the interpreted ones; a compiler is never required."""

import logging

import pytest
from chains import raised
from designopt_motion.cart_pole import CartPole

from designopt.collocation import Options, Program
from designopt.collocation.transcription.functions.functions import state, with_compiled
from designopt.dynamics.compile import find_compiler

PROBLEM = CartPole().trajectory_problem({})
needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="no C compiler")


@needs_compiler
def test_the_same_optimum_in_as_many_iterations():
    interpreted = state(PROBLEM)
    compiled = with_compiled(interpreted, Options(compile="always"), solves=1)
    assert compiled.functions[0].hessian is not interpreted.functions[0].hessian
    options = Options(intervals=20)
    a = Program(PROBLEM, options, statement=interpreted).solve()
    b = Program(PROBLEM, options, statement=compiled).solve()
    assert b.iterations == a.iterations
    assert b.objective == pytest.approx(a.objective, rel=1e-12)


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
        assert program.statement.functions[0].hessian.is_a("External") is many


def test_without_a_compiler_the_functions_stay_interpreted_with_a_warning(monkeypatch, caplog):
    monkeypatch.setenv("CC", "no-such-compiler")
    statement = state(PROBLEM)
    with caplog.at_level(logging.WARNING):
        assert with_compiled(statement, Options(compile="always"), solves=1) is statement
    assert "no-such-compiler" in caplog.text
