"""Settings from annotations: checks, table, JSON Schema."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest
import yaml

from designopt.plugin import InputFile, PluginError, Quantity, find, solver
from designopt.problem import STATUSES
from designopt.study.language.checking.settings import describe, json_schema, rows, settings_type, validate
from designopt.study.sections.schema import schema
from designopt.study.study import Cluster, Execution


class Inner(TypedDict):
    gain: Annotated[float, Quantity("", "gain", gt=0.0)]
    delay: NotRequired[Annotated[float, Quantity("s", "delay")]]


@dataclasses.dataclass(frozen=True)
class Window:
    width: Annotated[float, Quantity("s", "width", gt=0.0)] = 1.0
    shape: Literal["hann", "box"] = "hann"

    def __post_init__(self) -> None:
        if self.width > 100.0:
            raise ValueError("a window of more than 100 s is no window")


@solver("test_settings", version=3)
class Everything:
    """All kinds of settings.

    With a second paragraph.
    """

    number: Annotated[float, Quantity("N/m", "a number", gt=0.0, le=1e6)]
    integer: Annotated[int, Quantity("", "an integer", ge=2)] = 4
    flag: bool = False
    word: str = "abc"
    choice: Literal["red", "green", 3] = "red"
    items: Annotated[list[float], Quantity("mm", "lengths", ge=0.0)] = dataclasses.field(default_factory=list)
    pair: tuple[float, int] = (1, 2)
    many: tuple[str, ...] = ()
    table: dict[str, float] = dataclasses.field(default_factory=dict)
    inner: Inner | None = None
    window: Window = Window()
    either: dict[str, int] | int = 3
    auto: Literal["auto"] | Annotated[float, Quantity("s", "or a time", gt=0.0)] = "auto"
    file: InputFile | None = None
    sequence: Sequence[int] = (1,)
    mapping: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    copy: bool = True

    def solve(self, problem: Any, evaluate: Any, rng: Any, start: Any) -> None:
        raise AssertionError("declared to be checked, never to be run")


@pytest.fixture
def plugin():
    """The solver above."""
    return find("solver", "test_settings")


def read(name: str) -> InputFile:
    return InputFile(name, name.encode())


@pytest.mark.parametrize(
    ("name", "entry", "value"),
    [
        ("number", 5, 5.0),
        ("number", "12 kN/m", 12000.0),
        ("integer", 1e3, 1000),
        ("integer", "7", 7),
        ("flag", True, True),
        ("choice", 3, 3),
        ("items", [1, "2 cm"], [1.0, 20.0]),
        ("pair", [1, 2], (1.0, 2)),
        ("many", ["a", "b"], ("a", "b")),
        ("table", {"a": 1}, {"a": 1.0}),
        ("inner", {"gain": 2}, {"gain": 2.0}),
        ("inner", {"gain": 2, "delay": "3 ms"}, {"gain": 2.0, "delay": 0.003}),
        ("inner", None, None),
        ("window", {"width": "2 ms"}, Window(0.002)),
        ("window", Window(3.0), Window(3.0)),
        ("either", {"a": 3}, {"a": 3}),
        ("either", 4, 4),
        ("auto", "auto", "auto"),
        ("auto", "2 min", 120.0),
        ("file", "x.csv", InputFile("x.csv", b"x.csv")),
        ("sequence", [3, 4], [3, 4]),
        ("mapping", {"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}),
        ("copy", False, False),
    ],
)
def test_values_are_converted_to_their_type(plugin, name, entry, value) -> None:
    use, findings = validate(plugin, {"number": 1, **{name: entry}}, read)
    assert findings == []
    assert use.settings[name] == value
    assert type(use.settings[name]) is type(value)


@pytest.mark.parametrize(
    ("name", "entry", "path", "message"),
    [
        ("number", -1, ("number",), "must be above 0 N/m, not -1"),
        ("number", "2 MN/m", ("number",), "must be at most 1e+06 N/m, not 2e+06"),
        ("number", "5 kg", ("number",), "incompatible units: 'kg' cannot be converted to 'N/m'"),
        ("number", True, ("number",), "expected a number in 'N/m', not true"),
        ("number", None, ("number",), "expected a number in 'N/m', not nothing"),
        ("number", float("inf"), ("number",), "must be a finite number"),
        ("number", 10**400, ("number",), "too large"),
        ("integer", 2.5, ("integer",), "must be an integer, not 2.5"),
        ("integer", 1, ("integer",), "must be at least 2, not 1"),
        ("integer", "2 m", ("integer",), "incompatible units"),
        ("flag", "yes", ("flag",), "expected true or false, not the word 'yes'"),
        ("word", 5, ("word",), "expected a word, not the number 5; put quotes around it"),
        ("choice", "gren", ("choice",), "'gren' is not one of red, green, 3; did you mean 'green'?"),
        ("items", [1, -2], ("items", 1), "must be at least 0 mm, not -2"),
        ("items", "1", ("items",), "expected a list"),
        ("pair", [1], ("pair",), "needs 2 values, has 1"),
        ("pair", [1, 2.5], ("pair", 1), "integer"),
        ("table", {"a": "x"}, ("table", "a"), "expected a number, not the word 'x'"),
        ("table", {"a": "3 m"}, ("table", "a"), "must be a plain number, without the unit 'm'"),
        ("inner", {"delay": 1}, ("inner",), "'gain' is missing (gain)"),
        ("inner", {"gain": 0}, ("inner", "gain"), "must be above 0"),
        ("inner", {"gain": 1, "dely": 2}, ("inner",), "unknown key 'dely'; did you mean 'delay'?"),
        ("inner", 4, ("inner",), "expected a mapping, not the number 4"),
        ("window", {"width": 101}, ("window",), "a window of more than 100 s is no window"),
        ("window", {"shape": "bx"}, ("window", "shape"), "did you mean 'box'?"),
        ("either", [1], ("either",), "expected a mapping or an integer, not a list"),
        ("either", {"a": 1.5}, ("either", "a"), "must be an integer"),
        ("auto", "aut", ("auto",), "did you mean 'auto'?"),
        ("auto", -1, ("auto",), "must be above 0 s"),
        ("auto", "3 kg", ("auto",), "not one of auto"),
        ("file", 3, ("file",), "expected the name of a file"),
        ("numbr", 3, (), "unknown key 'numbr'"),
    ],
)
def test_mismatched_entries_are_reported_with_their_path(plugin, name, entry, path, message) -> None:
    use, findings = validate(plugin, {"number": 1, **{name: entry}}, read)
    assert use is None
    assert [finding.path for finding in findings] == [path]
    assert message in findings[0].message


def test_all_mismatches_are_reported_at_once(plugin) -> None:
    _, findings = validate(plugin, {"integer": 1, "flag": 3, "window": {"width": 0, "shap": 1}, "x": 1}, read)
    assert {finding.path for finding in findings} == {(), ("integer",), ("flag",), ("window",), ("window", "width")}
    assert any("'number' is missing (a number, in N/m)" in finding.message for finding in findings)


def test_a_default_means_the_same_as_the_value_written_out(plugin) -> None:
    silent, _ = validate(plugin, {"number": 1}, read)
    spoken, _ = validate(plugin, {"number": 1, "pair": [1, 2], "window": {"width": 1}, "sequence": [1]}, read)
    assert silent.settings == spoken.settings
    assert [type(v) for v in silent.settings["pair"]] == [float, int]
    assert list(silent.settings) == list(plugin.settings)


def test_a_type_that_no_file_can_give_is_refused_with_its_name() -> None:
    @solver("test_unsupported", version=1)
    class Odd:
        hook: complex = 0j

        def solve(self, problem: Any, evaluate: Any, rng: Any, start: Any) -> None:
            raise AssertionError("declared to be checked, never to be run")

    with pytest.raises(PluginError, match="test_unsupported: 'hook': a study file cannot give a value of type complex"):
        settings_type(Odd.__designopt__)
    use, findings = validate(Odd.__designopt__, {})
    assert use is None
    assert "complex" in findings[0].message


def test_the_table_of_settings(plugin) -> None:
    table = {row.name: row for row in rows(plugin.settings)}
    assert (table["number"].type, table["number"].unit, table["number"].default) == ("number", "N/m", "required")
    assert (table["number"].range, table["number"].meaning) == ("> 0, <= 1e+06", "a number")
    assert table["choice"].type == "one of red, green, 3"
    assert table["auto"].type == "one of auto or number"
    assert table["window.width"].default == "1"
    assert table["inner.gain"].default == "required"
    text = describe(plugin)
    assert text.startswith("test_settings (solver, version 3)")
    assert all(word in text for word in ("N/m", "With a second paragraph.", "window.shape"))


def test_a_description_tells_over_what_range_samples_vary_a_condition() -> None:
    lines = describe(find("model", "test_field")).splitlines()
    head = next(line for line in lines[lines.index("scenario conditions") :] if "name" in line)
    at = head.index("sampled")
    column = {line.split()[0]: line[at:].split("  ")[0] for line in lines if line.strip() and line.startswith("  ")}
    assert column["friction"] == "[0.2, 0.8]"
    assert column["wheels"] == "[4, 8]"
    assert column["mass"] == ""
    assert "sampled" not in describe(find("model", "test_wheel"))


def test_the_table_of_a_model_tells_its_inputs_and_outputs() -> None:
    text = describe(find("model", "test_wheel"))
    for word in (
        "design inputs",
        "stiffness",
        "N s/m",
        "scenario conditions",
        "outputs",
        "peak_error",
        "arrays",
        "time",
    ):
        assert word in text
    assert "needs rho, time; gives a number in 'm'" in describe(find("objective", "test_spread"))


def test_the_json_schema_of_a_plugin(plugin) -> None:
    generated = json_schema(plugin)
    assert generated["required"] == ["use", "number"]
    assert generated["additionalProperties"] is False
    assert generated["properties"]["use"] == {"const": "test_settings"}
    assert generated["properties"]["integer"]["minimum"] == 2
    assert generated["properties"]["number"]["x-unit"] == "N/m"
    assert generated["properties"]["choice"]["enum"] == ["red", "green", 3]


def test_the_json_schema_of_a_study_file(plugin) -> None:
    generated = schema([plugin])
    assert generated["additionalProperties"] is False
    assert generated["required"] == ["study", "model"]  # a study that analyses has neither space nor objectives
    assert "solver.test_settings" in generated["$defs"]
    references = str(generated).split("'#/$defs/")[1:]
    assert references
    assert {reference.split("'")[0] for reference in references} <= set(generated["$defs"])


def test_the_json_schema_describes_the_settings_of_all_installed_plugins_by_itself() -> None:
    generated = schema()
    nsga2 = generated["$defs"]["solver.nsga2"]
    assert nsga2["properties"]["population"]["minimum"] == 2
    members = generated["properties"]["solver"]["anyOf"]
    assert {"$ref": "#/$defs/solver.nsga2"} in members
    assert "nsga2" in members[-1]["properties"]["use"]["not"]["enum"]  # only with settings as described
    assert json.loads(json.dumps(generated))["required"] == ["study", "model"]


def test_the_json_schema_has_every_section_of_a_large_study(full_text) -> None:
    """What the full file says is described, key by key, wherever keys are not names of the user's own."""
    generated = schema([])
    assert set(yaml.safe_load(full_text)) <= set(generated["properties"])

    def members(part: dict) -> dict:
        while "$ref" in part:
            part = generated["$defs"][part["$ref"].split("/")[-1]]
        inner = [members(option) for option in part.get("anyOf", [])]
        return {**{k: v for properties in inner for k, v in properties.items()}, **part.get("properties", {})}

    def at(*path: str) -> dict:
        part = generated["properties"][path[0]]
        for step in path[1:]:
            part = part["items"] if step == "*" else members(part)[step]
        return part

    assert {"when"} <= set(members(at("space")["additionalProperties"]))
    assert {"use", "count", "seed", "vary", "with", "name"} <= set(members(at("scenarios")["anyOf"][1]))
    assert at("scenarios")["anyOf"][0]["items"] == at("scenarios")["anyOf"][1], "a member of the list or it alone"
    assert set(members(at("budget", "hypervolume"))) == {"reference", "gain_below", "over_generations"}
    assert {"stage", "store", "nondominated", "best"} == set(members(at("stages", "*", "start_from")))
    cluster = members(at("execution", "cluster"))
    assert set(cluster) == {f.name for f in dataclasses.fields(Cluster)}
    assert set(members(at("execution"))) | {"stop_if_share_above", "after"} == {
        f.name for f in dataclasses.fields(Execution)
    }
    failures = members(at("execution", "on_failure"))
    assert set(failures) == {*STATUSES, "stop_if_share_above", "after"} - {"ok", "invalid"}
    assert {"plots", "choose", "validate", "tolerances", "reference", "export"} == set(members(at("report")))
    assert {"knee", "utopia", "topsis", "nearest_to", "weighted_tchebycheff", "epsilon_constraint", "robust"} == set(
        members(at("report", "choose")["items"])
    )
    assert {"scenarios", "quantiles"} == set(members(at("report", "validate")))
