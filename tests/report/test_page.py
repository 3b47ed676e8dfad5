"""The page as a whole: self-contained, escaped, complete, and small for large studies."""

from __future__ import annotations

import base64
import csv
import io
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest
from given_results import GivenResult, at_most, beam_result, grid, maximize, minimize, use
from page_data import figures_of, page_data, unpacked
from plotly.offline import get_plotlyjs
from valid_figures import check_with_plotly

from designopt.plugin import Use, find, report_part
from designopt.report import Figure, Section, Selector, Table, write_report
from designopt.report.notebook import study_table
from designopt.report.page.data import as_plain
from designopt.report.page.page import render, sections
from designopt.study.study import DesignVariable


class Page(HTMLParser):
    """Elements with attributes, the text outside scripts, and the JSON of the figures."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.styles = ""
        self._inside: tuple[str, dict[str, str | None]] = ("", {})
        self.feed(text)
        self.figures = figures_of(text)
        self.designs = page_data(text)[0]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = (tag, dict(attrs))
        self.elements.append(self._inside)

    def handle_endtag(self, tag: str) -> None:
        self._inside = ("", {})

    def handle_data(self, data: str) -> None:
        tag, _ = self._inside
        if tag == "style":
            self.styles += data
        elif tag != "script":
            self.text += data


def as_page(result: GivenResult, path: Path) -> Page:
    return Page(write_report(result, path / "report.html").read_text(encoding="utf-8"))


def test_nothing_is_loaded_from_anywhere(grid_result: GivenResult, tmp_path: Path) -> None:
    page = as_page(grid_result, tmp_path)
    for tag, attributes in page.elements:
        for name in ("src", "href", "srcset", "action", "poster", "data"):
            address = attributes.get(name)
            assert address is None or address.startswith(("#", "data:")), (tag, name, address)
    assert not re.search(r"url\(|@import", page.styles)
    policy = next(a["content"] for t, a in page.elements if t == "meta" and "Policy" in str(a.get("http-equiv")))
    assert policy is not None
    assert policy.startswith("default-src 'none'")


def test_plotly_is_within_once_and_packed(grid_result: GivenResult, tmp_path: Path) -> None:
    text = write_report(grid_result, tmp_path / "r.html").read_text(encoding="utf-8")
    assert text.count("* plotly.js v") == text.count("Licensed under the MIT license") == 1
    assert len(text.encode()) < 1_800_000  # which leaves 200 kB of 2 MB for the designs
    (packed,) = re.findall(r'<script type="text/plain" id="plotly">(.*?)</script>', text)
    library, plotly = unpacked(packed).decode(), get_plotlyjs()
    assert 500_000 < len(plotly) - len(library) < 700_000  # the program and the style sheet of street maps
    assert library.count("=W(") == plotly.count("=W(")  # nothing else is left out


def test_user_strings_are_escaped_wherever_they_stand(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    space = (
        DesignVariable("width", "real", low=10.0, high=100.0, unit=evil),
        DesignVariable("kind", "choice", values=(evil, "b")),
    )
    X = [(w, k) for w in (10.0, 20.0, 50.0) for k in (0, 1)]
    figures = {"mass": [1, 2, 3, 4, 5, 6], "sag": [6, 5, 4, 3, 2, 1]}
    objectives = (minimize("mass", evil), minimize("sag"))
    page = as_page(beam_result(X, figures, space=space, objectives=objectives, title=evil), tmp_path)
    assert sum(tag == "script" and not a.get("type") for tag, a in page.elements) == 2
    assert not [tag for tag, _ in page.elements if tag == "img"]
    assert evil in page.text

    def strings(value: Any) -> Any:
        if isinstance(value, dict):
            yield from (s for v in value.values() for s in strings(v))
        elif isinstance(value, list):
            yield from (s for v in value for s in strings(v))
        elif isinstance(value, str):
            yield value

    assert not [s for f in page.figures for s in strings(f["plot"]) if "<script" in s or "<img" in s]
    assert not [s for s in strings(page.designs["columns"]) if "<script" in s or "<img" in s]


def test_user_strings_are_escaped_in_notebooks() -> None:
    evil = "<img src=x onerror=alert(2)>"
    space = (DesignVariable("width", "real", low=10.0, high=100.0, unit=evil),)
    text = study_table(replace(beam_result([(10.0,)], {"mass": [1], "sag": [2]}, space=space).study, title=evil))
    assert "<img" not in text
    assert text.count("&lt;img src=x onerror=alert(2)&gt;") == 2


def test_every_figure_is_valid_plotly(grid_result: GivenResult) -> None:
    three = grid(objectives=(minimize("mass"), minimize("sag"), maximize("cost")), scenarios=("calm", "storm"))
    for result in (grid_result, three):
        figures = [f for s in sections(result) for f in s.figures]
        assert len(figures) >= 5
        for figure in figures:
            check_with_plotly(figure.plot)


def test_the_parts_of_the_study_are_shown_between_the_ones_that_are_always_there() -> None:
    @report_part("report_test_part", version=1)
    def part(result: Any, *, word: str = "plain") -> Section:
        return Section(f"Part {word}")

    extended = grid(plots=(use(part, word="one"), use(part, word="two")))
    titles = [s.title for s in sections(extended)]
    last = ["The problem", "Importance of the parameters", "Bounds and limits", "Failures", "Record"]
    assert titles == ["Overview", "Best designs", "Part one", "Part two", *last]
    named = grid(plots=(use(part), Use(find("report", "overview"), {}), Use(find("report", "best"), {})))
    assert [s.title for s in sections(named)][:3] == ["Overview", "Part plain", "Best designs"]  # the answer is first


def test_a_part_that_raises_leaves_the_rest_of_the_report() -> None:
    @report_part("report_test_broken", version=1)
    def broken(result: Any) -> Section:
        raise ValueError("no <luck>")

    text = render(extended := grid(plots=(use(broken),)), list(sections(extended)))
    assert "ValueError: no &lt;luck&gt;" in text
    assert "Failures" in text


EMPTY = beam_result(np.empty((0, 2)), {"mass": [], "sag": [], "cost": []})
FAILED = beam_result([(10, 0), (20, 1)], {"mass": [1, 2], "sag": [1, 2]}, status=["diverged", "timeout"])
OUTSIDE = beam_result([(10, 0), (20, 1)], {"mass": [1, 2], "sag": [1, 2]}, constraints=(at_most("mass", 0.5, "kg"),))


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        (EMPTY, "Nothing has been evaluated yet"),
        (FAILED, "No evaluation gave a result"),
        (OUTSIDE, "No design satisfies all limits"),
    ],
    ids=["empty", "all failed", "none feasible"],
)
def test_results_without_a_best_design_say_why(result: GivenResult, sentence: str, tmp_path: Path) -> None:
    page = as_page(result, tmp_path)
    assert sentence in page.text
    assert "part of the report failed" not in page.text


CHOICES = (
    DesignVariable("width", "real", low=10.0, high=100.0, unit="mm"),
    DesignVariable("count", "int", low=1, high=4),
    DesignVariable("profile", "choice", values=("box", "tube", True)),
    DesignVariable("steel", "fixed", values=("S355",)),
)


def mixed(**more: Any) -> GivenResult:
    X = [(w, n, k) for w in (10.0, 30.0, 100.0) for n in (1, 2) for k in (0, 1, 2)]
    mass = [w * n * (1 + k) for w, n, k in X]
    return beam_result(X, {"mass": mass, "sag": [100 / m for m in mass], "cost": mass}, space=CHOICES, **more)


@pytest.mark.parametrize(
    "result",
    [
        mixed(),
        mixed(scenarios=("calm", "storm")),
        mixed(objectives=(minimize("mass", "kg"),)),
        mixed(objectives=(minimize("mass"), minimize("sag"), maximize("cost"))),
        mixed(objectives=tuple(minimize(n) for n in ("mass", "sag", "cost", "mass", "sag", "cost"))),
        beam_result([(10.0,), (20.0,), (30.0,)], {"mass": [3, 1, 2], "sag": [1, 2, 3]}, space=CHOICES[:1]),
        beam_result([(10.0, 0.0)], {"mass": [3.0], "sag": [1.0]}),
    ],
    ids=["choices", "scenarios", "one objective", "three objectives", "six objectives", "one parameter", "one design"],
)
def test_every_shape_of_study_gives_a_whole_page(result: GivenResult, tmp_path: Path) -> None:
    page = as_page(result, tmp_path)
    assert "part of the report failed" not in page.text
    assert page.figures


def test_a_table_is_saved_whole_in_full_precision() -> None:
    table = Table("T", ("a, b", "c"), ((0.1 + 0.2, 'say "x"'), (math.nan, "z"), (3, "w")), visible_rows=1)
    page = Page(render(EMPTY, [Section("S", tables=(table,))]))
    link = next(a["href"] for t, a in page.elements if t == "a" and "download" in a)
    assert link is not None
    rows = list(csv.reader(io.StringIO(unquote(link.partition(",")[2]))))
    assert rows == [["a, b", "c"], ["0.30000000000000004", 'say "x"'], ["", "z"], ["3", "w"]]
    assert "2 more rows are in the CSV file." in page.text
    assert "1 more row is in the CSV file." in render(EMPTY, [Section("S", tables=(replace(table, visible_rows=2),))])


def test_a_table_without_rows_is_its_note() -> None:
    page = Page(render(EMPTY, [Section("S", tables=(Table("Frames to check", ("frames",), (), note="None."),))]))
    assert "None." in page.text
    assert [tag for tag, _ in page.elements if tag in ("table", "th")] == []


def test_a_wide_table_has_no_columns_without_a_value_but_its_file_has_them() -> None:
    columns = tuple(f"column {i}" for i in range(12))
    table = Table("T", columns, ((*range(9), "–", math.nan, "x"), (*range(9), "–", "", 0.0)))
    page = Page(render(EMPTY, [Section("S", tables=(table, replace(table, columns=columns[:2], rows=((1, "–"),))))]))
    assert sum(tag == "th" for tag, _ in page.elements) == 10 + 2
    link = next(a["href"] for t, a in page.elements if t == "a" and "download" in a)
    assert link is not None
    assert "column 9" in unquote(link)


def test_rows_beyond_the_first_ones_are_folded_until_the_reader_asks_for_them() -> None:
    table = Table("T", ("a",), tuple((i,) for i in range(6)), visible_rows=5, folded_from=2)
    page = Page(render(EMPTY, [Section("S", tables=(table, replace(table, folded_from=4)))]))
    rows = [attributes.get("class") for tag, attributes in page.elements if tag == "tr"]
    assert rows == [None, None, None, "folded", "folded", "folded", *[None] * 6]
    assert "3 more rows" in page.text
    assert [attributes for tag, attributes in page.elements if attributes.get("class") == "unfold"] == [
        {"class": "unfold"}
    ]


def test_plotly_figures_of_other_people_are_welcome() -> None:
    from plotly.graph_objects import Figure as PlotlyFigure

    figure = Figure("F", PlotlyFigure(data=[{"type": "bar", "y": [1, 2]}]), choices=(Selector("pick", ("<a>", "b")),))
    page = Page(render(EMPTY, [Section("S", figures=(figure,))]))
    assert page.figures[0]["plot"]["data"][0]["type"] == "bar"
    assert "<a>" in page.text


def test_numbers_reach_the_browser_as_they_are() -> None:

    values = np.array([[1.5, 1e-300], [np.nan, 2.0 + 1e-12]])
    plain = as_plain(values)
    back = np.frombuffer(base64.b64decode(plain["bdata"]), plain["dtype"]).reshape(2, 2)
    np.testing.assert_array_equal(back, values)
    assert plain["shape"] == "2, 2"
    assert as_plain(np.array([1.5, np.inf]))["dtype"] == "f4"
    assert as_plain({"a": (math.nan, np.int64(3), np.array(["x"]))}) == {"a": [None, 3, ["x"]]}


def test_a_large_study_gives_a_page_that_a_browser_can_open(tmp_path: Path) -> None:
    n = 200_000
    rng = np.random.default_rng(0)
    X = rng.uniform([10, 0], [100, 1], (n, 2))
    mass, sag = X[:, 0] + rng.random(n), 100 / X[:, 0] + X[:, 1]
    result = beam_result(
        X, {"mass": mass, "sag": sag, "cost": mass * sag}, status=["ok"] * (n - 5000) + ["error"] * 5000
    )
    path = write_report(result, tmp_path / "large.html")
    assert path.stat().st_size < 9_000_000
    text = Page(path.read_text(encoding="utf-8")).text
    assert "are shown, evenly spaced" in text
    repeated_page = write_report(result, tmp_path / "again.html").read_text(encoding="utf-8")
    assert page_data(repeated_page) == page_data(path.read_text(encoding="utf-8"))


def test_a_front_of_many_designs_is_thinned_and_says_where_all_of_them_are(tmp_path: Path) -> None:
    n = 40_000
    mass = np.linspace(1, 2, n)
    X = np.column_stack([np.linspace(10, 100, n), np.linspace(0, 1, n)])
    path = write_report(beam_result(X, {"mass": mass, "sag": 1 / mass, "cost": mass}), tmp_path / "front.html")
    assert path.stat().st_size < 8_000_000
    text = Page(path.read_text(encoding="utf-8")).text
    # Evenly taken ones, and the compromise wherever it lies.
    assert re.search("500[01] of 40000 designs are in this table", text)
    assert "designopt report beam.study --export csv" in text


def test_the_file_is_replaced_as_a_whole(grid_result: GivenResult, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    assert write_report(grid_result, path) == path
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize(
    ("session", "sentence"),
    [
        (
            {"reason": "interrupted", "points": 451},
            "Unfinished: interrupted after 6 of 451 designs of stage sweep. Continue",
        ),
        (
            {"reason": "failure policy"},
            "Unfinished: ended by the failure policy after 6 designs of stage sweep. Continue",
        ),
        (
            {},
            "Unfinished: the run is active or was killed; so far 6 designs of stage sweep. If it is not active,",
        ),
    ],
)
def test_the_report_of_an_unfinished_run_says_so_at_the_top(
    session: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    X = [(20.0 + i, 0.5) for i in range(6)]
    result = beam_result(X, {"mass": range(6), "sag": range(6)})
    page = as_page(replace(result, session=session), tmp_path)
    assert sentence in page.text
    assert "ontinue with: designopt resume beam.study" in page.text
    assert page.text.index(sentence) < page.text.index("Which width")
    assert "Unfinished" not in as_page(result, tmp_path).text


@pytest.mark.parametrize(("session", "reloads"), [({}, True), ({"reason": "done"}, False)])
def test_the_page_loads_itself_anew_while_the_run_is_going_and_no_longer(
    session: dict[str, Any], reloads: bool, grid_result: GivenResult, tmp_path: Path
) -> None:
    result = replace(grid_result, session=session)
    page = Page(write_report(result, tmp_path / "r.html", refresh=2.5).read_text(encoding="utf-8"))
    refreshed = [a["content"] for t, a in page.elements if t == "meta" and a.get("http-equiv") == "refresh"]
    assert refreshed == (["3"] if reloads else [])
    assert ("This page reloads itself every 2.5 s" in page.text) == reloads
    still = Page(write_report(result, tmp_path / "r.html").read_text(encoding="utf-8"))
    assert not [a for t, a in still.elements if t == "meta" and a.get("http-equiv") == "refresh"]


def test_every_table_has_its_csv_and_every_figure_its_svg(tmp_path: Path) -> None:
    page = as_page(grid(scenarios=("calm", "storm"), constraints=(at_most("cost", 3000.0),)), tmp_path)
    tables = sum(tag == "table" for tag, _ in page.elements)
    assert tables == sum(tag == "a" and "download" in a for tag, a in page.elements) > 8
    figures = sum(tag == "figure" for tag, _ in page.elements)
    assert figures == sum(tag == "button" and a.get("class") == "svg" for tag, a in page.elements) > 4


def test_values_of_designs_stand_on_the_page_once(tmp_path: Path) -> None:

    result = grid()
    page = as_page(result, tmp_path)
    rows = np.frombuffer(base64.b64decode(page.designs["rows"]["bdata"]), "<i4")
    blocks = [base64.b64decode(d["bdata"]) for f in page.figures for d in f["designs"].values()]
    assert set(np.concatenate([np.frombuffer(d, "<i4") for d in blocks]).tolist()) == set(rows.tolist())
    width = np.frombuffer(base64.b64decode(page.designs["columns"][1]["bdata"]), page.designs["columns"][1]["dtype"])
    np.testing.assert_allclose(width, result.outcomes.X[rows, 0], rtol=1e-6)
    assert not [t for f in page.figures for t in f["plot"]["data"] if "customdata" in t and t["type"] == "scatter"]


def test_an_unknown_part_that_a_model_proposes_fails_alone(grid_result: GivenResult) -> None:
    model = grid_result.problem.model
    proposing = Use(replace(model.plugin, plots=("limits", "limmits")), model.settings)
    result = replace(
        grid_result, problem=replace(grid_result.problem, model=proposing), study=replace(grid_result.study, plots=())
    )
    texts = {section.title: section.introduction for section in sections(result)}
    assert "no plugin named 'limmits'" in texts["limmits"]
    assert "Bounds and limits" in texts
