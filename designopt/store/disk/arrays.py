"""Arrays of evaluations: one file each, named after the evaluation's key."""

from __future__ import annotations

import collections
import contextlib
import gc
import io
import math
import os
import re
import threading
import weakref
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from designopt.store import safe_files
from designopt.store.disk.durable import make_folder_durably, write_durably
from designopt.store.errors import StoreError, explain, resume_command

#: Number of files flushed at the same time (measured: 8 give ten times the files per second, 16 no more).
FLUSHES = 8

#: Maximum size of all arrays of one evaluation in bytes (the limit of `designopt.workers.evaluation.arrays`).
LARGEST = 1024 * 2**20
#: Maximum size of all arrays of compressed files that a process holds (bytes); a file is compressed if its arrays have
#: more than `EXPANDS` times its size.
EXPANDED, EXPANDS = LARGEST, 2
#: Size of a read (bytes).
PIECE = 2**20
#: Kinds of NumPy types that are read: numbers and text, never objects.
KINDS = "biufcUS"

#: Level of zlib; minimum bytes of an array and of its samples, and the ratio below which it is compressed. Measured
#: with 20 000 x 80 values: flags become 250 times smaller; doubles of smooth motions keep 96 % of their size and cost
#: 0.3 s, so they are not compressed (``dtype="float32"`` halves them).
LEVEL, SAMPLE, PAYS, SMALL = 1, 16_384, 0.8, 4096

_REFERENCE = re.compile(r"arrays/([0-9a-f]{2})/(\1[0-9a-f]{30})\.npz")
_READ_HEAD = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_FOLDER = re.compile(r"[0-9a-f]{2}")
_FILE = re.compile(r"([0-9a-f]{32})\.npz|\.[0-9a-f]{32}\.npz\.new")


def array_reference(key: bytes) -> str:
    """Relative path of the arrays of the evaluation `key` in a store."""
    name = key.hex()
    return f"arrays/{name[:2]}/{name}.npz"


def write_arrays(path: Path, arrays_by_key: Mapping[bytes, Mapping[str, NDArray[Any]]]) -> dict[bytes, str]:
    """Write arrays under their keys in the store `path`; returns the references for the journal. Durable on return.
    Raises `StoreError`.

    A disk flushes several files at once in little more time than one.
    """

    def write(item: tuple[bytes, Mapping[str, NDArray[Any]]]) -> str:
        key, arrays = item
        reference = array_reference(key)
        try:
            make_folder_durably((path / reference).parent)
            write_durably(path / reference, _pack(arrays))
        except OSError as error:
            raise explain(error, path) from error
        return reference

    if len(arrays_by_key) < 2:
        return {key: write((key, arrays)) for key, arrays in arrays_by_key.items()}
    with ThreadPoolExecutor(FLUSHES) as pool:
        return dict(zip(arrays_by_key, pool.map(write, arrays_by_key.items()), strict=True))


