"""Kinematic consistency: convergence from errors, one minimum by two ways and a third one, frames by themselves."""

from dataclasses import replace

import numpy as np
import pytest
from body_postures import random_postures, with_errors
from designopt_wholebody.consistency.contacts import Contacts
from designopt_wholebody.consistency.positions import ConsistencyStatus, Method, consistent_positions
from designopt_wholebody.model.library import load_model
from designopt_wholebody.model.schema import Joint
from designopt_wholebody.subject import Subject, make_subject
from numpy.typing import NDArray

Array = NDArray[np.float64]

METHODS = ["recursion", "schur"]


@pytest.fixture(scope="module")
def raw(full: Subject) -> Array:
    """Two hundred random postures with errors of 1 cm and 1 degree."""
    return with_errors(full, random_postures(full, 200, seed=1, size=0.12), seed=2)


def test_random_postures_with_errors_become_consistent_to_1e_10(full: Subject, raw: Array) -> None:
    result = consistent_positions(full, raw)
    assert (result.status == ConsistencyStatus.OK).all()
    assert result.violation.max() < 1e-10
    assert result.increment.max() < 1e-10
    assert result.iterations.max() < 20
    assert np.linalg.norm(full.constraints.values(result.q), axis=1).max() < 1e-10


def test_both_methods_find_the_same_minimum(full: Subject, raw: Array) -> None:
    some, weights = raw[:40], np.linspace(0.5, 4.0, full.n)
    recursion = consistent_positions(full, some, weights=weights)
    schur = consistent_positions(full, some, method="schur", weights=weights)
    assert recursion.usable.all()
    assert schur.usable.all()
    assert schur.iterations.max() < 20
    assert schur.violation.max() < 1e-10
    assert np.abs(recursion.q - schur.q).max() < 1e-9


def test_the_augmented_lagrangian_method_finds_it_too(full: Subject, raw: Array) -> None:
    """(W + Jt a J) dq = -W (q - q*) - Jt (a phi + m), m + a phi (Bayo & Ledesma 1996; Nunes 2017, 2.68), dense."""
    weights, penalty = np.linspace(0.5, 4.0, full.n), 1e6
    for measured, minimum in zip(raw[:3], consistent_positions(full, raw[:3], weights=weights).q, strict=True):
        q, multipliers = measured.copy(), np.zeros(len(full.constraints.values(measured[None])[0]))
        for _ in range(20):
            J = full.constraints.dense(full.constraints.entries(q[None]))[0]
            phi = full.constraints.values(q[None])[0]
            pull = -weights * (q - measured) - J.T @ (penalty * phi + multipliers)
            q = q + np.linalg.solve(np.diag(weights) + penalty * J.T @ J, pull)
            multipliers = multipliers + penalty * full.constraints.values(q[None])[0]
        assert np.abs(q - minimum).max() < 1e-7


@pytest.mark.parametrize("method", METHODS)
def test_the_minimum_is_stationary(full: Subject, raw: Array, method: Method) -> None:
    """The first-order condition: W (q - q*) does no work on any motion that the constraints allow."""
    weights = np.linspace(0.5, 4.0, full.n)
    result = consistent_positions(full, raw[:5], weights=weights, method=method)
    J = full.constraints.dense(full.constraints.entries(result.q))
    for q, rows, measured in zip(result.q, J, raw, strict=False):
        _, sizes, right = np.linalg.svd(rows)
        allowed = right[int(np.sum(sizes > 1e-9)) :]
        assert len(allowed) == 44
        assert np.abs(allowed @ (weights * (q - measured))).max() < 1e-7


def test_a_coarser_tolerance_takes_fewer_iterations(full: Subject, raw: Array) -> None:
    exact = consistent_positions(full, raw[:40])
    coarse = consistent_positions(full, raw[:40], tolerance=1e-5)
    assert (coarse.iterations < exact.iterations).all()
    assert coarse.increment.max() < 1e-5
    assert 1e-12 < np.abs(coarse.q - exact.q).max() < 1e-5


