"""The page of benchmarks: how gp stands beside the best other search of each problem."""

import importlib.util
from pathlib import Path

spec = importlib.util.spec_from_file_location("benchmarks_page", Path(__file__).parents[1] / "docs" / "benchmarks.py")
page = importlib.util.module_from_spec(spec)
spec.loader.exec_module(page)


def test_a_search_that_ranks_above_gp_by_more_than_chance_is_reported():
    shares = {
        ("ahead", "gp"): [0.9, 0.91, 0.92, 0.93, 0.94],
        ("ahead", "tpe"): [0.5, 0.6, 0.7],
        ("behind", "gp"): [0.80, 0.81, 0.82, 0.83, 0.84],
        ("behind", "botorch"): [0.9, 0.91, 0.92],
        ("behind", "tpe"): [0.1, 0.1, 0.1],
        ("once", "gp"): [0.80, 0.81, 0.82, 0.83, 0.84],
        ("once", "botorch"): [0.9],
        ("alone", "gp"): [0.9],
    }
    summary, *_, ahead, behind, once = page._standing(shares, "gp")
    assert "equal one to three decimals, on 1 of 3 problems, and is not behind by the rank test on 2;" in summary
    assert "smallest median is 0.901 of the best other one (`behind`)" in summary
    assert ahead == "| `ahead` | tpe (3) | 1.533 | 1.000 |"
    assert behind == "| `behind` | botorch (3) | 0.901 | 0.018 |"
    assert once == "| `once` | botorch (1) | 0.911 | 0.167 |"


def test_nothing_is_reported_where_gp_has_nothing_beside_it():
    assert page._standing({("alone", "gp"): [0.9]}, "gp") == []
