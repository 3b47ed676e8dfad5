"""Cheap evaluations in runs: recorded as such, paid from the budget, in no result, the same after a resume."""

import contextlib
import dataclasses
import re

import numpy as np
import pytest
from run_cases import Recorder, dump, make_study, use

from designopt.plugin import Fidelity, PluginError, model
from designopt.problem import Problem
from designopt.report.comparison.page import comparison
from designopt.report.parts.answer.overview import computing_time, overview
from designopt.report.parts.designs.surrogate import surrogate
from designopt.report.terminal import state, unfinished
from designopt.run.budget import StageBudget
from designopt.run.runner import resume_study, run_study
from designopt.store import archive
from designopt.store.errors import Interrupted, StoreError
from designopt.store.journal.reader import JournalReader
from designopt.study.study import Budget, Stage
from designopt.workers.evaluation.evaluate import Evaluator
from designopt.workers.executor import Chunk
from designopt.workers.remote.delivery import Delivery


def searched(budget=12, *, scenarios=({}, {"shift": 0.2}), settings=None, **fields):
    gp = Stage("search", use("solver", "gp", look_ahead=2), Budget(evaluations=budget))
    settings = settings or {"digits": 9}
    return make_study("rough_bowl", stages=(gp,), settings=settings, scenarios=scenarios, **fields)


def kinds(result):
    with contextlib.closing(JournalReader.read(result.path, result.problem)) as journal:
        return list(journal.evaluations("design, kind, number"))


def test_cheap_evaluations_are_recorded_as_such_and_in_no_result(tmp_path):
    recorder = Recorder()
    result = run_study(searched(), tmp_path / "s", progress=recorder)
    rows = kinds(result)
    cheap = {design for design, kind, _ in rows if kind == "cheap"}
    full = {design for design, kind, _ in rows if kind == "scenario"}
    assert len(cheap) >= 20
    assert len(rows) == 2 * (len(cheap) + len(full))  # two scenarios
    assert len(result.outcomes) == len(full) == int(12 - 0.1 * len(cheap) + 1e-9)
    assert len(result.cheap) == len(cheap)
    heights = result.cheap.figures["height"]
    assert heights[np.isfinite(heights)] == pytest.approx(np.round(heights[np.isfinite(heights)], 1))
    assert f"{len(cheap)} cheap evaluations, not part of the results" in state(result)
    assert [text for kind, text in recorder.events if kind == "fidelity"] == [
        "stage search: cheap evaluations (digits = 1) count 0.1 each; fronts and reports are of full ones alone"
    ]


def test_a_run_interrupted_after_its_search_has_completed_all_designs_of_the_budget(tmp_path, monkeypatch):
    result = run_study(searched(), tmp_path / "s")
    assert len(result.outcomes) < 12
    monkeypatch.setattr(type(result), "ended", "interrupted")
    assert unfinished(result).startswith(
        "Unfinished: interrupted after all 12 designs of stage search. Continue with: "
    )


def test_the_report_says_how_many_there_are_and_its_processes_learn_from_them(tmp_path):
    result = run_study(searched(14), tmp_path / "s")
    count = len(result.cheap)
    assert ("cheap evaluations (not part of the results)", str(count)) in overview(result).facts
    with contextlib.closing(JournalReader.read(result.path, result.problem)) as journal:
        spent = sum(wall for (wall,) in journal.evaluations("wall"))
    assert result.cheap_wall > 0.0
    assert computing_time(result) == pytest.approx(spent)
    section = surrogate(result)
    assert f"{count} cheap evaluations included." in section.introduction
    assert section.tables[0].rows[0][1] < 0.5  # the error of left-out designs over their spread


def test_a_comparison_counts_cheap_evaluations_beside_the_others(tmp_path):
    results = [run_study(searched(budget), tmp_path / str(budget)) for budget in (13, 14)]
    table = comparison(results).split("<h3>What was done</h3>")[1].split("</table>")[0]
    column = re.findall(r"<th[^>]*>(.*?)</th>", table).index("cheap evaluations (beside them)")
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in table.split("<tr>")[2:]]
    assert [row[column] for row in rows] == [str(len(result.cheap)) for result in results]


def test_a_run_with_a_larger_budget_goes_on_as_if_it_had_had_it_before(tmp_path):
    short = run_study(searched(9), tmp_path / "s")
    assert len(short.cheap)
    with pytest.raises(StoreError, match="already proposed 9 designs; set a budget of at least 9, not 8"):
        resume_study(tmp_path / "s", budget={"search": 8})
    longer = resume_study(tmp_path / "s", budget={"search": 13})
    assert dump(longer) == dump(run_study(searched(13), tmp_path / "t"))


