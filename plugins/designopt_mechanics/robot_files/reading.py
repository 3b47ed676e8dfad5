"""From the bytes of a URDF or MJCF file to a mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from designopt_mechanics.mechanism.mechanism import Mechanism
from designopt_mechanics.mechanism.paths import with_parameters
from designopt_mechanics.robot_files.mjcf import read_mjcf
from designopt_mechanics.robot_files.parts import Omission
from designopt_mechanics.robot_files.urdf import read_urdf
from designopt_mechanics.robot_files.xml import ModelError, parse
from designopt_mechanics.tree import Tree, TreeError

#: Bytes beyond which a file describes no robot.
_LARGEST = 32 * 2**20


@dataclass(frozen=True, eq=False)
class ImportedRobot:
    """The `mechanism` of a robot file, and the elements of the file that it does not have."""

    mechanism: Mechanism
    omissions: tuple[Omission, ...]


def is_robot_file(content: bytes) -> bool:
    """Whether the bytes are XML, as URDF and MJCF are."""
    return content.lstrip()[:1] == b"<"


def read_robot(content: bytes, name: str, by_path: Mapping[str, str] | None = None) -> ImportedRobot:
    """The mechanism in a file called `name`: URDF when it begins with <robot>, MJCF when it begins with <mujoco>.

    Coordinates have the names of the joints, frames those of links and bodies. Joints that `mimic` others, and joints
    that an equality constraint couples, follow the others' coordinates exactly. Nothing outside the file is read.
    `by_path` maps names of parameters to the numbers that they replace, as in `with_parameters`. Raises `ModelError`
    with line and column, and `ValueError` for a path to no number that can vary.
    """
    if len(content) > _LARGEST:
        raise ModelError("", 1, 1, f"has {len(content)} bytes; a robot file has at most {_LARGEST}")
    root = parse(content)
    if root.tag not in ("robot", "mujoco"):
        readers = "URDF begins with <robot>, MJCF with <mujoco>"
        if root.tag == "OpenSimDocument":
            readers = (
                "models of OpenSim are read by muscle_sharing and dynamic_sharing (forces of a recorded motion), "
                "laboratory_trial (from markers) and walk_predict (predicted walking)"
            )
        raise root.error(f"{name} begins with <{root.tag}>; {readers}")
    parts = read_urdf(root) if root.tag == "robot" else read_mjcf(root)
    if not parts.coordinates:
        raise root.error("has no joint that moves")
    try:
        tree = Tree(tuple(parts.coordinates.values()), tuple(parts.frames))
    except TreeError as error:
        raise root.error(str(error)) from None
    mechanism = Mechanism(
        tree,
        parts.gravity,
        tuple(parts.wires),
        tuple(parts.springs),
        meets=tuple(parts.meets),
        laws=parts.laws,
        couplers=True,
        title=root.attributes.get("name", root.attributes.get("model", "")),
    )
    if by_path:
        mechanism = with_parameters(mechanism, by_path)
    return ImportedRobot(mechanism, tuple(sorted(parts.omissions, key=lambda o: (o.line, o.column))))
