"""Interface from solvers to the runner: outcomes of designs, and solutions of a solver's programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.problem.outcomes import Outcomes


@dataclass(frozen=True)
class ProgramSolution:
    """The solution of a program: `figures` by name, `arrays` to be stored, the solver's status (`reason`), and a
    sentence. `state` initialises the next program of the chain; it stays on the worker."""

    ok: bool
    figures: Mapping[str, float]
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    reason: str = ""
    message: str = ""
    state: Any = None


class Programs(Protocol):
    """The result of a solver's `program(problem)`: solves programs one after another, on a worker."""

    def solve(self, x: Floats, seed: int, before: Any) -> ProgramSolution:
        """Solve from the design `x` (d,), with random numbers of `seed`. `before` is the state of the previous solved
        program of the chain, None for the first. The result depends on these alone."""


@dataclass(frozen=True)
class SolvedPrograms:
    """Results of programs, one row per program in the order of the request: whether there is a solution, figures (n,),
    NaN without a solution, and the status: that of the solver, or a failure class."""

    ok: NDArray[np.bool_]
    figures: Mapping[str, Floats]
    reasons: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ok)


class Evaluate(Protocol):
    """The evaluator that a solver receives. Its methods raise `StageEnded` when the stage's budget is used up or the
    run stops; solvers do not catch it."""

    def __call__(self, X: Floats) -> Outcomes:
        """Outcomes of the designs `X` (n, d), in their order, once all are durably recorded."""

    def ahead(self, ask: Callable[[], Floats], tell: Callable[[Outcomes], None], look_ahead: int) -> None:
        """Evaluate designs one by one with up to `look_ahead` of them pending.

        `ask` returns the next design (1, d), or (0, d) at the end; `tell` receives the outcomes (1 row) in the order of
        asking. Call i of `ask` always follows call i - `look_ahead` of `tell` and precedes the next one, for any number
        of workers, so that the sequence of designs is fixed. After a correction of results in a laboratory, the
        outcomes are those of the designs that were made then. Returns when all results are complete.
        """

    def programs(self, X: Floats, chains: Sequence[int], seeds: Sequence[int]) -> SolvedPrograms:
        """Solve the solver's own programs (see `designopt.plugin.solver`) on the workers; each is durably recorded
        once.

        Row i starts from the design `X[i]` (d,), with random numbers of `seeds[i]`. Consecutive rows with the same
        entry in `chains` run one after another on one worker, each from the solution before.
        """

    def cheap(self, X: Floats) -> Outcomes:
        """Outcomes of the designs `X` (n, d) by cheap evaluations (`Problem.cheap`), each durably recorded once.

        Each design uses `Fidelity.cost` of the budget. Designs beyond the budget are not evaluated, and `StageEnded` is
        raised.
        """

    def note(self, kind: str, text: str) -> None:
        """Record and show a note for the user, once over all sessions."""


class StageEnded(Exception):
    """The stage's budget is used up, or the run stops: not an error. Solvers need not catch it."""


class EndIgnored(BaseException):
    """A solver goes on after `StageEnded`. No `Exception`: such a solver catches all of them."""


#: Number of requests after `StageEnded` at which `EndIgnored` is raised.
AFTER_END = 100
