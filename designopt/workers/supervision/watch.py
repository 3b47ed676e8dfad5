"""Notes of a worker about its work, so that others can end it when it hangs and report its position when it died.

The notes of a worker process are in a folder: the active chunk and evaluation, in a memory-mapped file; stack traces of
a fatal signal; the printed output; and the temporary files of evaluations. Its nanny reads them during the run
(`supervisor`), and its replacement reads them after its death (`death`).
"""

from __future__ import annotations

import contextlib
import faulthandler
import mmap
import os
import shutil
import signal
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from designopt.workers.executor import Position
from designopt.workers.supervision.children import mark, notes, unmark
from designopt.workers.supervision.death import CRASHED, LOST, Death, NoChunk
from designopt.workers.supervision.prints import Prints
from designopt.workers.supervision.temporary import use_folder, use_usual_folder, usual_folder

#: Exit code of a process that ends itself because it cannot continue (EX_SOFTWARE of sysexits.h).
EXIT_UNUSABLE = 70
#: A value that an intact process can send and read.
_PROBE = np.ones(1)
#: Signal at which a worker writes its stack traces.
TRACE_SIGNAL = getattr(signal, "SIGUSR2", None)

#: Whether the note is mapped in forked processes, if the system offers a choice.
_FORKS, _NO_FORKS = getattr(mmap, "MADV_DOFORK", None), getattr(mmap, "MADV_DONTFORK", None)

_NOTE = struct.Struct("<qqqqq")  # chunk, position, chunk before, beat, pulse
_ADVANCE = struct.Struct("<qd")  # number, share
_WORDS = 160
_SIZE = _NOTE.size + _ADVANCE.size + _WORDS


def folder(run: str, worker: str, root: Path | None = None) -> Path:
    """Folder of the notes of the worker with this name in this run; below `root`, if given by a nanny in another
    process, which may have another folder for temporary files."""
    return (root or usual_folder()) / notes(run, worker)


@dataclass(frozen=True)
class Note:
    """Position of a worker: its `chunk`, the `position` in it, and the chunk `before`.

    `beat` changes with every evaluation, `pulse` with the rounds of the event loop. `advance` counts the progress
    reports of the evaluation: a `share` and `words`.
    """

    chunk: int
    position: int
    before: int
    beat: int
    pulse: int
    advance: int
    share: float
    words: str

    @classmethod
    def unpack(cls, data: bytes) -> Note:
        """The note in these bytes. Raises `struct.error` if there are too few."""
        chunk, position, before, beat, pulse = _NOTE.unpack_from(data, 0)
        advance, share = _ADVANCE.unpack_from(data, _NOTE.size)
        words = data[_NOTE.size + _ADVANCE.size : _SIZE].rstrip(b"\0").decode(errors="replace")
        return cls(chunk, position, before, beat, pulse, advance, share, words)


