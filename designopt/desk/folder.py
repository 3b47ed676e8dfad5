"""Content of a folder: stores with their state, and study files. Fast enough for a check every second."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import time
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from designopt.store import safe_files
from designopt.store.disk.lock import at_work
from designopt.store.errors import StoreError, explained, made_elsewhere
from designopt.store.journal.connection import connect_to_read
from designopt.store.nearest_store import suggestion
from designopt.study.language.findings import nearest

#: Maximum depth, and maximum number of folders, of the search for stores and studies.
DEPTH, FOLDERS = 4, 5000
#: Key at the beginning of a line of a study file; bytes in which it is searched.
_STUDY = re.compile(rb"^study[ \t]*:", re.MULTILINE)
HEAD = 65536
#: Maximum size of a problem.json for the title of a store.
LARGEST = 4 * 2**20
#: Maximum time for reading a store for the list, and time after which an unreadable one is read again (s).
LONGEST, RETRY = 2.0, 60.0
#: Folders without studies.
_OTHERS = {"node_modules", "__pycache__", "site-packages"}


@dataclass(frozen=True)
class StoreEntry:
    """A store in the list. `state` is running, done, or the end of its last session; `stamp` changes with its journal.
    `designs` and `evaluations` are recorded numbers; `problem` is the reason why it cannot be read. No run continues a
    store whose evaluations are `made_elsewhere`."""

    place: str
    title: str
    state: str
    designs: int
    evaluations: int
    changed: float
    stamp: str
    problem: str = ""
    made_elsewhere: bool = False

    def as_data(self) -> dict[str, Any]:
        """Data for JSON."""
        return asdict(self)


class Folder:
    """The stores and studies below `root`, each identified by its relative path (its place)."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._stores: dict[str, Path] = {}
        self._studies: dict[str, Path] = {}
        self._entries: dict[str, StoreEntry] = {}
        self._read_again_at: dict[str, float] = {}  # unreadable stores: when they are read again, though unchanged
        self._read: dict[Path, tuple[int, bool]] = {}  # YAML files: time of change, and whether they are studies

    def store(self, name: str) -> Path:
        """The store at `name`. Raises `KeyError`, with a sentence, unless the last search has found one there, and
        `OSError` if it is behind a link by now."""
        if name not in self._stores:
            self.look()
        if name not in self._stores:
            raise KeyError(f"there is no store '{name[:80]}' here{suggestion(name, self._stores)}")
        safe_files.check_folder(self._stores[name])
        return self._stores[name]

    def study(self, name: str) -> Path:
        """The study file at `name`. Raises `KeyError`, with a sentence, unless the last search has found one there."""
        if name not in self._studies:
            self.look()
        if name not in self._studies:
            raise KeyError(f"there is no study file '{name[:80]}' here{nearest(name, self._studies)}")
        return self._studies[name]

    def look(self) -> tuple[list[StoreEntry], list[str]]:
        """All stores, last changed first, and all study files by name."""
        stores, studies = {}, {}
        for path in _walk(self.root):
            relative = path.relative_to(self.root).as_posix()
            if path.name == "journal.db":
                stores[path.parent.relative_to(self.root).as_posix()] = path.parent
            elif self._is_study(path):
                studies[relative] = path
        self._stores, self._studies = stores, studies
        self._entries = {relative: self._entry(relative, path) for relative, path in stores.items()}
        return sorted(_with_distinct_titles(self._entries.values()), key=lambda s: -s.changed), sorted(studies)

    def _is_study(self, path: Path) -> bool:
        try:
            mtime = path.lstat().st_mtime_ns
            if self._read.get(path, (0, False))[0] != mtime:
                with safe_files.open_without_links(path) as stream:
                    self._read[path] = (mtime, bool(_STUDY.search(stream.read(HEAD))))
        except OSError:
            return False
        return self._read[path][1]

    def _entry(self, name: str, path: Path) -> StoreEntry:
        stamp, mtime = stamp_of(path)
        last_entry = self._entries.get(name)
        if (
            last_entry is not None
            and last_entry.stamp == stamp
            and time.monotonic() < self._read_again_at.get(name, math.inf)
        ):
            return last_entry
        entry = store_entry(name, path, stamp, mtime, last_entry.title if last_entry else "")
        self._read_again_at[name] = time.monotonic() + RETRY if entry.problem else math.inf
        return entry


