"""Curves of several trials together: by quantity and name, side and group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt_laboratory.curves.curves import SAMPLES, side_of

Arrays = Mapping[str, NDArray[Any]]
#: Arrays of a trial that its curves need.
NEEDED = ("curves", "curve_kinds", "curve_names", "curve_units", "cycle_sides", "labels")


@dataclass(frozen=True, eq=False)
class CurveSet:
    """Curves (n, 101) of one group and side: of n subjects, each the mean of its cycles, or of n cycles of one subject.

    `subjects` (n,) are their labels. `side` is right, left or empty.
    """

    group: str
    side: str
    curves: Floats
    subjects: tuple[str, ...]
    of_subjects: bool

    @property
    def mean(self) -> Floats:
        """(101,) mean."""
        return np.asarray(self.curves.mean(axis=0))

    @property
    def deviation(self) -> Floats:
        """(101,) standard deviation of the sample; NaN for a single curve."""
        nothing = np.full(SAMPLES, np.nan)
        return np.asarray(self.curves.std(axis=0, ddof=1)) if len(self.curves) > 1 else nothing


@dataclass(frozen=True, eq=False)
class PooledCurves:
    """One quantity: its `kind` (angle, moment ...), `name` without the side, `unit`, and the `sets` of curves."""

    kind: str
    name: str
    unit: str
    sets: tuple[CurveSet, ...]

    @property
    def title(self) -> str:
        """The name with its unit: ``knee_angle [deg]``."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name


def pool_curves(trials: Iterable[Arrays]) -> list[PooledCurves]:
    """The curves of trials of one design, whose arrays are `NEEDED`, in the order of their first appearance.

    The label of a trial's subject tells whose cycles are averaged (those without one belong to the same subject):
    several subjects of a group are summarised by the curves of its subjects, a single one by its cycles. Cycles with a
    gap do not count.
    """
    cycles: dict[tuple[str, str, str], dict[tuple[str, str], dict[str, list[Floats]]]] = {}
    for trial in trials:
        subject, group, _ = (str(label) for label in trial["labels"])
        keys = zip(trial["curve_kinds"], trial["curve_names"], trial["curve_units"], strict=True)
        values = np.asarray(trial["curves"], dtype=float)
        for column, (kind, name, unit) in enumerate(keys):
            base, side = side_of(str(name))
            complete = values[np.isfinite(values[:, :, column]).all(axis=1), :, column]
            if len(complete):
                sets = cycles.setdefault((str(kind), base, str(unit)), {})
                by_subject = sets.setdefault((group, side), {})
                by_subject.setdefault(subject, []).extend(complete)
    return [
        PooledCurves(
            kind,
            name,
            unit,
            tuple(_set(group, side, subject_cycles) for (group, side), subject_cycles in _ordered(sets)),
        )
        for (kind, name, unit), sets in cycles.items()
    ]


def _ordered(sets: Mapping[tuple[str, str], Any]) -> list[tuple[tuple[str, str], Any]]:
    return sorted(sets.items(), key=lambda item: (item[0][0], item[0][1] != "right"))


def _set(group: str, side: str, by_subject: Mapping[str, list[Floats]]) -> CurveSet:
    if len(by_subject) > 1:
        means = np.stack([np.mean(cycles, axis=0) for cycles in by_subject.values()])
        return CurveSet(group, side, means, tuple(by_subject), True)
    ((subject, cycles),) = by_subject.items()
    return CurveSet(group, side, np.stack(cycles), (subject,) * len(cycles), False)


def normal_walk(name: str, shown_curve: Floats) -> Floats | None:
    """(101,) deg of a joint angle in normal walking, with the sign of `shown_curve` (101,); else None.

    From the file normal.mot of OpenSim's introductory tutorial (opensim-models, CC BY 3.0); one averaged cycle, without
    a deviation.
    """
    if name not in ("hip_flexion", "knee_angle", "ankle_angle"):
        return None
    content = (files("designopt_laboratory") / "curves" / "normal_walk.csv").read_text(encoding="utf-8")
    lines = [line for line in content.splitlines() if line and not line.startswith("#")]
    columns = lines[0].split(",")
    table = np.array([[float(cell) for cell in line.split(",")] for line in lines[1:]])
    curve = np.interp(np.linspace(0.0, 100.0, SAMPLES), table[:, 0], table[:, columns.index(name)])
    against = np.ptp(shown_curve) > 0.0 and np.corrcoef(curve, shown_curve)[0, 1] < 0.0
    return np.asarray(-curve if against else curve)
