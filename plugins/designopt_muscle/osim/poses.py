"""Small readings that all parts of a model share: poses, names at the ends of paths, elements that are understood."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from designopt_mechanics.robot_files.xml import Element

from designopt.arrays import Floats


def last_name(path: str) -> str:
    """The name at the end of a path like ``/bodyset/femur_r``."""
    return path.strip().rstrip("/").rpartition("/")[2]


def refuse_other_children(element: Element, tags: set[str]) -> None:
    """Raise `ModelError` for the first child that is not understood."""
    for child in element.children:
        if child.tag not in tags:
            raise child.error(f"is not supported within <{element.tag}>")


def without_effect(element: Element | None, tags: Collection[str], prefix: str = "") -> list[str]:
    """The children with a content that are none of `tags`, which are read; each after a `prefix`."""
    children = [] if element is None else element.children
    contents = [child for child in children if child.children or child.text.strip() not in ("", "Unassigned")]
    return [f"{prefix}{child.tag}" for child in contents if child.tag not in tags]


def pose(translation: Sequence[float], angles: Sequence[float]) -> Floats:
    """(4, 4) of a `translation` (3) m and body-fixed rotations by `angles` (3) rad about x, y and z."""
    matrix = np.eye(4)
    for axis, angle in zip(np.eye(3), angles, strict=True):
        matrix[:3, :3] = matrix[:3, :3] @ rotation(axis, angle)
    matrix[:3, 3] = translation
    return matrix


def rotation(axis: Floats, angle: float) -> Floats:
    """(3, 3) of a turn by `angle` about the unit vector `axis` (Rodrigues)."""
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.asarray(np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * cross @ cross)


def inverse(pose_matrix: Floats) -> Floats:
    """The inverse of a pose (4, 4)."""
    inverse_matrix = np.eye(4)
    inverse_matrix[:3, :3] = pose_matrix[:3, :3].T
    inverse_matrix[:3, 3] = -pose_matrix[:3, :3].T @ pose_matrix[:3, 3]
    return inverse_matrix
