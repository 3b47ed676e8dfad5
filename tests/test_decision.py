"""Designs are picked from a front by the rules of the literature, with the numbers that a calculation by hand gives."""

import itertools

import numpy as np
import pytest

from designopt import decision
from designopt.decision import DecisionError
from designopt.study.study import Choice

#: A front worked out by hand: specification of the regulator tuning, section 9.5.
HAND = np.array([(1, 10), (2, 6), (3, 4), (4, 3), (6, 2), (9, 1.2), (10, 1)], float)
SECOND, THIRD, FOURTH = 1, 2, 3
EQUAL, UNEQUAL = np.array([0.5, 0.5]), np.array([0.7, 0.3])


def test_of_designs_that_are_equally_good_the_first_is_not_dominated():
    F = np.array([(2.0, 2.0), (1.0, 3.0), (1.0, 3.0), (1.0, 4.0)])
    assert decision.nondominated(F).tolist() == [True, True, False, False]
    assert decision.nondominated(F[::-1, :1]).tolist() == [True, False, False, False]
    assert decision.nondominated(F[:0]).tolist() == decision.nondominated(F[:0, :1]).tolist() == []


# --------------------------------------------------------------------------------------------------- hypervolume


def test_the_hypervolume_of_a_front_by_hand():
    assert decision.hypervolume(HAND, np.array([11.0, 11.0])) == pytest.approx(75.8, abs=1e-12)


def test_designs_that_are_not_strictly_better_than_the_reference_contribute_nothing():
    reference = np.array([11.0, 11.0])
    outside = np.array([(11.0, 0.0), (0.0, 11.0), (0.5, 50.0), (np.inf, np.inf)])
    assert decision.hypervolume(np.vstack([HAND, outside]), reference) == decision.hypervolume(HAND, reference)
    assert decision.hypervolume(outside, reference) == 0.0
    assert decision.hypervolume(np.array([[2.0], [5.0], [0.5]]), np.array([3.0])) == 2.5


def test_the_hypervolume_in_three_dimensions_is_that_of_inclusion_and_exclusion():
    F = np.random.default_rng(1).random((7, 3))
    total = 0.0
    for size in range(1, len(F) + 1):
        for some in itertools.combinations(F, size):
            total -= (-1) ** size * np.prod(1.0 - np.max(some, axis=0))
    assert decision.hypervolume(F, np.ones(3)) == pytest.approx(total, rel=1e-12)


def test_more_designs_of_an_exact_front_come_nearer_to_its_volume_from_below():
    """Best linear-quadratic regulator of a double integrator, J2 = 27/(64 J1^3): specification, section 9.4. What a
    finite front lacks is a sum of steps, so it halves with twice the designs."""
    exact, reference = 6.6741943359375, np.array([1.6, 6.591796875])
    lacks = []
    for count in (200, 400, 800):
        J1 = np.linspace(0.4, 1.6, count)
        lacks.append(exact - decision.hypervolume(np.column_stack([J1, 27.0 / (64.0 * J1**3)]), reference))
    assert 0.0 < lacks[2] < 0.02
    assert lacks[0] / lacks[1] == pytest.approx(2.0, rel=0.05)
    assert lacks[1] / lacks[2] == pytest.approx(2.0, rel=0.05)


# ---------------------------------------------------------------------------------------------------------- knee


def test_the_knee_by_hand_is_the_first_of_two_equals():
    distance = decision.knee_distance(HAND)
    assert distance[[THIRD, FOURTH]] == pytest.approx([0.3142697] * 2, abs=5e-8)
    assert decision.knee(HAND) == THIRD
    assert decision.knee(HAND[::-1]) == len(HAND) - 1 - THIRD


@pytest.mark.parametrize(
    "F",
    [
        [(0.0, 1.0), (0.5, 0.5), (1.0, 0.0)],  # straight
        [(0.0, 1.0), (0.7, 0.7), (1.0, 0.0)],  # bulges away from the ideal point
        [(0.0, 1.0), (1.0, 0.0)],
        [(2.0, 3.0)],
        [(2.0,), (2.0,)],
        [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.6, 0.6, 0.6)],
    ],
)
def test_a_front_without_a_design_beyond_its_line_has_no_knee(F):
    assert decision.knee(np.array(F)) is None


