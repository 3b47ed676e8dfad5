"""Every frame of a trial has a status; what cannot be balanced is proved, sized and explained."""

from dataclasses import replace

import numpy as np
import pytest
from designopt_mechanics.moment_balance import MomentBalance
from designopt_mechanics.sharing.muscles import Muscles
from designopt_mechanics.sharing.statement.cost import Cost
from designopt_mechanics.sharing.statement.criteria import MinMax, Power, Reserves, Tracking
from designopt_mechanics.sharing.statement.formulation import Formulation, Terms
from designopt_mechanics.sharing.static.share import share
from designopt_mechanics.sharing.static.shortfall import shortfall
from designopt_mechanics.sharing.status import SharingStatus
from opensim_cases import case


def elbow(moments, *, lower=0.0, status=None, strength=(100.0, 300.0)):
    """Two flexors with arms of 3 and 2 cm and 100 and 300 N: up to 9 N m."""
    n = len(moments)
    balance = MomentBalance(
        time=np.arange(n) / 100.0,
        rows=("flexion",),
        columns=("long", "short"),
        arms=np.tile([[0.03, 0.02]], (n, 1, 1)),
        moments=np.array(moments)[:, None],
        row_units=("N m",),
        status=np.zeros(n, dtype=int) if status is None else np.array(status),
    )
    return balance, Muscles(("long", "short"), np.tile(strength, (n, 1)), lower=np.full(2, lower))


def test_the_weakened_arm_has_fifty_infeasible_frames_each_with_a_proof(opensim):
    """Specs section 4.2: arm26, p = 2, all F_o times 0.15: 50 frames from 0.591667 s to the end."""
    problem = case(opensim, "arm26")
    muscles = problem.muscles.scaled(0.15)
    sharing = share(problem.balance, muscles)
    short = sharing.status == SharingStatus.INFEASIBLE
    assert short.sum() == 50
    assert short[-50:].all()
    assert problem.balance.time[short][0] == pytest.approx(0.591667, abs=1e-6)
    assert (sharing.status[~short] == SharingStatus.OPTIMAL).all()
    largest = np.abs(sharing.shortfall).max(axis=0)
    assert largest == pytest.approx([0.518, 0.0792], abs=5e-4)
    assert np.abs(sharing.shortfall).argmax(axis=0).tolist() == [120, 120]
    # the proof, checked by hand: no activation within its bounds gives as much along y as is needed
    y = sharing.proof[short]
    assert np.linalg.norm(y, axis=1) == pytest.approx(np.ones(50))
    s = np.einsum("nmk,nm->nk", problem.balance.arms[short], y) * muscles.strength[short]
    most = np.maximum(muscles.lower[short] * s, muscles.upper[short] * s).sum(axis=1)
    deficit = (problem.balance.moments[short] * y).sum(axis=1) - most
    assert (deficit > 1e-3).all()
    assert sharing.deficit[short] == pytest.approx(deficit)
    # what is said of the whole
    text = sharing.summary()
    assert "50 of 121 frames infeasible, 0.5917 s to 1 s" in text
    assert "r_shoulder_elev by up to 0.518 N m, r_elbow_flex by up to 0.0792 N m" in text


def test_the_strength_factor_makes_an_infeasible_frame_just_feasible(opensim):
    problem = case(opensim, "arm26")
    weak = problem.muscles.scaled(0.15)
    sharing = share(problem.balance, weak)
    short = np.flatnonzero(sharing.status == SharingStatus.INFEASIBLE)
    for frame in short[[0, 25, 49]]:
        factor = sharing.strength_factor[frame]
        assert 1.0 < factor < 1.4
        assert share(problem.balance, weak.scaled(factor * (1 + 1e-6))).status[frame] == SharingStatus.OPTIMAL
        assert share(problem.balance, weak.scaled(factor * (1 - 1e-6))).status[frame] == SharingStatus.INFEASIBLE


