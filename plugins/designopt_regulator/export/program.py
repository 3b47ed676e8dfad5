"""A regulator as a program: its constants, what it keeps between samples, and the equations of a sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from designopt_regulator.controllers.pid import PID, Law, Limits, Memory
from designopt_regulator.export.expression import Functions, Term, name

_MEANINGS = {
    "KP": "proportional gain",
    "KI": "integral gain of a sample, T kp / ti",
    "KD": "derivative gain of a sample, kp td / (tf + T)",
    "KT": "anti-windup gain of a sample, T / tt",
    "FORGET": "pole of the derivative's filter, tf / (tf + T)",
    "OFF": "1 - b, of the set-point weight b",
    "LOW": "lowest command",
    "HIGH": "highest command",
    "FALL": "most that the command falls in a sample",
    "CLIMB": "most that the command rises in a sample",
    "REFERENCE_SPEED": "m/s at which the gain is KP",
    "LEAST_SPEED": "m/s below which the gain grows no further",
}


@dataclass(frozen=True)
class Program:
    """One regulator.

    `constants` by name with value and meaning; `inputs` of a sample with their meaning; `states` what is kept, by name,
    with its value at rest at measurement ``y`` and command ``u``; `equations` the command ``u`` and the next states.
    """

    title: str
    sample_time: float
    inputs: Mapping[str, str]
    constants: Mapping[str, tuple[float, str]]
    states: Mapping[str, str]
    equations: Mapping[str, Term] = field(repr=False)
    remarks: tuple[str, ...] = ()


def program(
    title: str,
    settings: PID,
    limits: Limits,
    *,
    angle: bool = False,
    schedule: tuple[float, float] | None = None,
    inputs: Mapping[str, str],
    remarks: tuple[str, ...] = (),
) -> Program:
    """The program of one regulator with these `limits`, from the difference equations that the simulator computes.

    `schedule` are the speed at which the gain is kp and that below which it grows no further; the input ``v`` is the
    speed. The error of an `angle` (rad) is wrapped to (-pi, pi].
    """
    numbers = Law.of(settings, np.zeros(1))
    values = {key: float(getattr(numbers, key.lower())[0]) for key in ("KP", "KI", "KD", "KT", "FORGET", "OFF")}
    law = Law(**{key.lower(): name(key) for key in values}, origin=name("origin"))
    values |= {key: float(v) for key, v in zip(("LOW", "HIGH", "FALL", "CLIMB"), limits, strict=True) if np.isfinite(v)}
    allowed = Limits(
        *(name(key) if key in values else v for key, v in zip(("LOW", "HIGH", "FALL", "CLIMB"), limits, strict=True))
    )
    scale: Term | float = 1.0
    if schedule is not None:
        values |= dict(zip(("REFERENCE_SPEED", "LEAST_SPEED"), schedule, strict=True))
        scale = name("REFERENCE_SPEED") / Functions.fmax(name("v"), name("LEAST_SPEED"))
    kept = Memory(name("derivative"), name("integral"), name("measured"))
    u, raw, after = law.sample(
        Functions, kept, name("r"), name("y"), scale=scale, angle=angle, limits=allowed, last=name("command")
    )
    return Program(
        title,
        settings.sample_time,
        inputs,
        {key: (value, _MEANINGS[key]) for key, value in values.items()},
        {"derivative": "0", "integral": "u", "measured": "y", "origin": "y", "command": "u"},
        {"raw": raw, "u": u, "derivative": after.derivative, "integral": after.integral, "measured": after.measured,
         "command": u, "origin": name("origin")},
        remarks,
    )  # fmt: skip
