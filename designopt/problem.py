"""The problem a study poses: its space, what identifies an evaluation, and how raw figures are scored.

Designs travel as rows of a float matrix ``X`` (one column per free parameter, in the study's unit; an integer as its
value, a choice as the index of its value). Everything here is vectorised over rows.
"""

from __future__ import annotations

import dataclasses
import hashlib
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from designopt.canonical import canonical_json, canonical_use, plain, tagged
from designopt.plugin import Fidelity, ModelPlugin, ObjectivePlugin, SolverPlugin, Use
from designopt.space import Matrix, Space, in_model_unit, shown_value
from designopt.study.language.expressions.derivative import derivatives
from designopt.study.language.expressions.expression import Expression
from designopt.study.language.expressions.grammar import Term
from designopt.study.study import Constraint, Objective, Parameter, Scenario, Study

#: Failure classes of an evaluation, in the order in which reports list them; "ok" is the only success.
STATUSES = ("ok", "diverged", "nonfinite", "error", "timeout", "crashed", "lost_worker", "invalid")

#: A figure that has to be equal to a limit is, when it differs by no more than this, relative to the limit's size.
EQUAL = 1e-6


@dataclass(frozen=True)
class Outcomes:
    """What is known of a batch of designs, row by row in the order in which they were asked.

    `objectives` (n, m) are to be minimised and infinite where there is no value; `violation` (n,) is 0 for a feasible
    design and positive otherwise; `failed` marks designs without a result; `invalid` those of them that
    break a relation, and were not evaluated, or that the model refused. `figures` holds every output (n, scenarios),
    NaN where there is none: for display and analysis, a solver has no need of it.
    """

    X: Matrix
    objectives: Matrix
    violation: Matrix
    failed: NDArray[np.bool_]
    invalid: NDArray[np.bool_]
    figures: Mapping[str, Matrix]

    def __len__(self) -> int:
        return len(self.X)

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """Evaluated, and within all limits."""
        return np.asarray(self.violation == 0.0)

    @property
    def rank_violation(self) -> Matrix:
        """Violation mapped so that order alone decides: 0 feasible < (0, 1) infeasible < [1, 2) invalid < 2 failed."""
        finite = np.where(np.isfinite(self.violation), self.violation, 0.0)
        squeezed = np.minimum(finite / (1.0 + finite), np.nextafter(1.0, 0.0))
        squeezed = np.where(self.invalid, 1.0 + np.where(np.isfinite(self.violation), squeezed, 1.0), squeezed)
        return np.where(self.failed & ~self.invalid, 2.0, np.minimum(squeezed, np.nextafter(2.0, 1.0)))

    def take(self, rows: NDArray[Any]) -> Outcomes:
        """The outcomes of some rows (indices or mask)."""
        return Outcomes(
            self.X[rows],
            self.objectives[rows],
            self.violation[rows],
            self.failed[rows],
            self.invalid[rows],
            {name: values[rows] for name, values in self.figures.items()},
        )


@dataclass(frozen=True)
class Solved:
    """What solving a program gave: `figures` by name, `arrays` to be kept, the solver's own word for how it ended
    (`reason`), and a sentence. `state` is what the next program of its chain may begin with; it stays on the worker."""

    ok: bool
    figures: Mapping[str, float]
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    reason: str = ""
    message: str = ""
    state: Any = None


class Programs(Protocol):
    """What `program(problem)` of a solver gives: it solves one program after the other, on a worker."""

    def solve(self, x: Matrix, seed: int, before: Any) -> Solved:
        """Solve from the design `x` (d,), with random numbers of `seed`. `before` is the state of the last program of
        the chain that was solved, None for the first. The answer depends on these alone."""


@dataclass(frozen=True)
class SolvedPrograms:
    """What became of programs, row by row in the order in which they were asked: whether there is a solution, figures
    (n,), NaN where there is none, and how it ended: the solver's own word, or a failure class."""

    ok: NDArray[np.bool_]
    figures: Mapping[str, Matrix]
    reasons: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ok)