def test_recursion_takes_trees_of_rigid_segments_only() -> None:
    four_bar = make_subject(load_model("four_bar"))
    assert consistent_positions(four_bar, four_bar.q0[None]).usable.all()
    with pytest.raises(ValueError, match="'crank' is a rod"):
        consistent_positions(four_bar, four_bar.q0[None], method="recursion")


@pytest.mark.parametrize("model", ["arm7", "lower_limbs7", "wholebody17"])
def test_recursion_takes_parts_of_the_body(model: str) -> None:
    subject = make_subject(load_model(model))
    raw = with_errors(subject, random_postures(subject, 10, seed=6, size=0.15), seed=7)
    recursion, schur = (consistent_positions(subject, raw, method=m) for m in ("recursion", "schur"))
    assert recursion.usable.all()
    assert np.abs(recursion.q - schur.q).max() < 1e-9


def test_recursion_takes_bodies_on_the_ground() -> None:
    """A leg whose thigh turns about an axis that is fixed in the laboratory, the other joints being its own."""
    leg = load_model("lower_limbs7")
    joints = {name: leg.joints[name] for name in ("knee_R", "ankle_R")}
    joints["hip_R"] = Joint("revolute", "ground", "thigh_R", at="CAQ_R", axis=("CAQ_L", "CAQ_R"))
    segments = {name: leg.segments[name] for name in ("thigh_R", "shank_R", "foot_R")}
    subject = make_subject(replace(leg, segments=segments, joints=joints, root=None, contacts={}, angles={}))
    raw = with_errors(subject, np.repeat(subject.q0[None], 10, axis=0), seed=8)
    recursion, schur = (consistent_positions(subject, raw, method=m) for m in ("recursion", "schur"))
    assert recursion.violation.max() < 1e-10
    assert np.abs(recursion.q - schur.q).max() < 1e-9


def test_a_general_solver_finds_the_same_minimum() -> None:
    from scipy.optimize import minimize

    subject = make_subject(load_model("four_bar"))
    raw = with_errors(subject, subject.q0[None], seed=3)
    ours = consistent_positions(subject, raw).q[0]
    constraints = subject.constraints
    best = minimize(
        lambda q: 0.5 * np.sum((q - raw[0]) ** 2),
        raw[0],
        jac=lambda q: q - raw[0],
        constraints={
            "type": "eq",
            # two of the 31 rows depend on the others; SLSQP takes independent rows only
            "fun": lambda q: (
                _independent(constraints.dense(constraints.entries(subject.q0[None]))[0])
                @ constraints.values(q[None])[0]
            ),
            "jac": lambda q: (
                _independent(constraints.dense(constraints.entries(subject.q0[None]))[0])
                @ constraints.dense(constraints.entries(q[None]))[0]
            ),
        },
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 200},
    )
    assert best.success
    assert np.abs(best.x - ours).max() < 1e-6


def _independent(J: Array) -> Array:
    """(rank, m) combinations of rows that span all of them."""
    left, sizes, _ = np.linalg.svd(J)
    return np.asarray(left[:, : int(np.sum(sizes > 1e-9))].T)


def test_consistent_positions_stay(full: Subject) -> None:
    q = random_postures(full, 5, seed=4)
    result = consistent_positions(full, q)
    assert np.abs(result.q - q).max() < 1e-9
    assert result.iterations.max() <= 2


def test_larger_weights_hold_a_segment(full: Subject, raw: Array) -> None:
    hand = full.bodies["hand_R"].columns
    weights = np.ones(full.n)
    weights[hand] = 100.0
    plain = consistent_positions(full, raw[:10])
    weighted = consistent_positions(full, raw[:10], weights=weights)
    away = [np.linalg.norm((r.q - raw[:10])[:, hand], axis=1) for r in (plain, weighted)]
    assert (away[1] < 0.2 * away[0]).all()


