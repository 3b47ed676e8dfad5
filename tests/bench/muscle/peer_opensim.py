"""OpenSim on one trial, in a separate process: ``python peer_opensim.py FOLDER CASE``.

It runs StaticOptimization with squares and a convergence of 1e-8 on the case's kinematics and ground reactions,
reserves as in the case's problem file. Prints one line of JSON: frames, seconds of processor time (model and files
read, results written) and frames per second.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import opensim as osim

WINDOWS = {"gait10dof18musc": (0.6, 1.9), "gait2392": (0.6, 1.6)}
MODELS = {"gait10dof18musc": "gait10dof18musc_subject01", "gait2392": "gait2392_subject01"}


def static(folder: Path, case: str) -> int:
    """Frames of a StaticOptimization of the case."""
    model = osim.Model(str(folder / "models" / f"{MODELS[case]}.osim"))
    problem = json.loads((folder / "reference" / f"{case}_problem.json").read_text())
    crossed = dict(zip(problem["coordinates"], problem["reserve_optimal_force_Nm"], strict=True))
    for i in range(model.getCoordinateSet().getSize()):
        name = model.getCoordinateSet().get(i).getName()
        if optimal := crossed.get(name, 1000.0 if name.startswith("pelvis") else 100.0):
            drive(model, name, float(optimal))
    begin, end = WINDOWS[case]
    with tempfile.TemporaryDirectory() as results:
        printed = Path(results) / "model.osim"
        model.finalizeConnections()
        model.printToXML(str(printed))
        tool = osim.AnalyzeTool()
        tool.setName(case)
        tool.setModelFilename(str(printed))
        tool.setCoordinatesFileName(str(folder / "motion" / f"{case}_kinematics.sto"))
        loads = folder / "motion" / (f"{case}_walk_grf.xml" if case == "gait10dof18musc" else f"{case}_walk1_grf.xml")
        tool.setExternalLoadsFileName(str(loads))
        tool.setInitialTime(begin)
        tool.setFinalTime(end)
        tool.setResultsDir(results)
        tool.setReplaceForceSet(False)
        tool.setSolveForEquilibrium(False)
        analysis = osim.StaticOptimization()
        analysis.setStartTime(begin)
        analysis.setEndTime(end)
        analysis.setUseModelForceSet(True)
        analysis.setActivationExponent(2)
        analysis.setUseMusclePhysiology(True)
        analysis.setConvergenceCriterion(1e-8)
        analysis.setMaxIterations(200)
        tool.updAnalysisSet().cloneAndAppend(analysis)
        settings = Path(results) / "tool.xml"
        tool.printToXML(str(settings))
        osim.AnalyzeTool(str(settings)).run()
        activation_file = next(Path(results).glob("*StaticOptimization_activation.sto"))
        return osim.TimeSeriesTable(str(activation_file)).getNumRows()


def drive(model: osim.Model, coordinate: str, optimal: float) -> None:
    actuator = osim.CoordinateActuator(coordinate)
    actuator.setName(f"reserve_{coordinate}")
    actuator.setOptimalForce(optimal)
    actuator.setMinControl(-1000.0)
    actuator.setMaxControl(1000.0)
    model.addForce(actuator)


def main() -> None:
    folder, case = Path(sys.argv[1]), sys.argv[2]
    osim.Logger.setLevelString("Error")
    began = time.process_time()
    frames = static(folder, case)
    seconds = time.process_time() - began
    print(json.dumps({"frames": frames, "seconds": seconds, "frames_per_second": frames / seconds}))


if __name__ == "__main__":
    main()
