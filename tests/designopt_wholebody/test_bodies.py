"""Bodies in natural coordinates: frames, points, mass matrices; against clouds of mass points and published numbers."""

import numpy as np
import pytest
from designopt_wholebody.body.body import BodySegment
from designopt_wholebody.body.frames import axes_of, with_derived
from designopt_wholebody.body.inertia import MassProperties
from designopt_wholebody.dynamics.rotation import angular_matrix, angular_velocity
from designopt_wholebody.kinematics.posture import posture
from designopt_wholebody.model.library import bundled_names, content_of, load_model
from designopt_wholebody.model.reading import read_model
from designopt_wholebody.subject import SubjectError, make_subject
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

Array = NDArray[np.float64]

LAYOUTS = [("1p3v", "uvw"), ("2p2v", "uv"), ("2p2v", "uw"), ("2p2v", "vw")]


def cloud(rng: np.random.Generator) -> tuple[Array, Array, MassProperties]:
    """Forty mass points of a random body in its local axes."""
    masses, points = rng.uniform(0.1, 1.0, 40), rng.normal(size=(40, 3))
    centre = masses @ points / masses.sum()
    r = points - centre
    tensor = np.einsum("p,pij->ij", masses, np.einsum("pi,pi,jk->pjk", r, r, np.eye(3)) - r[:, :, None] * r[:, None])
    return masses, points, MassProperties(float(masses.sum()), centre, tensor)


def body_of(layout: str, vectors: str, inertia: MassProperties, rng: np.random.Generator) -> BodySegment:
    first, second = rng.normal(size=(2, 3))
    columns = [np.eye(3)["uvw".index(v)] for v in vectors]
    if layout == "2p2v":
        columns.insert(0, second - first)
    points = ("A", "B")[: int(layout[0])]
    return BodySegment("body", layout, 0, points, tuple(vectors), first, np.column_stack(columns), inertia, {})


@pytest.mark.parametrize(("layout", "vectors"), LAYOUTS)
def test_the_mass_matrix_is_that_of_a_cloud_of_mass_points(layout: str, vectors: str) -> None:
    # Nunes 2017, 2.18-2.27 with the corrected sign of products of inertia
    rng = np.random.default_rng(3)
    masses, points, inertia = cloud(rng)
    body = body_of(layout, vectors, inertia, rng)
    c = body.point(points)
    expected = np.einsum("p,pi,pj->ij", masses, c, c)
    assert np.abs(body.mass_matrix() - expected).max() < 1e-12 * np.abs(expected).max()


def test_the_mass_matrix_of_a_rod_is_that_of_a_uniform_line() -> None:
    rod = make_subject(load_model("two_rods")).bodies["upper"]
    s, weight = np.polynomial.legendre.leggauss(3)  # exact for the quadratic integrand
    c = rod.point(np.stack([0.5 + 0.5 * s, 0 * s, 0 * s], axis=-1))
    assert np.allclose(rod.mass_matrix(), np.einsum("p,pi,pj->ij", 0.5 * weight, c, c), rtol=0, atol=1e-15)


@pytest.mark.parametrize(("layout", "vectors"), LAYOUTS)
def test_points_and_directions_are_sums_of_coordinates_with_constant_coefficients(layout: str, vectors: str) -> None:
    rng = np.random.default_rng(4)
    body = body_of(layout, vectors, cloud(rng)[2], rng)
    rotation, origin = np.linalg.qr(rng.normal(size=(3, 3)))[0], rng.normal(size=3)
    rotation *= np.sign(np.linalg.det(rotation))
    triples = [rotation @ body.first + origin]
    if layout == "2p2v":
        triples.append(rotation @ (body.first + body.base[:, 0]) + origin)
    q = np.concatenate([*triples, *(rotation[:, "uvw".index(v)] for v in vectors)])
    local = rng.normal(size=3)
    assert np.allclose(body.position(q, body.point(local)), rotation @ local + origin, atol=1e-13)
    assert np.allclose(body.position(q, body.direction(local)), rotation @ local, atol=1e-13)
    assert np.allclose(body.axes(q), rotation, atol=1e-13)


