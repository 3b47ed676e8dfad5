"""The sections of a study file: their keys, types, units and ranges. What needs a plugin to be judged is in `check`."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal, Required, TypedDict

from pydantic import PlainValidator, WithJsonSchema, WrapValidator

from designopt.plugin import Kind, Plugin, PluginError, Quantity, find, names
from designopt.study.findings import Finding
from designopt.study.settings import json_schema, settings_type
from designopt.study.units import Amount
from designopt.study.values import Checked, adapted, checker, refused, several, shown, wrong_kind

_LABEL = re.compile(r"\w[\w.+-]{0,79}")


class Label:
    """A name for people and folders: letters, digits and ``_ . + -``."""

    @staticmethod
    def __study_type__() -> Any:
        def validate(value: Any) -> str:
            if not isinstance(value, str):
                raise wrong_kind("a word", value, "; put quotes around it" if isinstance(value, (int, float)) else "")
            if not _LABEL.fullmatch(value):
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


@dataclass(frozen=True)
class Part:
    """A plugin section before its plugin is known: ``{use: name, settings}``. `bare` when only the name was given."""

    use: str | Plugin
    settings: Mapping[str, Any]
    bare: bool = False

    @staticmethod
    def __study_type__() -> Any:
        return _part_type(False)


class NamedPart:
    """A plugin section that may be the plugin's name alone."""

    @staticmethod
    def __study_type__() -> Any:
        return _part_type(True)


def _part_type(name_alone: bool) -> Any:
    def validate(value: Any) -> Part:
        given = as_part(value)
        if given is not None:
            return given
        if name_alone and isinstance(value, str):
            return Part(value, {}, bare=True)
        if not isinstance(value, Mapping):
            hint = f"; write {{use: {value}}}" if isinstance(value, str) and _LABEL.fullmatch(value) else ""
            raise wrong_kind("a mapping with 'use'", value, hint)
        if "use" not in value:
            raise refused("'use' is missing (the name of a plugin)")
        name, settings = value["use"], {key: v for key, v in value.items() if key != "use"}
        declared = as_part(name)
        if declared is not None:
            return Part(declared.use, {**declared.settings, **settings})
        if not isinstance(name, str):
            raise several([Finding((), f"'use' must be the name of a plugin, is {shown(name)}", at="use")])
        return Part(name, settings)

    section = {"type": "object", "properties": {"use": {"type": "string"}}, "required": ["use"]}
    return Annotated[
        Any,
        PlainValidator(validate),
        WithJsonSchema({"anyOf": [{"type": "string"}, section]} if name_alone else section),
    ]


def as_part(value: Any) -> Part | None:
    """The section that a decorated function, class or instance of such a class stands for; None for anything else."""
    plugin = getattr(value, "__designopt__", None)
    if not isinstance(plugin, Plugin):
        return None
    if is_dataclass(value) and not isinstance(value, type):
        return Part(plugin, {f.name: getattr(value, f.name) for f in fields(value) if f.init})
    return Part(plugin, {})


class ParameterSection(TypedDict, total=False):
    """One design variable."""

    type: Literal["real", "int", "choice", "fixed"]
    low: Amount
    high: Amount
    values: list[Scalar]
    value: Scalar
    unit: str
    scale: Literal["linear", "log"]


class ParameterEntry:
    """A parameter section, or its short forms: ``[low, high]`` and a fixed value alone."""

    @staticmethod
    def __study_type__() -> Any:
        def validate(value: Any, handler: Any) -> Any:
            if isinstance(value, Mapping):
                return handler(value)
            if isinstance(value, Sequence) and not isinstance(value, str):
                if len(value) != 2:
                    raise refused(f"a range in brackets is [low, high], this has {len(value)} values")
                return handler({"low": value[0], "high": value[1]})
            if value is None:
                raise wrong_kind("a mapping with 'low' and 'high', 'values' or 'value'", value)
            return handler({"value": value})

        return Annotated[adapted(ParameterSection), WrapValidator(validate)]


class ObjectiveSection(TypedDict, total=False):
    """A figure to be made small or large."""

    name: Required[Label]
    minimize: Formula
    maximize: Formula
    unit: str
    over: NamedPart


class ConstraintSection(TypedDict, total=False):
    """A limit on a figure."""

    name: Required[Label]
    of: Required[Formula]
    min: Amount
    max: Amount
    equals: Amount
    unit: str
    over: NamedPart


class BudgetSection(TypedDict, total=False):
    """Where a stage ends."""

    evaluations: Annotated[int, Quantity("", "number of proposed designs", ge=1)]
    wall: Annotated[float, Quantity("s", "time of the stage", gt=0.0)]


class StartFromSection(TypedDict, total=False):
    """Designs of an earlier stage to begin with."""

    stage: Required[Label]
    nondominated: Literal["all"] | Annotated[int, Quantity("", "how many of the front", ge=1)]
    best: Annotated[int, Quantity("", "how many of the best", ge=1)]


class StageSection(TypedDict, total=False):
    """One solver with its budget."""

    name: Required[Label]
    solver: Required[Part]
    budget: BudgetSection
    start_from: StartFromSection


_Times = Annotated[int, Quantity("", "how often again", ge=0, le=100)]


