"""Files of a store: regular files in its folder. A foreign store may contain anything in their places (links that lead
out of it, pipes, devices, folders), which is never followed, read, written or removed."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO

#: Files and folders that designopt reads or writes in the folder of a store.
FILES = (
    "lock", "study.yaml", "problem.json", "journal.db", "journal.db-journal", "journal.db-wal", "journal.db-shm",
    "provenance.jsonl", "start_from.json",
)  # fmt: skip
FOLDERS = ("arrays", "files", "logs", "tls")

#: Maximum size of a text (problem.json, study.yaml, start_from.json) that is read.
LARGEST_TEXT = 256 * 1024 * 1024

#: Opens a folder; for `O_PATH` of Linux the right to enter it is enough.
_FOLDER = os.O_DIRECTORY | getattr(os, "O_PATH", os.O_RDONLY) | os.O_CLOEXEC
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


class ForeignFile(OSError):
    """An entry of a store is not a regular file or folder."""

    def __init__(self, file: Path, message: str) -> None:
        super().__init__(errno.EINVAL, message, str(file))


def check(path: Path, *, thoroughly: bool = False) -> None:
    """Raise `ForeignFile` if an entry of the store `path` that must be a regular file, or a folder, is something else.

    This includes the folders of arrays; their files, and all other entries, only `thoroughly`.
    """
    for name in (*FILES, *FOLDERS):
        _check(path / name, folder=name in FOLDERS)
    for name in FOLDERS:
        for entry in _entries(path / name):
            if entry.is_symlink():
                raise ForeignFile(Path(entry.path), _fault(stat.S_IFLNK))
            if name == "arrays" and not entry.is_dir():
                raise ForeignFile(Path(entry.path), "is in place of a folder of arrays; move it away")
            if thoroughly:
                _check_all_in(Path(entry.path))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _check_all_in(folder: Path) -> None:
    for current, folders, files in os.walk(folder):
        for name in (*folders, *files):
            file = Path(current, name)
            if file.is_symlink():
                raise ForeignFile(file, _fault(stat.S_IFLNK))


def _check(file: Path, *, folder: bool = False) -> None:
    try:
        mode = os.lstat(file).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if not (stat.S_ISDIR(mode) if folder else stat.S_ISREG(mode)):
        raise ForeignFile(file, _fault(mode, "folder" if folder else "file"))


def _fault(mode: int, expected_kind: str = "file") -> str:
    """The fault of an entry with this mode, with a hint."""
    if stat.S_ISLNK(mode):
        return "is a symbolic link, which is not followed; replace it by its target, or remove it"
    kind = "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "pipe, socket or device"
    return f"is a {kind}, where a {expected_kind} is expected; move it away"


@contextlib.contextmanager
def folder_descriptor(folder: Path, *, create: bool = False) -> Iterator[int]:
    """A descriptor of the absolute `folder`, opened component by component without following links.

    `create` makes missing folders. Raises `ForeignFile` for a component that is a link or a file, and `OSError`.
    """
    descriptor = os.open(folder.anchor, _FOLDER)
    try:
        for component in (*list(reversed(folder.parents))[1:], *([folder] if folder.name else [])):
            if create:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(component.name, dir_fd=descriptor)
            try:
                below = os.open(component.name, _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
            except OSError:
                _check(component, folder=True)
                raise
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def check_folder(folder: Path) -> None:
    """Raise `ForeignFile` if a component of the absolute path `folder` is a link or a file, and `OSError`."""
    with folder_descriptor(folder):
        pass


def open_descriptor(file: Path, flags: int, mode: int = 0o666, *, folder: int | None = None) -> int:
    """`os.open` of a regular file; it neither follows links nor waits for pipes. Raises `ForeignFile`.

    With the descriptor of its `folder`, no component of the path is looked up again.
    """
    try:
        descriptor = os.open(_name(file, folder), flags | _NOFOLLOW, mode, dir_fd=folder)
    except OSError:
        _check(file)
        raise
    if not stat.S_ISREG(kind := os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ForeignFile(file, _fault(kind))
    return descriptor


def _name(file: Path, folder: int | None) -> str:
    """The argument for functions of `os` with the descriptor of the file's `folder`."""
    return str(file) if folder is None else file.name


def open_to_read(file: Path, *, folder: int | None = None) -> IO[bytes]:
    """A regular file, open for reading; see `open_descriptor`. Raises `ForeignFile` and other `OSError`."""
    return os.fdopen(open_descriptor(file, os.O_RDONLY, folder=folder), "rb")


def open_without_links(file: Path) -> IO[bytes]:
    """A regular file at an absolute path without a link in any component, open for reading. Raises `ForeignFile`,
    `OSError`."""
    with folder_descriptor(file.parent) as folder:
        return open_to_read(file, folder=folder)


def read_bytes(file: Path, largest: int | None = LARGEST_TEXT) -> bytes:
    """The content of a regular file. Raises `ForeignFile`, also for more than `largest` bytes."""
    with open_to_read(file) as stream:
        size = os.fstat(stream.fileno()).st_size
        if largest is not None and size > largest:
            raise ForeignFile(file, f"has {size} bytes, of which at most {largest} are read; it is damaged")
        return stream.read()


@contextlib.contextmanager
def replacing(file: Path, partial: Path, *, folder: int | None = None) -> Iterator[IO[bytes]]:
    """A new file `partial` beside `file` that replaces `file` at the end, flushed; on failure it is removed.

    A link with one of these names is replaced, not followed. With the descriptor of their `folder`, no component of
    the paths is looked up again.
    """
    target, fresh = _name(file, folder), _name(partial, folder)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(fresh, dir_fd=folder)
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=folder), "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        try:
            os.replace(fresh, target, src_dir_fd=folder, dst_dir_fd=folder)
        except IsADirectoryError:
            _check(file)
            raise
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(fresh, dir_fd=folder)
        raise
