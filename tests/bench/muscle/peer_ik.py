"""OpenSim's inverse kinematics of the walk of Gait2392, in a separate process: ``python peer_ik.py FOLDER REPEATS``.

Prints one line of JSON: seconds of processor time of each run (model read before), and frames.
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
    seconds = []
    for _ in range(int(sys.argv[2])):
        model = osim.Model("subject01_simbody.osim")
        tool = osim.InverseKinematicsTool("subject01_Setup_IK.xml")
        tool.setModel(model)
        began = time.process_time()
        tool.run()
        seconds.append(time.process_time() - began)
print(json.dumps({"seconds": seconds, "frames": 121}))
