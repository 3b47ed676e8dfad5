"""Trees and bodies that cannot be are refused with the name of what is wrong."""

import logging
from typing import Any

import casadi as ca
import numpy as np
import pytest
from designopt_mechanics.body import Body, BodyError
from designopt_mechanics.checks import check
from designopt_mechanics.functions.affine import Affine
from designopt_mechanics.motions import MotionError, Rotate, Slide
from designopt_mechanics.tree import Coordinate, Frame, Tree, TreeError

Z = (0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mass": -1.0}, "mass: -1 kg is not a mass"),
        ({"mass": np.nan}, "mass: nan kg is not a mass"),
        ({"centre": (0.0, 1.0)}, r"centre: has shape \(2,\)"),
        ({"centre": (0.0, np.inf, 1.0)}, "centre: .* is not finite"),
        ({"inertia": (1.0, 1.0)}, "inertia: has shape"),
        ({"inertia": (1.0, 1.0, np.nan)}, "inertia: is not finite"),
        ({"inertia": (1.0, 1.0, 2.5)}, "no body has the principal moments 1, 1, 2.5"),
        ({"inertia": (-0.1, 1.0, 1.0)}, "negative principal moment -0.1"),
        ({"inertia": [[1.0, 0.2, 0.0], [0.1, 1.0, 0.0], [0.0, 0.0, 1.0]]}, "not symmetric"),
    ],
)
def test_a_body_that_cannot_be_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(BodyError, match=message):
        Body(**{"mass": 1.0, **settings})


def test_a_published_tensor_that_breaks_the_triangle_inequality_passes_on_request_alone() -> None:
    assert Body(1.0, inertia=(1.0, 1.0, 2.5), triangle="ignored").mass == 1.0
    with pytest.raises(BodyError, match="negative"):
        Body(1.0, inertia=(-1.0, 1.0, 2.5), triangle="ignored")


def test_an_axis_that_is_nearly_of_unit_length_is_normalised_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        motion = Rotate((0.0, 0.0, 1.001), 0.0)
    assert motion.axis == (0.0, 0.0, 1.0)
    assert "1.001" in caplog.text
    caplog.clear()
    Rotate((0.6, 0.8 + 1e-9, 0.0), 0.0)
    assert not caplog.text


@pytest.mark.parametrize("axis", [(0.0, 0.0, 0.0), (0.0, 0.0, 2.0), (np.nan, 0.0, 1.0), (1.0, 0.0)])
def test_an_axis_that_is_none_is_refused(axis: Any) -> None:
    with pytest.raises(MotionError, match="axis: "):
        Slide(axis, 0.0)


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ([Frame("a", "b"), Frame("b")], "'a', parent: 'b' comes after it or is attached to it"),
        ([Frame("a", "a")], "'a', parent: is the frame itself"),
        ([Frame("shank"), Frame("foot", "shnk")], "'foot', parent: no frame 'shnk'; did you mean 'shank'"),
        ([Frame("a"), Frame("a")], "'a', name: is given more than once"),
        ([Frame("ground")], "'ground', name: is given more than once"),
        ([Frame("a", motions=(Rotate(Z, "kne"),))], "'a', motions: no coordinate 'kne'; did you mean 'knee'"),
        ([Frame("a", position=(0.0, np.nan, 0.0))], "'a', place: .* is not finite"),
        ([Frame("a", turn=np.diag([1.0, 1.0, -1.0]))], "'a', turn: is not a rotation"),
    ],
)
def test_a_tree_that_cannot_be_is_refused(frames: list[Frame], message: str) -> None:
    with pytest.raises(TreeError, match=message):
        Tree((Coordinate("knee"),), tuple(frames))


def test_a_coordinate_whose_reference_is_outside_of_its_range_is_refused() -> None:
    with pytest.raises(TreeError, match=r"'knee', reference: 0 is not within 0\.1 to 2"):
        Tree((Coordinate("knee", low=0.1, high=2.0),), ())


def turning_body(*names: str, by: Any) -> Tree:
    """A body that turns about Z, with these coordinates."""
    return Tree(
        tuple(Coordinate(name) for name in names),
        (Frame("one", motions=(Rotate(Z, by),), body=Body(1.0, (1, 0, 0))),),
    )


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (turning_body("a", "b", by="a"), "'b', mass: no mass moves with this coordinate"),
        (
            turning_body("a", "b", by=Affine({"a": 1.0, "b": 2.0})),
            r"no mass moves along a [+-]1, b [+-]0.5 at a = 0, b = 0",
        ),
        (
            turning_body("a", by=lambda z: z["a"] + ca.fabs(z["a"])),
            r"'one', motions: a joint function jumps in its (slope|curvature) at a = 0",
        ),
        (
            turning_body("a", by=lambda z: ca.sqrt(z["a"])),
            "'one', motions: a joint function or its derivative is not finite at a = 0",
        ),
    ],
    ids=["no mass", "the same motion", "kink", "not finite"],
)
def test_coordinates_without_a_regular_motion_are_named(tree: Tree, message: str) -> None:
    with pytest.raises(TreeError, match=message):
        check(tree)


def test_a_joint_function_passes_away_from_its_kink() -> None:
    check(turning_body("a", by=lambda z: z["a"] + ca.fabs(z["a"])), [[0.5]])


def test_a_good_tree_passes() -> None:
    tree = turning_body("a", by=Affine({"a": 0.5}))
    check(tree)
    check(tree, np.linspace(-1.0, 1.0, 5)[:, None])
