"""Studies that analyse, through the command line: no objectives, designs that are given, or the model as it is."""

from pathlib import Path

import command
import numpy as np
import pytest
from command import Done

from designopt import open_store

MODEL = '''
from typing import Annotated, TypedDict
import numpy as np
from designopt import Array, Diverged, Quantity as Q, model

class Design(TypedDict, total=False):
    side: Annotated[float, Q("m", "side of the section", gt=0)]

class Conditions(TypedDict, total=False):
    load: Annotated[float, Q("N", "load at the tip", gt=0)]

class Out(TypedDict):
    mass: Annotated[float, Q("kg", "mass of the beam")]
    sag: Annotated[float, Q("mm", "sag under the load")]

@model("beam", version=1, arrays={"line": Array(("x",), "mm", "deflection")})
def beam(design: Design, scenario: Conditions, arrays) -> tuple[Out, dict]:
    """A cantilever of square section, 1 m long."""
    side = design.get("side", 0.02)
    if side < 0.004:
        raise Diverged("the section folds", reason="folded")
    sag = 1000.0 * scenario.get("load", 100.0) / (3 * 2.1e11 * side**4 / 12)
    return {"mass": 7850.0 * side**2, "sag": sag}, {"line": np.linspace(0.0, sag, 5)}
'''

