"""The example of scaling and inverse kinematics on the page of laboratories."""

import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


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
