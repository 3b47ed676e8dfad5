"""Runs of one study with several seeds: attainment surfaces, and rank tests between studies."""

import base64
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from given_results import GivenResult, beam_result, minimize
from page_data import figures_of, rows

from designopt.report.comparison.page import write_comparison
from designopt.report.comparison.seeds import attainment, holm, kruskal, mann_whitney


def store(name: str, values: Any, seed: int, **more: Any) -> GivenResult:
    mass, sag = np.array(values, dtype=float).T
    X = np.column_stack([20 + np.arange(len(mass)), np.linspace(0.1, 0.9, len(mass))])
    return replace(beam_result(X, {"mass": mass, "sag": sag}, seed=seed, **more), path=Path(name))


def compared(stores: list[GivenResult], folder: Path) -> str:
    return write_comparison(stores, folder / "comparison.html").read_text(encoding="utf-8")


def figure(page: str, name: str) -> Any:
    return next(f for f in figures_of(page) if name in f["name"])


def numbers(coded: Any) -> list[float]:
    """What stands in the page for an array."""
    return np.frombuffer(base64.b64decode(coded["bdata"]), dtype=coded["dtype"]).tolist()


#: Four runs of one search, and four of another one whose points are all half a unit worse.
GOOD = [store(f"good{s}", [(1 + 0.1 * s, 3), (3, 1 + 0.1 * s)], s) for s in range(4)]


def second_search(name: str, shift: float) -> list[GivenResult]:
    """Runs of a study with another title and another space: not the same search."""
    runs = [store(f"{name}{s}", [(1 + shift + 0.1 * s, 3 + shift), (3 + shift, 1 + shift)], s) for s in range(4)]
    wider = (replace(runs[0].study.space[0], high=90.0 + shift), *runs[0].study.space[1:])
    return [replace(r, study=replace(r.study, space=wider)) for r in runs]


def test_the_median_surface_is_what_half_of_the_runs_attain() -> None:
    """Three runs with one point each: two of them attain only what is as bad as the second in both objectives."""
    fronts = [np.array([[1.0, 3.0]]), np.array([[2.0, 2.0]]), np.array([[3.0, 1.0]])]
    assert attainment(fronts, 0.0).tolist() == [[1.0, 3.0], [2.0, 2.0], [3.0, 1.0]]
    assert attainment(fronts, 50.0).tolist() == [[2.0, 3.0], [3.0, 2.0]]
    assert attainment(fronts, 100.0).tolist() == [[3.0, 3.0]]


def test_every_point_of_a_surface_is_attained_by_as_many_runs_as_it_says() -> None:
    """By the definition, on random fronts of two and three objectives; and a point just before it is not."""
    for m in (2, 3):
        rng = np.random.default_rng(m)
        fronts = [rng.random((6, m)) for _ in range(5)]
        for share, needed in ((0.0, 1), (50.0, 3), (80.0, 4), (100.0, 5)):
            for point in attainment(fronts, share):
                attained = sum(bool((f <= point).all(axis=1).any()) for f in fronts)
                before = sum(bool((f <= point - 1e-9).all(axis=1).any()) for f in fronts)
                assert attained >= needed > before


def test_a_run_without_a_feasible_design_attains_nothing() -> None:
    fronts = [np.array([[1.0, 3.0]]), np.empty((0, 2)), np.array([[2.0, 2.0]])]
    assert attainment(fronts, 100.0).shape == (0, 2)
    assert attainment(fronts, 50.0).tolist() == [[2.0, 3.0]]


def test_the_rank_test_is_exact_for_few_runs() -> None:
    """Four against four without overlap: 2 of the 70 orders are as uneven. One exchange: 4 of 70."""
    apart = np.arange(4.0)
    assert mann_whitney(apart, apart + 10.0) == (pytest.approx(2 / 70), 0.0)
    assert mann_whitney(apart + 10.0, apart) == (pytest.approx(2 / 70), 1.0)
    p, share = mann_whitney(np.array([1.0, 2.0, 3.0, 5.0]), np.array([4.0, 6.0, 7.0, 8.0]))
    assert p == pytest.approx(4 / 70)
    assert share == pytest.approx(1 / 16)


def test_equal_runs_are_no_difference() -> None:
    same = np.full(4, 0.25)
    assert mann_whitney(same, same) == (1.0, 0.5)
    assert kruskal([same, same, same]) == 1.0


