"""The page in a browser: it loads without errors, figures are drawn, selectors and colours work, animations play."""

import base64
import itertools
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import errors, headless_browser, open_page, wait_until
from designopt_walking.report.panels import panel_height, panels
from given_results import GivenResult, at_most, beam_result, grid, maximize, minimize

from designopt.report import Figure, Section, Table, write_report
from designopt.report.colours import CELL_TEXT, ORDERED, axis, bare_layout, layout
from designopt.report.designs import selectable
from designopt.report.drawing import DrawnMotion, draw
from designopt.report.page.page import render
from designopt.report.parts.designs.front import front
from designopt.report.parts.designs.importance import importance
from designopt.report.parts.designs.map import map_figures
from designopt.report.parts.designs.parallel import parallel
from designopt.report.parts.motion.trajectories import stacked
from designopt.report.section import Selector
from designopt.report.traces import selected
from designopt.study.study import DesignVariable

#: Pixels of a sheet of A4 within its margins.
PAPER = (297 - 2 * 14) / 25.4 * 96


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with headless_browser(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


def count(browser: Any, selector: str) -> int:
    return int(browser.execute_script("return document.querySelectorAll(arguments[0]).length", selector))


def some_parts(result: GivenResult, folder: Path, *parts: Any) -> Path:
    """A page of the parts that a test looks at: a whole one takes longer to draw."""
    sections = [part(result) for part in parts]
    path = folder / "report.html"
    path.write_text(render(result, [section for section in sections if section is not None]), encoding="utf-8")
    return path


def test_the_page_loads_and_draws_everything_without_an_error(browser: Any, tmp_path: Path) -> None:
    result = grid(title="<script>window.broken = 1</script>", constraints=(at_most("cost", 900.0),))
    open_page(browser, write_report(result, tmp_path / "report.html"))
    assert errors(browser) == []
    assert browser.execute_script("return window.broken") is None
    good = len(result.front())
    # Front, dominated designs, designs that break a limit, and the three chosen ones: each a point in the drawing.
    point_count = count(browser, "[id^=pareto-front] .scatterlayer .point")
    assert point_count == (~result.outcomes.failed).sum() + 3
    assert good > 5
    assert count(browser, "[id^=maps] .heatmaplayer image") == 1
    assert count(browser, "[id^=parallel] canvas") >= 1
    loaded = browser.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert [name for name in loaded if not name.startswith(("data:", "blob:"))] == []


def sized(browser: Any, width: int, height: int) -> None:
    device = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", device)


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
    try:
        sized(browser, 1280, 800)
        browser.get(path.as_uri())
        wait_until(lambda: count(browser, "section:first-of-type figure[data-drawn]") == 1, "the front is drawn")
        below = browser.execute_script(bottoms)
        assert len(below) == 3
        assert max(below) <= 800
        assert count(browser, "section:first-of-type .scatterlayer .point") == len(result.front()) + 3
        sized(browser, 400, 800)
        page, screen = browser.execute_script(wide)
        assert page <= screen
        assert browser.execute_script(clipped) == 0
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_three_objectives_are_drawn_in_space(browser: Any, tmp_path: Path) -> None:
    result = grid(objectives=(minimize("mass"), minimize("sag"), maximize("cost")))
    open_page(browser, some_parts(result, tmp_path, front))
    assert errors(browser) == []
    assert count(browser, "[id^=pareto-front] .gl-container canvas") >= 1
    assert count(browser, "[id^=pareto-front] .scatterlayer .trace") >= 9


def test_a_selector_changes_what_the_map_shows(browser: Any, tmp_path: Path) -> None:
    open_page(browser, some_parts(grid(scenarios=("calm", "storm")), tmp_path, map_figures))
    values = (
        "const plot = document.querySelector('[id^=maps] .plot');"
        "return [plot.data[0].colorbar.title.text, Math.max(...Array.from(plot._fullData[0].z, r => Math.max(...r)))]"
    )
    title, largest = browser.execute_script(values)
    assert title == "mass [kg] (minimize)"
    assert largest == pytest.approx(220)
    for number, option in ((0, 4), (1, 1)):
        browser.execute_script(
            "const s = document.querySelectorAll('[id^=maps] select')[arguments[0]];"
            "s.value = arguments[1]; s.dispatchEvent(new Event('change'))",
            number,
            str(option),
        )
    wait_until(lambda: browser.execute_script(values)[0] == "cost", "the map shows the cost")
    wait_until(lambda: browser.execute_script(values)[1] == pytest.approx(1.1 * 3600), "the map shows the storm")
    assert errors(browser) == []


def test_one_selector_changes_all_figures_of_designs_and_draws_a_second_one_dotted(
    browser: Any, tmp_path: Path
) -> None:
    def lines(level: int) -> dict[str, Any]:
        return {"data": [{"x": [0, 1], "y": [level, level + k], "name": str(k)} for k in range(2)], "layout": {}}

    soft_and_stiff = {("soft", "walk"): {"level": 1}, ("stiff", "walk"): {"level": 5}}
    figures = tuple(
        selectable(title, soft_and_stiff, lambda arrays: lines(arrays["level"])) for title in ("Angles", "Moments")
    )
    path = tmp_path / "report.html"
    path.write_text(render(grid(), [Section("Curves", figures=figures)]), encoding="utf-8")
    open_page(browser, path)
    assert count(browser, "select") == 2  # the shown design, and the dotted one
    traces = (
        "return [...document.querySelectorAll('.plot')].map(p => p._fullData.map(t => [t.name, t.y[0], t.line.dash]))"
    )
    soft = [["0", 1, "solid"], ["1", 1, "solid"]]
    assert browser.execute_script(traces) == [soft, soft]
    change = (
        "const s = document.querySelectorAll('#common select')[arguments[0]];"
        "s.value = arguments[1]; s.dispatchEvent(new Event('change'))"
    )
    browser.execute_script(change, 1, "1")
    soft_and_dotted = [*soft, ["0, dotted", 5, "dot"], ["1, dotted", 5, "dot"]]
    wait_until(
        lambda: browser.execute_script(traces) == [soft_and_dotted, soft_and_dotted],
        "both figures have the second design",
    )
    captions = "return [...document.querySelectorAll('.shown')].map(e => e.textContent)"
    assert browser.execute_script(captions) == ["Design: soft, dotted stiff"] * 2
    browser.execute_script(change, 0, "1")
    browser.execute_script(change, 1, "")
    stiff = [["0", 5, "solid"], ["1", 5, "solid"]]
    wait_until(lambda: browser.execute_script(traces) == [stiff, stiff], "both figures have the other design alone")
    assert browser.execute_script(captions) == ["Design: stiff"] * 2
    assert errors(browser) == []


def test_selectors_with_long_options_stay_on_a_narrow_screen(browser: Any, tmp_path: Path) -> None:
    """Those of the page, and that of a single figure."""

    def lines(level: int) -> dict[str, Any]:
        return {"data": [{"x": [0, 1], "y": [level, level]}], "layout": {}}

    names = [f"design {k} with a label that is much longer than the screen of a telephone is wide" for k in "ab"]
    arrays = {(name, "walk"): {"level": k} for k, name in enumerate(names)}
    common = tuple(selectable(title, arrays, lambda a: lines(a["level"])) for title in ("Angles", "Moments"))
    single = selected("Loads", {"Load": names}, lambda k: lines(k)["data"], {})
    path = tmp_path / "report.html"
    path.write_text(render(grid(), [Section("Curves", figures=(*common, single))]), encoding="utf-8")
    right = "return [...document.querySelectorAll('select')].map(e => Math.ceil(e.getBoundingClientRect().right))"
    try:
        sized(browser, 420, 800)
        open_page(browser, path)
        assert count(browser, "select") == 3
        assert max(browser.execute_script(right)) <= 420
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


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
    path = tmp_path / "report.html"
    path.write_text(render(grid(), [Section("Pairs", figures=(figure,), notes=(command,))]), encoding="utf-8")
    read = """const {layout} = document.querySelector('.plot'), option = document.querySelector('.option');
        return [layout.xaxis.title.text, ...layout.annotations.flatMap(note => [note.xanchor, note.ax]),
                option.textContent, getComputedStyle(option).whiteSpace, option.parentElement.textContent]"""
    expected = ["--evaluate", "nowrap", command]
    try:
        wide, narrow = (
            ["width of plate [mm]", "left", 36, "right", -36],
            ["width of plate<br>[mm]", "right", -36, "left", 36],
        )
        for width, labels in ((1200, wide), (420, narrow)):
            sized(browser, width, 900)
            open_page(browser, path)
            assert browser.execute_script(read) == [*labels, *expected]
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


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
    path = tmp_path / "report.html"
    figure = Figure("The front", {"data": data, "layout": layout(**axes, annotations=labels)})
    path.write_text(render(grid(), [Section("Front", figures=(figure,))]), encoding="utf-8")
    try:
        sized(browser, 420, 900)
        browser.get(path.as_uri())
        wait_until(lambda: count(browser, "figure[data-drawn]") == 1, "the figure is drawn")
        boxes = browser.execute_script(
            "return [...document.querySelectorAll('.annotation-text')].map(t => t.getBoundingClientRect())"
            ".map(r => [r.left, r.right, r.top, r.bottom])"
        )
        plot = browser.execute_script(
            "const r = document.querySelector('.nsewdrag').getBoundingClientRect(); return [r.top, r.bottom]"
        )
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
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
    path = tmp_path / "report.html"
    path.write_text(render(grid(), [Section("Responses", figures=(figure,))]), encoding="utf-8")
    read = """const plot = document.querySelector('.plot'), right = e => e.getBoundingClientRect().right;
        const texts = [...plot.querySelectorAll('.infolayer text')];
        return [plot.data.map(trace => trace.name), plot.layout.xaxis.title.text,
                texts.filter(text => right(text) > right(plot)).length]"""
    try:
        sized(browser, 420, 900)
        open_page(browser, path)
        names, text, outside = browser.execute_script(read)
        assert names[0] == "knee, topsis vector, robust"
        assert names[1].endswith("…")
        assert text == "fibre speed<br>[maximum speeds of shortening]"
        assert outside == 0
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_numbers_in_a_map_are_light_on_dark_cells_and_dark_on_light_ones(browser: Any, tmp_path: Path) -> None:
    heat_map = {"type": "heatmap", "z": np.array([[0.0, 1.0]]), "text": [["1", "2"]], "texttemplate": "%{text}",
                "textfont": CELL_TEXT, "colorscale": ORDERED}  # fmt: skip
    path = tmp_path / "report.html"
    section = Section("Maps", figures=(Figure("Map", {"data": [heat_map], "layout": {}}),))
    path.write_text(render(grid(), [section]), encoding="utf-8")
    open_page(browser, path)
    texts = "return [...document.querySelectorAll('.heatmap-label text')].map(t => getComputedStyle(t).fill)"
    assert browser.execute_script(texts) == ["rgb(255, 255, 255)", "rgb(68, 68, 68)"]


def test_cells_of_a_map_that_are_too_narrow_have_neither_texts_nor_gaps(browser: Any, tmp_path: Path) -> None:
    def cells(columns: int) -> Figure:
        texts = [["2T"] * columns] * 3
        heat_map = {"type": "heatmap", "z": np.ones((3, columns)), "text": texts, "xgap": 1, "texttemplate": "%{text}"}
        return Figure(f"Map of {columns}", {"data": [heat_map], "layout": {}})

    path = tmp_path / "report.html"
    path.write_text(render(grid(), [Section("Maps", figures=(cells(10), cells(60)))]), encoding="utf-8")
    read = """return [...document.querySelectorAll('.plot')].map(plot =>
        [plot._fullData[0].xgap, plot.querySelectorAll('.heatmap-label').length])"""
    try:
        for width, expected in ((1200, [[1, 30], [1, 180]]), (420, [[1, 30], [0, 0]])):
            sized(browser, width, 900)
            open_page(browser, path)
            assert browser.execute_script(read) == expected
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


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
    path = tmp_path / "report.html"
    path.write_text(render(grid(), [Section("Plots", figures=figures)]), encoding="utf-8")
    read = """return [...document.querySelectorAll('.plot')].map(plot => plot._fullLayout._size)
        .map(size => [size.w, size.t])"""
    try:
        sized(browser, 420, 900)
        open_page(browser, path)
        sizes = browser.execute_script(read)
        assert [width > 170 for width, _ in sizes] == [True] * 3
        assert sizes[2][1] <= 24
        assert count(browser, ".ytick text .line") == 6
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_label_of_a_point_at_the_edge_of_a_plot_is_not_cut(browser: Any, tmp_path: Path) -> None:
    points = {"x": [0, 1], "y": [0, 1], "mode": "markers+text", "text": ["110", "0"], "textposition": "top left"}
    axes = {"xaxis": {"range": [0, 1], "title": {"text": "gait cycle [%], heel strike to heel strike of a step"}}}
    path = tmp_path / "report.html"
    figure = Figure("Path", {"data": [points], "layout": axes})
    path.write_text(render(grid(), [Section("Path", figures=(figure,))]), encoding="utf-8")
    clipped = "return [...document.querySelectorAll('.textpoint')].filter(e => e.closest('[clip-path]')).length"
    title = "return document.querySelector('.plot')._fullLayout.xaxis.title.text"
    try:
        sized(browser, 420, 900)
        open_page(browser, path)
        assert count(browser, ".textpoint") == 2
        assert browser.execute_script(clipped) == 0
        assert browser.execute_script(title) == "gait cycle [%], heel strike to heel<br>strike of a step"
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_page_turns_dark_and_light(browser: Any, tmp_path: Path) -> None:
    open_page(browser, some_parts(grid(), tmp_path, front, parallel))
    ink = "return getComputedStyle(document.querySelector('[id^=pareto-front] .xtick text')).fill"
    before = browser.execute_script(ink)
    browser.find_element("id", "theme").click()
    wait_until(lambda: browser.execute_script(ink) != before, "the figures change their colours")
    browser.find_element("id", "theme").click()
    wait_until(lambda: browser.execute_script(ink) == before, "the figures change back")
    assert errors(browser) == []


def test_printing_draws_every_figure_in_light_colours(browser: Any, tmp_path: Path) -> None:
    browser.get(write_report(grid(), tmp_path / "report.html").resolve().as_uri())
    browser.find_element("id", "theme").click()
    browser.find_element("id", "paper").click()
    # As the browser announces printing; nothing below the first screen has been drawn before.
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    all_drawn = "return document.querySelectorAll('figure').length == document.querySelectorAll('[data-drawn]').length"
    wait_until(lambda: browser.execute_script(all_drawn), "every figure is drawn")
    text = "return getComputedStyle(document.querySelector('[id^=pareto-front] .xtick text')).fill"
    assert browser.execute_script(text) == "rgb(27, 36, 48)"
    browser.execute_script("dispatchEvent(new Event('afterprint'))")
    wait_until(lambda: browser.execute_script(text) == "rgb(232, 236, 241)", "the figures are dark again")
    assert errors(browser) == []


def printed(browser: Any, *, complete: bool) -> list[list[str]]:
    """The lines of each page on paper."""
    browser.execute_script(
        "const box = document.getElementById('paper'); if (box.checked !== arguments[0]) box.click()", complete
    )
    data = browser.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"]
    pdftotext = shutil.which("pdftotext")
    if pdftotext is None:
        pytest.skip("needs pdftotext")
    process = subprocess.run(
        [pdftotext, "-layout", "-", "-"], input=base64.b64decode(data), capture_output=True, check=True
    )
    pages = process.stdout.decode().rstrip("\f").split("\f")
    return [[line.strip() for line in page.splitlines() if line.strip()] for page in pages]


def test_paper_has_the_decision_on_one_page_and_headings_with_what_they_head(browser: Any, tmp_path: Path) -> None:
    result = grid(scenarios=("calm", "storm"), constraints=(at_most("cost", 900.0),))
    browser.get(write_report(result, tmp_path / "report.html").as_uri())
    (page,) = printed(browser, complete=False)
    text = "\n".join(page)
    for words in ("The recommended design is", "Recommended design", "Its limits", "To reproduce:", "designopt show"):
        assert words in text
    for control in ("SVG", "CSV", "Dark", "print all parts"):
        assert control not in text.split()
    pages = printed(browser, complete=True)
    assert len(pages) > 5
    headings = set(
        browser.execute_script("return [...document.querySelectorAll('h2, h3, figcaption')].map(e => e.textContent)")
    )
    assert [page[-1] for page in pages if page[-1] in headings] == []


def test_a_table_beyond_two_sheets_is_not_printed_in_tiny_letters(browser: Any, tmp_path: Path) -> None:
    def table(title: str, columns: int) -> Table:
        return Table(title, tuple(f"figure_{i} [N m]" for i in range(columns)), ((1234.5,) * columns,))

    path = tmp_path / "report.html"
    analysis = Section("Analysis", tables=(table("Wide", 30), table("Narrow", 4)))
    path.write_text(render(grid(), [analysis, Section("Record")]), encoding="utf-8")
    browser.get(path.as_uri())
    text = "\n".join(line for page in printed(browser, complete=True) for line in page)
    assert text.count("too wide for paper") == 1
    assert "figure_3" in text
    assert "figure_20" not in text


def test_the_figure_of_a_long_answer_keeps_its_height_and_titles_on_its_sheet(browser: Any, tmp_path: Path) -> None:
    """With three baselines and many limits, words and tables shrink, not the figure."""
    columns = ("", "robust", "unit", *(f"rule {i} (baseline), violates limits" for i in range(3)))
    rows = tuple((f"parameter {i}", 1.0, "kN/m", 1.0, 2.0, 3.0) for i in range(12))
    axes = {"xaxis": axis("flexion error [deg]"), "yaxis": axis("mismatch of the curves")}
    curve = Figure("The front", {"data": [{"y": [1, 2]}], "layout": layout(**axes)}, height=340)
    limits = Table("Its limits", ("limit", "value"), tuple((f"limit {i}", 1.0) for i in range(8)))
    answer = Section(
        "Overview",
        findings=tuple(f"Sentence {i} says something about the recommended design and its limits." for i in range(12)),
        figures=(curve,),
        tables=(Table("Recommended design", columns, rows), limits),
        notes=("To reproduce: the study.",),
    )
    path = tmp_path / "report.html"
    path.write_text(render(grid(), [answer, Section("Record")]), encoding="utf-8")
    browser.get(path.as_uri())
    pages = printed(browser, complete=False)
    assert len(pages) == 1
    assert "To reproduce:" in "\n".join(pages[0])
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    try:
        plot_height, title_top, figure_top = browser.execute_script(
            "const plot = document.querySelector('.plot'), top = e => e.getBoundingClientRect().top;"
            "return [plot._fullLayout._size.h, top(plot.querySelector('.ytitle')), top(plot)]"
        )
        assert plot_height > 130
        assert title_top > figure_top
    finally:
        browser.execute_script("dispatchEvent(new Event('afterprint'))")
    assert browser.execute_script("return document.querySelector('.tables').style.zoom") == ""


def test_a_drawing_in_space_fills_its_figure_on_every_screen(browser: Any, tmp_path: Path) -> None:
    """A long flat one is nearer on a wide screen than on a narrow one, in both projections."""
    ends = np.array([[[0.0, 0.0, 0.0], [2.0, 0.3, 0.5]], [[0.2, 0.0, 0.0], [2.0, 0.4, 0.5]]])
    motion = draw(DrawnMotion(np.array([0.0, 1.0]), {"body": ends}))
    parallel_eye = {"eye": {"x": 0.5, "y": -1.6, "z": 0.2}, "projection": {"type": "orthographic"}}
    scene = {**motion["layout"]["scene"], "camera": parallel_eye}
    figures = (Figure("Seen", motion), Figure("Parallel", {**motion, "layout": {**motion["layout"], "scene": scene}}))
    path = tmp_path / "report.html"
    path.write_text(render(grid(), [Section("Space", figures=figures)]), encoding="utf-8")
    read = """return [...document.querySelectorAll('.plot')].map(plot => plot._fullLayout.scene)
        .map(scene => [Math.hypot(...Object.values(scene.camera.eye)), scene.aspectratio.x])"""
    sizes = {}
    try:
        for width in (1200, 420):
            sized(browser, width, 900)
            open_page(browser, path)
            (distance, _), (_, length) = browser.execute_script(read)
            sizes[width] = distance, length
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert sizes[1200][0] < sizes[420][0]
    assert sizes[420][1] < sizes[1200][1] <= 1200 / 200


def test_a_drawing_in_space_leaves_the_labels_of_its_axes_room_on_paper(browser: Any, tmp_path: Path) -> None:
    """Its slider is not printed, so that the view is higher than on the screen."""
    ends = np.array([[[0.0, 0.0, 0.0], [2.0, 0.3, 0.5]], [[0.2, 0.0, 0.0], [2.0, 0.4, 0.5]]])
    figure = Figure("Seen", draw(DrawnMotion(np.array([0.0, 1.0]), {"body": ends})))
    path = tmp_path / "report.html"
    path.write_text(render(grid(), [Section("Space", figures=(figure,))]), encoding="utf-8")
    open_page(browser, path)
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    read = """const {scene, width, _size} = document.querySelector('.plot')._fullLayout;
        const {eye, center, up} = scene.camera;
        return [width, _size.h, ...[eye, center, up, scene.aspectratio].map(v => [v.x, v.y, v.z])]"""
    try:
        width, height, eye, centre, up, sides = browser.execute_script(read)
    finally:
        browser.execute_script("dispatchEvent(new Event('afterprint'))")
    forward = np.subtract(centre, eye) / np.linalg.norm(np.subtract(centre, eye))
    right = np.cross(forward, up) / np.linalg.norm(np.cross(forward, up))
    corners = np.array(list(itertools.product((-0.5, 0.5), repeat=3))) * sides - eye
    across = height / 2 * (corners @ right) / (corners @ forward) / np.tan(np.pi / 8)
    assert 0.3 * width < across.max() - across.min() < width - 150


def test_a_motion_drawn_to_scale_fills_its_figure_on_paper(browser: Any, tmp_path: Path) -> None:
    """Its slider and buttons leave their room, and its figure is as high as on the screen."""
    line = np.array([[[0.0, 0.0], [0.2, 1.8]], [[0.3, 0.0], [0.5, 1.8]]])
    motion = draw(DrawnMotion(np.array([0.0, 1.0]), {"body": line}))
    walk = Section("The walk", figures=(Figure("One cycle", motion, height=520),))
    path = tmp_path / "report.html"
    path.write_text(render(grid(), [Section("Analysis"), walk]), encoding="utf-8")
    browser.get(path.as_uri())
    wait_until(lambda: count(browser, "figure:not([data-drawn])") == 0, "every figure is drawn")
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    try:
        height, (low, high) = browser.execute_script(
            "const {_size, xaxis} = document.querySelector('.plot')._fullLayout; return [_size.h, xaxis.range]"
        )
        assert height > 400
        assert high - low < 3.5
    finally:
        browser.execute_script("dispatchEvent(new Event('afterprint'))")
    assert browser.execute_script("return document.querySelector('.plot')._fullLayout.sliders.length") == 1


def test_a_page_without_a_decision_has_its_results_on_paper_and_the_record_on_request(
    browser: Any, tmp_path: Path
) -> None:
    """Curves are lower there, so that three stand on a sheet, with text in proportion; panels keep their height, up to
    that of a sheet."""
    curve = Figure("Curve", {"data": [{"y": [1, 2]}], "layout": layout(xaxis=axis("time [s]"))}, height=400)
    panels_below = {"data": [{"y": [1, 2]}, {"y": [1, 2], "yaxis": "y2"}], "layout": {"yaxis": {}, "yaxis2": {}}}
    note = "Dots are the nodes of the mesh. " * 8
    panels = [Figure("Panels", {**panels_below}, note=note, height=height) for height in (400, 1500)]
    curves = Section("Curves", figures=(curve, *panels))
    analysed = Section("Analysis", tables=(Table("Analysis", ("a",), ((1.0,),)),))
    path = tmp_path / "report.html"
    path.write_text(render(grid(), [analysed, curves, Section("Record", on_request=True)]), encoding="utf-8")
    browser.get(path.as_uri())
    heights = "return [...document.querySelectorAll('.plot')].map(p => p.clientHeight)"
    displays = "return [...document.querySelectorAll('main > section')].map(s => getComputedStyle(s).display)"
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert browser.execute_script(displays) == ["block", "block", "none"]
        *low_plots, tallest = browser.execute_script(heights)
        assert low_plots == [225, 400]
        figure_height = browser.execute_script("return [...document.querySelectorAll('figure')].pop().offsetHeight")
        assert tallest > 800
        assert figure_height <= PAPER  # with its caption and note
        assert browser.execute_script("return document.querySelector('.plot')._fullLayout._size.h") > 150
        browser.execute_script("document.getElementById('paper').click(); dispatchEvent(new Event('beforeprint'))")
        assert browser.execute_script(displays) == ["block"] * 3
        assert browser.execute_script(heights)[:2] == [400, 400]
    finally:
        browser.execute_script("dispatchEvent(new Event('afterprint'))")
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_many_panels_stand_in_two_stacks_and_many_names_are_small_on_a_sheet(browser: Any, tmp_path: Path) -> None:
    panel_rows = [
        (f"activation of muscle {k}", "", [{"type": "scatter", "x": [0, 1], "y": [0.0, 1.0 + k]}]) for k in range(21)
    ]
    names = [f"muscle_{k}" for k in range(90)]
    lengths = {"data": [{"type": "scatter", "mode": "markers", "x": [1.0] * 90, "y": names}], "layout": layout()}
    path = tmp_path / "report.html"
    figures = (
        Figure("States", stacked(panel_rows, "time [s]"), height=3200),
        Figure("Lengths", lengths, height=1700),
    )
    path.write_text(render(grid(), [Section("Motion", figures=figures), Section("Record")]), encoding="utf-8")
    browser.get(path.as_uri())
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    wait_until(lambda: count(browser, "figure:not([data-drawn])") == 0, "every figure is drawn")
    overlaps = """const boxes = [...document.querySelectorAll(arguments[0])].map(e => e.getBoundingClientRect());
        return boxes.filter((a, i) => boxes.some((b, k) => k > i
            && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
            && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3)).length"""
    try:
        panel_heights = browser.execute_script(
            "const l = document.querySelector('.plot')._fullLayout; return [...Array(21).keys()].map(k => "
            "(d => (d[1] - d[0]) * l._size.h)(l[`yaxis${k ? k + 1 : ''}`].domain))"
        )
        assert min(panel_heights) > 50
        assert browser.execute_script(overlaps, "figure:nth-of-type(1) :is(.annotation-text, .ytick text)") == 0
        assert browser.execute_script(overlaps, "figure:nth-of-type(2) .ytick text") == 0
    finally:
        browser.execute_script("dispatchEvent(new Event('afterprint'))")
    assert browser.execute_script("return document.querySelector('.plot')._fullLayout.xaxis2") is None
    assert errors(browser) == []


def test_subplots_side_by_side_scroll_on_a_narrow_screen(browser: Any, tmp_path: Path) -> None:
    traces = [{"y": [1, 2], "xaxis": f"x{k}", "yaxis": f"y{k}"} for k in (1, 2, 3)]
    domains = {k: {"domain": [(k - 1) / 3, k / 3 - 0.05]} for k in (1, 2, 3)}
    layout = {f"{axis}axis{k if k > 1 else ''}": domains[k] if axis == "x" else {} for k in domains for axis in "xy"}
    rows = Figure("Joints", {"data": traces, "layout": layout}, width=900)
    path = tmp_path / "report.html"
    path.write_text(render(grid(), [Section("Joints", figures=(rows,))]), encoding="utf-8")
    try:
        sized(browser, 420, 900)
        browser.get(path.as_uri())
        widths = "const f = document.querySelector('figure'); return [f.scrollWidth, f.getBoundingClientRect().width]"
        inner, outer = browser.execute_script(widths)
        assert inner >= 900
        assert outer < 420
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 420
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_panels_of_three_columns_stand_in_two_on_a_narrow_screen(browser: Any, tmp_path: Path) -> None:
    figure = panels(
        ["hip", "knee", "ankle", "toe"],
        lambda i: [{"type": "scatter", "x": [0, 100], "y": [i, i + 1], "name": "right"}],
    )
    path = tmp_path / "report.html"
    angles = Section("Angles", figures=(Figure("Angles", figure, height=panel_height(4)),))
    path.write_text(render(grid(), [angles]), encoding="utf-8")
    read_panels = (
        "const plot = document.querySelector('.plot'), layout = plot._fullLayout, height = plot.clientHeight;"
        "return [height, ...[1, 2, 3, 4].map(i => [layout[`xaxis${i > 1 ? i : ''}`].domain, "
        "layout[`yaxis${i > 1 ? i : ''}`].domain, layout[`xaxis${i > 1 ? i : ''}`].title.text]).flat()]"
    )
    places = {}
    for width in (1400, 420):
        try:
            sized(browser, width, 900)
            browser.get(path.as_uri())
            wait_until(lambda: count(browser, "figure:not([data-drawn])") == 0, "every figure is drawn")
            places[width] = browser.execute_script(read_panels)
            assert browser.execute_script(
                "const f = document.querySelector('figure'); return f.scrollWidth <= f.clientWidth"
            )
        finally:
            browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert places[1400][0] == places[420][0] == panel_height(4)  # two rows in both
    assert places[420][1] == places[420][7] == [0, 0.4]  # hip above ankle
    assert places[420][4] == places[420][10] == [0.6, 1]  # knee above toe
    assert places[420][2][0] > places[420][8][1]
    assert [k for k in (3, 6, 9, 12) if places[420][k] == "cycle [%]"] == [9, 12]


def test_no_table_is_wider_than_the_paper(browser: Any, tmp_path: Path) -> None:
    columns = tuple(f"a long heading {i} [kN/mm^2]" for i in range(24))
    wide = Section("Wide", tables=(Table("Wide", columns, (tuple(1234.5678 + i for i in range(24)),) * 3),))
    path = tmp_path / "report.html"
    path.write_text(render(grid(), [wide]), encoding="utf-8")
    browser.get(path.as_uri())
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    widths = "return [...document.querySelectorAll('table')].map(t => t.getBoundingClientRect().width)"
    assert max(browser.execute_script(widths)) <= 687
    browser.execute_script("dispatchEvent(new Event('afterprint'))")
    assert browser.execute_script("return document.querySelector('table').style.zoom") == ""


def test_a_table_of_words_is_measured_as_it_is_printed(browser: Any, tmp_path: Path) -> None:
    """On a wide screen its cells break, on paper they do not; the paper has its folded rows."""
    rows = tuple((k, *(f"spring of {100 * k + i} N m/rad" for i in range(7))) for k in range(3))
    head = ("row", *(f"design {i}" for i in range(7)))
    short = (*((k, *("x" * 7)) for k in range(6)), *rows)
    tables = (Table("Words", head, rows), Table("Folded words", head, short, folded_from=6))
    words = Section("Words", tables=tables)
    path = tmp_path / "report.html"
    path.write_text(render(grid(), [words]), encoding="utf-8")
    browser.set_window_size(1400, 1000)
    browser.get(path.as_uri())
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        sized(browser, 688, 1000)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 688
    finally:
        browser.execute_script("dispatchEvent(new Event('afterprint'))")
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_words_are_with_their_table_and_a_short_table_is_not_with_the_next_part(browser: Any, tmp_path: Path) -> None:
    """Where a part with findings and a table does not fit below a table of one row."""
    short = Section("Stages", tables=(Table("Stage", ("name", "designs"), (("front", 45),)),))
    rows = tuple((f"row {k}",) for k in range(12))
    figures = Section("Front", findings=("A finding.",), tables=(Table("Designs", ("row",), rows),))
    head = Section("Head", tables=(Table("Lines", ("line",), tuple((f"line {k}",) for k in range(16))),))
    path = tmp_path / "report.html"
    path.write_text(render(grid(), [head, short, figures, Section("Record")]), encoding="utf-8")
    browser.get(path.as_uri())
    first, second = printed(browser, complete=True)
    assert first[-3] == "Stage"
    assert first[-1].split() == ["front", "45"]
    assert second[:3] == ["Front", "A finding.", "Designs"]


def test_paper_has_the_whole_option_of_a_selector_and_the_first_rows_of_a_very_long_table(
    browser: Any, tmp_path: Path
) -> None:
    option = "stiffness 199938 N/m, link_damping 0.439, frequency 39.3 rad/s, drive_damping 0.503, mass 12.5 kg (best)"
    plot = {"data": [{"type": "scatter", "x": [0.0, 1.0], "y": [0.0, 1.0]}], "layout": {}}
    figure = Figure("A", plot, choices=(Selector("Design", (option, "b")),), variants={(0,): plot, (1,): plot})
    tables = tuple(
        Table(f"Of {n}", ("row",), tuple((f"r{n}-{k}",) for k in range(n)), visible_rows=n, folded_from=6)
        for n in (30, 130)
    )
    path = tmp_path / "report.html"
    path.write_text(render(grid(), [Section("Parts", figures=(figure,), tables=tables), Section("Record")]), "utf-8")
    browser.get(path.as_uri())
    text = " ".join(line for page in printed(browser, complete=True) for line in page)
    assert f"Design {option}" in text
    assert text.count("r30-") == 30
    assert text.count("r130-") == 6
    assert "124 more rows are on the page and in the CSV file." in text
    browser.execute_script("document.querySelectorAll('.unfold input')[1].click()")
    text = " ".join(line for page in printed(browser, complete=True) for line in page)
    assert text.count("r130-") == 130


def test_at_least_three_rows_of_a_table_are_on_a_sheet(browser: Any, tmp_path: Path) -> None:
    tables = tuple(Table(f"Table {i}", ("row",), tuple((f"t{i} r{k}",) for k in range(14 + i))) for i in range(12))
    path = tmp_path / "report.html"
    path.write_text(render(grid(), [Section("Tables", tables=tables), Section("Record")]), encoding="utf-8")
    browser.get(path.as_uri())
    pages = printed(browser, complete=True)
    rows = Counter((n, line.split()[0]) for n, page in enumerate(pages) for line in page if line.startswith("t"))
    assert sum(rows.values()) == sum(14 + i for i in range(12))
    assert len(rows) > 15  # some tables are on two sheets
    assert min(rows.values()) >= 3


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
    path = some_parts(result, tmp_path, parallel, importance)
    try:
        sized(browser, width, 900)
        browser.get(path.as_uri())
        browser.execute_script("document.querySelectorAll('figure').forEach(f => f.scrollIntoView())")
        wait_until(lambda: count(browser, "figure:not([data-drawn])") == 0, "every figure is drawn")
        assert browser.execute_script(CUT_TEXTS) == []
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_figures_fit_a_narrow_screen(browser: Any, tmp_path: Path) -> None:
    path = some_parts(grid(), tmp_path, front, map_figures, parallel)
    try:
        sized(browser, 420, 900)
        browser.get(path.as_uri())
        browser.execute_script("document.querySelectorAll('figure').forEach(f => f.scrollIntoView())")
        wait_until(lambda: count(browser, "figure:not([data-drawn])") == 0, "every figure is drawn")
        too_wide = (
            "return [...document.querySelectorAll('figure')].filter(f => f.scrollWidth > f.clientWidth).map(f => f.id)"
        )
        assert browser.execute_script(too_wide) == []
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_an_animation_plays_and_begins_again(browser: Any, tmp_path: Path) -> None:
    frames = [{"name": str(i), "data": [{"x": [i], "y": [i]}], "traces": [0]} for i in range(5)]
    settings = {"frame": {"duration": 40, "redraw": False}, "transition": {"duration": 0}, "fromcurrent": True}
    play = {"name": "play", "label": "Play", "method": "animate", "args": [None, settings]}
    axes = {"range": [-1, 6]}
    menus = [{"type": "buttons", "buttons": [play]}]
    plot = {
        "data": [{"type": "scatter", "mode": "markers", "x": [0], "y": [0]}],
        "layout": {"xaxis": axes, "yaxis": axes, "updatemenus": menus},
        "frames": frames,
    }
    path = tmp_path / "animation.html"
    path.write_text(render(grid(), [Section("Moves", figures=(Figure("It", plot, loop=True),))]), encoding="utf-8")
    open_page(browser, path)
    at = "return document.querySelector('.plot').data[0].x[0]"
    browser.find_element("css selector", ".updatemenu-button").click()
    wait_until(lambda: browser.execute_script(at) == 4, "the last frame is shown")
    wait_until(lambda: browser.execute_script(at) < 4, "it begins again")
    assert errors(browser) == []


def test_a_brush_filters_the_table_and_sets_off_designs_in_the_other_figures(browser: Any, tmp_path: Path) -> None:
    result = grid()
    open_page(browser, some_parts(result, tmp_path, front, parallel))
    heading = "return document.querySelector('.brushed h3').textContent"
    feasible, good = int(result.outcomes.feasible.sum()), len(result.front())
    # At first the front is brushed; nothing fades in the other figures before the reader has brushed.
    assert browser.execute_script(heading) == f"Designs within the brushes: {good} of {feasible}"
    assert count(browser, "tr.out") == 0
    in_brush = result.outcomes.feasible & (result.outcomes.figures["mass"][:, 0] <= 30.0)
    browser.execute_script(
        "const plot = document.querySelector('[id^=parallel] .plot');"
        "const off = {'dimensions[4].constraintrange': null}, on = {'dimensions[2].constraintrange': [[0, 30]]};"
        "return Plotly.restyle(plot, {...off, ...on})"
    )
    brushed = f"Designs within the brushes: {in_brush.sum()} of {feasible}"
    wait_until(lambda: browser.execute_script(heading) == brushed, "the table has the designs within the brush")
    rows = browser.execute_script(
        "return [...document.querySelectorAll('.brushed tbody tr td:first-child')].map(c => Number(c.textContent))"
    )
    assert set(rows) <= set(in_brush.nonzero()[0].tolist())
    picked = (
        "const plot = document.querySelector('[id^=pareto-front] .plot');"
        "const trace = plot.data.findIndex(t => t.name === 'Pareto front');"
        "return Array.from(plot.data[trace].selectedpoints || [])"
    )
    expected = [i for i, row in enumerate(result.front()) if in_brush[row]]
    wait_until(lambda: browser.execute_script(picked) == expected, "the front sets off the designs within the brush")
    first_rows = result.front()[:12]
    assert count(browser, "tr.out") == sum(not in_brush[row] for row in first_rows)
    # The brush outlives a change of colours.
    browser.find_element("id", "theme").click()
    wait_until(lambda: browser.execute_script(picked) == expected, "the front is still set off")
    browser.execute_script(
        "const plot = document.querySelector('[id^=parallel] .plot');"
        "return Plotly.restyle(plot, {'dimensions[2].constraintrange': null})"
    )
    full_heading = f"Designs within the brushes: {feasible} of {feasible}"
    wait_until(lambda: browser.execute_script(heading) == full_heading, "without a brush all designs are kept")
    assert count(browser, "tr.out") == 0
    assert errors(browser) == []


def test_every_figure_is_saved_as_svg_without_a_network(browser: Any, tmp_path: Path) -> None:
    open_page(browser, some_parts(grid(), tmp_path, front, parallel))
    browser.execute_cdp_cmd("Page.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    assert count(browser, "button.svg") == count(browser, "figure")
    button = browser.find_element("css selector", "[id^=pareto-front] button.svg")
    browser.execute_script("arguments[0].click()", button)
    wait_until(lambda: list(tmp_path.glob("pareto-front*.svg")), "the file is there")
    (file,) = tmp_path.glob("pareto-front*.svg")
    wait_until(lambda: file.read_text(encoding="utf-8").rstrip().endswith("</svg>"), "the file is whole")
    assert "mass [kg]" in file.read_text(encoding="utf-8")
    assert errors(browser) == []


def test_hovering_tells_the_values_of_a_design(browser: Any, tmp_path: Path) -> None:
    result = grid()
    open_page(browser, some_parts(result, tmp_path, front, parallel))
    first = browser.execute_script(
        "const plot = document.querySelector('[id^=pareto-front] .plot');"
        "return Array.from(plot.data.find(t => t.name === 'Pareto front').customdata[0])"
    )
    row = int(result.front()[0])
    expected = [row, *result.outcomes.X[row], *result.outcomes.objectives[row]]
    assert first[:5] == pytest.approx(expected, rel=1e-6)  # single precision


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
    try:
        sized(browser, 420, 900)
        browser.get(path.as_uri())
        browser.execute_script("document.querySelectorAll('figure').forEach(f => f.scrollIntoView())")
        wait_until(lambda: count(browser, "figure:not([data-drawn])") == 0, "every figure is drawn")
        assert count(browser, ".modebar") == 0  # it would cover legends
        distances = browser.execute_script(above)
        assert len(distances) == 2
        assert min(distances) >= 0.0
        angles = browser.execute_script(
            "return [...document.querySelectorAll('.parcoords .axis-title')].map(e => e.getAttribute('transform'))"
        )
        assert angles
        assert all("rotate(-35)" in angle for angle in angles)
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_no_line_breaks_between_a_number_and_its_unit(browser: Any, tmp_path: Path) -> None:
    table = Table("Tolerances", ("moment [N m]",), (("1 %",),), note="at 5 N/mm in 3 sessions")
    command = "designopt show 3 km"
    findings = ("7 %", "stable ≥ 2e-5 1/s")
    facts = tuple((name, value) for name, value in (("programs", "7"), ("best", "75.14 N^2 m^2 s"), ("error", "0.004")))
    section = Section(
        "A", introduction="It bears 12 kN.", findings=findings, tables=(table,), notes=(command,), facts=facts
    )
    path = tmp_path / "report.html"
    path.write_text(render(grid(), [section]), encoding="utf-8")
    browser.get(path.as_uri())
    text = browser.execute_script("return document.querySelector('main').textContent")
    for words in ("moment [N\u00a0m]", "1\u00a0%", "12\u00a0kN.", "7\u00a0%", "5\u00a0N/mm in 3 sessions", command):
        assert words in text
    unbroken = (
        "return [...document.querySelectorAll('.option')].map(e => [e.textContent, getComputedStyle(e).whiteSpace])"
    )
    assert browser.execute_script(unbroken) == [["2e-5", "nowrap"]]
    heights = "return [...document.querySelectorAll('.facts dd')].map(e => e.getBoundingClientRect().height)"
    try:
        sized(browser, 420, 900)
        assert len(set(browser.execute_script(heights))) == 1
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("dimensions", [2, 3])
def test_maps_stand_below_one_another_under_their_colours_on_a_narrow_screen(
    browser: Any, tmp_path: Path, dimensions: int
) -> None:
    space = tuple(DesignVariable(f"parameter_{name}", "real", low=0.0, high=1.0) for name in "abc"[:dimensions])
    X = np.random.default_rng(1).random((40, dimensions))
    result = beam_result(X, {"mass": X[:, 0], "sag": X[:, 1]}, space=space)
    path = some_parts(result, tmp_path, map_figures)
    boxes = """const box = e => { const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; };
        const all = selector => [...document.querySelectorAll(selector)].map(box);
        return [all('.plot .legend'), all('.plot .cbfills'), all(".plot [class^='x'][class$='title']"), all('.plot')]"""
    try:
        sized(browser, 420, 900)
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
        assert all(below[1] < above[0] for below, above in pairwise(heights))
        assert len(titles) == len(panels_across)
        assert bar[3] <= legend[1] + 1.0  # above the legend
        assert plot[0] <= bar[0] < bar[2] <= plot[2] <= 420
        assert bar[2] - bar[0] > 3 * (bar[3] - bar[1])  # it lies
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_numbers_of_long_names_are_in_sight_on_a_narrow_screen(browser: Any, tmp_path: Path) -> None:
    row = ("best flexion error and robust", 0.04983, 6.571, 10.5)
    table = Table("In short", ("design", "mismatch (minimize)", "flexion_error [deg]", "clearance [mm]"), (row,))
    path = tmp_path / "report.html"
    path.write_text(render(grid(), [Section("Overview", tables=(table,))]), encoding="utf-8")
    try:
        sized(browser, 420, 900)
        browser.get(path.as_uri())
        right = "return [...document.querySelectorAll('td')].map(e => e.getBoundingClientRect().right)"
        name, first, second, _ = browser.execute_script(right)
        assert name < 200
        assert first < second < 420
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_titles_of_narrow_panels_are_broken_and_do_not_meet(browser: Any, tmp_path: Path) -> None:
    """After a comma if that is enough; on a screen that is wide enough they stay."""
    text = "<b>best mismatch, compromise</b><br>k 19304 N/m, c/k 0.0228 s"
    above = {"y": 1, "xref": "paper", "yref": "paper", "xanchor": "center", "yanchor": "bottom", "showarrow": False}
    titles = [{**above, "text": text, "x": 0.125 + 0.25 * k, "font": {"size": 12}} for k in range(4)]
    figure = Figure("Legs", {"data": [{"y": [1, 2]}], "layout": layout(annotations=titles)})
    path = tmp_path / "report.html"
    path.write_text(render(grid(), [Section("Legs", figures=(figure,))]), encoding="utf-8")
    open_page(browser, path)
    read = "return document.querySelector('.plot').layout.annotations.map(title => title.text)"
    assert browser.execute_script(read) == [text] * 4
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    try:
        broken = "<b>best\u00a0mismatch,<br>compromise</b><br>k\u00a019304\u00a0N/m,<br>c/k\u00a00.0228\u00a0s"
        assert browser.execute_script(read) == [broken] * 4
        boxes = browser.execute_script(
            "return [...document.querySelectorAll('.annotation-text')].map(t => t.getBoundingClientRect())"
            ".map(r => [r.left, r.right])"
        )
        assert all(right < left for (_, right), (left, _) in itertools.pairwise(boxes))
    finally:
        browser.execute_script("dispatchEvent(new Event('afterprint'))")


def test_a_legend_of_many_rows_leaves_the_plot_its_height_on_paper(browser: Any, tmp_path: Path) -> None:
    def plot_height(count: int) -> float:
        data = [{"y": [k, 2], "name": f"design {k}: structure smith, kp 1.2, ti 1.3 s"} for k in range(count)]
        figure = Figure("Responses", {"data": data, "layout": layout()}, height=340)
        path = tmp_path / "report.html"
        path.write_text(render(grid(), [Section("A", figures=(figure,)), Section("B")]), encoding="utf-8")
        open_page(browser, path)
        browser.find_element("id", "paper").click()
        browser.execute_script("dispatchEvent(new Event('beforeprint'))")
        try:
            return float(browser.execute_script("return document.querySelector('.plot')._fullLayout._size.h"))
        finally:
            browser.execute_script("dispatchEvent(new Event('afterprint'))")

    assert plot_height(7) > 0.85 * plot_height(2)


def test_all_designs_of_a_legend_are_named_alike_on_a_narrow_screen(browser: Any, tmp_path: Path) -> None:
    """One name is too long: none has its values."""
    names = ("best mismatch, compromise: k 19304 N/m, c/k 0.0228 s", "robust: k 19999 N/m, c/k 0.02 s", "recorded")
    figure = Figure(
        "Angle", {"data": [{"y": [1, k], "name": name} for k, name in enumerate(names)], "layout": layout()}
    )
    path = tmp_path / "report.html"
    path.write_text(render(grid(), [Section("Angle", figures=(figure,))]), encoding="utf-8")
    try:
        sized(browser, 420, 900)
        open_page(browser, path)
        legend = browser.execute_script("return document.querySelector('.plot').data.map(trace => trace.name)")
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert legend == ["best mismatch, compromise", "robust", "recorded"]


def test_a_unit_and_a_limit_in_a_head_or_a_name_are_not_broken(browser: Any, tmp_path: Path) -> None:
    table = Table("A", ("", "torque [N m/kg]"), (("stable [1/s] (≥ 1e-6)", 1.0), ("peak [N m] (minimize)", 2.0)))
    path = tmp_path / "report.html"
    path.write_text(render(grid(), [Section("A", tables=(table,))]), encoding="utf-8")
    browser.get(path.as_uri())
    text = browser.execute_script("return document.querySelector('table').textContent")
    for unbroken in ("torque [N\u00a0m/kg]", "(≥\u00a01e-6)", "peak [N\u00a0m] (minimize)"):
        assert unbroken in text


def test_a_legend_above_panels_follows_the_width_of_a_narrow_screen(browser: Any, tmp_path: Path) -> None:
    figure = panels(
        ["hip", "knee", "ankle", "toe"],
        lambda i: [
            {"type": "scatter", "x": [0, 100], "y": [i, i + 1], "name": name} for name in ("ground", "drives", "device")
        ],
    )
    path = tmp_path / "report.html"
    moments = Section("Moments", figures=(Figure("Moments", figure, height=panel_height(4)),))
    path.write_text(render(grid(), [moments]), encoding="utf-8")
    read = """const plot = document.querySelector('.plot');
        const box = name => plot.querySelector(name).getBoundingClientRect();
        return [plot._fullLayout.width, plot.clientWidth, box('.legend').bottom, box('.annotation-text').top]"""
    try:
        sized(browser, 360, 900)
        open_page(browser, path)
        for width in (360, 420):
            sized(browser, width, 900)
            wait_until(lambda: len(set(browser.execute_script(read)[:2])) == 1, "the figure has its width")
            _, _, legend_bottom, title_top = browser.execute_script(read)
            assert legend_bottom < title_top + 4
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
