"""Figures of which a reader selects what is drawn: what is kept for each option, and what is kept once."""

import numpy as np
import pytest

from designopt.report.colours import layout
from designopt.report.plotly_figure import as_plotly
from designopt.report.traces import GAP, Trace, selected, stacked_axes, trace

X = np.array([0.0, 1.0, 2.0])


def test_a_trace_without_a_name_is_not_in_the_legend_and_one_without_a_text_does_not_answer_the_pointer() -> None:
    assert trace(X, X) == {
        "type": "scatter", "mode": "lines", "x": X, "y": X, "showlegend": False, "hoverinfo": "skip",
    }  # fmt: skip
    named = trace(X, X, "speed", colour="@ink", dash="dot", hover="%{y}", yaxis="y2")
    assert named["line"] == {"color": "@ink", "dash": "dot"}
    assert (named["name"], named["hovertemplate"], named["yaxis"]) == ("speed", "%{y}<extra></extra>", "y2")
    assert not {"showlegend", "hoverinfo"} & named.keys()


def test_only_what_differs_between_the_options_is_kept_for_each_of_them() -> None:
    def draw(k: int, s: int) -> list[Trace]:
        return [trace(X, X * (k + 1) + s, "value"), trace(X, [0.0, np.nan, 1.0], "limit")]

    figure = selected("Speed", {"Design": ["a", "b"], "Scenario": ["level", "uphill"]}, draw, layout(), height=300)
    assert [(c.label, c.options) for c in figure.choices] == [("Design", ("a", "b")), ("Scenario", ("level", "uphill"))]
    assert figure.height == 300
    assert list(figure.variants) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert all(list(v["data"]) == ["0"] for v in figure.variants.values())
    assert list(figure.variants[1, 1]["data"]["0"]) == ["y"]
    np.testing.assert_array_equal(figure.variants[1, 1]["data"]["0"]["y"], 2 * X + 1)
    np.testing.assert_array_equal(figure.plot["data"][0]["y"], X)


def test_a_choice_of_one_option_has_no_selector() -> None:
    figure = selected("Speed", {"Design": ["a"], "Scenario": ["x", "y"]}, lambda k, s: [trace(X, X + s)], layout())
    assert [c.label for c in figure.choices] == ["Scenario"]
    assert list(figure.variants) == [(0,), (1,)]
    alone = selected("Speed", {"Design": ["a"]}, lambda k: [trace(X, X)], layout())
    assert (alone.choices, alone.variants) == ((), {})


@pytest.mark.parametrize("more", [{"marker": {"size": 4}}, {}])
def test_options_with_other_traces_are_plots_of_their_own_with_the_axes_of_all(more: Trace) -> None:
    """Two traces against one, or traces with other attributes."""
    plots = [[trace(X, X), trace(X, X)], [trace(X, X)]] if not more else [[trace(X, X)], [trace(X, X, **more)]]
    figure = selected("Speed", {"Scenario": ["x", "y"]}, plots.__getitem__, layout(xaxis={"title": "time"}))
    for k, traces in enumerate(plots):
        assert figure.variants[(k,)]["data"] == traces
        assert figure.variants[(k,)]["layout"]["xaxis"] == {"title": "time"}


def test_the_view_changes_the_axes_with_the_option() -> None:
    ranges = [[0.0, 1.0], [0.0, 5.0]]
    axes = layout(xaxis={"title": {"text": "time"}})
    figure = selected(
        "Speed", {"Run": ["x", "y"]}, lambda k: [trace(X, X + k)], axes, view=lambda k: {"xaxis": {"range": ranges[k]}}
    )
    assert figure.plot["layout"]["xaxis"] == {"title": {"text": "time"}, "range": [0.0, 1.0]}
    assert figure.variants[(1,)]["layout"] == {"xaxis": {"range": [0.0, 5.0]}}
    assert "range" not in axes["xaxis"]
    chart = as_plotly(figure)
    assert chart.layout.xaxis.title.text == "time"
    assert list(chart.layout.xaxis.range) == [0.0, 1.0]


def test_stacked_axes_fill_the_height_from_the_top_down() -> None:
    places, axes = stacked_axes([("speed", {}), ("force", {"range": [0, 1]}), ("power", {})])
    assert places == ["y", "y2", "y3"]
    size = (1.0 - 2.0 * GAP) / 3
    assert axes["yaxis"]["domain"] == pytest.approx([1.0 - size, 1.0])
    assert axes["yaxis2"]["range"] == [0, 1]
    assert axes["yaxis3"]["domain"] == pytest.approx([0.0, size])
