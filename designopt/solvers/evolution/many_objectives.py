"""Evolutionary algorithms for fronts, through pymoo: what each is and which settings it has; `search` runs them."""

from __future__ import annotations

import functools
import math
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from designopt.arrays import Matrix
from designopt.plugin import InvalidSetting, Quantity, solver
from designopt.problem import Evaluate, Outcomes, Problem
from designopt.solvers.evolution.age_survival import survival
from designopt.solvers.evolution.elitist import Elitist, generations, one_by_one
from designopt.solvers.evolution.pymoo_search import (
    Crossover,
    Generations,
    HowToCross,
    HowToMutate,
    Mutation,
    Offspring,
    check_searchable,
    check_several,
    search,
    variation,
)

#: Steps along each edge of the simplex of reference directions, by number of objectives (Deb & Jain 2014, table I,
#: for 3 and 10; 2, 4 and 5 so that there are about a hundred). Two numbers are an outer and an inner layer.
PARTITIONS = {2: (99,), 3: (12,), 4: (7,), 5: (5,), 6: (3, 2), 7: (3, 2), 8: (3, 2), 9: (3, 2), 10: (3, 2)}
#: The same for more objectives than these (Deb & Jain 2014 take it for 15).
MANY = (2, 1)


@solver("nsga2", version=1)
class NSGA2(Generations):
    """NSGA-II, the elitist genetic algorithm for fronts of Deb, Pratap, Agarwal & Meyarivan (2002), through pymoo.

    Works in search coordinates: logarithms of log-scale parameters; integers and choices as real numbers that are
    rounded when a design is made, so that small steps add up. Limits, relations and failures enter as one constraint
    that is ordered as feasible, infeasible, invalid, failed; feasible designs are compared by dominance and crowding.
    With one objective dominance is its order, and the algorithm an elitist genetic one.

    Designs given by ``start_from`` enter the first population as they are known, the best of them by rank and crowding
    when there are more than `population`; random designs fill it up. No design is asked for twice in a stage: where
    mating finds no new one (small discrete spaces only) random ones take its place, and when there are none of these
    either the stage ends before its budget.

    A generation ends with its slowest design, and workers wait for it. With `look_ahead` there are no generations:
    whenever a result arrives, in the order of the asks, the population is selected again, and two parents of it make
    the next two designs. So many designs are pending that `look_ahead` workers never wait, and the designs are the
    same for any number of workers (steady state, Durillo, Nebro, Luna & Alba 2009).
    """

    look_ahead: (
        Annotated[
            int,
            Quantity(
                "",
                "pending designs while the next is bred, at least the number of workers; default: generations",
                ge=1,
                le=100_000,
            ),
        ]
        | None
    ) = None

    def check(self, problem: Problem) -> None:
        """Raises `InvalidSetting` when there is nothing to search for, or settings contradict each other."""
        check_searchable("nsga2", problem)
        if self.look_ahead is not None and self.offspring is not None:
            raise InvalidSetting("offspring", "designs are bred one by one with look_ahead; give one of the two")
        if self.look_ahead is not None and self.look_ahead > self.population:
            text = (
                f"{self.look_ahead} pending designs are more than the population of {self.population}: all of"
                f" these would be bred before the first result; give at most {self.population}, or a larger population"
            )
            raise InvalidSetting("look_ahead", text)

    def solve(self, problem: Problem, evaluate: Evaluate, rng: np.random.Generator, start: Outcomes) -> str:
        """Ask for generation after generation; all random numbers come from `rng`."""
        self.check(problem)
        search = Elitist(problem, rng, start, self.population, self.crossover, self.mutation)
        if self.look_ahead is not None:
            return one_by_one(search, evaluate, self.look_ahead)
        return generations(search, evaluate, self.offspring or self.population)


