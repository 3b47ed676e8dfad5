"""The map of designs over their parameters, compared with results whose numbers are known."""

from typing import Any

import numpy as np
import pytest
from given_results import POINTS, GivenResult, at_most, beam_result, grid, six_designs

from designopt.report.grid import grid_over, scan_over
from designopt.report.parts.designs.colouring import colour_limits
from designopt.report.parts.designs.map import edges, map_figures
from designopt.study.study import Choice, DesignVariable


def test_the_map_shows_every_figure_on_the_grid_of_the_sweep(grid_result: GivenResult) -> None:
    section = map_figures(grid_result)
    assert section is not None
    (figure,) = section.figures
    assert figure.choices[0].options == ("mass [kg] (minimize)", "sag [mm] (minimize)", "mass [kg]", "sag [mm]", "cost")
    z = figure.variants[(4,)]["data"]["0"]["z"]
    width = np.geomspace(10, 100, 7)
    np.testing.assert_allclose(z, np.tile((width - 40) ** 2, (5, 1)))
    assert figure.plot["layout"]["xaxis"]["type"] == "log"
    # Cells of a log axis meet at the geometric mean of their nodes.
    np.testing.assert_allclose(figure.plot["data"][0]["x"][1:-1], np.sqrt(width[1:] * width[:-1]))


def test_the_map_has_a_selector_for_scenarios() -> None:
    section = map_figures(grid(scenarios=("calm", "storm")))
    assert section is not None
    (figure,) = section.figures
    assert figure.choices[1].options == ("calm", "storm")
    calm, storm = (figure.variants[(4, s)]["data"]["0"]["z"] for s in (0, 1))
    np.testing.assert_allclose(storm, 1.1 * calm)


def test_designs_off_a_grid_are_mapped_as_coloured_points() -> None:
    section = map_figures(six_designs())
    assert section is not None
    (figure,) = section.figures
    assert figure.plot["data"][0]["type"] == "scatter"
    np.testing.assert_array_equal(figure.variants[(1,)]["data"]["0"]["marker"]["color"], [p[1] for p in POINTS])


def test_the_map_marks_the_recommended_design_by_the_rule_that_selects_it() -> None:
    result = six_designs(choose=(Choice("topsis"),))
    assert result.recommended() is not None
    label, row = result.recommended()
    section = map_figures(result)
    assert section is not None
    (star,) = [t for t in section.figures[0].plot["data"] if t.get("name") == f"recommended: {label}"]
    assert (star["x"][0], star["y"][0]) == tuple(result.outcomes.X[row])
    assert star["marker"]["symbol"] == "star"


def test_more_than_two_parameters_are_mapped_by_pairs() -> None:
    space = tuple(DesignVariable(name, "real", low=0.0, high=1.0) for name in "abcd")
    X = np.random.default_rng(1).random((40, 4))
    section = map_figures(beam_result(X, {"mass": X[:, 0], "sag": X[:, 1]}, space=space))
    assert section is not None
    points = [t for t in section.figures[0].plot["data"] if t.get("name") is None]
    assert len(points) == 6


def test_a_few_nodes_of_a_screening_do_not_stand_for_all_designs() -> None:
    nodes = [(w, h) for w in (10.0, 30.0, 100.0) for h in (0.0, 0.5, 1.0)]
    rest = np.random.default_rng(3).uniform([10, 0], [100, 1], (60, 2))
    X = np.concatenate([nodes, rest])
    result = beam_result(X, {"mass": X[:, 0], "sag": X[:, 1]}, stage=["screen"] * 9 + ["search"] * 60)
    assert map_figures(result).figures[0].plot["data"][0]["type"] == "scatter"  # type: ignore[union-attr]
    few = beam_result(X[:20], {"mass": X[:20, 0], "sag": X[:20, 1]}, stage=["screen"] * 9 + ["search"] * 11)
    assert map_figures(few).figures[0].plot["data"][0]["type"] == "heatmap"  # type: ignore[union-attr]


def test_a_grid_is_found_by_stage_and_filled_by_later_stages() -> None:
    nodes = [(w, h) for w in (10.0, 20.0, 30.0) for h in (0.0, 1.0)]
    X = [*nodes[:-1], (15.0, 0.3), nodes[-1]]
    result = beam_result(X, {"mass": [1] * 7, "sag": [1] * 7}, stage=["sweep"] * 5 + ["search"] * 2)
    grid = grid_over(result, 0, 1)
    assert grid is not None
    np.testing.assert_array_equal(grid.x, [10, 20, 30])
    np.testing.assert_array_equal(grid.rows, [[0, 2, 4], [1, 3, 6]])
    assert scan_over(result, 0) is None


@pytest.mark.parametrize("nodes", [[5.0], [1.0, 2.0, 4.0]])
def test_cell_borders_lie_around_their_nodes(nodes: list[float]) -> None:
    for p in (None, DesignVariable("k", "real", low=1.0, high=9.0, scale="log")):
        borders = edges(np.array(nodes), p)
        assert (borders[:-1] < nodes).all()
        assert (borders[1:] > nodes).all()


