"""The conformance test of models."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from designopt.plugin import Diverged, InvalidDesign, ModelPlugin, Permission, Use, with_declared
from designopt.plugin.permission import ready_model


def check_model(
    target: Any,
    settings: Mapping[str, Any] | None = None,
    designs: Sequence[Mapping[str, Any]] = ({},),
    *,
    scenarios: Sequence[Mapping[str, Any]] = ({},),
    refused: Sequence[Mapping[str, Any]] = (),
    diverging: Sequence[Mapping[str, Any]] = (),
    gradient_tolerance: float = 1e-5,
    allow: Sequence[str] = (),
) -> None:
    """Check the rules for models on `designs` (in the model's units) in each of `scenarios`.

    - The same design has the same result bit for bit, in any order, in this instance and in a new one.
    - Outputs and arrays are as declared, finite and with the declared axes (a ``NotRequired`` output may be missing, or
      infinite). Arguments and earlier results stay unchanged.
    - `InvalidDesign` is raised for each of `refused`, `Diverged` for each of `diverging`.
    - A stochastic model uses only its generator.
    - A ``gradient`` agrees with central differences of the outputs to `gradient_tolerance` times the larger of the two,
      plus the error of the differences (larger where outputs are noisy or have a kink).
    - A ``batch`` gives the results of `evaluate`, for any division of the designs.

    `allow` names the programs that the model may run. Raises `AssertionError` otherwise.
    """
    plugin = target if isinstance(target, ModelPlugin) else getattr(target, "__designopt__", None)
    if not isinstance(plugin, ModelPlugin):
        raise AssertionError(f"{target!r} is not a model plugin; decorate it with @designopt.plugin.model")
    unknown = sorted(set(settings or {}) - set(plugin.settings))
    if unknown:
        raise AssertionError(f"{plugin.name} has no setting '{unknown[0]}' (it has {', '.join(plugin.settings)})")
    use = with_declared(Use(plugin, settings or {}))
    plugin = use.plugin
    cases = [(d, s) for d in designs for s in scenarios]
    permission = Permission.from_options(allow)
    model = ready_model(use, permission)
    first, copies = [], []
    for case in cases:
        first.append(_answer(model, plugin, *case))
        _check_answer(plugin, case, *first[-1])
        copies.append(copy.deepcopy(first[-1]))
    for i in reversed(range(len(cases))):
        _check_same(
            plugin, cases[i], copies[i], first[i], "after others were evaluated: it shares its memory with them"
        )
        _check_same(plugin, cases[i], copies[i], _answer(model, plugin, *cases[i]), "when it is asked again")
        _check_same(
            plugin, cases[i], copies[i], _answer(ready_model(use, permission), plugin, *cases[i]), "in a new instance"
        )
        _check_gradient(plugin, model, cases[i], copies[i][0], gradient_tolerance)
    _check_batch(plugin, model, cases, copies, refused)
    no_answers = [(d, InvalidDesign) for d in refused] + [(d, Diverged) for d in diverging]
    for bad, error_type in no_answers:
        _check_raises(plugin, model, bad, scenarios[0], error_type)
    for i, case in enumerate(cases if no_answers else ()):
        _check_same(plugin, case, copies[i], _answer(model, plugin, *case), "after a design that it refused")


def _answer(model: Any, plugin: ModelPlugin, design: Mapping[str, Any], scenario: Mapping[str, Any]) -> tuple[Any, Any]:
    arguments = copy.deepcopy(dict(design)), copy.deepcopy(dict(scenario))
    if plugin.takes_arrays:
        outputs, arrays = model.evaluate(
            *arguments, frozenset(plugin.arrays), **_named_arguments(model, plugin, scenario)
        )
        bare, none = model.evaluate(*arguments, frozenset(), **_named_arguments(model, plugin, scenario))
        if none:
            raise AssertionError(f"{plugin.name} gives arrays ({', '.join(none)}) when none is wanted")
        if bare != outputs:
            raise AssertionError(f"{plugin.name} has other outputs when no arrays are wanted")
    else:
        outputs, arrays = model.evaluate(*arguments, **_named_arguments(model, plugin, scenario)), {}
    if arguments != (dict(design), dict(scenario)):
        raise AssertionError(f"{plugin.name} changes the design or scenario that it is given")
    return outputs, arrays


def _check_batch(
    plugin: ModelPlugin,
    model: Any,
    cases: Sequence[tuple[Any, Any]],
    expected_answers: Sequence[Any],
    refused: Sequence[Any],
) -> None:
    """Several designs in one call, rejected ones among them, against single evaluations."""
    if not plugin.has("batch"):
        return
    array_names = (frozenset(plugin.arrays),) if plugin.takes_arrays else ()
    calls = [*zip(cases, expected_answers, strict=True), *(((bad, cases[0][1]), None) for bad in refused)]
    for step in {1, 2, max(1, len(calls))}:
        for begin in range(0, len(calls), step):
            part = calls[begin : begin + step][::-1]
            designs, scenarios = zip(*(copy.deepcopy((dict(d), dict(s))) for (d, s), _ in part), strict=True)
            ready = {"prepared": [model.prepare_scenario(s) for s in scenarios]} if plugin.takes_prepared else {}
            answers = list(model.batch(list(designs), list(scenarios), *array_names, **ready))
            if len(answers) != len(part):
                raise AssertionError(f"{plugin.name}.batch gives {len(answers)} answers for {len(part)} designs")
            for (case, reference), answer in zip(part, answers, strict=True):
                if reference is None and not isinstance(answer, InvalidDesign):
                    raise AssertionError(f"{plugin.name}.batch answers design {dict(case[0])}, which it has to refuse")
                if reference is not None and isinstance(answer, BaseException):
                    raise AssertionError(f"{plugin.name}.batch raises {answer!r} for design {dict(case[0])}")
                if reference is not None:
                    single = answer if plugin.takes_arrays else (answer, {})
                    _check_same(plugin, case, reference, single, f"in a batch of {len(part)}")


def _named_arguments(model: Any, plugin: ModelPlugin, scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Named arguments of the model; random numbers come from one fixed seed."""
    arguments = {"prepared": model.prepare_scenario(scenario)} if plugin.takes_prepared else {}
    return arguments | ({"rng": np.random.default_rng(1)} if plugin.takes_rng else {})


def _check_gradient(
    plugin: ModelPlugin, model: Any, case: tuple[Any, Any], outputs: Mapping[str, Any], tolerance: float
) -> None:
    """The derivatives of the model against differences of its outputs."""
    if not plugin.has("gradient"):
        return
    design, scenario = case
    case_text = f"for design {dict(design)} in scenario {dict(scenario)}"
    try:
        arguments = copy.deepcopy(dict(design)), copy.deepcopy(dict(scenario))
        gradient = copy.deepcopy(model.gradient(*arguments, **_named_arguments(model, plugin, scenario)))
    except Diverged:
        return
    if arguments != (dict(design), dict(scenario)):
        raise AssertionError(f"{plugin.name}.gradient changes the design or scenario that it is given")
    beside: dict[tuple[str, float], Mapping[str, Any] | None] = {}
    for output, slopes in gradient.items():
        if output not in outputs:
            raise AssertionError(f"{plugin.name} gives the derivative of '{output}', which is none of its outputs")
        for name, slope in slopes.items():
            if name not in design or isinstance(design[name], (str, bool)):
                raise AssertionError(
                    f"{plugin.name} gives the derivative of {output} by '{name}', which is no real input {case_text}"
                )
            differences = None
            if np.isfinite(slope):
                differences = _differences(plugin, model, design, scenario, output, name, beside)
            if (
                differences is not None
                and abs(slope - differences[0]) > tolerance * max(abs(slope), abs(differences[0])) + differences[1]
            ):
                raise AssertionError(
                    f"{plugin.name} gives the derivative of {output} by {name} as {float(slope):.9g} {case_text}; "
                    f"central differences give {differences[0]:.9g}"
                )


def _differences(
    plugin: ModelPlugin,
    model: Any,
    design: Mapping[str, Any],
    scenario: Mapping[str, Any],
    output: str,
    name: str,
    beside: dict[tuple[str, float], Mapping[str, Any] | None],
) -> tuple[float, float] | None:
    """The derivative by central differences with one step and its half, extrapolated, and its error.

    None if a neighbouring design has no result. `beside` stores the outputs of such designs, by the input that
    differs and its value: they serve all outputs.
    """
    step = 1e-3 * (abs(float(design[name])) or 1.0)
    slopes, size = [], 0.0
    for h in (step, step / 2.0):
        ends = []
        for side in (1.0, -1.0):
            value = float(design[name]) + side * h
            if (name, value) not in beside:
                beside[name, value] = _outputs(model, plugin, {**design, name: value}, scenario)
            outputs = beside[name, value]
            if outputs is None or output not in outputs:
                return None
            ends.append(float(outputs[output]))
        slopes.append((ends[0] - ends[1]) / (2.0 * h))
        size = max(size, *map(abs, ends))
    slope = (4.0 * slopes[1] - slopes[0]) / 3.0  # without the second-order error, Richardson (1911)
    rounding = 10.0 * np.finfo(float).eps * size / step
    return slope, abs(slope - slopes[1]) / 10.0 + rounding


def _outputs(
    model: Any, plugin: ModelPlugin, design: Mapping[str, Any], scenario: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """The outputs alone, None if the design has none."""
    array_names = (frozenset[str](),) if plugin.takes_arrays else ()
    arguments = copy.deepcopy(dict(design)), copy.deepcopy(dict(scenario))
    try:
        answer = model.evaluate(*arguments, *array_names, **_named_arguments(model, plugin, scenario))
    except (Diverged, InvalidDesign, KeyError):
        return None
    return dict(answer[0] if plugin.takes_arrays else answer)


def _check_answer(plugin: ModelPlugin, case: Any, outputs: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    case_text = f"for design {dict(case[0])} in scenario {dict(case[1])}"
    required_outputs = {name for name, item in plugin.outputs.items() if item.required}
    for odd in sorted(required_outputs - set(outputs)):
        raise AssertionError(f"{plugin.name} gives no output '{odd}' {case_text}")
    for odd in sorted(set(outputs) - set(plugin.outputs)) if plugin.outputs else ():
        raise AssertionError(f"{plugin.name} gives an undeclared output '{odd}' {case_text}")
    for name, value in outputs.items():
        number = isinstance(value, (int, float, np.number, np.bool_)) and not np.isnan(value)
        infinite = name in plugin.outputs and name not in required_outputs  # a NotRequired output may be infinite
        if not number or not (infinite or np.isfinite(value)):
            raise AssertionError(f"{plugin.name} gives {name} = {value!r} {case_text}; an output is a finite number")
    if set(arrays) != set(plugin.arrays):
        odd = sorted(set(arrays) ^ set(plugin.arrays))[0]
        raise AssertionError(
            f"{plugin.name} gives {'an undeclared' if odd in arrays else 'no'} array '{odd}' {case_text}"
        )
    for name, value in arrays.items():
        axes = plugin.arrays[name].axes
        if np.ndim(value) != len(axes):
            raise AssertionError(f"{plugin.name}: array {name} has {np.ndim(value)} axes, declared are {axes}")


def _check_same(plugin: ModelPlugin, case: Any, reference: Any, answer: Any, when: str) -> None:
    for expected_part, answer_part in zip(reference, answer, strict=True):
        for name in expected_part.keys() | answer_part.keys():
            if (
                name not in expected_part
                or name not in answer_part
                or not _are_identical(expected_part[name], answer_part[name])
            ):
                was, is_now = expected_part.get(name), answer_part.get(name)
                text = "" if np.ndim(was) else f" ({was!r}, then {is_now!r})"
                raise AssertionError(f"{plugin.name} has another {name}{text} for design {dict(case[0])} {when}")


def _are_identical(a: Any, b: Any) -> bool:
    return np.shape(a) == np.shape(b) and np.asarray(a).tobytes() == np.asarray(b).tobytes()


def _check_raises(plugin: ModelPlugin, model: Any, design: Any, scenario: Any, error_type: type[Exception]) -> None:
    try:
        _answer(model, plugin, design, scenario)
    except error_type:
        return
    except AssertionError:
        raise
    except Exception as error:
        raise AssertionError(
            f"{plugin.name} raises {type(error).__name__} ({error}) for design {dict(design)}; "
            f"it has to raise {error_type.__name__}"
        ) from error
    raise AssertionError(f"{plugin.name} answers design {dict(design)}; it has to raise {error_type.__name__}")
