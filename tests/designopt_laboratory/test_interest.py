"""Order of curves, curves that are left out, and the words for positive directions."""

import numpy as np
import pytest
from designopt_laboratory.curves.interest import by_interest, positive_direction, varying
from designopt_laboratory.curves.pool import CurveSet, PooledCurves

PERCENT = np.linspace(0.0, 1.0, 101)


def curve(kind: str, name: str, size: float, unit: str = "deg") -> PooledCurves:
    values = size * np.sin(2.0 * np.pi * PERCENT)[None]
    return PooledCurves(kind, name, unit, (CurveSet("", "right", values, ("a",), False),))


def test_the_vertical_ground_force_and_the_size_of_a_joint_force_come_first() -> None:
    names = [
        ("joint force", "mtp_size"), ("joint force", "hip_x"), ("joint force", "hip_size"), ("angle", "arm_flex"),
        ("ground force", "ground_x"), ("ground force", "ground_y"), ("angle", "pelvis_tilt"),
        ("angle", "knee_angle"), ("angle", "hip_flexion"),
    ]  # fmt: skip
    ordered = by_interest(curve(kind, name, 1.0) for kind, name in names)
    assert [(one.kind, one.name) for one in ordered] == [
        ("angle", "hip_flexion"), ("angle", "knee_angle"), ("angle", "arm_flex"), ("angle", "pelvis_tilt"),
        ("ground force", "ground_y"), ("ground force", "ground_x"),
        ("joint force", "hip_size"), ("joint force", "hip_x"), ("joint force", "mtp_size"),
    ]  # fmt: skip


def test_locked_coordinates_and_moments_by_rounding_are_left_out_but_no_muscle() -> None:
    locked, rounding = curve("angle", "mtp_angle", 1e-6), curve("joint reaction moment", "hip_x", 1e-4, "N m/kg")
    sliding, silent = curve("angle", "pelvis_tx", 0.1, "m"), curve("activation", "soleus", 0.0, "")
    moving = [
        curve("angle", "knee_angle", 60.0), curve("joint reaction moment", "knee_x", 0.3, "N m/kg"),
        curve("activation", "vasti", 0.5, ""),
    ]  # fmt: skip
    varied, constant = varying([*moving, locked, rounding, sliding, silent])
    assert varied == [*moving, sliding, silent]
    assert constant == [locked, rounding]


@pytest.mark.parametrize(("bent", "direction"), [(60.0, "flexion"), (-60.0, "extension")])
def test_the_knee_is_positive_in_the_direction_that_its_angle_tells(bent: float, direction: str) -> None:
    values = bent * np.sin(np.pi * PERCENT)[None] - 0.05 * bent
    angle = PooledCurves("angle", "knee_angle", "deg", (CurveSet("", "", values, ("a",), False),))
    assert positive_direction(angle, angle) == direction
    assert positive_direction(curve("moment", "knee_angle", 1.0, "N m/kg"), angle) == direction
    assert positive_direction(curve("angle", "ankle_angle", 1.0), None) == "dorsiflexion"
    assert positive_direction(curve("power", "ankle_angle", 1.0, "W/kg"), None) == ""
    assert positive_direction(curve("angle", "arm_flex", 1.0), None) == ""
