"""Evaluations of a laboratory by CSV: asked, filled in, told, to the end of the study."""

import csv
from pathlib import Path

import pytest
from command import designopt

from designopt import open_store

MODEL = '''
from typing import Annotated, TypedDict
from designopt import Quantity as Q, model

class Sample(TypedDict):
    load: Annotated[float, Q("N", "on the specimen")]

class Weather(TypedDict, total=False):
    rain: Annotated[float, Q("mm/h", "on the specimen")]

class Out(TypedDict):
    wear: Annotated[float, Q("mm", "after an hour")]

@model("rig", version=1)
def rig(design: Sample, scenario: Weather) -> Out:
    """A rig in the laboratory."""
    raise RuntimeError("the rig stands in a laboratory")
'''
STUDY = """\
study: rig
model: {use: rig}
space: {load: {low: 0, high: 4, unit: kN}}
scenarios: [{name: dry}, {name: wet, rain: 5}]
objectives: [{minimize: wear}]
solver: {use: full_factorial, levels: 3}
"""
PLUGIN = ("--plugin", "rig.py")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rig.py").write_text(MODEL)
    (tmp_path / "rig.yaml").write_text(STUDY)
    return tmp_path


def ask(folder: Path, *arguments: str) -> list[dict[str, str]]:
    completed = designopt(folder, "ask", *arguments, *PLUGIN)
    assert completed.returncode == 0, completed.stderr
    return list(csv.DictReader(completed.stdout.splitlines()))


def tell(folder: Path, text: str):
    (folder / "results.csv").write_text(text)
    return designopt(folder, "tell", "results/rig.study", "results.csv", *PLUGIN)


def test_a_study_is_carried_out_by_hand_to_its_end(folder):
    rows = ask(folder, "rig.yaml", "-n", "4")
    assert list(rows[0]) == ["design", "scenario", "kind", "load [kN]", "rain [mm/h]", "wear [mm]", "failed"]
    assert [(row["design"], row["scenario"], row["load [kN]"], row["rain [mm/h]"]) for row in rows] == [
        ("0", "dry", "0.0", ""), ("0", "wet", "0.0", "5.0"), ("1", "dry", "2.0", ""), ("1", "wet", "2.0", "5.0")
    ]  # fmt: skip
    first = tell(folder, "design,scenario,wear [mm]\n0,dry,3.5\n0,wet,4\n1,dry,\n")
    assert first.returncode == 0, first.stderr
    assert "2 results recorded in results/rig.study; 4 pending" in first.stdout
    assert [row["design"] for row in ask(folder, "results/rig.study", "-n", "9")] == ["1", "1", "2", "2"]
    text = "design;scenario;wear [cm];failed\n1;dry;0,25;\n1;wet;0,3;\n2;dry;;specimen broke\n2;wet;0,9;\n"
    last = tell(folder, text)
    assert last.returncode == 0, last.stderr
    assert "4 results recorded in results/rig.study; the study is complete" in last.stdout
    result = open_store(folder / "results/rig.study")
    assert result.outcomes.figures["wear"][1].tolist() == [2.5, 3.0]
    assert "broke" in str(result.reason[2, 0])
    assert designopt(folder, "ask", "results/rig.study", *PLUGIN).stderr.endswith("the study is complete\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("design,scenario\n0,dry\n", "results.csv:1: column 'wear' is missing; keep the head"),
        ("design,scenario,wear [N]\n0,dry,1\n", r"results.csv:1: column 'wear [N]': "),
        ("design,scenario,wear\n0,dry,much\n", "results.csv:2: column 'wear': 'much' is not a number"),
        ("design,scenario,wear\n7,dry,1\n", "results.csv:2: design 7 in scenario 'dry' is not pending"),
        ("design,scenario,wear\nfirst,dry,1\n", "'first' is not the number of a design"),
        ("design,scenario,wear\n0,dry\n", "results.csv:2: has 2 values, the head has 3 columns"),
        ("design,scenario,wear\n0,dry,1\n0,dry,2\n", "results.csv:3: design 0 in scenario 'dry' is not pending"),
    ],
)
def test_results_that_do_not_fit_are_refused_with_their_place_and_nothing_is_recorded(folder, text, message):
    ask(folder, "rig.yaml")
    refused = tell(folder, text)
    assert refused.returncode == 2
    assert message in refused.stderr
    assert open_store(folder / "results/rig.study").counts["evaluations"] == 0


def test_a_store_without_its_plugin_file_says_how_to_pass_it(folder):
    ask(folder, "rig.yaml")
    alone = designopt(folder, "ask", "results/rig.study")
    assert alone.returncode == 4
    assert "--plugin rig.py" in alone.stderr
