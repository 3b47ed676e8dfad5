"""The problem a study poses: its space, what identifies an evaluation, and how raw figures are judged.

Designs travel as rows of a float matrix ``X`` (one column per free parameter, in the study's unit; an integer as its
value, a choice as the index of its value). Everything here is vectorised over rows.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from designopt.plugin import InputFile, Plugin, Use
from designopt.space import Matrix, Space, in_model_unit, shown_value
from designopt.study.study import Constraint, Objective, Scenario, Study

#: Failure classes of an evaluation, in the order in which reports list them; "ok" is the only success.
STATUSES = ("ok", "diverged", "nonfinite", "error", "timeout", "crashed", "lost_worker", "invalid")


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


class Evaluate(Protocol):
    """What a solver is given. Both forms raise `StageEnded` when the stage's budget is used up or the run is being
    stopped; solvers let it pass."""

    def __call__(self, X: Matrix) -> Outcomes:
        """Outcomes of the designs `X` (n, d), in their order, once all of them are durably recorded."""

    def ahead(self, ask: Callable[[], Matrix], tell: Callable[[Outcomes], None], look_ahead: int) -> None:
        """Evaluate designs one by one with up to `look_ahead` of them on their way.

        `ask` gives the next design (1, d), or (0, d) when there are no more; `tell` hears the outcomes (1 row) in ask
        order. Ask i always happens after the tell of i - `look_ahead` and before the next one, whatever the workers
        are, so that the sequence of designs is fixed. Returns when everything asked for has been told.
        """


class StageEnded(Exception):
    """The stage's budget is used up, or the run stops: not an error. Solvers need not catch it."""


