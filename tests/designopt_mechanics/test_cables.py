"""Cable robots: the workspace agrees with linear programs, stiffness with differences, and the study finds a front."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from designopt_mechanics.cables.model import CableRobot
from designopt_mechanics.cables.robot import HEIGHT, MASS, margins, positive_share, stiffness
from designopt_mechanics.report.scene import mechanism_scene
from scipy.optimize import linprog, minimize

import designopt

STUDIES = Path(__file__).parents[2] / "studies"


def feasible(arms: Any, low: float, high: float, weight: Any, box: Any) -> bool:
    """One linear program for every corner of the box, as the specification states it."""
    for corner in itertools.product((-1.0, 1.0), repeat=len(box)):
        needed = -(weight + np.array(corner) * box)
        if linprog(np.zeros(arms.shape[1]), A_eq=arms, b_eq=needed, bounds=(low, high)).status != 0:
            return False
    return True


@pytest.mark.parametrize(("m", "k"), [(2, 3), (3, 4), (3, 6)])
def test_the_margin_is_not_negative_where_every_corner_has_tensions(m: int, k: int) -> None:
    rng = np.random.default_rng(m + k)
    arms = rng.normal(size=(60, m, k))
    arms[:, :, -1] = -arms[:, :, :-1].sum(axis=2) + 0.3 * rng.normal(size=(60, m))  # against all the others
    weight, box = np.array([0.0] * (m - 1) + [-20.0]), np.full(m, 6.0)
    computed = margins(arms, 5.0, 100.0, weight, box) >= 0.0
    expected = [feasible(a, 5.0, 100.0, weight, box) for a in arms]
    assert computed.tolist() == expected
    assert 0 < sum(expected) < 60


def test_fewer_cables_than_directions_hold_nothing() -> None:
    assert margins(np.ones((2, 3, 2)), 0.0, 1.0, np.zeros(3), np.zeros(3)).tolist() == [-np.inf, -np.inf]


def test_stiffness_is_that_of_springs_along_the_cables() -> None:
    arms = np.array([[[1.0, 0.0, 0.6], [0.0, 1.0, 0.8]]])
    assert np.allclose(stiffness(arms, 10.0)[0], [[13.6, 4.8], [4.8, 16.4]])


def test_anchors_moved_together_stiffen_the_height_and_lose_workspace() -> None:
    model = CableRobot(grid=9)
    wide, narrow = (model.evaluate({"upper_inset": x, "lower_inset": x}, {})[0] for x in (0.0, 0.7))
    assert wide["workspace"] > narrow["workspace"]
    assert wide["stiffness"] != narrow["stiffness"]
    loaded, _ = model.evaluate({}, {"force": 200.0})
    assert loaded["workspace"] < wide["workspace"]


def test_the_spatial_robot_has_a_workspace_as_well() -> None:
    outputs, arrays = CableRobot(kind="spatial", grid=4).evaluate({}, {}, {"scene", "poses", "margin"})
    assert 0.0 < outputs["workspace"] <= 1.0
    assert arrays["poses"].shape == (64, 3)
    assert arrays["scene"].shape[2] == 3


@pytest.mark.parametrize("kind", ["planar", "spatial"])
def test_the_effort_is_of_cables_that_pull_within_their_bounds(kind: Any) -> None:
    """By SciPy's SLSQP; the least tensions without bounds push with up to 18 N, and no cables carry a tonne."""
    model = CableRobot(kind=kind)
    outputs, _ = model.evaluate({}, {})
    moves = 2 if kind == "planar" else 3
    middle = np.zeros((1, moves + (1 if kind == "planar" else 3)))
    middle[0, moves - 1] = 0.5 * HEIGHT
    arms = model._arms(middle, [0.0, 0.0, 0.0])[0][0]
    weight = np.zeros(len(arms))
    weight[moves - 1] = 9.81 * MASS
    assert (np.linalg.lstsq(arms, weight, rcond=None)[0] < -10.0).any()
    reference = minimize(
        lambda t: t @ t, np.full(arms.shape[1], 50.0), jac=lambda t: 2.0 * t, bounds=[(5.0, 300.0)] * arms.shape[1],
        constraints={"type": "eq", "fun": lambda t: arms @ t - weight, "jac": lambda t: arms}, method="SLSQP",
        options={"ftol": 1e-9},
    )  # fmt: skip
    assert reference.success
    assert outputs["effort"] == pytest.approx(reference.fun, rel=1e-6)
    heavy, _ = model.evaluate({}, {"payload": 1000.0})
    assert "effort" not in heavy
    assert heavy["workspace"] == 0.0


@pytest.mark.parametrize("d", [2, 3])
def test_the_share_of_a_box_where_a_linear_margin_is_positive_is_exact_and_without_steps(d: int) -> None:
    axes = np.stack(np.meshgrid(*[np.linspace(0.0, 1.0, 4)] * d, indexing="ij"))
    direction = np.array([1.0, 0.7, 0.4])[:d]
    # the part of the unit cube with direction . x < level, by inclusion and exclusion of corners (Marichal 2008)
    for level in (0.1, 0.33, 0.9, 1.2):
        corners = np.array(list(itertools.product((0, 1), repeat=d)))
        below = np.maximum(level - corners @ direction, 0.0) ** d * (-1.0) ** corners.sum(axis=1)
        exact = below.sum() / (math.factorial(d) * direction.prod())
        assert positive_share(level - np.tensordot(direction, axes, 1)) == pytest.approx(exact, abs=1e-12)
    assert positive_share(np.ones((3,) * d)) == 1.0
    assert positive_share(-np.ones((3,) * d)) == 0.0


def test_the_bundled_study_searches_and_its_report_draws_it(tmp_path: Path) -> None:
    changes = ["stages.0.budget.evaluations=24", "stages.0.solver.population=12", "model.grid=7",
               "report.tolerances.neighbours=2"]  # fmt: skip
    result = designopt.load(STUDIES / "cable_robot.yaml", overrides=changes).run(tmp_path / "c.study")
    assert len(result.outcomes.X) >= 24
    section = mechanism_scene(result)
    assert section is not None
    assert section.figures
