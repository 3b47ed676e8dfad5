"""Planar mechanisms of the tests: as a `Mechanism`, and in maximal coordinates."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
from designopt_mechanics.andrews.mechanism import ENDS, open_tree
from designopt_mechanics.body import Body
from designopt_mechanics.mechanism.forces import LoopForces, MotionRows
from designopt_mechanics.mechanism.loops import LoopSolver
from designopt_mechanics.mechanism.mechanism import Coincidence, Mechanism, PointLoad
from designopt_mechanics.motions import Rotate, Slide
from designopt_mechanics.tree import Coordinate, Frame, Point, Tree
from maximal_coordinates import Planar

Array = np.ndarray[Any, np.dtype[np.float64]]
Z = (0.0, 0.0, 1.0)
GRAVITY = (0.0, -9.81, 0.0)


def link(name: str, parent: str, at: tuple[float, float], length: float, mass: float = 1.0) -> Frame:
    """A bar along x that turns by the coordinate of its name."""
    body = Body(mass, (0.45 * length, 0.03, 0.0), mass * length**2 / 11.0)
    return Frame(name, parent, (Rotate(Z, name),), body, position=(*at, 0.0))


def slider_crank() -> Mechanism:
    """Crank 60 mm, rod 200 mm, 50 N on the piston."""
    tree = Tree(
        (
            Coordinate("crank", reference=0.5),
            Coordinate("rod", reference=-0.65),
            Coordinate("piston", "m", reference=0.25),
        ),
        (
            link("crank", "ground", (0.0, 0.0), 0.06, 0.3),
            link("rod", "crank", (0.06, 0.0), 0.2, 0.4),
            Frame("piston", motions=(Slide((1, 0, 0), "piston"),), body=Body(0.5, inertia=1e-3)),
        ),
    )
    load = PointLoad("gas", Point("piston"), (-50.0, 0.0, 0.0))
    return Mechanism(
        tree, GRAVITY, meets=(Coincidence("pin", Point("rod", (0.2, 0, 0)), Point("piston")),), loads=(load,)
    )


def four_bar(crank: float = 0.3) -> Mechanism:
    """Crank 0.3, coupler 0.8, rocker 0.6, base 0.9 m."""
    tree = Tree(
        tuple(Coordinate(n, reference=z) for n, z in (("crank", 0.8), ("coupler", -0.5), ("rocker", 1.4))),
        (
            link("crank", "ground", (0.0, 0.0), crank),
            link("coupler", "crank", (crank, 0.0), 0.8),
            link("rocker", "ground", (0.9, 0.0), 0.6),
        ),
    )
    return Mechanism(
        tree, GRAVITY, meets=(Coincidence("tip", Point("coupler", (0.8, 0, 0)), Point("rocker", (0.6, 0, 0))),)
    )


def andrews() -> Mechanism:
    """Andrews' mechanism in weight, without its spring."""
    first, *further = ENDS
    meets = tuple(Coincidence(f"E{i}", first, end) for i, end in enumerate(further))
    return Mechanism(open_tree(), GRAVITY, meets=meets, independent=("beta",))


def patella() -> Mechanism:
    """The tibia turns, the patella turns on the femoral groove, a ligament links the two; the quadriceps pulls."""
    tree = Tree(
        tuple(Coordinate(n, reference=z) for n, z in (("tibia", -0.6), ("patella", 0.4), ("ligament", -1.2))),
        (
            link("tibia", "ground", (0.0, 0.0), 0.4, 4.0),
            link("patella", "ground", (0.01, -0.02), 0.045, 0.08),
            link("ligament", "tibia", (0.06, 0.03), 0.06, 0.01),
        ),
    )
    meet = Coincidence("insertion", Point("ligament", (0.06, 0, 0)), Point("patella", (0.045, -0.01, 0)))
    return Mechanism(
        tree,
        GRAVITY,
        meets=(meet,),
        loads=(PointLoad("quadriceps", Point("patella", (0.04, 0.02, 0)), (-300.0, 500.0, 0.0)),),
    )


def parallel_robot() -> Mechanism:
    """A platform on three legs of two bars each, with three drives at the base."""
    names, frames, meets = [], [], []
    corners = [(0.12 * np.cos(a), 0.12 * np.sin(a)) for a in (0.3, 2.4, 4.5)]
    frames.append(
        Frame(
            "platform",
            motions=(Slide((1, 0, 0), "x"), Slide((0, 1, 0), "y"), Rotate(Z, "turn")),
            body=Body(2.0, (0.01, 0.02, 0), 0.02),
        )
    )
    for i, (corner, angle) in enumerate(zip(corners, (0.3, 2.4, 4.5), strict=True)):
        base = (0.6 * np.cos(angle), 0.6 * np.sin(angle))
        frames.append(link(f"upper{i}", "ground", base, 0.35))
        frames.append(link(f"lower{i}", f"upper{i}", (0.35, 0.0), 0.35))
        meets.append(Coincidence(f"corner{i}", Point(f"lower{i}", (0.35, 0, 0)), Point("platform", (*corner, 0.0))))
        direction = angle + np.pi
        names += [(f"upper{i}", direction + 0.7), (f"lower{i}", -1.4)]
    coordinates = (
        Coordinate("x", "m"),
        Coordinate("y", "m"),
        Coordinate("turn"),
        *(Coordinate(n, reference=z) for n, z in names),
    )
    return Mechanism(Tree(coordinates, tuple(frames)), GRAVITY, meets=tuple(meets), independent=("x", "y", "turn"))


