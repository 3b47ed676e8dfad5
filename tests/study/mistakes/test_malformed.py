"""Noise and hostile text are refused with a place and at once; files broken at random are in `test_fuzz.py`."""

import random
import time

import pytest

from designopt.study.language.errors import StudyError
from designopt.study.language.yaml import parse_bytes
from designopt.study.load import study_from_text


@pytest.mark.parametrize("seed", range(20))
def test_random_bytes_are_refused(seed) -> None:
    content = random.Random(seed).randbytes(300)
    with pytest.raises(StudyError) as caught:
        parse_bytes(content, "noise.yaml")
    assert caught.value.issues[0].line is not None


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "{" * 100_000,
        "{a: " * 100_000,
        "- " * 100_000,
        "? " * 100_000,
        "a: " * 100_000,
        "[{" * 50_000,
        "'" * 99_999,
        "&a " * 100_000,
        "!" * 100_000,
        "#" * 100_000,
        "a: &a [1]\n" + "".join(f"b{i}: &b{i} [*a, *a]\n" for i in range(10)) + "%" * 1000,
        "x: &x0 [1]\n" + "".join(f"x{i}: &x{i} [{', '.join([f'*x{i - 1}'] * 10)}]\n" for i in range(1, 12)),
        "a: '" + "x" * 3_000_000,
        "a: |\n" + "  x\n" * 200_000,
    ],
    ids=range(15),
)
def test_hostile_texts_end_quickly_with_an_error(text) -> None:
    started = time.process_time()
    with pytest.raises(StudyError) as caught:
        study_from_text(text, "hostile.yaml")
    assert caught.value.issues[0].line is not None
    assert len(str(caught.value)) < 20_000
    assert time.process_time() - started < 60.0  # some 1 s; minutes where something is quadratic


@pytest.mark.parametrize(
    "text",
    [
        "study: s\nspace:\n" + "".join(f"  p{i}: {{lo: 1}}\n" for i in range(9_000)),
        "study: s\n" + "".join(f"key{i}: 1\n" for i in range(50_000)),
        "study: s\nmodel: {use: test_wheel, mass: 1, " + ", ".join(f"k{i}: 1" for i in range(20_000)) + "}\n",
        "study: s\nmodel: {use: test_wheel, mass: 1}\nspace: {stiffness: [1, 2]}\nrelations:\n"
        + ("  - " + " + ".join(f"u{i}" for i in range(50)) + " < 1\n") * 2_000,
        "study: s\nmodel: {use: test_wheel, mass: 1}\nspace: {stiffness: [1, 2]}\nobjectives:\n"
        + "".join(f"  - {{name: n{i}, minimize: {'rhoo + ' * 50} rho}}\n" for i in range(2_000)),
        "study: s\nscenarios: [" + "{name: x}, " * 40_000 + "]\n",
    ],
    ids=["space", "keys", "settings", "relations", "objectives", "scenarios"],
)
def test_thousands_of_mistakes_do_not_cost_minutes(load, text) -> None:
    started = time.process_time()
    with pytest.raises(StudyError) as caught:
        load(text)
    assert 1 <= len(caught.value.issues) <= 200
    assert time.process_time() - started < 60.0
