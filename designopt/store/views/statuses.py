"""How evaluations ended: numbers by status and reason, each an array (designs, scenarios)."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

Statuses = NDArray[np.str_]
Reasons = NDArray[np.object_]


def counts(status: Statuses, reason: Reasons) -> dict[str, int]:
    """The number of evaluations, and those of each status, the most frequent first."""
    by_status = Counter(status.ravel().tolist())
    refusals = int(((status == "invalid") & (reason == "refused")).sum())
    return {"evaluations": status.size - by_status["invalid"] + refusals, **dict(by_status.most_common())}


def failures(status: Statuses, reason: Reasons) -> dict[tuple[str, str], int]:
    """Number of failed evaluations by status and reason, most frequent first."""
    failed = status != "ok"
    pairs = zip(status[failed].tolist(), reason[failed].tolist(), strict=True)
    return dict(Counter((str(s), str(r)) for s, r in pairs).most_common())


def never_finite(status: Statuses, reason: Reasons) -> str:
    """The output that was not finite in any evaluation, in a clause; "" if some ended otherwise."""
    total, by_reason = len(status), failures(status, reason)
    if not total or not (status == "nonfinite").all() or len(by_reason) != 1:
        return ""
    ((_, name),) = by_reason
    return f"output '{name}' is NaN or infinite in {'the only design' if total == 1 else f'all {total} designs'}"
