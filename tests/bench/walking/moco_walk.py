"""A predicted walk by OpenSim Moco: ``python moco_walk.py FOLDER ITERATIONS...`` of the reference walks.

Half a gait cycle at 1.2 m/s on 25 intervals, with the goals and ranges of Moco's example2DWalking (Dembia et al. 2020),
from Moco's tracked walk, once for each limit of iterations. Prints one line of JSON: of each solve, processor seconds,
iterations, and whether it ended at a solution.
"""

from __future__ import annotations

import json
import sys
import time
from math import radians
from pathlib import Path

import opensim as osim

RANGES = {
    "/jointset/groundPelvis/pelvis_tilt": (radians(-20.0), radians(-10.0)),
    "/jointset/groundPelvis/pelvis_tx": (0.0, 1.0),
    "/jointset/groundPelvis/pelvis_ty": (0.75, 1.25),
    "/jointset/hip_r/hip_flexion_r": (radians(-10.0), radians(60.0)),
    "/jointset/hip_l/hip_flexion_l": (radians(-10.0), radians(60.0)),
    "/jointset/knee_r/knee_angle_r": (radians(-50.0), 0.0),
    "/jointset/knee_l/knee_angle_l": (radians(-50.0), 0.0),
    "/jointset/ankle_r/ankle_angle_r": (radians(-15.0), radians(25.0)),
    "/jointset/ankle_l/ankle_angle_l": (radians(-15.0), radians(25.0)),
    "/jointset/lumbar/lumbar": (0.0, radians(20.0)),
}


def mirrored(name: str) -> str:
    """The same state or control of the other side."""
    swaps = {"_r/": "_l/", "_l/": "_r/"}
    parts = f"{name}/".replace("_r/", "\0").replace("_l/", swaps["_l/"]).replace("\0", swaps["_r/"])
    return parts.removesuffix("/")


def cycle_goal(model: osim.Model) -> osim.MocoPeriodicityGoal:
    """The half cycle that its mirror image continues."""
    goal = osim.MocoPeriodicityGoal("cycle")
    names = model.getStateVariableNames()
    for name in [names.get(i) for i in range(names.getSize())]:
        if not name.endswith("pelvis_tx/value"):
            goal.addStatePair(osim.MocoPeriodicityGoalPair(name, mirrored(name)))
    goal.addControlPair(osim.MocoPeriodicityGoalPair("/lumbarAct"))
    return goal


def solved(folder: Path, iterations: int) -> dict[str, float]:
    """A solve that ends after `iterations` at the latest."""
    study = osim.MocoStudy()
    problem = study.updProblem()
    model = osim.Model(str(folder / "models" / "2D_gait.osim"))
    model.initSystem()
    problem.setModel(model)
    problem.setTimeBounds(0.0, [0.4, 0.6])
    for path, limits in RANGES.items():
        problem.setStateInfo(f"{path}/value", list(limits))
    problem.setStateInfoPattern("/jointset/.*/speed", [-50.0, 50.0])
    speed = osim.MocoAverageSpeedGoal("speed")
    speed.set_desired_average_speed(1.2)
    problem.addGoal(speed)
    problem.addGoal(cycle_goal(model))
    effort = osim.MocoControlGoal("effort", 10.0)
    effort.setExponent(3)
    effort.setDivideByDisplacement(True)
    problem.addGoal(effort)
    solver = study.initCasADiSolver()
    solver.set_num_mesh_intervals(25)
    solver.set_optim_convergence_tolerance(1e-4)
    solver.set_optim_constraint_tolerance(1e-4)
    solver.set_optim_max_iterations(iterations)
    solver.set_parallel(0)
    solver.setGuess(osim.MocoTrajectory(str(folder / "reference" / "B_track_moco_4.6.sto")))
    started = time.process_time()
    solution = study.solve()
    solution.unseal()
    return {
        "processor": time.process_time() - started,
        "iterations": solution.getNumIterations(),
        "objective": solution.getObjective(),
        "success": solution.success(),
    }


def main(folder: str, *limits: str) -> None:
    osim.Logger.setLevelString("error")
    print(json.dumps([solved(Path(folder), int(limit)) for limit in limits]))


if __name__ == "__main__":
    main(*sys.argv[1:])