def test_the_knee_of_three_objectives_is_farthest_beyond_the_plane_of_the_extreme_designs():
    F = np.array([(1, 0, 0), (0, 1, 0), (0, 0, 1), (0.3, 0.3, 0.3), (0.1, 0.2, 0.15), (0.5, 0.2, 0.2)], float)
    assert decision.knee(F) == 4
    # The plane is x + y + z = 1, so the distance is (1 - 0.45)/sqrt(3).
    assert decision.knee_distance(F)[4] == pytest.approx(0.55 / np.sqrt(3.0), rel=1e-12)
    scaled = F * [1e-6, 1.0, 1e9] + [5.0, -3.0, 1e8]
    assert decision.knee(scaled) == 4
    assert decision.knee_distance(scaled) == pytest.approx(decision.knee_distance(F), abs=1e-6)


def test_extreme_designs_that_span_no_plane_are_refused_with_a_way_out():
    same = np.array([(0.0, 0.0, 1.0), (0.2, 1.0, 0.0), (1.0, 0.9, 0.1)])
    with pytest.raises(DecisionError, match=r"the extreme designs of the 3 objectives do not span a plane.*utopia"):
        decision.knee(np.vstack([same[0], same[0] + [1.0, 1.0, -1.0]]))
    with pytest.raises(DecisionError, match="utopia"):
        decision.choose(
            np.vstack([same[0], same[0] + [1.0, 1.0, -1.0]]), ("a", "b", "c"), (1.0, 1.0, 1.0), Choice("knee")
        )


# --------------------------------------------------------------------------------------------------- compromises


@pytest.mark.parametrize(
    ("weights", "norm", "design", "distance"),
    [
        (EQUAL, "l2", THIRD, 0.2003084),
        (EQUAL, "chebyshev", THIRD, 0.1666667),
        (UNEQUAL, "l2", SECOND, 0.183922),
        (UNEQUAL, "chebyshev", THIRD, 0.155556),
    ],
)
def test_utopia_distances_by_hand(weights, norm, design, distance):
    digits = len(str(distance)) - 2
    assert decision.utopia(HAND, weights, norm) == design
    assert decision.utopia_distance(HAND, weights, norm)[design] == pytest.approx(distance, abs=0.51 * 10.0**-digits)


def test_the_l1_distance_by_hand():
    # (2/9 + 3/9)/2 for the third and the fourth design
    assert decision.utopia(HAND, EQUAL, "l1") == THIRD
    assert decision.utopia_distance(HAND, EQUAL, "l1")[[THIRD, FOURTH]] == pytest.approx([5 / 18] * 2, rel=1e-12)


@pytest.mark.parametrize(
    ("weights", "norm", "design", "closeness"),
    [
        (EQUAL, "vector", FOURTH, 0.729418),
        (EQUAL, "minmax", THIRD, 0.718867),
        (UNEQUAL, "vector", THIRD, 0.751295),
        (UNEQUAL, "minmax", SECOND, 0.775779),
    ],
)
def test_topsis_by_hand(weights, norm, design, closeness):
    assert decision.topsis(HAND, weights, norm) == design
    assert decision.closeness(HAND, weights, norm)[design] == pytest.approx(closeness, abs=5.1e-7)


def test_the_second_best_of_topsis_by_hand():
    assert decision.closeness(HAND, EQUAL, "vector")[THIRD] == pytest.approx(0.708546, abs=5.1e-7)


def test_a_weakly_dominated_design_does_not_win_by_the_chebyshev_distance():
    F = np.array([(0.0, 2.0, 1.0), (1.0, 1.0, 0.9), (1.0, 1.0, 0.5), (2.0, 0.0, 0.0)])
    weights = np.array([0.4, 0.4, 0.2])
    distance = decision.utopia_distance(F, weights, "chebyshev")
    assert distance[1] == distance[2]
    assert decision.utopia(F, weights, "chebyshev") == 2