@dataclass(frozen=True)
class Problem:
    """Space, model, scenarios, objectives and constraints: everything that decides what a number means. Immutable."""

    model: Use
    space: Space
    scenarios: tuple[Scenario, ...]
    objectives: tuple[Objective, ...]
    constraints: tuple[Constraint, ...] = ()
    figures: Mapping[str, Use] = field(default_factory=dict)

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
        )

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
            "model": _canonical_use(self.model),
            "figures": {name: _canonical_use(use) for name, use in self.figures.items()},
            "scenarios": [{"name": s.name, "values": _plain(s.values)} for s in self.scenarios],
            "space": [
                {
                    "name": p.name,
                    "kind": p.kind,
                    "low": float(p.low),
                    "high": float(p.high),
                    "values": list(p.values),
                    "unit": p.unit,
                    "scale": p.scale,
                }
                for p in self.space.parameters
            ],
            "relations": [str(r) for r in self.space.relations],
            "objectives": [
                {"name": o.name, o.direction: str(o.expression), "unit": o.unit, "over": _canonical_use(o.over)}
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
                    "over": _canonical_use(c.over),
                }
                for c in self.constraints
            ],
        }

    @cached_property
    def _key_prefixes(self) -> list[Any]:
        """One started hash per scenario: model, its version, settings, computed figures and scenario."""
        figures = {name: _canonical_use(use) for name, use in self.figures.items()}
        return [
            hashlib.blake2b(
                canonical_json([_canonical_use(self.model), figures, _plain(s.values)]).encode(), digest_size=16
            )
            for s in self.scenarios
        ]

    def keys(self, X: Matrix) -> list[list[bytes]]:
        """Evaluation keys (16 bytes each) of designs `X`, a list over scenarios per design.

        BLAKE2b-128 of plugin name, version, settings, scenario and the parameter values as doubles in the model's
        units; integers and choices keep their type. The order of parameters in the file does not matter.
        """
        if not np.isfinite(X).all():
            raise ValueError("a design value is NaN or infinite")
        column = {p.name: j for j, p in enumerate(self.space.free)}
        parts = [(p.name.encode() + b"\0", p, column.get(p.name)) for p in self.space.parameters]
        parts.sort(key=lambda part: part[0])
        rows = []
        for x in X.tolist():
            body = b"".join(
                name + _tagged(in_model_unit(p, p.values[0] if j is None else shown_value(p, x[j])))
                for name, p, j in parts
            )
            row = []
            for prefix in self._key_prefixes:
                started = prefix.copy()
                started.update(body)
                row.append(started.digest())
            rows.append(row)
        return rows

    def judge(
        self,
        X: Matrix,
        figures: Mapping[str, Matrix],
        failed: NDArray[np.bool_],
        excess: Matrix | None = None,
        refused: NDArray[np.bool_] | None = None,
    ) -> Outcomes:
        """Outcomes of designs `X` from raw `figures` (name -> (n, scenarios)).

        `failed` (n, scenarios) marks evaluations without a result: one of them makes the design a failed one. `refused`
        (n, scenarios) marks evaluations whose design the model refused: one of them makes the design invalid, with an
        infinite violation. `excess` (n,) is `Space.excess`, computed when not given. An objective or constraint that is
        not a finite number although the evaluation succeeded (a logarithm of a negative figure, say) makes the design
        failed too.
        """
        n = len(X)
        excess = self.space.excess(X) if excess is None else excess
        if refused is not None:
            excess = np.where(refused.any(axis=1) & (excess <= 0.0), np.inf, excess)
        invalid = excess > 0.0
        lost = failed.any(axis=1) | invalid
        objectives = np.empty((n, len(self.objectives)))
        violation = np.zeros(n)
        with np.errstate(all="ignore"):
            for j, objective in enumerate(self.objectives):
                objectives[:, j] = objective.sign * self._aggregate(objective, figures, n, objective.sign)
            for constraint in self.constraints:
                violation = violation + self._violation(constraint, figures, n)
        lost |= ~np.isfinite(objectives).all(axis=1) | ~np.isfinite(violation)
        objectives[lost] = np.inf
        violation = np.where(lost, np.inf, violation)
        violation = np.where(invalid, excess, violation)
        return Outcomes(X, objectives, violation, lost, invalid, figures)

    def _aggregate(self, item: Objective | Constraint, figures: Mapping[str, Matrix], n: int, sign: float) -> Matrix:
        raw = np.broadcast_to(item.expression.evaluate(figures), (n, len(self.scenarios)))
        if len(self.scenarios) == 1 and item.over.plugin.name in ("worst", "nominal", "mean"):
            return np.array(raw[:, 0])
        return sign * np.asarray(item.over.build()(sign * raw), dtype=float)

    def limited(self, c: Constraint, figures: Mapping[str, Matrix], n: int) -> tuple[Matrix, Matrix]:
        """What `c` limits for `n` designs: (n,) aggregated towards its small end, for a minimum, and its large end."""
        with np.errstate(all="ignore"):
            return self._aggregate(c, figures, n, -1.0), self._aggregate(c, figures, n, 1.0)

    def _violation(self, c: Constraint, figures: Mapping[str, Matrix], n: int) -> Matrix:
        """How far a limit is passed, relative to the limit's size (absolute for a limit of 0); NaN if not known."""
        low, high = self.limited(c, figures, n)
        total = np.zeros(n)
        if c.maximum is not None:
            total += np.maximum(high - c.maximum, 0.0) / (abs(c.maximum) or 1.0)
        if c.minimum is not None:
            total += np.maximum(c.minimum - low, 0.0) / (abs(c.minimum) or 1.0)
        if c.equals is not None:
            total += np.maximum(np.abs(high - c.equals), np.abs(low - c.equals)) / (abs(c.equals) or 1.0)
        return np.where(np.isfinite(low) & np.isfinite(high), total, np.nan)


def canonical_json(data: Any) -> str:
    """One text for equal data: sorted keys, no spaces, shortest exact floats; NaN is refused."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def _canonical_use(use: Use) -> dict[str, Any]:
    """A plugin with all its settings: one that is left at its default counts like the same value written out."""
    plugin: Plugin = use.plugin
    defaults = {name: f.default for name, f in plugin.settings.items() if not f.required}
    return {"use": plugin.name, "version": plugin.version, "settings": _plain({**defaults, **use.settings})}


def _plain(value: Any) -> Any:
    """Settings as JSON data; a file is its digest, -0.0 is 0.0, an infinity its name (JSON has none)."""
    if isinstance(value, InputFile):
        return {"file": value.digest}
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, (np.generic, np.ndarray)):
        return _plain(value.tolist())
    if isinstance(value, float):
        return str(value) if np.isinf(value) else value + 0.0
    return value


def _tagged(value: Any) -> bytes:
    """A value with its type, so that 1, 1.0, "1" and true differ, and its length, so that no text reads as two."""
    if isinstance(value, float):
        return b"d" + struct.pack("<d", value + 0.0)
    text = f"{type(value).__name__}:{value}".encode()
    return b"t" + struct.pack("<I", len(text)) + text
