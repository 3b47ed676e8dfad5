"""Parts that explain and choose: influence, scenarios, decision, validation; compared with results of known numbers."""

import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from given_results import SAMPLER, GivenResult, at_most, beam_result, grid, maximize, minimize

from designopt.plugin import Use, find
from designopt.problem import Problem
from designopt.report import summary_table
from designopt.report.labels import recompute
from designopt.report.parts.answer.best import best
from designopt.report.parts.answer.decision import decision
from designopt.report.parts.answer.limits import limits
from designopt.report.parts.answer.overview import overview
from designopt.report.parts.answer.problem import problem
from designopt.report.parts.answer.validation import validation, wilson
from designopt.report.parts.designs.front import front
from designopt.report.parts.designs.influence import in_ask_order, influence, influence_sentences
from designopt.report.parts.designs.scenarios import scenarios
from designopt.report.parts.failures import failures
from designopt.report.terminal import analysis_table
from designopt.study.study import Choice, DesignVariable, Scenario, Stage, Validation

UNIT = tuple(DesignVariable(name, "real", low=0.0, high=1.0) for name in ("a", "b", "c"))


class _Asked(Exception):
    """Ends a solver at its first batch."""


def sampled(solver: str, settings: dict[str, Any], *, failed: tuple[int, ...] = (), lost: int = 0) -> GivenResult:
    """What a sensitivity stage leaves for mass = 3 a + b (c idle), sag = 4 everywhere: the last `lost` designs of the
    sample are not done yet, and those at the places `failed` failed."""
    pytest.importorskip("SALib", reason="needs the extra 'sensitivity'")
    stage = Stage("screening", Use(find("solver", solver), settings))
    empty = beam_result(np.empty((0, 3)), {"mass": [], "sag": [], "cost": []}, space=UNIT, stages=(stage,))
    batches: list[Any] = []

    def evaluate(X: Any) -> Any:
        batches.append(X)
        raise _Asked

    with pytest.raises(_Asked):
        stage.solver.build().solve(empty.problem, evaluate, np.random.default_rng(3), None)
    (batch,) = batches
    X, first, inverse = np.unique(batch, axis=0, return_index=True, return_inverse=True)
    status = np.where(np.isin(first, failed), "diverged", "ok")
    mass = 3 * X[:, 0] + X[:, 1]
    result = beam_result(
        X, {"mass": mass, "sag": 4 + 0 * mass, "cost": mass}, space=UNIT, stages=(stage,), status=status,
        stage=["screening"] * len(X),
    )  # fmt: skip
    rows = np.where(np.arange(len(batch)) < len(batch) - lost, inverse.ravel(), -1)
    result.table["asked"] = {"screening": rows}  # type: ignore[index]
    return result


# -------------------------------------------------------------------------------------------------------- influence


def test_the_terminal_has_the_sentences_on_indices_in_place_of_single_designs() -> None:
    result = sampled("sobol_indices", {"base": 64})
    text = analysis_table(result).splitlines()
    assert text[: len(text) - 1] == influence_sentences(result)
    assert "is governed by" in text[0]
    assert text[-1] == f"{len(result.outcomes)} designs in the report"


def test_sobol_indices_are_shown_with_intervals_and_put_in_words() -> None:
    section = influence(sampled("sobol_indices", {"base": 256}))
    assert section is not None
    # Variances 9/12 and 1/12: shares 0.9 and 0.1; 256 blocks leave an error below 0.02.
    governed, constant = section.findings
    assert governed.startswith("mass is governed by a (90 % of its variance) and b (10 %)")
    assert "c has no influence (total below 1 %)" in governed
    assert constant.startswith("sag: it has the same value in every design")
    (figure,) = section.figures
    total, _ = figure.plot["data"]
    assert total["y"] == ["c", "b", "a"]
    np.testing.assert_allclose(total["x"], [0, 0.1, 0.9], atol=0.02)
    assert (total["error_x"]["array"] >= 0).all()
    (table,) = section.tables
    assert [row[:2] for row in table.rows] == [("mass [kg]", "a"), ("mass [kg]", "b"), ("mass [kg]", "c")]
    assert section.notes == ("Stage screening: 1280 designs in blocks of 5.",)


def test_pairs_are_mapped_when_the_second_order_was_asked_for() -> None:
    section = influence(sampled("sobol_indices", {"base": 64, "second_order": True}))
    assert section is not None
    (cells,) = section.figures[1].plot["data"]
    assert cells["z"].shape == (2, 2)
    assert np.isnan(cells["z"][0, 1])  # a pair stands once
    assert cells["zmin"] == 0.0


