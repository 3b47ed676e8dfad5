"""OpenSim's inverse kinematics in a separate process: ``python peer_ik.py MODEL MARKERS.trc [SETUP.xml] [ACCURACY]``.

Without a set-up all markers that model and recording share have the weight 1. Prints one line of JSON: seconds of
processor time of a run (model read before), frames, and the coordinates in degrees and m by name.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import opensim as osim


def tool_of(model: osim.Model, trc: Path, setup: str) -> osim.InverseKinematicsTool:
    tool = osim.InverseKinematicsTool(setup) if setup else osim.InverseKinematicsTool()
    tool.setModel(model)
    tool.setMarkerDataFileName(str(trc))
    if setup:
        return tool
    data, markers = osim.MarkerData(str(trc)), model.getMarkerSet()
    recorded = {data.getMarkerNames().get(i) for i in range(data.getMarkerNames().getSize())}
    for name in (markers.get(i).getName() for i in range(markers.getSize())):
        if name in recorded:
            task = osim.IKMarkerTask()
            task.setName(name)
            task.setApply(True)
            task.setWeight(1.0)
            tool.upd_IKTaskSet().cloneAndAppend(task)
    tool.setStartTime(data.getStartFrameTime())
    tool.setEndTime(data.getLastFrameTime())
    return tool


def main() -> None:
    osim.Logger.setLevelString("Error")
    paths = [Path(name).resolve() for name in sys.argv[1:] if Path(name).is_file()]
    setups = [path for path in paths if path.suffix == ".xml"]
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        setup = shutil.copy(setups[0], "setup.xml") if setups else ""  # the tool writes beside its set-up
        model = osim.Model(str(paths[0]))  # the tool does not keep it
        tool = tool_of(model, paths[1], setup)
        tool.setOutputMotionFileName("ik.mot")
        if len(sys.argv) > len(paths) + 1:
            tool.set_accuracy(float(sys.argv[-1]))
        began = time.process_time()
        tool.run()
        seconds = time.process_time() - began
        table = osim.TimeSeriesTable("ik.mot")
        columns = {name: table.getDependentColumn(name).to_numpy().tolist() for name in table.getColumnLabels()}
    print(json.dumps({"seconds": seconds, "frames": table.getNumRows(), "columns": columns}))


if __name__ == "__main__":
    main()
