"""A small subject for tests of scaling and inverse kinematics: pelvis, two legs, a patella that a coupler drives."""

import numpy as np
from designopt_muscle.geometry.kinematics import kinematics
from designopt_muscle.osim.markers import OsimMarker, read_markers
from designopt_muscle.osim.model import OsimModel
from designopt_muscle.osim.read import read_model
from designopt_recordings.recording import Recording

_SPOTS = ("0.05 0.03 0.09", "0.06 -0.04 -0.08", "-0.1 0.02 0.01", "0.02 -0.2 0.07")


def subject(*, knee: str = "", couplers: bool = True) -> bytes:
    """The ``.osim`` file, version 4; `knee` is written into the coordinate of the right knee."""
    bodies, joints, markers, couples = [_body("pelvis", 10)], [_root()], _markers("pelvis"), ""
    for side, z in (("r", 0.08), ("l", -0.08)):
        bodies += [_body(f"{name}_{side}", mass) for name, mass in (("thigh", 8), ("shank", 3), ("patella", 0.1))]
        markers += _markers(f"thigh_{side}") + _markers(f"shank_{side}")
        joints.append(_custom(f"hip_{side}", "pelvis", f"thigh_{side}", f"-0.05 -0.06 {z}", _hip(side)))
        knee_steps = {
            "rotation1": (f"knee_{side}", "0 0 1", _LINE),
            "translation1": (f"knee_{side}", "1 0 0", _SPLINE),
        }
        joints.append(_custom(f"knee_{side}", f"thigh_{side}", f"shank_{side}", "0 -0.4 0", knee_steps, knee))
        knee = ""
        patella = {
            "rotation1": (f"patella_{side}_angle", "0 0 1", _LINE),
            "translation1": (f"patella_{side}_angle", "1 0 0", _SPLINE),
        }
        joints.append(_custom(f"patella_{side}", f"thigh_{side}", f"patella_{side}", "0.04 -0.4 0", patella))
        markers += f'<Marker name="patella_{side}1"><socket_parent_frame>/bodyset/patella_{side}</socket_parent_frame>'
        markers += "<location>0.02 0.01 0.01</location><fixed>false</fixed></Marker>"
        couples += (
            f'<CoordinateCouplerConstraint name="p{side}"><coupled_coordinates_function>'
            "<LinearFunction><coefficients>0.7 0.1</coefficients></LinearFunction></coupled_coordinates_function>"
            f"<independent_coordinate_names>knee_{side}</independent_coordinate_names>"
            f"<dependent_coordinate_name>patella_{side}_angle</dependent_coordinate_name></CoordinateCouplerConstraint>"
        )
    return f"""<?xml version="1.0" encoding="UTF-8" ?>
<OpenSimDocument Version="40000"><Model name="subject"><gravity>0 -9.81 0</gravity>
<BodySet><objects>{"".join(bodies)}</objects></BodySet><JointSet><objects>{"".join(joints)}</objects></JointSet>
<ConstraintSet><objects>{couples if couplers else ""}</objects></ConstraintSet>
<ForceSet><objects>{_MUSCLE}</objects></ForceSet>
<MarkerSet><objects>{markers}</objects></MarkerSet></Model></OpenSimDocument>
""".encode()


_LINE = "<LinearFunction><coefficients>1 0</coefficients></LinearFunction>"
_SPLINE = "<SimmSpline><x>-2 -1 0 0.5</x><y>0.02 0.015 0 -0.001</y></SimmSpline>"
_MUSCLE = """<Thelen2003Muscle name="vastus"><GeometryPath><PathPointSet><objects><PathPoint name="p1">
<socket_parent_frame>/bodyset/thigh_r</socket_parent_frame><location>0.03 -0.1 0.01</location></PathPoint>
<PathPoint name="p2"><socket_parent_frame>/bodyset/patella_r</socket_parent_frame><location>0.03 0.02 0</location>
</PathPoint></objects></PathPointSet></GeometryPath><max_isometric_force>900</max_isometric_force>
<optimal_fiber_length>0.09</optimal_fiber_length><tendon_slack_length>0.15</tendon_slack_length></Thelen2003Muscle>
"""


