"""Report part `limits`: active bounds and limits of the front, in words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from designopt.counts import percent, plural
from designopt.plugin import report_part
from designopt.report.labels import listed, number, with_unit
from designopt.report.parts.answer import violated_limits
from designopt.report.section import Section, Table
from designopt.store.result import Result
from designopt.store.views import activity
from designopt.store.views.activity import NEAR
from designopt.store.views.table import stated_constraints

if TYPE_CHECKING:
    from designopt.store.views.activity import BoundShare
    from designopt.study.study import DesignVariable, StudyConstraint

#: Minimum share of the front for a sentence.
MIN_SHARE = 0.05
#: Minimum share of the front for a bound in the short answer.
NOTED = 0.1
#: Least number of designs that are a whole front.
WHOLE = 5
#: Relative distance from a bound within which a recommended design, and the best in one objective, is at the bound.
AT_BOUND = 0.001
#: Share of the front from which a warning also appears beside the best designs.
WARNED = 0.5


@report_part("limits", version=1)
def limits(result: Result) -> Section | None:
    """Active bounds and limits of the front, in words and numbers."""
    front = np.asarray(result.front(), dtype=np.intp)
    if not len(front):  # nor is there one without objectives
        return _violations(result)
    if not result.problem.space.free and not result.problem.constraints:
        return None
    best = _best(result, front)
    bounds = attained_bounds(result, front)
    if best != _FRONT:  # a sweep ends at a bound
        bounds += recommended_bounds(result, below=MIN_SHARE)
    findings = [sentence(c) for c in (*bounds, *active_limits(result, front))]
    if not findings:
        findings = [f"No bound of the space and no limit is active {'on' if best == _FRONT else 'in'} {best}."]
    idle = inactive_limits(result, front)
    if idle:
        findings.append(f"Inactive{_everywhere(result, front) if best == _FRONT else ''}: {listed(idle)}.")
    rows = [_row(result, c, front) for c in stated_constraints(result.problem)]
    tables: tuple[Table, ...] = ()
    if rows:
        scope = "on front" if best == _FRONT else f"of {best}"
        head = ("limit", "violated by", "share of results [%]", f"smallest {scope}", f"largest {scope}")
        tables = (Table("Limits", head, tuple(rows)),)
    return Section(
        "Bounds and limits",
        introduction=(
            "Beyond an active bound of the space there may be better designs; at an active limit, "
            f"the limit determines {best}. A bound is active when the value is within "
            f"{_share(NEAR)} of the parameter's range, a limit when it is within {_share(NEAR)} of "
            "the limit's size (of the range of feasible values when the limit is 0)."
        ),
        findings=tuple(findings),
        tables=tables,
    )


def _everywhere(result: Result, front: NDArray[np.intp]) -> str:
    """The whole front in words; that of an unfinished run, or a few designs, may lack the parts where a limit is
    active."""
    if result.ended == "done" and len(front) >= WHOLE:
        return " for the whole front"
    so_far = "" if result.ended == "done" else " so far"
    return f" for the {plural(len(front), 'design')} of the front{so_far}"


def _violations(result: Result) -> Section | None:
    """Why no design meets all limits; None if one does, or none has a result."""
    table = violated_limits.table(result)
    if table is None:
        return None
    introduction = (
        "No design satisfies all limits. The most frequently violated limits come first, each with the value of the "
        "design that comes closest to satisfying it, or satisfies it by the largest margin."
    )
    return Section("Bounds and limits", introduction, findings=tuple(violated_limits.findings(result)), tables=(table,))


def warnings(result: Result) -> list[str]:
    """Clauses about bounds and limits active for most of the front, which readers of its values need."""
    return [*bounds_of_most(result), *limits_of_most(result)]


def bounds_of_most(result: Result) -> list[str]:
    """Clauses about bounds active for most of the front."""
    front = np.asarray(result.front(), dtype=np.intp)
    return attained_bounds(result, front, WARNED, choices=False) if len(front) else []


def limits_of_most(result: Result) -> list[str]:
    """Clauses about limits active for most of the front."""
    front = np.asarray(result.front(), dtype=np.intp)
    return active_limits(result, front, WARNED) if len(front) else []


def reached_bounds(result: Result) -> list[str]:
    """Clauses about bounds active for most of the front, those that less of it reaches, and others of the recommended
    design."""
    return [*bounds_of_most(result), *fewer_bounds(result), *recommended_bounds(result, below=WARNED)]


#: Beginnings of clauses that are no names of the study.
_WORDS = (
    "the ", "no ", "over ", "from ", "advice on ", "hints on ", "a local ", "a design ", "best ", "compromise ",
    "knee ", "robust ", "utopia ", "topsis ", "violated ", "path constraint ", "stage ",
)  # fmt: skip


def sentence(clause: str) -> str:
    """`clause` as a sentence; names of parameters keep their letters."""
    return (clause[0].upper() + clause[1:] if clause.startswith(_WORDS) else clause) + "."


def attained_bounds(
    result: Result, front: NDArray[np.intp], least: float = MIN_SHARE, *, choices: bool = True
) -> list[str]:
    """Clauses about free parameters at a bound in a share of at least `least` of the front's designs (with one
    objective, of the best)."""
    clauses = {p.name: list[str]() for p in result.problem.space.free}
    several = len(result.problem.objectives) > 1
    exact_bounds = {(p.name, bound.side) for p, bound in _active_bounds(result, front, NEAR if several else AT_BOUND)}
    for p, bound in _active_bounds(result, front):
        if bound.share >= least:
            share = _in_share(result, front, bound.share, having=bool(p.when))
            distance = "at" if (p.name, bound.side) in exact_bounds else "close to"
            clauses[p.name].append(
                f"{p.name} is {distance} its {_bound(p, bound.side)} in {share}{_why(result, p, bound.side)}"
            )
    if choices:
        X = result.outcomes.X[front]
        active = result.problem.space.active(X)
        for j, p in enumerate(result.problem.space.free):
            if p.kind == "choice" and len(p.values) > 1 and active[:, j].all() and np.all(X[:, j] == X[0, j]):
                every = "every design of the front" if len(front) > 1 else _best(result, front)
                clauses[p.name].append(f"{p.name} is {number(p.values[int(X[0, j])])} in {every}")
    return [text for texts in clauses.values() for text in texts]


def fewer_bounds(result: Result) -> list[str]:
    """One clause about all bounds reached by a smaller share of the front than `WARNED` and not by the recommended
    design; none without any."""
    front = np.asarray(result.front(), dtype=np.intp)
    bounds = _active_bounds(result, front) if len(front) else []
    of_recommended = {(p.name, a.side) for p, a in _bounds_of_recommendation(result)}
    descriptions = [
        f"the {_bound(p, a.side).replace('bound', f'bound of {p.name}')} in {_share(a.share)}{_why(result, p, a.side)}"
        for p, a in bounds
        if NOTED <= a.share < WARNED and (p.name, a.side) not in of_recommended
    ]
    best = _best(result, front)
    return [f"{best} reach{'es' if best == _FRONT else ''} {'; '.join(descriptions)}"] if descriptions else []


def recommended_bounds(result: Result, *, below: float = np.inf) -> list[str]:
    """Clauses about the bounds at which the recommended design lies, with the study's explanation; only bounds reached
    by a smaller share of the front than `below`."""
    front = {(p.name, a.side): a.share for p, a in _active_bounds(result, np.asarray(result.front(), dtype=np.intp))}
    return [
        f"{p.name} of the recommended design is at its {_bound(p, bound.side)}{_why(result, p, bound.side)}"
        for p, bound in _bounds_of_recommendation(result)
        if front.get((p.name, bound.side), 0.0) < below
    ]


def _bounds_of_recommendation(result: Result) -> list[tuple[DesignVariable, BoundShare]]:
    """The bounds at which the recommended design lies."""
    recommendation = result.recommended()
    if recommendation is None:
        return []
    return _active_bounds(result, np.array([recommendation[1]], dtype=np.intp), AT_BOUND, swept=True)


def _active_bounds(
    result: Result, rows: NDArray[np.intp], near: float = NEAR, *, swept: bool = False
) -> list[tuple[DesignVariable, BoundShare]]:
    """The active bounds of designs; those of parameters set by a sweep only if `swept`, none of a list of designs."""
    if result.study.lists_designs:
        return []
    free, left_out = {p.name: p for p in result.problem.space.free}, set[str]() if swept else _swept(result)
    return [(free[a.parameter], a) for a in result.attained_bounds(rows, near) if a.parameter not in left_out]


_FRONT = "the front"


def _best(result: Result, front: NDArray[np.intp]) -> str:
    """The designs of the front in words; with one objective there is no front."""
    if len(result.problem.objectives) > 1:
        return _FRONT
    return "the best designs" if len(front) > 1 else "the best design"


def _in_share(result: Result, front: NDArray[np.intp], share: float, *, having: bool = False) -> str:
    """``25 % of the front``, or the best design; of those `having` a conditional parameter."""
    best = _best(result, front)
    if best == "the best design":
        return best
    if having:
        best = f"the {'designs of the front' if best == _FRONT else 'best designs'} that have it"
    return f"{_share(share)} of {best}"


def _bound(p: DesignVariable, side: str) -> str:
    return f"lower bound ({_amount(p.low, p.unit)})" if side == "low" else f"upper bound ({_amount(p.high, p.unit)})"


def _why(result: Result, p: DesignVariable, side: str) -> str:
    """The study's explanation of the range, else that of the model where the bound is the model's own, as the end of a
    clause."""
    field = (result.problem.model.plugin.inputs or {}).get(p.name)
    quantity = field.quantity if field else None
    why = p.why
    if quantity is not None and not why and p.kind in ("real", "int"):
        bound, limit = (p.low, quantity.ge) if side == "low" else (p.high, quantity.le)
        if limit is not None and math.isclose(p.factor * bound + p.offset, limit, rel_tol=1e-9):
            why = quantity.why
    return f": {why}" if why else ""


def _swept(result: Result) -> set[str]:
    """Parameters whose values the study sets, as in a sweep by every solver: a bound among these is not a finding."""
    sweeps = [set(stage.solver.settings.get("sweep") or ()) for stage in result.study.stages]
    return set.intersection(*sweeps) if sweeps else set()


def active_limits(result: Result, front: NDArray[np.intp], least: float = MIN_SHARE) -> list[str]:
    """Clauses about limits active for a share of at least `least` of the front's designs."""
    shares = [(text, float(np.mean(limit.active[front]))) for text, limit in _one_sided(result)]
    return [f"{text}) is active in {_in_share(result, front, share)}" for text, share in shares if share >= least]


