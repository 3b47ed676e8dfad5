"""A store is data: what is damaged in it is said in one line, whatever it is."""

import shutil

import pytest
from click.testing import CliRunner
from run_cases import Recorder, damage, listed, make_study

from designopt.cli import main
from designopt.run.runner import resume_study, run_study
from designopt.store.errors import StoreError
from designopt.store.result import Result

#: Exit code: the store does not fit.
STORE = 4


def refused(path):
    with pytest.raises(StoreError, match=r"is damaged|do not belong together"):
        _ = Result.open(path).counts, Result.open(path).sessions
    for command in ("show", "report"):
        answer = CliRunner().invoke(main, [command, str(path)])
        assert answer.exit_code == STORE, answer.output


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE meta SET value = 'abc' WHERE name = 'format'",
        "DELETE FROM meta",
        "DROP TABLE session",
        "UPDATE session SET versions = 'x'",
        "UPDATE evaluation SET outputs = '{bad' WHERE design = 1",
        "UPDATE evaluation SET outputs = '[1]' WHERE design = 1",
        "UPDATE evaluation SET number = -1 WHERE design = 1",
        "UPDATE evaluation SET number = 'x' WHERE design = 1",
        "UPDATE evaluation SET kind = 'other' WHERE design = 1",
        "UPDATE design SET x_a = 'abc' WHERE id = 1",
    ],
)
def test_a_damaged_journal_is_refused_with_a_line(store, change):
    damage(store, change)
    refused(store)


@pytest.mark.parametrize("text", ["[" * 100_000, "null", '{"study": 1}', '{"study": {"name": "x"}}'])
def test_a_damaged_problem_is_refused_with_a_line(store, text):
    (store / "problem.json").write_text(text)
    refused(store)
    with pytest.raises(StoreError, match=r"problem.json is damaged"):
        resume_study(store)


def test_a_journal_that_is_no_database_is_refused(store):
    (store / "journal.db").write_bytes(b"no database" * 100)
    with pytest.raises(StoreError, match=r"journal\.db cannot be read"):
        Result.open(store)


def test_a_store_that_is_removed_during_a_run_ends_it(tmp_path):
    path = tmp_path / "s"

    remover = Recorder(at_update=lambda snapshot: shutil.rmtree(path, ignore_errors=True))
    stages = (listed([0.1]), listed([0.2, 0.3], name="more"))
    with pytest.raises(StoreError, match="was removed while the run was writing"):
        run_study(make_study(names=("a",), stages=stages), path, progress=remover)
