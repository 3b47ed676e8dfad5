"""The JSON Schema that `designopt show schema` prints serves editors: it accepts good studies and marks mistakes."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

import designopt
from designopt.cli import main
from designopt.study.language.yaml import parse
from designopt.study.remarks import inputs_at_defaults

ROOT = Path(__file__).parents[1]
TEMPLATES = ROOT / "designopt" / "templates"
STUDIES = {
    **{path.name: path.read_text() for path in sorted((ROOT / "studies").glob("*.yaml"))},
    **{
        str(path.relative_to(TEMPLATES)): path.read_text().replace("{{name}}", "mine")
        for path in sorted(TEMPLATES.rglob("*.yaml.template"))
    },
    "tutorial": re.findall(r"^```yaml .*?\n(.*?)^```$", (ROOT / "docs/tutorial.md").read_text(), re.DOTALL | re.M)[0],
}


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    printed = CliRunner().invoke(main, ["show", "schema"])
    assert printed.exit_code == 0
    return dict(json.loads(printed.output))


def mistakes(value: Any, schema: dict[str, Any]) -> list[str]:
    """Where `value` breaks the JSON Schema, and how."""
    errors = Draft202012Validator(schema).iter_errors(value)
    return [f"{error.json_path}: {error.message}" for error in errors]


def test_the_schema_is_a_valid_one(schema: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("name", STUDIES)
def test_the_studies_and_templates_that_come_along_are_accepted(name: str, schema: dict[str, Any]) -> None:
    data = parse(STUDIES[name], name).data()
    assert mistakes(data, schema) == []


@pytest.mark.parametrize(
    ("old", "new", "json_path"),
    [
        ("model:\n  use", "modell:\n  use", "$: Additional"),
        ("cycles: 20 ", "cycles: many ", "$.model: "),
        ("low: 12 kN/m", "lo: 12 kN/m", "$.space.stiffness: "),
        ("minimize: 1 - rho", "minimise: 1 - rho", "$.objectives"),
        ("population: 20", "populaton: 20", "$.stages[1].solver: "),
        ("timeout: 30 s", "timeouts: 30 s", "$.execution: Additional"),
        ("seed: 1 ", "seed: one ", "$.seed: "),
    ],
)
def test_mistakes_are_marked_at_their_place(old: str, new: str, json_path: str, schema: dict[str, Any]) -> None:
    text = STUDIES["damper.yaml.template"]
    assert old in text
    messages = mistakes(parse(text.replace(old, new, 1), "x").data(), schema)
    assert any(mistake.startswith(json_path) for mistake in messages), messages


def test_the_settings_of_a_plugin_file_are_in_the_schema(tmp_path: Path) -> None:
    file = tmp_path / "spring.py"
    file.write_text(
        "from typing import Annotated, TypedDict\nfrom designopt import Quantity as Q, model\n"
        "class Out(TypedDict):\n    y: Annotated[float, Q('m', 'travel')]\n"
        "@model('schema_spring', version=1)\n"
        "def spring(design, scenario, *, turns: Annotated[int, Q('', 'turns', ge=1)] = 5) -> Out:\n"
        "    return {'y': 1.0}\n"
    )
    printed = CliRunner().invoke(main, ["show", "schema", "--plugin", str(file)])
    described = json.loads(printed.output)["$defs"]["model.schema_spring"]
    assert "turns" in described["properties"]


@pytest.mark.parametrize(
    ("section", "value", "right"),
    [
        ("scenarios", {"use": "sobol", "count": 8, "scramble": True, "vary": {"friction": [0.3, "0.9"]}}, True),
        ("scenarios", {"use": "sobol", "count": 0}, False),
        ("scenarios", {"use": "sobol", "count": 8, "vary": {"friction": {"low": 0.3, "hihg": 0.9}}}, False),
        ("scenarios", {"use": "sobol", "count": 8, "vary": {"friction": [0.3, 0.6, 0.9]}}, False),
        ("scenarios", [{"name": "slow", "speed": "2 m/s"}, {"use": "table", "file": "trials.csv"}], True),
        ("scenarios", [{"speed": "2 m/s"}], False),
        ("report", {"choose": ["knee", {"topsis": {"norm": "minmax", "weights": {"mass": 2}}}]}, True),
        ("report", {"choose": [{"topsis": {"norm": "l7"}}]}, False),
        ("report", {"choose": [{"knee": {}, "robust": {}}]}, False),
        ("report", {"choose": [{"epsilon_constraint": {"of": "mass"}}]}, False),
        ("report", {"validate": {"scenarios": {"use": "random", "count": 4}}}, True),
    ],
)  # fmt: skip
def test_samples_and_rules_are_described_key_by_key(
    section: str, value: Any, right: bool, schema: dict[str, Any]
) -> None:
    data = {**parse(STUDIES["damper.yaml.template"], "x").data(), section: value}
    assert (mistakes(data, schema) == []) is right


def test_the_model_of_a_study_is_shown_with_the_inputs_that_its_settings_declare() -> None:
    of_plugin = CliRunner().invoke(main, ["show", "mechanism"]).output
    assert "design inputs: the settings decide; those of a study: designopt show FILE.yaml" in of_plugin
    of_study = CliRunner().invoke(main, ["show", str(ROOT / "studies" / "slider_crank.yaml")]).output
    row = r"^  rod +number +m +>= 0.15, <= 0.3 +from the pin to the piston$"
    assert re.search(row, of_study, re.MULTILINE), of_study


def test_inputs_that_a_study_leaves_at_a_default_are_named_with_value_and_unit() -> None:
    definition = designopt.load(ROOT / "studies" / "elbow_load.yaml").definition
    assert inputs_at_defaults(definition) == "inputs at the model's defaults: strength 1, exponent 2"
    definition = designopt.load(ROOT / "studies" / "andrews.yaml").definition
    assert inputs_at_defaults(definition) == "inputs at the model's defaults: stiffness 4530 N/m"
    assert inputs_at_defaults(designopt.load(ROOT / "studies" / "slider_crank.yaml").definition) == ""
