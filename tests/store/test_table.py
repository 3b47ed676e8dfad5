"""One table of all designs: exports write it, data frames hold it, notebooks show it."""

import dataclasses
import math

import pytest
from run_cases import listed, make_study

from designopt.run.runner import run_study
from designopt.store.views.table import as_html


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    study = make_study(names=("a",), minimize=("height", "slope"), stages=(listed([0.5, 0.25, 0.75]),))
    return run_study(study, tmp_path_factory.mktemp("table") / "s")


def test_a_data_frame_has_the_rows_that_are_asked_for_and_bare_names_with_one_scenario(result):
    pytest.importorskip("pandas")
    frame = result.to_pandas([2, 0])
    assert frame.index.tolist() == [2, 0]
    assert frame["a"].tolist() == [0.75, 0.5]
    assert frame["height"].tolist() == [0.5625, 0.25]
    assert frame["ask"].tolist() == [2, 0]
    assert frame["status"].tolist() == ["ok", "ok"]
    assert result.to_pandas().index.tolist() == [0, 1, 2]


def test_a_data_frame_without_scenarios_has_parameters_objectives_and_violation_alone(tmp_path):
    pytest.importorskip("pandas")
    scenarios = tuple({"shift": 0.1 * k} for k in range(16))
    study = make_study(names=("a",), minimize=("height",), stages=(listed([0.5, 0.25]),), scenarios=scenarios)
    result = run_study(study, tmp_path / "s")
    assert len(result.to_pandas().columns) > 80
    frame = result.to_pandas(result.front(), scenarios=False)
    assert [name for name in frame if "@" in name] == []
    assert list(frame) == ["a", result.problem.objectives[0].name, "violation", "feasible", "stage", "ask"]


def test_its_columns_say_what_they_are(result):
    columns = {c.name: c for c in result.columns()}
    assert columns["height@s0"].facts == {
        "role": "figure", "of": "height", "unit": "m", "scenario": "s0", "meaning": "height over the origin",
    }  # fmt: skip
    assert columns["height@s0"].values(slice(1, 2)) == [0.0625]
    assert math.isfinite(columns["wall@s0"].values([0])[0])


def test_a_notebook_shows_the_chosen_designs(result):
    html = result._repr_html_()
    assert html.startswith("<b>test</b>: 3 designs, 3 feasible, ")
    assert "<tr><th></th><th>a</th><th>f0</th><th>f1</th></tr>" in html
    assert "<tr><td>best f0</td><td>0.25</td><td>0.0625</td><td>1.25</td></tr>" in html


def test_texts_of_the_user_are_escaped_there(result):
    evil = "<img src=x onerror=alert(2)>"
    titled = dataclasses.replace(result, study=dataclasses.replace(result.study, title=evil))
    for text in (titled._repr_html_(), as_html(result.columns(), {evil: 0})):
        assert "<img" not in text
        assert "&lt;img src=x onerror=alert(2)&gt;" in text