def test_a_study_that_only_samples_for_indices_recommends_nothing() -> None:
    result = sampled("sobol_indices", {"base": 64})
    assert result.recommended() is None
    assert not any("ecommended" in text for text in overview(result).findings)
    assert "recommended" not in summary_table(result)


def test_morris_effects_are_shown_with_their_spread() -> None:
    section = influence(sampled("morris", {"trajectories": 8}))
    assert section is not None
    assert section.findings[0] == "mass changes most with a (3 kg), b (1 kg) and c (0 kg), over their whole ranges."
    bars, spread = section.figures
    np.testing.assert_allclose(bars.plot["data"][0]["x"], [0, 1, 3], atol=1e-9)
    np.testing.assert_allclose(spread.plot["data"][0]["y"], 0, atol=1e-9)


def test_designs_asked_for_again_and_dropped_blocks_are_reported() -> None:
    result = sampled("morris", {"trajectories": 40, "levels": 2}, failed=(1,))
    rows = result.designs_of("screening")
    saved = len(rows) - len(np.unique(rows))
    assert saved > 50  # a grid of two levels has 8 nodes; 160 designs are asked for
    section = influence(result)
    assert section is not None
    assert "distinct; the others were not recomputed" in section.notes[0]
    # The one failed node lies on many trajectories: fewer than three quarters are left.
    assert "blocks of 4 designs are complete; indices need 75 % of them" in section.findings[0]
    mild = influence(sampled("sobol_indices", {"base": 64}, failed=(7,)))
    assert mild is not None
    assert mild.notes[-1].startswith("1 of 64 blocks were dropped because one of their designs has no result")


def test_unfinished_evaluations_count_as_missing() -> None:
    result = sampled("sobol_indices", {"base": 64}, lost=3)
    outcomes, rows = in_ask_order(result, "screening")
    assert (rows[-3:] == -1).all()
    assert outcomes.failed[-3:].all()
    assert not outcomes.failed[:-3].any()
    section = influence(result)
    assert section is not None
    assert section.notes[-1].startswith("1 of 64 blocks")


def test_without_salib_the_report_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    result = sampled("morris", {"trajectories": 4})
    monkeypatch.setitem(sys.modules, "SALib.analyze", None)
    section = influence(result)
    assert section is not None
    assert "The indices need SALib; install it with: pip install 'designopt[sensitivity]'" in section.introduction


def test_a_study_without_a_sensitivity_stage_has_no_such_part() -> None:
    assert influence(grid()) is None


# -------------------------------------------------------------------------------------------------------- scenarios

SPACE = (DesignVariable("width", "real", low=10.0, high=100.0, unit="mm"),)


def weathered() -> GivenResult:
    """Two designs on the front; the storm is worst for the mass, the calm for the sag of the second."""
    return beam_result(
        [[20.0], [30.0]],
        {"mass": [[1, 2, 3], [4, 5, 6]], "sag": [[9, 8, 7], [3, 2, 2]], "cost": [[5, 5, 50], [5, 5, 5]]},
        space=SPACE,
        scenarios=("calm", "wind", "storm"),
        constraints=(at_most("cost", 100.0),),
    )


def test_each_chosen_design_is_shown_in_every_scenario_with_its_worst_one() -> None:
    section = scenarios(weathered())
    assert section is not None
    assert section.findings == (
        "mass is worst in scenario storm for every chosen design.",
        "sag is worst in scenario calm for every chosen design.",
    )
    worst, by_scenario = section.tables
    assert ("best sag", "sag [mm] (minimize)", "calm", 3.0, "wind", 2.0) in worst.rows
    assert by_scenario.columns == (
        "design", "scenario", "mass [kg] (minimize)", "sag [mm] (minimize)", "cost", "cost holds",
    )  # fmt: skip
    assert by_scenario.rows[2][1:] == ("storm", 3.0, 7.0, 50.0, "yes")
    (figure,) = section.figures
    assert figure.choices[0].options == ("mass [kg] (minimize)", "sag [mm] (minimize)", "cost")
    np.testing.assert_array_equal(figure.variants[(2,)]["data"]["0"]["z"][0], [5, 5, 50])


