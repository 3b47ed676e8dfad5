"""Changes to this process that several runs need at the same time."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any


class SharedChanges:
    """`changes` are made by the first who enters, in their order, and taken back by the last who leaves.

    Runs in threads of one process begin and end as they like, and none of them takes away what another one needs.
    """

    def __init__(self, *changes: Callable[[], contextlib.AbstractContextManager[Any]]) -> None:
        self._changes = changes
        self._lock = threading.Lock()
        self._inside = 0
        self._exits = contextlib.ExitStack()

    def __enter__(self) -> SharedChanges:
        with self._lock:
            if self._inside == 0:
                with contextlib.ExitStack() as exits:
                    for change in self._changes:
                        exits.enter_context(change())
                    self._exits = exits.pop_all()
            self._inside += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._exits.close()

    def at_end(self, call: Callable[..., object], *arguments: Any) -> None:
        """Have `call` take back another change; by somebody who is inside."""
        with self._lock:
            self._exits.callback(call, *arguments)
