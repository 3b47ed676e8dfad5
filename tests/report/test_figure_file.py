"""Figures for papers, written by a browser."""

import base64
import re
import shutil
import subprocess
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest
from given_results import grid

from designopt.report import figure_file, notebook_figure
from designopt.report.figure_file import FigureError, write_figure
from designopt.report.labels import drawn_designs
from designopt.report.section import Figure

needs_browser = pytest.mark.skipif(
    not any(shutil.which(name) for name in figure_file.BROWSERS), reason="needs Chromium or Chrome"
)


def test_sizes_in_pixels_are_in_proportion_to_the_letters_of_a_paper():
    """Letters of 13 pixels on the page are 8 pt, 32/3 pixels."""
    marker = {"size": [13.0, 26.0], "line": {"width": 1.3}}
    panels = {"yaxis": {"domain": [0.0, 0.4]}, "yaxis2": {"domain": [0.5, 1.0]}, "title": "on the page"}
    trace = {"type": "scatter", "x": [0, 1], "y": [0, 1], "marker": marker, "name": "long name " * 3}
    figure = figure_file._on_paper(go.Figure([trace, {**trace, "yaxis": "y2"}] * 3, panels))
    assert figure.layout.title.text is None
    assert figure.layout.font.size == pytest.approx(32 / 3)
    assert figure.data[0].marker.size == pytest.approx([32 / 3, 64 / 3])
    assert figure.data[0].marker.line.width == pytest.approx(1.3 * 32 / 3 / 13)
    width, height = figure_file._column(figure)
    assert width == 85.0
    assert height == 64.0 + figure_file.PANEL + 3 * figure_file.ROW  # six rows of the legend, three of them free


def test_a_long_legend_names_designs_without_their_values_and_makes_the_figure_higher():
    names = ["recorded ± 5 deg", *(f"{label}: k 11047 N/m, c/k 0.0774 s" for label in ("robust (recommended)", *"abc"))]
    figure = figure_file._on_paper(go.Figure([go.Scatter(x=[0, 1], y=[0, 1], name=name) for name in names]))
    assert [trace.name for trace in figure.data] == ["recorded ± 5 deg", "robust (recommended)", "a", "b", "c"]
    assert figure_file._column(figure)[1] == 64.0 + 2 * figure_file.ROW  # five rows in one column, three of them free
    few = figure_file._on_paper(go.Figure([go.Scatter(x=[0, 1], y=[0, 1], name=name) for name in names[:3]]))
    assert [trace.name for trace in few.data] == names[:3]


@needs_browser
def test_a_curve_has_all_its_points_and_its_axis_the_label_of_its_end(tmp_path):
    x = np.linspace(0.0, 100.0, 201)
    figure = Figure("sine", {"data": [{"x": x, "y": np.sin(x / 16.0)}], "layout": {"xaxis": {"range": [0, 100]}}})
    figure_file.write_one_of([figure], tmp_path / "sine.svg")
    svg = (tmp_path / "sine.svg").read_text(encoding="utf-8")
    (curve,) = re.findall(r'<path class="js-line"[^>]* d="([^"]*)"', svg)
    assert len(re.findall(r"[\d.]+,[\d.]+", curve)) == 201
    assert ">100</text>" in svg


def test_the_drawn_designs_are_those_of_the_option_and_a_figure_without_designs_says_that_it_is_the_same(monkeypatch):
    monkeypatch.setattr(figure_file, "write_one_of", lambda figures, file, size: "")
    result = replace(grid(), rows_in_figures=(3, 2))
    assert drawn_designs(result) == {"design 3": 3, "design 2": 2}
    assert write_figure(result, Path("front.svg")) == "it is the same with and without --designs"


