"""Contents of an OpenSim model as values: bodies, joints, coordinates, muscles with their paths, actuators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from designopt_mechanics.contacts import SphereContact

from designopt.arrays import Floats
from designopt_muscle.osim.functions import Function, ManyPolynomial
from designopt_muscle.osim.laws import CoordinateForceLaw, PathLaw

GROUND = "ground"


@dataclass(frozen=True, eq=False)
class OsimBody:
    """Mass (kg), centre of mass (3) m and inertia about it (3, 3) kg m^2 in the body's axes."""

    name: str
    mass: float
    centre: Floats
    inertia: Floats


@dataclass(frozen=True, eq=False)
class Axis:
    """One of the six steps of a joint: `function` of `coordinate` (of nothing: a constant) about or along `axis`."""

    axis: Floats
    function: Function
    coordinate: str = ""


@dataclass(frozen=True, eq=False)
class Joint:
    """How `child` moves on `parent`.

    The pose of the child is that of the parent, times `in_parent` (4, 4), the translations (three axes, summed) and
    rotations (three axes, one after the other), times the inverse of `in_child` (4, 4).
    """

    name: str
    parent: str
    child: str
    in_parent: Floats
    in_child: Floats
    rotations: tuple[Axis, ...]
    translations: tuple[Axis, ...]


@dataclass(frozen=True)
class OsimCoordinate:
    """A coordinate: `rotational` (rad) or not (m), its default and range, and the joint that it belongs to.

    A `locked` one keeps its default; the range of a `clamped` one is a limit of its motion.
    """

    name: str
    joint: str
    rotational: bool
    default: float
    low: float
    high: float
    locked: bool = False
    clamped: bool = False


@dataclass(frozen=True, eq=False)
class Coupler:
    """`dependent` is `function` of `independent`."""

    dependent: str
    independent: str
    function: Function


@dataclass(frozen=True, eq=False)
class PathPoint:
    """A point of a muscle's path, at `location` (3) m in `body`.

    With a `condition` (a coordinate) it is active only for values `within` a range; with `moving` it moves: functions
    of coordinates for x, y and z.
    """

    name: str
    body: str
    location: Floats
    condition: str = ""
    within: tuple[float, float] = (-np.inf, np.inf)
    moving: tuple[Axis, ...] = ()


Quadrant = Literal["all", "+x", "-x", "+y", "-y", "+z", "-z"]


@dataclass(frozen=True, eq=False)
class WrapObject:
    """A surface fixed to `body` with the `pose` (4, 4) in it.

    `kind` and `sizes`: a cylinder's radius and length (about z), a sphere's radius, an ellipsoid's three half axes, the
    radius of a torus' tube and that of the circle in its middle (about z).
    """

    name: str
    body: str
    kind: Literal["cylinder", "sphere", "ellipsoid", "torus"]
    sizes: tuple[float, ...]
    pose: Floats
    quadrant: Quadrant = "all"
    active: bool = True


@dataclass(frozen=True)
class PathWrap:
    """A path's use of a surface: between which of its points (from 0, inclusive) segments are tested; None: open."""

    wrap: str
    first: int | None = None
    last: int | None = None


@dataclass(frozen=True, eq=False)
class PathFunction:
    """The length (m) of a path by `coordinates`; its moment arms are `arms`, without them the derivatives."""

    coordinates: tuple[str, ...]
    length: ManyPolynomial
    arms: tuple[ManyPolynomial, ...] = ()

    def measure(self, values: Mapping[str, Floats]) -> tuple[Floats, Floats]:
        """Length (n,) and its derivatives (n, m) by the coordinates."""
        x = np.column_stack([values[name] for name in self.coordinates])
        if not self.arms:
            return self.length.values(x), self.length.slopes(x)
        return self.length.values(x), -np.column_stack([arm.values(x) for arm in self.arms])


@dataclass(frozen=True, eq=False)
class OsimMuscle:
    """A muscle: path, wraps, and the parameters of its model. One with a `function` has no points.

    `model` is "thelen", "millard" or "degroote". Forces in N, lengths in m, the pennation in rad, the maximum
    shortening velocity in optimal fibre lengths per second. `shape` contains the parameters that only this model has,
    under the file's names.
    """

    name: str
    model: Literal["thelen", "millard", "degroote"]
    points: tuple[PathPoint, ...]
    wraps: tuple[PathWrap, ...]
    force: float
    fibre: float
    slack: float
    pennation: float
    fastest: float
    min_control: float
    max_control: float
    rigid: bool
    rise: float
    fall: float
    shape: dict[str, float] = field(default_factory=dict)
    function: PathFunction | None = None

    @property
    def tendon_strain(self) -> float:
        """Strain of the tendon at the maximum isometric force; 0.049 where the model has none."""
        return self.shape.get("tendon_strain_at_one_norm_force", self.shape.get("FmaxTendonStrain", 0.049))


@dataclass(frozen=True)
class CoordinateActuator:
    """A drive of one coordinate: its generalised force at control 1, and the range of the control."""

    name: str
    coordinate: str
    optimal: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class CoordinateForce:
    """A law at a coordinate."""

    name: str
    coordinate: str
    law: CoordinateForceLaw


@dataclass(frozen=True, eq=False)
class PathForce:
    """A law along a path of points and surfaces, like a muscle's."""

    name: str
    points: tuple[PathPoint, ...]
    wraps: tuple[PathWrap, ...]
    law: PathLaw


@dataclass(frozen=True, eq=False)
class Bushing:
    """Springs and dampers (6,) between frames of two bodies: three angles x-y-z of the second in the first, then its
    position there. `frames` are the two bodies with the poses (4, 4) of the frames in them.
    """

    name: str
    frames: tuple[tuple[str, Floats], tuple[str, Floats]]
    stiffness: Floats
    damping: Floats


PassiveForce = CoordinateForce | PathForce | Bushing


@dataclass(frozen=True, eq=False)
class OsimModel:
    """A model. Bodies are in the order of their joints, parents first; `notes` list replaced elements of the file.

    `contacts` are spheres on half spaces, with the friction of the file (with its kink); `passive` are the forces that
    follow from the motion alone.
    """

    name: str
    gravity: Floats
    bodies: tuple[OsimBody, ...]
    joints: tuple[Joint, ...]
    coordinates: tuple[OsimCoordinate, ...]
    couplers: tuple[Coupler, ...]
    wraps: tuple[WrapObject, ...]
    muscles: tuple[OsimMuscle, ...]
    actuators: tuple[CoordinateActuator, ...]
    notes: tuple[str, ...] = ()
    contacts: tuple[SphereContact, ...] = ()
    passive: tuple[PassiveForce, ...] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all coordinates."""
        return tuple(c.name for c in self.coordinates)

    @property
    def free(self) -> tuple[str, ...]:
        """Names of the coordinates that no coupler drives."""
        driven = {c.dependent for c in self.couplers}
        return tuple(n for n in self.names if n not in driven)
