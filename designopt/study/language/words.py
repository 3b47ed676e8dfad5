"""The smallest pieces of a study file: names, texts of expressions, values of any simple type."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema

from designopt.study.language.refusals import refused, wrong_kind

LABEL = re.compile(r"\w[\w.+-]{0,79}")


def spelt_out(value: Any) -> Any:
    """A range in brackets, ``[low, high]``, as the mapping that it stands for; anything else as it is."""
    if isinstance(value, (str, Mapping)) or not isinstance(value, Sequence):
        return value
    if len(value) != 2:
        raise refused(f"a range in brackets is [low, high], this has {len(value)} values")
    return {"low": value[0], "high": value[1]}


class Label:
    """A name for people and folders: letters, digits and ``_ . + -``."""

    @staticmethod
    def __study_type__() -> Any:
        def validate(value: Any) -> str:
            if not isinstance(value, str):
                raise wrong_kind("a word", value, "; put quotes around it" if isinstance(value, (int, float)) else "")
            if not LABEL.fullmatch(value):
                raise refused(f"{value[:40]!r} is not a name: use letters, digits and _ . + -, at most 80")
            return value

        return Annotated[str, PlainValidator(validate), WithJsonSchema({"type": "string", "pattern": "^\\w[\\w.+-]*$"})]


class Formula:
    """The text of an expression or relation; it is parsed later, with its place at hand."""

    @staticmethod
    def __study_type__() -> Any:
        def validate(value: Any) -> str:
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                return repr(value)
            if not isinstance(value, str):
                raise wrong_kind("an expression", value)
            return value

        return Annotated[Any, PlainValidator(validate), WithJsonSchema({"type": "string"})]


class Scalar:
    """A word, number or truth value."""

    @staticmethod
    def __study_type__() -> Any:
        def validate(value: Any) -> Any:
            if not isinstance(value, (str, int, float, bool)):
                raise wrong_kind("a word or a number", value)
            if isinstance(value, float) and not math.isfinite(value):
                raise refused(f"must be a finite number, is {value}")
            if isinstance(value, int) and abs(value) >= 2**63:
                raise refused("the number is too large")
            return value

        schema = {"type": ["string", "number", "boolean"]}
        return Annotated[Any, PlainValidator(validate), WithJsonSchema(schema)]


class Something:
    """Any value but nothing."""

    @staticmethod
    def __study_type__() -> Any:
        def validate(value: Any) -> Any:
            if value is None:
                raise wrong_kind("a value", value)
            return value

        return Annotated[Any, PlainValidator(validate), WithJsonSchema({})]


class Word:
    """One word without spaces, quotes or anything else that a shell reads."""

    @staticmethod
    def __study_type__() -> Any:
        def validate(value: Any) -> str:
            if not isinstance(value, str):
                raise wrong_kind("a word", value, "; put quotes around it" if _number(value) else "")
            if not _WORD.fullmatch(value):
                raise refused(f"{value[:40]!r} is not one word: use letters, digits and _ . : @ / + , = -")
            return value

        return Annotated[str, PlainValidator(validate), WithJsonSchema({"type": "string", "pattern": _WORD.pattern})]


_WORD = re.compile(r"[\w][\w.:@/+,=-]{0,199}")


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
