"""Report on a plant from measured data: the samples, the fitted model, its residual and its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from designopt.report.colours import axis, category, layout
from designopt.report.labels import number, plain, with_unit
from designopt.report.section import Figure, Table
from designopt_regulator.identification.step_fit import StepData, StepFit
from designopt_regulator.identification.structures import ComparedFit
from designopt_regulator.linear_loop.model import LinearLoop
from designopt_regulator.linear_loop.plant_setting import LinearPlant

_WORDS = {"fopdt": "first order with delay", "ipdt": "integrator with delay", "sopdt": "second order with delay"}
#: Correlation of neighbouring residuals from which on they are said to have a pattern, if it is no chance either.
_PATTERN = 0.3
#: Delays below this (s) are rounding errors of a fit.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class FitSection:
    """The parts of a section about a fitted plant."""

    figure: Figure
    tables: tuple[Table, ...]
    findings: tuple[str, ...]


def fit_section(model: LinearLoop) -> FitSection | None:
    """The figure, tables and findings on the plant of `model`; None where it is not fitted to data."""
    if model.plant.type == "frequency_response":
        return _response_fit(model.plant)
    if model.plant.type != "data":
        return None
    data, fit = model.plant.data(), model.plant.fit()
    tables = (_table(data, fit), _structures(model.plant.structures(), fit.model, data.units))
    return FitSection(_figure(data, fit), tables, _findings(data, fit))


def _structures(comparison: Sequence[ComparedFit], model: str, units: tuple[str, str]) -> Table:
    """All structures fitted to the data, whose input and output have `units`; that of the plant is marked."""
    rows = []
    for c in comparison:
        texts = [(name, number(_without_rounding(name, value))) for name, value in c.fit.parameters.items()]
        unit_of = {"gain": gain_unit(units, c.model)}
        numbers = ", ".join(f"{name} {text} {unit_of.get(name, 's')}".rstrip() for name, text in texts)
        of_record = (c.fit.residual, c.prediction) if isinstance(c.fit, StepFit) else (f"{c.fit.residual:.2%}",)
        rows.append((_WORDS[c.model], round(c.difference, 1), *of_record, numbers))
    in_time = isinstance(comparison[0].fit, StepFit)
    residual = [with_unit(text, units[1]) for text in ("residual", "predicting the last third")]
    columns = ("structure", "criterion", *(residual if in_time else ["relative error"]), "numbers")
    return Table(
        "Structures compared",
        columns,
        tuple(rows),
        note="Akaike's criterion with correction for small samples, less that of the best: a difference below 2 is "
        "none, one above 10 excludes a structure, if residuals are independent. "
        + ("The last third is predicted from a fit to the rest." if in_time else ""),
        marked=frozenset(i for i, c in enumerate(comparison) if c.model == model),
    )


def _response_fit(plant: LinearPlant) -> FitSection:
    data, fit = plant.response_data(), plant.response_fit()
    w = np.geomspace(data.frequency[0], data.frequency[-1], 300)
    model = fit.plant().response(w)
    at = np.interp(np.log(data.frequency), np.log(w), np.unwrap(np.angle(model)))  # the branch of the fitted curve
    phase = at + np.angle(data.response * np.exp(-1j * at))
    traces = []
    for name, x, G, angle, extra in (
        ("measured", data.frequency, data.response, phase, {"mode": "markers", "marker": {"size": 5, "color": "@dim"}}),
        ("fitted", w, model, np.unwrap(np.angle(model)), {"mode": "lines", "line": {"color": category(0), "width": 2}}),
    ):  # fmt: skip
        common = {"type": "scatter", "name": name, "x": x, **extra}
        traces += [{**common, "y": np.abs(G)}, {**common, "y": np.degrees(angle), "yaxis": "y2", "showlegend": False}]
    axes = {
        "xaxis": axis("frequency [rad/s]", type="log", anchor="y2"),
        "yaxis": axis(with_unit("magnitude", plain(data.unit)), type="log", exponentformat="power", domain=[0.54, 1.0]),
        "yaxis2": axis("phase [deg]", domain=[0.0, 0.46]),
    }
    figure = Figure(
        "Measured frequency response and fitted plant", {"data": traces, "layout": layout(**axes)}, height=560
    )
    units = ("", data.unit)
    gain = gain_unit(units, fit.model)
    rows = tuple(
        (k, _without_rounding(k, v), fit.confidence[k], gain if k == "gain" else "s") for k, v in fit.parameters.items()
    )
    table = Table(
        "Numbers of the fitted plant", ("number", "value", "± (95 %)", "unit"), rows,
        note="The intervals hold where what the model leaves are independent errors of equal size.",
    )  # fmt: skip
    words = (
        f"The plant is a model fitted to a response at {len(data.frequency)} frequencies, {_WORDS[fit.model]}; the "
        f"relative error that is left has a root mean square of {fit.residual:.2%}."
    )
    return FitSection(figure, (table, _structures(plant.structures(), fit.model, units)), (words,))


def pattern(fit: StepFit, data: StepData) -> float:
    """Correlation of neighbouring residuals: near 0 for white noise."""
    residual = data.output - fit.output
    power = float((residual**2).sum())
    return float((residual[1:] * residual[:-1]).sum()) / power if power > 0.0 else 0.0


def _findings(data: StepData, fit: StepFit) -> tuple[str, ...]:
    unit = data.units[1]
    size = f"{number(fit.residual, 3)} {unit}".strip()
    words = [
        f"The plant is a model fitted to {len(data.time)} samples, {_WORDS[fit.model]}. It explains "
        f"{fit.explained_variance:.2%} of the output's variance; what is left has a root mean square of {size}."
    ]
    alike = pattern(fit, data)
    if abs(alike) > max(_PATTERN, 2.0 / np.sqrt(len(data.time))):
        words.append(
            f"The residuals are not white noise: neighbouring values are correlated ({number(alike, 2)}). "
            f"Something that "
            "the model leaves out is in the data, and the intervals of its numbers are too narrow."
        )
    if fit.uncertain:
        words.append(
            f"The input may have stepped up to {number(fit.uncertain, 3)} s before the sample that shows it; the"
            f" delay is {_ends(fit)} s."
        )
    return tuple(words)


def _figure(data: StepData, fit: StepFit) -> Figure:
    first, second = (plain(unit) for unit in data.units)
    time = data.time

    def trace(name: str, y: Any, axis_name: str, **extra: Any) -> dict[str, Any]:
        unit = first if name == "input" else second
        hover = f"{name}<br>%{{x:.4~g}} s: <b>%{{y:.4~g}} {unit}</b><extra></extra>"
        return {"type": "scatter", "name": name, "x": time, "y": y, "yaxis": axis_name, "hovertemplate": hover, **extra}

    points = {"mode": "markers", "marker": {"size": 4, "color": "@dim"}}
    traces = [
        trace("measured", data.output, "y", **points),
        trace("fitted", fit.output, "y", mode="lines", line={"color": category(0), "width": 2}),
        trace("residual", data.output - fit.output, "y2", **points, showlegend=False),
        trace("input", data.input, "y3", mode="lines", line={"color": category(1), "width": 1.5, "shape": "hv"}),
    ]
    axes = {
        "xaxis": axis("time since the first sample [s]", anchor="y3", range=[0.0, float(time[-1])]),
        "yaxis": axis(with_unit("output", second), domain=[0.5, 1.0]),
        "yaxis2": axis(with_unit("residual", second), domain=[0.25, 0.44], zeroline=True),
        "yaxis3": axis(with_unit("input", first), domain=[0.0, 0.19]),
    }
    return Figure(
        "Measured record and fitted plant",
        {"data": traces, "layout": layout(**axes)},
        note="Measured less fitted is the residual.",
        height=620,
    )


def _table(data: StepData, fit: StepFit) -> Table:
    units = {"gain": gain_unit(data.units, fit.model)}
    rows: list[tuple[Any, ...]] = [
        (name, _without_rounding(name, value), _deviation(fit, name), units.get(name, "s"))
        for name, value in fit.parameters.items()
    ]
    return Table(
        "Numbers of the fitted plant",
        ("number", "value", "± (95 %)", "unit"),
        (*rows, ("output at rest", fit.offset, "–", data.units[1])),
        note="The intervals hold where what the model leaves is white noise.",
    )


def _deviation(fit: StepFit, name: str) -> float | str:
    """The deviation that the number `name` may have, in words if it depends on the side."""
    below, above = fit.deviations(name)
    return above if below == above else f"−{number(below, 2)}, +{number(above, 2)}"


def _ends(fit: StepFit) -> str:
    """The interval of the delay in words, of 95 %."""
    delay, (below, above) = fit.parameters["delay"], fit.deviations("delay")
    return f"{number(delay - below, 3)} to {number(delay + above, 3)}"


def _without_rounding(name: str, value: float) -> float:
    """The number `name` of a plant; 0 for what a fit leaves of a delay at its lower bound."""
    return value if name == "gain" or abs(value) > _ROUNDING else 0.0


def gain_unit(units: tuple[str, str], model: str) -> str:
    """The unit of the output over that of the input, and over a second for an integrator."""
    below = [unit for unit in (units[0], "s" if model == "ipdt" else "") if unit]
    above = units[1]
    if not below:
        return above
    return f"{above or '1'}/{below[0] if len(below) == 1 else '(' + ' '.join(below) + ')'}"
