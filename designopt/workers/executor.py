"""Interface between the runner and an executor, and their messages."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.study.study import Execution


def local_workers(execution: Execution) -> int:
    """Number of workers on this machine; more would wait for a program that is limited (`at_most`)."""
    return min(execution.workers or os.cpu_count() or 1, *execution.at_most.values(), sys.maxsize)


class Position(IntEnum):
    """In place of the position of an evaluation in its chunk: the first has not begun, several are evaluated in one
    call of the model, or all are complete."""

    PREPARING = -1
    TOGETHER = -2
    ENDED = -3


class Break(KeyboardInterrupt):
    """The second stop request: unlike a KeyboardInterrupt of a model, it is not a result of an evaluation."""


@dataclass(frozen=True)
class Chunk:
    """Evaluations sent together: designs `X` (n, d), each in the scenario of that index.

    `arrays` are the names of arrays to return. `seeds` are those of the evaluations' random numbers, for stochastic
    models, and of programs. A chunk contains evaluations or `programs`, never both; `scenarios` are then the stages
    (from 0) of their solvers. `number` is unique in a run. One that is `alone` is a suspect: its process does no other
    work shortly before and after it. Evaluations of a `cheap` one are cheap (`Problem.cheap`). `pending` evaluations
    (about) wait beside it.
    """

    number: int
    X: Floats
    scenarios: NDArray[np.int32]
    arrays: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    alone: bool = False
    programs: bool = False
    cheap: bool = False
    pending: int = 0

    def __len__(self) -> int:
        return len(self.X)


@dataclass(frozen=True)
class ChunkResult:
    """Results of the evaluations of a chunk, in their order.

    `status` (n,) are indices into `STATUSES`; `values` (n, names) figures, NaN without a value; `messages` is by
    position: (reason, message, position of the error in the code). `wall` and `cpu` (n,) are in seconds. `prints` is
    the end of the printed output of an evaluation, by position.
    """

    status: NDArray[np.uint8]
    names: tuple[str, ...]
    values: Floats
    wall: Floats
    cpu: Floats
    messages: Mapping[int, tuple[str, str, str]] = field(default_factory=dict)
    arrays: Mapping[int, Mapping[str, NDArray[Any]]] = field(default_factory=dict)
    prints: Mapping[int, str] = field(default_factory=dict)

    def take(self, positions: Sequence[int]) -> ChunkResult:
        """Those of some evaluations."""
        indices = np.array(positions, np.int64)
        return ChunkResult(
            self.status[indices],
            self.names,
            self.values[indices],
            self.wall[indices],
            self.cpu[indices],
            {new: self.messages[old] for new, old in enumerate(positions) if old in self.messages},
            {new: self.arrays[old] for new, old in enumerate(positions) if old in self.arrays},
            {new: self.prints[old] for new, old in enumerate(positions) if old in self.prints},
        )


@dataclass(frozen=True)
class Loss:
    """A chunk that did not return because its worker ended.

    `started` is False for a chunk that waited behind another one, and thus is not a cause. `suspect` is the position of
    the active evaluation, None if any of them may be the cause. `cause` is ``timeout`` (the evaluation was ended),
    ``crashed`` (the process ended itself) or ``lost_worker`` (killed from outside, or out of reach). `message` is the
    same for equal causes; `detail` contains stack traces. `later`: the worker ended in an evaluation of a later chunk,
    before the results of this one had arrived.
    """

    cause: str
    message: str
    detail: str = ""
    started: bool = True
    suspect: int | None = None
    later: bool = False


@dataclass(frozen=True)
class Completion:
    """A chunk has ended on `worker`, with a result or a loss."""

    chunk: Chunk
    worker: str
    outcome: ChunkResult | Loss


@dataclass(frozen=True)
class Advance:
    """Reported progress of the evaluation at `position` of chunk `chunk`: a `share` (0 to 1, NaN if unknown),
    and a text (`words`)."""

    chunk: int
    position: int
    share: float
    words: str


class Executor(Protocol):
    """Runs chunks. Used from one thread only."""

    @property
    def name(self) -> str:
        """Its name in the journal."""

    @property
    def workers(self) -> int:
        """Number of workers."""

    @property
    def slots(self) -> int:
        """Maximum number of chunks in flight."""

    @property
    def target(self) -> float:
        """Target duration of a chunk (s)."""

    @property
    def shortest(self) -> float:
        """Minimum duration of a chunk that justifies its transfer (s): work is not split into shorter ones."""

    def submit(self, chunk: Chunk) -> None:
        """Accept a chunk; never blocks for long."""

    def wait(self, timeout: float) -> Sequence[Completion]:
        """Completed chunks; waits up to `timeout` (s) for the first."""

    def notices(self) -> Sequence[tuple[str, str]]:
        """Messages for the user, as (kind, text), once each."""

    def advances(self) -> Sequence[Advance]:
        """The last progress reported by active evaluations."""

    def listen(self, show: Callable[[], None]) -> None:
        """Call `show` when an evaluation reports progress during `wait`."""

    def cancel(self) -> None:
        """Drop the chunks in flight."""

    def close(self) -> None:
        """End everything that was started."""


class UneventfulExecutor:
    """Defaults for executors that start nothing and report no progress."""

    def notices(self) -> Sequence[tuple[str, str]]:
        """No messages."""
        return []

    def advances(self) -> Sequence[Advance]:
        """No progress."""
        return []

    def listen(self, show: Callable[[], None]) -> None:
        """No effect."""

    def close(self) -> None:
        """No effect."""
