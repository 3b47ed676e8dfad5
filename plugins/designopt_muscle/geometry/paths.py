"""The path of one muscle in many frames: which points it passes, where it touches surfaces, how long it is."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from designopt_mechanics.surfaces.around import around

from designopt.arrays import Floats, Integers, Mask
from designopt_muscle.geometry.kinematics import Kinematics, rotate
from designopt_muscle.osim.model import OsimMuscle, PathForce, PathPoint, WrapObject

Frames = Integers

#: Rounds in which several surfaces of one path find their places.
_ROUNDS = 10
#: Points on surfaces that move less than this (m) in a round have found their places.
_SETTLED = 1e-12


@dataclass(frozen=True, eq=False)
class PathNode:
    """A point `x` (n, 3) of a path in the ground, fixed to `body`. `arc` (n,) is the way to the next node over a
    surface, None for a straight one. `point` is the point of the model that it is, if any; `wrap` the surface."""

    x: Floats
    body: str
    arc: Floats | None = None
    point: PathPoint | None = None
    wrap: str = ""


@dataclass(frozen=True, eq=False)
class WrappedPath:
    """The nodes of a path in those `frames` in which it has the same ones."""

    frames: Frames
    nodes: tuple[PathNode, ...]


def wrapped_paths(
    muscle: OsimMuscle | PathForce, surfaces: dict[str, WrapObject], motion: Kinematics
) -> list[WrappedPath]:
    """The path of a muscle or spring: for each set of points and surfaces that it passes, the frames and the nodes. One
    without points has none."""
    n = len(next(iter(motion.origin.values())))
    if not muscle.points:
        return []
    positions = [_position(point, motion) for point in muscle.points]
    present = np.column_stack([_is_present(point, motion, n) for point in muscle.points])
    path_list = []
    for pattern, frames in _groups(present):
        nodes = [
            PathNode(x[frames], p.body, point=p)
            for p, x, is_active in zip(muscle.points, positions, pattern, strict=True)
            if is_active
        ]
        active_points = [i for i, is_active in enumerate(pattern) if is_active]
        path_list += _paths_over(muscle, surfaces, motion, frames, nodes, active_points)
    return path_list


def _groups(present: Mask) -> list[tuple[tuple[bool, ...], Frames]]:
    """Frames with the same row, in the order of their first ones."""
    patterns: dict[tuple[bool, ...], list[int]] = {}
    if (present == present[0]).all():
        return [(tuple(bool(v) for v in present[0]), np.arange(len(present)))]
    for frame, row in enumerate(present.tolist()):
        patterns.setdefault(tuple(row), []).append(frame)
    return [(pattern, np.array(frames)) for pattern, frames in patterns.items()]


def _position(point: PathPoint, motion: Kinematics) -> Floats:
    """(n, 3) in the ground."""
    if not point.moving:
        return motion.position(point.body, point.location)
    parts = [a.function.value(motion.coordinates[a.coordinate])[:, None] * a.axis for a in point.moving]
    return motion.position(point.body, np.asarray(sum(parts)))


def _is_present(point: PathPoint, motion: Kinematics, n: int) -> Mask:
    """(n,) both ends of the range belong to it, but for rounding."""
    if not point.condition:
        return np.ones(n, dtype=np.bool_)
    value, (low, high) = motion.coordinates[point.condition], point.within
    return np.asarray((value >= low - 1e-10) & (value <= high + 1e-10))


@dataclass(eq=False)
class _Contact:
    """Where one surface has its part of a path, in all frames: between which keys, and its two points."""

    surface: WrapObject
    key: Floats  # NaN where the path does not touch it
    first: Floats
    last: Floats
    arc: Floats


def _paths_over(
    muscle: OsimMuscle | PathForce,
    surfaces: dict[str, WrapObject],
    motion: Kinematics,
    frames: Frames,
    nodes: list[PathNode],
    point_numbers: list[int],
) -> list[WrappedPath]:
    """Paths over the surfaces of a muscle through `nodes`, which are its points `point_numbers`."""
    n = len(frames)
    active_wraps = [(w, surfaces[w.wrap]) for w in muscle.wraps if surfaces[w.wrap].active]
    if not active_wraps:
        return [WrappedPath(frames, tuple(nodes))]
    contacts = [
        _Contact(s, np.full(n, np.nan), np.zeros((n, 3)), np.zeros((n, 3)), np.zeros(n)) for _, s in active_wraps
    ]
    for _ in range(_ROUNDS if len(active_wraps) > 1 else 1):
        shift = 0.0
        for (wrap, _), contact in zip(active_wraps, contacts, strict=True):
            low = 0 if wrap.first is None else wrap.first
            high = len(muscle.points) - 1 if wrap.last is None else wrap.last
            inside = [low <= i <= high for i in point_numbers]
            shift = max(shift, _find(contact, [c for c in contacts if c is not contact], motion, frames, nodes, inside))
        if shift <= _SETTLED:
            break
    path_list = []
    for pattern, subset in _same_contacts(contacts):
        contact_keys = [(c, key) for c, key in zip(contacts, pattern, strict=True) if key == key]
        path_list.append(WrappedPath(frames[subset], tuple(node for _, node in _sequence(nodes, contact_keys, subset))))
    return path_list


def _same_contacts(contacts: list[_Contact]) -> list[tuple[tuple[float, ...], Frames]]:
    """Frames in which all contacts are at the same places of the path."""
    keys = np.column_stack([c.key for c in contacts])
    patterns: dict[tuple[str, ...], tuple[tuple[float, ...], list[int]]] = {}
    for frame, row in enumerate(keys.tolist()):
        patterns.setdefault(tuple(map(repr, row)), (tuple(row), []))[1].append(frame)
    return [(row, np.array(frames)) for row, frames in patterns.values()]


def _sequence(
    nodes: list[PathNode], contact_keys: list[tuple[_Contact, float]], subset: Frames
) -> list[tuple[float, PathNode]]:
    """Nodes of the frames `subset` in the order of the path, with their keys: whole numbers are the path's points."""
    keyed_nodes = [(float(i), 0, PathNode(node.x[subset], node.body, point=node.point)) for i, node in enumerate(nodes)]
    for contact, key in contact_keys:
        body, name = contact.surface.body, contact.surface.name
        keyed_nodes.append((key, 1, PathNode(contact.first[subset], body, contact.arc[subset], wrap=name)))
        keyed_nodes.append((key, 2, PathNode(contact.last[subset], body, wrap=name)))
    keyed_nodes.sort(key=lambda item: item[:2])
    return [(key, node) for key, _, node in keyed_nodes]


