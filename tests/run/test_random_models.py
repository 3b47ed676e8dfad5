"""Models with random numbers of their own: every evaluation has its seed, from the study's and its key."""

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest
from run_cases import dump, listed, make_study, use

from designopt.plugin import Use, find, load_file
from designopt.problem import Problem
from designopt.run.runner import run_study
from designopt.store import archive
from designopt.study.study import DesignVariable, Stage
from designopt.workers.evaluation.single_designs import evaluate_one, trial

PLUGINS = Path(__file__).with_name("plugins_random.py")
VALUES = [0.5, -1.0, 0.25, 1.5]


def study_of(model: str, *, minimize: str, names=("a",), stages=None, **fields):
    load_file(str(PLUGINS), PLUGINS.read_bytes())
    base = make_study(names=names, minimize=(minimize,), stages=stages or (listed(VALUES),), **fields)
    return dataclasses.replace(base, model=Use(find("model", model)))


def dice(seed: int = 3, **fields):
    return study_of("dice", minimize="value", scenarios=({}, {"width": 0.1}), seed=seed, **fields)


def test_the_numbers_follow_from_the_seed_of_the_study(tmp_path):
    results = [run_study(dice(seed), tmp_path / name) for seed, name in ((3, "a"), (3, "b"), (4, "c"))]
    values = [result.outcomes.figures["value"] for result in results]
    assert np.array_equal(values[0], values[1])
    assert not np.any(values[0] == values[2])
    assert dump(results[0]) == dump(results[1])


def test_every_evaluation_has_numbers_of_its_own(tmp_path):
    result = run_study(dice(), tmp_path / "s")
    figures = result.outcomes.figures
    throws = (figures["value"] - result.outcomes.X) / [1.0, 0.1]  # what was drawn, without mean and width
    assert len(np.unique(throws.round(9))) == throws.size


def test_the_numbers_do_not_depend_on_order_and_workers(tmp_path):
    serial = run_study(dice(), tmp_path / "serial")
    parallel = run_study(dice(execution={"executor": "dask", "workers": 2}), tmp_path / "dask")
    assert dump(parallel) == dump(serial)
    other_order = run_study(dice(stages=(listed(VALUES[::-1], batch=1),)), tmp_path / "order")
    assert np.array_equal(other_order.outcomes.figures["value"][::-1], serial.outcomes.figures["value"])


def test_one_design_alone_has_the_numbers_of_the_run(tmp_path):
    study = dice(execution={"executor": "serial", "arrays": {"throws": "all"}})
    result = run_study(study, tmp_path / "s")
    for row, value in enumerate(VALUES):
        for scenario_number, scenario in enumerate(("s0", "s1")):
            alone = evaluate_one(study, {"a": value}, scenario=scenario, arrays=["throws"])
            assert alone.outputs["value"] == result.outcomes.figures["value"][row, scenario_number]
            assert np.array_equal(alone.arrays["throws"], result.arrays(row, scenario_number)["throws"])


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("real", 2.5, "a: 2.5 is outside -2 to 2 mm"),
        ("real", -2.0001, "a: -2.0001 is outside -2 to 2 mm"),
        ("real", float("nan"), "a: nan is outside -2 to 2 mm"),
        ("int", 3, "a: 3 is outside -2 to 2 mm"),
        ("int", 1.5, "a: 1.5 is not an integer"),
    ],
)
def test_one_design_alone_is_refused_where_the_study_does_not_look(kind, value, message):
    study = dataclasses.replace(dice(), space=(DesignVariable("a", kind, -2, 2, unit="mm"),))
    with pytest.raises(ValueError, match=f"^{message}$"):
        evaluate_one(study, {"a": value})
    assert evaluate_one(study, {"a": 2}).ok


def test_trying_a_model_out_gives_the_same_lines_twice():
    # Times differ from one call to the next.
    first, repeated = ([re.sub(r" in \S+ s:", "", line) for line in trial(dice(), 3)[0]] for _ in range(2))
    assert first == repeated
    assert len(set(first)) == 6 + 3  # each design in every scenario, and its objective


def test_a_resumed_run_goes_on_with_the_same_numbers(tmp_path):
    uninterrupted = run_study(dice(stages=(listed(VALUES, batch=1),)), tmp_path / "whole")
    part = dice(stages=(listed(VALUES, batch=1, evaluations=2),))
    run_study(part, tmp_path / "part")
    resumed = run_study(part, tmp_path / "part", resume=True, budget={"list": 4})
    assert np.array_equal(resumed.outcomes.figures["value"], uninterrupted.outcomes.figures["value"])


# --------------------------------------------------------------------------------------------------------- derivatives


def dune(**fields):
    stages = (Stage("down", use("solver", "slsqp", gradient="model")),)
    return study_of("dune", minimize="height", names=("a", "b"), stages=stages, **fields)


def test_a_run_records_derivatives_for_a_solver_that_wants_them(tmp_path):
    result = run_study(dune(), tmp_path / "s")
    X, figures = result.outcomes.X, result.outcomes.figures
    np.testing.assert_allclose(figures["d(height)/d(a)"][:, 0], 2.0 * (X[:, 0] - 0.3), rtol=1e-12)
    np.testing.assert_allclose(figures["d(height)/d(b)"][:, 0], 4.0 * (X[:, 1] + 0.6), rtol=1e-12)
    np.testing.assert_allclose(X[result.front()[0]], [0.3, -0.6], atol=1e-5)
    assert len(X) < 12


def test_derivatives_are_not_recorded_where_no_solver_wants_them(tmp_path):
    stages = (Stage("spread", use("solver", "sobol", samples=4)),)
    result = run_study(study_of("dune", minimize="height", names=("a", "b"), stages=stages), tmp_path / "s")
    assert set(result.outcomes.figures) == {"height"}


def test_why_a_search_ended_is_reported_once(tmp_path):
    for resume in (False, True):
        result = run_study(dune(), tmp_path / "s", resume=resume)
        messages = [event["text"] for event in result.events if event["kind"] == "solver_ended"]
        assert messages == ["stage 'down': the search converged"]


def test_workers_record_derivatives_too(tmp_path):
    serial = run_study(dune(), tmp_path / "serial")
    parallel = run_study(dune(execution={"executor": "dask", "workers": 2}), tmp_path / "dask")
    assert dump(parallel) == dump(serial)


def test_a_store_without_its_plugins_keeps_what_its_keys_depend_on():
    for study, name in ((dune(), "gradients"), (dice(), "seed")):
        data = json.loads(json.dumps(archive.encode(study)))
        for plugin in (data["model"], *(stage["solver"] for stage in data["stages"])):
            plugin["version"] += 1  # not the one that is installed
        decoded = Problem.from_study(archive.decode(data, file=lambda digest: b""))
        assert getattr(decoded, name) == getattr(Problem.from_study(study), name) != getattr(Problem, name)


def test_a_replay_of_a_search_with_derivatives_asks_the_same_again(tmp_path):
    first = run_study(dune(), tmp_path / "s")
    repeated = run_study(dune(), tmp_path / "s", resume=True)
    assert dump(repeated) == dump(first)
    assert repeated.counts == first.counts
