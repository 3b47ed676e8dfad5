"""What the page on trajectories shows runs as it stands."""

import re
from pathlib import Path

import casadi as ca
import pytest

from designopt.collocation import Status

PAGE = (Path(__file__).parents[2] / "docs" / "trajectories.md").read_text(encoding="utf-8")


def test_the_blocks_of_the_page_run_one_after_the_other(capsys, tmp_path):
    names = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        exec(block, names)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("SOLVED ")
    # with a free spring the block needs less than the 12 N^2 s that it takes without (analytic, Kelly 2017)
    assert names["found"].objective < 12.0
    assert names["fine"].error_estimate < 1e-7
    *_, none, some, more, _, _, cost = printed  # a spring of 0, 5 and 10 N/m, and iterations of neighbouring solves
    assert [float(line.split()[0]) for line in (none, some, more)] == [0.0, 5.0, 10.0]
    assert float(none.split()[1]) == pytest.approx(12.0, rel=1e-8)
    assert float(cost) == pytest.approx(3.61517, abs=5e-6)  # Runge-Kutta 4 with 1000 steps and IPOPT: 3.6152
    result = names["study"].run(tmp_path / "s", executor="serial")  # without a parameter
    assert result.outcomes.objectives.tolist() == [[float(cost)]]
    assert [record.status for record in result.programs()] == ["solved"]
    assert names["path"].layout.title.text == "Path of x and y"
    _, out, _, on, _ = names["path"].data
    assert (out.name, on.name) == ("out", "on")
    lift = ca.Function("lift", [names["height"]], [names["updraft"]])
    assert float(lift(40.0)) == pytest.approx(2.5, abs=1e-9)
    assert min((x - 40.0) ** 2 + (y - 40.0) ** 2 for x, y in zip(on.x, on.y, strict=True)) > 35.9


def test_the_blocks_of_the_page_on_estimation_run_one_after_the_other(capsys):
    page = (Path(__file__).parents[2] / "docs" / "estimation.md").read_text(encoding="utf-8")
    names = {}
    for block in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL):
        exec(block, names)
    estimation = names["found"]
    assert estimation.identifiable
    # the table was made with 0.8 m, 0.25 /s and errors of one degree
    for name, truth in (("length", 0.8), ("friction", 0.25)):
        assert estimation.unknowns[name].low < truth < estimation.unknowns[name].high
    assert 0.01 < estimation.p_value < 0.99
    assert names["poor"].undetermined == ("stiffness +1 %, mass +1 %",)
    assert "3 of 4" in capsys.readouterr().out


def test_every_status_is_reported_for():
    described = set(re.findall(r"`([A-Z_]+)`", PAGE))
    assert {status.name for status in Status} - described <= {"FAILED"}
