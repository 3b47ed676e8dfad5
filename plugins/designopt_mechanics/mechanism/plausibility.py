"""Masses and inertias of bodies, lengths of springs and wires, that are probably in another unit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from designopt.arrays import Floats
from designopt.lazy import casadi as ca
from designopt_mechanics.body import DENSEST, NO_INERTIA, Body, inertia_tensor, is_number
from designopt_mechanics.mechanism.mechanism import Mechanism
from designopt_mechanics.springs import Spring
from designopt_mechanics.state import TreeState
from designopt_mechanics.tree import GROUND, Point, values_of

#: A radius of gyration beyond this multiple of the mechanism's size and this length (m) is improbable.
_WIDE, _LENGTH = 10.0, 1.0
#: A mass beyond this multiple of the sum of all others is improbable; with an inertia of no material the lower one.
_HEAVY, _HEAVIER = 500.0, 50.0
#: One kg m^2 in units of data sheets and of programs for drawings.
_UNITS = {"kg cm^2": 1e4, "kg mm^2": 1e6}
#: m/s^2, a gravity beyond which it is probably in another unit, and the names of those by their size.
_LARGE_GRAVITY = 100.0
_GRAVITIES = {1e2: "cm/s^2", 1e3: "mm/s^2"}
#: One m in units of drawings.
_LENGTHS = {"cm": 1e2, "mm": 1e3}


def plausibility_notes(mechanism: Mechanism, numbers: Mapping[str, float]) -> Iterator[str]:
    """Notes on numbers that are improbable at these parameters: gravity, the mass or inertia of each body that moves,
    and each rest length and point of a spring or wire that is far beyond the mechanism."""
    yield from _gravity_notes(mechanism, numbers)
    moving = _moving_bodies(mechanism)
    if moving:
        size, masses, inertias = _size_and_masses(mechanism, moving, numbers)
        yield from _body_notes(moving, size, masses, inertias)
        yield from _length_notes(mechanism, size, numbers)


def _gravity_notes(mechanism: Mechanism, numbers: Mapping[str, float]) -> Iterator[str]:
    function = ca.Function("gravity", [mechanism.p], [ca.norm_2(ca.SX(mechanism.gravity))])
    gravity = float(function(mechanism.column(numbers)))
    if gravity > _LARGE_GRAVITY:
        units = [unit for factor, unit in _GRAVITIES.items() if 9.7 <= gravity / factor <= 9.9]
        yield f"gravity is {gravity:.4g} m/s^2; {f'is it in {units[0]}?' if units else 'check its unit'}"


def _length_notes(mechanism: Mechanism, size: float, numbers: Mapping[str, float]) -> Iterator[str]:
    lengths = {f"spring '{s.wire.name}': its rest length": s.rest for s in mechanism.springs if isinstance(s, Spring)}
    for wire in (*mechanism.wires, *(spring.wire for spring in mechanism.springs)):
        lengths |= {
            f"'{wire.name}': its point on '{point.frame}'": ca.norm_2(
                ca.SX(ca.DM(position) if is_number(position) else position)
            )
            for point in wire.points
            for position in [point.position]
        }
    function = ca.Function("lengths", [mechanism.p], [ca.vertcat(ca.SX(0, 1), *lengths.values())])
    values = np.asarray(function(mechanism.column(numbers)), dtype=np.float64).ravel()
    for name, length in zip(lengths, values, strict=True):
        if length > max(_WIDE * size, _LENGTH) and size > 0.0:
            units = [unit for unit, factor in _LENGTHS.items() if length / factor <= size]
            verb = "is" if name.endswith("length") else "is at"
            yield (
                f"{name} {verb} {length:.4g} m in a mechanism of {size:.3g} m;"
                f" {f'is it in {units[0]}?' if units else 'check its unit'}"
            )


def _body_notes(moving: Mapping[str, Body], size: float, masses: Floats, inertias: Sequence[Floats]) -> Iterator[str]:
    """Notes on a radius of gyration beyond the mechanism, a mass in less space than any material needs, and a mass far
    above that of all other bodies."""
    for (name, body), mass, inertia in zip(moving.items(), masses, inertias, strict=True):
        largest, remaining_mass = float(inertia.max()), float(masses.sum() - mass)
        if not (mass > 0.0 and size > 0.0):
            continue
        gyration = math.sqrt(max(largest, 0.0) / mass)
        ratio = mass / remaining_mass if remaining_mass > 0.0 else 0.0
        if gyration > max(_WIDE * size, _LENGTH):
            units = [unit for unit, factor in _UNITS.items() if gyration / math.sqrt(factor) <= size]
            yield (
                f"body '{name}': {mass:.6g} kg and {largest:.6g} kg m^2 are a radius of gyration of {gyration:.3g} m in"
                f" a mechanism of {size:.3g} m; {f'is its inertia in {units[0]}?' if units else 'check its units'}"
            )
        elif largest > NO_INERTIA and mass > DENSEST * _largest_volume(body, inertia / mass, size):
            yield (
                f"body '{name}': no material is so dense that {mass:.6g} kg have an inertia of only {largest:.6g} kg"
                f" m^2; {_heavy(ratio) if ratio > _HEAVIER else 'check their units'}"
            )
        elif ratio > _HEAVY:
            yield f"body '{name}': {_heavy(ratio)}"


def _heavy(ratio: float) -> str:
    return f"its mass is {ratio:.0f} times that of all other bodies together: is it in g?"


def _moving_bodies(mechanism: Mechanism) -> dict[str, Body]:
    """The bodies on frames that move against the ground, by their frames."""
    moving_frames, bodies = set[str](), dict[str, Body]()
    for frame in mechanism.tree.frames:
        if frame.parent in moving_frames or any(not isinstance(value, float | int) for value in values_of(frame)):
            moving_frames.add(frame.name)
            if frame.body is not None:
                bodies[frame.name] = frame.body
    return bodies


def _size_and_masses(
    mechanism: Mechanism, bodies: Mapping[str, Body], numbers: Mapping[str, float]
) -> tuple[float, Floats, list[Floats]]:
    """Size of the mechanism (m), masses (b,) and inertias (3, 3) of the bodies.

    The size is the diagonal of the box around frames, centres of mass and points that meet in the reference posture,
    enlarged by the ranges of its slides.
    """
    tree = mechanism.tree
    state = TreeState(tree, ca.SX.sym("z", len(tree.names)))
    points = [Point(GROUND), *(Point(frame.name) for frame in tree.frames)]
    points += [Point(name, body.centre) for name, body in bodies.items()]
    points += [point for meet in mechanism.meets for point in (meet.first, meet.second)]
    positions = ca.horzcat(*(state.position(point) for point in points))
    expressions = [positions, *(e for body in bodies.values() for e in (ca.SX(body.mass), inertia_tensor(body)))]
    function = ca.Function("bodies", [state.z, mechanism.p], [ca.densify(e) for e in expressions])
    values = [np.asarray(v, dtype=np.float64) for v in function(tree.reference, mechanism.column(numbers))]
    slides = [c.high - c.low for c in tree.coordinates if c.unit == "m" and math.isfinite(c.high - c.low)]
    size = float(np.linalg.norm(np.ptp(values[0], axis=1))) + sum(slides)
    return size, np.concatenate([mass.ravel() for mass in values[1::2]]), values[2::2]


def _largest_volume(body: Body, squares: Floats, size: float) -> float:
    """m^3 that a body can have with these moments (3, 3) m^2 per mass: those of a ball, which is the volume with the
    least; in a plane, where one number states the moment, of a disc as thick as the mechanism is large."""
    if not isinstance(body.inertia, tuple | list | np.ndarray) and ca.SX(body.inertia).is_scalar():
        return 2.0 * math.pi * float(squares.max()) * size
    radius = math.sqrt(5.0 / 6.0 * float(np.trace(squares)))
    return 4.0 / 3.0 * math.pi * radius**3
