"""Numbers, words and labels of figures are readable."""

import numpy as np
import pytest
from given_results import at_most, beam_result, minimize

from designopt.counts import plural
from designopt.report.labels import design_rows, displayed_figures, duration, listed, number, plain, thinned
from designopt.report.parts.answer.overview import overview
from designopt.report.parts.designs.front import _box, _overlap, _spread


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (16421.3, "16421"),
        (0.98602, "0.986"),
        (0.0001234, "0.0001234"),
        (1.5e-7, "1.5e-7"),
        (2.0e9, "2e9"),
        (-3.14159, "-3.142"),
        (float("nan"), "–"),
        (float("-inf"), "−∞"),
        (7, "7"),
        (True, "true"),
        ("word", "word"),
    ],
)
def test_numbers_are_short_and_readable(value: object, text: str) -> None:
    assert number(value) == text


def test_round_off_reads_zero_by_the_size_of_what_it_comes_from() -> None:
    """Beside other values in its unit, and beside 1 for plain numbers; an objective may be as small as it gets."""
    figures = {"mass": [3e-20, 2.0], "sag": [4e-17, 0.3], "cost": [-2.115e-16, -2.115e-16]}
    limits = (at_most("cost", 0.5),)
    result = beam_result([(20, 0.1), (30, 0.2)], figures, objectives=(minimize("mass", "kg"),), constraints=limits)
    rows = dict(design_rows(result, {"first": 0, "second": 1}))
    assert rows["sag [mm]"] == [0.0, 0.3]
    assert rows["cost (≤ 0.5)"] == [0.0, 0.0]
    assert rows["mass [kg] (minimize)"] == [3e-20, 2.0]
    assert displayed_figures(result)["cost"][1].tolist() == [[0.0], [0.0]]
    assert displayed_figures(result)["mass"][1].tolist() == [[3e-20], [2.0]]
    table = next(table for table in overview(result).tables if table.title == "Its limits")
    assert table.rows[0][1] == 0.0


def test_words_are_put_together() -> None:
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert plural(1, "design") == "1 design"
    assert plural(1200, "design") == "1200 designs"
    assert duration(59.0) == "59 s"
    assert duration(7200.0) == "2 h"
    assert plain("a<b> %{x}") == "a&lt;b&gt; % {x}"


def test_thinning_keeps_both_ends_and_is_always_the_same() -> None:
    rows = np.arange(1000)
    sample = thinned(rows, 10)
    assert (sample[0], sample[-1], len(sample)) == (0, 999, 10)
    np.testing.assert_array_equal(sample, thinned(rows, 10))
    assert thinned(rows, 2000) is rows


def test_labels_of_neighbours_on_the_front_cover_each_other_nowhere() -> None:
    points = [(0.50 + 0.004 * k, 0.50 - 0.004 * k) for k in range(8)]
    labels = [
        {"text": f"topsis with weights {k}<br>nearest to {k}", "x": x, "y": y, "xref": "x", "yref": "y"}
        for k, (x, y) in enumerate(points)
    ]
    frame = ((0.0, 1.0), (0.0, 1.0), 820.0, 420.0)
    boxes = [
        _box(a["x"] * 820.0, (1.0 - a["y"]) * 420.0, (a["ax"], a["ay"]), a["text"])
        for a in _spread(labels, {"x": frame})
    ]
    assert [_overlap(a, b) for i, a in enumerate(boxes) for b in boxes[:i] if _overlap(a, b) > 0.0] == []
    assert all(left >= 0.0 and right <= 820.0 and top >= 0.0 and bottom <= 420.0 for left, top, right, bottom in boxes)


def test_a_label_at_the_edge_of_the_plot_stands_on_its_inner_side() -> None:
    frame = ((0.0, 1.0), (0.0, 1.0), 820.0, 420.0)
    (label,) = _spread([{"text": "compromise", "x": 0.99, "y": 0.02, "xref": "x", "yref": "y"}], {"x": frame})
    assert label["ax"] < 0
    assert label["xanchor"] == "right"
    assert label["ay"] < 0