@needs_browser
def test_a_figure_is_written_in_the_size_of_a_column(tmp_path):
    assert write_figure(grid(), tmp_path / "front.svg") == ""  # the only figure of its part
    svg = (tmp_path / "front.svg").read_text(encoding="utf-8")
    assert svg.startswith("<svg ")
    assert 'width="321" height="261"' in svg  # 85 mm by 69 mm in CSS pixels: the legend has four rows
    assert "mass [kg] (minimize)" in svg
    text = write_figure(grid(), tmp_path / "convergence-2.pdf", (170.0, 100.0))
    assert text == "Best of each objective so far; others of the part: convergence.pdf (Hypervolume of the front)"
    pdf = (tmp_path / "convergence-2.pdf").read_bytes()
    assert pdf.startswith(b"%PDF")
    (box,) = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)
    assert [float(length) for length in box] == pytest.approx([170 / 25.4 * 72, 100 / 25.4 * 72], abs=1.5)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("front.png", "written as .svg or .pdf"),
        ("frnt.pdf", "no plugin named 'frnt'; did you mean 'front'"),
        ("front-9.pdf", "the part 'front' has no figure 9 here; its figures are front.pdf"),
    ],
)
def test_a_figure_that_is_not_there_is_refused(tmp_path, name, message, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda program: "/bin/true")
    with pytest.raises(FigureError, match=message):
        write_figure(grid(), tmp_path / name)


def test_without_a_browser_or_a_drawing_the_error_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda program: None)
    with pytest.raises(FigureError, match="needs Chromium or Chrome; or save the figure with the button 'SVG'"):
        write_figure(grid(), tmp_path / "front.pdf")
    monkeypatch.setattr(shutil, "which", lambda program: "browser")
    process = subprocess.CompletedProcess([], 7, b"", b"")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: process)
    with pytest.raises(FigureError, match=r"browser did not draw it \(exit code 7\)"):
        write_figure(grid(), tmp_path / "front.pdf")


def test_a_figure_in_a_notebook_has_a_picture_beside_its_interactive_form(monkeypatch):
    monkeypatch.setattr(notebook_figure, "has_browser", lambda: True)
    monkeypatch.setattr(notebook_figure, "draw", lambda *_: {"svg": b"<svg/>", "png": b"picture"})
    figure = grid().plot()
    assert getattr(figure, "_ipython_display_", None) is None  # or IPython would ask nothing else
    bundle = figure._repr_mimebundle_()
    assert base64.b64decode(bundle["image/png"]) == b"picture"
    assert base64.b64encode(b"<svg/>").decode() in bundle["text/html"]
    assert '<img alt="Objectives against each other"' in bundle["text/html"]
    assert bundle["application/vnd.plotly.v1+json"]["data"]
    monkeypatch.setattr(notebook_figure, "has_browser", lambda: False)
    assert "Plotly.newPlot" in figure._repr_mimebundle_()["text/html"]


@pytest.mark.slow  # it starts a kernel and a browser
@needs_browser
def test_a_notebook_with_a_run_survives_nbconvert(tmp_path):
    nbconvert = pytest.importorskip("nbconvert", reason="nbconvert is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    nbformat = pytest.importorskip("nbformat")
    from nbconvert.preprocessors import ExecutePreprocessor

    cells = [
        "import designopt\nfrom typing import Annotated\n"
        "def rod(side: Annotated[float, designopt.Quantity('mm')]):\n    return {'mass': side**2, 'sag': 1 / side}\n"
        "result = designopt.minimize(rod, {'side': [1, 2]}, evaluations=24, executor='serial', store='s')",
        "result",
        "result.plot()",
        "result.to_pandas().attrs['units']",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    ExecutePreprocessor(timeout=120).preprocess(notebook, {"metadata": {"path": str(tmp_path)}})
    page, _ = nbconvert.HTMLExporter().from_notebook_node(notebook)
    assert re.search('<progress [^>]*value="24"', page)
    assert "data:image/svg+xml;base64," in page
    assert "'side': 'mm'" in unescape(page)
    latex, resources = nbconvert.LatexExporter().from_notebook_node(notebook)
    assert "includegraphics" in latex
    assert any(name.endswith(".png") for name in resources["outputs"])
