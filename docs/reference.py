"""The reference pages of the documentation, made from the schema of study files and from the installed plugins."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from designopt.plugin import GROUPS, Kind, ModelPlugin, ObjectivePlugin, Plugin, find, installed_plugins
from designopt.study.language.checking.settings import SettingRow, rows
from designopt.study.sections.schema import schema

_TITLES: dict[Kind, str] = {
    "model": "Models",
    "objective": "Objectives",
    "solver": "Solvers",
    "aggregation": "Aggregations",
    "report": "Report parts",
    "export": "Export formats",
}


def study_reference() -> str:
    """Every key of a study file with its type, range and meaning, as Markdown."""
    whole = schema([])
    definitions: Mapping[str, Any] = whole["$defs"]
    required = set(whole["required"])
    parts = [
        "# Study file reference",
        "Made from the schema that checks study files; `designopt show schema` prints it for editors. "
        "[Study files](study_files.md) explains the sections, the [plugin reference](plugin_reference.md) lists the "
        "settings that stand beside `use:`. `NAME` is a name that you choose, `0` the place in a list; a number may "
        "carry a unit.",
    ]
    for name, section in whole["properties"].items():
        note = " (required)" if name in required else ""
        parts.append(f"## `{name}`{note}\n\n{_sentence(section['description'])}")
        body, path = _members(section, name, definitions)
        parts.append(_table(("key", "value", "unit", "range", "meaning"), _keys(body, path, definitions)))
    return "\n\n".join(part for part in parts if part) + "\n"


def _members(section: Mapping[str, Any], path: str, definitions: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """The member of a list or mapping, or the section itself; and how its keys are written."""
    forms = [_resolved(form, definitions) for form in section.get("anyOf", [section])]
    for form in forms:
        if form.get("type") == "array":
            return _members(_resolved(form["items"], definitions), f"{path}.0", definitions)
        if isinstance(form.get("additionalProperties"), Mapping):
            return _members(_resolved(form["additionalProperties"], definitions), f"{path}.NAME", definitions)
    keyed = [form for form in forms if form.get("properties")]
    if len(keyed) < 2:
        return keyed[0] if keyed else forms[0], path
    # Several kinds of mapping (a scenario, or a sample of them): the keys of all; False is a key that one may not have.
    keys = [(k, v) for form in keyed for k, v in form["properties"].items() if v is not False]
    merged = {k: next((v for n, v in keys if n == k and "description" in v), v) for k, v in keys}
    everywhere = set.intersection(*(set(form.get("required", ())) for form in keyed))
    return {"properties": merged, "required": sorted(everywhere)}, path


def _keys(section: Mapping[str, Any], path: str, definitions: Mapping[str, Any]) -> Iterable[tuple[str, ...]]:
    """A row for each key below `section`, keys of mappings within after their mapping."""
    for key, value in section.get("properties", {}).items():
        value = {**_resolved(value, definitions), **{k: v for k, v in value.items() if k == "description"}}
        here = f"{path}.{key}"
        needed = " (required)" if key in section.get("required", ()) else ""
        unit = next((str(v["x-unit"]) for v in _forms(value, definitions) if "x-unit" in v), "")
        unit = str(value.get("x-unit", unit))
        words = _words(value, definitions)
        meaning = _MEANINGS.get(here) or str(value.get("description", ""))
        yield f"`{here}`{needed}", words, unit, _range(value, definitions), meaning
        inner, below = _members(value, here, definitions)
        if inner.get("properties") and "enum" in inner["properties"].get("use", {"enum": []}):
            yield from _keys(inner, below, definitions)


def _forms(value: Mapping[str, Any], definitions: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [_resolved(form, definitions) for form in value.get("anyOf", [value])]


def _resolved(value: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = value.get("$ref")
    return definitions[reference.removeprefix("#/$defs/")] if reference else value


def _words(value: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    words = []
    for form in _forms(value, definitions):
        if "const" in form or "enum" in form:
            words += [f"`{item}`" for item in form.get("enum", [form.get("const")])]
        elif form.get("type") == "array":
            words.append(f"list of {_words(form['items'], definitions)}")
        elif isinstance(form.get("properties", {}).get("use"), Mapping) and "enum" not in form["properties"]["use"]:
            words.append("`{use: NAME, ...}`")
        elif isinstance(form.get("additionalProperties"), Mapping):
            words.append(f"mapping to {_words(form['additionalProperties'], definitions)}")
        else:
            kinds = form.get("type", "anything")
            kinds = [kinds] if isinstance(kinds, str) else kinds
            words += ["value"] if set(kinds) == _SCALAR else [_KINDS.get(kind, kind) for kind in kinds]
    if set(words) == {"number", "text"}:  # the text is the number with its unit
        words = ["number"]
    return " or ".join(dict.fromkeys(word for word in words if word != "null"))


_KINDS = {"integer": "integer", "string": "text", "boolean": "true or false", "object": "mapping"}
_SCALAR = {"string", "number", "boolean"}

#: Meanings of keys whose schema has none.
_MEANINGS = {
    "scenarios.0.name": "name of the scenario; of a sample, the first part of the names",
    "scenarios.0.seed": "seed of the sample; default: that of the study",
    "scenarios.0.vary.NAME.low": "lowest value; optional with mean: by default the limit that the model declares",
    "scenarios.0.vary.NAME.high": "highest value; optional with mean: by default the limit that the model declares",
    "scenarios.0.vary.NAME.scale": "whether the value or its logarithm is uniform; default linear",
    "scenarios.0.vary.NAME.type": "real numbers or integers; default: as the model declares",
    "scenarios.0.vary.NAME.values": "values with equal probability, instead of a range",
    "scenarios.0.vary.NAME.mean": "mean of a normal distribution, truncated at low and high",
    "scenarios.0.vary.NAME.deviation": "standard deviation of the normal distribution",
    "report.choose.0.robust": "the design with most neighbours within all limits; no settings",
    "report.choose.0.knee": "the design farthest below the line between the ends of the front; no settings",
    "report.choose.0.utopia": "the design nearest to the ideal point",
    "report.choose.0.utopia.norm": "how the distance is measured; default l2",
    "report.choose.0.utopia.weights": "by objective; default 1",
    "report.choose.0.topsis": "the design with the largest relative distance from the worst point",
    "report.choose.0.topsis.norm": "how objectives are scaled; default vector",
    "report.choose.0.topsis.weights": "by objective; default 1",
    "report.choose.0.weighted_tchebycheff": "the design with the smallest maximum weighted deviation from a reference",
    "report.choose.0.weighted_tchebycheff.weights": "by objective; default 1",
    "report.choose.0.weighted_tchebycheff.reference": "the point by objective; default: the best of each",
    "report.choose.0.epsilon_constraint": "the best design of one objective within limits on others",
    "report.choose.0.epsilon_constraint.of": "the objective to optimise",
    "report.choose.0.epsilon_constraint.within": "the worst acceptable value, by objective",
    "report.choose.0.nearest_to": "target values, by objective",
}


def _range(value: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    signs = {"exclusiveMinimum": "> ", "minimum": ">= ", "exclusiveMaximum": "< ", "maximum": "<= "}
    found = [
        f"{sign}{form[key]:g}" for form in _forms(value, definitions) for key, sign in signs.items() if key in form
    ]
    return ", ".join(dict.fromkeys(found))


# ---------------------------------------------------------------------------------------------------------- plugins


#: Pages of models, by the package that declares them.
_PACKAGES = {
    "designopt_knee": "Models: the knee",
    "designopt_regulator": "Models: controllers",
    "designopt_motion": "Models: motions",
    "designopt_mechanics": "Models: mechanics",
    "designopt_recordings": "Models: recordings",
    "designopt_laboratory": "Models: laboratories",
    "designopt_muscle": "Models: muscles",
    "designopt_wholebody": "Models: the whole body",
    "designopt_walking": "Models: walking",
    "designopt_external": "Models: external programs",
}


def plugin_reference(distribution: str = "designopt") -> dict[str, str]:
    """Every plugin that comes with `distribution`, with its settings, inputs and outputs: Markdown pages by file name.

    The first page lists all of them; the others have one kind each, and models those of one package.
    """
    pages: dict[str, list[Plugin]] = {}
    titles: dict[str, str] = {}
    for kind in GROUPS:
        for entry in installed_plugins(kind):
            if entry.distribution == distribution:
                name, title = _page(find(kind, entry.name), entry.entry.module.partition(".")[0])
                titles[name] = title
                pages.setdefault(name, []).append(find(kind, entry.name))
    parts = [
        "# Plugin reference",
        "Made from the plugins themselves; `designopt show NAME` prints the same. "
        "[Plugins](plugins.md) tells how to write one.",
    ]
    for name, plugins in pages.items():
        parts.append(f"## [{titles[name]}]({name})")
        parts.append(_table(("name", "what it is"), [(f"[`{p.name}`]({name}#{p.name})", _first(p)) for p in plugins]))
    return {"plugin_reference.md": "\n\n".join(parts) + "\n"} | {
        name: "\n\n".join([f"# {titles[name]}", *map(_plugin, plugins)]) + "\n" for name, plugins in pages.items()
    }


def _page(plugin: Plugin, package: str) -> tuple[str, str]:
    """File name and title of the page that a plugin stands on; which `package` declares."""
    if not isinstance(plugin, ModelPlugin):
        title = _TITLES[plugin.kind]
        return f"reference/{title.lower().replace(' ', '_')}.md", title
    return f"reference/models_{package.removeprefix('designopt_')}.md", _PACKAGES[package]


def _first(plugin: Plugin) -> str:
    """The first sentence of a description."""
    return _prose(re.split(r"(?<=[.])\s", " ".join(plugin.description.split()), maxsplit=1)[0])


def _plugin(plugin: Plugin) -> str:
    parts = [f"## `{plugin.name}` {{ #{plugin.name} }}", _prose(plugin.description)]
    tables: list[tuple[str, Sequence[SettingRow]]] = [("Settings", rows(plugin.settings))]
    if isinstance(plugin, ModelPlugin):
        tables += [
            ("Design inputs", rows(plugin.inputs or {})),
            ("Scenario conditions", rows(plugin.conditions or {})),
            ("Outputs", rows(plugin.outputs)),
        ]
    for title, lines in tables:
        if lines:
            cells = [
                (f"`{r.name}`", r.type, r.unit, r.default if title == "Settings" else "", r.range, r.meaning)
                for r in lines
            ]
            table = _table((title.lower(), "type", "unit", "default", "range", "meaning"), cells)
            parts.append(table)
    if isinstance(plugin, ModelPlugin) and plugin.arrays:
        cells = [(f"`{name}`", ", ".join(a.axes), a.unit, a.description) for name, a in plugin.arrays.items()]
        parts.append(_table(("arrays", "axes", "unit", "meaning"), cells))
    if isinstance(plugin, ObjectivePlugin):
        unit = f"; in {plugin.unit}" if plugin.unit else ""
        parts.append(f"Needs {', '.join(f'`{name}`' for name in plugin.needs)}{unit}.")
    return "\n\n".join(part for part in parts if part)


def _prose(text: str) -> str:
    """Markdown of a docstring: its double backticks become single ones."""
    return text.replace("``", "`")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table; columns that are empty in all rows are left out."""
    cells = [tuple(cell.replace("|", "\\|").replace("\n", " ") for cell in line) for line in lines]
    if not cells:
        return ""
    keep = [i for i in range(len(heads)) if any(line[i] for line in cells)]
    lined = [[heads[i] for i in keep], ["---"] * len(keep), *([line[i] for i in keep] for line in cells)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lined)
