"""Hundreds of generated malformed files: each is refused with a place, none with anything but `StudyError`."""

import random
import time

import pytest
from mutations import (
    block_lost,
    character,
    cut,
    indented,
    line_lost,
    line_twice,
    lines_swapped,
    misspelt,
    value_replaced,
)

from designopt.study.language.errors import StudyError, render_json, render_text
from designopt.study.language.yaml import parse_bytes
from designopt.study.load import study_from_text

COUNT = 330
SHORT = """\
study: short
model: {use: test_wheel, mass: 3}
space:
  stiffness:
    low: 10 kN/m
    high: 30 kN/m
objectives: [{name: a, minimize: abs(peak_error)}]
solver: {use: test_search, population: 4}
budget: {evaluations: 40}
"""
JSON = """\
{"study": "json", "seed": 1, "model": {"use": "test_open", "gain": 2.0},
 "space": {"x": {"low": 0, "high": 1}, "y": {"type": "int", "low": 1, "high": 9}},
 "relations": ["x <= 0.1*y"], "objectives": [{"name": "f", "minimize": "f + 2*g"}],
 "stages": [{"name": "all", "solver": {"use": "test_grid", "levels": {"x": 3}}}]}
"""

MUTATIONS = (character, cut, line_twice, line_lost, indented, lines_swapped, value_replaced, misspelt, block_lost)


def _malformed(bases: list[str]) -> list[str]:
    rng = random.Random(20260113)
    return [rng.choice(MUTATIONS)(rng.choice(bases), rng) for _ in range(COUNT * 2)]


def test_generated_malformed_files_are_refused_with_a_place(load, base_text) -> None:
    refused = 0
    slowest = 0.0
    for number, text in enumerate(_malformed([base_text, SHORT, JSON])):
        started = time.process_time()
        try:
            load(text)
        except StudyError as error:
            issues = error.issues
        except Exception as error:  # the sentence names the file that did it
            pytest.fail(f"file {number} gave {type(error).__name__}: {error}\n{text}")
        else:
            continue  # some mutations leave a valid study behind: a changed name, a lost option
        finally:
            slowest = max(slowest, time.process_time() - started)
        refused += 1
        lines = text.splitlines() or [""]
        assert issues, text
        for issue in issues:
            assert issue.message, text
            assert issue.file == "damper.yaml", text
            assert issue.line is not None, f"{issue}\n{text}"
            assert 1 <= issue.line <= len(lines), f"{issue}\n{text}"
            assert 1 <= issue.column <= len(issue.source_line) + 1, f"{issue}\n{text}"
            assert issue.end_column > issue.column, f"{issue}\n{text}"
            assert "function-" not in issue.path + issue.message, "pydantic's own tags never show"
            assert "\n" not in issue.message, f"{issue}\n{text}"
        render_text(issues)
        render_json(issues)
        if refused == COUNT:
            break
    assert refused >= 300
    assert slowest < 20.0, "a small file, however broken, is judged at once: some 0.1 s of the processor"


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
