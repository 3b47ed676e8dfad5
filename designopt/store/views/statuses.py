"""How evaluations ended: numbers by status and reason, over the scenarios with evaluations of their own."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    from designopt.store.result import Result


def counts(result: Result) -> dict[str, int]:
    """The number of evaluations, and those of each status, the most frequent first."""
    status, reason = _evaluated(result)
    by_status = Counter(status.ravel().tolist())
    refused = int(((status == "invalid") & (reason == "refused")).sum())
    return {"evaluations": status.size - by_status["invalid"] + refused, **dict(by_status.most_common())}


def failures(result: Result) -> dict[tuple[str, str], int]:
    """Number of failed evaluations by status and reason, most frequent first."""
    status, reason = _evaluated(result)
    failed = status != "ok"
    pairs = zip(status[failed].tolist(), reason[failed].tolist(), strict=True)
    return dict(Counter((str(s), str(r)) for s, r in pairs).most_common())


def never_finite(result: Result) -> str:
    """The output that was not finite in any evaluation, in a clause; "" if some ended otherwise."""
    (status, _), total, by_reason = _evaluated(result), len(result.outcomes), failures(result)
    if not total or not (status == "nonfinite").all() or len(by_reason) != 1:
        return ""
    ((_, name),) = by_reason
    return f"output '{name}' is NaN or infinite in {'the only design' if total == 1 else f'all {total} designs'}"


def _evaluated(result: Result) -> tuple[NDArray[Any], NDArray[Any]]:
    """Status and reason (n, k) in the scenarios with evaluations of their own."""
    columns = sorted(set(result.recorded_problem.first_occurrence))
    return result.status[:, columns], result.reason[:, columns]
