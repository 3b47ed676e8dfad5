"""The page on predicted walking: its studies are valid, its lines run, its tables list what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from designopt_walking.results.outputs import WalkOutputs

import designopt
from designopt.plugin import installed_plugins

PAGE = Path(__file__).parents[2] / "docs" / "walking.md"
STUDIES = Path(__file__).parents[2] / "studies"


def blocks(language: str) -> list[str]:
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("block", blocks("yaml"))
def test_the_studies_of_the_page_are_valid(block: str) -> None:
    study = designopt.define(**yaml.safe_load(block))
    assert study.definition.model.plugin.name in ("walk_predict", "amputee_walk")


@pytest.mark.slow
def test_the_first_walk_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("first_walk.yaml").write_text(blocks("yaml")[0])
    names: dict = {}
    exec(compile(blocks("python")[0], str(PAGE), "exec"), names)
    assert 2.5 < names["walk"].outcomes.figures["cost_of_transport"][0, 0] < 4.5
    assert names["walk"].outcomes.figures["failed_checks"][0, 0] == 0.0
    assert names["arrays"]["skeleton"].shape[2] == 2


def test_the_table_of_the_report_lists_all_parts_of_the_package() -> None:
    text = PAGE.read_text(encoding="utf-8")
    section = text[text.index("## The report") : text.index("A `recording`")]
    listed = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", section, flags=re.MULTILINE))))
    of_package = {e.name for e in installed_plugins("report") if e.entry.module.startswith("designopt_walking")}
    assert listed == of_package


def test_the_studies_that_the_page_names_are_those_that_use_the_models() -> None:
    named = set(re.findall(r"`(\w+\.yaml)`", PAGE.read_text(encoding="utf-8"))) - {
        "knee_damper.yaml",
        "first_walk.yaml",
    }
    used = re.compile(r"use: (walk_predict|walk_track|walk_track_3d|amputee_walk|squat_to_stand)\b")
    using = {path.name for path in STUDIES.glob("*.yaml") if used.search(path.read_text(encoding="utf-8"))}
    assert named == using


def test_outputs_that_the_page_names_exist() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name in ("failed_checks", "cost_of_transport", "net_cost_of_transport"):
        assert f"`{name}`" in text
        assert name in WalkOutputs.__annotations__
