"""The page on narrow screens: nothing is cut, covered or wider than the screen."""

import itertools
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import count, errors, open_page, screen, wait_until
from designopt_walking.report.panels import panel_height, panels
from given_pages import page_of, page_of_parts
from given_results import at_most, beam_result, grid

from designopt.report import Figure, Section, Table, write_report
from designopt.report.colours import axis, bare_layout, layout, log_ticks
from designopt.report.designs import selectable
from designopt.report.drawing import DrawnMotion, draw
from designopt.report.page.page import render
from designopt.report.parts.designs.front import front
from designopt.report.parts.designs.importance import importance
from designopt.report.parts.designs.map import map_figures
from designopt.report.parts.designs.parallel import parallel
from designopt.report.traces import selected
from designopt.study.study import DesignVariable


def test_the_answer_and_the_front_fit_the_first_screen_and_narrow_screens_scroll_tables(
    browser: Any, tmp_path: Path
) -> None:
    result = grid(constraints=(at_most("cost", 900.0),))
    path = write_report(result, tmp_path / "report.html")
    bottoms = """return [...document.querySelectorAll(
        'section:first-of-type :is(figure, .table:first-child, .findings)'
        )].map(e => e.getBoundingClientRect().bottom)"""
    wide = "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    clipped = """return [...document.querySelectorAll('table')].filter(t =>
        t.scrollWidth > t.parentElement.clientWidth && getComputedStyle(t.parentElement).overflowX !== 'auto').length"""
    with screen(browser, 1280, 800):
        browser.get(path.as_uri())
        wait_until(lambda: count(browser, "section:first-of-type figure[data-drawn]") == 1, "the front is drawn")
        below = browser.execute_script(bottoms)
        assert len(below) == 3
        assert max(below) <= 800
        assert count(browser, "section:first-of-type .scatterlayer .point") == len(result.front()) + 3
    with screen(browser, 400, 800):
        page_width, screen_width = browser.execute_script(wide)
        assert page_width <= screen_width
        assert browser.execute_script(clipped) == 0


def test_selectors_with_long_options_stay_on_a_narrow_screen(browser: Any, tmp_path: Path) -> None:
    """Those of the page, and that of a single figure."""

    def lines(level: int) -> dict[str, Any]:
        return {"data": [{"x": [0, 1], "y": [level, level]}], "layout": {}}

    names = [f"design {k} with a label that is much longer than the screen of a telephone is wide" for k in "ab"]
    arrays = {(name, "walk"): {"level": k} for k, name in enumerate(names)}
    common = tuple(selectable(title, arrays, lambda a: lines(a["level"])) for title in ("Angles", "Moments"))
    single = selected("Loads", {"Load": names}, lambda k: lines(k)["data"], {})
    path = page_of(tmp_path, Section("Curves", figures=(*common, single)))
    right = "return [...document.querySelectorAll('select')].map(e => Math.ceil(e.getBoundingClientRect().right))"
    with screen(browser, 420, 800):
        open_page(browser, path)
        assert count(browser, "select") == 3
        assert max(browser.execute_script(right)) <= 420


def test_panels_side_by_side_and_labels_of_points_fit_a_narrow_screen(browser: Any, tmp_path: Path) -> None:
    """Units stand below names, and a label that would leave the figure turns inwards; commands keep their options."""
    traces = [{"x": [0, 9], "y": [0, 1]}, {"x": [0, 9], "y": [0, 1], "xaxis": "x2"}]
    axes = {
        f"xaxis{n}": {"domain": d, "title": {"text": "width of plate [mm]"}}
        for n, d in (("", [0, 0.45]), ("2", [0.55, 1]))
    }
    label = {"text": "compromise", "x": 9, "y": 1, "ax": 36, "ay": -30, "xanchor": "left", "showarrow": True}
    outwards = {**label, "text": "knee<br>topsis vector", "x": 0, "ax": -36, "xanchor": "right"}
    annotations = [{**note, "xref": "x", "yref": "y"} for note in (label, outwards)]
    layout = {**axes, "xaxis": {**axes["xaxis"], "range": [0, 9]}, "annotations": annotations}
    figure = Figure("Pairs", {"data": traces, "layout": layout})
    command = "To reproduce: designopt show a.study/1 --evaluate"
    path = page_of(tmp_path, Section("Pairs", figures=(figure,), notes=(command,)))
    read = """const {layout} = document.querySelector('.plot'), option = document.querySelector('.option');
        return [layout.xaxis.title.text, ...layout.annotations.flatMap(note => [note.xanchor, note.ax]),
                option.textContent, getComputedStyle(option).whiteSpace, option.parentElement.textContent]"""
    expected = ["--evaluate", "nowrap", command]
    wide, narrow = (
        ["width of plate [mm]", "left", 36, "right", -36],
        ["width of plate<br>[mm]", "right", -36, "left", 36],
    )
    for width, labels in ((1200, wide), (420, narrow)):
        with screen(browser, width):
            open_page(browser, path)
            assert browser.execute_script(read) == [*labels, *expected]


@pytest.mark.parametrize("height", [0.5, 0.06, 0.9])
def test_labels_of_near_points_stay_in_their_plot_and_do_not_cover_each_other_on_a_narrow_screen(
    height: float, browser: Any, tmp_path: Path
) -> None:
    labels = [
        {"text": f"best of objective {k}", "x": 0.5 + 0.02 * k, "y": height + 0.01 * k, "xref": "x", "yref": "y",
         "ax": 36, "ay": -30, "showarrow": True, "xanchor": "left"}
        for k in range(7)
    ]  # fmt: skip
    axes = {"xaxis": axis("x", range=[0, 1]), "yaxis": axis("y", range=[0, 1])}
    data = [{"type": "scatter", "mode": "markers", "x": [0.5], "y": [0.5]}]
    figure = Figure("The front", {"data": data, "layout": layout(**axes, annotations=labels)})
    path = page_of(tmp_path, Section("Front", figures=(figure,)))
    with screen(browser, 420):
        browser.get(path.as_uri())
        wait_until(lambda: count(browser, "figure[data-drawn]") == 1, "the figure is drawn")
        boxes = browser.execute_script(
            "return [...document.querySelectorAll('.annotation-text')].map(t => t.getBoundingClientRect())"
            ".map(r => [r.left, r.right, r.top, r.bottom])"
        )
        plot = browser.execute_script(
            "const r = document.querySelector('.nsewdrag').getBoundingClientRect(); return [r.top, r.bottom]"
        )
    assert 2 <= len(boxes) < 7  # those without room go
    assert all(plot[0] - 8 < top and bottom < plot[1] + 8 for _, _, top, bottom in boxes)
    for k, (left, right, top, bottom) in enumerate(boxes):
        for left_before, right_before, top_before, bottom_before in boxes[:k]:
            is_beside = left > right_before or right < left_before
            assert is_beside or top > bottom_before - 2 or bottom < top_before + 2


def test_names_of_designs_and_long_titles_fit_a_narrow_screen(browser: Any, tmp_path: Path) -> None:
    name = "knee, topsis vector, robust: kp 1.71 %/degC, ti 102 s, td 0.237 s, tf 30.6 s, …"
    title = axis("fibre speed [maximum speeds of shortening]")
    figure = Figure("Responses", {"data": [{"y": [1, 2], "name": name}, {"y": [2, 1], "name": "x" * 60}]})
    figure = replace(figure, plot={**figure.plot, "layout": layout(xaxis=title)})
    path = page_of(tmp_path, Section("Responses", figures=(figure,)))
    read = """const plot = document.querySelector('.plot'), right = e => e.getBoundingClientRect().right;
        const texts = [...plot.querySelectorAll('.infolayer text')];
        return [plot.data.map(trace => trace.name), plot.layout.xaxis.title.text,
                texts.filter(text => right(text) > right(plot)).length]"""
    with screen(browser, 420):
        open_page(browser, path)
        names, text, outside = browser.execute_script(read)
        assert names[0] == "knee, topsis vector, robust"
        assert names[1].endswith("…")
        assert text == "fibre speed<br>[maximum speeds of shortening]"
        assert outside == 0


def test_cells_of_a_map_that_are_too_narrow_have_neither_texts_nor_gaps(browser: Any, tmp_path: Path) -> None:
    def cells(columns: int) -> Figure:
        texts = [["2T"] * columns] * 3
        heat_map = {"type": "heatmap", "z": np.ones((3, columns)), "text": texts, "xgap": 1, "texttemplate": "%{text}"}
        return Figure(f"Map of {columns}", {"data": [heat_map], "layout": {}})

    path = page_of(tmp_path, Section("Maps", figures=(cells(10), cells(60))))
    read = """return [...document.querySelectorAll('.plot')].map(plot =>
        [plot._fullData[0].xgap, plot.querySelectorAll('.heatmap-label').length])"""
    for width, expected in ((1200, [[1, 30], [1, 180]]), (420, [[1, 30], [0, 0]])):
        with screen(browser, width):
            open_page(browser, path)
            assert browser.execute_script(read) == expected


def test_long_names_beside_an_axis_and_an_empty_margin_leave_a_narrow_plot_its_room(
    browser: Any, tmp_path: Path
) -> None:
    names = ["best iae", "knee, topsis vector, utopia l2, robust"]
    box = {"type": "box", "orientation": "h", "x": [1, 2], "y": [names[1]] * 2}
    cells = {"type": "heatmap", "z": [[1, 2], [2, 3]], "showscale": False}
    upward = axis("", tickvals=[0, 1], ticktext=names)
    figures = (
        Figure("Distribution", {"data": [box], "layout": bare_layout(yaxis=axis("", type="category"))}),
        Figure("Scenarios", {"data": [cells], "layout": bare_layout(yaxis=upward)}),
        Figure("Motion", {"data": [{"y": [0, 1], "name": "body"}], "layout": layout()}),
    )
    path = page_of(tmp_path, Section("Plots", figures=figures))
    read = """return [...document.querySelectorAll('.plot')].map(plot => plot._fullLayout._size)
        .map(size => [size.w, size.t])"""
    with screen(browser, 420):
        open_page(browser, path)
        sizes = browser.execute_script(read)
        assert [width > 170 for width, _ in sizes] == [True] * 3
        assert sizes[2][1] <= 24
        assert count(browser, ".ytick text .line") == 6


def test_the_label_of_a_point_at_the_edge_of_a_plot_is_not_cut(browser: Any, tmp_path: Path) -> None:
    points = {"x": [0, 1], "y": [0, 1], "mode": "markers+text", "text": ["110", "0"], "textposition": "top left"}
    axes = {"xaxis": {"range": [0, 1], "title": {"text": "gait cycle [%], heel strike to heel strike of a step"}}}
    figure = Figure("Path", {"data": [points], "layout": axes})
    path = page_of(tmp_path, Section("Path", figures=(figure,)))
    clipped = "return [...document.querySelectorAll('.textpoint')].filter(e => e.closest('[clip-path]')).length"
    title = "return document.querySelector('.plot')._fullLayout.xaxis.title.text"
    with screen(browser, 420):
        open_page(browser, path)
        assert count(browser, ".textpoint") == 2
        assert browser.execute_script(clipped) == 0
        assert browser.execute_script(title) == "gait cycle [%], heel strike to heel<br>strike of a step"


def test_a_drawing_in_space_fills_its_figure_on_every_screen(browser: Any, tmp_path: Path) -> None:
    """A long flat one is nearer on a wide screen than on a narrow one, in both projections."""
    ends = np.array([[[0.0, 0.0, 0.0], [2.0, 0.3, 0.5]], [[0.2, 0.0, 0.0], [2.0, 0.4, 0.5]]])
    motion = draw(DrawnMotion(np.array([0.0, 1.0]), {"body": ends}))
    parallel_eye = {"eye": {"x": 0.5, "y": -1.6, "z": 0.2}, "projection": {"type": "orthographic"}}
    scene = {**motion["layout"]["scene"], "camera": parallel_eye}
    figures = (Figure("Seen", motion), Figure("Parallel", {**motion, "layout": {**motion["layout"], "scene": scene}}))
    path = page_of(tmp_path, Section("Space", figures=figures))
    read = """return [...document.querySelectorAll('.plot')].map(plot => plot._fullLayout.scene)
        .map(scene => [Math.hypot(...Object.values(scene.camera.eye)), scene.aspectratio.x])"""
    sizes = {}
    for width in (1200, 420):
        with screen(browser, width):
            open_page(browser, path)
            (distance, _), (_, length) = browser.execute_script(read)
            sizes[width] = distance, length
    assert sizes[1200][0] < sizes[420][0]
    assert sizes[420][1] < sizes[1200][1] <= 1200 / 200


@pytest.mark.parametrize("width", [420, 1400])
def test_a_short_axis_of_a_drawing_in_space_has_one_label_and_a_long_one_several(
    browser: Any, tmp_path: Path, width: int
) -> None:
    ends = np.array([[[0.0, 0.0, 0.0], [2.0, 0.05, 1.9]], [[0.2, 0.0, 0.0], [2.0, 0.08, 2.0]]])
    figure = Figure("Seen", draw(DrawnMotion(np.array([0.0, 1.0]), {"body": ends})))
    path = page_of(tmp_path, Section("Space", figures=(figure,)))
    read = """const {scene} = document.querySelector('.plot')._fullLayout;
        return [scene.xaxis, scene.yaxis].map(axis => [axis.tickvals ?? [], axis.range])"""
    with screen(browser, width):
        open_page(browser, path)
        (long_labels, _), (labels, (low, high)) = browser.execute_script(read)
    assert long_labels == []  # as many as Plotly thinks good
    assert len(labels) == 1
    assert low < labels[0] < high


def test_subplots_side_by_side_scroll_on_a_narrow_screen(browser: Any, tmp_path: Path) -> None:
    traces = [{"y": [1, 2], "xaxis": f"x{k}", "yaxis": f"y{k}"} for k in (1, 2, 3)]
    domains = {k: {"domain": [(k - 1) / 3, k / 3 - 0.05]} for k in (1, 2, 3)}
    layout = {f"{axis}axis{k if k > 1 else ''}": domains[k] if axis == "x" else {} for k in domains for axis in "xy"}
    rows = Figure("Joints", {"data": traces, "layout": layout}, width=900)
    path = page_of(tmp_path, Section("Joints", figures=(rows,)))
    with screen(browser, 420):
        browser.get(path.as_uri())
        widths = "const f = document.querySelector('figure'); return [f.scrollWidth, f.getBoundingClientRect().width]"
        inner, outer = browser.execute_script(widths)
        assert inner >= 900
        assert outer < 420
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 420


def test_panels_of_three_columns_stand_in_two_on_a_narrow_screen(browser: Any, tmp_path: Path) -> None:
    figure = panels(
        ["hip", "knee", "ankle", "toe"],
        lambda i: [{"type": "scatter", "x": [0, 100], "y": [i, i + 1], "name": "right"}],
    )
    angles = Section("Angles", figures=(Figure("Angles", figure, height=panel_height(4)),))
    path = page_of(tmp_path, angles)
    read_panels = (
        "const plot = document.querySelector('.plot'), layout = plot._fullLayout, height = plot.clientHeight;"
        "return [height, ...[1, 2, 3, 4].map(i => [layout[`xaxis${i > 1 ? i : ''}`].domain, "
        "layout[`yaxis${i > 1 ? i : ''}`].domain, layout[`xaxis${i > 1 ? i : ''}`].title.text]).flat()]"
    )
    places = {}
    for width in (1400, 420):
        with screen(browser, width):
            open_page(browser, path)
            places[width] = browser.execute_script(read_panels)
            assert browser.execute_script(
                "const f = document.querySelector('figure'); return f.scrollWidth <= f.clientWidth"
            )
    assert places[1400][0] == places[420][0] == panel_height(4)  # two rows in both
    assert places[420][1] == places[420][7] == [0, 0.4]  # hip above ankle
    assert places[420][4] == places[420][10] == [0.6, 1]  # knee above toe
    assert places[420][2][0] > places[420][8][1]
    assert [k for k in (3, 6, 9, 12) if places[420][k] == "cycle [%]"] == [9, 12]


#: Texts of a figure that are not completely within it.
CUT_TEXTS = """return [...document.querySelectorAll('.plot')].flatMap(plot => {
    const box = plot.getBoundingClientRect();
    return [...plot.querySelectorAll('.main-svg text')].filter(text => {
        const r = text.getBoundingClientRect();
        return r.width && getComputedStyle(text).visibility !== 'hidden' && +getComputedStyle(text).opacity
            && (r.left < box.left - 2 || r.right > box.right + 2 || r.top < box.top - 2 || r.bottom > box.bottom + 2);
    }).map(text => text.textContent);
})"""


@pytest.mark.parametrize("width", [420, 1400])
def test_no_text_of_a_figure_is_cut(width: int, browser: Any, tmp_path: Path) -> None:
    """Values of a choice left of the first parallel axis, and long names of parameters below bars."""
    space = (
        DesignVariable("formulation", "choice", values=("joint_functions", "constraints with multipliers")),
        DesignVariable("upper_inset_of_the_anchors", "real", low=0.0, high=1.0, unit="m"),
        DesignVariable("lower_inset_of_the_anchors", "real", low=0.0, high=1.0, unit="m"),
    )
    X = np.random.default_rng(1).random((40, 3))
    X[:, 0] = X[:, 0] > 0.5
    result = beam_result(X, {"mass": X[:, 0] + X[:, 1], "sag": X[:, 2]}, space=space)
    path = page_of_parts(result, tmp_path, parallel, importance)
    with screen(browser, width):
        open_page(browser, path)
        assert browser.execute_script(CUT_TEXTS) == []


def test_figures_fit_a_narrow_screen(browser: Any, tmp_path: Path) -> None:
    path = page_of_parts(grid(), tmp_path, front, map_figures, parallel)
    with screen(browser, 420):
        open_page(browser, path)
        too_wide = (
            "return [...document.querySelectorAll('figure')].filter(f => f.scrollWidth > f.clientWidth).map(f => f.id)"
        )
        assert browser.execute_script(too_wide) == []


def test_on_a_narrow_screen_buttons_do_not_cover_the_time_nor_names_of_axes_each_other(
    browser: Any, tmp_path: Path
) -> None:
    time = np.linspace(0.0, 1.0, 5)
    motion = draw(DrawnMotion(time, {"body": np.stack([np.stack([time, time], axis=1)] * 2, axis=1)}))
    moving = Section("Moves", figures=(Figure("It", motion),))
    path = tmp_path / "report.html"
    parts = [section for section in (moving, parallel(grid())) if section is not None]
    path.write_text(render(grid(), parts), encoding="utf-8")
    above = """const boxes = name => [...document.querySelectorAll(name)].map(e => e.getBoundingClientRect());
        const [time] = boxes('.slider-group > text'), [rail] = boxes('.slider-rail-rect');
        return boxes('.updatemenu-button').map(button => Math.min(time.top, rail.top) - button.bottom)"""
    with screen(browser, 420):
        open_page(browser, path)
        assert count(browser, ".modebar") == 0  # it would cover legends
        distances = browser.execute_script(above)
        assert len(distances) == 2
        assert min(distances) >= 0.0
        angles = browser.execute_script(
            "return [...document.querySelectorAll('.parcoords .axis-title')].map(e => e.getAttribute('transform'))"
        )
        assert angles
        assert all("rotate(-35)" in angle for angle in angles)


def test_all_designs_of_a_legend_are_named_alike_on_a_narrow_screen(browser: Any, tmp_path: Path) -> None:
    """One name is too long: none has its values."""
    names = ("best mismatch, compromise: k 19304 N/m, c/k 0.0228 s", "robust: k 19999 N/m, c/k 0.02 s", "recorded")
    figure = Figure(
        "Angle", {"data": [{"y": [1, k], "name": name} for k, name in enumerate(names)], "layout": layout()}
    )
    with screen(browser, 420):
        open_page(browser, page_of(tmp_path, Section("Angle", figures=(figure,))))
        legend = browser.execute_script("return document.querySelector('.plot').data.map(trace => trace.name)")
    assert legend == ["best mismatch, compromise", "robust", "recorded"]


@pytest.mark.parametrize("dimensions", [2, 3])
def test_maps_stand_below_one_another_under_their_colours_on_a_narrow_screen(
    browser: Any, tmp_path: Path, dimensions: int
) -> None:
    space = tuple(DesignVariable(f"parameter_{name}", "real", low=0.0, high=1.0) for name in "abc"[:dimensions])
    X = np.random.default_rng(1).random((40, dimensions))
    result = beam_result(X, {"mass": X[:, 0], "sag": X[:, 1]}, space=space)
    path = page_of_parts(result, tmp_path, map_figures)
    boxes = """const box = e => { const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; };
        const all = selector => [...document.querySelectorAll(selector)].map(box);
        return [all('.plot .legend'), all('.plot .cbfills'), all(".plot [class^='x'][class$='title']"), all('.plot')]"""
    with screen(browser, 420):
        browser.get(path.as_uri())
        wait_until(lambda: count(browser, "figure:not([data-drawn])") == 0, "every figure is drawn")
        (legend,), (bar,), titles, (plot,) = browser.execute_script(boxes)
        layout = browser.execute_script(
            "const {_fullLayout: l, layout} = document.querySelector('.plot'), names = Object.keys(layout);"
            "return names.filter(n => /^[xy]axis/.test(n)).map(n => [n[0], ...l[n].domain])"
        )
        assert errors(browser) == []
        panels_across = [domain for letter, *domain in layout if letter == "x"]
        assert panels_across == [[0, 1]] * (1 if dimensions == 2 else 3)
        heights = sorted(tuple(domain) for letter, *domain in layout if letter == "y")
        assert all(below[1] < above[0] for below, above in itertools.pairwise(heights))
        assert len(titles) == len(panels_across)
        assert bar[3] <= legend[1] + 1.0  # above the legend
        assert plot[0] <= bar[0] < bar[2] <= plot[2] <= 420
        assert bar[2] - bar[0] > 3 * (bar[3] - bar[1])  # it lies


def test_numbers_of_long_names_are_in_sight_on_a_narrow_screen(browser: Any, tmp_path: Path) -> None:
    row = ("best flexion error and robust", 0.04983, 6.571, 10.5)
    table = Table("In short", ("design", "mismatch (minimize)", "flexion_error [deg]", "clearance [mm]"), (row,))
    path = page_of(tmp_path, Section("Overview", tables=(table,)))
    with screen(browser, 420):
        browser.get(path.as_uri())
        right = "return [...document.querySelectorAll('td')].map(e => e.getBoundingClientRect().right)"
        name, first, second, _ = browser.execute_script(right)
        assert name < 200
        assert first < second < 420


def test_names_in_the_first_column_take_two_lines_at_most_on_a_narrow_screen(browser: Any, tmp_path: Path) -> None:
    names = ("best of flexion error", "behind the front", "rod", "stroke of the piston [mm]", "knee (≥ 100 mm)")
    names = (*names, "knee, topsis vector, utopia l2, robust")
    columns = ("design", *(f"figure_{k} [N m]" for k in range(5)))
    table = Table("In short", columns, tuple((name, *(1234.5,) * 5) for name in names))
    path = page_of(tmp_path, Section("Overview", tables=(table,)))
    with screen(browser, 420):
        browser.get(path.as_uri())
        heights = browser.execute_script(
            "return [...document.querySelectorAll('tr')].slice(1).map(row => row.getBoundingClientRect().height)"
        )
        right = browser.execute_script("return document.querySelector('td').getBoundingClientRect().right")
    assert max(heights) < 2.2 * (min(heights) - 10) + 10
    assert right < 210


def test_long_titles_at_the_left_of_panels_stay_within_the_figure_on_a_narrow_screen(
    browser: Any, tmp_path: Path
) -> None:
    names = ["hip flexion, prosthesis (right)", "hip flexion, sound leg (left)", "knee angle, prosthesis (right)"]
    figure = panels(names, lambda i: [{"type": "scatter", "x": [0, 100], "y": [i, i + 1], "name": "ground"}])
    moments = Section("Moments", figures=(Figure("Moments", figure, height=panel_height(3)),))
    path = page_of(tmp_path, moments)
    read = """const box = e => e.getBoundingClientRect(), plot = document.querySelector('.plot');
        return [[...plot.querySelectorAll('.annotation-text')].map(box).map(b => [b.left, b.right]), box(plot).right]"""
    with screen(browser, 420):
        open_page(browser, path)
        ((_, first_right), (second_left, second_right), _), plot_right = browser.execute_script(read)
    assert first_right < second_left
    assert second_right < plot_right


@pytest.mark.parametrize("bounds", [(1e-4, 1e3), (1e3, 1e5), (0.3, 20.0), (2.3e-3, 0.11), (1e-5, 2e-5)])
def test_labels_of_log_axes_do_not_touch_on_a_narrow_screen(
    browser: Any, tmp_path: Path, bounds: tuple[float, float]
) -> None:
    """Those of panels beside each other, with Plotly's ticks, and the round ones of a parameter; on a wide screen all
    are shown."""
    x = np.geomspace(*bounds, 9)
    curve = {"type": "scatter", "x": x, "y": x}
    halves = {f"xaxis{n}": axis("q", type="log", domain=d) for n, d in (("", [0, 0.45]), ("2", [0.55, 1]))}
    one = layout(xaxis=axis("q", type="log", tickvals=log_ticks(*bounds, 8)))
    plots = ({"data": [curve, {**curve, "xaxis": "x2"}], "layout": layout(**halves)}, {"data": [curve], "layout": one})
    figures = tuple(Figure(str(k), plot, height=300) for k, plot in enumerate(plots))
    read = """return [...document.querySelectorAll('.plot')].map(plot =>
        [...plot.querySelectorAll('.xtick text, .x2tick text')].filter(t => t.style.visibility !== 'hidden')
        .map(t => t.getBoundingClientRect()).map(box => [box.left, box.right]).sort((a, b) => a[0] - b[0]))"""
    path = page_of(tmp_path, Section("Log", figures=figures))
    with screen(browser, 420):
        open_page(browser, path)
        boxes_by_plot = browser.execute_script(read)
        for boxes in boxes_by_plot:
            assert len(boxes) > 2
            assert all(right + 2 < left for (_, right), (left, _) in itertools.pairwise(boxes))
        saved = browser.execute_async_script(
            "Promise.all([...document.querySelectorAll('.plot')].map(plot => Plotly.toImage(asShown({plot}),"
            "{format: 'svg', imageDataOnly: true, width: plot.clientWidth, height: plot.clientHeight})))"
            ".then(arguments[0])"
        )
        counts = [len(re.findall(r'class="x2?tick"><text', image)) for image in saved]
        assert counts == [len(boxes) for boxes in boxes_by_plot]  # a saved figure has no others
    with screen(browser, 1400):
        open_page(browser, path)
        assert len(browser.execute_script(read)[1]) == len(log_ticks(*bounds, 8))


def test_a_legend_of_many_rows_on_a_narrow_screen_leaves_no_gap_above_it(browser: Any, tmp_path: Path) -> None:
    """Traces that are not drawn have no row, others as many as the legend has."""
    names = ["recorded ± 5 deg", "best mismatch", "best error", "compromise", "robust (recommended)", "recorded"]
    data = [{"y": [k, k + 1], "name": name} for k, name in enumerate(names)]
    data += [{"y": [0, 1], "name": f"hidden {k}", "visible": False} for k in range(4)]
    axes = {"xaxis": axis("cycle [%]"), "yaxis": axis("angle [deg]")}
    section = Section("Angles", figures=(Figure("Angle", {"data": data, "layout": layout(**axes)}, height=500),))
    path = page_of(tmp_path, section)
    read = """const plot = document.querySelector('.plot'), {top} = plot.getBoundingClientRect();
        const {t, h} = plot._fullLayout._size;
        const {top: first, bottom: last} = plot.querySelector('.legend').getBoundingClientRect();
        return [first - top, last - top, t, h]"""
    with screen(browser, 420, 900):
        browser.get(path.as_uri())
        wait_until(lambda: count(browser, "figure[data-drawn]") == 1, "the figure is drawn")
        legend_top, legend_bottom, plot_top, plot_height = browser.execute_script(read)
        assert 0 <= legend_top < 25
        assert legend_bottom <= plot_top
        assert plot_height > 330


def test_a_title_is_not_broken_at_a_hyphen(browser: Any, tmp_path: Path) -> None:
    result = grid()
    study = replace(result.study, title="Stiffness and damping of a four-bar knee's damper <on> a-b")
    path = tmp_path / "report.html"
    path.write_text(render(replace(result, study=study), [Section("Angles")]), encoding="utf-8")
    lines = """return [...document.querySelectorAll('h1 .word')].map(
        word => [word.textContent, word.getClientRects().length])"""
    for width in range(320, 521, 20):
        with screen(browser, width, 900):
            browser.get(path.as_uri())
            assert browser.execute_script(lines) == [["four-bar", 1], ["a-b", 1]]
            height = "return document.querySelector('h1 .word').getBoundingClientRect().height"
            assert browser.execute_script(height) < 40
            assert browser.execute_script("return document.querySelector('h1').textContent") == study.title


def test_a_legend_above_panels_follows_the_width_of_a_narrow_screen(browser: Any, tmp_path: Path) -> None:
    figure = panels(
        ["hip", "knee", "ankle", "toe"],
        lambda i: [
            {"type": "scatter", "x": [0, 100], "y": [i, i + 1], "name": name} for name in ("ground", "drives", "device")
        ],
    )
    moments = Section("Moments", figures=(Figure("Moments", figure, height=panel_height(4)),))
    path = page_of(tmp_path, moments)
    read = """const plot = document.querySelector('.plot');
        const box = name => plot.querySelector(name).getBoundingClientRect();
        return [plot._fullLayout.width, plot.clientWidth, box('.legend').bottom, box('.annotation-text').top]"""

    def legend_is_above() -> bool:
        wait_until(lambda: len(set(browser.execute_script(read)[:2])) == 1, "the figure has its width")
        _, _, legend_bottom, title_top = browser.execute_script(read)
        return bool(legend_bottom < title_top + 4)

    with screen(browser, 360):
        open_page(browser, path)
        assert legend_is_above()
        with screen(browser, 420):
            assert legend_is_above()


def test_a_figure_that_was_narrow_has_its_whole_names_on_a_screen_that_becomes_wide(
    browser: Any, tmp_path: Path
) -> None:
    names = ("best of an objective, by the first rule", "compromise between both of the objectives")
    data = [{"type": "scatter", "x": [0, 1], "y": [k, 1], "name": name} for k, name in enumerate(names)]
    axes = layout(xaxis=axis("largest force in a pin of the mechanism [N] (minimize)"))
    path = page_of(tmp_path, Section("Front", figures=(Figure("Front", {"data": data, "layout": axes}),)))
    read = """const {data, _fullLayout: {xaxis}} = document.querySelector('.plot');
        return [...data.map(trace => trace.name), xaxis.title.text]"""
    full_names = [*names, "largest force in a pin of the mechanism [N] (minimize)"]
    with screen(browser, 320):
        open_page(browser, path)
        assert browser.execute_script(read) != full_names
    with screen(browser, 1400):
        wait_until(lambda: browser.execute_script(read) == full_names, "the names are whole")
    assert errors(browser) == []


def test_a_figure_keeps_its_names_while_its_page_is_hidden(browser: Any, tmp_path: Path) -> None:
    data = [
        {"type": "scatter", "x": [0, 1], "y": [k, 1], "name": name} for k, name in enumerate(("estimate", "simulated"))
    ]
    path = page_of(tmp_path, Section("Errors", figures=(Figure("Errors", {"data": data, "layout": layout()}),)))
    hide = """const done = arguments[0], twoFrames = f => requestAnimationFrame(() => requestAnimationFrame(f));
        document.body.style.display = "none";
        twoFrames(() => { document.body.style.display = ""; twoFrames(() => setTimeout(done, 300)); });"""
    with screen(browser, 420):
        open_page(browser, path)
        browser.execute_async_script(hide)
        names = browser.execute_script("return document.querySelector('.plot').data.map(trace => trace.name)")
    assert names == ["estimate", "simulated"]


def test_words_of_details_are_whole_and_heads_of_narrow_columns_low(browser: Any, tmp_path: Path) -> None:
    rows = tuple((f"activation_of_muscle_{k}", "motion", k) for k in range(3))
    table = Table("Limits", ("name of a variable of the program", "phase", "time at the lower limit"), rows)
    section = Section("Programs", tables=(table,), details=(("Messages", "a word of a long message " * 20),))
    path = page_of(tmp_path, section)
    cut = "const pre = document.querySelector('pre'); return pre.scrollWidth - pre.clientWidth"
    for width in (420, 1400):
        with screen(browser, width):
            browser.get(path.as_uri())
            browser.execute_script("document.querySelector('details').open = true")
            assert browser.execute_script(cut) == 0
    with screen(browser, 420):
        heights = "return [...document.querySelectorAll('tr')].map(row => row.getBoundingClientRect().height)"
        head, row, *_ = browser.execute_script(heights)
    assert head < 3 * row
