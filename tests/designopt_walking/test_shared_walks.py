"""Walks as files that workers and later runs share: the same bits, nothing of other sources, nothing damaged."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from designopt_walking.amputee import shared_walks
from designopt_walking.amputee.programs import AmputeePrograms
from designopt_walking.amputee.shared_walks import SharedWalks

from designopt.collocation import Guess, Integral, Options, Phase, Program, Solution, TrajectoryProblem
from designopt.collocation.solution.solution import Status
from designopt.dynamics import System, Variable
from designopt.lazy import casadi as ca


def swing() -> Program:
    """A pendulum that is swung to 1 rad with least torque."""
    q, w, torque = (ca.SX.sym(name) for name in ("angle", "rate", "torque"))
    system = System.from_expressions(
        "pendulum",
        states=[
            (Variable("angle", "rad", -3.0, 3.0), q, w),
            (Variable("rate", "rad/s", -9.0, 9.0), w, torque - ca.sin(q)),
        ],
        controls=[(Variable("torque", "N m", -5.0, 5.0), torque)],
    )
    phase = Phase(
        system,
        tf=2.0,
        initial={"angle": 0.0, "rate": 0.0},
        final={"angle": 1.0, "rate": 0.0},
        integrals={"effort": Integral(lambda v: v["torque"] ** 2)},
    )
    return Program(TrajectoryProblem([phase], cost=lambda e: e.integral["effort"]), Options(intervals=8, check=False))


@pytest.fixture(scope="module")
def program() -> Program:
    return swing()


@pytest.fixture(scope="module")
def solution(program: Program) -> Solution:
    return program.solve()


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], SharedWalks]:
    monkeypatch.setattr(shared_walks, "cache_dir", lambda: tmp_path)
    return SharedWalks


def never() -> Solution:
    raise AssertionError("solved again")


def test_a_later_worker_continues_from_the_same_bits(
    shared: Callable[[str], SharedWalks], program: Program, solution: Solution
) -> None:
    assert shared("knee").solution("first", lambda: solution) is solution
    copy = shared("knee").solution("first", never)
    np.testing.assert_array_equal(copy.iterate.x, solution.iterate.x)
    warm, warm_copy = (program.solve(program.problem, warm="full", previous=start) for start in (solution, copy))
    np.testing.assert_array_equal(warm.iterate.x, warm_copy.iterate.x)
    assert warm.objective == warm_copy.objective


@pytest.mark.parametrize(
    "change", [lambda _: ("knee", "second"), lambda _: ("stiff knee", "first"), lambda patch: _other_sources(patch)]
)
def test_walks_of_another_device_name_or_source_are_solved(
    shared: Callable[[str], SharedWalks],
    solution: Solution,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[pytest.MonkeyPatch], tuple[str, str]],
) -> None:
    shared("knee").solution("first", lambda: solution)
    identity, name = change(monkeypatch)
    another = replace(solution, objective=-1.0)
    assert shared(identity).solution(name, lambda: another) is another


def _other_sources(patch: pytest.MonkeyPatch) -> tuple[str, str]:
    patch.setattr(shared_walks, "software", lambda: "edited")
    return "knee", "first"


def test_a_damaged_file_is_solved_again_and_replaced(
    shared: Callable[[str], SharedWalks], solution: Solution, tmp_path: Path
) -> None:
    shared("knee").solution("first", lambda: solution)
    [file] = (tmp_path / "walks").iterdir()
    file.write_bytes(file.read_bytes()[:1000])
    assert shared("knee").solution("first", lambda: solution) is solution
    assert shared("knee").solution("first", never).objective == solution.objective


def test_an_interrupted_solve_ends_the_way_to_a_walk_and_is_not_stored(
    shared: Callable[[str], SharedWalks], solution: Solution
) -> None:
    """Otherwise the walk that continued from an interrupted one would be stored, and start those of later runs."""
    programs = object.__new__(AmputeePrograms)
    stopped = SimpleNamespace(parameters={"speed": 0.9}, solve=lambda guess: replace(solution, status=Status.CANCELLED))
    programs.program = lambda *_: stopped  # type: ignore[assignment, method-assign, return-value]
    with pytest.raises(KeyboardInterrupt):
        shared("knee").solution("first", lambda: programs.solve(stopped, Guess(), 40))  # type: ignore[arg-type]
    assert shared("knee").solution("first", lambda: solution) is solution


def test_a_file_whose_date_cannot_be_changed_is_read(
    shared: Callable[[str], SharedWalks], solution: Solution, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache on a file system that is only read."""

    def refused(*_: object) -> None:
        raise PermissionError

    shared("knee").solution("first", lambda: solution)
    monkeypatch.setattr(shared_walks.os, "utime", refused)
    assert shared("knee").solution("first", never).objective == solution.objective


def test_files_that_nothing_reads_for_a_month_are_removed(
    shared: Callable[[str], SharedWalks], solution: Solution, tmp_path: Path
) -> None:
    for name in ("first", "second"):
        shared("knee").solution(name, lambda: solution)
    for file in (tmp_path / "walks").iterdir():
        os.utime(file, (0.0, 0.0))
    shared("knee")
    assert list((tmp_path / "walks").iterdir()) == []


def test_without_a_cache_every_walk_is_solved(monkeypatch: pytest.MonkeyPatch, solution: Solution) -> None:
    monkeypatch.setattr(shared_walks, "cache_dir", lambda: Path(os.devnull))
    for _ in range(2):
        assert SharedWalks("knee").solution("first", lambda: solution) is solution
