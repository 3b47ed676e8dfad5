"""Report parts `walking_angles`, `walking_activations`, `walking_fibres` and `walking_tendons`: over the cycle, the
first two against bands of recorded data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import report_part
from designopt.report.designs import Arrays, Plot, line, missing, selectable, stored_arrays
from designopt.report.section import Section, Table
from designopt.store.result import Result
from designopt_walking.report.panels import by_quantity, panel_height, panels
from designopt_walking.report.sides import STYLES, side_names

#: Coordinates that are lengths.
_LENGTHS = ("pelvis_tx", "pelvis_ty", "pelvis_tz")
_BAND = "Shaded: mean of the recorded cycles ± 1 and 2 standard deviations; dotted: a recording without deviations."


@report_part("walking_angles", version=1, arrays=("percent", "coordinates", "positions"))
def walking_angles(result: Result) -> Section | None:
    """Angles of pelvis, trunk and joints over the cycle, with bands of a recording where the model has one."""
    return _curves(result, "Angles", "coordinates", "positions", "recorded_positions")


@report_part("walking_activations", version=1, arrays=("percent", "muscles", "activations"))
def walking_activations(result: Result) -> Section | None:
    """Activations of all muscles over the cycle, with bands of a recording where the model has one."""
    return _curves(result, "Activations", "muscles", "activations", "recorded_activations")


@report_part("walking_fibres", version=1, arrays=("percent", "muscles", "fibre_lengths"))
def walking_fibres(result: Result) -> Section | None:
    """Lengths of the fibres of all muscles over the cycle, in optimal lengths."""
    return _curves(result, "Fibre lengths", "muscles", "fibre_lengths")


@report_part("walking_tendons", version=1, arrays=("percent", "muscles", "tendon_strains"))
def walking_tendons(result: Result) -> Section | None:
    """Strains of compliant tendons over the cycle, in percent of the slack length; nothing where all are rigid."""
    motions = stored_arrays(result, "tendon_strains").values()
    if motions and not any(np.any(arrays["tendon_strains"]) for arrays in motions):
        return None
    return _curves(result, "Tendon strains", "muscles", "tendon_strains")


#: Units of the curves in words, and factors from those of the arrays.
_UNITS = {
    "positions": ("in degrees", float(np.degrees(1.0))),
    "activations": ("from 0 to 1", 1.0),
    "fibre_lengths": ("in optimal fibre lengths", 1.0),
    "tendon_strains": ("in percent of the slack length", 100.0),
}


def _curves(result: Result, title: str, names: str, values: str, bands: str = "") -> Section | None:
    array_names = ("percent", names, values)
    motions = stored_arrays(result, *array_names)
    if not motions:
        return missing(title, *array_names) if len(result.outcomes.X) else None
    first = next(iter(motions.values()))
    columns = by_quantity(_without_lengths(first[names]))
    has_bands = any(np.isfinite(arrays[bands]).any() for arrays in motions.values() if bands in arrays)

    sides = side_names(result)

    def plot(arrays: Arrays) -> Plot:
        return _plot(arrays, columns, (names, values, bands if has_bands else ""), sides)

    unit, _ = _UNITS[values]
    note = f"{unit.capitalize()}, right and left. {_BAND if has_bands else ''}".strip()
    figure = selectable(title, motions, plot, height=panel_height(len(columns)), note=note)
    return Section(title, figures=(figure,), tables=_inside(motions, names, values, bands))


def _without_lengths(names: Iterable[Any]) -> list[str]:
    return [str(name) for name in names if str(name) not in _LENGTHS]


def _plot(
    arrays: Arrays, columns: Mapping[str, Mapping[str, int]], names: tuple[str, str, str], sides: Mapping[str, str]
) -> Plot:
    quantities, (labels, values, bands) = list(columns), names
    _, factor = _UNITS[values]
    every = [str(name) for name in arrays[labels]]
    shown_names = _without_lengths(every)
    percent, y = np.asarray(arrays["percent"], dtype=float), factor * np.asarray(arrays[values], dtype=float)

    def draw(i: int) -> list[dict[str, Any]]:
        traces: list[dict[str, Any]] = []
        for side, column in columns[quantities[i]].items():
            k = every.index(shown_names[column])
            if bands in arrays:
                band = factor * np.asarray(arrays[bands], dtype=float)[:, k]
                traces += _band(percent, band, STYLES[side]["color"])
            traces.append(line(percent, y[:, k], sides[side], line=STYLES[side]))
        return traces

    limits = {"rangemode": "tozero"} if values in ("activations", "tendon_strains") else {}
    return panels([name.replace("_", " ") for name in quantities], draw, **limits)


def _band(percent: Floats, band: Floats, colour: Any) -> list[dict[str, Any]]:
    """Areas of mean ± 2 and ± 1 deviations; `band` (time, 2) has mean and deviation, NaN where nothing is recorded."""
    has_mean = np.isfinite(band[:, 0])
    if has_mean.any() and np.isnan(band[:, 1]).all():
        return [line(percent[has_mean], band[has_mean, 0], "", line={"color": colour, "width": 1.2, "dash": "dot"})]
    x, (mean, deviation) = percent[has_mean], np.nan_to_num(band[has_mean].T)
    traces = []
    for width in (2.0, 1.0) if len(x) else ():
        around = np.concatenate([mean + width * deviation, (mean - width * deviation)[::-1]])
        traces.append(
            line(np.concatenate([x, x[::-1]]), around, line={"color": colour, "width": 0.8}, fill="toself",
                 fillcolor=colour, opacity=0.12)
        )  # fmt: skip
    return traces


def _inside(motions: Mapping[tuple[str, str], Arrays], names: str, values: str, bands: str) -> tuple[Table, ...]:
    """Share of the cycle within 1 and 2 standard deviations of the recorded mean."""
    rows = []
    for (design, scenario), arrays in motions.items():
        if bands not in arrays:
            continue
        y, band = np.asarray(arrays[values], dtype=float), np.asarray(arrays[bands], dtype=float)
        for k, name in enumerate(arrays[names]):
            has_band = np.isfinite(band[:, k]).all(axis=1)
            if has_band.any() and (band[has_band, k, 1] > 0.0).all():
                off = np.abs(y[has_band, k] - band[has_band, k, 0]) / band[has_band, k, 1]
                shares = [f"{100.0 * float((off <= width).mean()):.0f} %" for width in (1.0, 2.0)]
                rows.append((design, scenario, str(name), *shares))
    columns = ("design", "scenario", "quantity", "within 1 deviation", "within 2 deviations")
    return (Table("Share of the cycle inside the recorded band", columns, tuple(rows)),) if rows else ()
