"""Each criterion and option gives the answer that its definition asks for."""

from dataclasses import replace

import numpy as np
import pytest
from designopt_mechanics.moment_balance import MomentBalance
from designopt_mechanics.sharing.muscles import Muscles
from designopt_mechanics.sharing.statement.criteria import (
    CRITERIA,
    JointReaction,
    MinMax,
    Power,
    QuadraticLinear,
    Reserves,
    SoftSaturation,
    Tracking,
    criterion_of,
)
from designopt_mechanics.sharing.statement.formulate import Balance, formulate
from designopt_mechanics.sharing.statement.formulation import Terms
from designopt_mechanics.sharing.static.share import share
from opensim_cases import case
from scipy.optimize import minimize


def three(moments=(5.0,)):
    """Three flexors of 3, 2 and 1 N m at full activation, over one row."""
    n = len(moments)
    balance = MomentBalance(
        time=np.arange(n) / 100.0,
        rows=("flexion",),
        columns=("a", "b", "c"),
        arms=np.tile([[0.03, 0.02, 0.01]], (n, 1, 1)),
        moments=np.array(moments)[:, None],
        row_units=("N m",),
    )
    muscles = Muscles(
        ("a", "b", "c"),
        np.full((n, 3), 100.0),
        isometric=np.array([100.0, 200.0, 400.0]),
        fibre=np.array([0.1, 0.05, 0.1]),
    )
    return balance, muscles


R = np.array([3.0, 2.0, 1.0])


def by_slsqp(cost, moment, extra=()):
    """The minimiser by another code, to its six digits."""
    minimum = minimize(
        cost,
        np.full(3, 0.5),
        method="SLSQP",
        bounds=[(0.0, 1.0)] * 3,
        constraints=[{"type": "eq", "fun": lambda a: R @ a - moment}, *extra],
        options={"ftol": 1e-15, "maxiter": 500},
    )
    return minimum.x


