"""Writers of STO, MOT, CSV and TRC: what they write is read back to the last bit, by this package and by OpenSim."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping

import numpy as np

from designopt_recordings.axes import LENGTHS
from designopt_recordings.errors import RecordingError
from designopt_recordings.recording import Recording
from designopt_recordings.table import TimeTable


def storage_text(table: TimeTable) -> str:
    """`table` as an STO file, version 3: ``DataType=double``, labels may be paths."""
    return _table_text(table, ["DataType=double", "version=3"])


def motion_text(table: TimeTable) -> str:
    """`table` as a MOT file, version 1."""
    return _table_text(table, ["version=1"])


def csv_text(table: TimeTable, units: Mapping[str, str] | None = None) -> str:
    """`table` as a CSV file: a first line of names, "time" before the columns; missing values are empty.

    With `units` of columns the names have theirs in brackets, ``hip_flexion [rad]``. Without, a comment before them
    states whether rotations are in degrees, as `read_table` expects.
    """
    file = io.StringIO()
    if table.in_degrees:
        file.write("# inDegrees=yes\n")
    writer = csv.writer(file, lineterminator="\n")
    columns_of_table = dict(units or {})
    time = "time" if units is None else "time [s]"
    writer.writerow(
        [time, *(f"{_name(n)} [{columns_of_table[n]}]" if columns_of_table.get(n) else _name(n) for n in table.names)]
    )
    rows = np.column_stack([table.time, table.values]).tolist()
    writer.writerows([["" if math.isnan(value) else repr(value) for value in row] for row in rows])
    return file.getvalue()


def trc_text(recording: Recording, *, unit: str = "m") -> str:
    """Markers of `recording` as a TRC file, Y up; missing ones are NaN, which OpenSim requires at the end of a line.

    Positions in metres are read back exactly, in another `unit` to round-off. Raises `RecordingError` for a marker
    exactly at the origin, which readers of TRC files treat as missing.
    """
    origin = np.argwhere((recording.markers == 0.0).all(axis=2))
    if origin.size:
        frame, marker = origin[0]
        raise RecordingError(
            f"marker '{recording.marker_names[marker]}' is exactly at the origin in frame {frame + 1}, which means"
            " missing in a TRC file; shift the recording"
        )
    if unit not in LENGTHS:
        raise RecordingError(f"the unit of length is '{unit}'; it must be one of {', '.join(LENGTHS)}")
    frames, count = recording.markers.shape[:2]
    rate = _cell(recording.rate)
    keys = ["DataRate", "CameraRate", "NumFrames", "NumMarkers", "Units", "OrigDataRate", "OrigDataStartFrame"]
    values = [rate, rate, str(frames), str(count), unit, rate, "1"]
    names = [_name(name) for name in recording.marker_names]
    lines = [
        "PathFileType\t4\t(X/Y/Z)\tmarkers.trc",
        "\t".join([*keys, "OrigNumFrames"]),
        "\t".join([*values, str(frames)]),
        "\t".join(["Frame#", "Time", *(cell for name in names for cell in (name, "", ""))]),
        "\t".join(["", "", *(f"{axis}{i}" for i in range(1, count + 1) for axis in "XYZ")]),
        "",
    ]
    positions = recording.markers.reshape(frames, 3 * count)
    positions = positions if LENGTHS[unit] == 1.0 else positions / LENGTHS[unit]
    for i, (time, row) in enumerate(zip(recording.time, positions, strict=True), 1):
        lines.append("\t".join([str(i), _cell(time), *map(_cell, row.tolist())]))
    return "\n".join(lines) + "\n"


def _table_text(table: TimeTable, keys: list[str]) -> str:
    title = [" ".join(table.title.split())] if table.title.strip() else []
    head = [
        *title,
        f"inDegrees={'yes' if table.in_degrees else 'no'}",
        f"nColumns={len(table.names) + 1}",
        f"nRows={len(table.time)}",
        *keys,
        "endheader",
        "\t".join(["time", *(_name(name) for name in table.names)]),
    ]
    rows = np.column_stack([table.time, table.values])
    return "\n".join([*head, *("\t".join(map(_cell, row)) for row in rows.tolist())]) + "\n"


def _cell(value: float) -> str:
    """The shortest text that is read back as the same double."""
    return "NaN" if math.isnan(value) else repr(float(value))


def _name(name: str) -> str:
    if name != name.strip() or any(c in name for c in "\t\r\n"):
        raise RecordingError(f"the name {name!r} cannot be a label: it has tabs, line ends or spaces around it")
    return name
