"""The sections of a study file: their keys, types, units and ranges. `check` contains the checks that need a plugin."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Required, TypedDict

from pydantic import WrapValidator

from designopt.plugin import Kind, Plugin, PluginError, Quantity, find, names
from designopt.study.language.checking.part import NamedPart, PartSection
from designopt.study.language.checking.refusals import is_number, value_error, wrong_kind
from designopt.study.language.checking.settings import json_schema, settings_type
from designopt.study.language.checking.values import Checked, known_checker
from designopt.study.language.checking.words import LABEL, Formula, Label, Scalar, Word, short_forms, spell_out_range
from designopt.study.language.units import Amount
from designopt.study.sections.choose import Rule
from designopt.study.sections.execution.cluster import Memory
from designopt.study.sections.scenarios.conditions import ScenarioEntry


class DeviationSection(TypedDict):
    """A tolerance that is normally distributed."""

    deviation: Annotated[Amount, Quantity("", "standard deviation; the distribution ends at three of them")]


#: A tolerance: half the width of a uniform distribution, or a normal one.
ToleranceEntry = Amount | DeviationSection


class ParameterSection(TypedDict, total=False):
    """One design variable."""

    type: Annotated[
        Literal["real", "int", "choice", "fixed"], Quantity("", "kind; follows from the other keys but for int")
    ]
    low: Annotated[Amount, Quantity("", "lower end of the range")]
    high: Annotated[Amount, Quantity("", "upper end of the range")]
    values: Annotated[list[Scalar], Quantity("", "values of a choice")]
    value: Annotated[Scalar, Quantity("", "the value of a fixed parameter")]
    unit: Annotated[str, Quantity("", "unit of bare numbers here, and of results; default: the model's")]
    scale: Annotated[Literal["linear", "log"], Quantity("", "scale on which solvers search; default linear")]
    tolerance: Annotated[
        ToleranceEntry,
        Quantity("", "tolerance of the value, in percent of it or in its unit; default: see report.tolerances"),
    ]
    when: Annotated[
        dict[str, Scalar | list[Scalar]],
        Quantity("", "values of other parameters with which this one is active; default: always"),
    ]
    why: Annotated[str, Quantity("", "reason for the range; shown where designs reach a bound")]


#: A range as other tools write it: ``0.1..0.5``, ``1 mm to 5 mm``.
_RANGE = re.compile(
    r"\s*([-+]?[\d.]*\d(?: ?[a-zA-Z%°]+)?)\s*(?:\.\.\.?|…|\bto\b|–)\s*([-+]?\d[\d.]*(?: ?[a-zA-Z%°]+)?)\s*"
)


def _parameter(value: Any, handler: Any) -> Any:
    if value is None:
        raise wrong_kind("a mapping with 'low' and 'high', 'values' or 'value'", value)
    if isinstance(value, str) and (ends := _RANGE.fullmatch(value)):
        raise value_error(f"{value!r} is a text; write the range as [{ends[1]}, {ends[2]}]")
    value = spell_out_range(value)
    return handler(value if isinstance(value, Mapping) else {"value": value})


#: A parameter section, or its short forms: ``[low, high]`` and a fixed value alone.
ParameterEntry = Annotated[ParameterSection, WrapValidator(_parameter), short_forms("number", "string", "boolean")]


class ObjectiveSection(TypedDict, total=False):
    """A figure to be minimised or maximised."""

    name: Annotated[Label, Quantity("", "name in results; default: what is minimised, if that is one word")]
    minimize: Annotated[Formula, Quantity("", "expression to minimise")]
    maximize: Annotated[Formula, Quantity("", "expression to maximise, instead of minimize")]
    unit: Annotated[str, Quantity("", "unit of results; default: that of the expression")]
    over: Annotated[NamedPart, Quantity("", "aggregation over scenarios; default worst")]


class ConstraintSection(TypedDict, total=False):
    """A limit on a figure."""

    name: Annotated[Label, Quantity("", "name in results; default: what is limited, if that is one word")]
    of: Required[Annotated[Formula, Quantity("", "limited expression")]]
    min: Annotated[Amount, Quantity("", "minimum")]
    max: Annotated[Amount, Quantity("", "maximum")]
    equals: Annotated[Amount, Quantity("", "required value")]
    unit: Annotated[str, Quantity("", "unit of bare limits, and of results; default: that of the expression")]
    over: Annotated[NamedPart, Quantity("", "aggregation over scenarios; default worst")]


_FIGURE = ObjectiveSection.__annotations__.keys() | ConstraintSection.__annotations__.keys()


#: A limit as a comparison: ``sag <= 10 mm``.
_COMPARISON = re.compile(r"\s*(.+?)\s*(<=|>=|<|>|≤|≥|==|=)\s*(.+?)\s*")


#: The sides of a limit, by the first character of a comparison, and with the number on the left.
_SIDES = {"<": ("max", "min"), "≤": ("max", "min"), ">": ("min", "max"), "≥": ("min", "max"), "=": ("equals", "equals")}
_AMOUNT = re.compile(r"[+-]?[\d.]+(e[+-]?\d+)?( .*)?", re.IGNORECASE)


def _as_mapping(text: str) -> str:
    """The section for a figure that is written as a text: ``{of: sag, max: 10 mm}``."""
    if (limit := _COMPARISON.fullmatch(text)) is not None:
        left, comparison, right = limit.groups()
        if (upper := _COMPARISON.fullmatch(right)) is not None:  # 1 <= sag <= 10 mm
            low, high = (left, upper[3]) if comparison[0] in "<≤" else (upper[3], left)
            return f"{{of: {_quote(upper[1])}, min: {_quote(low)}, max: {_quote(high)}}}"
        is_reversed = _AMOUNT.fullmatch(left) is not None
        of, amount = (right, left) if is_reversed else (left, right)
        return f"{{of: {_quote(of)}, {_SIDES[comparison[0]][is_reversed]}: {_quote(amount)}}}"
    direction, _, expression = text.strip().partition(" ")
    if direction.casefold() in ("minimize", "minimise", "maximize", "maximise") and expression:
        return f"{{{direction.casefold()[:6]}ze: {_quote(expression)}}}"
    return f"{{minimize: {_quote(text)}}}, or as a limit {{of: {_quote(text)}, max: 1}}"


def _quote(text: str) -> str:
    """`text` as a value between braces, which a comma, bracket or colon would end."""
    return f'"{text}"' if re.search(r"[,\[\]{}:#]", text) else text


def _figure_name(value: Any, handler: Any) -> Any:
    """The name of an unnamed figure: its expression, if that is a valid name."""
    texts: list[str] = []
    if isinstance(value, str):
        raise wrong_kind("a mapping", value, f"; write {_as_mapping(value)}")
    if isinstance(value, Mapping) and value.keys() <= _FIGURE - {"name"}:
        texts = [value[key] for key in ("minimize", "maximize", "of") if isinstance(value.get(key), str)]
        if len(texts) == 1 and LABEL.fullmatch(texts[0]):
            value = {"name": texts[0], **value}
    section = handler(value)
    if "name" not in section:
        why = f"'{texts[0][:40]}' is not a name; give one" if texts else "name in results"
        raise value_error(f"'name' is missing ({why})")
    return section


ObjectiveEntry = Annotated[ObjectiveSection, WrapValidator(_figure_name)]
ConstraintEntry = Annotated[ConstraintSection, WrapValidator(_figure_name)]


class HypervolumeSection(TypedDict, total=False):
    """End of a search whose hypervolume hardly grows."""

    reference: Required[
        Annotated[
            list[Amount] | dict[str, Amount],
            Quantity("", "a value of each objective, by name or in their order; worse designs do not count"),
        ]
    ]
    gain_below: Required[Annotated[float, Quantity("", "relative growth below which the search ends", gt=0.0, lt=1.0)]]
    over_generations: Required[
        Annotated[int, Quantity("", "number of batches over which the growth is measured", ge=1)]
    ]


class BudgetSection(TypedDict, total=False):
    """Where a stage ends."""

    evaluations: Annotated[int, Quantity("", "number of proposed designs", ge=1)]
    wall: Annotated[float, Quantity("s", "time of the stage", gt=0.0)]
    hypervolume: Annotated[HypervolumeSection, Quantity("", "end of a search when its front hardly grows")]


def _budget(value: Any, handler: Any) -> Any:
    if is_number(value):
        raise wrong_kind("a mapping", value, f"; write {{evaluations: {value}}}")
    return handler(value)


BudgetEntry = Annotated[BudgetSection, WrapValidator(_budget)]


class StartFromSection(TypedDict, total=False):
    """Starting designs from an earlier stage, or from another study's store."""

    stage: Annotated[Label, Quantity("", "the earlier stage")]
    store: Annotated[str, Quantity("", "the store of another run, instead of stage; a folder below that of the file")]
    nondominated: Annotated[
        Literal["all"] | Annotated[int, Quantity("", "number of designs of the front", ge=1)],
        Quantity("", "number of designs of the front; default all"),
    ]
    best: Annotated[int, Quantity("", "number of the best designs, instead of nondominated", ge=1)]


