"""The common ask-and-tell loop of pymoo's evolutionary algorithms, and their common settings.

The search coordinates are the logarithms of log-scale parameters; integers and choices are real numbers, rounded when a
design is made, so that small steps add up. Choices among words have no order: parents exchange them, and mutations draw
another one (`labels`). Limits, relations and failures form one constraint with the order feasible,
infeasible, invalid, failed (`Outcomes.rank_violation`).

Known designs enter the first population, the best by the algorithm's own selection if there are too many; random
designs complete it. No design is proposed twice: if an algorithm finds no new one (small discrete spaces only), random
ones replace it, and without any left the search ends.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import InvalidSetting, Quantity
from designopt.problem import Evaluate, Outcomes, Problem
from designopt.solvers.evolution.labels import label_columns, operators_of
from designopt.space import Space

#: Reason for an early end in a small discrete space.
EXHAUSTED = "every design of the space has been evaluated"

Offspring = Annotated[
    int, Quantity("", "new designs per generation; default: the number of survivors", ge=1, le=100_000)
]


@dataclass(frozen=True)
class Crossover:
    """Simulated binary crossover, Deb & Agrawal (1995)."""

    probability: Annotated[float, Quantity("", "probability of the crossover of a pair of parents", ge=0.0, le=1.0)] = (
        0.9
    )
    eta: Annotated[float, Quantity("", "distribution index; large keeps children near their parents", ge=1.0)] = 15.0


@dataclass(frozen=True)
class Mutation:
    """Polynomial mutation, Deb & Goyal (1996); it changes each of d parameters with probability ``min(1/2, 1/d)``."""

    probability: Annotated[float, Quantity("", "probability of the mutation of a child", ge=0.0, le=1.0)] = 0.9
    eta: Annotated[float, Quantity("", "distribution index; large makes small changes", ge=1.0)] = 20.0


HowToCross = Annotated[Crossover, Quantity("", "crossover of two parents")]
HowToMutate = Annotated[Mutation, Quantity("", "mutation of a child")]


def variation(
    crossover: Crossover | Mapping[str, Any], mutation: Mutation | Mapping[str, Any], space: Space
) -> dict[str, Any]:
    """pymoo's operators for these settings, which studies built in Python may give as mappings, in a `space`."""
    from pymoo.operators.crossover.sbx import SBX
    from pymoo.operators.mutation.pm import PM

    cross = Crossover(**crossover) if isinstance(crossover, Mapping) else crossover
    mutate = Mutation(**mutation) if isinstance(mutation, Mapping) else mutation
    if labels := label_columns(space):
        exchange, redraw = operators_of()
        return {
            "crossover": exchange(labels, prob=cross.probability, eta=cross.eta),
            "mutation": redraw(labels, prob=mutate.probability, eta=mutate.eta),
        }
    return {
        "crossover": SBX(prob=cross.probability, eta=cross.eta),
        "mutation": PM(prob=mutate.probability, eta=mutate.eta),
    }


@dataclass(kw_only=True)
class Generations:
    """Settings of algorithms with a population, mating and mutation."""

    needs_budget: ClassVar[bool] = True

    population: Annotated[int, Quantity("", "designs that survive a generation", ge=2, le=100_000)] = 100
    offspring: Offspring | None = None
    crossover: HowToCross = Crossover()
    mutation: HowToMutate = Mutation()

    def minimum_budget(self, problem: Problem) -> int:
        """Size of the first population."""
        return self.population

    def search(
        self,
        build: Callable[..., Any],
        select: Callable[[], Any],
        problem: Problem,
        evaluate: Evaluate,
        rng: np.random.Generator,
        start: Outcomes,
    ) -> str:
        """The `search` of this module with these settings."""
        how = variation(self.crossover, self.mutation, problem.space)
        return search(
            functools.partial(build, **how),
            select,
            problem,
            evaluate,
            rng,
            start,
            population=self.population,
            offspring=self.offspring,
        )


def check_searchable(name: str, problem: Problem) -> None:
    """Raises `InvalidSetting` without free parameters or objectives."""
    if not problem.space.free:
        raise InvalidSetting("use", f"{name} needs a free parameter")
    if not problem.objectives:
        raise InvalidSetting("use", f"{name} needs an objective")


def check_several(name: str, problem: Problem) -> None:
    """Raises `InvalidSetting` without free parameters or with fewer than two objectives."""
    check_searchable(name, problem)
    if len(problem.objectives) < 2:
        raise InvalidSetting(
            "use", f"{name} spreads designs along a front and needs two objectives; for one use genetic or cma_es"
        )


def check_single(name: str, problem: Problem) -> None:
    """Raises `InvalidSetting` without free parameters or unless there is one objective."""
    check_searchable(name, problem)
    if len(problem.objectives) > 1:
        raise InvalidSetting(
            "use",
            f"{name} minimises one objective, not {len(problem.objectives)}; use nsga2 for a front, or make limits of "
            "the others",
        )


