"""What a solver asks for: outcomes of designs, and solutions of programs of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Matrix
from designopt.problem.outcomes import Outcomes


@dataclass(frozen=True)
class Solved:
    """What solving a program gave: `figures` by name, `arrays` to be kept, the solver's own word for how it ended
    (`reason`), and a sentence. `state` is what the next program of its chain may begin with; it stays on the worker."""

    ok: bool
    figures: Mapping[str, float]
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    reason: str = ""
    message: str = ""
    state: Any = None


class Programs(Protocol):
    """What `program(problem)` of a solver gives: it solves one program after the other, on a worker."""

    def solve(self, x: Matrix, seed: int, before: Any) -> Solved:
        """Solve from the design `x` (d,), with random numbers of `seed`. `before` is the state of the last program of
        the chain that was solved, None for the first. The answer depends on these alone."""


@dataclass(frozen=True)
class SolvedPrograms:
    """What became of programs, row by row in the order in which they were asked: whether there is a solution, figures
    (n,), NaN where there is none, and how it ended: the solver's own word, or a failure class."""

    ok: NDArray[np.bool_]
    figures: Mapping[str, Matrix]
    reasons: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ok)


class Evaluate(Protocol):
    """What a solver is given. What evaluates or solves raises `StageEnded` when the stage's budget is used up or the
    run is being stopped; solvers let it pass."""

    def __call__(self, X: Matrix) -> Outcomes:
        """Outcomes of the designs `X` (n, d), in their order, once all of them are durably recorded."""

    def ahead(self, ask: Callable[[], Matrix], tell: Callable[[Outcomes], None], look_ahead: int) -> None:
        """Evaluate designs one by one with up to `look_ahead` of them pending.

        `ask` gives the next design (1, d), or (0, d) when there are no more; `tell` gets the outcomes (1 row) in ask
        order. Ask i always happens after the tell of i - `look_ahead` and before the next one, whatever the workers
        are, so that the sequence of designs is fixed. Returns when everything asked for has its results.
        """

    def programs(self, X: Matrix, chains: Sequence[int], seeds: Sequence[int]) -> SolvedPrograms:
        """Solve the solver's own programs (see `designopt.plugin.solver`) on the workers, each durably recorded once.

        Row i begins at the design `X[i]` (d,), with random numbers of `seeds[i]`. Rows with the same entry in `chains`,
        which follow one another, are solved one after the other on one worker, each from the one before.
        """

    def cheap(self, X: Matrix) -> Outcomes:
        """Outcomes of the designs `X` (n, d) by cheap evaluations (`Problem.cheap`), each durably recorded once.

        Each design costs `Fidelity.cost` of the budget's evaluations. What there is no budget for is not evaluated, and
        `StageEnded` raised.
        """

    def note(self, kind: str, text: str) -> None:
        """Record and show something that the user should know, once in all sessions."""


class StageEnded(Exception):
    """The stage's budget is used up, or the run stops: not an error. Solvers need not catch it."""
