"""Standing up and walking beside OpenSim Moco: ratios of processor time in one run, on one thread.

Moco runs out of process: see the fixture `opensim_peer`.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from designopt_muscle.osim.read import read_model
from designopt_recordings.files.read import read_table
from designopt_walking.models.predict import WalkPredict
from designopt_walking.programs.gait import program_options
from designopt_walking.programs.squat import Squat, squat_to_stand, squat_walker
from designopt_walking.storage import guess_from_table

from designopt.collocation import Guess, Program, Solution
from designopt.plugin import InputFile

pytestmark = pytest.mark.bench


def stand_up(folder: Path) -> Solution:
    model = read_model((folder / "models" / "squatToStand_3dof9musc.osim").read_bytes())
    walker, _ = squat_walker(model, Squat())
    problem = replace(squat_to_stand(walker, Squat()), parameters={"knee_stiffness": 0.0})
    return Program(problem, program_options(25, 1e-6)).solve()


def test_standing_up_takes_a_tenth_of_the_time_of_moco(shared_data, opensim_peer, record_property):
    """From the model file to the solution, both."""
    folder = shared_data("walking")
    peer = opensim_peer(Path(__file__).parent / "moco_squat.py", folder)
    times, solution = [], None
    for _ in range(3):
        began = time.process_time()
        solution = stand_up(folder)
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


def test_a_predicted_walk_takes_a_fifth_of_the_time_of_moco_by_iteration(shared_data, opensim_peer, record_property):
    """25 intervals, both from Moco's tracked walk and with its friction, without the construction of the program."""
    folder = shared_data("walking")
    predictor = WalkPredict(friction="opensim")._predictor(0.0)[0]
    file = folder / "reference" / "B_track_moco_4.6.sto"
    guess = Guess({"motion": guess_from_table(predictor.walker, read_table(InputFile(file.name, file.read_bytes())))})
    program = Program(predictor.problem(1.2), program_options(25, 1e-6), guess)
    began = time.process_time()
    solution = program.solve(guess=guess)
    iteration = (time.process_time() - began) / solution.iterations
    peer = opensim_peer(Path(__file__).parent / "moco_walk.py", folder)
    ratio = peer["iteration"] / iteration
    record_property("ratio", ratio)
    print(f"\nown {iteration:.2f} s, Moco {peer['iteration']:.2f} s an iteration: {ratio:.1f} times")
    print(f"own {solution.iterations} iterations to {solution.objective:.6f}")
    assert solution.success
    assert ratio >= 5.0