def test_a_run_that_is_stopped_among_cheap_evaluations_goes_on(tmp_path):
    class Stops(Recorder):
        def update(self, snapshot):
            raise Interrupted("stopped by the test", tmp_path / "s")

    with contextlib.suppress(Interrupted):
        run_study(searched(), tmp_path / "s", progress=Stops())
    resumed = resume_study(tmp_path / "s")
    assert dump(resumed) == dump(run_study(searched(), tmp_path / "t"))


def test_keys_of_full_evaluations_do_not_depend_on_cheap_ones():
    problem = Problem.from_study(searched())
    X = np.array([[0.5, 0.5]])
    alone = dataclasses.replace(problem, fidelity=None)
    assert problem.keys(X) == alone.keys(X)
    assert problem.digest == alone.digest
    assert not set(problem.keys(X)[0]) & set(problem.cheap.keys(X)[0])


def test_a_study_that_is_as_cheap_itself_has_no_cheaper_evaluations(tmp_path):
    study = searched(settings={"digits": 1})
    assert Problem.from_study(study).fidelity is None
    assert {kind for _, kind, _ in kinds(run_study(study, tmp_path / "s"))} == {"scenario"}


@pytest.mark.parametrize("digits", [0, -1])
def test_a_study_that_is_cheaper_itself_has_no_cheap_evaluations(digits):
    """Rough digits are cheaper than many, so those of the fidelity, 1, cost more than none."""
    assert Problem.from_study(searched(settings={"digits": digits})).fidelity is None


def test_of_a_fidelity_only_what_is_cheaper_than_the_study_is_replaced():
    @model("two_meshes", version=1, unchecked=True, fidelity=Fidelity({"steps": 5, "size": 0.5}, cost=0.5))
    def two_meshes(design, scenario, *, steps: int = 9, size: float = 0.1):
        return {"height": 0.0, "slope": 0.0}

    def replaced(**settings):
        study = searched(settings={"digits": 9})
        changed = dataclasses.replace(study, model=use("model", "two_meshes", **settings))
        fidelity = Problem.from_study(changed).fidelity
        return None if fidelity is None else dict(fidelity.settings)

    assert replaced(steps=9, size=0.1) == {"steps": 5, "size": 0.5}
    assert replaced(steps=4, size=0.2) == {"size": 0.5}
    assert replaced(steps=6, size=1.0) == {"steps": 5}
    assert replaced(steps=4, size=0.5) is None


def test_workers_get_the_cheap_model_too():
    study = searched()
    chunk = Chunk(1, np.array([[0.123, 0.5]]), np.array([0], np.int32))
    for evaluator in (Evaluator.for_problem(Problem.from_study(study)), Delivery.for_problem(study).build()):
        values = [evaluator.run(dataclasses.replace(chunk, cheap=cheap)).values[0, 0] for cheap in (True, False)]
        assert values == pytest.approx([0.0, 0.015129])


def test_a_budget_counts_what_cheap_evaluations_cost():
    budget = StageBudget(Budget(evaluations=3), Problem.from_study(searched()), 0.0)
    valid = np.zeros(25)
    assert budget.take_cheap(np.append(valid[:10], 1.0), 0.1) == 11  # a broken relation costs nothing
    assert budget.designs_left == 2
    assert budget.take(valid[:1]) == 1
    assert budget.take_cheap(valid[:5], 0.1) == 5
    assert budget.designs_left == 0
    assert budget.take_cheap(valid, 0.1) == 5
    assert budget.take_cheap(valid, 0.1) == 0


def test_cheap_evaluations_use_a_setting_and_cost_less():
    with pytest.raises(PluginError, match="fidelity names 'cycles', which is not a setting"):
        model("odd_fidelity", version=1, unchecked=True, fidelity=Fidelity({"cycles": 2}, cost=0.5))(lambda d, s: {})
    with pytest.raises(PluginError, match=r"between 0 and 1 \(a full evaluation\), not 1"):
        Fidelity({"cycles": 2}, cost=1.0)
    with pytest.raises(PluginError, match="must name the settings"):
        Fidelity({}, cost=0.5)


def test_a_store_whose_model_is_not_at_hand_still_knows_its_cheap_evaluations(tmp_path):
    result = run_study(searched(14), tmp_path / "s")
    stored = archive.encode(result.study)
    stored["model"]["name"] = "nowhere"
    study = archive.decode(stored, file=lambda name, digest: None)
    assert study.model.plugin.fidelity == result.study.model.plugin.fidelity
    assert Problem.from_study(study).cheap is not None
