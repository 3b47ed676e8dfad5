"""Checks of values by their type annotation: what a study file may give for ``Annotated[float, Quantity("N/m")]``.

Annotations are rewritten for pydantic, which walks the data and makes the JSON Schema; the sentences are ours, and
the places in them are places in the user's data, never pydantic's own tags.
"""

from __future__ import annotations

import dataclasses
import itertools
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias, Union

import typing_extensions
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, WrapValidator
from pydantic_core import PydanticCustomError

from designopt.plugin import InputFile, PluginError, Quantity, closest
from designopt.study.language.annotations import type_name
from designopt.study.language.findings import MOST, Finding, nearest_or_all
from designopt.study.language.leaves import LEAVES, word_of
from designopt.study.language.refusals import refused, several, wrong_kind

#: Gives a file named in a study, or raises `ValueError` with the reason for the user.
Reader = Callable[[str], InputFile]

_MISSING = dataclasses.MISSING


@dataclasses.dataclass(frozen=True)
class Entry:
    """One key of a mapping: its annotation, whether it must be given, and what stands for it otherwise."""

    annotation: Any
    required: bool = True
    default: Any = None
    quantity: Quantity | None = None


#: A type that data can be checked against.
Checked: TypeAlias = TypeAdapter[Any]


def checker(annotation: Any) -> Checked:
    """The check for values of type `annotation`; raises `PluginError` for a type that no study can give."""
    return TypeAdapter(adapted(annotation))


def check(against: Checked, data: Any, read: Reader) -> tuple[Any, list[Finding]]:
    """The checked value and what is wrong with `data`; whatever is wrong in the value is None.

    So is a key that is missing, and one that an unknown key was most likely meant to be: of both it has been said that
    they are wrong, and what looks at the value later on finds them given, but not known.
    """
    try:
        return against.validate_python(data, context={"read": read}), []
    except ValidationError as error:
        return _sound(error), _flat(error)


def _flat(error: ValidationError) -> list[Finding]:
    found: list[Finding] = []
    for item in error.errors(include_url=False, include_input=False):
        path = item["loc"]
        context = item.get("ctx", {})
        if "findings" in context:
            found.extend(finding.below(path) for finding in context["findings"])
        else:
            found.append(Finding(path, item["msg"]))
    return found


def _sound(error: ValidationError) -> Any:
    """What is sound of the value that is wrong; None if nothing is."""
    return _sound_parts(error).get(None)


def _sound_parts(error: ValidationError) -> dict[Any, Any]:
    """What is sound of each wrong member of a list or mapping, by its key; None as key stands for the whole."""
    items = error.errors(include_url=False, include_input=False)
    return {(item["loc"] or (None,))[0]: item.get("ctx", {}).get("sound") for item in items}


# ------------------------------------------------------------------------------------------------------ annotations


