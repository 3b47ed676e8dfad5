"""Evaluation of designs with a model, with the same code in this process and on workers."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import sysconfig
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.plugin import (
    CannotRun,
    Diverged,
    InvalidDesign,
    ModelPlugin,
    ObjectivePlugin,
    Permission,
    PluginError,
    ProgramFailed,
    Unusable,
    find,
)
from designopt.plugin.calling import code_of
from designopt.plugin.permission import ready_model
from designopt.problem import STATUSES, Problem, derivative_name
from designopt.workers.evaluation import return_values
from designopt.workers.evaluation.arrays import stored_arrays
from designopt.workers.evaluation.prepared_scenarios import PreparedScenarios
from designopt.workers.executor import Break, Chunk, ChunkResult, Position

OK, DIVERGED, NONFINITE, ERROR, TIMEOUT, CRASHED, LOST, INVALID, UNUSABLE = range(len(STATUSES))

#: Solves a chunk of programs; calls the given function with the position of each before it starts.
Solve = Callable[[Chunk, Callable[[int], None]], ChunkResult]

#: A model may run nothing outside Python unless the user allows it.
NO_PERMISSION = Permission()

#: Maximum length of error texts; longer ones lose their middle.
LONGEST_MESSAGE = 20_000


@dataclass(frozen=True)
class Evaluation:
    """One design in one scenario. `raise_location` is the position in the code at which an error was raised."""

    status: str
    outputs: Mapping[str, float]
    reason: str = ""
    message: str = ""
    raise_location: str = ""
    wall: float = 0.0
    cpu: float = 0.0
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether there is a result."""
        return self.status == "ok"