class StageSection(TypedDict, total=False):
    """One solver with its budget."""

    name: Required[Annotated[Label, Quantity("", "name of the stage")]]
    solver: Required[Annotated[PartSection, Quantity("", "plugin that proposes designs")]]
    budget: Annotated[BudgetEntry, Quantity("", "when the stage ends; default: when its solver does")]
    start_from: Annotated[StartFromSection, Quantity("", "starting designs; default none")]


class RetriesSection(TypedDict, total=False):
    """Number of further attempts of an evaluation, by the end of the last one."""

    crashed: Annotated[int, Quantity("", "after the worker process ended by itself; default 1", ge=0, le=100)]
    lost_worker: Annotated[
        int, Quantity("", "after the worker was killed from outside or got out of reach; default 2", ge=0, le=100)
    ]
    timeout: Annotated[int, Quantity("", "after a time-out; default 0", ge=0, le=100)]
    error: Annotated[int, Quantity("", "after an exception of the model; default 0", ge=0, le=100)]


_Meaning = Literal["infeasible", "stop"]


class FailureSection(TypedDict, total=False):
    """Meaning of a failed evaluation, by failure class, and the share of failures that ends a study."""

    diverged: Annotated[_Meaning, Quantity("", "the model has no solution; default infeasible")]
    nonfinite: Annotated[_Meaning, Quantity("", "an output is not finite; default infeasible")]
    error: Annotated[
        Literal["infeasible", "stop", "stop_repeated"],
        Quantity(
            "", "the model raised an exception; default stop_repeated: stop at the third error of one kind at one line"
        ),
    ]
    timeout: Annotated[_Meaning, Quantity("", "it took too long; default infeasible")]
    crashed: Annotated[_Meaning, Quantity("", "the worker process died; default infeasible")]
    lost_worker: Annotated[
        _Meaning, Quantity("", "the worker was killed from outside or got out of reach; default infeasible")
    ]
    unusable: Annotated[_Meaning, Quantity("", "files or values of the scenario give no result; default infeasible")]
    stop_if_share_above: Annotated[float, Quantity("", "share of failed evaluations that ends the run", ge=0.0, le=1.0)]
    after: Annotated[int, Quantity("", "evaluations before the share is checked", ge=1)]


