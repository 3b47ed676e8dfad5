"""Damaged copies of small good files, read one after the other; run in a process of its own by test_damaged_files.py.

    python damaged_files.py FORMAT FIRST COUNT FILE

prints one line for every copy that was neither refused with file and place nor read correctly, then "done". A crash of
the library or a hang is seen by whoever started the process.
"""

import random
import resource
import sys
from pathlib import Path

import numpy as np
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.read import read_recording, read_table

from designopt.plugin import InputFile

CELLS = [
    "",
    "NaN",
    "abc",
    "1e999",
    "-",
    "1,5",
    "0x10",
    "١٢",
    "1 2",
    '"',
    "\0",
    "9" * 5000,
    "=1+1",
    "endheader",
    "\ufeff",
]


def damaged_text(content: bytes, dice: random.Random) -> tuple[bytes, int]:
    """A damaged copy of a text file, and how many of its lines were touched (-1: lines are missing at the end)."""
    lines = content.decode().split("\n")
    kind, at = dice.randrange(9), dice.randrange(len(lines))
    if kind == 0:
        return content[: dice.randrange(len(content))], -1
    if kind == 1:
        del lines[at]
        return "\n".join(lines).encode(), 0
    if kind == 2:
        lines.insert(at, lines[at])
        return "\n".join(lines).encode(), 1
    if kind == 3:
        second = dice.randrange(len(lines))
        lines[at], lines[second] = lines[second], lines[at]
        return "\n".join(lines).encode(), 2
    if kind == 4:
        raw = bytearray(content)
        index = dice.randrange(len(raw))
        raw[index] = dice.randrange(256)
        return bytes(raw), 2
    if kind == 5:
        lines.insert(at, "".join(chr(dice.randrange(1, 0x2000)) for _ in range(dice.randrange(200))))
        return "\n".join(lines).encode(), 1
    separator = "\t" if "\t" in lines[at] else ","
    cells = lines[at].split(separator)
    index = dice.randrange(len(cells))
    if kind == 6:
        cells[index] = dice.choice(CELLS)
    elif kind == 7:
        del cells[index]
    else:
        cells.insert(index, dice.choice(CELLS))
    lines[at] = separator.join(cells)
    return "\n".join(lines).encode(), 1


def damaged_bytes(content: bytes, dice: random.Random) -> tuple[bytes, int]:
    """A damaged copy of a binary file: cut, changed in the header, in the parameters, shifted."""
    raw, kind = bytearray(content), dice.randrange(4)
    if kind == 0:
        return bytes(raw[: dice.randrange(len(raw))]), -1
    if kind == 3:
        index = dice.randrange(512, 3000)
        del raw[index : index + dice.randrange(1, 50)]
        return bytes(raw), 0
    for _ in range(dice.randrange(1, 4 if kind == 1 else 25)):
        index = dice.randrange(24) if kind == 1 else dice.randrange(512, 3000)
        raw[index] = dice.randrange(256)
    return bytes(raw), 0


def rows_of(file: InputFile) -> np.ndarray:
    """Times and values of what is read, one row a frame; NaN as a number that compares."""
    if file.name.endswith((".trc", ".c3d")):
        recording = read_recording(file, up="y")
        return np.nan_to_num(
            np.column_stack([recording.time, recording.markers.reshape(len(recording.time), -1)]), nan=-9e9
        )
    table = read_table(file)
    return np.nan_to_num(np.column_stack([table.time, table.values]), nan=-9e9)


def complaint(good: InputFile, original: np.ndarray, content: bytes, touched: int) -> str:
    """What is wrong with how a damaged copy was treated; nothing where it was refused well or read correctly."""
    file = InputFile(good.name, content)
    try:
        rows = rows_of(file)
    except RecordingError as refused:
        message = str(refused)
        if file.name not in message or not refused.message or "\n" in message or len(message) > 500:
            return f"refused without file and place: {message[:200]!r}"
        return ""
    except Exception as problem:
        return f"traceback: {type(problem).__name__}: {str(problem)[:200]}"
    if good.name.endswith(".c3d"):  # a changed name or unit is a correct result of another file
        return (
            "" if touched != -1 or np.array_equal(rows, original) else "a truncated file was read as if it were whole"
        )
    if rows.shape[1] != original.shape[1]:
        return "" if touched else f"{rows.shape[1]} columns were read"
    original_rows = {row.tobytes() for row in original}
    strange = sum(row.tobytes() not in original_rows for row in rows)
    return "" if strange <= max(touched, 0) + (touched == -1) else f"{strange} rows differ from those in the file"


def main(path: str, first: int, count: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    good = InputFile(Path(path).name, Path(path).read_bytes())
    original = rows_of(good)
    damaged = damaged_bytes if good.name.endswith(".c3d") else damaged_text
    for i in range(first, first + count):
        content, touched = damaged(good.content, random.Random(f"{good.name} {i}"))
        problem = complaint(good, original, content, touched)
        if problem:
            print(f"{good.name} mutation {i}: {problem}", flush=True)
    print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
