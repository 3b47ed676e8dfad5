"""What the README shows works as written."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from command import designopt

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_the_model_of_ones_own_runs_as_printed(tmp_path: Path) -> None:
    (tmp_path / "isolation.py").write_text(blocks("python")[2])
    completed = subprocess.run(
        [sys.executable, "isolation.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert completed.returncode == 0, completed.stderr
    assert (tmp_path / "results" / "isolation.study" / "journal.db").exists()
    front = [float(line.split("'stiffness': ")[1].split(",")[0]) for line in completed.stdout.splitlines()]
    assert len(front) > 3
    assert all(5e3 <= stiffness <= 5e4 for stiffness in front)


def test_a_function_of_ones_own_gives_a_front_in_one_call_as_printed(tmp_path: Path) -> None:
    lines = blocks("python")[1]
    assert len([line for line in lines.splitlines() if line.strip()]) <= 15
    (tmp_path / "mount.py").write_text(lines)
    completed = subprocess.run([sys.executable, "mount.py"], cwd=tmp_path, capture_output=True, text=True, timeout=180)
    assert completed.returncode == 0, completed.stderr
    assert "best travel" in completed.stdout
    (store,) = (tmp_path / "results").glob("mount-*.study")
    assert f"designopt report results/{store.name}" in completed.stdout


def test_the_study_file_is_valid_as_printed(tmp_path: Path) -> None:
    (tmp_path / "knee.yaml").write_text(blocks("yaml")[0])
    completed = designopt(tmp_path, "validate", "knee.yaml")
    assert completed.returncode == 0, completed.stderr


def test_the_model_of_ones_own_serves_a_study_file_through_plugin(tmp_path: Path) -> None:
    (tmp_path / "my_model.py").write_text(blocks("python")[2])
    (tmp_path / "mine.yaml").write_text(
        "study: mine\nmodel: {use: isolated_mass, mass: 320 kg}\n"
        "space:\n  stiffness: {low: 5 kN/m, high: 50 kN/m, unit: N/m}\n  damping: {low: 2e2, high: 5e3, scale: log}\n"
        "objectives:\n  - {name: comfort, minimize: acceleration}\n  - {name: travel, minimize: travel, unit: mm}\n"
        "solver: {use: nsga2, population: 10}\nbudget: {evaluations: 40}\n"
    )
    completed = designopt(tmp_path, "run", "mine.yaml", "--plugin", "my_model.py", "-o", "mine.study")
    assert completed.returncode == 0, completed.stderr
    assert (tmp_path / "mine.study" / "report.html").exists()


def test_the_values_that_are_replaced_on_the_command_line_are_in_the_study_file(tmp_path: Path) -> None:
    (tmp_path / "knee.yaml").write_text(blocks("yaml")[0])
    command_line = next(block for block in blocks("sh") if "--set" in block)
    words = shlex.split(command_line)
    assert words[0] == "designopt"
    completed = designopt(tmp_path, *words[1:], "--dry-run")
    assert completed.returncode == 0, completed.stderr
    assert "at most 200 designs" in completed.stdout


@pytest.mark.parametrize("command", re.findall(r"python3 -m venv .*", README))
def test_the_two_commands_install_the_pinned_versions(command: str) -> None:
    assert "-r constraints.txt" in command
    assert "--no-deps" in command
