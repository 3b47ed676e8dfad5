"""Whatever the text files of a store contain, every command ends with a sentence, never with a traceback."""

import json
import random
import re
import shutil
import sqlite3
import traceback

import pytest
from click.testing import CliRunner
from mutated_text import FILES, mutated

import designopt
from designopt.cli import main
from designopt.store.errors import StoreError
from designopt.store.folder import _digest as digest_of_study

#: A store whose study has each section that a store records.
STUDY = """
study: mutated
title: A study with all sections
description: all of them
seed: 3
model: {use: linear_loop, plant: {type: fopdt, time_constant: 8 s, delay: 1 s}}
space:
  kp: {low: 0.5, high: 10, scale: log, tolerance: 2 %, why: actuator}
  ti: {low: 1 s, high: 30 s, unit: s}
baseline: [{name: SIMC, kp: 4, ti: 8 s}]
relations: ["kp <= ti*2 [1/s]"]
scenarios:
  - {name: nominal}
  - {name: quick, gain_factor: 1.1}
objectives:
  - {name: j, minimize: "0.5*(iae_setpoint/2.1692 [s] + iae_load/1.1345 [s])", over: mean}
  - {name: ms, minimize: ms}
constraints:
  - {name: robust, of: ms, max: 2.5}
  - {name: slow, of: iae_load, max: 40 s, over: worst}
stages:
  - {name: look, solver: {use: sobol, samples: 8}}
  - {name: near, start_from: {stage: look}, solver: {use: nsga2, population: 4}, budget: {evaluations: 4}}
  - {name: further, start_from: {store: first, best: 2}, solver: {use: nsga2, population: 4},
     budget: {evaluations: 4}}
execution: {executor: serial, arrays: {time: chosen, output: all}}
report:
  plots: [front, decision, step_responses, parallel, validation, limits]
  choose: [knee, {topsis: {weights: {j: 2}}}, utopia, robust]
  reference: {j: 40, ms: 20}
  validate: {scenarios: {use: sobol, count: 4, vary: {gain_factor: [0.8, 1.25]}}, quantiles: [0.05, 0.95]}
  export: [csv]
"""
FIRST = STUDY[: STUDY.index("  - {name: near")].replace("mutated", "first") + "execution: {executor: serial}\n"

COMMANDS = (
    ("show", "s"), ("show", "s/0"), ("report", "s", "--export", "csv"), ("resume", "s", "--progress", "none"),
    ("list", "stores", "."), ("export", "s/0", "--controller", "c"), ("report", "s", "--set", "constraints.0.max=3"),
)  # fmt: skip


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    folder = tmp_path_factory.mktemp("intact")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, text in (("first", FIRST), ("s", STUDY)):
            (folder / f"{name}.yaml").write_text(text)
            designopt.load(folder / f"{name}.yaml").run(folder / name)
    for file in FILES:
        assert (folder / "s" / file).exists(), file
    return folder


def fault(arguments):
    """A description of what `designopt` must not do with `arguments`; "" if it ends as it should."""
    answer = CliRunner().invoke(main, list(arguments))
    if answer.exception is not None and not isinstance(answer.exception, SystemExit):
        return "".join(traceback.format_exception(answer.exception))[-3000:]
    if "Traceback (most recent call last)" in answer.output:
        return answer.output[-3000:]
    if answer.exit_code not in (0, 1, 2, 3, 4):  # 3: the model fails with an infinite condition, which stops the run
        return f"exit code {answer.exit_code}: {answer.output}"
    if answer.exit_code >= 2 and not answer.stderr.strip():
        return f"exit code {answer.exit_code} without a sentence"
    return ""


def sealed(content):
    """A problem.json with the digest that fits its study, as somebody who wants to deceive would write it."""
    try:
        data = json.loads(content)
        return json.dumps({**data, "study_digest": digest_of_study(data["study"])}).encode()
    except (ValueError, TypeError, KeyError, RecursionError):
        return content


def faults(intact, folder, numbers):
    """The faults of `show` and one more command with the files of mutations of these `numbers`."""
    failures = {}
    for number in numbers:
        rng = random.Random(number)
        shutil.copytree(intact / "s", folder / "s")
        name = rng.choice((*FILES, *["problem.json"] * 5))
        file = folder / "s" / name
        content = mutated(file.read_bytes(), rng)
        file.write_bytes(sealed(content) if name == "problem.json" and rng.random() < 0.7 else content)
        for arguments in (COMMANDS[0], rng.choice(COMMANDS[1:])):
            if text := fault(arguments):
                failures[number, name, arguments] = text
        shutil.rmtree(folder / "s")
    return failures


