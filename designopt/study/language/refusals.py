"""What checks of values raise: mistakes in our own sentences, for pydantic to carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import PydanticCustomError

from designopt.study.language.findings import Finding


def wrong_kind(expected: str, value: Any, hint: str = "") -> PydanticCustomError:
    """``expected a number, not the word 'x'``; unions join what their members expected in one sentence."""
    finding = Finding((), f"expected {expected}, not {shown(value)}{hint}")
    return PydanticCustomError("kind", "{expected}", {"findings": [finding], "expected": expected})


def refused(message: str) -> PydanticCustomError:
    """The right kind of value, but not an acceptable one."""
    return PydanticCustomError("value", "{text}", {"findings": [Finding((), message)], "text": message})


def several(findings: list[Finding], sound: Any = None) -> PydanticCustomError:
    """Several findings at once, and what is `sound` of the value."""
    return PydanticCustomError("value", "several", {"findings": findings, "sound": sound})


def shown(value: Any) -> str:
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
