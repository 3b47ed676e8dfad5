"""Sobol' indices and Morris' effects: against functions whose values are known, and with designs missing."""

import random
from dataclasses import replace

import numpy as np
import pytest

from designopt.plugin import InvalidSetting
from designopt.problem import Problem
from designopt.solvers import sensitivity
from designopt.solvers.sensitivity import MIN_SHARE, Morris, SobolIndices
from designopt.study.study import DesignVariable, Scenario
from designopt.testing import InProcess, check_solver, no_outcomes, problem_from

pytest.importorskip("SALib", reason="needs the extra 'sensitivity'")


def box(d: int, low: float = 0.0, high: float = 1.0) -> tuple[DesignVariable, ...]:
    return tuple(DesignVariable(f"x{j + 1}", "real", low, high) for j in range(d))


def outcomes_for(solver, problem: Problem, seed: int = 1):
    """The outcomes of all that `solver` asks for, in its one batch."""
    evaluate = InProcess(problem)
    solver.solve(problem, evaluate, np.random.default_rng(seed), no_outcomes(problem))
    assert len(evaluate.batches) == 1
    return evaluate.outcomes(evaluate.X)


def vector(design) -> np.ndarray:
    return np.array([design[k] for k in sorted(design)])


# ---------------------------------------------------------------------------------------------- rules of solvers


@pytest.mark.parametrize(
    ("solver", "settings"),
    [
        (SobolIndices, {"base": 8}),
        (SobolIndices, {"base": 4, "second_order": True}),
        (Morris, {"trajectories": 6}),
        (Morris, {"trajectories": 4, "levels": 6}),
    ],
)
def test_the_solvers_keep_the_rules_of_solvers(solver, settings):
    check_solver(solver, settings)


def test_neither_sampling_nor_analysis_touches_global_random_states():
    problem = problem_from(lambda design, scenario: {"f": vector(design).sum()}, box(3), minimize=["f"])
    before = np.random.get_state()[1].copy(), random.getstate()
    for solver in (SobolIndices(base=8, second_order=True), Morris()):
        solver.indices(problem, outcomes_for(solver, problem))
    assert np.array_equal(before[0], np.random.get_state()[1])
    assert before[1] == random.getstate()


def test_the_same_outcomes_give_the_same_intervals():
    problem = problem_from(lambda design, scenario: {"f": (vector(design) ** 2).sum()}, box(2), minimize=["f"])
    for solver in (SobolIndices(base=16), Morris()):
        outcomes = outcomes_for(solver, problem)
        first, repeated = (solver.indices(problem, outcomes).influences[0].measures for _ in range(2))
        for name, values in first.items():
            np.testing.assert_array_equal(values, repeated[name])


# ------------------------------------------------------------------------------------------------ Sobol' indices

# Ishigami & Homma (1990): f = sin x1 + 7 sin^2 x2 + 0.1 x3^4 sin x1 on [-pi, pi]^3. Variances in closed form, as in
# Saltelli et al., Sensitivity Analysis in Practice (2004), section 4: with a = 7, b = 0.1
A, B = 7.0, 0.1
V1, V2, V13 = 0.5 * (1 + B * np.pi**4 / 5) ** 2, A**2 / 8, B**2 * np.pi**8 * (1 / 18 - 1 / 50)
ISHIGAMI_FIRST = np.array([V1, V2, 0.0]) / (V1 + V2 + V13)
ISHIGAMI_TOTAL = np.array([V1 + V13, V2, V13]) / (V1 + V2 + V13)


def ishigami(design, scenario):
    x1, x2, x3 = vector(design)
    return {"f": np.sin(x1) + A * np.sin(x2) ** 2 + B * x3**4 * np.sin(x1)}


def test_indices_of_the_ishigami_function_are_those_of_its_closed_form():
    np.testing.assert_allclose(ISHIGAMI_FIRST, [0.3139, 0.4424, 0.0], atol=1e-4)  # as printed by many
    np.testing.assert_allclose(ISHIGAMI_TOTAL, [0.5576, 0.4424, 0.2437], atol=1e-4)
    problem = problem_from(ishigami, box(3, -np.pi, np.pi), minimize=["f"])
    solver = SobolIndices(base=1024, second_order=True)
    (influence,) = solver.indices(problem, outcomes_for(solver, problem)).influences
    # The error of 1024 blocks is about 0.03 by the bootstrap; low discrepancy makes it smaller.
    np.testing.assert_allclose(influence.measures["first"], ISHIGAMI_FIRST, atol=0.03)
    np.testing.assert_allclose(influence.measures["total"], ISHIGAMI_TOTAL, atol=0.03)
    assert influence.measures["second"][0, 2] == pytest.approx(V13 / (V1 + V2 + V13), abs=0.05)
    assert abs(influence.measures["second"][0, 1]) < 0.05
    inside = np.abs(influence.measures["total"] - ISHIGAMI_TOTAL) <= influence.measures["total_confidence"]
    assert inside.all()
    assert (influence.complete_blocks, influence.blocks) == (1024, 1024)


