"""Global sensitivity: Sobol' indices and Morris' elementary effects, through SALib (extra ``sensitivity``).

Both evaluate their whole sample in one batch of blocks; `indices` computes the indices from the outcomes in order. A
block with a design without a result (failed, invalid, not yet evaluated) is dropped.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Annotated, Any, ClassVar

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import InvalidSetting, Quantity, closest, solver
from designopt.problem import Evaluate, Outcomes, Problem, figure_unit

#: Minimum share of complete blocks: a smaller one does not represent the space.
MIN_SHARE = 0.75
#: Maximum sample, and maximum product of `base` and `resamples` (the bootstrap is held in memory).
MOST_POINTS = 20_000_000
MOST_RESAMPLED = 20_000_000
#: Dimensions with direction numbers of the Sobol' sequence by Joe & Kuo (2008); a block needs two for each parameter.
MOST_DIMENSIONS = 21_201
#: An output with a smaller relative range is constant except for rounding.
CONSTANT = 1e-12
#: Seed of the bootstrap: the confidence intervals of a store are the same in every report.
BOOTSTRAP = 20020501

Outputs = Annotated[list[str], Quantity("", "objectives or figures to analyse; default: all objectives")]
Confidence = Annotated[float, Quantity("", "level of the confidence intervals", gt=0.0, lt=1.0)]
Resamples = Annotated[int, Quantity("", "number of bootstrap samples for the confidence intervals", ge=2, le=100_000)]


@dataclass(frozen=True)
class Influence:
    """Influence of the parameters on one output: arrays (d,) by measure, in the order of the free parameters.

    Sobol': ``first`` and ``total`` with ``first_confidence`` and ``total_confidence`` (half-widths), and with second
    order ``second`` and ``second_confidence`` (d, d), filled above the diagonal. Morris: ``mu``, ``mu_star``,
    ``mu_star_confidence``, ``sigma`` in the output's unit. Of `blocks`, `complete_blocks` have all
    results. Without numbers,
    `measures` is empty and `undefined_reason` gives the reason in a sentence.
    """

    output: str
    unit: str
    blocks: int
    complete_blocks: int
    measures: Mapping[str, Floats] = field(default_factory=dict)
    undefined_reason: str = ""


@dataclass(frozen=True)
class Indices:
    """The result of a sensitivity stage: the `method` (``sobol`` or ``morris``), the level of its confidence intervals,
    designs per block, names of the free parameters, and the `influences` on each output."""

    method: str
    confidence: float
    block: int
    parameters: tuple[str, ...]
    influences: tuple[Influence, ...]


@solver("sobol_indices", version=1)
class SobolIndices:
    """Sobol' indices: the shares of an output's variance due to each parameter alone (first order) and with
    interactions (total), for independent parameters uniform over their ranges in search coordinates.

    Sobol' (2001), with the sample of Saltelli (2002) and the estimators of Saltelli et al. (2010), through SALib:
    `base` blocks of d + 2 designs for d parameters, of 2 d + 2 with `second_order` (the shares of pairwise
    interactions). Confidence intervals come from a bootstrap over blocks. A design that violates a relation or fails
    removes its block; the indices then describe the part of the space with results.
    """

    uses_start: ClassVar[bool] = False
    needs_objectives: ClassVar[bool] = False

    base: Annotated[int, Quantity("", "blocks of designs, a power of two", ge=2, le=2**20)]
    second_order: Annotated[bool, Quantity("", "also pairwise interactions of parameters")] = False
    outputs: Outputs = field(default_factory=list)
    confidence: Confidence = 0.95
    resamples: Resamples = 200

    def minimum_budget(self, problem: Problem) -> int:
        """The whole sample."""
        return self.base * self._block(problem)

    def check(self, problem: Problem) -> None:
        """Raises `InvalidSetting` if the sample cannot be drawn or an output is unknown."""
        _check("sobol_indices", problem, self.outputs, self.minimum_budget(problem))
        if 2 * len(problem.space.free) > MOST_DIMENSIONS:
            raise InvalidSetting("use", f"sobol_indices takes at most {MOST_DIMENSIONS // 2} parameters")
        if self.base & (self.base - 1):
            below = 2 ** (self.base.bit_length() - 1)
            raise InvalidSetting(
                "base", f"the Sobol' sequence is balanced at powers of two; take {below} or {2 * below}"
            )
        if self.base * self.resamples > MOST_RESAMPLED:
            raise InvalidSetting("resamples", f"at most {MOST_RESAMPLED // self.base} for base {self.base}")

    def solve(self, problem: Problem, evaluate: Evaluate, rng: np.random.Generator, start: Outcomes) -> None:
        """Evaluate the whole sample in one batch."""
        self.check(problem)
        from SALib.sample import sobol

        d = len(problem.space.free)
        U = sobol.sample(_unit(d), self.base, calc_second_order=self.second_order, seed=_seed(rng))
        evaluate(problem.space.in_box(U))

    def indices(self, problem: Problem, outcomes: Outcomes) -> Indices:
        """Indices from the outcomes of the whole sample in order (with repeats)."""

        def measure(rows: Any, y: Floats) -> dict[str, Floats]:
            from SALib.analyze import sobol

            analysis = sobol.analyze(
                _unit(len(problem.space.free)),
                y,
                calc_second_order=self.second_order,
                num_resamples=self.resamples,
                conf_level=self.confidence,
                seed=BOOTSTRAP,
            )
            names = {"S1": "first", "ST": "total"} | ({"S2": "second"} if self.second_order else {})
            return {
                f"{name}{suffix}": np.asarray(analysis[key + short], dtype=float)
                for key, name in names.items()
                for short, suffix in (("", ""), ("_conf", "_confidence"))
            }

        return _indices("sobol", self, problem, outcomes, self._block(problem), self.base, measure)

    def _block(self, problem: Problem) -> int:
        d = len(problem.space.free)
        return 2 * d + 2 if self.second_order else d + 2


@solver("morris", version=1)
class Morris:
    """Morris' screening: elementary effects of one parameter at a time, at many points.

    Morris (1991) with the absolute effects of Campolongo, Cariboni & Saltelli (2007), through SALib: `trajectories` of
    d + 1 designs for d parameters on a grid of `levels`; each step changes one parameter. ``mu`` is the mean effect
    over a parameter's whole range (in search coordinates), ``mu_star`` the mean absolute effect, ``sigma`` the standard
    deviation of the effects: large for nonlinear effects and interactions. Integers and choices take the values nearest
    to the grid levels, and their effects refer to the steps between these; an inactive parameter has effect 0. A design
    that violates a relation or fails removes its trajectory.
    """

    uses_start: ClassVar[bool] = False
    needs_objectives: ClassVar[bool] = False

    trajectories: Annotated[
        int, Quantity("", "number of trajectories, each with one step per parameter", ge=2, le=100_000)
    ] = 20
    levels: Annotated[int, Quantity("", "number of grid levels of each parameter; even", ge=2, le=1000)] = 4
    outputs: Outputs = field(default_factory=list)
    confidence: Confidence = 0.95
    resamples: Resamples = 1000

    def minimum_budget(self, problem: Problem) -> int:
        """The whole sample."""
        return self.trajectories * (len(problem.space.free) + 1)

    def check(self, problem: Problem) -> None:
        """Raises `InvalidSetting` if the sample cannot be drawn or an output is unknown."""
        _check("morris", problem, self.outputs, self.minimum_budget(problem))
        if self.levels % 2:
            raise InvalidSetting("levels", f"an even number is needed; take {self.levels - 1} or {self.levels + 1}")
        if self.trajectories * self.resamples > MOST_RESAMPLED:
            limit = MOST_RESAMPLED // self.trajectories
            raise InvalidSetting("resamples", f"at most {limit} for {self.trajectories} trajectories")

    def solve(self, problem: Problem, evaluate: Evaluate, rng: np.random.Generator, start: Outcomes) -> None:
        """Evaluate all trajectories in one batch."""
        self.check(problem)
        from SALib.sample import morris

        d = len(problem.space.free)
        U = morris.sample(_unit(d), self.trajectories, num_levels=self.levels, seed=_seed(rng))
        low, high = self._grid(problem)
        evaluate(problem.space.from_search(low + (high - low) * U))

    def indices(self, problem: Problem, outcomes: Outcomes) -> Indices:
        """Effects from the outcomes of the whole sample in order (with repeats)."""
        low, high = self._grid(problem)
        moves = _moves(problem, outcomes.X, (problem.space.to_search(outcomes.X) - low) / (high - low))
        d = len(low)
        # SALib assumes grid steps; steps of parameters with few values are longer or shorter.
        grid_step = self.levels / (2.0 * (self.levels - 1.0))

        def measure(rows: Any, y: Floats) -> dict[str, Floats]:
            from SALib.analyze import morris

            steps = moves[rows].reshape(-1, d + 1, d)
            size = np.abs(steps).sum(axis=2)
            change = np.diff(y.reshape(-1, d + 1), axis=1, prepend=0.0)
            scale = np.divide(grid_step, size, out=np.ones_like(size), where=size > 0.0)
            analysis = morris.analyze(
                _unit(d),
                steps.cumsum(axis=1).reshape(-1, d),
                (scale * change).cumsum(axis=1).ravel(),
                num_resamples=self.resamples,
                conf_level=self.confidence,
                num_levels=self.levels,
                seed=BOOTSTRAP,
            )
            names = {"mu": "mu", "mu_star": "mu_star", "mu_star_conf": "mu_star_confidence", "sigma": "sigma"}
            return {name: np.asarray(analysis[key], dtype=float) for key, name in names.items()}

        return _indices("morris", self, problem, outcomes, len(low) + 1, self.trajectories, measure)

    @staticmethod
    def _grid(problem: Problem) -> tuple[Floats, Floats]:
        """Search coordinates of the first and last level; for discrete parameters the values, not the ends of their
        cells."""
        half = np.array([0.5 if p.kind in ("int", "choice") else 0.0 for p in problem.space.free])
        return problem.space.lower + half, problem.space.upper - half


def _check(name: str, problem: Problem, outputs: list[str], points: int) -> None:
    if find_spec("SALib") is None:
        raise InvalidSetting("use", f"{name} needs SALib; install it with: pip install 'designopt[sensitivity]'")
    if not problem.space.free:
        raise InvalidSetting("use", f"{name} needs a free parameter")
    flat = [p.name for p in problem.space.free if p.kind == "real" and p.low == p.high]
    if flat:
        raise InvalidSetting("use", f"{name} needs a range for every free parameter; '{flat[0]}' has none: fix it")
    if points > MOST_POINTS:
        raise InvalidSetting("use", f"the sample has {points:.3g} designs; at most {MOST_POINTS} are allowed")
    names = [o.name for o in problem.objectives]
    if not outputs and not names:
        raise InvalidSetting("outputs", "there is no objective; name the figures to be explained")
    if not problem.model.plugin.outputs:
        return  # an undeclared model: its figures are known after an evaluation
    names += [n for n in problem.output_names if n not in names]
    for output in outputs:
        if output not in names:
            near = closest(output, names)
            hint = f"; did you mean '{near}'?" if near else ""
            raise InvalidSetting("outputs", f"no objective or figure '{output}'{hint} (known: {', '.join(names)})")


def _unit(d: int) -> dict[str, Any]:
    """SALib's description of the unit box: values are converted to search coordinates here."""
    return {"num_vars": d, "names": [f"x{j}" for j in range(d)], "bounds": [[0.0, 1.0]] * d}


