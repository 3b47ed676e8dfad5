"""Study files broken at random: mutations of text, of tokens and of data, each from a generator of its own."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import yaml

JUNK = (
    *"{}[]:,#&*!|>'\"%@`?-~$<=\\\t\0\x7f\x85",
    ": ", "- ", "? ", "&a ", "*a ", "!!x ", "<<: ", "---\n", "...\n", "\r\n", "\ufeff", "é", "\u2028", "\u202e",
    "\U0001f600", "\ud7ff", "٣", "Ⅷ", "½", "ﬁ", "İ", "\u0301",
)  # fmt: skip
WORDS = (
    "yes", "null", "~", "true", "-1", "0", "0.0", "-0.0", "1e999", "-1e308", "1.7e308", "5e-324", ".nan", "-.inf",
    "0x7fffffffffffffff", "9007199254740993", "99999999999999999999", "9" * 5000, "1e-400", "010", "1_000", "1:30",
    "[]", "{}", "[[]]", "[[], {}]", "{a: {b: c}}", "''", '""', "' '", "x" * 3000, "é", "٣٣", "１２", "\U0001f600",
    "12 parsecs per tea", "3 kg", "1e308 km", "5 mm^9", "m", "1/0", "f + 1/0", "(" * 200, "-" * 500 + "x", "abs(",
    "1 <= 2", "a" + "+a" * 900, "x**x**x**x", "9**9**9**9", "log(0)", "min(1)", "5 [mm]", "5 [mm", "rho rho",
    "../../etc/passwd", "/etc/passwd", "C:\\\\x", "study.yaml", ".", "nsga2", "sobol", "knee", "worst", "use",
    "{use: nsga2}", "{use: sobol, count: 5}", "{use: [a]}", "{low: 1, high: 2}", "[1, 2, 3]", "[1, two]", "[0, 1e308]",
    "&x [1]", "*x", "{mean: 0, deviation: 1}", "{values: [1, two, true, null]}", "[-1.7e308, 1.7e308]",
)  # fmt: skip

Mutation = Callable[[str, random.Random], str]


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True) or [""]


# ---------------------------------------------------------------------------------------------------------------- text


def character(text: str, rng: random.Random) -> str:
    """Junk put in, or in place of a character."""
    at = rng.randrange(len(text))
    return text[:at] + rng.choice(JUNK) + text[at + rng.randrange(2) :]


def cut(text: str, rng: random.Random) -> str:
    """The beginning only."""
    return text[: rng.randrange(len(text))]


def block_lost(text: str, rng: random.Random) -> str:
    """A stretch of text lost."""
    a, b = sorted((rng.randrange(len(text)), rng.randrange(len(text))))
    return text[:a] + text[b:]


def line_twice(text: str, rng: random.Random) -> str:
    """A line given twice."""
    lines = _lines(text)
    at = rng.randrange(len(lines))
    return "".join([*lines[: at + 1], *lines[at:]])


def line_lost(text: str, rng: random.Random) -> str:
    """A line lost."""
    lines = _lines(text)
    del lines[rng.randrange(len(lines))]
    return "".join(lines)


def lines_swapped(text: str, rng: random.Random) -> str:
    """Two lines exchanged."""
    lines = _lines(text)
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return "".join(lines)


def indented(text: str, rng: random.Random) -> str:
    """A line indented otherwise."""
    lines = _lines(text)
    at = rng.randrange(len(lines))
    lines[at] = rng.choice((" ", "   ", "      ", "\t", "")) + lines[at].lstrip(" ")
    return "".join(lines)


def misspelt(text: str, rng: random.Random) -> str:
    """Two neighbouring letters exchanged."""
    letters = [i for i in range(len(text) - 1) if text[i].isalpha() and text[i + 1].isalpha()]
    at = rng.choice(letters)
    return text[:at] + text[at + 1] + text[at] + text[at + 2 :]


def nested(text: str, rng: random.Random) -> str:
    """A value within many brackets."""
    start, end = _value(text, rng)
    opening, closing = rng.choice((("[", "]"), ("{a: ", "}"), ("(", ")")))
    depth = rng.choice((3, 60, 70, 5_000))
    return text[:start] + opening * depth + text[start:end] + closing * depth + text[end:]


def aliased(text: str, rng: random.Random) -> str:
    """A value repeated by aliases, some of them of aliases."""
    start, end = _value(text, rng)
    other_start, other_end = _value(text, rng)
    if other_start < end:
        return text[:start] + "&a " + text[start:]
    many = "[" + ", ".join(["*a"] * rng.choice((1, 10, 3_000))) + "]"
    new = rng.choice(("*a", "*b", many))
    return text[:start] + "&a " + text[start:other_start] + new + text[other_end:]


# -------------------------------------------------------------------------------------------------------------- tokens


def _value(text: str, rng: random.Random) -> tuple[int, int]:
    """Start and end of a plain value behind a colon, a comma or a bracket."""
    starts = [i + 2 for i in range(len(text) - 2) if text[i : i + 2] in (": ", ", ", "- ")]
    starts += [i + 1 for i in range(len(text) - 1) if text[i] == "["]
    start = rng.choice(starts)
    end = start
    while end < len(text) and text[end] not in ",}]\n":
        end += 1
    return start, end


def value_replaced(text: str, rng: random.Random) -> str:
    """A value of another kind, size or script."""
    start, end = _value(text, rng)
    return text[:start] + rng.choice(WORDS) + text[end:]


def values_exchanged(text: str, rng: random.Random) -> str:
    """A value that belongs elsewhere."""
    start, end = _value(text, rng)
    other_start, other_end = _value(text, rng)
    return text[:start] + text[other_start:other_end] + text[end:]


def number_changed(text: str, rng: random.Random) -> str:
    """A number made huge, tiny, negative, or no number."""
    digits = [i for i, c in enumerate(text) if c.isdigit() and not text[i - 1 : i].isdigit()]
    at = rng.choice(digits)
    end = at
    while end < len(text) and (text[end].isdigit() or text[end] in ".e"):
        end += 1
    number = text[at:end]
    new = rng.choice(
        (
            "0",
            "-" + number,
            number + "e300",
            number + "e-300",
            number + "0" * rng.choice((3, 7, 12)),
            number + ".5",
            number + "x",
            "",
        )
    )
    return text[:at] + new + text[end:]


def unit_changed(text: str, rng: random.Random) -> str:
    """A number with a unit that does not belong there."""
    start, end = _value(text, rng)
    unit = rng.choice(
        ("kg", "N m", "rad^9", "degC", "m/s^2", "furlong", "%", "1/s", "s**-1", "delta_degC", "B", "2 m", "**")
    )
    return text[:end] + " " + unit + text[end:] if end > start else text + unit


# ---------------------------------------------------------------------------------------------------------------- data


def data_changed(text: str, rng: random.Random) -> str:
    """Keys dropped, added, renamed, exchanged; members lost, repeated, moved; written as JSON."""
    data = yaml.safe_load(text)
    for _ in range(rng.choice((1, 1, 2, 5))):
        places = _containers(data)
        container = rng.choice(places)
        if isinstance(container, dict):
            _mapping_changed(container, places, rng)
        else:
            _list_changed(container, places, rng)
    return json.dumps(data, ensure_ascii=rng.random() < 0.5, indent=rng.choice((None, 1)), default=str)


def _containers(data: Any) -> list[Any]:
    containers, stack = [], [data]
    while stack:
        item = stack.pop()
        if isinstance(item, (dict, list)) and len(containers) < 10_000:
            containers.append(item)
            stack.extend(item.values() if isinstance(item, dict) else item)
    return [item for item in containers if item] or [data]


def _any(places: list[Any], rng: random.Random) -> Any:
    """A copy of any part of the file, or a value from the list."""
    if rng.random() < 0.4:
        return rng.choice((None, True, -1, 0, 1e308, 1e-320, 10**30, "", "x", "é" * 50, [], {}, [[]], {"use": "sobol"}))
    return json.loads(json.dumps(rng.choice(places), default=str))


def _mapping_changed(item: dict[str, Any], places: list[Any], rng: random.Random) -> None:
    key = rng.choice(list(item))
    what = rng.randrange(5)
    if what == 0:
        del item[key]
    elif what == 1:
        item[key + rng.choice(("s", "_", "", " ", "é"))] = item.pop(key)
    elif what == 2:
        item[key] = _any(places, rng)
    elif what == 3:
        item[rng.choice(("use", "name", "when", "low", "values", "vary", "count", "new", "0", "with"))] = _any(
            places, rng
        )
    else:
        second_key = rng.choice(list(item))
        item[key], item[second_key] = item[second_key], item[key]


def _list_changed(item: list[Any], places: list[Any], rng: random.Random) -> None:
    at = rng.randrange(len(item))
    what = rng.randrange(5)
    if what == 0:
        del item[at]
    elif what == 1:
        item.extend(json.loads(json.dumps(item[at : at + 1], default=str)) * rng.choice((1, 1, 30, 300)))
    elif what == 2:
        item[at] = _any(places, rng)
    elif what == 3:
        item.insert(at, _any(places, rng))
    else:
        rng.shuffle(item)


MUTATIONS: tuple[Mutation, ...] = (
    character, cut, block_lost, line_twice, line_lost, lines_swapped, indented, misspelt, nested, aliased,
    value_replaced, value_replaced, values_exchanged, number_changed, unit_changed, data_changed, data_changed,
)  # fmt: skip


def mutated(bases: list[str], seed: int) -> str:
    """The broken file number `seed`: one of the `bases` with one to three mutations."""
    rng = random.Random(seed)
    text = rng.choice(bases)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        mutation = rng.choice(MUTATIONS)
        try:
            text = mutation(text, rng)
        except (IndexError, ValueError, yaml.YAMLError, AttributeError, RecursionError, TypeError):
            continue  # what is left of the file has no such piece
        if not text:
            break
    return text
