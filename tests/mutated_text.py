"""Text files of a store changed at random, by text and by data, each from a generator of its own."""

import copy
import json
import random
from collections.abc import Callable
from typing import Any

#: Text files of a store.
FILES = ("problem.json", "study.yaml", "provenance.jsonl", "start_from.json", "lock")

#: Values of another kind or size than those that a store writes.
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**70, -(2**70), 1.5, 1e300, -1e300, 5e-324, float("nan"), float("inf"),
    -float("inf"), "", " ", "\0", "\n", "x", "é", "\u202e", "\ud800", "x" * 5000, "../../etc/passwd", "/dev/zero",
    "1e5", "nan", [], [[]], [None], ["x"], [1, 2], {}, {"x": 1}, {"": None}, {"$plugin": "model"},
    {"$plugin": "x", "name": "x"}, {"$file": "0" * 32, "name": "x"}, {"$file": 1, "name": None}, {"use": "x"}, "%",
    "{}", "%s", "\x1b[2J",
)  # fmt: skip
BYTES = (
    b"\0",
    b"\xff",
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b"\\",
    b",",
    b":",
    b"\n",
    b"\r",
    b"-",
    b"9" * 5000,
    b"\xef\xbb\xbf",
)


def mutated(content: bytes, rng: random.Random) -> bytes:
    """The content of a text file with one to three changes."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        change = rng.choice((*_OF_TEXT, *_OF_DATA * 4))
        try:
            content = change(content, rng)
        except (ValueError, IndexError, RecursionError):  # no JSON any more, or nothing in it
            content = _replaced(content, rng)
    return content


# ---------------------------------------------------------------------------------------------------------------- text


def _byte(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(content))
    return content[:at] + rng.choice(BYTES) + content[at + rng.randrange(2) :]


def _cut(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content))]


def _piece_lost(content: bytes, rng: random.Random) -> bytes:
    start, end = sorted(rng.randrange(len(content)) for _ in range(2))
    return content[:start] + content[end:]


def _line_twice(content: bytes, rng: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    return b"".join([*lines[: at + 1], *lines[at:]])


def _replaced(content: bytes, rng: random.Random) -> bytes:
    return rng.choice(
        (b"", b"null", b"[]", b"{}", b"1", b'"x"', b"[" * 100_000, b'{"a":' * 50_000, b"\xff" * 100, b" \n")
    )


def _digit(content: bytes, rng: random.Random) -> bytes:
    at = rng.choice([i for i, c in enumerate(content) if c in b"0123456789"])
    return content[:at] + rng.choice((b"", b"-", b"9" * 400, b"e400", b".", b"x")) + content[at + 1 :]


# ---------------------------------------------------------------------------------------------------------------- data


def _of_lines(change: Callable[[Any, random.Random], Any]) -> Callable[[bytes, random.Random], bytes]:
    """A change of the JSON data of a file, or of one of its lines."""

    def of_file(content: bytes, rng: random.Random) -> bytes:
        try:
            return json.dumps(change(json.loads(content), rng)).encode()
        except json.JSONDecodeError:
            lines = content.splitlines()
            at = rng.randrange(len(lines))
            lines[at] = json.dumps(change(json.loads(lines[at]), rng)).encode()
            return b"\n".join(lines) + b"\n"

    return of_file


def _places(data: Any, rng: random.Random) -> tuple[Any, Any]:
    """A container within `data` and a key or index of it, each level as probable as another; in problem.json mostly in
    its study."""
    places = []
    if isinstance(data, dict) and isinstance(data.get("study"), dict) and rng.random() < 0.8:
        data = data["study"]
    while isinstance(data, dict | list) and data:
        key = rng.choice(sorted(data)) if isinstance(data, dict) else rng.randrange(len(data))
        places.append((data, key))
        data = data[key]
    return rng.choice(places)


def _value(data: Any, rng: random.Random) -> Any:
    container, key = _places(data, rng)
    container[key] = copy.deepcopy(rng.choice(VALUES))
    return data


def _lost(data: Any, rng: random.Random) -> Any:
    container, key = _places(data, rng)
    del container[key]
    return data


def _renamed(data: Any, rng: random.Random) -> Any:
    container, key = _places(data, rng)
    if isinstance(container, dict):
        container[rng.choice(("x", "", f"{key}x", rng.choice(sorted(container))))] = container.pop(key)
    else:
        container.append(copy.deepcopy(container[key]))
    return data


def _exchanged(data: Any, rng: random.Random) -> Any:
    (container, key), (second, second_key) = _places(data, rng), _places(data, rng)
    container[key], second[second_key] = copy.deepcopy(second[second_key]), copy.deepcopy(container[key])
    return data


_OF_TEXT = (_byte, _cut, _piece_lost, _line_twice, _replaced, _digit)
_OF_DATA = tuple(map(_of_lines, (_value, _value, _lost, _renamed, _exchanged)))