def test_kruskal_and_wallis_is_the_textbooks_statistic() -> None:
    """H = 12 / (N (N + 1)) sum R^2 / n - 3 (N + 1): ranks 1-3, 4-6, 7-9 give H = 7.2, and exp(-H/2) for 2 degrees."""
    samples = [np.arange(3.0), 10.0 + np.arange(3.0), 20.0 + np.arange(3.0)]
    assert kruskal(samples) == pytest.approx(np.exp(-3.6))


def test_holm_multiplies_the_smallest_by_the_number_of_tests() -> None:
    assert holm(np.array([0.03, 0.01, 0.04])) == pytest.approx([0.06, 0.03, 0.06])
    assert holm(np.array([0.9, 0.8])) == pytest.approx([1.0, 1.0])


def test_two_searches_with_four_seeds_each_are_ranked_on_the_page(tmp_path: Path) -> None:
    page = compared([*GOOD, *second_search("poor", 0.5)], tmp_path)
    good, poor = "width 10 … 100 mm on a log scale", "width 10 … 90.5 mm on a log scale"  # what differs
    assert [r[:3] for r in rows(page, "Runs with different seeds")] == [
        [good, "4", "0, 1, 2 and 3"],
        [poor, "4", "0, 1, 2 and 3"],
    ]
    assert rows(page, "Rank test") == [[good, poor, "1", "0.02857", "0.02857"]]
    assert f"Hypervolume differs significantly (p = 0.029): a run of {good} is better" in page
    assert "Kruskal" not in page
    course = figure(page, "fronts-3-f2")["plot"]["data"]
    assert [t.get("name") for t in course if t.get("name")] == [f"{good} (4 runs)", f"{poor} (4 runs)"]
    surfaces = figure(page, "repeated-runs")["plot"]["data"]
    assert len(surfaces) == 6
    assert numbers(surfaces[0]["x"]) == pytest.approx([1.0, 3.0])  # the best of the first study: that of seed 0
    assert numbers(surfaces[2]["x"]) == pytest.approx([1.3, 3.0])  # what all attain: the worst of it


def test_three_searches_are_tested_together_and_by_pairs(tmp_path: Path) -> None:
    page = compared([*GOOD, *second_search("poor", 0.5), *second_search("poorer", 0.9)], tmp_path)
    assert "Over all 3 studies: hypervolume differs significantly (Kruskal and Wallis, p = " in page
    assert [r[4] for r in rows(page, "Rank test")] == ["0.08571"] * 3
    assert "does not differ significantly (p = 0.086)" in page


def test_few_runs_are_reported_as_insufficient_evidence(tmp_path: Path) -> None:
    page = compared([*GOOD[:2], *second_search("poor", 0.5)[:2]], tmp_path)
    assert "With this few runs, p cannot be below 0.33." in page


def test_one_search_with_several_seeds_has_its_spread_alone(tmp_path: Path) -> None:
    page = compared(GOOD, tmp_path)
    assert "A rank test needs a second study with at least two seeds." in page
    assert len(rows(page, "Runs with different seeds")) == 1
    assert len(figure(page, "repeated-runs")["plot"]["data"]) == 3


def test_the_same_seed_twice_is_one_run(tmp_path: Path) -> None:
    twin = replace(GOOD[1], path=Path("twin"))
    page = compared([*GOOD, twin], tmp_path)
    assert "twin repeats the seed of another store" in page
    assert rows(page, "Runs with different seeds")[0][1] == "4"


def test_studies_without_a_second_seed_have_no_such_section(tmp_path: Path) -> None:
    assert "Repeated runs" not in compared([GOOD[0], second_search("poor", 0.5)[0]], tmp_path)


def test_with_one_objective_runs_are_ranked_by_their_best_value(tmp_path: Path) -> None:
    one = (minimize("mass", "kg"),)
    a = [store(f"a{s}", [(2 + 0.1 * s, 0)], s, objectives=one) for s in range(3)]
    b = [
        store(f"b{s}", [(1 + 0.1 * s, 0)], s, objectives=(minimize("mass", "kg"), minimize("sag", "mm")))
        for s in range(3)
    ]
    page = compared([*a, *b], tmp_path)
    (pair,) = rows(page, "Rank test")
    assert pair[2:4] == ["0", "0.1"]  # the first never wins: less mass is better; 2 of 20 orders
    assert [r[3] for r in rows(page, "Runs with different seeds")] == ["2.1", "1.1"]
    assert "better than one of without objective sag with a probability of 1" in page
