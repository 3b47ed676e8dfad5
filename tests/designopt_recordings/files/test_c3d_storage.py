"""C3D files as programs stored them: integers or reals, of Intel, DEC or MIPS processors, written here byte by byte.

Layout: The C3D File Format User Guide, c3d.org.
"""

import struct

import numpy as np
import pytest
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.c3d import read_c3d

from designopt.plugin import InputFile

INTEL, DEC, MIPS = 84, 85, 86
SCALE = 0.05  # mm per count of an integer file
FRAMES, POINTS, CHANNELS, SAMPLES = 12, 3, 2, 4

GENERATOR = np.random.default_rng(0)
COUNTS = GENERATOR.integers(-20_000, 20_000, size=(FRAMES, POINTS, 3))
VOLTS = GENERATOR.integers(-2000, 2000, size=(FRAMES * SAMPLES, CHANNELS))
MISSING = (4, 1)


def wrapped(value: int) -> int:
    """An integer of 16 bits as if it had a sign."""
    return (value + 32768) % 65536 - 32768


class Words:
    """Bytes of one processor."""

    def __init__(self, processor: int) -> None:
        self.processor = processor
        self.order = ">" if processor == MIPS else "<"

    def integers(self, *values: int) -> bytes:
        return struct.pack(f"{self.order}{len(values)}h", *values)

    def real(self, value: float) -> bytes:
        if self.processor == DEC:  # four times the value, words exchanged
            raw = struct.pack("<f", 4.0 * value)
            return raw[2:] + raw[:2] if value else b"\0\0\0\0"
        return struct.pack(f"{self.order}f", value)

    def parameter(self, group: int, name: str, kind: int, sizes: list[int], values: bytes) -> bytes:
        body = struct.pack("bB", kind, len(sizes)) + bytes(sizes) + values + b"\0"
        return struct.pack("bb", len(name), group) + name.encode() + self.integers(len(body) + 2) + body

    def number(self, group: int, name: str, value: float) -> bytes:
        if isinstance(value, int):
            return self.parameter(group, name, 2, [], self.integers(value))
        return self.parameter(group, name, 4, [], self.real(value))

    def texts(self, group: int, name: str, texts: list[str]) -> bytes:
        width = max(map(len, texts))
        return self.parameter(group, name, -1, [width, len(texts)], "".join(t.ljust(width) for t in texts).encode())

    def group(self, number: int, name: str) -> bytes:
        return struct.pack("bb", len(name), -number) + name.encode() + self.integers(3) + b"\0"


def stored(processor: int, *, integers: bool, unsigned: bool = False) -> InputFile:
    """A file with `COUNTS` and `VOLTS`; unsigned, offset and channels are 40 000 higher."""
    words = Words(processor)
    scale, shift = SCALE if integers else -SCALE, 40_000 if unsigned else 0
    parameters = b"".join(
        [
            words.group(1, "POINT"), words.number(1, "USED", POINTS), words.number(1, "FRAMES", FRAMES),
            words.number(1, "DATA_START", 4), words.number(1, "SCALE", scale), words.number(1, "RATE", 50.0),
            words.texts(1, "UNITS", ["mm"]), words.texts(1, "LABELS", ["A", "B", "C"]),
            words.texts(1, "DESCRIPTIONS", ["a", "b", "c"]), words.texts(1, "Y_SCREEN", ["+Y"]),
            words.group(2, "ANALOG"), words.number(2, "USED", CHANNELS), words.number(2, "GEN_SCALE", 0.5),
            words.parameter(2, "SCALE", 4, [CHANNELS], words.real(0.25) + words.real(2.0)),
            words.parameter(2, "OFFSET", 2, [CHANNELS], words.integers(*(wrapped(o + shift) for o in (100, -50)))),
            words.number(2, "RATE", 50.0 * SAMPLES), words.texts(2, "LABELS", ["e1", "e2"]),
            words.texts(2, "DESCRIPTIONS", ["e", "e"]), words.texts(2, "UNITS", ["V", "V"]),
            words.texts(2, "FORMAT", ["UNSIGNED" if unsigned else "SIGNED"]),
        ]
    )  # fmt: skip
    header = (
        bytes([2, 0x50])
        + words.integers(POINTS, CHANNELS * SAMPLES, 1, FRAMES, 0)
        + words.real(scale)
        + words.integers(4, SAMPLES)
        + words.real(50.0)
    ).ljust(512, b"\0")
    section = (bytes([1, 0x50, 2, processor]) + parameters).ljust(1024, b"\0")
    data = b""
    for frame in range(FRAMES):
        for point in range(POINTS):
            lost = (frame, point) == MISSING
            if integers:
                data += words.integers(*([0, 0, 0] if lost else COUNTS[frame, point].tolist()), -1 if lost else 0)
            else:
                values = [0.0] * 3 if lost else (COUNTS[frame, point] * SCALE).tolist()
                data += b"".join(map(words.real, [*values, -1.0 if lost else 0.0]))
        for sample in VOLTS[frame * SAMPLES : (frame + 1) * SAMPLES]:
            data += (
                words.integers(*(wrapped(v + shift) for v in sample.tolist()))
                if integers
                else b"".join(words.real(float(v)) for v in sample)
            )
    return InputFile("stored.c3d", header + section + data.ljust(-(-len(data) // 512) * 512, b"\0"))


@pytest.mark.parametrize("processor", [INTEL, DEC])
@pytest.mark.parametrize("integers", [True, False])
def test_positions_and_channels_are_scaled_as_the_file_says(processor: int, integers: bool) -> None:
    recording = read_c3d(stored(processor, integers=integers))
    assert (recording.rate, recording.marker_names) == (50.0, ("A", "B", "C"))
    assert np.argwhere(recording.missing()).tolist() == [list(MISSING)]
    expected = COUNTS * SCALE / 1000.0
    expected[MISSING] = np.nan
    np.testing.assert_allclose(recording.markers, expected, rtol=1e-6, atol=1e-9)
    assert recording.analog is not None
    assert recording.analog.rate == 200.0
    # value = (stored - OFFSET) * SCALE * GEN_SCALE
    np.testing.assert_allclose(recording.analog.values, (VOLTS - [100, -50]) * [0.25, 2.0] * 0.5, rtol=1e-6)
    assert recording.analog.start == recording.time[0] == 0.0


def test_unsigned_integers_go_to_65535() -> None:
    recording = read_c3d(stored(INTEL, integers=True, unsigned=True))
    assert recording.analog is not None
    np.testing.assert_allclose(recording.analog.values, (VOLTS - [100, -50]) * [0.25, 2.0] * 0.5, rtol=1e-6)


def test_a_processor_that_the_library_does_not_know_is_named() -> None:
    with pytest.raises(RecordingError, match=r"stored.c3d, parameter section: ezc3d cannot read it: MIPS processor"):
        read_c3d(stored(MIPS, integers=True))


def test_a_truncated_integer_file_is_counted_in_its_own_size() -> None:
    content = stored(INTEL, integers=True).content
    frame = 2 * (4 * POINTS + CHANNELS * SAMPLES)
    with pytest.raises(RecordingError, match="data section: 7 of 12 frames are in the file; it is truncated"):
        read_c3d(InputFile("stored.c3d", content[: 3 * 512 + 7 * frame + 5]))
