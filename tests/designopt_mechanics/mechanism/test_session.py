"""Mechanisms from Python: parts from the package, files read, tasks solved by names, postures drawn."""

from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
from designopt_mechanics import (
    Body,
    Coordinate,
    Fixed,
    Frame,
    Mechanism,
    Point,
    Rotate,
    Slide,
    Spring,
    Tree,
    Wire,
    draw,
    read_mechanism,
    solve,
)
from designopt_mechanics.equations import equations_of
from designopt_mechanics.state import TreeState
from designopt_mechanics.tree import TreeError

FILE = Path(__file__).parents[3] / "studies" / "mechanisms" / "slider_crank.yaml"


def test_a_file_is_read_and_a_task_gives_outputs_and_arrays_by_name() -> None:
    result = solve(read_mechanism(FILE), "inverse_dynamics", {"crank": 0.05}, motion={"angle": "2*pi*time"})
    assert result.outputs["stroke_max"] - result.outputs["stroke_min"] == pytest.approx(0.1, rel=1e-3)
    assert result.arrays["effort_angle"].shape == result.arrays["time"].shape
    assert result.outputs["effort_angle_peak"] == pytest.approx(np.abs(result.arrays["effort_angle"]).max())


@pytest.mark.parametrize(
    ("task", "changes", "message"),
    [
        ("dynamics", {}, "no task 'dynamics'; there are inverse_dynamics"),
        ("simulation", {"length": 1.0}, "no setting 'length'"),
        ("simulation", {"parameters": {"crnk": 1.0}}, "no parameter 'crnk'; there are crank, rod, turn"),
        ("simulation", {"initial": {"angel": 1.0}}, "no state 'angel'; did you mean 'angle'"),
        ("inverse_dynamics", {"motion": {"angle": "2*tme"}}, "'tme' is neither time nor a parameter"),
        ("inverse_dynamics", {}, "state a motion"),
        ("equilibrium", {"buckling": ["wrk"]}, "no load 'wrk'; did you mean 'work'"),
        ("equilibrium", {"outputs": ["stabel"]}, "no output 'stabel'; did you mean 'stable'"),
    ],
)
def test_a_wrong_name_is_an_error_with_the_right_one(task: str, changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        solve(read_mechanism(FILE), task, **changes)  # type: ignore[arg-type]


def test_a_mechanism_is_stated_in_parts_with_one_number_as_planar_inertia() -> None:
    """A compound pendulum held by a spring: small oscillations at sqrt(stiffness / inertia about the hinge)."""
    tree = Tree(
        (Coordinate("hip"),),
        (
            Frame("bar", motions=(Rotate((0, 0, 1), "hip"),), body=Body(2.0, (0.0, -0.5, 0.0), 0.1)),
            Frame("tool", "bar", Fixed, position=(0.0, -1.0, 0.0)),
        ),
    )
    spring = Spring(Wire("spring", (Point("ground", (0.3, -1.0, 0.0)), Point("tool"))), 50.0, 0.3)
    mechanism = Mechanism(tree, (0.0, -9.81, 0.0), springs=(spring,))
    period = 2.0 * np.pi / np.sqrt((2.0 * 9.81 * 0.5 + 50.0 * 1.0) / (0.1 + 2.0 * 0.25))
    result = solve(mechanism, "simulation", initial={"hip": 1e-3}, duration=period, samples=11)
    assert result.arrays["hip"][-1] == pytest.approx(1e-3, rel=1e-2)
    assert solve(mechanism, "equilibrium").outputs["stiffness_hip"] == pytest.approx(59.81, rel=1e-6)
    assert len(draw(tree).data[0].x) == len(draw(mechanism, [0.1]).data[0].x) - 3


def test_a_drawing_is_of_a_closed_posture_by_names_and_of_the_motion_of_a_result() -> None:
    linkage = read_mechanism(FILE)
    upright = draw(linkage, {"angle": np.pi / 2}, {"crank": 0.05})
    assert np.nanmax(upright.data[0].y) == pytest.approx(0.05)
    assert np.nanmax(draw(linkage, {"stroke": 0.2}).data[0].x) == pytest.approx(0.2)
    result = solve(linkage, "inverse_dynamics", motion={"angle": "2*pi*time"}, samples=7)
    motion = draw(linkage, result.arrays)
    assert len(motion.frames) == 7 == len(motion.layout.sliders[0].steps)
    assert motion.frames[3].data[0].x == pytest.approx(result.arrays["scene"][3, :, 0], nan_ok=True)


def test_a_drawing_in_space_has_three_axes() -> None:
    tree = Tree((Coordinate("a"),), (Frame("arm", motions=(Rotate((0, 1, 0), "a"),), body=Body(1.0, (0.3, 0.1, 0.2))),))
    assert draw(tree, [0.4]).data[0].type == "scatter3d"


@pytest.mark.parametrize(
    ("posture", "parameters", "message"),
    [
        ({"angel": 1.0}, {}, r"values of the independent coordinates \(angle\), or of as many others"),
        ({"angle": 1.0, "swing": 0.0}, {}, "values of the independent coordinates"),
        ({"angle": [0.0, 1.0]}, {}, "columns of all coordinates are needed: angle, swing, stroke"),
        ({"stroke": 5.0}, {}, "do not close at stroke = 5"),
        ([0.0, 1.0], {}, "a finite value of each of the 3 coordinates"),
        ([0.0, np.nan, 1.0], {}, "a finite value"),
        (None, {"crnk": 1.0}, "no parameter 'crnk'"),
    ],
)
def test_a_posture_that_cannot_be_drawn_is_an_error(posture: Any, parameters: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw(read_mechanism(FILE), posture, parameters)


def test_forces_of_equations_are_by_the_names_of_coordinates() -> None:
    tree = Tree(
        (Coordinate("x", "m"), Coordinate("y", "m")),
        (Frame("mass", motions=(Slide((1, 0, 0), "x"), Slide((0, 1, 0), "y")), body=Body(2.0)),),
    )
    state = TreeState.symbols(tree)
    residuals = ca.vertcat(*(e for _, _, e in equations_of(state, {"y": 6.0}).unknowns))
    f = ca.Function("residual", [state.ddz], [residuals])
    assert np.asarray(f([0.0, 3.0])).ravel() == pytest.approx([0.0, 0.0])
    with pytest.raises(TreeError, match="no such coordinate"):
        equations_of(state, {"u": 6.0})
