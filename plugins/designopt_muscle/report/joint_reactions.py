"""Figures and tables of the forces in joints: their sizes, their components, their peaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from designopt.arrays import Floats
from designopt.report.colours import axis, category, layout
from designopt.report.designs import Arrays, Plot, line, selectable
from designopt.report.labels import listed, number
from designopt.report.section import Figure, Section, Table
from designopt.report.traces import Trace, selected
from designopt_muscle.report.named_muscles import NAMED, largest

#: Share of the largest force below which a joint is not drawn.
LEAST = 0.05
#: Designs and scenarios whose largest force is a sentence.
_SENTENCES = 3


def reaction_parts(motions: Mapping[tuple[str, str], Arrays]) -> Section:
    """Figures of sizes and components, a table of peaks, and sentences on the largest ones.

    `motions` have the arrays `time` (n,), `joints` (j,) and `reactions` (n, j, 3) in N.
    """
    sizes = {key: _sizes(arrays) for key, arrays in motions.items()}
    peaks = [np.nanmax(size, axis=0, initial=0.0) for size in sizes.values()]
    joints = largest([arrays["joints"] for arrays in motions.values()], peaks)
    peak = max(float(peak.max(initial=0.0)) for peak in peaks)
    lines = _lines([joint for joint in joints if _peak_of(joint, motions, peaks) >= LEAST * peak])
    left_out = [joint for joint in joints if joint not in lines]
    note = f" Joints with smaller forces are not drawn: {listed(left_out)}." if left_out else ""
    return Section(
        "Joint reactions",
        findings=tuple(_largest(key, arrays) for key, arrays in list(motions.items())[:_SENTENCES]),
        figures=(
            selectable(
                "Joint reactions", motions, partial(_size_lines, lines=lines), height=380,
                note=f"Size of the force of the parent on the child; the left side is dashed.{note}",
            ),
            _components(motions, list(lines)),
        ),
        tables=(_peaks(motions),),
    )  # fmt: skip


def _peak_of(joint: str, motions: Mapping[tuple[str, str], Arrays], peaks: Sequence[Floats]) -> float:
    """The largest force (N) of a joint in all motions."""
    return max(
        float(peak[np.asarray(arrays["joints"]) == joint].max(initial=0.0))
        for arrays, peak in zip(motions.values(), peaks, strict=True)
    )


def _sizes(arrays: Arrays) -> Floats:
    """(n, j) N."""
    return np.asarray(np.linalg.norm(np.asarray(arrays["reactions"], dtype=float), axis=2))


def _lines(joints: Sequence[str]) -> dict[str, dict[str, object]]:
    """The style of each drawn joint: a colour for both sides of a joint, at most as many colours as there are."""
    sides: dict[str, list[str]] = {}
    for joint in joints:
        sides.setdefault(joint[:-2] if joint.endswith(("_r", "_l")) else joint, []).append(joint)
    return {
        joint: {"color": category(k), "width": 2, **({"dash": "dash"} if joint.endswith("_l") else {})}
        for k, of_joint in enumerate(list(sides.values())[:NAMED])
        for joint in sorted(of_joint, reverse=True)
    }


def _size_lines(arrays: Arrays, *, lines: Mapping[str, dict[str, object]]) -> Plot:
    sizes, columns = _sizes(arrays), {str(joint): k for k, joint in enumerate(arrays["joints"])}
    data = [
        line(arrays["time"], sizes[:, columns[joint]], joint, line=style)
        for joint, style in lines.items()
        if joint in columns
    ]
    return {"data": data, "layout": layout(xaxis=axis("time [s]"), yaxis=axis("force [N]", rangemode="tozero"))}


def _components(motions: Mapping[tuple[str, str], Arrays], joints: Sequence[str]) -> Figure:
    """Components of the force in one joint, with a selector of the joint."""
    designs, scenarios = (list(dict.fromkeys(key[i] for key in motions)) for i in (0, 1))

    def draw(design: int, scenario: int, joint: int) -> list[Trace]:
        arrays = motions.get((designs[design], scenarios[scenario]))
        columns = [] if arrays is None else [str(name) for name in arrays["joints"]]
        if arrays is None or joints[joint] not in columns:
            return []
        force = np.asarray(arrays["reactions"], dtype=float)[:, columns.index(joints[joint])]
        return [
            line(arrays["time"], np.round(force[:, k], 1), axis_name, line={"color": category(k), "width": 1.7})
            for k, axis_name in enumerate("xyz")
        ]

    return selected(
        "Components of a joint reaction", {"Design": designs, "Scenario": scenarios, "Joint": joints}, draw,
        layout(xaxis=axis("time [s]"), yaxis=axis("force [N]")), height=340,
        note="Of the force of the parent on the child, along the axes that the settings name.",
    )  # fmt: skip


def _peak(arrays: Arrays) -> list[tuple[str, float, float]]:
    """(joint, largest force in N, its time in s), the largest first."""
    sizes = np.nan_to_num(_sizes(arrays), nan=-1.0)
    frames = sizes.argmax(axis=0) if len(sizes) else np.zeros(0, dtype=np.intp)
    peaks = [
        (str(joint), float(sizes[i, k]), float(arrays["time"][i]))
        for k, (joint, i) in enumerate(zip(arrays["joints"], frames, strict=False))
        if sizes[i, k] >= 0.0
    ]
    return sorted(peaks, key=lambda peak: -peak[1])


def _largest(key: tuple[str, str], arrays: Arrays) -> str:
    """A sentence with the largest joint force of a trial."""
    peaks = _peak(arrays)
    if not peaks:
        return f"{key[0]}, {key[1]}: no frame has joint forces."
    joint, force, time = peaks[0]
    return f"{key[0]}, {key[1]}: the largest joint force is {number(force)} N, in {joint} at {number(time)} s."


def _peaks(motions: Mapping[tuple[str, str], Arrays]) -> Table:
    rows = tuple((*key, *peak) for key, arrays in motions.items() for peak in _peak(arrays))
    return Table("Peaks of joint forces", ("design", "scenario", "joint", "force [N]", "at [s]"), rows)
