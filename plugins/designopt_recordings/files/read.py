"""Readers by the ending of a file's name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath

from designopt.plugin import InputFile
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.c3d import read_c3d
from designopt_recordings.files.delimited import read_csv
from designopt_recordings.files.storage import read_storage
from designopt_recordings.files.trc import read_trc
from designopt_recordings.recording import Recording
from designopt_recordings.table import TimeTable

_TABLES: dict[str, Callable[[InputFile], TimeTable]] = {".sto": read_storage, ".mot": read_storage, ".csv": read_csv}


def read_recording(file: InputFile, *, unit: str | None = None, up: str | None = None) -> Recording:
    """The recording of a C3D or TRC file; `unit` and `up` replace those of the file (see `read_c3d`, `read_trc`).

    Raises `RecordingError` for other formats and unusable files.
    """
    ending = PurePath(file.name).suffix.lower()
    if ending == ".c3d":
        return read_c3d(file, unit=unit, up=up)
    if ending == ".trc":
        return read_trc(file, unit=unit, up=up or "y")
    raise RecordingError(
        "recordings are read from .c3d and .trc files, tables from .sto, .mot and .csv", file=file.name
    )


def read_table(file: InputFile) -> TimeTable:
    """The table of a STO, MOT or CSV file. Raises `RecordingError` for other formats and unusable files."""
    ending = PurePath(file.name).suffix.lower()
    if ending not in _TABLES:
        raise RecordingError(
            "tables are read from .sto, .mot and .csv files, markers from .c3d and .trc", file=file.name
        )
    return _TABLES[ending](file)
