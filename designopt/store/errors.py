"""Errors of runs and stores, also from errors of the disk and of SQLite. Each message contains a hint."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shlex
import sqlite3
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from designopt.files import root_of
from designopt.plugin import PluginError, PluginFailed, plugin_file_of
from designopt.printable import printable
from designopt.store import safe_files
from designopt.study.study import Budget, Stage


def plugin_options(path: Path, passed_names: Collection[str] = ()) -> str:
    """The options for `plugin_files`, each after a space."""
    return "".join(f" --plugin {shlex.quote(name)}" for name in plugin_files(path, passed_names))


def plugin_files(path: Path, passed_names: Collection[str] = ()) -> list[str]:
    """The files that declare the plugins of the store `path`, as they are reached from the present folder; without
    those whose names are `passed_names`."""
    try:
        data = json.loads(safe_files.read_bytes(path / "problem.json"))
        files = [name for file in data["study"]["plugin_files"] if not plugin_file_of(name := file["name"])[1]]
        names = [name for name in [*files, *data.get("declared_in", ())] if Path(name).name not in passed_names]
        return [_from_here(name, path, data.get("working_folder", "")) for name in names]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []


def _from_here(file: str, path: Path, working_folder: str) -> str:
    """A `file` of the run in the store `path`, from the present folder; as it was typed if it is no longer there.

    `working_folder` is that of the run, relative to the store.
    """
    candidate = os.path.normpath(os.path.join(path, working_folder, file))
    if Path(file).is_absolute() or not working_folder or not os.path.isfile(candidate):
        return file
    relative = os.path.relpath(candidate)
    return candidate if path.is_absolute() and relative.startswith(os.pardir) else relative


def data_options(path: Path) -> str:
    """The options for the data roots that files of the store `path` name, each after a space; a store does not know
    their folders."""
    try:
        pending, roots = [json.loads(safe_files.read_bytes(path / "problem.json"))["study"]], set()
        while pending:
            entry = pending.pop()
            if isinstance(entry, dict):
                pending += entry.values()
                if "$file" in entry and isinstance(entry.get("name"), str):
                    roots.add(root_of(entry["name"]))
            elif isinstance(entry, list):
                pending += entry
        return "".join(f" --data {root}=FOLDER" for root in sorted(roots - {""}))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""


def allow_options(path: Path) -> str:
    """The options that allow what the model of the store `path` runs, each after a space: those of its last session."""
    try:
        options = json.loads(safe_files.read_bytes(path / "problem.json")).get("runs", ())
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, IndexError):
            session = json.loads(safe_files.read_bytes(path / "provenance.jsonl").splitlines()[-1])
            options = session["program_options"] if options else options
        return "".join(f" --allow {shlex.quote(str(option))}" for option in options)
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return ""


def path_hint(path: Path) -> str:
    """What PATH in the commands of the store `path` stands for; "" for commands without it."""
    options = shlex.split(allow_options(path))
    names = [option.removesuffix("=PATH") for option in options if option.endswith("=PATH")]
    return f"in place of PATH write the file of {' and '.join(names)}" if names else ""


def resume_command(path: Path) -> str:
    """The command that continues the run in the store `path`, with plugin files, data roots and allowed programs."""
    return f"designopt resume {shlex.quote(str(path))}{plugin_options(path)}{data_options(path)}{allow_options(path)}"


def budget_option(stages: Sequence[Stage], name: str, budget: int | str) -> str:
    """The option, after a space, for another `budget` of the stage `name` of `stages`: ``--budget 40``, with the name
    where several stages have a budget."""
    with_budget = [stage for stage in stages if stage.budget != Budget()]
    return f" --budget {budget if len(with_budget) == 1 else f'{name}={budget}'}"


def ask_and_tell(path: Path) -> str:
    """The commands that continue a study whose evaluations are made elsewhere, in the store `path`."""
    store, files = shlex.quote(str(path)), plugin_options(path) + data_options(path)
    return f"designopt ask {store}{files}, then designopt tell {store} FILE{files}"


def made_elsewhere(sessions: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a session of a store has asked for evaluations to be made in a laboratory or by another program."""
    return any(session.get("executor") == "outside" for session in sessions)