def search(
    build: Callable[..., Any],
    select: Callable[[], Any],
    problem: Problem,
    evaluate: Evaluate,
    rng: np.random.Generator,
    start: Outcomes,
    *,
    population: int,
    offspring: int | None = None,
) -> str:
    """Search generation by generation until `evaluate` ends; all random numbers come from `rng`.

    `build` makes pymoo's algorithm from its general arguments, `select` the survival that selects among too many known
    designs. Returns why no new design remains, in that case.
    """
    from pymoo.config import Config
    from pymoo.core.problem import Problem as SearchProblem
    from pymoo.core.termination import NoTermination
    from pymoo.operators.sampling.rnd import FloatRandomSampling

    Config.warnings["not_compiled"] = False  # pymoo would print it to standard output, which is reserved for results
    space = problem.space
    box = SearchProblem(
        n_var=len(space.free), n_obj=len(problem.objectives), n_ieq_constr=1, xl=space.lower, xu=space.upper
    )
    duplicate_filter = _DuplicateElimination(space, _rows(start.X))
    arguments: dict[str, Any] = {
        "pop_size": population,
        "n_offsprings": offspring,
        "sampling": _first(box, space, rng, start.take(~start.failed), population, select),
        "seed": rng,  # numpy's default_rng passes a generator through: no other source of randomness remains
        "eliminate_duplicates": duplicate_filter,
    }
    algorithm = build(**arguments)
    algorithm.setup(box, termination=NoTermination())

    def random_designs(count: int) -> Any:
        return duplicate_filter.do(FloatRandomSampling().do(box, 100 * population, random_state=rng))[:count]

    while True:
        generation = algorithm.ask()
        if generation is None:
            algorithm.termination.force_termination = False  # pymoo would end here
            generation = random_designs(offspring or population)
        if not len(generation):
            return EXHAUSTED
        new = generation[[not individual.evaluated for individual in generation]]
        if len(new):
            X = space.from_search(new.get("X").astype(float))
            duplicate_filter.rows |= _rows(X)
            _tell(new, evaluate(X))
        # Objectives near the largest double overflow in crowding distances, and NSGA-III's normalisation changes
        # Python's warning filters for the whole process.
        with np.errstate(all="ignore"), warnings.catch_warnings():
            algorithm.tell(infills=generation)


def _first(
    box: Any, space: Space, rng: np.random.Generator, start: Outcomes, size: int, select: Callable[[], Any]
) -> Any:
    """The first population: the designs of `start`, completed by random ones."""
    from pymoo.core.population import Population as Individuals
    from pymoo.operators.sampling.rnd import FloatRandomSampling

    start_individuals = Individuals.new("X", space.to_search(start.X)) if len(start) else Individuals()
    _tell(start_individuals, start)
    if len(start_individuals) > size:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            start_individuals = select().do(box, start_individuals, n_survive=size, random_state=rng)
    missing = size - len(start_individuals)
    if not missing:
        return start_individuals
    return Individuals.merge(start_individuals, FloatRandomSampling().do(box, missing, random_state=rng))


def _tell(individuals: Any, outcomes: Outcomes) -> None:
    """Write `outcomes` into pymoo's individuals. A failed design has no objectives; its constraint alone ranks it."""
    F = np.where(np.isfinite(outcomes.objectives), outcomes.objectives, 0.0)
    for individual, f, g in zip(individuals, F, outcomes.rank_violation, strict=True):
        individual.F, individual.G = f, np.array([g])
        individual.evaluated.update(("F", "G", "H"))


def _rows(X: Floats) -> set[bytes]:
    return {row.tobytes() for row in X + 0.0}


class _DuplicateElimination:
    """Keeps individuals with a new design (not in `rows`, not in another population, first of its kind) or a known
    result.

    pymoo's elimination compares only with the population, and in search coordinates, in which different points may
    round to the same integer.
    """

    def __init__(self, space: Space, rows: set[bytes]) -> None:
        self.space = space
        self.rows = rows

    def do(self, individuals: Any, *populations: Any) -> Any:
        rows_so_far: set[bytes] = set()
        for population in populations:
            rows_so_far.update(self.designs(population))
        keep = []
        for individual, row in zip(individuals, self.designs(individuals), strict=True):
            keep.append(row not in rows_so_far and (bool(individual.evaluated) or row not in self.rows))
            rows_so_far.add(row)
        return individuals[keep]

    def designs(self, individuals: Any) -> list[bytes]:
        if not len(individuals):
            return []
        X = self.space.from_search(individuals.get("X").astype(float)) + 0.0
        return [row.tobytes() for row in X]
