"""Conversion of a study to JSON data for a store, and back.

Plugins are stored by name, version and declared outputs, files by their digest. Reading a study imports installed
plugins by name; the stored declarations replace a missing plugin (or one of another version), so that results can
always be displayed. Opening a store never runs code given with ``--plugin``.
"""

from __future__ import annotations

import dataclasses
import itertools
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from reprlib import repr as short
from typing import Annotated, Any, Literal

from designopt.plugin import (
    AggregationPlugin,
    Array,
    ExportPlugin,
    Fidelity,
    Field,
    InputFile,
    Kind,
    ModelPlugin,
    ObjectivePlugin,
    Plugin,
    PluginError,
    Quantity,
    ReportPlugin,
    SolverPlugin,
    Use,
    find,
)
from designopt.plugin.declared import in_units
from designopt.study.language.checking.single_values import out_of_range
from designopt.study.language.expressions.expression import Expression
from designopt.study.study import Objective, StudyConstraint, StudyDefinition

#: Fields of a study with a file or form of their own.
_APART = ("text", "path", "relations", "plugin_files")


def encode(study: StudyDefinition) -> dict[str, Any]:
    """`study` as JSON data: files are given by digest (`files` lists them)."""
    return {
        **{f.name: encode_part(getattr(study, f.name)) for f in dataclasses.fields(study) if f.name not in _APART},
        "relations": [str(r) for r in study.relations],
        "relation_texts": [r.text for r in study.relations],
        "plugin_files": [{"name": n, "digest": InputFile(n, c).digest} for n, c in study.plugin_files],
    }


def files(study: StudyDefinition) -> list[InputFile]:
    """All files of `study`; of those of data roots (`InputFile.root`) a store contains the tables."""
    input_files: list[InputFile] = []

    def collect(value: Any) -> None:
        if isinstance(value, InputFile):
            input_files.append(value)
        elif isinstance(value, Use):
            collect(value.settings)
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            collect([getattr(value, f.name) for f in dataclasses.fields(value)])
        elif isinstance(value, Mapping):
            for item in value.values():
                collect(item)
        elif isinstance(value, (list, tuple)):
            for item in value:
                collect(item)

    collect([getattr(study, f.name) for f in dataclasses.fields(study) if f.name not in _APART])
    return [*input_files, *(InputFile(name, content) for name, content in study.plugin_files)]


def decode(
    data: Mapping[str, Any],
    *,
    file: Callable[[str, str], InputFile],
    plugin_file: Callable[[str, str], bytes] | None = None,
    text: str = "",
    path: Path | None = None,
) -> StudyDefinition:
    """The study from the `data` of `encode`; `file` returns a file by name and digest, `plugin_file` the content of a
    plugin file (default: `file`).

    Fields that an older version did not have are at their defaults.
    """
    hints = typing.get_type_hints(StudyDefinition)
    content = plugin_file or (lambda name, digest: file(name, digest).content)
    in_data = {f.name: f.name in data for f in dataclasses.fields(StudyDefinition) if f.name not in _APART}
    return StudyDefinition(
        **{
            name: _decode_value(hints[name], data[name], file, f"study.{name}")
            for name, present in in_data.items()
            if present
        },
        relations=tuple(
            Expression.parse(relation, relation_text)
            for relation, relation_text in itertools.zip_longest(data["relations"], data.get("relation_texts", ()))
        ),
        text=text,
        path=path,
        plugin_files=tuple((f["name"], content(f["name"], f["digest"])) for f in data["plugin_files"]),
    )


def _decode_value(hint: Any, item: Any, file: Callable[[str, str], InputFile], position: str) -> Any:
    """The value of type `hint`, an annotation of `study.study`, from the encoded `item` of the field `position`.

    Raises `TypeError` for an item of another type.
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        members = [a for a in arguments if a is not types.NoneType]
        if item is None and len(members) < len(arguments):
            return None
        if len(members) == 1:
            return _decode_value(members[0], item, file, position)
    if origin is tuple:
        _expect(isinstance(item, list), item, "a list", position)
        return tuple(_decode_value(arguments[0], value, file, f"{position}.{i}") for i, value in enumerate(item))
    if origin is Mapping:
        _expect(isinstance(item, dict), item, "a mapping", position)
        return {k: _decode_value(arguments[1], value, file, f"{position}.{k}") for k, value in item.items()}
    if origin is Use:
        use = _setting(item, file)
        _expect(isinstance(use, Use) and isinstance(use.plugin, arguments[0]), item, arguments[0].__name__, position)
        return use
    if hint is Expression or hint is Any:
        return _setting(item, file)
    if hint is InputFile:
        value = _setting(item, file)
        _expect(isinstance(value, InputFile), item, "a file", position)
        return value
    if not dataclasses.is_dataclass(hint):
        _expect(_is_plain(hint, item), item, getattr(hint, "__name__", str(hint)), position)
        return item
    _expect(isinstance(item, dict), item, "a mapping", position)
    hints = typing.get_type_hints(hint)
    names = [f.name for f in dataclasses.fields(hint) if f.name in item]
    values = {name: _decode_value(hints[name], item[name], file, f"{position}.{name}") for name in names}
    if hint in (Objective, StudyConstraint):
        values["expression"] = Expression.parse(item["expression"], item.get("text"))
    return typing.cast(Any, hint)(**values)


def _is_plain(hint: Any, item: Any) -> bool:
    """Whether `item` is of the plain type `hint`: text, number, truth value, some literals, or one of several types."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return any(_is_plain(member, item) for member in typing.get_args(hint))
    if typing.get_origin(hint) is Literal:
        return item in typing.get_args(hint)
    if hint is float:
        return isinstance(item, int | float) and not isinstance(item, bool)
    return isinstance(item, hint) and (hint is bool or not isinstance(item, bool))