STUDY = """\
study: beam
model: {use: beam}
scenarios:
  - {name: light, load: 50}
  - {name: heavy, load: 0.2 kN}
solver:
  use: evaluate
  designs:
    - {name: thin, side: 3 mm}
    - {name: thick, side: 4 cm}
execution: {executor: serial, arrays: [line]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "beam.py").write_text(MODEL)
    (tmp_path / "beam.yaml").write_text(STUDY)
    return tmp_path


def designopt(folder: Path, *arguments: str) -> Done:
    return command.designopt(folder, *arguments, "--plugin", "beam.py")


def test_given_designs_are_evaluated_in_every_scenario_and_shown_by_their_names(folder: Path) -> None:
    completed = designopt(folder, "run", "beam.yaml", "-o", "s.study")
    assert completed.returncode == 0, completed.stderr
    lines = [line.split() for line in completed.stdout.splitlines()]
    assert lines[0] == ["design", "scenario", "status", "mass", "[kg]", "sag", "[mm]"]
    assert lines[1] == ["thin", "light", "diverged", "–", "–"]
    # 0.2 kN on 1 m of 4 cm square steel: F l^3 / (3 E I), I = a^4 / 12.
    assert lines[4] == ["thick", "heavy", "ok", "12.56", "1.488"]
    design_page = designopt(folder, "show", "s.study/thick")
    assert design_page.stdout.startswith("design 1 of s.study: thick")
    result = open_store(folder / "s.study")
    assert result.arrays(1, "heavy")["line"][-1] == pytest.approx(1.488, abs=5e-4)
    assert len(result.front()) == 0
    assert result.chosen() == {}


def test_the_report_of_an_analysis_has_no_parts_about_objectives(folder: Path) -> None:
    assert designopt(folder, "run", "beam.yaml", "-o", "s.study").returncode == 0
    page = (folder / "s.study/report.html").read_text()
    titles = [part.split("</h2>")[0] for part in page.split("<h2>")[1:]]
    assert titles == ["Analysis", "Overview", "Maps", "The problem", "Failures", "Record"]
    assert "part of the report failed" not in page
    assert "What does beam give for 2 designs in 2 scenarios?" in page


def test_the_model_as_it_is_and_a_table_of_designs(folder: Path) -> None:
    (folder / "plain.yaml").write_text(
        "study: plain\nmodel: {use: beam}\nsolver: {use: evaluate}\nexecution: {executor: serial}\n"
    )
    completed = designopt(folder, "run", "plain.yaml", "-o", "plain.study")
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.splitlines()[1].split() == ["0", "ok", "3.14", "11.9"]
    (folder / "sides.csv").write_text("name,side [mm]\nthin,5\nthick,40\n")
    (folder / "table.yaml").write_text(
        "study: table\nmodel: {use: beam}\nspace: {side: {low: 2 mm, high: 50 mm, unit: cm}}\n"
        "constraints: [{name: stiff, of: sag, max: 5 mm}]\n"
        "solver: {use: evaluate, table: sides.csv}\nexecution: {executor: serial}\n"
    )
    completed = designopt(folder, "run", "table.yaml", "-o", "table.study")
    assert completed.returncode == 0, completed.stderr
    result = open_store(folder / "table.study")
    assert result.named == {"thin": 0, "thick": 1}
    np.testing.assert_array_equal(result.outcomes.feasible, [False, True])
    resumed = designopt(folder, "resume", "table.study")
    assert resumed.returncode == 0
    assert open_store(folder / "table.study").counts["evaluations"] == 2


def test_an_analysis_without_results_reports_it(folder: Path) -> None:
    completed = designopt(
        folder, "run", "beam.yaml", "--set", "solver.designs=[{name: thin, side: 1 mm}]", "-o", "s.study"
    )
    assert completed.returncode == 1
    assert "No design has a feasible result" in completed.stderr
    assert "Most frequent failure: diverged (folded), 2 of 2" in completed.stderr


def test_a_sampler_needs_no_objectives_but_a_search_does(folder: Path) -> None:
    space = ["--set", "space={side: [0.01, 0.05]}"]
    completed = designopt(
        folder, "run", "beam.yaml", *space, "--set", "solver={use: full_factorial, levels: 3}", "-o", "s.study"
    )
    assert completed.returncode == 0, completed.stderr
    assert open_store(folder / "s.study").outcomes.figures["sag"].shape == (3, 2)
    search = designopt(folder, "validate", "beam.yaml", *space, "--set", "solver={use: nelder_mead}")
    assert search.returncode == 2
    assert "'objectives' is missing (quantities to minimise or maximise)" in search.stderr


DECLARING = '''
from designopt import Declaration, InputFile, Quantity as Q, model

@model("rack", version=1)
class Rack:
    """A rack with a load on each shelf that a file names."""

    shelves: InputFile

    def declares(self) -> Declaration:
        names = self.shelves.text().split()
        return Declaration(
            inputs={f"load_{n}": Q("N", f"load on {n}", ge=0.0) for n in names},
            outputs={f"sag_{n}": Q("mm", f"sag of {n}") for n in names},
        )

    def evaluate(self, design, scenario):
        return {f"sag_{n}": 0.01 * design[f"load_{n}"] for n in self.shelves.text().split()}
'''


def test_show_tells_what_follows_from_settings(folder: Path) -> None:
    (folder / "beam.py").write_text(DECLARING)
    (folder / "shelves.txt").write_text("top bottom")
    completed = designopt(folder, "show", "rack", "--set", "model.shelves=shelves.txt")
    assert completed.returncode == 0, completed.stderr
    assert "load_bottom" in completed.stdout
    assert "sag_top" in completed.stdout
    assert "load_bottom" not in designopt(folder, "show", "rack").stdout
    for change, message in (
        ("model.shelves=shelf.txt", "file 'shelf.txt' does not exist"),
        ("model.shelve=shelves.txt", "unknown key 'shelve'; did you mean 'shelves'?"),
        ("shelves=shelves.txt", "is given as model.setting=value"),
    ):
        wrong = designopt(folder, "show", "rack", "--set", change)
        assert wrong.returncode == 2
        assert message in wrong.stderr
    (folder / "rack.yaml").write_text(
        "study: rack\nmodel: {use: rack, shelves: shelves.txt}\nexecution: {executor: dask, workers: 1}\n"
        "solver: {use: evaluate, designs: [{name: full, load_top: 200, load_bottom: 0.3 kN}]}\n"
    )
    completed = designopt(folder, "run", "rack.yaml", "-o", "s.study")
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.splitlines()[1].split() == ["full", "ok", "2", "3"]
