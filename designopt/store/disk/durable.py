"""Durable writes: files and folders are on the disk when the call returns."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from designopt.store import safe_files


def write_durably(file: Path, content: bytes) -> None:
    """Write a file under a temporary name, flush it to the disk, rename it, flush the folder."""
    with safe_files.replacing(file, file.with_name(f".{file.name}.new")) as stream:
        stream.write(content)
    flush_folder(file.parent)


def make_folder_durably(folder: Path) -> None:
    """Create a folder and its parents; flush the parent of each new one: a file is lost with its folder."""
    if folder.is_dir():
        return
    make_folder_durably(folder.parent)
    folder.mkdir(exist_ok=True)
    flush_folder(folder.parent)


def append_durably(file: Path, line: str) -> None:
    """Add one line to a text file; flush the folder of a new one."""
    new = not file.exists()
    descriptor = safe_files.open_descriptor(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with os.fdopen(descriptor, "a", encoding="utf-8") as stream:
        stream.write(line + "\n")
        stream.flush()
        os.fsync(descriptor)
    if new:
        flush_folder(file.parent)


def flush_folder(folder: Path) -> None:
    """Flush the entries of a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems cannot flush a folder
            raise
    finally:
        os.close(descriptor)
