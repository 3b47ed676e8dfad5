"""Lengths and moment arms of the reference arm's wires against MuJoCo's spatial tendons. Run: pytest -m bench -s.

MuJoCo is no dependency: install it (``pip install mujoco``) where DESIGNOPT_PEERS_MECHANICS points to.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from designopt_mechanics.tree_rows import TreeRows

sys.path.insert(0, str(Path(__file__).parent))

from reference_arm import reference_arm

pytestmark = pytest.mark.bench

PEER = os.environ.get("DESIGNOPT_PEERS_MECHANICS", "")
SCRIPT = Path(__file__).parent / "peers" / "mujoco_tendons.py"


def test_wires_are_mujocos_tendons_to_1e_10(tmp_path: Path, record_property: Any) -> None:
    """The 16 wires without virtual links in 50 poses; required 1e-10 (specification of wires, section 9.3)."""
    if not PEER:
        pytest.skip("no MuJoCo: set DESIGNOPT_PEERS_MECHANICS to a Python that has it")
    anatomy = reference_arm()
    wires = [w for w in anatomy.wires if all(p.frame != "knot" for p in w.points)]
    assert len(wires) == 16
    sites: dict[str, list[str]] = {bone: [] for bone in ("scapula", "humerus", "ulna", "radius")}
    tendons = []
    for wire in wires:
        names = []
        for k, point in enumerate(wire.points):
            names.append(f"{wire.name}_{k}")
            position = " ".join(repr(float(v)) for v in point.position)
            sites[point.frame].append(f'<site name="{names[-1]}" pos="{position}"/>')
        inner = "".join(f'<site site="{name}"/>' for name in names)
        tendons.append(f'<spatial name="{wire.name}">{inner}</spatial>')
    hinge = '<joint type="hinge" axis="{}"/>'.format
    mass = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    xml = f"""<mujoco><worldbody>{"".join(sites["scapula"])}
      <body name="humerus">{mass}{hinge("0 0 1")}{hinge("1 0 0")}{hinge("0 1 0")}{"".join(sites["humerus"])}
        <body name="ulna" pos="0 0 -0.3">{mass}{hinge("1 0 0")}{"".join(sites["ulna"])}
          <body name="radius" pos="0.02 0 -0.01">{mass}{hinge("0 0 -1")}{"".join(sites["radius"])}</body>
        </body></body></worldbody><tendon>{"".join(tendons)}</tendon></mujoco>"""
    poses = np.random.default_rng(0).uniform(-0.8, 0.8, (50, 5))
    (tmp_path / "arm.json").write_text(json.dumps({"xml": xml, "poses": poses.tolist()}))
    process = subprocess.run(
        [PEER, str(SCRIPT), str(tmp_path / "arm.json")], capture_output=True, text=True, timeout=120
    )
    assert process.returncode == 0, process.stderr
    answer = json.loads(process.stdout.splitlines()[-1])
    z = np.column_stack([poses, np.tile(anatomy.tree.reference[5:], (50, 1))])
    rows = TreeRows(anatomy.tree, wires=wires)
    apart = np.abs(rows.lengths(z) - answer["lengths"]).max()
    slopes = np.abs(-np.swapaxes(rows.moment_arms(z)[:, :5], 1, 2) - answer["slopes"]).max()
    record_property("lengths_apart_m", float(apart))
    record_property("slopes_apart_m", float(slopes))
    print(f"\nwires and MuJoCo's tendons: lengths {apart:.1e} m, derivatives {slopes:.1e} m apart")
    assert apart < 1e-10
    assert slopes < 1e-10
