"""Decorators that declare plugins. What a plugin can do is read here, once, and stands in its `Plugin` from then on."""

from __future__ import annotations

import inspect
import types
import typing
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from designopt.plugin.discovery import register
from designopt.plugin.kinds import (
    AggregationPlugin,
    ExportPlugin,
    ModelPlugin,
    ObjectivePlugin,
    Plugin,
    ReportPlugin,
    SolverPlugin,
)
from designopt.plugin.signature import doc, keyword_settings, quantity, shape, source, typed_dict
from designopt.plugin.values import Array, Fidelity, PluginError

T = TypeVar("T", bound=Callable[..., Any])


def model(
    name: str,
    *,
    version: int,
    arrays: Mapping[str, Array] | None = None,
    fidelity: Fidelity | None = None,
    unchecked: bool = False,
) -> Callable[[T], T]:
    """Declare a model: ``f(design, scenario[, arrays][, rng], *, settings...)`` or a class with that `evaluate` method.

    `design` and `scenario` are mappings; annotate them with a `TypedDict` to have names and units checked. The
    returned mapping (a `TypedDict` too) names the outputs: numbers. A model that declares `arrays` receives the set of
    wanted array names as its third argument and returns ``(outputs, arrays)``.

    A model with randomness of its own has a last positional argument named ``rng`` and receives a
    `numpy.random.Generator` there, the only source of chance it may use. The generator's seed follows from the study's
    seed and the key of the evaluation: the same design in the same scenario has the same answer wherever and whenever
    it is computed, and another seed of the study makes other evaluations.

    A class may have ``declares()``, which gives a `Declared`: inputs, outputs and arrays that follow from its settings
    or from a file that they name. It is asked after ``check()``.

    A class may have ``prepare_scenario(conditions)``: what a scenario needs once (a recording read and filtered, a
    geometry). Its other methods then have an argument named ``prepared``, before ``rng``, and receive there what it
    gave; `batch` receives a sequence with that of each row. It is kept on a worker for the designs that follow, within
    a bound of memory, and is shared by scenarios with equal conditions: do not change it. What it raises is what
    `evaluate` would raise.

    A class may have ``gradient(design, scenario)`` (with a last ``rng``, if its `evaluate` takes one), which returns
    ``{output: {input: derivative}}`` in the model's units for the inputs of real value. It is called after `evaluate`
    for the same design, and only in studies with a solver that wants derivatives. An output or input left out, a value
    that is not finite, or `Diverged` mean that the derivative is not known.

    A class may have ``check()``, which raises `InvalidSetting` for settings that do not fit each other;
    ``check_space(parameters)`` and ``check_scenario(conditions)``, which give or raise `InvalidSetting` for parameters
    and scenarios that it cannot do with; and ``trajectory_problem(scenario)``, its evaluation as an optimal-control
    problem, for the solver ``collocation``. Its class attribute ``later_settings`` names settings that it has got
    since: studies that leave them at their defaults keep their keys.

    A class may have ``batch(designs, scenarios[, arrays])`` besides, and a class attribute `batch_size`, the number of
    evaluations that it likes to compute in one call. Row i is design i in scenario i; it returns a sequence with what
    `evaluate` would return for each row, or the exception that `evaluate` would raise. What it says of one row must not
    depend on the others.

    `fidelity` names settings that make an evaluation cheap, fewer intervals or cycles, and what it costs then. Solvers
    that learn from cheap evaluations (`gp`) ask for some; all results are of full ones.

    With ``unchecked=True`` outputs may be undeclared (tests and quick experiments only).
    """

    def declare(target: T) -> T:
        call, settings = shape(target)
        parameters = [p for p in inspect.signature(call).parameters.values() if p.name != "self"]
        positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        has = _optional_methods(target)
        takes_rng = any(p.name == "rng" for p in positional)
        takes_prepared = any(p.name == "prepared" for p in positional)
        special = ["prepared"] * takes_prepared + ["rng"] * takes_rng
        plain = len(positional) - len(special)
        if plain not in (2, 3) or [p.name for p in positional[plain:]] != special:
            raise PluginError(
                f"model '{name}': evaluate takes (design, scenario) or (design, scenario, arrays), followed by"
                " 'prepared' and 'rng'"
            )
        if takes_prepared != has("prepare_scenario"):
            raise PluginError(
                f"model '{name}': prepare_scenario(conditions) and the argument 'prepared' of evaluate need each other"
            )
        for p in parameters:
            if inspect.isclass(target) and p.kind is p.KEYWORD_ONLY and (p.name == "rng" or p.default is p.empty):
                raise PluginError(
                    f"model '{name}': evaluate has the keyword-only argument '{p.name}', which is never passed; "
                    + ("put it last, without the '*'" if p.name == "rng" else "settings of a class are its fields")
                )
        hints = typing.get_type_hints(call, include_extras=True)
        outputs = typed_dict(hints.get("return"))
        if isinstance(hints.get("return"), types.GenericAlias) and typing.get_origin(hints["return"]) is tuple:
            outputs = typed_dict(typing.get_args(hints["return"])[0])
        if not outputs and not unchecked and not has("declares"):
            raise PluginError(f"model '{name}': annotate its return value with a TypedDict of numbers with units")
        if taken := [output for output in outputs or {} if output.startswith("d(")]:
            raise PluginError(
                f"model '{name}': output '{taken[0]}': names that begin with 'd(' are reserved for derivatives"
            )
        if unknown := [setting for setting in (fidelity.settings if fidelity else ()) if setting not in settings]:
            raise PluginError(f"model '{name}': fidelity names '{unknown[0]}', which is not a setting")
        register(
            target,
            ModelPlugin(
                name,
                version,
                target,
                settings,
                doc(target),
                source=source(target),
                later_settings=_later_settings(target, settings, f"model '{name}'"),
                inputs=typed_dict(hints.get(positional[0].name)),
                conditions=typed_dict(hints.get(positional[1].name)),
                outputs=outputs or {},
                arrays=dict(arrays or {}),
                takes_arrays=plain == 3,
                takes_rng=takes_rng,
                takes_prepared=takes_prepared,
                has_batch=has("batch"),
                batch_size=_batch_size(name, target, takes_rng) if has("batch") else 1,
                has_gradient=has("gradient"),
                has_prepare=has("prepare"),
                has_check=has("check"),
                has_check_space=has("check_space"),
                has_check_scenario=has("check_scenario"),
                has_trajectory_problem=has("trajectory_problem"),
                has_declares=has("declares"),
                fidelity=fidelity,
            ),
        )
        return target

    return declare


