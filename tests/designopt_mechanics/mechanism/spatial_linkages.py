"""Spatial mechanisms of the tests: as a `Mechanism`, and in maximal coordinates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
from designopt_mechanics.body import Body
from designopt_mechanics.mechanism.loops import LoopSolver
from designopt_mechanics.mechanism.mechanism import Coincidence, Mechanism, PointLoad, Relation
from designopt_mechanics.motions import Ball, Rotate, Slide
from designopt_mechanics.tree import Coordinate, Frame, Point, Tree
from maximal_coordinates import Spatial, point_of, turn_of
from scipy.spatial.transform import Rotation

Array = np.ndarray[Any, np.dtype[np.float64]]
GRAVITY = (0.5, -1.0, -9.7)
INERTIA = np.array([[0.03, 0.002, -0.001], [0.002, 0.04, 0.003], [-0.001, 0.003, 0.05]])
X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def solid(mass: float, centre: tuple[float, float, float]) -> Body:
    """A body without symmetry."""
    return Body(mass, centre, mass * INERTIA)


def axes(turn: tuple[float, float, float]) -> Array:
    """Axes turned by a rotation vector."""
    return np.asarray(Rotation.from_rotvec(turn).as_matrix(), float)


def crank_and_rocker(spins: bool) -> Mechanism:
    """An RSSR linkage with a load on its coupler: two cranks on skew axes, and a coupler on two balls. Its first ball
    turns about three axes, the last along the coupler (`spins`), or about two."""
    motions = [Rotate(Z, "swing"), Rotate(Y, "dip"), *([Rotate(X, "spin")] if spins else [])]
    frames = (
        Frame("crank", motions=(Rotate(Z, "crank"),), body=solid(0.6, (0.05, 0.01, 0.02)), turn=axes((0.3, 0.2, 0.0))),
        Frame("coupler", "crank", motions, solid(0.9, (0.2, 0.03, -0.02)), (0.12, 0.0, 0.03)),
        Frame(
            "rocker",
            motions=(Rotate(Y, "rocker"),),
            body=solid(0.7, (0.02, 0.1, 0.04)),
            position=(0.4, 0.1, -0.1),
            turn=axes((0.0, 0.4, -0.3)),
        ),
    )
    names = ("crank", "swing", "dip", *(["spin"] if spins else []), "rocker")
    start = {"crank": 0.7, "swing": -0.4, "dip": 0.2, "spin": 0.3, "rocker": -0.2}
    return Mechanism(
        Tree(tuple(Coordinate(n, reference=start[n]) for n in names), frames),
        GRAVITY,
        meets=(Coincidence("ball", Point("coupler", (0.45, 0.0, 0.0)), Point("rocker", (0.0, 0.02, 0.25))),),
        loads=(PointLoad("push", Point("coupler", (0.2, 0.1, 0.0)), (20.0, -30.0, 40.0)),),
        independent=("crank", "spin") if spins else ("crank",),
    )


def rps_platform(quaternion: bool) -> Mechanism:
    """A platform on three legs, each a hinge, a drive of its length and a ball (3-RPS, Hunt 1983): tilts and heave. The
    free platform has three angles or a unit `quaternion`."""
    frames, meets, coordinates = [], [], []
    for i, angle in enumerate((0.1, 2.2, 4.4)):
        base = (0.5 * np.cos(angle), 0.5 * np.sin(angle), 0.0)
        frames.append(Frame(f"hinge{i}", "ground", (Rotate(Y, f"hinge{i}"),), solid(0.8, (0.0, 0.02, 0.1)), base,
                            axes((0.0, 0.0, angle))))  # fmt: skip
        frames.append(Frame(f"rod{i}", f"hinge{i}", (Slide(Z, f"rod{i}"),), solid(0.5, (0.01, 0.0, -0.1))))
        corner = (0.3 * np.cos(angle), 0.3 * np.sin(angle), 0.0)
        meets.append(Coincidence(f"ball{i}", Point(f"rod{i}"), Point("platform", corner)))
        coordinates += [Coordinate(f"hinge{i}", reference=-0.2), Coordinate(f"rod{i}", "m", reference=0.55 + 0.02 * i)]
    slides = (Slide(X, "x"), Slide(Y, "y"), Slide(Z, "z"))
    turns = (
        (Ball(("qw", "qx", "qy", "qz")),) if quaternion else (Rotate(Z, "turn"), Rotate(Y, "pitch"), Rotate(X, "roll"))
    )
    names = ("qw", "qx", "qy", "qz") if quaternion else ("turn", "pitch", "roll")
    frames.append(Frame("platform", motions=(*slides, *turns), body=solid(2.0, (0.02, -0.03, 0.04))))
    coordinates += [Coordinate(n, "m", reference=0.55 * (n == "z")) for n in "xyz"]
    coordinates += [Coordinate(n, "1" if quaternion else "rad", reference=float(n == "qw")) for n in names]
    length = Relation("length", lambda z: sum(z[n] ** 2 for n in names) - 1.0)
    load = PointLoad("tool", Point("platform", (0.1, 0.05, 0.0)), (15.0, -20.0, -60.0))
    return Mechanism(Tree(tuple(coordinates), tuple(frames)), GRAVITY, meets=tuple(meets), loads=(load,),
                     relations=(length,) if quaternion else (), independent=("rod0", "rod1", "rod2"))  # fmt: skip


def delta() -> Mechanism:
    """A platform that only shifts, on three arms with forearms on universal joints (Clavel 1988)."""
    frames, meets, coordinates = [], [], []
    for i, angle in enumerate((0.0, 2.1, 4.2)):
        base = (0.2 * np.cos(angle), 0.2 * np.sin(angle), 0.0)
        frames.append(Frame(f"arm{i}", "ground", (Rotate(Y, f"arm{i}"),), solid(0.8, (0.15, 0.02, 0.0)), base,
                            axes((0.0, 0.0, angle))))  # fmt: skip
        joint = (Rotate(Y, f"fold{i}"), Rotate(Z, f"sway{i}"))
        frames.append(Frame(f"forearm{i}", f"arm{i}", joint, solid(0.4, (0.3, 0.01, 0.02)), (0.3, 0.0, 0.0)))
        corner = (0.05 * np.cos(angle), 0.05 * np.sin(angle), 0.0)
        meets.append(Coincidence(f"corner{i}", Point(f"forearm{i}", (0.6, 0.0, 0.0)), Point("platform", corner)))
        coordinates += [Coordinate(f"arm{i}", reference=0.3 + 0.1 * i), Coordinate(f"fold{i}", reference=1.8)]
        coordinates += [Coordinate(f"sway{i}", reference=0.05)]
    slides = (Slide(X, "x"), Slide(Y, "y"), Slide(Z, "z"))
    frames.append(Frame("platform", motions=slides, body=solid(1.5, (0.02, -0.03, 0.04))))
    coordinates += [Coordinate(n, "m", reference=-0.6 * (n == "z")) for n in "xyz"]
    load = PointLoad("tool", Point("platform", (0.1, 0.05, 0.0)), (15.0, -20.0, -60.0))
    return Mechanism(Tree(tuple(coordinates), tuple(frames)), GRAVITY, meets=tuple(meets), loads=(load,),
                     independent=("arm0", "arm1", "arm2"))  # fmt: skip


def in_maximal_coordinates(
    mechanism: Mechanism, posture: Array, rates: Array, accelerations: Array, driven: tuple[str, ...]
) -> tuple[dict[str, tuple[Array, Array]], dict[str, Array], dict[str, float]]:
    """Of each frame the force and moment in the joint before it, of each meeting its force, of each drive its effort.

    The rates and accelerations are those of the driven coordinates.
    """
    tree, state = mechanism.tree, LoopSolver(mechanism).state
    spatial, start, drives = Spatial({}, mechanism.gravity), {}, {}
    for frame in tree.frames:
        pose = ca.Function("pose", [state.z], [state.position(Point(frame.name)), state.axes(frame.name)])(posture)
        origin, turn = (np.asarray(v, float) for v in pose)
        start[frame.name] = np.r_[origin.ravel(), Rotation.from_matrix(turn).as_quat(scalar_first=True)]
        spatial.bodies[frame.name] = (frame.body.mass, np.asarray(frame.body.centre), np.asarray(frame.body.inertia))
        spatial.equations[frame.name] = lambda q, t, f=frame: joint(f, q)
        drives |= {n: (frame, m) for m in frame.motions for n in vars(m).values() if n in driven}
    for name, (frame, motion) in drives.items():
        i = tree.names.index(name)
        value = variable(frame, motion)
        offset = value({n: ca.DM(pose) for n, pose in start.items()})
        spatial.equations[f"drive {name}"] = lambda q, t, f=value, a=offset, b=rates[i], c=accelerations[i]: (
            f(q) - a - b * t - 0.5 * c * t**2
        )
    for meet in mechanism.meets:
        spatial.equations[f"meet {meet.name}"] = lambda q, t, m=meet: (
            point_of(q, m.first.frame, m.first.position) - point_of(q, m.second.frame, m.second.position)
        )
    for load in mechanism.loads:
        spatial.loads.append((load.point.frame, load.point.position, load.force))
    multipliers, acting = spatial.solve(start)
    joints = {}
    for frame in tree.frames:
        parts = [acting[frame.name], *(acting[f"drive {n}"] for n, (moved, _) in drives.items() if moved is frame)]
        force, moment = (sum(part[frame.name][k] for part in parts) for k in (0, 1))
        joints[frame.name] = (force, moment)
    meets = {m.name: multipliers[f"meet {m.name}"] for m in mechanism.meets}
    return joints, meets, {n: float(multipliers[f"drive {n}"][0]) for n in drives}


def joint(frame: Frame, q: dict[str, Any]) -> Any:
    """The equations of slides, then one, two or three turns about axes at right angles."""
    slides = np.array([m.axis for m in frame.motions if isinstance(m, Slide)]).reshape(-1, 3)
    shift, turn = between(frame, q)
    blocked = np.linalg.svd(slides)[2][len(slides) :] if len(slides) else np.eye(3)
    rows = [ca.SX(blocked) @ shift] if len(blocked) else []
    turns = [m for m in frame.motions if isinstance(m, (Rotate, Ball))]
    if not turns:
        rows += [turn[0, 1], turn[0, 2], turn[1, 2]]
    elif len(turns) == 1 and isinstance(turns[0], Rotate):
        rows += [ca.dot(ca.SX(v), turn @ ca.SX(turns[0].axis)) for v in across(turns[0].axis)]
    elif len(turns) == 2:
        rows.append(ca.dot(ca.SX(turns[0].axis), turn @ ca.SX(turns[1].axis)))
    return ca.vertcat(*rows)


def variable(frame: Frame, motion: Any) -> Callable[[dict[str, Any]], Any]:
    """The value of a slide, of a single turn, or of the last of three turns about z, y and x."""

    def value(q: dict[str, Any]) -> Any:
        shift, turn = between(frame, q)
        if isinstance(motion, Slide):
            return ca.dot(ca.SX(motion.axis), shift)
        if sum(isinstance(m, Rotate) for m in frame.motions) == 3:
            return ca.atan2(turn[2, 1], turn[2, 2])
        v, w = across(motion.axis)
        return ca.atan2(ca.dot(ca.SX(w), turn @ ca.SX(v)), ca.dot(ca.SX(v), turn @ ca.SX(v)))

    return value


def between(frame: Frame, q: dict[str, Any]) -> tuple[Any, Any]:
    """Shift (3, 1) and turn (3, 3) of a frame from where it is fixed to its parent, in the axes there."""
    fixed = np.eye(3) if frame.turn is None else np.asarray(frame.turn)
    base = turn_of(q, frame.parent) @ ca.SX(fixed)
    return base.T @ (q[frame.name][:3] - point_of(q, frame.parent, frame.position)), base.T @ turn_of(q, frame.name)


def across(axis: tuple[float, float, float]) -> tuple[Array, Array]:
    """Two unit vectors that are right-handed with the axis."""
    v = np.roll(axis, 1)
    return v, np.cross(axis, v)
