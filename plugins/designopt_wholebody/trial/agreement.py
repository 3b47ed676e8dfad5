"""Agreement of two measurements of a vector: bias, limits per axis, ellipsoid (Bland & Altman 1986; Nunes 2017, A)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats

Kind = Literal["thesis", "chi_squared"]


@dataclass(frozen=True, eq=False)
class Agreement:
    """The agreement of two methods with N differences d (N, 3), in their unit.

    `bias` (3,); `limits` (2, 3) bias ± z σ of each axis; `axis_coverage` (3,) shares of the differences within them;
    `axes` (3, 3), columns, and `radii` (3,) of the ellipsoid about the bias, and `coverage`, the share within it.
    """

    count: int
    bias: Floats
    limits: Floats
    axis_coverage: Floats
    axes: Floats
    radii: Floats
    coverage: float


def agreement(first: ArrayLike, second: ArrayLike, *, level: float = 0.95, kind: Kind = "chi_squared") -> Agreement:
    """Agreement of `first` with `second` (n, 3) at a `level` of coverage; frames missing in either are omitted.

    The ellipsoid "chi_squared" contains the share `level` of normal differences: its radii are sqrt(χ²₃) along the axes
    of the covariance. "thesis" has the radii z σ along the axes of the laboratory with z of one dimension: it contains
    72 % at a level of 95 %, 56 % at 90 %, contrary to the printed levels. Raises `ValueError` for fewer than four
    differences.
    """
    from scipy.stats import chi2, norm

    d = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    if d.ndim != 2 or d.shape[1] != 3:
        raise ValueError(f"differences have the shape {d.shape}, not (n, 3)")
    if not 0.0 < level < 1.0:
        raise ValueError(f"the level must be between 0 and 1, not {level:g}")
    d = d[np.isfinite(d).all(axis=1)]
    if len(d) < 4:
        raise ValueError(f"{len(d)} differences are too few for limits of agreement; four are needed")
    bias, deviation = d.mean(axis=0), d.std(axis=0, ddof=1)
    z = float(norm.ppf(0.5 + 0.5 * level))
    limits = bias + z * np.outer([-1.0, 1.0], deviation)
    if kind == "thesis":
        axes, radii = np.eye(3), z * deviation
    elif kind == "chi_squared":
        variances, axes = np.linalg.eigh(np.cov(d.T))
        radii = np.sqrt(chi2.ppf(level, 3) * np.maximum(variances, 0.0))
    else:
        raise ValueError(f"there is no ellipsoid '{kind}'; known: chi_squared, thesis")
    scaled = (d - bias) @ axes / np.where(radii > 0.0, radii, 1.0)
    return Agreement(
        count=len(d),
        bias=bias,
        limits=limits,
        axis_coverage=np.mean((d >= limits[0]) & (d <= limits[1]), axis=0),
        axes=axes,
        radii=radii,
        coverage=float(np.mean((scaled**2).sum(axis=1) <= 1.0)),
    )