def test_indices_of_the_g_function_are_those_of_its_closed_form():
    # Saltelli & Sobol' (1995): f = prod (|4 x_i - 2| + a_i) / (1 + a_i), V_i = 1/3 / (1 + a_i)^2.
    a = np.array([0.0, 1.0, 4.5, 9.0])
    problem = problem_from(
        lambda design, scenario: {"g": np.prod((np.abs(4 * vector(design) - 2) + a) / (1 + a))}, box(4), minimize=["g"]
    )
    partial = 1 / 3 / (1 + a) ** 2
    variance = np.prod(1 + partial) - 1
    total = [partial[j] * np.prod(np.delete(1 + partial, j)) / variance for j in range(4)]
    solver = SobolIndices(base=1024)
    (influence,) = solver.indices(problem, outcomes_for(solver, problem)).influences
    np.testing.assert_allclose(influence.measures["first"], partial / variance, atol=0.03)
    np.testing.assert_allclose(influence.measures["total"], total, atol=0.03)
    assert "second" not in influence.measures


def test_intervals_become_narrower_with_the_square_root_of_the_base():
    problem = problem_from(ishigami, box(3, -np.pi, np.pi), minimize=["f"])
    widths = []
    for base in (128, 2048):
        solver = SobolIndices(base=base)
        widths.append(
            solver.indices(problem, outcomes_for(solver, problem)).influences[0].measures["total_confidence"][0]
        )
    assert 2.5 < widths[0] / widths[1] < 6.0  # sqrt(16) = 4, known to the scatter of 200 resamples


def test_a_log_scale_and_whole_numbers_are_sampled_evenly_in_search_coordinates():
    # f = log10(k) + n over k in 0.01 ... 100 and n in 0 ... 3: variances 16/12 and 15/12, no interaction.
    space = (DesignVariable("k", "real", 0.01, 100.0, scale="log"), DesignVariable("n", "int", 0, 3))
    problem = problem_from(lambda d, s: {"f": np.log10(d["k"]) + d["n"]}, space, minimize=["f"])
    solver = SobolIndices(base=512)
    (influence,) = solver.indices(problem, outcomes_for(solver, problem)).influences
    np.testing.assert_allclose(influence.measures["first"], np.array([16, 15]) / 31, atol=0.02)
    np.testing.assert_allclose(influence.measures["total"], np.array([16, 15]) / 31, atol=0.02)


# -------------------------------------------------------------------------------------------------------- Morris


def test_effects_of_a_linear_function_are_its_coefficients_without_spread():
    c = np.array([3.0, -2.0, 0.5, 0.0])
    problem = problem_from(lambda design, scenario: {"f": c @ vector(design)}, box(4), minimize=["f"])
    solver = Morris(trajectories=8)
    (influence,) = solver.indices(problem, outcomes_for(solver, problem)).influences
    np.testing.assert_allclose(influence.measures["mu"], c, atol=1e-12)
    np.testing.assert_allclose(influence.measures["mu_star"], np.abs(c), atol=1e-12)
    np.testing.assert_allclose(influence.measures["sigma"], 0.0, atol=1e-12)
    np.testing.assert_allclose(influence.measures["mu_star_confidence"], 0.0, atol=1e-12)


def test_an_effect_is_that_of_the_whole_range():
    space = (DesignVariable("a", "real", -10.0, 10.0), DesignVariable("k", "real", 0.1, 1000.0, scale="log"))
    problem = problem_from(lambda d, s: {"f": 2 * d["a"] + np.log10(d["k"])}, space, minimize=["f"])
    solver = Morris(trajectories=5, levels=6)
    (influence,) = solver.indices(problem, outcomes_for(solver, problem)).influences
    np.testing.assert_allclose(influence.measures["mu"], [40.0, 4.0], atol=1e-9)


@pytest.mark.parametrize("levels", [2, 4, 6])
def test_an_effect_of_few_values_is_that_of_their_whole_range(levels):
    # Steps of 2, 3, 4 and 7 values are not those of the grid; a linear function has one effect whatever they are.
    space = tuple(DesignVariable(f"n{k}", "int", 0, k - 1) for k in (2, 3, 4, 7))
    problem = problem_from(lambda d, s: {"f": float(sum(d.values()))}, space, minimize=["f"])
    solver = Morris(trajectories=10, levels=levels)
    (influence,) = solver.indices(problem, outcomes_for(solver, problem)).influences
    np.testing.assert_allclose(influence.measures["mu"], [1.0, 2.0, 3.0, 6.0], atol=1e-12)
    np.testing.assert_allclose(influence.measures["sigma"], 0.0, atol=1e-12)


