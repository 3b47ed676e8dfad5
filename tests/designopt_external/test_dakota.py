"""Drivers written for Dakota's fork interface: its parameters file, its results file, aprepro templates."""

import sys
from pathlib import Path

import pytest
from designopt_external.program.dakota import parameters_file, results

import designopt

PARAMETERS = """\
                       3 variables
   5.000000000000000e-02 width
                       2 layers
                   steel material
                       2 functions
                       1 ASV_1:sag
                       1 ASV_2:mass
                       1 derivative_variables
                       1 DVV_1:width
                       0 analysis_components
                       1 eval_id
"""


def test_the_parameters_file_has_the_standard_format_of_dakota() -> None:
    values = {"width": 0.05, "layers": 2, "material": "steel"}
    assert parameters_file(values, ["sag", "mass"]) == PARAMETERS


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1.5 sag\n2.0 mass\n", {"sag": 1.5, "mass": 2.0}),
        ("1.5\n 2.0E+00\n", {"1": 1.5, "2": 2.0}),
        ("1.5 sag 2.5 mass", {"sag": 1.5, "mass": 2.5}),
        ("1.5 sag\n[ 1.0 2.0 ]\n[[ 1 0\n 0 1 ]]\n", {"sag": 1.5}),
        ("1.5 sag\n2.5 mass\n[ 1.0 ]\n[ 3.0 ]\n", {"sag": 1.5, "mass": 2.5}),
    ],
)
def test_function_values_are_read_and_derivatives_skipped(text: str, values: dict[str, float]) -> None:
    assert results(text) == values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fail\n", "line 1: the driver reports a failure"),
        ("1.0 sag\nmass 2.0\n", "line 2: expected a function value, not"),
    ],
)
def test_a_mistake_in_a_results_file_has_its_line(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        results(text)


DRIVER = f"""#!{sys.executable} -SE
import sys
deck = dict(line.split() for line in open("beam.in"))
values = {{words[1]: words[0] for words in map(str.split, open(sys.argv[1]))}}
assert values["width"] == "%.15e" % float(deck["width"])
assert values["variables"] == "2" and values["ASV_1:area"] == "1"
with open(sys.argv[2], "w") as out:
    out.write("%.15e area\\n" % (float(deck["width"]) * float(values["height"])))
"""

STUDY = """
study: driver
model:
  use: program
  run: [driver, params.in, results.out]
  parameters: params.in
  aprepro: [beam.in]
  inputs: {width: m, height: m}
  outputs:
    area: {dakota: results.out, response: area, unit: m^2}
    again: {dakota: results.out, response: 1, unit: m^2}
space: {width: [1 cm, 2 cm], height: [1 cm, 2 cm]}
objectives: [{minimize: area}]
solver: {use: latin_hypercube, samples: 2}
execution: {executor: serial}
"""


def test_a_driver_for_dakota_works_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("driver").write_text(DRIVER)
    Path("driver").chmod(0o755)
    Path("beam.in").write_text("width {width}\n")
    Path("study.yaml").write_text(STUDY)
    evaluation = designopt.load("study.yaml").evaluate({"width": 0.01, "height": 0.02}, allow=["driver=driver"])
    assert evaluation.status == "ok", evaluation.message
    assert evaluation.outputs == {"area": pytest.approx(2e-4), "again": pytest.approx(2e-4)}
