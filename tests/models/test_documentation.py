"""What the page on own equations of motion shows runs as it stands."""

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import designopt
from designopt.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "own_dynamics.md").read_text(encoding="utf-8")


def test_the_page_shows_the_template_and_its_commands_and_lines_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, model, lines = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    (commands,) = re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL)
    for command in commands.splitlines():
        if command == "cd drive":
            monkeypatch.chdir("drive")
            continue
        answer = CliRunner().invoke(main, command.split()[1:])
        assert answer.exit_code == 0, answer.output
    assert Path("drive.py").read_text() == model

    spec = importlib.util.spec_from_file_location("drive", "drive.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "drive", module)
    spec.loader.exec_module(module)
    names = {}
    exec(lines, names)
    figures, drive = names["figures"], names["drive"]
    assert set(names["slopes"]) == set(figures)
    step = 1e-4
    ends = [drive.evaluate({**names["design"], "gain": 0.5 + s * step}, {"brake": 2.0})[0] for s in (1, -1)]
    for name in ("deviation", "effort", "rise_time"):
        expected = (ends[0][name] - ends[1][name]) / (2 * step)
        assert names["slopes"][name]["gain"] == pytest.approx(expected, rel=1e-4)
    assert names["about"].A.shape == (4, 4)
    assert np.abs(np.linalg.eigvals(names["about"].A).imag).max() == pytest.approx(
        np.sqrt(200.0 * (1 / 0.02 + 1 / 0.05)), rel=0.05
    )  # the shaft's natural frequency
    assert set(names["problem"].figures) == {"deviation", "effort"}


def test_the_smallest_example_of_the_page_finds_a_front_within_its_limit(tmp_path, monkeypatch):
    (tmp_path / "foot.py").write_text(re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)[0])
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    foot = importlib.import_module("foot").Foot
    space = {"damping": [200, 5000], "stiffness": [5e3, 50e3]}
    limit = {"peak_travel": {"max": 0.03}}
    result = designopt.minimize(foot, space, evaluations=120, constraints=limit, executor="serial")
    front = result.front()
    assert len(front) > 5
    assert (result.outcomes.objectives[front][:, 0] <= 0.03).all()
