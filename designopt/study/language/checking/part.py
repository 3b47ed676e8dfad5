"""A plugin section before the lookup of its plugin: ``{use: name, settings}``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema

from designopt.plugin import Plugin
from designopt.study.language.checking.refusals import value_error, value_text, wrong_kind
from designopt.study.language.checking.words import LABEL


@dataclass(frozen=True)
class Part:
    """A plugin section before the lookup of its plugin: ``{use: name, settings}``. `bare` if only the name was
    given."""

    use: str | Plugin
    settings: Mapping[str, Any]
    bare: bool = False


def _section(value: Any) -> Part:
    part = as_part(value)
    if part is not None:
        return part
    if not isinstance(value, Mapping):
        hint = f"; write {{use: {value}}}" if isinstance(value, str) and LABEL.fullmatch(value) else ""
        raise wrong_kind("a mapping with 'use'", value, hint)
    if "use" not in value:
        raise value_error("'use' is missing (the name of a plugin)")
    name, settings = value["use"], {key: v for key, v in value.items() if key != "use"}
    outer_part = as_part(name)
    if outer_part is not None:
        return Part(outer_part.use, {**outer_part.settings, **settings})
    if not isinstance(name, str):
        raise value_error(f"'use' must be the name of a plugin, not {value_text(name)}", at="use")
    return Part(name, settings)


def _part(value: Any) -> Part:
    return Part(value, {}, bare=True) if isinstance(value, str) else _section(value)


def as_part(value: Any) -> Part | None:
    """The section for a decorated function, class or instance of such a class; None for anything else."""
    plugin = getattr(value, "__designopt__", None)
    if not isinstance(plugin, Plugin):
        return None
    if is_dataclass(value) and not isinstance(value, type):
        return Part(plugin, {f.name: getattr(value, f.name) for f in fields(value) if f.init})
    return Part(plugin, {})


_SCHEMA = {"type": "object", "properties": {"use": {"type": "string"}}, "required": ["use"]}
#: A plugin section: ``{use: name, settings}``.
PartSection = Annotated[Part, PlainValidator(_section), WithJsonSchema(_SCHEMA)]
#: A plugin section that may be the plugin's name alone.
NamedPart = Annotated[Part, PlainValidator(_part), WithJsonSchema({"anyOf": [{"type": "string"}, _SCHEMA]})]
