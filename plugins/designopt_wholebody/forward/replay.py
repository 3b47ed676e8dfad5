"""A known motion simulated again: driven by the forces that its accelerations need (Nunes 2017, section 5.1.5)."""

from __future__ import annotations

import numpy as np

from designopt.arrays import Floats
from designopt_wholebody.consistency.rates import Motion
from designopt_wholebody.dynamics.loads import GRAVITY, Loads, generalised
from designopt_wholebody.forward.forces import Forces
from designopt_wholebody.forward.simulation import SimulationMethod, simulate
from designopt_wholebody.subject import Subject

#: s: steps are not longer.
_STEP = 0.01


def replay(subject: Subject, motion: Motion) -> Floats:
    """(n, N) coordinates of a simulation from the first known frame of `motion`, NaN before it and beyond a gap.

    The generalised forces M q̈ are those of weight, ground and joints together; between frames they follow a cubic
    spline. The simulation departs from the motion as errors of its accelerations are integrated twice.
    """
    from scipy.interpolate import CubicSpline

    replayed = np.full_like(motion.q, np.nan)
    complete = np.flatnonzero(motion.complete_frames)
    if len(complete) < 4:
        return replayed
    gaps = np.flatnonzero(np.diff(complete) > 1)
    run = complete[: gaps[0] + 1] if len(gaps) else complete
    if len(run) < 4:
        return replayed
    time = motion.time[run] - motion.time[run[0]]
    weight = generalised(subject, motion.q[run[:1]], Loads.none(1), GRAVITY)[0]
    needed = CubicSpline(time, motion.qddot[run] @ subject.mass_matrix() - weight)
    each = max(1, int(np.ceil(time[1] / _STEP - 1e-9)))
    trajectory = simulate(
        Forces(subject, external=lambda t: np.asarray(needed(t))),
        motion.q[run[0]],
        motion.qdot[run[0]],
        float(time[-1]),
        float(time[1]) / each,
        SimulationMethod(formulation="LP", integrator="adams"),
    )
    reached = trajectory.q[::each]
    replayed[run[: len(reached)]] = reached
    return replayed
