"""Constraints as quadratic rows: counts, derivatives, statics; against CasADi and against the printed formulas."""

import numpy as np
import pytest
from designopt_wholebody.constraints.rows import ellipsoid_form
from designopt_wholebody.model.library import bundled_names, load_model
from designopt_wholebody.subject import Subject, make_subject
from numpy.typing import NDArray

Array = NDArray[np.float64]


def moved(subject: Subject, seed: int, frames: int = 3) -> tuple[Array, Array]:
    """Coordinates near the static posture, and velocities; neither fulfils the constraints."""
    rng = np.random.default_rng(seed)
    shape = (frames, subject.n)
    return subject.q0 + 0.1 * rng.normal(size=shape), rng.normal(size=shape)


@pytest.mark.parametrize(
    ("name", "coordinates", "rows", "rank"),
    [
        ("wholebody21", 252, 214, 208),  # Nunes 2017, section 4.1: 44 degrees of freedom
        ("wholebody17", 204, 172, 166),  # less 2 x (2 + 1) of clavicle and scapula: 38
        ("arm7", 84, 70, 68),
        ("lower_limbs7", 84, 68, 66),
        ("two_rods", 12, 8, 8),
        ("four_bar", 30, 31, 29),  # one degree of freedom
    ],
)
def test_counts_of_coordinates_rows_and_rank(name: str, coordinates: int, rows: int, rank: int) -> None:
    subject = make_subject(load_model(name))
    constraints = subject.constraints
    J = constraints.dense(constraints.entries(subject.q0[None]))[0]
    assert (subject.n, constraints.m, np.linalg.matrix_rank(J)) == (coordinates, rows, rank)


def test_rows_of_the_full_model_by_kind(full: Subject) -> None:
    # section 3.3 of the specification: 126 rigid; 20 x 3 + 6 + 18 + 4 of joints
    kinds = [name.kind for name in full.constraints.names]
    assert kinds.count("rigid") == 126
    assert kinds.count("ellipsoid") == 4
    assert len(kinds) - 126 == 88


def test_four_contacts_leave_32_degrees_of_freedom_and_torques_are_sought_for_66(full: Subject) -> None:
    """Section 3.3: 226 rows of rank 220 with contacts; 186 rows of rank 186 of rigidity and joint centres alone."""
    J = full.constraints.dense(full.constraints.entries(full.q0[None]))[0]
    contact_rows = []
    for name in ("hand_R", "hand_L", "foot_R", "foot_L"):
        body = full.bodies[name]
        rows = np.zeros((3, full.n))
        rows[:, body.columns] = np.kron(body.point(np.array([0.02, -0.03, 0.01])), np.eye(3))
        contact_rows.append(rows)
    contacts = np.concatenate([J, *contact_rows])
    assert (len(contacts), np.linalg.matrix_rank(contacts)) == (226, 220)
    names = full.constraints.names
    joints = {name: joint for name, joint in full.model.joints.items() if joint.at is not None}
    rows_of = {name: [i for i, row in enumerate(names) if row.owner == name] for name in joints}
    rigid = [i for i, name in enumerate(names) if name.kind == "rigid"]
    centres = J[rigid + [i for rows in rows_of.values() for i in rows[:3]]]  # rows of axes follow those of centres
    assert (len(centres), np.linalg.matrix_rank(centres)) == (186, 186)


@pytest.mark.parametrize("name", bundled_names())
def test_every_constraint_holds_in_the_static_posture(name: str) -> None:
    subject = make_subject(load_model(name))
    assert np.abs(subject.constraints.values(subject.q0[None])).max() < 1e-14


@pytest.mark.parametrize("name", bundled_names())
def test_the_jacobian_and_its_rate_are_derivatives_of_the_values(name: str) -> None:
    subject = make_subject(load_model(name))
    constraints = subject.constraints
    q, qdot = moved(subject, 1)
    entries = constraints.entries(q)
    J = constraints.dense(entries)
    h = 1e-6
    for k in range(subject.n):
        step = h * np.eye(subject.n)[k]
        slope = (constraints.values(q + step) - constraints.values(q - step)) / (2 * h)
        assert np.abs(slope - J[:, :, k]).max() < 2e-8 * max(1.0, np.abs(J).max())
    later, earlier = (constraints.dense(constraints.entries(q + s * qdot)) for s in (h, -h))
    rate = constraints.dense(constraints.rates(q, qdot))
    assert np.abs((later - earlier) / (2 * h) - rate).max() < 2e-8 * max(1.0, np.abs(rate).max())
    assert np.allclose(constraints.bias(q, qdot), np.einsum("fmn,fn->fm", rate, qdot), rtol=1e-13, atol=1e-11)
    assert np.allclose(constraints.product(entries, qdot), np.einsum("fmn,fn->fm", J, qdot), rtol=1e-13, atol=1e-12)


