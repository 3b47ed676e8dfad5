"""Standing up from a squat by OpenSim Moco: ``python moco_squat.py FOLDER`` of the reference walks.

Torques at hip, knee and ankle, 25 intervals, the task and the tolerances of the example of Dembia et al. (2020).
Prints one line of JSON: processor seconds from the model to the solution, iterations, objective.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import opensim as osim

#: Coordinate: path, first value, range (rad), torque (N m).
JOINTS = {
    "hip_flexion_r": ("/jointset/hip_r", -2.0, (-2.0, 0.5), 150.0),
    "knee_angle_r": ("/jointset/knee_r", -2.0, (-2.0, 0.0), 300.0),
    "ankle_angle_r": ("/jointset/ankle_r", -0.5, (-0.5, 0.7), 150.0),
}


def main(folder: str) -> None:
    osim.Logger.setLevelString("error")
    started = time.process_time()
    model = osim.Model(str(Path(folder) / "models" / "squatToStand_3dof9musc.osim"))
    model.updForceSet().clearAndDestroy()
    for name, (_, _, _, torque) in JOINTS.items():
        actuator = osim.CoordinateActuator(name)
        actuator.setName(f"tau_{name}")
        actuator.setOptimalForce(torque)
        actuator.setMinControl(-1.0)
        actuator.setMaxControl(1.0)
        model.addForce(actuator)
    model.finalizeConnections()
    study = osim.MocoStudy()
    problem = study.updProblem()
    problem.setModel(model)
    problem.setTimeBounds(0.0, 1.0)
    for name, (joint, first, (low, high), _) in JOINTS.items():
        problem.setStateInfo(f"{joint}/{name}/value", [low, high], first, 0.0)
    problem.setStateInfoPattern("/jointset/.*/speed", [-50.0, 50.0], 0.0, 0.0)
    problem.addGoal(osim.MocoControlGoal("effort"))
    solver = study.initCasADiSolver()
    solver.set_num_mesh_intervals(25)
    solver.set_optim_convergence_tolerance(1e-4)
    solver.set_optim_constraint_tolerance(1e-4)
    solver.set_parallel(0)
    solution = study.solve()
    result = {
        "processor": time.process_time() - started,
        "iterations": solution.getNumIterations(),
        "objective": solution.getObjective(),
        "success": solution.success(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