class Evaluate(Protocol):
    """What a solver is given. What evaluates or solves raises `StageEnded` when the stage's budget is used up or the
    run is being stopped; solvers let it pass."""

    def __call__(self, X: Matrix) -> Outcomes:
        """Outcomes of the designs `X` (n, d), in their order, once all of them are durably recorded."""

    def ahead(self, ask: Callable[[], Matrix], tell: Callable[[Outcomes], None], look_ahead: int) -> None:
        """Evaluate designs one by one with up to `look_ahead` of them on their way.

        `ask` gives the next design (1, d), or (0, d) when there are no more; `tell` hears the outcomes (1 row) in ask
        order. Ask i always happens after the tell of i - `look_ahead` and before the next one, whatever the workers
        are, so that the sequence of designs is fixed. Returns when everything asked for has been told.
        """

    def programs(self, X: Matrix, chains: Sequence[int], seeds: Sequence[int]) -> SolvedPrograms:
        """Solve the solver's own programs (see `designopt.plugin.solver`) on the workers, each durably recorded once.

        Row i begins at the design `X[i]` (d,), with random numbers of `seeds[i]`. Rows with the same entry in `chains`,
        which follow one another, are solved one after the other on one worker, each from the one before.
        """

    def cheap(self, X: Matrix) -> Outcomes:
        """Outcomes of the designs `X` (n, d) by cheap evaluations (`Problem.cheap`), each durably recorded once.

        Each design costs `Fidelity.cost` of the budget's evaluations. What there is no budget for is not evaluated, and
        `StageEnded` raised.
        """

    def note(self, kind: str, text: str) -> None:
        """Record and show something that the user should know, once in all sessions."""


class StageEnded(Exception):
    """The stage's budget is used up, or the run stops: not an error. Solvers need not catch it."""


@dataclass(frozen=True)
class Limit:
    """One side of a constraint: ``sign * (value - bound) / size`` is at most 0, or has to be 0 (`equality`).

    The value is aggregated towards its large end for the sign 1, towards its small end for -1.
    """

    constraint: Constraint
    bound: float
    sign: float
    equality: bool

    @property
    def size(self) -> float:
        """What violations are relative to: the size of the bound, 1 for a bound of 0."""
        return abs(self.bound) or 1.0


