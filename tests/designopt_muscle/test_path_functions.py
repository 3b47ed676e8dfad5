"""Muscles whose lengths are functions of coordinates (OpenSim's FunctionBasedPath)."""

import re

import numpy as np
import pytest
from designopt_mechanics.robot_files.xml import ModelError
from designopt_muscle.geometry.drawing import drawing
from designopt_muscle.geometry.geometry import muscle_geometry
from designopt_muscle.models.reactions import reaction_gains
from designopt_muscle.osim.functions import ManyPolynomial, ordered_exponents
from designopt_muscle.osim.read import read_model
from designopt_muscle.scaling.apply import scale_model
from subject_model import subject

LENGTH = "<LinearFunction><coefficients>0.03 -0.02 0.3</coefficients></LinearFunction>"


def with_path(length=LENGTH, arms="", names="/jointset/hip_r/flexion_r /jointset/knee_r/knee_r"):
    """The small subject with its muscle's path replaced."""
    path = (
        f"<FunctionBasedPath><coordinate_paths>{names}</coordinate_paths>"
        f"<length_function>{length}</length_function>{arms}</FunctionBasedPath>"
    )
    return re.sub(r"<GeometryPath>.*</GeometryPath>", path, subject().decode(), flags=re.DOTALL).encode()


def many(order, coefficients):
    return (
        f"<MultivariatePolynomialFunction><coefficients>{coefficients}</coefficients><dimension>2</dimension>"
        f"<order>{order}</order></MultivariatePolynomialFunction>"
    )


def test_coefficients_are_in_the_order_of_the_last_coordinate_first():
    assert ordered_exponents(3, 3)[[0, 3, 6, 9, 10, 14, 19]].tolist() == [
        [0, 0, 0], [0, 0, 3], [0, 1, 2], [0, 3, 0], [1, 0, 0], [1, 1, 1], [3, 0, 0],
    ]  # fmt: skip
    polynomial = ManyPolynomial(np.arange(1.0, 11.0), ordered_exponents(2, 3))
    x = np.array([[0.3, -0.7], [-1.1, 0.4]])
    for j, h in enumerate(1e-6 * np.eye(2)):
        slope = (polynomial.values(x + h) - polynomial.values(x - h)) / 2e-6
        assert polynomial.slopes(x)[:, j] == pytest.approx(slope, abs=1e-8)


def test_lengths_and_moment_arms_follow_the_functions():
    q, k = np.array([0.4, -0.2]), np.array([-0.5, 0.3])
    model = read_model(with_path(many(2, "0.3 -0.02 0.005 0.03 0.01 -0.004")))
    geometry = muscle_geometry(model, {"flexion_r": q, "knee_r": k})
    length = 0.3 - 0.02 * k + 0.005 * k**2 + 0.03 * q + 0.01 * q * k - 0.004 * q**2
    assert geometry.lengths[:, 0] == pytest.approx(length)
    row = geometry.coordinates.index
    assert geometry.arms[:, row("flexion_r"), 0] == pytest.approx(-(0.03 + 0.01 * k - 0.008 * q))
    assert geometry.arms[:, row("knee_r"), 0] == pytest.approx(-(-0.02 + 0.01 * k + 0.01 * q))
    constants = "".join(f"<Constant><value>{v}</value></Constant>" for v in (0.05, 0.01))
    arms = f"<moment_arm_functions>{constants}</moment_arm_functions>"
    measured = muscle_geometry(read_model(with_path(arms=arms)), {"flexion_r": q})
    assert measured.arms[:, row("flexion_r"), 0] == pytest.approx(0.05)


def test_such_muscles_have_no_place_in_space_which_is_noted():
    model = read_model(with_path())
    assert any("press on no joint" in note and "vastus" in note for note in model.notes)
    assert np.isnan(drawing(model, {"knee_r": np.zeros(1)})[1]).all()
    assert not reaction_gains(model, {"knee_r": np.zeros(1)}, ["knee_r"])["knee_r"].any()
    bigger = read_model(scale_model(with_path(), {"thigh_r": np.full(3, 1.2)}))
    assert bigger.muscles[0].fibre == model.muscles[0].fibre  # as OpenSim


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (with_path(names="/jointset/hip_r/flexion"), "'flexion' is not a coordinate"),
        (with_path(names=""), "names no coordinate"),
        (with_path(length=""), "contains 0 functions"),
        (with_path(length=many(2, "0.3 0.1")), "contains 2 numbers, not 6"),
        (
            with_path(length="<SimmSpline><x>0 1</x><y>0 1</y></SimmSpline>"),
            "not a supported function of 2 coordinates",
        ),
        (with_path(arms=f"<moment_arm_functions>{LENGTH}</moment_arm_functions>"), "has 1 functions for 2"),
    ],
)
def test_unusable_functions_are_refused_with_their_place(content, message):
    with pytest.raises(ModelError, match=f"line \\d+.*{message}"):
        read_model(content)