def inactive_limits(result: Result, front: NDArray[np.intp]) -> list[str]:
    """Limits inactive for the whole front, each with its smallest margin."""
    clauses = []
    for text, limit in _one_sided(result):
        margin = limit.margin[front]
        if not limit.active[front].any() and np.isfinite(margin).all():
            nearest = float(limit.values[front][int(np.argmin(margin))])
            if nearest != limit.limit:  # integers meet a limit by their nature
                best = _best(result, front)
                clauses.append(
                    f"{text}; {best} {'reaches' if best != 'the best designs' else 'reach'} {number(nearest)})"
                )
    return clauses


def _one_sided(result: Result) -> Iterator[tuple[str, activity.LimitActivity]]:
    """Lower and upper limits of the constraints, each with words that leave a bracket open."""
    for c in stated_constraints(result.problem):
        for limit in activity.limits(result.problem, result.outcomes, c):
            if limit.side != "equals":
                yield f"the {_SIDES[limit.side]} limit of {c.name} ({_amount(limit.limit, c.unit)}", limit


_SIDES = {"min": "lower", "max": "upper"}


def _row(result: Result, c: StudyConstraint, front: NDArray[np.intp]) -> tuple[object, ...]:
    low, high = result.problem.limited(c, result.outcomes.figures, len(result.outcomes))
    has_value = np.isfinite(low) & np.isfinite(high)
    sides = activity.limits(result.problem, result.outcomes, c)
    is_violated = np.any([side.violated for side in sides], axis=0) & has_value
    count = int(has_value.sum())
    share = round(100.0 * float(is_violated.sum()) / count, 1) if count else "–"
    return (with_unit(c.name, c.unit), int(is_violated.sum()), share, float(low[front].min()), float(high[front].max()))


def _share(share: float) -> str:
    return "more than 99 %" if 0.99 < share < 1.0 else percent(share)


def _amount(value: float, unit: str) -> str:
    return f"{number(value)} {unit}".strip()
