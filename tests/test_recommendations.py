"""What the bundled studies recommend keeps its limits when its parameters are off by their tolerances."""

from pathlib import Path

import pytest

import designopt
from designopt.report.parts.answer.tolerances import ENOUGH

STUDIES = Path(__file__).parents[1] / "studies"

#: Studies with limits on designs whose parameters can be off, and a budget of the last stage that a test can wait for.
LIMITED = {
    "benchmark_integrating": None,
    "benchmark_plants": None,
    "benchmark_third_order": None,
    "identified_plant": 800,
    "own_plant": 1000,
    "speed_pi": 1000,
    "course_pid_2obj": 1000,
    "course_pid_3obj": 1000,
    "gain_schedule": 1000,
    "coupled_10var": 2000,
    "knee_damper": 500,
    "knee_hip_hiking": None,
    "knee_speeds": None,
    "knee_critical_stiffness": None,
    "exoskeleton_gait": 400,
}
#: Studies whose parameters are settings of a method, which are never off.
NUMERICAL = {"andrews"}


def test_every_study_with_limits_on_real_parameters_states_tolerances_and_a_robust_choice():
    found = []
    for file in sorted(STUDIES.glob("*.yaml")):
        if "opensim:" in file.read_text() or file.stem in NUMERICAL:
            continue
        study = designopt.load(file).definition
        if study.constraints and study.objectives and any(p.kind == "real" for p in study.space):
            found.append(file.stem)
            if file.stem not in LIMITED:
                continue
            assert study.tolerances is not None, file.stem
            assert not study.tolerances.assumed, file.stem
            real = {p.name for p in study.space if p.kind == "real"}
            assert {t.parameter for t in study.tolerances.of} == real, file.stem
            assert "robust" in [choice.method for choice in study.choose], file.stem
    assert set(LIMITED) <= set(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", LIMITED)
def test_the_robust_choice_keeps_its_limits_in_nine_of_ten_neighbours(name, tmp_path):
    study = designopt.load(STUDIES / f"{name}.yaml")
    evaluations, last = LIMITED[name], study.definition.stages[-1].name
    result = study.run(tmp_path / "s.study", budget={last: evaluations} if evaluations else {})
    row, done = result.most_robust(), result.tolerated()
    assert row is not None
    assert done.share[done.place(row)] >= ENOUGH
