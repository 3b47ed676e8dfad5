"""The page on the whole body: its blocks run, its tables list what there is."""

import re
from pathlib import Path

import pytest
from designopt_wholebody.body.subject import make_subject
from designopt_wholebody.consistency.positions import ConsistencyStatus
from designopt_wholebody.model.library import bundled, content_of
from designopt_wholebody.model.reading import read_model
from designopt_wholebody.trial.marker_set import bundled_marker_sets, read_marker_set

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "whole_body.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


def test_the_python_blocks_run_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    found = blocks("python")
    assert len(found) == 3
    for block in found:
        exec(compile(block, "whole_body.md", "exec"), names)
    printed = capsys.readouterr().out
    assert printed.startswith("252 214 208\n")
    assert float(printed.splitlines()[-1]) < 1e-9


def test_the_model_and_the_marker_set_are_read() -> None:
    model = read_model(blocks("yaml")[0].encode(), "page.yaml", content_of)
    assert list(model.segments) == ["pelvis", "thigh_R", "shank_R", "foot_R"]
    braced = read_model(blocks("yaml")[1].encode(), "page.yaml", content_of)
    assert {"strap_R", "strap_L"} == set(braced.springs)
    assert braced.joints["knee_L"].spring == braced.joints["knee_R"].spring  # w points to the right on both sides
    make_subject(braced)
    markers = read_marker_set(blocks("yaml marker set")[0].encode(), "page.yaml")
    assert set(markers.landmarks) == {"CIAS_R", "PMCP", "MT1_R", "CAQ_R"}


def test_the_tables_list_models_studies_and_statuses() -> None:
    heads = re.findall(r"^\| `([\w.]+)` \|", PAGE, flags=re.MULTILINE)
    assert set(bundled()) < set(heads)
    assert set(bundled_marker_sets()) - {"own_names"} < set(heads)
    for study in (name for name in heads if name.endswith(".yaml")):
        assert (ROOT / "studies" / study).is_file()
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (.*?) \|$", PAGE, flags=re.MULTILINE)
    assert rows == [(s.name, str(int(s)), s.sentence) for s in ConsistencyStatus if s]