class Watch:
    """Writes the notes of this worker process, below `root`. `fresh`: it has not completed a chunk yet."""

    def __init__(self, run: str, worker: str, address: str, root: Path | None = None) -> None:
        notes = folder(run, worker, root)
        self._notes = notes
        self._temporary = notes / "tmp"
        self._name = run, worker
        self._address = address
        self._beat = 0
        self._advances = 0
        self._lock = threading.Lock()
        self._has_ended = False
        self.chunk: int = NoChunk.IDLE
        self.before: int = NoChunk.IDLE
        notes.mkdir(mode=0o700, exist_ok=True)
        (notes / "address").write_text(address)
        (notes / "pid").write_text(str(os.getpid()))
        with (notes / "note").open("wb+") as stream:
            stream.truncate(_SIZE)
            self._note = mmap.mmap(stream.fileno(), _SIZE)
        self._disown()
        self._write(NoChunk.IDLE, Position.PREPARING)
        self.prints = Prints(notes / "prints")
        (notes / "trace").unlink(missing_ok=True)
        self._trace = (notes / "trace").open("a")
        self._trace_identity = _identity(self._trace.fileno())
        faulthandler.enable(self._trace)
        if TRACE_SIGNAL is not None:
            faulthandler.register(TRACE_SIGNAL, file=self._trace, all_threads=True)

    def take_over(self) -> None:
        """Children started and temporary files created from now on belong to this run."""
        mark(*self._name)
        use_folder(self._temporary)
        if _FORKS is not None:
            self._note.madvise(_FORKS)

    def _disown(self) -> None:
        unmark(self._name[0])
        use_usual_folder(self._temporary)
        if _NO_FORKS is not None and not self.closed:  # closed: in the middle of a chunk
            self._note.madvise(_NO_FORKS)

    @contextlib.contextmanager
    def owning(self) -> Iterator[None]:
        """Children started and temporary files created inside this context belong to this run; other runs may also have
        work for this process."""
        self.take_over()
        try:
            yield
        finally:
            self._disown()

    @property
    def closed(self) -> bool:
        """Whether the worker has left the run."""
        return self._note.closed

    @property
    def busy(self) -> bool:
        """Whether a chunk is active."""
        return self.chunk != NoChunk.IDLE

    @property
    def fresh(self) -> bool:
        """Whether this process has completed no chunk."""
        return self.before == NoChunk.IDLE

    def _write(self, chunk: int, position: int) -> None:
        self._beat += 1
        struct.pack_into("<qqqq", self._note, 0, chunk, position, self.before, self._beat)

    def begin_chunk(self, chunk: int) -> None:
        """A chunk begins; the model may be prepared before its first evaluation."""
        with self._lock:
            if self.chunk != NoChunk.IDLE:
                self.before = self.chunk
            self.chunk = chunk
            self._has_ended = False
            self._write(chunk, Position.PREPARING)

    def begin(self, position: int) -> None:
        """The evaluation at `position` of the chunk begins."""
        self._write(self.chunk, position)

    def end(self) -> None:
        """All evaluations of the chunk are complete; its result is not handed over yet."""
        self._has_ended = True
        self._write(self.chunk, Position.ENDED)

    def hand_over(self, chunk: int) -> None:
        """The result of a chunk is with Dask. It may still die with this process."""
        with self._lock:
            if chunk == self.chunk and self._has_ended:
                self.before, self.chunk = chunk, NoChunk.IDLE
                self._write(NoChunk.IDLE, Position.PREPARING)

    def pulse(self) -> None:
        """The event loop has completed a round."""
        offset = _NOTE.size - 8
        (count,) = struct.unpack_from("<q", self._note, offset)
        struct.pack_into("<q", self._note, offset, count + 1)

    def advance(self, share: float, words: str) -> None:
        """The active evaluation reports progress."""
        self._advances += 1
        text = words.encode(errors="replace")[:_WORDS].ljust(_WORDS, b"\0")
        self._note[_NOTE.size + 8 : _SIZE] = struct.pack("<d", share) + text
        struct.pack_into("<q", self._note, _NOTE.size, self._advances)

    def give_up(self, why: str) -> None:
        """End this process, which cannot continue; its replacement reports `why`."""
        with contextlib.suppress(OSError):
            judge(self._notes, CRASHED, why)
        os._exit(EXIT_UNUSABLE)

    def intact(self) -> bool:
        """Whether this process still has its files open."""
        try:
            return _identity(self._trace.fileno()) == self._trace_identity
        except (OSError, ValueError):
            return False

    def leaving(self) -> Death | None:
        """The death of this process, reported by itself when it must end; None if it is idle."""
        note = Note.unpack(self._note[:])
        if note.chunk == NoChunk.IDLE:
            return None
        return Death(self._address, note.chunk, note.position, note.before, exit_code=-signal.SIGTERM)

    def close(self, *, busy: bool) -> None:
        """The worker ends in order; a `busy` one leaves its notes to its nanny."""
        if TRACE_SIGNAL is not None:
            faulthandler.unregister(TRACE_SIGNAL)
        faulthandler.disable()
        self._disown()
        self._trace.close()
        self._note.close()
        self.prints.close()
        if busy:
            with contextlib.suppress(OSError):
                judge(self._notes, LOST, "had to leave")
        else:
            shutil.rmtree(self._notes, ignore_errors=True)


def _identity(descriptor: int) -> tuple[int, int]:
    about = os.fstat(descriptor)
    return about.st_dev, about.st_ino


def read_note(notes: Path) -> Note | None:
    """The position of the worker with notes in `notes`; None without notes."""
    try:
        return Note.unpack((notes / "note").read_bytes())
    except (OSError, struct.error):
        return None


def judge(notes: Path, cause: str, why: str) -> None:
    """Record why the worker with notes in `notes` is ended: `cause` as in `Loss`, and the rest of a sentence."""
    (notes / "verdict").write_text(f"{cause}\n{why}")


def read_death(notes: Path) -> Death | None:
    """The last notes in `notes` of the previous process with the worker's name; None without any. Removes them."""
    note = read_note(notes)
    try:
        address = (notes / "address").read_text()
        trace = (notes / "trace").read_text(errors="replace")
    except OSError:
        return None
    if note is None:
        return None
    code: int | None = None
    with contextlib.suppress(OSError, ValueError):
        code = int((notes / "exit").read_text())
    cause, why = "", ""
    with contextlib.suppress(OSError):
        cause, _, why = (notes / "verdict").read_text(errors="replace").partition("\n")
    prints = Prints.left(notes / "prints")
    shutil.rmtree(notes, ignore_errors=True)
    return Death(address, note.chunk, note.position, note.before, trace, prints, code, cause, why)


def write_exit_code(notes: Path, code: int) -> None:
    """Called in the parent process of the worker, before a new worker is started."""
    with contextlib.suppress(OSError):
        (notes / "exit").write_text(str(code))


def remaining(run: str) -> Iterator[Path]:
    """The remaining folders of notes of the run on this machine."""
    yield from usual_folder().glob(f"{notes(run)}*")


def transmits_arrays(dumps: Callable[[Any], Any], loads: Callable[[Any], Any]) -> bool:
    """Whether this process can still create an array, serialise it with `dumps`, and read it with `loads`."""
    copy = loads(dumps(_PROBE))
    return bool(np.array_equal(copy, _PROBE)) and np.empty(1).shape == (1,)


def ignore_interrupts() -> None:
    """Ctrl-C on a terminal reaches all processes; only the coordinator acts on it."""
    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
