"""The page on mechanics: its blocks run one after the other, its model file is read, its studies are there."""

import re
from pathlib import Path

import pytest
from designopt_mechanics.model_file.reading import read

from designopt.plugin import installed

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "mechanics.md").read_text(encoding="utf-8")


def test_the_blocks_run_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    assert len(blocks) == 9
    for block in blocks:
        exec(compile(block, "mechanics.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "('hip',) ('flexor',) (101, 1, 1)" in printed
    assert "DONE" in printed
    assert "[[0.42778859]] [-0.045]" in printed
    assert "98.0236" in printed
    assert "[80. " in printed  # the tensions with which the motion was made
    assert "True" in printed
    assert r"\ddot{\varphi}_{1}" in printed


def test_the_model_file_shown_is_read() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)
    model = read(block.encode(), "shown.yaml")
    assert [wire.name for wire in model.wires] == ["quadriceps"]
    assert [spring.wire.name for spring in model.springs] == ["ligament"]
    assert [contact.name for contact in model.contacts] == ["heel"]


def test_the_table_names_models_and_studies_that_are_there() -> None:
    models = {entry.name for entry in installed("model")}
    rows = re.findall(r"^\| `(\w+)` \|.*?\| (.*?) \|$", PAGE, flags=re.MULTILINE)
    listed = [(name, re.findall(r"`(?:studies/)?(\w+\.yaml)`", last)) for name, last in rows if ".yaml" in last]
    assert len(listed) == 7
    for name, studies in listed:
        assert name in models
        for study in studies:
            assert f"use: {name}" in (ROOT / "studies" / study).read_text(encoding="utf-8")