def _expect(holds: bool, item: Any, kind: str, position: str) -> None:
    if not holds:
        raise TypeError(f"'{position}' is {short(item)}, not {kind}")


def _setting(item: Any, file: Callable[[str, str], InputFile]) -> Any:
    """A plugin with its settings, a file, or plain data."""
    if isinstance(item, list):
        return [_setting(i, file) for i in item]
    if not isinstance(item, dict):
        return item
    if item.keys() == {"$file", "name"}:
        return file(item["name"], item["$file"])
    if "$plugin" in item:
        plugin = _plugin(item)
        if isinstance(plugin, ModelPlugin) and plugin.has("declares"):  # not called: its files may be missing
            fields = _fields(item["outputs"])
            outputs = {name: plugin.outputs.get(name, field) for name, field in fields.items()}
            plots = tuple(item.get("plots", ()))
            plugin = dataclasses.replace(plugin, outputs=outputs, arrays=_arrays(item), plots=plots)
            if inputs := _fields(item.get("inputs", {})):  # stores of earlier versions have none
                plugin_inputs = plugin.inputs or {}
                plugin = dataclasses.replace(
                    plugin, inputs={n: plugin_inputs.get(n, field) for n, field in inputs.items()}
                )
                fields |= inputs
            plugin = in_units(plugin, {name: field.quantity.unit for name, field in fields.items() if field.quantity})
        hints = {name: f.annotation for name, f in plugin.settings.items()}
        settings = item["settings"]
        for name, value in settings.items():
            kind = hints.get(name)
            kind = typing.get_args(kind)[0] if typing.get_origin(kind) is Annotated else kind
            if kind in (int, float, bool, str):
                _expect(_is_plain(kind, value), value, kind.__name__, f"{plugin.name}.{name}")
            field = plugin.settings.get(name)
            if field and _is_plain(float, value) and (reason := out_of_range(value, field.quantity)):
                raise ValueError(f"'{plugin.name}.{name}' {reason}")
        return Use(plugin, {k: _record(hints.get(k), _setting(v, file)) for k, v in settings.items()})
    return {k: _setting(v, file) for k, v in item.items()}


def encode_part(item: Any) -> Any:
    """A part of a study as JSON data."""
    if isinstance(item, InputFile):
        return {"$file": item.digest, "name": item.name}
    if isinstance(item, Use):
        p = item.plugin
        declared_inputs = p.inputs if isinstance(p, ModelPlugin) and p.has("declares") else None
        return {
            "$plugin": p.kind,
            "name": p.name,
            "version": p.version,
            "settings": encode_part(item.all_settings),
            "outputs": {name: _field(f) for name, f in p.outputs.items()} if isinstance(p, ModelPlugin) else {},
            **({"inputs": {name: _field(f) for name, f in declared_inputs.items()}} if declared_inputs else {}),
            "arrays": {n: dataclasses.asdict(a) for n, a in p.arrays.items()} if isinstance(p, ModelPlugin) else {},
            "needs": list(p.needs) if isinstance(p, ObjectivePlugin) else [],
            "unit": p.unit if isinstance(p, ObjectivePlugin) else "",
            **_abilities(item),
        }
    if isinstance(item, (Objective, StudyConstraint)):
        return _item(item)
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        return {f.name: encode_part(getattr(item, f.name)) for f in dataclasses.fields(item)}
    if isinstance(item, Mapping):
        return {str(k): encode_part(v) for k, v in item.items()}
    if isinstance(item, (list, tuple)):
        return [encode_part(v) for v in item]
    return item


