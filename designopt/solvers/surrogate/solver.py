"""Bayesian optimization for slow models: few evaluations, each chosen by its expected improvement."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar

import numpy as np

from designopt.arrays import Floats
from designopt.lazy import scipy, threadpoolctl
from designopt.plugin import InvalidSetting, Quantity, solver
from designopt.problem import Evaluate, Outcomes, Problem, StageEnded
from designopt.solvers.surrogate.candidates import candidates
from designopt.solvers.surrogate.coordinates import Coordinates
from designopt.solvers.surrogate.maximum import Bounds, Crowd, Maximum, maximum, without_neighbours
from designopt.solvers.surrogate.model import Surrogate
from designopt.solvers.surrogate.observations import Observations
from designopt.solvers.surrogate.processes import Processes
from designopt.solvers.surrogate.scale import Scale

#: Maximum number of objectives: more have too many boxes beside their front.
OBJECTIVES = 4
#: Number of sets of candidates without a new design after which the space is exhausted.
PATIENCE = 10
#: Information of a full evaluation: it leaves 1e-4 of the variance, of which this is the negative logarithm.
KNOWN = 4.0 * float(np.log(10.0))
#: Full evaluations at the start of a search with cheap ones, and maximum number of cheap ones per parameter.
LEAST, CHEAP = 4, 20
#: Interval of designs that aim at an end of the front, and the share of the front by which it must be expected to move.
ENDS, END = 4, 0.01
#: Number of last designs by which the model of the whole space is judged. If fewer than half of them were improvements,
#: about every other design is chosen by a local model; if gains were smaller than expected, up to this share of them.
RECENT = 10
MOST_LOCAL = 0.8
#: Gains below this share of the hypervolume, with one objective of the spread of its values, count as none.
LITTLE = 1e-4
#: Numbers of designs without a gain after which, if the processes expect none, independent length scales are used, and
#: the search starts anew.
EXHAUSTED_AFTER, RESTART_AFTER = 10, 20
#: A local search takes place in a box that is up to this number of decades smaller than that of its known designs.
DECADES = 1.0
#: The two ways: away from densely sampled regions, or around a design of the front.
AWAY, NEAR = 0, 1
#: With jumping values, the minimum and the maximum probability that the first way is `NEAR`.
LEAST_NEAR, MOST_NEAR = 0.2, 0.5


@solver("gp", version=10)
class GaussianProcessSearch:
    """Bayesian optimization with Gaussian processes, for 1 to 4 objectives and at most a few hundred evaluations.

    Every objective and every limit has its own Gaussian process (Matern 5/2), and so has success if evaluations fail.
    The next design maximises the expected hypervolume improvement (expected improvement for one objective; Jones,
    Schonlau & Welch 1998; Emmerich, Deutz & Klinkenberg 2011) times the probability that it meets all limits (Schonlau,
    Welch & Jones 1998; Gardner et al. 2014) and does not fail. Without a feasible design the probability alone decides.
    Integers, choices and conditions are searched directly; noise is estimated for stochastic models. Values are
    transformed to compress large ones if that increases the likelihood. If fewer than half of the last ten designs were
    improvements, about every other one is chosen by a local model, and the more, the less of their expected gains was
    real; values that jump there, as between branches of a solution, get a second kernel of short length scales. With
    one objective, the length scales of a process are expected near a common level or independent of each other,
    whichever is more probable; if the last ten designs gave no gain and the processes expect none anywhere, processes
    of independent length scales choose, and after ten more the search starts anew without the known designs, until it
    finds a better one. Effects of single parameters may add up, if that is more probable (Plate 1999; Duvenaud,
    Nickisch & Rasmussen 2011). With several objectives every fourth design aims at an end of the front.

    Designs are requested one by one, with `look_ahead` pending, which keeps as many workers busy; each is chosen with
    predictions in place of pending results (Ginsbourger, Le Riche & Carraro 2010). Designs of ``start_from`` are used
    from the start. The processes also learn from derivatives of the model, if available (Morris, Mitchell & Ylvisaker
    1993), and from cheap evaluations, if the model has a `Fidelity`: some precede the next full one if they remove a
    larger share of its uncertainty than they cost. With `min_gain` the stage ends when no design has a larger expected
    improvement.
    """

    needs_budget: ClassVar[bool] = True
    later_settings: ClassVar[tuple[str, ...]] = ("gradients", "fidelity")

    startup: (
        Annotated[
            int,
            Quantity(
                "",
                "designs of the Sobol' sequence before the processes, including those of start_from; default: two for "
                "each parameter and two more, from 8 to 40",
                ge=2,
                le=10_000,
            ),
        ]
        | None
    ) = None
    look_ahead: Annotated[int, Quantity("", "number of pending designs", ge=1, le=1000)] = 4
    candidates: Annotated[int, Quantity("", "number of candidates for each design", ge=16, le=100_000)] = 512
    noise: (
        Annotated[
            bool,
            Quantity(
                "", "whether the same design may give different values; default: if the model takes random numbers"
            ),
        ]
        | None
    ) = None
    min_gain: (
        Annotated[
            float,
            Quantity(
                "",
                "the stage ends when the largest expected gain of hypervolume, relative to what is reached, stays "
                "below this for twice `look_ahead` designs; with one objective relative to the spread of its values",
                gt=0.0,
                lt=1.0,
            ),
        ]
        | None
    ) = None

    gradients: (
        Annotated[bool, Quantity("", "learn from the model's derivatives too; default: if the model has them")] | None
    ) = None

    fidelity: Annotated[bool, Quantity("", "learn from cheap evaluations too, if the model declares them")] = True

    def wants_cheap(self) -> bool:
        """Whether the solver uses cheap evaluations."""
        return self.fidelity

    def wants_gradient(self) -> bool:
        """Whether the solver uses the model's derivatives."""
        return self.gradients is not False

    def check(self, problem: Problem) -> None:
        """Raises `InvalidSetting` without free parameters, for too many objectives, and for missing derivatives."""
        if not problem.space.free:
            raise InvalidSetting("use", "gp needs a free parameter")
        if not problem.objectives:
            raise InvalidSetting("use", "gp needs an objective")
        if (m := len(problem.objectives)) > OBJECTIVES:
            raise InvalidSetting("use", f"gp takes at most {OBJECTIVES} objectives, not {m}; nsga3 takes more")
        if self.gradients and not problem.gradients:
            text = f"model '{problem.model.plugin.name}' has no derivatives; leave 'gradients' out, or set it to false"
            raise InvalidSetting("gradients", text)
        if self.fidelity and problem.cheap is not None and problem.model.plugin.has("check"):
            try:
                problem.cheap.model.build().check()
            except InvalidSetting as error:
                text = f"cheap evaluations are not possible with these settings of the model: {error}"
                raise InvalidSetting("fidelity", f"{text}; set fidelity: false") from error

    def solve(self, problem: Problem, evaluate: Evaluate, rng: np.random.Generator, start: Outcomes) -> str | None:
        """Search design by design; all random numbers come from `rng`."""
        self.check(problem)
        search = _Search(self, problem, rng, [start] if len(start) else [], set())
        # One thread: matrices are small, more threads would only wait, and digits would depend on their number.
        blas = threadpoolctl.ThreadpoolController()

        def ask() -> Floats:
            with blas.limit(limits=1, user_api="blas"):
                return search.ask()

        if search.cost is not None and problem.fidelity is not None:
            how = ", ".join(f"{name} = {value}" for name, value in problem.fidelity.settings.items())
            text = f"cheap evaluations ({how}) count {search.cost:g} each; fronts and reports are of full ones alone"
            evaluate.note("fidelity", text)
        try:
            while True:
                if len(search.cheap_designs):
                    search.learn(evaluate.cheap(search.cheap_designs))
                evaluate.ahead(ask, search.tell, self.look_ahead)
                if not search.is_paused:
                    break
        except StageEnded:
            if search.starting:
                text = "ended within its start-up, a Sobol' sequence: no process was fitted; give it a larger budget"
                evaluate.note("start_up", text)
            raise
        return search.end_reason