@solver("nsga3", version=1)
class NSGA3:
    """NSGA-III for three and more objectives, Deb & Jain (2014) and Jain & Deb (2014), through pymoo.

    Instead of crowding, reference directions keep the front spread: points on the simplex of normalised objectives,
    evenly in steps of 1/`partitions` (Das & Dennis 1998), in two layers from six objectives on; or any number of
    `directions` placed by their mutual energy (Blank, Deb, Dhebar, Bandaru & Seada 2021). Search coordinates, failures
    and ``start_from`` are as in nsga2.
    """

    needs_budget: ClassVar[bool] = True
    uses_start: ClassVar[bool] = True
    objectives: ClassVar[Literal["one", "several", "any"]] = "several"

    partitions: (
        Annotated[
            int,
            Quantity("", "steps along each edge of the simplex of directions; default: by objectives", ge=1, le=1000),
        ]
        | None
    ) = None
    directions: (
        Annotated[int, Quantity("", "number of directions, instead of `partitions`", ge=2, le=100_000)] | None
    ) = None
    population: (
        Annotated[
            int, Quantity("", "designs that survive a generation; default: one for each direction", ge=2, le=100_000)
        ]
        | None
    ) = None
    offspring: Offspring | None = None
    crossover: HowToCross = Crossover(probability=1.0, eta=30.0)
    mutation: HowToMutate = Mutation()

    def minimum_budget(self, problem: Problem) -> int:
        """Evaluations below which there is not even a first population."""
        return self.population or self._count(len(problem.objectives))

    def check(self, problem: Problem) -> None:
        """Raises `InvalidSetting` when directions and objectives do not fit."""
        check_several("nsga3", problem)
        m = len(problem.objectives)
        if self.partitions is not None and self.directions is not None:
            raise InvalidSetting("directions", "give 'partitions' or 'directions', not both")
        if self.directions is not None and self.directions < m:
            raise InvalidSetting("directions", f"{m} objectives need at least {m} directions, not {self.directions}")
        count = self._count(m)
        if count > 10_000:
            raise InvalidSetting("partitions", f"{count} directions for {m} objectives; at most 10000 are allowed")
        if self.population is not None and self.population < count:
            raise InvalidSetting(
                "population", f"there are {count} directions and only {self.population} designs to serve them"
            )

    def solve(self, problem: Problem, evaluate: Evaluate, rng: np.random.Generator, start: Outcomes) -> str:
        """Ask for generation after generation; all random numbers come from `rng`."""
        from pymoo.algorithms.moo.nsga3 import NSGA3 as Algorithm
        from pymoo.algorithms.moo.nsga3 import ReferenceDirectionSurvival
        from pymoo.operators.selection.tournament import TournamentSelection

        self.check(problem)
        directions = self.reference_directions(len(problem.objectives))
        return search(
            lambda **general: Algorithm(
                directions,
                selection=TournamentSelection(func_comp=_feasibility_tournament),
                **general,
                **variation(self.crossover, self.mutation),
            ),
            lambda: ReferenceDirectionSurvival(directions),
            problem,
            evaluate,
            rng,
            start,
            population=self.population or len(directions),
            offspring=self.offspring,
        )

    def reference_directions(self, m: int) -> Matrix:
        """The directions for `m` objectives, (directions, m) with sum 1 in each row."""
        from pymoo.util.ref_dirs import get_reference_directions

        if self.directions is not None:
            return _by_energy(m, self.directions).copy()
        outer, *inner = self._layers(m)
        layers = [get_reference_directions("das-dennis", m, n_partitions=outer)]
        layers += [get_reference_directions("das-dennis", m, n_partitions=p, scaling=0.5) for p in inner]
        return np.concatenate(layers)

    def _layers(self, m: int) -> tuple[int, ...]:
        return (self.partitions,) if self.partitions is not None else PARTITIONS.get(m, MANY)

    def _count(self, m: int) -> int:
        return self.directions or sum(math.comb(m + p - 1, p) for p in self._layers(m))


