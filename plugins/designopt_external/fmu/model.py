"""The model ``fmu``: a Functional Mock-up Unit is simulated, and its signals are reduced to numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import field
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, Required, TypedDict

import numpy as np
from numpy.typing import NDArray

from designopt.plugin import (
    Array,
    Declaration,
    ForeignCode,
    InputFile,
    InvalidDesign,
    InvalidSetting,
    Permission,
    Quantity,
    model,
)
from designopt_external import reductions, signals
from designopt_external.fmu.description import Description, FmuVariable, UnusableFmu, describe, table
from designopt_external.fmu.instance import Experiment, Instance, unknown_variable_message, value_for
from designopt_external.fmu.starting_study import starting_study
from designopt_external.reductions import ReductionSection

TIME = "time"
#: Maximum number of steps of a simulation.
MOST_STEPS = 10_000_000


class FmuOutputSection(ReductionSection, total=False):
    """An output: a variable of the FMU and its reduction."""

    variable: Required[Annotated[str, Quantity("", "variable, by its name in the FMU or in the table of show")]]


class Conditions(TypedDict, total=False):
    """Conditions beside the inputs of the FMU."""

    signals: Annotated[InputFile, Quantity("", "table (CSV, MOT, STO) of the inputs over time in this scenario")]


@model("fmu", version=1)
class Fmu:
    """A Functional Mock-up Unit: the export of Modelica tools, Simulink and others (FMI 2.0 and 3.0, scalar variables).

    Its parameters and start values are design inputs, its inputs are conditions or columns of a table over time, its
    other variables are arrays over time; ``designopt show model.fmu`` prints them. A name in the FMU that is not a name
    of studies changes: ``spring.k[1]`` is ``spring_k_1``. An FMU is compiled code: allow it, ``--allow model.fmu``.
    """

    file: Annotated[InputFile, Quantity("", "the FMU")]
    outputs: Annotated[dict[str, FmuOutputSection], Quantity("", "results by name: a variable and its reduction")]
    kind: Annotated[
        Literal["", "co_simulation", "model_exchange"],
        Quantity("", "kind of simulation; default: the first that it has"),
    ] = ""
    start: Annotated[float | None, Quantity("s", "start of the simulation; default: that of the FMU")] = None
    stop: Annotated[float | None, Quantity("s", "end of the simulation; default: that of the FMU")] = None
    step: Annotated[float | None, Quantity("s", "step of samples and inputs; default: that of the FMU", gt=0)] = None
    tolerance: Annotated[float | None, Quantity("", "relative tolerance; default: that of the FMU", gt=0)] = None
    signals: Annotated[
        InputFile | None, Quantity("", "table (CSV, MOT, STO) of the inputs over time; default none")
    ] = None
    columns: Annotated[dict[str, str], Quantity("", "columns of 'signals' by input; default: of the same name")] = (
        field(default_factory=dict)
    )

    # ------------------------------------------------------------------------------------------------------- checks

    def check(self) -> Iterator[InvalidSetting]:
        """Return the mistakes in the settings, and those of the FMU."""
        try:
            about = describe(self.file)
        except UnusableFmu as error:
            yield InvalidSetting("file", str(error))
            return
        if self.kind and self.kind not in about.kinds:
            yield InvalidSetting("kind", f"the FMU has {' and '.join(about.kinds)} only; remove 'kind'")
            return
        yield from self._check_time(about)
        if not self.outputs:
            first = next(iter(about.signals), "VARIABLE")
            yield InvalidSetting("outputs", f"is empty; name a result, as in peak: {{variable: {first}, take: max}}")
        for name, section in self.outputs.items():
            at = f"outputs.{name}"
            if name in about.signals or name == TIME:
                yield InvalidSetting(at, f"is the name of an array over time; write another one, as in {name}_last")
            variable = about.find(section["variable"])
            if variable is None or not variable.varies or variable.is_text:
                yield InvalidSetting(f"{at}.variable", unknown_variable_message(section["variable"], about.signals))
            yield from reductions.check(section, at)
        inputs = self._inputs(about)
        yield from signals.check_columns(self.columns, inputs)
        if self.signals is not None:
            yield from self._check_signals(self.signals)

    def _check_time(self, description: Description) -> Iterator[InvalidSetting]:
        start, stop, step = self._times(description)
        for name, value in (("stop", stop), ("step", step)):
            if value is None:
                yield InvalidSetting(name, f"is missing, and the FMU has no default; write {name}: ... s")
                return
        assert stop is not None
        assert step is not None
        if stop <= start:
            yield InvalidSetting("stop", f"is {stop:g} s, not after the start at {start:g} s")
        elif (stop - start) / step > MOST_STEPS:
            yield InvalidSetting("step", f"gives {(stop - start) / step:.3g} steps; at most {MOST_STEPS}")
        elif self._kind(description) == "co_simulation" and description.fixed_step:
            count = (stop - start) / step
            if abs(count - round(count)) > 1e-6:
                yield InvalidSetting(
                    "stop",
                    f"the FMU has steps of one size only; {stop - start:g} s are {count:.6g} steps of {step:g} s",
                )

    def _check_signals(self, file: InputFile) -> Iterator[InvalidSetting]:
        about = describe(self.file)
        start, stop, _ = self._times(about)
        if stop is not None:
            yield from signals.check("signals", file, self._inputs(about), self.columns, start, stop)

    def check_scenario(self, conditions: Mapping[str, Any]) -> Iterator[InvalidSetting]:
        """Return the mistakes in the table of a scenario."""
        if "signals" in conditions:
            yield from self._check_signals(conditions["signals"])

    def _kind(self, description: Description) -> str:
        return self.kind or description.kinds[0]

    def _times(self, description: Description) -> tuple[float, float | None, float | None]:
        start = description.start if self.start is None else self.start
        stop = description.stop if self.stop is None else self.stop
        step = description.step if self.step is None else self.step
        if step is None and stop is not None:
            step = (stop - start) / 500.0
        return start, stop, step

    def _inputs(self, description: Description) -> dict[str, str]:
        """The units of the inputs over time, by label."""
        return {label: v.unit for label, v in description.with_role("input").items() if not v.is_text}

    def declares(self) -> Declaration:
        """Parameters and start values as inputs, inputs as conditions, signals as arrays."""
        about = describe(self.file)
        parameters, inputs = about.with_role("parameter"), about.with_role("input")
        outputs = {}
        for name, section in self.outputs.items():
            variable = about.find(section["variable"])
            assert variable is not None
            meaning = section.get("meaning", "") or variable.quantity.description
            outputs[name] = Quantity(reductions.unit_of(section, variable.unit), meaning)
        arrays = {TIME: Array((TIME,), "s", "", "float")}
        arrays |= {label: Array((TIME,), v.unit, v.quantity.description, "float") for label, v in about.signals.items()}
        texts = {label for label, v in {**parameters, **inputs}.items() if v.is_text}
        return Declaration(
            inputs={label: v.quantity for label, v in parameters.items()},
            conditions={label: v.quantity for label, v in inputs.items()},
            outputs=outputs,
            arrays=arrays,
            optional=frozenset([*parameters, *inputs]) | reductions.may_be_missing(self.outputs),
            texts=frozenset(texts),
        )

    @staticmethod
    def file_table(file: InputFile) -> str:
        """The variables of an FMU for the terminal. Raises `UnusableFmu`."""
        return table(describe(file))

    @staticmethod
    def file_study(file: InputFile, name: str) -> str:
        """A study file of an FMU: its first parameters from half to one and a half times their start values, the
        magnitude of its first output. Raises `UnusableFmu`."""
        return starting_study(describe(file), name)

    # ---------------------------------------------------------------------------------------------------- execution

    def runs(self) -> Sequence[ForeignCode]:
        """The FMU."""
        return (ForeignCode(PurePosixPath(self.file.name.rpartition(":")[2]).name, in_study=True),)

    def prepare(self, permission: Permission) -> None:
        """Load the code of the FMU. Raises `CannotRun` if this machine cannot run it."""
        about = describe(self.file)
        start, stop, step = self._times(about)
        assert stop is not None
        assert step is not None
        tolerance = about.tolerance if self.tolerance is None else self.tolerance
        self._about = about
        self._instance = Instance(self.file, about, Experiment(self._kind(about), start, stop, step, tolerance))
        self._variables: dict[str, FmuVariable] = {}
        for name, section in self.outputs.items():
            variable = about.find(section["variable"])
            assert variable is not None
            self._variables[name] = variable

    def evaluate(
        self, design: Mapping[str, Any], scenario: Conditions, arrays: Set[str]
    ) -> tuple[Mapping[str, float], Mapping[str, NDArray[Any]]]:
        """The outputs and `arrays` of a simulation; a crossing that does not occur is infinite.

        Raises `Diverged` if the FMU ends with an error, `InvalidDesign` for a fraction where it has an integer.
        """
        about = self._about
        values = []
        for name, value in {**scenario, **design}.items():
            if name != "signals":
                variable = about.variables[name]
                try:
                    values.append((variable, value_for(variable, value)))
                except ValueError as error:
                    raise InvalidDesign(str(error)) from None
        file = scenario.get("signals", self.signals)
        inputs = None if file is None else signals.read(file, self._inputs(about), self.columns)
        signal_names = dict.fromkeys(v.label for v in self._variables.values())
        signal_names |= dict.fromkeys(name for name in sorted(arrays) if name != TIME)
        time, trajectories = self._instance.simulate(values, inputs, [about.variables[name] for name in signal_names])
        outputs = {
            name: reductions.reduce(section, time, trajectories[self._variables[name].label])
            for name, section in self.outputs.items()
        }
        kept_arrays = {name: time if name == TIME else np.asarray(trajectories[name]) for name in arrays}
        return outputs, kept_arrays
