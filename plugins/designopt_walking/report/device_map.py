"""Report part `device_map`: an output over the two numbers of a device, every evaluated design as a point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from designopt.plugin import Quantity, report_part
from designopt.report.colours import ORDERED_LINES, axis, colour_bar, layout
from designopt.report.labels import figure_unit, parameter_label, plain, with_unit
from designopt.report.section import Figure, Section
from designopt.report.traces import scenario_names, selected
from designopt.store.result import Result

_TITLE = "Map over the device"
_NOTHING_FREE = (
    "No number of the device is free, so there is no map: name one or two in space, as in "
    "space: {spring_stiffness: {low: 0, high: 100, unit: N m/rad}}, or list designs that differ."
)


@report_part("device_map", version=1)
@dataclass(kw_only=True)
class DeviceMap:
    """Outputs over the first two free parameters, or over one: evaluated designs alone, nothing between them.

    Designs without a result are crosses, with the reason: a walk that was not solved, or is implausible, is no
    point of a curve.
    """

    outputs: Annotated[list[str] | None, Quantity("", "outputs to draw; by default effort, cost and asymmetry")] = None

    def __call__(self, result: Result) -> Section | None:
        """The section, which says so where no number is free; None without an evaluation."""
        parameters = result.problem.space.free
        free = [k for k, p in enumerate(parameters) if p.kind != "choice"][:2]
        names = self.outputs or ["effort", "cost_of_transport", "loading_asymmetry"]
        shown_outputs = [name for name in names if name in result.outcomes.figures]
        if not shown_outputs or not len(result.outcomes.X):
            return None
        if not free:
            return Section(_TITLE, introduction=_NOTHING_FREE)
        scenarios = scenario_names(result)
        x, y = (result.outcomes.X[:, k] for k in (free[0], free[-1]))
        finite = np.isfinite(np.stack([result.outcomes.figures[name] for name in shown_outputs]))
        failed: NDArray[np.bool_] = np.asarray(~finite.all(axis=0))
        reasons = result.reason
        labels = [parameter_label(parameters[k]) for k in free]
        several = len(free) > 1

        def draw(figure: int, scenario: int) -> list[dict[str, Any]]:
            values = result.outcomes.figures[shown_outputs[figure]][:, scenario]
            ok, none = ~failed[:, scenario], failed[:, scenario]
            vertical = y if several else values
            title = with_unit(shown_outputs[figure], figure_unit(result.problem, shown_outputs[figure]))
            colours = {"color": values[ok], "colorscale": ORDERED_LINES, "colorbar": colour_bar(title)}
            marks: dict[str, Any] = colours if several else {"color": "@accent"}
            lowest = float(np.nanmin(values)) if ok.any() else 0.0
            return [
                {"type": "scatter", "mode": "markers", "name": "solved", "x": x[ok], "y": vertical[ok],
                 "marker": {"size": 11, "line": {"color": "@ink", "width": 0.8}, **marks}, "customdata": values[ok],
                 "hovertemplate": "%{x:.4~g}, %{y:.4~g}: <b>%{customdata:.5~g}</b><extra></extra>"},
                {"type": "scatter", "mode": "markers", "name": "no result", "x": x[none],
                 "y": y[none] if several else np.full(int(none.sum()), lowest),
                 "text": [str(reason) or "no result" for reason in reasons[none, scenario]],
                 "marker": {"size": 10, "symbol": "x", "color": "@mark"},
                 "hovertemplate": "%{x:.4~g}, %{y:.4~g}: %{text}<extra></extra>"},
            ]  # fmt: skip

        def view(figure: int, scenario: int) -> dict[str, Any]:
            title = with_unit(shown_outputs[figure], figure_unit(result.problem, shown_outputs[figure]))
            return {"yaxis": {"title": {"text": plain(labels[1] if several else title)}}}

        figure: Figure = selected(
            "Device and walk",
            {"Figure": shown_outputs, "Scenario": scenarios},
            draw,
            layout(xaxis=axis(plain(labels[0])), yaxis=axis("")),
            view=view,
            height=460,
            note="Each point is a walk that was predicted for this device. Crosses have no result.",
        )
        count = int(failed.any(axis=1).sum())
        words = f"{count} of {len(failed)} designs have no result in some scenario." if count else ""
        return Section(_TITLE, introduction=words, figures=(figure,))
