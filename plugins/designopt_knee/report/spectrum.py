"""Report part `spectrum`: the lines of the knee angle's spectrum over stiffness."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.plugin import report
from designopt.report.colours import ORDERED, axis, bare_layout, category, colour_bar, layout
from designopt.report.grid import Grid
from designopt.report.labels import chosen_once, plain
from designopt.report.parts.designs.map import edges
from designopt.report.section import Figure, Section
from designopt.store.result import Result
from designopt_knee.report.angle import (
    design_words,
    line_colour,
    missing,
    reservations,
    scan,
    selectors,
    stiffness_axis,
    stiffness_of,
)

Matrix = NDArray[np.float64]

#: The spectrum's colours end at this amplitude (deg).
FAINTEST = 0.01


@report("spectrum", version=1)
def spectrum(result: Result) -> Section | None:
    """Spectrum of the knee angle over stiffness for each damping ratio, and of the chosen designs."""
    title = "Spectrum of the knee angle"
    figures = []
    grid = scan(result)
    if grid is not None:
        figures += [f for f in (_spectrum_map(result, grid), _subharmonics(result, grid)) if f is not None]
    figures += [f for f in (_lines(result),) if f is not None]
    if not figures:
        return missing(title, result, "spectrum_frequency", "spectrum_amplitude")
    notes = reservations(result)
    if grid is not None and figures[0].title != _MAP_TITLE:
        notes = (
            "The map over stiffness needs the spectra of all designs: execution: {arrays: {spectrum_frequency: all, "
            "spectrum_amplitude: all}}.",
            *notes,
        )
    return Section(
        title,
        introduction="A response that repeats every gait cycle has lines at multiples of the gait frequency only. "
        "A line at 1/2 is a period of two cycles, lines at 1/3 and 2/3 of three; a continuous ground is irregular.",
        figures=tuple(figures),
        notes=notes,
    )


_MAP_TITLE = "Spectrum over stiffness"


def _spectrum_map(result: Result, grid: Grid) -> Figure | None:
    choices, keys = selectors(result, grid)
    variants: dict[tuple[int, ...], Any] = {}
    frequency: Matrix = np.empty(0)
    found: dict[tuple[int, ...], list[tuple[Matrix, Matrix] | None]] = {}
    for key, q, s in keys:
        columns: list[tuple[Matrix, Matrix] | None] = []
        for row in grid.rows[q].tolist():
            arrays = result.arrays(row, s) if row >= 0 else {}
            known = {"spectrum_frequency", "spectrum_amplitude"} <= arrays.keys()
            columns.append((arrays["spectrum_frequency"], arrays["spectrum_amplitude"]) if known else None)
            if known and len(arrays["spectrum_frequency"]) > len(frequency):
                frequency = arrays["spectrum_frequency"]
        found[key] = columns
    if not len(frequency):
        return None
    for key, columns in found.items():
        z = np.full((len(frequency), len(grid.x)), np.nan)
        for j, column in enumerate(columns):
            if column is not None:
                z[:, j] = np.log10(np.maximum(_on(frequency, *column), FAINTEST))
        variants[key] = {"data": {"0": {"z": z}}}
    ticks = [0.01, 0.1, 1.0, 10.0]
    bar = colour_bar("amplitude [deg]", tickvals=np.log10(ticks), ticktext=[f"{t:g}" for t in ticks])
    data = {
        "type": "heatmap",
        "x": edges(grid.x, stiffness_of(result)),
        "y": edges(frequency),
        "z": next(iter(variants.values()))["data"]["0"]["z"],
        "zmin": np.log10(FAINTEST),
        "zmax": 1.6,
        "colorscale": ORDERED,
        "colorbar": bar,
        "hovertemplate": "k %{x:.5~g}, %{y:.3~g} per cycle: 10^<b>%{z:.2f}</b> deg<extra></extra>",
        "hoverongaps": False,
    }
    lines = {"tickvals": [1 / 3, 1 / 2, 2 / 3, 1, 2, 3, 4], "ticktext": ["1/3", "1/2", "2/3", "1", "2", "3", "4"]}
    axes = {"xaxis": stiffness_axis(result), "yaxis": axis("frequency [1/cycle]", range=[0.0, 2.2], **lines)}
    return Figure(
        _MAP_TITLE,
        {"data": [data], "layout": bare_layout(**axes)},
        note="Amplitudes on a logarithmic scale. A design that was stopped early as periodic has nothing between its "
        "lines. Zoom out for frequencies up to 4 per cycle.",
        height=480,
        choices=choices,
        variants=variants,
    )


def _on(frequency: Matrix, own: Matrix, amplitude: Matrix) -> Matrix:
    """`amplitude` (given at `own`) at `frequency`; 0 where a shorter record has no line."""
    at = np.clip(np.searchsorted(own, frequency - 1e-6), 0, len(own) - 1)
    return np.where(np.abs(own[at] - frequency) < 1e-6, amplitude[at], 0.0)


def _subharmonics(result: Result, grid: Grid) -> Figure | None:
    """Amplitudes at 1/2 and 1/3 per cycle over stiffness, from the recorded figures."""
    names = {
        "subharmonic": "largest below 1 and between 1 and 2",
        "subharmonic_half": "at 1/2 per cycle",
        "subharmonic_third": "at 1/3 per cycle",
    }
    known = [n for n in names if n in result.outcomes.figures]
    if not known:
        return None
    choices, keys = selectors(result, grid)
    variants: dict[tuple[int, ...], Any] = {}
    for key, q, s in keys:
        values = {n: grid.take(result.outcomes.figures[n][:, s])[q] for n in known}
        variants[key] = {"data": {str(i): {"y": values[n]} for i, n in enumerate(known)}}
    first = next(iter(variants.values()))["data"]
    dashes = ("solid", "dash", "dot")
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": names[n],
            "x": grid.x,
            "y": first[str(i)]["y"],
            "line": {"color": category(i), "dash": dashes[i], "width": 1.6},
            "marker": {"size": 4},
            "hovertemplate": "k %{x:.5~g}: <b>%{y:.3~g} deg</b><extra></extra>",
        }
        for i, n in enumerate(known)
    ]
    axes = {"xaxis": stiffness_axis(result), "yaxis": axis("amplitude [deg]", rangemode="tozero")}
    return Figure(
        "Subharmonic lines over stiffness",
        {"data": data, "layout": layout(**axes)},
        height=360,
        choices=choices,
        variants=variants,
    )


def _lines(result: Result) -> Figure | None:
    """Line spectra of the chosen designs (first scenario)."""
    data = []
    for k, (label, row) in enumerate(chosen_once(result).items()):
        arrays = result.arrays(row, 0)
        if not {"spectrum_frequency", "spectrum_amplitude"} <= arrays.keys():
            continue
        x, y = arrays["spectrum_frequency"], arrays["spectrum_amplitude"]
        gap = np.full(len(x), np.nan)
        name = plain(f"{label}: {design_words(result, row)}")
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": name,
                "x": np.stack([x, x, gap], 1).ravel(),
                "y": np.stack([np.full(len(x), FAINTEST), np.maximum(y, FAINTEST), gap], 1).ravel(),
                "line": {"color": line_colour(k), "width": 1.5},
                "marker": {"size": np.stack([0 * x, np.where(y > FAINTEST, 6.0, 0.0), 0 * x], 1).ravel(), "opacity": 1},
                "hovertemplate": f"{name}<br>%{{x:.3~g}} per cycle: <b>%{{y:.3~g}} deg</b><extra></extra>",
            }
        )
    if not data:
        return None
    ticks = {"tickvals": [0.01, 0.1, 1, 10, 100], "ticktext": ["0.01", "0.1", "1", "10", "100"]}
    axes = {
        "xaxis": axis("frequency [1/cycle]", range=[0, 4.1], dtick=0.5),
        "yaxis": axis("amplitude [deg]", type="log", range=[np.log10(FAINTEST), 1.7], **ticks),
    }
    return Figure("Line spectra of the chosen designs", {"data": data, "layout": layout(**axes)}, height=400)
