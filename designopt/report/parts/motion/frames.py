"""Report part `frames`: a status or a number of every frame over time."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

import numpy as np

from designopt.plugin import Array, Quantity, report_part
from designopt.report.colours import axis, category, layout, scale_for
from designopt.report.designs import Arrays, Plot, missing, selectable, stored_arrays
from designopt.report.labels import number
from designopt.report.section import Section, Table
from designopt.store.result import Result

#: Maximum number of drawn arrays by default.
MOST = 12


@report_part("frames", version=1)
@dataclass(kw_only=True)
class Frames:
    """The status of every frame of a recording, or numbers such as residuals, over time.

    `status` names an array (time,) of integers, 0 for a usable frame; its declared `categories` name the values. `of`
    names arrays (time,) or (time, item). A click on a point shows that frame in the drawings of the part `scene`.
    """

    title: Annotated[str, Quantity("", "heading of the section")] = "Frames"
    time: Annotated[str, Quantity("", "array (time,) in s")] = "time"
    status: Annotated[str | None, Quantity("", "array (time,) with the status of every frame")] = None
    of: Annotated[list[str], Quantity("", "arrays (time,) or (time, item) to draw")] = field(default_factory=list)

    def __call__(self, result: Result) -> Section | None:
        """The section; without stored arrays it names the missing ones."""
        names = [self.time, *([self.status] if self.status else []), *self.of]
        motions = stored_arrays(result, *names)
        if not motions:
            return missing(self.title, *names) if len(result.outcomes.X) else None
        declarations = result.problem.model.plugin.arrays
        figures = [
            selectable(
                name.replace("_", " "),
                motions,
                partial(self._plot, name=name, unit=declarations[name].unit if name in declarations else ""),
                height=300,
            )
            for name in names[1:]
        ]
        return Section(self.title, figures=tuple(figures), tables=self._tables(result, motions))

    def _plot(self, arrays: Arrays, name: str, unit: str) -> Plot:
        time, values = np.asarray(arrays[self.time]), np.asarray(arrays[name], dtype=np.float64)
        columns = values.reshape(len(time), -1).T
        points = {"mode": "markers", "marker": {"size": 5}} if name == self.status else {"mode": "lines"}
        data: list[dict[str, Any]] = [
            {"type": "scatter", "x": np.round(time, 6), "y": column, "showlegend": False, "connectgaps": False,
             "hovertemplate": "%{x:.4g} s: %{y:.4g}<extra></extra>", "line": {"color": category(k), "width": 1.5},
             **points}
            for k, column in enumerate(columns)
        ]  # fmt: skip
        words = f"{name.replace('_', ' ')} [{unit}]" if unit else name.replace("_", " ")
        scale = {"dtick": 1} if name == self.status else scale_for(values)
        return {
            "data": data,
            "layout": layout(xaxis=axis("time [s]"), yaxis=axis(words, **scale), meta={"jump": True}),
        }

    def _tables(self, result: Result, motions: dict[tuple[str, str], Arrays]) -> tuple[Table, ...]:
        """Number of frames of each trial by status, with the first of them."""
        if self.status is None:
            return ()
        rows = []
        for (design, scenario), arrays in motions.items():
            status, time = np.asarray(arrays[self.status]), np.asarray(arrays[self.time])
            for value in np.unique(status).tolist():
                indices = np.flatnonzero(status == value)
                share = f"{100.0 * len(indices) / len(status):.3g} %"
                rows.append(
                    (design, scenario, _word(result, self.status, value), len(indices), share, number(time[indices[0]]))
                )
        columns = ("design", "scenario", "status", "frames", "share", "first at [s]")
        return (Table("Frames by status", columns, tuple(rows)),)


def over_time(result: Result) -> Section | None:
    """Stored arrays over time, if the study names no parts of its own."""
    declarations = result.problem.model.plugin.arrays
    if "time" not in declarations or declarations["time"].unit != "s" or "time" not in result.study.execution.arrays:
        return None
    names = [name for name in result.study.execution.arrays if name != "time" and _is_curve(declarations.get(name))]
    motions = stored_arrays(result, "time", *names[:MOST]).values()
    names = [name for name in names[:MOST] if not all(_is_share_of_time(declarations[name], m, name) for m in motions)]
    if not names or not motions:
        return None
    return Frames(title="Motions", of=names)(result)


def _is_curve(array: Array | None) -> bool:
    """Whether it contains numbers over time, for at most a few items."""
    if array is None or array.axes[:1] != ("time",) or len(array.axes) > 2 or array.categories:
        return False
    return array.dtype in ("", "float", "float32", "int")


def _is_share_of_time(array: Array, arrays: Arrays, name: str) -> bool:
    """Whether it is time in another unit, as per cent of a cycle."""
    if array.unit != "%" or len(array.axes) > 1:
        return False
    time, share = (np.asarray(arrays[key], dtype=np.float64) for key in ("time", name))
    return bool(len(time) > 1 and np.allclose(np.diff(share) * np.ptp(time), np.diff(time) * np.ptp(share)))


def _word(result: Result, array: str, value: Any) -> str:
    """The meaning of a status, if the model declares it."""
    declaration = result.problem.model.plugin.arrays.get(array)
    categories = declaration.categories if declaration else ()
    code = int(value)
    return str(categories[code]) if 0 <= code < len(categories) else str(code)
