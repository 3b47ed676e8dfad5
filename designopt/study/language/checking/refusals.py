"""Mistakes in values: those of this package, which pydantic carries, and pydantic's, as findings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

from designopt.study.language.findings import Finding

#: Expected kind by pydantic's error type.
_EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "list_type": "a list",
    "none_required": "nothing",
    "string_type": "a word",
    "tuple_type": "a list",
}

_COMMA = re.compile(r"\s*[-+]?\d+,\d")
#: Minus sign and dashes that typesetting puts in place of a hyphen.
_DASHES = ("\u2212", "\u2013", "\u2014")
#: Hint for a comma in a number.
POINT = "; write a decimal point, not a comma"


def wrong_kind(expectation: str, value: Any, hint: str = "") -> PydanticCustomError:
    """``expected a number, not the word 'x'``; unions list the expectations of their members in one sentence."""
    comma = POINT if "a number" in expectation and isinstance(value, str) and _COMMA.match(value) else ""
    sign = "; type the sign as -" if "a number" in expectation and str(value).startswith(_DASHES) else ""
    finding = Finding((), f"expected {expectation}, not {value_text(value)}{hint}{comma}{sign}")
    return PydanticCustomError("kind", "{expected}", {"finding": finding, "expected": expectation})


def value_error(message: str, **location: Any) -> PydanticCustomError:
    """A value of the right kind that is not acceptable; `location` as in `Finding`."""
    return PydanticCustomError("value", "{finding}", {"finding": Finding((), message, **location)})


def combined_error(findings: Sequence[Finding]) -> ValidationError:
    """Several findings at once."""
    errors = [PydanticCustomError("value", "{finding}", {"finding": finding}) for finding in findings]
    return ValidationError.from_exception_data("", [InitErrorDetails(type=error, input=None) for error in errors])


def findings(error: ValidationError) -> Iterator[Finding]:
    """The mistakes, with paths in the user's data."""
    for item in error.errors(include_url=False):
        finding = item.get("ctx", {}).get("finding")
        if finding is None:
            hint = "; put quotes around it" if item["type"] == "string_type" and is_number(item["input"]) else ""
            finding = Finding((), f"expected {_EXPECTED[item['type']]}, not {value_text(item['input'])}{hint}")
        yield finding.below(item["loc"])


def expected_kind(error: ValidationError) -> str | None:
    """The expected kind of value; None for a value of the right kind with invalid contents."""
    item, *other_errors = error.errors(include_url=False, include_input=False)
    if other_errors or item["loc"]:
        return None
    return item["ctx"]["expected"] if item["type"] == "kind" else _EXPECTED.get(item["type"])


def is_number(value: Any) -> bool:
    """Whether `value` is a number; true and false are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def value_text(value: Any) -> str:
    """The value in a sentence."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        short = value if len(value) <= 40 else value[:37] + "..."
        return f"the word '{short}'" if short.isprintable() and " " not in short else f"the text {short!r}"
    if isinstance(value, (int, float)):
        return f"the number {value}" if abs(value) < 1e30 else "a huge number"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, Sequence):
        return "a list"
    return f"a value of type {type(value).__name__}"
