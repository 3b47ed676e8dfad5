"""Decorators that declare plugins. They read the capabilities of a plugin once and store them in its `Plugin`."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from designopt.plugin.declared import check_sentences
from designopt.plugin.discovery import register
from designopt.plugin.kinds import (
    AggregationPlugin,
    ExportPlugin,
    Method,
    ModelPlugin,
    ObjectivePlugin,
    Plugin,
    ReportPlugin,
    SolverPlugin,
)
from designopt.plugin.signature import doc, keyword_settings, quantity, shape, source, typed_dict
from designopt.plugin.values import Array, Fidelity, Field, PluginError

T = TypeVar("T", bound=Callable[..., Any])

#: Attributes of the class of a solver that are fields of its plugin.
SOLVER_ATTRIBUTES = (
    "needs_budget", "uses_start", "needs_objectives", "needs_parameters", "suits_parameters", "takes_designs",
    "objectives",
)  # fmt: skip


def model(
    name: str,
    *,
    version: int,
    arrays: Mapping[str, Array] | None = None,
    fidelity: Fidelity | None = None,
    unchecked: bool = False,
) -> Callable[[T], T]:
    """Declare a model: ``f(design, scenario[, arrays][, rng], *, settings...)`` or a class with such an `evaluate`
    method.

    `design` and `scenario` are mappings; with a `TypedDict` annotation their names and units are checked. The returned
    mapping (also a `TypedDict`) contains the outputs, which are numbers. A model that declares `arrays` receives the
    set of requested array names as third argument and returns ``(outputs, arrays)``.

    A stochastic model has a last positional argument ``rng`` and receives a `numpy.random.Generator`, its only
    permitted source of randomness. The generator's seed follows from the study's seed and the key of the evaluation:
    the same design in the same scenario has the same result on any worker at any time, and another seed of the study
    gives other evaluations.

    Optional methods of a class:

    ``declares()`` returns a `Declaration`: inputs, outputs and arrays that depend on the settings or on a file among
    them. It is called after ``check()``.

    ``runs()`` returns the programs and compiled files that the model runs outside Python, each as a `ForeignCode`; such
    a class has ``prepare(permission)``, which is called only if the user has allowed all of them. Its `evaluate` raises
    `ProgramFailed` when one of them fails.

    ``write_files(folder, values)`` writes the input files of a design, with its inputs and conditions by name; such a
    model may have an array ``folder``, the files of an evaluation as a compressed tar archive.

    The static methods ``file_table(file)`` and ``file_study(file, name)`` of a model that is named after the suffix of
    its model files (``fmu``) return a table of such a file as text, and a study of it: ``designopt show model.fmu``,
    ``designopt new model.fmu``. They must not run anything.

    ``prepare_scenario(conditions)`` returns what a scenario needs once (a filtered recording, a geometry). The other
    methods then have an argument ``prepared``, before ``rng``, and receive this object; `batch` receives a sequence
    with one per row. A worker keeps it for the next designs, within a memory limit, and scenarios with equal conditions
    share it: do not modify it. Its exceptions count as those of `evaluate`.

    ``gradient(design, scenario)`` (with a last ``rng`` if `evaluate` has one) returns ``{output: {input: derivative}}``
    in the model's units for real-valued inputs. It is called after `evaluate` of the same design, and only if a solver
    of the study uses derivatives. A missing output or input, a value that is not finite, or `Diverged` means that the
    derivative is not available.

    ``check()`` returns or raises `InvalidSetting` for inconsistent settings. ``check_space(parameters)`` and
    ``check_scenario(conditions)`` return or raise `InvalidSetting` for unsupported parameters and scenarios.
    ``remarks(conditions)`` returns sentences about a valid scenario and its files, for the terminal and the report;
    ``study_remarks(parameters, judged)`` about a study that varies these inputs and has these outputs in objectives and
    limits (a mapping to the minimum and maximum of the output itself, None without one), for the terminal and beside
    the answer. ``design_remarks(design, scenarios)`` returns sentences about the recommended design, to stand with it.
    ``trajectory_problem(scenario)`` returns the evaluation as an optimal-control problem for the solver
    ``collocation``. ``solve_design`` takes the mesh of an evaluation from the settings of that solver; the class
    attribute ``own_options = True`` states that evaluations do not depend on them. The class attribute
    ``later_settings`` names settings added in later versions: studies that leave them at their defaults keep their
    keys.

    ``batch(designs, scenarios[, arrays])``, with a class attribute `batch_size`, the preferred number of evaluations
    per call, evaluates design i in scenario i for each row i. It returns a sequence with the result of `evaluate` for
    each row, or the exception that `evaluate` would raise. Rows must not depend on each other.

    `fidelity` gives settings that make an evaluation cheap (fewer intervals or cycles) and its cost. Solvers that learn
    from cheap evaluations (`gp`) request some; all reported results come from full evaluations.

    With ``unchecked=True`` outputs may be undeclared (tests and quick experiments only). Raises `PluginError` for an
    invalid declaration.
    """

    def declare(target: T) -> T:
        call, settings = shape(target)
        parameters = [p for p in inspect.signature(call).parameters.values() if p.name != "self"]
        positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        methods = _optional_methods(target)
        takes_rng = any(p.name == "rng" for p in positional)
        takes_prepared = any(p.name == "prepared" for p in positional)
        special = ["prepared"] * takes_prepared + ["rng"] * takes_rng
        plain = len(positional) - len(special)
        if plain not in (2, 3) or [p.name for p in positional[plain:]] != special:
            raise PluginError(
                f"model '{name}': evaluate takes (design, scenario) or (design, scenario, arrays), followed by"
                " 'prepared' and 'rng'"
            )
        if takes_prepared != ("prepare_scenario" in methods):
            raise PluginError(
                f"model '{name}': prepare_scenario(conditions) and the argument 'prepared' of evaluate need each other"
            )
        permits = "prepare" in methods and "permission" in inspect.signature(target.prepare).parameters  # type: ignore[attr-defined]
        if "runs" in methods and not permits:
            raise PluginError(f"model '{name}': a class with runs() has prepare(permission)")
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
        if not outputs and not unchecked and "declares" not in methods:
            without = (
                "" if inspect.isclass(target) else "; or leave out @model: a plain function has outputs without units"
            )
            raise PluginError(
                f"model '{name}': annotate its return value with a TypedDict of numbers with units{without}"
            )
        if reserved_names := [output for output in outputs or {} if output.startswith("d(")]:
            raise PluginError(
                f"model '{name}': output '{reserved_names[0]}': names that begin with 'd(' are reserved for derivatives"
            )
        if "declares" not in methods:
            check_sentences(name, outputs or {}, arrays or {})
        if unknown := [setting for setting in (fidelity.settings if fidelity else ()) if setting not in settings]:
            raise PluginError(f"model '{name}': fidelity names '{unknown[0]}', which is not a setting")
        return _register(
            ModelPlugin,
            name,
            version,
            target,
            settings,
            later_settings=_later_settings(target, settings, f"model '{name}'"),
            inputs=typed_dict(hints.get(positional[0].name)),
            conditions=typed_dict(hints.get(positional[1].name)),
            outputs=outputs or {},
            arrays=dict(arrays or {}),
            takes_arrays=plain == 3,
            takes_rng=takes_rng,
            takes_prepared=takes_prepared,
            methods=methods,
            batch_size=_batch_size(name, target, takes_rng) if "batch" in methods else 1,
            takes_options="trajectory_problem" in methods and not getattr(target, "own_options", False),
            fidelity=fidelity,
        )

    return declare


def _optional_methods(target: Callable[..., Any]) -> frozenset[Method]:
    """The optional methods that `target` has, if it is a class."""
    names: tuple[Method, ...] = typing.get_args(Method) if inspect.isclass(target) else ()
    return frozenset(name for name in names if callable(getattr(target, name, None)))


def _batch_size(name: str, target: Any, takes_rng: bool) -> int:
    size = getattr(target, "batch_size", 0)
    if not isinstance(size, int) or size < 1:
        raise PluginError(f"model '{name}': a model with 'batch' must declare 'batch_size', an integer of at least 1")
    if takes_rng:
        raise PluginError(
            f"model '{name}': a model with 'rng' has one generator for each evaluation and cannot have 'batch'"
        )
    return size


def _later_settings(target: Any, settings: Mapping[str, Any], owner: str) -> tuple[str, ...]:
    later = tuple(getattr(target, "later_settings", ()))
    for name in later:
        if name not in settings or settings[name].required:
            raise PluginError(f"{owner}: later_settings names '{name}', which is not a setting with a default")
    return later


def objective(name: str, *, version: int) -> Callable[[T], T]:
    """Declare an objective: a function whose positional arguments name model outputs or arrays; returns a number.

    Annotate the return as ``Annotated[float, Quantity(unit, meaning)]``. Keyword-only arguments are settings. Raises
    `PluginError` without this annotation.
    """

    def declare(target: T) -> T:
        parameters = inspect.signature(target).parameters.values()
        hints = typing.get_type_hints(target, include_extras=True)
        answer = quantity(hints.get("return"))
        if answer is None:
            raise PluginError(
                f"objective '{name}': annotate its return value: Annotated[float, Quantity(unit, meaning)]"
            )
        needs = tuple(p.name for p in parameters if p.kind is not p.KEYWORD_ONLY)
        return _register(
            ObjectivePlugin, name, version, target, keyword_settings(target), needs=needs, unit=answer.unit
        )

    return declare


def solver(name: str, *, version: int) -> Callable[[T], T]:
    """Declare a solver: a class with ``solve(problem, evaluate, rng, start)``; its annotated fields are settings.

    `solve` may return a short sentence with the reason for its end, or None. Class attributes:

    - ``needs_budget``: the solver never ends by itself (default False).
    - ``uses_start``: it uses the designs of an earlier stage (default True).
    - ``needs_objectives``, ``needs_parameters``: False if it works without (default True).
    - ``suits_parameters``: number of free parameters below which a study with it is noted (default 1).
    - ``takes_designs``: its settings ``designs`` and ``table`` give the designs that it evaluates (default False).
    - ``objectives``: ``"one"``, ``"several"`` or ``"any"`` (default).
    - ``wants_gradient``: every evaluation of the study also records the model's derivatives, see
      `Problem.gradients` (default False). A method without arguments may compute it from the settings.
    - ``wants_cheap``: it calls `evaluate.cheap` if the model has a `Fidelity`; likewise.

    Optional methods: ``check(problem)`` raises `InvalidSetting` for settings that do not fit the problem;
    ``minimum_budget(problem)`` returns the minimum number of evaluations; ``unit_sample(dimension, rng)`` returns
    points (n, dimension) of the unit cube, so that the solver can also sample scenarios; ``indices(problem, outcomes)``
    returns sensitivity indices for the report.

    A solver that solves programs instead of evaluating designs has ``program(problem)``, which returns a
    `designopt.problem.Programs`. Every worker builds it, and ``evaluate.programs`` solves the programs that `solve`
    requests. Its ``evaluation_options()`` returns settings for `designopt.collocation.solve_design` in the evaluations
    of the study, by name.

    Raises `PluginError` for a class without `solve` or with an invalid attribute.
    """

    def declare(target: T) -> T:
        if not inspect.isclass(target) or not callable(getattr(target, "solve", None)):
            raise PluginError(f"solver '{name}': a solver is a class with solve(problem, evaluate, rng, start)")
        _, settings = shape(target)
        attributes = {key: getattr(target, key) for key in SOLVER_ATTRIBUTES if hasattr(target, key)}
        if (objectives := attributes.get("objectives", "any")) not in ("one", "several", "any"):
            raise PluginError(f"solver '{name}': 'objectives' must be 'one', 'several' or 'any', not {objectives!r}")
        wants, cheap = getattr(target, "wants_gradient", False), getattr(target, "wants_cheap", False)
        return _register(
            SolverPlugin,
            name,
            version,
            target,
            settings,
            later_settings=_later_settings(target, settings, f"solver '{name}'"),
            methods=_optional_methods(target),
            gradient=None if callable(wants) else bool(wants),
            cheap=None if callable(cheap) else bool(cheap),
            **attributes,
        )

    return declare


def aggregation(name: str, *, version: int, weights: Callable[..., Any] | None = None) -> Callable[[T], T]:
    """Declare an aggregation: ``f(values, *, settings...)``, (designs, scenarios) to (designs,); larger is worse.

    `weights`, with the same arguments, returns the derivatives with respect to the values (designs, scenarios). Without
    it, gradient-based solvers use finite differences.
    """
    return _declare(AggregationPlugin, name, version, weights=weights)


def report_part(
    name: str,
    *,
    version: int,
    arrays: Sequence[str] = (),
    lacks: Callable[[Any], str] | None = None,
    beside_answer: bool = False,
) -> Callable[[T], T]:
    """Declare a part of the report: ``f(result, *, settings...)`` that returns a `designopt.report.Section` or None.

    Without one of the stored `arrays` of the model it is empty; ``lacks(study)`` returns what else a study lacks for
    it, in a clause ("" if nothing). A study that names the part is then remarked on before it runs. With
    `beside_answer` the recommended design in its first figure stands beside the answer of a study that has the part.
    """
    return _declare(ReportPlugin, name, version, arrays=tuple(arrays), lacks=lacks, beside_answer=beside_answer)


def exporter(name: str, *, version: int, packages: tuple[str, ...] = (), extra: str = "") -> Callable[[T], T]:
    """Declare an export format: ``f(result, folder, prefix, *, settings...)``, which writes files and returns their
    paths.

    `result` is a `designopt.store.result.Result`, `folder` exists, `prefix` begins each file name. `packages` are the
    import names of libraries beyond the requirements of designopt. If one is missing, a study with this format is
    rejected with the command that installs `extra`. The function raises `designopt.exports.ExportError`, with a
    sentence, if a result has nothing to write in this format.
    """
    return _declare(ExportPlugin, name, version, packages=packages, extra=extra)


def _declare(kind: Callable[..., Plugin], name: str, version: int, **options: Any) -> Callable[[T], T]:
    return lambda target: _register(kind, name, version, target, shape(target)[1], **options)


def _register(
    kind: Callable[..., Plugin], name: str, version: int, target: T, settings: Mapping[str, Field], **options: Any
) -> T:
    """Register a plugin whose further fields are the `options`, and return its `target`."""
    register(target, kind(name, version, target, settings, doc(target), source=source(target), **options))
    return target
