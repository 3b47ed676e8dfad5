"""Checks of values by type annotation: the admissible values in a study file for ``Annotated[float, Quantity("N/m")]``.

Annotations are converted for pydantic, which traverses the data and makes the JSON Schema; messages are from this
package, and positions refer to the user's data, never to pydantic's tags.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias, Union

import pydantic
import typing_extensions
from pydantic import BeforeValidator, ConfigDict, PlainValidator, TypeAdapter, ValidationError, WrapValidator

from designopt.plugin import Field, InputFile, PluginError, Quantity
from designopt.plugin.signature import record_fields, records
from designopt.study.language.checking.annotations import type_name
from designopt.study.language.checking.refusals import (
    POINT,
    combined_error,
    expected_kind,
    findings,
    value_error,
    wrong_kind,
)
from designopt.study.language.checking.single_values import LEAVES, word_of
from designopt.study.language.findings import MOST, Finding, intended_key, nearest_or_all

#: Returns a file named in a study, or raises `ValueError` with the reason.
Reader = Callable[[str], InputFile]

#: A type for the check of data.
Checked: TypeAlias = TypeAdapter[Any]


def checker(annotation: Any) -> Checked:
    """The check for values of type `annotation`. Raises `PluginError` for a type that no study can contain."""
    return TypeAdapter(adapt_annotation(annotation))


#: A cached version for frequent types.
known_checker = functools.lru_cache(maxsize=64)(checker)


def check(against: Checked, data: Any, reader: Reader) -> tuple[Any, list[Finding]]:
    """The checked value and the mistakes in `data`; invalid parts of the value are None.

    So are missing keys, and keys that an unknown key probably meant: their mistakes are reported, and later checks
    treat them as given but unknown.
    """
    try:
        return against.validate_python(data, context={"read": reader}), []
    except ValidationError as error:
        mistakes = list(findings(error))
    try:
        return against.validate_python(data, context={"read": reader, "lenient": True}), mistakes
    except ValidationError:
        return None, mistakes


def _none_if_wrong(value: Any, handler: Any, info: Any) -> Any:
    """A member of a list or mapping; the valid rest is needed if a part is invalid."""
    try:
        return handler(value)
    except ValidationError:
        if info.context.get("lenient"):
            return None
        raise


_MEMBER = WrapValidator(_none_if_wrong)
_KEY = Annotated[str, BeforeValidator(str)]


# ------------------------------------------------------------------------------------------------------ annotations


def adapt_annotation(hint: Any, quantity: Quantity | None = None) -> Any:
    """`hint` converted for pydantic; `quantity` comes from an enclosing ``Annotated``. Raises `PluginError` for an
    unsupported type."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        inner_quantity = next((m for m in args[1:] if isinstance(m, Quantity)), None)
        checks = [m for m in args[1:] if not isinstance(m, Quantity)]
        inner = (
            Any
            if any(isinstance(m, PlainValidator) for m in checks)
            else adapt_annotation(args[0], inner_quantity or quantity)
        )
        return Annotated[(inner, *checks)] if checks else inner
    if origin in (Union, types.UnionType):
        return _union(args, quantity)
    if origin is Literal:
        return word_of(args)
    if hint in LEAVES:
        return LEAVES[hint](quantity)
    if typing.is_typeddict(hint) or (dataclasses.is_dataclass(hint) and isinstance(hint, type)):
        return _record(hint)
    if origin in (list, Sequence) or hint in (list, Sequence):
        return list[_member(args[0] if args else Any, quantity)]  # type: ignore[misc]
    if origin is tuple:
        return _tuple_of(args, quantity)
    if origin in (dict, Mapping) or hint in (dict, Mapping):
        return dict[_KEY, _member(args[1] if args else Any, quantity)]  # type: ignore[misc]
    if hint in (Any, object):
        return Any
    raise PluginError(f"a study file cannot give a value of type {type_name(hint)}")


def _member(hint: Any, quantity: Quantity | None) -> Any:
    return Annotated[adapt_annotation(hint, quantity), _MEMBER]


def _union(members: tuple[Any, ...], quantity: Quantity | None) -> Any:
    parts = [adapt_annotation(member, quantity) for member in members if member is not type(None)]
    adapters = [TypeAdapter(part) for part in parts]

    def validate(value: Any, _: Any, info: Any) -> Any:
        if value is None and type(None) in members:
            return None
        kinds: dict[str, None] = {}
        nearest = None  # the intended member: the right kind with invalid contents
        for adapter in adapters:
            try:
                return adapter.validate_python(value, context={**info.context, "lenient": False})
            except ValidationError as error:
                kind = expected_kind(error)
                if kind is None:
                    nearest = nearest or adapter
                else:
                    kinds[kind] = None
        if nearest is None:
            raise wrong_kind(" or ".join(kinds), value)
        return nearest.validate_python(value, context=info.context)

    return Annotated[Union[(*parts, *({type(None)} & {*members}))], WrapValidator(validate)]


