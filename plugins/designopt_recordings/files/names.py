"""Names of markers and channels as laboratories write them: printable, unique, without their subject."""

from __future__ import annotations

import re
from collections.abc import Sequence

from designopt.study.language import units

_WITH_UNIT = re.compile(r"(?P<name>.*\S)\s*\[(?P<unit>[^\]]+)\]")


def printable(text: object) -> str:
    """`text` without blanks around it and without characters that cannot be shown."""
    return "".join(c if c.isprintable() else "?" for c in str(text).strip(" \0\t\r\n"))


def name_and_unit(label: str) -> tuple[str, str]:
    """The name and the unit of a label such as ``knee [deg]``; an unknown unit stays part of the name, with "" as
    unit."""
    match = _WITH_UNIT.fullmatch(label)
    try:
        if match is not None and units.measure(match["unit"]) is not None:
            return match["name"], match["unit"]
    except units.UnitError:
        pass
    return label, ""


def number_duplicates(names: Sequence[str], kind: str, notes: list[str]) -> tuple[str, ...]:
    """`names` made unique: the second 'Fx' is called 'Fx#2'; that is noted."""
    all_names, count = set(names), dict.fromkeys(names, 0)
    unique: list[str] = []
    for name in names:
        count[name] += 1
        while count[name] > 1 and f"{name}#{count[name]}" in all_names:
            count[name] += 1
        unique.append(name if count[name] == 1 else f"{name}#{count[name]}")
    if duplicates := sorted(name for name, number in count.items() if number > 1):
        notes.append(f"{kind}s with the same label are numbered: {', '.join(duplicates)}")
    return tuple(unique)


def without_prefixes(names: Sequence[str], notes: list[str]) -> Sequence[str]:
    """`names` without their subject ("Anna:LASI"), where they stay unique; noted where they do not."""
    short = [name.rpartition(":")[2].strip() for name in names]
    if all(short) and len(set(short)) == len(set(names)):
        return short
    notes.append("two subjects have markers of the same name; labels keep the subject's prefix")
    return names
