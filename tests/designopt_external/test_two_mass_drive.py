"""One drive, three times: declared by its equations, as an FMU and as MJCF. The numbers agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fmus import fmu, needs_fmus, needs_mujoco

import designopt
from designopt import define
from designopt.models import Condition, Parameter, Peak, Setting, State, motion

MJCF = """\
<mujoco>
  <option timestep="0.0005" integrator="RK4" gravity="0 0 0"/>
  <worldbody>
    <body name="first">
      <joint name="first" type="slide" axis="1 0 0"/>
      <inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/>
      <body name="second">
        <joint name="stretch" type="slide" axis="-1 0 0" stiffness="400" damping="1"/>
        <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="force" joint="first"/></actuator>
  <sensor><framepos name="second" objtype="xbody" objname="second"/></sensor>
</mujoco>
"""
FMU = {
    "use": "fmu",
    "file": "spring.fmu",
    "step": "1 ms",
    "outputs": {"travel": {"variable": "x2"}, "stretch_end": {"variable": "spring.stretch"},
                "stretch_peak": {"variable": "spring.stretch", "take": "largest"}},
}  # fmt: skip
MUJOCO = {
    "use": "mujoco",
    "file": "drive.xml",
    "duration": "2 s",
    "step": "1 ms",
    "inputs": {"spring_k": {"set": "joint/stretch/stiffness", "unit": "N/m"},
               "spring_d": {"set": "joint/stretch/damping", "unit": "N*s/m"},
               "m2": {"set": "body/second/mass", "unit": "kg"}},
    "conditions": {"force": {"set": "control/force", "unit": "N"}},
    "outputs": {"travel": {"sensor": "second", "component": 0, "unit": "m"},
                "stretch_end": {"position": "joint/stretch", "unit": "m"},
                "stretch_peak": {"position": "joint/stretch", "unit": "m", "take": "largest"}},
}  # fmt: skip


@motion("two_mass_drive", version=1, cost="stretch_peak")
class TwoMassDrive:
    """Two masses on a spring with a damper, from rest; a force acts on the first."""

    spring_k = Parameter("N/m", "stiffness", gt=0)
    spring_d = Parameter("N*s/m", "damping", ge=0)
    m2 = Parameter("kg", "second mass", gt=0)
    force = Condition("N", "on the first mass", 1.0)
    m1 = Setting("kg", "first mass", 2.0, gt=0)
    duration = Setting("s", "of the motion", 2.0, gt=0)
    x1 = State("m", "position of the first mass")
    v1 = State("m/s", "its velocity")
    x2 = State("m", "position of the second mass")
    v2 = State("m/s", "its velocity")
    stretch_peak = Peak("m", "maximum stretch")

    def equations(self, v):  # type: ignore[no-untyped-def]
        spring = v.spring_k * (v.x1 - v.x2) + v.spring_d * (v.v1 - v.v2)
        rates = {"x1": v.v1, "v1": (v.force - spring) / v.m1, "x2": v.v2, "v2": spring / v.m2}
        return {**rates, "stretch_peak": v.x1 - v.x2}


def sweep(model: dict[str, Any], objective: str, count: int, store: str, allow: list[str] | None = None) -> Any:
    study = define(**{
        "study": "drive",
        "model": model,
        "space": {"spring_k": ["50 N/m", "1000 N/m"], "spring_d": ["0.1 N*s/m", "20 N*s/m"], "m2": ["0.5 kg", "3 kg"]},
        "scenarios": [{"name": "push", "force": "1.5 N"}],
        "objectives": [{"minimize": objective}],
        "solver": {"use": "latin_hypercube", "samples": count},
        "execution": {"executor": "serial"},
    })  # fmt: skip
    result = study.run(store, allow=allow or [])
    assert (result.status == "ok").all()
    return result


@needs_fmus
@needs_mujoco
def test_the_declared_drive_the_fmu_and_the_mjcf_file_agree_over_a_hundred_designs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fmu(tmp_path / "spring.fmu")
    (tmp_path / "drive.xml").write_text(MJCF)
    of_fmu = sweep(FMU, "stretch_peak", 100, "fmu.study", ["spring.fmu"])
    of_mjcf = sweep(MUJOCO, "stretch_peak", 100, "mjcf.study")
    declared = sweep({"use": "two_mass_drive"}, "stretch_peak", 100, "declared.study")
    np.testing.assert_array_equal(of_fmu.outcomes.X, of_mjcf.outcomes.X)
    np.testing.assert_array_equal(of_fmu.outcomes.X, declared.outcomes.X)
    for name in ("travel", "stretch_end", "stretch_peak"):
        np.testing.assert_allclose(of_fmu.outcomes.figures[name], of_mjcf.outcomes.figures[name], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        of_fmu.outcomes.figures["stretch_peak"], declared.outcomes.figures["stretch_peak"], rtol=1e-6
    )
