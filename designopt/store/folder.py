"""Folder of a study: the study file, the problem, the input files, the journal and the arrays."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from designopt.files import InputFile, root_of
from designopt.plugin import foreign_code, is_installed
from designopt.problem import Problem
from designopt.store import archive, safe_files
from designopt.store.consistency import check_consistent
from designopt.store.disk.arrays import remove_orphans
from designopt.store.disk.durable import make_folder_durably, write_durably
from designopt.store.disk.lock import Lock
from designopt.store.errors import StoreError, explain, reading, refuse_foreign, resume_command
from designopt.store.journal import recorded_designs
from designopt.store.journal.connection import connect_to_read
from designopt.store.journal.in_memory import JournalInMemory
from designopt.store.journal.rebuild import read_intact, rebuild
from designopt.store.journal.recorded_designs import Contents
from designopt.store.journal.writer import Journal
from designopt.store.nearest_store import nearest_store
from designopt.store.provenance import versions
from designopt.study.language.files import FolderFiles
from designopt.study.study import StudyDefinition

_DIGEST = re.compile(r"[0-9a-f]{32}")
#: Number of files copied at the same time; each is in memory meanwhile.
COPIES = 4
#: Files of a store up to this size (bytes) are compared with their digest when it is opened, larger ones at first use.
VERIFIED = 16 * 2**20
#: Maximum bytes of a path for SQLite (its limit MAX_PATHNAME), less those of the longest name of a journal.
LONGEST_PATH = 512 - len("/journal.db.new-journal") - 1


class Store:
    """A store opened for writing: it holds the lock. Use as a context manager.

    `made_folder`: the folder is new; `repairs` describes damaged records, `contents` are the records of a resumed one.
    """

    def __init__(self, path: Path, journal: Journal, lock: Lock | None = None) -> None:
        self.path = path
        self.journal = journal
        self.made_folder = False
        self.repairs: list[str] = []
        self.contents: Contents | None = None
        self._lock = lock

    @classmethod
    def create(cls, path: Path, study: StudyDefinition, problem: Problem) -> Store:
        """A new store. Raises `StoreError` if the path exists or is too long, or the folder cannot be written."""
        if (length := len(os.fsencode(path.absolute()))) > LONGEST_PATH:
            text = f"the path has {length} bytes, SQLite takes {LONGEST_PATH} for a store; give a shorter one"
            raise StoreError(f"{path}: {text}", path)
        try:
            if (path / "journal.db").exists():
                raise _exists(path)
            if path.exists() and not path.is_dir():
                raise StoreError(f"{path}: is a file; give the name of a folder", path)
            above = next((folder for folder in path.parents if folder.exists()), path)
            if not above.is_dir():
                raise StoreError(f"{path}: {above} is a file, so there can be no folder below it", path)
            if path.exists() and not set(os.listdir(path)) <= _OF_AN_UNFINISHED_START:
                if (path / "journal.db").exists():  # another start has created it meanwhile
                    raise _exists(path)
                raise StoreError(f"{path}: is a folder of something else; give another one", path)
            new = not path.exists()
            make_folder_durably(path)
            refuse_foreign(path, thoroughly=True)
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
        store = cls(path, journal, lock)
        store.made_folder = new
        return store

    @classmethod
    def resume(cls, path: Path, study: StudyDefinition, problem: Problem) -> Store:
        """An existing store. Raises `StoreError` if it is not a store, is in use, or belongs to another problem or
        format."""
        if not (path / "journal.db").exists():
            raise StoreError(f"{path}: is not a store with a journal; begin with: designopt run", path)
        refuse_foreign(path, thoroughly=True)
        lock = Lock(path)
        journal = None
        try:
            with reading(path):
                contents = read_intact(path, problem)
                repairs = [] if contents is not None else rebuild(path, problem, study)
                journal = Journal.open(path, problem, seed=study.seed)
                if contents is None:
                    contents = recorded_designs.read_all(journal, gaps=True)
            store = cls(path, journal, lock)
            store.repairs, store.contents = repairs, contents
            _write_study(path, study, problem)
            shutil.rmtree(_former(path), ignore_errors=True)  # the run that replaced it was killed
            remove_orphans(path, contents.evaluations.array_files)
        except BaseException:
            if journal is not None:
                journal.close()
            lock.release()
            raise
        return store

    @classmethod
    def in_memory(cls, problem: Problem) -> Store:
        """A store in memory only: without a folder and arrays."""
        journal = JournalInMemory(problem)
        return cls(journal.path, journal)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.journal.close()
        if self._lock is not None:
            with contextlib.suppress(OSError):
                self._lock.release()


def _exists(path: Path) -> StoreError:
    way = (
        f"{resume_command(path)} (in Python: run(..., resume=True)). For a changed study, choose another store (in "
        f"Python with recall=[{str(path)!r}] to take over evaluations with the same keys), or replace=True"
    )
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
    """Remove a new store without records, so that the next run can use the place; the `folder` too if it contains
    nothing else."""
    db = connect_to_read(path)
    try:
        (count,) = db.execute("SELECT COUNT(*) FROM evaluation").fetchone()
    finally:
        db.close()
    if count:
        return
    for name in sorted(_OF_A_STORE - {"files"}):
        (path / name).unlink(missing_ok=True)
    for file in (path / "files").glob("*"):
        if _DIGEST.fullmatch(file.name.removeprefix(".").removesuffix(".new")):
            file.unlink()
    with contextlib.suppress(OSError):  # it contains other files
        if (path / "files").exists():
            (path / "files").rmdir()
        if folder:
            path.rmdir()


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[None]:
    """Context for a new run in the place of the store `path`, which is deleted at the end, or put back if no new store
    was created. Raises `StoreError` if it is in use or not a store's own folder."""
    path = path.absolute()
    if not (path / "journal.db").exists():
        yield
        return
    refuse_foreign(path, thoroughly=True)
    Lock(path).release()
    former = _former(path)
    try:
        shutil.rmtree(former, ignore_errors=True)
        path.rename(former)
    except OSError as error:
        raise explain(error, path) from error
    try:
        yield
    finally:
        if (path / "journal.db").exists():
            shutil.rmtree(former, ignore_errors=True)
        elif not path.exists():
            former.rename(path)