def _seed(rng: np.random.Generator) -> int:
    """A seed that depends on the state of `rng` alone."""
    return int(rng.integers(1, 2**31))


def _moves(problem: Problem, X: Floats, U: Floats) -> Floats:
    """Changes from each design of trajectories `X` (n, d) to the next, in shares of the grid `U` (n, d).

    0 in the first design of a trajectory, and where a parameter changes only because its condition starts or ceases to
    hold.
    """
    active = problem.space.active(X)
    moves = np.diff(U, axis=0, prepend=U[:1])
    moves[1:][~(active[1:] & active[:-1])] = 0.0
    moves[:: U.shape[1] + 1] = 0.0
    return moves


def _indices(
    method: str, settings: Any, problem: Problem, outcomes: Outcomes, block: int, blocks: int, measure: Any
) -> Indices:
    influences = []
    for name, unit, y in _series(problem, outcomes, settings.outputs):
        by_block = y[: len(y) // block * block].reshape(-1, block)
        complete = np.isfinite(by_block).all(axis=1)
        count = int(complete.sum())
        measures: dict[str, Floats] = {}
        why = ""
        complete_values = by_block[complete].ravel()
        if count < max(2, math.ceil(MIN_SHARE * blocks)):
            why = (
                f"{count} of {blocks} blocks of {block} designs are complete; indices need {MIN_SHARE:.0%} of them, "
                "because fewer do not represent the space."
            ).replace("%", " %")
        elif float(np.ptp(complete_values)) <= CONSTANT * float(np.abs(complete_values).max()):
            why = (
                "It has the same value in every design: no parameter has an influence, and shares of it are undefined."
            )
        else:
            rows = np.flatnonzero(np.repeat(complete, block))
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")  # a resample without variation: its interval shows this
                measures = measure(rows, complete_values)
        influences.append(Influence(name, unit, blocks, count, measures, why))
    return Indices(method, settings.confidence, block, problem.space.names, tuple(influences))


def _series(problem: Problem, outcomes: Outcomes, outputs: list[str]) -> list[tuple[str, str, Floats]]:
    """Name, unit and values (n,) of each output, NaN without a result; figures once for each scenario, also of designs
    that failed by another one."""
    objectives = {o.name: j for j, o in enumerate(problem.objectives)}
    missing = outcomes.failed | outcomes.invalid
    series: list[tuple[str, str, Floats]] = []
    for name in outputs or list(objectives):
        if name in objectives:
            o = problem.objectives[objectives[name]]
            values = np.where(missing, np.nan, o.sign * outcomes.objectives[:, objectives[name]])
            series.append((name, o.unit, values))
            continue
        figure = outcomes.figures.get(name, np.full((len(outcomes), len(problem.scenarios)), np.nan))
        for s, scenario in enumerate(problem.scenarios):
            label = f"{name} · {scenario.name}" if len(problem.scenarios) > 1 else name
            series.append((label, figure_unit(problem, name), np.where(outcomes.invalid, np.nan, figure[:, s])))
    return series
