"""The bundled studies of motion run as they stand; what they say of themselves holds."""

from pathlib import Path

import numpy as np
import pytest

import designopt
from designopt.report.page import sections

STUDIES = Path(__file__).parents[2] / "studies"


def test_simulation_and_program_find_the_same_suspension(tmp_path):
    result = designopt.load(STUDIES / "quarter_car.yaml").run(tmp_path / "car.study")
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


def test_the_price_of_a_swing_up_rises_with_the_length_of_the_pole(tmp_path):
    changes = ["stages.0.solver.sweep.pole_length=3", "stages.0.solver.starts=1", "stages.0.solver.verify=0",
               "model.starts=1"]  # fmt: skip
    result = designopt.load(STUDIES / "cart_pole.yaml", overrides=changes).run(tmp_path / "pole.study")
    order = result.outcomes.X[:, 0].argsort()
    length, duration = result.outcomes.X[order].T
    price = result.outcomes.objectives[order, 0]
    np.testing.assert_allclose(length, [0.4, 0.5, 0.6], rtol=1e-12)
    assert (np.diff(duration) > 0.05).all()
    assert (np.diff(price) > 5.0).all()
    solved = [program.solution.objective for program in result.programs()]
    np.testing.assert_allclose(sorted(solved), price, rtol=1e-6)
