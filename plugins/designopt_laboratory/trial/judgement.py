"""Judging of a trial: what is left at the root beside the forces of the ground, what reserves carry, which muscles are
fully active."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from designopt_mechanics.sharing.static.sharing import Sharing
from designopt_muscle.geometry.kinematics import Kinematics
from designopt_muscle.models.errors import TrialError
from designopt_muscle.models.figures import LARGEST_RESERVE, reserve_shares
from designopt_muscle.models.root_balance import body_weight, root_rows
from designopt_muscle.models.trial import NetMoments
from designopt_muscle.osim.model import OsimModel
from designopt_recordings.signals.runs import runs

from designopt.arrays import Floats, Integers, Mask
from designopt.counts import first_of
from designopt_laboratory.trial.poses import TrialStatus

#: Largest residual force over the largest force of the ground, and largest residual moment over that force times the
#: height of the centre of mass (Hicks et al., J. Biomech. Eng. 137 (2015) 020905).
RESIDUAL_FORCE, RESIDUAL_MOMENT = 0.05, 0.01
#: Distance of the factor on the vertical forces from 1, from which a note names it.
_OTHER_FORCES = 0.1
#: kg, masses of people between which neither forces nor a subject are in another unit.
_LEAST_MASS, _LARGEST_MASS = 12.0, 250.0
#: Frames at an end of a record whose accelerations may be poor.
_END = 2
#: Activation at which a muscle is fully active, and the share of frames from which a note names it.
_FULL, _FULL_FRAMES = 0.999, 0.05
#: RMS share of the weight left at the root from which the sign of the recorded forces is judged.
_OPPOSITE = 0.05
#: Names in a note.
_NAMED = 5


def unsupported_frames(model: OsimModel, residual: Floats, limit: float | None) -> Mask:
    """(n,) frames in which the root lacks more than the share `limit` of the weight."""
    if limit is None or not residual.shape[1]:
        return np.zeros(len(residual), dtype=bool)
    return np.asarray(np.nan_to_num(residual[:, 0]) > limit * body_weight(model))


def at_ends(frames: Mask) -> Mask:
    """(n,) those of `frames` (n,) that are few and at the first or the last frame, where accelerations are poor."""
    ends = np.zeros_like(frames)
    for first, end in runs(frames):
        ends[first:end] = end - first <= _END and (first == 0 or end == len(frames))
    return ends


def beside_gaps(has_pose: Mask) -> Mask:
    """(n,) frames next to those without `has_pose` (n,), whose accelerations are poor."""
    lost = np.pad(~has_pose, _END)
    near = [lost[shift : shift + len(has_pose)] for shift in range(2 * _END + 1)]
    return np.asarray(np.logical_or.reduce(near) & has_pose)


def unsupported_notes(
    status: Integers, limit: float | None, *, cause: str, has_loads: bool, is_unfiltered: bool
) -> tuple[list[str], list[str]]:
    """Why frames of these statuses have no moments, and what to do; and the same of few frames at ends. `cause` is that
    of forces which leave much of the weight."""
    frames = f"of {len(status)} frames"
    beside, rough = (int((status == kind).sum()) for kind in (TrialStatus.BESIDE_PLATES, TrialStatus.ROUGH))
    lacking: list[str] = []
    poor: list[str] = []
    if beside and has_loads:
        lacking.append(
            f"in {beside} {frames} the loads leave more than {limit:.0%} of the weight at the root:"
            f" {cause}, and these frames have no moments (setting residual_limit)"
        )
    elif beside:
        lacking.append(
            f"in {beside} {frames} the ground carries the body, but the trial has no force plate and no reactions:"
            " these frames have no moments. Name the forces with reactions; or end with until: angles; or, if nothing"
            " outside the model carries the body, state residual_limit: null"
        )
    if rough:
        reason = (
            "unfiltered accelerations (cutoff: 0) leave more than {limit:.0%} of the weight at the root; a cutoff such"
            " as 6 Hz leaves less"
            if is_unfiltered
            else "accelerations are poor: they are those at an end of the record or of a gap"
        )
        note = f"{rough} {frames} have no moments, as their {reason.format(limit=limit)}"
        (lacking if rough > 2 * _END else poor).append(note)
    return lacking, poor


def check_signs(motion: Kinematics, net: NetMoments, loads: Mapping[str, Floats], frames: Integers, name: str) -> None:
    """Raise `TrialError` that begins with `name` where the motion in `frames` needs the opposite of the recorded forces
    along an axis of the laboratory."""
    names, _ = root_rows(motion.model)
    rows = [name for name in names if name in net.rows]
    if not loads or len(rows) < 3:
        return
    recorded_force = np.asarray(sum(load[frames, :3] for load in loads.values()))
    lacking = sum(net.values[frames, net.rows.index(row), None] * motion.moving[row][frames] for row in rows)
    usable = np.isfinite(recorded_force + lacking).all(axis=1)
    force, required_force = recorded_force[usable], (recorded_force + lacking)[usable]
    for i, axis in enumerate("XYZ"):
        recorded_rms, reversed_rms = _rms(required_force[:, i] - force[:, i]), _rms(required_force[:, i] + force[:, i])
        if recorded_rms > _OPPOSITE * body_weight(motion.model) and reversed_rms < 0.5 * recorded_rms:
            raise TrialError(
                f"{name}: along {axis} the motion needs the opposite of the recorded forces ({recorded_rms:.3g} N RMS"
                f" are left at the root, {reversed_rms:.3g} N with the sign turned): turn their sign"
            )


def factor_notes(factor: float, name: str, mass: float) -> list[str]:
    """A sentence where the motion of a subject of `mass` (kg) needs other vertical forces than the file `name` has."""
    if not abs(factor - 1.0) > _OTHER_FORCES:  # NaN is no factor
        return []
    if factor <= 0.0:
        return [
            f"{name}: the motion needs {factor:.3g} times the recorded vertical forces: check their sign, and whether"
            " they belong to the trial"
        ]
    apparent_mass = mass / factor
    plausible = [_LEAST_MASS < each < _LARGEST_MASS for each in (mass, apparent_mass)]
    cause = "check the subject's mass and the unit of the forces"
    if plausible == [False, True]:
        cause = "correct the mass of the subject (mass of the trial, or of the scaling set-up)"
    elif plausible == [True, False]:
        cause = "check the unit and the gain of the forces"
    return [
        f"{name}: the recorded vertical forces are those of {apparent_mass:.3g} kg, the subject has {mass:.3g} kg:"
        f" the motion needs {factor:.3g} times these forces: {cause}"
    ]


def _rms(values: Floats) -> float:
    return float(np.sqrt(np.mean(values**2))) if len(values) else 0.0


def residual_shares(residual: Floats, loads: Mapping[str, Floats], motion: Kinematics) -> tuple[float, ...]:
    """The largest residual force over the largest force of the ground, and the largest residual moment over this force
    times the height of the centre of mass above the lowest body; in frames (n,) with both. Empty without a force."""
    if not loads or not residual.shape[1]:
        return ()
    force = np.linalg.norm(np.asarray(sum(load[:, :3] for load in loads.values())), axis=1)
    usable = np.isfinite(force) & np.isfinite(residual).all(axis=1)
    if not usable.any() or not force[usable].max() > 0.0:
        return ()
    largest, height = float(force[usable].max()), _height(motion.take(np.flatnonzero(usable)))
    sizes = residual[usable].max(axis=0)
    return tuple(float(size / (largest * arm)) for size, arm in zip(sizes, (1.0, height), strict=False))


def _height(motion: Kinematics) -> float:
    """m, mean of the centre of mass above the lowest origin of a body."""
    bodies = motion.model.bodies
    mass = sum(body.mass for body in bodies)
    centre = sum(body.mass * motion.position(body.name, body.centre)[:, 1] for body in bodies) / mass
    floor = min(float(motion.origin[body.name][:, 1].min()) for body in bodies)
    return float(np.mean(centre)) - floor


def residual_notes(shares: Sequence[float]) -> list[str]:
    """Sentences on residuals beyond the guideline of Hicks et al. (2015)."""
    words = (
        ("force", "of the largest force of the ground", RESIDUAL_FORCE),
        ("moment", "of that force times the height of the centre of mass", RESIDUAL_MOMENT),
    )
    return [
        f"the residual {load} at the root is up to {share:.1%} {of_what} (guideline of Hicks et al. 2015: {limit:.0%})"
        for share, (load, of_what, limit) in zip(shares, words, strict=False)
        if share > limit
    ]


def sharing_notes(sharing: Sharing, frames: Mask) -> list[str]:
    """Sentences on coordinates whose reserves carry much and on muscles that are fully active, in `frames` (n,)."""
    shares = {name: share for name, share in reserve_shares(sharing, frames).items() if share > LARGEST_RESERVE}
    notes = []
    if shares:
        notes.append(f"reserves carry up to this share of the largest net moment: {_listed(shares)}")
    activations = sharing.activations[frames]
    activations = activations[np.isfinite(activations).all(axis=1)]
    if len(activations):
        full = dict(zip(sharing.balance.columns, (activations >= _FULL).mean(axis=0).tolist(), strict=True))
        full = {name: share for name, share in full.items() if share > _FULL_FRAMES}
        if full:
            notes.append(f"muscles are fully active in this share of the frames: {_listed(full)}")
    return notes


def _listed(shares: Mapping[str, float]) -> str:
    names = sorted(shares, key=lambda name: -shares[name])
    return first_of([f"{name} {shares[name]:.0%}" for name in names], _NAMED)
