"""Reading of numbers in the forms that programs write."""

from __future__ import annotations

import re
from itertools import pairwise

#: A number of Fortran whose exponent has three digits and therefore no letter: ``1.5-101``.
_WITHOUT_LETTER = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+))([-+]\d{1,3})")
_EXPONENT = r"(?:[EeDd][-+]?\d+|[-+]\d{3}(?![\d.]))"
#: Numbers that touch at a sign, all but the first with a point, one or more with an exponent: ``34-2.5E+01-6.6E+01``.
_TOUCHING = re.compile(rf"(?=.*\d{_EXPONENT})[-+]?(?:\d+\.?\d*|\.\d+){_EXPONENT}?(?:[-+]\d*\.\d*{_EXPONENT}?)+")
_NEXT = re.compile(rf"[-+]?[\d.]+{_EXPONENT}?")
#: Remains of numbers in too narrow columns: stars, or numbers that touch without a sign of where one ends.
_BROKEN = re.compile(r"\*{2,}|(?=.*\d[-+EeDd]|.*\.\d{3,}\.)(?=.*\..*\.)[-+.\dEeDd]+")
#: A number with a decimal comma: ``2,5``.
_COMMA = re.compile(r"[-+]?\d+,\d+(?:[EeDd][-+]?\d+)?")
_DECIMALS = re.compile(r"\.(\d*)")


def number(text: str) -> float:
    """The number in `text`, with the exponents of Fortran too: ``1.5D+03``, ``1.5-101``. Raises `ValueError`."""
    try:
        if "_" in text:  # Python reads 1_000
            raise ValueError
        return float(text)
    except ValueError:
        pass
    numeral = text.strip().replace("D", "E").replace("d", "e")
    if split := _WITHOUT_LETTER.fullmatch(numeral):
        numeral = f"{split[1]}E{split[2]}"
    try:
        if "_" in numeral:
            raise ValueError
        return float(numeral)
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


def fields(line: str) -> list[str]:
    """The fields of a line between spaces or commas; numbers with exponents that touch at a sign are separate fields,
    as in columns of fixed width."""
    parts = line.replace(",", " ").split()
    return [field for part in parts for field in (_NEXT.findall(part) if _TOUCHING.fullmatch(part) else (part,))]


def decimal_comma(line: str, column: int) -> str:
    """The first field up to `column` that has a comma between digits, in a line whose fields are separated by spaces
    and that has no decimal point; "" for none."""
    parts = line.split()
    if len(parts) < 2 or "." in line:
        return ""
    return next((part for part in parts[:column] if _COMMA.fullmatch(part)), "")


def is_broken(field: str) -> bool:
    """Whether a field shows that the columns of the program are too narrow: ``*****``, ``12.345-0.678``,
    ``1.0000012.0000``."""
    return _BROKEN.fullmatch(field) is not None and not is_number(field)


def cut_like(line: str, row: str) -> list[str]:
    """The fields of a line whose numbers touch, cut where those of a `row` of the same table end; empty if the pieces
    are not numbers with as many decimals as those of the row."""
    cells = list(re.finditer(r"[^\s,]+", row))
    ends = [0, *(cell.end() for cell in cells)]
    pieces = [line[begin:end].strip(" ,") for begin, end in pairwise(ends)]
    is_like_row = all(
        is_number(piece) and _decimals(piece) == _decimals(cell.group())
        for piece, cell in zip(pieces, cells, strict=True)
    )
    return pieces if is_like_row and not line[ends[-1] :].strip() else []


def _decimals(number: str) -> int | None:
    """The number of decimals; None for an integer."""
    match = _DECIMALS.search(number)
    return None if match is None else len(match[1])
