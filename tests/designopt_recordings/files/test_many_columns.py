"""The time to read a table grows with its columns, not with their square."""

from collections.abc import Callable

import pytest
from designopt_mechanics.tree import _check_unique
from designopt_recordings.files.names import number_duplicates
from designopt_recordings.files.storage import labels
from designopt_recordings.files.text import Lines

from designopt.plugin import InputFile


def comparisons(work: Callable[[list[str]], object], count: int) -> int:
    """How often `work` on so many names compares two of them, or looks for the hash of one."""
    calls = 0

    class Name(str):
        __slots__ = ()

        def __eq__(self, value: object) -> bool:
            nonlocal calls
            calls += 1
            return str.__eq__(self, value)

        def __hash__(self) -> int:
            nonlocal calls
            calls += 1
            return str.__hash__(self)

    work([Name(f"column {i}") for i in range(count)])
    return calls


LINES = Lines.from_file(InputFile("a.sto", b"time\n"))
READERS = {
    "labels of a table": lambda names: labels(LINES, 1, names),
    "names of markers": lambda names: number_duplicates(names, "marker", []),
    "names of equal markers": lambda names: number_duplicates([*names, *names], "marker", []),
    "names of frames": _check_unique,
}


@pytest.mark.parametrize("what", READERS)
def test_twice_the_columns_take_twice_the_comparisons(what: str) -> None:
    assert comparisons(READERS[what], 4000) < 2.2 * comparisons(READERS[what], 2000)


def test_equal_names_are_numbered_in_their_order_around_those_in_use() -> None:
    notes: list[str] = []
    names = number_duplicates(["A", "B", *["A"] * 3, "A#3", "B"], "marker", notes)
    assert names == ("A", "B", "A#2", "A#4", "A#5", "A#3", "B#2")
    assert notes == ["markers with the same label are numbered: A, B"]
