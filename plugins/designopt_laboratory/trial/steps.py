"""The chain of a trial: poses, loads, net moments, muscle forces, joint reactions; any step may be the last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from designopt_muscle.geometry.kinematics import Kinematics, kinematics
from designopt_muscle.metabolics import FibreState, MetabolicModel, metabolic_rates
from designopt_muscle.models.dynamics import Dynamics, read_loads
from designopt_muscle.models.errors import TrialError
from designopt_muscle.models.reactions import JointWrenches, joint_wrenches
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
from designopt_muscle.sharing.statement.criteria import Criterion, Power, Reserves, Tracking
from designopt_muscle.sharing.statement.formulation import Terms
from designopt_muscle.sharing.static.share import share
from designopt_muscle.sharing.static.sharing import Sharing
from designopt_recordings.frames import worst

from designopt.arrays import Floats, Integers
from designopt_laboratory.trial.feet import FootLoads, bodies_of_feet, foot_loads
from designopt_laboratory.trial.files import TrialFiles
from designopt_laboratory.trial.poses import PoseSeries, TrialStatus, filtered

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
    model is fixed to the ground.
    """

    model: OsimModel
    series: PoseSeries
    moved: MovedCoordinates
    motion: Kinematics
    status: Integers
    feet: FootLoads | None = None
    net: NetMoments | None = None
    residual: Floats | None = None
    trial: Trial | None = None
    sharing: Sharing | None = None
    fibre_forces: Floats | None = None
    metabolic: Floats | None = None
    wrenches: JointWrenches | None = None
    notes: tuple[str, ...] = ()

    @property
    def mass(self) -> float:
        """kg of all bodies."""
        return float(sum(body.mass for body in self.model.bodies))


def varied(model: OsimModel, factors: Factors) -> OsimModel:
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
    model = varied(files.model, processing.factors)
    moved, status = filtered(series, processing.cutoff, chain.max_gap)
    still = {c.name: np.full(len(moved.time), c.default) for c in model.coordinates}
    values = {name: np.nan_to_num(moved.values[:, i]) for i, name in enumerate(moved.names)}
    free = {name: values.get(name, still[name]) for name in model.free}
    motion = kinematics(model, free)
    notes = [*files.notes, *series.notes]
    frames = check_window(series.time, chain.window, files.name)
    feet = None
    if files.plates and files.assignments is None:
        feet = foot_loads(
            files.plates,
            motion,
            moved.time,
            bodies_of_feet(model, chain.feet),
            cutoff=processing.load_cutoff or None,
            markers=[(m.body, m.location) for m in files.markers],
        )
        notes += feet.notes
        status = worst(status, feet.status)
    if chain.until == "angles":
        return _cut(TrialSteps(model, series, moved, motion, status, feet, notes=tuple(notes)), frames)
    loads = {} if feet is None else dict(feet.by_body)
    if files.assignments is not None and files.reactions is not None:
        loads = read_loads(files.assignments, files.reactions, motion, moved.time)
    if not loads:
        notes.append(f"{files.name}: no force plate and no external loads: moments without forces of the ground")
    dynamics = Dynamics.from_model(model, moved.states, loads)
    net = computed_moments(model, dynamics)
    residual = _residual(model, net)
    status, off_plates = _unmeasured(model, residual, status, chain.residual_limit if loads else None)
    notes += off_plates
    unusable = status >= 100
    net = NetMoments(net.rows, np.where(unusable[:, None], np.nan, net.values))
    steps = TrialSteps(model, series, moved, motion, status, feet, net, residual, notes=tuple(notes))
    steps = _cut(steps, frames)
    if unusable[frames].all():
        raise TrialError(f"{files.name}: no frame has moments. {_reasons(steps.status, steps.notes)}")
    if chain.until == "moments" or not model.muscles:
        return steps
    trial = trial_of(
        model, steps.moved, net_of(steps), dynamics.take(frames), inner=inner_times(series.time),
        contraction=Contraction(chain.tendon, chain.passive),
    )  # fmt: skip
    steps = replace(steps, trial=trial, notes=tuple(dict.fromkeys([*steps.notes, *_few(trial.notes)])))
    tracking = None if signals is None else replace(signals, signals=signals.signals[frames])
    return _loaded(_shared(steps, chain, processing, tracking), chain)


#: Jumps of muscle paths that the notes list.
_JUMPS = 5


def _few(notes: tuple[str, ...]) -> list[str]:
    """Notes on a trial's muscles, with the first jumps of paths and the number of the others."""
    jumps = [note for note in notes if " jumps by " in note]
    if len(jumps) <= _JUMPS:
        return list(notes)
    more = f"{len(jumps) - _JUMPS} more jumps of muscle paths or their moment arms between frames"
    return [*(note for note in notes if note not in jumps[_JUMPS:]), more]


