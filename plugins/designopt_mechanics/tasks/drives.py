"""Drives of a study: formulas of time, coordinates and speeds, in place of those of the mechanism file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from designopt.plugin import InvalidSetting
from designopt.study.language.findings import nearest_or_all
from designopt_mechanics.functions.formula import Formula, FormulaError
from designopt_mechanics.mechanism.mechanism import Mechanism


def check_drives(mechanism: Mechanism, drives: Mapping[str, str | float]) -> Iterator[InvalidSetting]:
    """Mistakes in the names and formulas of drives."""
    names = mechanism.tree.names
    scope = {"time", *names, *(f"{n}_speed" for n in names), *(p.name for p in mechanism.parameters)}
    for name, text in drives.items():
        if name not in names:
            yield InvalidSetting(f"drives.{name}", f"there is no coordinate '{name}'{nearest_or_all(name, names)}")
            continue
        try:
            unknown = [n for n in Formula(str(text)).coordinates if n not in scope]
        except FormulaError as error:
            yield InvalidSetting(f"drives.{name}", error.message)
            continue
        if unknown:
            yield InvalidSetting(f"drives.{name}", f"no name '{unknown[0]}'{nearest_or_all(unknown[0], scope)}")


def check_initial(mechanism: Mechanism, initial: Mapping[str, float]) -> Iterator[InvalidSetting]:
    """Unknown names of an initial state."""
    names = [*mechanism.tree.names, *(f"{n}_speed" for n in mechanism.tree.names)]
    for name in initial:
        if name not in names:
            yield InvalidSetting("initial", f"there is no state '{name}'{nearest_or_all(name, names)}")


def with_drives(mechanism: Mechanism, drives: Mapping[str, str | float]) -> Mechanism:
    """The mechanism with the `drives` of a study."""
    if not drives:
        return mechanism
    parameters = {p.name: p.symbol for p in mechanism.parameters}

    def drive(formula: Formula) -> object:
        return lambda scope: formula({**parameters, **scope})

    return replace(mechanism, drives={**mechanism.drives, **{n: drive(Formula(str(t))) for n, t in drives.items()}})