def _optional_methods(target: Callable[..., Any]) -> Callable[[str], bool]:
    """Tells whether `target` is a class that has a method of a name."""
    return lambda name: inspect.isclass(target) and callable(getattr(target, name, None))


def _batch_size(name: str, target: Any, takes_rng: bool) -> int:
    size = getattr(target, "batch_size", 0)
    if not isinstance(size, int) or size < 1:
        raise PluginError(f"model '{name}': a model with 'batch' must declare 'batch_size', an integer of at least 1")
    if takes_rng:
        raise PluginError(
            f"model '{name}': a model with 'rng' has one generator for each evaluation and cannot have 'batch'"
        )
    return size


def _later_settings(target: Any, settings: Mapping[str, Any], what: str) -> tuple[str, ...]:
    later = tuple(getattr(target, "later_settings", ()))
    if hasattr(target, "added"):
        warnings.warn(f"{what}: 'added' is now called 'later_settings'", DeprecationWarning, stacklevel=4)
        later += tuple(target.added)
    for name in later:
        if name not in settings or settings[name].required:
            raise PluginError(f"{what}: later_settings names '{name}', which is not a setting with a default")
    return later


def objective(name: str, *, version: int) -> Callable[[T], T]:
    """Declare an objective: a function whose positional arguments name model outputs or arrays; returns a number.

    Annotate the return as ``Annotated[float, Quantity(unit, meaning)]``. Keyword-only arguments are settings.
    """

    def declare(target: T) -> T:
        parameters = inspect.signature(target).parameters.values()
        hints = typing.get_type_hints(target, include_extras=True)
        given = quantity(hints.get("return"))
        if given is None:
            raise PluginError(
                f"objective '{name}': annotate its return value: Annotated[float, Quantity(unit, meaning)]"
            )
        register(
            target,
            ObjectivePlugin(
                name,
                version,
                target,
                keyword_settings(target),
                doc(target),
                needs=tuple(p.name for p in parameters if p.kind is not p.KEYWORD_ONLY),
                unit=given.unit,
                source=source(target),
            ),
        )
        return target

    return declare


