"""Report part `mechanism_signals`: efforts, powers, forces and tensions of a mechanism over its motion."""

from __future__ import annotations

from functools import partial

from designopt.plugin import report_part
from designopt.report.colours import axis, category, layout
from designopt.report.designs import Arrays, Plot, line, missing, selectable, stored_arrays
from designopt.report.section import Section
from designopt.store.result import Result

#: Figures: title, what the axis shows, and the beginnings of the names of arrays.
_FIGURES = (
    ("Efforts of the drives", "effort", ("effort_",)),
    ("Powers of the drives", "power", ("power_",)),
    ("Forces in the joints", "force", ("force_", "cut_", "contact_")),
    ("Moments in the joints", "moment", ("moment_",)),
    ("Tensions", "tension", ("tension_",)),
    ("Angles and clearances", "angle or clearance", ("angle_", "clearance_")),
)
_TITLE = "Forces of the mechanism"


@report_part("mechanism_signals", version=1)
def mechanism_signals(result: Result) -> Section | None:
    """The stored signals of the model `mechanism` over time, grouped by what they are."""
    motions = stored_arrays(result, "time")
    array_names = list(dict.fromkeys(name for arrays in motions.values() for name in arrays))
    quantities, figures = result.problem.model.plugin.arrays, []
    for title, quantity, prefixes in _FIGURES:
        names = [name for name in array_names if name.startswith(prefixes)]
        if names:
            units = dict.fromkeys(quantities[name].unit for name in names)
            label = f"{quantity} [{' or '.join(units)}]"
            figures.append(selectable(title, motions, partial(_curves, names, label), height=360))
    if not figures:
        return missing(_TITLE, "time", "effort_<coordinate>") if len(result.outcomes.X) else None
    return Section(_TITLE, figures=tuple(figures))


def _curves(names: list[str], label: str, arrays: Arrays) -> Plot:
    curves = [
        line(arrays["time"], arrays[name], name.replace("_", " "), line={"color": category(i)})
        for i, name in enumerate(names)
        if name in arrays
    ]
    return {"data": curves, "layout": layout(xaxis=axis("time [s]"), yaxis=axis(label))}
