"""The chain of 14 revolute joints from thorax to humerus, and the rhythms of clavicle and scapula.

Right arm; x forward, y up, z to the right. Axes and offsets: Holzbaur, Murray and Delp, Ann. Biomed. Eng. 33 (2005)
829, from the MoBL-ARMS model (Saul et al. 2015), as are the segments. Rhythm: de Groot and Brand, Clin. Biomech. 16
(2001) 735, with the coefficients of the Dynamic Arm Simulator (Chadwick, Blana et al.). The chain is that of Ehsani,
Rostami and Parnianpour (2016): joints 3, 4 and 8 to 10 reverse the rotations of those before them, so that every bone
is oriented relative to the thorax and only the joint centres are carried along.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from designopt_mechanics.body import Body
from designopt_mechanics.functions.affine import Affine
from designopt_mechanics.motions import Rotate, Value
from designopt_mechanics.tree import Coordinate, Frame, Tree

Rhythm = Literal["original", "simplified", "distributed"]

COORDINATES = ("plane", "elevation", "rotation")
GRAVITY = (0.0, -9.80665, 0.0)

_AXES: Mapping[str, tuple[float, float, float]] = {
    "sc_y": (0.0153, 0.9892987, -0.14509996),
    "sc_z": (-0.99447254, 0.0, -0.10499695),
    "ac_y": (0.15709493, 0.94726859, -0.27929088),
    "ac_z": (-0.75408404, 0.29759402, 0.58548703),
    "ac_x": (0.63769985, 0.11859997, 0.76109982),
    "gh_y": (0.0048, 0.99908918, 0.04240001),
    "gh_z": (-0.99826136, 0.0023, 0.05889802),
}
#: Axis, variable with its sign, joint in the frame before it (m), and the bone that ends with the joint.
_CHAIN: tuple[tuple[str, str, int, tuple[float, float, float], str], ...] = (
    ("sc_y", "c_y", 1, (0.006325, 0.00693, 0.025465), ""),
    ("sc_z", "c_z", 1, (0.0, 0.0, 0.0), "clavicle"),
    ("sc_z", "c_z", -1, (-0.01433, 0.02007, 0.135535), ""),
    ("sc_y", "c_y", -1, (0.0, 0.0, 0.0), ""),
    ("ac_y", "s_y", 1, (0.0, 0.0, 0.0), ""),
    ("ac_z", "s_z", 1, (0.0, 0.0, 0.0), ""),
    ("ac_x", "s_x", 1, (0.0, 0.0, 0.0), "scapula"),
    ("ac_x", "s_x", -1, (-0.00955, -0.034, 0.009), ""),
    ("ac_z", "s_z", -1, (0.0, 0.0, 0.0), ""),
    ("ac_y", "s_y", -1, (0.0, 0.0, 0.0), ""),
    ("gh_y", "plane", 1, (0.0, 0.0, 0.0), ""),
    ("gh_z", "elevation", 1, (0.0, 0.0, 0.0), ""),
    ("gh_y", "plane", -1, (0.0, 0.0, 0.0), ""),
    ("gh_y", "rotation", 1, (0.0, 0.0, 0.0), "humerus"),
)
#: Angle per angle: by plane of elevation and by elevation; offsets are zero, so that all rhythms coincide at plane 0.
_ORIGINAL = {
    "c_y": (0.120, -0.242), "c_z": (-0.046, 0.123), "s_y": (0.140, -0.049), "s_z": (-0.079, 0.396),
    "s_x": (-0.028, 0.184),
}  # fmt: skip
#: The couplers of the distributed model, by elevation: those of c_z and s_x deviate from the regression.
_DISTRIBUTED = {
    "c_y": 0.633555 / -2.61799, "c_z": 0.322013 / 3.14159, "s_y": -0.128282 / 2.61799, "s_z": 1.03673 / 2.61799,
    "s_x": 0.466003 / 2.61799,
}  # fmt: skip
#: Mass (kg), centre (m) and inertia about it (kg m^2). Clavicle and scapula break the triangle inequality as published.
_SEGMENTS = {
    "clavicle": Body(
        0.156, (-0.011096, 0.0063723, 0.054168),
        [[0.00024259, -1.898e-05, -6.994e-05], [-1.898e-05, 0.00025526, 5.371e-05], [-6.994e-05, 5.371e-05, 4.442e-05]],
        triangle="ignored",
    ),
    "scapula": Body(
        0.70396, (-0.054694, -0.035032, -0.043734),
        [[0.0012429, 0.0004494, 0.00040922], [0.0004494, 0.0011504, 0.0002411], [0.00040922, 0.0002411, 0.0013651]],
        triangle="ignored",
    ),
    "humerus": Body(
        1.99757, (0.018064, -0.140141, -0.012746),
        [[0.01227763, -0.00034741, -0.0002325], [-0.00034741, 0.00255133, 0.0012293],
         [-0.0002325, 0.0012293, 0.01257888]],
    ),
}  # fmt: skip


def slopes(rhythm: Rhythm) -> dict[str, dict[str, float]]:
    """The slopes of each variable of clavicle and scapula by plane and elevation."""
    if rhythm == "distributed":
        return {name: {"elevation": slope} for name, slope in _DISTRIBUTED.items()}
    by_plane = 0.0 if rhythm == "simplified" else 1.0
    return {name: {"plane": by_plane * plane, "elevation": up} for name, (plane, up) in _ORIGINAL.items()}


def shoulder(rhythm: Rhythm) -> Tree:
    """The shoulder with three coordinates: plane of elevation, elevation and axial rotation (rad)."""
    by = slopes(rhythm)
    frames = []
    before = "ground"
    for number, (axis, variable, sign, offset, bone) in enumerate(_CHAIN, 1):
        name = bone or f"joint_{number}"
        ratios = {variable: 1.0} if variable in COORDINATES else by[variable]
        angle: Value = Affine({c: sign * slope for c, slope in ratios.items()})
        direction = np.array(_AXES[axis])
        unit = tuple(float(v) for v in direction / np.linalg.norm(direction))
        frames.append(Frame(name, before, (Rotate(unit, angle),), _SEGMENTS.get(bone), position=offset))  # type: ignore[arg-type]
        before = name
    return Tree(tuple(Coordinate(name, "rad", -np.pi, np.pi) for name in COORDINATES), tuple(frames))
