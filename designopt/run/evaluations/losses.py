"""The decision on lost and failed work: what is sent again, alone or in parts, and what is final."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from designopt.counts import plural
from designopt.problem import STATUSES
from designopt.run.evaluations.ledger import CODE, PENDING, Ledger
from designopt.run.evaluations.work import Queue, Work
from designopt.run.failures import TEMPORARY, Attempts
from designopt.store.journal.writer import Journal
from designopt.workers.executor import ChunkResult, Loss

#: Status of evaluations that end their worker.
ENDS_WORKER = ("timeout", "crashed", "lost_worker")
#: Number of parts in which a lost chunk of unknown cause is sent again.
PIECES = 8


class Losses:
    """Counts attempts in `journal`, and puts work that is repeated back into the queue. `event` reports losses."""

    def __init__(self, attempts: Attempts, ledger: Ledger, journal: Journal, event: Callable[[str, str], None]) -> None:
        self.attempts = attempts
        self._ledger = ledger
        self._journal = journal
        self._event = event

    def attempt_number(self, key: bytes, status: str) -> int:
        """Number of attempts of a result; one that might be retried is already recorded."""
        is_attempt = status in ENDS_WORKER or self.attempts.allows_retry(status)
        return self.attempts[key] + (0 if is_attempt else 1)

    def final(self, work: Work, result: ChunkResult, worker: str, queue: Queue) -> tuple[Work, ChunkResult]:
        """The final results; those whose class is retried are sent again."""
        if not result.messages:
            return work, result
        final = np.ones(len(work), bool)
        for i in result.messages:
            status = STATUSES[result.status[i]]
            _, message, _ = result.messages[i]
            if self.attempts.is_temporary(message, result.prints.get(i, "")):
                number, is_retried = self.attempts.add(work.keys[i], TEMPORARY)
                if is_retried:
                    self._journal.add_attempt(work.keys[i], number, worker, TEMPORARY, message)
                    final[i] = False
                    queue.requeue(work.part(i, i + 1), after=self.attempts.wait)
                    continue
            if self.attempts.allows_retry(status) and self._ledger.status[work.slots[i]] == PENDING:
                number, is_retried = self.attempts.add(work.keys[i], status)
                self._journal.add_attempt(work.keys[i], number, worker, status, result.messages[i][1])
                if is_retried:
                    final[i] = False
                    queue.requeue(work.part(i, i + 1))
        if final.all():
            return work, result
        rows = np.flatnonzero(final).tolist()
        return work.take(rows), result.take(rows)

    def repeat_or_end(self, work: Work, loss: Loss, worker: str, queue: Queue) -> tuple[Work, ChunkResult] | None:
        """The worker of a chunk has ended. Innocent evaluations are sent again; the suspect is sent alone until its
        attempts are used up. Returns its final result then, else None.

        A process may end some time after the cause: an evaluation is recorded as a crash only if it ended its worker
        alone.
        """
        if not loss.started:
            queue.requeue(work)
            return None
        if loss.later and work.alone:  # it outlived its evaluation and the time after it: another is the cause
            loss = dataclasses.replace(loss, cause="lost_worker")
        suspect = 0 if loss.suspect is None and (len(work) == 1 or work.alone) else loss.suspect
        if suspect is None and work.chain:  # each program starts from the result of the previous one
            queue.requeue(dataclasses.replace(work, alone=True))
            self._event("worker_lost", f"worker {worker}: {loss.message}; repeating a chain of {len(work)} programs")
            return None
        if suspect is None:
            step = -(-len(work) // PIECES)
            for begin in range(0, len(work), step):
                queue.requeue(work.part(begin, min(begin + step, len(work)), indivisible=True))
            self._event("worker_lost", f"worker {worker}: {loss.message}; repeating {plural(len(work), 'evaluation')}")
            return None
        key = work.keys[suspect]
        number, is_retried = self.attempts.add(key, loss.cause)
        self._journal.add_attempt(key, number, worker, loss.cause, loss.detail or loss.message)
        design = f"design {work.designs[suspect]}"
        if loss.cause == "timeout":
            self._event("timeout", f"{design}: {loss.message}")
        else:
            self._event("worker_lost", f"worker {worker}: {loss.message} ({design})")
        if is_retried and work.chain:
            queue.requeue(work)  # each program starts from the result of the previous one
            return None
        if work.chain:
            queue.requeue(work.take([i for i in range(len(work)) if i != suspect]))
        else:
            queue.requeue(work.part(suspect + 1, len(work)))
            queue.requeue(work.part(0, suspect, indivisible=True))  # its last one may be the cause: its end shows it
        alone = work.suspect(suspect)
        if is_retried and loss.cause == "lost_worker":  # a kill from outside costs only time
            queue.requeue(work.part(suspect, suspect + 1, indivisible=True))
        elif is_retried or not (work.alone or work.chain or loss.cause == "timeout"):
            queue.requeue(alone)
        else:
            return alone, _failure_record(loss)
        return None


def _failure_record(loss: Loss) -> ChunkResult:
    """The record of an evaluation that ended its worker; one killed repeatedly from outside also counts as a crash."""
    is_unexplained = loss.cause == "lost_worker" and loss.suspect is None
    status = "timeout" if loss.cause == "timeout" else ("lost_worker" if is_unexplained else "crashed")
    zero = np.zeros(1)
    reason = "" if status == "timeout" else loss.message
    return ChunkResult(
        np.array([CODE[status]], np.uint8), (), np.empty((1, 0)), zero, zero, {0: (reason, loss.message, "")}
    )
