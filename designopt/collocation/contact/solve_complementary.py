"""Contact and friction by complementarity: of two quantities that are never negative one is zero at any time.

A mathematical program with complementarity constraints has no interior, so that the product of a pair is limited by a
relaxation that goes to zero in a fixed chain of solves, each from the one before it (Scholtes, SIAM J. Optim. 11 (2001)
918). Which contact is closed when is found by the program and given by nobody (Posa, Cantu, Tedrake, Int. J. Robotics
Research 33 (2014) 69; Stewart, Anitescu, Numer. Math. 114 (2010) 653).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from designopt.collocation.solution.solution import Solution
from designopt.collocation.solution.status import Status
from designopt.collocation.solve.attempts import persist
from designopt.collocation.solve.guess.multistart import perturbed
from designopt.collocation.solve.program import Program
from designopt.collocation.solve.solve import checked
from designopt.collocation.statement.guess import Guess
from designopt.collocation.statement.options import Options
from designopt.collocation.statement.problem import Constraint, ProblemError, Symbols, TrajectoryProblem

#: Limits of the products of a pair, relative to its sizes, one after the other.
RELAXATIONS = tuple(10.0 ** (-0.5 * k) for k in range(15))
#: A step that fails is divided so many times, at its geometric middle.
DIVIDED = 3


@dataclass(frozen=True)
class Complementary:
    """``0 <= first``, ``0 <= second`` and one of the two zero, at all collocation points of a `phase`.

    `first` and `second` are functions of the symbols of a point, `sizes` about how large they get: the relaxation is
    relative to their product. As a distance and a force: no force but in contact. Raises `ValueError` for sizes that
    are not positive.
    """

    first: Callable[[Any], Any]
    second: Callable[[Any], Any]
    phase: str = "motion"
    sizes: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        if len(self.sizes) != 2 or not all(0.0 < size < math.inf for size in self.sizes):
            raise ValueError(f"sizes are {self.sizes!r}: give two positive numbers")


@dataclass(frozen=True)
class Relaxed:
    """One solve of the chain: its `relaxation`, how it ended, and the largest product that it left, relative."""

    relaxation: float
    status: Status
    iterations: int
    objective: float
    product: float


@dataclass(frozen=True, eq=False)
class Complemented:
    """The `solution` at the end of the `chain` of solves, the last that was found.

    `products` are, by the names of the pairs, the largest products at the points of the mesh, in the units of the two,
    `overlaps` the largest of the smaller one of the two, relative to its size: how far from zero it stays. `reached`
    says whether the chain came to its end.
    """

    solution: Solution
    chain: tuple[Relaxed, ...]
    products: Mapping[str, float]
    overlaps: Mapping[str, float]
    reached: bool

    @property
    def success(self) -> bool:
        """Whether the solution may be used: solved, to the last relaxation."""
        return self.reached and self.solution.success


def solve_complementary(
    problem: TrajectoryProblem,
    pairs: Mapping[str, Complementary],
    options: Options | None = None,
    guess: Guess | None = None,
    *,
    relaxations: Sequence[float] = RELAXATIONS,
) -> Complemented:
    """The solution of `problem` in which all `pairs` are complementary.

    One program is solved for each of the `relaxations`, falling numbers, from the solution before it; a solve that
    fails is tried again half-way, three times. With `starts` in the options whole chains begin at as many guesses, and
    the best counts: there are as many local optima as orders of contacts. The scheme is `radau` of degree 1 (implicit
    Euler), in which a body that falls on another stays there; of a higher degree it would bounce off within an interval
    at any speed. So others are refused, and so is refinement. Raises `ProblemError` (bad_statement) for these, for
    phases that are not there and for names that are taken.
    """
    options = _euler(options or Options())
    steps = [float(r) for r in relaxations]
    if not steps or any(not b < a for a, b in itertools.pairwise(steps)) or not steps[-1] > 0.0:
        raise ProblemError("bad_statement", "relaxations", f"are {steps}: give positive numbers that fall")
    program = Program(relaxed_problem(problem, pairs, steps[0]), options, guess)
    best = _chain(program, problem, pairs, steps, guess)
    for i in range(1, options.starts):
        drawn = perturbed(problem, guess, np.random.default_rng([options.seed, i]))
        found = _chain(program, problem, pairs, steps, drawn)
        if (found.success, -found.solution.objective) > (best.success, -best.solution.objective):
            best = found
    if not (options.check and best.solution.success):
        return best
    last = [step.relaxation for step in best.chain if step.status.success][-1]
    stated = relaxed_problem(problem, pairs, last)
    return replace(best, solution=checked(stated, program.statement, best.solution))


def _euler(options: Options) -> Options:
    """`options` with the scheme of contacts. Raises `ProblemError` where they ask for another."""
    if options.scheme not in ("auto", "radau") or options.degree not in (None, 1):
        text = "contacts need radau of degree 1, in which a body that falls on another stays there: leave it out"
        raise ProblemError("bad_statement", "degree" if options.scheme in ("auto", "radau") else "scheme", text)
    if options.refine is not None:
        raise ProblemError(
            "bad_statement", "refine", "a mesh is not refined while contacts change: give more intervals"
        )
    return replace(options, scheme="radau", degree=1)


def _chain(
    program: Program,
    problem: TrajectoryProblem,
    pairs: Mapping[str, Complementary],
    relaxations: Sequence[float],
    guess: Guess | None,
) -> Complemented:
    """The solves from one guess."""
    steps, chain = list(relaxations), list[Relaxed]()
    best: Solution | None = None
    last, divided = math.inf, 0
    while steps:
        step = steps[0]
        stated = relaxed_problem(problem, pairs, step)
        if best is None:
            found = program.solve(stated, guess)
            found = persist(program, stated, guess, found) if program.options.persistent else found
        else:
            found = program.solve(stated, warm="full", previous=best)
        chain.append(Relaxed(step, found.status, found.iterations, found.objective, _largest(found, pairs)))
        if found.success:
            best, last, divided = found, step, 0
            steps.pop(0)
        elif best is None or divided == DIVIDED:
            break
        else:
            steps.insert(0, math.sqrt(last * step))
            divided += 1
    result = found if best is None else best
    values = {name: _values(result, name, pair) for name, pair in pairs.items()}
    return Complemented(
        solution=result,
        chain=tuple(chain),
        products={n: float((a * b).max() * math.prod(pairs[n].sizes)) for n, (a, b) in values.items()},
        overlaps={n: float(np.minimum(a, b).max()) for n, (a, b) in values.items()},
        reached=not steps,
    )


def relaxed_problem(
    problem: TrajectoryProblem, pairs: Mapping[str, Complementary], relaxation: float
) -> TrajectoryProblem:
    """`problem` with path constraints for its `pairs`: none is negative, and the product at most the `relaxation`,
    all relative to their sizes."""
    phases = {phase.name: phase for phase in problem.phases}
    for name, pair in pairs.items():
        where = f"complementary.{name}"
        if pair.phase not in phases:
            text = f"there is no phase '{pair.phase}'; there are {', '.join(phases)}"
            raise ProblemError("bad_statement", where, text)
        phase = phases[pair.phase]
        first, second, product = _rows(name)
        if taken := {first, second, product} & {*phase.path, *phase.samples}:
            text = f"'{min(taken)}' is what the pair adds: rename the path constraint"
            raise ProblemError("bad_statement", where, text)
        added = {
            first: Constraint(_Part(pair.first, pair.sizes[0]), 0.0),
            second: Constraint(_Part(pair.second, pair.sizes[1]), 0.0),
            product: Constraint(_Product(pair), high=relaxation),
        }
        phases[pair.phase] = replace(phase, path={**phase.path, **added})
    return replace(problem, phases=list(phases.values()))


@dataclass(frozen=True)
class _Part:
    value: Callable[[Any], Any]
    size: float

    def __call__(self, v: Symbols) -> Any:
        return self.value(v) / self.size


@dataclass(frozen=True)
class _Product:
    pair: Complementary

    def __call__(self, v: Symbols) -> Any:
        return self.pair.first(v) * self.pair.second(v) / math.prod(self.pair.sizes)


def _rows(name: str) -> tuple[str, str, str]:
    return f"{name}: first", f"{name}: second", f"{name}: product"


def _values(found: Solution, name: str, pair: Complementary) -> tuple[Any, Any]:
    """Both of a pair at all points (rows, points), relative to their sizes."""
    path = found.phases[pair.phase].path
    first, second, _ = _rows(name)

    def rows(label: str) -> Any:
        return np.stack([values for key, values in path.items() if key == label or key.startswith(f"{label}[")])

    return rows(first), rows(second)


def _largest(found: Solution, pairs: Mapping[str, Complementary]) -> float:
    products = [float((a * b).max()) for a, b in (_values(found, name, pair) for name, pair in pairs.items())]
    return max(products, default=0.0)
