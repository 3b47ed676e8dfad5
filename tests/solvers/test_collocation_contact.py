"""Studies of models with contacts: each program is a chain of relaxed ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from designopt import define
from designopt.plugin import load_file
from designopt.study.language.errors import StudyError

MODELS = Path(__file__).with_name("collocation_models.py")


@pytest.fixture(autouse=True)
def _models() -> None:
    load_file(str(MODELS), MODELS.read_bytes())


def study(**sections: Any) -> Any:
    given = {
        "study": "rough",
        "model": {"use": "rough_move"},
        "space": {"duration": {"low": 0.3, "high": 0.4, "unit": "s"}},
        "objectives": [{"name": "effort", "minimize": "effort"}],
        "execution": {"executor": "serial"},
        "solver": {"use": "collocation", "intervals": 40},
    }
    return define(**{**given, **sections})


def test_a_study_finds_the_best_duration_of_a_motion_with_friction(tmp_path: Path) -> None:
    """12/T^3 + m^2 T falls until T = 0.5 s: the longest of the range, 0.4 s, costs 417.9 for m = 24."""
    result = study().run(tmp_path / "s")
    (program,) = result.programs()

    assert program.status == "solved"
    assert program.figures["optimum(duration)"] == pytest.approx(0.4, rel=1e-6)
    assert program.figures["program(objective)"] == pytest.approx(12.0 / 0.4**3 + 24.0**2 * 0.4, rel=2e-3)
    assert max(program.figures[f"complementary({name})"] for name in ("left", "right", "stick")) < 1e-4
    assert "In each pair one value is zero to within" in program.message
    assert result.outcomes.objectives[0, 0] == pytest.approx(program.figures["program(objective)"], rel=1e-3)


def test_scenarios_have_pairs_of_their_own(tmp_path: Path) -> None:
    """The mean of 12/T^3 + m^2 T over two frictions, at T = 0.4 s."""
    result = study(
        space={"duration": {"low": 0.4, "high": 0.4001, "unit": "s"}},
        scenarios=[{"name": "dry", "friction": 24.0}, {"name": "wet", "friction": 12.0}],
        objectives=[{"name": "effort", "minimize": "effort", "over": "mean"}],
    ).run(tmp_path / "s")
    (program,) = result.programs()

    mean = 12.0 / 0.4**3 + 0.4 * (24.0**2 + 12.0**2) / 2.0
    assert program.figures["program(objective)"] == pytest.approx(mean, rel=2e-3)
    assert "complementary(wet: stick)" in program.figures


@pytest.mark.parametrize(
    ("solver", "text"),
    [
        ({"degree": 3}, "contacts need radau of degree 1"),
        ({"scheme": "hermite_simpson"}, "contacts need radau of degree 1"),
        ({"refine": {}}, "a mesh is not refined while contacts change"),
        ({"switches": {"u": {"pieces": 4}}}, "contacts and switches each need their own sequence of programs"),
        ({"deviations": {"friction": 1.0}, "margins": {"x": 1.0}}, "contacts open and close elsewhere"),
    ],
)
def test_what_contacts_do_not_go_with_is_refused(solver: dict[str, Any], text: str) -> None:
    with pytest.raises(StudyError, match=text):
        study(solver={"use": "collocation", **solver})
