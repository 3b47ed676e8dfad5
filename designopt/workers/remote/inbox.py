"""Files on a worker without a disk shared with the coordinator: requested by digest, sent once, kept on disk."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

from designopt.files import InputFileError

#: Time-out for a file (s).
ARRIVAL = 600.0


class Inbox:
    """The files of one run received by this worker, in `folder` (among its notes, with which it is removed).

    `ask` requests a digest from the coordinator.
    """

    def __init__(self, folder: Path, ask: Callable[[str], None]) -> None:
        self._ask = ask
        self._folder = folder
        folder.mkdir(mode=0o700, exist_ok=True)
        self._came: dict[str, threading.Event] = {}
        self._errors: dict[str, str] = {}
        self._lock = threading.Lock()

    def fetch(self, digest: str) -> Path:
        """The file with this content; waits until it has arrived. Raises `InputFileError`."""
        with self._lock:
            event = self._came.get(digest)
            if event is None:
                event = self._came[digest] = threading.Event()
                self._ask(digest)
        if not event.wait(ARRIVAL):
            raise InputFileError(f"a file did not come from the coordinator within {ARRIVAL:.0f} s")
        if digest in self._errors:
            raise InputFileError(self._errors[digest])
        return self._folder / digest

    def receive(self, digest: str, content: bytes | None, error: str) -> None:
        """Called with a file, or the reason for its absence."""
        if content is None:
            self._errors[digest] = error
        else:
            (self._folder / digest).write_bytes(content)
        self._came.setdefault(digest, threading.Event()).set()

    def close(self) -> None:
        """Remove the received files."""
        shutil.rmtree(self._folder, ignore_errors=True)
