"""The samplers: exact grids, strata, low discrepancy, and nothing but the given generator."""

import warnings

import numpy as np
import pytest

from designopt.plugin import InvalidSetting
from designopt.problem import Problem
from designopt.solvers.sampling import FullFactorial, Halton, LatinHypercube, Random, Sobol
from designopt.study.study import DesignVariable
from designopt.testing import InProcess, check_solver, no_outcomes, problem_from

SQUARE = (DesignVariable("x", "real", 0.0, 1.0), DesignVariable("y", "real", 0.0, 1.0))


def box(*parameters: DesignVariable, relations: tuple[str, ...] = ()) -> Problem:
    return problem_from(lambda design, scenario: {"f": 0.0}, parameters, minimize=["f"], relations=relations)


def sample(solver, problem: Problem, seed: int = 1) -> np.ndarray:
    """What `solver` asks for, in one batch."""
    evaluate = InProcess(problem)
    solver.solve(problem, evaluate, np.random.default_rng(seed), no_outcomes(problem))
    assert len(evaluate.batches) == 1
    return evaluate.X


def star_discrepancy(U: np.ndarray) -> float:
    """sup over boxes [0, a) x [0, b) of |share of points inside - area|, exactly: the corners are point coordinates."""
    a, b = (np.append(U[:, j], 1.0) for j in range(2))
    area = np.outer(a, b)
    opened = (U[:, 0] < a[:, None]).astype(float) @ (U[:, 1, None] < b) / len(U)
    closed = (U[:, 0] <= a[:, None]).astype(float) @ (U[:, 1, None] <= b) / len(U)
    return float(max((area - opened).max(), (closed - area).max()))


@pytest.mark.parametrize(
    ("solver", "settings"),
    [
        (LatinHypercube, {"samples": 23, "scramble": False}),
        (LatinHypercube, {"samples": 8, "optimization": "lloyd"}),
        (Sobol, {"samples": 16, "scramble": False}),
        (Halton, {"samples": 16, "scramble": False}),
    ],
)
def test_samplers_keep_the_rules_of_solvers_with_other_settings_too(solver, settings):
    check_solver(solver, settings)


# ------------------------------------------------------------------------------------------------- full factorial


def test_a_grid_is_every_combination_with_the_last_parameter_fastest():
    problem = box(
        DesignVariable("x", "real", 0.0, 1.0),
        DesignVariable("n", "int", -1, 1),
        DesignVariable("c", "choice", values=("a", "b")),
    )
    expected = [[x, n, c] for x in (0.0, 0.5, 1.0) for n in (-1, 0, 1) for c in (0, 1)]
    assert sample(FullFactorial(levels=3), problem).tolist() == expected


def test_log_scale_levels_are_geometric_with_exact_bounds():
    problem = box(DesignVariable("k", "real", 0.1, 7.3, scale="log"))
    k = sample(FullFactorial(levels=41), problem)[:, 0]
    assert (k[0], k[-1]) == (0.1, 7.3)
    np.testing.assert_allclose(k[1:] / k[:-1], (7.3 / 0.1) ** (1 / 40), rtol=1e-12)


def test_a_single_level_is_the_middle_of_the_scale():
    problem = box(DesignVariable("k", "real", 1.0, 100.0, scale="log"), DesignVariable("x", "real", -1.0, 2.0))
    np.testing.assert_allclose(sample(FullFactorial(levels=1), problem), [[10.0, 0.5]], rtol=1e-15)


def test_levels_may_be_given_by_parameter_and_integers_default_to_all_values():
    problem = box(*SQUARE, DesignVariable("n", "int", 0, 10), DesignVariable("m", "int", 5, 7))
    X = sample(FullFactorial(levels={"x": 2, "y": 3, "n": 3}), problem)
    assert len(X) == 2 * 3 * 3 * 3
    assert sorted(set(X[:, 2])) == [0, 5, 10]
    assert sorted(set(X[:, 3])) == [5, 6, 7]


@pytest.mark.parametrize("count", range(1, 12))
def test_evenly_spaced_integers_are_distinct(count):
    X = sample(FullFactorial(levels={"n": count}), box(DesignVariable("n", "int", -3, 7)))
    assert len(set(X[:, 0])) == count


def test_parameters_without_reals_need_no_levels():
    assert sample(FullFactorial(), box(DesignVariable("n", "int", 1, 3))).tolist() == [[1], [2], [3]]


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ({}, "levels: give the number of levels of the real parameter 'x'"),
        ({"x": 2, "z": 3}, r"levels: there is no free parameter 'z' \(free: x, n, c\)"),
        ({"x": 0}, "levels: 'x' needs at least 1 level, not 0"),
        ({"x": 2, "n": 9}, "levels: 'n' has 3 values, not 9"),
        ({"x": 2, "c": 1}, "levels: 'c' is a choice and has all its 2 values as levels"),
        (10_000_000, r"levels: the grid has 6e\+07 points; at most 20000000 are allowed"),
    ],
)
def test_levels_that_do_not_fit_are_refused_with_the_reason(levels, message):
    problem = box(
        DesignVariable("x", "real", 0.0, 1.0),
        DesignVariable("n", "int", 0, 2),
        DesignVariable("c", "choice", values=("a", "b")),
    )
    with pytest.raises(InvalidSetting, match=message):
        FullFactorial(levels=levels).check(problem)


