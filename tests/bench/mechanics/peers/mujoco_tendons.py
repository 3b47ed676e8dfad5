"""MuJoCo's spatial tendons, in a separate process: ``python mujoco_tendons.py FILE`` with a model and poses as JSON.

Prints one line of JSON: lengths (n, k) and their derivatives by the coordinates (n, k, m).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import mujoco
import numpy as np

request = json.loads(Path(sys.argv[1]).read_text())
model = mujoco.MjModel.from_xml_string(request["xml"])
data = mujoco.MjData(model)
lengths, slopes = [], []
for q in request["poses"]:
    data.qpos[:] = q
    mujoco.mj_forward(model, data)
    J = np.zeros((model.ntendon, model.nv))
    if np.size(data.ten_J) == J.size:
        J[:] = np.reshape(data.ten_J, J.shape)
    else:  # rows are sparse
        columns = np.reshape(model.ten_J_colind if hasattr(model, "ten_J_colind") else data.ten_J_colind, -1)
        starts = np.reshape(model.ten_J_rowadr if hasattr(model, "ten_J_rowadr") else data.ten_J_rowadr, -1)
        counts = np.reshape(model.ten_J_rownnz if hasattr(model, "ten_J_rownnz") else data.ten_J_rownnz, -1)
        for row, (at, count) in enumerate(zip(starts, counts, strict=True)):
            J[row, columns[at : at + count]] = np.reshape(data.ten_J, -1)[at : at + count]
    lengths.append(data.ten_length.tolist())
    slopes.append(J.tolist())
print(json.dumps({"lengths": lengths, "slopes": slopes}))
