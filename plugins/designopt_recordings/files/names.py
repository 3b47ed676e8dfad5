"""Names of markers and channels as laboratories write them: printable, unique, without their subject."""

from __future__ import annotations

from collections.abc import Sequence


def printable(text: object) -> str:
    """`text` without blanks around it and without characters that cannot be shown."""
    return "".join(c if c.isprintable() else "?" for c in str(text).strip(" \0\t\r\n"))


def numbered(names: Sequence[str], what: str, notes: list[str]) -> tuple[str, ...]:
    """`names` made unique: the second 'Fx' is called 'Fx#2'; that is noted."""
    taken, repeated = set(names), set()
    made: list[str] = []
    for name in names:
        new, i = name, 1
        while new in made:
            repeated.add(name)
            i += 1
            new = f"{name}#{i}" if f"{name}#{i}" not in taken else new
        made.append(new)
    if repeated:
        notes.append(f"{what}s with the same label are numbered: {', '.join(sorted(repeated))}")
    return tuple(made)


def without_prefixes(names: Sequence[str], notes: list[str]) -> Sequence[str]:
    """`names` without their subject ("Anna:LASI"), where they stay unique; noted where they do not."""
    short = [name.rpartition(":")[2].strip() for name in names]
    if all(short) and len(set(short)) == len(set(names)):
        return short
    notes.append("two subjects have markers of the same name; labels keep the subject's prefix")
    return names