def _abilities(use: Use[Plugin]) -> dict[str, Any]:
    """Properties besides names and settings on which keys, canonical form and reading of results depend; only nonempty
    ones."""
    p, has = use.plugin, {}
    if isinstance(p, ModelPlugin):
        cheap = p.fidelity
        fidelity = {"settings": cheap.settings, "cost": cheap.cost} if cheap else None
        has = {
            "takes_rng": p.takes_rng,
            "has_gradient": p.has("gradient"),
            "fidelity": fidelity,
            "plots": list(p.plots),
        }
    elif isinstance(p, SolverPlugin):
        has = {"wants_gradient": p.wants_gradient(use.settings), "wants_cheap": p.wants_cheap(use.settings)}
    return {name: value for name, value in has.items() if value}


def _record(hint: Any, value: Any) -> Any:
    """`value` with its mappings converted back to dataclasses according to `hint`, the annotation of a setting."""
    if typing.get_origin(hint) in (Annotated, typing.Union, types.UnionType):
        for part in typing.get_args(hint):
            value = _record(part, value)
    elif typing.get_origin(hint) is list and isinstance(value, list):
        value = [_record(typing.get_args(hint)[0], item) for item in value]
    elif isinstance(value, dict) and isinstance(hint, type) and dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint, include_extras=True)
        value = hint(**{name: _record(hints.get(name), item) for name, item in value.items()})
    return value


def _field(field: Field) -> dict[str, Any]:
    quantity = dataclasses.asdict(field.quantity) if field.quantity else None
    return {"quantity": quantity, "required": field.required}


def _item(item: Objective | StudyConstraint) -> dict[str, Any]:
    fields = {f.name: getattr(item, f.name) for f in dataclasses.fields(item)}
    return {**fields, "expression": str(item.expression), "text": item.expression.text, "over": encode_part(item.over)}


def _plugin(item: Mapping[str, Any]) -> Plugin:
    """The installed plugin, or the stored declarations.

    A setting added to the plugin later, in the same version, is omitted: it stays at its default.
    """
    kind: Kind = item["$plugin"]
    try:
        plugin = find(kind, item["name"])
    except PluginError as error:
        return _missing_plugin(item, str(error.args[0]))
    if plugin.version != item["version"]:
        reason = f"{kind} '{plugin.name}' is installed in version {plugin.version}, the store needs {item['version']}"
        return _missing_plugin(item, reason)
    setting_names = item["settings"].keys()
    new_settings = [name for name, setting in plugin.settings.items() if name not in setting_names and setting.required]
    if lacking := sorted(setting_names - plugin.settings.keys()):
        return _missing_plugin(
            item, f"{kind} '{plugin.name}' has no setting '{lacking[0]}' any more, which the store gives it"
        )
    if new_settings:
        return _missing_plugin(
            item, f"{kind} '{plugin.name}' needs a setting '{new_settings[0]}' now, which the store has none for"
        )
    return dataclasses.replace(plugin, settings={n: f for n, f in plugin.settings.items() if n in setting_names})


def _fields(items: Mapping[str, Any]) -> dict[str, Field]:
    """The outputs or inputs that a model declared when the store was written, by name."""
    return {
        name: Field(name, float, _quantity(f["quantity"]) if f["quantity"] else None, f["required"])
        for name, f in items.items()
    }


def _quantity(entry: Mapping[str, Any]) -> Quantity:
    """The quantity from its stored fields; those that this version does not have are ignored."""
    return Quantity(**{f.name: entry[f.name] for f in dataclasses.fields(Quantity) if f.name in entry})


def _arrays(item: Mapping[str, Any]) -> dict[str, Array]:
    """The arrays that a model declared when the store was written."""
    return {
        n: Array(**{**a, "axes": tuple(a["axes"]), "categories": tuple(a.get("categories", ()))})
        for n, a in item["arrays"].items()
    }


def _missing_plugin(item: Mapping[str, Any], reason: str) -> Plugin:
    def refuse(*_: Any, **__: Any) -> Any:
        raise PluginError(reason)

    about: dict[str, Any] = {
        "name": item["name"],
        "version": item["version"],
        "target": refuse,
        "settings": {},
        "description": f"not available: {reason}",
    }
    if item["$plugin"] == "model":
        has: dict[str, Any] = {"takes_rng": item.get("takes_rng", False)}
        has["methods"] = frozenset({"gradient"} if item.get("has_gradient") else ())
        fidelity = Fidelity(**item["fidelity"]) if "fidelity" in item else None
        return ModelPlugin(**about, outputs=_fields(item["outputs"]), arrays=_arrays(item), fidelity=fidelity, **has)
    if item["$plugin"] == "objective":
        return ObjectivePlugin(**about, needs=tuple(item["needs"]), unit=item["unit"])
    if item["$plugin"] == "solver":
        return SolverPlugin(**about, gradient=item.get("wants_gradient", False), cheap=item.get("wants_cheap", False))
    classes: dict[str, type[Plugin]] = {
        "aggregation": AggregationPlugin,
        "report": ReportPlugin,
        "export": ExportPlugin,
    }
    return classes[item["$plugin"]](**about)
