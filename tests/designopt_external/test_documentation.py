"""The recipes on the pages about external programs, FMUs and MuJoCo models run as they are printed."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from fmus import fmu, needs_fmus, needs_mujoco

import designopt
from designopt import define
from designopt.cli import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "external_programs.md").read_text(encoding="utf-8")


def block(fence: str, page: str = PAGE) -> str:
    (text,) = re.findall(rf"^```{fence}\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)
    return str(text)


def needs(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def test_the_commands_of_the_first_minutes_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("python3")
    monkeypatch.chdir(tmp_path)
    for line in block("sh").splitlines():
        program, *arguments = line.split()
        if program == "cd":
            monkeypatch.chdir(arguments[0])
            continue
        budget = ["--set", "budget.evaluations=20"] if arguments[0] == "run" else []
        if arguments[0] == "run":  # in a process of its own: a command ends its workers with itself
            command = [sys.executable, "-m", "designopt", *arguments, *budget, "--progress", "none"]
            subprocess.run(command, check=True, capture_output=True)
        else:
            outcome = CliRunner().invoke(main, arguments)
            assert outcome.exit_code == 0, outcome.output
    assert sorted(file.name for file in Path("first").iterdir()) == ["beam.inp", "beam_solver.py"]


@pytest.mark.parametrize("name", ["ends", "execution"])
def test_the_sections_on_the_page_are_valid(folder: Path, name: str) -> None:
    section = yaml.safe_load(block(f"yaml {name}"))
    study = yaml.safe_load(Path("study.yaml").read_text())
    if name == "ends":
        study["model"] |= section
    else:
        study["execution"] = {**section["execution"], "at_most": {"cantilever": 1}}
    Path("study.yaml").write_text(yaml.safe_dump(study))
    designopt.load("study.yaml")


def test_the_table_of_filters_is_what_templates_write() -> None:
    from designopt_external.program.templates import DeckTemplate, UnitNumber

    rows = re.findall(r"^\| `(\{\{ x.*?\}\})` \| `(.*?)`", PAGE, flags=re.MULTILINE)
    assert len(rows) == 5
    for text, filled in rows:
        assert DeckTemplate.read("deck", text).fill({"x": UnitNumber.with_unit(12.345678, "mm")}) == filled


def test_the_study_of_the_bracket_runs_with_calculix(tmp_path: Path) -> None:
    needs("ccx")
    (line,) = block("sh calculix").splitlines()
    assert line.endswith("--allow ccx")
    study = designopt.load(ROOT / line.split()[2])
    thin = {"thickness": 3.0, "rib_height": 20.0, "rib_thickness": 3.0, "material": "steel"}
    slender = study.evaluate(thin, allow=["ccx"])
    assert slender.status == "ok", slender.message
    # the volume of the plate, and of the rib, which is lower towards the tip
    assert slender.outputs["volume"] == pytest.approx(120.0 * (40.0 * 3.0 + 3.0 * 20.0 * 0.65), rel=1e-6)
    light = study.evaluate({**thin, "material": "aluminium"}, allow=["ccx"])
    # statics: deflections are inverse to Young's modulus but for the other Poisson's ratio
    assert light.outputs["deflection"] / slender.outputs["deflection"] == pytest.approx(3.0, rel=0.02)


def test_a_plate_without_a_rib_has_the_deflection_of_beam_theory() -> None:
    needs("ccx")
    study = designopt.load(ROOT / "studies" / "bracket_calculix.yaml", overrides=["space.rib_height=0.01 mm"])
    evaluation = study.evaluate({"thickness": 8.0, "rib_thickness": 8.0, "material": "steel"}, allow=["ccx"])
    beam = 600.0 * 120.0**3 / (3.0 * 210e3 * 40.0 * 8.0**3 / 12.0)  # Euler-Bernoulli
    # anticlastic bending and clamp: some percent
    assert evaluation.outputs["deflection"] == pytest.approx(beam, rel=0.05)


def test_the_recipe_for_octave_agrees_with_the_exact_motion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("octave-cli")
    monkeypatch.chdir(tmp_path)
    Path("spring.m.j2").write_text(block("text octave"))
    Path("spring.yaml").write_text(block("yaml octave"))
    evaluation = designopt.load("spring.yaml").evaluate({"stiffness": 30e3, "damping": 600.0}, allow=["octave-cli"])
    assert evaluation.status == "ok", evaluation.message
    decay, frequency = 1.0, np.sqrt(30e3 / 300.0 - 1.0)
    t = np.linspace(2.0, 3.0, 100_001)
    x = 0.1 * np.exp(-decay * t) * (np.cos(frequency * t) + decay / frequency * np.sin(frequency * t))
    assert evaluation.outputs["left"] == pytest.approx(np.abs(x).max(), rel=1e-4)  # at steps of 1 ms


def test_the_recipe_for_a_compiled_code_gives_the_beam_formula(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("cc")
    monkeypatch.chdir(tmp_path)
    Path("beam.c").write_text(block("c"))
    subprocess.run(["cc", "-o", "beam", "beam.c", "-lm"], check=True)
    Path("beam.dat.j2").write_text("{{ width }} {{ height }}\n")
    Path("study.yaml").write_text(block("yaml compiled"))
    evaluation = designopt.load("study.yaml").evaluate({"width": 0.02, "height": 0.05}, allow=["beam=./beam"])
    assert evaluation.outputs == {
        "sag": pytest.approx(1000.0 / (3.0 * 210e9 * 0.02 * 0.05**3 / 12.0), rel=1e-14),
        "mass": pytest.approx(7800.0 * 0.02 * 0.05, rel=1e-14),
    }


def test_the_subclass_on_the_page_reads_a_result(folder: Path) -> None:
    Path("my_beam.py").write_text(block("python subclass"))
    study = yaml.safe_load(Path("study.yaml").read_text())
    study["model"] |= {"use": "my_beam", "outputs": {"mass": {"unit": "kg"}}}
    (folder / "programs" / "cantilever").write_text("#!/bin/sh\necho mass 2.5 kg\n")
    study["objectives"] = [{"minimize": "mass"}]
    Path("study.yaml").write_text(yaml.safe_dump(study))
    evaluation = designopt.load("study.yaml", plugin_files=["my_beam.py"]).evaluate(
        {"width": 0.05, "height": 0.05}, allow=["cantilever"]
    )
    assert evaluation.outputs == {"mass": 2.5}


FMU_MUJOCO = (Path(__file__).parents[2] / "docs" / "fmu_mujoco.md").read_text(encoding="utf-8")
REST: dict[str, Any] = {"study": "page", "solver": {"use": "latin_hypercube", "samples": 2}}
PENDULUM = """\
<mujoco>
  <worldbody><body name="bob"><joint name="swing" axis="0 1 0"/><geom name="rod" type="capsule" size="0.01 0.2"/></body>
  </worldbody>
  <actuator><motor name="drive" joint="swing"/></actuator>
  <sensor><jointvel name="rate" joint="swing"/></sensor>
