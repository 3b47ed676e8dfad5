"""The names of a mechanism file and what formulas see of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from designopt.study.language.findings import nearest_or_all
from designopt_mechanics.functions.formula import Formula, FormulaError
from designopt_mechanics.model_file.nodes import LocatedNode
from designopt_mechanics.tree import Coordinate


def formula_at(at: LocatedNode, text: str, kind: str, names: Collection[str]) -> Formula:
    """The formula `text` at a node. Raises `FileMistake` at a syntax error, and at a name that is not among `names`,
    which are of a `kind`."""
    try:
        formula = Formula(text)
    except FormulaError as error:
        raise at.wrong(error.message, part=(min(error.offset, max(0, len(text) - 1)), 1)) from None
    for name in formula.coordinates:
        if name not in names:
            hint = nearest_or_all(name, names)
            raise at.wrong(f"no {kind} '{name}'{hint}", part=(max(0, text.find(name)), len(name)))
    return formula


class _Lookup(Mapping[str, Any]):
    """The names of a formula: coordinates first, then parameters, then functions of the coordinates."""

    def __init__(self, z: Mapping[str, Any], parameters: Mapping[str, Any], functions: Mapping[str, Any]) -> None:
        self._z, self._parameters, self._functions = z, parameters, functions

    def __getitem__(self, name: str) -> Any:
        if name in self._z:
            return self._z[name]
        if name in self._parameters:
            return self._parameters[name]
        return self._functions[name](self._z)

    def __iter__(self) -> Iterator[str]:
        return iter((*self._z, *self._parameters, *self._functions))

    def __len__(self) -> int:
        return len(self._z) + len(self._parameters) + len(self._functions)


@dataclass(frozen=True, eq=False)
class ScopedFormula:
    """A formula of coordinates, parameters and functions, called with the coordinates alone."""

    formula: Formula
    scope: FileScope

    @property
    def names(self) -> tuple[str, ...]:
        """The names in the formula."""
        return self.formula.coordinates

    def __call__(self, z: Mapping[str, Any]) -> Any:
        return self.formula(_Lookup(z, self.scope.parameters, self.scope.functions))


@dataclass(frozen=True, eq=False)
class FileScope:
    """The `coordinates` and `parameters` of a file, its `functions`, which reading fills, and the `function_names` of
    those to come, the `used_names` of its formulas."""

    coordinates: Mapping[str, Coordinate]
    parameters: Mapping[str, Any]
    functions: dict[str, Any]
    function_names: tuple[str, ...] = ()
    used_names: set[str] = field(default_factory=set)

    @property
    def names(self) -> list[str]:
        """Names that formulas may use."""
        return list(dict.fromkeys((*self.coordinates, *self.parameters, *self.functions, *self.function_names)))

    def formula(self, at: LocatedNode, names: Mapping[str, Any] | None = None) -> ScopedFormula:
        """The formula at a node; `names` restricts it to these and the parameters.

        Raises `FileMistake` at the part that is wrong.
        """
        scalar = at.node.scalar
        if isinstance(scalar, bool) or not isinstance(scalar, (str, int, float)):
            raise at.wrong("must be a formula")
        text = str(scalar)
        formula = formula_at(at, text, "coordinate", self.names if names is None else [*names, *self.parameters])
        self.used_names.update(formula.coordinates)
        return ScopedFormula(formula, self)
