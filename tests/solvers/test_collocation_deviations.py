"""Sensitivities of the optimum, asked for in a study of the solver collocation, and where a reader finds them."""

from pathlib import Path
from typing import Any

import pytest

from designopt import define
from designopt.plugin import load_file
from designopt.problem import Problem
from designopt.report.parts.motion.programs import programs
from designopt.study.language.errors import StudyError
from designopt.study.load import study_from_text

MODELS = Path(__file__).with_name("collocation_models.py")
#: Of radau 5 with 100 intervals on 60 s.
ACCURACY = 2e-4


@pytest.fixture(autouse=True)
def _models() -> None:
    load_file(str(MODELS), MODELS.read_bytes())


def run(folder: Path, **sections: Any) -> Any:
    study = define(
        **{
            "study": "damped",
            "model": {"use": "damped_start"},
            "space": {"damping": {"low": 200, "high": 5000, "unit": "N s/km"}},
            "scenarios": [{"name": "heavy", "mass": 4.0}],
            "objectives": [{"name": "decay", "minimize": "error"}],
            "execution": {"executor": "serial"},
            "solver": {
                "use": "collocation",
                "scheme": "radau",
                "degree": 5,
                "intervals": 100,
                "deviations": {"mass": 0.1, "stiffness": 0.05, "decay.initial.position": 0.02},
            },
            **sections,
        }
    )
    return study.run(folder / "s")


def test_the_optimal_damper_follows_the_mass_as_its_formula_says(tmp_path: Path) -> None:
    """int x^2 is least at c = sqrt(k m), where it is sqrt(m / k) x0^2; m = 4, k = 1, x0 = 1."""
    (record,) = run(tmp_path).programs()
    figures = record.figures
    assert figures["optimum(damping)"] == pytest.approx(2000.0, rel=ACCURACY)
    # dc/dm = sqrt(k/m)/2, dc/dk = sqrt(m/k)/2: in N s/km
    assert figures["d(optimum(damping))/d(mass)"] == pytest.approx(250.0, rel=ACCURACY)
    assert figures["d(optimum(damping))/d(stiffness)"] == pytest.approx(1000.0, rel=ACCURACY)
    assert figures["d(optimum(damping))/d(decay.initial.position)"] == pytest.approx(0.0, abs=1e-2)
    assert figures["d(objective)/d(mass)"] == pytest.approx(0.25, rel=ACCURACY)
    assert figures["d(objective)/d(stiffness)"] == pytest.approx(-1.0, rel=ACCURACY)
    assert figures["d(objective)/d(decay.initial.position)"] == pytest.approx(4.0, rel=ACCURACY)
    assert figures["deviation(optimum(damping))"] == pytest.approx((25.0**2 + 50.0**2) ** 0.5, rel=ACCURACY)
    assert figures["deviation(objective)"] == pytest.approx((0.025**2 + 0.05**2 + 0.08**2) ** 0.5, rel=ACCURACY)


def test_the_report_has_them_as_a_table(tmp_path: Path) -> None:
    section = programs(run(tmp_path))
    assert section is not None
    (table,) = [t for t in section.tables if t.title == "Sensitivity of the optimum"]
    assert table.columns == ("program", "number", "its deviation", "d objective", "d damping")
    assert [row[1] for row in table.rows] == [
        "mass", "stiffness", "decay.initial.position", "standard deviation of the optimum",
    ]  # fmt: skip
    assert table.rows[0][2:] == (0.1, pytest.approx(0.25, rel=ACCURACY), pytest.approx(250.0, rel=ACCURACY))


def test_a_scenario_has_its_own_numbers_and_shares_others(tmp_path: Path) -> None:
    loads = [{"name": "light", "mass": 1.0}, {"name": "heavy", "mass": 4.0}]
    program = {"use": "collocation", "scheme": "radau", "degree": 5, "intervals": 100}
    names = ["mass", "light: decay.mass", "heavy: decay.mass"]
    solver = {**program, "deviations": dict.fromkeys(names, 0.1)}
    mean = [{"name": "decay", "minimize": "error", "over": "mean"}]
    (record,) = run(tmp_path, scenarios=loads, objectives=mean, solver=solver).programs()
    combined, light, heavy = (record.figures[f"d(objective)/d({name})"] for name in names)
    damping = record.figures["optimum(damping)"] / 1000.0
    assert light == pytest.approx(heavy, rel=ACCURACY)  # k x0^2/(2 c k) each, half of it in the mean
    assert light == pytest.approx(0.25 / damping, rel=ACCURACY)
    assert combined == pytest.approx(light + heavy, rel=1e-6)


def test_an_optimum_that_is_not_differentiable_is_reported(tmp_path: Path) -> None:
    """The best damper for a stiffness of 1 and a mass of 4 is the largest that there is: 2 N s/m."""
    space = {"damping": {"low": 200, "high": 2000.0002, "unit": "N s/km"}}
    (record,) = run(tmp_path, space=space).programs()
    assert "Sensitivities: active with a multiplier close to zero: damping" in record.message


def test_a_number_that_is_not_there_is_refused_at_its_place() -> None:
    text = """\
study: damped
model: {use: damped_start}
space: {damping: [0.2, 5]}
objectives: [{name: decay, minimize: error}]
solver: {use: collocation, deviations: {damping: 0.1}}
"""
    with pytest.raises(StudyError) as caught:
        study_from_text(text, "damped.yaml", problem_of=Problem.from_study)
    (issue,) = caught.value.issues
    assert issue.line == 5
    assert "no such number that is fixed (it has stiffness, mass, decay.t0, decay.tf" in issue.message
