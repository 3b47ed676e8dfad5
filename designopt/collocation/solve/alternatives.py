"""The first of several alternatives that succeeds after a failed solve, with a record of all that were tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from designopt.collocation.solution.solution import Attempt, Solution
from designopt.collocation.solution.status import Status
from designopt.collocation.statement.stated_values import ProblemError

#: A way is one solve or a chain of them; the last counts.
Way = Callable[[], tuple[Solution, ...]]

#: The way that IPOPT goes with an adaptive barrier, from the same guess.
ADAPTIVE_BARRIER = "adaptive barrier"
#: Statuses after which another way may succeed.
WORTH = frozenset(
    (
        Status.LOCALLY_INFEASIBLE,
        Status.ITERATION_LIMIT,
        Status.RESTORATION_FAILED,
        Status.STALLED,
        Status.INVALID_NUMBER,
        Status.FAILED,
    )
)
#: Limit of the iterations of all attempts: a multiple of those of the failed solve, and a minimum.
PATIENCE, MIN_ITERATIONS = 6, 1500


def first_success(failed: Solution, ways: Iterable[tuple[str, Way]]) -> Solution:
    """The solution by the first of the `ways`, by name, that succeeds; else `failed`. `Solution.attempts` records the
    attempts, and the message names the successful one. Ways that raise `ProblemError` are skipped."""
    if failed.status not in WORTH:
        return failed
    tried = [Attempt("as stated", failed.status, failed.iterations)]
    spent = 0
    for name, way in ways:
        if spent > max(PATIENCE * failed.iterations, MIN_ITERATIONS):
            break
        try:
            chain = way()
        except ProblemError:
            continue
        solution, iterations = chain[-1], sum(solved.iterations for solved in chain)
        tried.append(Attempt(name, solution.status, iterations))
        spent += iterations
        if solution.success:
            before = ", ".join(f"{a.way} ({a.status.name.lower()})" for a in tried[:-1])
            text = f"{solution.message} It was found by attempt {len(tried)}, {name}, after: {before}."
            return replace(solution, attempts=tuple(tried), message=text, seed=failed.seed, starts=failed.starts)
        if solution.status is Status.CANCELLED:  # its iterate may be one of another mesh, or of other end values
            return replace(failed, status=Status.CANCELLED, attempts=tuple(tried), message=solution.message)
    text = f"{failed.message} Other attempts failed too: {', '.join(a.way for a in tried[1:]) or 'none'}."
    return replace(failed, attempts=tuple(tried), message=text)
