"""Searches whose last designs still improve."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import designopt
from designopt.plugin import solver
from designopt.report import summary_table
from designopt.report.parts.answer.overview import overview
from designopt.report.parts.answer.unfinished_search import (
    better_neighbour,
    constant_objectives,
    ends_apart,
    gain_expected,
    gap_in_front,
    not_converged,
    rarely_tried,
    still_improving,
)
from designopt.store.errors import resume_command


def rod(design: dict[str, float]) -> dict[str, float]:
    """Mass and deflection of a rod by its thickness."""
    return {"mass": 1.0 + design["x"], "deflection": 2.0 - design["x"]}


@solver("proposed_thicknesses", version=1)
class ProposedThicknesses:
    """Evaluates one thickness after the other."""

    thicknesses: tuple[float, ...] = ()
    needs_budget = True

    def solve(self, problem: Any, evaluate: Any, rng: Any, start: Any) -> None:
        """Evaluates them, and the last one again until the budget is used up."""
        for thickness in self.thicknesses:
            evaluate(np.array([[thickness]]))
        while True:
            evaluate(np.array([[self.thicknesses[-1]]]))


def searched(folder: Path, thicknesses: Any, budget: int, **more: Any) -> Any:
    common: dict[str, Any] = {"study": "rod", "model": rod, "space": {"x": [0, 1]}, "budget": {"evaluations": budget}}
    common |= {"objectives": [{"minimize": "mass"}], "report": {"tolerances": {"neighbours": 0}}}
    common |= {"solver": {"use": "proposed_thicknesses", "thicknesses": [float(x) for x in thicknesses]}}
    return designopt.define(**(common | {"execution": {"executor": "serial"}} | more)).run(folder / "s.study")


def test_an_objective_that_the_last_tenth_of_the_designs_improved_is_named_with_a_budget(tmp_path: Path) -> None:
    result = searched(tmp_path, [*np.linspace(1.0, 0.55, 54), *np.linspace(0.5, 0.25, 6)], 60)
    (clause,) = still_improving(result)
    assert clause == (  # from a mass of 1.55 to one of 1.25
        "the last tenth of the designs still improved the best mass by 19 %: "
        f"continue with {resume_command(result.path)} --budget 120"
    )
    assert f"note: {clause}" in summary_table(result)
    assert any(clause[1:] in text for text in overview(result).findings)


@pytest.mark.parametrize("objective", [{"minimize": "mass"}, {"maximize": "-mass", "name": "lightness"}])
def test_a_better_neighbour_of_the_best_design_shows_that_the_search_has_not_converged(
    tmp_path: Path, objective: Any
) -> None:
    tolerances = {"space": {"x": {"low": 0, "high": 1, "tolerance": 0.05}}, "report": {"tolerances": {"neighbours": 8}}}
    tolerances |= {"objectives": [objective]}
    result = searched(tmp_path / "free", np.linspace(1.0, 0.5, 30), 30, **tolerances)
    (clause,) = better_neighbour(result)
    assert clause.startswith("a design beside the best one, within the tolerances, meets all limits and is better by ")
    assert clause.endswith(f"continue with {resume_command(result.path)} --budget 60")
    assert f"note: {clause}" in summary_table(result)
    limit = {"constraints": [{"of": "deflection", "max": 1.5}]}  # met from a thickness of 0.5 on
    at_limit = searched(tmp_path / "limited", np.linspace(1.0, 0.5, 30), 30, **tolerances, **limit)
    assert better_neighbour(at_limit) == []


def test_an_objective_that_becomes_zero_is_named(tmp_path: Path) -> None:
    thicknesses = [*np.linspace(1.0, 0.5, 54), *np.linspace(0.4, 0.0, 6)]
    (clause,) = still_improving(
        searched(tmp_path, thicknesses, 60, objectives=[{"minimize": "mass - 1", "name": "added_mass"}])
    )
    assert "improved the best added_mass by 100 %:" in clause


def test_only_the_objectives_that_improved_are_named(tmp_path: Path) -> None:
    objectives = [{"minimize": "mass"}, {"minimize": "deflection"}]
    thicknesses = [0.1, 0.9, *np.linspace(0.2, 0.8, 52), *np.linspace(0.85, 0.05, 6)]
    (clause,) = still_improving(searched(tmp_path, thicknesses, 60, objectives=objectives))
    assert "improved the best mass by 4.5 %:" in clause


def test_a_first_feasible_design_at_the_end_is_named(tmp_path: Path) -> None:
    limits = [{"of": "mass", "max": 1.3}]
    result = searched(tmp_path, np.linspace(1.0, 0.25, 60), 60, constraints=limits)
    (clause,) = still_improving(result)
    assert clause.startswith("the first feasible design is among the last tenth of the designs:")


@pytest.mark.parametrize(
    ("thicknesses", "budget"),
    [
        (np.linspace(0.2, 1.0, 60), 60),
        ([*np.linspace(1.0, 0.3, 54), *[0.29] * 6], 60),
        (np.linspace(1.0, 0.0, 20), 20),
        (np.linspace(1.0, 0.3, 30), 100),
    ],
    ids=["best first", "gain below 2 %", "few designs", "repeated designs"],
)
def test_without_a_gain_at_the_end_nothing_is_said(tmp_path: Path, thicknesses: Any, budget: int) -> None:
    assert still_improving(searched(tmp_path, thicknesses, budget)) == []


@pytest.mark.parametrize(("count", "named"), [(2, False), (3, True)])
def test_an_objective_that_no_parameter_changes_is_named(tmp_path: Path, count: int, named: bool) -> None:
    def press(design: dict[str, float]) -> dict[str, float]:
        return {"mass": 1.0 + design["x"], "torque": 12.566}

    study: dict[str, Any] = {"study": "press", "model": press, "execution": {"executor": "serial"}}
    study |= {"space": {"x": [0, 1]}, "objectives": [{"minimize": "mass"}, {"maximize": "torque"}]}
    study |= {"solver": {"use": "full_factorial", "levels": count}}
    result = designopt.define(**study).run(tmp_path / "s.study")
    clause = f"objective 'torque' is 12.57 in all {count} feasible designs: no parameter changes it"
    assert constant_objectives(result) == [clause] * named
    assert (f"note: {clause}" in summary_table(result)) is named


def test_a_wide_range_without_a_design_of_the_front_is_named(tmp_path: Path) -> None:
    low, high = np.linspace(0.0, 0.3, 8), np.linspace(0.7, 1.0, 8)
    objectives = {"objectives": [{"minimize": "mass"}, {"maximize": "-deflection", "name": "rise"}]}
    with_gap = searched(tmp_path / "gap", [*low, *high], 16, **objectives)
    clause = "no design of the front lies between mass 1.3 and 1.7 and rise -1.7 and -1.3: "
    clause += "the front has a gap there, or the search has not reached it; search rise alone with the further limit "
    clause += "{of: mass, max: 1.5} (a gap if nothing is clearly better than -1.7), or continue with "
    clause += f"{resume_command(with_gap.path)} --budget 32"
    assert gap_in_front(with_gap) == [clause]
    assert f"note: {clause}" in summary_table(with_gap)
    scenarios = [{"name": "calm"}, {"name": "storm"}]
    objectives = {"objectives": [{"maximize": "-deflection", "name": "rise", "over": "mean"}, {"minimize": "mass"}]}
    (clause,) = gap_in_front(searched(tmp_path / "mean", [*low, *high], 16, **objectives, scenarios=scenarios))
    limit = "{of: -deflection, min: -1.5, over: mean} (a gap if nothing is clearly better than 1.7)"
    assert f"search mass alone with the further limit {limit}" in clause
    assert gap_in_front(searched(tmp_path / "even", np.linspace(0.0, 1.0, 16), 16, **objectives)) == []
    assert gap_in_front(searched(tmp_path / "few", [0.0, 0.1, 0.9, 1.0], 4, **objectives)) == []


@pytest.mark.parametrize(("designs_of_steel", "named"), [(6, True), (20, False)])
def test_values_of_a_choice_without_a_feasible_design_are_named_if_they_were_hardly_tried(
    tmp_path: Path, designs_of_steel: int, named: bool
) -> None:
    def beam(design: dict[str, Any]) -> dict[str, float]:
        return {"mass": design["x"] * (3.0 if design["material"] == "steel" else 1.0)}

    counts = {"steel": designs_of_steel, "oak": 54}
    designs = [
        {"name": f"{material}{i}", "x": x, "material": material}
        for material, n in counts.items()
        for i, x in enumerate(np.linspace(0.8, 1.0, n).tolist())
    ]
    study: dict[str, Any] = {"study": "beam", "model": beam, "execution": {"executor": "serial"}}
    study |= {"space": {"x": [0, 1], "material": {"values": ["oak", "steel"]}}, "objectives": [{"minimize": "mass"}]}
    study |= {"constraints": [{"of": "mass", "max": 2.0}], "solver": {"use": "evaluate", "designs": designs}}
    clauses = rarely_tried(designopt.define(**study).run(tmp_path / "s.study"))
    text = (
        f"material steel ({designs_of_steel} designs) was hardly tried, without a feasible design: the best design with"
        " it is not known; search with material fixed, or with gp"
    )
    assert clauses == ([text] if named else [])


def valley(design: dict[str, float]) -> dict[str, float]:
    """Rosenbrock's function, with the minimum 1 at (1, 1)."""
    x, y = design["x"], design["y"]
    return {"height": 1.0 + 100.0 * (y - x**2) ** 2 + (1.0 - x) ** 2}


