"""A note in the store of how far its long evaluations are, for those who look on from another process."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

NAME = "running.json"
#: A longer file is none of ours.
LARGEST = 2**20

#: The number of a design, the share of its evaluation that is done, and a few words.
Advance = tuple[int, float, str]


class Running:
    """Keeps the note in the store `path`; there is none while no evaluation tells of itself."""

    def __init__(self, path: Path) -> None:
        self._file = path / NAME
        self._noted: list[Advance] = []

    def note(self, advances: Sequence[Advance]) -> None:
        """These evaluations tell how far they are. A disk that takes no more costs the note, not the run."""
        if list(advances) == self._noted:
            return
        self._noted = list(advances)
        with contextlib.suppress(OSError):
            if not advances:
                self._file.unlink(missing_ok=True)
                return
            fresh = self._file.with_suffix(".new")
            fresh.write_text(json.dumps(self._noted))
            os.replace(fresh, self._file)


def running(path: Path) -> tuple[Advance, ...]:
    """What the run at work on the store `path` has noted last."""
    file = path / NAME
    try:
        if not file.is_file() or file.is_symlink() or file.stat().st_size > LARGEST:
            return ()
        return tuple((int(number), float(share), str(words)) for number, share, words in json.loads(file.read_text()))
    except (OSError, ValueError, TypeError):
        return ()