@pytest.mark.parametrize(("layout", "vectors"), LAYOUTS)
def test_a_pure_torque_has_its_power_in_every_layout_also_about_the_vertical(layout: str, vectors: str) -> None:
    """The force couple of Nunes 2017 (5.13) divides by the torque's component along X, which plates do not have."""
    rng = np.random.default_rng(5)
    body = body_of(layout, vectors, cloud(rng)[2], rng)
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    rotation *= np.sign(np.linalg.det(rotation))
    omega, velocity = rng.normal(size=(2, 3))
    arms = [np.zeros(3), *([rotation @ body.base[:, 0]] if layout == "2p2v" else [])]
    axes = [rotation[:, "uvw".index(v)] for v in vectors]
    q = np.concatenate([*arms, *axes])[None]
    qdot = np.concatenate([*(velocity + np.cross(omega, r) for r in arms), *(np.cross(omega, a) for a in axes)])
    assert np.allclose(angular_velocity(body, q, qdot[None]), omega, atol=1e-13)
    for torque in ([0.0, 30.0, 0.0], rng.normal(size=3)):
        force = np.array(torque) @ angular_matrix(body, q)[0]
        assert force @ qdot == pytest.approx(float(np.dot(torque, omega)), abs=1e-12)
        triples = force.reshape(-1, 3)
        resultant = np.cross(np.array(axes), triples[len(arms) :]).sum(axis=0)
        assert np.allclose(resultant, torque, atol=1e-12)
        assert np.abs(triples[: len(arms)]).max() == 0.0


def test_masses_of_the_full_model_are_the_corrected_ones() -> None:
    # thorax 33.3 % less 3.2 kg: 23.97 kg, all 81.76 kg for 81.6 kg (Nunes 2017, table 5.1, corrected)
    bodies = make_subject(load_model("wholebody21"), mass=81.6).bodies
    assert bodies["thorax"].inertia.mass == pytest.approx(23.97, abs=0.005)
    assert sum(body.inertia.mass for body in bodies.values()) == pytest.approx(81.76, abs=0.005)


def test_inertia_follows_the_lengths_of_the_segments() -> None:
    bodies = make_subject(load_model("wholebody21"), mass=81.6).bodies
    thigh = bodies["thigh_R"]
    length = np.linalg.norm(thigh.local["KC_R"])
    m = 0.123 * 81.6
    assert np.allclose(thigh.inertia.centre, length * np.array([-0.041, -0.429, 0.033]))
    assert np.allclose(np.diag(thigh.inertia.tensor), m * (length * np.array([0.29, 0.15, 0.30])) ** 2)
    assert thigh.inertia.tensor[0, 1] == pytest.approx(m * (0.07 * length) ** 2)
    assert thigh.inertia.tensor[0, 2] == pytest.approx(-m * (0.02 * length) ** 2)


def test_the_length_of_the_pelvis_is_data() -> None:
    """The published factors belong to the distance from the lumbar centre to the middle of the hip centres."""
    text = b"""
model: other_pelvis
based_on: wholebody21
derived: {middle: [CAQ_R, CAQ_L]}
segments: {pelvis: {inertia: {length: [CAL, middle], length_factor: 1.0}}}
"""
    usual, resized = make_subject(load_model("wholebody21")), make_subject(read_model(text, "other.yaml", content_of))
    half = 0.5 * np.linalg.norm(usual.landmarks["CIAS_R"] - usual.landmarks["CIAS_L"])
    published = np.linalg.norm(resized.landmarks["CAL"] - resized.landmarks["middle"])
    inertia, before = resized.bodies["pelvis"].inertia, usual.bodies["pelvis"].inertia
    assert inertia.mass == before.mass
    assert np.allclose(inertia.tensor, before.tensor * (published / half) ** 2)
    assert np.allclose(inertia.centre, before.centre * published / half)


def test_ankles_lie_between_the_malleoli_and_the_axis_of_pronation_is_the_line_of_epicondyle_and_styloid() -> None:
    """Defaults for what the thesis does not give: no offset of the ankle, the line from EL to EU."""
    subject = make_subject(load_model("wholebody21"))
    marks = subject.landmarks
    assert np.allclose(marks["CAT_R"], 0.5 * (marks["MM_R"] + marks["ML_R"]))
    line = marks["EL_R"] - marks["EU_R"]
    line /= np.linalg.norm(line)
    turn = Rotation.from_rotvec(0.7 * line).as_matrix()
    pronated = posture(subject, {"radioulnar_R": turn[None]})
    names = np.array([name.owner for name in subject.constraints.names])
    phi = np.abs(subject.constraints.values(pronated)[0])
    assert phi[names == "radioulnar_R"].max() < 1e-12
    tilted = posture(subject, {"radioulnar_R": Rotation.from_rotvec([0.0, 0.7, 0.0]).as_matrix()[None]})
    assert np.abs(subject.constraints.values(tilted)[0])[names == "radioulnar_R"].max() > 1e-2
    assert np.abs(subject.bodies["ulna_R"].axes(subject.q0).T @ line).max() < 0.9999  # parallel to no local axis