@pytest.mark.parametrize("terms", [Terms(), Terms(Power(3.0)), Terms(Power(1.0)), Terms(Power(8.0)), Terms(MinMax())])
def test_the_answer_for_an_infeasible_frame_leaves_the_least_shortfall(terms):
    balance, muscles = elbow([4.0, 10.0, 12.0, 5.0], lower=0.01)
    sharing = share(balance, muscles, terms)
    assert sharing.status.tolist() == [0, 100, 100, 0]
    assert sharing.shortfall[:, 0] == pytest.approx([0.0, 1.0, 3.0, 0.0], abs=1e-9)
    assert sharing.activations[1:3] == pytest.approx(np.ones((2, 2)), abs=1e-9)
    assert sharing.strength_factor == pytest.approx([1.0, 10 / 9, 12 / 9, 1.0], rel=1e-8)
    assert (sharing.activations[[0, 3]] < 1.0).all()


def test_rounding_errors_prove_nothing():
    """Frames that need exactly what all muscles give together: residuals of 1e-16 are no proof that they cannot."""
    rng = np.random.default_rng(0)
    n, m, v = 200, 3, 9
    matrix = rng.normal(size=(n, m, v))
    cost = Cost(np.zeros(v), np.full(v, 2.0), np.full(v, 2.0), np.zeros(v))
    lower, upper = np.zeros((n, v)), np.ones((n, v))
    direction = rng.normal(size=(n, m))
    outermost = np.where(np.einsum("nmv,nm->nv", matrix, direction) > 0.0, 1.0, 0.0)
    attainable = np.einsum("nmv,nv->nm", matrix, outermost)

    def shortfall_of(needed):
        numbers = (matrix, needed, lower, upper, cost, np.ones(m), 1.0, np.eye(v), np.zeros((m, v)), np.zeros(n))
        return shortfall(Formulation(*numbers))

    assert not shortfall_of(attainable).is_proof.any()
    beyond = shortfall_of(attainable + 1e-3 * direction)
    assert beyond.is_proof.all()
    assert (beyond.deficit > 0.0).all()


def test_no_strength_helps_against_a_moment_that_no_muscle_gives():
    balance, muscles = elbow([1.0, -1.0])
    sharing = share(balance, muscles)
    assert sharing.status.tolist() == [SharingStatus.OPTIMAL, SharingStatus.INFEASIBLE]
    assert sharing.strength_factor[1] == np.inf
    assert sharing.proof[1] == pytest.approx([-1.0])
    assert "no strength is sufficient" in sharing.summary()


def test_passive_forces_count_in_balance_and_strength_factor():
    balance, muscles = elbow([10.0])
    stiff = replace(muscles, passive=np.array([[10.0, 10.0]]))  # 0.5 N m
    sharing = share(balance, stiff)
    assert sharing.shortfall[0, 0] == pytest.approx(0.5)
    assert sharing.strength_factor[0] == pytest.approx(10 / 9.5)
    assert sharing.forces[0] == pytest.approx([110.0, 310.0])


def test_frames_without_numbers_never_end_a_trial():
    balance, muscles = elbow([1.0, np.nan, 2.0, 3.0], status=[0, 120, 10, 0])
    strength = np.array(muscles.strength)
    strength[3, 1] = np.nan
    sharing = share(balance, replace(muscles, strength=strength))
    bad = SharingStatus.BAD_INPUT
    assert sharing.status.tolist() == [SharingStatus.OPTIMAL, bad, SharingStatus.EDGE, bad]
    assert np.isnan(sharing.activations[[1, 3]]).all()
    assert np.isfinite(sharing.activations[[0, 2]]).all()
    assert "2 frames bad_input" in sharing.summary()


def test_a_band_without_room_is_reported():
    balance, muscles = elbow([1.0, 1.0])
    signals = np.array([[0.2, np.nan], [1.5, np.nan]])
    sharing = share(balance, muscles, Terms(tracking=Tracking(signals, weight=0.0, band=(-0.05, 0.05))))
    assert sharing.status.tolist() == [SharingStatus.OPTIMAL, SharingStatus.EMPTY_BOUNDS]
    assert 0.15 <= sharing.activations[0, 0] <= 0.25


