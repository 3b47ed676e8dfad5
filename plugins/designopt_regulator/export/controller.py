"""Export format `controller`: the controllers of a design as programs in Python, C or Structured Text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from designopt.exports import ExportError
from designopt.plugin import InvalidDesign, Quantity, exporter
from designopt.store.result import Result
from designopt_regulator.controllers.pid import Law, Limits
from designopt_regulator.export.languages import LANGUAGES
from designopt_regulator.export.program import ControllerProgram, program
from designopt_regulator.linear_loop.model import LinearLoop
from designopt_regulator.vehicle.model import TrackedVehicle


@exporter("controller", version=1)
def write_controller(
    result: Result,
    folder: Path,
    prefix: str,
    *,
    language: Annotated[Literal["python", "c", "st"], Quantity("", "of the programs")] = "python",
    design: Annotated[
        str | None, Quantity("", "label of a chosen design, or the number of one; all chosen ones if none")
    ] = None,
    replace: Annotated[bool, Quantity("", "whether existing programs of other designs are replaced")] = True,
) -> list[Path]:
    """The difference equations of tuned controllers with their limits and anti-windup, one file for each controller.

    Raises `ExportError` if a file exists with other contents.
    """
    ending, write = LANGUAGES[language]
    texts: dict[Path, str] = {}
    for label, row in _designs(result, design).items():
        for loop, controller_program in programs(result, row).items():
            of_loop = "" if loop == "loop" else f"_{loop}"
            file = folder / f"{prefix}controller{f'_{label}' if label else ''}{of_loop}.{ending}"
            texts[file] = write(controller_program)
    if not replace:
        for file, text in texts.items():
            if file.exists() and file.read_bytes() != text.encode():
                raise ExportError(
                    f"controller: {file} exists with other contents; choose another folder, or replace it "
                    f"with --replace"
                )
    for file, text in texts.items():
        file.write_bytes(text.encode())
    return list(texts)


def _designs(result: Result, design: str | None) -> dict[str, int]:
    """Rows by a label that file names can bear; a single design has none."""
    rows_of_names = result.rows_by_name()
    if design is None:
        if not result.chosen():
            raise ExportError("controller: no design is chosen, as none is feasible; name one by its number")
        short = [(re.sub(r"\W+", "_", label), row) for label, row in result.chosen().items()]
        names = [name for name, _ in short]
        return {name if names.count(name) == 1 else f"{name}_{row}": row for name, row in short}
    if design in rows_of_names:
        return {"": rows_of_names[design]}
    if re.fullmatch(r"\d{1,9}", design) and int(design) < len(result.outcomes):
        return {"": int(design)}
    raise ExportError(f"controller: there is no design '{design}'; names: {', '.join(map(repr, rows_of_names))}")


def programs(result: Result, row: int) -> dict[str, ControllerProgram]:
    """The programs of the controllers of a design by loop; of a linear plant there is one, ``loop``.

    Raises `ExportError` for a design without result and for other models.
    """
    model = result.problem.model.build()
    design = result.problem.space.design(result.outcomes.X[row].tolist())
    if result.outcomes.failed[row]:
        raise ExportError(f"controller: design {row} has no result: its evaluation failed, or it was rejected")
    origin = _origin(result, row)
    if not result.outcomes.feasible[row]:
        origin += ("WARNING: this design violates limits of the study.",)
    try:
        if isinstance(model, LinearLoop):
            scenarios = [scenario.values for scenario in result.problem.scenarios]
            origin += tuple(f"NOTE: {text}." for text in model.design_remarks(design, scenarios))
            return _plant_program(model, design, origin)
        if isinstance(model, TrackedVehicle):
            return {loop: _vehicle_program(model, loop, design, origin) for loop in model.tuned_loops}
    except InvalidDesign as error:
        raise ExportError(f"controller: design {row}: {error}") from None
    raise ExportError(
        f"controller: exports only the models linear_loop and tracked_carrier_10t, not for "
        f"{result.problem.model.plugin.name}"
    )


def _origin(result: Result, row: int) -> tuple[str, ...]:
    """Where a program comes from, in lines: design with its name, study and store, then the design's values."""
    in_study_units = result.in_stated_units
    names = [name for name, number in result.chosen().items() if number == row]
    label_text = f" ({', '.join(names)})" if names else ""
    space = in_study_units.problem.space
    values = space.values(in_study_units.outcomes.X[row].tolist())
    parameters = [p for p in space.parameters if p.name in values]
    texts = {name: f"{value:.6g}" if isinstance(value, float) else str(value) for name, value in values.items()}
    stated_values = ", ".join(f"{p.name} {texts[p.name]} {p.unit}".rstrip() for p in parameters)
    return (
        f"Design {row}{label_text} of the study {result.study.name} in the store {result.path.name}, problem"
        f" {result.problem.digest}.",
        *([f"{stated_values}."] if stated_values else []),
    )