@pytest.mark.parametrize(("evaluations", "is_converged"), [(60, False), (500, True), (1500, True)])
def test_cma_es_has_converged_once_its_designs_are_as_good_as_the_best(
    tmp_path: Path, evaluations: int, is_converged: bool
) -> None:
    """The last of these budgets is for several restarts, whose designs scatter again."""
    space = {name: {"low": -2.0, "high": 2.0} for name in "xy"}
    common = {"model": valley, "objectives": [{"minimize": "height"}], "solver": {"use": "cma_es"}}
    result = searched(tmp_path, [], evaluations, space=space, **common)
    best = float(result.outcomes.objectives.min())
    assert (best < 1.001) == is_converged
    clauses = not_converged(result)
    assert bool(clauses) != is_converged
    if clauses:
        (clause,) = clauses
        assert clause.startswith("cma_es has not converged: half of any 20 designs in a row are at least ")
        assert clause.endswith(f"continue with {resume_command(result.path)} --budget 120")
        assert f"note: {clause}" in summary_table(result)


def valleys(design: dict[str, float]) -> dict[str, float]:
    """Three valleys of different depth."""
    x = design["x"]
    return {"cost": 2.0 + float(np.cos(20.0 * x)) - 0.5 * x, "slant": 1.0 + (x - 0.3) ** 2}


