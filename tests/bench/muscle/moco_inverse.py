"""Walking with 18 muscles by OpenSim's MocoInverse: ``python moco_inverse.py FOLDER`` of the OpenSim data.

The problem of OpenSim's own test suite (18 muscles, ten elastic tendons in implicit form, 22 intervals): from the model
file to the solution. Prints one line of JSON: wall and processor seconds in all, those of the solver, iterations,
objective, and the activations at its points.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import opensim as osim


def main(folder: str) -> None:
    osim.Logger.setLevelString("error")
    data = Path(folder)
    began, started = time.perf_counter(), time.process_time()
    model = osim.ModelProcessor(str(data / "models" / "walk_armless_18musc.osim"))
    welded = osim.StdVectorString()
    for joint in ("subtalar_r", "subtalar_l", "mtp_r", "mtp_l"):
        welded.append(joint)
    model.append(osim.ModOpReplaceJointsWithWelds(welded))
    model.append(osim.ModOpReplaceMusclesWithDeGrooteFregly2016())
    model.append(osim.ModOpIgnorePassiveFiberForcesDGF())
    model.append(osim.ModOpTendonComplianceDynamicsModeDGF("implicit"))
    model.append(osim.ModOpAddExternalLoads(str(data / "motion" / "walk_armless_external_loads.xml")))
    kinematics = osim.TableProcessor(str(data / "motion" / "walk_armless_coordinates.mot"))
    kinematics.append(osim.TabOpLowPassFilter(6))
    inverse = osim.MocoInverse()
    inverse.setModel(model)
    inverse.setKinematics(kinematics)
    inverse.set_initial_time(0.45)
    inverse.set_final_time(1.0)
    inverse.set_kinematics_allow_extra_columns(True)
    inverse.set_mesh_interval(0.025)
    inverse.set_constraint_tolerance(1e-4)
    inverse.set_convergence_tolerance(1e-4)
    solved = inverse.solve()  # owns the solution
    solution = solved.getMocoSolution()
    seconds = time.perf_counter() - began
    states = [name for name in solution.getStateNames() if name.endswith("/activation")]
    summary = {
        "seconds": seconds,
        "processor": time.process_time() - started,
        "solver": solution.getSolverDuration(),
        "iterations": solution.getNumIterations(),
        "objective": solution.getObjective(),
        "success": solution.success(),
        "time": list(solution.getTimeMat()),
        "activations": {name.split("/")[-2]: list(solution.getStateMat(name)) for name in states},
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main(*sys.argv[1:])
