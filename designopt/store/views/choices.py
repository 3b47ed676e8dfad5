"""Chosen and recommended designs of a store."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from designopt import decision
from designopt.arrays import Integers
from designopt.problem import Outcomes, Problem
from designopt.store.views.tolerances import ENOUGH, ToleranceResults
from designopt.study.study import Choice, StudyDefinition

#: Label of the most robust design, also the name of its rule.
ROBUST, KNEE = decision.label(Choice("robust")), decision.label(Choice("knee"))


@dataclass(frozen=True)
class Choices:
    """Designs of `outcomes` selected by the rules of `study`; `read_tolerated` reads neighbours within tolerances on
    demand. `baseline` has the rows of designs to compare with, which robustness alone does not recommend.

    The methods are those of `designopt.store.result.Result` of the same names.
    """

    study: StudyDefinition
    problem: Problem
    outcomes: Outcomes
    read_tolerated: Callable[[], ToleranceResults | None]
    baseline: frozenset[int] = frozenset()

    @cached_property
    def front(self) -> Integers:
        """Rows of the nondominated feasible designs, sorted by the first objective."""
        rows = np.flatnonzero(self.outcomes.feasible)
        if not len(rows) or not self.problem.objectives:
            return np.empty(0, np.int64)
        F = self.outcomes.objectives[rows]
        keep = decision.nondominated(F)
        order = np.lexsort(F[keep].T[::-1])
        return np.asarray(rows[keep][order], np.int64)

    def compromise(self) -> int | None:
        """The row of the front that is nearest to its ideal point."""
        front = self.front
        return int(front[decision.utopia(self.outcomes.objectives[front])]) if len(front) else None

    def by_general_name(self) -> dict[str, int]:
        """The rows called ``recommended``, ``compromise`` and, with a single objective, ``best``, and those of the
        rules of the study by name, as far as there are such designs."""
        recommendation, compromise, selections = self.recommended(), self.compromise(), self.selections()
        rows: dict[str, int | None] = {}
        for choice in self.study.choose:
            rows.setdefault(choice.method, selections.get(decision.label(choice)))
        rows |= {"recommended": None if recommendation is None else recommendation[1], "compromise": compromise}
        if len(self.problem.objectives) == 1:
            rows["best"] = compromise
        return {name: row for name, row in rows.items() if row is not None}

    def least_violating(self) -> int | None:
        """The row of the design with the smallest violation of the limits; None if a design is feasible, or none has a
        result or an objective."""
        outcomes = self.outcomes
        rows = np.flatnonzero(~outcomes.failed & ~outcomes.invalid)
        if not len(rows) or outcomes.feasible.any() or not self.problem.objectives:
            return None
        return int(rows[np.argmin(outcomes.violation[rows])])

    def selections(self) -> dict[str, int]:
        """The best design of each objective, and the selections of the rules of choice."""
        front = self.front
        if not len(front):
            return {}
        objectives = self.problem.objectives
        F = self.outcomes.objectives[front]
        rows = {f"best {o.name}": int(front[np.argmin(F[:, j])]) for j, o in enumerate(objectives)}
        if len(objectives) > 1 and all(choice.method == "robust" for choice in self.study.choose):
            rows["compromise"] = int(front[decision.utopia(F)])
        for choice in self.study.choose:
            if choice.method == "robust":
                robust = self.most_robust()
                rows.update({} if robust is None else {decision.label(choice): robust})
                continue
            with contextlib.suppress(decision.DecisionError):
                front_index = decision.choose(F, [o.name for o in objectives], [o.sign for o in objectives], choice)
                if front_index is not None:
                    rows[decision.label(choice)] = int(front[front_index])
        return rows

    def recommended(self) -> tuple[str, int] | None:
        """The recommended design, label and row."""
        first = self.first_choice()
        if first is None:
            return None
        row = first[1]
        near, robust = self.read_tolerated(), self.most_robust(self.baseline)
        index = None if near is None else near.index_of(row)
        if near is None or index is None or robust is None or near.share[index] >= ENOUGH:
            return first
        if near.share[near.index_of(robust)] < ENOUGH:  # the most robust one is not robust enough either
            return first
        return next((name for name, picked_row in self.selections().items() if picked_row == robust), ROBUST), robust

    def first_choice(self) -> tuple[str, int] | None:
        """The `recommended` design without tolerances, label and row."""
        rows_by_label = self.selections()
        stages = [stage for stage in self.study.stages if not stage.baseline]
        if not rows_by_label or (stages and all(stage.solver.plugin.has("indices") for stage in stages)):
            return None
        rules = [*(decision.label(choice) for choice in self.study.choose), "compromise"]
        label = next((name for name in rules if name in rows_by_label), next(iter(rows_by_label)))
        return label, rows_by_label[label]

    def most_robust(self, exclusions: frozenset[int] = frozenset()) -> int | None:
        """The row of the feasible design with the most neighbours that meet all limits, without rows that are
        `exclusions`."""
        results = self.read_tolerated()
        rows = [] if results is None else results.rows.tolist()
        candidates = [i for i, row in enumerate(rows) if self.outcomes.feasible[row] and row not in exclusions]
        if results is None or not candidates or not self.problem.objectives:
            return None
        signs = np.array([o.sign for o in self.problem.objectives])
        shares = results.share[candidates]
        F = (signs * results.worst(signs))[candidates]
        best = np.flatnonzero((shares >= shares.max() - 1e-9) & np.isfinite(F).all(axis=1))
        if not len(best):
            return int(results.rows[candidates[int(np.argmax(shares))]])
        nearest = decision.distance_from_ideal(F[best], self.outcomes.objectives[self.front])
        return int(results.rows[candidates[int(best[np.argmin(nearest)])]])
