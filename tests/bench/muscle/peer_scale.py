"""OpenSim's ScaleTool in a separate process: ``python peer_scale.py SETUP.xml`` writes the models beside the set-up."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import opensim as osim

osim.Logger.setLevelString("Error")
setup = Path(sys.argv[1]).resolve()
os.chdir(setup.parent)
tool = osim.ScaleTool(setup.name)
print(json.dumps({"scaled": tool.run()}))
