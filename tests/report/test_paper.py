"""The page on paper: sheets, sizes of text and figures, tables."""

import base64
import itertools
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import count, errors, open_page, paper_layout, screen, wait_until
from designopt_walking.report.panels import panel_height, panels
from given_pages import page_of
from given_results import at_most, grid

from designopt.report import Figure, Section, Table, write_report
from designopt.report.colours import axis, layout
from designopt.report.drawing import DrawnMotion, draw
from designopt.report.parts.motion.trajectories import stacked
from designopt.report.section import Selector

#: Pixels of a sheet of A4 within its margins.
PAPER = (297 - 2 * 14) / 25.4 * 96


def test_printing_draws_every_figure_in_light_colours(browser: Any, tmp_path: Path) -> None:
    browser.get(write_report(grid(), tmp_path / "report.html").resolve().as_uri())
    browser.find_element("id", "theme").click()
    browser.find_element("id", "paper").click()
    # As the browser announces printing; nothing below the first screen has been drawn before.
    text = "return getComputedStyle(document.querySelector('[id^=pareto-front] .xtick text')).fill"
    with paper_layout(browser):
        wait_until(lambda: count(browser, "figure:not([data-drawn])") == 0, "every figure is drawn")
        assert browser.execute_script(text) == "rgb(27, 36, 48)"
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

    analysis = Section("Analysis", tables=(table("Wide", 30), table("Narrow", 4)))
    path = page_of(tmp_path, analysis, Section("Record"))
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
    path = page_of(tmp_path, answer, Section("Record"))
    browser.get(path.as_uri())
    pages = printed(browser, complete=False)
    assert len(pages) == 1
    assert "To reproduce:" in "\n".join(pages[0])
    with paper_layout(browser):
        plot_height, title_top, figure_top = browser.execute_script(
            "const plot = document.querySelector('.plot'), top = e => e.getBoundingClientRect().top;"
            "return [plot._fullLayout._size.h, top(plot.querySelector('.ytitle')), top(plot)]"
        )
        assert plot_height > 130
        assert title_top > figure_top
    assert browser.execute_script("return document.querySelector('.tables').style.zoom") == ""


def test_the_figures_of_an_answer_stand_side_by_side_on_paper(browser: Any, tmp_path: Path) -> None:
    """And one above the other beside it on a screen."""
    axes = {"xaxis": axis("time [s]"), "yaxis": axis("angle [deg]")}
    figures = [Figure(title, {"data": [{"y": [1, 2]}], "layout": layout(**axes)}, height=340) for title in "ab"]
    answer = Section("Overview", findings=("A sentence.",), figures=(*figures,), notes=("To reproduce: the study.",))
    browser.get(page_of(tmp_path, answer, Section("Record")).as_uri())
    boxes = """return [...document.querySelectorAll('#overview-1 .main-svg:first-child')].map(
        plot => {const {left, right, top, bottom} = plot.getBoundingClientRect(); return [left, right, top, bottom]})"""
    wait_until(lambda: count(browser, "figure[data-drawn]") == 2, "both figures are drawn")
    (left, _, _, bottom), (left_of_second, _, top_of_second, _) = browser.execute_script(boxes)
    assert left == left_of_second
    assert bottom <= top_of_second
    with paper_layout(browser):
        (left, right, top, _), (left_of_second, right_of_second, top_of_second, _) = browser.execute_script(boxes)
    assert right <= left_of_second
    assert top == top_of_second
    assert right_of_second - left <= (210 - 2 * 14) / 25.4 * 96


