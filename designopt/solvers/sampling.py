"""Samplers: solvers that evaluate a predetermined sample in one batch.

Every sampler fills the whole box of the free parameters, evenly in search coordinates (a log-scale parameter evenly in
its logarithm). Points that violate a relation are proposed like the others: they are recorded as `invalid` and cost no
budget, and the sample keeps its structure (grid, strata, net).

All except the grid have ``unit_sample(dimension, rng)``, their points in the unit cube [0, 1)^dimension, which also
serve for sampled scenarios.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, ClassVar, Literal

import numpy as np

from designopt.arrays import Floats
from designopt.lazy import scipy
from designopt.plugin import InvalidSetting, Quantity, solver
from designopt.problem import Evaluate, Outcomes, Problem
from designopt.space import Space
from designopt.study.study import DesignVariable

#: Maximum number of grid points, limited by time and memory.
MOST_POINTS = 20_000_000

#: Maximum dimension for Voronoi cells: their number grows exponentially.
MOST_CELLS = 4

#: Dimensions with direction numbers of the Sobol' sequence by Joe & Kuo (2008).
MOST_DIMENSIONS = 21_201

Samples = Annotated[int, Quantity("", "number of designs", ge=1, le=MOST_POINTS)]
Scramble = Annotated[bool, Quantity("", "randomise the points within their strata")]


class UnitSampler(ABC):
    """A sampler of the unit cube, whose points are scaled to the box of search coordinates."""

    needs_objectives: ClassVar[bool] = False
    uses_start: ClassVar[bool] = False

    def check(self, problem: Problem) -> None:  # noqa: B027 - samplers without restrictions need none
        """Nothing: the sample has any number of points and parameters."""

    @abstractmethod
    def unit_sample(self, dimension: int, rng: np.random.Generator) -> Floats:
        """Points (samples, dimension) in [0, 1)."""

    def solve(self, problem: Problem, evaluate: Evaluate, rng: np.random.Generator, start: Outcomes) -> None:
        """Evaluate the whole sample in one batch."""
        self.check(problem)
        _refuse_start(start)
        evaluate(problem.space.in_box(self.unit_sample(len(problem.space.free), rng)))


@solver("full_factorial", version=1)
class FullFactorial:
    """Full factorial design: all combinations of the parameters' levels, the last parameter varying fastest.

    A real parameter has evenly spaced levels (geometrically on a log scale) that include both bounds; a single level is
    the middle. Integers have all their values, or as many evenly spaced ones as a mapping gives; choices have all their
    values. Combinations that differ only in inactive parameters are one design, evaluated once.
    """

    needs_objectives: ClassVar[bool] = False
    uses_start: ClassVar[bool] = False

    levels: Annotated[
        int | dict[str, int],
        Quantity("", "levels of every real parameter, or {parameter: levels}; default: all values"),
    ] = field(default_factory=dict)

    def check(self, problem: Problem) -> None:
        """Raises `InvalidSetting` if `levels` and the parameters do not match."""
        count = math.prod(self._counts(problem.space))
        if count > MOST_POINTS:
            raise InvalidSetting("levels", f"the grid has {count:.3g} points; at most {MOST_POINTS} are allowed")

    def solve(self, problem: Problem, evaluate: Evaluate, rng: np.random.Generator, start: Outcomes) -> None:
        """Evaluate the whole grid in one batch; `rng` is not used."""
        _refuse_start(start)
        self.check(problem)
        space = problem.space
        axes = [_levels(p, count) for p, count in zip(space.free, self._counts(space), strict=True)]
        X = np.empty((math.prod(len(values) for values in axes), len(axes)))
        repeat = len(X)
        for j, values in enumerate(axes):
            repeat //= len(values)
            X[:, j] = np.tile(np.repeat(values, repeat), len(X) // (repeat * len(values)))
        if problem.space.conditional:
            X = problem.space.impute(X)
            X = X[np.sort(np.unique(X, axis=0, return_index=True)[1])]
        evaluate(X)

    def _counts(self, space: Space) -> list[int]:
        """Number of levels of each parameter; counted before the grid is created."""
        if isinstance(self.levels, Mapping):
            unknown = sorted(self.levels.keys() - set(space.names))
            if unknown:
                names = ", ".join(space.names)
                raise InvalidSetting("levels", f"there is no free parameter '{unknown[0]}' (free: {names})")
        return [_level_count(p, self._count(p)) for p in space.free]

    def _count(self, p: DesignVariable) -> int | None:
        if isinstance(self.levels, Mapping):
            return self.levels.get(p.name)
        return self.levels if p.kind == "real" else None


def _level_count(p: DesignVariable, count: int | None) -> int:
    """Number of levels of a parameter; all of its values for None."""
    if count is not None and count < 1:
        raise InvalidSetting("levels", f"'{p.name}' needs at least 1 level, not {count}")
    if p.kind == "choice":
        if count not in (None, len(p.values)):
            raise InvalidSetting("levels", f"'{p.name}' is a choice and has all its {len(p.values)} values as levels")
        return len(p.values)
    if p.kind == "int":
        value_count = round(p.high - p.low) + 1
        if count is not None and count > value_count:
            raise InvalidSetting("levels", f"'{p.name}' has {value_count} values, not {count}")
        return value_count if count is None else count
    if count is None:
        raise InvalidSetting("levels", f"give the number of levels of the real parameter '{p.name}'")
    return count


def _levels(p: DesignVariable, count: int) -> Floats:
    """The `count` levels of one parameter as column values."""
    if p.kind == "choice":
        return np.arange(count, dtype=float)
    if p.kind == "int":
        if count == round(p.high - p.low) + 1:
            return p.low + np.arange(count, dtype=float)
        return np.asarray(np.rint(_even_points(p.low, p.high, count)))
    if p.scale == "log":
        return np.geomspace(p.low, p.high, count) if count > 1 else np.array([math.sqrt(p.low) * math.sqrt(p.high)])
    return _even_points(p.low, p.high, count)


def _even_points(low: float, high: float, count: int) -> Floats:
    return np.linspace(low, high, count) if count > 1 else np.array([low + (high - low) / 2.0])


@solver("latin_hypercube", version=1)
class LatinHypercube(UnitSampler):
    """Latin hypercube sample: each parameter's range is divided into `samples` equal strata with one design in each.

    McKay, Beckman & Conover (1979), through ``scipy.stats.qmc``. `optimization` improves the uniformity in more than
    one dimension: ``random-cd`` exchanges coordinates to lower the centred discrepancy and keeps the strata; ``lloyd``
    moves the designs apart by their Voronoi cells (few parameters only) and loses the strata.
    """

    samples: Samples
    optimization: Annotated[
        Literal["none", "random-cd", "lloyd"], Quantity("", "optimization of the uniformity in all dimensions")
    ] = "none"
    scramble: Scramble = True

    def check(self, problem: Problem) -> None:
        """Raises `InvalidSetting` if the sample cannot be optimized."""
        self._check_cost(len(problem.space.free))
        d = len(problem.space.free)
        if self.optimization == "lloyd" and d < 2:
            raise InvalidSetting("optimization", "'lloyd' needs two free parameters; use 'random-cd' or 'none'")
        least = d + 2 if self.optimization == "lloyd" else 2
        if self.optimization != "none" and self.samples < least:
            raise InvalidSetting(
                "optimization", f"'{self.optimization}' needs {least} samples here, not {self.samples}"
            )

    def _check_cost(self, dimension: int) -> None:
        """Raises `InvalidSetting` if an optimization takes too long: its cost is quadratic in the number of designs."""
        limit = {"random-cd": 2000, "lloyd": 1000}.get(self.optimization, MOST_POINTS)
        if self.samples > limit:
            raise InvalidSetting(
                "optimization", f"'{self.optimization}' spreads at most {limit} samples, not {self.samples}"
            )
        if self.optimization == "lloyd" and dimension > MOST_CELLS:
            text = f"'lloyd' takes at most {MOST_CELLS} parameters, not {dimension}; use 'random-cd'"
            raise InvalidSetting("optimization", text)

    def unit_sample(self, dimension: int, rng: np.random.Generator) -> Floats:
        """Points (samples, dimension) in [0, 1)."""
        self._check_cost(dimension)
        engine = scipy.stats.qmc.LatinHypercube(
            dimension,
            scramble=self.scramble,
            optimization=None if self.optimization == "none" else self.optimization,
            rng=_child(rng),
        )
        return _below_one(engine.random(self.samples))


@solver("sobol", version=1)
class Sobol(UnitSampler):
    """The first `samples` points of the Sobol' sequence, a low-discrepancy sequence for integrals and surrogates.

    Sobol' (1967) with the direction numbers of Joe & Kuo (2008) and Owen's scrambling, through ``scipy.stats.qmc``. The
    sequence is balanced (equally many points in all halves, quarters, ... of the box) at powers of two. Any other
    number gives the beginning of the next larger balanced set: well spread, but not balanced. Without scrambling, the
    first point is the corner of lower bounds.
    """

    samples: Samples
    scramble: Scramble = True

    def check(self, problem: Problem) -> None:
        """Raises `InvalidSetting` for too many parameters."""
        if len(problem.space.free) > MOST_DIMENSIONS:
            raise InvalidSetting("use", f"the Sobol' sequence has at most {MOST_DIMENSIONS} dimensions")

    def unit_sample(self, dimension: int, rng: np.random.Generator) -> Floats:
        """Points (samples, dimension) in [0, 1)."""
        engine = scipy.stats.qmc.Sobol(dimension, scramble=self.scramble, rng=_child(rng))
        # A full power of two, cut afterwards: `random(n)` gives the same points but warns for any other n.
        return np.asarray(engine.random_base2(math.ceil(math.log2(self.samples)))[: self.samples])


@solver("halton", version=1)
class Halton(UnitSampler):
    """The first `samples` points of the Halton sequence: low discrepancy for any number of samples.

    Halton (1960): radical inverses of the index in the i-th prime base, scrambled by random permutations of the digits
    as in Owen (2017), through ``scipy.stats.qmc``. Unlike the Sobol' sequence it does not prefer powers of two, so a
    sample can grow by any number. Without scrambling it is poor beyond about six dimensions, and its first point is the
    corner of lower bounds.
    """

    samples: Samples
    scramble: Scramble = True

    def unit_sample(self, dimension: int, rng: np.random.Generator) -> Floats:
        """Points (samples, dimension) in [0, 1)."""
        return _below_one(
            scipy.stats.qmc.Halton(dimension, scramble=self.scramble, rng=_child(rng)).random(self.samples)
        )


@solver("random", version=1)
class Random(UnitSampler):
    """Independent, uniformly distributed designs: plain Monte Carlo sampling.

    The error of its mean over designs can be estimated, unlike that of the other samplers, which cover the space
    better.
    """

    samples: Samples

    def unit_sample(self, dimension: int, rng: np.random.Generator) -> Floats:
        """Points (samples, dimension) in [0, 1)."""
        return rng.random((self.samples, dimension))


def _below_one(U: Floats) -> Floats:
    """Points of the unit cube with values rounded to 1 moved below 1."""
    return np.minimum(U, np.nextafter(1.0, 0.0))


def _child(rng: np.random.Generator) -> np.random.Generator:
    """A generator that depends on the state of `rng` alone (SciPy would spawn from its seed and ignore the state)."""
    return np.random.default_rng(rng.integers(0, 2**63, size=2))


def _refuse_start(start: Outcomes) -> None:
    if len(start):
        raise InvalidSetting("start_from", "a sampler does not learn from designs of an earlier stage; leave it out")
