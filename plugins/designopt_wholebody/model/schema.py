"""Schema of a model file: metres, degrees, axes X forward, Y up, Z to the right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from designopt.plugin import Quantity as Q

Triple = tuple[float, float, float]

#: A direction from the first landmark to the second.
Between = tuple[str, str]

#: A factor of a cross product: an axis of the frame (``u``, ``v``, ``w``) or a direction between landmarks.
Factor = str | Between

#: The segment that does not move; joints may name it as proximal.
GROUND = "ground"


@dataclass(frozen=True)
class Cross:
    """An axis along the cross product of two factors."""

    cross: Annotated[tuple[Factor, Factor], Q("", "axes of the frame or directions between landmarks")]


Axis = Between | Cross


@dataclass(frozen=True)
class SegmentFrame:
    """Axes of a segment by landmarks: u forward, v up, w to the right in the standing posture."""

    origin: Annotated[str, Q("", "landmark at the origin")]
    u: Annotated[Axis, Q("", "first axis")]
    v: Annotated[Axis, Q("", "second axis")]
    w: Annotated[Axis, Q("", "third axis")]


@dataclass(frozen=True)
class Inertia:
    """Mass, centre of mass and inertia of a segment.

    By regression (`mass_percent` of the body less `mass_less` kg; `centre`, `radii` and `products` in percent of the
    length between two landmarks times `length_factor`), or directly (`mass`, `centre_at`, `tensor`). Entries of the
    tensor about the centre of mass are J_kk = m L² r², J_kj = ± m L² r² with the sign of the given number.
    """

    mass: Annotated[float | None, Q("kg", "of the segment", gt=0)] = None
    mass_percent: Annotated[float | None, Q("", "of the body's mass", gt=0, le=100)] = None
    mass_less: Annotated[float, Q("kg", "subtracted from the share of the body's mass", ge=0)] = 0.0
    length: Annotated[Between | None, Q("", "landmarks between which the length is measured")] = None
    length_factor: Annotated[float, Q("", "of the distance between them", gt=0)] = 1.0
    centre: Annotated[Triple | None, Q("", "of mass from the origin, percent of the length")] = None
    centre_at: Annotated[tuple[str, ...], Q("", "landmarks of which it is the mean")] = ()
    radii: Annotated[Triple | None, Q("", "of gyration xx, yy, zz, percent of the length")] = None
    products: Annotated[Triple, Q("", "xy, xz, yz in the same way, negative for a negative entry")] = (0.0, 0.0, 0.0)
    tensor: Annotated[tuple[float, float, float, float, float, float] | None, Q("kg m^2", "xx, yy, zz, xy, xz, yz")] = (
        None
    )


@dataclass(frozen=True)
class Segment:
    """A rigid body and its natural coordinates: basic points, then axes of its frame as unit vectors."""

    layout: Annotated[Literal["1p3v", "2p2v", "2p"], Q("", "one point and three vectors, two and two, or a rod")]
    points: Annotated[tuple[str, ...], Q("", "landmarks that are basic points")]
    inertia: Annotated[Inertia, Q("", "mass and its distribution")]
    vectors: Annotated[tuple[Literal["u", "v", "w"], ...], Q("", "axes that are coordinates")] = ()
    frame: Annotated[SegmentFrame | None, Q("", "axes by landmarks; a rod has none")] = None
    landmarks: Annotated[tuple[str, ...], Q("", "other landmarks that move with it, where there are any")] = ()
    pose: Annotated[
        Literal["frame", "fit"],
        Q("", "in a trial: axes by the frame's landmarks, or by a rigid fit of its own landmarks"),
    ] = "frame"


JointType = Literal["spherical", "universal", "revolute", "ellipsoid"]


@dataclass(frozen=True)
class TurningSpring:
    """A spring with damper and actuator about the axis of a revolute joint, for simulations.

    The torque on the distal segment is -stiffness (θ - rest) - damping θ̇ + torque; θ is 0 in the static posture.
    """

    stiffness: Annotated[float, Q("N m/rad", "of the spring", ge=0)] = 0.0
    damping: Annotated[float, Q("N m s/rad", "of the damper", ge=0)] = 0.0
    rest: Annotated[float, Q("deg", "angle without torque of the spring")] = 0.0
    torque: Annotated[float, Q("N m", "of the actuator, on the distal segment")] = 0.0


@dataclass(frozen=True)
class PointSpring:
    """A spring with damper and actuator between two points, for simulations.

    The tension stiffness (s - rest) + damping ds/dt - push pulls the points together.
    """

    first: Annotated[tuple[str, str], Q("", "segment (or ground) and landmark of one end")]
    second: Annotated[tuple[str, str], Q("", "segment (or ground) and landmark of the other end")]
    stiffness: Annotated[float, Q("N/m", "of the spring", ge=0)] = 0.0
    damping: Annotated[float, Q("N s/m", "of the damper", ge=0)] = 0.0
    rest: Annotated[float, Q("m", "length without tension of the spring", ge=0)] = 0.0
    push: Annotated[float, Q("N", "of the actuator, apart")] = 0.0


@dataclass(frozen=True)
class Joint:
    """Connection of two segments. `NEEDS` lists the entries that each type requires."""

    type: Annotated[JointType, Q("", "of joint")]
    proximal: Annotated[str, Q("", "segment, or ground")]
    distal: Annotated[str, Q("", "segment")]
    at: Annotated[str | None, Q("", "landmark of both segments")] = None
    axes: Annotated[
        tuple[Literal["u", "v", "w"], Literal["u", "v", "w"]] | None,
        Q("", "axis of the proximal and axis of the distal segment at a constant angle"),
    ] = None
    axis: Annotated[
        Literal["u", "v", "w"] | Between | None, Q("", "of rotation: an axis of the proximal segment or a line")
    ] = None
    compression: Annotated[
        Literal["u", "v", "w"] | None, Q("", "axis of the proximal segment along which the joint is compressed")
    ] = None
    spring: Annotated[TurningSpring | None, Q("", "with damper and actuator about the axis")] = None
    points: Annotated[tuple[str, ...], Q("", "landmarks of the distal segment on the surface")] = ()
    centre: Annotated[Triple | None, Q("m", "of the ellipsoid in the proximal frame")] = None
    radii: Annotated[Triple | None, Q("m", "of the ellipsoid", gt=0)] = None
    attitude: Annotated[Triple, Q("deg", "of the ellipsoid: turns about x, then y, then z of the proximal frame")] = (
        0.0,
        0.0,
        0.0,
    )


#: Keys that a type of joint needs, and those that it may have.
NEEDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "spherical": (("at",), ("compression",)),
    "universal": (("at", "axes"), ("compression",)),
    "revolute": (("at", "axis"), ("compression", "spring")),
    "ellipsoid": (("points", "centre", "radii"), ("attitude",)),
}


@dataclass(frozen=True)
class Angles:
    """Joint angles of `of` relative to `relative_to`: a sequence of turns about moving axes and a name for each.

    Names may be fewer than three: the remaining turns cannot be observed or are not allowed by the joint. A name that
    begins with ``-`` takes the other sign.
    """

    of: Annotated[str, Q("", "segment")]
    relative_to: Annotated[str, Q("", "segment, or ground")]
    sequence: Annotated[Literal["ZXY", "YXZ", "YXY"], Q("", "axes of the three turns")]
    names: Annotated[Mapping[str, float], Q("", "name and sign of each turn, positive in the direction of its name")]


@dataclass(frozen=True)
class Root:
    """Application of the residual loads: a force at a point of a segment, and a moment on it."""

    segment: Annotated[str, Q("", "that no joint carries")]
    point: Annotated[str, Q("", "landmark of it")]


@dataclass(frozen=True)
class BodyModel:
    """A model file after reading: both sides written out, in the order of the file.

    `mirrored` names the segments whose frame and inertia are mirrored from the right side.
    """

    model: Annotated[str, Q("", "name")]
    landmarks: Annotated[Mapping[str, Triple], Q("m", "of the reference subject, standing")]
    segments: Annotated[Mapping[str, Segment], Q("", "rigid bodies by name")]
    joints: Annotated[Mapping[str, Joint], Q("", "by name")] = field(default_factory=dict)
    springs: Annotated[Mapping[str, PointSpring], Q("", "between points, by name")] = field(default_factory=dict)
    description: Annotated[str, Q("", "description of the model and sources of its numbers")] = ""
    derived: Annotated[Mapping[str, tuple[str, ...]], Q("", "landmarks that are the mean of others")] = field(
        default_factory=dict
    )
    sides: Annotated[Literal["both", "right"], Q("", "of segments and joints whose names end in _R")] = "both"
    mass: Annotated[float, Q("kg", "of the reference subject", gt=0)] = 75.0
    root: Annotated[Root | None, Q("", "segment without a joint to the ground")] = None
    contacts: Annotated[Mapping[str, tuple[str, ...]], Q("", "segments that plates may carry, and their outline")] = (
        field(default_factory=dict)
    )
    angles: Annotated[Mapping[str, Angles], Q("", "joint angles by name")] = field(default_factory=dict)
    mirrored: frozenset[str] = field(default=frozenset(), init=False)