def test_the_contact_of_the_scapula_is_the_printed_quartic(full: Subject) -> None:
    """φ, ∂φ/∂q and J̇q̇ of Nunes 2017, 4.4-4.7, by CasADi from the formula itself."""
    import casadi as ca

    q = ca.SX.sym("q", full.n)
    qdot = ca.SX.sym("qdot", full.n)
    joint = full.model.joints["scapulothoracic_L"]
    thorax, scapula = full.bodies["thorax"], full.bodies["scapula_L"]

    def position(body: object, coefficients: Array) -> ca.SX:
        return sum(c * q[body.start + 3 * k : body.start + 3 * k + 3] for k, c in enumerate(coefficients))  # type: ignore[attr-defined]

    rows = []
    for point in joint.points:
        r = position(scapula, scapula.landmark(point)) - position(thorax, thorax.point(np.array(joint.centre)))
        A = ca.horzcat(*(position(thorax, thorax.direction(axis)) for axis in np.eye(3)))
        p = A.T @ r
        rows.append(p.T @ ellipsoid_form(joint) @ p - 1.0)
    phi = ca.vertcat(*rows)
    J = ca.jacobian(phi, q)
    oracle = ca.Function("oracle", [q, qdot], [phi, J, ca.jtimes(J @ qdot, q, qdot)])
    indices = [k for k, name in enumerate(full.constraints.names) if name.owner == "scapulothoracic_L"]
    Q, V = moved(full, 2)
    J = full.constraints.dense(full.constraints.entries(Q))
    for f in range(len(Q)):
        values, jacobian, bias = (np.asarray(part.full()) for part in oracle(Q[f], V[f]))
        assert np.allclose(full.constraints.values(Q)[f, indices], values.ravel(), rtol=1e-12, atol=1e-12)
        assert np.allclose(J[f][indices], jacobian, rtol=1e-11, atol=1e-11)
        assert np.allclose(full.constraints.bias(Q, V)[f, indices], bias.ravel(), rtol=1e-10)


def test_the_jacobian_of_the_full_model_is_sparse(full: Subject) -> None:
    assert 1000 < len(full.constraints.row_of) < 1200  # about 1100 of 214 x 252


def test_violations_of_lengths_are_reported_in_metres(full: Subject) -> None:
    body = full.bodies["thigh_R"]
    line = full.q0[body.start : body.start + 3] - full.q0[body.start + 3 : body.start + 6]
    q = full.q0.copy()
    q[body.start : body.start + 3] += 1e-5 * line / np.linalg.norm(line)
    metres = full.constraints.metres(full.constraints.values(q[None]))[0]
    row = next(k for k, name in enumerate(full.constraints.names) if name.owner == "thigh_R")
    assert metres[row] == pytest.approx(1e-5, rel=1e-4)


def test_a_frame_with_a_missing_coordinate_spoils_no_other(full: Subject) -> None:
    q, _ = moved(full, 3)
    complete = full.constraints.values(q)
    q[1, 7] = np.nan
    values = full.constraints.values(q)
    assert np.isnan(values[1]).any()
    assert np.array_equal(values[[0, 2]], complete[[0, 2]])


def test_the_form_of_an_ellipsoid_turns_with_its_attitude() -> None:
    from dataclasses import replace

    joint = load_model("wholebody21").joints["scapulothoracic_R"]
    turned = ellipsoid_form(replace(joint, attitude=(0.0, 0.0, 90.0)))
    assert joint.radii is not None
    x, y, z = joint.radii
    assert np.allclose(np.diag(turned), [1 / y**2, 1 / x**2, 1 / z**2])
