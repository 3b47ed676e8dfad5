"""Elementary values of a study file: names, texts of expressions, values of any simple type."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema

from designopt.study.language.checking.refusals import is_number, value_error, wrong_kind

LABEL = re.compile(r"\w[\w.+-]{0,79}")
_WORD = re.compile(r"[\w][\w.:@/+,=-]{0,199}")


class JsonKeywords:
    """Adds `keywords` to the JSON Schema of an annotated type."""

    def __init__(self, **keywords: Any) -> None:
        self._keywords = keywords

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:
        return {**handler.resolve_ref_schema(handler(core)), **self._keywords}


def short_forms(*types: str) -> JsonKeywords:
    """JSON Schema keywords for a mapping with a short form: a pair in brackets, or a value of one of the `types`.

    No ``anyOf``: keywords apply to values of their type alone, and editors mark the invalid key.
    """
    pair: dict[str, Any] = {"items": {"type": ["number", "string"]}, "minItems": 2, "maxItems": 2}
    return JsonKeywords(**pair, type=["object", "array", *types])


def spell_out_range(value: Any) -> Any:
    """The mapping for a range in brackets, ``[low, high]``; other values unchanged."""
    if isinstance(value, (str, Mapping)) or not isinstance(value, Sequence):
        return value
    if len(value) != 2:
        raise value_error(f"a range in brackets is [low, high], not {len(value)} values")
    return {"low": value[0], "high": value[1]}


def _matching(pattern: re.Pattern[str], otherwise: str) -> PlainValidator:
    """A text that matches `pattern`."""

    def validate(value: Any) -> str:
        if not isinstance(value, str):
            raise wrong_kind("a word", value, "; put quotes around it" if is_number(value) else "")
        if not pattern.fullmatch(value):
            raise value_error(f"{value[:40]!r} {otherwise}")
        return value

    return PlainValidator(validate)


def _formula(value: Any) -> str:
    if is_number(value):
        return repr(value)
    if not isinstance(value, str):
        raise wrong_kind("an expression", value)
    return value


def _scalar(value: Any) -> Any:
    if not isinstance(value, (str, int, float, bool)):
        raise wrong_kind("a word or a number", value)
    if isinstance(value, float) and not math.isfinite(value):
        raise value_error(f"must be a finite number, not {value}")
    if isinstance(value, int) and abs(value) >= 2**63:
        raise value_error("the number is too large")
    return value


def _not_null(value: Any) -> Any:
    if value is None:
        raise wrong_kind("a value", value)
    return value


#: A name of a person or folder: letters, digits and ``_ . + -``.
Label = Annotated[
    str,
    _matching(LABEL, "is not a name: use letters, digits and _ . + -, at most 80"),
    WithJsonSchema({"type": "string", "pattern": "^\\w[\\w.+-]*$"}),
]
#: One word without spaces, quotes or other shell characters.
Word = Annotated[
    str,
    _matching(_WORD, "is not one word: use letters, digits and _ . : @ / + , = -"),
    WithJsonSchema({"type": "string", "pattern": _WORD.pattern}),
]
#: The text of an expression or relation, parsed later with its position.
Formula = Annotated[str, PlainValidator(_formula), WithJsonSchema({"type": "string"})]
#: A word, number or truth value.
Scalar = Annotated[
    str | float | int | bool, PlainValidator(_scalar), WithJsonSchema({"type": ["string", "number", "boolean"]})
]
#: Any value except null.
Something = Annotated[Any, PlainValidator(_not_null), WithJsonSchema({})]
