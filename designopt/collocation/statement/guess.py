"""A guess for a trajectory problem: trajectories of its phases and values of its parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats
from designopt.collocation.statement.stated_values import ProblemError, stated_table


class PhaseGuess(Protocol):
    """All variables of a phase over the fractions 0..1 of its time, from `t0` to `tf` (s)."""

    @property
    def t0(self) -> float: ...

    @property
    def tf(self) -> float: ...

    def at(self, fractions: Floats) -> Mapping[str, Floats]:
        """Values (n,) by the names of the variables; omitted ones are guessed."""
        ...


@dataclass(frozen=True, eq=False)
class SampledTrajectory:
    """A trajectory given by `values` (n,) of some variables at `fractions` (n,), linear between them."""

    fractions: Floats
    values: Mapping[str, Floats]
    t0: float
    tf: float

    def at(self, fractions: Floats) -> Mapping[str, Floats]:
        """See `PhaseGuess.at`."""
        return {n: np.asarray(np.interp(fractions, self.fractions, v)) for n, v in self.values.items()}

    def only(self, names: Iterable[str]) -> SampledTrajectory:
        """The trajectory of these variables alone."""
        return replace(self, values={name: self.values[name] for name in names})


def sampled(times: ArrayLike, values: Mapping[str, ArrayLike]) -> SampledTrajectory:
    """A guess from arrays (n,) over `times` (n,) in s. Raises `ProblemError` (bad_guess) for inconsistent arrays."""
    t = np.asarray(times, float)
    if t.ndim != 1 or len(t) < 2 or not np.isfinite(t).all() or not (np.diff(t) > 0).all():
        raise ProblemError("bad_guess", "times", "must be at least two finite numbers, each larger than the one before")
    arrays = {name: np.asarray(v, float) for name, v in values.items()}
    for name, array in arrays.items():
        if array.shape != t.shape or not np.isfinite(array).all():
            raise ProblemError("bad_guess", name, f"{len(t)} finite numbers are needed, one for each time")
    return SampledTrajectory((t - t[0]) / (t[-1] - t[0]), arrays, float(t[0]), float(t[-1]))


class KnownSolution(Protocol):
    """The parts of a solution that a guess uses."""

    @property
    def phases(self) -> Mapping[str, PhaseGuess]: ...

    @property
    def parameters(self) -> Mapping[str, float]: ...


@dataclass(frozen=True)
class Guess:
    """Trajectories by the names of phases, values of parameters; the rest is guessed from the problem statement."""

    phases: Mapping[str, PhaseGuess] = field(default_factory=dict)
    parameters: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("phases", "parameters"):
            object.__setattr__(self, name, stated_table(f"guess: {name}", getattr(self, name)))

    @classmethod
    def from_solution(cls, solution: KnownSolution) -> Guess:
        """A `designopt.collocation.Solution` as a guess, on any mesh."""
        return cls(dict(solution.phases), dict(solution.parameters))
