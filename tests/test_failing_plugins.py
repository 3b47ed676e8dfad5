"""Plugins whose code fails: the message names the plugin and its line, and nothing computed is lost."""

import re
from pathlib import Path

import pytest
from command import designopt

MODEL = """
from typing import Annotated, TypedDict
from designopt import Quantity as Q, model

class Out(TypedDict):
    mass: Annotated[float, Q("kg", "mass")]

@model("rod", version=1)
def rod(design, scenario) -> Out:
    \"\"\"A rod.\"\"\"
    with open("evaluations", "a") as file:
        file.write("x")
    return {"mass": design["side"] ** 2 * (2.0 if scenario.get("long") else 1.0)}
"""

STUDY = """\
study: rod
model: {use: rod}
space:
  side: {low: 0.1, high: 1.0}
scenarios:
  - {name: short, long: false}
  - {name: long, long: true}
objectives:
  - {minimize: mass, over: OVER}
solver: {use: random, samples: 6}
execution: {executor: serial}
"""


def plugin(folder: Path, kind: str, name: str, body: str, argument: str, annotation: str = "") -> None:
    """A file ``own.py`` with one plugin: a function whose fifth line is its `body`."""
    head = "from designopt import Quantity as Q, aggregation, exporter, objective, report_part, solver"
    text = f"{head}\nfrom typing import Annotated\n@{kind}('{name}', version=1)\ndef own({argument}){annotation}:\n"
    (folder / "own.py").write_text(f"{text}    {body}\n")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "rod.py").write_text(MODEL)
    (tmp_path / "rod.yaml").write_text(STUDY.replace("OVER", "worst"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


BOTH = ("--plugin", "rod.py", "--plugin", "own.py")

FAILING = {
    "raises": ("return values['worst']", r"the aggregation 'odd' failed: own.py:5: IndexError"),
    "one_number": ("return values.mean()", r"own.py:3: aggregation 'odd' must return one number for each design"),
    "text": ("return ['light'] * len(values)", r"own.py:3: aggregation 'odd' must return .* not a list"),
    "nothing": ("return None", r"own.py:3: aggregation 'odd' must return .* not None"),
}


@pytest.mark.parametrize(("body", "message"), FAILING.values(), ids=FAILING)
def test_a_failing_aggregation_ends_a_run_that_continues_after_the_correction(
    folder: Path, body: str, message: str
) -> None:
    (folder / "rod.yaml").write_text(STUDY.replace("OVER", "odd"))
    plugin(folder, "aggregation", "odd", body, "values")
    completed = designopt(folder, "run", "rod.yaml", *BOTH)
    assert completed.returncode == 2
    assert "Traceback" not in completed.stderr
    assert re.search(f"^error: {message}", completed.stderr, re.MULTILINE)
    resume = "designopt resume results/rod.study --plugin rod.py --plugin own.py"
    assert f"All evaluations are stored; correct the plugin, then continue with: {resume}" in completed.stderr
    summary = designopt(folder, "show", "results/rod.study", *BOTH)
    assert summary.returncode == 4
    assert re.search(message, summary.stderr)
    assert "damaged" not in summary.stderr

    evaluations = (folder / "evaluations").read_text()
    assert len(evaluations) == 12
    plugin(folder, "aggregation", "odd", "return values.max(axis=1)", "values")
    completed = designopt(folder, "resume", "results/rod.study", *BOTH)
    assert completed.returncode == 0, completed.stderr
    assert (folder / "evaluations").read_text() == evaluations


def test_an_aggregation_without_a_number_is_named_where_no_design_is_left(folder: Path) -> None:
    (folder / "rod.yaml").write_text(STUDY.replace("OVER", "odd"))
    plugin(folder, "aggregation", "odd", "return values.mean(axis=1) * float('nan')", "values")
    completed = designopt(folder, "run", "rod.yaml", *BOTH)
    assert completed.returncode == 1
    assert "'mass' over 'odd' is not a finite number for 6 of 6 designs" in completed.stderr


def test_a_failing_aggregation_is_reported_when_results_are_scored_again(folder: Path) -> None:
    plugin(folder, "aggregation", "odd", "return 1 / 0", "values")
    assert designopt(folder, "run", "rod.yaml", *BOTH).returncode == 0
    completed = designopt(folder, "report", "results/rod.study", "--set", "objectives.mass.over=odd", *BOTH)
    assert completed.returncode == 4
    assert "the aggregation 'odd' failed: own.py:5: ZeroDivisionError" in completed.stderr
    assert "Traceback" not in completed.stderr


def test_weights_of_the_wrong_shape_are_refused(folder: Path) -> None:
    (folder / "own.py").write_text(
        "from designopt import aggregation\n"
        "def weights(values):\n    return values.mean(axis=1)\n"
        "@aggregation('sloped', version=1, weights=weights)\n"
        "def sloped(values):\n    return values.mean(axis=1)\n"
    )
    (folder / "smooth.yaml").write_text(
        "study: smooth\nmodel: {use: quadratic}\nspace: {a: [0.1, 1.0]}\n"
        "scenarios: [{name: one, by: 1.0}, {name: two, by: 2.0}]\n"
        "objectives: [{minimize: f, over: sloped}]\n"
        "solver: {use: slsqp, gradient: model}\nexecution: {executor: serial}\n"
    )
    (folder / "quadratic.py").write_text(
        "from typing import Annotated, TypedDict\nfrom designopt import Quantity as Q, model\n"
        "class Out(TypedDict):\n    f: Annotated[float, Q('', 'square')]\n"
        "@model('quadratic', version=1)\nclass Quadratic:\n"
        "    def evaluate(self, design, scenario) -> Out:\n        return {'f': scenario['by'] * design['a'] ** 2}\n"
        "    def gradient(self, design, scenario):\n        return {'f': {'a': 2 * scenario['by'] * design['a']}}\n"
    )
    completed = designopt(folder, "run", "smooth.yaml", "--plugin", "quadratic.py", "--plugin", "own.py")
    assert completed.returncode == 2, completed.stderr
    assert "aggregation 'sloped' must return a weight for each value, here an array of shape (1, 2)" in completed.stderr


def test_an_objective_that_returns_no_number_is_named_with_its_line(folder: Path) -> None:
    plugin(folder, "objective", "odd", "return 'light'", "mass", " -> Annotated[float, Q('kg', 'mass')]")
    study = STUDY.replace("OVER", "worst").replace("minimize: mass", "minimize: heavy")
    (folder / "rod.yaml").write_text(study + "figures: {heavy: {use: odd}}\n")
    completed = designopt(folder, "run", "rod.yaml", *BOTH)
    assert completed.returncode == 3, completed.stderr
    assert "own.py:3: objective 'odd' returned no number, but 'light'" in completed.stderr


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise ValueError('no disk')", "the export format 'odd' failed: own.py:5: ValueError: no disk"),
        ("return None", "own.py:3: export format 'odd' must return a list with the paths of its files, not None"),
    ],
    ids=["raises", "returns_nothing"],
)
def test_a_failing_export_leaves_the_results_of_a_run(folder: Path, body: str, message: str) -> None:
    plugin(folder, "exporter", "odd", body, "result, folder, prefix")
    (folder / "rod.yaml").write_text(STUDY.replace("OVER", "worst") + "report: {export: [odd]}\n")
    completed = designopt(folder, "run", "rod.yaml", *BOTH)
    assert completed.returncode == 4
    assert f"not exported: {message}" in completed.stderr
    assert "Traceback" not in completed.stderr
    completed = designopt(folder, "report", "results/rod.study", "--export", "odd", *BOTH)
    assert completed.returncode == 2
    assert f"error: {message}" in completed.stderr


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return result['front']", "own.py:5: TypeError"),
        ("return 'a front'", "TypeError: it must return a Section or None, not 'a front'"),
    ],
    ids=["raises", "returns_text"],
)
def test_a_failing_part_of_the_report_is_named_there_and_in_the_terminal(
    folder: Path, body: str, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    plugin(folder, "report_part", "odd", body, "result")
    (folder / "rod.yaml").write_text(STUDY.replace("OVER", "worst") + "report: {plots: [odd]}\n")
    completed = designopt(folder, "run", "rod.yaml", *BOTH)
    assert completed.returncode == 0, completed.stderr
    assert f"the part 'odd' of the report failed: {message}" in caplog.text
    assert "This part of the report failed" in (folder / "results/rod.study/report.html").read_text()


def test_a_failing_solver_is_named_with_its_line(folder: Path) -> None:
    (folder / "own.py").write_text(
        "from designopt import solver\n"
        "@solver('odd', version=1)\n"
        "class Odd:\n    def solve(self, problem, evaluate, rng, start):\n        return problem.dimension_of_space\n"
    )
    (folder / "rod.yaml").write_text(STUDY.replace("OVER", "worst").replace("{use: random, samples: 6}", "{use: odd}"))
    completed = designopt(folder, "run", "rod.yaml", *BOTH)
    assert completed.returncode == 2
    assert "error: the solver 'odd' failed: own.py:5: AttributeError" in completed.stderr
    assert "Traceback" not in completed.stderr


def test_an_output_that_is_nan_in_all_designs_is_named_as_the_cause(folder: Path) -> None:
    (folder / "rod.py").write_text(MODEL.replace('design["side"] ** 2', 'float("nan")'))
    run = designopt(folder, "run", "rod.yaml", "--plugin", "rod.py")
    assert run.returncode == 1, run.stderr
    assert "No feasible design was found: output 'mass' is NaN or infinite in all 6 designs." in run.stderr
    listing = designopt(folder, "show", "results/rod.study", "--plugin", "rod.py")
    assert "Output 'mass' is NaN or infinite in all 6 designs, so there is no design to choose." in listing.stdout
    page = next((folder / "results" / "rod.study").glob("*.html")).read_text()
    assert "mass&#39; is NaN or infinite in all 6 designs" in page


def test_an_output_that_is_nan_in_some_designs_is_a_failure_of_these(folder: Path) -> None:
    (folder / "rod.py").write_text(
        MODEL.replace('design["side"] ** 2', '(float("nan") if design["side"] < 0.6 else 1)')
    )
    run = designopt(folder, "run", "rod.yaml", "--plugin", "rod.py")
    assert "is NaN or infinite" not in run.stdout + run.stderr
