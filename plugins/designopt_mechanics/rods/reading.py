"""Rods from a YAML file, with the position of every mistake."""

from __future__ import annotations

from typing import Any

from designopt.study.language.findings import Finding
from designopt_mechanics.model_file.nodes import At, Findings, Wrong, read_as
from designopt_mechanics.rods.tree import Rod, RodError, RodTree

#: Fields of a rod that are numbers, and their units.
_NUMBERS = {
    "mass": "kg", "com": "", "spread": "", "Ix": "kg m^2", "Iy": "kg m^2", "It": "kg m^2", "Ia": "kg m^2",
    "rest_length": "m", "stiffness": "N/m", "damping": "N s/m",
}  # fmt: skip


def read_rods(content: bytes, name: str) -> RodTree:
    """The rods in the bytes of a YAML file called `name`: ``model: rod_tree``, `gravity`, `inertia` and a list `rods`.

    Raises `StudyError` with everything that is wrong, each with line and column.
    """
    return read_as(content, name, _tree)


def _tree(at: At, findings: Findings) -> RodTree | None:
    entries = at.mapping(("model", "rods"), ("gravity", "inertia"))
    entries["model"].word(("rod_tree",))
    more: dict[str, Any] = {}
    if "gravity" in entries:
        more["gravity"] = entries["gravity"].vector("m/s^2")
    if "inertia" in entries:
        more["inertia"] = entries["inertia"].word(("coordinate", "axisymmetric"))
    rod_entries = entries["rods"].items()
    rods = []
    for item in rod_entries:
        with findings.item():
            rods.append(_rod(item))
    if findings.mistakes:
        return None
    try:
        return RodTree(tuple(rods), **more)
    except RodError as error:
        numbers = [i for i, rod in enumerate(rods) if rod.name == error.rod]
        path: tuple[str | int, ...] = ("rods",)
        if numbers:
            i = numbers[-1]
            path = (*path, i)
            if error.field in (rod_entries[i].node.entries or {}):
                path = (*path, error.field)
        raise Wrong(Finding(path, f"{error.field}: {error.message}")) from None


def _rod(at: At) -> Rod:
    entries = at.mapping(("name", "mass"), ("parent", "sign", "length", *[n for n in _NUMBERS if n != "mass"]))
    values: dict[str, Any] = {n: entry.number(_NUMBERS[n]) for n, entry in entries.items() if n in _NUMBERS}
    for name in ("name", "parent"):
        if name in entries:
            values[name] = entries[name].word()
    if "length" in entries:
        values["length"] = entries["length"].word(("free", "fixed"))
    if "sign" in entries:
        sign = entries["sign"].number("")
        if sign not in (1.0, -1.0):
            raise entries["sign"].wrong(f"{sign:g} is neither 1 nor -1")
        values["sign"] = int(sign)
    return Rod(**values)
