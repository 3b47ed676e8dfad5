"""What `designopt new` writes runs as it stands: studies answer, the package installs and its tests pass."""

import contextlib
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from command import can_build_wheels

from designopt import load, templates
from designopt.cli import main
from designopt.study.remarks import remarks


@pytest.fixture(autouse=True)
def work_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def designopt(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def python(*arguments: str, site: Path, folder: Path) -> str:
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, *arguments]
    completed = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": path}
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout


def test_without_a_template_they_are_listed() -> None:
    answer = designopt("new")
    assert answer.exit_code == 0
    assert [line.split()[0] for line in answer.output.splitlines()[:7]] == [
        "damper",
        "isolation",
        "drive",
        "program",
        "controller",
        "experiment",
        "plugin",
    ]
    assert "designopt new TEMPLATE" in answer.output


def test_the_damper_template_is_a_valid_study_with_the_name_that_is_given(work_folder: Path) -> None:
    answer = designopt("new", "damper", "-o", "my_knee.yaml")
    assert answer.output.splitlines()[0] == "wrote  my_knee.yaml"
    assert "  designopt run my_knee.yaml" in answer.output.splitlines()
    assert load("my_knee.yaml").name == "my_knee"
    assert not any("will be empty" in note for note in remarks(load("my_knee.yaml").definition))
    assert "#   designopt run my_knee.yaml " in Path("my_knee.yaml").read_text()
    assert designopt("new", "damper", "-o", "a file.yaml", "--name", "patient").exit_code == 0
    assert "#   designopt validate 'a file.yaml' " in Path("a file.yaml").read_text()
    assert designopt("new", "damper", "--name", "other").exit_code == 0
    assert load("other.yaml").name == "other"


@pytest.mark.parametrize("template", ["isolation", "controller", "experiment"])
def test_a_template_works_at_once_by_the_commands_that_are_printed(work_folder: Path, template: str) -> None:
    creation = designopt("new", template)
    commands = [line.strip() for line in creation.output.partition("next:\n")[2].splitlines()]
    assert commands[0] == f"cd {template}"
    with contextlib.chdir(template):
        for command in commands[1:]:
            fewer = ["--budget", "sms_emoa=60"] if command == "designopt run controller.yaml" else []
            answer = designopt(*command.split()[1:], *fewer)
            assert answer.exit_code == 0, answer.output
    store = work_folder / template / "results" / f"{template}.study"
    assert (store / "journal.db").exists()
    assert (store / "report.html").exists() == (template != "experiment")  # whose results are still missing


def test_the_plugin_template_installs_its_tests_pass_and_its_study_runs(work_folder: Path) -> None:
    answer = designopt("new", "plugin", "--name", "lander")
    assert answer.exit_code == 0, answer.output
    package, site = work_folder / "lander", work_folder / "site"
    isolation = ["--no-build-isolation"] if can_build_wheels() else []
    install = ["-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", *isolation]
    python(*install, "--target", str(site), str(package), site=site, folder=work_folder)
    assert "3 passed" in python("-m", "pytest", "-q", "-p", "no:cacheprovider", site=site, folder=package)
    listed = python("-m", "designopt", "list", "models", site=site, folder=work_folder)
    assert "lander                 lander 0.1.0" in listed
    printed = python("-m", "designopt", "run", "lander.yaml", site=site, folder=package)
    assert "best stroke" in printed
    assert (package / "results" / "lander.study" / "report.html").exists()


def test_every_entry_point_of_the_package_leads_to_a_plugin_of_that_name(work_folder: Path) -> None:
    assert designopt("new", "plugin", "--name", "strut").exit_code == 0
    points = tomllib.loads((work_folder / "strut" / "pyproject.toml").read_text())["project"]["entry-points"]
    source = (work_folder / "strut" / "strut" / "model.py").read_text()
    assert points == {
        "designopt.models": {"strut": "strut.model:strut"},
        "designopt.objectives": {"strut_efficiency": "strut.model:efficiency"},
    }
    assert 'strut",\n    version=1' in source
    assert '@objective("strut_efficiency", version=1)\ndef efficiency(' in source


def test_no_placeholder_is_left_in_what_is_written(work_folder: Path) -> None:
    for name in templates.TEMPLATES:
        assert designopt("new", name, "--name", "some_name").exit_code == 0
        if name != "damper":
            (work_folder / "some_name").rename(work_folder / name)
    for file in filter(Path.is_file, work_folder.rglob("*")):
        assert "{{name}}" not in file.read_text()
        assert "NAME" not in str(file.relative_to(work_folder))
        assert not file.name.endswith(templates.SUFFIX)


def test_nothing_is_overwritten(work_folder: Path) -> None:
    (work_folder / "damper.yaml").write_text("mine")
    answer = designopt("new", "damper")
    assert answer.exit_code == 2
    assert "damper.yaml already exists; choose another place with -o" in answer.output
    assert (work_folder / "damper.yaml").read_text() == "mine"
    (work_folder / "full").mkdir()
    (work_folder / "full" / "mine.txt").write_text("mine")
    assert designopt("new", "plugin", "-o", "full").exit_code == 2
    assert [p.name for p in (work_folder / "full").iterdir()] == ["mine.txt"]
    (work_folder / "empty").mkdir()
    assert designopt("new", "isolation", "-o", "empty").exit_code == 0
    assert (work_folder / "empty" / "empty.py").exists()


@pytest.mark.parametrize(
    "name", ["my plugin", "Lander", "2nd", "class", "numpy", "json", "designopt", "_x", "ß", "a-b", ""]
)
def test_a_name_that_cannot_be_one_is_refused(name: str, work_folder: Path) -> None:
    answer = designopt("new", "plugin", "--name", name)
    assert answer.exit_code == 2
    assert f"'{name}' cannot be a name here" in answer.output
    assert not list(work_folder.iterdir())


def test_a_template_that_there_is_not_is_reported_with_the_nearest() -> None:
    answer = designopt("new", "dampr")
    assert answer.exit_code == 2
    assert "no template named 'dampr'; did you mean 'damper'?" in answer.output
    assert "-o and --name need a template" in designopt("new", "--name", "x").output
    assert "the FMU is missing: designopt new fmu FILE.fmu" in designopt("new", "fmu").output


def test_a_place_that_cannot_be_written_is_reported(work_folder: Path) -> None:
    (work_folder / "file").write_text("")
    answer = designopt("new", "damper", "-o", "file/x.yaml")
    assert answer.exit_code == 2
    assert "file already exists; choose another place with -o" in answer.output
    answer = designopt("new", "damper", "-o", "/proc/x.yaml")
    assert answer.exit_code == 4
    assert "error: /proc/x.yaml: cannot be written: " in answer.output


def test_the_program_template_runs_at_once_by_the_commands_that_are_printed(work_folder: Path) -> None:
    answer = designopt("new", "program", "-o", "bar")
    assert "  designopt run bar.yaml --allow python3" in answer.output.splitlines()
    os.chdir("bar")
    checked = designopt("validate", "bar.yaml")
    assert checked.exit_code == 0, checked.output
    result = load("bar.yaml", overrides=["budget.evaluations=20"]).run(allow=["python3"])
    assert result.outcomes.feasible.any()
    mass, width, height = (result.outcomes.figures["mass"][:, 0], *result.outcomes.X.T)
    assert mass == pytest.approx(7.8e-6 * width * height * 1000.0, rel=1e-4)  # the input file has four decimals
