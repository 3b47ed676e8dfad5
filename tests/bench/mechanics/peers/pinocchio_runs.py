"""Pinocchio on the work of the benchmark, in a separate process: ``pinocchio_runs.py chains|tips|andrews``.

Prints one line of JSON. ``chains``: microseconds of one forward dynamics (aba) of chains of rods with all mass at the
tip: a hinge about z, one about -y and a slide along x for each rod. ``tips FILE``: accelerations of the tips of such a
chain. ``andrews FILE``: Andrews' squeezing mechanism for 30 ms by constrained dynamics driven by SciPy; FILE holds the
bodies as JSON; milliseconds and the angles at the end.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import pinocchio as pin


def best(call, repeats: int, batches: int = 5) -> float:
    """Seconds of one call, the best of some batches."""
    seconds = []
    for _ in range(batches):
        begin = time.perf_counter()
        for _ in range(repeats):
            call()
        seconds.append((time.perf_counter() - begin) / repeats)
    return min(seconds)


def chain(n: int) -> pin.Model:
    model = pin.Model()
    last = 0
    for i in range(n):
        one = pin.SE3.Identity()
        last = model.addJoint(last, pin.JointModelRZ(), one, f"z{i}")
        last = model.addJoint(last, pin.JointModelRevoluteUnaligned(0.0, -1.0, 0.0), one, f"y{i}")
        last = model.addJoint(last, pin.JointModelPX(), one, f"x{i}")
        model.appendBodyToJoint(last, pin.Inertia(1.0, np.zeros(3), np.zeros((3, 3))), one)
    return model


def tips(rods: dict) -> list[list[float]]:
    """Accelerations of the tips of rods with given directions, lengths, velocities of the tips and axial forces."""
    u, lengths, v, pulls = (np.array(rods[name]) for name in ("directions", "lengths", "velocities", "pulls"))
    model = chain(len(u))
    data = model.createData()
    q, turn = [], np.eye(3)
    for along, length in zip(u, lengths, strict=True):
        x, y, z = turn.T @ along
        a, b = np.arctan2(y, x), np.arcsin(np.clip(z, -1.0, 1.0))
        turn = turn @ pin.utils.rotate("z", a) @ pin.utils.rotate("y", -b)
        q += [a, b, length]
    q = np.array(q)
    joints = [model.getJointId(f"x{i}") for i in range(len(u))]
    pin.computeJointJacobians(model, data, q)
    frame = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    J = np.vstack([pin.getJointJacobian(model, data, j, frame)[:3] for j in joints])
    speed = np.linalg.solve(J, v.ravel())
    effort = np.zeros(model.nv)
    effort[2::3] = pulls
    pin.forwardKinematics(model, data, q, speed, pin.aba(model, data, q, speed, effort))
    return [pin.getClassicalAcceleration(model, data, j, frame).linear.tolist() for j in joints]


def chains() -> dict[str, float]:
    cost = {}
    for n in (2, 10, 30, 100):
        model = chain(n)
        data = model.createData()
        rng = np.random.default_rng(0)
        q, v, tau = rng.uniform(0.3, 0.9, model.nq), rng.normal(size=model.nv), rng.normal(size=model.nv)
        cost[str(n)] = 1e6 * best(lambda m=model, d=data, a=q, b=v, c=tau: pin.aba(m, d, a, b, c), max(20, 20000 // n))
    return cost


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
    work = sys.argv[1]
    works = {"tips": tips, "andrews": andrews}
    print(json.dumps(chains() if work == "chains" else works[work](json.loads(Path(sys.argv[2]).read_text()))))
