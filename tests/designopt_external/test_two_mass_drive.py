"""One drive, three times: declared by its equations, as an FMU and as MJCF. The numbers agree."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fmus import fmu, needs_fmus, needs_mujoco

from designopt import define
from designopt.models import Condition, Final, Integral, Parameter, Setting, State, motion

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
                "stretch_integral": {"variable": "spring.stretch", "take": "integral"}},
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
                "stretch_integral": {"position": "joint/stretch", "unit": "m", "take": "integral"}},
}  # fmt: skip


@motion("two_mass_drive", version=1, cost="stretch_integral")
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
    travel = Final("m", "position of the second mass at the end")
    stretch_end = Final("m", "stretch at the end")
    stretch_integral = Integral("m*s", "integral of the stretch")

    def equations(self, v):  # type: ignore[no-untyped-def]
        spring = v.spring_k * (v.x1 - v.x2) + v.spring_d * (v.v1 - v.v2)
        rates = {"x1": v.v1, "v1": (v.force - spring) / v.m1, "x2": v.v2, "v2": spring / v.m2}
        figures = {"travel": v.x2, "stretch_end": v.x1 - v.x2, "stretch_integral": v.x1 - v.x2}
        return {**rates, **figures}


def sweep(model: dict[str, Any], count: int, store: str, allow: list[str] | None = None) -> Any:
    study = define(**{
        "study": "drive",
        "model": model,
        "space": {"spring_k": ["50 N/m", "1000 N/m"], "spring_d": ["0.1 N*s/m", "20 N*s/m"], "m2": ["0.5 kg", "3 kg"]},
        "scenarios": [{"name": "push", "force": "1.5 N"}],
        "objectives": [{"minimize": "stretch_integral"}],
        "solver": {"use": "latin_hypercube", "samples": count},
        "execution": {"executor": "serial"},
    })  # fmt: skip
    result = study.run(store, allow=allow or [])
    assert (result.status == "ok").all()
    return result


@needs_fmus
@needs_mujoco
def test_the_declared_drive_the_fmu_and_the_mjcf_file_agree_over_forty_designs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fmu(tmp_path / "spring.fmu")
    (tmp_path / "drive.xml").write_text(MJCF)
    of_fmu = sweep(FMU, 40, "fmu.study", ["spring.fmu"])
    of_mjcf = sweep(MUJOCO, 40, "mjcf.study")
    declared = sweep({"use": "two_mass_drive", "rtol": 1e-10}, 40, "declared.study")
    np.testing.assert_array_equal(of_fmu.outcomes.X, of_mjcf.outcomes.X)
    np.testing.assert_array_equal(of_fmu.outcomes.X, declared.outcomes.X)
    # the trapezoidal rule with steps of 1 ms and the outputs near zero are why there is an absolute part
    for name in ("travel", "stretch_end", "stretch_integral"):
        expected = declared.outcomes.figures[name]
        for result in (of_fmu, of_mjcf):
            np.testing.assert_allclose(result.outcomes.figures[name], expected, rtol=1e-6, atol=1e-9)
