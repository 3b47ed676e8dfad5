"""Figures for papers, written by a browser."""

import re
import shutil
import subprocess

import pytest
from given_results import grid

from designopt.report import figure_file
from designopt.report.figure_file import FigureError, write_figure

needs_browser = pytest.mark.skipif(
    not any(shutil.which(name) for name in figure_file.BROWSERS), reason="needs Chromium or Chrome"
)


@needs_browser
def test_a_figure_is_written_in_the_size_of_a_column(tmp_path):
    svg = write_figure(grid(), tmp_path / "front.svg").read_text(encoding="utf-8")
    assert svg.startswith("<svg ")
    assert 'width="321" height="242"' in svg  # 85 mm by 64 mm in CSS pixels
    assert "mass [kg] (minimize)" in svg
    pdf = write_figure(grid(), tmp_path / "convergence-2.pdf", (170.0, 100.0)).read_bytes()
    assert pdf.startswith(b"%PDF")
    (box,) = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)
    assert [float(length) for length in box] == pytest.approx([170 / 25.4 * 72, 100 / 25.4 * 72], abs=1.5)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("front.png", "written as .svg or .pdf"),
        ("frnt.pdf", "no plugin named 'frnt'; did you mean 'front'"),
        ("front-9.pdf", "there is no 8"),
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
    done = subprocess.CompletedProcess([], 7, b"", b"")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    with pytest.raises(FigureError, match=r"browser did not draw it \(exit code 7\)"):
        write_figure(grid(), tmp_path / "front.pdf")
