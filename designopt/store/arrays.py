"""The arrays of evaluations: one file each, under the evaluation's key."""

from __future__ import annotations

import io
import os
import re
import zipfile
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.store import own
from designopt.store.durable import make_folder_durably, write_durably
from designopt.store.errors import StoreError, resume_command
from designopt.store.explain import explain

#: Files that are flushed at the same time (measured: 8 give ten times the files a second, 16 no more).
FLUSHES = 8

_REFERENCE = re.compile(r"arrays/([0-9a-f]{2})/(\1[0-9a-f]{30})\.npz")
_FOLDER = re.compile(r"[0-9a-f]{2}")
_FILE = re.compile(r"([0-9a-f]{32})\.npz|\.[0-9a-f]{32}\.npz\.new")


def array_reference(key: bytes) -> str:
    """Where the arrays of the evaluation `key` lie in a store."""
    name = key.hex()
    return f"arrays/{name[:2]}/{name}.npz"


def write_arrays(path: Path, given: Mapping[bytes, Mapping[str, NDArray[Any]]]) -> dict[bytes, str]:
    """Keep arrays under their keys in the store `path`; the references for the journal. Durable before it returns.

    A disk flushes several files at once in little more time than one.
    """

    def write(item: tuple[bytes, Mapping[str, NDArray[Any]]]) -> str:
        key, arrays = item
        reference = array_reference(key)
        try:
            packed = io.BytesIO()
            np.savez(packed, **arrays)  # type: ignore[arg-type]
            make_folder_durably((path / reference).parent)
            write_durably(path / reference, packed.getvalue())
        except OSError as error:
            raise explain(error, path) from error
        return reference

    if len(given) < 2:
        return {key: write((key, arrays)) for key, arrays in given.items()}
    with ThreadPoolExecutor(FLUSHES) as pool:
        return dict(zip(given, pool.map(write, given.items()), strict=True))


def read_arrays(path: Path, reference: str) -> dict[str, NDArray[Any]]:
    """Arrays of a store by their reference. `StoreError` when they are missing or damaged."""
    if not _REFERENCE.fullmatch(reference):
        raise StoreError(f"{path}: the journal refers to arrays outside of the store: {reference}", path)
    try:
        with own.open_to_read(path / reference) as stream, np.load(stream, allow_pickle=False) as packed:
            return {name: packed[name] for name in packed.files}
    except (OSError, EOFError, KeyError, ValueError, AttributeError, zipfile.BadZipFile, zlib.error) as error:
        why = "is missing" if isinstance(error, FileNotFoundError) else f"is damaged ({type(error).__name__}: {error})"
        if isinstance(error, own.NotOwn):
            why = str(error.strerror)
        text = f"{path}: {reference} {why}; compute it again with: {resume_command(path)}"
        raise StoreError(text, path) from error


def array_files(path: Path) -> set[str]:
    """References of the arrays that are there as regular files."""
    return {reference for reference, entry in _named(path) if entry.is_file(follow_symlinks=False)}


def remove_arrays(path: Path, key: bytes) -> None:
    """Remove the arrays of the evaluation `key`, whose row refers to them no more."""
    (path / array_reference(key)).unlink(missing_ok=True)


def remove_orphans(path: Path, known: set[str]) -> None:
    """Remove array files to which no row refers (`known` are the references of all), and those begun but not finished:
    their process ended between the two. Of anything that does not bear the name of a key nothing is touched."""
    for reference, entry in _named(path):
        if reference not in known and not entry.is_dir(follow_symlinks=False):
            os.unlink(entry.path)


def _named(path: Path) -> list[tuple[str, os.DirEntry[str]]]:
    """What bears the name of a key in the folders of arrays, with its reference ("" for one begun)."""
    found = []
    for folder in _entries(path / "arrays"):
        if _FOLDER.fullmatch(folder.name) and folder.is_dir(follow_symlinks=False):
            for entry in _entries(Path(folder.path)):
                name = _FILE.fullmatch(entry.name)
                if name and (name[1] or entry.name[1:]).startswith(folder.name):
                    found.append((f"arrays/{folder.name}/{entry.name}" if name[1] else "", entry))
    return found


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:
        return []
