"""Counts in messages have the noun that belongs to them."""

import dataclasses

import pytest

from designopt.counts import of_number, plural, with_subject
from designopt.run.progress import Snapshot, line


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 designs"), (1, "1 design"), (2, "2 designs"), (1200, "1200 designs")]
)
def test_a_noun_is_plural_but_after_one(number: int, text: str) -> None:
    assert plural(number, "design") == text
    assert text == f"{number} {of_number(number, 'design')}"


@pytest.mark.parametrize("sentence", ["no frame is usable", "walk: no frame is usable"])
def test_a_sentence_has_the_name_of_its_scenario_once(sentence: str) -> None:
    assert with_subject("walk", sentence) == "walk: no frame is usable"


def test_the_line_of_progress_has_the_nouns_of_its_numbers() -> None:
    fields = {field.name: 1 for field in dataclasses.fields(Snapshot)} | {
        "stage": "s",
        "best": {},
        "running": (),
        "note": "",
    }
    one = Snapshot(**{**fields, "invalid": 0, "rate": 0.0, "elapsed": 1.0, "left": None})  # type: ignore[arg-type]
    assert line(one) == "s (1/1): 1/1 design, 0:01 so far, 1 of 1 evaluation failed"
    more = dataclasses.replace(one, total=8, evaluations=2)
    assert line(more) == "s (1/1): 1/8 designs, 0:01 so far, 1 of 2 evaluations failed"
