"""The folder of an evaluation as one array: a compressed tar archive of its files."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Maximum size of the files in an archive (bytes); the largest ones are left out.
LARGEST = 64 * 2**20
#: The list of files that were left out.
LEFT_OUT = "NOT_KEPT.txt"


def pack_folder(folder: Path) -> NDArray[Any]:
    """The regular files below `folder` as bytes (n,) of a compressed tar archive, equal for equal files.

    The smallest files come first, up to `LARGEST` in total; `LEFT_OUT` in the archive names the others with their
    sizes.
    """
    files = [(file.stat().st_size, file) for file in folder.rglob("*") if file.is_file() and not file.is_symlink()]
    stream = io.BytesIO()
    left_out, total = [], 0
    with (
        gzip.GzipFile(fileobj=stream, mode="wb", mtime=0, compresslevel=6) as archive_stream,
        tarfile.open(fileobj=archive_stream, mode="w") as archive,
    ):
        for size, file in sorted(files):
            name = str(file.relative_to(folder))
            total += size
            if total > LARGEST:
                left_out.append(f"{name}: {size} bytes\n")
            else:
                _add(archive, name, file.read_bytes())
        if left_out:
            _add(archive, LEFT_OUT, "".join(left_out).encode())
    return np.frombuffer(stream.getvalue(), np.uint8)


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    about = tarfile.TarInfo(name)
    about.size, about.mode = len(content), 0o644
    archive.addfile(about, io.BytesIO(content))
