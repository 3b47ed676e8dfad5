"""A study as JSON data, the way a store keeps it, and back.

Plugins are kept by name, version and declared outputs, files by their digest. Reading a study back imports installed
plugins by name; where one is missing (or is another version), what it declared stands in for it, so that results can
always be looked at. Code given with ``--plugin`` is never run by opening a store.
"""

from __future__ import annotations

import dataclasses
import itertools
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

from designopt.plugin import Array, Field, InputFile, Kind, Plugin, PluginError, Quantity, Use, find
from designopt.study.expression import Expression
from designopt.study.study import Budget, Constraint, Execution, Objective, Parameter, Scenario, Stage, StartFrom, Study


def encode(study: Study) -> dict[str, Any]:
    """`study` as JSON data; files are referred to by digest (`files` lists them)."""
    return {
        "name": study.name,
        "title": study.title,
        "description": study.description,
        "seed": study.seed,
        "model": _value(study.model),
        "space": [dataclasses.asdict(p) for p in study.space],
        "scenarios": [{"name": s.name, "values": _value(s.values)} for s in study.scenarios],
        "relations": [str(r) for r in study.relations],
        "relation_texts": [r.text for r in study.relations],
        "objectives": [_item(o) for o in study.objectives],
        "constraints": [_item(c) for c in study.constraints],
        "figures": _value(study.figures),
        "stages": [
            {
                "name": s.name,
                "solver": _value(s.solver),
                "budget": dataclasses.asdict(s.budget),
                "start_from": dataclasses.asdict(s.start_from) if s.start_from else None,
            }
            for s in study.stages
        ],
        "execution": _execution(study.execution),
        "plots": [_value(use) for use in study.plots],
        "plugin_files": [{"name": n, "digest": InputFile(n, c).digest} for n, c in study.plugin_files],
    }


def files(study: Study) -> list[InputFile]:
    """All files that `study` refers to."""
    found: list[InputFile] = []

    def collect(value: Any) -> None:
        if isinstance(value, InputFile):
            found.append(value)
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

    collect([study.model, study.figures, [s.values for s in study.scenarios], [s.solver for s in study.stages]])
    collect([study.plots, [o.over for o in study.objectives], [c.over for c in study.constraints]])
    return [*found, *(InputFile(name, content) for name, content in study.plugin_files)]


def decode(data: Mapping[str, Any], *, file: Callable[[str], bytes], text: str = "", path: Path | None = None) -> Study:
    """The study that `encode` made `data` of; `file` gives a file's content for its digest."""

    def value(item: Any) -> Any:
        if isinstance(item, list):
            return [value(i) for i in item]
        if not isinstance(item, dict):
            return item
        if item.keys() == {"$file", "name"}:
            return InputFile(item["name"], file(item["$file"]))
        if "$plugin" in item:
            plugin = _plugin(item)
            hints = {name: f.annotation for name, f in plugin.settings.items()}
            return Use(plugin, {k: _record(hints.get(k), value(v)) for k, v in item["settings"].items()})
        return {k: value(v) for k, v in item.items()}

    def scored(kind: Any, item: dict[str, Any]) -> Any:
        fields = {k: v for k, v in item.items() if k != "text"}
        expression = Expression.parse(item["expression"], item.get("text"))
        return kind(**{**fields, "expression": expression, "over": value(item["over"])})

    return Study(
        name=data["name"],
        title=data["title"],
        description=data["description"],
        seed=data["seed"],
        model=value(data["model"]),
        space=tuple(Parameter(**{**p, "values": tuple(p["values"])}) for p in data["space"]),
        scenarios=tuple(Scenario(s["name"], value(s["values"])) for s in data["scenarios"]),
        relations=tuple(
            Expression.parse(relation, written)
            for relation, written in itertools.zip_longest(data["relations"], data.get("relation_texts", ()))
        ),
        objectives=tuple(scored(Objective, o) for o in data["objectives"]),
        constraints=tuple(scored(Constraint, c) for c in data["constraints"]),
        figures={name: value(use) for name, use in data["figures"].items()},
        stages=tuple(
            Stage(
                s["name"],
                value(s["solver"]),
                Budget(**s["budget"]),
                StartFrom(**s["start_from"]) if s["start_from"] else None,
            )
            for s in data["stages"]
        ),
        execution=Execution(**data["execution"]),
        plots=tuple(value(use) for use in data["plots"]),
        text=text,
        path=path,
        plugin_files=tuple((f["name"], file(f["digest"])) for f in data["plugin_files"]),
    )


def _value(item: Any) -> Any:
    if isinstance(item, InputFile):
        return {"$file": item.digest, "name": item.name}
    if isinstance(item, Use):
        p = item.plugin
        return {
            "$plugin": p.kind,
            "name": p.name,
            "version": p.version,
            "settings": _value({**{k: f.default for k, f in p.settings.items() if not f.required}, **item.settings}),
            "outputs": {name: _field(f) for name, f in p.outputs.items()},
            "arrays": {name: dataclasses.asdict(a) for name, a in p.arrays.items()},
            "needs": list(p.needs),
            "unit": p.unit,
        }
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        return {f.name: _value(getattr(item, f.name)) for f in dataclasses.fields(item)}
    if isinstance(item, Mapping):
        return {str(k): _value(v) for k, v in item.items()}
    if isinstance(item, (list, tuple)):
        return [_value(v) for v in item]
    return item


def _record(hint: Any, value: Any) -> Any:
    """`value` with its mappings made dataclasses again where `hint`, the annotation of a setting, says so."""
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


def _item(item: Objective | Constraint) -> dict[str, Any]:
    fields = {f.name: getattr(item, f.name) for f in dataclasses.fields(item)}
    return {**fields, "expression": str(item.expression), "text": item.expression.text, "over": _value(item.over)}


def _plugin(item: Mapping[str, Any]) -> Plugin:
    """The installed plugin, or what a store knows of it."""
    kind: Kind = item["$plugin"]
    try:
        plugin = find(kind, item["name"])
    except PluginError as error:
        return _absent(item, str(error))
    if plugin.version != item["version"]:
        reason = f"{kind} '{plugin.name}' is installed in version {plugin.version}, the store needs {item['version']}"
        return _absent(item, reason)
    return plugin


def _absent(item: Mapping[str, Any], reason: str) -> Plugin:
    def refuse(*_: Any, **__: Any) -> Any:
        raise PluginError(reason)

    return Plugin(
        kind=item["$plugin"],
        name=item["name"],
        version=item["version"],
        target=refuse,
        settings={},
        description=f"not available: {reason}",
        outputs={
            name: Field(name, float, Quantity(**f["quantity"]) if f["quantity"] else None, f["required"])
            for name, f in item["outputs"].items()
        },
        arrays={n: Array(**{**a, "axes": tuple(a["axes"])}) for n, a in item["arrays"].items()},
        needs=tuple(item["needs"]),
        unit=item["unit"],
    )


def _execution(execution: Execution) -> dict[str, Any]:
    fields = {f.name: getattr(execution, f.name) for f in dataclasses.fields(execution)}
    return {**fields, "retries": dict(execution.retries), "arrays": dict(execution.arrays)}
