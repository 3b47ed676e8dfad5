"""NSGA-II: the elitist multi-objective genetic algorithm of Deb, Pratap, Agarwal & Meyarivan (2002), through pymoo."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from designopt.plugin import InvalidSetting, Quantity, solver
from designopt.problem import Evaluate, Outcomes, Problem
from designopt.space import Matrix, Space


@dataclass(frozen=True)
class Crossover:
    """Simulated binary crossover, Deb & Agrawal (1995)."""

    probability: Annotated[float, Quantity("", "share of pairs of parents that are crossed", ge=0.0, le=1.0)] = 0.9
    eta: Annotated[float, Quantity("", "distribution index; large keeps children near their parents", ge=1.0)] = 15.0


@dataclass(frozen=True)
class Mutation:
    """Polynomial mutation, Deb & Goyal (1996); it changes each of d parameters with probability ``min(1/2, 1/d)``."""

    probability: Annotated[float, Quantity("", "share of children that are mutated", ge=0.0, le=1.0)] = 0.9
    eta: Annotated[float, Quantity("", "distribution index; large makes small changes", ge=1.0)] = 20.0


@solver("nsga2", version=1)
class NSGA2:
    """NSGA-II through pymoo's ask and tell, until the stage's budget ends.

    Works in search coordinates: logarithms of log-scale parameters; integers and choices as real numbers that are
    rounded when a design is made, so that small steps add up. Limits, relations and failures enter as one constraint
    that is ordered as feasible, infeasible, invalid, failed (`Outcomes.rank_violation`); feasible designs are compared
    by dominance and crowding. With one objective dominance is its order, and the algorithm an elitist genetic one.

    Designs given by ``start_from`` enter the first population as they are known, the best of them by rank and crowding
    when there are more than `population`; random designs fill it up. No design is asked for twice in a stage: where
    mating finds no new one (small discrete spaces only) random ones take its place, and when there are none of these
    either the stage ends before its budget.
    """

    needs_budget: ClassVar[bool] = True
    uses_start: ClassVar[bool] = True

    population: Annotated[int, Quantity("", "designs that survive a generation", ge=2)] = 100
    offspring: (
        Annotated[int, Quantity("", "new designs per generation; not given: as many as survive", ge=1)] | None
    ) = None
    crossover: Annotated[Crossover, Quantity("", "how two parents make two children")] = Crossover()
    mutation: Annotated[Mutation, Quantity("", "how a child is changed")] = Mutation()

    def minimum_budget(self, problem: Problem) -> int:
        """Evaluations below which there is not even a first population."""
        return self.population

    def check(self, problem: Problem) -> None:
        """Raises `InvalidSetting` when there is nothing to search for."""
        if not problem.space.free:
            raise InvalidSetting("use", "nsga2 needs a parameter that is free")
        if not problem.objectives:
            raise InvalidSetting("use", "nsga2 needs an objective")

    def solve(self, problem: Problem, evaluate: Evaluate, rng: np.random.Generator, start: Outcomes) -> None:
        """Ask for generation after generation; all random numbers come from `rng`."""
        from pymoo.algorithms.moo.nsga2 import NSGA2 as Algorithm
        from pymoo.config import Config
        from pymoo.core.problem import Problem as SearchProblem
        from pymoo.core.termination import NoTermination
        from pymoo.operators.crossover.sbx import SBX
        from pymoo.operators.mutation.pm import PM
        from pymoo.operators.sampling.rnd import FloatRandomSampling

        self.check(problem)
        Config.warnings["not_compiled"] = False  # pymoo would print it to standard output, where results belong
        space = problem.space
        search = SearchProblem(
            n_var=len(space.free), n_obj=len(problem.objectives), n_ieq_constr=1, xl=space.lower, xu=space.upper
        )
        crossover, mutation = _part(Crossover, self.crossover), _part(Mutation, self.mutation)
        unasked = _Unasked(space, _rows(start.X))
        algorithm = Algorithm(
            pop_size=self.population,
            n_offsprings=self.offspring,
            sampling=self._first(search, space, rng, start.take(~start.failed)),
            crossover=SBX(prob=crossover.probability, eta=crossover.eta),
            mutation=PM(prob=mutation.probability, eta=mutation.eta),
            eliminate_duplicates=unasked,
            seed=rng,  # numpy's default_rng passes a generator through: no other source of chance remains
        )
        algorithm.setup(search, termination=NoTermination())
        while True:
            generation = algorithm.ask()
            if generation is None:
                algorithm.termination.force_termination = False  # pymoo would end here
                generation = unasked.do(FloatRandomSampling().do(search, 100 * self.population, random_state=rng))
                generation = generation[: self.offspring or self.population]
                if not len(generation):
                    return
            new = generation[[not individual.evaluated for individual in generation]]
            if len(new):
                X = space.from_search(new.get("X").astype(float))
                unasked.rows |= _rows(X)
                _tell(new, evaluate(X))
            with np.errstate(over="ignore", invalid="ignore"):  # crowding between objectives near the largest double
                algorithm.tell(infills=generation)

    def _first(self, search: Any, space: Space, rng: np.random.Generator, start: Outcomes) -> Any:
        """The first population: what `start` knows, filled up with random designs."""
        from pymoo.core.population import Population
        from pymoo.operators.sampling.rnd import FloatRandomSampling
        from pymoo.operators.survival.rank_and_crowding import RankAndCrowding

        known = Population.new("X", space.to_search(start.X)) if len(start) else Population()
        _tell(known, start)
        if len(known) > self.population:
            known = RankAndCrowding().do(search, known, n_survive=self.population, random_state=rng)
        missing = self.population - len(known)
        if not missing:
            return known
        return Population.merge(known, FloatRandomSampling().do(search, missing, random_state=rng))


def _part(kind: type[Any], value: Any) -> Any:
    """A group of settings; studies built in Python may give it as a mapping."""
    return kind(**value) if isinstance(value, Mapping) else value


def _tell(individuals: Any, outcomes: Outcomes) -> None:
    """Write `outcomes` into pymoo's individuals. A failed design has no objectives; its constraint alone ranks it."""
    F = np.where(np.isfinite(outcomes.objectives), outcomes.objectives, 0.0)
    for individual, f, g in zip(individuals, F, outcomes.rank_violation, strict=True):
        individual.F, individual.G = f, np.array([g])
        individual.evaluated.update(("F", "G", "H"))


def _rows(X: Matrix) -> set[bytes]:
    return {row.tobytes() for row in X + 0.0}


class _Unasked:
    """Keeps individuals with a new design (not in `rows`, not in `others`, first of its kind) or a known result.

    pymoo's own elimination compares with the population alone and in search coordinates, in which two different
    points may be the same integer.
    """

    def __init__(self, space: Space, rows: set[bytes]) -> None:
        self.space = space
        self.rows = rows

    def do(self, individuals: Any, *others: Any) -> Any:
        taken: set[bytes] = set()
        for other in others:
            taken.update(self._designs(other))
        keep = []
        for individual, row in zip(individuals, self._designs(individuals), strict=True):
            keep.append(row not in taken and (bool(individual.evaluated) or row not in self.rows))
            taken.add(row)
        return individuals[keep]

    def _designs(self, individuals: Any) -> list[bytes]:
        if not len(individuals):
            return []
        X = self.space.from_search(individuals.get("X").astype(float)) + 0.0
        return [row.tobytes() for row in X]
