"""Report part of dynamic sharing: excitations, activations and tendon forces."""

from __future__ import annotations

from designopt.plugin import report
from designopt.report.colours import axis, category, layout
from designopt.report.designs import Arrays, Plot, kept, line, missing, selectable
from designopt.report.section import Section
from designopt.store.result import Result


@report("muscle_excitations", version=1)
def muscle_excitations(result: Result) -> Section | None:
    """Excitations, activations and tendon forces of the muscles over a motion."""
    title = "Excitations and activations"
    names = ("time", "muscles", "excitations", "activations", "forces")
    found = kept(result, *names)
    if not found:
        return missing(title, *names) if len(result.outcomes.X) else None
    return Section(
        title,
        figures=(
            selectable("Excitation and activation", found, _excitations, height=440,
                       note="Excitations are lines, activations dashed."),
            selectable("Forces along the tendons", found, _forces, height=380),
        ),
    )  # fmt: skip


def _excitations(arrays: Arrays) -> Plot:
    time, data = arrays["time"], []
    for j, name in enumerate(arrays["muscles"]):
        group = {"legendgroup": str(name)}
        solid, dashed = ({"color": category(j), "width": 1.5, "dash": dash} for dash in ("solid", "dash"))
        data.append(line(time, arrays["excitations"][:, j], str(name), line=solid, **group))
        data.append(line(time, arrays["activations"][:, j], line=dashed, showlegend=False, **group))
    return {"data": data, "layout": layout(xaxis=axis("time [s]"), yaxis=axis("", range=[0.0, 1.05]))}


def _forces(arrays: Arrays) -> Plot:
    data = [
        line(arrays["time"], arrays["forces"][:, j], str(name), line={"color": category(j), "width": 1.5})
        for j, name in enumerate(arrays["muscles"])
    ]
    return {"data": data, "layout": layout(xaxis=axis("time [s]"), yaxis=axis("force [N]"))}
