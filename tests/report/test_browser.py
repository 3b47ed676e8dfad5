"""The page in a browser: it loads without errors, figures are drawn, selectors and colours work, animations play."""

from pathlib import Path
from typing import Any

import pytest
from browser import count, errors, open_page, screen, wait_until
from given_pages import page_of, page_of_parts
from given_results import at_most, grid, maximize, minimize

from designopt.report import Figure, Section, Table, write_report
from designopt.report.colours import CELL_TEXT, ORDERED, layout
from designopt.report.designs import selectable
from designopt.report.parts.designs.front import front
from designopt.report.parts.designs.map import map_figures
from designopt.report.parts.designs.parallel import parallel


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


def test_three_objectives_are_drawn_in_space(browser: Any, tmp_path: Path) -> None:
    result = grid(objectives=(minimize("mass"), minimize("sag"), maximize("cost")))
    open_page(browser, page_of_parts(result, tmp_path, front))
    assert errors(browser) == []
    assert count(browser, "[id^=pareto-front] .gl-container canvas") >= 1
    assert count(browser, "[id^=pareto-front] .scatterlayer .trace") >= 9


def test_a_selector_changes_what_the_map_shows(browser: Any, tmp_path: Path) -> None:
    open_page(browser, page_of_parts(grid(scenarios=("calm", "storm")), tmp_path, map_figures))
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
    path = page_of(tmp_path, Section("Curves", figures=figures))
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


def test_the_page_turns_dark_and_light(browser: Any, tmp_path: Path) -> None:
    open_page(browser, page_of_parts(grid(), tmp_path, front, parallel))
    ink = "return getComputedStyle(document.querySelector('[id^=pareto-front] .xtick text')).fill"
    before = browser.execute_script(ink)
    browser.find_element("id", "theme").click()
    wait_until(lambda: browser.execute_script(ink) != before, "the figures change their colours")
    browser.find_element("id", "theme").click()
    wait_until(lambda: browser.execute_script(ink) == before, "the figures change back")
    assert errors(browser) == []


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
    path = page_of(tmp_path, Section("Moves", figures=(Figure("It", plot, loop=True),)))
    open_page(browser, path)
    at = "return document.querySelector('.plot').data[0].x[0]"
    browser.find_element("css selector", ".updatemenu-button").click()
    wait_until(lambda: browser.execute_script(at) == 4, "the last frame is shown")
    wait_until(lambda: browser.execute_script(at) < 4, "it begins again")
    assert errors(browser) == []


def test_a_brush_filters_the_table_and_sets_off_designs_in_the_other_figures(browser: Any, tmp_path: Path) -> None:
    result = grid()
    open_page(browser, page_of_parts(result, tmp_path, front, parallel))
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
    open_page(browser, page_of_parts(grid(), tmp_path, front, parallel))
    browser.execute_cdp_cmd("Page.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    assert count(browser, "button.svg") == count(browser, "figure")
    button = browser.find_element("css selector", "[id^=pareto-front] button.svg")
    browser.execute_script("arguments[0].click()", button)
    wait_until(lambda: list(tmp_path.glob("pareto-front*.svg")), "the file is there")
    (file,) = tmp_path.glob("pareto-front*.svg")
    wait_until(lambda: file.read_text(encoding="utf-8").rstrip().endswith("</svg>"), "the file is whole")
    assert "mass [kg]" in file.read_text(encoding="utf-8")
    assert errors(browser) == []


def test_tools_of_a_figure_hide_where_no_pointer_is(browser: Any, tmp_path: Path) -> None:
    open_page(browser, page_of_parts(grid(), tmp_path, front))
    read = "return getComputedStyle(document.querySelector('[id^=pareto-front] .modebar')).opacity"
    assert browser.execute_script(read) == "0"


def test_hovering_tells_the_values_of_a_design(browser: Any, tmp_path: Path) -> None:
    result = grid()
    open_page(browser, page_of_parts(result, tmp_path, front, parallel))
    first = browser.execute_script(
        "const plot = document.querySelector('[id^=pareto-front] .plot');"
        "return Array.from(plot.data.find(t => t.name === 'Pareto front').customdata[0])"
    )
    row = int(result.front()[0])
    expected = [row, *result.outcomes.X[row], *result.outcomes.objectives[row]]
    assert first[:5] == pytest.approx(expected, rel=1e-6)  # single precision


def test_no_line_breaks_between_a_number_and_its_unit(browser: Any, tmp_path: Path) -> None:
    table = Table("A", ("moment [N m]", "rate [1/s]"), (("1 %", 1.0),), note="at 5 N/mm in 3 sessions")
    forces = Table("B", ("force [N]",), ((2.0,),))
    command = "designopt show 3 km"
    findings = ("7 %", "stable ≥ 2e-5 1/s")
    facts = tuple((name, value) for name, value in (("programs", "7"), ("best", "75.14 N^2 m^2 s"), ("error", "0.004")))
    section = Section(
        "A",
        introduction="It bears 12 kN. It turns with 3 N m at rest, at 2 1/s.",
        findings=findings,
        tables=(forces, table),
        notes=(command,),
        facts=facts,
    )
    path = page_of(tmp_path, section)
    browser.get(path.as_uri())
    text = browser.execute_script("return document.querySelector('main').textContent")
    of_text = (
        "12\u00a0kN.",
        "3\u00a0N\u00a0m at rest, at 2\u00a01/s",
        "7\u00a0%",
        "5\u00a0N/mm in 3 sessions",
        command,
    )
    for words in ("moment [N\u00a0m]", "1\u00a0%", *of_text):
        assert words in text
    unbroken = (
        "return [...document.querySelectorAll('.option')].map(e => [e.textContent, getComputedStyle(e).whiteSpace])"
    )
    assert browser.execute_script(unbroken) == [["2e-5", "nowrap"]]
    heights = "return [...document.querySelectorAll('.facts dd')].map(e => e.getBoundingClientRect().height)"
    with screen(browser, 420):
        assert len(set(browser.execute_script(heights))) == 1


def test_numbers_can_be_read_on_light_and_dark_cells(browser: Any, tmp_path: Path) -> None:
    """Also on paper, where a shadow of the letters is not printed: dark on yellow, light on violet."""
    cells = {"type": "heatmap", "z": [[0.0, 1.0]], "text": [["0", "1"]], "texttemplate": "%{text}"}
    figure = Figure("Cells", {"data": [{**cells, "colorscale": ORDERED, "textfont": CELL_TEXT}], "layout": layout()})
    open_page(browser, page_of(tmp_path, Section("Cells", figures=(figure,))))
    violet, yellow = browser.execute_script(
        "return [...document.querySelectorAll('.heatmap-label text')].map(t => getComputedStyle(t).fill)"
    )
    assert [int(violet[4:].split(",")[0]) > 200, int(yellow[4:].split(",")[0]) < 90] == [True, True]


def test_a_unit_and_a_limit_in_a_head_or_a_name_are_not_broken(browser: Any, tmp_path: Path) -> None:
    table = Table("A", ("", "torque [N m/kg]"), (("stable [1/s] (≥ 1e-6)", 1.0), ("peak [N m] (minimize)", 2.0)))
    browser.get(page_of(tmp_path, Section("A", tables=(table,))).as_uri())
    text = browser.execute_script("return document.querySelector('table').textContent")
    for unbroken in ("torque [N\u00a0m/kg]", "(≥\u00a01e-6)", "peak [N\u00a0m] (minimize)"):
        assert unbroken in text
