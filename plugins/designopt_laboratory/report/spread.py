"""Report part `laboratory_spread`: bands of curves over assumed errors of body, muscles and markers."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import Quantity, report_part
from designopt.report.colours import axis, category, layout
from designopt.report.designs import missing
from designopt.report.section import Section, Table
from designopt.report.traces import Trace, selected, trace
from designopt.store.result import Result
from designopt_laboratory.curves.curves import side_of
from designopt_laboratory.curves.pool import NEEDED

#: Quantities with a band.
_KINDS = ("angle", "moment", "power", "activation", "joint force", "metabolic rate")
#: Curves with a selector; fewer samples than these make no band.
_OFFERED, _LEAST = 80, 5


@report_part("laboratory_spread", version=1, arrays=NEEDED)
def laboratory_spread(
    result: Result, *, share: Annotated[float, Quantity("", "of the samples within a band", gt=0, lt=1)] = 0.9
) -> Section | None:
    """How far the curves of a trial spread over samples: designs or scenarios that differ in what is not known exactly.

    A sample is the mean curve of a trial's cycles in one evaluation. Needs the arrays `NEEDED`, kept for all designs.
    """
    title = "Spread by what is not known exactly"
    samples = _samples(result)
    if not samples:
        return missing(title, *NEEDED) if len(result.outcomes.X) else None
    count = max(len(curves) for curves in samples.values())
    if count < _LEAST:
        return Section(title, introduction=f"There are {count} samples of a trial; a band needs at least {_LEAST}.")
    edges = (0.5 * (1.0 - share), 0.5, 0.5 * (1.0 + share))
    bands = {key: np.quantile(np.stack(curves), edges, axis=0) for key, curves in samples.items() if len(curves) > 4}
    width = {key: float(np.sqrt(np.mean((band[2] - band[0]) ** 2))) for key, band in bands.items()}
    size = {key: float(np.ptp(band[1])) or 1.0 for key, band in bands.items()}
    order = sorted(bands, key=lambda key: -width[key] / size[key])[:_OFFERED]
    rows = tuple(
        (trial, kind, name, unit, side, width[key], 100.0 * width[key] / size[key], len(samples[key]))
        for key in order
        for trial, kind, name, unit, side in [key]
    )
    several = len({key[0] for key in bands}) > 1
    names = [" ".join(filter(None, [key[0] if several else "", key[1], key[2], key[4]])) for key in order]
    return Section(
        title,
        introduction=f"Bands contain {share:.0%} of up to {count} samples of a trial, each the mean of its cycles;"
        " lines are medians. The sensitivity indices of a study with the solver sobol_indices say which input matters.",
        figures=(
            selected(
                "Bands", {"Curve": names}, lambda k: _draw(bands[order[k]]),
                layout(xaxis=axis("cycle [%]", range=[0, 100]), yaxis=axis("")),
                view=lambda k: {"yaxis": axis(f"{order[k][2]} [{order[k][3]}]" if order[k][3] else order[k][2])},
                height=400,
            ),
        ),
        tables=(
            Table("Width of the bands", ("trial", "quantity", "name", "unit", "side", "RMS width", "of the range [%]",
                                         "samples"), rows),
        ),
    )  # fmt: skip


def _samples(result: Result) -> dict[tuple[str, str, str, str, str], list[Floats]]:
    """Mean curves (101,) of all evaluations by trial, kind, name, unit and side."""
    samples: dict[tuple[str, str, str, str, str], list[Floats]] = {}
    for row in range(len(result.outcomes.X)):
        for scenario in range(len(result.problem.scenarios)):
            arrays = result.arrays(row, scenario)
            if not set(NEEDED) <= arrays.keys():
                continue
            values = np.asarray(arrays["curves"], dtype=float)
            keys = zip(arrays["curve_kinds"], arrays["curve_names"], arrays["curve_units"], strict=True)
            for column, (kind, name, unit) in enumerate(keys):
                complete = values[np.isfinite(values[:, :, column]).all(axis=1), :, column]
                if kind in _KINDS and len(complete):
                    base, side = side_of(str(name))
                    key = (str(arrays["labels"][2]), str(kind), base, str(unit), side)
                    samples.setdefault(key, []).append(complete.mean(axis=0))
    return samples


def _draw(band: Floats) -> list[Trace]:
    percent = np.linspace(0.0, 100.0, band.shape[1])
    edge: Any = np.concatenate([band[2], band[0][::-1]])
    around = np.concatenate([percent, percent[::-1]])
    return [
        trace(around, np.round(edge, 6), "band", fill="toself", opacity=0.3, line={"color": category(0), "width": 0}),
        trace(
            percent, np.round(band[1], 6), "median", colour=category(0), width=2, hover="%{x:.0f} %: <b>%{y:.4g}</b>"
        ),
    ]
