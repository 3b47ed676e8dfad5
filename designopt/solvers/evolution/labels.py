"""Variation of choices among labels, which have no order: parents exchange them, mutations draw another one.

With the operators for real numbers a label changes only into its neighbours in the list, and rarely: polynomial
mutation with the index 20 leaves one of three with a probability of 1 %.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from designopt.space import Space

#: Probability of another label relative to that of the mutation of a number. With the same one too many children lose
#: the label that their numbers suit: best designs are worse (a bracket of six materials, 24 seeds).
REDRAWN = 0.5


def label_columns(space: Space) -> dict[int, int]:
    """The number of labels by column of the free choices among words; numbers have an order."""
    return {
        j: len(p.values)
        for j, p in enumerate(space.free)
        if p.kind == "choice" and not all(isinstance(value, int | float) for value in p.values)
    }


@functools.cache
def operators_of() -> tuple[type[Any], type[Any]]:
    """Crossover and mutation of pymoo for real numbers that treat `labels` (numbers of labels by column) apart."""
    from pymoo.operators.crossover.sbx import SBX
    from pymoo.operators.crossover.ux import UX
    from pymoo.operators.mutation.pm import PM

    class Exchange(SBX):  # type: ignore[misc]
        """Simulated binary crossover, uniform crossover of labels."""

        def __init__(self, labels: dict[int, int], **settings: Any) -> None:
            super().__init__(**settings)
            self.columns = list(labels)

        def _do(self, problem: Any, X: Any, *_: Any, random_state: Any = None, **options: Any) -> Any:
            children = super()._do(problem, X, random_state=random_state, **options)
            children[:, :, self.columns] = UX()._do(problem, X[:, :, self.columns], random_state=random_state)
            return children

    class Redraw(PM):  # type: ignore[misc]
        """Polynomial mutation; another label with the share `REDRAWN` of a parameter's probability."""

        def __init__(self, labels: dict[int, int], **settings: Any) -> None:
            super().__init__(**settings)
            self.labels = labels

        def _do(self, problem: Any, X: Any, *_: Any, random_state: Any = None, **options: Any) -> Any:
            mutants = super()._do(problem, X, random_state=random_state, **options)
            for column, count in self.labels.items():
                label = np.clip(np.rint(X[:, column]), 0, count - 1)
                another = (label + random_state.integers(1, count, len(X))) % count if count > 1 else label
                changes = random_state.random(len(X)) < REDRAWN * self.get_prob_var(problem, size=len(X))
                mutants[:, column] = np.where(changes, another, label)
            return mutants

    return Exchange, Redraw
