"""Evaluations of a laboratory by CSV: asked, filled in, told, to the end of the study."""

import csv
import shutil
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
        ("0", "dry", "0", ""), ("0", "wet", "0", "5.0"), ("1", "dry", "2", ""), ("1", "wet", "2", "5.0")
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
    text = designopt(folder, "show", "results/rig.study", *PLUGIN).stdout
    assert "no result (specimen broke)" in text
    assert "diverged" not in text
    assert designopt(folder, "ask", "results/rig.study", *PLUGIN).stderr.endswith("the study is complete\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("design,scenario\n0,dry\n", "results.csv:1: column 'wear' is missing; keep the head"),
        ("design,scenario,wear [N]\n0,dry,1\n", r"results.csv:1: column 'wear [N]': "),
        ("design,scenario,wear\n0,dry,much\n", "results.csv:2: column 'wear': 'much' is not a number"),
        ("design,scenario,wear\n7,dry,1\n", "results.csv:2: design 7 in scenario 'dry' was never asked for"),
        ("design,scenario,wear\n0,dry,inf\n", "results.csv:2: column 'wear': 'inf' is no result"),
        ("design,scenario,wear,failed\n0,dry,1,broke\n", "results.csv:2: column 'wear' has a result, and 'failed'"),
        ("design,scenario,load [kN],wear\n0,dry,0.1,1\n", "results.csv:2: column 'load [kN]': 0.1, but design 0 in"),
        ("design,scenario,load [mm],wear\n0,dry,,\n", "results.csv:1: column 'load [mm]': "),
        (
            "design,scenario,rain,wear\n0,wet,4,1\n",
            "results.csv:2: column 'rain': 4, but design 0 in scenario 'wet' was",
        ),
        ("design,scenario,rain,wear\n0,dry,4,1\n", "'dry' was asked for with no value [mm/h]"),
        ("design,scenario,wear\nfirst,dry,1\n", "'first' is not the number of a design"),
        ("design,scenario,wear\n0,dry\n", "results.csv:2: has 2 values, the head has 3 columns"),
        (
            "design,scenario,wear\n0,dry,1\n0,dry,2\n",
            "results.csv:3: design 0 in scenario 'dry' is twice in this file (lines 2 and 3); keep one of them, of"
            " repeated measurements one with their mean",
        ),
    ],
)
def test_results_that_do_not_fit_are_refused_with_their_place_and_nothing_is_recorded(folder, text, message):
    ask(folder, "rig.yaml")
    refused = tell(folder, text)
    assert refused.returncode == 2
    assert message in refused.stderr
    assert open_store(folder / "results/rig.study").counts["evaluations"] == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "design,scenario,wear [mm],wear [cm]\n0,dry,3.5,0.4\n",
            "results.csv:1: 'wear' is the head of 2 columns (3, 4); keep one of them",
        ),
        (
            "design,scenario,load [kN],load [N],wear [mm]\n0,dry,0,0,3.5\n",
            "results.csv:1: 'load' is the head of 2 columns (3, 4); keep one of them",
        ),
        (
            "design,design,scenario,wear [mm]\n0,1,dry,3.5\n",
            "results.csv:1: 'design' is the head of 2 columns (1, 2); keep one of them",
        ),
        (
            "design;scenario;wear [mm]\n0;dry;1,25\n0;wet;12.500\n",
            "results.csv:3: column 'wear': '12.500', and '1,25' in line 2: write all with one decimal mark",
        ),
    ],
    ids=["an output twice", "a parameter twice", "the number twice", "a point beside decimal commas"],
)
def test_results_that_can_be_read_in_two_ways_are_refused(folder, text, message):
    ask(folder, "rig.yaml", "-n", "4")
    completed = tell(folder, text)
    assert completed.returncode == 2
    assert message in completed.stderr
    assert ask(folder, "results/rig.study", "-n", "4")[0]["design"] == "0"


def test_of_an_input_that_is_measured_too_the_first_column_is_the_input(folder):
    (folder / "rig.py").write_text(MODEL.replace('wear: Annotated[float, Q("mm"', 'load: Annotated[float, Q("N"'))
    (folder / "rig.yaml").write_text(STUDY.replace("minimize: wear", "minimize: load"))
    ask(folder, "rig.yaml", "-n", "1")
    head = "design,scenario,kind,load [kN],rain [mm/h],load [N],failed\n"
    unfilled = tell(folder, head + "0,dry,scenario,0,,,\n")
    assert "0 results recorded" in unfilled.stdout
    filled = tell(folder, head + "0,dry,scenario,0,,40,\n0,wet,scenario,0,5.0,60,\n")
    assert filled.returncode == 0, filled.stderr
    assert open_store(folder / "results/rig.study").outcomes.figures["load"][0].tolist() == [40.0, 60.0]


def test_a_store_without_its_plugin_file_says_how_to_pass_it(folder):
    ask(folder, "rig.yaml")
    alone = designopt(folder, "ask", "results/rig.study")
    assert alone.returncode == 4
    assert "--plugin rig.py" in alone.stderr


