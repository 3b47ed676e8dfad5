"""Violated constraints at the end of a solve, in terms of the problem statement."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from designopt.collocation.solution.solution import ConstraintValues, PhaseSolution, Solution
from designopt.collocation.transcription.layout import Block

#: Violation, relative to the scale of a constraint, below which it is satisfied.
KEPT = 1e-6
#: Maximum number of listed violations.
WORST = 5
#: Prefixes of row names by kind of block.
WORDS = {
    "defect": "rate of",
    "residual": "equation of",
    "algebraic": "algebraic equation of",
    "path": "path constraint",
    "control": "linear control",
    "held": "held control",
    "integral": "integral",
    "sample": "constraint at samples",
    "ends": "constraint",
}


@dataclass(frozen=True)
class Violation:
    """One violated constraint: `name` as in the statement, `amount` is the violation in its `unit`.

    For constraints between ends, `phase` is empty and `time` NaN. `interval` is that of the mesh (from, to), in s.
    `relative` is relative to the scale of the constraint, `at` has the values of all variables of the phase at that
    time.
    """

    name: str
    kind: str
    phase: str
    time: float
    interval: tuple[float, float]
    value: float
    low: float
    high: float
    amount: float
    relative: float
    unit: str
    at: Mapping[str, float]

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        if self.kind in ("path", "sample", "ends") or (self.kind == "integral" and not self.low == self.high == 0.0):
            if self.low == self.high:
                description = f"{self.value:.4g} instead of {self.low:.4g}{unit}"
            elif self.amount < 0.0:
                description = f"{self.value:.4g}, at least {self.low:.4g}{unit}"
            else:
                description = f"{self.value:.4g}, at most {self.high:.4g}{unit}"
        else:
            description = f"off by {abs(self.amount):.3g}{unit}"
        return f"{self.name}{_location(self.phase, self.time)}: {description}"


@dataclass(frozen=True)
class ViolationGroup:
    """The violations of one constraint: at `count` of its `total` points, `worst` is the largest."""

    name: str
    kind: str
    phase: str
    count: int
    total: int
    worst: Violation

    def __str__(self) -> str:
        values = ", ".join(f"{name} = {value:.4g}" for name, value in self.worst.at.items())
        count_text = f" ({self.count} of {self.total} points)" if self.total > 1 else ""
        return f"{self.worst}{count_text}" + (f"; there {values}" if values else "")


@dataclass(frozen=True)
class Explanation:
    """The status of a solve and the violations at its last iterate, the worst first. ``str()`` makes it readable."""

    message: str
    violation: float
    groups: tuple[ViolationGroup, ...]

    def __str__(self) -> str:
        if not self.groups:
            return f"{self.message}\nAll constraints hold to within {self.violation:.2g} of their scales."
        return "\n".join([self.message, "Violated, the worst first:", *(f"- {group}" for group in self.groups)])


def explain(solution: Solution) -> Explanation:
    """The violations at the last iterate of `solution`, grouped by constraint."""
    constraints = solution.constraints
    return Explanation(solution.message, constraints.violation, tuple(groups(constraints, solution.phases)))


def groups(constraints: ConstraintValues, phases: Mapping[str, PhaseSolution]) -> list[ViolationGroup]:
    """Violations by constraint, the worst first. NaN counts as infinite."""
    violation_groups = []
    relative = constraints.relative
    for block in constraints.blocks:
        for k in range(len(block.names)):
            rows_of_name = block.rows[:, k]
            bad = np.flatnonzero(relative[rows_of_name] > KEPT)
            if len(bad):
                worst = violation_at(constraints, phases, int(rows_of_name[bad[relative[rows_of_name[bad]].argmax()]]))
                violation_groups.append(
                    ViolationGroup(worst.name, block.kind, worst.phase, len(bad), len(rows_of_name), worst)
                )
    return sorted(violation_groups, key=lambda group: -group.worst.relative)


def violation_at(constraints: ConstraintValues, phases: Mapping[str, PhaseSolution], row: int) -> Violation:
    """The description of one row."""
    number = next(i for i, b in enumerate(constraints.blocks) if b.first <= row < b.first + b.rows.size)
    block = constraints.blocks[number]
    point_index, k = divmod(row - block.first, len(block.names))
    name, slot = block.names[k], int(block.slots[point_index])
    phase = list(phases.values())[block.phase] if block.phase >= 0 else None
    trajectory = phase if block.kind != "integral" else None
    return Violation(
        name=f"{WORDS[block.kind]} '{name}'",
        kind=block.kind,
        phase=phase.name if phase else "",
        time=float(trajectory.times[slot]) if trajectory else math.nan,
        interval=interval(trajectory, slot) if trajectory else (math.nan, math.nan),
        value=float(constraints.values[row]),
        low=float(constraints.low[row]),
        high=float(constraints.high[row]),
        amount=float(constraints.violations[row]),
        relative=float(constraints.relative[row]),
        unit=constraints.units[number] or _unit(block, name, phase),
        at={n: float(values[slot]) for n, values in trajectory.values.items()} if trajectory else {},
    )


def interval(phase: PhaseSolution, slot: int) -> tuple[float, float]:
    """The interval of the mesh (from, to) in s that ends at or contains a point."""
    k = max(int(np.searchsorted(phase.mesh.bases, slot)) - 1, 0)
    begin, end = (phase.t0 + phase.mesh.nodes[j] * (phase.tf - phase.t0) for j in (k, k + 1))
    return float(begin), float(end)


def worst_violations(constraints: ConstraintValues, phases: Mapping[str, PhaseSolution]) -> list[Violation]:
    """The worst violations: first the worst of each constraint, then others, `WORST` in all."""
    violations = [group.worst for group in groups(constraints, phases)[:WORST]]
    keys = {(v.name, v.phase, v.time) for v in violations}
    relative = constraints.relative
    for row in np.argsort(-relative)[: 2 * WORST].tolist():
        violation = violation_at(constraints, phases, row)
        if (
            len(violations) < WORST
            and relative[row] > KEPT
            and (violation.name, violation.phase, violation.time) not in keys
        ):
            violations.append(violation)
    return violations


def _unit(block: Block, name: str, phase: PhaseSolution | None) -> str:
    if phase is None or block.kind not in ("defect", "control", "held"):
        return ""
    return phase.units.get(name, "")


def _location(phase: str, time: float) -> str:
    if math.isnan(time):
        return f" of {phase}" if phase else ""
    return f" of {phase} at {time:.4g} s"
