"""Numbers as programs write them."""

from __future__ import annotations

import re

#: A number of Fortran whose exponent has three digits and therefore no letter: ``1.5-101``.
_WITHOUT_LETTER = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+))([-+]\d{1,3})")


def number(text: str) -> float:
    """The number in `text`, with the exponents of Fortran too: ``1.5D+03``, ``1.5-101``. Raises `ValueError`."""
    try:
        if "_" in text:  # Python reads 1_000
            raise ValueError
        return float(text)
    except ValueError:
        pass
    changed = text.strip().replace("D", "E").replace("d", "e")
    if split := _WITHOUT_LETTER.fullmatch(changed):
        changed = f"{split[1]}E{split[2]}"
    try:
        if "_" in changed:
            raise ValueError
        return float(changed)
    except ValueError:
        stars = "; the program had too few columns for it" if "**" in text else ""
        raise ValueError(f"'{text.strip()[:40]}' is not a number{stars}") from None


def is_number(text: str) -> bool:
    """Whether `number` accepts `text`."""
    try:
        number(text)
    except ValueError:
        return False
    return True
