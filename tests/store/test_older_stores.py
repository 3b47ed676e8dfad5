"""A store of an earlier version opens and says the same; one that cannot be read names its version."""

import contextlib
import json
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from run_cases import listed, make_study

from designopt.report import write_report
from designopt.run.runner import resume_study, run_study
from designopt.store.errors import StoreError
from designopt.store.journal.schema import FORMAT
from designopt.store.provenance import versions
from designopt.store.result import Result

DATA = Path(__file__).with_name("data")


def copied(name, tmp_path):
    path = tmp_path / f"{name}.study"
    shutil.copytree(DATA / path.name, path)
    return path


@pytest.mark.parametrize(
    "changed",
    [
        lambda data: data["study"]["space"][0].update(high=7.0),  # as if this version dropped what it does not know
        lambda data: data["study"]["model"].update({"$plugin": "law"}),
    ],
)
@pytest.mark.parametrize("read", [Result.open, resume_study], ids=["open", "resume"])
def test_a_store_of_a_version_whose_problem_cannot_be_read_here_names_that_version(tmp_path, changed, read):
    path = tmp_path / "s"
    run_study(make_study(names=("a",), stages=(listed([0.1]),)), path)
    data = json.loads((path / "problem.json").read_text())
    changed(data)
    for version, message in (
        ("99.0", "written by version 99.0 of designopt, which this one, "),
        (None, "problem.json is "),
    ):
        data["designopt"] = version or versions()["designopt"]
        (path / "problem.json").write_text(json.dumps(data))
        with pytest.raises(StoreError, match=message):
            read(path)


def test_a_store_of_the_second_format_says_what_it_said_without_its_plugin(tmp_path):
    result = Result.open(copied("format_2", tmp_path))
    assert result.counts["points"] == len(result.outcomes) == 10
    assert len(result.cheap) == 40
    best = result.outcomes.X[[result.chosen()["best sway"], result.chosen()["best travel"]]]
    assert best == pytest.approx(np.array([[631.49, 323.62], [3348.0, 260.1]]), rel=1e-3)
    near = result.tolerated()
    assert len(near) == 4
    assert (near.is_recorded.sum(axis=1) == 4).all()
    assert near.feasible.all()
    page = write_report(result, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "cheap evaluations (not part of the results)" in page


def test_a_journal_of_the_second_format_is_continued_and_rewritten_after_damage(tmp_path):
    """Its evaluations are a tree by their keys."""
    path = tmp_path / "s"
    study = make_study(names=("a",), stages=(listed([0.1, 0.2]),))
    run_study(study, path)
    with contextlib.closing(sqlite3.connect(path / "journal.db")) as db:
        (text,) = db.execute("SELECT sql FROM sqlite_master WHERE name = 'evaluation'").fetchone()
        db.execute("ALTER TABLE evaluation RENAME TO present")
        db.execute(f"{text} WITHOUT ROWID")
        db.execute("INSERT INTO evaluation SELECT * FROM present")
        db.execute("DROP TABLE present")
        db.execute("UPDATE meta SET value = '2' WHERE name = 'format'")
        db.commit()
    expected = Result.open(path).outcomes.objectives
    assert run_study(study, path, resume=True).outcomes.objectives.tolist() == expected.tolist()
    with contextlib.closing(sqlite3.connect(path / "journal.db")) as db:
        db.execute("UPDATE evaluation SET wall = wall + 1.0 WHERE design = 1")
        db.commit()
    assert run_study(study, path, resume=True).outcomes.objectives.tolist() == expected.tolist()
    with contextlib.closing(sqlite3.connect(path / "journal.db")) as db:
        assert db.execute("SELECT value FROM meta WHERE name = 'format'").fetchone() == (str(FORMAT),)
