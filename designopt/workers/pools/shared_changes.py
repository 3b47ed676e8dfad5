"""Changes to this process shared by several runs."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any


class SharedChanges:
    """The first user makes the `changes`, in their order; the last one reverts them.

    Runs in threads of one process begin and end independently, without reverting changes that another one needs.
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
        """Register `call` to revert another change; only while in use."""
        with self._lock:
            self._exits.callback(call, *arguments)