class ClusterSection(TypedDict, total=False):
    """Workers started by a batch system."""

    use: Required[Annotated[Literal["slurm", "pbs"], Quantity("", "the batch system")]]
    jobs: Required[Annotated[int, Quantity("", "maximum number of jobs", ge=1, le=10_000)]]
    cores: Required[Annotated[int, Quantity("", "workers of a job, one thread each", ge=1, le=10_000)]]
    memory: Required[Annotated[Memory, Quantity("", "memory of a job, with its unit")]]
    walltime: Required[Annotated[float, Quantity("s", "time limit of a job", ge=60.0)]]
    minimum: Annotated[int, Quantity("", "minimum number of jobs", ge=0)]
    queue: Annotated[Word, Quantity("", "partition or queue; default: that of the batch system")]
    account: Annotated[Word, Quantity("", "account to charge")]
    interface: Annotated[Word, Quantity("", "network interface; default: the one with the default route")]


class RetrySection(TypedDict):
    """A failure that passes, as that of a licence server."""

    when: Annotated[str, Quantity("", "text in the message of the failure, or in what was printed")]
    times: Annotated[int, Quantity("", "number of further attempts", ge=1, le=1000)]
    wait: Annotated[float, Quantity("s", "time before each", ge=0.0)]


class ExecutionSection(TypedDict, total=False):
    """Workers, limits, retries and stored arrays."""

    executor: Annotated[
        Literal["auto", "serial", "dask"], Quantity("", "in this process (serial), on workers (dask); default auto")
    ]
    workers: Annotated[
        Literal["auto"] | Annotated[int, Quantity("", "worker processes", ge=1, le=100_000)],
        Quantity("", "local worker processes; default auto: one per core"),
    ]
    scheduler: Annotated[str, Quantity("", "address or file of a running Dask scheduler; default local")]
    cluster: Annotated[ClusterSection, Quantity("", "jobs of a batch system as workers; default none")]
    timeout: Annotated[float, Quantity("s", "time limit of an evaluation; default: none", gt=0.0)]
    grace: Annotated[float, Quantity("s", "wait for running evaluations when interrupted; default 10 s", ge=0.0)]
    retries: Annotated[RetriesSection, Quantity("", "retries of an evaluation, by kind of failure")]
    retry: Annotated[RetrySection, Quantity("", "a failure that passes and is repeated later; default none")]
    at_most: Annotated[
        dict[str, Annotated[int, Quantity("", "runs", ge=1)]],
        Quantity("", "runs of a program at the same time, on all workers, by its name; default: no limit"),
    ]
    on_failure: Annotated[FailureSection, Quantity("", "action of the run after a failure, by kind")]
    arrays: Annotated[
        list[str] | dict[str, Literal["all", "front", "chosen", "failed"]],
        Quantity(
            "",
            "trajectories to keep: of the front and the chosen designs, of the chosen ones, of all, or of failed "
            "evaluations; default none",
        ),
    ]