def _find(
    contact: _Contact,
    other_contacts: list[_Contact],
    motion: Kinematics,
    frames: Frames,
    nodes: list[PathNode],
    inside: list[bool],
) -> float:
    """Find the contact of one surface while the others stay; returns how far its points have moved (m)."""
    surface = contact.surface
    before = np.where(np.isnan(contact.key)[:, None], 0.0, np.column_stack([contact.first, contact.last]))
    turn = motion.rotation[surface.body][frames] @ surface.pose[:3, :3]
    at = motion.origin[surface.body][frames] + rotate(motion.rotation[surface.body][frames], surface.pose[:3, 3])
    contact.key[:] = np.nan
    for pattern, subset in _same_contacts(other_contacts) if other_contacts else [((), np.arange(len(frames)))]:
        contact_keys = [(c, key) for c, key in zip(other_contacts, pattern, strict=True) if key == key]
        keyed_nodes = _sequence(nodes, contact_keys, subset)
        best = np.full(len(subset), np.inf)
        for (low, a), (high, b) in itertools.pairwise(keyed_nodes):
            between = inside[int(np.floor(low))] and inside[int(np.ceil(high))]
            if a.arc is not None or not between:
                continue
            r, o = turn[subset], at[subset]
            back = r.transpose(0, 2, 1)
            touch_points = around(surface, rotate(back, a.x - o), rotate(back, b.x - o))
            first, last = o + rotate(r, touch_points.first), o + rotate(r, touch_points.last)
            detour = np.linalg.norm(first - a.x, axis=1) + touch_points.arc + np.linalg.norm(b.x - last, axis=1)
            excess = np.where(touch_points.is_engaged, detour - np.linalg.norm(b.x - a.x, axis=1), np.inf)
            better = excess < best
            best = np.where(better, excess, best)
            rows = subset[better]
            contact.key[rows] = 0.5 * (low + high)
            contact.first[rows], contact.last[rows] = first[better], last[better]
            contact.arc[rows] = touch_points.arc[better]
    after = np.where(np.isnan(contact.key)[:, None], 0.0, np.column_stack([contact.first, contact.last]))
    return float(np.abs(after - before).max(initial=0.0))
