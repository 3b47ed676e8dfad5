"""The messages of the specification, word for word."""

import json

import pytest

import designopt.aggregations
import designopt.plugin
from designopt.plugin import solver
from designopt.study.language.errors import Issue, StudyError, render_json, render_text

FILE = """\
study: damper
model:
  use: test_wheel
  mass: 3 kg


space:
  stiffness: {low: 2.0e4, high: 1.0e4, unit: N/m}
  damping: {low: 1, high: 2}
objectives:
  - name: flexion
    minimize: abs(peak_error)
  - name: mismatch
    minimise: 1 - rho
solver:
  use: nsga
budget: {evaluations: 100}
"""


@pytest.fixture
def three_solvers(monkeypatch) -> None:
    """The installed solvers of the example."""
    monkeypatch.setattr("designopt.plugin.discovery.installed_plugins", lambda kind=None: iter(()))
    declared = designopt.plugin.discovery._declared_plugins
    monkeypatch.setattr(
        "designopt.plugin.discovery._declared_plugins", {k: v for k, v in declared.items() if k[0] != "solver"}
    )
    for name in ("sobol", "nsga2", "nsga3"):

        @solver(name, version=1)
        class _Nothing:
            def solve(self, problem, evaluate, rng, start) -> None: ...


def test_the_example_of_the_specification(three_solvers, load) -> None:
    with pytest.raises(StudyError) as caught:
        load(FILE)
    assert render_text(caught.value.issues) == (
        "damper.yaml:8:14: error: space.stiffness: low (20000.0 N/m) must be below high (10000.0 N/m)\n"
        "    stiffness: {low: 2.0e4, high: 1.0e4, unit: N/m}\n"
        "               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "damper.yaml:14:5: error: objectives.1: unknown key 'minimise'; did you mean 'minimize'?\n"
        "    minimise: 1 - rho\n"
        "    ^^^^^^^^\n"
        "damper.yaml:16:8: error: solver: no plugin named 'nsga'; did you mean 'nsga2'? "
        "(installed: nsga2, nsga3, sobol)\n"
        "    use: nsga\n"
        "         ^^^^\n"
        "3 errors, nothing was run."
    )


def test_the_same_as_objects_for_programs(load) -> None:
    with pytest.raises(StudyError) as caught:
        load(FILE)
    first = json.loads(render_json(caught.value.issues))[0]
    assert first == {
        "file": "damper.yaml",
        "line": 8,
        "column": 14,
        "end_column": 50,
        "path": "space.stiffness",
        "message": "low (20000.0 N/m) must be below high (10000.0 N/m)",
        "source_line": "  stiffness: {low: 2.0e4, high: 1.0e4, unit: N/m}",
    }


def test_an_issue_without_a_place_is_one_line() -> None:
    issue = Issue("--set seed=x", None, None, None, "seed", "expected an integer")
    assert render_text([issue]) == "--set seed=x: error: seed: expected an integer\n1 error, nothing was run."


def test_carets_follow_tabs_and_long_lines_are_cut_around_the_mistake() -> None:
    tab = Issue("f", 1, 4, 6, "", "m", "a:\tbc")
    assert render_text([tab]).splitlines()[1:3] == ["    a:\tbc", "      \t^^"]
    wide = Issue("f", 1, 901, 903, "", "m", "x" * 900 + "bad" + "y" * 900)
    source, carets = render_text([wide]).splitlines()[1:3]
    assert len(source) <= 124
    assert source[carets.index("^")] == "b"
