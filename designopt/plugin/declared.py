"""Inputs, outputs and arrays that a model declares from its settings or from files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, get_args, get_origin

from designopt.plugin.kinds import ModelPlugin, Use
from designopt.plugin.values import Array, Field, PluginError, Quantity


@dataclass(frozen=True)
class Declaration:
    """The result of a model's ``declares()``, in addition to its annotations: numbers by name with unit, meaning and
    range, and arrays. Inputs and outputs named in `optional` may be missing; inputs and conditions named in `texts` are
    words. `without` names annotated inputs that these settings do not have. `units` are those of annotated inputs,
    outputs and arrays that depend on the settings. `plots` are parts of the report, by name, that come first where a
    study names none."""

    inputs: Mapping[str, Quantity] = field(default_factory=dict)
    conditions: Mapping[str, Quantity] = field(default_factory=dict)
    outputs: Mapping[str, Quantity] = field(default_factory=dict)
    arrays: Mapping[str, Array] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    units: Mapping[str, str] = field(default_factory=dict)
    plots: tuple[str, ...] = ()


def with_declared(use: Use[ModelPlugin], built: Any = None) -> Use[ModelPlugin]:
    """`use` with the declarations of the model for its settings; `built` is an existing instance, if any.

    Raises `PluginError` for invalid names and for names that the annotations already contain, and the model's
    exceptions.
    """
    plugin = use.plugin
    if not plugin.has("declares"):
        return use
    declarations = (built if built is not None else use.build()).declares()
    if not isinstance(declarations, Declaration):
        raise PluginError(
            f"model '{plugin.name}': declares() must return a designopt.Declaration, not {declarations!r:.60}"
        )
    inputs, outputs = _fields(declarations.inputs, declarations), _fields(declarations.outputs, declarations)
    conditions = _fields(declarations.conditions, declarations)
    _check_names("input", inputs, plugin.inputs or {}, plugin)
    _check_names("condition", conditions, plugin.conditions or {}, plugin)
    _check_names("output", outputs, {**plugin.outputs, **declarations.arrays}, plugin)
    _check_names("array", declarations.arrays, {**plugin.arrays, **plugin.outputs}, plugin)
    plugin = in_units(_without_inputs(plugin, declarations.without), declarations.units)
    # what a study asks for by its settings comes first, in all tables
    every_output, arrays = {**outputs, **plugin.outputs}, {**plugin.arrays, **declarations.arrays}
    check_sentences(plugin.name, every_output, arrays)
    return Use(
        replace(
            plugin,
            inputs={**(plugin.inputs or {}), **inputs} if inputs or plugin.inputs is not None else None,
            conditions={**(plugin.conditions or {}), **conditions} if conditions else plugin.conditions,
            outputs=every_output,
            arrays=arrays,
            plots=declarations.plots,
        ),
        use.settings,
    )


def _without_inputs(plugin: ModelPlugin, names: frozenset[str]) -> ModelPlugin:
    """`plugin` without the annotated inputs `names`. Raises `PluginError` for a name that is not annotated."""
    if unknown := sorted(names - (plugin.inputs or {}).keys()):
        raise PluginError(f"model '{plugin.name}' declares that it is without '{unknown[0]}', which is not annotated")
    if not names:
        return plugin
    return replace(plugin, inputs={n: item for n, item in (plugin.inputs or {}).items() if n not in names})


def in_units(plugin: ModelPlugin, units: Mapping[str, str]) -> ModelPlugin:
    """`plugin` with the `units` of annotated numbers by name. Raises `PluginError` for a name that is not annotated."""
    if unknown := sorted(units.keys() - {*(plugin.inputs or {}), *plugin.outputs, *plugin.arrays}):
        raise PluginError(f"model '{plugin.name}' declares the unit of '{unknown[0]}', which is not annotated")

    def converted(fields: Mapping[str, Field]) -> dict[str, Field]:
        result = dict(fields)
        for name in units.keys() & fields.keys():
            item = fields[name]
            quantity = replace(item.quantity or Quantity(), unit=units[name])
            hint = item.annotation
            bare = get_args(hint)[0] if get_origin(hint) is Annotated else hint
            result[name] = replace(item, annotation=Annotated[bare, quantity], quantity=quantity)
        return result

    arrays = {name: replace(array, unit=units.get(name, array.unit)) for name, array in plugin.arrays.items()}
    inputs = None if plugin.inputs is None else converted(plugin.inputs)
    return replace(plugin, inputs=inputs, outputs=converted(plugin.outputs), arrays=arrays)


def check_sentences(model: str, outputs: Mapping[str, Field], arrays: Mapping[str, Array]) -> None:
    """Raises `PluginError` for an output of `model` that is `listed_by` something else than an array of text."""
    for name, output in outputs.items():
        listing = output.quantity.listed_by if output.quantity else ""
        if listing and (listing not in arrays or arrays[listing].dtype != "str"):
            reason = "has numbers; declare it with dtype='str'" if listing in arrays else "is not declared"
            raise PluginError(
                f"model '{model}': the output '{name}' is listed by the array '{listing}', which {reason}"
            )


def _fields(quantities: Mapping[str, Quantity], declarations: Declaration) -> dict[str, Field]:
    return {
        name: Field(
            name,
            Annotated[str if name in declarations.texts else float, quantity],
            quantity,
            name not in declarations.optional,
        )
        for name, quantity in quantities.items()
    }


def _check_names(kind: str, names: Mapping[str, Any], annotations: Mapping[str, Any], plugin: ModelPlugin) -> None:
    for name in names:
        if not isinstance(name, str) or not name.isidentifier():
            raise PluginError(
                f"model '{plugin.name}' declares an {kind} {name!r:.60}; a name has only letters, digits and"
                " underscores"
            )
        if name in annotations:
            raise PluginError(f"model '{plugin.name}' declares '{name}' twice")
