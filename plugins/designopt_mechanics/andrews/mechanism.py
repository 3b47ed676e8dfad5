"""The mechanism in two formulations: joint functions of one coordinate, and an open tree with constraints.

Schiehlen (ed.), Multibody Systems Handbook (1990); parameters and initial values of the Test Set for Initial Value
Problem Solvers (Mazzia and Magherini, University of Bari), problem "andrews". Bodies are numbered as there.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from designopt.arrays import Floats
from designopt.lazy import casadi as ca
from designopt_mechanics import scene
from designopt_mechanics.body import Body
from designopt_mechanics.functions.dyad import dyad
from designopt_mechanics.motions import Rotate, Value
from designopt_mechanics.state import TreeState
from designopt_mechanics.tree import Coordinate, Frame, Point, Tree
from designopt_mechanics.tree_rows import TreeRows
from designopt_mechanics.wires import Wire

#: Lengths (m), masses (kg), moments of inertia about the centres of mass (kg m^2), spring (N/m, m) and torque (N m).
XA, YA, XB, YB, XC, YC = -0.06934, -0.00227, -0.03635, 0.03273, 0.014, 0.072
D, DA, E, EA, RR, RA = 0.028, 0.0115, 0.02, 0.01421, 0.007, 0.00092
SS, SA, SB, SC, SD, TA, TB = 0.035, 0.01874, 0.01043, 0.018, 0.02, 0.02308, 0.00916
U, UA, UB, ZF, ZT, FA = 0.04, 0.01228, 0.00449, 0.02, 0.04, 0.01421
MASSES = (0.04325, 0.00365, 0.02373, 0.00706, 0.0705, 0.00706, 0.05498)
INERTIAS = (2.194e-6, 4.41e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5)
STIFFNESS, REST, TORQUE = 4530.0, 0.07785, 0.033

#: Joint variables in the order of the sources, and their values at the start (rad); all is at rest there.
ANGLES = ("beta", "Theta", "gamma", "Phi", "delta", "Omega", "epsilon")
START = {
    "beta": -0.0617138900142764496358948458001,
    "Theta": 0.0,
    "gamma": 0.455279819163070380255912382449,
    "Phi": 0.222668390165885884674473185609,
    "delta": 0.487364979543842550225598953530,
    "Omega": -0.222668390165885884674473185609,
    "epsilon": 1.23054744454982119249735015568,
}
#: After 30 ms: order-8 fixed steps in 30-digit arithmetic, relative error below 1e-12 (rad, rad/s). The state of the
#: Test Set differs by 1.1e-9 rad in beta and 5.1e-8 relative in its worst component.
END = {
    "beta": 15.8107711951537,
    "Theta": -15.7563710584118,
    "gamma": 0.0408222401196458,
    "Phi": -0.53473011634208,
    "delta": 0.524409965879954,
    "Omega": 0.53473011634208,
    "epsilon": 1.04808074104194,
}

_Z = (0.0, 0.0, 1.0)
#: name of the frame: parent, joint variable, joint in the parent, centre of mass.
_BODIES: Mapping[str, tuple[str, str, tuple[float, float], tuple[float, float]]] = {
    "k1": ("ground", "beta", (0.0, 0.0), (RA, 0.0)),
    "k2": ("k1", "Theta", (RR, 0.0), (-DA, 0.0)),
    "k3": ("ground", "gamma", (XB, YB), (SB, -SA)),
    "k5": ("ground", "delta", (XA, YA), (TA, TB)),
    "k4": ("k5", "Phi", (ZT, 0.0), (0.0, -(E - EA))),
    "k7": ("ground", "epsilon", (XA, YA), (-UB, -UA)),
    "k6": ("k7", "Omega", (0.0, -U), (ZF - FA, 0.0)),
}
#: Points that are one in the closed mechanism.
ENDS = (
    Point("k2", (-D, 0.0, 0.0)),
    Point("k3", (0.0, -SS, 0.0)),
    Point("k4", (0.0, -E, 0.0)),
    Point("k6", (ZF, 0.0, 0.0)),
)
SPRING = Wire("spring", (Point("ground", (XC, YC, 0.0)), Point("k3", (SD, -SC, 0.0))))


def joint_functions(beta: Any) -> dict[str, Any]:
    """All joint variables as closed expressions of `beta`: three dyads that meet in E, on the branches of the start."""
    f = RR * ca.vertcat(ca.cos(beta), ca.sin(beta))
    a, b = ca.SX([XA, YA]), ca.SX([XB, YB])
    e = dyad(f, b, D, SS, 1)
    g = dyad(a, e, ZT, E, 1)  # the joint of bodies 4 and 5
    h = dyad(a, e, U, ZF, -1)  # the joint of bodies 6 and 7
    # All are continuous over any number of turns: F - E and the others never point to the cut of atan2.
    way = f - e
    theta = ca.atan2(way[1], way[0]) - beta
    at_b, at_a, at_h = b - e, g - a, a - h
    gamma = ca.atan2(-at_b[0], at_b[1])
    delta = ca.atan2(at_a[1], at_a[0])
    epsilon = ca.atan2(-at_h[0], at_h[1])
    out, past = g - e, e - h
    phi = ca.atan2(-out[0], out[1]) - delta
    omega = ca.atan2(past[1], past[0]) - epsilon
    return {
        "beta": beta, "Theta": theta, "gamma": gamma, "Phi": phi, "delta": delta, "Omega": omega, "epsilon": epsilon,
    }  # fmt: skip


def closed_tree() -> Tree:
    """The mechanism with one coordinate beta."""
    return _tree(
        (Coordinate("beta", reference=START["beta"]),), lambda name: lambda z: joint_functions(z["beta"])[name]
    )


def open_tree() -> Tree:
    """The same bodies with seven coordinates, cut at E."""
    return _tree(tuple(Coordinate(name, reference=START[name]) for name in ANGLES), lambda name: name)


def gaps(state: TreeState) -> Any:
    """(6, 1) m between E of body 2 and E of bodies 3, 4 and 6: zero in the closed mechanism."""
    first, *other_ends = (state.position(point)[:2] for point in ENDS)
    return ca.vertcat(*(first - end_point for end_point in other_ends))


def _tree(coordinates: tuple[Coordinate, ...], value: Any) -> Tree:
    frames = []
    for name, (parent, variable, joint, centre) in _BODIES.items():
        k = int(name[1:]) - 1
        body = Body(MASSES[k], (*centre, 0.0), (INERTIAS[k] / 2.0, INERTIAS[k] / 2.0, INERTIAS[k]))
        angle: Value = value(variable)
        frames.append(Frame(name, parent, (Rotate(_Z, angle),), body, position=(*joint, 0.0)))
    return Tree(coordinates, tuple(frames))


_LINES = (
    (Point("k1"), Point("k1", (RR, 0.0, 0.0))),
    (Point("k2"), Point("k2", (-D, 0.0, 0.0))),
    (Point("k3"), Point("k3", (0.0, -SS, 0.0)), Point("k3", (SD, -SC, 0.0)), Point("k3")),
    (Point("k5"), Point("k5", (ZT, 0.0, 0.0))),
    (Point("k4"), Point("k4", (0.0, -(E - EA), 0.0)), Point("k4", (0.0, -E, 0.0))),
    (Point("k7"), Point("k7", (0.0, -U, 0.0))),
    (Point("k6"), Point("k6", (ZF, 0.0, 0.0))),
    (Point("ground", (XC, YC, 0.0)), Point("k3", (SD, -SC, 0.0))),
)


def drawing(angles: Floats) -> Floats:
    """(n, vertices, 2) m for all angles (n, 7) in the order of `mechanism.ANGLES`."""
    return scene.drawing(_rows(), _LINES, angles, axes=(0, 1))


@cache
def _rows() -> TreeRows:
    return TreeRows(open_tree(), compiled=False)
