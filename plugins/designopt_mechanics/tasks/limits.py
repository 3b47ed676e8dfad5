"""Limits of coordinates in the file, which a prescribed or simulated motion may leave: ranges, speeds, efforts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import Declaration
from designopt_mechanics.body import is_not_zero
from designopt_mechanics.coordinate_laws import CoordinateLaw
from designopt_mechanics.mechanism.mechanism import Mechanism
from designopt_mechanics.model_file.nodes import TURN

#: Lowest and highest value.
Interval: TypeAlias = tuple[float, float]

#: Parts of a limit by which a prescribed motion and a result may pass it: limits of files are rounded.
_ROUNDED, _ROUND_OFF = 1e-3, 1e-6
_EVERYWHERE = (-math.inf, math.inf)
#: How far beyond its range, as a multiple of it, a motion is that may be in another unit.
_FAR = 3.0
#: A rotation (rad) from one sample to the next beyond which the samples miss the motion between.
_LARGEST_STEP = math.pi / 6.0
_STEP_REMEDY = (
    "are its values in degrees (they are in rad: multiply them by pi/180), or is the time in another unit (s)? Else"
    " take more samples"
)
#: The factors that may bring a motion within its limits, with their meanings, by the unit of the coordinate.
_REMEDIES = {
    "rad": (
        (-1.0, "with the opposite sign it keeps its limits"),
        (math.pi / 180.0, "are its values in degrees? They are in rad: multiply them by pi/180"),
    ),
    "m": (
        (-1.0, "with the opposite sign it keeps its limits"),
        (0.01, "are its values in cm? They are in m: divide them by 100"),
        (0.001, "are its values in mm? They are in m: divide them by 1000"),
    ),
    "1": (),
}


#: The same for a single value in a setting.
_UNITS_OF_VALUES = {
    "rad": {math.pi / 180.0: "; is it in degrees? Write {:.6g} deg"},
    "rad/s": {math.pi / 180.0: "; is it in deg/s? Multiply it by pi/180"},
    "m": {0.01: "; is it in cm? Divide it by 100", 0.001: "; is it in mm? Divide it by 1000"},
}


def with_limits(
    declaration: Declaration, mechanism: Mechanism, share: float = _ROUND_OFF, remedy: str = ""
) -> Declaration:
    """`declaration` with the limits of the file as the usual ranges of the outputs that show whether they hold, up to
    the `share` of a limit, and the `remedy` where they are passed.

    For a speed or an effort that is the peak, for a coordinate the maximum and the minimum; where the study has none of
    them, the mean or root mean square. Stops that yield at the ends of a range take its place.
    """
    outputs = dict(declaration.outputs)
    for signal, interval in _limits_of_signals(mechanism).items():
        low, high = _wide_range(interval, share)
        ranges = {"max": (low, high), "min": (low, high), "mean": (low, high)}
        ranges |= dict.fromkeys(("peak", "rms"), (0.0, max(-low, high)))
        takes = {take for take in ranges if f"{signal}_{take}" in outputs}
        extremes = {"max", "min"} if signal in mechanism.tree.names else {"peak"}
        for take in takes & extremes or takes & {"peak", "max", "min"} or takes:
            output = outputs[f"{signal}_{take}"]
            about = f"{output.description}; limits of the file{f' and {share:.0%}' if share > _ROUNDED else ''}"
            outputs[f"{signal}_{take}"] = replace(output, description=about, usual=ranges[take], remedy=remedy)
    return replace(declaration, outputs=outputs)


def _limits_of_signals(mechanism: Mechanism) -> dict[str, Interval]:
    """The finite limits by the names of the signals that they bind."""
    limits = {}
    for coordinate in mechanism.tree.coordinates:
        law = mechanism.laws.get(coordinate.name, CoordinateLaw())
        if not (law.stops is not None and is_not_zero(law.stop_stiffness)):
            limits[coordinate.name] = (coordinate.low, coordinate.high)
        limits[f"{coordinate.name}_speed"] = (-law.largest_speed, law.largest_speed)
        limits[f"effort_{coordinate.name}"] = (-law.largest_effort, law.largest_effort)
    return {signal: interval for signal, interval in limits.items() if interval != _EVERYWHERE}


def limit_notes(mechanism: Mechanism, names: Sequence[str], values: Floats, rates: Floats) -> Iterator[str]:
    """A note for each coordinate of `names` whose `values` (n, f) in rad or m leave its range or turn by more than 30
    deg from one sample to the next, or whose `rates` (n, f) exceed its largest speed, with the probable cause: degrees,
    another unit, the opposite sign, exchanged curves."""
    coordinates = {c.name: c for c in mechanism.tree.coordinates}
    ranges = {name: (coordinates[name].low, coordinates[name].high) for name in names}
    curves = dict(zip(names, values.T, strict=True))
    for name, rate in zip(names, rates.T, strict=True):
        unit, curve, (low, high) = coordinates[name].unit, curves[name], ranges[name]
        largest = mechanism.laws.get(name, CoordinateLaw()).largest_speed
        beyond_range, violations = not _is_within(curve, ranges[name]), []
        if beyond_range:
            violations.append(
                f"goes from {curve.min():.4g} to {curve.max():.4g} {unit}, beyond its range of {low:.4g} to"
                f" {high:.4g} {unit}"
            )
        if not _is_within(rate, (-largest, largest)):
            violations.append(f"has up to {np.abs(rate).max():.4g} {unit}/s, beyond its largest speed of {largest:.4g}")
        step = float(np.abs(np.diff(curve)).max()) if unit == "rad" else 0.0
        if step > _LARGEST_STEP:
            violations.append(
                f"turns by up to {math.degrees(step):.4g} deg from one of {len(curve)} samples to the next"
            )
        if not violations:
            continue
        is_far = float(np.abs(curve).max()) > _FAR * max(abs(low), abs(high))
        remedies = [
            f"are {name} and {partner} exchanged?"
            for partner in names
            if coordinates[partner].unit == unit
            and _is_within(curve, ranges[partner])
            and _is_within(curves[partner], ranges[name])
        ]
        remedies += [
            remedy
            for factor, remedy in _REMEDIES[unit]
            if (factor < 0.0 or is_far) and _is_within(factor * curve, ranges[name])
        ]
        if not (beyond_range and remedies):
            remedies = [_STEP_REMEDY] if step > _LARGEST_STEP else []
        remedy = f"; {remedies[0]}" if remedies else ""
        yield f"motion: {name} {', and '.join(violations)}{remedy}"


def value_notes(mechanism: Mechanism, setting: str, values: Mapping[str, float]) -> Iterator[str]:
    """A note for each of the `values` (rad or m) of coordinates and their speeds in a `setting` that passes a limit of
    the file, or is an angle of more than a turn, with the probable cause."""
    for c in mechanism.tree.coordinates:
        speed = mechanism.laws.get(c.name, CoordinateLaw()).largest_speed
        limits = {c.name: (c.unit, (c.low, c.high)), f"{c.name}_speed": (f"{c.unit}/s", (-speed, speed))}
        for name, (unit, interval) in limits.items():
            if name not in values:
                continue
            value = values[name]
            if not _is_within(np.array([value]), interval):
                violation = f"is outside its range of {interval[0]:.4g} to {interval[1]:.4g} {unit}"
            elif unit == "rad" and abs(value) > TURN:
                violation = "is more than a turn"
            else:
                continue
            factors = {} if unit == "rad" and abs(value) <= TURN else _UNITS_OF_VALUES.get(unit, {})
            hints = (hint for factor, hint in factors.items() if _is_within(np.array([factor * value]), interval))
            yield f"{setting}: {name} = {value:.6g} {unit} {violation}{next(hints, '').format(value)}"


def _is_within(curve: Floats, interval: Interval) -> bool:
    low, high = _wide_range(interval, _ROUNDED)
    return bool(((curve >= low) & (curve <= high)).all())


def _wide_range(interval: Interval, share: float) -> Interval:
    low, high = interval
    return low - share * abs(low), high + share * abs(high)
