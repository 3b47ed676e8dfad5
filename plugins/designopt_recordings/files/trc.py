"""TRC files: positions of markers, one frame a line."""

from __future__ import annotations

import re

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import InputFile
from designopt_recordings import axes
from designopt_recordings.errors import errors_about
from designopt_recordings.files.names import without_prefixes
from designopt_recordings.files.rows import incomplete, read_rows
from designopt_recordings.files.storage import labels
from designopt_recordings.files.text import Lines, cells, shortened
from designopt_recordings.recording import Recording


def read_trc(file: InputFile, *, unit: str | None = None, up: str = "y") -> Recording:
    """The recording of a TRC file.

    `unit` replaces the unit of length that the file states, `up` names its vertical axis ("y", as in OpenSim, or
    "x", "z"). The data decide where counts of the header differ from them, the time column decides the rate; both are
    noted. Empty cells, NaN and exact zeros in all three coordinates are missing markers. Raises `RecordingError` with
    the line.
    """
    lines = Lines.from_file(file)
    if not lines[1].lstrip().lower().startswith("pathfiletype"):
        raise lines.error(1, "a TRC file begins with 'PathFileType'")
    if len(lines) < 6:
        raise lines.error(len(lines), "the file ends before the first frame")
    header = _header(lines)
    names = _markers(lines)
    columns = ("Frame#", "Time", *(f"{name} {axis}" for name in names for axis in "XYZ"))
    values, at = read_rows(lines, 6, columns, 1)
    time, cells_read = values[:, 1], values[:, 2:]
    notes = _counts(header, len(values), len(names))
    names = tuple(without_prefixes(names, notes))
    with errors_about(file.name, "line 3"):
        scale = axes.length(unit or header["units"])
    rate, rate_notes = _rate(lines, header, time, at)
    markers, marker_notes = _positions(names, cells_read)
    markers = axes.turn_axes(markers * scale, up)
    if unit is None:
        with errors_about(file.name, "line 3"):
            axes.check_size(markers, header["units"])
    with errors_about(file.name):
        return Recording(rate, time, names, markers, notes=(*notes, *rate_notes, *marker_notes))


def _header(lines: Lines) -> dict[str, str]:
    """Keys of line 2 with the values of line 3; their cells are matched without the empty ones between them."""
    keys = [key.lower() for key in cells(lines[2]) if key]
    values_by_key = dict(zip(keys, [value for value in cells(lines[3]) if value], strict=False))
    for key, name in (("datarate", "DataRate"), ("units", "Units")):
        if key not in keys:
            raise lines.error(2, f"the header has no '{name}'")
        if key not in values_by_key:
            raise lines.error(3, f"the header has no value for '{name}'")
    return values_by_key


def _markers(lines: Lines) -> tuple[str, ...]:
    head = cells(lines[4])
    if len(head) < 3 or not head[0].lower().startswith("frame") or head[1].lower() != "time":
        raise lines.error(4, "the labels must begin with 'Frame#' and 'Time'")
    names = labels(lines, 4, [name for name in head[2:] if name], number_like=True)
    axes_row = [cell for cell in cells(lines[5]) if cell]
    if not axes_row or not all(re.fullmatch(r"[XYZxyz]\d*", cell) for cell in axes_row):
        raise lines.error(5, "this line must name the axes: X1 Y1 Z1 X2 ...")
    if len(axes_row) != 3 * len(names):
        raise lines.error(5, f"{len(axes_row)} axes for {len(names)} markers in line 4; each marker has three")
    return names


def _counts(header: dict[str, str], frames: int, markers: int) -> list[str]:
    notes = []
    for key, kind, count in (("numframes", "frames", frames), ("nummarkers", "markers", markers)):
        stated_count = header.get(key)
        if stated_count is not None and stated_count != str(count):
            fewer = key == "numframes" and stated_count.isdecimal() and int(stated_count[:18]) > count
            hint = "; the file may be truncated" if fewer else ""
            notes.append(f"the header says {shortened(stated_count)} {kind}, the file has {count}{hint}")
    return notes


def _rate(lines: Lines, header: dict[str, str], time: Floats, at: list[int]) -> tuple[float, list[str]]:
    """The rate (Hz) that all times keep, the header's where it fits; the times may be rounded."""
    try:
        stated_rate = float(header["datarate"])
    except ValueError:
        stated_rate = np.nan
    if not 0.0 < stated_rate < 1e6:
        raise lines.error(3, f"DataRate is '{shortened(header['datarate'])}'; it must be a rate in Hz")
    if len(time) == 1:
        return stated_rate, []
    notes = []
    frames = np.arange(len(time))
    rate = stated_rate
    if np.max(np.abs((time - time[0]) * stated_rate - frames)) > 0.25:
        rate = (len(time) - 1) / (time[-1] - time[0])
        off = np.abs((time - time[0]) * rate - frames)
        if np.max(off) > 0.25:
            steps = np.diff(time)
            jump = int(np.argmax(np.abs(steps - np.median(steps))))
            raise lines.error(
                at[jump + 1],
                f"the time advances by {steps[jump]:.4g} s here and by {np.median(steps):.4g} s elsewhere; frames are"
                " missing",
            )
        notes.append(f"the header says {stated_rate:g} Hz, the times are those of {rate:.6g} Hz: the times are used")
    return float(rate), notes


def _positions(names: tuple[str, ...], values: Floats) -> tuple[Floats, list[str]]:
    markers = values.reshape(len(values), len(names), 3)
    zero = (markers == 0.0).all(axis=2)
    missing = np.isnan(markers).any(axis=2) | zero
    notes = []
    if zero.any():
        notes.append(f"{int(zero.sum())} positions are exactly zero in all coordinates; they are treated as missing")
    if missing.any():
        columns = np.where(missing, np.nan, 0.0)
        notes += [note.replace("cells without a number", "missing markers") for note in incomplete(names, columns)]
    return np.where(missing[:, :, None], np.nan, markers), notes
