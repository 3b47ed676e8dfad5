"""Contact and friction by complementarity: of two nonnegative quantities, one is zero at any time.

The feasible set of a mathematical program with complementarity constraints has no interior. Therefore a relaxation
limits the product of a pair and goes to zero in a fixed chain of solves, each from the one before it (Scholtes, SIAM J.
Optim. 11 (2001) 918). The program finds the sequence of contacts itself (Posa, Cantu, Tedrake, Int. J. Robotics
Research 33 (2014) 69; Stewart, Anitescu, Numer. Math. 114 (2010) 653).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from designopt.collocation.contact.relaxed_problem import relaxed_problem, rows_of
from designopt.collocation.solution.solution import Solution
from designopt.collocation.solution.status import Status
from designopt.collocation.solve.attempts import persist
from designopt.collocation.solve.guess.multistart import perturbed
from designopt.collocation.solve.program import Program
from designopt.collocation.solve.solve import checked
from designopt.collocation.statement.complementary import Complementary
from designopt.collocation.statement.guess import Guess
from designopt.collocation.statement.options import Options
from designopt.collocation.statement.problem import TrajectoryProblem
from designopt.collocation.statement.stated_values import ProblemError, stated_table

#: Successive limits of the products of a pair, relative to its sizes.
RELAXATIONS = tuple(10.0 ** (-0.5 * k) for k in range(15))
#: A step to a relaxation that fails is divided at its geometric middle, at most this number of times in all.
DIVIDED = 3


@dataclass(frozen=True)
class Relaxed:
    """One solve of the chain: its `relaxation`, its status, and the largest remaining product, relative."""

    relaxation: float
    status: Status
    iterations: int
    objective: float
    product: float


@dataclass(frozen=True, eq=False)
class Complemented:
    """The `solution` at the end of the `chain` of solves: the last one found.

    `products` are, by the names of the pairs, the largest products at the mesh points, in the units of the two;
    `overlaps` the largest values of the smaller of the two, relative to its size. `reached`: the chain is complete.
    """

    solution: Solution
    chain: tuple[Relaxed, ...]
    products: Mapping[str, float]
    overlaps: Mapping[str, float]
    reached: bool

    @property
    def relaxation(self) -> float:
        """Relaxation of the solution; the first one if none was solved."""
        return next((step.relaxation for step in self.chain[::-1] if step.status.success), self.chain[0].relaxation)

    @property
    def status(self) -> Status:
        """Status of the last solve; it may have failed although a less strict one before it has a solution."""
        return self.chain[-1].status

    @property
    def message(self) -> str:
        """The status in a sentence."""
        left = max(self.overlaps.values(), default=0.0)
        if self.reached:
            return f"{self.solution.message} In each pair one value is zero to within {left:.1e} of its size."
        return (
            f"The pairs could not be made complementary: with the relaxation {self.chain[-1].relaxation:.1e} the solve"
            f" ended {self.chain[-1].status.name}. Try another guess, or more intervals. {self.solution.message}"
        )

    @property
    def success(self) -> bool:
        """Whether the solution may be used: solved, up to the last relaxation."""
        return self.reached and self.solution.success


def solve_complementary(
    problem: TrajectoryProblem,
    pairs: Mapping[str, Complementary] | None = None,
    options: Options | None = None,
    guess: Guess | None = None,
    *,
    relaxations: Sequence[float] = RELAXATIONS,
) -> Complemented:
    """The solution of `problem` in which all `pairs`, and those in its statement, are complementary.

    One program is solved for each of the decreasing `relaxations`, from the solution before it; a solve that fails is
    repeated half-way, three times. With `starts` in the options, chains start from that number of guesses, and the best
    counts: each sequence of contacts is a local optimum. The scheme is `radau` of degree 1 (implicit Euler), with which
    a falling body stays on contact; with a higher degree it would bounce within an interval at any speed. Raises
    `ProblemError` (bad_statement) for other schemes, for refinement, for unknown phases and for names already in use.
    """
    pairs = {**problem.complementary, **stated_table("pairs", pairs)}
    problem, options = replace(problem, complementary={}), euler(options or Options())
    steps: list[Any] = list(relaxations) if isinstance(relaxations, Iterable) else [relaxations]
    numbers = bool(steps) and all(isinstance(r, Real) for r in steps)
    if not numbers or any(not b < a for a, b in itertools.pairwise([math.inf, *steps])) or not steps[-1] > 0.0:
        raise ProblemError("bad_statement", "relaxations", f"are {steps}: give positive numbers that fall")
    program = Program(relaxed_problem(problem, pairs, steps[0]), options, guess)
    best = relaxed_chain(program, problem, pairs, steps, guess)
    for i in range(1, options.starts):
        if best.chain[-1].status is Status.CANCELLED:
            break
        perturbed_guess = perturbed(problem, guess, np.random.default_rng([options.seed, i]))
        solution = relaxed_chain(program, problem, pairs, steps, perturbed_guess)
        if solution.chain[-1].status is Status.CANCELLED:
            return solution
        if (solution.success, -solution.solution.objective) > (best.success, -best.solution.objective):
            best = solution
    if not (options.check and best.solution.success):
        return best
    stated = relaxed_problem(problem, pairs, best.relaxation)
    return replace(best, solution=checked(stated, program.statement, best.solution))


def euler(options: Options) -> Options:
    """`options` with the scheme for contacts. Raises `ProblemError` if they request another."""
    if options.scheme not in ("auto", "radau") or options.degree not in (None, 1):
        text = "contacts need radau of degree 1, in which a body that falls on another stays there: leave it out"
        raise ProblemError("bad_statement", "degree" if options.scheme in ("auto", "radau") else "scheme", text)
    if options.refine is not None:
        raise ProblemError(
            "bad_statement", "refine", "a mesh is not refined while contacts change: give more intervals"
        )
    return replace(options, scheme="radau", degree=1)


def relaxed_chain(
    program: Program,
    problem: TrajectoryProblem,
    pairs: Mapping[str, Complementary],
    relaxations: Sequence[float],
    guess: Guess | None,
) -> Complemented:
    """The solves from one guess, with the `program` of the first of the `relaxations`."""
    steps, chain = list(relaxations), list[Relaxed]()
    best: Solution | None = None
    last, divided = math.inf, 0
    while steps:
        step = steps[0]
        stated = relaxed_problem(problem, pairs, step)
        if best is None:
            solution = program.solve(stated, guess)
            solution = persist(program, stated, guess, solution) if program.options.persistent else solution
        else:
            solution = program.solve(stated, warm="full", previous=best)
        chain.append(Relaxed(step, solution.status, solution.iterations, solution.objective, _largest(solution, pairs)))
        if solution.success:
            best, last = solution, step
            steps.pop(0)
            divided = 0 if step in relaxations else divided
        elif best is None or divided == DIVIDED or solution.status is Status.CANCELLED:
            break
        else:
            steps.insert(0, math.sqrt(last * step))
            divided += 1
    result = solution if best is None else best
    values = {name: _values(result, name, pair) for name, pair in pairs.items()}
    return Complemented(
        solution=result,
        chain=tuple(chain),
        products={n: float((a * b).max() * math.prod(pairs[n].sizes)) for n, (a, b) in values.items()},
        overlaps={n: float(np.minimum(a, b).max()) for n, (a, b) in values.items()},
        reached=not steps,
    )


def _values(solution: Solution, name: str, pair: Complementary) -> tuple[Any, Any]:
    """Both parts of a pair at all points (rows, points), relative to their sizes."""
    path = solution.phases[pair.phase].path
    first, second, _ = rows_of(name)

    def rows(label: str) -> Any:
        return np.stack([values for key, values in path.items() if key == label or key.startswith(f"{label}[")])

    return rows(first), rows(second)


def _largest(solution: Solution, pairs: Mapping[str, Complementary]) -> float:
    products = [float((a * b).max()) for a, b in (_values(solution, name, pair) for name, pair in pairs.items())]
    return max(products, default=0.0)
