"""The bundled studies of mechanisms run, and their pages draw them."""

from pathlib import Path

import pytest
from designopt_mechanics.report.mechanism import mechanism_signals
from designopt_mechanics.report.scene import mechanism_scene

import designopt

STUDIES = Path(__file__).parents[3] / "studies"
SMALL = ["stages.0.budget.evaluations=16", "stages.0.solver.population=8", "report.tolerances.neighbours=2",
         "execution.executor=serial"]  # fmt: skip


COARSE = [f"model.grid.over.{name}.points=2" for name in "uvw"]


@pytest.mark.parametrize(("name", "changes"), [("delta_robot", COARSE), ("tensegrity", [])])
def test_a_study_of_a_mechanism_finds_designs_and_draws_them(name: str, changes: list[str], tmp_path: Path) -> None:
    result = designopt.load(STUDIES / f"{name}.yaml", overrides=[*SMALL, *changes]).run(tmp_path / "m.study")
    assert result.outcomes.feasible.any()
    section = mechanism_scene(result)
    assert section is not None
    assert section.figures


def test_the_signals_of_a_motion_are_drawn_in_groups(tmp_path: Path) -> None:
    result = designopt.load(STUDIES / "slider_crank.yaml", overrides=SMALL).run(tmp_path / "m.study")
    section = mechanism_signals(result)
    assert section is not None
    assert [figure.title for figure in section.figures] == ["Efforts of the drives", "Forces in the joints"]
    titles = [figure.plot["layout"]["yaxis"]["title"]["text"] for figure in section.figures]
    assert titles == ["effort [N m]", "force [N]"]
