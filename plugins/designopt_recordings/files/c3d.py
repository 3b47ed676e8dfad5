"""C3D files, by the ezc3d library: markers, analog channels, force plates, events and stored results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import InputFile
from designopt_recordings import axes
from designopt_recordings.channels import Channels
from designopt_recordings.errors import RecordingError, errors_about
from designopt_recordings.files.c3d_layout import check_layout
from designopt_recordings.files.c3d_parameters import Group, events
from designopt_recordings.files.c3d_plates import plates_of
from designopt_recordings.files.c3d_points import markers_of, results_of
from designopt_recordings.files.names import number_duplicates
from designopt_recordings.files.text import shortened
from designopt_recordings.recording import Recording


def read_c3d(file: InputFile, *, unit: str | None = None, up: str | None = None) -> Recording:
    """The recording of a C3D file.

    `unit` replaces the unit of length that the file states, `up` its vertical axis ("x", "y", "z", with - where it
    points down); without `up` it is POINT:Y_SCREEN, and Z where the file has none. Time counts from the first frame of
    the whole capture, as events do. Raises `RecordingError` with the section for a file that is damaged; needs ezc3d.
    """
    file = InputFile(file.name, file.content)  # read once: the library gets the checked contents
    check_layout(file)
    content = _open(file)
    parameters, header = dict(content["parameters"].items()), content["header"]["points"]
    points = np.asarray(content["data"]["points"], dtype=float)
    residuals = np.asarray(content["data"]["meta_points"]["residuals"], dtype=float)[0]
    group, notes = Group(parameters, "POINT"), list[str]()
    rate = float(header["frame_rate"])
    if not (points.shape[2] and np.isfinite(rate) and rate > 0.0):
        message = f"there are {points.shape[2]} frames at {rate:g} Hz"
        raise RecordingError(message, file=file.name, position="parameters of POINT")
    time = (header["first_frame"] + np.arange(points.shape[2])) / rate
    length_unit = unit or group.text("UNITS")
    up = up or group.text("Y_SCREEN")
    if not length_unit:
        notes.append("the file does not state the unit of length (POINT:UNITS); mm is assumed")
    if not up:
        notes.append("the file does not say which axis is vertical (POINT:Y_SCREEN); Z is assumed")
    length_unit, up = length_unit or "mm", up or "z"
    names, markers = markers_of(group, points, residuals, notes)
    with errors_about(file.name, "parameters of POINT"):
        scale = axes.length(length_unit)
        markers = axes.turn_axes(markers * scale, up)
        if unit is None:
            axes.check_size(markers, length_unit)
    integers = Group(parameters, "POINT").number("SCALE", -1.0) > 0.0
    analog = channels_of(parameters, content["data"]["analogs"], rate, float(time[0]), integers, notes)
    plates = () if analog is None else plates_of(parameters, analog, scale, up, notes)
    results = results_of(group, points, notes)
    numbers = Group(parameters, "PROCESSING").numbers()
    event_list = events(parameters)
    with errors_about(file.name, "header"):
        return Recording(rate, time, names, markers, analog, plates, event_list, results, numbers, tuple(notes))


def _open(file: InputFile) -> Any:
    """The file as ezc3d reads it, which takes paths only."""
    try:
        import ezc3d
    except ImportError:
        message = "C3D files need the ezc3d package; install it with: pip install 'designopt[mocap]'"
        raise RecordingError(message, file=file.name) from None
    with file.path() as path:
        try:
            return ezc3d.c3d(str(path))
        except Exception as problem:  # the library raises what its C++ raises: OSError, RuntimeError, ValueError ...
            reason = shortened(str(problem) or type(problem).__name__, 160)
            raise RecordingError(
                f"ezc3d cannot read it: {reason}", file=file.name, position="parameter section"
            ) from None


def channels_of(
    parameters: Mapping[str, Any], analogs: Floats, rate: float, start: float, integers: bool, notes: list[str]
) -> Channels | None:
    """The channels from ezc3d's `analogs` (1, c, k), from `start` s on; empty without channels.

    `rate` is that of the frames, Hz; `integers`: the file stores integers.
    """
    values = np.asarray(analogs, dtype=float)[0].T
    if not values.size:
        return None
    group, count = Group(parameters, "ANALOG"), values.shape[1]
    labels = [*group.texts("LABELS"), *[""] * count][:count]
    names = number_duplicates([name or f"channel {i}" for i, name in enumerate(labels, 1)], "channel", notes)
    units = tuple([*group.texts("UNITS"), *[""] * count][:count])
    analog_rate = group.number("RATE", rate)
    scaled = _correct_scale(values, group, integers)
    missing = ~np.isfinite(scaled)
    if missing.any():
        notes.append(f"{int(missing.sum())} values of channels are not finite; they are treated as missing")
        scaled = np.where(missing, np.nan, scaled)
    return Channels(analog_rate if analog_rate > 0.0 else rate, names, units, scaled, start)


def _correct_scale(values: Floats, group: Group, integers: bool) -> Floats:
    """(stored - OFFSET) SCALE GEN_SCALE; the library subtracts |OFFSET| and treats all integers as signed.

    With FORMAT UNSIGNED integers and offsets range from 0 to 65535.
    """
    count = values.shape[1]
    offset, scale = group.joined_numbers("OFFSET")[:count], group.joined_numbers("SCALE")[:count]
    if len(offset) < count or len(scale) < count:
        return values
    factor = scale * group.number("GEN_SCALE", 1.0)
    if not (integers and group.text("FORMAT").upper() == "UNSIGNED"):
        return np.asarray(values + (np.abs(offset) - offset) * factor)
    with np.errstate(invalid="ignore", divide="ignore"):
        integers_of_file = np.where(factor != 0.0, np.round(values / factor + np.abs(offset)), 0.0)
    return np.asarray((integers_of_file % 65536.0 - offset % 65536.0) * factor)
