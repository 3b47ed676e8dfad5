"""Where a path touches a surface."""

from __future__ import annotations

from dataclasses import dataclass

from designopt.arrays import Floats, Mask


@dataclass(frozen=True, eq=False)
class Touch:
    """Of n paths: whether one touches the surface, `engaged` (n,), its `first` and `last` point on it (n, 3), and the
    length of the `arc` between them (n,)."""

    engaged: Mask
    first: Floats
    last: Floats
    arc: Floats