def _former(path: Path) -> Path:
    """Where a store lies while a new run in its place begins."""
    return path.with_name(f".{path.name}.replaced")


def read_study(path: Path, data_roots: Mapping[str, Path] | None = None) -> StudyDefinition:
    """The study of the store `path`, with plugins as far as installed. Raises `StoreError` if it is not a store.

    A store does not contain files of data roots: their contents are available if `data_roots` gives the folder.
    """
    try:
        refuse_foreign(path)
        with reading(path, "problem.json"):
            data = json.loads(safe_files.read_bytes(path / "problem.json"))
    except FileNotFoundError as error:
        why = "is not a store (it has no problem.json)" if path.exists() else "there is no such folder"
        raise StoreError(f"{path}: {why}{nearest_store(path)}", path) from error
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}", path) from error

    roots = FolderFiles(path, data_roots)

    def stored_file(name: str, digest: str) -> InputFile:
        if not _DIGEST.fullmatch(digest):
            raise StoreError(f"{path}: problem.json is damaged: '{digest}' is not a digest", path)
        stored_path = path / "files" / digest
        if root_of(name) and not stored_path.exists():
            has_root = root_of(name) in (data_roots or {})
            return _data_root_file(roots, name, digest, path) if has_root else InputFile.from_digest(name, digest)
        try:
            safe_files.open_to_read(stored_path).close()
            file = InputFile.at(stored_path, name)
            sound = file.size > VERIFIED or file.digest == digest
        except OSError as error:
            raise StoreError(f"{path}: files/{digest} cannot be read: {error.strerror or error}", path) from error
        if not sound:
            raise StoreError(f"{path}: files/{digest} is damaged: its content is another one; put back a copy", path)
        return InputFile.at(stored_path, name, digest)

    def plugin_file(name: str, digest: str) -> bytes:
        """Code in a store is never run, only compared with the given file: a damaged file counts as different."""
        try:
            return stored_file(name, digest).content
        except StoreError:
            return b""

    file = path / "study.yaml"
    try:
        with reading(path, "study.yaml"):
            text = safe_files.read_bytes(file).decode() if file.exists() else ""
    except OSError as error:
        raise StoreError(f"{file}: cannot be read: {error.strerror}", path) from error
    version_error = _version_error(path, data)
    with reading(path, "problem.json", version_error):
        if data.get("study_digest") not in (None, _digest(data["study"])):  # none in stores of earlier versions
            raise ValueError("its study has changed since it was written")
        study = archive.decode(
            data["study"], file=stored_file, plugin_file=plugin_file, text=text, path=file if text else None
        )
        check_consistent(study)
        matches = (
            Problem.from_study(study).digest == data["digest"]
        )  # later comparisons with the journal rely on its types
    if not matches:
        text = "is read as another problem than it was written as: by another version of designopt or of a plugin,"
        raise version_error or StoreError(
            f"{path}: problem.json {text} or it was changed; use that version, or a copy", path
        )
    return study