def test_deviations_from_a_reference_that_hardly_differ_are_ordered_by_their_sum():
    # Largest deviations 0.5 and 0.50002, sums 1.5 and 0.50022: with 1e-4 of the sum the second is the smaller.
    F = np.array([(0.0, 1.0, 1.0), (1.0, 0.0, 1.0), (1.0, 1.0, 0.0), (0.5, 0.5, 0.5), (0.50002, 1e-4, 1e-4)])
    assert decision.weighted_tchebycheff(F) == 4


@pytest.mark.parametrize("rule", [decision.utopia, decision.topsis, decision.knee])
def test_units_do_not_change_a_choice(rule):
    assert rule(HAND * [1e-9, 1e12]) == rule(HAND)


def test_topsis_takes_objectives_of_either_sign():
    """What is made large enters with its sign changed: the lengths of the columns are those of Hwang & Yoon."""
    large = np.array([(5.0, 1.0), (4.0, 2.0), (1.0, 3.0)])  # make both large
    R = large / np.linalg.norm(large, axis=0)
    best, worst = R.max(axis=0), R.min(axis=0)
    plus, minus = np.linalg.norm(R - best, axis=1), np.linalg.norm(R - worst, axis=1)
    assert decision.closeness(-large) == pytest.approx(minus / (plus + minus), rel=1e-12)


def test_an_objective_that_is_the_same_everywhere_decides_nothing():
    F = np.column_stack([HAND, np.full(len(HAND), 7.0)])
    _, varies = decision.normalised(F)
    assert varies.tolist() == [True, True, False]
    for rule in (decision.knee, decision.utopia, decision.topsis):
        assert rule(F) == rule(HAND)
    assert decision.nearest_to(F, np.array([6.0, 2.0, 0.0])) == 4


def test_of_a_single_design_there_is_no_other_choice():
    F = np.array([[3.0, 0.0]])
    assert decision.utopia(F) == decision.topsis(F) == decision.topsis(F, norm="minmax") == 0
    assert decision.nearest_to(F, np.array([9.0, 9.0])) == 0
    assert decision.weight_sensitivity(F, "topsis").tolist() == [1.0]


def test_ranges_beyond_the_largest_double_are_scaled():
    F = np.array([(-1.5e308, 1.0), (0.0, 0.0), (1.5e308, -1.0)])
    assert decision.normalised(F)[0].tolist() == [[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]]


def test_nearest_to_measures_in_ranges_of_the_front_and_leaves_the_rest_free():
    assert decision.nearest_to(HAND, np.array([3.9, 3.1])) == FOURTH
    assert decision.nearest_to(HAND, np.array([np.nan, 1.9])) == 4
    # (2, 6) is 0 + 1/9 ranges away from (2, 7), each with half the weight.
    assert decision.target_distance(HAND, np.array([2.0, 7.0]))[SECOND] == pytest.approx(1 / 18, rel=1e-12)
    with pytest.raises(DecisionError, match="the value of an objective"):
        decision.nearest_to(HAND, np.array([np.nan, np.nan]))


@pytest.mark.parametrize("weights", [(-1.0, 2.0), (0.0, 0.0), (np.nan, 1.0), (np.inf, 1.0)])
def test_weights_that_mean_nothing_are_refused(weights):
    with pytest.raises(DecisionError, match="weights"):
        decision.utopia(HAND, np.array(weights))


# ---------------------------------------------------------------------------------------------------- sensitivity


def test_the_share_of_weights_by_which_a_design_wins():
    """Two designs, L1: the first wins while w < 1/2, which is half of all weights; 0.5/sqrt(20000) is one standard
    deviation of that share."""
    F = np.array([(0.0, 1.0), (1.0, 0.0)])
    share = decision.weight_sensitivity(F, "utopia", "l1", samples=20_000, seed=5)
    assert share[0] == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(20_000))
    assert share.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(("method", "norm"), [("utopia", "l2"), ("utopia", "chebyshev"), ("topsis", "vector")])
