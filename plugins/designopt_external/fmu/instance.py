"""One instance of an FMU, reset and used again for each simulation.

FMPy (Dassault Systèmes) loads the compiled code and integrates model exchange with CVODE.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import shutil
import tempfile
import weakref
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.plugin import CannotRun, Diverged, InputFile, ProgramFailed
from designopt_external.fmu.description import XML, Description, FmuVariable, platforms
from designopt_external.signals import InputSignals

Floats = NDArray[np.float64]
#: Status of the FMI after which no instance may be used.
FATAL = 4
DISCARD = 2
#: Number of log messages of the FMU in a message.
LOGGED = 5


@dataclass(frozen=True)
class Experiment:
    """A simulation from `start` to `stop` with steps of `step` (s) and a relative `tolerance`."""

    kind: str
    start: float
    stop: float
    step: float
    tolerance: float | None

    @property
    def grid(self) -> Floats:
        """(n,) times of the steps; the last is `stop`."""
        count = max(1, int(np.ceil((self.stop - self.start) / self.step - 1e-9)))
        time = self.start + self.step * np.arange(count + 1, dtype=np.float64)
        time[-1] = self.stop
        return time


class Instance:
    """The loaded code of an FMU, in a folder of its own. Raises `CannotRun` if this machine cannot run it."""

    def __init__(self, file: InputFile, description: Description, experiment: Experiment) -> None:
        self._description = description
        self._experiment = experiment
        self._log: list[str] = []
        self._folder = Path(tempfile.mkdtemp(prefix="designopt-fmu-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._unpack(file)
        self._unit: Any = None
        self._has_run = False
        try:
            self._instantiate()
        except ProgramFailed as error:
            raise CannotRun(str(error)) from None

    def _unpack(self, file: InputFile) -> None:
        """Unpack the code for this platform and the resources."""
        import fmpy

        model = self._description.model
        interface = model.coSimulation if self._experiment.kind == "co_simulation" else model.modelExchange
        platform = fmpy.platform if self._description.version == "2.0" else fmpy.platform_tuple
        library = f"binaries/{platform}/{interface.modelIdentifier}{fmpy.sharedLibraryExtension}"
        if library not in self._description.members:
            available = ", ".join(platforms(self._description)) or "no platform"
            raise CannotRun(
                f"{file.name}: has no code for {platform}, this machine, but for {available}; export it for {platform}"
            )
        with file.path() as path, zipfile.ZipFile(path) as archive:
            archive.extractall(
                self._folder,
                [m for m in self._description.members if m.startswith((f"binaries/{platform}/", "resources/", XML))],
            )
        (self._folder / "resources").mkdir(exist_ok=True)

    def _instantiate(self) -> None:
        from fmpy.simulation import instantiate_fmu

        kind = "CoSimulation" if self._experiment.kind == "co_simulation" else "ModelExchange"
        self._log.clear()
        try:
            self._unit = instantiate_fmu(str(self._folder), self._description.model, kind, logger=self._note)
        except Exception as error:  # FMPy raises bare exceptions
            folder = f"{self._folder}/"
            raise ProgramFailed(
                f"{self._description.file}: cannot be instantiated: {str(error).replace(folder, '')}{self._log_text()}",
                reason="instantiation",
            ) from None
        self._has_run = False

    def _note(self, *arguments: Any) -> None:
        """Keep a log message of the FMU; its text is the last argument in all versions of the FMI."""
        message = arguments[-1]
        text = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
        if text.strip():
            self._log = [*self._log[-LOGGED + 1 :], " ".join(text.split())]

    def _log_text(self) -> str:
        return f" ({'; '.join(self._log)})" if self._log else ""

    # ------------------------------------------------------------------------------------------------- simulation

    def simulate(
        self, values: Sequence[tuple[FmuVariable, Any]], signals: InputSignals | None, outputs: Sequence[FmuVariable]
    ) -> tuple[Floats, dict[str, Floats]]:
        """Time (n,) in s and the `outputs` (n,) by label, with `values` of parameters, start values and inputs.

        Raises `Diverged` if the FMU gives up, `ProgramFailed` for a fatal error.
        """
        from fmpy.fmi1 import FMICallException

        self._log.clear()
        at = [self._experiment.start]
        try:
            if self._has_run:
                self._reset()
            self._has_run = True
            if self._experiment.kind == "co_simulation":
                return self._steps(values, signals, outputs, at)
            return self._integrate(values, signals, outputs)
        except FMICallException as error:
            sentence = f"{self._description.file}: {error.function} failed at {at[0]:g} s{self._log_text()}"
            self._renew(fatal=error.status == FATAL)
            if error.status == FATAL:
                raise ProgramFailed(sentence, status="crashed", reason=error.function) from None
            raise Diverged(sentence, reason=error.function) from None

    def _reset(self) -> None:
        from fmpy.fmi1 import FMICallException

        try:
            self._unit.reset()
        except (FMICallException, KeyError):
            self._renew(fatal=False)

    def _renew(self, *, fatal: bool) -> None:
        """Replace the instance; after a fatal error it may not even be freed."""
        if not fatal:
            release = self._unit.fmi2FreeInstance if self._description.version == "2.0" else self._unit.fmi3FreeInstance
            with contextlib.suppress(Exception):
                release(self._unit.component)
        self._instantiate()

    def _steps(
        self,
        values: Sequence[tuple[FmuVariable, Any]],
        signals: InputSignals | None,
        outputs: Sequence[FmuVariable],
        at: list[float],
    ) -> tuple[Floats, dict[str, Floats]]:
        """Co-simulation on the grid; inputs are constant within a step."""
        unit, experiment = self._unit, self._experiment
        time = experiment.grid
        options = {"tolerance": experiment.tolerance, "startTime": experiment.start, "stopTime": experiment.stop}
        if self._description.version == "2.0":
            unit.setupExperiment(**options)
            options = {}
        for variable, value in values:
            _set(unit, self._description.version, variable.type, [variable.reference], [value])
        unit.enterInitializationMode(**options)
        inputs = [] if signals is None else [self._description.variables[name] for name in signals.names]
        rows = np.zeros((len(time), 0)) if signals is None else signals.at(time)
        self._apply(inputs, rows[0])
        unit.exitInitializationMode()
        readers = _readers(unit, self._description.version, outputs)
        records = np.empty((len(time), len(outputs)))
        _record(readers, records[0])
        last = len(time) - 1
        step = self._stepper()
        for k, (begin, size) in enumerate(zip(time.tolist(), np.diff(time).tolist(), strict=False)):
            at[0] = begin
            if inputs:
                self._apply(inputs, rows[k])
            is_end = step(begin, size)
            _record(readers, records[k + 1])
            if is_end:
                last = k + 1
                break
        unit.terminate()
        return time[: last + 1], {v.label: records[: last + 1, i].copy() for i, v in enumerate(outputs)}

    def _stepper(self) -> Callable[[float, float], bool]:
        """A function that does one step from a time (s) of a size (s), and tells whether the FMU ends there."""
        from fmpy.fmi1 import FMICallException
        from fmpy.fmi2 import fmi2Terminated

        unit = self._unit

        def step3(time: float, size: float) -> bool:
            _, is_end, early, _ = unit.doStep(time, size)
            if early and not is_end:
                raise Diverged(f"{self._description.file}: ended a step early at {time:g} s", reason="early return")
            return bool(is_end)

        def step2(time: float, size: float) -> bool:
            try:
                unit.doStep(time, size)
            except FMICallException as error:
                if error.status == DISCARD and unit.getBooleanStatus(fmi2Terminated):
                    return True
                raise
            return False

        return step2 if self._description.version == "2.0" else step3

    def _apply(self, inputs: Sequence[FmuVariable], row: Floats) -> None:
        for variable, value in zip(inputs, row, strict=True):
            number = value if variable.is_real else round(value)
            _set(self._unit, self._description.version, variable.type, [variable.reference], [number])

    def _integrate(
        self, values: Sequence[tuple[FmuVariable, Any]], signals: InputSignals | None, outputs: Sequence[FmuVariable]
    ) -> tuple[Floats, dict[str, Floats]]:
        """Model exchange: CVODE with events, by FMPy."""
        from fmpy import simulate_fmu

        experiment = self._experiment
        table = None
        if signals is not None:
            names = [self._description.variables[name].name for name in signals.names]
            table = np.zeros(len(signals.time), [(name, np.float64) for name in ("time", *names)])
            for name, column in zip(("time", *names), (signals.time, *signals.values.T), strict=True):
                table[name] = column
        try:
            result = simulate_fmu(
                str(self._folder),
                validate=False,
                start_time=experiment.start,
                stop_time=experiment.stop,
                relative_tolerance=experiment.tolerance or 1e-6,
                output_interval=experiment.step,
                start_values={variable.name: value for variable, value in values},
                input=table,
                output=[variable.name for variable in outputs],
                model_description=self._description.model,
                fmu_instance=self._unit,
            )
        except RuntimeError as error:
            raise Diverged(f"{self._description.file}: {error}", reason="integration") from None
        time = np.asarray(result["time"], np.float64)
        return time, {v.label: np.asarray(result[v.name], np.float64) for v in outputs}


def _accessor(version: str, kind: str) -> str:
    """The type in the name of the functions of the FMI."""
    if kind == "Enumeration":
        return "Integer" if version == "2.0" else "Int64"
    return kind


def _set(unit: Any, version: str, kind: str, references: list[int], values: list[Any]) -> None:
    getattr(unit, f"set{_accessor(version, kind)}")(references, values)


def _readers(unit: Any, version: str, outputs: Sequence[FmuVariable]) -> list[tuple[Callable[[], Any], list[int]]]:
    """A function for each type that reads its variables, and their positions in `outputs`.

    Floating-point numbers are read with prepared memory: FMPy's own function converts a list for each call.
    """
    groups: dict[str, tuple[list[int], list[int]]] = {}
    for position, variable in enumerate(outputs):
        references, positions = groups.setdefault(_accessor(version, variable.type), ([], []))
        references.append(variable.reference)
        positions.append(position)
    readers = []
    for kind, (references, positions) in groups.items():
        if kind in ("Real", "Float64"):
            readers.append((_real_reader(unit, version, references), positions))
        else:
            readers.append((functools.partial(getattr(unit, f"get{kind}"), references), positions))
    return readers


def _real_reader(unit: Any, version: str, references: list[int]) -> Callable[[], Floats]:
    count = len(references)
    labels, numbers = (ctypes.c_uint * count)(*references), (ctypes.c_double * count)()
    values: Floats = np.ctypeslib.as_array(numbers)
    if version == "2.0":
        arguments: tuple[Any, ...] = (unit.component, labels, count, numbers)
        call = unit.fmi2GetReal
    else:
        arguments = (unit.component, labels, count, numbers, count)
        call = unit.fmi3GetFloat64

    def read() -> Floats:
        call(*arguments)
        return values

    return read


def _record(readers: Sequence[tuple[Callable[[], Any], list[int]]], row: Floats) -> None:
    if len(readers) == 1:  # in the order of the outputs
        row[:] = readers[0][0]()
        return
    for read, positions in readers:
        row[positions] = read()


def value_for(variable: FmuVariable, value: Any) -> Any:
    """A value of a study as the type of the variable. Raises `ValueError` for a fraction where it is an integer."""
    if variable.is_text:
        return str(value)
    if variable.is_real:
        return float(value)
    if float(value) != round(float(value)):
        kind = "0 or 1" if variable.type == "Boolean" else "an integer"
        raise ValueError(f"{variable.label} is {value:g}, and '{variable.name}' of the FMU is {kind}")
    return bool(round(value)) if variable.type == "Boolean" else round(value)


def unknown_variable_message(name: str, variables: Mapping[str, FmuVariable]) -> str:
    """The sentence for a variable that does not exist."""
    from designopt.plugin import closest

    names = [*variables, *(v.name for v in variables.values() if v.name not in variables)]
    near = closest(name, names)
    hint = f"did you mean '{near}'?" if near else f"it has {', '.join(list(variables)[:8]) or 'none'}"
    return f"the FMU has no variable '{name}' over time; {hint}"
