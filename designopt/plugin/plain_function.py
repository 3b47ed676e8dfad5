"""A plain Python function as a model, without a declaration: its return values are the outputs."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from designopt.plugin.code import code_number
from designopt.plugin.declaration import model
from designopt.plugin.discovery import closest, make_models_of_functions_by, register
from designopt.plugin.kinds import ModelPlugin
from designopt.plugin.signature import quantity, source, typed_dict
from designopt.plugin.values import Field, PluginError

#: Output name of a function that returns one number.
VALUE = "value"


def as_model(function: Callable[..., Any]) -> ModelPlugin:
    """Declare `function` as a model with the function's name, and return the model.

    The function takes the design, and the scenario if it has a second argument, as mappings; or parameters by name:
    ``f(design)``, ``f(design, scenario)``, ``f(stiffness, damping)``. It returns a mapping of numbers, or one number,
    named ``value``. `TypedDict` annotations apply, and so do those of parameters: ``stiffness: Annotated[float,
    Quantity("N/m")]``. Its version follows from its code, so that an edited function does not reuse earlier results;
    functions that it calls do not count. Raises `PluginError` for an unsupported signature.
    """
    declared_plugin = getattr(function, "__designopt__", None)
    if isinstance(declared_plugin, ModelPlugin):
        return declared_plugin
    if not isinstance(function, types.FunctionType):
        raise PluginError(f"a model is a function, or a decorated class, not {function!r}")
    name = re.sub(r"\W", "_", function.__name__).strip("_") or "function"
    parameters = list(inspect.signature(function).parameters.values())
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if not names:
        raise PluginError(f"model '{name}': the function takes no design; write def {name}(design): ...")
    arguments = {p.name: p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)

    def evaluate(design: Mapping[str, Any], scenario: Mapping[str, Any]) -> Any:
        if any(argument in design for argument in names):
            inputs = {**scenario, **design}
            if not takes_any:
                _check_names(name, arguments, design, inputs)
            answer = function(**{key: value for key, value in inputs.items() if takes_any or key in arguments})
        else:
            try:
                answer = function(design) if len(names) == 1 else function(design, scenario)
            except TypeError as error:
                if any(closest(key, list(arguments)) for key in design):  # misspelt, so not called by names
                    _check_names(name, arguments, design, {**scenario, **design})
                if f"'{type(design).__name__}'" in str(error):
                    raise _design_as_number_error(name, names[0], design) from error
                raise
            if isinstance(answer, Mapping) and any(value is design for value in answer.values()):
                raise _design_as_number_error(name, names[0], design)
        return answer if isinstance(answer, Mapping) else {VALUE: _number(answer, name)}

    evaluate.__module__, evaluate.__doc__ = function.__module__, function.__doc__
    model(name, version=code_number(function), unchecked=True)(evaluate)
    evaluate.__wrapped__ = function  # type: ignore[attr-defined]  # messages name the file of the function
    hints = typing.get_type_hints(function, include_extras=True)
    plugin: ModelPlugin = evaluate.__designopt__  # type: ignore[attr-defined]
    by_name = None if takes_any else _by_name(arguments, hints)
    plugin = replace(
        plugin,
        source=source(function),
        inputs=(typed_dict(hints.get(names[0])) if len(names) <= 2 else None) or by_name,
        conditions=plugin.conditions or by_name,
        outputs=typed_dict(hints.get("return")) or _one_number(hints.get("return")),
    )
    register(function, plugin)
    return plugin


def _by_name(arguments: Mapping[str, inspect.Parameter], hints: Mapping[str, Any]) -> dict[str, Field] | None:
    """The parameters that a function takes by name, if at least one has a `Quantity`. None is required: each may come
    from the design, the scenario, or a default."""
    fields = {name: Field(name, hints.get(name, Any), quantity(hints.get(name)), required=False) for name in arguments}
    return fields if any(field.quantity for field in fields.values()) else None


def _one_number(hint: Any) -> dict[str, Field]:
    """The output of a function that returns one number with a `Quantity`."""
    answer = quantity(hint)
    return {VALUE: Field(VALUE, hint, answer, required=True)} if answer else {}


def _check_names(
    name: str, arguments: Mapping[str, inspect.Parameter], design: Mapping[str, Any], inputs: Mapping[str, Any]
) -> None:
    """Reject a parameter that the function does not take: it would have no effect."""
    for key in design:
        if key not in arguments:
            raise TypeError(f"{name}() has no argument '{key}', which is in space{_suggestion(key, arguments)}")
    for key, parameter in arguments.items():
        if key not in inputs and parameter.default is parameter.empty:
            raise TypeError(
                f"{name}() needs '{key}', which is neither in space nor in a scenario{_suggestion(key, inputs)}"
            )


def _design_as_number_error(name: str, argument: str, design: Mapping[str, Any]) -> TypeError:
    """The error of a function that computes with the whole design as if it were one number."""
    first = next(iter(design), argument)
    return TypeError(
        f"{name}() has no argument '{first}', which is in space, so '{argument}' is the whole design, a mapping; "
        f"rename '{argument}', or write {argument}['{first}']"
    )


def _suggestion(name: str, names: Iterable[str]) -> str:
    near = closest(name, list(names))
    return f"; did you mean '{near}'?" if near else ""


def _number(answer: Any, name: str) -> float:
    try:
        return float(answer)
    except (TypeError, ValueError) as error:
        text = f"model '{name}' returned {type(answer).__name__}; return a number, or a mapping of names to numbers"
        raise TypeError(text) from error


make_models_of_functions_by(as_model)