def _version_error(path: Path, data: Any) -> StoreError | None:
    """Addition to a message if another version of designopt has written the unreadable `data` of problem.json."""
    writer, reader = data.get("designopt") if isinstance(data, dict) else None, versions()["designopt"]
    if not isinstance(writer, str) or writer == reader:
        return None
    text = f"written by version {writer[:40]} of designopt, which this one, {reader}, cannot read; use that version"
    return StoreError(f"{path}: {text}, or run the study again in another folder", path)


def _digest(study: Any) -> str:
    """Digest of the data of a study in problem.json."""
    text = json.dumps(json.loads(json.dumps(study)), sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _data_root_file(roots: FolderFiles, name: str, digest: str, path: Path) -> InputFile:
    """A file of a data root. Raises `StoreError` if it is missing or has changed since the run began."""
    try:
        file = roots(name)
        matches = file.digest == digest
    except (ValueError, OSError) as error:
        raise StoreError(f"{path}: {error}", path) from error
    if not matches:
        raise StoreError(f"{path}: file '{name}' differs from the one that the run began with", path)
    return file


def _copy(files: Mapping[str, InputFile], folder: Path) -> None:
    """Copy files missing in the store; several at a time, because a disk flushes them in little more time than one."""
    lacking = {digest: file for digest, file in files.items() if not (folder / digest).exists()}
    if not lacking:
        return
    make_folder_durably(folder)
    with ThreadPoolExecutor(COPIES) as pool:
        for _ in pool.map(lambda digest: write_durably(folder / digest, lacking[digest].content), lacking):
            pass


def _declared_in(study: StudyDefinition) -> list[str]:
    """The files in which this process declared uninstalled plugins of `study`, for the resume command: a run from
    Python has no `--plugin`."""
    uses = [study.model, *study.figures.values(), *study.judging]
    passed_names = {Path(name).name for name, _ in study.plugin_files}
    files = [use.plugin.source for use in uses if use.plugin.source is not None and not is_installed(use.plugin)]
    return list(
        dict.fromkeys(os.path.relpath(file) for file in files if file.is_file() and file.name not in passed_names)
    )


def _write_study(path: Path, study: StudyDefinition, problem: Problem) -> None:
    """Everything needed to resume or read: each file is written completely or not at all."""
    data: dict[str, Any] = {
        "designopt": versions()["designopt"],
        "digest": problem.digest,
        "problem": problem.canonical(),
        "study": archive.encode(study),
        "declared_in": _declared_in(study),
        "working_folder": os.path.relpath(Path.cwd(), path),
    }
    data["study_digest"] = _digest(data["study"])
    if items := foreign_code(study.model):
        data["runs"] = [item.option for item in items]
    try:
        sources = [file for file in archive.files(study) if not file.root or file in study.tables]
        _copy({file.digest: file for file in sources}, path / "files")
        for file in sources:
            file.relocate(path / "files" / file.digest)  # later changes by the user do not matter
        if study.text:
            write_durably(path / "study.yaml", study.text.encode())
        write_durably(path / "problem.json", json.dumps(data, indent=1, ensure_ascii=False).encode())
    except OSError as error:
        raise explain(error, path) from error