</mujoco>
"""


@needs_fmus
def test_the_commands_for_an_fmu_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fmu(tmp_path / "spring.fmu")
    for line in block("sh", FMU_MUJOCO).splitlines():
        arguments = shlex.split(line)[1:]
        serial = ["--set", "execution.executor=serial"] if arguments[0] == "run" else []
        outcome = CliRunner().invoke(main, [*arguments, *serial])
        assert outcome.exit_code == 0, outcome.output


@needs_fmus
def test_the_section_for_an_fmu_is_valid_and_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fmu(tmp_path / "spring.fmu")
    (tmp_path / "push.csv").write_text("time,force\n0,0\n1,2\n2,0\n")
    study = define(**REST, **yaml.safe_load(block("yaml fmu", FMU_MUJOCO)), objectives=[{"minimize": "peak"}])
    evaluation = study.evaluate({"spring_k": 300.0, "m2": 1.0}, allow=["spring.fmu"])
    assert evaluation.status == "ok", evaluation.message


@needs_mujoco
def test_the_section_for_mujoco_is_valid_and_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pendulum.xml").write_text(PENDULUM)
    space = {"stiffness": [1, 2], "length": [0.1, 0.3], "mass": [1, 2], "angle": [0.1, 0.2]}
    parts = {"space": space, "scenarios": [{"name": "a", "torque": 1}], "objectives": [{"minimize": "effort"}]}
    study = define(**REST, **yaml.safe_load(block("yaml mujoco", FMU_MUJOCO)), **parts)
    evaluation = study.evaluate({"stiffness": 1.0, "length": 0.2, "mass": 1.0, "angle": 0.1}, arrays=["swing"])
    assert evaluation.status == "ok", evaluation.message
    assert evaluation.outputs["effort"] == pytest.approx(1.0)
