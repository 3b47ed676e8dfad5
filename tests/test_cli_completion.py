"""What the shell completes, and what `--log` writes."""

import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from command import designopt as command

from designopt.cli import main

PAGE = (Path(__file__).parents[1] / "docs" / "command_line.md").read_text(encoding="utf-8")
STUDY = """\
study: small
model: {use: quarter_car}
space: {stiffness: [10 kN/m, 50 kN/m], damping: 1000}
objectives: [{name: ride, minimize: cost}]
solver: {use: sobol, samples: 2}
execution: {executor: serial}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("completion")
    (path / "small.yaml").write_text(STUDY)
    assert command(path, "run", "small.yaml").returncode == 0
    return path


def completed(folder, line):
    """What bash is offered for the last word of `line`."""
    words = line.split(" ")
    environment = {
        **os.environ,
        "_DESIGNOPT_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    process = subprocess.run(
        [str(Path(sys.executable).with_name("designopt"))], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert process.stderr == ""
    return [item.partition(",")[2] for item in process.stdout.split()]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("designopt re", {"report", "resume"}),
        ("designopt show quart", {"quarter_car"}),
        ("designopt show res", {"results/small.study"}),
        ("designopt resume results/s", {"results/small.study"}),
        ("designopt report ", {"results/small.study"}),
        ("designopt run s", {"small.yaml"}),
        ("designopt validate sm", {"small.yaml"}),
        ("designopt new pl", {"plugin"}),
        ("designopt run --exec", {"--executor"}),
    ],
)
def test_names_are_completed(folder, line, offered):
    assert offered <= set(completed(folder, line))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_lines_of_the_page_write_a_script(shell, tmp_path):
    block = next(b for b in re.findall(r"```sh completion\n(.*?)```", PAGE, flags=re.DOTALL) if f"{shell}_source" in b)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    if shell == "bash":
        bash = subprocess.run(["bash", "--version"], capture_output=True, text=True, check=True).stdout
        assert "version" in bash
    process = subprocess.run(
        ["sh", "-e", "-c", block],
        env={**os.environ, "HOME": str(tmp_path), "PATH": path},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    scripts = [p for p in tmp_path.rglob("*designopt*") if p.is_file()]
    assert any("_DESIGNOPT_COMPLETE" in p.read_text() for p in scripts)


def test_messages_are_written_where_they_are_asked_for(folder, monkeypatch):
    (line,) = re.findall(r"```sh log\n(.*?)```", PAGE, flags=re.DOTALL)
    assert line == "designopt --log info run study.yaml\n"
    logger = logging.getLogger("designopt")
    before, handlers = logger.level, list(logging.getLogger().handlers)
    monkeypatch.chdir(folder)
    try:
        answer = CliRunner().invoke(main, ["--log", "info", "validate", "small.yaml"])
        assert answer.exit_code == 0
        assert logger.level == logging.INFO
    finally:
        logger.setLevel(before)
        logging.getLogger().handlers[:] = handlers
    printed = subprocess.run(
        [sys.executable, "-m", "designopt", "--log", "info", "run", "small.yaml", "-o", "logged.study"],
        cwd=folder, capture_output=True, text=True,
    ).stderr  # fmt: skip
    assert re.search(
        r"^\d{4}-\d\d-\d\d .* INFO designopt\.run\.runner: stage 'sobol' begins: sobol$", printed, flags=re.MULTILINE
    ), printed
