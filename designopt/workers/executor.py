"""What the runner asks of an executor, and what travels between the two."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Matrix

#: In place of the position of an evaluation: several of a chunk are computed in one call of the model.
TOGETHER = -2


class Break(KeyboardInterrupt):
    """The second request to stop: unlike a KeyboardInterrupt of a model, it is no result of an evaluation."""


@dataclass(frozen=True)
class Chunk:
    """Some evaluations that travel together: designs `X` (n, d), each in the scenario of that index.

    `arrays` are the names of arrays to bring back. `seeds` are those of the evaluations' random numbers, for models
    that take a generator, and of programs. A chunk holds evaluations or `programs`, never both; `scenarios` are then
    the stages (from 0) whose solver has them. `number` is unique in a run. One that is `alone` is a suspect: nothing
    else is at work in its process shortly before and after it. Evaluations of a `cheap` one are cheap
    (`Problem.cheap`).
    """

    number: int
    X: Matrix
    scenarios: NDArray[np.int32]
    arrays: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    alone: bool = False
    programs: bool = False
    cheap: bool = False

    def __len__(self) -> int:
        return len(self.X)


@dataclass(frozen=True)
class ChunkResult:
    """What the evaluations of a chunk gave, in their order.

    `status` are indices into `STATUSES`; `values` (n, names) figures, NaN where there is none; `messages` is by
    position: (reason, message, place of the error in the code). `wall` and `cpu` are in seconds. `prints` is the end of
    what an evaluation printed, by position.
    """

    status: NDArray[np.uint8]
    names: tuple[str, ...]
    values: Matrix
    wall: Matrix
    cpu: Matrix
    messages: Mapping[int, tuple[str, str, str]] = field(default_factory=dict)
    arrays: Mapping[int, Mapping[str, NDArray[Any]]] = field(default_factory=dict)
    prints: Mapping[int, str] = field(default_factory=dict)

    def take(self, positions: Sequence[int]) -> ChunkResult:
        """Those of some evaluations."""
        some = np.array(positions, np.int64)
        return ChunkResult(
            self.status[some],
            self.names,
            self.values[some],
            self.wall[some],
            self.cpu[some],
            {new: self.messages[old] for new, old in enumerate(positions) if old in self.messages},
            {new: self.arrays[old] for new, old in enumerate(positions) if old in self.arrays},
            {new: self.prints[old] for new, old in enumerate(positions) if old in self.prints},
        )


@dataclass(frozen=True)
class Loss:
    """A chunk that did not come back because its worker ended.

    `started` is False for a chunk that waited behind another one: nothing in it is to blame. `suspect` is the position
    of the evaluation that was running, None when any of them may be to blame. `cause` is ``timeout`` (the evaluation
    was ended), ``crashed`` (the process ended itself) or ``lost_worker`` (killed from outside, or out of sight).
    `message` is the same for equal causes; `detail` holds stack traces. `later` tells that the worker ended in an
    evaluation of a later chunk, before the results of this one had arrived.
    """

    cause: str
    message: str
    detail: str = ""
    started: bool = True
    suspect: int | None = None
    later: bool = False


@dataclass(frozen=True)
class Completion:
    """A chunk has ended on `worker`: with a result or by a loss."""

    chunk: Chunk
    worker: str
    outcome: ChunkResult | Loss


@dataclass(frozen=True)
class Advance:
    """How far the evaluation at `position` of chunk `chunk` says that it is: a `share` (0 to 1), and a few `words`."""

    chunk: int
    position: int
    share: float
    words: str


class Executor(Protocol):
    """Runs chunks somewhere. Used from one thread only."""

    @property
    def name(self) -> str:
        """What the journal calls it."""

    @property
    def workers(self) -> int:
        """How many workers there are."""

    @property
    def slots(self) -> int:
        """How many chunks may be in flight."""

    @property
    def target(self) -> float:
        """How long a chunk should take, in seconds."""

    @property
    def shortest(self) -> float:
        """How long a chunk has to take, in seconds, to be worth its way: work is not shared out in shorter ones."""

    def submit(self, chunk: Chunk) -> None:
        """Take a chunk; never blocks for long."""

    def wait(self, timeout: float) -> Sequence[Completion]:
        """Chunks that have ended; waits up to `timeout` seconds for the first."""

    def notices(self) -> Sequence[tuple[str, str]]:
        """What the user should know, as (kind, text), once each."""

    def advances(self) -> Sequence[Advance]:
        """What evaluations at work have reported last of how far they are."""

    def listen(self, show: Callable[[], None]) -> None:
        """Call `show` while `wait` evaluates and an evaluation tells of itself."""

    def cancel(self) -> None:
        """Forget what is in flight."""

    def close(self) -> None:
        """End everything that was started."""


class Uneventful:
    """Executors that start nothing, and whose evaluations tell nothing of themselves."""

    def notices(self) -> Sequence[tuple[str, str]]:
        """Nothing."""
        return []

    def advances(self) -> Sequence[Advance]:
        """Nothing."""
        return []

    def listen(self, show: Callable[[], None]) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""
