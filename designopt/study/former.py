"""Former names of settings, inputs, conditions and outputs of plugins (`Quantity.former`).

A study file may still use them, with a warning. Keys and stores use them, so that recorded results are found.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from designopt.plugin import Field, Kind, ModelPlugin, Plugin, PluginError, Use, find
from designopt.study.language.checking.part import as_part
from designopt.study.language.checking.values import members_of
from designopt.study.language.expressions.expression import renamed_text
from designopt.study.language.yaml import Node, Span
from designopt.study.study import Objective, Scenario, StudyConstraint, StudyDefinition

Item = TypeVar("Item", Objective, StudyConstraint)

# ------------------------------------------------------------------------------------------ keys and stores


def stored_settings(plugin: Plugin, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of `plugin`, as JSON data, by their names in keys and stores."""
    return _stored(plugin.settings, settings, back=False)


def present_settings(plugin: Plugin, stored: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of `stored_settings`."""
    return _stored(plugin.settings, stored, back=True)


def _former(entries: Mapping[str, Field]) -> dict[str, str]:
    """Former names by present ones."""
    return {name: entry.key_name for name, entry in entries.items() if entry.key_name != name}


def _stored(entries: Mapping[str, Field], data: Mapping[str, Any], *, back: bool) -> dict[str, Any]:
    former = _former(entries)
    present = {old: name for name, old in former.items()}
    renamed = {}
    for key, value in data.items():
        name = present.get(key, key)
        inner = members_of(entries[name].annotation) if name in entries and isinstance(value, Mapping) else {}
        renamed[name if back else former.get(key, key)] = _stored(inner, value, back=back) if inner else value
    return renamed


def stored_study(study: StudyDefinition) -> StudyDefinition:
    """`study` with the names in keys and stores for inputs, conditions and outputs of its model."""
    names = study.model.plugin.key_names
    stored = replace(
        study,
        objectives=tuple(_with_key_name(o, names) for o in study.objectives),
        constraints=tuple(_with_key_name(c, names) for c in study.constraints),
    )
    return _renamed_study(stored, names)


def present_study(stored: StudyDefinition) -> StudyDefinition:
    """The inverse of `stored_study`."""
    return _renamed_study(stored, {old: name for name, old in stored.model.plugin.key_names.items()})


def _renamed_study(study: StudyDefinition, names: Mapping[str, str]) -> StudyDefinition:
    if not names:
        return study

    def by_name(values: Mapping[str, Any]) -> dict[str, Any]:
        return {names.get(name, name): value for name, value in values.items()}

    def scenarios(present: Iterable[Scenario]) -> tuple[Scenario, ...]:
        return tuple(
            replace(
                scenario,
                values=by_name(scenario.values),
                shift=tuple(replace(s, parameter=names.get(s.parameter, s.parameter)) for s in scenario.shift),
            )
            for scenario in present
        )

    def with_designs(use: Use[Any]) -> Use[Any]:
        if not use.plugin.takes_designs:
            return use
        return Use(use.plugin, {**use.settings, "designs": [by_name(d) for d in use.settings.get("designs", ())]})

    tolerances, validate = study.tolerances, study.validate
    if tolerances is not None:
        renamed_tolerances = tuple(replace(t, parameter=names.get(t.parameter, t.parameter)) for t in tolerances.of)
        tolerances = replace(tolerances, of=renamed_tolerances)
    if validate is not None:
        validate = replace(validate, scenarios=scenarios(validate.scenarios))
    return replace(
        study,
        space=tuple(replace(p, name=names.get(p.name, p.name), when=by_name(p.when)) for p in study.space),
        scenarios=scenarios(study.scenarios),
        relations=tuple(relation.renamed(names) for relation in study.relations),
        objectives=tuple(replace(o, expression=o.expression.renamed(names)) for o in study.objectives),
        constraints=tuple(replace(c, expression=c.expression.renamed(names)) for c in study.constraints),
        stages=tuple(replace(stage, solver=with_designs(stage.solver)) for stage in study.stages),
        validate=validate,
        tolerances=tolerances,
    )


def _with_key_name(item: Item, names: Mapping[str, str]) -> Item:
    stored_name = key_name(item, names)
    return item if stored_name == item.name else replace(item, former=stored_name)


def key_name(item: Objective | StudyConstraint, names: Mapping[str, str]) -> str:
    """The name of an objective or constraint in keys: its output may have a former name."""
    return item.former or (names.get(item.name, item.name) if str(item.expression) == item.name else item.name)


def by_key_name(items: Iterable[Item], study: StudyDefinition) -> dict[str, Item]:
    """Objectives or constraints of `study` by their names in keys: renamed ones are the same in two studies."""
    names = study.model.plugin.key_names
    return {key_name(item, names): item for item in items}


# ---------------------------------------------------------------------------------------------- study files

#: Paths of plugin sections; "*" is every member of a list or mapping.
_PLUGINS: dict[tuple[str, ...], Kind] = {
    ("model",): "model",
    ("solver",): "solver",
    ("stages", "*", "solver"): "solver",
    ("figures", "*"): "objective",
    ("objectives", "*", "over"): "aggregation",
    ("constraints", "*", "over"): "aggregation",
    ("report", "plots", "*"): "report",
    ("report", "export", "*"): "export",
}
#: Paths of mappings whose keys are names of inputs.
_INPUTS = (
    ("space",),
    ("space", "*", "when"),
    ("baseline",),
    ("baseline", "*"),
    ("solver", "designs", "*"),
    ("stages", "*", "solver", "designs", "*"),
    ("report", "tolerances", "of"),
)
#: Paths of scenarios: a list of them, or one sample.
_SCENARIOS = (("scenarios",), ("report", "validate", "scenarios"))
#: Paths of expressions and names of outputs.
_TEXTS = (
    ("relations", "*"),
    ("objectives", "*", "minimize"),
    ("objectives", "*", "maximize"),
    ("constraints", "*", "of"),
    ("scenarios", "as"),
    ("scenarios", "*", "as"),
    ("solver", "outputs", "*"),
    ("stages", "*", "solver", "outputs", "*"),
)


def with_present_names(root: Node) -> Node:
    """The data of a study with present names in place of former ones; a `FutureWarning` for each."""
    for path, kind in _PLUGINS.items():
        root = _at(root, path, functools.partial(_with_settings, kind=kind))
    plugin = _plugin((root.entries or {}).get("model", (None, None))[1], "model")
    if not isinstance(plugin, ModelPlugin) or not plugin.key_names:
        return root
    names = {old: name for name, old in plugin.key_names.items()}
    for path in _INPUTS:
        root = _at(root, path, lambda node: _with_former(node, names))
    for path in _SCENARIOS:
        root = _at(root, path, lambda node: _with_conditions(node, names))
    for path in (("objectives", "*"), ("constraints", "*")):
        root = _at(root, path, lambda node: _with_name(node, names))
    for path in _TEXTS:
        root = _at(root, path, lambda node: _with_text(node, names))
    return root


def _at(node: Node, path: tuple[str, ...], change: Callable[[Node], Node]) -> Node:
    """`node` with the node at `path` changed; the same node if nothing changes."""
    if not path:
        return change(node)
    step, rest = path[0], path[1:]
    if node.entries is not None:
        changed = {k: (s, _at(n, rest, change) if step in ("*", k) else n) for k, (s, n) in node.entries.items()}
        same = all(changed[key][1] is node.entries[key][1] for key in changed)
        return node if same else replace(node, entries=changed)
    if node.items is not None and step == "*":
        items = [_at(item, rest, change) for item in node.items]
        return node if all(map(lambda a, b: a is b, items, node.items)) else replace(node, items=items)
    return node


def _plugin(section: Node | None, kind: Kind) -> Plugin | None:
    """The plugin named by a section; None if unknown, which the check reports."""
    word = section.entries.get("use", (None, None))[1] if section is not None and section.entries else section
    name = None if word is None else word.scalar
    declared = as_part(name)
    if declared is not None:
        return declared.use if isinstance(declared.use, Plugin) else None
    try:
        return find(kind, name) if isinstance(name, str) else None
    except PluginError:
        return None


def _with_settings(section: Node, kind: Kind) -> Node:
    plugin = _plugin(section, kind)
    return section if plugin is None else _with_members(section, plugin.settings)


def _with_members(node: Node, members: Mapping[str, Field]) -> Node:
    """A mapping with the keys `members`, and the mappings in it."""
    node = _with_former(node, {old: name for name, old in _former(members).items()})
    for name in [name for name in node.entries or () if name in members]:
        inner = members_of(members[name].annotation)
        node = _at(node, (name,), functools.partial(_with_members, members=inner)) if inner else node
    return node


def _with_conditions(node: Node, names: Mapping[str, str]) -> Node:
    """Scenarios, or a sample of them, with the keys that are conditions renamed."""
    if node.entries is None:
        return _at(node, ("*",), lambda member: _with_conditions(member, names) if member.entries else member)
    if "use" not in node.entries:
        return _with_former(node, names)
    for key in ("vary", "with"):
        node = _at(node, (key,), lambda member: _with_former(member, names))
    return node


def _with_former(node: Node, names: Mapping[str, str]) -> Node:
    """A mapping with its former keys renamed. ``--set`` replaces the file's entry under the other name; in one file the
    former name beside the present one is an unknown key."""
    if node.entries is None:
        return node
    entries: dict[str, tuple[Span, Node]] = {}
    for key, (span, value) in node.entries.items():
        name = names.get(key, key)
        present_entry = node.entries.get(name) if name != key else None
        if present_entry is not None and present_entry[0].source is span.source:
            _warn(span, f"'{key}' is the former name of '{name}', which is also given")
            name = key
        elif name != key:
            _warn(span, f"'{key}' is now called '{name}'")
        entries[name] = (
            (span, present_entry[1].overlaid(value)) if present_entry is not None and name != key else (span, value)
        )
    return node if entries.keys() == node.entries.keys() else replace(node, entries=entries)


def _with_name(node: Node, names: Mapping[str, str]) -> Node:
    """An objective or constraint named after a former output name keeps the name, because the study may refer to it."""
    entries = node.entries or {}
    output_names = [n for key, (_, n) in entries.items() if key in ("minimize", "maximize", "of") and n.scalar in names]
    return (
        replace(node, entries={"name": (node.span, output_names[0]), **entries})
        if output_names and "name" not in entries
        else node
    )


def _with_text(node: Node, names: Mapping[str, str]) -> Node:
    text = node.scalar
    renamed = renamed_text(text, names) if isinstance(text, str) else text
    if renamed == text:
        return node
    for name in [name for name in names if renamed_text(text, {name: names[name]}) != text]:
        _warn(node.span, f"'{name}' is now called '{names[name]}'")
    return replace(node, scalar=renamed)


def _warn(span: Span, text: str) -> None:
    position = f"{span.source.name}:{span.line + 1}:{span.column + 1}: " if span.source.lines else ""
    warnings.warn(position + text, FutureWarning, stacklevel=2)