def test_the_effect_of_a_choice_is_not_attributed_to_a_parameter_it_activates():
    space = (
        DesignVariable("kind", "choice", values=("a", "b")),
        DesignVariable("idle", "real", 0.0, 1.0, when={"kind": ("b",)}),
        DesignVariable("x", "real", 0.0, 1.0, when={"kind": ("b",)}),
    )
    problem = problem_from(lambda d, s: {"f": 10.0 * (d["kind"] == "b") + 2.0 * d.get("x", 0.0)}, space, minimize=["f"])
    solver = Morris(trajectories=40)
    (influence,) = solver.indices(problem, outcomes_for(solver, problem)).influences
    kind, idle, x = influence.measures["mu"]
    assert 10.0 <= kind <= 12.0
    assert idle == 0.0
    assert 0.0 < x < 2.0  # the effect of 2, and none in the steps where it is not active


def test_interaction_shows_as_spread():
    problem = problem_from(lambda d, s: {"f": d["x1"] * d["x2"] + d["x3"]}, box(3), minimize=["f"])
    solver = Morris(trajectories=40)
    (influence,) = solver.indices(problem, outcomes_for(solver, problem)).influences
    assert (influence.measures["sigma"][:2] > 0.2).all()
    assert influence.measures["sigma"][2] < 1e-12


@pytest.mark.parametrize("values", [2, 3, 4, 5])
def test_every_step_changes_a_choice_and_every_value_of_few_is_visited(values):
    space = (DesignVariable("kind", "choice", values=tuple(range(values))), DesignVariable("x", "real", 0.0, 1.0))
    problem = problem_from(lambda d, s: {"f": d["x"]}, space, minimize=["f"])
    X = outcomes_for(Morris(trajectories=30), problem).X.reshape(30, 3, 2)
    assert (np.ptp(X[:, :, 0], axis=1) > 0).all()
    if values < 5:
        assert set(X[:, :, 0].ravel()) == set(range(values))


# -------------------------------------------------------------------------------------------------- what is missing


@pytest.mark.parametrize("solver", [SobolIndices(base=64), Morris(trajectories=40)], ids=["sobol", "morris"])
def test_a_block_with_a_missing_design_is_dropped_as_a_whole(solver):
    problem = problem_from(lambda d, s: {"f": 3 * d["x1"] + d["x2"]}, box(2), minimize=["f"])
    outcomes = outcomes_for(solver, problem)
    block = solver.indices(problem, outcomes).block
    failed = outcomes.failed.copy()
    failed[[1, 2, 3 * block]] = True
    lost = replace(outcomes, failed=failed, objectives=np.where(failed[:, None], np.inf, outcomes.objectives))
    (influence,) = solver.indices(problem, lost).influences
    assert influence.complete_blocks == influence.blocks - 2
    rows = np.delete(np.arange(len(outcomes)), [*range(block), *range(3 * block, 4 * block)])
    smaller = replace(solver, base=62) if isinstance(solver, SobolIndices) else replace(solver, trajectories=38)
    (expected,) = smaller.indices(problem, outcomes.take(rows)).influences
    for name, values in expected.measures.items():
        np.testing.assert_array_equal(influence.measures[name], values)


@pytest.mark.parametrize("solver", [SobolIndices(base=64), Morris(trajectories=40)], ids=["sobol", "morris"])
def test_a_figure_of_designs_that_failed_by_another_output_counts(solver):
    problem = problem_from(lambda d, s: {"f": d["x1"], "g": 3 * d["x1"] + d["x2"]}, box(2), minimize=["f"])
    outcomes = outcomes_for(solver, problem)
    solver = replace(solver, outputs=["g"])
    failed = np.arange(len(outcomes)) % 5 == 0
    lost = replace(outcomes, failed=failed, objectives=np.where(failed[:, None], np.inf, outcomes.objectives))
    (expected,), (influence,) = (solver.indices(problem, each).influences for each in (outcomes, lost))
    assert influence.complete_blocks == influence.blocks
    for name, values in expected.measures.items():
        np.testing.assert_array_equal(influence.measures[name], values)


