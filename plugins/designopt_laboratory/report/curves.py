"""Report part `laboratory_curves`: curves over the cycle, mean and deviation, by side and group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np

from designopt.counts import plural
from designopt.plugin import Quantity as Q
from designopt.plugin import report_part
from designopt.report.colours import axis, caption, category, layout
from designopt.report.designs import Arrays, missing, stored_arrays
from designopt.report.labels import listed
from designopt.report.section import Figure, Section, Table, with_a_value
from designopt.report.traces import Trace, above, beside, selected
from designopt.store.result import Result
from designopt_laboratory.curves.interest import LEAST_RANGE, by_interest, is_main, positive_direction, varying
from designopt_laboratory.curves.pool import NEEDED, CurveSet, PooledCurves, normal_walk, pool_curves
from designopt_laboratory.curves.reference import ReferenceCurve, ReferenceFile

#: Joints of the first figure: those that a model has of these, else the ones that move most.
_USUAL = ("hip_flexion", "hip_adduction", "hip_rotation", "knee_angle", "ankle_angle")
_ROWS = ("angle", "moment", "power")
_JOINTS = 5
#: Gaps between panels: side by side for tick labels, in widths of a panel, and above each other, in heights of all.
_GAP_ACROSS, _GAP_DOWN = 0.36, 0.09
#: Designs with a selector of their own.
_DESIGNS = 3


def trials_by_design(result: Result, *names: str) -> dict[str, list[Arrays]]:
    """The arrays of all trials by design; none without stored ones."""
    by_design: dict[str, list[Arrays]] = {}
    for (design, _), arrays in stored_arrays(result, *names).items():
        by_design.setdefault(design, []).append(arrays)
    return by_design


@report_part("laboratory_curves", version=1, arrays=NEEDED)
def laboratory_curves(
    result: Result,
    *,
    reference: Annotated[
        ReferenceFile | None, Q("", "curves of a file, shown as a band beside the bundled normal walking")
    ] = None,
) -> Section | None:
    """Angles, moments, powers, activations with EMG, muscle and joint forces over the normalised cycle.

    Lines are means, bands one standard deviation: over the cycles of a single subject, over subjects where there are
    several. Needs the arrays `NEEDED`.
    """
    title = "Curves over the cycle"
    by_design = trials_by_design(result, *NEEDED)
    if not by_design:
        return missing(title, *NEEDED) if len(result.outcomes.X) else None
    every = {design: pool_curves(trials) for design, trials in list(by_design.items())[:_DESIGNS]}
    curves = {design: by_interest(varying(curve_list)[0]) for design, curve_list in every.items()}
    if not any(curves.values()):
        return Section(
            title,
            introduction="No trial has a complete cycle: two foot strikes of a side with all frames between them."
            " Choose a longer window, or where strikes come from (setting cycles: plates, feet or events).",
        )
    kinds = list(dict.fromkeys(c.kind for curve_list in curves.values() for c in curve_list))
    figures = [_gait(curves, reference), *(_kind(kind, curves, reference) for kind in kinds)]
    return Section(
        title,
        introduction="Cycles run from a foot strike to the next one of the same side. " + _counts(curves),
        figures=tuple(figure for figure in figures if figure is not None),
        tables=(_peaks(curves),),
        notes=(
            "Normal walking: OpenSim's introductory tutorial, one averaged cycle without a deviation, with the signs of"
            " the model's coordinates.",
            *([] if reference is None else _unmatched(reference, curves)),
            *_constant(every),
            *_of_axes(kinds),
        ),
    )


def _constant(every: Mapping[str, Sequence[PooledCurves]]) -> list[str]:
    """A sentence on the curves that are left out because they do not vary."""
    names: dict[str, dict[str, None]] = {}
    for curve_list in every.values():
        for curve in varying(curve_list)[1]:
            names.setdefault(curve.kind, {})[curve.name] = None
    if not names:
        return []
    each = "; ".join(f"{kind} {listed(list(kind_names))}" for kind, kind_names in names.items())
    return [f"Left out, because they vary by less than {LEAST_RANGE:.1%} of the largest range: {each}."]


def _of_axes(kinds: Sequence[str]) -> list[str]:
    """A sentence on the axes of forces."""
    sentences = [
        ("ground force", "Ground forces are along the axes of the laboratory: y is up."),
        ("joint force", "Joint forces are of the parent on the child, along the axes that reaction_axes names."),
    ]
    return [sentence for kind, sentence in sentences if kind in kinds]


def _unmatched(reference: ReferenceFile, curves: Mapping[str, list[PooledCurves]]) -> list[str]:
    """A sentence on curves of the reference that no curve of the study corresponds to."""
    units = {(curve.kind, curve.name): curve.unit for curve_list in curves.values() for curve in curve_list}
    alone = [f"{kind} {name}" for kind, name in reference.curves if (kind, name) not in units]
    differ = [
        f"{kind} {name} (in {curve_list[0].unit}, here in {units[kind, name]})"
        for (kind, name), curve_list in reference.curves.items()
        if (kind, name) in units and not reference.curve(kind, name, units[kind, name])
    ]
    return [
        f"Of {reference.file.name} not shown, because the study has {why}: {', '.join(names)}."
        for why, names in (("no such curve", alone), ("another unit", differ))
        if names
    ]


def _counts(curves: Mapping[str, list[PooledCurves]]) -> str:
    first = next(curve for curve_list in curves.values() for curve in sorted(curve_list, key=lambda c: -len(c.sets)))
    parts = [
        f"{plural(len(part.curves), 'subject' if part.of_subjects else 'cycle')} ({label(part)})".removesuffix(" (all)")
        for part in first.sets
    ]
    return f"The curves of {first.name} are of {listed(parts)}."


def label(curves: CurveSet | ReferenceCurve) -> str:
    """Group and side in words."""
    return " ".join(filter(None, [curves.group, curves.side])) or "all"


def band_traces(
    curves: CurveSet | ReferenceCurve, colour: str, *, name: str = "", dash: str = "", **options: Any
) -> list[Trace]:
    """The mean and a band of one deviation, if there is one."""
    percent = np.linspace(0.0, 100.0, len(curves.mean))
    traces: list[Trace] = []
    if np.isfinite(curves.deviation).all():
        edge = np.concatenate([curves.mean + curves.deviation, (curves.mean - curves.deviation)[::-1]])
        traces.append(
            {
                "type": "scatter", "mode": "lines", "x": np.concatenate([percent, percent[::-1]]), "y": _digits(edge),
                "fill": "toself", "opacity": 0.25, "line": {"color": colour, "width": 0}, "showlegend": False,
                "hoverinfo": "skip", **({"legendgroup": name} if name else {}), **options,
            }
        )  # fmt: skip
    line = {"color": colour, "width": 2, **({"dash": dash} if dash else {})}
    hover = f"{name or label(curves)}, %{{x:.0f}} %: <b>%{{y:.4g}}</b><extra></extra>"
    legend = {"name": name, "legendgroup": name} if name else {"showlegend": False}
    traces.append(
        {
            "type": "scatter", "mode": "lines", "x": percent, "y": _digits(curves.mean), "line": line,
            "hovertemplate": hover, **legend, **options,
        }
    )  # fmt: skip
    return traces


def _digits(values: Any) -> Any:
    """Four digits of the largest value: pages stay small."""
    largest = float(np.nanmax(np.abs(values), initial=0.0))
    return np.round(values, max(0, 4 - int(np.floor(np.log10(largest))))) if largest > 0.0 else values


def _colours(curves: PooledCurves) -> dict[tuple[str, str], str]:
    return {(curve_set.group, curve_set.side): category(k) for k, curve_set in enumerate(curves.sets)}


def _gait(curves: Mapping[str, list[PooledCurves]], reference: ReferenceFile | None) -> Figure | None:
    """Angle, moment and power of the main joints, one below the other."""
    designs = list(curves)
    by_key = {design: {(c.kind, c.name): c for c in curve_list} for design, curve_list in curves.items()}
    first = by_key[designs[0]]
    names = [name for name in _USUAL if ("angle", name) in first and ("moment", name) in first]
    if not names:
        moving = [
            c for c in curves[designs[0]] if c.kind == "angle" and c.unit == "deg" and ("moment", c.name) in first
        ]
        names = [c.name for c in sorted(moving, key=lambda c: -float(np.ptp(c.sets[0].mean)))]
    names = names[:_JOINTS]
    if not names:
        return None
    units = {kind: next((c.unit for c in first.values() if c.kind == kind and c.name in names), "") for kind in _ROWS}

    def draw(k: int) -> list[Trace]:
        traces: list[Trace] = []
        for row, kind in enumerate(_ROWS):
            for column, name in enumerate(names):
                number = row * len(names) + column + 1
                axes = {"xaxis": f"x{number}", "yaxis": f"y{number}"}
                curve = by_key[designs[k]].get((kind, name))
                for part in () if curve is None else curve.sets:
                    text = label(part) if number == 1 else ""
                    traces += band_traces(part, _colours(curve)[part.group, part.side], name=text, **axes)  # type: ignore[arg-type]
                if curve is None:
                    continue
                traces += _reference(reference, curve, number == 1, **axes)
                normal = normal_walk(name, curve.sets[0].mean) if kind == "angle" else None
                if normal is not None:
                    traces.append(_normal(normal, number == 1, **axes))
        return traces

    titles = [_panel_title(first["angle", name]) for name in names]
    return selected(
        "Joints over the cycle", {"Design": designs}, draw, _grid(titles, units), height=640, width=200 * len(names)
    )


def _panel_title(angle: PooledCurves) -> str:
    """The words of a joint angle, with its positive direction in a second line."""
    words, positive = angle.name.replace("_", " "), positive_direction(angle, angle)
    return words if positive in words or not positive else f"{words}<br>+ {positive}"


def _reference(
    reference: ReferenceFile | None, curve_of_design: PooledCurves, in_legend: bool, **options: Any
) -> list[Trace]:
    """The bands of a file's curves of the same variable."""
    curves = (
        [] if reference is None else reference.curve(curve_of_design.kind, curve_of_design.name, curve_of_design.unit)
    )
    return [
        trace
        for curve in curves
        for trace in band_traces(curve, "@muted", name=label(curve) if in_legend else "", dash="dashdot", **options)
    ]