def test_a_million_points_are_made_in_one_piece():
    problem = box(*SQUARE)
    batches: list[np.ndarray] = []
    FullFactorial(levels=1000).solve(problem, batches.append, np.random.default_rng(), no_outcomes(problem))
    assert batches[0].shape == (1_000_000, 2)
    assert batches[0][1].tolist() == [0.0, 1.0 / 999.0]


def test_points_that_break_a_relation_are_proposed_and_cost_nothing():
    problem = box(DesignVariable("n", "int", 0, 3), DesignVariable("m", "int", 0, 3), relations=("n <= m",))
    evaluate = InProcess(problem, budget=10)  # 4 + 3 + 2 + 1 of the 16 keep the relation
    FullFactorial().solve(problem, evaluate, np.random.default_rng(), no_outcomes(problem))
    assert len(evaluate.X) == 16
    assert not evaluate.has_ended


def test_combinations_of_inactive_parameters_are_one_design_at_its_first_place():
    problem = box(
        DesignVariable("spring", "choice", values=("steel", "air")),
        DesignVariable("pressure", "real", 0.0, 2.0, when={"spring": ("air",)}),
        DesignVariable("n", "int", 0, 1),
    )
    expected = [[0, 1, 0], [0, 1, 1], *([1, p, n] for p in (0, 1, 2) for n in (0, 1))]  # 1 is the middle of pressure
    assert sample(FullFactorial(levels=3), problem).tolist() == expected


# -------------------------------------------------------------------------------------------------- latin hypercube


@pytest.mark.parametrize("settings", [{}, {"scramble": False}, {"optimization": "random-cd"}])
def test_a_latin_hypercube_has_one_design_in_each_stratum_of_each_parameter(settings):
    n = 50
    problem = box(*SQUARE, DesignVariable("k", "real", 1.0, 100.0, scale="log"))
    X = sample(LatinHypercube(samples=n, **settings), problem)
    U = np.column_stack([X[:, 0], X[:, 1], np.log10(X[:, 2]) / 2.0])
    assert np.array_equal(np.sort(np.floor(U * n), axis=0), np.repeat(np.arange(n)[:, None], 3, axis=1))


def test_integers_and_choices_have_equally_many_designs_each():
    problem = box(DesignVariable("n", "int", -2, 3), DesignVariable("c", "choice", values=("a", "b", "c")))
    X = sample(LatinHypercube(samples=60), problem)
    assert np.unique(X[:, 0], return_counts=True)[1].tolist() == [10] * 6
    assert np.unique(X[:, 1], return_counts=True)[1].tolist() == [20] * 3


def test_optimization_lowers_the_centred_discrepancy():
    from scipy.stats import qmc

    problem = box(*SQUARE)
    plain = [qmc.discrepancy(sample(LatinHypercube(samples=20), problem, seed)) for seed in range(8)]
    better = [
        qmc.discrepancy(sample(LatinHypercube(samples=20, optimization="random-cd"), problem, seed))
        for seed in range(8)
    ]
    assert np.median(better) < 0.6 * np.median(plain)


def test_lloyd_moves_the_closest_designs_apart():
    from scipy.spatial.distance import pdist

    problem = box(*SQUARE)

    def closest(**settings: str) -> float:
        samples = [sample(LatinHypercube(samples=20, **settings), problem, seed) for seed in range(8)]
        return float(np.median([pdist(X).min() for X in samples]))

    assert closest(optimization="lloyd") > 1.2 * closest()


@pytest.mark.parametrize(
    ("settings", "parameters", "message"),
    [
        ({"samples": 9, "optimization": "lloyd"}, SQUARE[:1], "'lloyd' needs two free parameters"),
        ({"samples": 3, "optimization": "lloyd"}, SQUARE, "'lloyd' needs 4 samples here, not 3"),
        ({"samples": 1, "optimization": "random-cd"}, SQUARE, "'random-cd' needs 2 samples here, not 1"),
    ],
)
def test_a_sample_that_cannot_be_optimized_is_refused(settings, parameters, message):
    with pytest.raises(InvalidSetting, match=message):
        LatinHypercube(**settings).check(box(*parameters))


# ------------------------------------------------------------------------------------------------------------ sobol


