"""Dynamic sharing beside OpenSim's MocoInverse on one trial: ratio of processor time in one run, and the build alone.

MocoInverse runs out of process: see the fixture `opensim_peer`.
"""

import sys
import time
from pathlib import Path

import numpy as np
import pytest
from designopt_muscle.dynamic_sharing.equations import DynamicTrial
from designopt_muscle.dynamic_sharing.problem import mesh_of, problem
from designopt_muscle.dynamic_sharing.share import share_dynamic
from designopt_muscle.dynamic_sharing.terms import DynamicTerms
from designopt_muscle.models.dynamic.sharing import DynamicSharingModel

from designopt.collocation import Options, Program
from designopt.plugin import InputFile

sys.path.insert(0, str(Path(__file__).parents[2] / "designopt_muscle"))
sys.path.insert(0, str(Path(__file__).parents[2] / "designopt_muscle" / "dynamic"))
from dynamic_case import walk_armless

pytestmark = pytest.mark.bench


def reference(folder: Path) -> DynamicTrial:
    balance, muscles, reserves = walk_armless(folder)
    return DynamicTrial(balance, muscles, reserves, DynamicTerms(sharpness=0.1))


def test_the_reference_problem_is_twenty_times_as_fast_as_moco_inverse(shared_data, opensim_peer, record_property):
    """From the tables of the problem to its solution, against MocoInverse from the model to its solution."""
    folder = shared_data("opensim")
    peer = opensim_peer(Path(__file__).parent / "moco_inverse.py", folder)
    seconds, sharing = np.inf, None
    for _ in range(3):
        began = time.process_time()
        sharing = share_dynamic(reference(folder))
        seconds = min(seconds, time.process_time() - began)
    assert sharing is not None
    ratio = peer["processor"] / seconds
    record_property("ratio", ratio)
    print(f"\nown {seconds:.2f} s, MocoInverse {peer['processor']:.1f} s: {ratio:.0f} times")
    print(
        f"iterations {sharing.iterations} and {peer['iterations']}, objectives {sharing.objective:.6f} and"
        f" {peer['objective']:.6f}"
    )
    assert sharing.objective <= peer["objective"]
    theirs = np.column_stack(
        [np.interp(sharing.time, peer["time"], peer["activations"][n]) for n in reference(folder).muscles.names]
    )
    assert np.sqrt(((sharing.activations - theirs) ** 2).mean()) <= 2e-3
    assert ratio >= 20.0


def test_the_program_of_92_muscles_is_built_in_two_seconds(shared_data, record_property):
    """92 elastic tendons, 49 points, 18 865 unknowns (specs: 80 muscles and 16 268 unknowns in 2 s)."""
    folder = shared_data("opensim")
    model = folder / "models" / "gait2392_subject01.osim"
    motion = folder / "motion" / "gait2392_kinematics.sto"
    moments = folder / "reference" / "gait2392_inverse_dynamics.csv"
    files = {name: InputFile(path.name, path.read_bytes()) for name, path in
          (("model", model), ("motion", motion), ("moments", moments))}  # fmt: skip
    sharing = DynamicSharingModel(model=files["model"], window=(0.7, 1.3), margin=0)
    trial, _ = sharing._trial({"motion": files["motion"], "moments": files["moments"]})
    began = time.process_time()
    stated = problem([trial])
    program = Program(
        stated, Options(scheme="hermite_simpson", check=False), meshes=[mesh_of("hermite_simpson", trial.balance.time)]
    )
    seconds = time.process_time() - began
    record_property("seconds", seconds)
    print(f"\n{len(trial.names)} muscles, {program.transcription.layout.size} unknowns: {seconds:.2f} s")
    assert program.transcription.layout.size > 18_000
    assert seconds <= 2.0
