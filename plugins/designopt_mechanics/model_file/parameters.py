"""The parameters of a mechanism file, and numbers of it that a study varies by their path."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from designopt.lazy import casadi as ca
from designopt.study.language import units
from designopt.study.language.findings import Path
from designopt_mechanics.body import is_number
from designopt_mechanics.mechanism.mechanism import MechanismParameter
from designopt_mechanics.model_file.nodes import LocatedNode
from designopt_mechanics.model_file.scope import formula_at

_WORD = re.compile(r"[A-Za-z_]\w*")


def path_of(text: str) -> Path:
    """``frames.rod.place.0`` as the path of a node."""
    return tuple(int(part) if part.isdigit() else part for part in text.split("."))


@dataclass
class FileParameters:
    """The `parameters` of a file by name, and the names of those that a study adds by path in `by_path`.

    With `symbolic` a number that uses them is an expression of their symbols, else it has their values. `paths` are
    those of all numbers that can vary, `used_names` those in its numbers and formulas.
    """

    by_path: Mapping[Path, str] = field(default_factory=dict)
    symbolic: bool = False
    parameters: dict[str, MechanismParameter] = field(default_factory=dict)
    paths: dict[str, None] = field(default_factory=dict)
    used_names: set[str] = field(default_factory=set)

    def read(self, at: LocatedNode) -> None:
        """The section ``parameters`` of a file."""
        for name, entry in at.mapping().items():
            if not name.isidentifier():
                raise at.wrong(f"'{name[:40]}' is not a valid name: use only letters, digits and _", key=name)
            self.parameters[name] = _parameter(name, entry)

    def scope(self) -> dict[str, Any]:
        """The parameters by name, as formulas see them."""
        return {n: p.symbol if self.symbolic else ca.SX(p.value) for n, p in self.parameters.items()}

    def __call__(self, at: LocatedNode, unit: str) -> Any:
        """The number at a node in `unit`: a number, a parameter, or a formula of parameters."""
        self.paths[".".join(str(part) for part in at.path)] = None
        if at.path in self.by_path:
            return self._by_path(at, unit)
        text = at.node.scalar
        if not isinstance(text, str) or not set(_WORD.findall(text)) & set(self.parameters) or _is_amount(text):
            return at.number(unit)
        formula = formula_at(at, text, "parameter", self.parameters)
        self.used_names.update(formula.coordinates)
        parameter = self.parameters.get(text.strip())
        if parameter is not None and parameter.unit:  # without a unit it has that of its place
            try:
                units.convert(1.0, parameter.unit, unit)
            except units.UnitError as error:
                raise at.wrong(f"parameter '{parameter.name}': {error}") from None
        result = formula(self.scope())
        if not is_number(result) and not ca.symvar(result):
            number = float(result)
            if not np.isfinite(number):
                raise at.wrong(f"is {number}, not a finite number")
            return number
        return result

    def _by_path(self, at: LocatedNode, unit: str) -> Any:
        name = self.by_path[at.path]
        self.used_names.add(name)
        if name not in self.parameters:
            self.parameters[name] = MechanismParameter(name, unit, at.number(unit))
        return self.parameters[name].symbol if self.symbolic else self.parameters[name].value

    def symbols(self) -> FileParameters:
        """The same with symbols in place of values."""
        return replace(self, symbolic=True)


def _parameter(name: str, at: LocatedNode) -> MechanismParameter:
    if at.node.entries is None:
        unit, value = _unit_and_value(at)
        return MechanismParameter(name, unit, value)
    entries = at.mapping(("value",), ("unit", "low", "high", "why"))
    unit, value = _unit_and_value(entries["value"])
    if "unit" in entries:
        unit = entries["unit"].word()
        try:
            units.check(unit)
        except units.UnitError as error:
            raise entries["unit"].wrong(str(error)) from None
        value = entries["value"].number(unit, certain=True)
    elif not unit:
        _refuse_bare_value(entries)
    low = entries["low"].number(unit, certain="unit" in entries) if "low" in entries else -np.inf
    high = entries["high"].number(unit, certain="unit" in entries) if "high" in entries else np.inf
    if low > high:
        raise entries["low"].wrong(f"low: {low:g} exceeds high: {high:g}")
    if not low <= value <= high:
        raise entries["value"].wrong(f"{value:g} is not within {low:g} to {high:g}")
    return MechanismParameter(name, unit, value, low, high, entries["why"].word() if "why" in entries else "")


def _refuse_bare_value(entries: Mapping[str, LocatedNode]) -> None:
    """Raises the error of a value without a unit beside a `low` or `high` that has one."""
    for end in ("low", "high"):
        text = str(entries[end].node.scalar) if end in entries else ""
        with contextlib.suppress(units.UnitError):
            if unit := units.parse_amount(text).unit:
                value = entries["value"]
                raise value.wrong(f"has no unit, but {end} has: write {value.node.scalar} {unit} or the unit meant")


def _unit_and_value(at: LocatedNode) -> tuple[str, float]:
    """A number in the SI unit of the unit that it carries."""
    text = at.node.scalar
    if isinstance(text, str):
        try:
            unit = units.parse_amount(text).unit or ""
        except units.UnitError as error:
            raise at.wrong(str(error)) from None
        base = _base_unit(str(unit)) if unit else ""
        return base, at.number(base)
    return "", at.number("")


def _base_unit(unit: str) -> str:
    """The unit of the file's numbers that `unit` converts to."""
    for base in ("rad", "m", "kg", "kg m^2", "N", "N m", "N/m", "N s/m", "N m/rad", "N m s/rad", "s", "m/s", "rad/s",
                 "kg/m^3", "Pa", "W", "J"):  # fmt: skip
        try:
            units.convert(1.0, unit, base)
        except units.UnitError:
            continue
        return base
    return unit


def _is_amount(text: str) -> bool:
    try:
        units.parse_amount(text)
    except units.UnitError:
        return False
    return text[:1] in "0123456789+-."