def _reasons(status: Integers, notes: tuple[str, ...]) -> str:
    """Why frames are unusable: their statuses with numbers of frames, and what else was noted last."""
    sentences = {int(one): one.sentence for one in TrialStatus}
    counts = [
        f"{int((status == number).sum())} frames: {sentences.get(int(number), number)}" for number in np.unique(status)
    ]
    return "; ".join([*counts, "check unit, sign and axes of the forces, and the subject's mass", *notes[-1:]])


def net_of(steps: TrialSteps) -> NetMoments:
    """The net moments of steps that have them."""
    assert steps.net is not None
    return steps.net


def check_window(time: Floats, window: tuple[float, float] | None, name: str) -> Integers:
    """The frames within a `window` (s). Raises `TrialError` without any."""
    if window is None:
        return np.arange(len(time))
    frames = np.flatnonzero((time >= window[0] - 1e-9) & (time <= window[1] + 1e-9))
    if not len(frames):
        raise TrialError(
            f"{name}: no frame lies between {window[0]:g} and {window[1]:g} s; it runs from {time[0]:g} to"
            f" {time[-1]:g} s"
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
    parts = {
        name: {key: array[frames] for key, array in getattr(motion, name).items()}
        for name in ("coordinates", "rotation", "origin", "turning", "moving")
    }
    return replace(
        steps,
        series=series,
        feet=feet,
        motion=Kinematics(motion.model, **parts),
        moved=steps.moved.take(frames),
        status=steps.status[frames],
        net=None if steps.net is None else NetMoments(steps.net.rows, steps.net.values[frames]),
        residual=None if steps.residual is None else steps.residual[frames],
    )


def root_rows(model: OsimModel) -> tuple[list[str], list[str]]:
    """Coordinates of the joint with which a model floats in the ground, translations and rotations; none where it is
    fixed to it."""
    grounded = {joint.name for joint in model.joints if joint.parent == GROUND}
    free = [c for c in model.coordinates if c.joint in grounded and not c.locked]
    translations = [c.name for c in free if not c.rotational]
    return (translations, [c.name for c in free if c.rotational]) if len(translations) > 1 else ([], [])


def _residual(model: OsimModel, net: NetMoments) -> Floats:
    columns = [
        np.linalg.norm(net.values[:, [net.rows.index(name) for name in names if name in net.rows]], axis=1)
        for names in root_rows(model)
        if names
    ]
    return np.stack(columns, axis=1) if columns else np.zeros((len(net.values), 0))


def _unmeasured(
    model: OsimModel, residual: Floats, status: Integers, limit: float | None
) -> tuple[Integers, list[str]]:
    """Frames in which the root lacks more than the share `limit` of the weight are `BESIDE_PLATES`."""
    if limit is None or not residual.shape[1]:
        return status, []
    weight = sum(body.mass for body in model.bodies) * float(np.linalg.norm(model.gravity))
    beside = np.nan_to_num(residual[:, 0]) > limit * weight
    if not beside.any():
        return status, []
    marked = np.where(beside, np.maximum(status, int(TrialStatus.BESIDE_PLATES)), status)
    return marked, [
        f"in {int(beside.sum())} of {len(status)} frames the loads leave more than {limit:.0%} of the weight at the"
        " root: a foot stands beside the plates, and these frames have no moments (setting residual_limit)"
    ]


def _shared(steps: TrialSteps, chain: Chain, processing: Processing, tracking: Tracking | None) -> TrialSteps:
    assert steps.trial is not None
    trial = steps.trial
    muscles = trial.muscles.scaled(processing.factors.strength)
    crossed = (np.abs(trial.balance.arms[trial.balance.usable]) > 0).any(axis=(0, 2))
    if not crossed.any():
        raise TrialError("no usable frame has a coordinate that muscles cross: there are no forces to share")
    by_row = chain.reserve if isinstance(chain.reserve, dict) else dict.fromkeys(trial.balance.rows, chain.reserve)
    reserves = Reserves(np.where(crossed, [by_row.get(row, 0.0) for row in trial.balance.rows], 0.0))
    sharing = share(trial.balance, muscles, Terms(processing.criterion, tracking=tracking), reserves)
    cosine = trial.fibres.cosine
    active = np.asarray(sharing.activations * muscles.strength / np.where(np.abs(cosine) > 1e-6, cosine, np.nan))
    metabolic = None
    if chain.metabolics is not None:
        state = FibreState(sharing.activations, np.nan_to_num(active), trial.fibres)
        metabolic = metabolic_rates(steps.model.muscles, state, chain.metabolics)
    return replace(steps, sharing=sharing, fibre_forces=active, metabolic=metabolic)


def _loaded(steps: TrialSteps, chain: Chain) -> TrialSteps:
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