def test_the_map_keeps_the_colours_of_the_front_and_marks_what_breaks_a_limit() -> None:
    section = map_figures(six_designs())
    assert section is not None
    designs, ring, _, cross = section.figures[0].plot["data"]
    assert (ring["name"], ring["marker"]["symbol"]) == ("Pareto front", "circle-open")
    assert designs["marker"]["symbol"] == [0, 0, 0, 0, 0, 4]
    assert (cross["name"], cross["showlegend"], cross["x"]) == ("violates a limit", True, [None])
    (free,) = map_figures(beam_result([(30, 0.5), (40, 0.6)], {"mass": [1, 2], "sag": [2, 1]})).figures  # type: ignore[union-attr]
    assert "symbol" not in free.plot["data"][0]["marker"]
    assert all(trace["name"] != "violates a limit" for trace in free.plot["data"][1:])


def test_designs_on_a_grid_that_break_a_limit_are_crossed() -> None:
    section = map_figures(grid(constraints=(at_most("mass", 40.0, "kg"),)))
    assert section is not None
    cross = section.figures[0].plot["data"][-1]
    assert cross["name"] == "violates a limit"
    np.testing.assert_array_less(40.0, np.array(cross["x"]) * (1 + np.array(cross["y"])))
    assert len(cross["x"]) == sum(w * (1 + h) > 40 for w in np.geomspace(10, 100, 7) for h in np.linspace(0, 1, 5))


def test_colours_are_for_the_values_of_feasible_designs_and_end_near_them() -> None:
    values = np.concatenate([np.linspace(1.0, 2.0, 20), [1e4, 2e4, np.nan]])
    feasible = np.arange(len(values)) < 20
    low, high = colour_limits(values, feasible)
    assert low == 1.0
    assert high == pytest.approx(1.95 + 0.9)
    assert colour_limits(values[:20], feasible[:20]) == (1.0, 2.0)
    assert colour_limits(np.array([np.nan]), np.array([True])) == (None, None)


@pytest.mark.parametrize("spread", [(0, 1), (0, 4)])
@pytest.mark.parametrize("is_grid", [True, False])
def test_colours_of_a_figure_over_decades_are_logarithmic_with_its_values_at_the_bar(
    spread: tuple[int, int], is_grid: bool
) -> None:
    """The other figure has linear colours again."""
    values = np.geomspace(*(10.0**power for power in spread), 36)
    designs = [(10.0 + 10 * (k % 6), 0.1 * (k // 6)) for k in range(36)]
    if not is_grid:
        designs = [(width + k % 5, height + 0.01 * k) for k, (width, height) in enumerate(designs)]
    section = map_figures(beam_result(designs, {"mass": values.tolist(), "sag": np.arange(36.0).tolist()}))
    assert section is not None
    (figure,) = section.figures

    def bar_and_colours(layer: int) -> tuple[dict[str, Any], list[float]]:
        change = figure.variants[(layer,)]
        if is_grid:
            trace = change["data"]["0"]
            return {**trace["colorbar"], "ends": (trace["zmin"], trace["zmax"])}, np.ravel(trace["z"]).tolist()
        colours = change["layout"]["coloraxis"]
        ends = (colours["cmin"], colours["cmax"])
        return {**colours["colorbar"], "ends": ends}, change["data"]["0"]["marker"]["color"].tolist()

    mass, colours = bar_and_colours(0)
    if spread == (0, 4):
        np.testing.assert_allclose(sorted(colours), np.log10(values))
        assert mass["ends"] == pytest.approx((0.0, 4.0))
        assert mass["ticktext"][:: len(mass["ticktext"]) - 1] == ["1", "1e+04"]
    else:
        np.testing.assert_allclose(sorted(colours), values)
        assert mass["tickvals"] is None
    sag, colours = bar_and_colours(1)
    assert sag["tickvals"] is None
    assert sorted(colours) == pytest.approx(np.arange(36.0))


def test_a_note_names_the_figures_with_values_beyond_the_colours() -> None:
    designs, even = [(30 + k, 0.01 * k) for k in range(40)], [float(k) for k in range(40)]
    section = map_figures(beam_result(designs, {"mass": [*even[:-1], 1e6], "sag": even}))
    plain = map_figures(beam_result(designs, {"mass": even, "sag": even}))
    assert section is not None
    assert plain is not None
    space = (DesignVariable("width", "real", low=10.0, high=100.0),)
    values = {"mass": [*even[:-1], 1e6], "sag": even}
    single = map_figures(beam_result([(30 + k,) for k in range(40)], values, space=space))
    assert single is not None
    assert single.figures[0].note == ""  # without a bar of colours
    assert "beyond the scale" in section.figures[0].note
    assert "sag" not in section.figures[0].note
    assert plain.figures[0].note == ""
