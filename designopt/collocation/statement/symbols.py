"""Arguments of the functions of a statement: named symbols along a phase, and at the ends of phases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from designopt.dynamics.system import Vector
from designopt.lazy import casadi as ca


class NamedEntries(Mapping[str, Any]):
    """Entries by name; the error for an unknown name lists the existing ones."""

    def __init__(self, expressions: Mapping[str, Any], kind: str = "entry") -> None:
        self._entries, self._kind = expressions, kind

    def __getitem__(self, name: str) -> Any:
        try:
            return self._entries[name]
        except KeyError:
            names = ", ".join(self._entries) or "none"
            raise KeyError(f"there is no {self._kind} '{name}'; known: {names}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


class Symbols(NamedEntries):
    """Named scalar expressions of a point in time; `time` is its own (s)."""

    def __init__(self, expressions: Mapping[str, Any], time: Any, kind: str = "variable") -> None:
        super().__init__(expressions, kind)
        self.time = time


class EndVariables(Symbols):
    """The states at an end of a phase, and by name also its controls, algebraic variables and unknown rates.

    For a scheme without a point at the left end of a phase (`radau`), the use of one of the latter adds a point there:
    the equations and path constraints hold there too, and controls are those of the polynomial of the first interval.
    """

    def __init__(
        self, expressions: Mapping[str, Any], time: Any, states: Sequence[str], vectors: Sequence[Vector]
    ) -> None:
        super().__init__({**expressions, **stacked_vectors(expressions, vectors)}, time)
        self._states = tuple(states)

    def __iter__(self) -> Iterator[str]:
        return iter(self._states)

    def __len__(self) -> int:
        return len(self._states)


def stacked_vectors(expressions: Mapping[str, Any], vectors: Sequence[Vector]) -> dict[str, Any]:
    """The columns of those `vectors` whose components are all among the `expressions`, by name."""
    return {
        v.name: ca.vertcat(*(expressions[n] for n in v.names))
        for v in vectors
        if all(n in expressions for n in v.names)
    }


@dataclass(frozen=True)
class PhaseEnds:
    """A phase at its ends: variables, times (s), integrals, and numeric data."""

    initial: EndVariables
    final: EndVariables
    t0: Any
    tf: Any
    integral: Mapping[str, Any]
    data: Mapping[str, Any]

    @property
    def duration(self) -> Any:
        """tf - t0 (s)."""
        return self.tf - self.t0


class Ends:
    """The ends of all phases: ``e.phase["flight"].final["height"]``, and parameters ``e["stiffness"]``.

    For a problem with one phase `initial`, `final`, `t0`, `tf`, `duration`, `integral` and `data` belong to it.
    """

    def __init__(self, phases: Mapping[str, PhaseEnds], parameters: Mapping[str, Any]) -> None:
        self.phase = phases
        self.parameters = parameters

    def __getitem__(self, name: str) -> Any:
        return self.parameters[name]

    def __getattr__(self, name: str) -> Any:
        phases = self.__dict__.get("phase", {})
        if name.startswith("_") or len(phases) != 1:
            raise AttributeError(f"there are several phases: say which, e.phase[...].{name}")
        return getattr(next(iter(phases.values())), name)
