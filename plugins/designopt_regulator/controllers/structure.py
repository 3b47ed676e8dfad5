"""Controllers of more than one part: one alone, one with a Smith predictor, or two in cascade.

Stated once, for the module `m` that computes: simulation and linear analysis use numpy, exported programs symbols.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from designopt.arrays import Floats, Mask
from designopt_regulator.controllers.nested import leaves, with_structure
from designopt_regulator.controllers.pid import Law, Limits, Memory
from designopt_regulator.controllers.predictor import ModelMemory, Predictor

StructureName = Literal["single", "smith", "cascade"]


class StructureMemory(NamedTuple):
    """State of a structure between samples: states and last outputs of its laws, and of the model of the plant."""

    law: Memory
    last: Any
    model: ModelMemory | None = None
    inner: Memory | None = None
    inner_last: Any = None


class Structure(NamedTuple):
    """The `law` from output to command; in a cascade from output to the set-point of the `inner` one.

    With a `predictor` the law acts on the output without the delay of the model.
    """

    law: Law
    limits: Limits = Limits()
    predictor: Predictor | None = None
    inner: Law | None = None
    inner_limits: Limits = Limits()

    def at_rest(self, zero: Any) -> StructureMemory:
        """The memory at rest at measurements and commands that are 0; `zero` has the shape of all."""
        return StructureMemory(
            self.law.at_rest(zero, zero),
            zero,
            None if self.predictor is None else self.predictor.memory(zero),
            None if self.inner is None else self.inner.at_rest(zero, zero),
            None if self.inner is None else zero,
        )

    def sample(
        self, m: Any, memory: StructureMemory, r: Any, y: Any, inner_y: Any = None
    ) -> tuple[Any, StructureMemory]:
        """Command and next state for the reference `r` and the output `y`.

        `inner_y` is the output for the inner law of a cascade.
        """
        measurement = y if self.predictor is None or memory.model is None else y + self.predictor.ahead(memory.model)
        u, _, law = self.law.sample(m, memory.law, r, measurement, limits=self.limits, last=memory.last)
        after = StructureMemory(law, u)
        if self.inner is not None and memory.inner is not None:
            u, _, inner = self.inner.sample(
                m, memory.inner, u, inner_y, limits=self.inner_limits, last=memory.inner_last
            )
            after = after._replace(inner=inner, inner_last=u)
        if self.predictor is not None and memory.model is not None:
            after = after._replace(model=self.predictor.after(memory.model, u))
        return u, after


class RunningControllers:
    """n running controllers of one structure, from rest at 0. `setpoint` (n,) is that of the inner law of a cascade."""

    def __init__(self, structure: Structure, n: int) -> None:
        self._structure = structure
        self._memory = structure.at_rest(np.zeros(n))

    @property
    def setpoint(self) -> Floats:
        return np.asarray(self._memory.last)

    def sample(self, r: Floats, y: Floats, inner_y: Floats | None = None) -> Floats:
        """The command of this sample."""
        u, self._memory = self._structure.sample(np, self._memory, r, y.copy(), inner_y)
        return np.asarray(u)

    def reset(self, rows: Mask) -> None:
        """Put these rows to rest."""
        self._memory = with_structure(self._memory, (np.where(rows, 0.0, state) for state in leaves(self._memory)))
