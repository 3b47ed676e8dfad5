"""What the pages in docs/ show is accepted as written."""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from designopt import define
from designopt.run.store import read_study

PAGE = (Path(__file__).parents[1] / "docs" / "study_files.md").read_text()

#: What a study needs besides a section that is shown by itself.
REST = {
    "study": "shown",
    "model": {"use": "four_bar_knee"},
    "space": {"stiffness": [12e3, 30e3], "damping_ratio": [0.02, 0.12]},
    "objectives": [{"name": "mismatch", "minimize": "1 - rho"}],
    "stages": [{"name": "look", "solver": {"use": "full_factorial", "levels": 2}}],
}


@pytest.mark.parametrize("block", re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL))
def test_every_example_of_a_section_is_a_valid_one(block: str) -> None:
    shown = yaml.safe_load(block)
    assert define(**{**REST, **shown}).definition.model.plugin.name == "four_bar_knee"


def test_the_example_of_a_report_is_a_valid_one() -> None:
    text = re.search(r"^`(\{plots: .*?\})`:", PAGE, flags=re.MULTILINE)
    assert text is not None
    report = yaml.safe_load(text.group(1))
    names = [use.plugin.name for use in define(**REST, report=report).definition.plots]
    assert names == ["front", "map", "knee_angle"]


def test_the_table_of_execution_lists_every_key_with_its_default() -> None:
    from designopt.study.schema import ExecutionSection

    section = PAGE[PAGE.index("## `execution`") : PAGE.index("What an evaluation can end in")]
    assert set(re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)) == set(ExecutionSection.__annotations__)


def test_the_table_of_failure_classes_lists_all_of_them_in_their_order() -> None:
    from designopt.problem import STATUSES

    section = PAGE[PAGE.index("What an evaluation can end in") : PAGE.index("## `report`")]
    assert tuple(re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)) == STATUSES


PLUGINS = (Path(__file__).parents[1] / "docs" / "plugins.md").read_text()


def shown(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PLUGINS, flags=re.DOTALL)


@pytest.fixture
def kerb(tmp_path: Path) -> Path:
    """A folder with the plugins and the study of the page on plugins."""
    (tmp_path / "kerb.py").write_text("\n".join(shown("python")))
    (tmp_path / "kerb.yaml").write_text(shown("yaml")[0])
    return tmp_path


def python(folder: Path, *arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_plugins_shown_keep_the_rules_that_are_checked_beside_them(kerb: Path) -> None:
    (kerb / "test_kerb.py").write_text(shown("python test")[0])
    python(kerb, "test_kerb.py")


def test_the_commands_shown_for_plugins_work_one_after_the_other(kerb: Path) -> None:
    commands = shown("sh")[0].splitlines()
    printed = [python(kerb, "-m", *shlex.split(command)) for command in commands]
    assert "damping" in printed[0]
    assert "a valid study" in printed[1]
    assert "best rebound" in printed[3]
    assert read_study(kerb / "results" / "kerb.study").stages[0].budget.evaluations == 96
    assert re.search(r"^last session +done$", printed[4], re.MULTILINE)
    assert "Designs tried" in (kerb / "results" / "kerb.study" / "report.html").read_text()


def test_a_store_that_cannot_be_judged_without_a_file_asks_for_it(kerb: Path) -> None:
    python(kerb, "-m", "designopt", "run", "kerb.yaml", "--plugin", "kerb.py", "-o", "s.study", "--executor", "serial")
    for command in ("report", "show"):
        arguments = [sys.executable, "-m", "designopt", command, "s.study"]
        done = subprocess.run(arguments, cwd=kerb, capture_output=True, text=True, timeout=60)
        assert done.returncode == 4
        assert "no plugin named 'root_mean_square'" in done.stderr
        assert "--plugin FILE" in done.stderr
        assert "Traceback" not in done.stderr
        python(kerb, *arguments[1:], "--plugin", "kerb.py")


def test_the_lines_that_read_a_result_run_as_printed(kerb: Path) -> None:
    (kerb / "read.py").write_text(shown("python result")[0])
    lines = python(kerb, "read.py").splitlines()
    assert [line.split(" {")[0] for line in lines[:3]] == ["best rebound", "best calm", "compromise"]
    assert "'peak'" in lines[-1]


def test_the_entry_points_shown_name_the_plugins_shown(kerb: Path) -> None:
    from designopt.plugin import GROUPS

    points = tomllib.loads(shown("toml")[0])["project"]["entry-points"]
    assert set(points) == set(GROUPS.values())
    source = (kerb / "kerb.py").read_text()
    for group in points.values():
        for name, place in group.items():
            target = place.removeprefix("kerbs:")
            assert re.search(rf'@\w+\(\s*"{name}", version=1(?s:.*?)\)\n(?:def|class) {target}\b', source), name


def test_every_block_of_the_page_on_plugins_is_one_that_is_tried() -> None:
    languages = re.findall(r"^```(.+)$", PLUGINS, flags=re.MULTILINE)
    once = ["python result", "python test", "sh", "toml", "yaml"]
    assert sorted(language for language in languages if language != "python") == once