@dataclass(frozen=True)
class Evaluator:
    """The prepared `model` of a `problem`, and the `figures` computed from it; `code` names the model in messages."""

    problem: Problem
    model: Any
    figures: tuple[tuple[str, ObjectivePlugin, Any], ...]
    code: str
    programs: Solve | None = None
    prepared: PreparedScenarios | None = None
    required_outputs: tuple[str, ...] = ()
    cheap: Evaluator | None = None
    keeps_failed: tuple[str, ...] = ()

    @cached_property
    def plugin(self) -> ModelPlugin:
        """The declarations of the model."""
        return self.problem.model.plugin

    @cached_property
    def outputs(self) -> Mapping[str, bool]:
        """The declared outputs by name, with whether they are required."""
        return {name: f.required for name, f in self.plugin.outputs.items()}

    @classmethod
    def build(
        cls,
        problem: Problem,
        *,
        programs: Solve | None = None,
        required_outputs: tuple[str, ...] = (),
        permission: Permission = NO_PERMISSION,
    ) -> Evaluator:
        """Build the model of `problem` and its figures and call the model's `prepare`, and that of its cheap model.

        `programs` solves chunks of programs. `required_outputs` are the required outputs of a model that declares none.
        `permission` states what the model may run outside Python. Raises `PluginError`, in one line, if that fails;
        `CannotRun` without permission.
        """
        model = problem.model
        try:
            built = ready_model(model, permission)
        except CannotRun:
            raise
        except (Exception, SystemExit) as error:
            reason = f"{name_of(error)}: {text_of(error)}" + (f" ({position})" if (position := location(error)) else "")
            text = f"model '{model.plugin.name}' cannot be prepared: {reason}"
            raise PluginError(text) from error
        return cls(
            problem,
            built,
            tuple((name, use.plugin, use.build()) for name, use in problem.figures.items()),
            code_of(model.plugin),
            programs=programs,
            prepared=PreparedScenarios(built.prepare_scenario, problem.scenarios)
            if model.plugin.takes_prepared
            else None,
            required_outputs=required_outputs,
            cheap=None
            if problem.cheap is None
            else cls.build(problem.cheap, required_outputs=required_outputs, permission=permission),
            keeps_failed=permission.keeps_failed,
        )

    @classmethod
    def for_problem(
        cls, problem: Problem, programs: Solve | None = None, permission: Permission = NO_PERMISSION
    ) -> Evaluator:
        """The evaluator of `problem` in this process. Raises the exceptions of `build`."""
        return cls.build(problem, programs=programs, required_outputs=requested_by(problem), permission=permission)

    def evaluate(
        self,
        design: Mapping[str, Any],
        scenario: int = 0,
        arrays: Sequence[str] = (),
        *,
        seed: int | None = None,
        recording: bool = False,
    ) -> Evaluation:
        """Evaluate `design` (model units) in a scenario; `arrays` names the arrays to return. Failures are data.

        `seed` is that of the random numbers of a stochastic model (`evaluation_seed`). In a run (`recording`) a
        KeyboardInterrupt is the model's own: the user's stop requests arrive as `Break`. Raises `ValueError` for a
        missing seed.
        """
        if self.plugin.takes_rng and seed is None:
            raise ValueError("the model uses random numbers; give the evaluation's seed")

        def answer() -> Any:
            array_names = (self._array_names(arrays),) if self.plugin.takes_arrays else ()
            return self.model.evaluate(
                design, self.problem.scenarios[scenario].values, *array_names, **self._named_arguments(scenario, seed)
            )

        with self._with_options():
            return self._evaluation(answer, design, scenario, arrays, seed, recording)

    def _with_options(self) -> contextlib.AbstractContextManager[None]:
        """Within it, solves of the model have the options of the study's programs."""
        if not self.problem.evaluation_options:
            return contextlib.nullcontext()
        from designopt.collocation.design import with_study_settings

        return with_study_settings(self.problem.evaluation_options)

    def _named_arguments(self, scenario: int, seed: int | None) -> dict[str, Any]:
        """Named arguments of a model's methods: the prepared data of the scenario, and random numbers."""
        special: dict[str, Any] = {} if self.prepared is None else {"prepared": self.prepared.for_scenario(scenario)}
        return special | ({"rng": np.random.default_rng(seed)} if self.plugin.takes_rng else {})

    def _evaluation(
        self,
        answer: Callable[[], Any],
        design: Mapping[str, Any],
        scenario: int,
        arrays: Sequence[str],
        seed: int | None,
        recording: bool,
    ) -> Evaluation:
        """The evaluation for `answer`, which returns or raises the model's result for a design."""
        wall, cpu = time.perf_counter(), time.process_time()
        outputs: dict[str, float] = {}
        recorded_arrays: Mapping[str, NDArray[Any]] = {}
        try:
            status, reason, message, raise_location = OK, "", "", ""
            outputs, recorded_arrays, wrong = self._figures(answer(), arrays)
            if self.problem.gradients and not wrong:
                outputs.update(self._derivatives(design, scenario, seed))
            if wrong:
                status, reason = NONFINITE, wrong[0]
                message = ", ".join(f"{name} is {outputs[name]}" for name in wrong)
        except Diverged as error:
            status = UNUSABLE if isinstance(error, Unusable) else DIVERGED
            reason, message, raise_location = text_of(error.reason), text_of(error), ""
            try:
                recorded_arrays = stored_arrays(error.arrays, (*arrays, *self.keeps_failed), self.plugin.arrays)
            except (TypeError, ValueError) as wrong_array:
                status, reason, message = ERROR, name_of(wrong_array), f"{text_of(error)}; {text_of(wrong_array)}"
        except ProgramFailed as error:
            status, reason, message, raise_location = (
                STATUSES.index(error.status),
                text_of(error.reason),
                text_of(error),
                "",
            )
            with contextlib.suppress(TypeError, ValueError):  # the failure itself is what matters
                recorded_arrays = stored_arrays(error.arrays, (*arrays, *self.keeps_failed), self.plugin.arrays)
        except InvalidDesign as error:
            status, reason, message, raise_location = INVALID, "refused", text_of(error), ""
        except return_values.WrongAnswer as error:
            status, reason, message, raise_location = ERROR, "WrongAnswer", text_of(error), ""
        except Break:
            raise
        except BaseException as error:  # a model that calls sys.exit or raises KeyboardInterrupt must not end the run
            if isinstance(error, KeyboardInterrupt) and not recording:
                raise
            status, reason, message, raise_location = ERROR, name_of(error), traceback_of(error), location(error)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        return Evaluation(STATUSES[status], outputs, reason, message, raise_location, wall, cpu, recorded_arrays)

    def _array_names(self, arrays: Sequence[str]) -> frozenset[str]:
        """The arrays requested from the model: those to store and those for figures."""
        needs = {need for _, plugin, _ in self.figures for need in plugin.needs if need not in self.outputs}
        return frozenset({*arrays, *needs})

    def _figures(
        self, answer: Any, arrays: Sequence[str]
    ) -> tuple[dict[str, float], Mapping[str, NDArray[Any]], list[str]]:
        """Figures, requested arrays, and the names of required figures that are not finite."""
        returned_outputs, have = return_values.parts(answer, self.code) if self.plugin.takes_arrays else (answer, {})
        outputs = return_values.numbers(returned_outputs, self.outputs, self.required_outputs, self.code)
        wrong = [name for name, value in outputs.items() if self.outputs.get(name, True) and not math.isfinite(value)]
        if not wrong:
            for name, plugin, figure in self.figures:
                answer_of_figure = figure(*(_value_of(need, outputs, have) for need in plugin.needs))
                outputs[name] = value = return_values.figure(answer_of_figure, plugin)
                if not math.isfinite(value):
                    wrong.append(name)
        missing = [name for name in arrays if name not in have]
        if missing and not wrong:
            raise KeyError(f"the model did not return its array '{missing[0]}'")
        return outputs, stored_arrays(have, arrays, self.plugin.arrays), wrong

    def _derivatives(self, design: Mapping[str, Any], scenario: int, seed: int | None) -> dict[str, float]:
        """The model's derivatives with respect to the real parameters, by the names of their records."""
        try:
            gradient = self.model.gradient(
                design, self.problem.scenarios[scenario].values, **self._named_arguments(scenario, seed)
            )
        except Diverged:  # there is a result, but no derivative here
            return {}
        outputs = [name for name in gradient if name in self.outputs or not self.outputs]
        inputs = [p.name for p in self.problem.space.free if p.kind == "real"]
        return {
            derivative_name(output, name): float(gradient[output][name])
            for output in outputs
            for name in inputs
            if name in gradient[output]
        }

    def run(self, chunk: Chunk, begin: Callable[[int], None] | None = None) -> ChunkResult:
        """Evaluate a chunk: one after another, or as many together as the model accepts.

        `begin` is called with the position of each before it starts, with `Position.TOGETHER` before several.
        """
        if self.cheap is not None and chunk.cheap:
            return self.cheap.run(dataclasses.replace(chunk, cheap=False), begin)
        if self.programs is not None and chunk.programs:
            return self.programs(chunk, begin or (lambda position: None))
        n = len(chunk)
        status = np.empty(n, np.uint8)
        wall, cpu = np.empty(n), np.empty(n)
        rows: list[Mapping[str, float]] = []
        messages, arrays = {}, {}
        for i, evaluation in enumerate(self._evaluations(chunk, begin or (lambda position: None))):
            status[i] = STATUSES.index(evaluation.status)
            wall[i], cpu[i] = evaluation.wall, evaluation.cpu
            rows.append(evaluation.outputs)
            if evaluation.status != "ok":
                messages[i] = (evaluation.reason, evaluation.message, evaluation.raise_location)
            if evaluation.arrays:
                arrays[i] = evaluation.arrays
        names = self._names
        if self.problem.gradients or not self.outputs:
            names = tuple(dict.fromkeys([*names, *(name for row in rows for name in row)]))
        return ChunkResult(status, names, matrix(rows, names), wall, cpu, messages, arrays)

    def design(self, x: Sequence[float], scenario: int) -> dict[str, Any]:
        """The design `x` (d,) as the model's input in a scenario, or its neighbour there."""
        shift = self.problem.scenarios[scenario].shift
        return self.problem.space.design(self.problem.space.shifted(np.array([x]), shift)[0].tolist() if shift else x)

    def _evaluations(self, chunk: Chunk, begin: Callable[[int], None]) -> Iterator[Evaluation]:
        """The evaluations of a chunk in its order."""
        scenarios = chunk.scenarios.tolist()
        designs = [self.design(x, s) for x, s in zip(chunk.X.tolist(), scenarios, strict=True)]
        for first in range(0, len(designs), self.plugin.batch_size):
            rows = range(first, min(first + self.plugin.batch_size, len(designs)))
            if len(rows) > 1:
                begin(Position.TOGETHER)
                together = self._evaluate_together(
                    [designs[i] for i in rows], [scenarios[i] for i in rows], chunk.arrays
                )
                if together is not None:
                    yield from together
                    continue
            for i in rows:
                begin(i)
                seed = chunk.seeds[i] if self.plugin.takes_rng else None
                yield self.evaluate(designs[i], scenarios[i], chunk.arrays, seed=seed, recording=True)

    def _evaluate_together(
        self, designs: Sequence[Mapping[str, Any]], scenarios: Sequence[int], arrays: Sequence[str]
    ) -> list[Evaluation] | None:
        """Several evaluations in one call of the model; None if it raised: then each is evaluated alone."""
        wall, cpu = time.perf_counter(), time.process_time()
        array_names = (self._array_names(arrays),) if self.plugin.takes_arrays else ()
        try:
            ready = self.prepared
            special = {} if ready is None else {"prepared": [ready.for_scenario(s) for s in scenarios]}
            conditions = [self.problem.scenarios[s].values for s in scenarios]
            with self._with_options():
                answers = list(self.model.batch(designs, conditions, *array_names, **special))
        except Break:
            raise
        except BaseException:
            return None
        if len(answers) != len(designs):
            return None
        wall, cpu = (time.perf_counter() - wall) / len(answers), (time.process_time() - cpu) / len(answers)
        rows = zip(answers, designs, scenarios, strict=True)
        with self._with_options():
            evaluations = [self._evaluation(_returning(a), design, s, arrays, None, True) for a, design, s in rows]
        return [
            dataclasses.replace(evaluation, wall=evaluation.wall + wall, cpu=evaluation.cpu + cpu)
            for evaluation in evaluations
        ]

    @property
    def _names(self) -> tuple[str, ...]:
        """The figures of every evaluation; undeclared ones and derivatives are added."""
        return (*self.outputs, *(name for name, _, _ in self.figures)) if self.outputs else ()