def random_linkage(seed: int) -> Mechanism:
    """A planar chain of three to five bars from the ground, closed to the ground: a loop with one to three freedoms."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(3, 6))
    lengths = rng.uniform(0.3, 0.6, count)
    angles = np.cumsum(rng.uniform(0.3, 0.9, count))
    frames, coordinates = [], []
    for i in range(count):
        parent, at = ("ground", (0.0, 0.0)) if i == 0 else (f"b{i - 1}", (float(lengths[i - 1]), 0.0))
        frames.append(link(f"b{i}", parent, at, float(lengths[i]), float(rng.uniform(0.5, 2.0))))
        coordinates.append(Coordinate(f"b{i}", reference=float(angles[0] if i == 0 else angles[i] - angles[i - 1])))
    end = sum(length * np.array([np.cos(a), np.sin(a)]) for length, a in zip(lengths, angles, strict=True))
    meet = Coincidence("end", Point(f"b{count - 1}", (float(lengths[-1]), 0, 0)), Point("ground", (*end.tolist(), 0.0)))
    return Mechanism(Tree(tuple(coordinates), tuple(frames)), GRAVITY, meets=(meet,))


def in_maximal_coordinates(
    mechanism: Mechanism, posture: Array, rates: Array, accelerations: Array, driven: tuple[str, ...]
) -> dict[str, Array]:
    """The multipliers of joints (force on the frame from its parent; x, y) and meetings, by name, at a posture, with
    rates and accelerations of the driven coordinates."""
    tree = mechanism.tree
    loops = LoopSolver(mechanism)
    poses = {
        f.name: ca.Function("pose", [loops.state.z], [loops.state.position(Point(f.name)), loops.state.axes(f.name)])(
            posture
        )
        for f in tree.frames
    }
    planar = Planar({}, (mechanism.gravity[0], mechanism.gravity[1]))
    start = {}
    for frame in tree.frames:
        origin, axes = (np.asarray(v, float) for v in poses[frame.name])
        inertia = (
            float(np.asarray(frame.body.inertia)) if np.ndim(frame.body.inertia) == 0 else float(frame.body.inertia[2])
        )
        planar.bodies[frame.name] = (frame.body.mass, tuple(frame.body.centre[:2]), inertia)
        start[frame.name] = (origin[0, 0], origin[1, 0], np.arctan2(axes[1, 0], axes[0, 0]))
        kinds = [type(m).__name__ for m in frame.motions]
        if kinds == ["Rotate"]:
            planar.pin(frame.name, frame.name, (0.0, 0.0), frame.parent, frame.position[:2])
        elif kinds == ["Slide"]:
            planar.equations[frame.name] = lambda q, t, n=frame.name: [q[n][1], q[n][2]]

    def value(name: str) -> Any:
        frame = next(f for f in tree.frames if any(name in vars(m).values() for m in f.motions))
        kind = next(type(m).__name__ for m in frame.motions if name in vars(m).values())
        if kind == "Slide":
            axis = next(m.axis for m in frame.motions if name in vars(m).values())
            return lambda q: q[frame.name][0 if axis[0] else 1]
        return lambda q: q[frame.name][2] - (0.0 if frame.parent == "ground" else q[frame.parent][2])

    for name in driven:
        i = tree.names.index(name)
        speed, second = rates[i], accelerations[i]
        position = value(name)
        offset = position(start)  # of the angles of the start, which may differ by whole turns
        planar.equations[f"drive {name}"] = lambda q, t, f=position, a=offset, b=speed, c=second: [
            f(q) - a - b * t - 0.5 * c * t * t
        ]
    for meet in mechanism.meets:
        planar.pin(
            f"meet {meet.name}", meet.first.frame, meet.first.position[:2], meet.second.frame, meet.second.position[:2]
        )
    for load in mechanism.loads:
        planar.loads.append((load.point.frame, tuple(load.point.position[:2]), tuple(load.force[:2])))
    return planar.solve(start)[1]


def solved(
    mechanism: Mechanism, rate: float = 3.0, second: float = -2.0, redundant: Any = "refuse"
) -> tuple[LoopForces, MotionRows, Any]:
    """Forces, one row of a motion, and its solution."""
    loops = LoopSolver(mechanism)
    p = mechanism.column()
    z = loops.start(p)[None]
    free = len(loops.independent)
    dz = loops.rates(z, np.full((1, free), rate), p)
    motion = MotionRows(np.zeros(1), z, dz, loops.accelerations(z, dz, np.full((1, free), second), p))
    forces = LoopForces(loops, redundant=redundant)
    return forces, motion, forces.solve(motion, p)