@functools.cache
def _by_energy(m: int, count: int) -> Matrix:
    """Directions that repel each other (seconds of work). They are the same for every seed of the study."""
    from pymoo.util.ref_dirs import get_reference_directions

    return np.asarray(get_reference_directions("energy", m, count, seed=1))


def _feasibility_tournament(pop: Any, P: Any, *, random_state: np.random.Generator, **rest: Any) -> Any:
    """The less violating of each pair, one at random of equals.

    pymoo's own breaks ties between equally infeasible designs with a generator that is seeded from the clock.
    """
    winners = np.empty((len(P), 1), dtype=int)
    for i, (a, b) in enumerate(P):
        g, h = pop[a].CV[0], pop[b].CV[0]
        winners[i] = a if g < h else b if h < g else random_state.choice([a, b])
    return winners


@solver("sms_emoa", version=1)
class SMSEMOA(Generations):
    """SMS-EMOA, Beume, Naujoks & Emmerich (2007), through pymoo: the hypervolume decides who survives.

    Of the last front that fits only in part, the design that adds least hypervolume goes, again and again. Gives the
    best covered fronts of two or three objectives for its evaluations; its own time grows steeply from four on. As
    published one child is made at a time: ``offspring: 1``; more of them keep more workers busy. Search coordinates,
    failures and ``start_from`` are as in nsga2.
    """

    objectives: ClassVar[Literal["one", "several", "any"]] = "several"

    reference: Annotated[
        float,
        Quantity(
            "",
            "how far the reference point of the hypervolume lies beyond the worst of the population in each objective, "
            "in widths of the population; large prefers the ends of the front",
            gt=0.0,
            le=1e6,
        ),
    ] = 10.0

    def check(self, problem: Problem) -> None:
        """Raises `InvalidSetting` when there is no front to search for."""
        check_several("sms_emoa", problem)

    def solve(self, problem: Problem, evaluate: Evaluate, rng: np.random.Generator, start: Outcomes) -> str:
        """Ask for generation after generation; all random numbers come from `rng`."""
        from pymoo.algorithms.moo.sms import SMSEMOA as Algorithm
        from pymoo.algorithms.moo.sms import LeastHypervolumeContributionSurvival

        self.check(problem)
        survival = functools.partial(LeastHypervolumeContributionSurvival, eps=self.reference)
        build = functools.partial(Algorithm, survival=survival())
        return self.search(build, survival, problem, evaluate, rng, start)


@solver("age_moea", version=1)
class AGEMOEA(Generations):
    """AGE-MOEA, Panichella (2019): NSGA-II with a measure of spread that follows the shape of the front.

    The curvature of the front is estimated in every generation as the exponent p of a Minkowski norm; designs survive
    that are near the ideal point and far from each other in that norm. It needs no reference directions or reference
    point and works for two to ten objectives. Mating is pymoo's; search coordinates, failures and ``start_from`` are as
    in nsga2.
    """

    objectives: ClassVar[Literal["one", "several", "any"]] = "several"

    def check(self, problem: Problem) -> None:
        """Raises `InvalidSetting` when there is no front to search for."""
        check_several("age_moea", problem)

    def solve(self, problem: Problem, evaluate: Evaluate, rng: np.random.Generator, start: Outcomes) -> str:
        """Ask for generation after generation; all random numbers come from `rng`."""
        from pymoo.algorithms.base.genetic import GeneticAlgorithm
        from pymoo.algorithms.moo.nsga2 import binary_tournament
        from pymoo.operators.selection.tournament import TournamentSelection
        from pymoo.util.display.multi import MultiObjectiveOutput

        def build(**general: Any) -> Any:
            algorithm = GeneticAlgorithm(
                selection=TournamentSelection(func_comp=binary_tournament),
                survival=survival(),
                output=MultiObjectiveOutput(),
                advance_after_initial_infill=True,
                **general,
            )
            algorithm.tournament_type = "comp_by_rank_and_crowding"
            return algorithm

        self.check(problem)
        return self.search(build, survival, problem, evaluate, rng, start)
