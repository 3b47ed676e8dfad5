"""Standing up from a squat beside OpenSim Moco: ratio of processor time in one run, on one thread.

Moco runs out of process with the Python that DESIGNOPT_PEER_MOCO names (``pip install opensim==4.6``).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from designopt_muscle.osim.read import read_model
from designopt_walking.programs.gait import program_options
from designopt_walking.programs.squat import Squat, squat_to_stand, squat_walker

from designopt.collocation import Program, Solution

pytestmark = pytest.mark.bench

PYTHON = os.environ.get("DESIGNOPT_PEER_MOCO", sys.executable)
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OPENSIM_MOCO_PARALLEL": "0"}


@pytest.fixture(scope="module")
def walking_data() -> Path:
    folder = Path(os.environ.get("DESIGNOPT_SHARED", Path(__file__).parents[4] / "shared")) / "data" / "walking"
    if not folder.is_dir():
        pytest.skip("the reference walks (../shared/data/walking) are not there")
    return folder


def stand_up(folder: Path) -> Solution:
    model = read_model((folder / "models" / "squatToStand_3dof9musc.osim").read_bytes())
    walker, _ = squat_walker(model, Squat())
    problem = replace(squat_to_stand(walker, Squat()), parameters={"knee_stiffness": 0.0})
    return Program(problem, program_options(25, 1e-6)).solve()


def test_standing_up_takes_a_tenth_of_the_time_of_moco(walking_data, record_property, tmp_path) -> None:  # type: ignore[no-untyped-def]
    """From the model file to the solution, both."""
    done = subprocess.run(
        [PYTHON, str(Path(__file__).parent / "moco_squat.py"), str(walking_data)],
        capture_output=True, text=True, timeout=900, cwd=tmp_path, env={**os.environ, **ONE_THREAD},
    )  # fmt: skip
    if "ModuleNotFoundError" in done.stderr:
        pytest.skip(f"opensim is not installed for {PYTHON}")
    assert done.returncode == 0, done.stderr
    peer = json.loads(done.stdout.splitlines()[-1])
    times, solution = [], None
    for _ in range(3):
        began = time.process_time()
        solution = stand_up(walking_data)
        times.append(time.process_time() - began)
    assert solution is not None
    ratio = peer["processor"] / sorted(times)[1]
    record_property("ratio", ratio)
    print(
        f"\nown {sorted(times)[1]:.2f} s, Moco {peer['processor']:.1f} s: {ratio:.0f} times; {solution.objective:.6f}"
    )
    assert peer["success"]
    assert solution.objective == pytest.approx(peer["objective"], rel=1e-3)
    assert ratio >= 10.0