@pytest.mark.parametrize("exponent", [1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("word", CRITERIA)
def test_the_slope_of_a_criterion_is_that_of_its_cost(word, exponent):
    criterion = criterion_of({"criterion": word, "exponent": exponent}, linear=0.3, tie_break=1e-4)
    a = np.linspace(0.1, 0.9, 5)
    if isinstance(criterion, MinMax):
        with pytest.raises(ValueError, match="no differentiable criterion"):
            criterion.slope(a)
        return
    zero, one = np.zeros((5, 1)), np.ones((5, 1))
    muscle = Balance(np.ones((5, 1, 1)), zero, zero, one, one, zero, zero, np.ones(1))
    formulation = formulate(muscle, Reserves(np.zeros(1)), Terms(criterion))
    costs = [formulation.cost.value(a[None] + step)[0] * formulation.scale for step in (-1e-6, 1e-6)]
    assert criterion.slope(a) == pytest.approx((costs[1] - costs[0]) / 2e-6, rel=1e-7)


def test_squares_share_in_proportion_to_the_moments_of_the_muscles():
    sharing = share(*three((2.8,)))
    assert sharing.activations[0] == pytest.approx(2.8 * R / (R @ R), abs=1e-12)
    assert sharing.multipliers[0, 0] == pytest.approx(2 * 2.8 / (R @ R))  # 2 a_j = R_j lambda
    assert sharing.cost[0] == pytest.approx(2.8**2 / (R @ R))


def test_the_first_power_takes_the_muscle_with_the_greatest_moment_first():
    sharing = share(*three((2.4, 4.0, 5.5)), Terms(Power(1.0)))
    assert sharing.activations == pytest.approx(np.array([[0.8, 0, 0], [1, 0.5, 0], [1, 1, 0.5]]), abs=1e-9)


def test_the_smallest_maximum_is_equal_activation():
    sharing = share(*three((3.0,)), Terms(MinMax(tie_break=1e-9)))
    assert sharing.activations[0] == pytest.approx([0.5, 0.5, 0.5], abs=1e-7)


def test_the_strict_smallest_maximum_goes_on_below_the_largest():
    """Two rows: one muscle alone at the first sets the maximum; the other two share the second row equally."""
    balance = MomentBalance(
        time=[0.0],
        rows=("one", "two"),
        columns=("a", "b", "c"),
        arms=[[[0.01, 0.0, 0.0], [0.0, 0.03, 0.01]]],
        moments=[[0.9, 1.2]],
        row_units=("N m", "N m"),
    )
    muscles = Muscles(("a", "b", "c"), np.full((1, 3), 100.0))
    sharing = share(balance, muscles, Terms(MinMax(strict=True)))
    assert sharing.activations[0] == pytest.approx([0.9, 0.3, 0.3], abs=1e-6)
    loose = share(balance, muscles, Terms(MinMax())).activations[0]
    assert loose == pytest.approx([0.9, 0.36, 0.12], abs=1e-3)  # 1.2 (3, 1) / 10: least squares below the maximum


def test_the_strict_sequence_has_the_lexicographically_smallest_activations(opensim):
    """On walking: sorted from the largest down, no other criterion gives a smaller sequence."""
    problem = case(opensim, "gait10dof18musc")
    reserves = Reserves(problem.reserves.optimal, weight=10.0, p=1.0)
    criteria = MinMax(strict=True), MinMax(tie_break=1e-6)
    shared = (share(problem.balance, problem.muscles, Terms(c), reserves).activations for c in criteria)
    strict, loose = (np.sort(a, axis=1)[:, ::-1] for a in shared)
    assert strict[:, 0] == pytest.approx(loose[:, 0], abs=1e-5)  # the tie-break moves the maximum by its share
    differs = np.abs(strict - loose) > 2e-5
    rows = np.flatnonzero(differs.any(axis=1))
    assert len(rows) > 100
    first = differs[rows].argmax(axis=1)
    assert (strict[rows, first] < loose[rows, first]).all()


@pytest.mark.parametrize(
    ("terms", "cost"),
    [
        (Terms(QuadraticLinear(0.5)), lambda a: np.sum(a**2 + 0.5 * a)),
        (Terms(SoftSaturation()), lambda a: -np.sum(np.sqrt(np.maximum(1 - a**2, 0)))),
        (Terms(Power(2.0), weights=np.array([1.0, 2.0, 5.0])), lambda a: a**2 @ [1.0, 2.0, 5.0]),
        (Terms(Power(1.5)), lambda a: np.sum(np.abs(a) ** 1.5)),
        (Terms(Power(3.0), stress=True), lambda a: np.sum((a * [1.0, 0.5, 0.25]) ** 3)),
        (
            Terms(QuadraticLinear(0.5), stress=True),
            lambda a: np.sum((a * [1, 0.5, 0.25]) ** 2 + 0.5 * a * [1, 0.5, 0.25]),
        ),
        (
            Terms(Power(3.0), tracking=Tracking(np.array([[0.2, np.nan, 0.9]]), weight=2.0)),
            lambda a: np.sum(a**3) + 2 * (a[0] - 0.2) ** 2 + 2 * (a[2] - 0.9) ** 2,
        ),
        (
            Terms(SoftSaturation(), tracking=Tracking(np.array([[0.2, np.nan, 0.9]]), weight=2.0)),
            lambda a: -np.sum(np.sqrt(np.maximum(1 - a**2, 0))) + 2 * (a[0] - 0.2) ** 2 + 2 * (a[2] - 0.9) ** 2,
        ),
    ],
)
@pytest.mark.parametrize("moment", [2.0, 4.5])
def test_activations_and_cost_are_those_that_another_code_finds(terms, cost, moment):
    sharing = share(*three((moment,)), terms)
    expected = by_slsqp(cost, moment)
    assert sharing.activations[0] == pytest.approx(expected, abs=2e-6)
    assert sharing.cost[0] == pytest.approx(cost(sharing.activations[0]), abs=1e-12)
    assert sharing.stationarity[0] <= 1e-8


def test_weights_by_volume_and_area_need_what_they_are_made_of():
    _, muscles = three()
    assert muscles.volumes() == pytest.approx(np.array([10.0, 10.0, 40.0]) / 20.0)
    assert muscles.areas() == pytest.approx(np.array([100.0, 200.0, 400.0]) * 3 / 700)
    with pytest.raises(ValueError, match="optimal fibre lengths of the muscles, and none are given"):
        replace(muscles, fibre=np.zeros(0)).volumes()


def test_a_larger_reserve_weight_never_gives_a_larger_reserve(opensim):
    problem = case(opensim, "gait10dof18musc")
    sizes = [
        np.abs(share(problem.balance, problem.muscles, None, replace(problem.reserves, weight=w)).reserves)
        for w in (0.1, 1.0, 10.0)
    ]
    total = [(size**2).sum(axis=1) for size in sizes]
    assert (total[1] <= total[0] + 1e-12).all()
    assert (total[2] <= total[1] + 1e-12).all()


def test_stronger_muscles_are_less_active_in_proportion_while_nothing_saturates():
    balance, muscles = three((1.0, 1.4))
    plain = share(balance, muscles, Terms(Power(3.0))).activations
    strong = share(balance, muscles.scaled(1.7), Terms(Power(3.0))).activations
    assert strong == pytest.approx(plain / 1.7, abs=1e-10)


def test_a_free_scale_is_the_one_with_the_least_cost_of_the_whole_trial():
    moments = np.linspace(1.0, 4.0, 20)
    balance, muscles = three(moments)
    signals = np.full((20, 3), np.nan)
    signals[:, 0] = 3.0 * moments / 5.0  # three times too large for the muscle
    terms = Terms(tracking=Tracking(signals, weight=5.0, free_scale=True))
    sharing = share(balance, muscles, terms)
    assert sharing.scales[1:].tolist() == [1.0, 1.0]
    assert 0.2 < sharing.scales[0] < 0.5

    def total(scale):
        fixed = Terms(tracking=Tracking(signals * [scale, 1.0, 1.0], weight=5.0))
        return share(balance, muscles, fixed).cost.sum()

    best = sharing.scales[0]
    assert sharing.cost.sum() == pytest.approx(total(best), rel=1e-12)
    assert total(best) < min(total(best * 1.01), total(best * 0.99))


def test_synergies_move_muscles_together():
    balance, muscles = three((2.0, 4.5, 7.0))
    sharing = share(balance, muscles, Terms(synergies=np.array([[1.0, 0.0], [0.5, 0.0], [0.0, 1.0]])))
    a = sharing.activations
    assert a[:2, 1] == pytest.approx(a[:2, 0] / 2, abs=1e-9)
    # the first command gives 4 N m at a cost of 1.25, the second 1 N m at 1
    h = 2.0 * np.array([4 / 1.25, 1.0]) / (16 / 1.25 + 1.0)
    assert a[0] == pytest.approx([h[0], h[0] / 2, h[1]], abs=1e-9)
    assert a[1] == pytest.approx([1.0, 0.5, 0.5], abs=1e-8)
    assert sharing.status.tolist() == [0, 0, 100]  # both commands at their ends give 5 N m
    assert sharing.shortfall[2, 0] == pytest.approx(2.0, abs=1e-7)
    assert sharing.strength_factor[2] == pytest.approx(7 / 5, rel=1e-7)


def pressed(weight=0.0, component=None, maximum=None):
    """A contact force along y of the sum of the muscle forces, on a load of 50 N."""
    gain = np.zeros((1, 3, 3))
    gain[:, 1] = 1.0
    return JointReaction(np.array([[0.0, 50.0, 0.0]]), gain, weight, component, maximum)


@pytest.mark.parametrize("component", [None, 1])
def test_a_joint_reaction_counts_in_the_cost(component):
    sharing = share(*three((2.0,)), Terms(reactions=(pressed(1e-4, component),)))
    expected = by_slsqp(lambda a: np.sum(a**2) + 1e-4 * (50 + 100 * np.sum(a)) ** 2, 2.0)
    assert sharing.activations[0] == pytest.approx(expected, abs=2e-6)
    assert sharing.cost[0] == pytest.approx(
        np.sum(sharing.activations[0] ** 2) + 1e-4 * (50 + 100 * sharing.activations[0].sum()) ** 2
    )


@pytest.mark.parametrize("component", [None, 1])
def test_a_joint_reaction_keeps_its_maximum(component):
    """Squares want a sum of 6/7 for 2 N m; 0.7 is allowed; below 2/3 there is no answer."""
    sharing = share(*three((2.0,)), Terms(reactions=(pressed(0.0, component, 120.0),)))
    assert sharing.activations[0].sum() == pytest.approx(0.7, abs=1e-8)
    expected = by_slsqp(lambda a: np.sum(a**2), 2.0, ({"type": "ineq", "fun": lambda a: 0.7 - np.sum(a)},))
    assert sharing.activations[0] == pytest.approx(expected, abs=2e-6)
    none = share(*three((2.0,)), Terms(reactions=(pressed(0.0, component, 110.0),)))
    assert none.status.tolist() == [100]
    assert none.shortfall[0, 0] == pytest.approx(2.0 - 1.8, abs=1e-6)