def adapted(hint: Any, quantity: Quantity | None = None) -> Any:
    """`hint` rewritten for pydantic; `quantity` is what an enclosing ``Annotated`` said about the numbers in it."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        own = next((m for m in args[1:] if isinstance(m, Quantity)), None)
        return adapted(args[0], own or quantity)
    if hasattr(hint, "__study_type__"):
        return hint.__study_type__()
    if origin in (Union, types.UnionType):
        return _union(args, quantity)
    if origin is Literal:
        return word_of(args)
    if hint in LEAVES:
        return LEAVES[hint](quantity)
    if typing.is_typeddict(hint) or (dataclasses.is_dataclass(hint) and isinstance(hint, type)):
        return _record(hint)
    if origin in (list, Sequence) or hint in (list, Sequence):
        return _list_of(list[adapted(args[0] if args else Any, quantity)])  # type: ignore[misc]
    if origin is tuple:
        return _tuple_of(args, quantity)
    if origin in (dict, Mapping) or hint in (dict, Mapping):
        return _mapping_of(dict[str, adapted(args[1] if args else Any, quantity)])  # type: ignore[misc]
    if hint in (Any, object):
        return Any
    raise PluginError(f"a study file cannot give a value of type {type_name(hint)}")


def _union(members: tuple[Any, ...], quantity: Quantity | None) -> Any:
    parts = [adapted(member, quantity) for member in members]
    adapters = [TypeAdapter(part) for part in parts]

    def validate(value: Any, _: Any, info: Any) -> Any:
        if value is None and type(None) in members:
            return None
        errors = []
        for member, adapter in zip(members, adapters, strict=True):
            if member is type(None):
                continue
            try:
                return adapter.validate_python(value, context=info.context)
            except ValidationError as error:
                errors.append(error)
        raise _most_telling(errors, value)

    return Annotated[Union[tuple(parts)], WrapValidator(validate)]  # noqa: UP007


def _most_telling(errors: list[ValidationError], value: Any) -> PydanticCustomError:
    """The complaint of the member that the value was meant for: the right kind, wrong in its content."""
    expected = []
    for error in errors:
        items = error.errors(include_url=False, include_input=False)
        if len(items) > 1 or items[0]["loc"] or items[0]["type"] != "kind":
            return several(_flat(error), _sound(error))
        expected.append(items[0]["ctx"]["expected"])
    return wrong_kind(" or ".join(expected), value)


def _list_of(inner: Any) -> Any:
    def validate(value: Any, handler: Any) -> Any:
        if isinstance(value, (str, Mapping)) or not isinstance(value, Sequence):
            raise wrong_kind("a list", value)
        try:
            return handler(list(value))
        except ValidationError as error:
            wrong = _sound_parts(error)
            rest = iter(handler([item for i, item in enumerate(value) if i not in wrong]))
            sound = [wrong[i] if i in wrong else next(rest) for i in range(len(value))]
            raise several(_flat(error), sound) from None

    return Annotated[inner, WrapValidator(validate)]


def _tuple_of(args: tuple[Any, ...], quantity: Quantity | None) -> Any:
    if len(args) == 2 and args[1] is Ellipsis:
        inner: Any = tuple[adapted(args[0], quantity), ...]  # type: ignore[misc]
        count = None
    else:
        inner = tuple[tuple(adapted(a, quantity) for a in args)]  # type: ignore[misc]
        count = len(args)

    def validate(value: Any, handler: Any) -> Any:
        if isinstance(value, (str, Mapping)) or not isinstance(value, Sequence):
            raise wrong_kind("a list", value)
        if count is not None and len(value) != count:
            raise refused(f"needs {count} values, has {len(value)}")
        return handler(tuple(value))

    return Annotated[inner, WrapValidator(validate)]


def _mapping_of(inner: Any) -> Any:
    def validate(value: Any, handler: Any) -> Any:
        if not isinstance(value, Mapping):
            raise wrong_kind("a mapping", value)
        given = {str(k): v for k, v in value.items()}
        try:
            return handler(given)
        except ValidationError as error:
            raise several(_flat(error), _sound_members(error, given, handler)) from None

    return Annotated[inner, WrapValidator(validate)]


def _sound_members(error: ValidationError, given: Mapping[str, Any], handler: Callable[[Any], Any]) -> dict[str, Any]:
    """The mapping `given` after the check by `handler` that failed with `error`; None for what is wrong."""
    wrong = _sound_parts(error)
    rest = handler({key: item for key, item in given.items() if key not in wrong})
    return {key: wrong[key] if key in wrong else rest[key] for key in given}


def _record(hint: Any) -> Any:
    """A TypedDict or a dataclass, whose instance is made from the checked values."""
    if typing.is_typeddict(hint):
        return table(hint.__name__, members_of(hint))

    def build(values: dict[str, Any]) -> Any:
        try:
            return hint(**values)
        except ValueError as error:
            raise refused(str(error)) from None

    return table(hint.__name__, members_of(hint), build)


def members_of(hint: Any) -> dict[str, Entry]:
    """The keys of a TypedDict or dataclass annotation; empty for anything else."""
    if typing.get_origin(hint) is Annotated:
        hint = typing.get_args(hint)[0]
    if typing.get_origin(hint) in (Union, types.UnionType):
        return next((members for members in map(members_of, typing.get_args(hint)) if members), {})
    if typing.is_typeddict(hint):
        hints = typing.get_type_hints(hint, include_extras=True)
        return {n: Entry(_bare(h), _is_required(hint, n, h), None, _said(h)) for n, h in hints.items()}
    if not (dataclasses.is_dataclass(hint) and isinstance(hint, type)) or hint in LEAVES:
        return {}
    hints = typing.get_type_hints(hint, include_extras=True)
    entries = {}
    for item in dataclasses.fields(hint):
        if item.init:
            required = item.default is _MISSING and item.default_factory is _MISSING
            default = item.default_factory() if item.default_factory is not _MISSING else item.default
            entries[item.name] = Entry(hints[item.name], required, default, _said(hints[item.name]))
    return entries


def _is_required(hint: Any, name: str, annotation: Any) -> bool:
    """`__required_keys__` does not know of Required where annotations are kept as text (PEP 563)."""
    marked = typing.get_origin(annotation)
    return marked is typing.Required or (marked is not typing.NotRequired and name in hint.__required_keys__)


def _bare(hint: Any) -> Any:
    """Without Required and NotRequired."""
    while typing.get_origin(hint) in (typing.Required, typing.NotRequired):
        hint = typing.get_args(hint)[0]
    return hint


def _said(hint: Any) -> Quantity | None:
    hint = _bare(hint)
    if typing.get_origin(hint) is Annotated:
        return next((m for m in typing.get_args(hint)[1:] if isinstance(m, Quantity)), None)
    return None


def table(name: str, entries: Mapping[str, Entry], build: Callable[[dict[str, Any]], Any] | None = None) -> Any:
    """A mapping with these keys and no others; the result holds what was given, through `build` if there is one."""
    fields = {key: _table_field(entry) for key, entry in entries.items()}
    required = [key for key, entry in entries.items() if entry.required]
    record: Any = typing_extensions.TypedDict(name, fields, total=False)  # type: ignore[misc]
    extra: Any = {"required": required} if required else {}
    setattr(record, "__pydantic_config__", ConfigDict(extra="forbid", json_schema_extra=extra))  # noqa: B010

    def validate(value: Any, handler: Any) -> Any:
        if dataclasses.is_dataclass(value) and build is not None and type(value).__name__ == name:
            return value
        if not isinstance(value, Mapping):
            raise wrong_kind("a mapping", value)
        unknown = [str(key) for key in itertools.islice((k for k in value if k not in entries), MOST)]
        findings = [Finding((), f"unknown key '{key}'{nearest_or_all(key, entries)}", key) for key in unknown]
        meant = {near for near in (closest(key, entries) for key in unknown) if near and near not in value}
        missing = [key for key in required if key not in value and key not in meant]
        findings.extend(Finding((), _missing(key, entries[key])) for key in missing)
        known = {key: value[key] for key in entries if key in value}
        try:
            result = handler(known)
        except ValidationError as error:
            findings.extend(_flat(error))
            result = _sound_members(error, known, handler)
        if findings:
            raise several(findings, None if build else {**result, **dict.fromkeys([*meant, *missing])})
        return build(result) if build else result

    return Annotated[record, WrapValidator(validate)]


def _missing(key: str, entry: Entry) -> str:
    about = entry.quantity
    words = [w for w in (about.description, f"in {about.unit}" if about.unit else "") if w] if about else []
    return f"'{key}' is missing" + (f" ({', '.join(words)})" if words else "")


def _table_field(entry: Entry) -> Any:
    inner: Any = adapted(entry.annotation, entry.quantity)
    extra: dict[str, Any] = {}
    if not entry.required and isinstance(entry.default, (str, int, float)):
        extra["default"] = entry.default
    if entry.quantity and entry.quantity.unit:
        extra["x-unit"] = entry.quantity.unit
    about = entry.quantity.description if entry.quantity else None
    return Annotated[inner, Field(description=about or None, json_schema_extra=extra or None)]
