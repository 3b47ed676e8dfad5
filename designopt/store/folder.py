"""The folder of a study: the file as given, the problem, the input files, the journal and the arrays."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.problem import Problem
from designopt.store import archive
from designopt.store.errors import StoreError, reading, resume_command
from designopt.store.journal import Journal, connect_to_read, explain
from designopt.store.lock import Lock
from designopt.study.study import Study

#: Files that are flushed at the same time (measured: 8 give ten times the files a second, 16 no more).
FLUSHES = 8


class Store:
    """A store opened for writing: it holds the lock. Use as a context manager.

    `made_folder` is True when the folder was not there before.
    """

    def __init__(self, path: Path, study: Study, problem: Problem, lock: Lock, journal: Journal) -> None:
        self.path = path
        self.study = study
        self.problem = problem
        self.journal = journal
        self.made_folder = False
        self._lock = lock

    @classmethod
    def create(cls, path: Path, study: Study, problem: Problem) -> Store:
        """A new store; `StoreError` when something is there already or the folder cannot be written."""
        try:
            if (path / "journal.db").exists():
                raise _exists(path)
            if path.exists() and not path.is_dir():
                raise StoreError(f"{path}: is a file; give the name of a folder", path)
            if path.exists() and not set(os.listdir(path)) <= _OF_AN_UNFINISHED_START:
                raise StoreError(f"{path}: is a folder of something else; give another one", path)
            new = not path.exists()
            make_folder_durably(path)
        except OSError as error:
            raise explain(error, path) from error
        lock = Lock(path)
        try:
            if (path / "journal.db").exists():
                raise _exists(path)
            _write_study(path, study, problem)
            journal = Journal.create(path, problem, seed=study.seed)
        except BaseException:
            lock.release()
            raise
        store = cls(path, study, problem, lock, journal)
        store.made_folder = new
        return store

    @classmethod
    def resume(cls, path: Path, study: Study, problem: Problem) -> Store:
        """An existing store; `StoreError` when it is none, is in use, or belongs to another problem or format."""
        if not (path / "journal.db").exists():
            raise StoreError(f"{path}: is not a store with a journal; begin with: designopt run", path)
        lock = Lock(path)
        journal = None
        try:
            with reading(path):
                journal = Journal.open(path, problem, seed=study.seed)
            store = cls(path, study, problem, lock, journal)
            _write_study(path, study, problem)
            store._remove_orphans()
        except BaseException:
            if journal is not None:
                journal.close()
            lock.release()
            raise
        return store

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.journal.close()
        with contextlib.suppress(OSError):
            self._lock.release()

    # -------------------------------------------------------------------------------------------------- arrays

    def write_all_arrays(self, given: Mapping[bytes, Mapping[str, NDArray[Any]]]) -> dict[bytes, str]:
        """Keep arrays under their keys; the references for the journal. Durable before it returns.

        A disk flushes several files at once in little more time than one.
        """
        if len(given) < 2:
            return {key: self.write_arrays(key, arrays) for key, arrays in given.items()}
        with ThreadPoolExecutor(FLUSHES) as pool:
            references = pool.map(self.write_arrays, given.keys(), given.values())
            return dict(zip(given, references, strict=True))

    def write_arrays(self, key: bytes, arrays: Mapping[str, NDArray[Any]]) -> str:
        """Keep `arrays` under `key`; the reference for the journal. Durable before it returns."""
        reference = array_reference(key)
        try:
            packed = io.BytesIO()
            np.savez(packed, **arrays)  # type: ignore[arg-type]
            write_durably(self.path / reference, packed.getvalue())
        except OSError as error:
            raise explain(error, self.path) from error
        return reference

    def remove_arrays(self, reference: str) -> None:
        """Remove arrays that no row refers to any more."""
        (self.path / reference).unlink(missing_ok=True)

    def _remove_orphans(self) -> None:
        """Array files without a row: their process ended between the two."""
        known = {reference for (reference,) in self.journal.evaluations("arrays") if reference}
        for reference in self.array_files() - known:
            (self.path / reference).unlink()

    def array_files(self) -> set[str]:
        """References of the arrays that are there."""
        return {f"arrays/{file.parent.name}/{file.name}" for file in (self.path / "arrays").glob("*/*")}


def _exists(path: Path) -> StoreError:
    way = f"{resume_command(path)} (in Python: run(..., resume=True))"
    return StoreError(f"{path}: exists already; continue it with: {way}", path)


_OF_AN_UNFINISHED_START = {
    "lock", "study.yaml", "problem.json", "files", "journal.db.new", "journal.db.new-journal", "journal.db.new-wal",
    "journal.db.new-shm", "provenance.jsonl", ".study.yaml.new", ".problem.json.new",
}  # fmt: skip
_OF_A_STORE = {
    *_OF_AN_UNFINISHED_START, "journal.db", "journal.db-wal", "journal.db-shm", "start_from.json",
    ".start_from.json.new",
}  # fmt: skip


def discard(path: Path, *, folder: bool) -> None:
    """Remove a new store in which nothing is on record, so that the next run can have the place; with the `folder`
    itself when nothing else is in it."""
    db = connect_to_read(path)
    try:
        (recorded,) = db.execute("SELECT COUNT(*) FROM evaluation").fetchone()
    finally:
        db.close()
    if recorded:
        return
    for name in sorted(_OF_A_STORE - {"files"}):
        (path / name).unlink(missing_ok=True)
    for file in (path / "files").glob("*"):
        file.unlink()
    with contextlib.suppress(OSError):  # something of somebody else's is in it
        if (path / "files").exists():
            (path / "files").rmdir()
        if folder:
            path.rmdir()


def array_reference(key: bytes) -> str:
    """Where the arrays of the evaluation `key` lie in a store."""
    name = key.hex()
    return f"arrays/{name[:2]}/{name}.npz"


def read_arrays(path: Path, reference: str) -> dict[str, NDArray[Any]]:
    """Arrays of a store by their reference. `StoreError` when they are missing or damaged."""
    file = (path / reference).resolve()
    if not file.is_relative_to((path / "arrays").resolve()):
        raise StoreError(f"{path}: the journal refers to arrays outside of the store: {reference}", path)
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as packed:
            return {name: packed[name] for name in packed.files}
    except (OSError, EOFError, KeyError, ValueError, AttributeError, zipfile.BadZipFile, zlib.error) as error:
        why = "is missing" if isinstance(error, FileNotFoundError) else f"is damaged ({type(error).__name__}: {error})"
        text = f"{path}: {reference} {why}; compute it again with: {resume_command(path)}"
        raise StoreError(text, path) from error


def read_study(path: Path) -> Study:
    """The study that the store `path` belongs to, as far as its plugins are installed. `StoreError` when it is none."""
    try:
        with reading(path, "problem.json"):
            data = json.loads((path / "problem.json").read_bytes())
    except FileNotFoundError as error:
        why = "is not a store (it has no problem.json)" if path.exists() else "there is no such folder"
        raise StoreError(f"{path}: {why}", path) from error
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}", path) from error

    def content(digest: str) -> bytes:
        if not digest.isalnum():
            raise StoreError(f"{path}: problem.json is damaged: '{digest}' is not a digest", path)
        try:
            return (path / "files" / digest).read_bytes()
        except OSError as error:
            raise StoreError(f"{path}: files/{digest} cannot be read: {error.strerror}", path) from error

    file = path / "study.yaml"
    try:
        with reading(path, "study.yaml"):
            text = file.read_text(encoding="utf-8") if file.exists() else ""
    except OSError as error:
        raise StoreError(f"{file}: cannot be read: {error.strerror}", path) from error
    with reading(path, "problem.json"):
        study = archive.decode(data["study"], file=content, text=text, path=file if text else None)
        Problem.of(study).canonical()  # whoever compares it with the journal can trust its types
    return study


def _write_study(path: Path, study: Study, problem: Problem) -> None:
    """Everything a resume or a reader needs: written whole or not at all, file by file."""
    data = {"digest": problem.digest, "problem": problem.canonical(), "study": archive.encode(study)}
    try:
        for file in archive.files(study):
            if not (path / "files" / file.digest).exists():
                write_durably(path / "files" / file.digest, file.content)
        if study.text:
            write_durably(path / "study.yaml", study.text.encode())
        write_durably(path / "problem.json", json.dumps(data, indent=1, ensure_ascii=False).encode())
    except OSError as error:
        raise explain(error, path) from error


def write_durably(file: Path, content: bytes) -> None:
    """Write a file under a temporary name, flush it to the disk, give it its name, flush the folder."""
    make_folder_durably(file.parent)
    partial = file.with_name(f".{file.name}.new")
    try:
        with partial.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(file)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise
    _flush_folder(file.parent)


def make_folder_durably(folder: Path) -> None:
    """Make a folder and those above it; flush the one that holds each new one: a file is lost with its folder."""
    if folder.is_dir():
        return
    make_folder_durably(folder.parent)
    folder.mkdir(exist_ok=True)
    _flush_folder(folder.parent)


def append_durably(file: Path, line: str) -> None:
    """Add one line to a text file."""
    with file.open("a", encoding="utf-8") as stream:
        stream.write(line + "\n")
        stream.flush()
        os.fsync(stream.fileno())


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems cannot flush a folder
            raise
    finally:
        os.close(descriptor)
