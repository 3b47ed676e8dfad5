"""The page on muscle-force sharing: its lines run as printed, its tables list what there is."""

import re
from pathlib import Path

import numpy as np
from designopt_mechanics.sharing.statement.criteria import CRITERIA

import designopt

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
    assert "elbow by up to 17 N m; 1.4 times the strength would be sufficient" in printed


def test_the_table_of_criteria_lists_all_of_them():
    listed = re.findall(r"^\| `(\w+)` \| the ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(listed) == sorted(CRITERIA)


def test_the_studies_of_the_page_are_those_that_use_the_models():
    named = set(re.findall(r"`studies/(\w+\.yaml)`", PAGE.read_text(encoding="utf-8")))
    used = re.compile(r"use: (muscle|dynamic|wire)_sharing\b")
    using = {path.name for path in STUDIES.glob("*.yaml") if used.search(path.read_text(encoding="utf-8"))}
    assert named == using


def blocks(folder):
    """The study files of the page, written to `folder`."""
    text = PAGE.read_text(encoding="utf-8")
    for i, block in enumerate(re.findall(r"^```yaml\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)):
        path = folder / f"{i}.yaml"
        path.write_text(block, encoding="utf-8")
        yield path


def test_the_study_of_a_loaded_knee_runs_as_printed(opensim, tmp_path):
    path = next(p for p in blocks(tmp_path) if "knee_load" in p.read_text())
    figures = (
        designopt.load(path, data={"opensim": opensim}).run(tmp_path / "store", executor="serial").outcomes.figures
    )
    assert figures["infeasible_frames"][0, 0] == 0.0
    assert 2000.0 < figures["peak_reaction"][0, 0] < 5000.0  # N, of a hip, a knee or an ankle in walking


def test_the_study_with_measured_activity_runs_as_printed(tmp_path):
    path = next(p for p in blocks(tmp_path) if "with_emg" in p.read_text())
    time = np.arange(0.0, 2.5, 0.01)
    rows = [f"{t:.2f},{0.3 + 0.2 * np.sin(6 * t):.6f},{0.2:.6f}" for t in time]
    (tmp_path / "emg.csv").write_text("time,SOL,GM\n" + "\n".join(rows) + "\n")
    figures = designopt.load(path).run(tmp_path / "store", executor="serial").outcomes.figures
    assert figures["infeasible_frames"][0, 0] == 0.0
    assert figures["unanswered_frames"][0, 0] == 0.0


def test_every_study_file_of_the_page_is_run(tmp_path):
    assert len(list(blocks(tmp_path))) == 2
