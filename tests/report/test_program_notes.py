"""The terminal and the first part of the page say the same about the programs of a study."""

from pathlib import Path
from typing import Any

import pytest

from designopt import define
from designopt.plugin import load_file
from designopt.report.parts.answer.overview import overview
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


def result_of(folder: Path, force: float) -> Any:
    file = folder / "limited_block.py"
    file.write_text(MODEL)
    load_file(str(file), file.read_bytes())
    study = define(
        study="moved",
        model={"use": "limited_block"},
        scenarios=[{"name": "level", "force": force}],
        objectives=[{"name": "effort", "minimize": "effort"}],
        execution={"executor": "serial"},
        solver={"use": "collocation", "intervals": 10},
    )
    return study.run(folder / "s")


@pytest.mark.parametrize(
    ("force", "beginning"),
    [
        (20.0, "nonsmooth_model: the rate of 'v' of move has abs"),
        (2.0, "violated at the last iterate, the worst first: rate of 'x' of move"),  # 4 m/s^2 are needed
    ],
    ids=["solved", "infeasible"],
)
def test_the_terminal_and_the_page_have_the_same_notes_of_programs(
    tmp_path: Path, force: float, beginning: str
) -> None:
    result = result_of(tmp_path, force)
    notes = [text.removeprefix("note: ") for text in summary_table(result).splitlines() if text.startswith("note: ")]
    findings = [text[0].lower() + text[1:].removesuffix(".") for text in overview(result).findings]

    assert [text for text in notes if text.startswith(beginning)] != []
    assert set(notes) <= set(findings)
