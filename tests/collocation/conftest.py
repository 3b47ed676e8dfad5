"""Tests of this folder, and benchmarks, share the modules of `problems`."""

from dataclasses import replace

import pytest

from designopt.collocation import Program, Solution, Status


@pytest.fixture
def silent(capfd):
    """Nothing is written to the terminal."""
    yield
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")


@pytest.fixture
def stopped_at_second(monkeypatch: pytest.MonkeyPatch) -> list[Program]:
    """The programs that were solved; a request to stop comes with the second."""
    real, solved = Program.attempt, []

    def solve(self: Program, *arguments: object, **named: object) -> Solution:
        solved.append(self)
        solution = real(self, *arguments, **named)  # type: ignore[arg-type]
        return replace(solution, status=Status.CANCELLED) if len(solved) == 2 else solution

    monkeypatch.setattr(Program, "attempt", solve)
    return solved