def _tuple_of(args: tuple[Any, ...], quantity: Quantity | None) -> Any:
    if len(args) == 2 and args[1] is Ellipsis:
        return tuple[adapt_annotation(args[0], quantity), ...]  # type: ignore[misc]

    def validate(value: Any, handler: Any) -> Any:
        if isinstance(value, Sequence) and not isinstance(value, str) and len(value) != len(args):
            raise value_error(f"needs {len(args)} values, has {len(value)}")
        return handler(value)

    return Annotated[tuple[tuple(adapt_annotation(a, quantity) for a in args)], WrapValidator(validate)]  # type: ignore[misc]


def _record(hint: Any) -> Any:
    """A TypedDict or a dataclass, created from the checked values."""
    if typing.is_typeddict(hint):
        return table(hint.__name__, members_of(hint))

    def build(values: dict[str, Any]) -> Any:
        try:
            return hint(**values)
        except ValueError as error:
            raise value_error(str(error)) from None

    return table(hint.__name__, members_of(hint), build)


def members_of(hint: Any) -> dict[str, Field]:
    """The keys of a TypedDict or dataclass annotation; empty for anything else."""
    return next((record_fields(record) for record in records(hint) if record not in LEAVES), {})


def table(name: str, entries: Mapping[str, Field], build: Callable[[dict[str, Any]], Any] | None = None) -> Any:
    """A mapping with these keys and no others; the result contains the given ones, through `build` if available."""
    fields = {key: _table_field(entry) for key, entry in entries.items()}
    required_keys = [key for key, entry in entries.items() if entry.required]
    record: Any = typing_extensions.TypedDict(name, fields, total=False)  # type: ignore[misc]
    extra: Any = {"required": required_keys} if required_keys else {}
    setattr(record, "__pydantic_config__", ConfigDict(extra="forbid", json_schema_extra=extra))  # noqa: B010

    def validate(value: Any, handler: Any, info: Any) -> Any:
        if dataclasses.is_dataclass(value) and build is not None and type(value).__name__ == name:
            return value
        if not isinstance(value, Mapping):
            raise wrong_kind("a mapping", value)
        unknown = [str(key) for key in itertools.islice((k for k in value if k not in entries), MOST)]
        mistakes = [Finding((), f"unknown key '{key}'{_hint(key, value, entries)}", key) for key in unknown]
        meant_keys = {near for near in (intended_key(key, entries) for key in unknown) if near and near not in value}
        missing = [key for key in required_keys if key not in value and key not in meant_keys]
        mistakes.extend(Finding((), _missing(key, entries[key])) for key in missing)
        entries_of_value = {key: value[key] for key in entries if key in value}
        if build is None and info.context.get("lenient"):
            return {**handler(entries_of_value), **dict.fromkeys([*meant_keys, *missing])}
        try:
            result = handler(entries_of_value)
        except ValidationError as error:
            mistakes.extend(findings(error))
        if mistakes:
            raise combined_error(mistakes)
        return build(result) if build else result

    return Annotated[record, WrapValidator(validate)]


def _hint(key: str, value: Mapping[Any, Any], entries: Mapping[str, Field]) -> str:
    """Hint for an unknown key: inside braces a comma starts the next key, ``{high: 0,05 m}``."""
    if key[:1].isdigit() and value.get(key, key) is None:
        return POINT
    if "\xa0" in key:
        return "; it contains a no-break space: type a plain one"
    return nearest_or_all(key, entries)


def _missing(key: str, field: Field) -> str:
    about = field.quantity
    words = [w for w in (about.description, f"in {about.unit}" if about.unit else "") if w] if about else []
    return f"'{key}' is missing" + (f" ({', '.join(words)})" if words else "")


def _table_field(field: Field) -> Any:
    try:
        inner: Any = adapt_annotation(field.annotation, field.quantity)
    except PluginError as error:
        raise PluginError(f"'{field.name}': {error}") from None
    extra: dict[str, Any] = {}
    if not field.required and isinstance(field.default, (str, int, float)):
        extra["default"] = field.default
    if field.quantity and field.quantity.unit:
        extra["x-unit"] = field.quantity.unit
    about = field.quantity.description if field.quantity else None
    return Annotated[inner, _MEMBER, pydantic.Field(description=about or None, json_schema_extra=extra or None)]
