"""Declarations in signatures and annotations: settings, quantities, names of inputs and outputs."""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

from designopt.plugin.values import Field, PluginError, Quantity

T = TypeVar("T")


def shape(target: Callable[..., Any]) -> tuple[Callable[..., Any], dict[str, Field]]:
    """The callable and the settings of a function or a class (converted to a frozen dataclass)."""
    if not inspect.isclass(target):
        return target, keyword_settings(target)
    if "__dataclass_fields__" not in vars(target):  # a base class that is a dataclass does not make this class one
        dataclass(kw_only=True)(target)
    settings = dataclass_fields(target)
    return getattr(target, "evaluate", target), settings


def keyword_settings(function: Callable[..., Any]) -> dict[str, Field]:
    """The keyword-only arguments of a function; the annotations of its other arguments need not be importable."""
    keywords = [p for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
    annotations = {p.name: p.annotation for p in keywords if p.annotation is not p.empty}
    namespace = types.SimpleNamespace(__annotations__=annotations)
    hints = typing.get_type_hints(namespace, getattr(inspect.unwrap(function), "__globals__", {}), include_extras=True)
    settings = {}
    for p in keywords:
        is_required, hint = p.default is p.empty, hints.get(p.name, Any)
        settings[p.name] = Field(p.name, hint, quantity(hint), is_required, None if is_required else p.default)
    return settings


def dataclass_fields(hint: Any) -> dict[str, Field]:
    """The constructor fields of a dataclass."""
    hints = typing.get_type_hints(hint, include_extras=True)
    fields = {}
    for item in (item for item in dataclasses.fields(hint) if item.init):
        is_required = item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
        default = None if is_required or item.default is dataclasses.MISSING else item.default
        if item.default_factory is not dataclasses.MISSING:
            default = item.default_factory()
        fields[item.name] = Field(item.name, hints[item.name], quantity(hints[item.name]), is_required, default)
    return fields


def typed_dict(hint: Any) -> dict[str, Field] | None:
    """Fields of a TypedDict annotation, or None for any other annotation. Raises `PluginError` if a required
    entry has a default."""
    if not typing.is_typeddict(hint):
        return None
    hints = typing.get_type_hints(hint, include_extras=True)
    fields = {}
    for name, h in hints.items():
        is_required = name in hint.__required_keys__
        if typing.get_origin(h) in (typing.Required, typing.NotRequired):
            # `__required_keys__` ignores NotRequired in annotations kept as text (PEP 563).
            is_required = typing.get_origin(h) is typing.Required
            h = typing.get_args(h)[0]
        about = quantity(h)
        if is_required and about and about.default is not None:
            raise PluginError(f"'{name}' of {hint.__name__} has a default: annotate it with NotRequired")
        fields[name] = Field(name, h, about, is_required, about.default if about else None)
    return fields


def records(hint: Any) -> Iterator[Any]:
    """The TypedDicts and dataclasses that an annotation admits."""
    parts = typing.get_args(hint)
    if typing.get_origin(hint) is Annotated:
        yield from records(parts[0])
    elif typing.get_origin(hint) in (typing.Union, types.UnionType):
        for part in parts:
            yield from records(part)
    elif typing.is_typeddict(hint) or (isinstance(hint, type) and dataclasses.is_dataclass(hint)):
        yield hint


def record_fields(record: Any) -> dict[str, Field]:
    """The fields of a TypedDict or dataclass."""
    members = typed_dict(record)
    return dataclass_fields(record) if members is None else members


def filled(table_type: type[T], values: Mapping[str, object]) -> T:
    """The `values` inputs or conditions, with the defaults of the TypedDict `table_type` for missing ones."""
    return cast(T, {**_defaults(cast(Any, table_type)), **values})


@cache
def _defaults(settings_class: type) -> Mapping[str, Any]:
    return {name: f.default for name, f in (typed_dict(settings_class) or {}).items() if f.default is not None}


def quantity(hint: Any) -> Quantity | None:
    """The `Quantity` of an annotation, also in ``Annotated[...] | None``."""
    if typing.get_origin(hint) is Annotated:
        return next((m for m in typing.get_args(hint)[1:] if isinstance(m, Quantity)), None)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return next((q for q in map(quantity, typing.get_args(hint)) if q), None)
    return None


def doc(target: Any) -> str:
    return inspect.cleandoc(target.__doc__ or "")


def source(target: Any) -> Path | None:
    try:
        return Path(inspect.getfile(target)).resolve()
    except (TypeError, OSError):
        return None