def test_a_motion_drawn_to_scale_fills_its_figure_on_paper(browser: Any, tmp_path: Path) -> None:
    """Its slider and buttons leave their room, and its figure is as high as on the screen."""
    line = np.array([[[0.0, 0.0], [0.2, 1.8]], [[0.3, 0.0], [0.5, 1.8]]])
    motion = draw(DrawnMotion(np.array([0.0, 1.0]), {"body": line}))
    walk = Section("The walk", figures=(Figure("One cycle", motion, height=520),))
    path = page_of(tmp_path, Section("Analysis"), walk)
    browser.get(path.as_uri())
    wait_until(lambda: count(browser, "figure:not([data-drawn])") == 0, "every figure is drawn")
    with paper_layout(browser):
        height, (low, high) = browser.execute_script(
            "const {_size, xaxis} = document.querySelector('.plot')._fullLayout; return [_size.h, xaxis.range]"
        )
        assert height > 400
        assert high - low < 3.5
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
    path = page_of(tmp_path, analysed, curves, Section("Record", on_request=True))
    browser.get(path.as_uri())
    heights = "return [...document.querySelectorAll('.plot')].map(p => p.clientHeight)"
    displays = "return [...document.querySelectorAll('main > section')].map(s => getComputedStyle(s).display)"
    with paper_layout(browser):
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