def test_shares_are_those_of_choosing_for_each_weight(method, norm):
    rule = getattr(decision, method)
    weights = np.random.default_rng(3).dirichlet(np.ones(2), 1000)
    counted = np.bincount([rule(HAND, w, norm) for w in weights], minlength=len(HAND)) / 1000
    assert decision.weight_sensitivity(HAND, method, norm, samples=1000, seed=3).tolist() == counted.tolist()


def test_too_few_weights_are_refused():
    with pytest.raises(ValueError, match="at least 1000"):
        decision.weight_sensitivity(HAND, "topsis", samples=999)


# --------------------------------------------------------------------------------------------------------- choose


@pytest.mark.parametrize(
    ("choice", "design", "label"),
    [
        (Choice("knee"), THIRD, "knee of the front"),
        (Choice("utopia"), THIRD, "utopia l2"),
        (Choice("utopia", {"iae": 7, "tv": 3}, "l2"), SECOND, "utopia l2 weighted iae 7, tv 3"),
        (Choice("utopia", norm="chebyshev"), THIRD, "utopia chebyshev"),
        (Choice("topsis"), FOURTH, "topsis vector"),
        (Choice("topsis", norm="minmax"), THIRD, "topsis minmax"),
        (Choice("nearest_to", target={"iae": 6.1, "tv": 2.0}), 4, "nearest to iae 6.1, tv 2"),
        (Choice("weighted_tchebycheff"), THIRD, "weighted Tchebycheff"),
        (
            Choice("weighted_tchebycheff", target={"iae": 4.0, "tv": 1.0}),
            FOURTH,
            "weighted Tchebycheff from iae 4, tv 1",
        ),
        (
            Choice("weighted_tchebycheff", {"iae": 1, "tv": 2}, target={"iae": 6.0}),
            4,
            "weighted Tchebycheff from iae 6 weighted iae 1, tv 2",
        ),
        (Choice("epsilon_constraint", target={"tv": 2.5}, objective="iae"), 4, "epsilon constraint iae within tv 2.5"),
        (
            Choice("epsilon_constraint", target={"iae": 3.5}, objective="tv"),
            THIRD,
            "epsilon constraint tv within iae 3.5",
        ),
        (
            Choice("epsilon_constraint", target={"tv": 0.5}, objective="iae"),
            None,
            "epsilon constraint iae within tv 0.5",
        ),
    ],
)
def test_a_rule_of_the_study_picks_its_design_and_names_it(choice, design, label):
    assert decision.choose(HAND, ("iae", "tv"), (1.0, 1.0), choice) == design
    assert decision.label(choice) == label


def test_a_target_is_in_the_objectives_own_direction():
    choice = Choice("nearest_to", target={"gain": -3.1})
    assert decision.choose(HAND, ("iae", "gain"), (1.0, -1.0), choice) == FOURTH


def test_limits_are_in_the_objectives_own_direction():
    """A gain to be made large has its sign changed in the front: at least -4.5 leaves those up to 4."""
    choice = Choice("epsilon_constraint", target={"gain": -4.5}, objective="iae")
    assert decision.choose(HAND, ("iae", "gain"), (1.0, -1.0), choice) == THIRD


def test_a_weakly_dominated_design_does_not_win_by_the_tchebycheff_distance():
    F = np.array([(0.0, 1.0), (0.5, 0.5), (0.5, 0.4), (1.0, 0.0)])
    assert decision.weighted_tchebycheff(F[[0, 1, 3]]) == 1
    assert decision.weighted_tchebycheff(F, np.array([1.5, 1.0])) == 2


def test_of_designs_that_are_alike_everywhere_any_is_right():
    assert decision.weighted_tchebycheff(np.ones((3, 2))) == 0


def test_the_augmented_chebyshev_distance_gives_a_hair_of_the_largest_term_for_much_of_the_others():
    F = np.array([(0.0, 1.0), (1.0, 0.0), (0.5, 0.5), (0.50001, 0.1)])
    distance = decision.utopia_distance(F, np.array([0.5, 0.5]), "chebyshev")
    assert distance[2] < distance[3] < distance[2] + decision.AUGMENTED * 0.1
    assert decision.utopia(F, np.array([0.5, 0.5]), "chebyshev") == 3