SEARCH = STUDY.replace(
    "full_factorial, levels: 3}", "gp, startup: 3, look_ahead: 2}\nbudget: {evaluations: 8}"
).replace("scenarios: [{name: dry}, {name: wet, rain: 5}]\n", "")


@pytest.fixture
def search(folder: Path) -> Path:
    """A study whose solver chooses designs by their results."""
    (folder / "rig.yaml").write_text(SEARCH)
    return folder


def measured(rows: list[dict[str, str]], wear: float) -> str:
    return "design,scenario,wear\n" + "".join(f"{row['design']},{row['scenario']},{wear}\n" for row in rows)


def test_values_to_set_are_rounded_and_accepted_as_printed_rounded_or_in_another_unit(search):
    rows = ask(search, "rig.yaml", "-n", "2")
    load = rows[1]["load [kN]"]
    assert 1 <= len(load.replace(".", "").strip("0")) <= 6
    newton = float(load) * 1e3
    refused = tell(search, f"design,scenario,load [kN],wear\n1,nominal,{float(load) + 0.01},1\n")
    assert refused.returncode == 2
    assert f"was asked for with {load} [kN]; a result of another setting" in refused.stderr
    refused = tell(search, "design,scenario,load [kN],wear\n1,nominal,0e1,1\n")  # 0 to 5 by its digits
    assert "0e1, but design 1 in scenario 'nominal' was asked for with" in refused.stderr
    accepted = tell(search, f"design,scenario,load [N],wear\n1,nominal,{newton:.2g},1\n0,nominal,,2\n")
    assert accepted.returncode == 0, accepted.stderr


def test_no_run_evaluates_a_study_of_a_laboratory(search):
    rows = ask(search, "rig.yaml", "-n", "2")
    assert tell(search, measured(rows[:1], 3.0)).returncode == 0
    for command in (["resume", "results/rig.study"], ["run", "rig.yaml"], ["run", "rig.yaml", "--replace"]):
        refused = designopt(search, *command, *PLUGIN)
        assert refused.returncode == 4
        assert "nothing was run. Continue with: designopt ask results/rig.study --plugin rig.py" in refused.stderr
    assert [row["design"] for row in ask(search, "rig.yaml")] == ["1"]
    text = designopt(search, "show", "results/rig.study", *PLUGIN).stdout
    assert "Continue with: designopt ask results/rig.study --plugin rig.py, then designopt tell" in text
    assert "resume" not in text
    assert designopt(search, "report", "results/rig.study", *PLUGIN).returncode == 0
    assert "--evaluate" not in (search / "results/rig.study/report.html").read_text()
    assert "--evaluate" not in designopt(search, "show", "results/rig.study/0", *PLUGIN).stdout


def test_a_result_is_corrected_with_its_former_value_in_the_journal_and_the_search_goes_on(search):
    for wear in (3.0, 2.0, 1.0):  # the last ones are chosen by the results of the first
        assert tell(search, measured(ask(search, "rig.yaml", "-n", "9"), wear)).returncode == 0
    pending = [row["load [kN]"] for row in ask(search, "rig.yaml", "-n", "9")]
    assert len(pending) == 2
    before = open_store(search / "results/rig.study")
    refused = tell(search, "design,scenario,wear\n0,nominal,30\n")
    assert refused.returncode == 2
    assert "results.csv:2: design 0 in scenario 'nominal' is not pending: its result was recorded on" in refused.stderr
    assert "for the mean with another measurement: designopt tell results/rig.study FILE --correct" in refused.stderr
    assert "designopt tell results/rig.study FILE --correct" in refused.stderr
    (search / "results.csv").write_text("design,scenario,wear\n0,nominal,30\n1,nominal,3\n2,nominal,\n")
    corrected = designopt(search, "tell", "results/rig.study", "results.csv", "--correct", *PLUGIN)
    assert corrected.returncode == 0, corrected.stderr
    assert "design 0 in scenario 'nominal': wear = 30.0, formerly wear = 3.0" in corrected.stdout
    assert "1 result corrected in results/rig.study, 1 unchanged (line 3)" in corrected.stdout
    assert "1 row without outputs (line 4): the recorded result stays; to withdraw it, say why in" in corrected.stdout
    result = open_store(search / "results/rig.study")
    assert result.outcomes.figures["wear"][0].item() == 30.0
    assert result.outcomes.X.tolist() == before.outcomes.X.tolist()
    assert [e["text"] for e in result.events if e["kind"] == "corrected"] == [corrected.stdout.splitlines()[0]]
    assert [row["load [kN]"] for row in ask(search, "rig.yaml", "-n", "9")] == pending
    while rows := ask(search, "rig.yaml", "-n", "9"):
        assert tell(search, measured(rows, 2.5)).returncode == 0
    assert len(open_store(search / "results/rig.study").outcomes) == 8


def test_only_a_recorded_result_is_corrected(search):
    ask(search, "rig.yaml")
    (search / "results.csv").write_text("design,scenario,wear\n0,nominal,30\n")
    refused = designopt(search, "tell", "results/rig.study", "results.csv", "--correct", *PLUGIN)
    assert refused.returncode == 2
    assert "design 0 in scenario 'nominal' has no result to correct" in refused.stderr


