"""Joint angles: Cardan or Euler angles between segment frames (Grood & Suntay 1983; Wu et al. 2005)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats, Mask
from designopt_wholebody.model.schema import GROUND
from designopt_wholebody.subject import Subject

#: Below this |cos| (or |sin| for an axis that appears twice) of the second angle the other two are not determined.
_GIMBAL = 0.05


@dataclass(frozen=True, eq=False)
class JointAngles:
    """`values` (f, k) rad of the angles `names` ("elbow_R.flexion"); `gimbal` (f, k) where an angle is ill-defined."""

    names: tuple[str, ...]
    values: Floats
    gimbal: Mask

    def angle(self, name: str) -> Floats:
        """(f,) one angle; raises `KeyError` with a sentence for an unknown name."""
        if name not in self.names:
            raise KeyError(f"there is no angle '{name}'; known: {', '.join(self.names)}")
        return self.values[:, self.names.index(name)]


def joint_angles(subject: Subject, q: Floats) -> JointAngles:
    """The model's joint angles for q (f, n), unwrapped in time; NaN in frames where q is."""
    from scipy.spatial.transform import Rotation

    names: list[str] = []
    columns: list[Floats] = []
    gimbals: list[Mask] = []
    have = np.isfinite(q).all(axis=1)
    for joint, angles in subject.model.angles.items():
        values = np.full((len(q), 3), np.nan)
        gimbal = np.zeros(len(q), dtype=bool)
        if have.any():
            distal = subject.bodies[angles.of].axes(q[have])
            if angles.relative_to == GROUND:
                relative = distal
            else:
                relative = subject.bodies[angles.relative_to].axes(q[have]).swapaxes(-1, -2) @ distal
            middle = _middle(relative, angles.sequence)
            gimbal[have] = middle < _GIMBAL
            regular = middle > 1e-9
            values[np.flatnonzero(have)[regular]] = Rotation.from_matrix(relative[regular]).as_euler(angles.sequence)
        for k, (name, sign) in enumerate(angles.names.items()):
            names.append(f"{joint}.{name}")
            columns.append(_unwrap(sign * values[:, k]))
            gimbals.append(gimbal)
    if not names:
        return JointAngles((), np.zeros((len(q), 0)), np.zeros((len(q), 0), dtype=bool))
    return JointAngles(tuple(names), np.stack(columns, axis=1), np.stack(gimbals, axis=1))


def _middle(R: Floats, sequence: str) -> Floats:
    """|cos β| of the second angle, |sin β| where the first axis comes again."""
    if sequence == "YXY":
        return np.asarray(np.sqrt(np.maximum(0.0, 1.0 - R[:, 1, 1] ** 2)))
    sine = R[:, 2, 1] if sequence == "ZXY" else R[:, 1, 2]
    return np.asarray(np.sqrt(np.maximum(0.0, 1.0 - sine**2)))


def _unwrap(values: Floats) -> Floats:
    """Without jumps of a turn, across missing frames too."""
    continuous = values.copy()
    have = np.isfinite(values)
    continuous[have] = np.unwrap(values[have])
    return continuous
