"""What a session notes of the working copy that a model's file lies in."""

import json
import shutil
import subprocess

import pytest

from designopt.store.provenance import _revision, recall_stores


@pytest.mark.skipif(shutil.which("git") is None, reason="git")
def test_the_revision_is_that_of_the_model_s_working_copy_and_dirty_with_changes_to_what_is_committed(tmp_path):
    def git(*arguments):
        who = ("-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false")
        return subprocess.run(
            ["git", "-C", str(tmp_path), *who, *arguments], check=True, capture_output=True, text=True
        )

    model = tmp_path / "model.py"
    model.write_text("1\n")
    assert _revision(None) == (None, None)
    git("init", "-q")
    git("add", "model.py")
    assert _revision(model) == (None, None)  # nothing is committed
    git("commit", "-q", "-m", "one")
    (tmp_path / "notes.txt").write_text("not of the repository\n")
    head = git("rev-parse", "HEAD").stdout.strip()
    assert _revision(model) == (head, False)
    model.write_text("2\n")
    assert _revision(model) == (head, True)


@pytest.mark.parametrize("damage", [3, "old.study", {"old.study": 1}, ["", 3, None, "a\0b", "x" * 5000, "gone.study"]])
def test_a_damaged_list_of_stores_names_those_that_exist(tmp_path, damage):
    for name in ("new.study", "old.study"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "journal.db").touch()
    lines = [{"recall": damage}, {"recall": [str(tmp_path / "old.study")]}]
    (tmp_path / "new.study" / "provenance.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert recall_stores(tmp_path / "new.study") == [tmp_path / "old.study"]
