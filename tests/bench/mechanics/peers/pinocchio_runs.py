"""Pinocchio on the work of the benchmark, in a separate process: ``pinocchio_runs.py FILE``.

Andrews' squeezing mechanism for 30 ms by constrained dynamics driven by SciPy; FILE holds the bodies as JSON. Prints
one line of JSON: milliseconds and the angles at the end.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import pinocchio as pin


def andrews(mechanism: dict) -> dict:
    from scipy.integrate import solve_ivp

    model = pin.Model()
    model.gravity.linear = np.zeros(3)
    joints = {"ground": 0}
    for body in mechanism["bodies"]:
        placement = pin.SE3(np.eye(3), np.array([*body["joint"], 0.0]))
        joints[body["name"]] = model.addJoint(joints[body["parent"]], pin.JointModelRZ(), placement, body["name"])
        inertia = np.diag([0.5, 0.5, 1.0]) * body["inertia"]
        inertia = pin.Inertia(body["mass"], np.array([*body["centre"], 0.0]), inertia)
        model.appendBodyToJoint(joints[body["name"]], inertia, pin.SE3.Identity())
    data = model.createData()
    ends = [(joints[e["frame"]], pin.SE3(np.eye(3), np.array(e["place"]))) for e in mechanism["ends"]]
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for end in ends[1:]:
        one = pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, model, *ends[0], *end, pin.ReferenceFrame.LOCAL)
        models.append(one)
        datas.append(one.createData())
    pin.initConstraintDynamics(model, data, models, datas)
    settings = pin.ProximalSettings(1e-13, 1e-10, 20)
    start = np.array(mechanism["start"])
    spring, k3 = mechanism["spring"], joints[mechanism["spring"]["frame"]]
    anchor, local = np.array(spring["anchor"]), np.array(spring["place"])
    torque = np.zeros(model.nv)
    torque[0] = mechanism["torque"]

    def rates(_: float, x: np.ndarray) -> np.ndarray:
        q, v = x[:7], x[7:]
        pin.forwardKinematics(model, data, q)
        at = data.oMi[k3].act(local)
        pull = anchor - at
        length = np.linalg.norm(pull)
        force = spring["stiffness"] * (length - spring["rest"]) * pull / length
        moment = np.cross(at, force)[2]
        tau = torque.copy()
        tau[model.joints[k3].idx_v] += moment - (
            data.oMi[k3].translation[0] * force[1] - data.oMi[k3].translation[1] * force[0]
        )
        return np.concatenate([v, pin.constraintDynamics(model, data, q, v, tau, models, datas, settings)])

    x0 = np.concatenate([start, np.zeros(7)])
    seconds = []
    for _ in range(3):
        begin = time.perf_counter()
        solution = solve_ivp(rates, (0.0, 0.03), x0, method="DOP853", rtol=mechanism["rtol"], atol=mechanism["rtol"])
        seconds.append(time.perf_counter() - begin)
    return {"ms": 1e3 * min(seconds), "angles": solution.y[:7, -1].tolist()}


if __name__ == "__main__":
    print(json.dumps(andrews(json.loads(Path(sys.argv[1]).read_text()))))
