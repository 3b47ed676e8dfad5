"""Report part `limits`: bounds that the front has reached and limits that decide it, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from designopt.plugin import report
from designopt.report.labels import number, with_unit
from designopt.report.section import Section, Table
from designopt.run.result import Result

if TYPE_CHECKING:
    from designopt.study.study import Constraint

#: A value this share of its range away from a bound, or of a limit's size away from it, has reached it.
NEAR = 0.01
#: Shares of the front below this are not worth a sentence.
TOLD = 0.05
#: From this share of the front on it stands beside the best designs too.
WARNED = 0.5


@report("limits", version=1)
def limits(result: Result) -> Section | None:
    """Bounds that the front has reached, and limits that decide it, in words and numbers."""
    front = np.asarray(result.front(), dtype=np.intp)
    if not len(front):
        return None
    findings = [sentence(c) for c in (*attained_bounds(result, front), *active_limits(result, front))]
    if not findings:
        findings = ["The front stays away from every bound of the space and from every limit."]
    rows = [_row(result, c, front) for c in result.problem.constraints]
    tables: tuple[Table, ...] = ()
    if rows:
        head = ("limit", "broken by", "share of results", "smallest on front", "largest on front")
        tables = (Table("Limits", head, tuple(rows)),)
    return Section(
        "Bounds and limits",
        introduction=(
            "Where the front lies on a bound of the space, better designs may lie beyond it; where it lies on a limit, "
            f"the limit decides. A value reaches a bound when it is within {_share(NEAR)} of the parameter's range, "
            f"and a limit when it is within {_share(NEAR)} of the limit's size (of the range of feasible values when "
            "the limit is 0)."
        ),
        findings=tuple(findings),
        tables=tables,
    )


def warnings(result: Result) -> list[str]:
    """Clauses about the bounds and limits that most of the front has reached; whoever reads its values must know."""
    front = np.asarray(result.front(), dtype=np.intp)
    if not len(front):
        return []
    return [*attained_bounds(result, front, WARNED, choices=False), *active_limits(result, front, WARNED)]


def sentence(clause: str) -> str:
    """`clause` as a sentence; names of parameters keep their letters."""
    return (clause[0].upper() + clause[1:] if clause.startswith("the ") else clause) + "."


def attained_bounds(result: Result, front: NDArray[np.intp], least: float = TOLD, *, choices: bool = True) -> list[str]:
    """Clauses about free parameters whose bound is reached by a share of at least `least` of the front's designs."""
    space = result.problem.space
    S = space.to_search(result.outcomes.X[front])
    clauses = []
    for j, p in enumerate(space.free):
        if p.kind == "choice":
            if not choices:
                continue
            for k, value in enumerate(p.values):
                share = float(np.mean(result.outcomes.X[front, j] == k))
                if share == 1.0 and len(p.values) > 1:
                    clauses.append(f"{p.name} is {number(value)} in every design of the front")
            continue
        width = space.upper[j] - space.lower[j]
        slack = 0.5 if p.kind == "int" else 0.0
        for side, bound, gap in (
            ("lower", p.low, S[:, j] - space.lower[j] - slack),
            ("upper", p.high, space.upper[j] - slack - S[:, j]),
        ):
            share = float(np.mean(gap <= NEAR * width))
            if share >= least:
                clauses.append(
                    f"{p.name} is at its {side} bound ({_amount(bound, p.unit)}) in {_share(share)} of the front"
                )
    return clauses


def active_limits(result: Result, front: NDArray[np.intp], least: float = TOLD) -> list[str]:
    """Clauses about limits that a share of at least `least` of the front's designs touches."""
    clauses = []
    for c in result.problem.constraints:
        low, high = result.problem.limited(c, result.outcomes.figures, len(result.outcomes))
        for kind, limit, values in (("lower", c.minimum, low), ("upper", c.maximum, high)):
            if limit is None or _counted(values):
                continue
            share = float(np.mean(np.abs(values[front] - limit) <= NEAR * _size(result, values, limit)))
            if share >= least:
                clauses.append(
                    f"the {kind} limit of {c.name} ({_amount(limit, c.unit)}) is active in {_share(share)} of the front"
                )
    return clauses


def _counted(values: NDArray[np.float64]) -> bool:
    """Whether all values are whole numbers: those meet a limit by what they are, not because it holds them back."""
    finite = values[np.isfinite(values)]
    return bool(np.all(finite == np.rint(finite)))


def _size(result: Result, values: NDArray[np.float64], limit: float) -> float:
    """What closeness to a limit is measured by: the limit's own size, or the range of feasible values for a limit of 0.

    Not the range of all values: designs far outside would make everything within the limit look close to it.
    """
    if limit:
        return abs(limit)
    feasible = values[result.outcomes.feasible & np.isfinite(values)]
    return float(np.ptp(feasible)) if len(feasible) else 0.0


def _row(result: Result, c: Constraint, front: NDArray[np.intp]) -> tuple[object, ...]:
    low, high = result.problem.limited(c, result.outcomes.figures, len(result.outcomes))
    known = np.isfinite(low) & np.isfinite(high)
    broken = np.zeros(len(known), dtype=bool)
    with np.errstate(invalid="ignore"):
        if c.minimum is not None:
            broken |= low < c.minimum
        if c.maximum is not None:
            broken |= high > c.maximum
        if c.equals is not None:
            broken |= (low != c.equals) | (high != c.equals)
    broken &= known
    count = int(known.sum())
    share = f"{broken.sum() / count:.1%}" if count else "–"
    return (with_unit(c.name, c.unit), int(broken.sum()), share, float(low[front].min()), float(high[front].max()))


def _share(share: float) -> str:
    return "more than 99 %" if 0.99 < share < 1.0 else f"{share:.0%}".replace("%", " %")


def _amount(value: float, unit: str) -> str:
    return f"{number(value)} {unit}".strip()
