"""A tracked walk by OpenSim Moco: ``python moco_track.py FOLDER`` of the reference walks.

Half a gait cycle on 24 intervals with the goals, weights and ranges of Moco's example2DWalking (Dembia et al. 2020), at
a tolerance of 1e-2. Writes tracked_walk.sto and prints one line of JSON: processor seconds of the solve, iterations,
objective.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import opensim as osim
from moco_walk import RANGES, cycle_goal


def main(folder: str) -> None:
    osim.Logger.setLevelString("error")
    data = Path(folder)
    track = osim.MocoTrack()
    track.setName("tracked_walk")
    track.setModel(osim.ModelProcessor(str(data / "models" / "2D_gait.osim")))
    reference = osim.TableProcessor(str(data / "referenceCoordinates.sto"))
    reference.append(osim.TabOpLowPassFilter(6.0))
    track.setStatesReference(reference)
    track.set_states_global_tracking_weight(1.0)
    track.set_allow_unused_references(True)
    track.set_track_reference_position_derivatives(True)
    track.set_apply_tracked_states_to_guess(True)
    track.set_initial_time(0.0)
    track.set_final_time(0.470089)
    study = track.initialize()
    problem = study.updProblem()
    osim.MocoControlGoal.safeDownCast(problem.updGoal("control_effort")).setWeight(10.0)
    model = osim.Model(str(data / "models" / "2D_gait.osim"))
    model.initSystem()
    problem.addGoal(cycle_goal(model))
    contact = osim.MocoContactTrackingGoal("contact", 1.0)
    contact.setExternalLoadsFile(str(data / "referenceGRF.xml"))
    for side, force in (("r", "Right_GRF"), ("l", "Left_GRF")):
        spheres = osim.StdVectorString()
        for name in (f"contactHeel_{side}", f"contactFront_{side}"):
            spheres.append(name)
        contact.addContactGroup(spheres, force)
    contact.setProjection("plane")
    contact.setProjectionVector(osim.Vec3(0, 0, 1))
    problem.addGoal(contact)
    for path, limits in RANGES.items():
        problem.setStateInfo(f"{path}/value", list(limits))
    solver = osim.MocoCasADiSolver.safeDownCast(study.updSolver())
    solver.set_num_mesh_intervals(24)
    solver.set_optim_convergence_tolerance(1e-2)
    solver.set_optim_constraint_tolerance(1e-4)
    solver.set_optim_max_iterations(1000)
    solver.set_parallel(0)
    started = time.process_time()
    solution = study.solve()
    solution.unseal()
    solution.write("tracked_walk.sto")
    result = {
        "processor": time.process_time() - started,
        "iterations": solution.getNumIterations(),
        "objective": solution.getObjective(),
        "success": solution.success(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
