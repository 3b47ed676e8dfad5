"""Report part of dynamic sharing: excitations with EMG, activations, tendon forces, balances, fibres on curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from designopt.plugin import report_part
from designopt.report.colours import axis, layout
from designopt.report.designs import Arrays, Plot, line, missing, selectable, stored_arrays
from designopt.report.section import Figure, Section
from designopt.store.result import Result
from designopt_muscle.curves import OPENSIM
from designopt_muscle.report.balances import BALANCE, balance_figures
from designopt_muscle.report.named_muscles import drawn_muscles, key_of_lines, named_muscles, signals_of

_NAMES = ("time", "muscles", "excitations", "activations", "forces")
#: Arrays of the figures on curves.
_FIBRES = {"fibre_lengths", "fibre_speeds", "tendon_forces"}


@report_part("muscle_excitations", version=2, arrays=_NAMES)
def muscle_excitations(result: Result) -> Section | None:
    """Excitations with measured signals, activations, tendon forces, and fibres on their curves, over a motion.

    Signals, curves and balances are drawn where their arrays are kept: `signals`; `fibre_lengths`, `fibre_speeds` and
    `tendon_forces`; `coordinates`, `muscle_moments`, `net_moments` and `reserves`.
    """
    title = "Excitations and activations"
    motions = stored_arrays(result, *_NAMES)
    if not motions:
        return missing(title, *_NAMES) if len(result.outcomes.X) else None
    highlights = named_muscles(motions, "excitations")
    line_key = key_of_lines(motions, "Points: measured signals.", "The most excited muscles are named.")
    note = f"Excitations are lines, activations dashed. {line_key}".strip()
    return Section(
        title,
        figures=(
            selectable(
                "Excitation and activation",
                motions,
                partial(_excitations, highlights=highlights),
                height=440,
                note=note,
            ),
            selectable("Forces along the tendons", motions, partial(_forces, highlights=highlights), height=380),
            *(balance_figures(motions) if all(arrays.keys() >= BALANCE for arrays in motions.values()) else ()),
            *_on_curves(motions, highlights),
        ),
    )


def _excitations(arrays: Arrays, *, highlights: Sequence[str]) -> Plot:
    time, signals, data = arrays["time"], signals_of(arrays), []
    for j, name, style in drawn_muscles(arrays, highlights):
        group: dict[str, Any] = {"legendgroup": name} if name else {}
        data.append(line(time, arrays["excitations"][:, j], name, line=style, **group))
        if name:
            data.append(line(time, arrays["activations"][:, j], line={**style, "dash": "dash"}, **group))
        if np.isfinite(signals[:, j]).any():
            points = line(time, signals[:, j], marker={"color": style["color"], "size": 4}, **group)
            data.append({**points, "mode": "markers"})
    top = max(1.05, float(np.nanmax(signals, initial=0.0)) + 0.05)
    return {
        "data": data,
        "layout": layout(xaxis=axis("time [s]"), yaxis=axis("excitation, activation", range=[0.0, top])),
    }


def _forces(arrays: Arrays, *, highlights: Sequence[str]) -> Plot:
    lines = drawn_muscles(arrays, highlights)
    data = [line(arrays["time"], arrays["forces"][:, j], name, line=style) for j, name, style in lines]
    return {"data": data, "layout": layout(xaxis=axis("time [s]"), yaxis=axis("force [N]", rangemode="tozero"))}


def _on_curves(motions: Mapping[tuple[str, str], Arrays], highlights: Sequence[str]) -> tuple[Figure, ...]:
    if not all(arrays.keys() >= _FIBRES for arrays in motions.values()):
        return ()
    return (
        selectable("Force over fibre length", motions, partial(_lengths, highlights=highlights), height=420,
                   note="Tendon forces over fibre lengths during the motion; the curves are the active force of an"
                        " isometric fibre and its passive force."),
        selectable("Force over fibre speed", motions, partial(_speeds, highlights=highlights), height=420,
                   note="Tendon forces over fibre speeds, shortening is negative; the curve is the maximum active"
                        " force at the optimal length."),
    )  # fmt: skip


def _lengths(arrays: Arrays, *, highlights: Sequence[str]) -> Plot:
    lengths = np.asarray(arrays["fibre_lengths"], dtype=float)
    x = np.linspace(min(0.4, float(lengths.min())), max(1.6, float(lengths.max())), 200)
    ink = {"color": "@ink", "width": 1.5}
    data = [
        line(x, OPENSIM.active_length(x), "active", line=ink),
        line(x, OPENSIM.passive(x), "passive", line={**ink, "dash": "dot"}),
        *_loops(arrays, lengths, highlights),
    ]
    return {"data": data, "layout": _over("fibre length [optimal lengths]")}


def _speeds(arrays: Arrays, *, highlights: Sequence[str]) -> Plot:
    speeds = np.asarray(arrays["fibre_speeds"], dtype=float)
    x = np.linspace(min(-1.0, float(speeds.min())), max(0.5, float(speeds.max())), 200)
    data = [
        line(x, OPENSIM.velocity(x), "maximum", line={"color": "@ink", "width": 1.5}),
        *_loops(arrays, speeds, highlights),
    ]
    return {"data": data, "layout": _over("fibre speed [maximum speeds of shortening]")}


def _loops(arrays: Arrays, x: Any, highlights: Sequence[str]) -> list[dict[str, Any]]:
    lines = drawn_muscles(arrays, highlights)
    return [line(x[:, j], arrays["tendon_forces"][:, j], name, line=style) for j, name, style in lines]


def _over(title: str) -> dict[str, Any]:
    return layout(xaxis=axis(title), yaxis=axis("force [maximum isometric forces]", rangemode="tozero"))
