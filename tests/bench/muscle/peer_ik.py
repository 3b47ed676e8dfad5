"""OpenSim's inverse kinematics of the walk of Gait2392, in a separate process: ``python peer_ik.py FOLDER [ACCURACY]``.

Prints one line of JSON: seconds of processor time of a run (model read before), frames, and the coordinates in degrees
and m by name.
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

osim.Logger.setLevelString("Error")
folder = Path(sys.argv[1])
with tempfile.TemporaryDirectory() as work:
    for name in ("subject01_Setup_IK.xml", "subject01_walk1.trc", "reference/subject01_simbody.osim"):
        shutil.copy(folder / name, work)
    os.chdir(work)
    model = osim.Model("subject01_simbody.osim")
    tool = osim.InverseKinematicsTool("subject01_Setup_IK.xml")
    tool.setModel(model)
    tool.setOutputMotionFileName("ik.mot")
    if len(sys.argv) > 2:
        tool.set_accuracy(float(sys.argv[2]))
    began = time.process_time()
    tool.run()
    seconds = time.process_time() - began
    table = osim.TimeSeriesTable("ik.mot")
    columns = {name: table.getDependentColumn(name).to_numpy().tolist() for name in table.getColumnLabels()}
print(json.dumps({"seconds": seconds, "frames": table.getNumRows(), "columns": columns}))
