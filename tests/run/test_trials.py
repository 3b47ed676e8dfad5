"""Trials as scenarios: files of a folder or of a table, data roots, and how files come to workers."""

import os
import re
from pathlib import Path

import command
import numpy as np
import pytest
from command import Done
from dask_processes import Cluster

from designopt import load, open_store
from designopt.report.labels import recompute

MODEL = '''
from typing import Annotated, Required, TypedDict
import os
import numpy as np
from designopt import InputFile, Quantity as Q, model

class Conditions(TypedDict, total=False):
    trial: Required[InputFile]
    mass: Required[Annotated[float, Q("kg", "body mass", gt=0)]]
    speed: Annotated[float, Q("m/s", "walking speed", ge=0)]

class Out(TypedDict):
    peak: Annotated[float, Q("N", "peak force")]
    suffix: Annotated[float, Q("", "1 when the path keeps the suffix of the name")]

@model("gait", version=1)
def gait(design, scenario: Conditions) -> Out:
    """The peak of a recorded force, in body masses."""
    trial = scenario["trial"]
    with trial.path() as path:
        values = np.fromfile(path)
    assert values.tobytes() == trial.content
    return {"peak": float(values.max()) * scenario["mass"], "suffix": float(path.suffix == ".f64")}
'''

FILES = """\
study: trials
model: {use: gait}
scenarios: {use: files, pattern: trials/*.f64, with: {mass: 70 kg}}
solver: {use: evaluate}
execution: {executor: serial}
"""

TABLE = """\
study: subjects
model: {use: gait}
scenarios:
  - use: table
    file: gait:subjects.csv
    with: {speed: 1.2 m/s}
solver: {use: evaluate}
execution: {executor: serial}
"""

SUBJECTS = "name,trial,mass [g]\nana,s1/walk.f64,60000\nben,s2/walk.f64,80000\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A study folder with three trials, and a data root beside it."""
    study_folder, data = tmp_path / "here", tmp_path / "laboratory"
    for n in (1, 2, 3):
        (study_folder / "trials").mkdir(parents=True, exist_ok=True)
        np.arange(float(10 * n)).tofile(study_folder / f"trials/walk{n}.f64")
    (study_folder / "trials/notes.txt").write_text("not a trial")
    (study_folder / "trials/._walk1.f64").write_text("of another system")
    for n in (1, 2):
        (data / f"s{n}").mkdir(parents=True)
        np.full(5, float(n)).tofile(data / f"s{n}/walk.f64")
    (data / "subjects.csv").write_text(SUBJECTS)
    (study_folder / "gait.py").write_text(MODEL)
    (study_folder / "files.yaml").write_text(FILES)
    (study_folder / "table.yaml").write_text(TABLE)
    return study_folder


def designopt(folder: Path, *arguments: str) -> Done:
    return command.designopt(folder, *arguments, "--plugin", "gait.py")


def test_every_file_that_matches_is_a_scenario(folder: Path) -> None:
    process = designopt(folder, "run", "files.yaml", "-o", "s.study")
    assert process.returncode == 0, process.stderr
    result = open_store(folder / "s.study")
    assert [s.name for s in result.problem.scenarios] == ["walk1", "walk2", "walk3"]
    np.testing.assert_array_equal(result.outcomes.figures["peak"], [[70.0 * 9, 70.0 * 19, 70.0 * 29]])
    np.testing.assert_array_equal(result.outcomes.figures["suffix"], [[1.0, 1.0, 1.0]])


def test_every_row_of_a_table_in_a_data_root_is_a_scenario(folder: Path) -> None:
    process = designopt(folder, "run", "table.yaml", "--data", "gait=../laboratory", "-o", "s.study")
    assert process.returncode == 0, process.stderr
    result = open_store(folder / "s.study")
    assert [s.name for s in result.problem.scenarios] == ["ana", "ben"]
    np.testing.assert_array_equal(result.outcomes.figures["peak"], [[60.0, 160.0]])
    assert result.problem.scenarios[0].values["speed"] == 1.2
    # The store has neither the recordings nor the place where they are.
    assert "laboratory" not in (folder / "s.study/problem.json").read_text()
    assert [p.stat().st_size for p in (folder / "s.study/files").iterdir() if p.stat().st_size == 40] == []


