"""Messages, with hints, for errors of the disk and of SQLite."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

from designopt.store import safe_files
from designopt.store.errors import StoreError, resume_command


class explained:
    """Context that converts errors of the disk and of SQLite, for the store `path`, to `StoreError`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (sqlite3.Error, OSError)):
            raise explain(error, self._path) from error


def explain(error: Exception, path: Path) -> StoreError:
    """`error` of the disk or of SQLite as a message for the user."""
    if isinstance(error, safe_files.ForeignFile):
        return StoreError(f"{error.filename}: {error.strerror}", path)
    # Without the name of the file: a folder may be called "full".
    text = (isinstance(error, OSError) and error.strerror) or str(error)
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        size = max(len(os.fsencode(part)) for part in path.parts)
        return StoreError(f"{path}: {text}: a name of {size} bytes; give a shorter one, of at most 255", path)
    has_journal = (path / "journal.db").exists()
    remedy = f"what was recorded is intact; continue with: {resume_command(path)}" if has_journal else "then run again"
    full = "full" in text or "No space" in text or "too large" in text
    if full or "disk I/O" in text:
        return StoreError(f"{path}: cannot be written: {text}; free some space, {remedy}", path)
    if "readonly" in text or "read-only" in text.lower() or "denied" in text or "unable to open" in text:
        return StoreError(f"{path}: cannot be written: {text}; make the folder writable, {remedy}", path)
    if "Could not decode" in text:
        return StoreError(f"{path}: journal.db is damaged: {text}; repair it with: {resume_command(path)}", path)
    if text == "interrupted":
        way = "it is damaged, not a journal, or too large"
        return StoreError(f"{path}: journal.db cannot be read within the limits of steps and time: {way}", path)
    damage_words = ("no such table", "no such column")
    if isinstance(error, sqlite3.DatabaseError) and (
        not isinstance(error, sqlite3.OperationalError) or any(words in text for words in damage_words)
    ):
        return StoreError(f"{path}: journal.db cannot be read: {text}; it is damaged or not a journal", path)
    return StoreError(f"{path}: {text}; {remedy}", path)
