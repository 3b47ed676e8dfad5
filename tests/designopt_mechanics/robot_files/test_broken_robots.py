"""Robot files with random changes: read, or refused with line and column, never anything between."""

import random
import re

import pytest
from designopt_mechanics.robot_files.reading import read_robot
from designopt_mechanics.robot_files.xml import ModelError
from robots import FINGER, FOUR_BAR, MJCF, URDF

TEXTS = (*URDF.values(), *MJCF.values(), FINGER, FOUR_BAR)
VALUES = ("", "nan", "inf", "-1", "0", "1e308", "1e-320", "x", "1 2", "1 2 3 4 5 6 7", "true", "base", "&amp;", "-0")


def changed(text: str, rng: random.Random) -> str:
    """One change: of a value, an attribute, a letter, an element, or a value of another attribute."""
    values = list(re.finditer(r'="([^"]*)"', text))
    kind = rng.randrange(5)
    if kind == 0:
        match = rng.choice(values)
        return text[: match.start(1)] + rng.choice(VALUES) + text[match.end(1) :]
    if kind == 1:
        match = rng.choice(list(re.finditer(r' \w+="[^"]*"', text)))
        return text[: match.start()] + text[match.end() :]
    if kind == 2:
        at = rng.randrange(len(text))
        return text[:at] + rng.choice('<>/"x0 ') + text[at + 1 :]
    if kind == 3:
        match = rng.choice(list(re.finditer(r"<\w+[^<>]*/>", text)))
        return text[: match.start()] + rng.choice(("", match.group() * 2)) + text[match.end() :]
    first, second = rng.choice(values), rng.choice(values)
    return text[: first.start(1)] + second.group(1) + text[first.end(1) :]


def judge(seed: int, count: int) -> tuple[int, int]:
    """Numbers of files that were read, and refused with a line of theirs."""
    rng = random.Random(seed)
    read = refused = 0
    for _ in range(count):
        text = rng.choice(TEXTS)
        for _ in range(rng.randint(1, 2)):
            text = changed(text, rng)
        try:
            read_robot(text.encode(), "robot.xml")
            read += 1
        except ModelError as error:
            refused += 1 <= error.line <= text.count("\n") + 1
    return read, refused


def test_a_changed_robot_file_is_read_or_refused_with_its_line() -> None:
    read, refused = judge(seed=0, count=300)
    assert read + refused == 300
    assert min(read, refused) > 50


@pytest.mark.faults
def test_thousands_of_changed_robot_files_are_read_or_refused_with_their_line() -> None:
    read, refused = judge(seed=1, count=10_000)
    assert read + refused == 10_000
    assert min(read, refused) > 2000
