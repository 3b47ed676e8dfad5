"""Report part `failures`: evaluations without a result, invalid designs, and their positions in the space."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.counts import percent, plural
from designopt.plugin import report_part
from designopt.problem import STATUSES
from designopt.report.colours import axis, category, layout
from designopt.report.labels import hover, number, parameter_label, plain, status_text, thinned
from designopt.report.no_design import without_number
from designopt.report.parts.designs.map import scale_of
from designopt.report.section import Figure, Section, Table
from designopt.report.traces import trace
from designopt.store.result import Result

#: Maximum number of drawn designs of each class.
DRAWN = 1500
#: Minimum number of designs without a result for a cluster; maximum number of listed parameters.
CROWD, MAX_LISTED = 5, 3
#: Probability with which designs placed at random would lie so, from which on a cluster may be chance.
CHANCE = 0.01


@report_part("failures", version=1)
def failures(result: Result) -> Section | None:
    """Evaluations without a result and invalid designs, by class and reason, and their positions in the space."""
    outcomes = result.outcomes
    if not len(outcomes):
        return None
    lost = result.status != "ok"
    if not lost.any():
        clause = without_number(result)  # of a design that counts as failed nevertheless
        findings = (f"{clause}.",) if clause else ()
        return Section("Failures", introduction="Every evaluation gave a result.", findings=findings, on_request=True)
    invalid = result.status == "invalid"
    failed = lost & ~invalid
    facts = []
    for status in STATUSES[1:]:
        kind = result.status == status
        if kind.any():
            facts.append((status, str(int(kind.any(axis=1).sum() if status == "invalid" else kind.sum()))))
    figure = _positions(result, lost)
    return Section(
        "Failures and invalid designs" if invalid.any() else "Failures",
        introduction="\n\n".join(filter(None, [_failed_words(failed), _invalid_words(invalid)])),
        facts=tuple(facts),
        findings=tuple(_clusters(result, lost)),
        figures=(figure,) if figure else (),
        tables=(
            *((_by_reason(result, failed),) if failed.any() else ()),
            *((_invalid(result, invalid),) if invalid.any() else ()),
        ),
        details=tuple(_printed_output(result, failed)),
    )


def invalid_designs(result: Result) -> NDArray[np.bool_]:
    """Mask (n,) of designs that were not evaluated: they violate a relation, or the model rejects their values."""
    return np.asarray((result.status == "invalid").any(axis=1))


def _failed_words(failed: NDArray[np.bool_]) -> str:
    designs = int(failed.any(axis=1).sum())
    if not designs:
        return "No evaluation failed."
    return (
        f"{designs} of {plural(len(failed), 'design')} ({percent(designs / len(failed), 1)}) failed: no result "
        "in at least one scenario. A failed design ranks below every computed one and is never on the front."
    )


def _invalid_words(invalid: NDArray[np.bool_]) -> str:
    designs = int(invalid.any(axis=1).sum())
    if not designs:
        return ""
    return (
        f"{designs} of {plural(len(invalid), 'design')} ({percent(designs / len(invalid), 1)}) "
        f"{'is' if designs == 1 else 'are'} invalid: they violate a relation of the space, or the model rejects the "
        "values. This is not a failure of the model."
    )


def _by_reason(result: Result, failed: NDArray[np.bool_]) -> Table:
    """Counts by class and reason, with the first message of each."""
    counts = _counts(result, np.argwhere(failed).tolist())
    order = sorted(counts.items(), key=lambda item: -item[1][0])
    return Table(
        "By class and reason",
        ("class", "reason", "evaluations", "first message"),
        tuple((status_text(result, status), reason, number, message) for (status, reason), (number, message) in order),
    )


def _counts(result: Result, evaluations: Iterable[Sequence[int]]) -> dict[tuple[str, str], tuple[int, str]]:
    """Number of `evaluations` (design, scenario) by class and reason, with the first message."""
    counts: dict[tuple[str, str], tuple[int, str]] = {}
    for i, s in evaluations:
        key = (str(result.status[i, s]), str(result.reason[i, s] or ""))
        number, message = counts.get(key) or (0, _last_line(result.message(i, s)))
        counts[key] = number + 1, message
    return counts


def _printed_output(result: Result, failed: NDArray[np.bool_]) -> Iterator[tuple[str, str]]:
    """The output that external programs printed before the first failure of each class and reason: messages of several
    lines, except tracebacks."""
    first_of: dict[tuple[str, str], tuple[int, int]] = {}
    for i, s in np.argwhere(failed).tolist():
        first_of.setdefault((str(result.status[i, s]), str(result.reason[i, s] or "")), (i, s))
    for key, (i, s) in first_of.items():
        message = result.message(i, s).strip()
        if "\n" in message and not message.startswith("Traceback"):
            yield f"Design {i}: {': '.join(filter(None, key))}, with what was printed", message


def _invalid(result: Result, invalid: NDArray[np.bool_]) -> Table:
    """Number of designs that violate each relation, and that the model rejects; a design may violate several."""
    space, X = result.problem.space, result.outcomes.X
    is_invalid = np.asarray(invalid.any(axis=1))
    rows: list[tuple[str, int, str]] = []
    violates_relation = np.zeros(len(is_invalid), dtype=bool)
    for relation in space.relations:
        violates = is_invalid & (replace(space, relations=(relation,)).relation_violation(X) > 0.0)
        violates_relation |= violates
        if violates.any():
            rows.append((f"breaks {relation}", int(violates.sum()), ""))
    rejections = _counts(
        result,
        [(i, int(np.flatnonzero(invalid[i])[0])) for i in np.flatnonzero(is_invalid & ~violates_relation).tolist()],
    )
    words = {"refused": "rejected by the model", "relation": "violates a relation"}
    rows += [(words.get(reason, reason), number, message) for (_, reason), (number, message) in rejections.items()]
    return Table("Invalid designs", ("why", "designs", "first message"), tuple(rows))


def _last_line(message: str) -> str:
    lines = message.strip().splitlines()
    return lines[-1] if lines else ""


def _positions(result: Result, lost: NDArray[np.bool_]) -> Figure | None:
    """Failed, invalid and evaluated designs over the two parameters in which they differ most."""
    free, X = result.problem.space.free, result.outcomes.X
    if not free:
        return None
    failed = np.asarray(lost.any(axis=1))
    x, y = _most_different(result, failed)
    groups: list[tuple[str, NDArray[np.intp], dict[str, Any]]] = [
        ("ok", np.flatnonzero(~failed), {"color": "@dim", "size": 5, "opacity": 0.6})
    ]
    # Shapes as well as colours distinguish the classes.
    symbols = ("x", "cross", "diamond", "triangle-up", "square", "star-triangle-down", "circle", "hexagon")
    for k, status in enumerate(STATUSES[1:]):
        rows = np.flatnonzero((result.status == status).any(axis=1))
        groups.append((status, rows, {"color": category(k + 1), "size": 7, "symbol": symbols[k]}))
    data: list[dict[str, Any]] = []
    designs: dict[int, NDArray[np.intp]] = {}
    thin = False
    for name, every, marker in groups:
        rows = thinned(every, DRAWN)
        thin |= len(rows) < len(every)
        if len(rows):
            designs[len(data)] = rows
            heights = X[rows, y] if y != x else failed[rows].astype(float)
            data.append(
                trace(X[rows, x], heights, f"{name} ({len(every)})", mode="markers", marker=marker,
                      hover=f"<b>{name}</b><br>" + hover(result, figures=False))
            )  # fmt: skip
    up = axis(plain(parameter_label(free[y])), **scale_of(free[y]))
    if x == y:
        up = axis("", tickvals=[0, 1], ticktext=["result", "no result"], range=[-0.5, 1.5])
    note = "The two parameters in which designs without a result differ most from the others." if len(free) > 2 else ""
    if thin:
        note += f" At most {DRAWN} designs of each class are shown, evenly spaced in the order of evaluation."
    axes = {"xaxis": axis(plain(parameter_label(free[x])), **scale_of(free[x])), "yaxis": up}
    plot = {"data": data, "layout": layout(**axes)}
    return Figure("Where they lie", plot, note=note.strip(), height=440, designs=designs)


def _clusters(result: Result, lost: NDArray[np.bool_]) -> list[str]:
    """Clusters of designs without a result, in words: parameters of which nine tenths of them occupy a small part."""
    bad = np.asarray(lost.any(axis=1))
    space, X = result.problem.space, result.outcomes.X
    if bad.sum() < CROWD or bad.all():
        return []
    clusters = []
    for j, p in enumerate(space.free):
        x = X[:, j]
        if p.kind == "choice":
            for k, value in enumerate(p.values):
                share_lost, all_here = float(np.mean(x[bad] == k)), float(np.mean(x == k))
                if share_lost >= 0.9 and all_here <= 0.6 and all_here ** (share_lost * bad.sum()) < CHANCE:
                    clusters.append((all_here, f"{percent(share_lost)} of them have {p.name} {value}"))
            continue
        # The shorter of the ranges with nine tenths: from an end, or from the middle.
        cuts = [np.quantile(x[bad], q, method="nearest") for q in ((0.0, 0.9), (0.1, 1.0), (0.05, 0.95))]
        shares = [float(np.mean((x >= low) & (x <= high))) for low, high in cuts]
        k = int(np.argmin(shares))
        if shares[k] <= 0.5 and shares[k] ** (0.9 * bad.sum()) < CHANCE:
            low, high = (f"{number(float(v))}" for v in cuts[k])
            clusters.append((shares[k], f"nine tenths of them lie at {p.name} {low} … {high} {p.unit}".rstrip()))
    clusters.sort(key=lambda item: item[0])
    return [
        f"Designs without a result are concentrated: {words}, where {percent(share)} of all designs lie."
        for share, words in clusters[:MAX_LISTED]
    ]


def _most_different(result: Result, failed: NDArray[np.bool_]) -> tuple[int, int]:
    """The two columns whose distributions differ most between failed and other designs (Kolmogorov-Smirnov)."""
    d = len(result.problem.space.free)
    if d < 3 or failed.all():
        return 0, min(1, d - 1)
    X = result.outcomes.X
    distance = []
    for j in range(d):
        a, b = np.sort(X[failed, j]), np.sort(X[~failed, j])
        at = np.concatenate([a, b])
        shares = [np.searchsorted(c, at, side="right") / len(c) for c in (a, b)]
        distance.append(float(np.abs(shares[0] - shares[1]).max()))
    return max(combinations(range(d), 2), key=lambda pair: distance[pair[0]] + distance[pair[1]])