class _Search:
    """State of the ask-and-tell loop, and the choice of the next design.

    A search begins with the outcomes `start`, and proposes no design of `proposals`, which it extends.
    """

    def __init__(
        self,
        settings: GaussianProcessSearch,
        problem: Problem,
        rng: np.random.Generator,
        start: Sequence[Outcomes],
        proposals: set[bytes],
    ) -> None:
        self.end_reason: str | None = None
        self._settings = settings
        self._problem = problem
        self._rng = rng
        self._coordinates = Coordinates(problem.space)
        self._single = len(problem.objectives) == 1
        self._surrogate = Surrogate(problem, settings.noise)
        self._independent = Surrogate(problem, settings.noise, independent_lengths=True)
        self._outcomes = list(start)
        self._pending: dict[bytes, Floats] = {}
        self._proposals = proposals
        self._proposals.update(x.tobytes() for outcomes in start for x in outcomes.X + 0.0)
        self._known_cheap: set[bytes] = set()
        d = len(problem.space.free)
        startup = settings.startup or min(max(2 * d + 2, 8), 40)
        count = max(startup - sum(int((~outcomes.invalid).sum()) for outcomes in start), 0)
        self.cost = problem.fidelity.cost if problem.fidelity is not None and settings.fidelity else None
        self._cheap: list[Observations] = []
        self._slopes = problem.gradients and settings.wants_gradient() and self.cost is None
        self._observations = [Observations.from_outcomes(problem, self._outcomes, self._slopes)]
        self.cheap_designs = np.empty((0, d))
        """Designs for cheap evaluation before the next full evaluation."""
        self.is_paused = False
        """Whether the search waits for the results of all its designs before it asks for the next one."""
        if self.cost is not None and count > LEAST:  # most of the start-up's budget for cheap evaluations
            cheap = min(int((count - LEAST) / self.cost), CHEAP * d)
            self.cheap_designs, count = _distinct_rows(_spread(self._coordinates, cheap, rng)), LEAST
        self._first = self._new_designs(_distinct_rows(_spread(self._coordinates, count, rng)))
        self._recent: deque[bool] = deque(maxlen=RECENT)
        self._expectations: dict[bytes, Maximum] = {}
        """The maxima of expected gains among the pending designs."""
        self._gains: deque[tuple[float, float]] = deque(maxlen=RECENT)
        """Expected and real gains of the last designs."""
        self._jumps = False
        """Whether the last local search found jumps of the values near the front."""
        self._ways_by_design: dict[bytes, int] = {}
        self._worth = np.ones((2, 2))
        """Number of improvements and of designs, each plus one, for AWAY and NEAR, in a search with jumping values."""
        self._small = self._tells = self._since_cheap = self._turns = self._since_gain = 0
        self._scale: Scale | None = None
        self._last_gain = min(
            (float(o.objectives[o.feasible, 0].min()) for o in start if o.feasible.any()), default=np.inf
        )
        """The value of the only objective at the last gain."""
        self._restart: _Search | None = None
        """A search that knows none of the designs so far, since no gain is expected beside them."""

    @property
    def starting(self) -> bool:
        """Whether no result of a design chosen by the processes is available yet."""
        return self._tells <= len(self._first)

    @property
    def _stuck(self) -> bool:
        return len(self._recent) == RECENT and sum(self._recent) < RECENT // 2

    @property
    def _unreal_share(self) -> float:
        """The share of the expected gains of the last designs that was not real, from 0 to MOST_LOCAL."""
        forecast, gain = (sum(values) for values in zip(*self._gains, strict=True)) if self._gains else (0.0, 0.0)
        return float(np.clip(1.0 - gain / forecast, 0.0, MOST_LOCAL)) if forecast else 0.0

    @property
    def _exhausted(self) -> bool:
        """Whether the last designs gave no gain of the only objective, as around an optimum that is known."""
        return self._single and self._since_gain >= EXHAUSTED_AFTER

    @property
    def _may_restart(self) -> bool:
        """Whether the search starts anew where it expects no gain: not if it would end there."""
        return self.cost is None and self._settings.min_gain is None

    def ask(self) -> Floats:
        """The next design (1, d); (0, d) at the end of the search."""
        x = self._next()
        if x is None:
            return np.empty((0, len(self._problem.space.free)))
        self._proposals.add(x.tobytes())
        self._pending[x.tobytes()] = x
        return x[None]

    def learn(self, outcomes: Outcomes) -> None:
        """Called with the outcomes of the `cheap_designs`."""
        self._cheap.append(Observations.from_outcomes(self._problem, [outcomes]))
        self._since_cheap = 0
        self._known_cheap.update(x.tobytes() for x in outcomes.X + 0.0)
        self.cheap_designs = np.empty((0, outcomes.X.shape[1]))

    def tell(self, outcomes: Outcomes) -> None:
        """Called with the outcome (1 row) of the first pending design."""
        self._tells += 1
        design = (outcomes.X[0] + 0.0).tobytes()
        proposal = design if design in self._pending else next(iter(self._pending), design)
        self._pending.pop(proposal, None)
        if (expectation := self._expectations.pop(proposal, None)) is not None:
            gain = expectation.processes.gain(outcomes.objectives[0]) if outcomes.feasible[0] else 0.0
            self._gains.append((float(np.exp(expectation.value)), gain))
        self._proposals.add(design)  # another one, if the run evaluated this design before a result was corrected
        if self._restart is not None and proposal in self._restart._pending:
            self._restart.tell(outcomes)
        better = self._is_improvement(outcomes)
        if (way := self._ways_by_design.pop(design, None)) is not None:
            self._worth[way] += better, 1.0
        if better and self._is_gain(outcomes):
            self._since_gain, self._restart = 0, None
        elif not self.starting:
            self._since_gain += 1
        if not self.starting:
            self._recent.append(better)
        self._outcomes.append(outcomes)
        self._observations.append(Observations.from_outcomes(self._problem, [outcomes], self._slopes))

    def _next(self) -> Floats | None:
        for x in self._first:
            if x.tobytes() not in self._proposals:
                return np.asarray(x)
        self.is_paused = self.cost is not None and self._tells < len(self._first)
        if self.is_paused:  # early in the search: wait for their results
            return None
        if self._restart is not None and len(X := self._restart.ask()):
            return np.asarray(X[0])
        observations = Observations.union(self._observations)
        if int((~observations.failed).sum()) < 2:
            return self._random_design()
        cheap = Observations.union(self._cheap) if self._cheap else None
        pending = np.array([*self._pending.values()]).reshape(len(self._pending), observations.X.shape[1])
        processes = self._surrogate.processes(observations, pending, cheap)
        candidate = self._best_candidate(processes, observations.X[~observations.failed])
        self._scale = processes.scales[0]
        if self._exhausted and candidate is not None and np.exp(candidate.value) < LITTLE * processes.hypervolume:
            if self._restart is None and self._since_gain >= RESTART_AFTER and self._may_restart:
                self._restart = _Search(self._settings, self._problem, self._rng, [], self._proposals)
                return self._next()
            processes = self._independent.processes(observations, pending, cheap)
            candidate = self._maximum(processes, None)
        if candidate is None:
            return self._random_design()
        if self.cost is None and (end := self._end(candidate)) is not None:
            return end
        if self._settings.min_gain is not None and processes.boxes is not None:
            small = np.exp(candidate.value) < self._settings.min_gain * processes.hypervolume
            self._small = self._small + 1 if small else 0
            if self._small >= 2 * self._settings.look_ahead:
                self.end_reason = f"no design has an expected gain of {self._settings.min_gain:.3g} any more"
                return None
        feature = self._coordinates.features(candidate.design[None])[0]
        if self.cost is not None and self._since_cheap >= self._settings.look_ahead:
            if 1.0 - processes.cheap_share(feature) < np.exp(-self.cost * KNOWN):
                self.cheap_designs = self._for_cheap_evaluation(candidate.design, candidate.candidates)
            self.is_paused = len(self.cheap_designs) > 0
        self._since_cheap += 1
        if self.is_paused:
            return None
        if candidate.processes.boxes is not None:
            self._expectations[candidate.design.tobytes()] = candidate
        return candidate.design

    def _best_candidate(self, processes: Processes, X: Floats) -> Maximum | None:
        """The next design for known designs `X` (n, d); None without a candidate."""
        if processes.boxes is None or self._exhausted:
            return self._maximum(processes, None)
        best, least = None, max(LITTLE, self._settings.min_gain or 0.0) * processes.hypervolume
        for turn, way in enumerate(self._ways(processes, X)):
            candidate = self._maximum(*way)
            if best is None or (candidate is not None and candidate.value > best.value):
                best = candidate
            if best is not None and turn == 0 and self._jumps:
                self._ways_by_design[best.design.tobytes()] = AWAY if best.bounds is None else NEAR
                break
            if best is not None and np.exp(best.value) >= least:
                break
        return best

    def _ways(self, processes: Processes, X: Floats) -> Iterator[tuple[Processes, Bounds | None, Crowd | None]]:
        """The regions of the search, in the order in which they are tried: at random around a design of the front, the
        more often the less of the expected gains was real, and the whole space.

        With little improvement the first is one of two, around the front or away from densely sampled regions. With
        jumping values an expected gain around the front is often spurious. The first region then decides, and is around
        the front the less often the fewer improvements it has given.
        """
        share = max(0.5, self._unreal_share) if self._stuck else self._unreal_share
        if self._stuck and self._jumps:
            gains, trials = self._worth.T
            share = float(np.clip(gains[NEAR] / trials[NEAR] / (gains / trials).sum(), LEAST_NEAR, MOST_NEAR))
        near_first = self._rng.random() < share
        if near_first:
            yield *self._nearby_processes(processes, X), None
        if self._stuck:
            yield processes, None, Crowd(self._coordinates.coordinates(X))
        if self._stuck and not near_first:
            yield *self._nearby_processes(processes, X), None
        yield processes, None, None

    def _maximum(self, processes: Processes, bounds: Bounds | None, crowd: Crowd | None = None) -> Maximum | None:
        X = candidates(self._coordinates, processes.front, self._settings.candidates, self._rng, bounds)
        return maximum(self._coordinates, processes, X, bounds, self._proposals, crowd)

    def _end(self, candidate: Maximum) -> Floats | None:
        """The design that is expected to move an end of the front most, if it is due and worthwhile; the search starts
        from the maximum `candidate`."""
        self._turns += 1
        processes, m = candidate.processes, len(self._problem.objectives)
        if m == 1 or processes.boxes is None or self._turns % ENDS:
            return None
        j = self._turns // ENDS % m
        end = maximum(
            self._coordinates, processes.toward_end(j), candidate.candidates, candidate.bounds, self._proposals
        )
        return None if end is None or np.exp(end.value) <= END * processes.widths[j] else end.design

    def _for_cheap_evaluation(self, best: Floats, candidates: Floats) -> Floats:
        """Designs for cheap evaluations at the cost of one full one: the `best`, and others (n, d) that follow it,
        apart from each other."""
        X = np.array([x for x in (best, *candidates) if x.tobytes() not in self._known_cheap]).reshape(-1, len(best))
        count = max(int(1.0 / (self.cost or 1.0)), 1)
        return np.asarray(X[list(without_neighbours(self._coordinates.features(X), np.arange(len(X)), count))])

    def _nearby_processes(self, processes: Processes, X: Floats) -> tuple[Processes, Bounds]:
        """Processes of the designs around one of the front, few or many of them, and their bounding box."""
        d = X.shape[1]
        smallest, largest = np.log(5 * d), np.log(min(20 + 10 * d, 100))
        count = int(np.exp(self._rng.uniform(min(smallest, largest), largest)))
        centre = processes.front[processes.along_front(self._rng)][None]
        feature, u = self._coordinates.features(centre)[0], self._coordinates.coordinates(centre)[0]
        distances = ((self._coordinates.features(X) - feature) ** 2).sum(axis=1)
        beside = self._coordinates.coordinates(X[np.argsort(distances, kind="stable")[:count]])
        reach = float(np.abs(beside - u).max()) * 10.0 ** -self._rng.uniform(0.0, DECADES)
        near = processes.near(feature, count)
        self._jumps = near.jump
        return near, (np.clip(u - reach, 0.0, 1.0), np.clip(u + reach, 0.0, 1.0))

    def _is_improvement(self, outcomes: Outcomes) -> bool:
        """Whether a design enters the front, or has a smaller violation than all before while none is feasible."""
        if not self._outcomes or outcomes.failed[0]:
            return not outcomes.failed[0]
        feasible = np.concatenate([o.feasible for o in self._outcomes])
        if not feasible.any():
            return bool(outcomes.rank_violation[0] < min(o.rank_violation.min() for o in self._outcomes))
        F = np.concatenate([o.objectives for o in self._outcomes])[feasible]
        return bool(outcomes.feasible[0] and not np.all(outcomes.objectives[0] >= F, axis=1).any())

    def _is_gain(self, improvement: Outcomes) -> bool:
        """Whether the only objective has improved by more than LITTLE of the spread of its values since the last gain.
        An improvement of several objectives, or of the violation of limits, is always one."""
        if not self._single or not improvement.feasible[0]:
            return True
        value = improvement.objectives[0]
        if self._scale is not None and np.isfinite(self._last_gain):
            gain = self._scale.scaled(np.array([self._last_gain])) - self._scale.scaled(value)
            if gain[0] <= LITTLE:
                return False
        self._last_gain = float(value[0])
        return True

    def _new_designs(self, X: Floats) -> Floats:
        """The designs of `X` that are new."""
        return np.array([x for x in X + 0.0 if x.tobytes() not in self._proposals]).reshape(-1, X.shape[1])

    def _random_design(self) -> Floats | None:
        """A new random design, None if none is found."""
        for _ in range(PATIENCE):
            U = self._rng.random((256, len(self._problem.space.free)))
            X = self._coordinates.designs(U)
            X = self._new_designs(X[self._problem.space.relation_violation(X) <= 0.0])
            if len(X):
                return np.asarray(X[0])
        if not self._proposals:  # relations that cannot be met: the run reports it after some invalid designs
            return np.asarray(self._coordinates.designs(self._rng.random((1, len(self._problem.space.free))))[0])
        self.end_reason = f"no design is left that was not evaluated{self._restriction()}"
        return None

    def _restriction(self) -> str:
        """The restriction of the number of designs, in a clause."""
        free, relations = self._problem.space.free, self._problem.space.relations
        reasons = []
        if all(p.kind != "real" for p in free):
            values = " times ".join(
                f"{len(p.values) if p.kind == 'choice' else round(p.high - p.low) + 1} of '{p.name}'" for p in free
            )
            reasons.append(f"the space has no real parameter ({values})")
        if relations:
            reasons.append(
                f"of {256 * PATIENCE} random designs none satisfies the relations: {', '.join(map(str, relations))}"
            )
        return f": {'; '.join(reasons)}" if reasons else ""


def _distinct_rows(X: Floats) -> Floats:
    """The rows of `X`, each once, in their order."""
    return np.asarray(X[np.sort(np.unique(X, axis=0, return_index=True)[1])])


def _spread(coordinates: Coordinates, count: int, rng: np.random.Generator) -> Floats:
    """Designs (`count`, d) of the scrambled Sobol' sequence that meet all relations, fewer if these are rare."""
    d = len(coordinates.space.free)
    designs = np.empty((0, d))
    sequence = scipy.stats.qmc.Sobol(d, rng=rng)
    for doublings in range(PATIENCE):
        if len(designs) >= count:
            break
        # The first n points, then as many again, so that all of them together are balanced.
        X = coordinates.designs(sequence.random_base2(max(count - 1, 1).bit_length() + max(doublings - 1, 0)))
        designs = np.vstack([designs, X[coordinates.space.relation_violation(X) <= 0.0]])
    return designs[:count]
