"""Models that compute many designs in one call."""

import numpy as np
import pytest
from run_cases import dump, listed, make_study, use

from designopt.plugin import PluginError, model
from designopt.run.runner import run_study
from designopt.testing import check_model
from designopt.workers.evaluation.serial import Serial

VALUES = np.linspace(-1.2, 1.2, 50)
SERIAL = {"executor": "serial"}
TWO_WORKERS = {"executor": "dask", "workers": 2}


def study(values=VALUES, execution=SERIAL, **settings):
    return make_study(
        "rows", names=("a",), low=-2.0, high=2.0, minimize=("value",), scenarios=({}, {"shift": 0.5}),
        stages=(listed(values),), settings=settings, execution={"arrays": {"signal": "all"}, **execution},
    )  # fmt: skip


def test_a_chunk_is_computed_in_calls_of_the_size_that_the_model_likes(tmp_path, monkeypatch):
    monkeypatch.setattr(Serial, "target", 1e9)  # one chunk of all designs, however slow the first one was
    log = tmp_path / "log"
    result = run_study(study(log=str(log)), tmp_path / "s")
    sizes = [int(line) for line in log.read_text().split()]
    assert sum(sizes) == 100
    assert max(sizes) == 8
    assert len(sizes) <= 15  # the first alone, which tells how long one takes
    assert result.counts["ok"] == 2 * (np.abs(VALUES) <= 1.0).sum()


def test_failures_and_arrays_belong_to_their_rows(tmp_path):
    result = run_study(study(), tmp_path / "s")
    assert (result.status[VALUES < -1.0] == "invalid").all()
    assert (result.status[VALUES > 1.0] == "diverged").all()
    for row in np.flatnonzero(np.abs(VALUES) <= 1.0):
        for scenario, shift in enumerate((0.0, 0.5)):
            assert result.arrays(row, scenario)["signal"].tolist() == ((VALUES[row] + shift) * np.arange(3.0)).tolist()


def test_the_journal_does_not_depend_on_how_designs_are_divided(tmp_path):
    serial = run_study(study(), tmp_path / "serial")
    workers = run_study(study(execution=TWO_WORKERS), tmp_path / "workers")
    assert dump(serial) == dump(workers)


def test_a_call_that_raises_is_repeated_row_by_row(tmp_path):
    result = run_study(study(VALUES[10:40], bug=VALUES[20]), tmp_path / "s")
    assert (result.status == "error").sum() == 2
    assert (result.status[10] == "error").all()
    assert "a bug" in result.message(10)


def test_a_design_that_ends_the_worker_is_found_among_those_that_are_computed_with_it(tmp_path):
    result = run_study(study(VALUES[10:40], TWO_WORKERS, fatal=VALUES[20]), tmp_path / "s")
    assert (result.status[10] == "crashed").all()
    assert (result.status == "ok").sum() == 58


def test_the_conformance_test_compares_rows_of_a_batch_with_single_answers():
    rows = use("model", "rows").plugin
    check_model(rows, designs=[{"a": 0.1}, {"a": -0.7}], scenarios=[{}, {"shift": 1.0}], refused=[{"a": -3}])


def test_a_batch_whose_rows_depend_on_each_other_is_found_out():
    @model("leaning", version=1, unchecked=True)
    class Leaning:
        batch_size = 4

        def evaluate(self, design, scenario):
            return {"value": design["a"]}

        def batch(self, designs, scenarios):
            return [{"value": design["a"] + 1e-9 * (len(designs) - 1)} for design in designs]

    with pytest.raises(AssertionError, match=r"another value .* in a batch of 2"):
        check_model(Leaning, designs=[{"a": 1.0}, {"a": 2.0}])


def test_a_model_with_batch_declares_its_batch_size():
    with pytest.raises(PluginError, match="must declare 'batch_size'"):

        @model("sizeless", version=1, unchecked=True)
        class Sizeless:
            def evaluate(self, design, scenario):
                return {}

            def batch(self, designs, scenarios):
                return []