def test_an_edited_study_goes_on_beside_its_store_with_the_results_there(search):
    rows = ask(search, "rig.yaml", "-n", "3")
    assert tell(search, measured(rows, 3.0)).returncode == 0
    (search / "rig.yaml").write_text(SEARCH.replace("high: 4", "high: 5"))
    refused = designopt(search, "ask", "rig.yaml", *PLUGIN)
    assert refused.returncode == 4
    assert "results/rig.study has another study than rig.yaml:\n  " in refused.stderr
    assert "delete" not in refused.stderr
    assert "designopt ask rig.yaml --beside --plugin rig.py  go on in results/rig.2.study" in refused.stderr
    (search / "rig.yaml").write_text(SEARCH.replace("look_ahead: 2", "look_ahead: 3"))
    row = ask(search, "rig.yaml", "--beside", "-n", "9")[0]
    assert (search / "results/rig.2.study").is_dir()
    assert row["design"] == str(len(rows))
    assert open_store(search / "results/rig.study").counts["evaluations"] == len(rows)


def test_a_copy_of_a_study_names_the_store_with_results_of_its_evaluations(search):
    rows = ask(search, "rig.yaml", "-n", "2")
    assert tell(search, measured(rows, 3.0)).returncode == 0
    (search / "copy.yaml").write_text(SEARCH + "constraints: [{of: wear, max: 2 mm}]\n")
    refused = designopt(search, "ask", "copy.yaml", "--beside", *PLUGIN)
    assert (refused.returncode, refused.stdout) == (4, "")
    assert "there is no store results/copy.study to go beside, and nothing was asked" in refused.stderr
    command = "designopt ask copy.yaml -o results/rig.study --beside --plugin rig.py"
    assert f"results/rig.study has 2 results of the same evaluations; to take over: {command}" in refused.stderr
    first_answer = designopt(search, *command.split()[1:])
    assert [row["design"] for row in csv.DictReader(first_answer.stdout.splitlines())] == ["2"]
    assert (
        "new store results/rig.2.study, beside results/rig.study: takes over up to 2 of its 2 results"
        in first_answer.stderr
    )
    second_answer = designopt(search, *command.split()[1:])
    assert (second_answer.stdout, second_answer.stderr) == (
        first_answer.stdout,
        "continuing results/rig.2.study, beside results/rig.study\n",
    )
    assert "results/rig.2.study has 2 results" in designopt(search, "ask", "copy.yaml", *PLUGIN).stderr


def test_a_run_of_an_edited_study_names_the_command_that_asks_on_beside_its_store(search):
    assert tell(search, measured(ask(search, "rig.yaml", "-n", "2"), 3.0)).returncode == 0
    (search / "rig.yaml").write_text(SEARCH + "constraints: [{of: wear, max: 4 mm}]\n")
    command = "designopt ask rig.yaml --beside --plugin rig.py"
    assert command in designopt(search, "run", "rig.yaml", "--beside", *PLUGIN).stderr
    assert command in designopt(search, "run", "rig.yaml", "--rescore", *PLUGIN).stdout


def test_results_name_the_command_for_the_next_evaluations_not_more_pending_ones(search):
    rows = ask(search, "rig.yaml", "-n", "9")
    first = tell(search, measured(rows[:1], 3.0)).stdout
    assert "1 result recorded in results/rig.study; 1 pending; " in first
    text = tell(search, measured(rows[1:], 2.0)).stdout
    state = text.partition("recorded in results/rig.study; ")[2].strip()
    assert "pending" not in state.replace("1 pending", "")
    further, _, command = state.rpartition("; ")[2].partition(" more to make: ")
    assert command == f"designopt ask results/rig.study -n {further} --plugin rig.py"
    output = designopt(search, *command.split()[1:])
    assert len(output.stdout.splitlines()) >= 1 + int(further)


def test_the_last_evaluations_of_a_study_are_said_to_be_the_last(folder):
    completed = designopt(folder, "ask", "rig.yaml", "-n", "9", *PLUGIN)
    assert "6 of 9: these are the last of the study" in completed.stderr
    (folder / "rig.yaml").write_text(SEARCH.replace("evaluations: 8", "evaluations: 4"))
    store = ("-o", "results/rig.study")
    shutil.rmtree(folder / "results")
    assert tell(folder, measured(ask(folder, "rig.yaml", "-n", "9", *store), 3.0)).returncode == 0
    last = designopt(folder, "ask", "rig.yaml", "-n", "9", *store, *PLUGIN)
    assert "2 of 9: these are the last of the study" in last.stderr


def test_fewer_evaluations_than_were_asked_for_have_a_reason(search):
    completed = designopt(search, "ask", "rig.yaml", "-n", "4", *PLUGIN)
    assert len(completed.stdout.splitlines()) == 1 + 2
    assert (
        "2 of 4: there are no more before the solver has results of these; its setting 'look_ahead'" in completed.stderr
    )
