"""Functional joints: centre and axis of a joint by a recorded movement of its two segments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from designopt_recordings.gaps.rigid import fit, shape, spread
from designopt_recordings.recording import Recording

from designopt.arrays import Floats
from designopt.study.language.findings import nearest_or_all

#: Complete frames that a movement needs.
_LEAST_FRAMES = 20
#: Smallest mean of 1 - cosine of the turning between the segments, about 4 degrees RMS, that determines a direction.
_LEAST_TURNING = 2.5e-3
#: RMS distances (m) beyond which markers are not those of two segments with a joint: of the two centres, and of markers
#: from the shape of their cluster.
_LARGEST, _BENT = 0.02, 0.01


@dataclass(frozen=True, eq=False)
class FunctionalFit:
    """A joint in the axes of the proximal markers: their `shape` (k, 3) m, the centre or a `point` (3,) m of the axis,
    the direction (3,) of the `axis`, and the `rms` distance (m) of the joint as the two segments carry it."""

    shape: Floats
    point: Floats
    axis: Floats
    rms: float


def functional_joint(
    movement: Recording, proximal: tuple[str, ...], distal: tuple[str, ...], *, hinge: bool
) -> FunctionalFit:
    """The joint between the segments that carry the markers `proximal` and `distal`, three or more each.

    The centre c minimises the sum of |R c + t - S d - s|^2 over frames with the poses (R, t) and (S, s) of the segments
    (SCoRE: Ehrig, Taylor, Duda & Heller, J. Biomech. 39 (2006) 2798). The axis of a `hinge` is the direction in which
    that sum does not determine the centre (SARA: J. Biomech. 40 (2007) 2150).

    Raises `ValueError` for missing markers, markers on a line, too few frames, and a movement that does not determine
    the joint.
    """
    for name in (*proximal, *distal):
        if name not in movement.marker_names:
            raise ValueError(
                f"the movement has no marker '{name}'{nearest_or_all(name, sorted(movement.marker_names))}"
            )
    clusters = [np.stack([movement.marker(name) for name in names], axis=1) for names in (proximal, distal)]
    complete = np.all([np.isfinite(cluster).all(axis=(1, 2)) for cluster in clusters], axis=0)
    if complete.sum() < _LEAST_FRAMES:
        raise ValueError(
            f"{complete.sum()} frames of the movement have all markers of {', '.join((*proximal, *distal))}; at least"
            f" {_LEAST_FRAMES} are needed"
        )
    poses = []
    for names, cluster in zip((proximal, distal), clusters, strict=True):
        mean = shape(cluster[complete])
        if not spread(mean):
            raise ValueError(f"{', '.join(names)} do not fix a segment: three markers off a line are needed")
        rotation, translation, residual = fit(mean, cluster[complete])
        if (bend := float(np.sqrt((residual**2).mean()))) > _BENT:
            raise ValueError(
                f"{', '.join(names)} move by {bend * 1000.0:.0f} mm (RMS) against each other: they are not on one"
                " segment"
            )
        poses.append((mean, rotation, translation))
    (reference, rotations, translations), (_, other_rotations, other_translations) = poses
    matrix = np.concatenate([rotations, -other_rotations], axis=2).reshape(-1, 6)
    right = (other_translations - translations).ravel()
    basis = np.linalg.svd(matrix, full_matrices=False)
    turning = basis.S**2 / complete.sum()
    if not hinge and turning[-1] < _LEAST_TURNING:
        raise ValueError("the segments turn about one axis only: a centre needs a movement about two axes or more")
    if hinge and turning[-2] < _LEAST_TURNING:
        raise ValueError("the segments hardly turn: an axis needs a movement about it")
    rank = 5 if hinge else 6
    centres = basis.Vh[:rank].T @ ((basis.U[:, :rank].T @ right) / basis.S[:rank])
    rms = float(np.sqrt(((matrix @ centres - right) ** 2).sum() / complete.sum()))
    if rms > _LARGEST:
        raise ValueError(
            f"the two segments carry the joint {rms * 1000.0:.0f} mm (RMS) apart: check the names of the markers"
            f" {', '.join((*proximal, *distal))}"
        )
    axis = basis.Vh[-1, :3]
    return FunctionalFit(reference, centres[:3], np.asarray(axis / np.linalg.norm(axis)), rms)


def in_cluster(reference: Floats, positions: Floats, points: Floats) -> Floats:
    """(3,) mean place of `points` (n, 3) in the axes of a cluster with the shape `reference` and `positions` (n, k, 3).

    Raises `ValueError` where no frame has all of them.
    """
    complete = np.isfinite(positions).all(axis=(1, 2)) & np.isfinite(points).all(axis=1)
    if not complete.any():
        raise ValueError("no frame of the movement has the marker together with the proximal ones")
    rotation, translation, _ = fit(reference, positions[complete])
    return np.asarray(np.einsum("fji,fj->fi", rotation, points[complete] - translation).mean(axis=0))


def carried(reference: Floats, positions: Floats, point: Floats) -> Floats:
    """(n, 3) m of a `point` (3,) of a cluster with the shape `reference`, by its `positions` (n, k, 3); NaN in frames
    that lack a marker."""
    complete = np.isfinite(positions).all(axis=(1, 2))
    points = np.full((len(positions), 3), np.nan)
    if complete.any():
        rotation, translation, _ = fit(reference, positions[complete])
        points[complete] = rotation @ point + translation
    return points