def _signals(model: LinearLoop) -> tuple[str, dict[str, str]]:
    """A line on the plant's rest, "" if it is not known, and the inputs of the controller with their units."""
    texts = model.plant.data().units if model.plant.type == "data" else model.plant.signal_units
    command_unit, output_unit = (f" [{text.replace('°', 'deg')}]" if text else "" for text in texts)
    inputs = {
        "r": f"set-point, as a deviation from rest{output_unit}",
        "y": f"measured output, its deviation from rest{output_unit}",
    }
    if model.plant.type != "data":
        return "", inputs
    operating_point = f"{model.plant.data().input[0]:.6g}{command_unit} and {model.plant.fit().offset:.6g}{output_unit}"
    return f"Rest of the record: {operating_point}. All signals and limits are deviations from it.", inputs


def _plant_program(
    model: LinearLoop, design: Mapping[str, Any], origin: tuple[str, ...]
) -> dict[str, ControllerProgram]:
    if model.sample_time is None:
        raise ExportError("controller: a continuous one has no difference equation; give the model a sample_time")
    controllers, T = model.controllers_of(design), model.sample_time
    rest_line, inputs = _signals(model)
    origin += (rest_line,) if rest_line else ()
    if controllers.inner is None:
        title = "Controller of a linear plant" + (", with a Smith predictor" if controllers.predictor else "")
        return {
            "loop": program(
                title,
                controllers.law,
                controllers.limits,
                T,
                predictor=controllers.predictor,
                inputs=inputs,
                remarks=origin,
            )
        }
    order = "In each sample the outer controller comes first: its command is the set-point of the inner one."
    within = {"r": "command of the outer controller", "y": "measured inner output, its deviation from rest"}
    return {
        "outer": program(
            "Outer controller of a cascade",
            controllers.law,
            controllers.limits,
            T,
            inputs=inputs,
            remarks=(*origin, order),
        ),
        "inner": program(
            "Inner controller of a cascade",
            controllers.inner,
            controllers.inner_limits,
            T,
            inputs=within,
            remarks=(*origin, order),
        ),
    }


def _vehicle_program(
    model: TrackedVehicle, loop: Literal["course", "speed"], design: Mapping[str, float], origin: tuple[str, ...]
) -> ControllerProgram:
    settings = model.settings_of(design)[loop]
    for name, meaning in (("rate_gain", "an inner loop of the yaw rate"), ("grade_share", "feed-forward of the grade")):
        if settings.get(name):
            raise ExportError(f"controller: the design has {meaning} ({name}), which is not exported")
    controller = model.pid_of([settings])
    law, limits, T = Law.with_settings(controller, np.zeros(1)), Limits(-1.0, 1.0), controller.sample_time
    if loop == "speed":
        inputs = {"r": "wanted speed, m/s", "y": "measured speed, m/s"}
        return program("Speed controller of a tracked vehicle", law, limits, T, inputs=inputs, remarks=origin)
    inputs = {"r": "wanted heading, rad", "y": "measured heading, rad"}
    schedule = model.gain_schedule
    speeds = None if schedule is None else (schedule.reference_speed, schedule.min_speed)
    speed = {} if schedule is None else {"v": "measured speed, m/s"}
    return program(
        "Heading controller of a tracked vehicle", law, limits, T, angle=True, schedule=speeds, inputs=inputs | speed,
        remarks=origin,
    )  # fmt: skip
