"""Forces in the joints over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from designopt.report.colours import axis, category, layout
from designopt.report.designs import Arrays, Plot, line, selectable
from designopt.report.section import Figure


def reaction_figure(found: Mapping[tuple[str, str], Arrays]) -> Figure | None:
    """Size and components of the force in each joint that the settings name; None where none is."""
    if not all(len(arrays.get("joints", ())) for arrays in found.values()):
        return None
    return selectable(
        "Joint reactions", found, _plot, height=360,
        note="Force of the parent on the child, size and components in the axes that the settings ask for.",
    )  # fmt: skip


def _plot(arrays: Arrays) -> Plot:
    time, force = arrays["time"], np.asarray(arrays["reactions"], dtype=float)
    data: list[dict[str, Any]] = []
    for n, joint in enumerate(arrays["joints"]):
        data.append(
            line(time, np.linalg.norm(force[:, n], axis=1), str(joint), line={"color": category(n), "width": 2})
        )
        for part, dash in zip(range(3), ("dot", "dash", "dashdot"), strict=True):
            thin = {"color": category(n), "width": 1, "dash": dash}
            data.append(line(time, force[:, n, part], f"{joint} {'xyz'[part]}", line=thin))
    return {"data": data, "layout": layout(xaxis=axis("time [s]"), yaxis=axis("force [N]"))}
