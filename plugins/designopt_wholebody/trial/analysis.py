"""A whole trial: from landmarks to joint loads, with a status for every frame."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from designopt_recordings.frames import FrameStatus, worst_status
from designopt_recordings.recording import Recording
from designopt_recordings.signals.filters import lowpass

from designopt.arrays import Floats, Integers, Mask
from designopt_wholebody.consistency.contacts import Contacts
from designopt_wholebody.consistency.positions import ConsistentPositions, Method, consistent_positions
from designopt_wholebody.consistency.rates import Motion, motion
from designopt_wholebody.dynamics.inverse import InverseMethod, inverse_dynamics
from designopt_wholebody.dynamics.loads import JointLoads
from designopt_wholebody.kinematics.angles import JointAngles, joint_angles
from designopt_wholebody.subject import Subject
from designopt_wholebody.trial.contacts import PlateLoads, plate_loads
from designopt_wholebody.trial.landmarks import Landmarks, find_landmarks, raw_coordinates
from designopt_wholebody.trial.marker_set import OWN_NAMES, MarkerSet

#: Operations on the coordinates, in order (Nunes 2017, section 5.1.4).
Preparation = Literal[
    "raw", "filtered", "consistent", "filtered_consistent", "consistent_filtered", "filtered_consistent_filtered"
]

#: Weights of coordinates: 1 for all, or as the errors of markers make them for segments of their size.
Weighting = Literal["equal", "lengths"]


@dataclass(frozen=True)
class Settings:
    """Settings of a trial's analysis.

    `preparation` is the treatment of landmarks and coordinates; filters are zero-phase Butterworth filters
    with the cut-off `cutoff` Hz, for plates `load_cutoff` Hz (None: the same). `method` and `tolerance` are those of
    `consistent_positions`. `hold_contacts` keeps the centre of pressure of loaded segments at its measured position
    (Nunes 2017, 4.15). `weighting` is that of `coordinate_weights`: equal weights double the error of joint torques on
    the synthetic push-up. `contact_weight` multiplies the weights of the segments that may touch plates. `project` also
    makes velocities and accelerations consistent. `max_gap` s is that of `find_landmarks`.
    """

    preparation: Preparation = "filtered_consistent"
    cutoff: float = 6.0
    load_cutoff: float | None = None
    method: Method | None = None
    tolerance: float = 1e-10
    contact_weight: float = 1.0
    hold_contacts: bool = False
    weighting: Weighting = "lengths"
    project: bool = True
    max_gap: float = 0.0
    inverse: InverseMethod = "velocity_transformation"


@dataclass(frozen=True, eq=False)
class Analysis:
    """Everything that a trial gives; n frames.

    `raw` (n, N) coordinates by landmarks, `consistency` (None where the preparation has none), `motion`, `plates`,
    `loads` of the joints. `status` (n,): below 100 a frame has a result; it is that of `FrameStatus` or
    `ConsistencyStatus`, the greater one.
    """

    subject: Subject
    settings: Settings
    landmarks: Landmarks
    raw: Floats
    consistency: ConsistentPositions | None
    motion: Motion
    plates: PlateLoads
    loads: JointLoads
    status: Integers

    @cached_property
    def angles(self) -> JointAngles:
        """Joint angles of all frames."""
        return joint_angles(self.subject, self.motion.q)

    @cached_property
    def complete_frames(self) -> Mask:
        """(n,) frames with joint loads."""
        return np.asarray(np.isfinite(self.loads.residual_force).all(axis=1))

    @cached_property
    def differences(self) -> Floats:
        """(k, n, 3) m measured landmarks of every segment less where the used coordinates have them."""
        pairs = [
            self.landmarks.positions[name] - body.position(self.motion.q, body.landmark(name))
            for body in self.subject.bodies.values()
            for name in body.local
            if name in self.landmarks.marker_landmarks
        ]
        return np.stack(pairs) if pairs else np.zeros((0, len(self.raw), 3))

    @cached_property
    def landmark_distance(self) -> Floats:
        """(n,) RMS distance m of the landmarks of the used coordinates from the measured ones."""
        return np.asarray(np.sqrt((self.differences**2).sum(axis=(0, 2)) / max(len(self.differences), 1)))

    @cached_property
    def violation(self) -> Floats:
        """(n,) norm of the constraints at the used coordinates: distances in m, directions unchanged."""
        constraints = self.subject.constraints
        return np.asarray(np.linalg.norm(constraints.metres(constraints.values(self.motion.q)), axis=1))


def analyse(
    subject: Subject, recording: Recording, settings: Settings | None = None, markers: MarkerSet = OWN_NAMES
) -> Analysis:
    """Analyse a trial of `subject`. One bad frame is marked and changes no other, filters apart.

    Raises `ValueError` for landmarks that cannot be placed in any frame and cut-offs that the rate cannot have.
    """
    settings = settings or Settings()
    landmarks = find_landmarks(subject, recording, markers, settings.max_gap)
    steps = settings.preparation.split("_")
    positions = dict(landmarks.positions)
    if steps[0] == "filtered":
        positions = {name: lowpass(p, recording.rate, settings.cutoff) for name, p in positions.items()}
    raw = raw_coordinates(subject, positions)
    load_cutoff = settings.cutoff if settings.load_cutoff is None else settings.load_cutoff
    is_unfiltered = settings.preparation in ("raw", "consistent") and settings.load_cutoff is None
    plates = plate_loads(
        subject, recording, replace(landmarks, positions=positions), cutoff=None if is_unfiltered else load_cutoff
    )
    status = worst_status(landmarks.status, plates.status)
    q, consistency = raw, None
    if "consistent" in steps:
        contacts = _contacts(subject, raw, plates) if settings.hold_contacts else None
        weights = coordinate_weights(subject, settings.weighting, settings.contact_weight)
        consistency = consistent_positions(
            subject,
            raw,
            method=settings.method,
            weights=weights,
            contacts=contacts,
            tolerance=settings.tolerance,
        )
        status = worst_status(status, np.where(landmarks.status >= 100, 0, consistency.status))
        q = consistency.q
    if steps[-1] == "filtered" and len(steps) > 1:
        q = lowpass(q, recording.rate, settings.cutoff)
    q = np.where(np.isfinite(q).all(axis=1, keepdims=True), q, np.nan)
    consistent_rates = settings.project and "consistent" in steps
    moving = motion(subject, recording.time, q, recording.rate, project=consistent_rates)
    loads = inverse_dynamics(subject, moving, plates.loads, method=settings.inverse)
    doubtful = (landmarks.status > 0) | ~np.isfinite(q[:, 0])
    frames = reach(recording.rate, settings.cutoff if "filtered" in steps else None)
    status = worst_status(status, neighbour_status(doubtful, frames))
    return Analysis(subject, settings, landmarks, raw, consistency, moving, plates, loads, status)


def coordinate_weights(subject: Subject, weighting: Weighting, contact_weight: float = 1.0) -> Floats:
    """(N,) weights W of the search for consistency, those of contact segments times `contact_weight`.

    "equal": 1, the thesis's own. "lengths": W = 1/s² with the same error of all markers: 1 for points, L² for unit
    vectors, where L m is the size of the segment (RMS distance of its landmarks from their mean): an error of 5 mm
    turns a wrist of 5 cm much farther than a trunk.
    """
    weights = np.ones(subject.n)
    for name, body in subject.bodies.items():
        if weighting == "lengths":
            points = np.stack(list(body.local.values()))
            size = np.sqrt(np.mean(np.sum((points - points.mean(axis=0)) ** 2, axis=1)))
            weights[body.start + 3 * len(body.points) : body.start + body.size] = size**2
        if name in subject.model.contacts:
            weights[body.columns] *= contact_weight
    return weights


def _contacts(subject: Subject, raw: Floats, plates: PlateLoads) -> Contacts | None:
    """Contacts at the centres of pressure of plates, as points of the raw pose of each frame."""
    names = plates.loads.bodies
    if not names:
        return None
    force, moment = plates.loads.force, plates.loads.moment
    lift = force[:, :, 1]
    active = np.asarray(lift > 20.0)
    safe = np.where(active, lift, 1.0)
    level = np.stack([raw[:, subject.bodies[n].start + 1] for n in names], axis=1)
    # the point of the force's line at the height of the segment's basic point: r x F = M about the origin
    x = (moment[:, :, 2] + level * force[:, :, 0]) / safe
    z = (level * force[:, :, 2] - moment[:, :, 0]) / safe
    target = np.stack([x, level, z], axis=-1)
    local = np.empty_like(target)
    for k, name in enumerate(names):
        body = subject.bodies[name]
        axes = body.axes(raw)
        origin = body.position(raw, body.point(np.zeros(3)))
        local[:, k] = np.einsum("fji,fj->fi", axes, target[:, k] - origin)
        target[:, k] = body.triples_of(raw)[:, 0] + np.einsum("fij,fj->fi", axes, local[:, k] - body.first)
    return Contacts(names, local, target, active & np.isfinite(target).all(axis=2))


#: Accelerations are differences over two frames to each side.
_DIFFERENCES = 2
#: Periods of its cut-off after which the response of a double-pass Butterworth filter of the second order to a single
#: sample has fallen to a tenth: exp(-x) (cos x + sin x) = 0.1 at x = 1.875, x = 2π f_d t / √2, f_d = f_c / 0.802.
_RESPONSE = 1.875 * 0.802 / (math.sqrt(2.0) * math.pi)


def reach(rate: float, cutoff: float | None) -> int:
    """Frames to each side that the loads of a frame are taken from: those of its differences and, where a filter with
    `cutoff` Hz smooths coordinates, those in which the filter's response is above a tenth of its peak."""
    return _DIFFERENCES + (0 if cutoff is None else round(_RESPONSE * rate / cutoff))


def neighbour_status(doubtful: Mask, frames: int) -> Integers:
    """(n,) `BESIDE` within `frames` of a doubtful frame (n,), `EDGE` within as many of an end, `OK` elsewhere."""
    count = np.arange(len(doubtful))
    status = np.where(np.minimum(count, count[::-1]) < frames, FrameStatus.EDGE, FrameStatus.OK).astype(np.int64)
    near = np.convolve(doubtful, np.ones(2 * frames + 1), "full")[frames : frames + len(doubtful)] > 0.5
    status[near & ~doubtful] = FrameStatus.BESIDE
    return status
