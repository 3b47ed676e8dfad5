"""The layout of a C3D file, checked before the library reads it.

The library trusts counts and offsets of the file: it reads a truncated file without an error, missing frames become
zeros, and a damaged count makes it allocate all memory. So header, parameter records and the size of the data section
are checked here first. Format: The C3D File Format User Guide, c3d.org.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from designopt.plugin import InputFile
from designopt_recordings.errors import RecordingError

_BLOCK = 512
_ORDERS = {84: "<", 85: "<", 86: ">"}  # processor types Intel, DEC, MIPS: order of the bytes of an integer
_DEC = 85
_SIZES = {-1: 1, 1: 1, 2: 2, 4: 4}  # bytes per character, byte, integer, float
_MOST_DIMENSIONS = 7
_MOST_CHARACTERS = 127  # of a description: the library counts them in a signed byte
_MOST = 65535  # frames that the header can count
_MOST_SAMPLES = 100.0  # analog samples per frame without a channel
_RATE_TOLERANCE = 1e-3  # a rate is written rounded


@dataclass(frozen=True)
class _Header:
    points: int
    analogs: int  # values per frame, all channels and samples
    first: int
    last: int
    scale: float
    data_block: int
    samples: int  # analog samples per frame and channel
    rate: float


def check_layout(file: InputFile) -> None:
    """Raise `RecordingError` with the section where header, parameters and data do not fit into the file."""
    content = file.content
    if len(content) < 2 * _BLOCK or content[1] != 0x50:
        raise _refusal_error(file, "header", "this is not a C3D file, or only the beginning of one")
    start = (content[0] - 1) * _BLOCK
    if content[0] < 2 or start + 4 > len(content):
        raise _refusal_error(
            file, "header", f"the parameter section is declared at block {content[0]}, outside the file"
        )
    processor = content[start + 3]
    if processor not in _ORDERS:
        raise _refusal_error(file, "parameter section", f"the processor type is {processor}; it must be 84, 85 or 86")
    header = _header(content, processor)
    values = {name: (first, count) for name, first, count in _records(file, start, processor)}
    numbers = {name: first for name, (first, _) in values.items()}
    _check_header(file, header)
    _check_counts(file, header, numbers)
    _check_data(file, header, numbers)
    _check_scales(file, header, {name: count for name, (_, count) in values.items()})


def _header(content: bytes, processor: int) -> _Header:
    order = _ORDERS[processor]
    points, analogs, first, last = struct.unpack_from(order + "4H", content, 2)
    data_block, samples = struct.unpack_from(order + "2H", content, 16)
    return _Header(
        points,
        analogs,
        first,
        last,
        _read_real(content, 12, processor),
        data_block,
        samples,
        _read_real(content, 20, processor),
    )


def _read_real(content: bytes, at: int, processor: int) -> float:
    """The four-byte real of a processor; DEC exchanges its two words and stores four times the value."""
    if processor == _DEC:
        words = content[at + 2 : at + 4] + content[at : at + 2]
        return float(struct.unpack("<f", words)[0]) / 4.0
    return float(struct.unpack_from(_ORDERS[processor] + "f", content, at)[0])


def _records(file: InputFile, start: int, processor: int) -> Iterator[tuple[str, float, int]]:
    """Every numeric parameter with its first value and its count, ("ANALOG:SCALE", 1.0, 12).

    Raises `RecordingError` for a record that is broken.
    """
    content = file.content
    groups: dict[int, str] = {}
    parameters: list[tuple[int, str, float, int]] = []
    for name, group, body, after in _walk(file, start, _ORDERS[processor]):
        if group < 0:
            groups[-group] = name
            description = body
        else:
            kind, count = struct.unpack_from("bB", content, body) if body + 2 <= after else (0, 0)
            sizes = content[body + 2 : body + 2 + count]
            if kind not in _SIZES or count > _MOST_DIMENSIONS or (kind < 0 and not count):
                raise _damage_error(file, f"parameter '{name}' has an unknown type")
            description = body + 2 + count + _SIZES[kind] * math.prod(sizes)
            if kind > 0 and math.prod(sizes) > 0 and description < after:
                parameters.append((group, name, _first(content, body, kind, processor), math.prod(sizes)))
        if description >= after or description + 1 + content[description] > after:
            raise _damage_error(file, f"'{name}' is longer than its record")
        if content[description] > _MOST_CHARACTERS:
            raise _damage_error(file, f"'{name}' has a description of {content[description]} characters")
    for group, name, first, values in parameters:
        if group not in groups:
            raise _damage_error(file, f"parameter '{name}' belongs to no group")
        yield f"{groups[group]}:{name}", first, values


def _walk(file: InputFile, start: int, order: str) -> Iterator[tuple[str, int, int, int]]:
    """Records of the parameter section: name, group (negative for the group itself), where its body begins and ends."""
    content, at = file.content, start + 4
    end = min(len(content), start + content[start + 2] * _BLOCK) if content[start + 2] else len(content)
    while at + 2 <= end:
        length, group = struct.unpack_from("bb", content, at)
        if length == 0:
            return
        pointer = at + 2 + abs(length)
        if pointer + 2 > end or group == 0:
            raise _damage_error(file, "a record belongs to no group" if group == 0 else "a record leaves the section")
        name = content[at + 2 : pointer].decode("latin-1").upper()
        if not name.isascii() or not name.isprintable():
            raise _damage_error(file, f"the name of a record at byte {at - start} is not readable")
        offset = struct.unpack_from(order + "H", content, pointer)[0]
        at = pointer + offset if offset else end
        if at > end or 0 < offset < 3:
            raise _damage_error(file, f"the record after '{name}' lies outside the section")
        yield name, group, pointer + 2, at


def _first(content: bytes, at: int, kind: int, processor: int) -> float:
    """First value of the numeric parameter at `at`; integers count from zero to 65535."""
    at += 2 + content[at + 1]
    if kind == 4:
        return _read_real(content, at, processor)
    return float(content[at] if kind == 1 else struct.unpack_from(_ORDERS[processor] + "H", content, at)[0])


def _check_header(file: InputFile, header: _Header) -> None:
    if header.last < header.first:
        raise _refusal_error(file, "header", f"the last frame ({header.last}) is before the first ({header.first})")
    if not (math.isfinite(header.scale) and header.scale != 0.0):
        raise _refusal_error(file, "header", f"the scale is {header.scale:g}; it must not be zero")
    if not (math.isfinite(header.rate) and header.rate > 0.0):
        raise _refusal_error(file, "header", f"the frame rate is {header.rate:g} Hz; it must be positive")
    if header.analogs and (header.samples == 0 or header.analogs % header.samples):
        message = (
            f"{header.analogs} analog values per frame are not divisible into {header.samples} samples of every channel"
        )
        raise _refusal_error(file, "header", message)


def _check_counts(file: InputFile, header: _Header, numbers: Mapping[str, float]) -> None:
    """The library uses the parameters, but the header defined the layout of the data: both must agree."""
    channels = header.analogs // header.samples if header.samples else 0
    for name, stated_count in (("POINT:USED", header.points), ("ANALOG:USED", channels)):
        if numbers.get(name, stated_count) != stated_count:
            raise _refusal_error(file, f"parameter {name}", f"it is {numbers[name]:g}, the header says {stated_count}")
    scale = numbers.get("POINT:SCALE", header.scale)
    if not (math.isfinite(scale) and scale != 0.0 and (scale < 0.0) == (header.scale < 0.0)):
        raise _refusal_error(file, "parameter POINT:SCALE", f"it is {scale:g}, the header says {header.scale:g}")
    rate = numbers.get("POINT:RATE", header.rate)
    if not (math.isfinite(rate) and rate > 0.0 and abs(rate / header.rate - 1.0) < _RATE_TOLERANCE):
        raise _refusal_error(file, "parameter POINT:RATE", f"it is {rate:g} Hz, the header says {header.rate:g} Hz")
    analog = numbers.get("ANALOG:RATE", 0.0)
    if channels and abs(analog / rate - header.samples) > 1e-3 * header.samples:
        message = f"it is {analog:g} Hz, the header says {header.samples} samples per frame at {rate:g} Hz"
        raise _refusal_error(file, "parameter ANALOG:RATE", message)
    if not channels and not 0.0 <= analog / rate <= _MOST_SAMPLES:
        raise _refusal_error(file, "parameter ANALOG:RATE", f"it is {analog:g} Hz without any channel")


def _check_data(file: InputFile, header: _Header, numbers: Mapping[str, float]) -> None:
    start = (header.data_block - 1) * _BLOCK
    if header.data_block < 2 or start > len(file.content):
        raise _refusal_error(file, "header", f"the data are declared at block {header.data_block}, outside the file")
    if numbers.get("POINT:DATA_START", header.data_block) != header.data_block:
        message = f"it is {numbers['POINT:DATA_START']:g}, the header says {header.data_block}"
        raise _refusal_error(file, "parameter POINT:DATA_START", message)
    frame = (4 if header.scale < 0.0 else 2) * (4 * header.points + header.analogs)
    if not frame:
        raise _refusal_error(file, "header", "there are neither points nor channels in the file")
    frame_count = (len(file.content) - start) // frame
    header_frames = header.last - header.first + 1
    stated_frames = int(numbers.get("POINT:FRAMES", header_frames))
    if header.last < _MOST and stated_frames < _MOST and stated_frames != header_frames:
        raise _refusal_error(file, "parameter POINT:FRAMES", f"it is {stated_frames}, the header says {header_frames}")
    if frame_count < max(header_frames, stated_frames):
        raise _refusal_error(
            file,
            "data section",
            f"{frame_count} of {max(header_frames, stated_frames)} frames are in the file; it is truncated",
        )


def _check_scales(file: InputFile, header: _Header, counts: Mapping[str, int]) -> None:
    """The library reads a scale and an offset for each channel, even if the file lacks them."""
    channels = header.analogs // header.samples if header.analogs else 0
    for name in ("ANALOG:SCALE", "ANALOG:OFFSET"):
        count = sum(counts.get(key, 0) for key in [name, *(f"{name}{i}" for i in range(2, 10))])
        if count < channels:
            raise _refusal_error(file, f"parameter {name}", f"it has {count} values for {channels} channels")


def _damage_error(file: InputFile, message: str) -> RecordingError:
    return _refusal_error(file, "parameter section", f"{message}; the section is damaged")


def _refusal_error(file: InputFile, position: str, message: str) -> RecordingError:
    return RecordingError(message, file=file.name, position=position)