@pytest.mark.parametrize("method", METHODS)
def test_contacts_hold_points_frame_by_frame(full: Subject, raw: Array, method: Method) -> None:
    names = ("hand_R", "hand_L", "foot_R", "foot_L")
    some = raw[:6]
    local = np.broadcast_to(np.array([0.01, -0.05, 0.0]), (6, 4, 3))
    target = np.stack(
        [full.bodies[n].position(some, full.bodies[n].point(local[0, k])) for k, n in enumerate(names)], axis=1
    )
    active = np.ones((6, 4), dtype=bool)
    active[2] = active[3, 1] = False
    target = np.where(active[..., None], target, np.nan)
    result = consistent_positions(full, some, contacts=Contacts(names, local, target, active), method=method)
    assert result.usable.all()
    for k, name in enumerate(names):
        body = full.bodies[name]
        distance = np.linalg.norm(body.position(result.q, body.point(local[0, k])) - target[:, k], axis=1)
        assert distance[active[:, k]].max() < 1e-9
    free = consistent_positions(full, some[2:3], method=method)
    assert np.abs(result.q[2] - free.q[0]).max() < 1e-8


def test_one_bad_frame_is_marked_and_changes_no_other(full: Subject, raw: Array) -> None:
    some = raw[:20]
    clean = consistent_positions(full, some)
    spoiled = some.copy()
    spoiled[3, 17] = np.nan
    spoiled[11] = 30.0 * np.random.default_rng(5).normal(size=full.n)
    result = consistent_positions(full, spoiled)
    assert result.status[3] == ConsistencyStatus.NOT_FINITE
    assert result.status[11] in (ConsistencyStatus.NOT_CONVERGED, ConsistencyStatus.MIRRORED)
    unchanged = np.setdiff1d(np.arange(20), [3, 11])
    assert np.isnan(result.q[[3, 11]]).all()
    assert np.abs(result.q[unchanged] - clean.q[unchanged]).max() < 1e-12
    assert (result.status[unchanged] == ConsistencyStatus.OK).all()


@pytest.mark.parametrize("method", METHODS)
def test_no_digit_of_a_frame_depends_on_the_frames_beside_it(full: Subject, raw: Array, method: Method) -> None:
    weights = np.linspace(0.01, 1.0, full.n)
    together = consistent_positions(full, raw[:20], method=method, weights=weights)
    for some in (np.array([7]), np.array([2, 3, 11]), np.arange(1, 20, 2)):
        apart = consistent_positions(full, raw[some], method=method, weights=weights)
        assert np.array_equal(apart.q, together.q[some])
        assert np.array_equal(apart.iterations, together.iterations[some])


def test_a_posture_far_from_the_measured_one_is_marked(full: Subject, raw: Array) -> None:
    result = consistent_positions(full, raw[:10])
    limit = float(np.median(result.distance))
    marked = consistent_positions(full, raw[:10], most_moved=limit).status == ConsistencyStatus.FAR
    assert np.array_equal(marked, result.distance > limit)


def test_a_mirror_image_is_marked(full: Subject) -> None:
    q = full.q0.copy()
    head = full.bodies["head"]
    q[head.start + 9 : head.start + 12] *= -1.0
    assert consistent_positions(full, q[None]).status[0] == ConsistencyStatus.MIRRORED


def test_wrong_arguments_are_refused(full: Subject) -> None:
    with pytest.raises(ValueError, match="shape"):
        consistent_positions(full, np.zeros((2, 5)))
    with pytest.raises(ValueError, match="positive"):
        consistent_positions(full, full.q0[None], weights=np.zeros(full.n))
    with pytest.raises(ValueError, match="tolerance is 0"):
        consistent_positions(full, full.q0[None], tolerance=0.0)
    nowhere = Contacts(("paw",), np.zeros((1, 1, 3)), np.zeros((1, 1, 3)), np.ones((1, 1), dtype=bool))
    with pytest.raises(ValueError, match="there is no segment 'paw'; known: head"):
        consistent_positions(full, full.q0[None], contacts=nowhere)
    with pytest.raises(ValueError, match="there is no method 'newton'"):
        consistent_positions(full, full.q0[None], method="newton")  # type: ignore[arg-type]


def test_no_frames_have_no_result(full: Subject) -> None:
    assert consistent_positions(full, np.zeros((0, full.n))).q.shape == (0, full.n)
