"""Values of a YAML node in SI units, with findings that point at mistakes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from designopt.lazy import casadi as ca
from designopt.study.language import units
from designopt.study.language.errors import StudyError
from designopt.study.language.findings import Finding, Path, issues, nearest_or_all
from designopt.study.language.yaml import Node, parse_bytes
from designopt_mechanics.body import is_number

T = TypeVar("T")
Vector3 = tuple[float, float, float]
#: A larger angle (rad) states its unit: most such numbers are degrees. 6.2832 and 6.284 are a turn.
TURN = 6.29


class VariableNumbers(Protocol):
    """Reads a number that may be an expression of parameters."""

    def __call__(self, at: LocatedNode, unit: str) -> Any:
        """The number at a node, or an expression, in `unit`."""


class FileMistake(Exception):
    """Raised for a mistake in a file; carries its `finding` to the list of all findings."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


@dataclass
class Findings:
    """All that is wrong so far."""

    mistakes: list[Finding] = field(default_factory=list)

    @contextmanager
    def item(self) -> Iterator[None]:
        """Note the mistakes of one item, so that the next one is read."""
        try:
            yield
        except FileMistake as wrong:
            self.mistakes.append(wrong.finding)

    def make_each(self, entries: Mapping[str, LocatedNode], make: Callable[[str, LocatedNode], T]) -> dict[str, T]:
        """The objects that `make` builds from the entries; mistakes are noted."""
        results: dict[str, T] = {}
        for name, entry in entries.items():
            with self.item():
                results[name] = make(name, entry)
        return results


@dataclass(frozen=True)
class LocatedNode:
    """A node and the path that leads to it; `variable` reads numbers that may be parameters."""

    node: Node
    path: Path = ()
    variable: VariableNumbers | None = None

    def wrong(self, message: str, key: str | None = None, part: tuple[int, int] | None = None) -> FileMistake:
        """The exception for a mistake at this node."""
        return FileMistake(Finding(self.path, message, key=key, part=part))

    def mapping(
        self, required_keys: tuple[str, ...] = (), possible: tuple[str, ...] | None = None
    ) -> dict[str, LocatedNode]:
        """The entries; `possible` keys besides those `required_keys`, any when it is None."""
        if self.node.entries is None:
            raise self.wrong("must be a mapping, key: value")
        entries = {
            key: LocatedNode(node, (*self.path, key), self.variable) for key, (_, node) in self.node.entries.items()
        }
        if possible is not None:
            keys = (*required_keys, *possible)
            for key in entries:
                if key not in keys:
                    raise self.wrong(f"no entry '{key}' here{nearest_or_all(key, keys)}", key=key)
        for key in required_keys:
            if key not in entries:
                raise self.wrong(f"'{key}' is missing")
        return entries

    def items(self, count: int | None = None) -> list[LocatedNode]:
        """The members of a list, of which there must be `count`."""
        if self.node.items is None:
            raise self.wrong("must be a list, [a, b, ...]")
        if count is not None and len(self.node.items) != count:
            raise self.wrong(f"must have {count} members, not {len(self.node.items)}")
        return [LocatedNode(node, (*self.path, i), self.variable) for i, node in enumerate(self.node.items)]

    def word(self, choices: tuple[str, ...] | None = None) -> str:
        """A text, one of `choices` if given."""
        value = self.node.scalar
        if not isinstance(value, str) or self.node.entries is not None or self.node.items is not None:
            raise self.wrong(f"must be {'one of ' + ', '.join(choices) if choices else 'a word'}")
        if choices and value not in choices:
            raise self.wrong(f"'{value[:40]}' is not one of {', '.join(choices)}")
        return value

    def flag(self) -> bool:
        """True or false."""
        if not isinstance(self.node.scalar, bool):
            raise self.wrong("must be true or false")
        return self.node.scalar

    def number(self, unit: str, *, certain: bool = False) -> float:
        """A finite number in `unit`, which a text such as ``30 mm`` converts to; `certain` if the unit of
        a plain number is certain."""
        value = self.node.scalar
        collection = self.node.entries is not None or self.node.items is not None
        if collection or isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise self.wrong(f"must be a number{f' in {unit}' if unit else ''}")
        try:
            amount = units.parse_amount(value) if isinstance(value, str) else units.Amount(float(value))
            number = amount.value_in(unit)
        except (units.UnitError, OverflowError) as error:
            raise self.wrong(str(error) or "the number is too large") from None
        if not math.isfinite(number):
            raise self.wrong(f"must be a finite number, not {number}")
        if unit == "rad" and amount.unit is None and not certain and abs(number) > TURN:
            raise self.wrong(
                f"{number:g} without a unit is in rad, more than a turn: "
                f"write {number:g} deg, or {number:g} rad if it is meant"
            )
        return number

    def numbers(self, unit: str) -> list[float]:
        """A list of numbers."""
        return [item.number(unit) for item in self.items()]

    def vector(self, unit: str) -> Vector3:
        """Three numbers."""
        x, y, z = (item.number(unit) for item in self.items(3))
        return x, y, z

    def quantity(self, unit: str) -> Any:
        """A number as `number`, or where the file's parameters allow it an expression of them."""
        return self.number(unit) if self.variable is None else self.variable(self, unit)

    def quantities(self, unit: str) -> Any:
        """Three of them: numbers, or a column of expressions."""
        return tuple_or_column([item.quantity(unit) for item in self.items(3)])


def tuple_or_column(values: Sequence[Any]) -> Any:
    """Numbers as a tuple, expressions as a column."""
    return tuple(values) if is_number(tuple(values)) else ca.vertcat(*values)


def named(at: LocatedNode) -> Mapping[str, LocatedNode]:
    """The entries of a mapping whose keys are names."""
    entries = at.mapping()
    for name in entries:
        if not name.isidentifier():
            raise at.wrong(f"'{name[:40]}' is not a valid name: use only letters, digits and _", key=name)
    return entries


def read_as(content: bytes, name: str, make: Callable[[LocatedNode, Findings], T | None]) -> T:
    """The object that `make` builds from the bytes of a YAML file called `name`.

    Raises `StudyError` with the line and column of each mistake.
    """
    root = parse_bytes(content, name)
    findings = Findings()
    result = None
    with findings.item():
        result = make(LocatedNode(root), findings)
    if findings.mistakes or result is None:
        raise StudyError(issues(findings.mistakes, root))
    return result