def test_many_figures_of_many_designs_stand_in_rows_so_that_their_table_fits_a_page() -> None:
    figures = {name: [[1, 2, 3], [4, 5, 6], [2, 3, 4]] for name in ("mass", "sag", "cost", *"abcdef")}
    figures["sag"] = [[9, 8, 7], [3, 2, 2], [4, 4, 4]]
    section = scenarios(
        beam_result([[20.0], [30.0], [40.0]], figures, space=SPACE, scenarios=("calm", "wind", "storm"))
    )
    assert section is not None
    table = section.tables[1]
    assert table.columns == ("", "scenario", "best mass", "best sag", "compromise")
    assert table.rows[1] == ("mass [kg] (minimize)", "wind", 2.0, 5.0, 3.0)
    assert {len(row) for row in table.rows} == {5}
    assert len(table.rows) == 3 * 9


def test_many_figures_of_few_designs_are_folded() -> None:
    figures = {name: [[1, 2]] for name in ("mass", "sag", "cost", *"abcdefghij")}
    section = scenarios(beam_result([[20.0]], figures, space=SPACE, scenarios=("calm", "storm")))
    assert section is not None
    table = section.tables[1]
    assert table.columns == ("", "calm", "storm", "meaning")
    assert (len(table.rows), table.folded_from) == (13, 10)


def test_a_limit_that_one_scenario_breaks_is_named() -> None:
    result = weathered()
    # Judged by the mean over scenarios the design is feasible; in the storm alone it is not.
    mean = Use(find("aggregation", "mean"))
    study = replace(result.study, constraints=(replace(at_most("cost", 30.0), over=mean),))
    problem = Problem.from_study(study)
    outcomes = problem.judge(result.outcomes.X, result.outcomes.figures, result.status != "ok")
    section = scenarios(replace(result, study=study, problem=problem, table={**result.table, "outcomes": outcomes}))
    assert section is not None
    assert "The limit of cost is violated by best mass, compromise in storm." in section.findings


def test_one_scenario_needs_no_such_part() -> None:
    assert scenarios(grid()) is None


def test_forty_scenarios_stay_within_one_map() -> None:
    section = scenarios(grid(scenarios=tuple(f"scenario_{k}" for k in range(40))))
    assert section is not None
    (figure,) = section.figures
    assert len(figure.plot["layout"]["xaxis"]["ticktext"]) == 40
    assert "text" not in figure.variants[(0,)]["data"]["0"]  # no room for numbers in the cells


# --------------------------------------------------------------------------------------------------------- decision

# A front with a knee at (2, 2): every rule picks it when both objectives count the same.
KNEE = [(0.0, 10.0), (1.0, 6.0), (2.0, 2.0), (6.0, 1.0), (10.0, 0.0)]


def bent(**more: Any) -> GivenResult:
    mass, sag = np.array(KNEE).T
    X = np.column_stack([20 + mass, mass / 10])
    return beam_result(X, {"mass": mass, "sag": sag, "cost": mass}, **more)


def test_chosen_designs_are_listed_with_the_meaning_of_their_rules() -> None:
    section = decision(bent())
    assert section is not None
    assert section.findings == (
        "Knee of the front, utopia l2, topsis vector and topsis minmax pick design 2: width 22 mm and height 0.2 m "
        "give mass 2 kg and sag 2 mm.",
        "All rules agree.",
    )
    assert "knee of the front, beyond which a gain in one objective" in section.introduction
    assert section.tables[0].rows[0][:2] == ("knee of the front", 2)


def test_the_rules_of_the_study_are_the_ones_that_are_reported() -> None:
    rules = (Choice("nearest_to", target={"mass": 6.0, "sag": 1.0}), Choice("topsis", weights={"mass": 20.0}))
    section = decision(bent(choose=rules))
    assert section is not None
    assert [row[:2] for row in section.tables[0].rows] == [
        ("nearest to mass 6, sag 1", 3),
        ("topsis vector weighted mass 20", section.tables[0].rows[1][1]),
    ]
    assert section.tables[0].rows[1][1] < 2  # nearly all the weight on the mass: towards its best
    assert "utopia" not in section.introduction


def test_a_front_without_a_knee_is_reported_as_such() -> None:
    X = [(20.0, 0.1), (30.0, 0.2), (40.0, 0.3)]
    section = decision(beam_result(X, {"mass": [0.0, 5.0, 10.0], "sag": [10.0, 8.0, 0.0]}, choose=(Choice("knee"),)))
    assert section is not None
    assert section.findings[0].startswith("knee of the front: the front has none")


def test_the_hypervolume_stands_with_its_reference_point() -> None:
    section = decision(bent(reference={"mass": 12.0, "sag": 12.0}))
    assert section is not None
    # Boxes up to (12, 12): 12*2 + 11*4 + 10*4 + 6*1 + 2*1.
    assert dict(section.facts)["hypervolume"] == "116"
    assert "mass 12 kg, sag 12 mm (given by the study)" in section.notes[0]
    derived = decision(bent())
    assert derived is not None
    assert "mass 11 kg, sag 11 mm (a tenth of the front’s range beyond its worst)" in derived.notes[0]


