"""One writer per store: an operating-system lock that ends with its process, and a readable note about the holder."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
from pathlib import Path
from typing import Any

from designopt.store import safe_files
from designopt.store.errors import StoreError

NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "gpfs", "beegfs", "ceph", "9p", "afs", "glusterfs", "fuse.sshfs"}
)


#: Maximum size of a note in bytes.
LARGEST = 4096


class Lock:
    """The lock of the store folder `path`, held from construction until `release` or the end of the process.

    The kernel releases the lock when its holder ends, so there are no stale locks on one machine. On a network file
    system whose locks may be local to each machine, the note of another host also counts. Raises `StoreError` if
    another process holds it.
    """

    def __init__(self, path: Path) -> None:
        self._file = path / "lock"
        try:
            self._descriptor = safe_files.open_descriptor(self._file, os.O_RDWR | os.O_CREAT, 0o644)
        except safe_files.ForeignFile as error:
            raise StoreError(f"{self._file}: {error.strerror}", path) from error
        except OSError as error:
            raise StoreError(
                f"{path}: cannot be written: {error.strerror}; make the folder writable, or give another one with -o",
                path,
            ) from error
        try:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in (errno.EWOULDBLOCK, errno.EACCES, errno.ENOLCK, errno.ENOTSUP):
                    raise
                if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                    raise StoreError(f"{path}: in use by {_describe(self._note())}; wait for it to end", path) from None
                self._respect_note(path)
            else:
                if file_system(path) in NETWORK_FILE_SYSTEMS:
                    self._respect_note(path)
            note = {"host": socket.gethostname(), "pid": os.getpid(), "started": process_start(os.getpid())}
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, json.dumps(note).encode(), 0)
        except OSError as error:
            os.close(self._descriptor)
            raise StoreError(f"{path}: cannot be locked: {error.strerror}", path) from error
        except StoreError:
            os.close(self._descriptor)
            raise

    def _note(self) -> dict[str, Any]:
        return _note(os.pread(self._descriptor, LARGEST, 0))

    def _respect_note(self, path: Path) -> None:
        """Raise `StoreError` if the note names a live process, or one of another host, which cannot be checked."""
        note = self._note()
        if not note or not _lives(note):
            return
        is_this_host = note["host"] == socket.gethostname()
        hint = "wait for it to end" if is_this_host else f"if that process is gone, delete {self._file}"
        raise StoreError(f"{path}: in use by {_describe(note)}; {hint}", path)

    def release(self) -> None:
        """Release the lock."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            try:
                os.ftruncate(descriptor, 0)
            finally:
                os.close(descriptor)


def at_work(path: Path) -> bool:
    """Whether a process holds the store `path`; for another machine, according to its note."""
    try:
        note = _note(safe_files.read_bytes(path / "lock", LARGEST))
    except OSError:
        return False
    return bool(note) and _lives(note)


def holder(path: Path) -> int | None:
    """The process of this machine that holds the store `path`; None without one.

    A note alone does not count: the lock must be taken, too.
    """
    try:
        with safe_files.open_to_read(path / "lock") as stream:
            note = _note(stream.read(LARGEST))
            if not note or note["host"] != socket.gethostname() or not _lives(note):
                return None
            try:
                fcntl.flock(stream.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError as error:
                is_locked = error.errno in (errno.EWOULDBLOCK, errno.EACCES)
                return int(note["pid"]) if is_locked and note["pid"] > 1 else None
            return None
    except OSError:
        return None


def _note(content: bytes) -> dict[str, Any]:
    """Content of a note: process, host, start; empty if unreadable."""
    try:
        note = json.loads(content or b"{}")
        return {"pid": int(note["pid"]), "host": str(note["host"]), "started": note["started"]}
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return {}


def _lives(note: dict[str, Any]) -> bool:
    """Whether the process of a note is alive; one on another host cannot be checked."""
    return bool(note["host"] != socket.gethostname() or process_start(note["pid"]) == note["started"])


def _describe(note: dict[str, Any]) -> str:
    return f"process {note['pid']} on {note['host']}" if note else "another process"


def process_start(pid: int) -> str | None:
    """Start time of process `pid` in kernel ticks since boot: distinguishes processes with a reused number."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


def file_system(path: Path) -> str:
    """Type of the file system that contains `path`; "" if not available."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        return ""
    absolute_path = str(path.resolve())
    best, kind = "", ""
    for fields in mounts:
        point = fields[1].replace("\\040", " ")
        if (absolute_path == point or absolute_path.startswith(point.rstrip("/") + "/")) and len(point) >= len(best):
            best, kind = point, fields[2]
    return kind