def test_a_reserve_that_gives_much_is_reported():
    balance, muscles = elbow([8.0, 20.0])
    sharing = share(balance, muscles, reserves=Reserves([1.0], weight=100.0))
    assert sharing.status.tolist() == [SharingStatus.OPTIMAL, SharingStatus.RESERVE_ACTIVE]
    assert sharing.reserves[1, 0] == pytest.approx(11.0, abs=1e-9)
    assert share(balance, muscles, reserves=Reserves([1.0]), reserve_warning=50.0).status.tolist() == [0, 0]


def test_rows_that_no_muscle_crosses_are_left_out_or_given_to_their_reserve():
    balance, muscles = elbow([1.0, 2.0])
    two_rows = MomentBalance(
        time=balance.time,
        rows=("pelvis", "flexion"),
        columns=balance.columns,
        arms=np.concatenate([np.zeros((2, 1, 2)), balance.arms], axis=1),
        moments=np.concatenate([[[30.0], [40.0]], balance.moments], axis=1),
        row_units=("N", "N m"),
    )
    sharing = share(two_rows, muscles)
    assert sharing.left_out == ("pelvis",)
    assert sharing.balance.rows == ("flexion",)
    helped = share(two_rows, muscles, reserves=Reserves([10.0, 0.0]))
    assert helped.left_out == ()
    assert helped.reserves[:, 0] == pytest.approx([30.0, 40.0])


def test_mismatched_input_is_refused_in_a_sentence():
    balance, muscles = elbow([1.0])
    with pytest.raises(ValueError, match="are not the columns long, short"):
        share(balance, replace(muscles, names=("short", "long")))
    with pytest.raises(ValueError, match="2 optimal forces"):
        share(balance, muscles, reserves=Reserves([1.0, 1.0]))
    with pytest.raises(ValueError, match="'short' has a negative force"):
        replace(muscles, strength=np.array([[1.0, -1.0]]))
    with pytest.raises(ValueError, match="the exponent p is"):
        Power(0.5)
    with pytest.raises(ValueError, match="tracking works with an exponent"):
        share(balance, muscles, Terms(Power(1.5), tracking=Tracking(np.ones((1, 2)))))


def test_the_same_run_gives_the_same_bits(opensim):
    problem = case(opensim, "gait10dof18musc")
    one, repeated = (share(problem.balance, problem.muscles, Terms(Power(3.0)), problem.reserves) for _ in range(2))
    assert one.activations.tobytes() == repeated.activations.tobytes()


@pytest.mark.parametrize("terms", [Terms(), Terms(Power(3.0))])
def test_order_names_units_and_mirroring_do_not_change_activations(opensim, terms):
    problem = case(opensim, "gait10dof18musc")
    balance, muscles, reserves = problem.balance, problem.muscles, problem.reserves
    expected = share(balance, muscles, terms, reserves).activations
    k, m = len(muscles.names), len(balance.rows)
    order = np.random.default_rng(3).permutation(k)
    rows = np.random.default_rng(4).permutation(m)
    renamed = MomentBalance(
        balance.time,
        tuple(f"coordinate {i}" for i in rows),
        tuple(muscles.names[j] for j in order),
        balance.arms[:, rows][:, :, order],
        balance.moments[:, rows],
        ("N m",) * m,
    )
    permuted = Muscles(renamed.columns, muscles.strength[:, order], lower=muscles.lower[:, order])
    activations = share(renamed, permuted, terms, replace(reserves, optimal=reserves.optimal[rows])).activations
    assert np.abs(activations - expected[:, order]).max() <= 1e-9
    # kilonewtons and kilonewton metres
    small = replace(balance, moments=balance.moments / 1e3)
    activations = share(
        small, muscles.scaled(1e-3), terms, replace(reserves, optimal=reserves.optimal / 1e3)
    ).activations
    assert np.abs(activations - expected).max() <= 1e-9
    # every coordinate counted the other way, as on the other side of the body
    mirrored = replace(balance, arms=-balance.arms, moments=-balance.moments)
    assert np.abs(share(mirrored, muscles, terms, reserves).activations - expected).max() <= 1e-9
