"""Evolutionary algorithms for several objectives, through pymoo: their settings; `search` runs them."""

from __future__ import annotations

import functools
import math
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import InvalidSetting, Quantity, solver
from designopt.problem import Evaluate, Outcomes, Problem
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

#: Steps along each edge of the simplex of reference directions, by number of objectives (Deb & Jain 2014, table I, for
#: 3 and 10; 2, 4 and 5 chosen for about a hundred directions). Two numbers are an outer and an inner layer.
PARTITIONS = {2: (99,), 3: (12,), 4: (7,), 5: (5,), 6: (3, 2), 7: (3, 2), 8: (3, 2), 9: (3, 2), 10: (3, 2)}
#: The same for more objectives (Deb & Jain 2014 use it for 15).
MANY = (2, 1)


@solver("nsga2", version=1)
class NSGA2(Generations):
    """NSGA-II, an elitist genetic algorithm for several objectives: Deb, Pratap, Agarwal & Meyarivan (2002), through
    pymoo.

    The search coordinates are the logarithms of log-scale parameters; integers and choices are real numbers, rounded
    when a design is made, so that small steps add up; choices among words are exchanged and redrawn. Limits, relations
    and failures form one constraint with the order feasible, infeasible, invalid, failed; feasible designs are compared
    by dominance and crowding. With one objective this is an elitist genetic algorithm.

    Designs from ``start_from`` enter the first population with their results, the best by rank and crowding if they
    exceed `population`; random designs complete it. No design is proposed twice in a stage: if mating finds no new one
    (small discrete spaces only), random ones replace it, and without any left the stage ends before its budget.

    A generation ends with its slowest design, so workers wait. With `look_ahead` there are no generations: after each
    result, in the order of the requests, the population is selected again, and two of its members produce the next two
    designs. The number of pending designs keeps `look_ahead` workers busy, and the designs are the same for any number
    of workers (steady state; Durillo, Nebro, Luna & Alba 2009).
    """

    look_ahead: (
        Annotated[
            int,
            Quantity(
                "",
                "pending designs of a steady-state search, at least the number of workers; default: generations",
                ge=1,
                le=100_000,
            ),
        ]
        | None
    ) = None

    def check(self, problem: Problem) -> None:
        """Raises `InvalidSetting` without free parameters or for contradictory settings."""
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
        """Search generation by generation; all random numbers come from `rng`."""
        self.check(problem)
        search = Elitist(problem, rng, start, self.population, self.crossover, self.mutation)
        if self.look_ahead is not None:
            return one_by_one(search, evaluate, self.look_ahead)
        return generations(search, evaluate, self.offspring or self.population)


@solver("nsga3", version=1)
class NSGA3:
    """NSGA-III for three or more objectives: Deb & Jain (2014), Jain & Deb (2014), through pymoo.

    Instead of crowding, reference directions spread the front: points on the simplex of normalised objectives in steps
    of 1/`partitions` (Das & Dennis 1998), in two layers from six objectives on; or any number of `directions`, placed
    by minimum energy (Blank, Deb, Dhebar, Bandaru & Seada 2021). Search coordinates, failures and ``start_from`` as in
    nsga2.
    """

    needs_budget: ClassVar[bool] = True
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
        """Size of the first population."""
        return self.population or self._count(len(problem.objectives))

    def check(self, problem: Problem) -> None:
        """Raises `InvalidSetting` if directions and objectives do not match."""
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
        """Search generation by generation; all random numbers come from `rng`."""
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
                **variation(self.crossover, self.mutation, problem.space),
            ),
            lambda: ReferenceDirectionSurvival(directions),
            problem,
            evaluate,
            rng,
            start,
            population=self.population or len(directions),
            offspring=self.offspring,
        )

    def reference_directions(self, m: int) -> Floats:
        """The directions (directions, m) for `m` objectives, with sum 1 in each row."""
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
def _by_energy(m: int, count: int) -> Floats:
    """Directions of minimum energy (seconds of work), the same for every seed of the study."""
    from pymoo.util.ref_dirs import get_reference_directions

    return np.asarray(get_reference_directions("energy", m, count, seed=1))


def _feasibility_tournament(pop: Any, P: Any, *, random_state: np.random.Generator, **options: Any) -> Any:
    """The less violating of each pair, one at random for ties.

    pymoo's version breaks ties between equally infeasible designs with a generator seeded from the clock.
    """
    winners = np.empty((len(P), 1), dtype=int)
    for i, (a, b) in enumerate(P):
        g, h = pop[a].CV[0], pop[b].CV[0]
        winners[i] = a if g < h else b if h < g else random_state.choice([a, b])
    return winners


@solver("sms_emoa", version=1)
class SMSEMOA(Generations):
    """SMS-EMOA, Beume, Naujoks & Emmerich (2007), through pymoo: selection by hypervolume.

    From the last front that fits only in part, the design with the smallest hypervolume contribution is removed
    repeatedly. Per evaluation it covers fronts of two or three objectives best; its own computing time grows steeply
    from four on. The published method makes one child at a time: ``offspring: 1``; more keep more workers busy. Search
    coordinates, failures and ``start_from`` as in nsga2.
    """

    objectives: ClassVar[Literal["one", "several", "any"]] = "several"

    reference: Annotated[
        float,
        Quantity(
            "",
            "distance of the reference point of the hypervolume beyond the worst values of the population, in widths "
            "of the population; large prefers the ends of the front",
            gt=0.0,
            le=1e6,
        ),
    ] = 10.0

    def check(self, problem: Problem) -> None:
        """Raises `InvalidSetting` without free parameters or with a single objective."""
        check_several("sms_emoa", problem)

    def solve(self, problem: Problem, evaluate: Evaluate, rng: np.random.Generator, start: Outcomes) -> str:
        """Search generation by generation; all random numbers come from `rng`."""
        from pymoo.algorithms.moo.sms import SMSEMOA as Algorithm
        from pymoo.algorithms.moo.sms import LeastHypervolumeContributionSurvival

        self.check(problem)
        survival = functools.partial(LeastHypervolumeContributionSurvival, eps=self.reference)
        build = functools.partial(Algorithm, survival=survival())
        return self.search(build, survival, problem, evaluate, rng, start)