def test_points_of_the_scapula_are_put_on_their_surface() -> None:
    model = load_model("wholebody21")
    moved = {**model.landmarks, "PES_R": np.add(model.landmarks["PES_R"], [0.01, 0.005, -0.008])}
    subject = make_subject(model, moved)
    assert not np.allclose(subject.landmarks["PES_R"], moved["PES_R"], atol=1e-3)
    assert np.abs(subject.constraints.values(subject.q0[None])).max() < 1e-14


@pytest.mark.parametrize("name", [name for name in bundled_names() if name not in ("two_rods", "four_bar")])
def test_mass_matrices_are_positive_definite_and_coordinates_independent(name: str) -> None:
    for body in make_subject(load_model(name)).bodies.values():
        assert np.linalg.eigvalsh(body.mass_matrix())[0] > 5e-5
        assert body.condition < 13


def test_frames_of_both_sides_point_forward_up_and_to_the_right() -> None:
    model = load_model("wholebody21")
    subject = make_subject(model)
    for name, body in subject.bodies.items():
        axes = body.axes(subject.q0)
        assert np.linalg.det(axes) == pytest.approx(1.0)
        assert (np.diag(axes) > 0.8).all(), name
        if body.mirrored:
            right = subject.bodies[name[:-2] + "_R"]
            M = np.diag([1.0, 1.0, -1.0])
            assert np.allclose(axes, M @ right.axes(subject.q0) @ M)
            assert np.allclose(body.inertia.centre, M @ right.inertia.centre)
            assert np.allclose(body.inertia.tensor, M @ right.inertia.tensor @ M)
            assert np.allclose(np.abs(body.mass_matrix()), np.abs(right.mass_matrix()))  # w is turned round


def test_the_frame_of_the_humerus_needs_both_epicondyles() -> None:
    # the thesis prints (EL-GU) x (EL-GU) = 0; corrected
    model = load_model("wholebody21")
    landmarks = with_derived(model, {name: np.array(p) for name, p in model.landmarks.items()})
    frame = model.segments["humerus_R"].frame
    assert frame is not None
    axes = axes_of(frame, landmarks, mirrored=False)
    line = landmarks["EL_R"] - landmarks["EM_R"]
    assert axes[:, 2] @ line / np.linalg.norm(line) > 0.99


def test_frames_of_frames_with_a_missing_landmark_are_nan_and_only_these() -> None:
    model = load_model("wholebody21")
    landmarks = {name: np.repeat(np.array(p)[None], 4, axis=0) for name, p in model.landmarks.items()}
    landmarks["EL_R"][2] = np.nan
    frame = model.segments["humerus_R"].frame
    assert frame is not None
    axes = axes_of(frame, with_derived(model, landmarks), mirrored=False)
    assert np.isnan(axes[2]).all()
    assert np.isfinite(axes[[0, 1, 3]]).all()


def test_implausible_subjects_are_refused_in_a_sentence() -> None:
    model = load_model("wholebody21")
    landmarks = dict(model.landmarks)
    for change, message in (
        ({"EL_R": landmarks["GU_R"]}, "."),
        ({"EM_R": (np.nan, 0.0, 0.0)}, "landmark 'EM_R' has no finite position"),
    ):
        with pytest.raises(SubjectError, match=message):
            make_subject(model, {**landmarks, **change})
    without = {name: p for name, p in landmarks.items() if name != "MC2_R"}
    with pytest.raises(SubjectError, match=r"landmark 'PMC_R' \(the mean of MC2_R, MC5_R\).*|landmark 'MC2_R'"):
        make_subject(model, without)
    with pytest.raises(SubjectError, match="body mass"):
        make_subject(model, mass=-70.0)
    with pytest.raises(SubjectError, match="segment 'thorax' of a body of 9 kg has no mass"):
        make_subject(model, mass=9.0)
    with pytest.raises(SubjectError, match="points and vectors of segment 'thigh_R' are nearly linearly dependent"):
        make_subject(
            model, {**landmarks, "CAQ_R": np.array(landmarks["CL_R"]) * 0.5 + 0.5 * np.array(landmarks["CM_R"]) + 1e-5}
        )
    same = {**landmarks, "VC": landmarks["CAC"]}
    with pytest.raises(SubjectError, match="frame of 'head'"):
        make_subject(model, same)