def test_the_folder_of_a_data_root_is_given_again_to_a_resume(folder: Path) -> None:
    root = ("--data", "gait=../laboratory")
    assert designopt(folder, "run", "table.yaml", *root, "-o", "s.study").returncode == 0
    without = designopt(folder, "resume", "s.study")
    assert without.returncode == 4
    assert "the run used the data root 'gait'" in without.stderr
    assert "--data gait=FOLDER" in without.stderr
    assert designopt(folder, "resume", "s.study", *root).returncode == 0
    design_text = designopt(folder, "show", "s.study/0")
    assert "recompute it: designopt show s.study/0 --plugin gait.py --data gait=FOLDER --evaluate" in design_text.stdout
    assert "--data gait=FOLDER" in recompute(open_store(folder / "s.study"), 0)
    repeated = designopt(folder, "show", "s.study/0", "--evaluate", *root)
    assert repeated.returncode == 0, repeated.stdout + repeated.stderr
    assert "the same as recorded, bit for bit" in repeated.stdout
    assert designopt(folder, "report", "s.study", "--set", "title=again").returncode == 0
    np.ones(5).tofile(folder.parent / "laboratory/s2/walk.f64")
    changed = designopt(folder, "resume", "s.study", *root)
    assert changed.returncode == 4
    assert "file 'gait:s2/walk.f64' differs from the one that the run began with" in changed.stderr


MISTAKES = [
    ("files.yaml", "trials/*.f64", "«trials/*.c3d»", "no file matches 'trials/*.c3d'"),
    ("files.yaml", "trials/*.f64", "«../laboratory/*.f64»", "lies outside its folder"),
    ("files.yaml", "trials/*.f64", "«/etc/*»", "is not a file name relative to the study file"),
    (
        "files.yaml",
        "trials/*.f64",
        "«lab:*.f64»",
        "there is no data root 'lab'; give its folder with --data lab=FOLDER",
    ),
    ("files.yaml", "mass: 70 kg", "mass: «70 m»", "'m' cannot be converted to 'kg'"),
    ("files.yaml", "mass: 70 kg", "«mas»: 70 kg", "has no scenario condition 'mas'; did you mean 'mass'?"),
    ("files.yaml", "with: {mass: 70 kg}", "as: «mass», with: {mass: 1}", "no scenario condition 'mass' that is a file"),
    ("files.yaml", "use: files", "use: «file»", "no plugin named 'file'"),
    ("files.yaml", "pattern: trials/*.f64", "«patern»: x", "unknown key 'patern'; did you mean 'pattern'?"),
    ("table.yaml", "gait:subjects.csv", "«gait:subject.csv»", "file 'gait:subject.csv' does not exist; did you mean"),
    ("table.yaml", "speed: 1.2 m/s", "«mass»: 3", "subjects.csv:1:12: 'mass' is also in 'with'"),
]


@pytest.mark.parametrize(("file", "find", "replacement", "message"), MISTAKES)
def test_a_mistake_is_answered_at_its_place(folder: Path, file: str, find: str, replacement: str, message: str) -> None:
    text = (folder / file).read_text().replace(find, replacement)
    before = text.partition("«")[0]
    position = f"{file}:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"
    (folder / file).write_text(text.replace("«", "").replace("»", ""))
    process = designopt(folder, "validate", file, "--data", "gait=../laboratory")
    assert process.returncode == 2
    assert message in process.stderr
    if "subjects.csv:" not in message:
        assert position in process.stderr


