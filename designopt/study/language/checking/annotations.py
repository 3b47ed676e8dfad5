"""Properties of type annotations: words for tables and messages, and number types."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Union

from designopt.plugin import InputFile


def type_name(hint: Any) -> str:
    """The name of a type that no study can contain."""
    return getattr(hint, "__name__", None) or str(hint).replace("typing.", "")


def type_words(hint: Any) -> str:
    """The type in a table: ``number``, ``integer``, ``one of a, b``, ``list of number``."""
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
    int: "integer",
    str: "word",
    bool: "true or false",
    InputFile: "file",
    Any: "anything",
}


def plain_types(annotation: Any) -> set[Any]:
    """The types that an annotation admits, without their metadata: ``InputFile | None`` has two."""
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (Annotated, typing.Required, typing.NotRequired):
        return plain_types(args[0])
    if origin in (Union, types.UnionType):
        return set().union(*map(plain_types, args))
    return {annotation}


def number_type(annotation: Any) -> type | None:
    """float or int for an annotation that admits a number, None for others."""
    plain = plain_types(annotation)
    return float if plain & {float, Any, object} else int if int in plain else None
