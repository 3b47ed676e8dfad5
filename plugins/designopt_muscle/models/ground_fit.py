"""Whether forces of the ground fit the motion of a trial whose net moments are computed, and if not, why."""

from __future__ import annotations

import numpy as np

from designopt.plugin import InputFile
from designopt_muscle.geometry.kinematics import kinematics
from designopt_muscle.geometry.loads import sum_by_body
from designopt_muscle.models.dynamics import Dynamics, read_body_loads
from designopt_muscle.models.plausibility import acceleration_notes
from designopt_muscle.models.root_balance import (
    FOREIGN,
    RootBalance,
    assigned_records,
    body_mass,
    body_weight,
    force_factor,
    root_residual,
    root_rows,
)
from designopt_muscle.models.standing_feet import standing_notes
from designopt_muscle.models.trial import (
    ExternalLoads,
    computed_moments,
    moved_coordinates,
    read_trial_table,
    recorded_times,
)
from designopt_muscle.osim.model import OsimModel

#: Hz, cut-off of a motion without one, and largest shares of the usual and of the lowest sampling rate that it may be.
_USUAL_CUTOFF, _HIGHEST_CUTOFF, _ACROSS_GAPS = 6.0, 0.2, 0.45
#: Frames at an end of a record whose accelerations may be poor, and least number of frames to compare.
_END, _FRAMES = 5, 30
#: Share of the weight at the root from which a frame lacks a force of the ground, and share of the frames from which a
#: note says so.
_LACKING, _LACKING_FRAMES = 0.25, 0.05
#: Distance of the factor on the vertical forces from 1, from which a note names it.
_OTHER_FORCES = 0.1


def ground_fit_notes(
    model: OsimModel,
    motion: InputFile,
    external: ExternalLoads,
    cutoff: float | None = None,
    window: tuple[float, float] | None = None,
) -> list[str]:
    """Notes on forces of the ground that do not fit a `motion` in a `window` (s), filtered at `cutoff` (Hz).

    Without a cut-off the motion is filtered here at 6 Hz, since noise would hide what does not fit. The sentences begin
    with the name of the file that is doubtful. Empty for a model that is fixed to the ground, and for loads in the axes
    of moving bodies. Raises `TrialError` for files that cannot be used.
    """
    steps = np.diff(recorded_times(motion))
    if len(steps) < _FRAMES:
        return []
    highest = min(_USUAL_CUTOFF, _HIGHEST_CUTOFF / float(np.median(steps)), _ACROSS_GAPS / float(steps.max()))
    coordinates, table = moved_coordinates(model, motion, cutoff or highest)
    first, last = window or (-np.inf, np.inf)
    usable = np.flatnonzero(coordinates.is_finite & (coordinates.time >= first) & (coordinates.time <= last))
    if not root_rows(model)[0] or len(usable) < _FRAMES:
        return []
    coordinates = coordinates.take(usable)
    time, forces = coordinates.time, external.forces.name
    curves = {name: coordinates.values[:, i] for i, name in enumerate(coordinates.names)}
    poses = kinematics(model, curves)
    loads = read_body_loads(external.assignments, read_trial_table(external.forces), poses, time)
    if not loads or not all(load.in_ground for load in loads):
        return []
    by_body = sum_by_body(loads)
    net = computed_moments(model, Dynamics.from_model(model, coordinates.states, by_body))
    inner = np.arange(_END, len(time) - _END)
    records = assigned_records(model, external.assignments, read_trial_table(external.forces))
    balance = RootBalance.of_motion(poses, net, by_body, inner, time, records)
    if balance is not None and (lag := balance.lag()):
        behaviour, remedy = ("lag behind", "subtract it from") if lag > 0.0 else ("are ahead of", "add it to")
        return [
            f"{forces}: the forces of the ground {behaviour} the motion {motion.name} by about {abs(lag):.3f} s:"
            f" {remedy} the times of the forces, or synchronise the files"
        ]
    if notes := standing_notes(model, curves, time, loads, body_weight(model)):
        return [f"{motion.name}: {note}" for note in notes]
    factor = force_factor(net, poses, by_body, inner)
    if abs(factor - 1.0) > _OTHER_FORCES:  # NaN is no factor
        return [
            f"{forces}: the motion needs {factor:.3g} times the recorded vertical forces: check the unit of the forces,"
            f" and the mass of the model ({body_mass(model):.3g} kg)"
        ]
    if balance is not None and (displacements := balance.displacements()):
        return [
            f"{forces}: the points of application on {body} seem to be off by {x:+.2f} m along X and {z:+.2f} m along"
            " Z: check that forces and motion have the same axes and origin"
            for body, (x, z) in displacements.items()
        ]
    is_noisy = bool(acceleration_notes(table, model))
    if balance is not None and not is_noisy and (residual := balance.residual()) > FOREIGN:
        return [
            f"{forces}: at no shift in time do the forces fit the motion {motion.name} ({residual:.0%} of the weight is"
            " left, RMS): do they belong to it, and are its columns those of the coordinates?"
        ]
    is_unsupported = root_residual(model, net)[inner, 0] > _LACKING * body_weight(model)
    if is_unsupported.mean() > _LACKING_FRAMES:
        start, end = (time[inner][is_unsupported][i] for i in (0, -1))
        return [
            f"{forces}: in {is_unsupported.sum()} of {len(inner)} frames from {start:.4g} to {end:.4g} s the forces"
            f" leave more than {_LACKING:.0%} of the weight at the root: a foot beside the plates? Net moments are"
            " wrong there: leave these frames out with 'window'"
        ]
    return []