class RetriesSection(TypedDict, total=False):
    """How often an evaluation is tried again whose worker was lost, by cause; one that raised is never repeated."""

    crashed: _Times
    lost_worker: _Times
    timeout: _Times


class FailureSection(TypedDict, total=False):
    """When a study that mostly fails is ended."""

    stop_if_share_above: Annotated[float, Quantity("", "share of failed evaluations that ends the run", ge=0.0, le=1.0)]
    after: Annotated[int, Quantity("", "evaluations before the share is looked at", ge=1)]


class ExecutionSection(TypedDict, total=False):
    """When, where and how often."""

    executor: Literal["auto", "serial", "dask"]
    workers: Literal["auto"] | Annotated[int, Quantity("", "worker processes", ge=1, le=100_000)]
    scheduler: str
    timeout: Annotated[float, Quantity("s", "longest evaluation", gt=0.0)]
    grace: Annotated[float, Quantity("s", "wait for running evaluations when interrupted", ge=0.0)]
    retries: RetriesSection
    on_failure: FailureSection
    arrays: list[str] | dict[str, Literal["all", "front"]]


class ReportSection(TypedDict, total=False):
    """What the report shows."""

    plots: list[NamedPart]


class ScenarioSection(TypedDict, total=False):
    """The part of a scenario that does not depend on the model."""

    name: Required[Label]


@dataclass(frozen=True)
class Section:
    """One top-level key: the type of its value, or of each member when it is a list or a mapping."""

    of: Any
    shape: Literal["one", "list", "mapping"] = "one"
    meaning: str = ""
    required: bool = False
    kind: Kind | None = None


SECTIONS: dict[str, Section] = {
    "study": Section(Label, meaning="name of the study", required=True),
    "title": Section(str, meaning="one line for people"),
    "description": Section(str, meaning="free text"),
    "seed": Section(Annotated[int, Quantity("", "seed of all random numbers", ge=0)], meaning="seed, default 0"),
    "model": Section(Part, meaning="what computes a design", required=True, kind="model"),
    "scenarios": Section(dict[str, Any], "list", "conditions in which each design is evaluated"),
    "space": Section(ParameterEntry, "mapping", "the design variables", required=True),
    "relations": Section(Formula, "list", "inequalities between design variables"),
    "figures": Section(Part, "mapping", "objective plugins under the names that expressions use", kind="objective"),
    "objectives": Section(ObjectiveSection, "list", "what is to be made small or large", required=True),
    "constraints": Section(ConstraintSection, "list", "limits"),
    "stages": Section(StageSection, "list", "solvers, one after the other"),
    "solver": Section(Part, meaning="the solver of a study with a single stage", kind="solver"),
    "budget": Section(BudgetSection, meaning="the budget of that single stage"),
    "execution": Section(ExecutionSection, meaning="when, where and how often"),
    "report": Section(ReportSection, meaning="what the report shows"),
}


@lru_cache(maxsize=64)
def section_type(name: str) -> Checked:
    """The check for a member of the top-level section `name`."""
    return checker(SECTIONS[name].of)


def schema(plugins: Sequence[Plugin] | None = None) -> dict[str, Any]:
    """JSON Schema of a study file, for editors, with the settings of `plugins`.

    None stands for all known plugins; those that cannot be imported are left out. A section that names any other plugin
    may have any settings.
    """
    if plugins is None:
        plugins = _importable({section.kind for section in SECTIONS.values() if section.kind})
    properties: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    for name, section in SECTIONS.items():
        part = section_type(name).json_schema(ref_template="#/$defs/{model}")
        definitions.update(part.pop("$defs", {}))
        if section.kind:
            part = _plugin_section(section.kind, plugins, definitions)
        if section.shape == "list":
            part = {"type": "array", "items": part}
        elif section.shape == "mapping":
            part = {"type": "object", "additionalProperties": part}
        properties[name] = {**part, "description": section.meaning}
    stage = properties["stages"]["items"]
    stage["properties"]["solver"] = _plugin_section("solver", plugins, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "designopt study",
        "type": "object",
        "properties": properties,
        "required": [name for name, section in SECTIONS.items() if section.required],
        "oneOf": [{"required": ["stages"]}, {"required": ["solver"]}],
        "additionalProperties": False,
        "$defs": definitions,
    }


def _importable(kinds: Iterable[Kind]) -> list[Plugin]:
    found = []
    for kind in sorted(kinds):
        for name in names(kind):
            with contextlib.suppress(PluginError):
                plugin = find(kind, name)
                settings_type(plugin)
                found.append(plugin)
    return found


def _plugin_section(kind: Kind, plugins: Sequence[Plugin], definitions: dict[str, Any]) -> dict[str, Any]:
    """One of the plugins that are described, or another one with any settings."""
    members: list[dict[str, Any]] = []
    described = [p for p in plugins if p.kind == kind]
    for plugin in described:
        part = json_schema(plugin)
        definitions.update(part.pop("$defs", {}))
        definitions[f"{kind}.{plugin.name}"] = part
        members.append({"$ref": f"#/$defs/{kind}.{plugin.name}"})
    other = {"type": "string", "not": {"enum": [p.name for p in described]}}
    members.append({"type": "object", "properties": {"use": other}, "required": ["use"]})
    return {"anyOf": members}
