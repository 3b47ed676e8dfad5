"""The components of a problem, and the sides of its constraints."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.canonical_form import canonical_json, canonical_use, plain
from designopt.plugin import Fidelity, ModelPlugin, ObjectivePlugin, Use
from designopt.space import Space
from designopt.study.study import Objective, Scenario, StudyConstraint

#: Equality tolerance, relative to the limit's size.
EQUAL = 1e-6


@dataclass(frozen=True)
class Limit:
    """One side of a constraint: ``sign * (value - bound) / size`` is at most 0, or equals 0 (`equality`).

    The value is aggregated towards its large end for the sign 1, towards its small end for -1.
    """

    constraint: StudyConstraint
    bound: float
    sign: float
    equality: bool

    @property
    def size(self) -> float:
        """The scale of violations: the size of the bound, 1 for a bound of 0."""
        return abs(self.bound) or 1.0


def unequal(low: Floats, high: Floats, limit: float) -> Floats:
    """Distance (n,) of figures with the ends `low` and `high` (n,) from the required value `limit`.

    0 within `EQUAL`: no search meets a real number exactly.
    """
    apart = np.maximum(np.abs(high - limit), np.abs(low - limit))
    return np.where(apart <= EQUAL * (abs(limit) or 1.0), 0.0, apart)


@dataclass(frozen=True)
class Statement:
    """Space, model, scenarios, objectives and constraints: everything that determines the meaning of a number.
    Immutable.

    With `gradients` every evaluation also records the model's derivatives, as figures ``d(output)/d(input)`` in the
    model's units. `seed` is the study's, for a stochastic model, None for any other. A design with results for all but
    at most the share `missing` of the scenarios is scored by these. `fidelity` is the model's if a solver learns from
    cheap evaluations, which are those of `cheap`. `evaluation_options` are the study's settings for solves within an
    evaluation (`designopt.collocation.solve_design`).
    """

    model: Use[ModelPlugin]
    space: Space
    scenarios: tuple[Scenario, ...]
    objectives: tuple[Objective, ...]
    constraints: tuple[StudyConstraint, ...] = ()
    figures: Mapping[str, Use[ObjectivePlugin]] = field(default_factory=dict)
    gradients: bool = False
    seed: int | None = None
    missing: float = 0.0
    fidelity: Fidelity | None = None
    evaluation_options: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def output_names(self) -> tuple[str, ...]:
        """Names of the recorded figures: the model's outputs, then the figures computed by objective plugins."""
        return (*self.model.plugin.outputs, *self.figures)

    @property
    def expression_names(self) -> list[frozenset[str]]:
        """The names in the expression of each objective, then of each constraint."""
        return [*(o.expression.names for o in self.objectives), *(c.expression.names for c in self.constraints)]

    @cached_property
    def limits(self) -> tuple[Limit, ...]:
        """The sides of all constraints, in their order: the columns of `constraint_values`.

        An equality over all scenarios has two sides, its large end and its small end; one if these coincide.
        """
        sides = []
        for c in self.constraints:
            if c.minimum is not None:
                sides.append(Limit(c, c.minimum, -1.0, False))
            if c.maximum is not None:
                sides.append(Limit(c, c.maximum, 1.0, False))
            if c.equals is not None:
                one_end = len(self.scenarios) == 1 or c.over.plugin.name in ("nominal", "mean")
                sides.extend(Limit(c, c.equals, sign, True) for sign in ((1.0,) if one_end else (1.0, -1.0)))
        return tuple(sides)

    @cached_property
    def digest(self) -> str:
        """Hash of the canonical form; a store belongs to one digest."""
        return hashlib.blake2b(canonical_json(self.canonical()).encode(), digest_size=16).hexdigest()

    def canonical(self) -> dict[str, Any]:
        """The problem as plain data: the content of ``problem.json`` in the store and the input of `digest`."""
        return {
            **self.special_entries,
            **({"missing": self.missing} if self.missing else {}),
            "model": canonical_use(self.model),
            "figures": {name: canonical_use(use) for name, use in self.figures.items()},
            "scenarios": [
                {"name": s.name, "values": self.key_values(s), **({"shift": self.key_shift(s)} if s.shift else {})}
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
                {
                    "name": o.name,
                    o.direction: str(o.expression),
                    "unit": o.unit,
                    "over": canonical_use(o.over),
                }
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
    def special_entries(self) -> dict[str, Any]:
        """Entries of canonical form and keys that only some problems have."""
        entries = {"gradients": self.gradients or None, "seed": self.seed, "options": self.evaluation_options or None}
        return {name: value for name, value in entries.items() if value is not None}

    def key_values(self, scenario: Scenario) -> dict[str, Any]:
        """The conditions of a scenario as plain data."""
        return {str(name): plain(value) for name, value in scenario.values.items()}

    def key_shift(self, scenario: Scenario) -> list[Any]:
        """The shift of a scenario as plain data."""
        return [[s.parameter, s.factor, s.offset, s.low, s.high] for s in scenario.shift]