def _pack(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """A file in the format of `numpy.savez`; compressible arrays are compressed."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, np.asanyarray(array), allow_pickle=False)
            member = zipfile.ZipInfo(f"{name}.npy")
            member.external_attr = 0o600 << 16
            small = _shrinks(content.getbuffer())
            method = zipfile.ZIP_DEFLATED if small else zipfile.ZIP_STORED
            file.writestr(member, content.getvalue(), method, LEVEL if small else None)
    return archive.getvalue()


def _shrinks(content: memoryview) -> bool:
    """Whether samples of the content shrink enough to justify the time."""
    if len(content) < SMALL:
        return False
    step = max(SAMPLE, len(content) // 4)
    pieces = b"".join(content[at : at + SAMPLE] for at in range(0, len(content), step))
    return len(zlib.compress(pieces, LEVEL)) < PAYS * len(pieces)


def read_arrays(path: Path, reference: str) -> dict[str, NDArray[Any]]:
    """Arrays of a store by their reference. Raises `StoreError` if they are missing or damaged, or if they would fill
    the memory.

    Nothing is allocated by the claims of a file: arrays of more than `LARGEST` bytes, of objects, or of another size
    than the file are damage. All arrays of compressed files that the process holds at a time have at most `EXPANDED`
    bytes: a received store of some megabytes must not take all memory.
    """
    with _as_store_errors(path, reference), safe_files.open_to_read(path / reference) as stream:
        expands = _size(stream) > EXPANDS * os.fstat(stream.fileno()).st_size
        return {
            name: _array(content, shape, order, dtype, is_counted=expands)
            for name, content, shape, order, dtype in _members(stream)
        }


def _names(path: Path, reference: str) -> set[str]:
    """Names of the arrays of a reference, all of which are read in pieces, none of them held. Raises `StoreError`."""
    names = set()
    with _as_store_errors(path, reference), safe_files.open_to_read(path / reference) as stream:
        for name, content, *_ in _members(stream):
            while content.read(PIECE):
                pass
            names.add(name)
    return names


@contextlib.contextmanager
def _as_store_errors(path: Path, reference: str) -> Iterator[None]:
    """Context that reads the content of `reference`; every error becomes a `StoreError`."""
    if not _REFERENCE.fullmatch(reference):
        raise StoreError(f"{path}: the journal refers to arrays outside of the store: {reference}", path)
    try:
        yield
    except _NoRoom as error:
        raise StoreError(f"{path}: {reference} {error}", path) from error
    except Exception as error:  # the content of a file is data only
        why = "is missing" if isinstance(error, FileNotFoundError) else f"is damaged ({type(error).__name__}: {error})"
        if isinstance(error, safe_files.ForeignFile):
            why = str(error.strerror)
        text = f"{path}: {reference} {why}; compute it again with: {resume_command(path)}"
        raise StoreError(text, path) from error


def _size(stream: IO[bytes]) -> int:
    """The size of all arrays as the file states it (bytes). Raises `ValueError` for more than `LARGEST`."""
    with zipfile.ZipFile(stream) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > LARGEST:
        raise ValueError(f"it claims more than {LARGEST} bytes")
    return size


def _members(stream: IO[bytes]) -> Iterator[tuple[str, IO[bytes], tuple[int, ...], Literal["C", "F"], np.dtype[Any]]]:
    """The arrays of a file in NumPy's format: name, values as a stream of bytes, shape, order and type."""
    _size(stream)
    with zipfile.ZipFile(stream) as archive:
        for member in archive.infolist():
            with archive.open(member) as content:
                version = np.lib.format.read_magic(content)
                shape, by_columns, dtype = _READ_HEAD[version](content)
                if dtype.kind not in KINDS:
                    raise ValueError(f"values of type {dtype}")
                size = math.prod(shape) * dtype.itemsize
                if min(shape, default=0) < 0 or size != member.file_size - content.tell():
                    raise ValueError(f"shape {shape} does not fit its {member.file_size} bytes")
                order: Literal["C", "F"] = "F" if by_columns else "C"
                yield member.filename.removesuffix(".npy"), content, shape, order, dtype


def _array(
    content: IO[bytes], shape: tuple[int, ...], order: Literal["C", "F"], dtype: np.dtype[Any], *, is_counted: bool
) -> NDArray[Any]:
    """The values of `content`, read to its end; `is_counted` ones count to `EXPANDED`. Raises `_NoRoom`."""
    memory = np.empty(math.prod(shape) * dtype.itemsize, np.uint8)  # takes no memory before it is filled
    if is_counted:
        _memory.add(memory)
    at = 0
    while piece := content.read(PIECE):
        memory[at : at + len(piece)] = np.frombuffer(piece, np.uint8)
        at += len(piece)
    if at != memory.size:
        raise ValueError(f"it ends after {at} of {memory.size} bytes")
    return np.ndarray(shape, dtype, memory, order=order)


class _NoRoom(Exception):
    """Arrays of compressed files would have more than `EXPANDED` bytes."""


class _ExpandedArrays:
    """The arrays of compressed files that this process holds."""

    def __init__(self) -> None:
        self._size = 0
        self._released_sizes: collections.deque[int] = (
            collections.deque()
        )  # the garbage collector must not wait for a lock
        self._lock = threading.Lock()

    def add(self, memory: NDArray[np.uint8]) -> None:
        """Count an array until it is deleted. Raises `_NoRoom`."""
        with self._lock:
            self._forget_released()
            if self._size + memory.size > EXPANDED:
                gc.collect()  # arrays in reference cycles
                self._forget_released()
            if self._size + memory.size > EXPANDED:
                new, total, limit = (f"{size / 2**20:.0f} MiB" for size in (memory.size, self._size, EXPANDED))
                raise _NoRoom(
                    f"has a compressed array of {new}, and others in memory have {total}; a process holds at most"
                    f" {limit} of them: use the arrays of fewer designs at a time"
                )
            self._size += memory.size
        weakref.finalize(memory, self._released_sizes.append, memory.size)

    def _forget_released(self) -> None:
        while self._released_sizes:
            self._size -= self._released_sizes.popleft()


_memory = _ExpandedArrays()


def intact_keys(path: Path, names_by_key: Mapping[bytes, Sequence[str]]) -> set[bytes]:
    """The keys of `names_by_key` whose arrays are readable and contain the given names."""

    def sound(item: tuple[bytes, Sequence[str]]) -> bool:
        try:
            return set(item[1]) <= _names(path, array_reference(item[0]))
        except StoreError:
            return False

    with ThreadPoolExecutor(FLUSHES) as pool:
        return {
            key for key, is_sound in zip(names_by_key, pool.map(sound, names_by_key.items()), strict=True) if is_sound
        }


def remove_arrays(path: Path, key: bytes) -> None:
    """Remove the arrays of the evaluation `key`, whose row no longer refers to them."""
    (path / array_reference(key)).unlink(missing_ok=True)


def remove_orphans(path: Path, references: Set[str]) -> None:
    """Remove array files without a row (`references` are those of all rows) and incomplete ones: their process ended in
    between. Files without the name of a key are not touched."""
    for reference, entry in _array_files(path):
        if reference not in references and not entry.is_dir(follow_symlinks=False):
            os.unlink(entry.path)


def _array_files(path: Path) -> list[tuple[str, os.DirEntry[str]]]:
    """Files with the name of a key in the folders of arrays, with their references ("" for an incomplete one)."""
    entries = []
    for folder in _entries(path / "arrays"):
        if _FOLDER.fullmatch(folder.name) and folder.is_dir(follow_symlinks=False):
            for entry in _entries(Path(folder.path)):
                name = _FILE.fullmatch(entry.name)
                if name and (name[1] or entry.name[1:]).startswith(folder.name):
                    entries.append((f"arrays/{folder.name}/{entry.name}" if name[1] else "", entry))
    return entries


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:
        return []