def _normal(curve: Any, in_legend: bool, **options: Any) -> Trace:
    legend = {"name": "normal walking"} if in_legend else {"showlegend": False}
    line = {"color": "@good", "width": 1.5, "dash": "dash"}
    percent = np.linspace(0.0, 100.0, len(curve))
    return {"type": "scatter", "mode": "lines", "x": percent, "y": np.round(curve, 2), "line": line,
            "hoverinfo": "skip", **legend, **options}  # fmt: skip


def _grid(titles: Sequence[str], units: Mapping[str, str]) -> dict[str, Any]:
    axes: dict[str, Any] = {}
    across, down = beside(len(titles), _GAP_ACROSS / len(titles)), above(len(_ROWS), _GAP_DOWN)
    for row, kind in enumerate(_ROWS):
        for column in range(len(titles)):
            number = row * len(titles) + column + 1
            x_title = "cycle [%]" if row == len(_ROWS) - 1 else ""
            y_title = f"{kind} [{units[kind]}]" if column == 0 else ""
            axes[f"xaxis{number}"] = axis(x_title, domain=across[column], anchor=f"y{number}", range=[0, 100], dtick=50)
            axes[f"yaxis{number}"] = axis(y_title, domain=down[row], anchor=f"x{number}", nticks=5)
    captions = [
        caption(title, sum(across[column]) / 2.0, 1.0, xanchor="center", font={"size": 12})
        for column, title in enumerate(titles)
    ]
    return layout(annotations=captions, legend={"orientation": "h", "y": 1.09, "yanchor": "bottom", "x": 0}, **axes)