def _with_distinct_titles(entries: Collection[StoreEntry]) -> Iterator[StoreEntry]:
    """The entries; equal titles are extended by the name of the folder."""
    titles = Counter(entry.title for entry in entries)
    names = Counter((entry.title, _name(entry.place)) for entry in entries)
    for entry in entries:
        addition = _name(entry.place) if names[entry.title, _name(entry.place)] == 1 else entry.place
        is_ambiguous = titles[entry.title] > 1 and entry.title != entry.place
        yield replace(entry, title=f"{entry.title}: {addition}") if is_ambiguous else entry


def _name(relative: str) -> str:
    """The title of a store: its folder's name without the usual ending."""
    return Path(relative).name.removesuffix(".study") or relative


def stamp_of(path: Path) -> tuple[str, float]:
    """A stamp that changes with the journal of a store or its holder, and the time of the last change."""
    stats = []
    for name in ("journal.db", "journal.db-wal", "lock"):
        try:
            status = os.lstat(path / name)
        except OSError:
            continue
        if status.st_size or name != "journal.db-wal":  # reading creates an empty one
            stats.append(status)
    running = at_work(path)
    stamp = "-".join([*(f"{s.st_mtime_ns:x}.{s.st_size:x}" for s in stats), str(int(running))])
    return stamp, max((s.st_mtime for s in stats), default=0.0)


def store_entry(name: str, path: Path, stamp: str, mtime: float, title: str = "") -> StoreEntry:
    """The entry of the store at `path`; an unreadable one contains the reason."""
    try:
        safe_files.check_folder(path)
        with explained(path), contextlib.closing(connect_to_read(path, LONGEST)) as db:
            kinds = "kind" in {row[1] for row in db.execute("PRAGMA table_info(evaluation)")}
            condition = " WHERE kind = 'scenario'" if kinds else ""
            counts = [
                # They are numbered from 0; a COUNT(*) without a filter is one step of SQLite, which no limit ends.
                db.execute("SELECT IFNULL(MAX(id) + 1, 0) FROM design").fetchone()[0],
                db.execute(f"SELECT COUNT(key) FROM evaluation{condition}").fetchone()[0],
            ]
            session = db.execute("SELECT reason FROM session ORDER BY id DESC LIMIT 1").fetchone()
            executors = [{"executor": executor} for (executor,) in db.execute("SELECT DISTINCT executor FROM session")]
    except safe_files.ForeignFile as error:
        return StoreEntry(name, title or name, "unreadable", 0, 0, mtime, stamp, f"{error.filename}: {error.strerror}")
    except (StoreError, OSError) as error:
        return StoreEntry(name, title or name, "unreadable", 0, 0, mtime, stamp, str(error))
    state = "running" if at_work(path) else str((session or ("",))[0] or "stopped")
    return StoreEntry(
        name, title or _title(path), state, int(counts[0]), int(counts[1]), mtime, stamp,
        made_elsewhere=made_elsewhere(executors),
    )  # fmt: skip


def _title(path: Path) -> str:
    try:
        file = path / "problem.json"
        study = json.loads(safe_files.read_bytes(file))["study"] if file.lstat().st_size <= LARGEST else {}
        return str(study.get("title") or study.get("name") or path.name)
    except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return path.name


def _walk(root: Path) -> Iterator[Path]:
    """Journals and YAML files below `root`; links are not followed, and stores are not searched."""
    waiting, left = [(root, 0)], FOLDERS
    while waiting and left:
        folder, depth = waiting.pop()
        left -= 1
        try:
            with os.scandir(folder) as entries:
                sorted_entries = sorted(entries, key=lambda e: e.name)
        except OSError:
            continue
        if any(e.name == "journal.db" for e in sorted_entries):
            yield folder / "journal.db"
            continue
        for entry in sorted_entries:
            if entry.name.startswith(".") or entry.name in _OTHERS or entry.is_symlink():
                continue
            if entry.is_dir(follow_symlinks=False):
                if depth < DEPTH:
                    waiting.append((Path(entry.path), depth + 1))
            elif entry.name.endswith((".yaml", ".yml")) and entry.is_file(follow_symlinks=False):
                yield Path(entry.path)