def test_the_sobol_sequence_starts_with_its_known_points():
    # The first points of the sequence in two dimensions, unscrambled, in Gray-code order (Joe & Kuo 2008).
    expected = [[0, 0], [0.5, 0.5], [0.75, 0.25], [0.25, 0.75], [0.375, 0.375], [0.875, 0.875]]
    assert sample(Sobol(samples=6, scramble=False), box(*SQUARE)).tolist() == expected


def test_any_number_of_samples_begins_the_same_sequence_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        longest = sample(Sobol(samples=64), box(*SQUARE))
        for count in (1, 2, 31, 33, 63):
            assert np.array_equal(sample(Sobol(samples=count), box(*SQUARE)), longest[:count])


def test_a_power_of_two_is_balanced_in_every_elementary_box():
    X = sample(Sobol(samples=64), box(*SQUARE))
    for nx in (1, 2, 4, 8, 16, 32, 64):
        cells = np.floor(X[:, 0] * nx) * (64 // nx) + np.floor(X[:, 1] * (64 // nx))
        assert np.unique(cells).size == 64


def test_the_sequence_is_refused_beyond_its_known_dimensions():
    from scipy.stats import qmc

    from designopt.solvers.sampling import MOST_DIMENSIONS

    assert MOST_DIMENSIONS == qmc.Sobol.MAXDIM
    many = box(*(DesignVariable(f"x{i}", "real", 0.0, 1.0) for i in range(MOST_DIMENSIONS + 1)))
    with pytest.raises(InvalidSetting, match="has at most 21201 dimensions"):
        Sobol(samples=4).check(many)


@pytest.mark.parametrize(("sequence", "most"), [(Sobol, 0.5), (Halton, 0.6)])
def test_points_of_a_sequence_have_a_lower_star_discrepancy_than_random_ones(sequence, most):
    problem = box(*SQUARE)
    spread, chance = (
        np.median([star_discrepancy(sample(solver(samples=128), problem, seed)) for seed in range(3)])
        for solver in (sequence, Random)
    )
    assert spread < most * chance


# --------------------------------------------------------------------------------------------------- halton, random


def test_the_halton_sequence_starts_with_its_known_points():
    # Running numbers 0 to 4 mirrored in base 2 and 3 (Halton 1960).
    expected = [[0, 0], [1 / 2, 1 / 3], [1 / 4, 2 / 3], [3 / 4, 1 / 9], [1 / 8, 4 / 9]]
    X = sample(Halton(samples=5, scramble=False), box(*SQUARE))
    np.testing.assert_allclose(X, expected, rtol=0, atol=1e-15)


def test_a_halton_sample_grows_by_any_number_and_keeps_its_beginning():
    longest = sample(Halton(samples=50), box(*SQUARE))
    for count in (1, 7, 49):
        assert np.array_equal(sample(Halton(samples=count), box(*SQUARE)), longest[:count])


def test_random_designs_are_those_of_the_generator_itself():
    expected = np.random.default_rng(5).random((9, 2))
    assert np.array_equal(sample(Random(samples=9), box(*SQUARE), seed=5), expected)


# ------------------------------------------------------------------------------------------------------ unit sample


@pytest.mark.parametrize("kind", [LatinHypercube, Sobol, Halton, Random])
@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_samplers_give_their_points_in_the_unit_cube(kind, dimension):
    U = kind(samples=40).unit_sample(dimension, np.random.default_rng(1))
    assert U.shape == (40, dimension)
    assert np.all((U >= 0.0) & (U < 1.0))
    assert np.array_equal(U, kind(samples=40).unit_sample(dimension, np.random.default_rng(1)))
    problem = box(*(DesignVariable(f"x{i}", "real", 0.0, 1.0) for i in range(dimension)))
    assert np.array_equal(U, sample(kind(samples=40), problem, seed=1))


# ------------------------------------------------------------------------------------------------------ start, seed


@pytest.mark.parametrize(
    "solver",
    [FullFactorial(levels=3), LatinHypercube(samples=5), Sobol(samples=5), Halton(samples=5), Random(samples=5)],
)
def test_a_sampler_refuses_designs_of_an_earlier_stage(solver):
    problem = box(*SQUARE)
    start = InProcess(problem).outcomes(np.array([[0.5, 0.5]]))
    with pytest.raises(InvalidSetting, match="start_from: a sampler does not learn"):
        solver.solve(problem, InProcess(problem), np.random.default_rng(), start)


@pytest.mark.parametrize("solver", [LatinHypercube(samples=8), Sobol(samples=8), Halton(samples=8), Random(samples=8)])
def test_the_sample_follows_the_state_of_the_generator_and_not_only_its_seed(solver):
    problem = box(*SQUARE)
    used = np.random.default_rng(1)
    used.random(3)
    evaluate = InProcess(problem)
    solver.solve(problem, evaluate, used, no_outcomes(problem))
    assert not np.array_equal(evaluate.X, sample(solver, problem, seed=1))
