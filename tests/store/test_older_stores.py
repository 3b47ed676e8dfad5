"""Stores of earlier versions open, say the same, and go on. Those in `data` were written by both store formats."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from run_cases import Recorder, dump, listed, make_study

import designopt
from designopt.plugin import load_file
from designopt.problem import Problem
from designopt.report import write_report
from designopt.run.runner import resume_study, run_study
from designopt.store.errors import StoreError
from designopt.store.provenance import versions
from designopt.store.result import Result

DATA = Path(__file__).with_name("data")
PLUGIN = (("bracket.py", (DATA / "bracket.py").read_bytes()),)
NAMES = ("format_1", "format_1_sweep")

#: Thickness in mm, number of ribs, material, mass in kg: the front as it was reported when the store was written.
FRONT = [
    (32, 3, "oak", 0.5376), (33, 3, "oak", 0.5544), (32, 4, "oak", 0.7168), (35, 4, "oak", 0.784),
    (36, 4, "oak", 0.8064), (40, 4, "oak", 0.896), (40, 6, "oak", 1.344), (38, 8, "oak", 1.7024),
    (33, 1, "steel", 2.0592), (34, 1, "steel", 2.1216), (28, 3, "steel", 5.2416), (31, 3, "steel", 5.8032),
    (32, 3, "steel", 5.9904), (34, 3, "steel", 6.3648), (30, 6, "steel", 11.232), (33, 6, "steel", 12.3552),
    (33, 7, "steel", 14.4144), (32, 8, "steel", 15.9744), (37, 7, "steel", 16.1616), (37, 8, "steel", 18.4704),
]  # fmt: skip


def copied(name, tmp_path):
    path = tmp_path / f"{name}.study"
    shutil.copytree(DATA / path.name, path)
    return path


def evaluations(text):
    return {line for line in text.splitlines() if line.startswith("evaluation ")}


def points(text):
    return {line for line in text.splitlines() if line.startswith(("point ", "design "))}


def without_arrays(lines):
    """Which arrays are kept follows the front of the last session."""
    return {line.rsplit(",", 1)[0] for line in lines}


def test_a_store_of_the_first_format_says_what_it_said(tmp_path):
    result = Result.open(copied("format_1", tmp_path))
    outcomes, space = result.outcomes, result.problem.space
    front = result.front()
    named = [space.values(x) for x in outcomes.X[front].tolist()]
    assert [(v["thickness"], v["ribs"], v["material"]) for v in named] == [row[:3] for row in FRONT]
    assert outcomes.objectives[front, 0] == pytest.approx([row[3] for row in FRONT], rel=1e-12)
    counts = result.counts
    assert (counts["points"], counts["designs"], counts["feasible"]) == (43, 43, 29)
    assert (counts["ok"], counts["diverged"]) == (70, 2)
    assert result.message(int(np.flatnonzero(result.status[:, 1] == "diverged")[0]), 1) == "the bracket fell over"


def test_its_evaluations_have_the_keys_that_this_version_gives_them(tmp_path):
    for name in NAMES:
        path = copied(name, tmp_path)
        result = Result.open(path)
        study = designopt.load(path / "study.yaml", plugin_files=[DATA / "bracket.py"])
        assert Problem.from_study(study.definition).digest == result.problem.digest
        recorded = evaluations(dump(result))
        assert recorded <= evaluations(dump(study.run(tmp_path / f"{name}_anew")))


@pytest.mark.parametrize(("name", "stage", "budget"), [("format_1", "search", 60), ("format_1_sweep", "sobol", 16)])
def test_it_goes_on_with_a_larger_budget_as_a_run_that_began_with_it(tmp_path, name, stage, budget):
    path, shown = copied(name, tmp_path), Recorder()
    before = dump(Result.open(path))
    resumed = dump(resume_study(path, plugin_files=PLUGIN, budget={stage: budget}, progress=shown))
    assert shown.events == []
    assert points(before) < points(resumed)
    assert without_arrays(evaluations(before)) < without_arrays(evaluations(resumed))
    study = designopt.load(path / "study.yaml", plugin_files=[DATA / "bracket.py"])
    assert resumed == dump(study.run(tmp_path / "anew", budget={stage: budget}))


def test_a_store_whose_solver_was_told_as_results_came_goes_on_in_the_order_of_the_asks(tmp_path):
    path = copied("format_1_completion", tmp_path)
    plugin = (("uneven.py", (DATA / "uneven.py").read_bytes()),)
    load_file(*plugin[0])
    before = Result.open(path)
    assert before.counts["points"] == 20
    assert before.study.execution.order == "completion"
    recorded = dump(before)
    resumed = dump(resume_study(path, plugin_files=plugin, executor="serial"))
    assert resumed.splitlines()[1:] == recorded.splitlines()[1:]  # the first line is the format
    further = resume_study(path, plugin_files=plugin, executor="serial", budget={"follow": 30})
    assert further.counts["points"] == 30
    assert points(recorded) < points(dump(further))


def test_its_arrays_can_be_read(tmp_path):
    result = Result.open(copied("format_1_sweep", tmp_path))
    best = result.chosen()["best sag"]
    assert result.arrays(best)["bending"][-1] == result.outcomes.figures["sag"][best, 0]


@pytest.mark.parametrize(
    "changed",
    [
        lambda data: data["study"]["space"][0].update(high=7.0),  # as if this version dropped what it does not know
        lambda data: data["study"]["model"].update({"$plugin": "law"}),
    ],
)
@pytest.mark.parametrize("read", [Result.open, resume_study], ids=["open", "resume"])
def test_a_store_of_a_version_whose_problem_cannot_be_read_here_names_that_version(tmp_path, changed, read):
    path = tmp_path / "s"
    run_study(make_study(names=("a",), stages=(listed([0.1]),)), path)
    data = json.loads((path / "problem.json").read_text())
    changed(data)
    for version, said in (
        ("99.0", "written by version 99.0 of designopt, which this one, "),
        (None, "problem.json is "),
    ):
        data["designopt"] = version or versions()["designopt"]
        (path / "problem.json").write_text(json.dumps(data))
        with pytest.raises(StoreError, match=said):
            read(path)


def test_a_store_of_the_second_format_says_what_it_said_without_its_plugin(tmp_path):
    result = Result.open(copied("format_2", tmp_path))
    assert result.counts["points"] == len(result.outcomes) == 10
    assert len(result.cheap) == 40
    best = result.outcomes.X[[result.chosen()["best sway"], result.chosen()["best travel"]]]
    assert best == pytest.approx(np.array([[631.49, 323.62], [3348.0, 260.1]]), rel=1e-3)
    near = result.tolerated()
    assert len(near) == 4
    assert (near.is_recorded.sum(axis=1) == 4).all()
    assert near.feasible.all()
    page = write_report(result, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "cheap evaluations (not part of the results)" in page
