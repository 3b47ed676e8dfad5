"""The pages on mechanics and on mechanisms: their blocks run, their files are read, their studies are there."""

import re
from pathlib import Path

import pytest
from designopt_mechanics import solve
from designopt_mechanics.model_file.reading import read

import designopt
from designopt.plugin import installed_plugins
from designopt.report.terminal import summary_table

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "mechanics.md").read_text(encoding="utf-8")


def test_the_blocks_run_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    assert len(blocks) == 7
    for block in blocks:
        exec(compile(block, "mechanics.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "('hip',) ('flexor',) (101, 1, 1)" in printed
    assert "DONE" in printed
    assert "[[0.42778859]] [-0.045]" in printed
    assert "98.0236" in printed
    assert "99.8" in printed  # along the shank: (0.55 4 + 8) 9.81 sin 1.5


def test_the_model_file_shown_is_read() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)
    model = read(block.encode(), "shown.yaml")
    assert [wire.name for wire in model.wires] == ["quadriceps"]
    assert [spring.wire.name for spring in model.springs] == ["ligament"]
    assert [contact.name for contact in model.contacts] == ["heel"]


def test_the_table_names_models_and_studies_that_are_there() -> None:
    models = {entry.name for entry in installed_plugins("model")}
    rows = re.findall(r"^\| `(\w+)` \|.*?\| (.*?) \|$", PAGE, flags=re.MULTILINE)
    listed = [(name, re.findall(r"`(?:studies/)?(\w+\.yaml)`", last)) for name, last in rows if ".yaml" in last]
    assert len(listed) == 7
    for name, studies in listed:
        assert name in models
        for study in studies:
            assert f"use: {name}" in (ROOT / "studies" / study).read_text(encoding="utf-8")


MECHANISMS = (ROOT / "docs" / "mechanisms.md").read_text(encoding="utf-8")
YAML = re.findall(r"```yaml\n(.*?)```", MECHANISMS, flags=re.DOTALL)


def test_the_first_two_files_have_forty_lines_together_and_find_a_front(tmp_path: Path) -> None:
    mechanism, study = YAML[:2]
    assert len((mechanism + study).splitlines()) <= 40
    (tmp_path / "slider_crank.yaml").write_text(mechanism)
    (tmp_path / "stroke.yaml").write_text(study)
    overrides = ["stages.0.budget.evaluations=16", "stages.0.solver.population=8", "execution.executor=serial",
                 "report.tolerances.neighbours=0"]  # fmt: skip
    result = designopt.load(tmp_path / "stroke.yaml", overrides=overrides).run(tmp_path / "s.study")
    assert result.outcomes.feasible.all()
    assert len(result.front()) > 1


def test_the_optimal_motion_shown_is_solved_together_with_the_length_of_the_crank(tmp_path: Path) -> None:
    (tmp_path / "slider_crank.yaml").write_text(YAML[0])
    (tmp_path / "advance.yaml").write_text(YAML[2])
    result = designopt.load(tmp_path / "advance.yaml").run(tmp_path / "advance.study", executor="serial")
    (program,) = result.programs()
    assert program.status == "solved"
    assert result.outcomes.objectives[0, 0] == pytest.approx(program.figures["program(objective)"], rel=1e-4)
    assert not [line for line in summary_table(result).splitlines() if "warning" in line]


def test_the_closures_shown_are_read_and_have_forces() -> None:
    mechanism = read(YAML[3].encode(), "shown.yaml")
    assert mechanism.tree.names == ("crank", "slip")
    outputs = solve(mechanism, "inverse_dynamics", motion={"crank": "1 + time"}, samples=5).outputs
    assert 0.0 < outputs["cut_meet_peak"] < 1000.0


def test_the_laws_shown_are_read() -> None:
    mechanism = read(YAML[5].encode(), "shown.yaml")
    law = mechanism.laws["lift"]
    assert (law.friction, law.ratio, law.stop_stiffness) == (1.5, 80.0, 5000.0)
    assert mechanism.tree.coordinates[0].inertia == pytest.approx(80.0**2 * 2e-5)


def test_the_spring_shown_balances_its_arm() -> None:
    """A spring without rest length balances in every posture if k times both arms is the weight times its arm."""
    mechanism = read(YAML[6].encode(), "shown.yaml")
    k = 3.0 * 9.81 * 0.3 / (0.2 * 0.25)
    outputs = solve(mechanism, "inverse_dynamics", {"k": k}, motion={"tilt": "0.7"}, samples=3).outputs
    assert outputs["effort_tilt_peak"] < 1e-9
    assert outputs["tension_balance_peak"] > 10.0
    assert len(YAML) == 7


def test_the_python_shown_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "studies").symlink_to(ROOT / "studies")
    (tmp_path / "finger.yaml").write_text(YAML[4])
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"```python\n(.*?)```", MECHANISMS, flags=re.DOTALL):
        exec(compile(block, "mechanisms.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "('lift',) 40.0" in printed
    assert 'line 4: robot "press"/link "arm"/visual: shapes have no part' in printed
    assert "(201,)" in printed
    assert "11.9 N, 35 mm\n9.7 N, 37 mm\n7.3 N, 40 mm" in printed


def test_the_studies_of_the_table_use_the_model_and_the_task() -> None:
    rows = re.findall(r"^\| `studies/(\w+\.yaml)` \|.*\| `(\w+)` \|$", MECHANISMS, flags=re.MULTILINE)
    assert len(rows) == 4
    for name, task in rows:
        text = (ROOT / "studies" / name).read_text(encoding="utf-8")
        assert "use: mechanism" in text
        assert f"task: {task}" in text
