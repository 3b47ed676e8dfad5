"""What the report shows of the processes of a search with `gp`: predictions, accuracy, expected gain."""

from dataclasses import replace

import numpy as np
import pytest
from given_results import at_most, beam_result, minimize

from designopt.plugin import Use, find
from designopt.report.parts.designs.surrogate import surrogate
from designopt.study.study import DesignVariable, Stage

SPACE = (
    DesignVariable("width", "real", low=10.0, high=100.0, unit="mm", scale="log"),
    DesignVariable("count", "int", low=1, high=4),
    DesignVariable("kind", "choice", values=("steel", "wood")),
)
GP = (Stage("search", Use(find("solver", "gp"), {})),)


def mass(X):
    return X[:, 1] * (np.log10(X[:, 0]) - 1.5) ** 2 + X[:, 2]


def searched(n=40, noise=0.0, **more):
    rng = np.random.default_rng(1)
    X = np.column_stack([10 ** rng.uniform(1, 2, n), rng.integers(1, 5, n), rng.integers(0, 2, n)])
    values = {"mass": mass(X) + noise * rng.standard_normal(n), "sag": 1.0 / X[:, 0] + 0.1 * X[:, 1]}
    more = {"objectives": (minimize("mass", "kg"),), "constraints": (at_most("sag", 0.4, "mm"),), **more}
    return beam_result(X, values, space=SPACE, stages=GP, **more)


def test_slices_show_what_the_model_gives_in_the_units_of_the_study():
    result = searched()
    section = surrogate(result)
    figure = section.figures[0]
    assert figure.choices[0].options == ("mass [kg]", "limit sag (max)")
    along = figure.variants[(0,)]["data"]["2"]  # the mean over the first parameter
    best = result.outcomes.X[result.compromise()]
    X = np.repeat(best[None], 41, axis=0)
    X[:, 0] = figure.plot["data"][2]["x"]
    assert along["y"] == pytest.approx(mass(X), abs=0.05)
    low, high = (figure.variants[(0,)]["data"][i]["y"] for i in "01")
    assert (low <= high).all()
    limit = figure.variants[(1,)]["data"]["2"]["y"]
    assert limit == pytest.approx((1.0 / X[:, 0] + 0.1 * X[:, 1] - 0.4) / 0.4, abs=0.08)
    assert list(figure.plot["data"][10]["x"]) == [0.0, 1.0]  # the choice has its two values only


def test_accuracy_is_reported_and_outputs_that_are_not_predicted_are_named():
    good = surrogate(searched())
    assert good.tables[0].rows[0][1] < 0.2
    assert any("expected to gain" in text for text in good.findings)
    bad = surrogate(searched(noise=30.0))
    assert bad.tables[0].rows[0][1] > 0.8
    assert any(text.startswith("mass: prediction errors exceed half") for text in bad.findings)


def test_where_nothing_is_feasible_slices_go_through_the_design_that_is_nearest():
    section = surrogate(searched(constraints=(at_most("sag", 0.05, "mm"),)))
    assert "smallest violation" in section.introduction
    assert section.findings == ()


def test_the_part_is_left_out_for_other_searches_and_for_few_designs():
    assert surrogate(searched(3)) is None
    assert surrogate(beam_result([[20.0, 0.5]] * 5, {"mass": [1.0] * 5, "sag": [1.0] * 5})) is None


def test_a_search_that_auto_chose_shows_what_it_learned():
    def stages(evaluations):
        return (Stage("search", Use(find("solver", "auto"), {"evaluations": evaluations, "cost": None})),)

    assert surrogate(replace(searched(), study=replace(searched().study, stages=stages(60)))) is not None
    assert surrogate(replace(searched(), study=replace(searched().study, stages=stages(6000)))) is None


def test_between_categories_and_whole_numbers_no_line_is_drawn():
    modes = [trace["mode"] for trace in surrogate(searched()).figures[0].plot["data"]]
    assert modes == [*["lines"] * 3, "markers", *["markers"] * 8]
