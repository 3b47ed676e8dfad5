"""A moment balance holds arms and moments that fit, and says which do not."""

from typing import Any

import numpy as np
import pytest
from designopt_mechanics.moment_balance import MomentBalance

RNG = np.random.default_rng(3)
GIVEN: dict[str, Any] = {
    "time": np.array([0.0, 0.1, 0.2]),
    "rows": ("hip", "slide"),
    "columns": ("a", "b", "c"),
    "arms": RNG.normal(size=(3, 2, 3)),
    "moments": RNG.normal(size=(3, 2)),
    "row_units": ("N m", "N"),
}


def changed(name: str, index: Any, value: float) -> dict[str, Any]:
    array = GIVEN[name].copy()
    array[index] = value
    return {name: array}


def test_forces_that_carry_the_moments_leave_no_residual() -> None:
    forces = RNG.uniform(0.0, 100.0, (3, 3))
    moments = np.stack([arm @ force for arm, force in zip(GIVEN["arms"], forces, strict=True)])
    balance = MomentBalance(**{**GIVEN, "moments": moments})
    assert np.abs(balance.residual(forces)).max() < 1e-12
    assert np.allclose(balance.residual(0.0 * forces), moments, rtol=0.0, atol=0.0)


def test_without_a_status_every_frame_can_be_used() -> None:
    balance = MomentBalance(**GIVEN)
    assert balance.usable.tolist() == [True, True, True]


def test_a_frame_that_cannot_be_used_may_hold_nan_and_has_no_residual() -> None:
    balance = MomentBalance(**{**GIVEN, **changed("moments", (1, 0), np.nan), "status": [10, 100, 0]})
    assert balance.usable.tolist() == [True, False, True]
    left = balance.residual(np.ones((3, 3)))
    assert np.isnan(left[1]).all()
    assert np.isfinite(left[[0, 2]]).all()


def test_the_arrays_are_copies_that_nobody_changes() -> None:
    balance = MomentBalance(**GIVEN)
    assert balance.arms is not GIVEN["arms"]
    with pytest.raises(ValueError, match="read-only"):
        balance.moments[0, 0] = 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arms": np.zeros((3, 3, 2))}, r"arms has shape \(3, 3, 2\), not \(3, 2, 3\)"),
        ({"moments": np.zeros((2, 2))}, r"moments has shape \(2, 2\), not \(3, 2\)"),
        ({"row_units": ("N m",)}, r"row_units has shape \(1,\), not \(2,\)"),
        ({"row_units": ("N m", "kg")}, "row 'slide' has the unit 'kg', not one of 'N m', 'N'"),
        ({"rows": ("hip", "hip")}, "rows name 'hip' more than once"),
        ({"rows": (), "row_units": ()}, "rows is empty: name at least one coordinate"),
        ({"columns": ("a", "b", "a")}, "columns name 'a' more than once"),
        ({"time": np.array([0.0, 0.1, 0.1])}, "time is not finite and increasing"),
        ({"time": np.array([0.0, np.nan, 0.1])}, "time is not finite and increasing"),
        ({"time": np.zeros(0)}, "at least one frame"),
        ({"status": [0, 1]}, r"status has shape \(2,\), not \(3,\)"),
        ({"status": [0.0, 1.0, 0.5]}, "status must be integers, not float64"),
        (changed("moments", (2, 1), np.inf), r"moments of 'slide' at 0.2 s \(frame 2\) is not finite"),
        (changed("arms", (1, 0, 2), np.nan), r"arms of 'hip', 'c' at 0.1 s \(frame 1\) is not finite"),
    ],
)
def test_mismatched_input_is_refused_with_its_place(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MomentBalance(**{**GIVEN, **change})


def test_forces_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"forces have shape \(3, 2\), not \(3, 3\)"):
        MomentBalance(**GIVEN).residual(np.zeros((3, 2)))
