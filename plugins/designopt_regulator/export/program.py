"""A controller as a program: its constants, its state between samples, and the equations of a sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from designopt_regulator.controllers.nested import leaves
from designopt_regulator.controllers.pid import Law, Limits, Memory
from designopt_regulator.controllers.predictor import AffineOutput, ModelMemory, Predictor
from designopt_regulator.controllers.sections import DifferenceEquation
from designopt_regulator.export.expression import CodeTerm, TermFunctions, name

_MEANINGS = {
    "KP": "proportional gain",
    "KI": "integral gain of a sample, T kp / ti",
    "KD": "derivative gain of a sample, kp td / (tf + T)",
    "KT": "anti-windup gain of a sample, T / tt",
    "FORGET": "pole of the derivative's filter, tf / (tf + T)",
    "OFF": "1 - b, of the set-point weight b",
    "LOW": "lowest command",
    "HIGH": "highest command",
    "FALL": "largest fall of the command in a sample",
    "CLIMB": "largest rise of the command in a sample",
    "REFERENCE_SPEED": "m/s at which the gain is KP",
    "LEAST_SPEED": "m/s below which the gain grows no further",
}


@dataclass(frozen=True)
class ControllerProgram:
    """One controller.

    `constants` by name with value and meaning; `inputs` of a sample with their meaning; `states` by name with their
    value at rest at measurement ``y`` and command ``u``; `equations` for the command ``u`` and the next states.
    """

    title: str
    sample_time: float
    inputs: Mapping[str, str]
    constants: Mapping[str, tuple[float, str]]
    states: Mapping[str, str]
    equations: Mapping[str, CodeTerm] = field(repr=False)
    remarks: tuple[str, ...] = ()


def program(
    title: str,
    law: Law,
    limits: Limits,
    sample_time: float,
    *,
    predictor: Predictor | None = None,
    angle: bool = False,
    schedule: tuple[float, float] | None = None,
    inputs: Mapping[str, str],
    remarks: tuple[str, ...] = (),
) -> ControllerProgram:
    """The program of one controller with these `limits`, from the difference equations of the simulator.

    The numbers of the `law` are numbers or arrays (1,); with a `predictor` it acts on the output without the delay.
    `schedule` are the speed at which the gain is kp and the minimum speed of the schedule; the input ``v`` is the
    speed. The error of an `angle` (rad) is wrapped to (-pi, pi].
    """
    values = {key: float(np.ravel(getattr(law, key.lower()))[0]) for key in ("KP", "KI", "KD", "KT", "FORGET", "OFF")}
    constants = {key: (value, _MEANINGS[key]) for key, value in values.items()}
    sections, kept_sections = [], []
    states = {"derivative": "0", "integral": "u", "measured": "y"}
    for k, section in enumerate(law.sections, start=1):
        equation, section_state, section_rest = _section(section, k, constants)
        sections.append(equation)
        kept_sections.append(section_state)
        states |= section_rest
    kp, ki, kd, kt, forget, off = (name(key) for key in values)
    symbols = Law(kp, ki, kd, kt, forget, off, name("origin"), tuple(sections))
    bounds = {key: float(v) for key, v in zip(("LOW", "HIGH", "FALL", "CLIMB"), limits, strict=True) if np.isfinite(v)}
    constants |= {key: (value, _MEANINGS[key]) for key, value in bounds.items()}
    command_limits = Limits(
        *(name(key) if key in bounds else v for key, v in zip(("LOW", "HIGH", "FALL", "CLIMB"), limits, strict=True))
    )
    scale: CodeTerm | float = 1.0
    if schedule is not None:
        speeds = dict(zip(("REFERENCE_SPEED", "LEAST_SPEED"), schedule, strict=True))
        constants |= {key: (value, _MEANINGS[key]) for key, value in speeds.items()}
        scale = name("REFERENCE_SPEED") / TermFunctions.fmax(name("v"), name("LEAST_SPEED"))
    memory = Memory(name("derivative"), name("integral"), name("measured"), tuple(kept_sections))
    measurement, model = name("y"), None
    if predictor is not None:
        predictor, model, rest_model = _model(predictor, constants)
        measurement, states = measurement + predictor.ahead(model), states | rest_model
    u, raw, after = symbols.sample(
        TermFunctions,
        memory,
        name("r"),
        measurement,
        scale=scale,
        angle=angle,
        limits=command_limits,
        last=name("command"),
    )
    following = list(leaves(after))
    if predictor is not None and model is not None:
        model_states = predictor.after(model, u)  # in the order in which `_model` names them
        following += [
            *model_states.states,
            *model_states.prompt,
            *reversed(model_states.late),
        ]
    return ControllerProgram(
        title,
        sample_time,
        inputs,
        constants,
        states | {"origin": "y", "command": "u"},
        {"raw": raw, "u": u, **dict(zip(states, following, strict=True)), "command": u, "origin": name("origin")},
        remarks,
    )


def _section(
    section: DifferenceEquation, number: int, constants: dict[str, tuple[float, str]]
) -> tuple[DifferenceEquation, tuple[CodeTerm, ...], dict[str, str]]:
    """A section with names for its numbers, which join the `constants`; its state, and the state at rest."""

    def names(letter: str, numbers: tuple[Any, ...], first: int) -> tuple[CodeTerm, ...]:
        for k, value in enumerate(numbers, start=first):
            signal = "input" if letter == "B" else "output"
            constants[f"S{number}_{letter}{k}"] = (
                float(np.ravel(value)[0]), f"section {number}, of its {signal}{f' {k} samples ago' if k else ''}"
            )  # fmt: skip
        return tuple(name(f"S{number}_{letter}{k}") for k in range(first, first + len(numbers)))

    equation = DifferenceEquation(names("B", section.b, 0), names("A", section.a, 1))
    rest_state = {}
    for k, value in enumerate(section.at_rest(), start=1):
        constants[f"S{number}_REST{k}"] = (float(np.ravel(value)[0]), f"section {number}, at rest at command 1")
        rest_state[f"s{number}_{k}"] = f"u * S{number}_REST{k}"
    return equation, tuple(name(key) for key in rest_state), rest_state


def _model(
    predictor: Predictor, constants: dict[str, tuple[float, str]]
) -> tuple[Predictor, ModelMemory, dict[str, str]]:
    """The same for a predictor. A state that takes over another one's value stands before it."""
    states, output = predictor.at_rest()

    def named(key: str, value: float, meaning: str) -> CodeTerm:
        constants[key] = (float(value), meaning)
        return name(key)

    def output_value(letter: str, outputs: AffineOutput, words: str) -> AffineOutput:
        row = tuple(
            named(f"M_{letter}{k}", v, f"model: {words}, of state {k}") for k, v in enumerate(outputs.P, start=1)
        )
        return AffineOutput(row, named(f"M_{letter}", outputs.q, f"model: {words}, of the command"))

    R = tuple(
        tuple(named(f"M_R{i}_{j}", v, f"model: change of state {i} by state {j}") for j, v in enumerate(row, start=1))
        for i, row in enumerate(predictor.R, start=1)
    )
    G = tuple(named(f"M_G{k}", v, f"model: change of state {k} by the command") for k, v in enumerate(predictor.G, 1))
    prompt_output, delayed_output = (
        output_value("P", predictor.prompt, "output without delay"),
        output_value("L", predictor.late, "output with delay"),
    )
    symbols = Predictor(R, G, prompt_output, delayed_output, predictor.samples)
    rest_state = {}
    for k, value in enumerate(states, start=1):
        named(f"M_REST{k}", value, f"model: state {k} at rest at command 1")
        rest_state[f"m{k}"] = f"u * M_REST{k}"
    named("M_GAIN", output, "model: output at rest at command 1")
    late = [f"late{k}" for k in range(1, predictor.samples + 1)]
    model_memory = ModelMemory(
        tuple(name(f"m{k}") for k in range(1, len(states) + 1)), (name("prompt"),), tuple(name(key) for key in late)
    )
    return symbols, model_memory, rest_state | {"prompt": "u * M_GAIN"} | dict.fromkeys(reversed(late), "u * M_GAIN")