def _returning(answer: Any) -> Callable[[], Any]:
    """Returns the model's result for one design of several, or raises it if it is an exception."""

    def give() -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return give


def requested_by(problem: Problem) -> tuple[str, ...]:
    """The outputs that objectives and limits need from a model that declares none."""
    expressions = [o.expression for o in problem.objectives] + [c.expression for c in problem.constraints]
    unknown_names = sorted({name for expression in expressions for name in expression.names} - problem.figures.keys())
    return () if problem.model.plugin.outputs else tuple(unknown_names)


def _value_of(name: str, outputs: Mapping[str, float], arrays: Mapping[str, Any]) -> Any:
    if name in outputs:
        return outputs[name]
    if name in arrays:
        return arrays[name]
    raise KeyError(f"the model returned neither an output nor an array '{name}'")


def matrix(rows: Sequence[Mapping[str, float]], names: tuple[str, ...]) -> NDArray[np.float64]:
    nan = math.nan
    return np.array([[row.get(name, nan) for name in names] for row in rows], float).reshape(len(rows), len(names))


def _frames(error: BaseException) -> traceback.StackSummary:
    """The traceback of an error: below this file's own frames, down to the last line outside libraries."""
    frames = traceback.extract_tb(error.__traceback__)
    plugins = Path(find.__code__.co_filename).parent  # the folder of the code that calls models
    theirs = [f for f in frames if f.filename != __file__ and Path(f.filename).parent != plugins]
    package = _package(theirs[0].filename) if theirs else ""
    while len(theirs) > 1 and _package(theirs[-1].filename) not in ("", package):
        theirs.pop()
    return traceback.StackSummary.from_list(theirs)


