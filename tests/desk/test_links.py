"""A link that takes the place of a file or folder after the list was made is followed nowhere."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from command import designopt as command
from serving import SPRINGS, desk

from designopt.desk.runs import Runs
from designopt.desk.views import Refusal
from designopt.store import safe_files

STUDY = SPRINGS.replace("SAMPLES", "4")
SLOW = Path(__file__).with_name("slow_car.py")
STORE, FILE = "results/one.study", "group/springs.yaml"
LINK = "is a symbolic link, which is not followed"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("original") / "folder"
    (path / "group").mkdir(parents=True)
    (path / FILE).write_text(STUDY)
    assert command(path, "run", FILE, "-o", STORE).returncode == 0
    return path


@pytest.fixture
def folder(original, tmp_path):
    return shutil.copytree(original, tmp_path / "folder")


@pytest.fixture
def client(folder):
    shutil.copy(SLOW, folder.parent / "car.py")
    with desk(folder, run=True, plugin_files=[str(folder.parent / "car.py")]) as client:
        state = client.get("/state").json
        assert ([s["place"] for s in state["stores"]], state["studies"]) == ([STORE], [FILE])
        yield client


def replace_by_link(path):
    """Move `path` out of the folder of the desk, and put a link to it in its place; returns its new place."""
    target = next(above for above in path.parents if above.name == "folder").parent / f"outside-{path.name}"
    shutil.move(path, target)
    path.symlink_to(target)
    return target


def contents(folder):
    return {file: file.read_bytes() for file in [folder, *folder.rglob("*")] if file.is_file()}


@pytest.mark.parametrize("replaced", [FILE, "group"])
def test_a_study_behind_a_link_is_neither_read_nor_written_nor_run(client, folder, replaced):
    stamp = client.get("/study", file=FILE).json["stamp"]
    outside = replace_by_link(folder / replaced)
    before = contents(outside)
    answers = [
        client.get("/study", file=FILE),
        client.post("/save", file=FILE, text="study: x", stamp=stamp),
        client.post("/start", file=FILE, store="results/new.study", way=""),
    ]
    if replaced == "group":
        answers.append(client.post("/check", file=FILE, text=STUDY))
    for answer in answers:
        assert answer.status in (404, 409)
        assert LINK in answer.text or "there is no study file" in answer.text
        assert "Springs and dampers" not in answer.text
    assert contents(outside) == before
    assert not (folder / "results" / "new.study").exists()
    assert not list(folder.rglob("*.part"))


@pytest.mark.parametrize("replaced", [STORE, "results"])
def test_a_store_behind_a_link_is_not_opened(client, folder, replaced):
    assert client.get("/question", store=STORE).status == 200
    outside = replace_by_link(folder / replaced)
    before = contents(outside)
    for path in ("/report", "/question", "/progress", "/designs", "/design", "/printed", "/compare"):
        answer = client.get(path, store=STORE, row=0)
        assert answer.status in (404, 409), path
        assert LINK in answer.text or "there is no store" in answer.text, path
    for path in ("/stop", "/resume", "/compute"):
        assert client.post(path, store=STORE, row=0).status in (404, 409), path
    assert client.post("/start", file=FILE, store="results/new.study", way="").status == (
        409 if replaced == "results" else 200
    )
    assert {file: text for file, text in contents(outside).items() if "-shm" not in file.name} == {
        file: text for file, text in before.items() if "-shm" not in file.name
    }


@pytest.mark.parametrize("replaced", ["results", "results/one.study.log"])
def test_a_run_and_its_output_go_through_no_link(folder, replaced):
    (folder / "results" / "one.study.log").write_text("before")
    runs = Runs(folder, [], {})
    store = folder / STORE
    outside = replace_by_link(folder / replaced)
    before = contents(outside)
    assert runs.last_output(store) == ""
    with pytest.raises(Refusal, match=LINK):
        runs.resume(store)
    assert contents(outside) == before


def test_a_plugin_behind_a_link_is_not_loaded(client, folder):
    car = folder.parent / "car.py"
    shutil.move(car, folder.parent / "other.py")
    car.symlink_to(folder.parent / "other.py")
    answer = client.get("/question", store=STORE)
    assert (answer.status, LINK in answer.text) == (409, True)
    answer = client.post("/start", file=FILE, store="results/new.study", way="")
    assert (answer.status, LINK in answer.text) == (409, True)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a list of the open descriptors")
def test_a_folder_is_opened_component_by_component_and_no_descriptor_remains(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "file").write_text("x")
    before = len(os.listdir("/proc/self/fd"))
    with safe_files.folder_descriptor(tmp_path / "a" / "b") as descriptor:
        assert os.path.samestat(os.fstat(descriptor), (tmp_path / "a" / "b").stat())
    with safe_files.folder_descriptor(tmp_path / "c" / "d", create=True) as descriptor:
        shutil.move(tmp_path / "c", tmp_path / "moved")  # the descriptor stays that of the folder
        with safe_files.replacing(tmp_path / "c/d/new", tmp_path / "c/d/part", folder=descriptor) as stream:
            stream.write(b"new")
    assert (tmp_path / "moved" / "d" / "new").read_bytes() == b"new"
    for path in (tmp_path / "link" / "b", tmp_path / "link", tmp_path / "link" / "new"):
        with pytest.raises(safe_files.ForeignFile, match=LINK), safe_files.folder_descriptor(path, create=True):
            pass
    with pytest.raises(safe_files.ForeignFile, match="where a folder is expected"):
        safe_files.check_folder(tmp_path / "file")
    assert not (tmp_path / "a" / "new").exists()
    assert len(os.listdir("/proc/self/fd")) == before