@pytest.mark.parametrize(("number", "least"), [(21, 50.0), (34, 28.0), (44, 15.0)])
def test_many_panels_stand_in_two_stacks_and_many_names_are_small_on_a_sheet(
    browser: Any, tmp_path: Path, number: int, least: float
) -> None:
    """The titles of many panels stand in the gaps between them."""
    panel_rows = [
        (
            f"activation of muscle {k}",
            "",
            [{"type": "scatter", "x": [0, 1], "y": [0.0, 1.0 + k] if k else [-0.42, -0.17]}],
        )
        for k in range(number)
    ]
    names = [f"muscle_{k}" for k in range(90)]
    lengths = {"data": [{"type": "scatter", "mode": "markers", "x": [1.0] * 90, "y": names}], "layout": layout()}
    figures = (
        Figure("States", stacked(panel_rows), height=3200),
        Figure("Lengths", lengths, height=1700),
    )
    path = page_of(tmp_path, Section("Motion", figures=figures), Section("Record"))
    browser.get(path.as_uri())
    overlaps = """const texts = [...document.querySelectorAll(arguments[0])];
        const boxes = texts.filter(e => e.style.visibility !== "hidden").map(e => e.getBoundingClientRect());
        return boxes.filter((a, i) => boxes.some((b, k) => k > i
            && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
            && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3)).length"""
    with paper_layout(browser):
        wait_until(lambda: count(browser, "figure:not([data-drawn])") == 0, "every figure is drawn")
        ends = browser.execute_script(
            "const l = document.querySelector('.plot')._fullLayout; return [...Array(arguments[0]).keys()].map(k => "
            "l[`yaxis${k ? k + 1 : ''}`].domain.map(share => share * l._size.h))",
            number,
        )
        title_height = browser.execute_script(
            "return document.querySelector('.annotation-text').getBoundingClientRect().height"
        )
        assert min(high - low for low, high in ends) > least
        left_stack = ends[: (number + 1) // 2]
        # Plotly's margin of a title, and a line at the lower end of the panel above it.
        assert min(low - high for (low, _), (_, high) in itertools.pairwise(left_stack)) > title_height + 6
        names_and_numbers = "figure:nth-of-type(1) :is(.annotation-text, [class^=y][class$=tick] text)"
        assert browser.execute_script(overlaps, names_and_numbers) == 0
        assert browser.execute_script(overlaps, "figure:nth-of-type(2) .ytick text") == 0
    assert browser.execute_script("return document.querySelector('.plot')._fullLayout.xaxis2") is None
    assert errors(browser) == []


def test_paper_has_the_note_of_a_figure_without_what_the_pointer_does_and_highlighted_rows(
    browser: Any, tmp_path: Path
) -> None:
    plot = {"data": [{"y": [1, 2]}], "layout": layout()}
    figures = (Figure("A", plot, note="Both fell.", hint="A click hides one."), Figure("B", plot, hint="Drag it."))
    rows = Table("Rows", ("row",), (("first",), ("second",)), marked=frozenset({1}))
    path = page_of(tmp_path, Section("Parts", figures=figures, tables=(rows,)), Section("Record"))
    browser.get(path.as_uri())
    assert "Both fell. A click hides one." in browser.execute_script("return document.querySelector('main').innerText")
    text = " ".join(line for page in printed(browser, complete=True) for line in page)
    assert "Both fell." in text
    assert "click" not in text
    assert "Drag" not in text
    adjust = "return [...document.querySelectorAll('td')].map(e => getComputedStyle(e).printColorAdjust)"
    with paper_layout(browser):
        assert browser.execute_script(adjust) == ["economy", "exact"]


def test_numbers_beside_narrow_panels_stand_in_the_gaps_between_them_on_paper(browser: Any, tmp_path: Path) -> None:
    data = [{"type": "scatter", "x": [0, 100], "y": [0.0, 0.0151]}]
    figure = panels(["hip, right", "hip, left", "lumbar"], lambda i: data)
    path = page_of(tmp_path, Section("Moments", figures=(Figure("Moments", figure, height=panel_height(3)),)))
    open_page(browser, path)
    read = """const box = e => e.getBoundingClientRect(), plot = document.querySelector('.plot');
        const {_offset, _length} = plot._fullLayout.xaxis2;
        const labels = [...plot.querySelectorAll('.y3tick text')].map(box);
        return [Math.min(...labels.map(b => b.left)), box(plot).left + _offset + _length]"""
    with paper_layout(browser):
        left, end_of_panel = browser.execute_script(read)
    assert left > end_of_panel + 1


def test_no_table_is_wider_than_the_paper(browser: Any, tmp_path: Path) -> None:
    columns = tuple(f"a long heading {i} [kN/mm^2]" for i in range(24))
    wide = Section("Wide", tables=(Table("Wide", columns, (tuple(1234.5678 + i for i in range(24)),) * 3),))
    path = page_of(tmp_path, wide)
    browser.get(path.as_uri())
    widths = "return [...document.querySelectorAll('table')].map(t => t.getBoundingClientRect().width)"
    with paper_layout(browser):
        assert max(browser.execute_script(widths)) <= 687
    assert browser.execute_script("return document.querySelector('table').style.zoom") == ""


def test_a_table_of_words_is_measured_as_it_is_printed(browser: Any, tmp_path: Path) -> None:
    """On a wide screen its cells break, on paper they do not; the paper has its folded rows."""
    rows = tuple((k, *(f"spring of {100 * k + i} N m/rad" for i in range(7))) for k in range(3))
    head = ("row", *(f"design {i}" for i in range(7)))
    short = (*((k, *("x" * 7)) for k in range(6)), *rows)
    tables = (Table("Words", head, rows), Table("Folded words", head, short, folded_from=6))
    words = Section("Words", tables=tables)
    path = page_of(tmp_path, words)
    browser.set_window_size(1400, 1000)
    browser.get(path.as_uri())
    with paper_layout(browser), screen(browser, 688, 1000):
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 688


def test_words_are_with_their_table_and_a_short_table_is_not_with_the_next_part(browser: Any, tmp_path: Path) -> None:
    """Where a part with findings and a table does not fit below a table of one row."""
    short = Section("Stages", tables=(Table("Stage", ("name", "designs"), (("front", 45),)),))
    rows = tuple((f"row {k}",) for k in range(12))
    figures = Section("Front", findings=("A finding.",), tables=(Table("Designs", ("row",), rows),))
    head = Section("Head", tables=(Table("Lines", ("line",), tuple((f"line {k}",) for k in range(16))),))
    browser.get(page_of(tmp_path, head, short, figures, Section("Record")).as_uri())
    first, second = printed(browser, complete=True)
    assert first[-3] == "Stage"
    assert first[-1].split() == ["front", "45"]
    assert second[:3] == ["Front", "A finding.", "Designs"]


def test_at_least_three_rows_of_a_table_are_on_a_sheet(browser: Any, tmp_path: Path) -> None:
    tables = tuple(Table(f"Table {i}", ("row",), tuple((f"t{i} r{k}",) for k in range(14 + i))) for i in range(12))
    path = page_of(tmp_path, Section("Tables", tables=tables), Section("Record"))
    browser.get(path.as_uri())
    pages = printed(browser, complete=True)
    rows = Counter((n, line.split()[0]) for n, page in enumerate(pages) for line in page if line.startswith("t"))
    assert sum(rows.values()) == sum(14 + i for i in range(12))
    assert len(rows) > 15  # some tables are on two sheets
    assert min(rows.values()) >= 3


def test_titles_of_narrow_panels_are_broken_and_do_not_meet(browser: Any, tmp_path: Path) -> None:
    """After a comma if that is enough; on a screen that is wide enough they stay."""
    text = "<b>best mismatch, compromise</b><br>k 19304 N/m, c/k 0.0228 s"
    above = {"y": 1, "xref": "paper", "yref": "paper", "xanchor": "center", "yanchor": "bottom", "showarrow": False}
    titles = [{**above, "text": text, "x": 0.125 + 0.25 * k, "font": {"size": 12}} for k in range(4)]
    figure = Figure("Legs", {"data": [{"y": [1, 2]}], "layout": layout(annotations=titles)})
    open_page(browser, page_of(tmp_path, Section("Legs", figures=(figure,))))
    read = "return document.querySelector('.plot').layout.annotations.map(title => title.text)"
    assert browser.execute_script(read) == [text] * 4
    with paper_layout(browser):
        broken = "<b>best\u00a0mismatch,<br>compromise</b><br>k\u00a019304\u00a0N/m,<br>c/k\u00a00.0228\u00a0s"
        assert browser.execute_script(read) == [broken] * 4
        boxes = browser.execute_script(
            "return [...document.querySelectorAll('.annotation-text')].map(t => t.getBoundingClientRect())"
            ".map(r => [r.left, r.right])"
        )
        assert all(right < left for (_, right), (left, _) in itertools.pairwise(boxes))


def test_a_legend_of_many_rows_leaves_the_plot_its_height_on_paper(browser: Any, tmp_path: Path) -> None:
    def plot_height(count: int) -> float:
        data = [{"y": [k, 2], "name": f"design {k}: structure smith, kp 1.2, ti 1.3 s"} for k in range(count)]
        figure = Figure("Responses", {"data": data, "layout": layout()}, height=340)
        open_page(browser, page_of(tmp_path, Section("A", figures=(figure,)), Section("B")))
        browser.find_element("id", "paper").click()
        with paper_layout(browser):
            return float(browser.execute_script("return document.querySelector('.plot')._fullLayout._size.h"))

    assert plot_height(7) > 0.85 * plot_height(2)


def test_a_drawing_in_space_leaves_the_labels_of_its_axes_room_on_paper(browser: Any, tmp_path: Path) -> None:
    """Its slider is not printed, so that the view is higher than on the screen."""
    ends = np.array([[[0.0, 0.0, 0.0], [2.0, 0.3, 0.5]], [[0.2, 0.0, 0.0], [2.0, 0.4, 0.5]]])
    figure = Figure("Seen", draw(DrawnMotion(np.array([0.0, 1.0]), {"body": ends})))
    path = page_of(tmp_path, Section("Space", figures=(figure,)))
    open_page(browser, path)
    read = """const {scene, width, _size} = document.querySelector('.plot')._fullLayout;
        const {eye, center, up} = scene.camera;
        return [width, _size.h, ...[eye, center, up, scene.aspectratio].map(v => [v.x, v.y, v.z])]"""
    with paper_layout(browser):
        width, height, eye, centre, up, sides = browser.execute_script(read)
    forward = np.subtract(centre, eye) / np.linalg.norm(np.subtract(centre, eye))
    right = np.cross(forward, up) / np.linalg.norm(np.cross(forward, up))
    corners = np.array(list(itertools.product((-0.5, 0.5), repeat=3))) * sides - eye
    across = height / 2 * (corners @ right) / (corners @ forward) / np.tan(np.pi / 8)
    assert 0.3 * width < across.max() - across.min() < width - 150


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
    path = page_of(tmp_path, Section("Parts", figures=(figure,), tables=tables), Section("Record"))
    browser.get(path.as_uri())
    text = " ".join(line for page in printed(browser, complete=True) for line in page)
    assert f"Design {option}" in text
    assert text.count("r30-") == 30
    assert text.count("r130-") == 6
    assert "124 more rows are on the page and in the CSV file." in text
    browser.execute_script("document.querySelectorAll('.unfold input')[1].click()")
    text = " ".join(line for page in printed(browser, complete=True) for line in page)
    assert text.count("r130-") == 130