class ValidateSection(TypedDict, total=False):
    """Scenarios for the validation of the chosen designs."""

    scenarios: Required[
        Annotated[ScenarioEntry | list[ScenarioEntry], Quantity("", "scenarios, as in the section scenarios")]
    ]
    quantiles: Annotated[
        list[Annotated[float, Quantity("", "probability of the quantile", ge=0.0, le=1.0)]],
        Quantity("", "probabilities of the reported quantiles; default 0.05, 0.5, 0.95"),
    ]


class TolerancesSection(TypedDict, total=False):
    """Evaluations around the chosen designs, within the tolerances of the parameters."""

    of: Annotated[dict[str, ToleranceEntry], Quantity("", "tolerances by parameter, where space does not state them")]
    neighbours: Annotated[
        int, Quantity("", "neighbours of each chosen design; default: a tenth of the designs allows", ge=0, le=4096)
    ]
    front: Annotated[
        int, Quantity("", "neighbours of other designs of the front, together; default: the rest of it", ge=0)
    ]


class ReportSection(TypedDict, total=False):
    """Contents of the report, and evaluations for it."""

    plots: Annotated[list[NamedPart], Quantity("", "parts of the page, in order; default: the general ones")]
    choose: Annotated[
        list[Rule], Quantity("", "rules that select designs of the front; default: utopia, the compromise")
    ]
    validate: Annotated[ValidateSection, Quantity("", "scenarios in which the chosen designs are evaluated")]
    tolerances: Annotated[
        TolerancesSection, Quantity("", "neighbours of the chosen designs that are evaluated within tolerances")
    ]
    reference: Annotated[dict[str, Amount], Quantity("", "reference point of the hypervolume, by objective")]
    export: Annotated[list[NamedPart], Quantity("", "export formats written with the report; default none")]


class MissingSection(TypedDict):
    """Scenarios that may lack a result."""

    at_most: Annotated[float, Quantity("", "share of the scenarios, as in 10 %", ge=0.0, lt=1.0)]