@dataclass(frozen=True)
class Problem:
    """Space, model, scenarios, objectives and constraints: everything that decides what a number means. Immutable.

    With `gradients` every evaluation records the model's derivatives too, as figures ``d(output)/d(input)`` in the
    model's units. `seed` is the study's, for a model that uses random numbers; None for any other. When at most the
    share `missing` of the scenarios has no result, a design is scored by the others. `fidelity` is the model's where a
    solver learns from cheap evaluations, which are those of `cheap`.
    """

    model: Use[ModelPlugin]
    space: Space
    scenarios: tuple[Scenario, ...]
    objectives: tuple[Objective, ...]
    constraints: tuple[Constraint, ...] = ()
    figures: Mapping[str, Use[ObjectivePlugin]] = field(default_factory=dict)
    gradients: bool = False
    seed: int | None = None
    missing: float = 0.0
    fidelity: Fidelity | None = None

    @classmethod
    def of(cls, study: Study) -> Problem:
        """The problem that `study` poses."""
        return cls(
            model=study.model,
            space=Space(study.space, study.relations),
            scenarios=study.scenarios,
            objectives=study.objectives,
            constraints=study.constraints,
            figures=dict(study.figures),
            gradients=study.model.plugin.has_gradient
            and any(s.solver.plugin.wants_gradient(s.solver.settings) for s in study.stages),
            seed=study.seed if study.model.plugin.takes_rng else None,
            missing=study.missing,
            fidelity=_fidelity(study),
        )

    @cached_property
    def cheap(self) -> Problem | None:
        """The same problem with cheap evaluations; None without a `fidelity`."""
        if self.fidelity is None:
            return None
        model = Use(self.model.plugin, {**self.model.settings, **self.fidelity.settings})
        return dataclasses.replace(self, model=model, gradients=False, fidelity=None)

    @cached_property
    def output_names(self) -> tuple[str, ...]:
        """Names of the recorded figures: the model's outputs, then the figures computed by objective plugins."""
        return (*self.model.plugin.outputs, *self.figures)

    @cached_property
    def digest(self) -> str:
        """Hash of the canonical form; a store belongs to one."""
        return hashlib.blake2b(canonical_json(self.canonical()).encode(), digest_size=16).hexdigest()

    def canonical(self) -> dict[str, Any]:
        """The problem as plain data: what the store keeps as ``problem.json`` and what `digest` hashes."""
        return {
            **self._special,
            **({"missing": self.missing} if self.missing else {}),
            "model": canonical_use(self.model),
            "figures": {name: canonical_use(use) for name, use in self.figures.items()},
            "scenarios": [
                {"name": s.name, "values": plain(s.values), **({"shift": _plain_shift(s)} if s.shift else {})}
                for s in self.scenarios
            ],
            "space": [
                {
                    "name": p.name,
                    "kind": p.kind,
                    "low": float(p.low),
                    "high": float(p.high),
                    "values": list(p.values),
                    "unit": p.unit,
                    "scale": p.scale,
                    **({"when": plain(p.when)} if p.when else {}),
                }
                for p in self.space.parameters
            ],
            "relations": [str(r) for r in self.space.relations],
            "objectives": [
                {"name": o.name, o.direction: str(o.expression), "unit": o.unit, "over": canonical_use(o.over)}
                for o in self.objectives
            ],
            "constraints": [
                {
                    "name": c.name,
                    "of": str(c.expression),
                    "min": None if c.minimum is None else float(c.minimum),
                    "max": None if c.maximum is None else float(c.maximum),
                    "equals": None if c.equals is None else float(c.equals),
                    "unit": c.unit,
                    "over": canonical_use(c.over),
                }
                for c in self.constraints
            ],
        }

    @property
    def _special(self) -> dict[str, Any]:
        """What canonical form and keys hold only in problems that have it."""
        return {**({"gradients": True} if self.gradients else {}), **({} if self.seed is None else {"seed": self.seed})}

    @cached_property
    def _key_prefixes(self) -> list[Any]:
        """One started hash per scenario: model, its version, settings, computed figures and scenario."""
        figures = {name: canonical_use(use) for name, use in self.figures.items()}
        special = [self._special] if self._special else []
        return [
            hashlib.blake2b(
                canonical_json(
                    [canonical_use(self.model), figures, plain(s.values), *special, *_plain_shift(s)]
                ).encode(),
                digest_size=16,
            )
            for s in self.scenarios
        ]

    @cached_property
    def unshifted(self) -> Problem:
        """The same problem in the scenarios that evaluate a design itself, which come first, not its neighbours."""
        own = tuple(s for s in self.scenarios if not s.shift)
        return self if len(own) == len(self.scenarios) else dataclasses.replace(self, scenarios=own)

    @cached_property
    def first_alike(self) -> tuple[int, ...]:
        """For each scenario the first one with the same conditions, mostly itself: the two share their evaluations."""
        first: dict[bytes, int] = {}
        return tuple(first.setdefault(prefix.digest(), s) for s, prefix in enumerate(self._key_prefixes))

    def keys(self, X: Matrix) -> list[list[bytes]]:
        """Evaluation keys (16 bytes each) of designs `X`, a list over scenarios per design.

        BLAKE2b-128 of plugin name, version, settings, scenario and the parameter values as doubles in the model's
        units; integers and choices keep their type. The order of parameters in the file does not matter. What is
        inactive in a design is left out.
        """
        if not np.isfinite(X).all():
            raise ValueError("a design value is NaN or infinite")
        keys = []
        for body in map(b"".join, zip(*self._key_columns(X), strict=True)):
            row = []
            for prefix in self._key_prefixes:
                started = prefix.copy()
                started.update(body)
                row.append(started.digest())
            keys.append(row)
        return keys

    @cached_property
    def _named(self) -> list[tuple[bytes, Parameter, int | None]]:
        """Parameters in the order in which keys have them, with what a key calls them and their columns."""
        column = {p.name: j for j, p in enumerate(self.space.free)}
        named = [(p.name.encode() + b"\0", p, column.get(p.name)) for p in self.space.parameters]
        return sorted(named, key=itemgetter(0))

    def _key_columns(self, X: Matrix) -> list[list[bytes]]:
        """What each parameter gives to the keys of designs `X`, in the order of their names."""
        activity = self.space.activity(X)
        columns = [[b""] * len(X)]
        for name, p, j in self._named:
            if j is None:
                entries = [name + tagged(in_model_unit(p, p.values[0]))] * len(X)
            elif p.kind == "real":
                doubles = (np.asarray(in_model_unit(p, X[:, j])) + 0.0).astype("<f8").tobytes()
                entries = [name + b"d" + doubles[i : i + 8] for i in range(0, len(doubles), 8)]
            else:
                distinct, place = np.unique(X[:, j], return_inverse=True)
                texts = [name + tagged(in_model_unit(p, shown_value(p, x))) for x in distinct.tolist()]
                entries = [texts[i] for i in place.tolist()]
            if p.name in activity:
                entries = [e if active else b"" for e, active in zip(entries, activity[p.name].tolist(), strict=True)]
            columns.append(entries)
        return columns

    def program_keys(
        self, solver: Use[SolverPlugin], X: Matrix, chains: Sequence[int], seeds: Sequence[int]
    ) -> list[bytes]:
        """Keys of programs (see `Evaluate.programs`): of the whole problem, the solver with its settings, and all rows
        of the chain up to this one, as its answer may depend on those before it."""
        started = hashlib.blake2b(
            canonical_json(["program", self.canonical(), canonical_use(solver)]).encode(), digest_size=16
        )
        keys, running, last = [], started.copy(), None
        for x, chain, seed in zip(X, chains, seeds, strict=True):
            if chain != last:
                running, last = started.copy(), chain
            running.update(np.asarray(x, "<f8").tobytes() + struct.pack("<q", seed))
            keys.append(running.digest())
        return keys

    def judge(
        self,
        X: Matrix,
        figures: Mapping[str, Matrix],
        failed: NDArray[np.bool_],
        relation_violation: Matrix | None = None,
        refused: NDArray[np.bool_] | None = None,
    ) -> Outcomes:
        """Outcomes of designs `X` from raw `figures` (name -> (n, scenarios)).

        `failed` (n, scenarios) marks evaluations without a result: more of them than `missing` allows, mostly one, make
        the design a failed one. `refused` (n, scenarios) marks evaluations whose design the model refused: one of them
        makes the design invalid, with an infinite violation. `relation_violation` (n,) is that of the space, computed
        when not given. An objective or constraint that is not a finite number although the evaluation succeeded (a
        logarithm of a negative figure, say) makes the design failed too.
        """
        n = len(X)
        relation_violation = self.space.relation_violation(X) if relation_violation is None else relation_violation
        if refused is not None:
            relation_violation = np.where(refused.any(axis=1) & (relation_violation <= 0.0), np.inf, relation_violation)
        invalid = relation_violation > 0.0
        lost = self._lacks_too_many(failed) | invalid
        if self.missing and failed.any():
            figures = {name: np.where(failed, np.nan, values) for name, values in figures.items()}
        objectives = np.empty((n, len(self.objectives)))
        violation = np.zeros(n)
        with np.errstate(all="ignore"):
            for j, objective in enumerate(self.objectives):
                objectives[:, j] = objective.sign * self._aggregate(objective, figures, n, objective.sign, failed)
            for constraint in self.constraints:
                violation = violation + self._violation(constraint, figures, n, failed)
        lost |= ~np.isfinite(objectives).all(axis=1) | ~np.isfinite(violation)
        objectives[lost] = np.inf
        violation = np.where(lost, np.inf, violation)
        violation = np.where(invalid, relation_violation, violation)
        return Outcomes(X, objectives, violation, lost, invalid, figures)

    def _lacks_too_many(self, failed: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether more scenarios have no result than are allowed (n,)."""
        return np.asarray(failed.sum(axis=1) > self.missing * failed.shape[1] + 1e-9)

    def _aggregate(
        self,
        item: Objective | Constraint,
        figures: Mapping[str, Matrix],
        n: int,
        sign: float,
        failed: NDArray[np.bool_] | None = None,
    ) -> Matrix:
        """An expression over the scenarios (n,), of which those that `failed` are left out as far as that is allowed;
        without `failed` they are those without a number."""
        raw = np.broadcast_to(item.expression.evaluate(figures), (n, len(self.scenarios)))
        gaps = np.isnan(raw) if failed is None else failed
        if self.missing and gaps.any():
            return self._aggregate_known(item, raw, sign, gaps)
        if len(self.scenarios) == 1 and item.over.plugin.name in ("worst", "nominal", "mean"):
            return np.array(raw[:, 0])
        return sign * np.asarray(item.over.build()(sign * raw), dtype=float)

    def _aggregate_known(
        self, item: Objective | Constraint, raw: Matrix, sign: float, gaps: NDArray[np.bool_]
    ) -> Matrix:
        """`raw` (n, scenarios) over what is not in `gaps`; NaN where too many are, or the one that counts."""
        values = np.full(len(raw), np.nan)
        first_counts = item.over.plugin.name == "nominal"
        patterns, pattern_of = np.unique(gaps, axis=0, return_inverse=True)
        for k, pattern in enumerate(patterns):
            if self._lacks_too_many(pattern[None])[0] or pattern.all() or (first_counts and pattern[0]):
                continue
            rows = np.flatnonzero(pattern_of.reshape(-1) == k)
            known = raw[np.ix_(rows, ~pattern)]
            values[rows] = sign * np.asarray(item.over.build()(sign * known), dtype=float)
        return values

    def limited(self, c: Constraint, figures: Mapping[str, Matrix], n: int) -> tuple[Matrix, Matrix]:
        """What `c` limits for `n` designs: (n,) aggregated towards its small end, for a minimum, and its large end."""
        with np.errstate(all="ignore"):
            return self._aggregate(c, figures, n, -1.0), self._aggregate(c, figures, n, 1.0)

    def _violation(self, c: Constraint, figures: Mapping[str, Matrix], n: int, failed: NDArray[np.bool_]) -> Matrix:
        """How far a limit is passed, relative to the limit's size (absolute for a limit of 0); NaN if not known."""
        low, high = (self._aggregate(c, figures, n, sign, failed) for sign in (-1.0, 1.0))
        total = np.zeros(n)
        if c.maximum is not None:
            total += np.maximum(high - c.maximum, 0.0) / (abs(c.maximum) or 1.0)
        if c.minimum is not None:
            total += np.maximum(c.minimum - low, 0.0) / (abs(c.minimum) or 1.0)
        if c.equals is not None:
            total += unequal(low, high, c.equals) / (abs(c.equals) or 1.0)
        return np.where(np.isfinite(low) & np.isfinite(high), total, np.nan)

    # ------------------------------------------------------------------------------------------------ derivatives

    @cached_property
    def limits(self) -> tuple[Limit, ...]:
        """The sides of all constraints, in their order: the columns of `constraint_values`.

        What has to be equal in all scenarios has two sides, its large end and its small end; one where these are the
        same.
        """
        found = []
        for c in self.constraints:
            if c.minimum is not None:
                found.append(Limit(c, c.minimum, -1.0, False))
            if c.maximum is not None:
                found.append(Limit(c, c.maximum, 1.0, False))
            if c.equals is not None:
                one_end = len(self.scenarios) == 1 or c.over.plugin.name in ("nominal", "mean")
                found.extend(Limit(c, c.equals, sign, True) for sign in ((1.0,) if one_end else (1.0, -1.0)))
        return tuple(found)

    def constraint_values(self, figures: Mapping[str, Matrix]) -> Matrix:
        """What each of `limits` compares with 0 (n, k), relative to its size; NaN where it is not known."""
        columns = []
        for limit in self.limits:
            with np.errstate(all="ignore"):
                raw = self._raw(limit.constraint.expression, figures)
                value = self._aggregate(limit.constraint, figures, len(raw), limit.sign)
            columns.append(limit.sign * (value - limit.bound) / limit.size)
        return np.column_stack(columns) if columns else np.empty((len(next(iter(figures.values()), ())), 0))

    def constraint_gradients(self, X: Matrix, figures: Mapping[str, Matrix]) -> Matrix:
        """The derivatives of `constraint_values` (n, k, d) by the parameters, in the study's units.

        NaN where the model (or an aggregation) gives none, and for integers and choices.
        """
        slopes = [
            limit.sign / limit.size * self._aggregated_slopes(limit.constraint, limit.sign, X, figures)
            for limit in self.limits
        ]
        return np.stack(slopes, axis=1) if slopes else np.empty((len(X), 0, X.shape[1]))

    def objective_gradients(self, X: Matrix, figures: Mapping[str, Matrix]) -> Matrix:
        """The derivatives of the objectives (to be minimised) (n, m, d) by the parameters, in the study's units.

        NaN where the model (or an aggregation) gives none, and for integers and choices.
        """
        slopes = [o.sign * self._aggregated_slopes(o, o.sign, X, figures) for o in self.objectives]
        return np.stack(slopes, axis=1) if slopes else np.empty((len(X), 0, X.shape[1]))

    def residuals(self, figures: Mapping[str, Matrix]) -> Matrix:
        """The expression of every objective in every scenario (n, objectives * scenarios), not aggregated.

        An absolute value counts with the sign of what is in it: the square is the same, and smooth.
        """
        with np.errstate(all="ignore"):
            return np.concatenate([self._raw(_signed(o.expression), figures) for o in self.objectives], axis=1)

    def residual_gradients(self, X: Matrix, figures: Mapping[str, Matrix]) -> Matrix:
        """The derivatives of `residuals` (n, objectives * scenarios, d) by the parameters, in the study's units."""
        return np.concatenate([self._slopes(_signed(o.expression), X, figures) for o in self.objectives], axis=1)

    def _raw(self, expression: Expression, figures: Mapping[str, Matrix]) -> Matrix:
        values = np.atleast_2d(expression.evaluate(figures))
        return np.broadcast_to(values, (len(values), len(self.scenarios)))

    def _aggregated_slopes(
        self, item: Objective | Constraint, sign: float, X: Matrix, figures: Mapping[str, Matrix]
    ) -> Matrix:
        """The derivatives of an aggregated expression (n, d)."""
        slopes = self._slopes(item.expression, X, figures)
        plugin = item.over.plugin
        if len(self.scenarios) == 1 and plugin.name in ("worst", "nominal", "mean"):
            return slopes[:, 0]
        if plugin.weights is None:
            return np.full_like(slopes[:, 0], np.nan)
        with np.errstate(all="ignore"):
            weights = np.asarray(plugin.weights(sign * self._raw(item.expression, figures), **item.over.settings))
            parts: Matrix = np.where(weights[:, :, None] == 0.0, 0.0, weights[:, :, None] * slopes)
        return np.asarray(parts.sum(axis=1))

    def _slopes(self, expression: Expression, X: Matrix, figures: Mapping[str, Matrix]) -> Matrix:
        """The derivatives of an expression in each scenario (n, scenarios, d)."""
        partial = derivatives(expression, figures)
        slopes = np.zeros((len(X), len(self.scenarios), len(self.space.free)))
        unknown = np.full(slopes.shape[:2], np.nan)
        stretch = np.array([self.space.stretch(s.shift) for s in self.scenarios])
        for j, p in enumerate(self.space.free):
            for name, outer in partial.items():
                known = p.kind == "real" and name not in self.figures
                inner = p.factor * figures.get(derivative_name(name, p.name), unknown) if known else unknown
                with np.errstate(all="ignore"):
                    slopes[:, :, j] += np.where(outer == 0.0, 0.0, outer * inner * stretch[:, j])
        return np.where(self.space.active(X)[:, None, :], slopes, 0.0)


def _fidelity(study: Study) -> Fidelity | None:
    """That of the model, where a solver learns from cheap evaluations and the study's own are not as cheap."""
    fidelity, settings = study.model.plugin.fidelity, study.model.settings
    if fidelity is None or not any(s.solver.plugin.wants_cheap(s.solver.settings) for s in study.stages):
        return None
    return fidelity if any(settings.get(name) != value for name, value in fidelity.settings.items()) else None


def _plain_shift(scenario: Scenario) -> list[Any]:
    """The shift of a scenario as plain data."""
    return [[s.parameter, s.factor, s.offset, s.low, s.high] for s in scenario.shift]


def unequal(low: Matrix, high: Matrix, limit: float) -> Matrix:
    """How far figures with the ends `low` and `high` (n,) are from the `limit` that they have to equal.

    0 within `EQUAL`: no search meets a real number exactly.
    """
    apart = np.maximum(np.abs(high - limit), np.abs(low - limit))
    return np.where(apart <= EQUAL * (abs(limit) or 1.0), 0.0, apart)


def derivative_name(output: str, parameter: str) -> str:
    """The name under which the derivative of an output is recorded."""
    return f"d({output})/d({parameter})"


def evaluation_seed(key: bytes, study_seed: int) -> int:
    """The seed of the random numbers of the evaluation `key`: it depends neither on order nor on the worker."""
    study = (study_seed % 2**64).to_bytes(8, "little")
    return int.from_bytes(hashlib.blake2b(key + study, digest_size=8).digest(), "little")


def _signed(expression: Expression) -> Expression:
    """The expression without an outermost ``abs``, also one in another unit."""
    root, factor = expression.root, None
    if root.kind == "*" and root.parts[0].kind == "number":
        factor, root = root.parts
    if root.kind != "call" or root.text != "abs":
        return expression
    inner = root.parts[0]
    return Expression(inner if factor is None else Term("*", (factor, inner), depth=inner.depth + 1))


def figure_unit(problem: Problem, name: str) -> str:
    """Unit of an output of the model, or of a figure computed by an objective plugin."""
    if name in problem.figures:
        return problem.figures[name].plugin.unit
    output = problem.model.plugin.outputs.get(name)
    return output.quantity.unit if output is not None and output.quantity is not None else ""


def figure_meaning(problem: Problem, name: str) -> str:
    """What a figure is, in the words of the plugin that gives it; empty when it does not say."""
    if name in problem.figures:
        return problem.figures[name].plugin.description.partition("\n")[0]
    output = problem.model.plugin.outputs.get(name)
    return output.quantity.description if output is not None and output.quantity is not None else ""