@pytest.mark.parametrize("solver", [SobolIndices(base=64), Morris(trajectories=40)], ids=["sobol", "morris"])
def test_too_few_complete_blocks_are_refused_in_words(solver):
    problem = problem_from(lambda d, s: {"f": d["x1"]}, box(2), minimize=["f"])
    outcomes = outcomes_for(solver, problem)
    half = outcomes.take(np.arange(len(outcomes) // 2 + 1))  # a run that was stopped
    (influence,) = solver.indices(problem, half).influences
    assert not influence.measures
    assert influence.complete_blocks == influence.blocks // 2
    assert "75 %" in influence.undefined_reason
    assert f"{influence.complete_blocks} of {influence.blocks} blocks" in influence.undefined_reason
    assert MIN_SHARE == 0.75


def test_designs_outside_a_relation_cost_their_block():
    problem = problem_from(lambda d, s: {"f": d["x1"] + d["x2"]}, box(2), minimize=["f"], relations=("x1 + x2 <= 1.9",))
    solver = SobolIndices(base=128)
    (influence,) = solver.indices(problem, outcomes_for(solver, problem)).influences
    assert 0.9 * 128 < influence.complete_blocks < 128
    assert influence.measures


@pytest.mark.parametrize("solver", [SobolIndices(base=8), Morris()], ids=["sobol", "morris"])
def test_a_constant_output_is_reported_without_indices(solver):
    problem = problem_from(lambda d, s: {"f": 0.3, "g": d["x1"]}, box(2), minimize=["f", "g"])
    constant, varying = solver.indices(problem, outcomes_for(solver, problem)).influences
    assert "same value in every design" in constant.undefined_reason
    assert not constant.measures
    assert varying.measures


# ------------------------------------------------------------------------------------------------------- settings


def test_figures_are_explained_in_every_scenario():
    problem = problem_from(
        lambda d, s: {"f": d["x1"] + s.get("slope", 0.0) * d["x2"]},
        box(2),
        minimize=["f"],
        scenarios=(Scenario("flat"), Scenario("steep", {"slope": 10.0})),
    )
    solver = SobolIndices(base=64, outputs=["objective_0", "f"])
    influences = solver.indices(problem, outcomes_for(solver, problem)).influences
    assert [i.output for i in influences] == ["objective_0", "f · flat", "f · steep"]
    np.testing.assert_allclose(influences[1].measures["total"], [1, 0], atol=0.02)
    np.testing.assert_allclose(influences[2].measures["total"], np.array([1, 100]) / 101, atol=0.02)


@pytest.mark.parametrize(
    ("solver", "name", "words"),
    [
        (SobolIndices(base=100), "base", "take 64 or 128"),
        (SobolIndices(base=2**20), "resamples", "at most 19"),
        (Morris(levels=5), "levels", "take 4 or 6"),
        (Morris(trajectories=30_000), "resamples", "at most 666"),
        (Morris(trajectories=30_000_000), "use", "at most 20000000"),
    ],
)
def test_settings_that_do_not_fit_are_refused(solver, name, words):
    problem = problem_from(lambda d, s: {"f": 0.0}, box(2), minimize=["f"])
    with pytest.raises(InvalidSetting, match=words) as refused:
        solver.check(problem)
    assert refused.value.name == name


def test_an_unknown_output_is_refused_with_the_nearest_name():
    problem = problem_from(lambda d, s: {"f": 0.0}, box(1), minimize=["f"])
    outputs = {"peak_error": None, "rho": None}
    declared = replace(problem, model=replace(problem.model, plugin=replace(problem.model.plugin, outputs=outputs)))
    with pytest.raises(InvalidSetting, match="did you mean 'peak_error'"):
        Morris(outputs=["peak_eror"]).check(declared)
    Morris(outputs=["rho", "objective_0"]).check(declared)


def test_without_salib_the_command_that_installs_it_is_named(monkeypatch):
    monkeypatch.setattr(sensitivity, "find_spec", lambda name: None)
    problem = problem_from(lambda d, s: {"f": 0.0}, box(1), minimize=["f"])
    for solver in (Morris(), SobolIndices(base=8)):
        with pytest.raises(InvalidSetting, match=r"pip install 'designopt\[sensitivity\]'"):
            solver.check(problem)


def test_the_whole_sample_is_the_least_budget():
    problem = problem_from(lambda d, s: {"f": 0.0}, box(3), minimize=["f"])
    assert SobolIndices(base=8).minimum_budget(problem) == 8 * 5
    assert SobolIndices(base=8, second_order=True).minimum_budget(problem) == 8 * 8
    assert Morris(trajectories=7).minimum_budget(problem) == 7 * 4


@pytest.mark.parametrize(("complete", "refused"), [(7, True), (8, False)])
def test_three_quarters_of_ten_blocks_are_eight(complete, refused):
    problem = problem_from(lambda d, s: {"f": d["x1"] + d["x2"]}, box(2), minimize=["f"])
    solver = Morris(trajectories=10)
    outcomes = outcomes_for(solver, problem)
    (influence,) = solver.indices(problem, outcomes.take(np.arange(complete * len(outcomes) // 10))).influences
    assert bool(influence.undefined_reason) is refused