def refuse_made_elsewhere(sessions: Iterable[Mapping[str, Any]], path: Path, command: str = "") -> None:
    """Raises `StoreError`, with the `command` that goes on (default: `ask_and_tell`), for a store whose evaluations are
    made elsewhere: a run would evaluate its model instead."""
    if made_elsewhere(sessions):
        text = "its evaluations are made elsewhere, and a run would take those of the model instead"
        raise StoreError(f"{path}: {text}; nothing was run. Continue with: {command or ask_and_tell(path)}", path)


class RunError(Exception):
    """A run that did not reach its end. `path` is its store, `resume` the command that continues it.

    ``designopt.open_store(error.path)`` opens the results so far.
    """

    #: Opens a store for `result`; set by `designopt.store.result`, which errors must not import.
    opener: ClassVar[Callable[[Path], Any]]

    def __init__(self, message: str, path: Path) -> None:
        super().__init__(message)
        self.path = path
        self.resume = resume_command(path)

    def __str__(self) -> str:
        return printable(super().__str__())

    def result(self) -> Any:
        """Deprecated: ``designopt.open_store(error.path)``."""
        warnings.warn("error.result() goes; use designopt.open_store(error.path)", DeprecationWarning, stacklevel=2)
        return type(self).opener(self.path)


class StoreError(RunError):
    """The store cannot be used: it is in use, holds another problem or format, or cannot be written."""


class DamagedRecord(StoreError):
    """A record of the journal has changed since it was written, or is lost."""

    def __init__(self, path: Path, record: str, way: str = "is computed again with") -> None:
        super().__init__("", path)
        self.args = (f"{path}: journal.db is damaged: the record of {record} {way}: {self.resume}",)


@contextlib.contextmanager
def reading(path: Path, file: str = "journal.db", cause: StoreError | None = None) -> Iterator[None]:
    """Context that reads data of the store `path`: an unreadable `file` raises a `StoreError` about damage, unless the
    cause is a `cause` error."""
    try:
        yield
    except (
        sqlite3.Error,
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        text = f"{path}: {file} is damaged: {type(error).__name__}: {error}; put back a copy, or run the study again"
        raise cause or StoreError(text, path) from error


@contextlib.contextmanager
def scoring(path: Path) -> Iterator[None]:
    """Context that scores records of the store `path`, which may need a missing plugin."""
    try:
        yield
    except PluginError as error:
        way_out = "install it, or declare it before opening the store"
        if isinstance(error, PluginFailed):
            way_out = "correct it, then open the store again: all evaluations are stored"
        raise StoreError(f"{path}: cannot be scored here: {error}; {way_out}", path) from error


def refuse_foreign(path: Path, *, thoroughly: bool = False) -> None:
    """`safe_files.check` of the store `path`; foreign files raise `StoreError`."""
    try:
        if path.is_file():
            raise StoreError(f"{path}: is a file; a store is a folder", path)
        safe_files.check(path, thoroughly=thoroughly)
    except safe_files.ForeignFile as error:
        raise StoreError(f"{error.filename}: {error.strerror}", path) from error
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}", path) from error


class ReplayError(StoreError):
    """The solver requested something other than the record of the journal when a run was resumed."""


class BudgetError(StoreError):
    """The budget given for `stage` names no stage of the study, or is too small for its solver. Nothing was written."""

    def __init__(self, message: str, path: Path, stage: str) -> None:
        super().__init__(message, path)
        self.stage = stage


class WorkersError(StoreError):
    """The workers cannot be used: unreachable, insecure, with other versions than this process, or without the
    model."""


class WorkersNotStarted(WorkersError):
    """The workers could not be started."""


class FailurePolicyStop(RunError):
    """The failure policy ended the run: too many evaluations fail, or one error repeats."""


class Interrupted(RunError):
    """Ctrl-C or SIGTERM. Completed results are recorded."""


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Context that converts errors of the disk and of SQLite, for the store `path`, to `StoreError`."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise explain(error, path) from error


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
