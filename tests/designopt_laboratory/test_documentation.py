"""The page on laboratories: its commands, studies and Python run on the bundled folder; its tables are complete."""

import re
import shutil
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from designopt_laboratory.declared import TrialConditions
from designopt_laboratory.trial.poses import TrialStatus

import designopt
from designopt.cli import main
from designopt.plugin import names

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "laboratory.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(ROOT / "studies" / "laboratory", tmp_path / "laboratory", ignore=shutil.ignore_patterns("results"))
    monkeypatch.chdir(tmp_path / "laboratory")
    return tmp_path / "laboratory"


def test_the_first_command_writes_a_valid_study(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    (folder / "laboratory.yaml").unlink()
    new_command, run = blocks("sh")[0].strip().splitlines()
    outcome = CliRunner().invoke(main, new_command.split()[1:])
    assert outcome.exit_code == 0, outcome.output
    assert f"  {run}" in outcome.output.splitlines()
    assert CliRunner().invoke(main, ["validate", run.split()[-1]]).exit_code == 0


def test_the_study_of_the_page_runs_and_exports(folder: Path) -> None:
    (folder / "page.yaml").write_text(blocks("yaml")[0])
    result = designopt.load(folder / "page.yaml").run(folder / "page.study")
    assert set(result.named) == {"usual", "smooth", "cubes"}
    figures = result.outcomes.figures
    assert figures["peak_joint_force"][0, 0] > 1.0  # body weights
    assert figures["mean_cost"][0, 0] != figures["mean_cost"][2, 0]
    arrays = result.arrays(0, 0)
    joints = {name.rpartition("_")[0] for name, kind in zip(arrays["curve_names"], arrays["curve_kinds"], strict=True)
              if kind == "joint force"}  # fmt: skip
    assert joints == {"hip_r", "knee_r"}
    outcome = CliRunner().invoke(main, ["report", str(folder / "page.study"), "--export", "cycles"])
    assert outcome.exit_code == 0, outcome.output
    assert (folder / "page.study" / "cycles.csv").stat().st_size > 1000


def test_the_samples_of_the_page_and_the_bundled_studies_are_valid(folder: Path) -> None:
    study = yaml.safe_load((folder / "uncertainty.yaml").read_text())
    assert set(study["space"]) <= set(re.findall(r"`(\w+)`", PAGE))
    study["scenarios"] = yaml.safe_load(blocks("yaml")[5])["scenarios"]
    (folder / "sampled.yaml").write_text(yaml.safe_dump(study))
    page_study = yaml.safe_load(blocks("yaml")[0])
    scaling, functional, markers, references = (yaml.safe_load(text) for text in blocks("yaml")[1:5])
    (folder / "functional.yaml").write_text(yaml.safe_dump(page_study | functional))
    outcome = CliRunner().invoke(main, ["validate", "functional.yaml"])  # a sample without its movement
    assert outcome.output.count("error:") == 1
    assert "name it with functional" in outcome.output
    page_study |= {"model": scaling["model"] | markers["model"]} | references
    row = "angle,knee_angle,deg,{},-5,4\n"
    (folder / "children.csv").write_text("quantity,variable,unit,percent,mean,sd\n" + row.format(0) + row.format(100))
    (folder / "scaled.yaml").write_text(yaml.safe_dump(page_study))
    for name in ("scaled.yaml", "sampled.yaml", "uncertainty.yaml", "laboratory.yaml"):
        outcome = CliRunner().invoke(main, ["validate", name])
        assert outcome.exit_code == 0, outcome.output


def test_the_python_of_the_page_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(blocks("python")[0], "laboratory.md", "exec"), {})
    assert re.match(r"4\.0 \(\d+, 16\)", capsys.readouterr().out)


def test_the_tables_list_conditions_statuses_parts_and_exports() -> None:
    cells = set(re.findall(r"^\| (`.*?`) \|", PAGE, flags=re.MULTILINE))
    listed = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    files_and_labels = set(TrialConditions.__annotations__) - set(
        re.findall(r"`(\w+)`", PAGE.partition("## What is")[2])
    )
    assert files_and_labels <= listed
    assert {name for name in names("report") if name.startswith("laboratory")} <= listed
    assert {"cycles", "osim"} <= listed
    numbers = {
        int(n) for row in re.findall(r"^\| .*?\| ([\d, ]+) \|$", PAGE, flags=re.MULTILINE) for n in row.split(",")
    }
    assert numbers == {int(status) for status in TrialStatus}


def test_the_example_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("walker.osim", "static.trc", "walk_slow.trc"):
        shutil.copy(ROOT / "studies" / "laboratory" / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "laboratory.md").read_text().partition("## Scaling and inverse kinematics in Python")[2]
    code = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)[0]
    exec(compile(code, "laboratory.md", "exec"), {})
    assert re.match(r"\[[\d. ]+\] \(\d+, \d+\) True", capsys.readouterr().out)
    assert (tmp_path / "ana.osim").stat().st_size > 1000
