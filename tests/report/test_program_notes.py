"""What the terminal, the first part of the page and the part on programs say about the programs of a study."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from designopt import define
from designopt.plugin import load_file
from designopt.report.labels import difference_from_program, motion_of_program
from designopt.report.parts.answer import recommendation
from designopt.report.parts.answer.best import best
from designopt.report.parts.answer.overview import overview
from designopt.report.parts.motion.programs import programs
from designopt.report.terminal import summary_table

MODEL = """
from typing import Annotated, TypedDict
import casadi as ca
from designopt import Quantity, model
from designopt.collocation import Integral, Phase, TrajectoryProblem, solve_design
from designopt.dynamics.system import System, Variable


class Effort(TypedDict):
    effort: Annotated[float, Quantity("m^2/s^3", "integral of the squared force")]


class Design(TypedDict):
    pass


class Scenario(TypedDict):
    force: Annotated[float, Quantity("m/s^2", "largest one")]


@model("limited_block", version=1)
class LimitedBlock:
    def trajectory_problem(self, scenario):
        x, v, u = (ca.SX.sym(name) for name in ("x", "v", "u"))
        block = System.from_expressions(
            "block", states=[(Variable("x", "m"), x, v), (Variable("v", "m/s"), v, u - 1e-6 * ca.fabs(v))],
            controls=[(Variable("u", "m/s^2", -scenario["force"], scenario["force"]), u)],
        )
        move = Phase(
            block, name="move", tf=1.0, initial={"x": 0.0, "v": 0.0}, final={"x": 1.0, "v": 0.0},
            integrals={"effort": Integral(lambda v: v["u"] ** 2)},
        )
        effort = lambda e: e.integral["effort"]
        return TrajectoryProblem([move], cost=effort, figures={"effort": effort})

    def evaluate(self, design: Design, scenario: Scenario) -> Effort:
        return {"effort": solve_design(self.trajectory_problem(scenario), design).figures["effort"]}
"""


#: The same, but evaluated on a coarse mesh of its own.
COARSE = (
    MODEL.replace('"limited_block"', '"coarse_block"')
    .replace("Integral, Phase", "Integral, Options, Phase")
    .replace("    def trajectory_problem", "    own_options = True\n\n    def trajectory_problem")
    .replace("scenario), design)", "scenario), design, Options(intervals=4))")
)


def result_of(folder: Path, force: float, *, model: str = MODEL) -> Any:
    file = folder / "limited_block.py"
    file.write_text(model)
    load_file(str(file), file.read_bytes())
    study = define(
        study="moved",
        model={"use": "coarse_block" if model == COARSE else "limited_block"},
        scenarios=[{"name": "level", "force": force}],
        objectives=[{"name": "effort", "minimize": "effort"}],
        execution={"executor": "serial"},
        solver={"use": "collocation", "intervals": 10},
    )
    return study.run(folder / "s")


def findings_and_notes(result: Any) -> tuple[list[str], list[str]]:
    """The findings of the first part of the page as clauses, and the notes of the terminal."""
    notes = [text.removeprefix("note: ") for text in summary_table(result).splitlines() if text.startswith("note: ")]
    return [text[0].lower() + text[1:].removesuffix(".") for text in overview(result).findings], notes


def test_why_no_program_has_a_result_stands_on_the_terminal_and_on_the_page(tmp_path: Path) -> None:
    findings, notes = findings_and_notes(result_of(tmp_path, 2.0))  # 4 m/s^2 are needed
    beginning = "violated at the last iterate, the worst first: rate of 'x' of move"
    assert [text for text in notes if text.startswith(beginning)] != []
    assert set(notes) <= set(findings)


def test_the_page_says_what_makes_the_answer_doubtful_and_where_the_advice_is(tmp_path: Path) -> None:
    result = result_of(tmp_path, 20.0)
    hints = "hints on how the model is written are in the part Programs and in designopt show"
    findings, notes = findings_and_notes(result)
    hint = "nonsmooth_model: the rate of 'v' of move has abs"
    assert any(text.startswith(hint) for text in notes)
    assert not any("nonsmooth" in text or "abs" in text for text in findings)
    assert any(text.startswith(hints) for text in findings)
    assert any(hint in text for _, text in programs(result).details)

    record = result.best_program()
    ringing = "oscillating_control: u of move turns in nearly every interval, by up to 3 m/s^2; limit its rate"
    record.__dict__["solution"] = replace(record.solution, warnings=(*record.solution.warnings, ringing))
    findings, notes = findings_and_notes(result)
    assert ringing in notes
    assert f"{ringing}." in programs(result).findings
    assert "u of move turns in nearly every interval, by up to 3 m/s^2" in findings
    assert any(text.startswith(f"advice on this and {hints}") for text in findings)
    assert any(text.startswith("Advice on this and hints ") for text in overview(result).findings)


def test_an_objective_that_is_one_output_has_its_meaning_and_its_question(tmp_path: Path) -> None:
    result = result_of(tmp_path, 20.0)
    assert "How small can effort of moved be?" in overview(result).introduction
    table = best(result).tables[0]
    assert ("effort [m^2/s^3] (minimize)", "integral of the squared force") in [(r[0], r[-1]) for r in table.rows]


def test_values_of_a_coarser_mesh_than_that_of_the_program_are_named_beside_their_tables(tmp_path: Path) -> None:
    result = result_of(tmp_path, 5.0, model=COARSE)
    (value,), program = result.outcomes.objectives[0], result.best_program()
    motion = "its program found 12.0908"
    assert (f"{value:.4f}", motion_of_program(result, 0)[: len(motion)]) == ("12.1111", motion)
    assert difference_from_program(result, 0) == ""  # it is said already
    result.__dict__["better_motions"] = {}
    clause = (
        "values are those of the model's evaluation, which has a mesh of its own: effort 12.1111 is 12.0908"
        " m^2/s^3 in the program of the solver (error estimate 1.2e-05)"
    )
    assert difference_from_program(result, 0) == clause
    assert f"The {clause}." in [table.note for table in recommendation.tables(result)]
    assert f"The {clause}." == best(result).tables[0].note
    program.figures.update({"program(objective)": value * (1 + 1e-7), "effort": value * (1 - 1e-7)})
    assert difference_from_program(result, 0) == ""
    (tmp_path / "shared").mkdir()
    assert difference_from_program(result_of(tmp_path / "shared", 5.0), 0) == ""
