"""What type annotations say: in words for tables and messages, and whether they admit a number."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Union

from designopt.plugin import InputFile


def type_name(hint: Any) -> str:
    """The name of a type that no study can give."""
    return getattr(hint, "__name__", None) or str(hint).replace("typing.", "")


def type_words(hint: Any) -> str:
    """The type in a table: ``number``, ``whole number``, ``one of a, b``, ``list of number``."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return type_words(args[0])
    if hint in _NAMES:
        return _NAMES[hint]
    if origin in (Union, types.UnionType):
        return " or ".join(type_words(a) for a in args if a is not type(None))
    if origin is Literal:
        return "one of " + ", ".join(str(a) for a in args)
    if origin in (list, Sequence):
        return f"list of {type_words(args[0])}"
    if origin is tuple:
        inner = args[:1] if args[-1] is Ellipsis else args
        return ("list of " if args[-1] is Ellipsis else "list: ") + ", ".join(type_words(a) for a in inner)
    if origin in (dict, Mapping):
        return f"mapping to {type_words(args[1])}"
    return "mapping" if typing.is_typeddict(hint) or dataclasses.is_dataclass(hint) else type_name(hint)


_NAMES: dict[Any, str] = {
    float: "number",
    int: "whole number",
    str: "word",
    bool: "true or false",
    InputFile: "file",
    Any: "anything",
}


def admits(annotation: Any, wanted: type) -> bool:
    """Whether an annotation admits values of the type `wanted`, by its name: ``InputFile | None`` admits files."""
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated or origin in (typing.Required, typing.NotRequired):
        return admits(args[0], wanted)
    if origin in (Union, types.UnionType):
        return any(admits(a, wanted) for a in args)
    return annotation is wanted


def number_type(annotation: Any) -> type | None:
    """float or int for an annotation that admits a number, None for one that does not."""
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated or origin in (typing.Required, typing.NotRequired):
        return number_type(args[0])
    if origin in (Union, types.UnionType):
        found = [t for t in map(number_type, args) if t]
        return float if float in found else (int if found else None)
    if annotation in (Any, object):
        return float
    return annotation if annotation in (float, int) else None
