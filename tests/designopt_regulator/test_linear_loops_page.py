"""What docs/linear_loops.md shows works as written, and its tables are complete."""

import re
import shlex
import shutil
import typing
from pathlib import Path

import pytest
from designopt_regulator.controllers.pid import PARAMETERS
from designopt_regulator.linear_loop.plant_setting import NUMBERS, LinearPlant
from designopt_regulator.plants.linear import transfer_function

import designopt
from designopt.cli import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "linear_loops.md").read_text(encoding="utf-8")


def code_block(language: str) -> str:
    (block,) = re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)
    return str(block)


def rows(section: str) -> dict[str, str]:
    """The rows of a section's table below its head, the first cell and the rest as text."""
    text = PAGE[PAGE.index(f"## {section}\n") :]
    text = text[text.index("|---|") : text.find("\n## ", 1)]
    return dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", text, flags=re.MULTILINE))


def names(cell: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`(\w+)`", cell))


def test_the_table_of_plants_lists_every_type_with_its_numbers() -> None:
    types = typing.get_args(typing.get_args(typing.get_type_hints(LinearPlant, include_extras=True)["type"])[0])
    assert {kind: names(text) for kind, text in rows("The plant").items()} == {kind: NUMBERS[kind] for kind in types}


def test_the_table_of_kinds_lists_what_each_has() -> None:
    table = {kind: names(text.split(" | ")[0]) for kind, text in rows("The controller").items()}
    assert table == PARAMETERS


def test_the_transfer_function_is_the_one_that_its_remark_says() -> None:
    plant = transfer_function([8.0], [0.003, 0.17, 1.0, 0.0], 0.03)
    s = 2j
    expected = 8.0 / (s * (0.02 * s + 1.0) * (0.15 * s + 1.0))
    assert abs(plant.response(2.0)) == pytest.approx(abs(expected), rel=1e-9)


def test_the_study_of_a_transfer_function_runs_as_printed(tmp_path: Path) -> None:
    (tmp_path / "servo.yaml").write_text(code_block("yaml"))
    few = ["stages.front.budget.evaluations=4", "stages.front.solver.population=4"]
    result = designopt.load(tmp_path / "servo.yaml", overrides=few).run(tmp_path / "store", executor="serial")
    assert "ok" in result.status


@pytest.mark.parametrize("block", ["sh", "sh compare", "sh export"])
def test_the_commands_work_one_after_the_other(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With fewer designs than printed: a random sample of 1000 becomes one of 16, among which there is no knee, and
    each of the chosen has two neighbours within its tolerances."""
    shutil.copytree(ROOT / "studies", tmp_path / "studies")
    monkeypatch.chdir(tmp_path)
    for line in (
        code_block(block)
        .replace("1000", "16")
        .replace("results/own_plant.study/knee", "'results/own_plant.study/best iae'")
        .splitlines()
    ):
        program, *arguments = shlex.split(line)
        assert program == "designopt"
        if arguments[0] == "run":
            arguments += ["--executor", "serial", "--set", "report.validate.scenarios.count=1"]
            arguments += ["--set", "report.tolerances={neighbours: 2, front: 0}"]
            if "random" not in line:
                arguments += [
                    "--set",
                    "stages.front.budget.evaluations=16",
                    "--set",
                    "stages.front.solver.population=8",
                ]
        with pytest.raises(SystemExit) as end:
            main(arguments)
        assert end.value.code in (0, 1)  # 1: nothing feasible among so few
    stores = {path.name for path in (tmp_path / "results").iterdir()}
    assert stores >= (
        {"own_plant.study", *(["controller.c", "controller.st"] if block == "sh export" else [])}
        if block != "sh compare"
        else {"benchmark_plants.study", "chance.study"}
    )
    if block == "sh compare":
        assert capsys.readouterr().out.strip().endswith("comparison.html")


def test_the_delayed_plant_is_controlled_as_the_page_states() -> None:
    problem = designopt.load(ROOT / "studies" / "late_plant.yaml").problem
    model = problem.model.build()
    for design, iae, ms in (
        ({"structure": "single", "kp": 0.25, "ti": 1.0}, 9.64, 1.81),
        ({"structure": "smith", "kp": 0.7743, "ti": 1.282}, 8.15, 1.73),
    ):
        assert f"{iae} s at" in PAGE
        answers = [model.evaluate(design, scenario.values, frozenset())[0] for scenario in problem.scenarios]
        assert max(a["iae_setpoint"] + a["iae_load"] for a in answers) == pytest.approx(iae, abs=0.01)
        assert max(a["ms"] for a in answers) == pytest.approx(ms, abs=0.01)
