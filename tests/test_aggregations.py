"""Aggregations over scenarios, against numpy and numbers calculated by hand."""

import numpy as np
import pytest

from designopt import aggregations
from designopt.plugin import Use, find

#: Two designs in ten scenarios; larger is worse.
VALUES = np.array(
    [[3.0, 1.0, 4.0, 1.5, 5.0, 9.0, 2.0, 6.0, 5.5, 3.5], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 7.0]]
)


def over(name: str, values: np.ndarray = VALUES, **settings: float) -> list[float]:
    return Use(find("aggregation", name), settings).build()(values).tolist()


def test_nominal_is_the_first_scenario():
    assert over("nominal") == [3.0, 0.0]


def test_worst_is_the_largest():
    assert over("worst") == [9.0, 7.0]


def test_mean_is_the_average():
    assert over("mean") == pytest.approx([4.05, 0.7], rel=1e-15)


@pytest.mark.parametrize("level", [0.0, 0.25, 0.5, 0.9, 1.0])
def test_quantile_is_that_of_numpy(level):
    assert over("quantile", level=level) == np.quantile(VALUES, level, axis=1).tolist()


def test_quantile_and_cvar_look_at_the_worst_tenth_unless_told_otherwise():
    assert over("quantile") == np.quantile(VALUES, 0.9, axis=1).tolist()
    assert over("cvar") == [9.0, 7.0]


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (0.8, [(9.0 + 6.0) / 2, 7.0 / 2]),  # the worst two of ten
        (0.7, [(9.0 + 6.0 + 5.5) / 3, 7.0 / 3]),
        (0.75, [(9.0 + 6.0 + 0.5 * 5.5) / 2.5, 7.0 / 2.5]),  # half of the third worst lies in the worst quarter
        (0.95, [9.0, 7.0]),  # half a scenario: the worst
        (1.0, [9.0, 7.0]),
        (0.0, [4.05, 0.7]),  # all of them: the mean
    ],
)
def test_cvar_is_the_average_of_the_worst_share(level, expected):
    assert over("cvar", level=level) == pytest.approx(expected, rel=1e-14)


def test_cvar_is_the_minimum_of_rockafellar_and_uryasevs_function():
    # Rockafellar & Uryasev (2000), eq. 4: min over t of t + mean(max(v - t, 0)) / (1 - level).
    values = np.random.default_rng(1).normal(size=(1, 7))
    for level in (0.1, 0.35, 0.5, 0.8, 0.99):
        t = values.T  # the minimum is at one of the values
        by_definition = (t[:, 0] + np.maximum(values - t, 0.0).mean(axis=1) / (1.0 - level)).min()
        assert over("cvar", values, level=level) == pytest.approx([by_definition], rel=1e-12)


@pytest.mark.parametrize("name", ["nominal", "worst", "mean", "quantile", "cvar"])
def test_every_aggregation_of_one_scenario_is_its_value_and_no_designs_give_none(name):
    one = np.array([[2.5], [-1.0]])
    assert over(name, one) == [2.5, -1.0]
    assert over(name, np.empty((0, 3))) == []


@pytest.mark.parametrize("name", ["nominal", "worst", "mean", "quantile", "cvar"])
def test_a_designs_aggregate_does_not_depend_on_the_others_in_the_batch(name):
    values = np.random.default_rng(2).normal(size=(301, 13))
    alone = [over(name, row[None, :])[0] for row in values]
    assert over(name, values) == alone


def test_the_installed_aggregations_are_those_of_this_module():
    for name in ("nominal", "worst", "mean", "quantile", "cvar"):
        assert find("aggregation", name).target is getattr(aggregations, name)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("nominal", {}),
        ("worst", {}),
        ("mean", {}),
        *(("quantile", {"level": level}) for level in (0.0, 0.3, 0.9, 1.0)),
        *(("cvar", {"level": level}) for level in (0.0, 0.75, 0.9, 1.0)),
    ],
)
def test_the_weights_of_scenarios_are_the_derivatives(name, settings):
    values = VALUES[:1]  # no two are equal: there is no kink
    use = Use(find("aggregation", name), settings)
    step = 1e-3  # all of them are linear as long as the order of the scenarios stays
    moved = values + step * np.eye(values.shape[1])
    differences = (np.array(over(name, moved, **settings)) - over(name, values, **settings)[0]) / step
    np.testing.assert_allclose(use.plugin.weights(values, **use.settings)[0], differences, atol=1e-11)


@pytest.mark.parametrize("name", ["nominal", "worst", "mean", "quantile", "cvar"])
def test_weights_sum_to_one_also_where_scenarios_are_equally_bad(name):
    weights = find("aggregation", name).weights(np.vstack([VALUES, np.ones(10)]))
    assert weights.sum(axis=1) == pytest.approx([1.0, 1.0, 1.0], rel=1e-14)
    assert (weights >= 0.0).all()


@pytest.mark.parametrize("times", [0.0, 1.0, 2.5])
def test_mean_plus_deviation_adds_standard_deviations_of_numpy(times):
    expected = VALUES.mean(axis=1) + times * VALUES.std(axis=1)
    assert over("mean_plus_deviation", times=times) == pytest.approx(expected, rel=1e-14)


def test_equal_scenarios_have_no_deviation_and_weigh_the_same():
    weights = find("aggregation", "mean_plus_deviation").weights(np.ones((1, 4)), times=2.0)
    assert weights.tolist() == [[0.25, 0.25, 0.25, 0.25]]
