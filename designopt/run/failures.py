"""Failure policy: when failures end a run, and which are retried. Counted over all sessions of a store."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.problem import STATUSES
from designopt.run.evaluations.ledger import CODE
from designopt.space import Space, display_value
from designopt.study.stated_units import amount, in_words, stated_value
from designopt.study.study import Execution, Retry

#: Number of failures of one class at one line of code that indicates a bug, not a property of designs.
SAME_ERROR_LIMIT = 3
#: The advice after an error: the journal keeps the failed records even after the model is fixed.
FIX = (
    "\nafter fixing the model, run the study again with --replace, or into another store, -o STORE (start_from: "
    "{store: ...} reuses existing results): a resumed run counts these designs as failed\n"
    "if it belongs to designs, or passes: set execution: {on_failure: {error: infeasible}} or retry in the study file,"
    " and run that again; otherwise a resumed run stops at the next such failure"
)
#: Outcome of an attempt with a temporary failure (`Retry`).
TEMPORARY = "passing"
#: The policy of a study that defines none.
DEFAULT = Execution()

_FRAME = re.compile(r'^  File "(.+)", line (\d+), in ', re.MULTILINE)


class FailurePolicy:
    """Counts failures and their positions in the space; `note` returns the reason when the run must end.

    Designs rejected by the model count neither as failures nor as evaluations.
    """

    def __init__(self, execution: Execution, space: Space) -> None:
        self._share = execution.stop_if_share_above
        self._after = execution.after
        self._action = {**DEFAULT.on_failure, **execution.on_failure}
        self._space = space
        self._evaluations = 0
        self._failures = 0
        self._range = np.array([[np.inf], [-np.inf]]) * np.ones(len(space.free))
        self._choices: dict[int, set[float]] = {j: set() for j, p in enumerate(space.free) if p.kind == "choice"}
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def recall(self, evaluations: int, designs: Floats, failures: Iterable[tuple[int, str, str, str]]) -> None:
        """Take over the counts of earlier sessions: all `evaluations`, and the failed ones as (design, status, reason,
        message). They do not end the run: the user has resumed it."""
        self._evaluations += evaluations
        rows = []
        for design, status, reason, message in failures:
            rows.append(design)
            self._counts[status, reason, raise_location(message)] += 1
        self._failures += len(rows)
        self._widen(designs[rows])

    def note(self, X: Floats, status: NDArray[np.uint8], messages: Mapping[int, tuple[str, str, str]]) -> str | None:
        """Count evaluations of designs `X`; `messages` by position. Returns the reason for ending the run, or None."""
        ok = status == CODE["ok"]
        self._evaluations += len(ok)
        if ok.all():
            return None
        rows = np.flatnonzero(~ok & (status != CODE["invalid"]))
        self._evaluations -= int((~ok).sum()) - len(rows)
        if not len(rows):
            return None
        self._failures += len(rows)
        self._widen(X[rows])
        reasons = [self._reason_to_stop(X[i], STATUSES[status[i]], *messages.get(int(i), ("", "", ""))) for i in rows]
        return next((reason for reason in reasons if reason), None) or self._excess_of_failures()

    def _reason_to_stop(self, x: Floats, status: str, reason: str, message: str, _: str) -> str | None:
        """Why the policy of the study ends the run at this failure, or None."""
        action = self._action.get(status, "infeasible")
        last = message.splitlines()[-1] if message else reason
        if action == "stop":
            values = in_words(self._space.parameters, self._space.values(x.tolist()))
            return f"stopped by on_failure at a design with the status '{status}': {values}: {last}"
        location = raise_location(message)
        self._counts[status, reason, location] += 1
        count = self._counts[status, reason, location]
        if action != "stop_repeated" or count < SAME_ERROR_LIMIT:
            return None
        fix = FIX if status == "error" else ""
        return f"stopped: the same {status} {count} times{f' at {location}' if location else ''}: {last}{fix}"

    def _excess_of_failures(self) -> str | None:
        if self._share is None or self._evaluations < self._after or self._failures <= self._share * self._evaluations:
            return None
        return (
            f"stopped: {self._failures} of {self._evaluations} evaluations failed, more than the share {self._share:g} "
            f"of stop_if_share_above; they failed within {self.failure_ranges()}"
        )

    def failure_ranges(self) -> str:
        """The ranges of the parameters with failed evaluations, in words."""
        parts = []
        for j, p in enumerate(self._space.free):
            low, high = self._range[:, j].tolist()
            if low > high:
                continue  # a parameter inactive in all of them
            if p.kind == "choice":
                parts.append(f"{p.name} {' or '.join(str(display_value(p, v)) for v in sorted(self._choices[j]))}")
            else:
                parts.append(
                    f"{p.name} {stated_value(p, display_value(p, low))} to {amount(p, display_value(p, high))}"
                )
        return ", ".join(parts)

    def _widen(self, X: Floats) -> None:
        if not len(X):
            return
        active = self._space.active(X)
        self._range[0] = np.minimum(self._range[0], np.where(active, X, np.inf).min(axis=0))
        self._range[1] = np.maximum(self._range[1], np.where(active, X, -np.inf).max(axis=0))
        for j, values in self._choices.items():
            values.update(X[active[:, j], j].tolist())


class Attempts:
    """Number of attempts without a valid result, by key, over all sessions, and the decision on further ones."""

    def __init__(
        self, retries: Mapping[str, int], earlier: Iterable[tuple[bytes, str, int]] = (), retry: Retry | None = None
    ) -> None:
        self._retries = {**DEFAULT.retries, **retries, TEMPORARY: retry.times if retry else 0}
        self._retry = retry
        self._outcome_counts: Counter[tuple[bytes, str]] = Counter()
        self._number: Counter[bytes] = Counter()
        for key, outcome, count in earlier:
            self._outcome_counts[key, outcome] += count
            self._number[key] += count

    def __bool__(self) -> bool:
        return bool(self._number)

    def __getitem__(self, key: bytes) -> int:
        """Number of recorded attempts."""
        return self._number[key]

    def allows_retry(self, status: str) -> bool:
        """Whether the study allows a further attempt after this outcome."""
        return self._retries.get(status, 0) > 0

    @property
    def wait(self) -> float:
        """Time (s) before a temporary failure is repeated."""
        return self._retry.wait if self._retry else 0.0

    def is_temporary(self, *texts: str) -> bool:
        """Whether the study classifies a failure with these texts as temporary."""
        return self._retry is not None and any(self._retry.when in text for text in texts)

    def add(self, key: bytes, outcome: str) -> tuple[int, bool]:
        """Count an attempt that ended as `outcome`: its number, and whether a further one follows."""
        self._number[key] += 1
        self._outcome_counts[key, outcome] += 1
        return self._number[key], self._outcome_counts[key, outcome] <= self._retries.get(outcome, 0)


def raise_location(message: str | None) -> str:
    """Position in the code at which an error was raised, from the last frame of its traceback."""
    frames: list[Any] = _FRAME.findall(message or "")
    return f"{frames[-1][0]}:{frames[-1][1]}" if frames else ""
