"""Figures of a linear loop: of sampled ones from their margins, of continuous ones from their exact responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import cast

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import Diverged, InvalidDesign
from designopt_regulator.controllers.pid import PID
from designopt_regulator.controllers.structure import StructureName
from designopt_regulator.frequency.margins import Margins, no_margins
from designopt_regulator.frequency.sampled_loop import LoopMeasures, measures, sensitivity_peaks
from designopt_regulator.frequency.structured_loop import StructuredLoop
from designopt_regulator.linear_loop.assembly import Parts, Plants
from designopt_regulator.linear_loop.continuous import Loop, NotSettled, loop_margins
from designopt_regulator.linear_loop.declarations import ARRAYS, LinearOutputs
from designopt_regulator.linear_loop.simulation import SETTLED
from designopt_regulator.linear_loop.step_response import StepResponse, step_responses
from designopt_regulator.plants.linear import Plant

Answer = tuple[LinearOutputs, dict[str, np.ndarray]]
_SAMPLES = 501  # of the arrays of a continuous loop
#: Powers of a step's size in figures of the set-point's and of the load's step; the other figures do not depend on it.
_SETPOINT_POWERS = {"iae_setpoint": 1, "ise_setpoint": 2, "effort": 2, "tv": 1, "peak_command": 1}
_LOAD_POWERS = {"iae_load": 1, "ise_load": 2, "tv_load": 1}
_MARGINS = ("ms", "mt", "gm", "gm_down", "pm", "delay_margin", "crossover")
_SAMPLED_MEASURES = (*_MARGINS, "damping", "spectral_radius", "stab_degree", "noise_gain")


def pid_figures(plant: Plant, settings: PID, T: float) -> list[dict[str, float]]:
    """Linear figures of n loops with PIDs."""
    delay_samples = plant.delay / T
    linear = measures(plant.A, plant.B, plant.C, delay_samples, settings)
    peaks = np.full((2, len(delay_samples)), np.inf)
    if len(stable_rows := np.flatnonzero(linear.stable)):
        A, B, C, delays = (part[stable_rows] for part in (plant.A, plant.B, plant.C, delay_samples))
        peaks[:, stable_rows] = sensitivity_peaks(A, B, C, delays, settings.rows(stable_rows))
    return [_figures(linear, i, peaks[:, i]) for i in range(len(delay_samples))]


def structure_figures(loop: StructuredLoop, name: StructureName) -> dict[str, float]:
    """Linear figures of one loop with more parts."""
    linear = loop.measures()
    stable = bool(linear.stable[0])
    figures = _figures(linear, 0, loop.sensitivity_peaks() if stable else (np.inf, np.inf))
    if name == "cascade":
        outer = loop.outer_margins() if stable else no_margins(1)
        for part, loop_measures in (("inner", loop.inner().measures()), ("outer", outer)):
            figures |= {f"{part}_{key}": float(getattr(loop_measures, key)[0]) for key in _MARGINS if key != "mt"}
    return figures


def _figures(linear: LoopMeasures, row: int, peaks: Sequence[float] | Floats) -> dict[str, float]:
    return {
        **{name: float(getattr(linear, name)[row]) for name in _SAMPLED_MEASURES},
        "stable": float(linear.stable[row]),
        "ks_peak": float(peaks[0]),
        "gs_peak": float(peaks[1]),
    }


def figures_of_steps(figures: Mapping[str, float], setpoint: float, load: float) -> dict[str, float]:
    """The `figures` of steps by `setpoint` and `load`, from those of unit steps of a linear loop."""
    sizes = {name: abs(setpoint) ** power for name, power in _SETPOINT_POWERS.items()}
    sizes |= {name: abs(load) ** power for name, power in _LOAD_POWERS.items()}
    return {name: value * sizes.get(name, 1.0) for name, value in figures.items()}


def continuous_answers(
    rows: Sequence[tuple[Plants, Parts]], arrays: Set[str], setpoint_step: float, load_step: float
) -> list[Answer | Exception]:
    """Figures and arrays of continuous loops for steps of these sizes."""
    loops: list[Loop | InvalidDesign] = []
    for plants, parts in rows:
        try:
            loops.append(continuous_loop(plants.plant, parts))
        except InvalidDesign as error:
            loops.append(error)
    margins_of = iter(loop_margins([loop for loop in loops if isinstance(loop, Loop)]))
    steps = setpoint_step, load_step
    return [_answer(loop, next(margins_of), arrays, steps) if isinstance(loop, Loop) else loop for loop in loops]


def continuous_loop(plant: Plant, parts: Parts) -> Loop:
    """The loop of a continuous controller; raises `InvalidDesign` if the equations have no solution."""
    try:
        return Loop(
            plant, **{name: parts.outer[name] for name in ("kp", "ti", "td", "tf", "b")}, sections=parts.sections
        )
    except ValueError as error:
        raise InvalidDesign(f"kp: {error}") from None


def _answer(
    loop: Loop, margins_or_none: Margins | NotSettled | None, arrays: Set[str], steps: tuple[float, float]
) -> Answer | Exception:
    if margins_or_none is None:
        return Diverged("the loop is unstable", reason="unstable")
    try:
        if isinstance(margins_or_none, NotSettled):
            raise margins_or_none
        setpoint, load = step_responses(loop)
    except NotSettled as error:
        return Diverged(str(error), reason="not_settled")
    outputs = {
        "iae_setpoint": setpoint.iae,
        "iae_load": load.iae,
        "ise_setpoint": setpoint.ise,
        "ise_load": load.ise,
        "overshoot": setpoint.overshoot,
        "effort": setpoint.effort,
        "tv": setpoint.tv,
        "tv_load": load.tv,
        "stable": 1.0,
        "peak_command": setpoint.peak_command,
        "damping": loop.damping(),
        **dict(zip(("ks_peak", "gs_peak"), loop.sensitivity_peaks(), strict=True)),
        **_times(setpoint),
        "residual_error": abs(setpoint.final_error),
        **{name: float(getattr(margins_or_none, name)[0]) for name in _MARGINS},
    }
    figures = cast(LinearOutputs, figures_of_steps(outputs, *steps))
    return figures, _curves(setpoint, load, arrays, steps) if arrays else {}


def _times(setpoint: StepResponse) -> dict[str, float]:
    """Rise and settling time if they are finite, and whether the loop settles."""
    times = {"rise": setpoint.rise, "settling": setpoint.settling(SETTLED)}
    return {
        **{name: value for name, value in times.items() if np.isfinite(value)},
        "not_settled": float(np.isinf(times["settling"])),
    }


def _curves(
    setpoint: StepResponse, load: StepResponse, array_names: Set[str], steps: tuple[float, float]
) -> dict[str, np.ndarray]:
    """Both steps one after the other, each until its error stays within 0.5 % of its largest."""
    load_at, load_duration = setpoint.transient_time, load.transient_time
    time = np.linspace(0.0, load_at + load_duration, _SAMPLES)
    after_load = time >= load_at
    setpoint_step, load_step = steps
    output = setpoint_step * (1.0 - setpoint.at(time, setpoint.error))
    command = setpoint_step * setpoint.at(time, setpoint.command)
    output[after_load] -= load_step * load.at(time[after_load] - load_at, load.error)
    command[after_load] += load_step * load.at(time[after_load] - load_at, load.command)
    all_arrays = {"time": time, "output": output, "command": command}
    return {name: all_arrays[name] for name in ARRAYS if name in array_names}
