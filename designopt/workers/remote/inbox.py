"""Files on a worker that does not share a disk with the coordinator: asked for by digest, sent once, kept on disk."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

from designopt.files import InputFileError

#: Seconds within which a file must have come.
ARRIVAL = 600.0


class Inbox:
    """The files of one run that came to this worker, in `folder` (among its notes, which go with it however it ends).

    `ask` tells the coordinator that a digest is wanted here.
    """

    def __init__(self, folder: Path, ask: Callable[[str], None]) -> None:
        self._ask = ask
        self._folder = folder
        folder.mkdir(mode=0o700, exist_ok=True)
        self._came: dict[str, threading.Event] = {}
        self._errors: dict[str, str] = {}
        self._lock = threading.Lock()

    def fetch(self, digest: str) -> Path:
        """The file with this content; waits for it when it is not here yet. Raises `InputFileError`."""
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
        """A file has come, or why it does not."""
        if content is None:
            self._errors[digest] = error
        else:
            (self._folder / digest).write_bytes(content)
        self._came.setdefault(digest, threading.Event()).set()

    def close(self) -> None:
        """Remove what came."""
        shutil.rmtree(self._folder, ignore_errors=True)
