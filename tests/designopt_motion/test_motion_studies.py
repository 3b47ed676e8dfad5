"""The bundled studies of motion: what they say of themselves holds, and their reports draw it.

Those of car and pole run (nearly) as they stand; those of arm and walker load, and small ones like them run.
"""

from pathlib import Path

import numpy as np
import pytest
from designopt_motion.report_arm import arm_reach
from designopt_motion.report_biped import walking_step

import designopt
from designopt.report.page.page import sections
from designopt.store.result import Result

STUDIES = Path(__file__).parents[2] / "studies"

STEP = {
    "study": "step",
    "model": {"use": "biped5", "intervals": 12},
    "space": {
        "step_length": "0.5 m",
        "step_time": {"low": "0.6 s", "high": "0.8 s", "unit": "s"},
        "hip_stiffness": {"low": 0, "high": 100, "unit": "N m/rad"},
    },
    "objectives": [{"name": "effort", "minimize": "effort", "unit": "N^2 m^2 s"}],
    "solver": {"use": "collocation", "scheme": "radau", "intervals": 12, "sweep": {"step_time": [0.6, 0.7]}},
    "execution": {"executor": "serial", "arrays": dict.fromkeys(("time", "figure", "torques", "ground_force"), "all")},
}

REACH = {
    "study": "reach",
    "model": {"use": "reach_arm6", "intervals": 12, "sharpness": 0.1},
    "scenarios": [
        {"name": "forth", "load": 1},
        {"name": "back", "start_x": 0.15, "start_y": 0.5, "target_x": 0, "target_y": 0.35, "load": 1},
    ],
    "space": {
        "elbow_stiffness": {"low": 0, "high": 20, "unit": "N m/rad"},
        "elbow_rest": {"low": 0.8, "high": 2.2, "unit": "rad"},
    },
    "objectives": [{"name": "effort", "minimize": "effort", "unit": "s", "over": "mean"}],
    "solver": {"use": "collocation", "scheme": "radau", "intervals": 12},
    "execution": {"executor": "serial", "arrays": ["time", "path", "excitations", "activations", "torques"]},
}


def test_simulation_and_program_find_the_same_suspension(tmp_path: Path) -> None:
    result = designopt.load(STUDIES / "quarter_car.yaml", overrides=["report.tolerances.neighbours=2"]).run(
        tmp_path / "car.study"
    )
    best = result.outcomes.objectives[:, 0]
    searched = result.outcomes.X[result.stage == "simulated"]
    of_search = best[result.stage == "simulated"]
    (of_program,) = best[result.stage == "program"]
    assert of_program == pytest.approx(1.9417811, rel=2e-7)
    assert of_program <= of_search.min() <= of_program * 1.001
    stiffness, damping = searched[of_search.argmin()]
    assert stiffness == pytest.approx(2000.0, rel=0.02)
    assert damping == pytest.approx(510.55, rel=0.02)
    (program,) = result.programs()
    assert program.solution.objective == pytest.approx(of_program, rel=1e-6)
    titles = [section.title for section in sections(result)]
    assert "Programs" in titles
    assert "Trajectories" in titles


def test_the_cost_of_a_swing_up_rises_with_the_length_of_the_pole(tmp_path: Path) -> None:
    changes = ["stages.0.solver.sweep.pole_length=3", "stages.0.solver.starts=1", "stages.0.solver.verify=0",
               "model.starts=1"]  # fmt: skip
    result = designopt.load(STUDIES / "cart_pole.yaml", overrides=changes).run(tmp_path / "pole.study")
    order = result.outcomes.X[:, 0].argsort()
    length, duration = result.outcomes.X[order].T
    cost = result.outcomes.objectives[order, 0]
    np.testing.assert_allclose(length, [0.4, 0.5, 0.6], rtol=1e-12)
    assert (np.diff(duration) > 0.05).all()
    assert (np.diff(cost) > 5.0).all()
    solved = [program.solution.objective for program in result.programs()]
    np.testing.assert_allclose(sorted(solved), cost, rtol=1e-4)  # the model solves on its own mesh, which is coarser


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return designopt.define(**STEP).run(tmp_path_factory.mktemp("step") / "store.study")


@pytest.fixture(scope="module")
def reach(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return designopt.define(**REACH).run(tmp_path_factory.mktemp("reach") / "store.study")


def test_a_study_chooses_a_hip_spring_for_each_pace(step: Result) -> None:
    """The model evaluates each optimum by itself, with the spring held, and finds the effort of the program."""
    assert [record.status for record in step.programs()] == ["solved", "solved"]
    k = step.problem.space.names.index("hip_stiffness")
    quick, slow = step.outcomes.X[np.argsort(step.outcomes.X[:, step.problem.space.names.index("step_time")])]
    assert quick[k] > slow[k] > 10.0
    programs = sorted(record.figures["program(objective)"] for record in step.programs())
    assert sorted(step.outcomes.objectives[:, 0]) == pytest.approx(programs, rel=1e-5)


def test_a_study_chooses_one_spring_for_two_movements(reach: Result) -> None:
    (record,) = reach.programs()
    assert record.status == "solved"
    assert len(record.solution.phases) == 2
    stiffness, rest = (record.optimum[name] for name in ("elbow_stiffness", "elbow_rest"))
    assert 1.0 < stiffness < 10.0
    assert rest == pytest.approx(0.5 * (2.008 + 1.278), abs=0.15)  # half way between the flexions at both ends


def test_the_step_is_drawn_for_every_design_of_the_sweep(step: Result) -> None:
    section = walking_step(step)
    assert section is not None
    figures = {figure.title: figure for figure in section.figures}
    assert list(figures) == ["Stick figures", "The step in motion", "Torques of the joints", "Force of the ground"]
    (choice,) = figures["Stick figures"].choices
    assert choice.label == "Design"
    assert all(option.startswith("step_time 0.") for option in choice.options)
    assert set(figures["Stick figures"].variants) == {(0,), (1,)}
    foot = figures["Stick figures"].plot["data"][1]
    assert foot["x"][[0, -1]] == pytest.approx([-0.5, 0.5], abs=1e-4)
    assert len(figures["Torques of the joints"].plot["data"]) == 5


def test_the_movements_are_drawn_for_every_scenario(reach: Result) -> None:
    section = arm_reach(reach)
    assert section is not None
    way = section.figures[0]
    assert [(choice.label, choice.options) for choice in way.choices] == [("Scenario", ("forth", "back"))]
    forth, back = (way.variants[k,]["data"][-1] for k in (0, 1))  # start and target
    assert forth["x"] == pytest.approx(back["x"][::-1], abs=1e-4)
    assert len(section.figures[2].plot["data"]) == 12


def test_a_report_part_without_arrays_says_how_to_get_them(tmp_path: Path) -> None:
    bare = {**STEP, "execution": {"executor": "serial"}, "space": {"step_time": [0.6, 0.7]}}
    bare["solver"] = {"use": "full_factorial", "levels": 2}
    section = walking_step(designopt.define(**bare).run(tmp_path / "store.study"))
    assert section is not None
    assert "arrays: {time: all, figure: all, torques: all, ground_force: all}" in section.introduction
