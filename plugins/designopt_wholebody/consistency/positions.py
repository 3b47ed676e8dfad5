"""Positions that fulfil the constraints and are closest to measured ones, frame by frame.

    min ½ (q - q*)ᵀ W (q - q*)   subject to φ(q) = 0

Two methods find the same minimum: recursion over the tree of rigid segments, and Gauss-Newton with all constraints as
rows and the Schur complement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from designopt_recordings.frames import StatusEnum
from numpy.typing import ArrayLike, NDArray

from designopt.arrays import Floats, Integers
from designopt_wholebody.consistency.blocks import Blocks
from designopt_wholebody.consistency.contacts import Contacts
from designopt_wholebody.consistency.multipliers import MultiplierSearch
from designopt_wholebody.consistency.recursion import Recursion, RecursiveSearch
from designopt_wholebody.kinematics.tree import NoTree
from designopt_wholebody.subject import Subject

Method = Literal["recursion", "schur"]

#: Frames solved at once: fewer cost more calls, more do not fit into the cache.
_CHUNK = {"recursion": 256, "schur": 16}
#: After so many iterations a frame has no result.
MAX_ITERATIONS = 50


class ConsistencyStatus(StatusEnum):
    """How the search for consistent positions of one frame ended."""

    OK = 0, "consistent"
    FAR = 50, "consistent, but farther from the measured coordinates than the limit: look at the markers"
    NOT_CONVERGED = 150, "the constraints cannot be satisfied: the measured posture is too far from any possible one"
    MIRRORED = 160, "a segment is its mirror image: its measured axes are wrong"
    NOT_FINITE = 170, "a measured coordinate is missing"


@dataclass(frozen=True, eq=False)
class ConsistentPositions:
    """Result of `consistent_positions` for f frames.

    `q` (f, n), NaN in frames without a result; `status` (f,) of `ConsistencyStatus`; `iterations` (f,); `increment`
    (f,) norm of the last step; `violation` (f,) norm of φ; `distance` (f,) norm of q - q*; `seconds` (f,) s of the
    processor, those of frames that were solved together shared equally.
    """

    q: Floats
    status: Integers
    iterations: Integers
    increment: Floats
    violation: Floats
    distance: Floats
    seconds: Floats

    @property
    def usable(self) -> NDArray[np.bool_]:
        """(f,) which frames have a result."""
        return np.asarray(self.status < 100)


def consistent_positions(
    subject: Subject,
    raw: Floats,
    *,
    method: Method | None = None,
    weights: ArrayLike | None = None,
    contacts: Contacts | None = None,
    tolerance: float = 1e-10,
    most_moved: float = np.inf,
) -> ConsistentPositions:
    """Consistent positions for raw coordinates `raw` (f, n).

    `method` is recursion by default, or schur for models with rods or closed loops, which recursion does not support.
    `weights` (n,) are the diagonal of W, positive: 1/s² with the expected artefact s of each coordinate; 1 by default.
    `contacts` are fixed. A frame ends when the norms of φ and of the step are below `tolerance`, or after
    `MAX_ITERATIONS`. A frame whose coordinates move by more than `most_moved` (norm) has a result and the status FAR.

    Frames are independent: one without a result is NaN and has a status with the reason. Raises `ValueError` for shapes
    that do not fit, weights and tolerances that are not positive, contacts of unknown segments, and
    `NoTree`, a `ValueError`, for a model that recursion does not support.
    """
    raw = np.asarray(raw, dtype=float)
    if raw.ndim != 2 or raw.shape[1] != subject.n:
        raise ValueError(f"raw coordinates have the shape {raw.shape}, not (frames, {subject.n})")
    W = np.ones(subject.n) if weights is None else np.asarray(weights, dtype=float)
    if W.shape != (subject.n,) or not (np.isfinite(W).all() and (W > 0.0).all()):
        raise ValueError(f"weights must be {subject.n} positive numbers, one for each coordinate")
    if not tolerance > 0.0:
        raise ValueError(f"the tolerance is {tolerance:g}; it must be positive")
    if method is not None and method not in _CHUNK:
        raise ValueError(f"there is no method '{method}'; known: {', '.join(_CHUNK)}")
    names = () if contacts is None else contacts.bodies
    if unknown := [name for name in names if name not in subject.bodies]:
        raise ValueError(f"contacts: there is no segment '{unknown[0]}'; known: {', '.join(subject.bodies)}")
    recursion = _recursion(subject, names, method)
    search_method: Method = method or ("schur" if recursion is None else "recursion")
    frames = len(raw)
    result = ConsistentPositions(
        q=np.full((frames, subject.n), np.nan),
        status=np.full(frames, ConsistencyStatus.NOT_FINITE.value, dtype=np.int64),
        iterations=np.zeros(frames, dtype=np.int64),
        increment=np.full(frames, np.nan),
        violation=np.full(frames, np.nan),
        distance=np.full(frames, np.nan),
        seconds=np.zeros(frames),
    )
    finite = np.isfinite(raw).all(axis=1)
    if contacts is not None:
        has_contact = np.isfinite(contacts.local) & np.isfinite(contacts.target)
        finite &= (has_contact.all(axis=2) | ~contacts.active).all(axis=1)
    ready = np.flatnonzero(finite)
    blocks = Blocks(subject, names) if recursion is None else None
    for start in range(0, len(ready), _CHUNK[search_method]):
        chunk = ready[start : start + _CHUNK[search_method]]
        chunk_contacts = None if contacts is None else contacts.at_frames(chunk).zeroed()
        search: RecursiveSearch | MultiplierSearch
        if recursion is not None:
            search = RecursiveSearch(recursion, raw[chunk], W, chunk_contacts, tolerance)
        else:
            assert blocks is not None
            search = MultiplierSearch(blocks, raw[chunk], W, chunk_contacts, tolerance)
        search.run(MAX_ITERATIONS)
        distance = np.linalg.norm(search.q - raw[chunk], axis=1)
        status = np.where(search.has_ended, ConsistencyStatus.OK, ConsistencyStatus.NOT_CONVERGED)
        status[search.has_ended & (distance > most_moved)] = ConsistencyStatus.FAR
        status[search.has_ended & search.is_mirrored] = ConsistencyStatus.MIRRORED
        result.q[chunk], result.status[chunk], result.distance[chunk] = search.q, status, distance
        result.iterations[chunk], result.increment[chunk] = search.iterations, search.steps
        result.violation[chunk], result.seconds[chunk] = search.violations, search.seconds
    result.q[result.status >= 100] = np.nan
    return result


def _recursion(subject: Subject, contact_bodies: tuple[str, ...], method: Method | None) -> Recursion | None:
    """None for the other method, and where none is named and recursion does not take the model."""
    if method not in (None, "recursion"):
        return None
    try:
        return Recursion(subject, contact_bodies)
    except NoTree:
        if method is None:
            return None
        raise
