"""Dyads of a mechanism file: two bars that meet, in closed form, as joint functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from designopt.lazy import casadi as ca
from designopt_mechanics.body import is_number
from designopt_mechanics.functions.dyad import dyad, reach
from designopt_mechanics.model_file.nodes import LocatedNode
from designopt_mechanics.model_file.scope import FileScope

#: Names that the dyad `knee` adds to those of a file: ``knee_x``, ``knee_y`` (m) where the bars meet, ``knee_first``
#: and ``knee_second`` (rad) the directions of the bars from their known points to it.
RESULTS = ("x", "y", "first", "second")


@dataclass(frozen=True, eq=False)
class FileDyad:
    """Two bars between the points `start` and `end` (two scope values each) of `lengths` (2)."""

    start: tuple[Any, Any]
    end: tuple[Any, Any]
    lengths: tuple[Any, Any]
    side: Literal[1, -1]

    def functions(self, name: str) -> dict[str, Callable[[Mapping[str, Any]], Any]]:
        """The joint functions of the dyad by name."""
        return {f"{name}_{result}": partial(self._result, result) for result in RESULTS}

    def gap(self, z: Mapping[str, Any]) -> Any:
        """m by which the bars do not reach each other; at most 0 where they meet."""
        return reach(self._point(self.start, z), self._point(self.end, z), *self.lengths)

    def _result(self, result: str, z: Mapping[str, Any]) -> Any:
        a, b = self._point(self.start, z), self._point(self.end, z)
        joint = dyad(a, b, *self.lengths, self.side)
        if result in ("x", "y"):
            return joint["xy".index(result)]
        way = joint - (a if result == "first" else b)
        return ca.atan2(way[1], way[0])

    @staticmethod
    def _point(values: tuple[Any, Any], z: Mapping[str, Any]) -> Any:
        return ca.vertcat(*(ca.SX(value(z) if callable(value) else value) for value in values))


def file_dyad(at: LocatedNode, scope: FileScope) -> FileDyad:
    """The dyad ``{from: [x, y], to: [x, y], lengths: [a, b], side: left}``; formulas may use names that come before."""
    entries = at.mapping(("from", "to", "lengths", "side"), ())
    start, end = ([_component(item, scope) for item in entries[key].items(2)] for key in ("from", "to"))
    lengths = []
    for item in entries["lengths"].items(2):
        length = item.quantity("m")
        if is_number(length) and not length > 0.0:
            raise item.wrong(f"{length:g} m is not a length")
        lengths.append(length)
    side: Literal[1, -1] = 1 if entries["side"].word(("left", "right")) == "left" else -1
    return FileDyad((start[0], start[1]), (end[0], end[1]), (lengths[0], lengths[1]), side)


def _component(at: LocatedNode, scope: FileScope) -> Any:
    text = at.node.scalar
    is_name = isinstance(text, str) and (text in scope.names) and text not in scope.parameters
    if not isinstance(text, str) or (
        not is_name and not any(n in text for n in (*scope.coordinates, *scope.functions, *scope.function_names))
    ):
        return at.quantity("m")
    return scope.formula(at)