def solver(name: str, *, version: int) -> Callable[[T], T]:
    """Declare a solver: a class with ``solve(problem, evaluate, rng, start)``; its annotated fields are settings.

    It may have ``check(problem)``, which raises `InvalidSetting` for settings that do not fit the problem;
    ``minimum_budget(problem)``, the evaluations below which it cannot work; and the class attributes ``needs_budget``
    (it never ends by itself; False when absent), ``uses_start`` (False when it cannot make use of designs of an earlier
    stage), ``needs_objectives`` and ``needs_parameters`` (False when it works without), ``takes_designs`` (True for one
    whose settings ``designs`` and ``table`` give what it evaluates), ``objectives`` (``"one"``, ``"several"`` or
    ``"any"``, which is meant when absent) and ``wants_gradient`` (True to have the model's derivatives recorded with
    every evaluation of the study, see `Problem.gradients`; or a method without arguments that tells it for the
    settings), and ``wants_cheap`` in the same way (it asks `evaluate.cheap`, where the model has a `Fidelity`).

    ``unit_sample(dimension, rng)`` gives points of the unit cube: scenarios can be drawn with such a solver too.
    ``indices(problem, outcomes)`` gives sensitivity indices, which the report shows.

    A solver that solves programs instead of evaluating designs has ``program(problem)``, which gives a
    `designopt.problem.Programs`: it is built on every worker, and ``evaluate.programs`` has it solve what `solve` asks.

    `solve` may return a short sentence that says why it ended by itself, or None when there is nothing to say.
    """

    def declare(target: T) -> T:
        if not inspect.isclass(target) or not callable(getattr(target, "solve", None)):
            raise PluginError(f"solver '{name}': a solver is a class with solve(problem, evaluate, rng, start)")
        _, settings = shape(target)
        has = _optional_methods(target)
        objectives: Any = getattr(target, "objectives", "any")
        if objectives not in ("one", "several", "any"):
            raise PluginError(f"solver '{name}': 'objectives' must be 'one', 'several' or 'any', not {objectives!r}")
        wants, cheap = getattr(target, "wants_gradient", False), getattr(target, "wants_cheap", False)
        register(
            target,
            SolverPlugin(
                name,
                version,
                target,
                settings,
                doc(target),
                source=source(target),
                later_settings=_later_settings(target, settings, f"solver '{name}'"),
                needs_budget=bool(getattr(target, "needs_budget", False)),
                uses_start=bool(getattr(target, "uses_start", True)),
                needs_objectives=bool(getattr(target, "needs_objectives", True)),
                needs_parameters=bool(getattr(target, "needs_parameters", True)),
                takes_designs=bool(getattr(target, "takes_designs", False)),
                objectives=objectives,
                gradient=None if callable(wants) else bool(wants),
                cheap=None if callable(cheap) else bool(cheap),
                has_check=has("check"),
                has_minimum_budget=has("minimum_budget"),
                has_program=has("program"),
                has_unit_sample=has("unit_sample"),
                has_indices=has("indices"),
            ),
        )
        return target

    return declare


def aggregation(name: str, *, version: int, weights: Callable[..., Any] | None = None) -> Callable[[T], T]:
    """Declare an aggregation: ``f(values, *, settings...)`` (designs, scenarios) to (designs,); larger is worse.

    `weights`, with the same arguments, gives its derivative by each of the values (designs, scenarios). Without it
    solvers that use gradients take differences.
    """
    return _declare(AggregationPlugin, name, version, weights=weights)


def report(name: str, *, version: int) -> Callable[[T], T]:
    """Declare a part of the report: ``f(result, *, settings...)`` that returns a `designopt.report.Section` or None."""
    return _declare(ReportPlugin, name, version)


def exporter(name: str, *, version: int, packages: tuple[str, ...] = (), extra: str = "") -> Callable[[T], T]:
    """Declare an export format: ``f(result, folder, prefix, *, settings...)``, which writes files and returns their
    paths.

    `result` is a `designopt.store.result.Result`, `folder` exists, `prefix` begins each file's name. `packages` are the
    libraries that it imports beyond what designopt requires, by import name; a study that exports to it is refused with
    the command that installs `extra` where one is missing. It raises `designopt.exports.ExportError`, with a
    sentence, when a result has nothing to write in this format.
    """
    return _declare(ExportPlugin, name, version, packages=packages, extra=extra)


def _declare(kind: Callable[..., Plugin], name: str, version: int, **options: Any) -> Callable[[T], T]:
    def declare(target: T) -> T:
        _, settings = shape(target)
        register(target, kind(name, version, target, settings, doc(target), source=source(target), **options))
        return target

    return declare
