"""The chain of a trial: poses, loads, net moments, muscle forces, joint reactions; any step may be the last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from designopt_mechanics.sharing.statement.criteria import Criterion, Power, Reserves, Tracking
from designopt_mechanics.sharing.statement.formulation import Terms
from designopt_mechanics.sharing.static.share import share
from designopt_mechanics.sharing.static.sharing import Sharing
from designopt_muscle.geometry.kinematics import Kinematics, kinematics
from designopt_muscle.metabolics import FibreState, MetabolicModel, metabolic_rates
from designopt_muscle.models.dynamics import Dynamics, read_body_loads
from designopt_muscle.models.errors import TrialError
from designopt_muscle.models.plausibility import weight_of
from designopt_muscle.models.reactions import JointWrenches, joint_wrenches
from designopt_muscle.models.root_balance import RootBalance, force_factor, root_residual
from designopt_muscle.models.standing_feet import standing_notes
from designopt_muscle.models.trial import (
    Contraction,
    MovedCoordinates,
    NetMoments,
    Trial,
    computed_moments,
    inner_times,
    trial_of,
)
from designopt_muscle.osim.model import GROUND, OsimModel
from designopt_recordings.frames import worst_status
from designopt_recordings.plausibility import LEAST_LOAD

from designopt.arrays import Floats, Integers, Mask
from designopt.counts import plural
from designopt_laboratory.trial.assigned import assigned_loads
from designopt_laboratory.trial.causes import cause_notes
from designopt_laboratory.trial.feet import FootLoads, FootShapes, bodies_of_feet, foot_loads, judged_points
from designopt_laboratory.trial.files import TrialFiles
from designopt_laboratory.trial.judgement import (
    at_ends,
    beside_gaps,
    check_signs,
    factor_notes,
    unsupported_frames,
    unsupported_notes,
)
from designopt_laboratory.trial.poses import PoseSeries, TrialStatus, filter_coordinates
from designopt_laboratory.trial.records import ground_records, record_notes
from designopt_laboratory.trial.strikes import Strikes, strikes_of_feet

Step = Literal["angles", "moments", "forces", "reactions"]
STEPS: tuple[Step, ...] = ("angles", "moments", "forces", "reactions")


@dataclass(frozen=True)
class Factors:
    """Factors on the properties of a subject: masses of all bodies, strength of the muscles, optimal fibre lengths and
    slack lengths of the tendons."""

    mass: float = 1.0
    strength: float = 1.0
    fibre: float = 1.0
    slack: float = 1.0


@dataclass(frozen=True)
class Chain:
    """Settings of the steps: the last one (`until`), the `window` (s), gaps of frames that are bridged (s), bodies of
    the `feet` by side, the largest share of the weight that the ground may carry beside the plates.

    Of the sharing, `reserve` (N m, for all rows or by coordinate), tendon and passive forces; `joints` (all if none)
    and `axes` of the reactions; the model of the `metabolics`.
    """

    until: Step = "reactions"
    window: tuple[float, float] | None = None
    max_gap: float = 0.1
    feet: dict[str, str] | None = None
    residual_limit: float | None = 0.25
    reserve: float | dict[str, float] = 1.0
    tendon: Literal["rigid", "equilibrium"] = "rigid"
    passive: bool = False
    joints: tuple[str, ...] | None = None
    axes: str = "child"
    metabolics: MetabolicModel | None = None


@dataclass(frozen=True)
class Processing:
    """Values of a design: cut-offs (Hz, 0: none) of coordinates and plates, the `criterion` of sharing, `factors`."""

    cutoff: float = 6.0
    load_cutoff: float = 0.0
    criterion: Criterion = field(default_factory=Power)
    factors: Factors = Factors()


@dataclass(frozen=True, eq=False)
class TrialSteps:
    """Results of the steps that were taken, in n frames; None for later ones.

    `status` (n,) of poses and loads, below 100 where a frame is usable. `net` has the free coordinates that are not
    locked; `residual` (n, 2) the size of the force (N) and of the moment (N m) that the root lacks, empty where the
    model is fixed to the ground. `foot_strikes` are the times (s) at which each side strikes by the motion of the feet.
    `doubts` make the trial doubtful; `notes` are what was read, assumed and left out.
    """

    model: OsimModel
    series: PoseSeries
    coordinates: MovedCoordinates
    motion: Kinematics
    status: Integers
    feet: FootLoads | None = None
    net: NetMoments | None = None
    residual: Floats | None = None
    trial: Trial | None = None
    sharing: Sharing | None = None
    metabolic: Floats | None = None
    wrenches: JointWrenches | None = None
    foot_strikes: Strikes = field(default_factory=dict)
    doubts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def mass(self) -> float:
        """kg of all bodies."""
        return float(sum(body.mass for body in self.model.bodies))


def vary_model(model: OsimModel, factors: Factors) -> OsimModel:
    """The model with its masses (inertias alike), fibres and tendons changed by `factors`; strength acts later."""
    if factors == Factors(strength=factors.strength):
        return model
    bodies = tuple(replace(b, mass=b.mass * factors.mass, inertia=b.inertia * factors.mass) for b in model.bodies)
    muscles = tuple(replace(m, fibre=m.fibre * factors.fibre, slack=m.slack * factors.slack) for m in model.muscles)
    return replace(model, bodies=bodies, muscles=muscles)


def take_steps(
    files: TrialFiles, series: PoseSeries, chain: Chain, processing: Processing, signals: Tracking | None = None
) -> TrialSteps:
    """The steps from the poses `series` of a trial to the last one of `chain`; `signals` (frames of the series) are
    measured activity that activations follow.

    Raises `TrialError` for files, feet, joints or a window that do not fit, and `RecordingError` for a cut-off that the
    rate excludes.
    """
    model = vary_model(files.model, processing.factors)
    coordinates, status = filter_coordinates(series, processing.cutoff, chain.max_gap)
    defaults = {c.name: np.full(len(coordinates.time), c.default) for c in model.coordinates}
    values = {name: np.nan_to_num(coordinates.values[:, i]) for i, name in enumerate(coordinates.names)}
    free = {name: values.get(name, defaults[name]) for name in model.free}
    motion = kinematics(model, free)
    notes, doubts = [*files.notes, *series.notes], [*files.doubts, *series.doubts]
    frames = check_window(series.time, chain.window, files.name)
    sides, has_pose = _sides(files, chain.feet), np.asarray(np.isfinite(coordinates.values).all(axis=1))
    feet = _foot_loads(files, sides, motion, (coordinates.time, has_pose), processing.load_cutoff or None)
    if feet is not None and chain.until != "angles":
        shapes = FootShapes(motion, sides, [(m.body, m.location) for m in files.markers])
        names = files.loads_name, files.loads_name if files.assignments is None else files.assignments.name
        posed_frames = frames[status[frames] < 100]
        feet = judged_points(feet, shapes, posed_frames, LEAST_LOAD * weight_of(files.model), names)
        status = worst_status(status, feet.status)
    if feet is not None:
        notes, doubts = [*notes, *feet.notes], [*doubts, *feet.doubts]
    steps = TrialSteps(
        model, series, coordinates, motion, status, feet,
        foot_strikes=strikes_of_feet(motion, coordinates.time, sides, has_pose) if sides else {},
        doubts=tuple(doubts), notes=tuple(notes),
    )  # fmt: skip
    if chain.until == "angles":
        return _cut(steps, frames)
    loads = {} if feet is None else dict(feet.by_body)
    notes_of_records = record_notes(files, chain.window, sides)
    dynamics = Dynamics.from_model(model, coordinates.states, loads)
    net = computed_moments(model, dynamics)
    residual = root_residual(model, net)
    beside = unsupported_frames(model, residual, chain.residual_limit)
    rough = at_ends(beside) | beside_gaps(has_pose)
    if processing.cutoff == 0.0 and beside.any():
        usual = root_residual(model, _usual_moments(model, series, loads, chain.max_gap))
        rough |= beside & ~unsupported_frames(model, usual, chain.residual_limit)
    factor = force_factor(net, motion, loads, frames)
    causes = factor_notes(factor, files.loads_name, steps.mass)
    if not causes:
        records = ground_records(files, sides) if loads else ()
        balance = RootBalance.of_motion(
            motion, net, loads, np.flatnonzero(series.status < 100), coordinates.time, records
        )
        sliding_feet = _sliding_feet(files, motion, free, coordinates.time, np.flatnonzero(has_pose))
        causes = cause_notes(balance, files, sliding_feet, poses_are_certain=not (series.doubts or files.doubts))
    status = worst_status(status, np.select([rough, beside], [TrialStatus.ROUGH, TrialStatus.BESIDE_PLATES], 0))
    beside_note, rough_note = unsupported_notes(
        status[frames], chain.residual_limit, cause=_unfit(factor, bool(causes or series.doubts or files.doubts)),
        has_loads=bool(loads), is_unfiltered=processing.cutoff == 0.0,
    )  # fmt: skip
    reasons = [*causes, *beside_note, *notes_of_records]
    if chain.residual_limit is not None:
        check_signs(motion, net, loads, frames, files.loads_name)
    unusable = status >= 100
    net = NetMoments(net.rows, np.where(unusable[:, None], np.nan, net.values))
    steps = replace(steps, status=status, net=net, residual=residual, doubts=(*doubts, *reasons))
    steps = _cut(replace(steps, notes=(*notes, *rough_note)), frames)
    if unusable[frames].all():
        reasons = [*causes, *notes_of_records, *beside_note, *rough_note, *doubts]
        raise TrialError(f"{files.name}: no frame has moments. {_reasons(steps.status, reasons)}")
    if chain.until == "moments" or not model.muscles:
        return steps
    trial = trial_of(
        model, steps.coordinates, net_of(steps), dynamics.take(frames), inner=inner_times(series.time),
        contraction=Contraction(chain.tendon, chain.passive),
    )  # fmt: skip
    steps = replace(steps, trial=trial, notes=tuple(dict.fromkeys([*steps.notes, *trial.notes])))
    tracking = None if signals is None else replace(signals, signals=signals.signals[frames])
    return _add_loads(_add_sharing(steps, chain, processing, tracking), chain)


def _unfit(factor: float, is_doubtful: bool) -> str:
    """Why forces leave much of the weight: there are none (the `factor` on them is NaN), poses or forces are doubtful,
    or a foot is beside the plates."""
    if np.isnan(factor):
        return "they carry nothing"
    return "they do not fit the motion" if is_doubtful else "a foot stands beside the plates"


#: Cut-off (Hz) of coordinates that tells what unfiltered ones leave at the root.
USUAL_CUTOFF = 6.0
#: Notes that an error of a trial without moments repeats.
_REASONS = 4


def _reasons(status: Integers, notes: Sequence[str]) -> str:
    """Why frames are unusable: `notes`, and statuses that these do not explain with numbers of frames."""
    sentences = {int(code): code.sentence for code in TrialStatus}
    explained_statuses = {TrialStatus.BESIDE_PLATES, TrialStatus.ROUGH, TrialStatus.OFF_FOOT}
    counts = [
        f"{plural(int((status == number).sum()), 'frame')}: {sentences.get(int(number), number)}"
        for number in np.unique(status)
        if int(number) not in explained_statuses
    ]
    remainder = [f"{len(notes) - _REASONS} more notes"] if len(notes) > _REASONS else []
    return "; ".join([*counts, *notes[:_REASONS], *remainder])


def _sides(files: TrialFiles, feet: dict[str, str] | None) -> dict[str, str]:
    """The feet by side; none for a model whose feet are not known, unless they have to stand on plates."""
    try:
        return bodies_of_feet(files.model, feet)
    except TrialError:
        if files.plates and files.assignments is None:
            raise
        return {}


def _foot_loads(
    files: TrialFiles, sides: dict[str, str], motion: Kinematics, frames: tuple[Floats, Mask], cutoff: float | None
) -> FootLoads | None:
    """The loads of the ground on the bodies in `frames`: times (s), and which have a pose; None without any."""
    time, has_pose = frames
    if files.assignments is not None and files.reactions is not None:
        return assigned_loads(files.assignments, files.reactions, motion, time, sides, cutoff=cutoff)
    if files.plates:
        markers = [(m.body, m.location) for m in files.markers]
        return foot_loads(files.plates, motion, time, sides, cutoff=cutoff, markers=markers, has_pose=has_pose)
    return None


def _sliding_feet(
    files: TrialFiles, motion: Kinematics, curves: dict[str, Floats], time: Floats, frames: Integers
) -> list[str]:
    """Notes on feet that do not stand while they are loaded, where `curves` (n,) are measured coordinates."""
    if files.table is None or files.assignments is None or files.reactions is None or not len(frames):
        return []
    loads = read_body_loads(files.assignments, files.reactions, motion.take(frames), time[frames])
    if not all(load.in_ground for load in loads):
        return []
    curves = {name: curve[frames] for name, curve in curves.items()}
    return standing_notes(motion.model, curves, time[frames], loads, weight_of(motion.model))


def _usual_moments(model: OsimModel, series: PoseSeries, loads: dict[str, Floats], max_gap: float) -> NetMoments:
    """The net moments of the coordinates at a usual cut-off."""
    cutoff = min(USUAL_CUTOFF, 0.2 / float(np.median(np.diff(series.time))))
    smooth, _ = filter_coordinates(series, cutoff, max_gap)
    return computed_moments(model, Dynamics.from_model(model, smooth.states, loads))


def net_of(steps: TrialSteps) -> NetMoments:
    """The net moments of steps that have them."""
    assert steps.net is not None
    return steps.net


def check_window(time: Floats, window: tuple[float, float] | None, name: str) -> Integers:
    """The frames that cover a `window` (s): its ends may lie between two. Raises `TrialError` where it is beyond the
    record by more than a frame."""
    if window is None:
        return np.arange(len(time))
    step = float(np.median(np.diff(time))) if len(time) > 1 else 0.0
    margin = 0.999 * step
    frames = np.flatnonzero((time > window[0] - margin) & (time < window[1] + margin))
    if not len(frames) or window[0] < time[0] - 1.001 * step or window[1] > time[-1] + 1.001 * step:
        raise TrialError(
            f"{name}: the window from {window[0]:g} to {window[1]:g} s is beyond the record, which runs from"
            f" {time[0]:g} to {time[-1]:g} s"
        )
    return frames


def _cut(steps: TrialSteps, frames: Integers) -> TrialSteps:
    """Some of the frames of steps up to the net moments."""
    series, feet, motion = steps.series, steps.feet, steps.motion
    series = replace(
        series, time=series.time[frames], values=series.values[frames], errors=series.errors[frames],
        status=series.status[frames],
    )  # fmt: skip
    if feet is not None:
        by_body = {body: load[frames] for body, load in feet.by_body.items()}
        feet = replace(
            feet, force=feet.force[frames], point=feet.point[frames], torque=feet.torque[frames], by_body=by_body,
            status=feet.status[frames],
        )  # fmt: skip
    return replace(
        steps,
        series=series,
        feet=feet,
        motion=motion.take(frames),
        coordinates=steps.coordinates.take(frames),
        status=steps.status[frames],
        net=None if steps.net is None else NetMoments(steps.net.rows, steps.net.values[frames]),
        residual=None if steps.residual is None else steps.residual[frames],
    )


def _add_sharing(steps: TrialSteps, chain: Chain, processing: Processing, tracking: Tracking | None) -> TrialSteps:
    assert steps.trial is not None
    trial = steps.trial
    muscles = trial.muscles.scaled(processing.factors.strength)
    has_muscle = (np.abs(trial.balance.arms[trial.balance.usable]) > 0).any(axis=(0, 2))
    if not has_muscle.any():
        raise TrialError("no usable frame has a coordinate that muscles cross: there are no forces to share")
    by_row = chain.reserve if isinstance(chain.reserve, dict) else dict.fromkeys(trial.balance.rows, chain.reserve)
    reserves = Reserves(np.where(has_muscle, [by_row.get(row, 0.0) for row in trial.balance.rows], 0.0))
    sharing = share(trial.balance, muscles, Terms(processing.criterion, tracking=tracking), reserves)
    metabolic = None
    if chain.metabolics is not None:
        cosine = trial.fibres.cosine
        active = sharing.activations * muscles.strength / np.where(np.abs(cosine) > 1e-6, cosine, np.nan)
        state = FibreState(sharing.activations, np.nan_to_num(active), trial.fibres)
        metabolic = metabolic_rates(steps.model.muscles, state, chain.metabolics)
    return replace(steps, sharing=sharing, metabolic=metabolic)


def _add_loads(steps: TrialSteps, chain: Chain) -> TrialSteps:
    if chain.until != "reactions":
        return steps
    assert steps.trial is not None
    assert steps.sharing is not None
    joints: Sequence[str] = chain.joints if chain.joints is not None else moving_joints(steps.model)
    return replace(steps, wrenches=joint_wrenches(steps.trial, steps.sharing.forces, joints, chain.axes))


def moving_joints(model: OsimModel) -> tuple[str, ...]:
    """The joints between bodies that have a coordinate."""
    moving = {c.joint for c in model.coordinates}
    return tuple(joint.name for joint in model.joints if joint.name in moving and joint.parent != GROUND)