def _kind(kind: str, curves: Mapping[str, list[PooledCurves]], reference: ReferenceFile | None) -> Figure | None:
    """All curves of one kind, with a selector of the name."""
    designs = list(curves)
    by_name = [{c.name: c for c in curves[design] if c.kind == kind} for design in designs]
    names = list(dict.fromkeys(name for curves_by_name in by_name for name in curves_by_name))
    if not names or kind == "EMG":
        return None
    signals = [{c.name: c for c in curves[design] if c.kind == "EMG"} for design in designs]

    def draw(k: int, n: int) -> list[Trace]:
        curve = by_name[k].get(names[n])
        if curve is None:
            return []
        colours = _colours(curve)
        traces = [
            t
            for curve_set in curve.sets
            for t in band_traces(curve_set, colours[curve_set.group, curve_set.side], name=label(curve_set))
        ]
        if kind == "activation" and names[n] in signals[k]:
            for curve_set in signals[k][names[n]].sets:
                colour = colours.get((curve_set.group, curve_set.side), "@muted")
                traces += band_traces(curve_set, colour, name=f"EMG {label(curve_set)}", dash="dot")
        traces += _reference(reference, curve, True)
        normal = normal_walk(curve.name, curve.sets[0].mean) if kind == "angle" else None
        return [*traces, *([] if normal is None else [_normal(normal, True)])]

    def view(k: int, n: int) -> dict[str, Any]:
        curve = by_name[k].get(names[n])
        if curve is None:
            return {"yaxis": axis(names[n])}
        angle = next((c for c in curves[designs[k]] if (c.kind, c.name) == ("angle", curve.name)), None)
        positive = positive_direction(curve, angle)
        return {
            "yaxis": axis(f"{curve.title}, + {positive}" if positive and positive not in curve.name else curve.title)
        }

    return selected(
        f"{kind[0].upper()}{kind[1:]}", {"Design": designs, kind.capitalize(): names}, draw,
        layout(xaxis=axis("cycle [%]", range=[0, 100]), yaxis=axis("")), view=view, height=380,
    )  # fmt: skip


