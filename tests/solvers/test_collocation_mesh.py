"""The mesh that a study states for its programs is that of the numbers a reader of its results reads."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from designopt import Study, define
from designopt.collocation import Options, Refinement, Solution, TrajectoryProblem, solve, solve_design
from designopt.plugin import find, load_file
from designopt.problem import Problem
from designopt.report.comparison.differences import differences
from designopt.report.comparison.study_edit import same_search
from designopt.run.evaluations.recall import evaluations_with_same_keys
from designopt.run.runner import run_study
from designopt.store.folder import read_study
from designopt.store.result import Result
from designopt.workers.evaluation.single_designs import trial
from designopt.workers.remote.delivery import Delivery

MODEL = Path(__file__).with_name("van_der_pol.py")
#: J of CasADi's example with x1 >= -0.25, T = 10: Runge-Kutta 4 with 1000 steps and IPOPT gives 3.6152.
EXACT = 3.61517
DESIGN = {"displacement": 1.0}


@pytest.fixture(autouse=True)
def _model() -> None:
    load_file(str(MODEL), MODEL.read_bytes())


def study(solver: dict[str, Any] | None, **sections: Any) -> Study:
    stage = {} if solver is None else {"solver": {"use": "collocation", **solver}}
    return define(
        **stage,
        **{
            "study": "van_der_pol",
            "model": {"use": "van_der_pol"},
            "space": {"displacement": [1.0, 1.5]},
            "objectives": [{"minimize": "J"}],
            "execution": {"executor": "serial"},
            **sections,
        },
    )


def options_of(solver: dict[str, Any]) -> Any:
    return study(solver).definition.evaluation_options


@pytest.mark.parametrize(
    ("solver", "J", "accuracy"),
    [
        ({}, 3.615614, 1e-6),  # 50 Hermite-Simpson intervals
        ({"intervals": 400, "mesh_check": 0}, 3.615182, 1e-6),
        ({"refine": {"tolerance": 1e-7}}, EXACT, 5e-6),
        ({"mesh_check": 1e-6}, EXACT, 2e-5),
    ],
)
def test_the_objective_of_an_optimum_is_that_of_the_stated_mesh(
    solver: dict[str, Any], J: float, accuracy: float, tmp_path: Path
) -> None:
    result = study(solver).run(tmp_path / "s")
    stored = float(result.outcomes.objectives[0, 0])
    assert stored == pytest.approx(J, abs=accuracy)
    assert stored == pytest.approx(result.programs()[0].figures["program(objective)"], abs=accuracy)
    assert [event["text"] for event in result.events if event["kind"] == "objective_differs"] == []


def test_every_way_to_an_evaluation_has_the_mesh_of_the_study(tmp_path: Path) -> None:
    stated = study(
        None,
        stages=[
            {"name": "coarse", "solver": {"use": "collocation", "intervals": 8}},
            {"name": "fine", "solver": {"use": "collocation", "intervals": 12, "mesh_check": 0}},
        ],
        baseline={"displacement": 1.2},
        space={"displacement": {"low": 1.0, "high": 1.5}},
    )
    problem = find("model", "van_der_pol").build({}).trajectory_problem({})

    def on_12_intervals(displacement: float) -> float:
        return solve_design(problem, {"displacement": displacement}, Options(intervals=12)).figures["J"]

    J = on_12_intervals(1.0)
    assert abs(J - EXACT) > 1e-3
    assert stated.evaluate(DESIGN).outputs["J"] == J
    delivered = Delivery.for_problem(stated.definition).build()  # what a worker of Dask builds
    assert delivered.evaluate(DESIGN).outputs["J"] == J
    lines, failures = trial(stated.definition, 1)
    displacement = float(lines[0].split("displacement = ")[1].split(":")[0])
    assert (failures, float(lines[0].split("J = ")[1])) == (0, pytest.approx(on_12_intervals(displacement), rel=1e-5))
    result = stated.run(tmp_path / "s")
    for x, (value,) in zip(result.outcomes.X[:, 0], result.outcomes.objectives, strict=True):  # the baseline, optima
        assert value == on_12_intervals(float(x))
    resumed = run_study(read_study(result.path), result.path, resume=True)
    assert resumed.outcomes.objectives.tolist() == result.outcomes.objectives.tolist()
    doubled = result.with_changes(["objectives=[{name: double, minimize: 2*J}]"]).outcomes.objectives
    assert doubled.tolist() == (2.0 * result.outcomes.objectives).tolist()


def test_evaluations_have_the_mesh_check_of_the_programs() -> None:
    usual = study({}).problem
    assert [options_of(solver) for solver in ({}, {"intervals": 50}, {"starts": 1})] == [{"mesh_check": 1e-4}] * 3
    assert options_of({"mesh_check": 0}) == {}
    assert options_of({"starts": 3}) == {"starts": 3, "mesh_check": 1e-4}
    assert options_of({"intervals": 80}) == {"intervals": 80, "mesh_check": 1e-4}
    assert options_of({"refine": {}})["refine"]["tolerance"] == Refinement().tolerance
    finer = study({"intervals": 80}).problem
    x = usual.space.from_search([[0.5]])
    assert finer.keys(x) != usual.keys(x)
    assert finer.digest != usual.digest


def test_evaluations_search_from_as_many_guesses_as_the_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    starts = []

    def counted(problem: TrajectoryProblem, options: Options) -> Solution:
        starts.append(options.starts)
        return solve(problem, options)

    monkeypatch.setattr("designopt.collocation.design.solve", counted)
    assert study({"starts": 3, "intervals": 12}).evaluate(DESIGN).status == "ok"
    assert study({"intervals": 12}).evaluate(DESIGN).status == "ok"
    assert starts == [3, 1]


def test_evaluations_ignore_the_scale_of_a_variable_that_only_programs_have() -> None:
    of_rate = {"rates": {"u": {"low": -1.0, "high": 1.0}}, "scales": {"u_rate": 2.0, "x1": 2.0}, "intervals": 12}
    assert study(of_rate).evaluate(DESIGN).status == "ok"


def test_a_model_with_a_mesh_of_its_own_keeps_its_keys() -> None:
    sections = {
        "model": {"use": "cart_pole"},
        "space": {"pole_length": [0.3, 1.0], "duration": [1.5, 3.0]},
        "objectives": [{"minimize": "effort"}],
    }
    assert study({"intervals": 80}, **sections).definition.evaluation_options == {}


def test_a_store_of_an_earlier_version_keeps_its_mesh_and_its_keys(tmp_path: Path) -> None:
    definition = study({"intervals": 12, "mesh_check": 0}).definition
    before = dataclasses.replace(definition, evaluation_options={})
    result = run_study(before, tmp_path / "s")
    assert evaluations_with_same_keys(result.path, Problem.from_study(before)) == (1, 1)  # the program is no evaluation
    assert evaluations_with_same_keys(result.path, Problem.from_study(definition)) == (0, 1)
    stored = read_study(result.path)
    assert Result.open(result.path).keys() == Problem.from_study(before).keys(result.outcomes.X)
    assert not same_search(stored, definition)
    assert differences(stored, definition) == [
        "evaluations with the mesh of the solver (intervals 12, mesh_check 0), not with the default mesh"
    ]
