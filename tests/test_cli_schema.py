"""The JSON Schema that `designopt show schema` prints serves editors: it accepts good studies and marks mistakes."""

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from designopt.cli import main
from designopt.study.language.yaml import parse

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


TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
}
LIMITS: dict[str, Callable[[Any, Any], bool]] = {
    "minimum": lambda v, limit: not TYPES["number"](v) or v >= limit,
    "maximum": lambda v, limit: not TYPES["number"](v) or v <= limit,
    "exclusiveMinimum": lambda v, limit: not TYPES["number"](v) or v > limit,
    "exclusiveMaximum": lambda v, limit: not TYPES["number"](v) or v < limit,
    "minItems": lambda v, limit: not isinstance(v, list) or len(v) >= limit,
    "maxItems": lambda v, limit: not isinstance(v, list) or len(v) <= limit,
    "minLength": lambda v, limit: not isinstance(v, str) or len(v) >= limit,
    "maxLength": lambda v, limit: not isinstance(v, str) or len(v) <= limit,
    "pattern": lambda v, limit: not isinstance(v, str) or re.search(limit, v) is not None,
    "minProperties": lambda v, limit: not isinstance(v, dict) or len(v) >= limit,
    "maxProperties": lambda v, limit: not isinstance(v, dict) or len(v) <= limit,
    "enum": lambda v, limit: any(v == e and isinstance(v, bool) == isinstance(e, bool) for e in limit),
    "const": lambda v, limit: bool(v == limit),
    "type": lambda v, limit: any(TYPES[t](v) for t in ([limit] if isinstance(limit, str) else limit)),
}
SAYS_NOTHING = {"$schema", "$defs", "title", "description", "default", "format", "examples", "properties", "items"}


def mistakes(value: Any, rule: Any, root: Any, path: str = "$") -> Iterator[str]:
    """Where `value` breaks the JSON Schema `rule`: the keywords that ours uses, as the 2020-12 draft defines them."""
    if isinstance(rule, bool):
        if not rule:
            yield path
        return

    def fits(other: Any) -> bool:
        return not list(mistakes(value, other, root, path))

    for keyword, limit in rule.items():
        if keyword in LIMITS:
            if not LIMITS[keyword](value, limit):
                yield f"{path} ({keyword})"
        elif keyword == "$ref":
            yield from mistakes(value, root["$defs"][limit.removeprefix("#/$defs/")], root, path)
        elif keyword in ("anyOf", "oneOf"):
            count = sum(map(fits, limit))
            if count == 0 or (keyword == "oneOf" and count > 1):
                yield f"{path} ({keyword})"
        elif keyword == "allOf":
            for other in limit:
                yield from mistakes(value, other, root, path)
        elif keyword == "not":
            if fits(limit):
                yield f"{path} (not)"
        elif keyword == "required":
            yield from (f"{path}.{k} (required)" for k in limit if isinstance(value, dict) and k not in value)
        elif keyword == "additionalProperties":
            known = rule.get("properties", {})
            for k in value if isinstance(value, dict) else ():
                if k not in known:
                    yield from mistakes(value[k], limit, root, f"{path}.{k}")
        elif keyword not in SAYS_NOTHING and not keyword.startswith("x-"):
            raise AssertionError(f"JSON Schema keyword {keyword}: teach it to this test")
    for k, other in rule.get("properties", {}).items() if isinstance(value, dict) else ():
        if k in value:
            yield from mistakes(value[k], other, root, f"{path}.{k}")
    for i, item in enumerate(value if isinstance(value, list) and "items" in rule else ()):
        yield from mistakes(item, rule["items"], root, f"{path}.{i}")


@pytest.mark.parametrize("name", STUDIES)
def test_the_studies_and_templates_that_come_along_are_accepted(name: str, schema: dict[str, Any]) -> None:
    data = parse(STUDIES[name], name).data()
    assert list(mistakes(data, schema, schema)) == []
    with contextlib.suppress(ImportError):  # where it happens to be installed
        from jsonschema import Draft202012Validator  # type: ignore[import-not-found, unused-ignore]

        Draft202012Validator.check_schema(schema)
        assert [error.message for error in Draft202012Validator(schema).iter_errors(data)] == []


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("model:\n  use", "modell:\n  use", "$.modell"),
        ("cycles: 20 ", "cycles: many ", "$.model (anyOf)"),
        ("low: 12 kN/m", "lo: 12 kN/m", "$.space.stiffness.lo"),
        ("minimize: 1 - rho", "minimise: 1 - rho", "$.objectives.0.minimise"),
        ("population: 20", "populaton: 20", "$.stages.1.solver (anyOf)"),
        ("timeout: 30 s", "timeouts: 30 s", "$.execution.timeouts"),
        ("seed: 1 ", "seed: one ", "$.seed"),
    ],
)
def test_mistakes_are_marked_at_their_place(old: str, new: str, place: str, schema: dict[str, Any]) -> None:
    text = STUDIES["damper.yaml.template"]
    assert old in text
    found = list(mistakes(parse(text.replace(old, new, 1), "x").data(), schema, schema))
    assert any(mistake.startswith(place) for mistake in found), found


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
