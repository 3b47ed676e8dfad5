"""Where a path touches a surface, and the cross product of arrays that finds it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats, Mask


@dataclass(frozen=True, eq=False)
class Touch:
    """The touch of n paths: whether a path touches the surface (`is_engaged`, (n,)), its `first` and `last` point on it
    (n, 3), and the length of the `arc` between them (n,)."""

    is_engaged: Mask
    first: Floats
    last: Floats
    arc: Floats


def cross(a: Floats, b: Floats) -> Floats:
    """(..., 3) a x b."""
    product = np.empty(np.broadcast_shapes(a.shape, b.shape))
    product[..., 0] = a[..., 1] * b[..., 2] - a[..., 2] * b[..., 1]
    product[..., 1] = a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2]
    product[..., 2] = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return product