def _body(name: str, mass: float) -> str:
    return (
        f'<Body name="{name}"><mass>{mass}</mass><mass_center>0.01 -0.1 0.02</mass_center>'
        f"<inertia>{0.02 * mass} {0.004 * mass} {0.021 * mass} 0.001 0 0</inertia></Body>"
    )


def _markers(body: str) -> str:
    return "".join(
        f'<Marker name="{body}{i}"><socket_parent_frame>/bodyset/{body}</socket_parent_frame>'
        f"<location>{spot}</location><fixed>false</fixed></Marker>"
        for i, spot in enumerate(_SPOTS)
    )


def _hip(side: str) -> dict[str, tuple[str, str, str]]:
    axes = (("flexion", "0 0 1"), ("adduction", "1 0 0"), ("rotation", "0 1 0"))
    return {f"rotation{i + 1}": (f"{name}_{side}", axis, _LINE) for i, (name, axis) in enumerate(axes)}


def _root() -> str:
    steps = {f"rotation{i + 1}": (f"turn{i}", axis, _LINE) for i, axis in enumerate(("0 0 1", "1 0 0", "0 1 0"))}
    units = ("1 0 0", "0 1 0", "0 0 1")
    steps |= {f"translation{i + 1}": (f"shift{i}", axis, _LINE) for i, axis in enumerate(units)}
    return _custom("root", "ground", "pelvis", "0 0 0", steps)


def _custom(name: str, parent: str, child: str, at: str, steps: dict[str, tuple[str, str, str]], knee: str = "") -> str:
    names = dict.fromkeys(step[0] for step in steps.values())
    coordinates = "".join(f'<Coordinate name="{n}"><range>-2 2</range>{knee}</Coordinate>' for n in names)
    transform = ""
    for kind in ("rotation", "translation"):
        for i, unit in enumerate(("1 0 0", "0 1 0", "0 0 1"), 1):
            driver, axis, function = steps.get(f"{kind}{i}", ("", unit, "<Constant><value>0</value></Constant>"))
            transform += f'<TransformAxis name="{kind}{i}"><coordinates>{driver}</coordinates><axis>{axis}</axis>'
            transform += f"{function}</TransformAxis>"
    return (
        f'<CustomJoint name="{name}"><socket_parent_frame>at</socket_parent_frame>'
        f"<socket_child_frame>{child}</socket_child_frame><coordinates>{coordinates}</coordinates>"
        f'<frames><PhysicalOffsetFrame name="at"><socket_parent>/{parent}</socket_parent>'
        f"<translation>{at}</translation></PhysicalOffsetFrame></frames>"
        f"<SpatialTransform>{transform}</SpatialTransform></CustomJoint>"
    )


def motion(model: OsimModel, n: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Smooth coordinates (n,) of the free coordinates within half of their ranges."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0.0, 1.0, n)
    return {
        name: rng.uniform(-0.3, 0.3) + rng.uniform(0.1, 0.4) * np.sin(2 * np.pi * (t + rng.uniform()))
        for name in model.free
    }


def recorded(
    model: OsimModel, markers: tuple[OsimMarker, ...], values: dict[str, np.ndarray], noise: float = 0.0
) -> Recording:
    """What a camera system records of a motion, at 100 Hz, with white `noise` (m)."""
    poses = kinematics(model, values)
    at = np.stack([poses.position(m.body, m.location) for m in markers], axis=1)
    at = at + noise * np.random.default_rng(1).standard_normal(at.shape)
    return Recording(100.0, 0.01 * np.arange(len(at)), tuple(m.name for m in markers), at)


def case(n: int = 30, noise: float = 0.0) -> tuple[OsimModel, tuple[OsimMarker, ...], dict[str, np.ndarray], Recording]:
    """Model, markers, true motion and recording."""
    content = subject()
    model, markers = read_model(content), read_markers(content)
    values = motion(model, n)
    return model, markers, values, recorded(model, markers, values, noise)
