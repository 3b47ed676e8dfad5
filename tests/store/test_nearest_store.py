"""A name that leads to no store is answered with those that may be meant."""

from pathlib import Path

import pytest
from command import designopt

from designopt.store.nearest_store import NAMED, nearest_store, suggestion


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("one.study", "two.study"):
        (tmp_path / "results" / name).mkdir(parents=True)
        (tmp_path / "results" / name / "journal.db").touch()
    (tmp_path / "results" / "notes").mkdir()
    return tmp_path


def test_a_misspelt_store_is_answered_with_the_right_one_and_a_folder_with_what_is_in_it(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert nearest_store(Path("results/onne.study")) == "; did you mean 'results/one.study'?"
    assert nearest_store(Path("one.study")) == "; did you mean 'results/one.study'?"
    assert nearest_store(Path("results")) == "; stores here: results/one.study, results/two.study"
    assert nearest_store(Path("results/notes")) == ""
    (folder / "results/one.study/study.yaml").write_text("# a mount\nstudy: engine_mount  # of 2026\n")
    assert nearest_store(Path("results/engine_mount.study")) == (
        "; the study 'engine_mount' has the store 'results/one.study'"
    )
    assert nearest_store(Path("nowhere/at/all")) == ""


def test_many_stores_are_not_all_named():
    stores = [f"store_{i}" for i in range(NAMED + 3)]
    assert suggestion("other", stores).endswith(f"{stores[NAMED - 1]} and 3 more")


@pytest.mark.parametrize(
    "command", [("report", "results/onne.study"), ("resume", "results/onne.study"), ("show", "onne.study")]
)
def test_the_command_line_names_it_too(folder, command):
    process = designopt(folder, *command)
    assert process.returncode in (2, 4)
    assert process.stderr.rstrip().endswith("did you mean 'results/one.study'?")


def test_a_file_in_place_of_a_store_or_of_its_parent_is_reported_as_a_file(tmp_path: Path) -> None:
    (tmp_path / "car.yaml").write_text(
        "study: car\nmodel: {use: car}\nspace: {a: [1, 2]}\nobjectives: [{minimize: b}]\n"
        "solver: {use: random, samples: 2}\n"
    )
    (tmp_path / "car.py").write_text("def car(design, scenario):\n    return {'b': design['a']}\n")
    process = designopt(tmp_path, "resume", "car.yaml")
    assert (process.returncode, process.stderr) == (4, "car.yaml: is a file; a store is a folder\n")
    process = designopt(tmp_path, "run", "car.yaml", "--plugin", "car.py", "-o", "car.yaml/s.study")
    assert process.returncode == 4
    assert "car.yaml is a file, so there can be no folder below it" in process.stderr
    process = designopt(tmp_path, "run", ".")
    assert process.returncode == 2
    assert "'.' is a folder" in process.stderr
