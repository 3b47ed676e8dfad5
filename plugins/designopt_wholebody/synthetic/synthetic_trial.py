"""A synthetic trial: markers that move on the skin, plates under the hands and feet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from designopt_recordings.plate import ForcePlate
from designopt_recordings.recording import Recording

from designopt.arrays import Floats
from designopt_wholebody.consistency.rates import Motion
from designopt_wholebody.dynamics.inverse import inverse_dynamics
from designopt_wholebody.dynamics.loads import JointLoads, Loads
from designopt_wholebody.subject import Subject

#: Landmarks inside the body, which no marker gives.
INTERNAL = ("CAC", "CAL", "GU_R", "GU_L", "CAQ_R", "CAQ_L", "PES_R", "PES_L", "PEI_R", "PEI_L")


@dataclass(frozen=True, eq=False)
class SyntheticTrial:
    """A `recording` and a `static` one, and the truth: `subject`, `motion`, loads of `contact` and of the joints."""

    recording: Recording
    static: Recording
    subject: Subject
    motion: Motion
    contact: Loads
    loads: JointLoads


@dataclass(frozen=True)
class Errors:
    """Errors of markers: on each axis they move on the skin by `skin` m (standard deviation), as three sinusoids at one
    to three times the frequency of the exercise with random phases, and are measured with white noise of `noise` m."""

    skin: float
    noise: float
    seed: Sequence[int]


def record_trial(
    subject: Subject,
    true_motion: Motion,
    contact_loads: Loads,
    plates: tuple[ForcePlate, ...],
    rate: float,
    period: float,
    errors: Errors,
) -> SyntheticTrial:
    """The trial of a motion at `rate` Hz with the given `period` s of the exercise."""
    rng = np.random.default_rng(errors.seed)
    markers = tuple(name for name in subject.model.landmarks if name not in INTERNAL)
    bodies = {name: next(b for b in subject.bodies.values() if name in b.local) for name in markers}
    positions = np.stack([b.position(true_motion.q, b.landmark(name)) for name, b in bodies.items()], axis=1)
    moving = _skin(rng, 2.0 * np.pi / period * true_motion.time, len(markers), errors.skin)
    markers_with_errors = positions + moving + errors.noise * rng.normal(size=positions.shape)
    every = tuple(subject.model.landmarks)
    standing = np.stack([subject.landmarks[name] for name in every])
    return SyntheticTrial(
        recording=Recording(rate, true_motion.time, markers, markers_with_errors, plates=plates),
        static=Recording(rate, true_motion.time[:2], every, np.repeat(standing[None], 2, axis=0)),
        subject=subject,
        motion=true_motion,
        contact=contact_loads,
        loads=inverse_dynamics(subject, true_motion, contact_loads, method="velocity_transformation"),
    )


def plate(name: str, middle: Floats, force: Floats, moment: Floats, rate: float) -> ForcePlate:
    """A plate of 60 x 40 cm on the ground about `middle`, with the force (n, 3) and moment (n, 3) on the subject."""
    x, z = float(middle[0]), float(middle[2])
    corners = np.array(
        [[x - 0.3, 0.0, z - 0.2], [x - 0.3, 0.0, z + 0.2], [x + 0.3, 0.0, z + 0.2], [x + 0.3, 0.0, z - 0.2]]
    )
    return ForcePlate(name, rate, force, moment, corners=corners)


def _skin(rng: np.random.Generator, phase: Floats, markers: int, size: float) -> Floats:
    """(n, markers, 3) motion of markers on the skin, m."""
    total = np.zeros((len(phase), markers, 3))
    for harmonic in (1, 2, 3):
        offset = rng.uniform(0.0, 2.0 * np.pi, (markers, 3))
        total += np.sin(harmonic * phase[:, None, None] + offset) / harmonic
    return np.asarray(size * total / np.sqrt(0.5 * (1.0 + 1.0 / 4.0 + 1.0 / 9.0)))
