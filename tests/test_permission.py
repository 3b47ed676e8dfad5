"""Programs run only if the user allows them by name."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import designopt
from designopt.cli import main
from designopt.plugin import CannotRun, Permission
from designopt.store.errors import resume_command

MODEL = """
import subprocess
from typing import TypedDict

from designopt.plugin import ForeignCode, model


class Outputs(TypedDict):
    twice: float


@model("doubled", version=1)
class Doubled:
    '''Doubles a number with a program.'''

    def runs(self):
        return (ForeignCode("doubling"),)

    def prepare(self, permission):
        self._program = permission.programs["doubling"]

    def evaluate(self, design, scenario) -> Outputs:
        process = subprocess.run([self._program, str(design["x"])], capture_output=True, text=True, check=True)
        return {"twice": float(process.stdout)}
"""

STUDY = """
study: doubled
model: {use: doubled}
space: {x: [0, 1]}
objectives: [{minimize: twice}]
solver: {use: latin_hypercube, samples: 3}
execution: {executor: serial}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "doubled.py").write_text(MODEL)
    (tmp_path / "study.yaml").write_text(STUDY)
    program = tmp_path / "doubling"
    program.write_text(f"#!{sys.executable}\nimport sys\nprint(2.0 * float(sys.argv[1]))\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def designs(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, list(arguments))
    return result.exit_code, result.output


def test_a_study_that_runs_a_program_is_valid_and_says_what_it_runs(folder: Path) -> None:
    code, printed = designs("validate", "study.yaml", "--plugin", "doubled.py")
    assert code == 0
    assert "runs doubling; allow it with: designopt run study.yaml --allow doubling=PATH" in printed


def test_without_permission_a_run_ends_with_the_missing_option_and_writes_nothing(folder: Path) -> None:
    study = designopt.load("study.yaml", plugin_files=["doubled.py"])
    with pytest.raises(CannotRun, match="which is not allowed; if you trust this study, add --allow doubling"):
        study.run("out.study")
    assert not Path("out.study").exists()
    with pytest.raises(CannotRun, match="instead of --allow dubbling"):
        study.run("out.study", allow=["dubbling"])
    with pytest.raises(CannotRun, match=r"add --allow doubling=PATH \(it is not on PATH"):
        study.evaluate({"x": 0.5})


def test_an_allowed_program_runs_and_the_store_keeps_its_option_but_neither_permission_nor_path(folder: Path) -> None:
    study = designopt.load("study.yaml", plugin_files=["doubled.py"])
    result = study.run("out.study", allow=["doubling=doubling"])
    assert result.outcomes.figures["twice"].max() > 1.0
    assert json.loads(Path("out.study/problem.json").read_text())["runs"] == ["doubling=PATH"]
    assert resume_command(Path("out.study")).endswith(" --allow doubling=PATH")
    with pytest.raises(CannotRun):
        designopt.resume("out.study", plugin_files=["doubled.py"])
    resumed = designopt.resume("out.study", plugin_files=["doubled.py"], allow=["doubling=doubling"])
    assert (resumed.outcomes.X == result.outcomes.X).all()


def test_another_program_of_the_same_name_is_noted_and_the_command_asks_for_the_path(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "bin").mkdir()
    installed = folder / "bin" / "doubling"
    installed.write_text(f"#!{sys.executable}\nprint(7)\n")
    installed.chmod(0o755)
    monkeypatch.setenv("PATH", str(installed.parent), prepend=os.pathsep)
    study = designopt.load("study.yaml", plugin_files=["doubled.py"])
    study.run("out.study", allow=["doubling=doubling"])
    assert resume_command(Path("out.study")).endswith(" --allow doubling=PATH")
    assert str(folder) not in Path("out.study/provenance.jsonl").read_text().split('"programs"')[1]
    resume = ["resume", "out.study", "--plugin", "doubled.py", "--allow"]
    assert "another file" not in designs(*resume, "doubling=doubling")[1]
    assert "the program doubling is another file than before" in designs(*resume, "doubling")[1]
    assert resume_command(Path("out.study")).endswith(" --allow doubling")


def test_a_program_that_does_not_exist_is_named_with_the_way_to_give_its_place(folder: Path) -> None:
    study = designopt.load("study.yaml", plugin_files=["doubled.py"])
    with pytest.raises(CannotRun, match="the program 'doubling' is not on PATH; install it, or say where it is"):
        study.run("out.study", allow=["doubling"])
    with pytest.raises(CannotRun, match="nowhere' is not an executable file; install it, or say where it is"):
        study.run("out.study", allow=["doubling=nowhere"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "write NAME"),
        ("bin/x", "write NAME"),
        ("x=", "write NAME"),
        ("x=PATH", "write the file of 'x' in place of PATH"),
    ],
)
def test_a_permission_is_a_name_or_a_name_with_a_path(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Permission.from_options([text])


def test_a_received_store_reports_and_shows_without_running_anything(folder: Path) -> None:
    study = designopt.load("study.yaml", plugin_files=["doubled.py"])
    study.run("out.study", allow=["doubling=doubling"])
    shutil.move("doubling", "moved")
    assert designs("report", "out.study", "--plugin", "doubled.py")[0] == 0
    code, printed = designs("show", "out.study/0", "--plugin", "doubled.py")
    assert code == 0
    assert "--allow doubling=PATH --evaluate   (in place of PATH write the file of doubling)" in printed
    code, printed = designs("show", "out.study/0", "--plugin", "doubled.py", "--evaluate")
    assert code == 2
    assert "add --allow doubling" in printed
