"""A run in a notebook: a bar below the cell, updated in place, and a table with units."""

import sys
import types
from typing import Annotated

import pytest

import designopt
from designopt.run.progress import PlainLines, Snapshot, in_notebook, progress


class Handle:
    def __init__(self, contents):
        self.contents = contents

    def update(self, content, *, raw):
        assert raw
        self.contents.append(content)


@pytest.fixture
def displayed(monkeypatch):
    """What a cell shows, one content after the other, with a stand-in for IPython."""
    contents: list[dict[str, str]] = []

    def display(content, *, raw, display_id):
        assert raw
        assert display_id
        contents.append(content)
        return Handle(contents)

    shell = type("ZMQInteractiveShell", (), {})()
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: shell
    ipython.display = types.ModuleType("IPython.display")
    ipython.display.display = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    return contents


def rod(side: Annotated[float, designopt.Quantity("mm")]):
    return {"mass": side**2}


def test_a_run_in_a_notebook_shows_a_bar_whose_last_state_stays(displayed, tmp_path):
    assert in_notebook()
    study = designopt.define(
        study="rod", model=rod, space={"side": [1, 2]}, objectives=[{"minimize": "mass"}],
        solver={"use": "genetic", "population": 4}, budget={"evaluations": 8}, execution={"executor": "serial"},
    )  # fmt: skip
    result = study.run(tmp_path / "s")
    assert '<progress value="8" max="8">' in displayed[-1]["text/html"]
    assert "8/8 designs" in displayed[-1]["text/plain"]
    pandas = pytest.importorskip("pandas")
    frame = result.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.attrs["units"]["side"] == "mm"
    assert set(frame.attrs["units"]) <= set(frame.columns)


def test_events_cannot_write_html_into_the_notebook(displayed):
    bar = progress()
    bar.event("warning", "<script>alert(1)</script>")
    bar.update(Snapshot("a <b>", 1, 1, 2, None, 2, 0, 0.0, 1.0, None))
    assert "<script>" not in displayed[-1]["text/html"]
    assert "<b>" not in displayed[-1]["text/html"]


def test_elsewhere_there_is_no_bar(capsys):
    assert not in_notebook()
    assert isinstance(progress(), PlainLines)