@pytest.mark.parametrize(
    ("search", "far"),
    [
        ({"use": "nelder_mead", "starts": 4}, "of 4 searches 4 converged"),
        ({"use": "slsqp", "starts": 4}, "of 4 searches 4 converged"),
        (
            {"use": "cma_es", "restarts": 5, "step": 0.05, "growth": 1.0, "tolerance": 1e-6},
            "all 6 searches have converged",
        ),
    ],
)
def test_searches_that_end_far_apart_are_noted_with_the_range_of_their_ends(
    tmp_path: Path, search: dict[str, Any], far: str
) -> None:
    more = {"model": valleys, "solver": search, "objectives": [{"minimize": "cost"}]}
    result = searched(tmp_path, [], 2000, **more)
    (clause,) = ends_apart(result)
    assert f"{far}; their best designs lie far apart: cost 0." in clause
    assert f"note: {clause}" in summary_table(result)
    assert any(clause[1:] in text for text in overview(result).findings)
    one = searched(tmp_path / "one", [], 2000, **more | {"objectives": [{"minimize": "slant"}]})
    assert ends_apart(one) == []


@pytest.mark.parametrize(("budget", "is_finished"), [(12, False), (80, True)])
def test_a_search_by_gp_whose_processes_expect_a_gain_is_named_with_a_budget(
    tmp_path: Path, budget: int, is_finished: bool
) -> None:
    space = {"x": [-2, 2], "y": [-1, 3]}
    common = {"model": valley, "objectives": [{"minimize": "height"}], "solver": {"use": "gp"}, "seed": 1}
    result = searched(tmp_path, [], budget, space=space, **common)
    assert bool(result.outcomes.objectives.min() < 1.01) == is_finished
    clauses = gain_expected(result)
    if is_finished:
        assert clauses == []
        return
    (clause,) = clauses
    assert clause.startswith("gp is not finished: the next design is expected to gain ")
    assert clause.endswith(
        f"% of the standard deviation of the objective; continue with {resume_command(result.path)} --budget 24"
    )
    assert f"note: {clause}" in summary_table(result)
    assert f"{clause}." in overview(result).findings
    presented, rescored = (
        result.with_changes([change]) for change in ("title=A", "objectives.0={name: twice, minimize: 2 * height}")
    )
    assert f"note: {clause}" in summary_table(presented)
    assert "gp is not finished" not in summary_table(rescored)
