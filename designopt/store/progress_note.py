"""Progress of long evaluations, as a note in the store for other processes."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

NAME = "running.json"
#: Maximum size of the note; a longer file is not one.
LARGEST = 2**20

#: The number of a design, the completed share of its evaluation (None if unknown), and a short text.
Reported = tuple[int, float | None, str]


class ProgressNote:
    """Writes the note in the store `path`; there is none while no evaluation reports progress."""

    def __init__(self, path: Path) -> None:
        self._file = path / NAME
        self._reports: list[Reported] = []

    def note(self, advances: Sequence[Reported]) -> None:
        """Write the progress of these evaluations. A full disk loses the note, not the run."""
        if list(advances) == self._reports:
            return
        self._reports = list(advances)
        with contextlib.suppress(OSError):
            if not advances:
                self._file.unlink(missing_ok=True)
                return
            fresh = self._file.with_suffix(".new")
            fresh.write_text(json.dumps(self._reports))
            os.replace(fresh, self._file)


def running(path: Path) -> tuple[Reported, ...]:
    """The last note of the active run in the store `path`."""
    file = path / NAME
    try:
        if not file.is_file() or file.is_symlink() or file.stat().st_size > LARGEST:
            return ()
        return tuple(
            (int(number), None if share is None else float(share), str(words))
            for number, share, words in json.loads(file.read_text())
        )
    except (OSError, ValueError, TypeError):
        return ()