def test_shares_of_weights_sum_to_one_for_every_rule() -> None:
    section = decision(bent())
    assert section is not None
    (figure,) = section.figures
    assert figure.choices[0].options == ("utopia l2", "topsis vector", "topsis minmax")
    for variant in figure.variants.values():
        assert variant["data"]["0"]["y"].sum() == pytest.approx(1.0)


def test_one_objective_leaves_nothing_to_choose() -> None:
    assert decision(bent(objectives=(minimize("mass", "kg"),))) is None


def test_rules_of_the_study_are_stars_on_the_front_and_stand_beside_the_best_designs() -> None:
    result = bent(choose=(Choice("knee"),))
    stars = [t for t in front(result).figures[0].plot["data"] if t["marker"].get("symbol") == "star"]  # type: ignore[union-attr]
    assert [(t["name"], t["x"]) for t in stars] == [("selected by a rule (recommended)", [2.0])]
    section = best(result)
    assert section.findings[0].startswith("Knee of the front: width 22 mm and height 0.2 m give")
    assert "compromise" not in section.introduction
    assert result.rows_by_name()["knee"] == result.chosen()["knee of the front"]  # what a study and commands call it
    result = bent(choose=(Choice("topsis", weights={"mass": 20.0}), Choice("topsis")))
    assert result.rows_by_name()["topsis"] == result.chosen()["topsis vector weighted mass 20"]  # the first of its name


# ------------------------------------------------------------------------------------------------------- validation


def tried(**more: Any) -> GivenResult:
    """The bent front, its two best and its compromise tried in 100 winds; every value is 1 % larger per wind."""
    winds = tuple(Scenario(f"wind_{k}", {"speed": 0.5 * k}) for k in range(100))
    result = bent(validate=Validation(winds, (0.1, 0.5, 0.9)), **more)
    rows = np.array(list(result.chosen().values()))
    labels = tuple(result.chosen())
    objectives = result.outcomes.objectives[rows][:, :, None] * (1.0 + 0.01 * np.arange(100))
    statuses = np.full((3, 100), "ok", dtype="U12")
    statuses[1, :2], objectives[1, :, :2] = "diverged", np.nan
    trials = SimpleNamespace(
        rows=rows,
        labels=labels,
        figures={},
        objectives=objectives,
        statuses=statuses,
        quantiles=np.nanquantile(objectives, (0.1, 0.5, 0.9), axis=2).transpose(1, 2, 0),
        feasible_share=np.array([1.0, 0.98, 0.625]),
    )
    return replace(result, validated=trials)


def test_validation_says_what_holds_how_often_and_where_it_is_worst() -> None:
    section = validation(tried(constraints=(at_most("cost", 50.0),)))
    assert section is not None
    assert "100 scenarios not used in the search" in section.introduction
    # The 0.9 quantile of 2 (1 + 0.01 k), k = 0 ... 99, is 2 * 1.891.
    assert section.findings[2] == (
        "Compromise: mass at most 3.782 kg in 90 % and sag at most 3.782 mm in 90 % of the scenarios; all limits hold "
        "in 62.5 % (95 % interval 52.7 to 71.4 %)."
    )
    assert section.findings[1].endswith(
        "all limits hold in 98 % (95 % interval 93 to 99.4 %); no result in 2 scenarios."
    )
    quantiles, worst_scenarios, shares = section.tables
    row = next(r for r in quantiles.rows if r[:2] == ("compromise", "mass [kg] (minimize)"))
    assert row[2] == 2.0
    assert row[6:] == (pytest.approx(3.98), "wind_99")
    names = [row[0] for row in worst_scenarios.rows]
    assert sorted(names) == sorted({row[-1] for row in quantiles.rows})  # each once
    assert worst_scenarios.rows[names.index("wind_99")][1] == "49.5"
    assert shares.rows[1][1:] == ("98 %", "93 to 99.4 %", "2")


@pytest.mark.parametrize(("successes", "n"), [(0, 10), (7, 10), (1, 64), (63, 64), (64, 64), (1000, 1024)])
def test_the_interval_of_a_share_is_that_of_scipy(successes: int, n: int) -> None:
    from scipy.stats import binomtest

    expected = binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert wilson(successes / n, n) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_of_no_tries_there_is_no_interval() -> None:
    assert np.isnan(wilson(np.nan, 0)).all()