#: Quantities of coordinates that slide.
_OF_SLIDES = {"angle": "position", "moment": "force"}
#: Kinds whose largest values are listed.
_LISTED = ("angle", "moment", "power", "ground force", "joint force", "metabolic rate")


def _peaks(curves: Mapping[str, list[PooledCurves]]) -> Table:
    """Extremes of each curve, those of hip, knee, ankle and ground first; designs stand below each other."""
    order: dict[tuple[str, str], PooledCurves] = {}
    for curve_list in curves.values():
        for curve in curve_list:
            order.setdefault((curve.kind, curve.name), curve)
    keys = sorted(order, key=lambda key: not is_main(order[key]))
    by_design = {design: {(c.kind, c.name): c for c in curve_list} for design, curve_list in curves.items()}
    first = next(iter(curves))
    rows: list[tuple[Any, ...]] = []
    main = 0
    for key in (key for key in keys if key[0] in _LISTED):
        lines_of = {
            design: [_extremes(of_design[key], part) for part in of_design[key].sets]
            for design, of_design in by_design.items()
            if key in of_design
        }
        equal = len(lines_of) == len(curves) > 1 and all(lines == lines_of[first] for lines in lines_of.values())
        for design, lines in {"all": lines_of[first]}.items() if equal else lines_of.items():
            rows += [(*((design,) if len(curves) > 1 else ()), *line) for line in lines]
        main = len(rows) if is_main(order[key]) else main
    columns = (
        *(("design",) if len(curves) > 1 else ()), "quantity", "name", "unit", "of", "minimum", "± SD",
        "minimum at [%]", "maximum", "± SD ", "maximum at [%]", "curves",
    )  # fmt: skip
    head, cells = with_a_value(columns, rows)
    note = "Means over the extremes of the curves; the places are those of the mean curve."
    return Table("Extremes over the cycle", head, cells, note=note, visible_rows=max(main, 25))


def _extremes(curve: PooledCurves, part: CurveSet) -> tuple[Any, ...]:
    low, high = part.curves.min(axis=1), part.curves.max(axis=1)
    spread = [float(x.std(ddof=1)) if len(x) > 1 else "" for x in (low, high)]
    at = [100.0 * float(index) / (len(part.mean) - 1) for index in (np.argmin(part.mean), np.argmax(part.mean))]
    kind = _OF_SLIDES.get(curve.kind, curve.kind) if curve.unit in ("m", "N", "N/kg", "m/s") else curve.kind
    ends = (float(low.mean()), spread[0], at[0], float(high.mean()), spread[1], at[1])
    return (kind, curve.name, curve.unit, label(part), *ends, len(part.curves))