def _package(file: str) -> str:
    """The library of a file: an installed package, or Python's own; "" for the user's files."""
    parts = Path(file).parts
    if "site-packages" in parts:
        package = parts[parts.index("site-packages") + 1]
        return "" if package.startswith("designopt") else package
    return "python" if file.startswith((sysconfig.get_path("stdlib"), "<frozen")) else ""


def location(error: BaseException) -> str:
    """``drive.py:33``; "" if only code of designopt led to `error`."""
    return "".join(f"{Path(last.filename).name}:{last.lineno}" for last in _frames(error)[-1:])


def traceback_of(error: BaseException) -> str:
    """The traceback of the model's part, without columns and addresses, so that equal errors have equal texts."""
    frames = _frames(error) or traceback.extract_tb(error.__traceback__)
    lines = [f'  File "{Path(f.filename).name}", line {f.lineno}, in {f.name}\n' for f in frames]
    return text_of("".join(lines) + f"{name_of(error)}: {text_of(error)}")


def name_of(error: BaseException) -> str:
    """The class name of a model's exception, robust to any overrides."""
    return str(type.__dict__["__name__"].__get__(type(error)))


def text_of(value: object) -> str:
    """The text of a model's exception, in a form that the journal can store."""
    try:
        text = str.encode(str(value), "utf-8", "backslashreplace").decode()
    except Break:
        raise
    except BaseException as error:
        text = f"(its text cannot be had: {name_of(error)})"
    half = LONGEST_MESSAGE // 2
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:half]} ... {text[-half:]}"
