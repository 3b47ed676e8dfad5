"""What inverse dynamics gives: forces and torques of joints, and what nothing explains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from designopt.arrays import Array


@dataclass(frozen=True, eq=False)
class JointLoads:
    """Joint forces `force` (f, k, 3) N and torques `torque` (f, k, 3) N m in the laboratory's axes.

    They act on the segment `bodies[k]`, away from the root, at joint `joints[k]`; on the other segment act their
    opposites. `residual_force` (f, 3) acts on the root at its root point and `residual_torque` (f, 3) on the root: what
    motion and measured loads leave unexplained (0 for a subject that hangs on the ground). Frames without a result are
    NaN.
    """

    joints: tuple[str, ...]
    bodies: tuple[str, ...]
    force: Array
    torque: Array
    residual_force: Array
    residual_torque: Array

    def at(self, joint: str) -> tuple[Array, Array]:
        """(f, 3) force and torque of one joint; raises `KeyError` with a sentence where there is none."""
        if joint not in self.joints:
            raise KeyError(f"there is no joint '{joint}' in the tree; there are {', '.join(self.joints)}")
        k = self.joints.index(joint)
        return self.force[:, k], self.torque[:, k]

    def difference(self, other: JointLoads) -> float:
        """Largest difference in any force (N) or torque (N m) of frames that both have."""
        pairs = (
            (self.force, other.force),
            (self.torque, other.torque),
            (self.residual_force, other.residual_force),
            (self.residual_torque, other.residual_torque),
        )
        return max(float(np.nanmax(np.abs(a - b), initial=0.0)) for a, b in pairs)