@dataclass(frozen=True)
class TopLevelKey:
    """One top-level key: the type of its value, or of each member if it is a list or a mapping.

    `alone`: a single mapping may replace a list.
    """

    value_type: Any
    shape: Literal["one", "list", "mapping"] = "one"
    meaning: str = ""
    required: bool = False
    kind: Kind | None = None
    alone: bool = False


SECTIONS: dict[str, TopLevelKey] = {
    "study": TopLevelKey(Label, meaning="name of the study", required=True),
    "title": TopLevelKey(str, meaning="title of one line"),
    "description": TopLevelKey(str, meaning="free text"),
    "seed": TopLevelKey(Annotated[int, Quantity("", "seed of all random numbers", ge=0)], meaning="seed, default 0"),
    "model": TopLevelKey(PartSection, meaning="what computes a design", required=True, kind="model"),
    "scenarios": TopLevelKey(ScenarioEntry, "list", "conditions in which each design is evaluated", alone=True),
    "missing": TopLevelKey(MissingSection, meaning="scenarios that may lack a result without failing their design"),
    "robust": TopLevelKey(
        Annotated[int, Quantity("", "neighbours", ge=1, le=1000)],
        meaning="neighbours within the tolerances with which each design is evaluated; default none",
    ),
    "space": TopLevelKey(ParameterEntry, "mapping", "the design variables"),
    "relations": TopLevelKey(Formula, "list", "inequalities between design variables"),
    "figures": TopLevelKey(
        PartSection, "mapping", "objective plugins under the names that expressions use", kind="objective"
    ),
    "baseline": TopLevelKey(dict[str, Any], "list", "your own designs to compare with, by name", alone=True),
    "objectives": TopLevelKey(ObjectiveEntry, "list", "quantities to minimise or maximise"),
    "constraints": TopLevelKey(ConstraintEntry, "list", "limits"),
    "stages": TopLevelKey(StageSection, "list", "solvers, one after the other"),
    "solver": TopLevelKey(PartSection, meaning="the solver of a study with a single stage", kind="solver"),
    "budget": TopLevelKey(BudgetEntry, meaning="the budget of that single stage"),
    "execution": TopLevelKey(ExecutionSection, meaning="workers, time-outs, retries and failures"),
    "report": TopLevelKey(ReportSection, meaning="what the report shows"),
}


def section_type(name: str) -> Checked:
    """The check for a member of the top-level section `name`."""
    return known_checker(SECTIONS[name].value_type)


def schema(plugins: Sequence[Plugin] | None = None) -> dict[str, Any]:
    """JSON Schema of a study file, for editors, with the settings of `plugins`.

    None means all known plugins; those that cannot be imported are omitted. A section that names another plugin may
    have any settings.
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
            part_list = {"type": "array", "items": part}
            part = {"anyOf": [part_list, part]} if section.alone else part_list
        elif section.shape == "mapping":
            part = {"type": "object", "additionalProperties": part}
        properties[name] = {**part, "description": section.meaning}
    stage = properties["stages"]["items"]["properties"]
    stage["solver"] = {**stage["solver"], **_plugin_section("solver", plugins, definitions)}
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
    plugins = []
    for kind in sorted(kinds):
        for name in names(kind):
            with contextlib.suppress(PluginError):
                plugin = find(kind, name)
                settings_type(plugin)
                plugins.append(plugin)
    return plugins


def _plugin_section(kind: Kind, plugins: Sequence[Plugin], definitions: dict[str, Any]) -> dict[str, Any]:
    """One of the described plugins, or another one with any settings."""
    members: list[dict[str, Any]] = []
    known_plugins = [p for p in plugins if p.kind == kind]
    for plugin in known_plugins:
        part = json_schema(plugin)
        definitions.update(part.pop("$defs", {}))
        definitions[f"{kind}.{plugin.name}"] = part
        members.append({"$ref": f"#/$defs/{kind}.{plugin.name}"})
    other_plugin = {
        "type": "string",
        "not": {"enum": [p.name for p in known_plugins]},
        "description": "name of a plugin; its settings are keys beside it",
    }
    members.append({"type": "object", "properties": {"use": other_plugin}, "required": ["use"]})
    return {"anyOf": members}