def test_mutated_text_files_end_no_command_with_a_traceback(intact, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert faults(intact, tmp_path, range(6)) == {}


@pytest.mark.faults
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("hundred", range(1, 31))
def test_thousands_of_mutated_text_files_end_no_command_with_a_traceback(intact, tmp_path, monkeypatch, hundred):
    monkeypatch.chdir(tmp_path)
    assert faults(intact, tmp_path, range(100 * hundred, 100 * hundred + 100)) == {}


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("title", 5, "'study.title' is 5, not str"),
        ("seed", True, "'study.seed' is True, not int"),
        ("plots", {}, "'study.plots' is {}, not a list"),
        ("reference", {"j": "x"}, "'study.reference.j' is 'x', not float"),
        ("validate", [], r"'study.validate' is \[\], not a mapping"),
        ("model", {"use": "x"}, "'study.model' is {'use': 'x'}, not ModelPlugin"),
    ],
)
def test_a_value_of_another_type_is_damage_with_its_place(intact, tmp_path, field, value, text):
    path = tmp_path / "s"
    shutil.copytree(intact / "s", path)
    data = json.loads((path / "problem.json").read_text())
    data["study"][field] = value
    (path / "problem.json").write_bytes(sealed(json.dumps(data)))
    with pytest.raises(StoreError, match=f"problem.json is damaged: TypeError: {text}; put back a copy"):
        designopt.open_store(path)


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        (
            "choose.0.method",
            "epsilon_constraint",
            r"'study.choose.0.objective' names '', which the study does not have",
        ),
        ("choose.2.norm", "l7", r"'study.choose.2.norm' is 'l7', which utopia does not have"),
        ("choose.1.weights", {"x": 1.0}, r"'study.choose.1.weights' names 'x'"),
        ("reference", {"x": 1.0}, r"'study.reference' names 'x'"),
        ("stages.2.name", "look", r"'study.stages.2.name' is also the name of an earlier stage"),
        ("stages.2.start_from.stage", "x", r"'study.stages.2.start_from.stage' names 'x'"),
        ("stages.2.start_from", {}, r"'study.stages.2.start_from' needs either a stage or a store"),
        ("tolerances.of.0.parameter", "x", r"'study.tolerances.of.0.parameter' names 'x'"),
        ("tolerances.of.0.size", float("nan"), r"'study.tolerances.of.0.size' is nan, not a positive number"),
        ("tolerances.neighbours", -5, r"'study.tolerances.neighbours' is -5, not from 0 to"),
        ("space.0.stated", "xyz", r"'study.space.0.stated': unknown unit 'xyz'"),
        ("space.1.stated", "kg", r"'study.space.1.stated' is 'kg', which does not convert to 's'"),
        ("validate.quantiles", [2.0], r"'study.validate.quantiles.0' is 2.0, not between 0 and 1"),
    ],
)
def test_names_and_numbers_that_contradict_each_other_are_damage_with_their_place(intact, tmp_path, field, value, text):
    path = tmp_path / "s"
    shutil.copytree(intact / "s", path)
    data = json.loads((path / "problem.json").read_text())
    *above, last = field.split(".")
    part = data["study"]
    for key in above:
        part = part[int(key) if isinstance(part, list) else key]
    part[last] = value
    (path / "problem.json").write_bytes(sealed(json.dumps(data)))
    for arguments in (("show", str(path)), ("report", str(path)), ("resume", str(path))):
        answer = CliRunner().invoke(main, arguments)
        assert answer.exit_code == 4
        assert re.search(f"s: problem.json is damaged: ValueError: {text}", answer.stderr)


@pytest.mark.parametrize(
    ("value", "text"),
    [(v, "TypeError: 'sobol.samples' is ") for v in ("x", None, [], 2.5)]
    + [(-1, "ValueError: 'sobol.samples' must be at least 1, not -1")],
)
def test_a_setting_of_a_solver_of_another_type_or_out_of_range_is_damage(intact, tmp_path, value, text):
    path = tmp_path / "s"
    shutil.copytree(intact / "s", path)
    data = json.loads((path / "problem.json").read_text())
    solver = next(s["solver"] for s in data["study"]["stages"] if s["solver"]["name"] == "sobol")
    solver["settings"]["samples"] = value
    (path / "problem.json").write_bytes(sealed(json.dumps(data)))
    answer = CliRunner().invoke(main, ["resume", str(path)])
    assert answer.exit_code == 4
    assert f"problem.json is damaged: {text}" in answer.stderr


def test_a_store_whose_journal_fails_while_it_is_shown_ends_with_a_sentence(intact, tmp_path):
    shutil.copytree(intact / "s", tmp_path / "s")
    db = sqlite3.connect(tmp_path / "s" / "journal.db")
    assert db.execute("UPDATE evaluation SET outputs = '{bad' WHERE kind IN ('validation', 'neighbour')").rowcount > 0
    db.commit()
    db.close()
    for arguments in (("show", f"{tmp_path}/s"), ("show", f"{tmp_path}/s/0"), ("report", f"{tmp_path}/s")):
        answer = CliRunner().invoke(main, arguments)
        assert answer.exit_code == 4, answer.output
        assert "s: journal.db is damaged: the record of evaluation" in answer.stderr


def test_a_change_of_the_study_in_a_store_is_reported(intact, tmp_path):
    path = tmp_path / "s"
    shutil.copytree(intact / "s", path)
    text = (path / "problem.json").read_text()
    assert text.count('"ms": 20') == 1
    (path / "problem.json").write_text(text.replace('"ms": 20', '"ms": 21'))
    with pytest.raises(StoreError, match=r"problem.json is damaged: .*: its study has changed since it was written"):
        designopt.open_store(path)


def test_a_store_of_a_version_without_that_digest_is_read(intact, tmp_path):
    path = tmp_path / "s"
    shutil.copytree(intact / "s", path)
    data = json.loads((path / "problem.json").read_text())
    del data["study_digest"]
    (path / "problem.json").write_text(json.dumps(data))
    assert designopt.open_store(path).counts == designopt.open_store(intact / "s").counts


@pytest.mark.parametrize("line", [b"{bad", b"[1]", b"\xff", b'{"code": 3}', b"[" * 100_000])
def test_an_unreadable_note_on_a_session_is_named(intact, tmp_path, line):
    shutil.copytree(intact / "first", tmp_path / "s")
    with (tmp_path / "s" / "provenance.jsonl").open("ab") as stream:
        stream.write(line + b"\n")
    result = designopt.resume(tmp_path / "s")
    (warning,) = [event["text"] for event in result.events if event["kind"] == "warning"]
    assert "provenance.jsonl:2 is damaged: changes of code since that session may go unnoticed" in warning
