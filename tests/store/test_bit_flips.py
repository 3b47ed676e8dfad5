"""A bit of the journal that has changed is noticed, named, and repaired by resume where that can be done."""

import random
import shutil

import numpy as np
import pytest
from run_cases import damage, dump, listed, make_study, rewrite

from designopt.run.runner import resume_study, run_study
from designopt.store.errors import DamagedRecord, StoreError
from designopt.store.journal.schema import digest
from designopt.store.result import Result
from designopt.study.study import Scenario, Validation

VALUES = np.linspace(-1.9, 1.9, 60).tolist()


def study():
    """Two scenarios, a validation, refused designs, an objective that is judged from both."""
    return make_study(
        "picky", minimize=("height", "slope"), names=("a",), scenarios=({}, {"shift": 1.0}),
        stages=(listed(VALUES[:30], batch=7, name="first"), listed(VALUES[20:], batch=9, name="second")),
        validate=Validation((Scenario("v0", {"shift": 0.3}),)),
    )  # fmt: skip


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    path = tmp_path_factory.mktemp("intact") / "s"
    run_study(study(), path)
    return path


def contents(path):
    """All that a reader is told."""
    result = Result.open(path)
    validated = result.validation()
    summary = (result.counts, result.events, result.sessions, result.failures(), result.wall.tolist())
    return (dump(result), *summary, validated.statuses.tolist(), validated.objectives.tolist())


def flipped(intact, path, bit):
    shutil.copytree(intact, path)
    data = bytearray((path / "journal.db").read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    (path / "journal.db").write_bytes(data)


def test_of_120_flipped_bits_none_changes_a_result_and_resume_never_records_another(intact, tmp_path):
    expected = contents(intact)
    size = 8 * (intact / "journal.db").stat().st_size
    noticed = repaired = 0
    for number, bit in enumerate(random.Random(11).sample(range(size), 120)):
        path = tmp_path / str(number)
        flipped(intact, path, bit)
        try:
            recovered = contents(path)
        except StoreError as error:
            noticed, text = noticed + 1, str(error)
        else:
            assert recovered == expected, bit
            continue
        assert "journal.db" in text, bit
        try:
            resumed = resume_study(path)
        except StoreError:
            continue
        assert dump(resumed) == expected[0], bit
        repaired += 1
    assert noticed > 10
    assert repaired > 5


DAMAGES = {
    "a figure": "UPDATE evaluation SET outputs = replace(outputs, '0.', '1.') WHERE design = 40 AND number = 1",
    "a status": "UPDATE evaluation SET status = 'diverged' WHERE design = 41 AND number = 0",
    "a key": "UPDATE evaluation SET key = x'00112233445566778899aabbccddeeff' WHERE design = 41 AND number = 0",
    "a validation": "UPDATE evaluation SET outputs = NULL WHERE kind = 'validation'",
    "a kind": "UPDATE evaluation SET kind = 'validation' WHERE design = 41 AND number = 0",
    "a lost evaluation": "DELETE FROM evaluation WHERE design = 42",
    "a design": "UPDATE design SET x_a = x_a + 1e-9 WHERE id = 7",
    "a violation": "UPDATE design SET violation = 1.0 WHERE id = 31",
    "a lost design": "DELETE FROM design WHERE id = 8",
    "the last design": "DELETE FROM design WHERE id = (SELECT MAX(id) FROM design)",
    "the number of a design": "UPDATE design SET id = 1000 WHERE id = 3",
    "a point": "UPDATE point SET design = design + 1 WHERE stage = 1 AND ask = 7",
    "a length": "UPDATE point SET count = count - 1 WHERE stage = 2 AND ask = 0",
    "lost points": "DELETE FROM point WHERE stage = 1 AND ask = 14",
    "the last points": "DELETE FROM point WHERE stage = 2 AND ask = (SELECT MAX(ask) FROM point WHERE stage = 2)",
    "a stage": "UPDATE stage SET name = 'fisrt' WHERE id = 1",
    "a lost stage": "DELETE FROM stage WHERE id = 2",
    "a count": "UPDATE total SET count = 7 WHERE name = 'design'",
    "a session": "UPDATE session SET reason = 'error'",
    "an event": "UPDATE event SET text = 'nothing'",
}


@pytest.mark.parametrize("what", DAMAGES)
def test_changed_files_are_named_and_resume_repairs_them(intact, store, what):
    damage(store, DAMAGES[what])
    with pytest.raises(DamagedRecord, match=r"journal\.db is damaged: .*: designopt resume ") as caught:
        contents(store)
    assert caught.value.path == store
    resume_study(store)
    before, after = contents(intact), contents(store)
    assert after[0] == before[0]
    assert after[1] == before[1]
    assert [e["text"] for e in Result.open(store).events if e["kind"] == "repaired"]


def test_digests_are_the_same_in_every_version_of_python():
    record = (b"\x00\xff", "scenario", 70_000, -1, 2**40, "größer", None, 0.1, 1e300, -2.5, "")
    assert digest(record) == 2052327619


def test_the_message_names_the_evaluation_its_design_and_the_way_out(store):
    key = Result.open(store).recorded_problem.keys(Result.open(store).outcomes.X[[45]])[0][1].hex()
    damage(store, f"UPDATE evaluation SET wall = wall + 1.0 WHERE hex(key) = upper('{key}')")
    text = rf"the record of evaluation {key} \(design 45, scenario 1\) is computed again with: designopt resume {store}"
    with pytest.raises(DamagedRecord, match=text):
        _ = Result.open(store).counts


def test_how_a_stage_ended_cannot_be_had_again_and_is_reported(store):
    rewrite(store, "INSERT INTO ending VALUES (1, 3, 4, '[]', 1.0, 0)")
    damage(store, "UPDATE ending SET told = 5")
    with pytest.raises(StoreError, match=r"how a stage ended.*cannot be recovered"):
        resume_study(store)
    assert Result.open(store).counts["designs"] > 0