CELLS = [
    ("80000", "-8", "gait:subjects.csv:3:17: must be above 0 kg"),
    ("s2/walk", "s3/walk", "gait:subjects.csv:3:5: file 'gait:s3/walk.f64' does not exist"),
    ("s2/walk", "../../here/trials/walk1", "lies outside the data root 'gait'"),
    ("[g]", "[m]", "gait:subjects.csv:2:17: incompatible units"),
    ("ben", "ana", "gait:subjects.csv:3:1: there is another scenario named 'ana'"),
    (",80000", ",", "gait:subjects.csv:3: 'mass' is missing (body mass, in kg)"),
    ("mass", "mas", "gait:subjects.csv:1:12: unknown key 'mas'; did you mean 'mass'?"),
]


@pytest.mark.parametrize(("find", "replacement", "message"), CELLS)
def test_a_mistake_in_the_table_is_reported_with_its_cell(
    folder: Path, find: str, replacement: str, message: str
) -> None:
    (folder.parent / "laboratory/subjects.csv").write_text(SUBJECTS.replace(find, replacement))
    process = designopt(folder, "validate", "table.yaml", "--data", "gait=../laboratory")
    assert process.returncode == 2
    assert message in process.stderr
    assert "table.yaml:5:11" in process.stderr


def test_a_data_root_is_a_folder_with_a_name(folder: Path) -> None:
    for data_root, reason in (
        ("gait", "write NAME=FOLDER"),
        ("g=.", "at least two letters"),
        ("gait=nowhere", "the folder 'nowhere' does not exist"),
    ):
        process = designopt(folder, "validate", "table.yaml", "--data", data_root)
        assert process.returncode == 2
        assert reason in process.stderr


def test_workers_that_share_no_disk_are_sent_each_file_once(folder: Path, tmp_path: Path) -> None:
    """The scheduler is somebody else's: its workers get the names of no paths, and ask for contents by digest."""
    from designopt.run.runner import run_study
    from designopt.workers.remote.delivery import Delivery

    cluster = Cluster(tmp_path, "--nthreads", "1", "--nworkers", "2")
    try:
        cluster.wait_for(2)
        study = load(folder / "files.yaml", plugin_files=[folder / "gait.py"]).definition
        delivery = Delivery.for_problem(study).for_other_machines()
        assert str(folder) not in repr([vars(v) if hasattr(v, "__dict__") else v for _, v, *_ in delivery.scenarios])
        assert all(not values["trial"].at_hand for _, values, _ in delivery.scenarios)
        result = run_study(study, tmp_path / "s.study", scheduler=cluster.address, executor="dask")
    finally:
        cluster.close()
    np.testing.assert_array_equal(result.outcomes.figures["peak"], [[70.0 * 9, 70.0 * 19, 70.0 * 29]])


def test_a_file_that_changes_while_the_run_goes_is_read_from_the_store(folder: Path) -> None:
    """Of the study's own folder there is a copy; the original may be edited meanwhile."""
    from designopt.store import archive
    from designopt.store.folder import Store

    study = load(folder / "files.yaml", plugin_files=[folder / "gait.py"])
    with Store.create(folder / "s.study", study.definition, study.problem):
        os.unlink(folder / "trials/walk1.f64")
        contents = [file.content for file in archive.files(study.definition) if file.name.endswith("1.f64")]
    assert contents == [np.arange(10.0).tobytes()]


def test_the_trials_of_the_page_on_study_files_are_valid(folder: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/study_files.md").read_text()
    blocks = dict(re.findall(r"```(\w+ trials)\n(.*?)```", page, flags=re.DOTALL))
    laboratory = folder.parent / "laboratory"
    (laboratory / "subjects.csv").write_text(blocks["csv trials"])
    for trial_folder in (folder / "trials", laboratory / "s1", laboratory / "s2"):
        (trial_folder / "walk.csv").write_text("0")
    (folder / "page.yaml").write_text(
        f"study: page\nmodel: {{use: gait}}\n{blocks['yaml trials']}solver: {{use: evaluate}}\n"
    )
    study = load(folder / "page.yaml", plugin_files=[folder / "gait.py"], data={"gait": laboratory})
    assert [(s.name, s.values["mass"]) for s in study.problem.scenarios] == [
        ("walk", 70.0),
        ("ana", 60.0),
        ("ben", 80.0),
    ]
