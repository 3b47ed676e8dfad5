"""Arrays of evaluations: one file each, named after the evaluation's key."""

from __future__ import annotations

import io
import math
import os
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from designopt.store import safe_files
from designopt.store.disk.durable import make_folder_durably, write_durably
from designopt.store.disk.explain import explain
from designopt.store.errors import StoreError, resume_command

#: Number of files flushed at the same time (measured: 8 give ten times the files per second, 16 no more).
FLUSHES = 8

#: Maximum size of all arrays of one evaluation in bytes (the limit of `designopt.workers.evaluation.arrays`).
LARGEST = 1024 * 2**20
#: Kinds of NumPy types that are read: numbers and text, never objects.
KINDS = "biufcUS"

#: Level of zlib; minimum bytes of an array and of its samples, and the ratio below which it is compressed. Measured
#: with 20 000 x 80 values: flags become 250 times smaller; doubles of smooth motions keep 96 % of their size and cost
#: 0.3 s, so they are not compressed (``dtype="float32"`` halves them).
LEVEL, SAMPLE, PAYS, SMALL = 1, 16_384, 0.8, 4096

_REFERENCE = re.compile(r"arrays/([0-9a-f]{2})/(\1[0-9a-f]{30})\.npz")
_FOLDER = re.compile(r"[0-9a-f]{2}")
_FILE = re.compile(r"([0-9a-f]{32})\.npz|\.[0-9a-f]{32}\.npz\.new")


def array_reference(key: bytes) -> str:
    """Relative path of the arrays of the evaluation `key` in a store."""
    name = key.hex()
    return f"arrays/{name[:2]}/{name}.npz"


def write_arrays(path: Path, given: Mapping[bytes, Mapping[str, NDArray[Any]]]) -> dict[bytes, str]:
    """Write arrays under their keys in the store `path`; returns the references for the journal. Durable on return.
    Raises `StoreError`.

    A disk flushes several files at once in little more time than one.
    """

    def write(item: tuple[bytes, Mapping[str, NDArray[Any]]]) -> str:
        key, arrays = item
        reference = array_reference(key)
        try:
            make_folder_durably((path / reference).parent)
            write_durably(path / reference, _packed(arrays))
        except OSError as error:
            raise explain(error, path) from error
        return reference

    if len(given) < 2:
        return {key: write((key, arrays)) for key, arrays in given.items()}
    with ThreadPoolExecutor(FLUSHES) as pool:
        return dict(zip(given, pool.map(write, given.items()), strict=True))


def _packed(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """A file in the format of `numpy.savez`; compressible arrays are compressed."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, np.asanyarray(array), allow_pickle=False)
            member = zipfile.ZipInfo(f"{name}.npy")
            member.external_attr = 0o600 << 16
            small = _shrinks(content.getbuffer())
            method = zipfile.ZIP_DEFLATED if small else zipfile.ZIP_STORED
            file.writestr(member, content.getvalue(), method, LEVEL if small else None)
    return packed.getvalue()


def _shrinks(content: memoryview) -> bool:
    """Whether samples of the content shrink enough to justify the time."""
    if len(content) < SMALL:
        return False
    step = max(SAMPLE, len(content) // 4)
    pieces = b"".join(content[at : at + SAMPLE] for at in range(0, len(content), step))
    return len(zlib.compress(pieces, LEVEL)) < PAYS * len(pieces)


def read_arrays(path: Path, reference: str) -> dict[str, NDArray[Any]]:
    """Arrays of a store by their reference. Raises `StoreError` if they are missing or damaged.

    Nothing is allocated by the claims of a file: arrays of more than `LARGEST` bytes, of objects, or of another size
    than the file are damage.
    """
    if not _REFERENCE.fullmatch(reference):
        raise StoreError(f"{path}: the journal refers to arrays outside of the store: {reference}", path)
    try:
        with safe_files.open_to_read(path / reference) as stream:
            return _unpacked(stream)
    except Exception as error:  # the content of a file is data only
        why = "is missing" if isinstance(error, FileNotFoundError) else f"is damaged ({type(error).__name__}: {error})"
        if isinstance(error, safe_files.NotOwn):
            why = str(error.strerror)
        text = f"{path}: {reference} {why}; compute it again with: {resume_command(path)}"
        raise StoreError(text, path) from error


def _unpacked(stream: IO[bytes]) -> dict[str, NDArray[Any]]:
    room = LARGEST
    found = {}
    with zipfile.ZipFile(stream) as packed:
        for member in packed.infolist():
            room -= member.file_size
            if room < 0:
                raise ValueError(f"it claims more than {LARGEST} bytes")
            with packed.open(member) as content:
                found[member.filename.removesuffix(".npy")] = _array(content, member.file_size)
    return found


def _array(content: IO[bytes], size: int) -> NDArray[Any]:
    """An array in NumPy's format, of `size` bytes with its header."""
    version = np.lib.format.read_magic(content)
    read_head = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
    shape, by_columns, dtype = read_head(content)
    if dtype.kind not in KINDS:
        raise ValueError(f"values of type {dtype}")
    count = math.prod(shape)
    if min(shape, default=0) < 0 or count * dtype.itemsize != size - content.tell():
        raise ValueError(f"shape {shape} does not fit its {size} bytes")
    values = np.frombuffer(bytearray(content.read()), dtype, count)
    return values.reshape(shape, order="F" if by_columns else "C")


def intact(path: Path, wanted: Mapping[bytes, Sequence[str]]) -> set[bytes]:
    """The keys of `wanted` whose arrays are readable and contain the given names."""

    def sound(item: tuple[bytes, Sequence[str]]) -> bool:
        try:
            return set(item[1]) <= read_arrays(path, array_reference(item[0])).keys()
        except StoreError:
            return False

    with ThreadPoolExecutor(FLUSHES) as pool:
        return {key for key, is_sound in zip(wanted, pool.map(sound, wanted.items()), strict=True) if is_sound}


def remove_arrays(path: Path, key: bytes) -> None:
    """Remove the arrays of the evaluation `key`, whose row no longer refers to them."""
    (path / array_reference(key)).unlink(missing_ok=True)


def remove_orphans(path: Path, known: set[str]) -> None:
    """Remove array files without a row (`known` are the references of all) and incomplete ones: their process ended in
    between. Files without the name of a key are not touched."""
    for reference, entry in _named(path):
        if reference not in known and not entry.is_dir(follow_symlinks=False):
            os.unlink(entry.path)


def _named(path: Path) -> list[tuple[str, os.DirEntry[str]]]:
    """Files with the name of a key in the folders of arrays, with their references ("" for an incomplete one)."""
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
