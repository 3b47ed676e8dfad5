"""Provenance of a session: versions, machine, command and state of the sources."""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import importlib.metadata
import json
import os
import platform
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from designopt.plugin import InputFile, Plugin, installed_plugins
from designopt.plugin.code import code_number
from designopt.plugin.discovery import is_installed
from designopt.store import safe_files
from designopt.study.remarks import model_remarks
from designopt.study.study import StudyDefinition

PACKAGES = (
    "scipy",
    "casadi",
    "pymoo",
    "cma",
    "dask",
    "distributed",
    "pydantic",
    "PyYAML",
    "pint",
    "moocore",
    "SALib",
    "dask-jobqueue",
)


def provenance(study: StudyDefinition, programs: Mapping[str, str], recall_stores: Sequence[Path]) -> dict[str, Any]:
    """One line of ``provenance.jsonl`` of a run that takes over evaluations from `recall_stores`, with the paths of the
    allowed `programs`, "" for those on PATH: the paths of programs are not recorded."""
    uses = [study.model, *study.figures.values(), *(stage.solver for stage in study.stages)]
    package_versions = versions([use.plugin for use in uses])
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            package_versions[name] = _version(name)
    revision, dirty = _revision(study.model.plugin.source)
    return {
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "host": socket.gethostname(),
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "versions": package_versions,
        "plugins": {_plugin_label(use.plugin): use.plugin.version for use in uses},
        "code": plugin_code(study),
        "plugin_code": {Path(name).name: _statements(content) for name, content in study.plugin_files},
        "plugin_files": {name: InputFile(name, content).digest for name, content in study.plugin_files},
        "revision": revision,
        "dirty": dirty,
        "remarks": model_remarks(study),
        "programs": {name: _file_digest(path or shutil.which(name) or "") for name, path in programs.items()},
        "program_options": [f"{name}=PATH" if path else name for name, path in programs.items()],
        "recall": [str(path) for path in recall_stores],
    }


def plugin_code(study: StudyDefinition) -> dict[str, Any]:
    """A number for the code of each plugin of `study` that is not installed."""
    uses = [study.model, *study.figures.values(), *(stage.solver for stage in study.stages)]
    return {_plugin_label(use.plugin): code_number(use.plugin.target) for use in uses if not is_installed(use.plugin)}


def recorded_remarks(path: Path) -> list[str]:
    """The model's remarks on settings and files, from the last session of the store `path` that has any."""
    sessions, _ = _sessions(path)
    of_sessions = (session.get("remarks") for session in reversed(sessions))
    return next((list(map(str, remarks)) for remarks in of_sessions if remarks and isinstance(remarks, list)), [])


def recall_stores(path: Path) -> list[Path]:
    """The stores from which runs of the store `path` took over evaluations, as far as they exist: one that is gone from
    its folder is looked for beside `path`, with which it may have been moved."""
    sessions, _ = _sessions(path)
    lists = [session.get("recall") for session in sessions]
    texts = [text for texts in lists if isinstance(texts, list) for text in texts if isinstance(text, str)]
    stores = []
    for store in (Path(text) for text in dict.fromkeys(texts) if Path(text).name):
        neighbour = path.with_name(store.name)
        is_beside = neighbour.absolute() == store or not os.path.exists(store / "journal.db")
        stores.append(neighbour if is_beside else store)
    return [store for store in stores if os.path.exists(store / "journal.db") and store != path]


def code_differences(path: Path, facts: Mapping[str, Any]) -> tuple[list[str], list[str], list[str]]:
    """The user's plugins whose code differs from the last session of the store `path`, according to `facts`; plugin
    files that differ beside them; and the unreadable lines of its notes on sessions.

    Their version is unchanged, so the store's results count as theirs.
    """
    sessions, errors = _sessions(path)
    of_plugins, of_files = (
        [name for name, present in facts[kind].items() if _last(sessions, kind).get(name, present) != present]
        for kind in ("code", "plugin_code")
    )
    return of_plugins, [] if of_plugins else of_files, errors


def other_programs(path: Path, facts: Mapping[str, Any]) -> list[str]:
    """The programs that are other files than in the last session of the store `path`, according to `facts`."""
    former = _last(_sessions(path)[0], "programs")
    return [name for name, digest in facts["programs"].items() if former.get(name, digest) != digest]


def _file_digest(path: str) -> str:
    """A digest of the file, "" where it cannot be read."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=8)).hexdigest()
    return ""


def _last(sessions: Sequence[Mapping[str, Any]], kind: str) -> dict[str, Any]:
    """The entries of all sessions, of the last one that has a name."""
    entries: dict[str, Any] = {}
    for session in sessions:
        session_entries = session.get(kind)
        entries |= session_entries if isinstance(session_entries, dict) else {}
    return entries


def _statements(content: bytes) -> str:
    """A number that changes with the statements of a Python file, not with its comments and its layout."""
    try:
        text = ast.dump(ast.parse(content))
    except (SyntaxError, ValueError):  # it did not load either
        text = repr(content)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _sessions(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The lines of ``provenance.jsonl``, and messages on the unreadable ones: session notes never decide a result."""
    file = path / "provenance.jsonl"
    try:
        lines = safe_files.read_bytes(file).splitlines()
    except FileNotFoundError:
        return [], []
    sessions, errors = [], []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            session = json.loads(line)
        except (ValueError, RecursionError):
            session = None
        if isinstance(session, dict) and isinstance(session.get("code", {}), dict):
            sessions.append(session)
        else:
            errors.append(f"{file}:{number} is damaged: changes of code since that session may go unnoticed")
    return sessions, errors


def versions(plugins: Sequence[Plugin] = ()) -> dict[str, str]:
    """Versions that affect results: Python, designopt, NumPy and the distributions of `plugins`."""
    version_of = {"python": ".".join(platform.python_version_tuple()[:2])}
    names = {"designopt", "numpy"}
    for plugin in plugins:
        names.update(p.distribution for p in installed_plugins(plugin.kind) if p.name == plugin.name)
    for name in sorted(names - {"?"}):
        try:
            version_of[name] = _version(name)
        except importlib.metadata.PackageNotFoundError:
            version_of[name] = "none"
    return version_of


@functools.cache
def _version(distribution: str) -> str:
    """Cached, because a process keeps its loaded code; a missing package is looked up again. Reading all versions takes
    longer than the rest of a small run."""
    return importlib.metadata.version(distribution)


def _plugin_label(plugin: Plugin) -> str:
    return f"{plugin.kind} {plugin.name}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _revision(source: Path | None) -> tuple[str | None, bool | None]:
    """Revision of the working copy of the model's file, and whether it has uncommitted changes."""
    if source is None or not any((folder / ".git").exists() for folder in source.parents):
        return None, None
    try:
        command = ["git", "-C", str(source.parent), "status", "--porcelain=v2", "--branch", "--untracked-files=no"]
        lines = subprocess.run(command, capture_output=True, text=True, timeout=5.0, check=True).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return None, None
    revision = next((line.split()[-1] for line in lines if line.startswith("# branch.oid ")), "(initial)")
    if revision == "(initial)":  # no commits yet
        return None, None
    return revision, any(not line.startswith("#") for line in lines)
