"""Report part of dynamic sharing: excitations with EMG, activations, tendon forces, balances, fibres on curves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from designopt.plugin import report
from designopt.report.colours import axis, category, layout
from designopt.report.designs import Arrays, Plot, kept, line, missing, selectable
from designopt.report.section import Figure, Section
from designopt.store.result import Result
from designopt_muscle.curves import OPENSIM
from designopt_muscle.report.balances import BALANCE, balance_figures

#: Muscles with a colour of their own; the others are drawn faintly.
_NAMED = 8

_NAMES = ("time", "muscles", "excitations", "activations", "forces")
#: Arrays of the figures on curves.
_FIBRES = {"fibre_lengths", "fibre_speeds", "tendon_forces"}


@report("muscle_excitations", version=2)
def muscle_excitations(result: Result) -> Section | None:
    """Excitations with measured signals, activations, tendon forces, and fibres on their curves, over a motion.

    Signals, curves and balances are drawn where their arrays are kept: `signals`; `fibre_lengths`, `fibre_speeds` and
    `tendon_forces`; `coordinates`, `muscle_moments`, `net_moments` and `reserves`.
    """
    title = "Excitations and activations"
    found = kept(result, *_NAMES)
    if not found:
        return missing(title, *_NAMES) if len(result.outcomes.X) else None
    return Section(
        title,
        figures=(
            selectable("Excitation and activation", found, _excitations, height=440, note=_note(found)),
            selectable("Forces along the tendons", found, _forces, height=380),
            *(balance_figures(found) if all(arrays.keys() >= BALANCE for arrays in found.values()) else ()),
            *_on_curves(found),
        ),
    )


def _note(found: Mapping[tuple[str, str], Arrays]) -> str:
    text = "Excitations are lines, activations dashed."
    if any(np.isfinite(arrays["signals"]).any() for arrays in found.values() if "signals" in arrays):
        text += " Points: measured signals."
    if max(len(arrays["muscles"]) for arrays in found.values()) > _NAMED:
        text += " The most excited muscles are named."
    return text


def _order(arrays: Arrays) -> list[tuple[int, dict[str, Any]]]:
    """Muscles in the order in which they are drawn, with the style of their lines: the most excited are named."""
    size = np.asarray(arrays["excitations"], dtype=float).max(axis=0)
    if "signals" in arrays:
        size = size + np.isfinite(np.asarray(arrays["signals"], dtype=float)).any(axis=0)  # measured muscles come first
    order = [int(j) for j in np.argsort(-size, kind="stable")]
    faint = [(j, {"color": "@faint", "width": 0.8}) for j in order[_NAMED:][::-1]]
    return faint + [(j, {"color": category(n), "width": 1.6}) for n, j in enumerate(order[:_NAMED])]


def _name(arrays: Arrays, j: int, style: Mapping[str, Any]) -> str:
    return "" if style["color"] == "@faint" else str(arrays["muscles"][j])


def _excitations(arrays: Arrays) -> Plot:
    time, data = arrays["time"], []
    signals = np.asarray(arrays["signals"], dtype=float) if "signals" in arrays else None
    top = 1.05
    for j, style in _order(arrays):
        name = _name(arrays, j, style)
        group: dict[str, Any] = {"legendgroup": name} if name else {}
        data.append(line(time, arrays["excitations"][:, j], name, line=style, **group))
        if name:
            data.append(line(time, arrays["activations"][:, j], line={**style, "dash": "dash"}, **group))
        if signals is not None and np.isfinite(signals[:, j]).any():
            points = line(time, signals[:, j], marker={"color": style["color"], "size": 4}, **group)
            data.append({**points, "mode": "markers"})
            top = max(top, float(np.nanmax(signals[:, j])) + 0.05)
    return {"data": data, "layout": layout(xaxis=axis("time [s]"), yaxis=axis("", range=[0.0, top]))}


def _forces(arrays: Arrays) -> Plot:
    data = [
        line(arrays["time"], arrays["forces"][:, j], _name(arrays, j, style), line=style) for j, style in _order(arrays)
    ]
    return {"data": data, "layout": layout(xaxis=axis("time [s]"), yaxis=axis("force [N]", rangemode="tozero"))}


def _on_curves(found: Mapping[tuple[str, str], Arrays]) -> tuple[Figure, ...]:
    if not all(arrays.keys() >= _FIBRES for arrays in found.values()):
        return ()
    return (
        selectable("Force over fibre length", found, _lengths, height=420,
                   note="Tendon forces over fibre lengths during the motion; the curves are the active force of an"
                        " isometric fibre and its passive force."),
        selectable("Force over fibre speed", found, _speeds, height=420,
                   note="Tendon forces over fibre speeds, shortening is negative; the curve is the maximum active"
                        " force at the optimal length."),
    )  # fmt: skip


def _lengths(arrays: Arrays) -> Plot:
    lengths = np.asarray(arrays["fibre_lengths"], dtype=float)
    x = np.linspace(min(0.4, float(lengths.min())), max(1.6, float(lengths.max())), 200)
    ink = {"color": "@ink", "width": 1.5}
    data = [
        line(x, OPENSIM.active_length(x), "active", line=ink),
        line(x, OPENSIM.passive(x), "passive", line={**ink, "dash": "dot"}),
        *_loops(arrays, lengths),
    ]
    return {"data": data, "layout": _over("fibre length [optimal lengths]")}


def _speeds(arrays: Arrays) -> Plot:
    speeds = np.asarray(arrays["fibre_speeds"], dtype=float)
    x = np.linspace(min(-1.0, float(speeds.min())), max(0.5, float(speeds.max())), 200)
    data = [line(x, OPENSIM.velocity(x), "maximum", line={"color": "@ink", "width": 1.5}), *_loops(arrays, speeds)]
    return {"data": data, "layout": _over("fibre speed [maximum speeds of shortening]")}


def _loops(arrays: Arrays, x: Any) -> list[dict[str, Any]]:
    return [
        line(x[:, j], arrays["tendon_forces"][:, j], _name(arrays, j, style), line=style) for j, style in _order(arrays)
    ]


def _over(what: str) -> dict[str, Any]:
    return layout(xaxis=axis(what), yaxis=axis("force [maximum isometric forces]", rangemode="tozero"))
