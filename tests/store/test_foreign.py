"""Nothing outside the store's own folder is read, written or removed, whatever a received store has in the places of
its files and folders."""

import os
import shutil

import numpy as np
import pytest
from click.testing import CliRunner
from run_cases import dump, listed, make_study, rewrite

from designopt.cli import main
from designopt.exports import export
from designopt.files import InputFile
from designopt.report import write_report
from designopt.run.runner import resume_study, run_study
from designopt.store.disk.lock import Lock, at_work
from designopt.store.errors import StoreError
from designopt.store.result import Result

pytestmark = pytest.mark.timeout(60)  # a pipe that is waited for

FILES = ("journal.db", "journal.db-wal", "problem.json", "study.yaml", "lock", "provenance.jsonl", "start_from.json")


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    path = tmp_path_factory.mktemp("intact") / "s"
    study = make_study(
        "wave", minimize=("square",), names=("a",), stages=(listed([1.0, 0.5, 0.25]),), text="study: test",
        execution={"executor": "serial", "arrays": {"signal": "all"}},
    )  # fmt: skip
    run_study(study, path)
    return path


@pytest.fixture
def elsewhere(tmp_path):
    """A folder of somebody's, with files that bear the names of arrays."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "letter.txt").write_text("dear")
    (folder / ("0" * 32 + ".npz")).write_bytes(b"precious")
    return folder


def contents(folder):
    return {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def refused(store, text):
    """Every way to open the store says `text`."""
    with pytest.raises(StoreError, match=text):
        _ = Result.open(store).counts
    with pytest.raises(StoreError, match=text):
        resume_study(store)
    answer = CliRunner().invoke(main, ["show", str(store)])
    assert answer.exit_code == 4, answer.output


@pytest.mark.parametrize("name", ["arrays", "arrays/00", "files", "logs", "tls"])
def test_a_folder_that_is_a_link_is_not_followed(store, elsewhere, name):
    before = contents(elsewhere)
    shutil.rmtree(store / name, ignore_errors=True)
    (store / name).symlink_to(elsewhere)
    refused(store, f"{name}: is a symbolic link, which is not followed;")
    assert contents(elsewhere) == before


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_a_link_is_not_followed(store, elsewhere, name):
    target = elsewhere / name
    if (store / name).exists():
        shutil.move(store / name, target)
    else:
        target.write_bytes(b"{}")
    before = contents(elsewhere)
    (store / name).symlink_to(target)
    refused(store, f"{name}: is a symbolic link, which is not followed;")
    assert contents(elsewhere) == before


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_special_files_are_reported_without_waiting(store, name, kind):
    (store / name).unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(store / name)
    else:
        (store / name).mkdir()
    refused(store, f"{name}: is a {kind}.* where a file is expected; move it away")
    assert not at_work(store)
    if name == "lock":
        with pytest.raises(StoreError, match=f"lock: is a {kind}|cannot be written: Is a directory"):
            Lock(store)


def test_a_file_in_the_place_of_a_folder_of_arrays_is_reported(store):
    (store / "arrays" / "README").write_text("mine")
    refused(store, "README: is in place of a folder of arrays; move it away")


def test_arrays_that_are_a_link_are_not_read_and_resume_replaces_the_link(store, elsewhere):
    (file, *_) = sorted((store / "arrays").glob("*/*.npz"))
    outside = elsewhere / "signal.npz"
    np.savez(outside, signal=np.arange(3.0))
    before = contents(elsewhere)
    expected = dump(Result.open(store))
    file.unlink()
    file.symlink_to(outside)
    messages = ""
    for row in range(3):
        try:
            assert Result.open(store).arrays(row)["signal"].shape == (11,)
        except StoreError as error:
            messages += str(error)
    assert "is a symbolic link, which is not followed" in messages
    with pytest.raises(StoreError, match="is a symbolic link"):  # links deep in a folder are looked for before writing
        resume_study(store)
    assert contents(elsewhere) == before
    file.unlink()
    resumed = resume_study(store)
    assert dump(resumed) == expected
    assert [resumed.arrays(row)["signal"].shape for row in range(3)] == [(11,)] * 3


@pytest.mark.parametrize("reference", ["../elsewhere/letter.txt", "/etc/passwd", "arrays/00/../../problem.json", ""])
def test_arrays_that_the_journal_places_elsewhere_are_not_read(store, elsewhere, reference):
    rewrite(store, f"UPDATE evaluation SET arrays = '{reference}'")
    result = Result.open(store)
    if reference:
        with pytest.raises(StoreError, match="refers to arrays outside of the store"):
            result.arrays(0)
    else:
        assert result.arrays(0) == {}


def test_resume_removes_what_bears_the_name_of_a_key_and_nothing_else(store):
    folder = next((store / "arrays").glob("*/*.npz")).parent
    orphan, unfinished = folder / f"{folder.name}{'0' * 30}.npz", folder / f".{folder.name}{'1' * 30}.npz.new"
    unrelated = [
        folder / "notes.txt",
        folder / "0.npz",
        folder / f"zz{'0' * 30}.npz",
        folder / f"{folder.name}{'2' * 30}.npz",
    ]
    for file in (orphan, unfinished, *unrelated[:3]):
        file.write_bytes(b"x")
    unrelated[3].mkdir()
    resume_study(store)
    assert not orphan.exists()
    assert not unfinished.exists()
    assert all(file.exists() for file in unrelated)


def test_a_folder_in_the_place_of_arrays_is_reported_by_show_and_by_resume(store):
    (file, *_) = sorted((store / "arrays").glob("*/*.npz"))
    file.unlink()
    file.mkdir()
    output = ""
    for row in range(3):
        answer = CliRunner().invoke(main, ["show", f"{store}/{row}"])
        assert isinstance(answer.exception, SystemExit | None)
        assert answer.exit_code == (4 if "is a folder" in answer.output else 0)
        output += answer.output
    assert "is a folder, where a file is expected" in output
    with pytest.raises(StoreError, match=r"npz: is a folder, where a file is expected; move it away"):
        resume_study(store)


def test_pages_and_exports_do_not_follow_links_of_their_names(store, elsewhere, monkeypatch):
    before = contents(elsewhere)
    monkeypatch.setattr("os.getpid", lambda: 77)
    names = ("report.html", "report.html.77.part", "designs.csv", ".designs.csv.part", "designs.csv-metadata.json")
    for name in names:
        (store / name).symlink_to(elsewhere / "letter.txt")
    result = Result.open(store)
    write_report(result, store / "report.html")
    export(result, store, ["csv"])
    assert contents(elsewhere) == before
    assert not any((store / name).is_symlink() for name in names if not name.endswith(".part"))


def test_a_file_of_the_study_with_another_content_is_damaged(tmp_path):
    study = make_study(names=("a",), stages=(listed([1.0]),), scenarios=({"table": InputFile("t.csv", b"1,2\n")},))
    run_study(study, tmp_path / "s")
    (file,) = (tmp_path / "s" / "files").iterdir()
    file.write_bytes(b"1,3\n")
    with pytest.raises(StoreError, match=r"files/[0-9a-f]{32} is damaged: its content is another one"):
        Result.open(tmp_path / "s")


@pytest.mark.parametrize(
    "note", ["[1]", '{"pid": "x", "host": "y"}', '{"pid": 1e400, "host": 1, "started": 1}', "[" * 4000]
)
def test_a_note_that_says_nothing_locks_nothing(tmp_path, note, monkeypatch):
    monkeypatch.setattr("designopt.store.disk.lock.file_system", lambda path: "nfs4")
    (tmp_path / "lock").write_text(note)
    assert not at_work(tmp_path)
    Lock(tmp_path).release()