def test_maximised_objectives_are_reported_by_their_small_quantile() -> None:
    result = tried()
    objectives = (minimize("mass", "kg"), maximize("sag", "mm"))
    study = replace(result.study, objectives=objectives)
    section = validation(replace(result, study=study, problem=replace(result.problem, objectives=objectives)))
    assert section is not None
    assert "sag at least 2.198 mm in 90 %" in section.findings[2]


def test_boxes_are_drawn_for_every_chosen_design() -> None:
    section = validation(tried())
    assert section is not None
    (figure,) = section.figures
    assert [t["type"] for t in figure.plot["data"]] == ["box", "box", "box", "scatter"]
    assert len(figure.variants[(0,)]["data"]["1"]["x"]) == 98


def test_before_validation_has_begun_the_report_says_when_it_comes() -> None:
    result = replace(tried(), validated=None, session={"reason": "interrupted"})
    assert "after the last stage" in validation(result).introduction  # type: ignore[union-attr]
    assert validation(bent()) is None


# ------------------------------------------------------------------------------------------------ limits, failures


def test_limits_that_no_design_approaches_are_reported_as_inactive() -> None:
    result = bent(constraints=(at_most("cost", 40.0), at_most("mass", 10.0, "kg")))
    section = limits(result)
    assert section is not None
    assert section.findings[-1] == ("Inactive for the whole front: the upper limit of cost (40; the front reaches 10).")
    unfinished = limits(replace(result, session={"reason": "interrupted"}))
    assert unfinished is not None
    so_far = f"Inactive for the {len(result.front())} designs of the front so far: the upper limit of cost"
    assert unfinished.findings[-1].startswith(so_far)
    few = beam_result([(30.0, 0.5), (40.0, 0.6)], {"mass": [1, 2], "sag": [2, 1]}, constraints=(at_most("mass", 9.0),))
    assert "Inactive for the 2 designs of the front: the upper" in limits(few).findings[-1]  # type: ignore[union-attr]


def test_bounds_of_a_conditional_parameter_count_where_it_is_active() -> None:
    space = (
        DesignVariable("kind", "choice", values=("box", "tube")),
        DesignVariable("wall", "real", low=1.0, high=9.0, unit="mm", when={"kind": ("tube",)}),
    )
    result = beam_result(
        [(0, 5.0), (0, 5.0), (1, 9.0), (1, 4.0)], {"mass": [1, 2, 3, 4], "sag": [4, 3, 2, 1]}, space=space
    )
    assert limits(result).findings[0] == (  # type: ignore[union-attr]
        "wall is at its upper bound (9 mm) in 50 % of the designs of the front that have it."
    )
    head = problem(result).tables[0]
    assert head.columns[-1] == "active when"
    assert head.rows[1][-1] == "kind is tube"
    table = front(result).tables[0]  # type: ignore[union-attr]
    assert table.rows[0][:3] == (0, "box", "–")
    assert best(result).findings[0].startswith("Compromise: kind box gives")


def test_regions_with_many_failures_are_described_in_words() -> None:
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.uniform(10, 100, 400), rng.uniform(0, 1, 400)])
    status = np.where(X[:, 1] > 0.9, "diverged", "ok")
    section = failures(beam_result(X, {"mass": X[:, 0], "sag": X[:, 1]}, status=status))
    assert section is not None
    (finding,) = section.findings
    assert finding.startswith("Designs without a result are concentrated: nine tenths of them lie at height 0.9")
    scattered = beam_result(X, {"mass": X[:, 0], "sag": X[:, 1]}, status=np.where(np.arange(400) % 9, "ok", "diverged"))
    assert failures(scattered).findings == ()  # type: ignore[union-attr]


# --------------------------------------------------------------------------------------------------------- commands


def test_the_command_that_computes_a_design_again_is_given_whole() -> None:
    result = replace(bent(plugin_files=(("my kerb.py", b""),)), path=bent().path / "a b.study")
    assert recompute(result, 7) == "designopt show 'beam.study/a b.study/7' --evaluate --plugin 'my kerb.py'"
    table = best(bent()).tables[1]
    assert table.rows[0] == ("best mass", 0, "designopt show beam.study/0 --evaluate")


def test_the_stages_tell_what_they_asked_for_and_what_was_saved() -> None:
    result = bent(stages=(Stage("sweep", SAMPLER),))
    result.table["asked"] = {"sweep": [0, 1, 2, 3, 4, 4, 2]}  # type: ignore[index]
    table = problem(replace(result, session={"reason": "done", "points": 7})).tables[2]
    assert table.rows[0][-2:] == (7, 5)
    assert "2 of 7 designs were proposed again and not recomputed." in table.note
