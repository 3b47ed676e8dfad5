"""Trees and bodies that cannot be are refused with the name of what is wrong."""

import logging
from typing import Any

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


def test_a_coordinate_that_moves_no_mass_is_named() -> None:
    tree = Tree(
        (Coordinate("a"), Coordinate("b")), (Frame("one", motions=(Rotate(Z, "a"),), body=Body(1.0, (1, 0, 0))),)
    )
    with pytest.raises(TreeError, match="'b', mass: no mass moves with this coordinate"):
        check(tree)


def test_coordinates_that_do_the_same_are_named_with_the_direction_that_has_no_mass() -> None:
    combined = Affine({"a": 1.0, "b": 2.0})
    tree = Tree(
        (Coordinate("a"), Coordinate("b")), (Frame("one", motions=(Rotate(Z, combined),), body=Body(1.0, (1, 0, 0))),)
    )
    with pytest.raises(TreeError, match=r"no mass moves along a [+-]1, b [+-]0.5 at a = 0, b = 0"):
        check(tree)


def test_a_joint_function_with_a_kink_is_found_at_the_place_that_is_tried() -> None:
    import casadi as ca

    tree = Tree(
        (Coordinate("a"),),
        (Frame("one", motions=(Rotate(Z, lambda z: z["a"] + ca.fabs(z["a"])),), body=Body(1.0, (1, 0, 0))),),
    )
    check(tree, [[0.5]])
    with pytest.raises(TreeError, match=r"'one', motions: a joint function jumps in its (slope|curvature) at a = 0"):
        check(tree)


def test_a_joint_function_that_is_not_finite_is_found() -> None:
    import casadi as ca

    tree = Tree(
        (Coordinate("a"),), (Frame("one", motions=(Rotate(Z, lambda z: ca.sqrt(z["a"])),), body=Body(1.0, (1, 0, 0))),)
    )
    with pytest.raises(TreeError, match="'one', motions: a joint function or its derivative is not finite at a = 0"):
        check(tree)


def test_a_good_tree_passes() -> None:
    tree = Tree(
        (Coordinate("a"),), (Frame("one", motions=(Rotate(Z, Affine({"a": 0.5})),), body=Body(1.0, (1, 0, 0))),)
    )
    check(tree)
    check(tree, np.linspace(-1.0, 1.0, 5)[:, None])


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_a_motion_by_a_number_that_is_not_finite_is_refused(bad: float) -> None:
    for field, motion in {
        "angle": lambda: Rotate((0.0, 0.0, 1.0), bad),
        "distance": lambda: Slide((1.0, 0.0, 0.0), bad),
    }.items():
        with pytest.raises(MotionError, match=f"{field}: .* is not a finite number"):
            motion()
