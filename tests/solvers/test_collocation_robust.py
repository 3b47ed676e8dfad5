"""Robust programs of studies: the mean with its deviation over scenarios."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from designopt import define
from designopt.plugin import load_file
from designopt.study.language.errors import StudyError

MODELS = Path(__file__).with_name("collocation_models.py")
MASSES = (1.0, 2.0, 3.0)


@pytest.fixture(autouse=True)
def _models() -> None:
    load_file(str(MODELS), MODELS.read_bytes())


def study(**sections: Any) -> Any:
    defaults = {
        "study": "damped",
        "model": {"use": "damped_start"},
        "space": {"damping": {"low": 0.2, "high": 5.0, "unit": "N s/m"}},
        "objectives": [{"name": "decay", "minimize": "error"}],
        "execution": {"executor": "serial"},
        "solver": {"use": "collocation", "scheme": "radau", "degree": 5, "intervals": 100},
    }
    return define(**{**defaults, **sections})


def optimum(folder: Path, **sections: Any) -> tuple[Any, dict[str, float]]:
    result = study(**sections).run(folder / "s")
    (program,) = result.programs()
    return result, program.figures


def over(times: float) -> dict[str, Any]:
    return {"use": "mean_plus_deviation", "times": times}


@pytest.mark.parametrize("times", [0.0, 1.0, 3.0])
def test_the_mean_and_its_deviation_are_least_where_their_formula_says(tmp_path: Path, times: float) -> None:
    """int x^2 = c/2 + m/(2 c) has the mean and deviation of m: least at c^2 = mean + times * deviation."""
    scenarios = [{"name": f"m{m:g}", "mass": m} for m in MASSES]
    objectives = [{"name": "decay", "minimize": "error", "over": over(times)}]
    result, figures = optimum(tmp_path, scenarios=scenarios, objectives=objectives)

    best = math.sqrt(np.mean(MASSES) + times * np.std(MASSES))
    assert figures["optimum(damping)"] == pytest.approx(best, rel=1e-4)
    assert figures["program(objective)"] == pytest.approx(best, rel=1e-4)
    assert result.outcomes.objectives[0, 0] == pytest.approx(best, rel=1e-4)  # of the model, aggregated afterwards


def test_a_limit_on_the_mean_and_its_deviation_is_active(tmp_path: Path) -> None:
    """The damper that loses least, with c/2 + M/(2 c) <= 2 for M = mean + deviation of the masses."""
    _, figures = optimum(
        tmp_path,
        scenarios=[{"name": f"m{m:g}", "mass": m} for m in MASSES],
        objectives=[{"name": "loss", "minimize": "loss", "over": "nominal"}],
        constraints=[{"name": "decay", "of": "error", "max": 2.0, "over": over(1.0)}],
        solver={"use": "collocation", "scheme": "radau", "degree": 5, "intervals": 60, "margin": 0.0},
    )
    size = np.mean(MASSES) + np.std(MASSES)
    assert figures["optimum(damping)"] == pytest.approx(2.0 + math.sqrt(4.0 - size), rel=1e-4)


def refused(**sections: Any) -> str:
    with pytest.raises(StudyError) as caught:
        study(**sections)
    return str(caught.value)


def test_objectives_that_reward_a_worse_motion_are_refused() -> None:
    scenarios = [{"name": f"m{m:g}", "mass": m} for m in MASSES]
    text = refused(
        model={"use": "pushed"},
        scenarios=scenarios,
        objectives=[{"name": "decay", "minimize": "error", "over": over(1.0)}],
    )
    assert "adds 1 standard deviations over 3 scenarios, each with its own controls (force): above 1/sqrt(2)" in text


def test_a_deviation_is_no_equality() -> None:
    text = refused(
        scenarios=[{"name": "a", "mass": 1.0}, {"name": "b", "mass": 2.0}],
        constraints=[{"name": "loss", "of": "loss", "equals": 1.0, "over": over(1.0)}],
    )
    assert "which no program can meet" in text
