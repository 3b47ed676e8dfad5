"""What the desk finds below a folder."""

import json
import os
import shutil
import socket
from pathlib import Path
from typing import Annotated, TypedDict

import pytest

import designopt
from designopt import Quantity
from designopt.desk.folder import Folder
from designopt.store.disk.lock import Lock, holder, process_start


class Ends(TypedDict):
    """What the spring gives."""

    low: Annotated[float, Quantity("", "a number")]
    high: Annotated[float, Quantity("", "another")]


@designopt.model("desk_spring", version=1)
def spring(design, scenario) -> Ends:
    """Two numbers of a spring."""
    return {"low": design["k"], "high": 1.0 / design["k"]}


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("made") / "s.study"
    designopt.define(
        study="springs", title="Springs", model={"use": spring}, space={"k": [1.0, 2.0]},
        objectives=[{"name": "low", "minimize": "low"}, {"name": "high", "minimize": "high"}],
        solver={"use": "sobol", "samples": 8}, execution={"executor": "serial"},
    ).run(path)  # fmt: skip
    return path


def test_stores_and_studies_are_found_wherever_they_lie(store, tmp_path):
    shutil.copytree(store, tmp_path / "results" / "deep" / "s.study")
    (tmp_path / "a.yaml").write_text("# a study\nstudy: a\n")
    (tmp_path / "b.yaml").write_text("not: a study\n")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "c.yaml").write_text("study: c\n")
    stores, studies = Folder(tmp_path).look()
    assert [(s.place, s.title, s.state, s.designs, s.evaluations) for s in stores] == [
        ("results/deep/s.study", "Springs", "done", 8, 8)
    ]
    assert studies == ["a.yaml"]  # what lies within a store, its study.yaml, is the store's


def test_no_run_continues_a_store_whose_evaluations_are_made_elsewhere(tmp_path):
    study = designopt.define(
        study="springs", model={"use": spring}, space={"k": [1.0, 2.0]},
        objectives=[{"name": "low", "minimize": "low"}], solver={"use": "sobol", "samples": 2},
    )  # fmt: skip
    study.ask(2, store=tmp_path / "asked.study")
    study.run(tmp_path / "run.study", executor="serial")
    entries = {entry.place: entry.made_elsewhere for entry in Folder(tmp_path).look()[0]}
    assert entries == {"asked.study": True, "run.study": False}


def test_stores_of_one_title_are_told_apart_by_the_names_of_their_folders(store, tmp_path):
    folder = Folder(tmp_path)
    shutil.copytree(store, tmp_path / "results" / "first.study")
    assert [s.title for s in folder.look()[0]] == ["Springs"]
    shutil.copytree(store, tmp_path / "results" / "second.study")
    assert sorted(s.title for s in folder.look()[0]) == ["Springs: first", "Springs: second"]
    shutil.copytree(store, tmp_path / "old" / "first.study")
    assert sorted(s.title for s in folder.look()[0]) == [
        "Springs: old/first.study",
        "Springs: results/first.study",
        "Springs: second",
    ]


def test_a_name_that_is_nearly_that_of_a_store_or_a_study_is_answered_with_it(store, tmp_path):
    shutil.copytree(store, tmp_path / "results" / "first.study")
    (tmp_path / "springs.yaml").write_text("study: a\n")
    folder = Folder(tmp_path)
    with pytest.raises(
        KeyError, match=r"there is no store 'results/frist.study' here; did you mean 'results/first.study'"
    ):
        folder.store("results/frist.study")
    with pytest.raises(KeyError, match=r"there is no store 'other' here; stores here: results/first.study"):
        folder.store("other")
    with pytest.raises(KeyError, match=r"there is no study file 'spring.yaml' here; did you mean 'springs.yaml'"):
        folder.study("spring.yaml")


def test_a_file_that_becomes_a_study_is_found(tmp_path):
    folder = Folder(tmp_path)
    (tmp_path / "b.yaml").write_text("not: a study\n")
    assert folder.look()[1] == []
    (tmp_path / "b.yaml").write_text("study: a study now\n")
    os.utime(tmp_path / "b.yaml", ns=(1, 1))
    assert folder.look()[1] == ["b.yaml"]


def test_links_lead_nowhere(store, tmp_path):
    (tmp_path / "link").symlink_to(store.parent)
    (tmp_path / "study.yaml").symlink_to(store / "study.yaml")
    assert Folder(tmp_path).look() == ([], [])


@pytest.mark.parametrize("path", ["", ".", "..", "../made/s.study", "/etc", "results/../..", "\0", "no such"])
def test_only_what_was_found_has_a_place(tmp_path, path):
    folder = Folder(tmp_path)
    with pytest.raises(KeyError):
        folder.store(path)
    with pytest.raises(KeyError):
        folder.study(path)


def test_a_damaged_store_says_why_it_cannot_be_read(tmp_path):
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "journal.db").write_bytes(b"no database" * 100)
    ((listed,), _) = Folder(tmp_path).look()
    assert (listed.state, listed.evaluations) == ("unreadable", 0)
    assert listed.problem


def test_a_title_that_is_no_text_is_replaced_by_the_name(store, tmp_path):
    shutil.copytree(store, tmp_path / "s.study")
    for content in ("[]", '{"study": 3}', "[" * 5000):
        (tmp_path / "s.study" / "problem.json").write_text(content)
        assert Folder(tmp_path).look()[0][0].title == "s.study"


def test_a_store_that_is_held_is_running(store, tmp_path):
    shutil.copytree(store, tmp_path / "s.study")
    folder = Folder(tmp_path)
    before = folder.look()[0][0]
    lock = Lock(tmp_path / "s.study")
    try:
        running = folder.look()[0][0]
        assert (before.state, running.state) == ("done", "running")
        assert running.stamp != before.stamp
        assert holder(tmp_path / "s.study") == os.getpid()
    finally:
        lock.release()
    assert folder.look()[0][0].state == "done"
    assert holder(tmp_path / "s.study") is None


def test_a_note_without_the_lock_makes_no_holder(store, tmp_path):
    """A received store could name any process, which is not to be stopped for it."""
    shutil.copytree(store, tmp_path / "s.study")
    note = {"host": socket.gethostname(), "pid": os.getpid(), "started": process_start(os.getpid())}
    (tmp_path / "s.study" / "lock").write_text(json.dumps(note))
    assert holder(tmp_path / "s.study") is None


def test_looking_at_a_store_changes_neither_its_date_nor_the_order_of_the_list(store, tmp_path):
    for name, date in (("earlier", 1_000_000_000), ("later", 1_100_000_000)):
        shutil.copytree(store, tmp_path / name)
        for file in (tmp_path / name).iterdir():
            os.utime(file, (date, date))
    folder = Folder(tmp_path)
    before = folder.look()[0]
    assert [entry.place for entry in before] == ["later", "earlier"]
    assert designopt.open_store(tmp_path / "earlier").counts["evaluations"] == 8
    assert [(entry.place, entry.changed, entry.stamp) for entry in folder.look()[0]] == [
        (entry.place, entry.changed, entry.stamp) for entry in before
    ]
