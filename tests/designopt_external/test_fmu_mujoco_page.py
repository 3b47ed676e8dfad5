"""The commands and sections on the page about FMUs and MuJoCo models work as they are printed."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from fmus import fmu, needs_fmus, needs_mujoco

from designopt import define
from designopt.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "fmu_mujoco.md").read_text(encoding="utf-8")
REST: dict[str, Any] = {"study": "page", "solver": {"use": "latin_hypercube", "samples": 2}}
PENDULUM = """\
<mujoco>
  <worldbody><body name="bob"><joint name="swing" axis="0 1 0"/><geom name="rod" type="capsule" size="0.01 0.2"/></body>
  </worldbody>
  <actuator><motor name="drive" joint="swing"/></actuator>
  <sensor><jointvel name="rate" joint="swing"/></sensor>
</mujoco>
"""


def block(fence: str) -> str:
    (text,) = re.findall(rf"^```{fence}\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
    return str(text)


@needs_fmus
def test_the_commands_for_an_fmu_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fmu(tmp_path / "spring.fmu")
    for line in block("sh").splitlines():
        arguments = shlex.split(line)[1:]
        serial = ["--set", "execution.executor=serial"] if arguments[0] == "run" else []
        outcome = CliRunner().invoke(main, [*arguments, *serial])
        assert outcome.exit_code == 0, outcome.output


@needs_fmus
def test_the_section_for_an_fmu_is_valid_and_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fmu(tmp_path / "spring.fmu")
    (tmp_path / "push.csv").write_text("time,force\n0,0\n1,2\n2,0\n")
    study = define(**REST, **yaml.safe_load(block("yaml fmu")), objectives=[{"minimize": "peak"}])
    evaluation = study.evaluate({"spring_k": 300.0, "m2": 1.0}, allow=["spring.fmu"])
    assert evaluation.status == "ok", evaluation.message


@needs_mujoco
def test_the_section_for_mujoco_is_valid_and_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pendulum.xml").write_text(PENDULUM)
    space = {"stiffness": [1, 2], "length": [0.1, 0.3], "mass": [1, 2], "angle": [0.1, 0.2]}
    parts = {"space": space, "scenarios": [{"name": "a", "torque": 1}], "objectives": [{"minimize": "effort"}]}
    study = define(**REST, **yaml.safe_load(block("yaml mujoco")), **parts)
    evaluation = study.evaluate({"stiffness": 1.0, "length": 0.2, "mass": 1.0, "angle": 0.1}, arrays=["swing"])
    assert evaluation.status == "ok", evaluation.message
    assert evaluation.outputs["effort"] == pytest.approx(1.0)
