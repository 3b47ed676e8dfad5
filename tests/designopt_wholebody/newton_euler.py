"""The independent check: Newton's and Euler's laws from the distal segments inwards (Nunes 2017, 5.22-5.25)."""

import numpy as np
from designopt_wholebody.consistency.rates import Motion
from designopt_wholebody.dynamics.loads import GRAVITY, JointLoads, Loads
from designopt_wholebody.dynamics.rotation import angular_velocity
from designopt_wholebody.kinematics.tree import tree
from designopt_wholebody.model.schema import GROUND
from designopt_wholebody.subject import Subject

from designopt.arrays import Floats


def newton_euler(subject: Subject, motion: Motion, loads: Loads | None = None, gravity: Floats = GRAVITY) -> JointLoads:
    """Joint loads as `inverse_dynamics` gives them, from rotations, centres of mass and their accelerations alone.

    It shares with inverse dynamics the kinematics and the loads, and nothing else: no constraints, no mass matrix, no
    generalised forces.
    """
    loads = Loads.zero(len(motion.q)) if loads is None else loads
    links = tree(subject)
    q, qdot, qddot = motion.q, motion.qdot, motion.qddot
    frames = len(q)
    force = {name: np.zeros((frames, 3)) for name in subject.bodies}  # needed on a segment, inwards of it
    moment = {name: np.zeros((frames, 3)) for name in subject.bodies}  # about the laboratory's origin
    for name, body in subject.bodies.items():
        m, centre = body.inertia.mass, body.point(body.inertia.centre)
        r, a = body.position(q, centre), body.position(qddot, centre)
        A = body.axes(q)
        J = A @ body.inertia.tensor @ A.swapaxes(-1, -2)
        w, dw = angular_velocity(body, q, qdot), angular_velocity(body, q, qddot)
        f = m * (a - gravity)
        spin = np.einsum("fij,fj->fi", J, dw) + np.cross(w, np.einsum("fij,fj->fi", J, w))
        force[name] += f
        moment[name] += spin + np.cross(r, f)
    for k, name in enumerate(loads.bodies):
        force[name] = force[name] - loads.force[:, k]
        moment[name] = moment[name] - loads.moment[:, k]
    wrenches: dict[str, tuple[Floats, Floats]] = {}
    for link in reversed(links):
        body = subject.bodies[link.body]
        centre = body.position(q, body.landmark(link.at))
        wrenches[link.body] = force[link.body], moment[link.body] - np.cross(centre, force[link.body])
        if link.parent != GROUND:
            force[link.parent] = force[link.parent] + force[link.body]
            moment[link.parent] = moment[link.parent] + moment[link.body]
    jointed = [link for link in links if link.joint is not None]
    free = [link for link in links if link.joint is None]
    unknown = ~(motion.complete_frames & loads.complete_frames)

    def gathered(part: int, names: list[str]) -> Floats:
        values = np.stack([wrenches[name][part] for name in names], axis=1) if names else np.zeros((frames, 0, 3))
        values[unknown] = np.nan
        return values

    roots = [link.body for link in free]
    return JointLoads(
        joints=tuple(str(link.joint) for link in jointed),
        bodies=tuple(link.body for link in jointed),
        force=gathered(0, [link.body for link in jointed]),
        torque=gathered(1, [link.body for link in jointed]),
        residual_force=gathered(0, roots).sum(axis=1),
        residual_torque=gathered(1, roots).sum(axis=1),
    )
