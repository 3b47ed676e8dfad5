"""The page on muscle-force sharing: its lines run as printed, its tables list what there is."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from designopt_muscle.models.static_sharing import SharingDesign

PAGE = Path(__file__).parents[2] / "docs" / "muscle_sharing.md"
STUDIES = Path(__file__).parents[2] / "studies"


def test_the_lines_for_python_run_as_printed(capsys):
    (block,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    names: dict = {}
    exec(compile(block, str(PAGE), "exec"), names)
    printed = capsys.readouterr().out
    assert names["sharing"].status.tolist() == [0, 0, 100]
    assert np.isfinite(names["sharing"].activations).all()
    assert "1 of 3 frames infeasible" in printed
    assert "elbow by up to 17 N m; 1.4 times the strength would be enough" in printed


def test_the_table_of_criteria_lists_all_of_them():
    written = re.findall(r"^\| `(\w+)` \| the ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    known = re.search(r"Literal\[([^\]]+)\]", str(SharingDesign.__annotations__["criterion"]))
    assert known is not None
    assert sorted(written) == sorted(re.findall(r"\w+", known.group(1)))


def test_the_studies_of_the_page_are_those_that_use_the_models():
    named = set(re.findall(r"`studies/(\w+\.yaml)`", PAGE.read_text(encoding="utf-8")))
    used = re.compile(r"use: (muscle|dynamic)_sharing\b")
    using = {path.name for path in STUDIES.glob("*.yaml") if used.search(path.read_text(encoding="utf-8"))}
    assert named == using
