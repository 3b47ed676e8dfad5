"""Report part `scene`: a motion drawn from the arrays of an evaluation."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import InvalidSetting, Quantity, report_part
from designopt.report.designs import Arrays, Plot, missing, selectable, stored_arrays
from designopt.report.drawing import DrawnMotion, draw
from designopt.report.section import Section
from designopt.store.result import Result


@report_part("scene", version=1)
@dataclass(kw_only=True)
class Scene:
    """A motion with a time slider: bodies as lines, wires coloured by an array, forces as arrows.

    `lines` names arrays (time, vertex, axis) in m, with NaN between lines; several are superposed. `wires` names an
    array (time, wire, vertex, axis), `colour` one (time, wire) that colours it from `lowest` to `highest`, by default
    over its range. `forces` names arrays (time, force, 2, axis): point of application (m) and force (N). There are two
    or three axes. A drawing of more than 200 frames or 1 MB has fewer frames.
    """

    title: Annotated[str, Quantity("", "heading of the section")] = "The motion"
    time: Annotated[str, Quantity("", "array (time,) in s")] = "time"
    lines: Annotated[list[str], Quantity("", "arrays (time, vertex, axis) in m, NaN between lines")] = field(
        default_factory=lambda: ["scene"]
    )
    wires: Annotated[str | None, Quantity("", "array (time, wire, vertex, axis) in m")] = None
    colour: Annotated[str | None, Quantity("", "array (time, wire) that colours the wires")] = None
    lowest: Annotated[float | None, Quantity("", "value of the first colour")] = None
    highest: Annotated[float | None, Quantity("", "value of the last colour")] = None
    forces: Annotated[list[str], Quantity("", "arrays (time, force, 2, axis): points in m, forces in N")] = field(
        default_factory=list
    )
    height: Annotated[int, Quantity("", "of the drawing, in pixels", ge=200, le=2000)] = 560

    def __call__(self, result: Result) -> Section | None:
        """The section; without stored arrays it names the missing ones."""
        if not self.lines and self.wires is None:
            raise InvalidSetting("lines", "name an array of lines, or of wires")
        optional = [name for name in (self.wires, self.colour) if name is not None]
        names = [self.time, *self.lines, *optional, *self.forces]
        motions = stored_arrays(result, *names)
        if not motions:
            return missing(self.title, *names) if len(result.outcomes.X) else None
        declarations = result.problem.model.plugin.arrays
        components = next(
            (array.components for name in names if (array := declarations.get(name)) and array.components), ()
        )
        plot = partial(self._plot, components=components)
        note = "Drawn to scale." + (" Arrows show forces, all with one scale." if self.forces else "")
        return Section(self.title, figures=(selectable(self.title, motions, plot, height=self.height, note=note),))

    def _plot(self, arrays: Arrays, *, components: tuple[str, ...]) -> Plot:
        def coordinates_of(name: str, axes: int) -> Floats:
            coordinates = np.asarray(arrays[name], dtype=np.float64)
            if coordinates.ndim != axes or coordinates.shape[-1] not in (2, 3) or len(coordinates) != len(time):
                raise ValueError(
                    f"array '{name}' has shape {coordinates.shape}: {axes} axes are drawn, time first, x y last"
                )
            return coordinates

        time = np.asarray(arrays[self.time], dtype=np.float64)
        values = None if self.colour is None else np.asarray(arrays[self.colour], dtype=np.float64)
        low, high = _range(values, self.lowest, self.highest)
        colour_range: dict[str, Any] = {"lowest": low, "highest": high, "meaning": self.colour or ""}
        return draw(
            DrawnMotion(
                time,
                {name: coordinates_of(name, 3) for name in self.lines},
                wires=None if self.wires is None else coordinates_of(self.wires, 4),
                values=values,
                forces={name.replace("_", " "): coordinates_of(name, 4) for name in self.forces},
                axes=components,
                **colour_range,
            )
        )


def _range(values: Floats | None, lowest: float | None, highest: float | None) -> tuple[float, float]:
    finite = np.array([0.0, 1.0]) if values is None else values[np.isfinite(values)]
    if not len(finite):
        finite = np.array([0.0, 1.0])
    return (
        float(finite.min()) if lowest is None else lowest,
        float(finite.max()) if highest is None else highest,
    )
