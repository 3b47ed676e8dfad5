"""Report part `spectrum`: the lines of the knee angle's spectrum over stiffness."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.plugin import report_part
from designopt.report.colours import ORDERED, axis, bare_layout, category, colour_bar, layout
from designopt.report.designs import missing
from designopt.report.grid import Grid
from designopt.report.labels import drawn_designs, plain
from designopt.report.parts.designs.map import edges
from designopt.report.section import Figure, Section
from designopt.report.traces import Trace, selected, trace
from designopt.store.result import Result
from designopt_knee.report.angle import (
    design_words,
    line_colour,
    reservations,
    scan,
    scan_choices,
    stiffness_axis,
    stiffness_of,
)

#: The spectrum's colours end at this amplitude (deg).
FAINTEST = 0.01
#: Distance between the lines of two designs at one frequency (1/cycle).
BESIDE = 0.015

_NAMES = ("spectrum_frequency", "spectrum_amplitude")


@report_part("spectrum", version=1, arrays=_NAMES)
def spectrum(result: Result) -> Section | None:
    """Spectrum of the knee angle over stiffness for each damping ratio, and of the chosen designs."""
    title = "Spectrum of the knee angle"
    figures = []
    grid = scan(result)
    if grid is not None:
        figures += [f for f in (_spectrum_map(result, grid), _subharmonics(result, grid)) if f is not None]
    figures += [f for f in (_lines(result),) if f is not None]
    if not figures:
        return missing(title, *_NAMES)
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
    choices, rows_shown = scan_choices(result, grid)
    every = range(len(result.problem.scenarios))
    spectra_of = {(k, s): _spectra(result, grid.rows[q], s) for k, q in enumerate(rows_shown) for s in every}
    frequency = max(
        (frequencies for spectra in spectra_of.values() for frequencies, _ in spectra.values()),
        key=len,
        default=np.empty(0),
    )
    if not len(frequency):
        return None
    ticks = [0.01, 0.1, 1.0, 10.0]
    map_: Trace = {
        "type": "heatmap",
        "x": edges(grid.x, stiffness_of(result)),
        "y": edges(frequency),
        "zmin": np.log10(FAINTEST),
        "zmax": 1.6,
        "colorscale": ORDERED,
        "colorbar": colour_bar("amplitude [deg]", tickvals=np.log10(ticks), ticktext=[f"{t:g}" for t in ticks]),
        "hovertemplate": "k %{x:.5~g}, %{y:.3~g} per cycle: 10^<b>%{z:.2f}</b> deg<extra></extra>",
        "hoverongaps": False,
    }

    def draw(k: int, s: int) -> list[Trace]:
        z = np.full((len(frequency), len(grid.x)), np.nan)
        for j, spectrum in spectra_of[k, s].items():
            z[:, j] = np.log10(np.maximum(_on(frequency, *spectrum), FAINTEST))
        return [{**map_, "z": z}]

    lines = {"tickvals": [1 / 3, 1 / 2, 2 / 3, 1, 2, 3, 4], "ticktext": ["1/3", "1/2", "2/3", "1", "2", "3", "4"]}
    axes = {"xaxis": stiffness_axis(result), "yaxis": axis("frequency [1/cycle]", range=[0.0, 2.2], **lines)}
    return selected(
        _MAP_TITLE,
        choices,
        draw,
        bare_layout(**axes),
        note="Amplitudes on a logarithmic scale. A design that was stopped early as periodic has nothing between its "
        "lines. Zoom out for frequencies up to 4 per cycle.",
        height=480,
    )


def _spectra(result: Result, rows: NDArray[np.intp], s: int) -> dict[int, tuple[Floats, Floats]]:
    """Frequencies and amplitudes of the designs `rows` in a scenario, by their places, where they are kept."""
    spectra = {j: result.arrays(row, s) for j, row in enumerate(rows.tolist()) if row >= 0}
    return {j: (arrays[_NAMES[0]], arrays[_NAMES[1]]) for j, arrays in spectra.items() if set(_NAMES) <= arrays.keys()}


def _on(frequency: Floats, own_frequency: Floats, amplitude: Floats) -> Floats:
    """`amplitude` (given at `own_frequency`) at `frequency`; 0 where a shorter record has no line."""
    at = np.clip(np.searchsorted(own_frequency, frequency - 1e-6), 0, len(own_frequency) - 1)
    return np.where(np.abs(own_frequency[at] - frequency) < 1e-6, amplitude[at], 0.0)


def _subharmonics(result: Result, grid: Grid) -> Figure | None:
    """Amplitudes at 1/2 and 1/3 per cycle over stiffness, from the recorded figures."""
    names = {
        "subharmonic": "largest below 1 and between 1 and 2",
        "subharmonic_half": "at 1/2 per cycle",
        "subharmonic_third": "at 1/3 per cycle",
    }
    available_names = [n for n in names if n in result.outcomes.figures]
    if not available_names:
        return None
    choices, rows_shown = scan_choices(result, grid)

    def draw(k: int, s: int) -> list[Trace]:
        return [
            trace(grid.x, grid.take(result.outcomes.figures[n][:, s])[rows_shown[k]], names[n], mode="lines+markers",
                  colour=category(i), width=1.6, dash=("solid", "dash", "dot")[i], marker={"size": 4},
                  hover="k %{x:.5~g}: <b>%{y:.3~g} deg</b>")
            for i, n in enumerate(available_names)
        ]  # fmt: skip

    axes = {"xaxis": stiffness_axis(result), "yaxis": axis("amplitude [deg]", rangemode="tozero")}
    return selected("Subharmonic lines over stiffness", choices, draw, layout(**axes), height=360)


def _lines(result: Result) -> Figure | None:
    """Line spectra of the chosen designs (first scenario), a little beside each other."""
    data = []
    designs = drawn_designs(result)
    for k, (label, row) in enumerate(designs.items()):
        arrays = result.arrays(row, 0)
        if not set(_NAMES) <= arrays.keys():
            continue
        x, y = arrays["spectrum_frequency"], arrays["spectrum_amplitude"]
        gap = np.full(len(x), np.nan)
        name = plain(f"{label}: {design_words(result, row)}")
        ends = np.stack([np.full(len(x), FAINTEST), np.maximum(y, FAINTEST), gap], 1).ravel()
        tips = np.stack([0 * x, np.where(y > FAINTEST, 6.0, 0.0), 0 * x], 1).ravel()
        beside = x + BESIDE * (k - (len(designs) - 1) / 2)
        data.append(
            trace(np.stack([beside, beside, gap], 1).ravel(), ends, name, mode="lines+markers", colour=line_colour(k),
                  width=1.5, marker={"size": tips, "opacity": 1}, customdata=np.repeat(x, 3),
                  hover=f"{name}<br>%{{customdata:.3~g}} per cycle: <b>%{{y:.3~g}} deg</b>")
        )  # fmt: skip
    if not data:
        return None
    ticks = {"tickvals": [0.01, 0.1, 1, 10, 100], "ticktext": ["0.01", "0.1", "1", "10", "100"]}
    axes = {
        "xaxis": axis("frequency [1/cycle]", range=[0, 4.1], dtick=0.5),
        "yaxis": axis("amplitude [deg]", type="log", range=[np.log10(FAINTEST), 1.7], **ticks),
    }
    note = "Lines of one frequency stand beside each other." if len(data) > 1 else ""
    return Figure("Line spectra of the chosen designs", {"data": data, "layout": layout(**axes)}, note=note, height=400)
