"""The model ``wholebody_trial``: how a trial is prepared in, joint loads and how far to trust them out."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Annotated, Any, Literal, TypedDict

import numpy as np
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.read import read_recording
from designopt_recordings.recording import Recording
from numpy.typing import NDArray

from designopt.plugin import Array as ArrayOf
from designopt.plugin import Diverged, InputFile, InvalidDesign, InvalidSetting, model
from designopt.plugin import Quantity as Q
from designopt.study.language.errors import StudyError
from designopt_wholebody.body.subject import Subject, SubjectError, make_subject
from designopt_wholebody.dynamics.joint_loads import JointLoads
from designopt_wholebody.model.library import bundled, load_model
from designopt_wholebody.model.schema import Model
from designopt_wholebody.synthetic.pushup import pushup
from designopt_wholebody.trial.analysis import Analysis, Preparation, Settings, analyse
from designopt_wholebody.trial.figures import JOINTS, joint_figures, joint_sizes, peak, rms, sticks, torque_noise
from designopt_wholebody.trial.landmarks import static_subject
from designopt_wholebody.trial.marker_set import OWN_NAMES, MarkerSet, read_marker_set

Array = NDArray[np.float64]

#: Segments by the beginning of their names, whose masses a design may scale together.
_GROUPS = {
    "trunk_mass": ("head", "thorax", "pelvis", "clavicle", "scapula"),
    "arm_mass": ("humerus", "ulna", "radius", "hand"),
    "leg_mass": ("thigh", "shank", "foot"),
}

#: Frames at each end whose derivatives and filters are less accurate.
_ENDS = 5


class Preparing(TypedDict, total=False):
    """How the trial is prepared; what is left out is as in the model's text."""

    preparation: Annotated[Preparation, Q("", "of coordinates, step by step")]
    cutoff: Annotated[float, Q("Hz", "of the filters", gt=0)]
    weighting: Annotated[Literal["lengths", "equal"], Q("", "of coordinates: by the segments' sizes, or all alike")]
    contact_weight: Annotated[float, Q("", "of segments that may touch plates in the search for consistency", gt=0)]
    hold_contacts: Annotated[Literal["no", "yes"], Q("", "whether centres of pressure keep their places")]
    body: Annotated[str, Q("", "bundled model of the body")]
    grip: Annotated[Literal["closed", "open"], Q("", "of the bundled push-up")]
    hidden: Annotated[str, Q("", "marker that is hidden in the middle half of the trial; none: no marker is")]
    trunk_mass: Annotated[float, Q("", "factor on head, thorax, girdle and pelvis", gt=0)]
    arm_mass: Annotated[float, Q("", "factor on arms and hands", gt=0)]
    leg_mass: Annotated[float, Q("", "factor on legs and feet", gt=0)]


class TrialOf(TypedDict, total=False):
    """A trial: files of a laboratory, or the bundled push-up without them."""

    recording: Annotated[InputFile, Q("", "C3D or TRC file of the trial")]
    static: Annotated[InputFile, Q("", "C3D or TRC file of the static posture")]
    mass: Annotated[float, Q("kg", "of the subject", gt=0)]
    seed: Annotated[int, Q("", "of the errors of the bundled push-up", ge=0)]


_MEANINGS = {
    "force": ("", "peak joint force of both sides, in body weights"),
    "compression": ("", "peak compression, in body weights"),
    "traction": ("", "peak traction, in body weights"),
    "shear": ("", "peak shear, in body weights"),
    "torque": ("N m/kg", "peak joint torque of both sides"),
    "off_axis": ("N m/kg", "peak torque perpendicular to the axis of a revolute joint"),
}

_FIGURES: dict[str, Any] = {
    "used": Annotated[float, Q("", "share of frames with joint loads")],
    "marker_distance": Annotated[float, Q("m", "RMS distance of landmarks from the measured ones")],
    "violation": Annotated[float, Q("m", "RMS norm of the constraints")],
    "iterations": Annotated[float, Q("", "mean of a frame's search for consistency; 0 without")],
    "residual_force": Annotated[float, Q("N", "RMS force that motion and plates leave unexplained")],
    "residual_force_peak": Annotated[float, Q("N", "its largest norm")],
    "residual_torque": Annotated[float, Q("N m", "RMS torque that motion and plates leave unexplained")],
    "residual_torque_peak": Annotated[float, Q("N m", "its largest norm")],
    "torque_noise": Annotated[float, Q("N m", "RMS of joint torques above the frequency noise_above")],
    "rebuilt_error": Annotated[float, Q("m", "RMS distance of the hidden marker from its rebuilt place; 0 without")],
    "force_error": Annotated[float, Q("N", "RMS error of joint forces; 0 for files, whose truth is not known")],
    "torque_error": Annotated[float, Q("N m", "RMS error of joint torques; 0 for files, whose truth is not known")],
    **{
        f"{joint}_{part}": Annotated[float, Q(unit, f"{joint}: {meaning}")]
        for joint in JOINTS
        for part, (unit, meaning) in _MEANINGS.items()
    },
}

TrialOutputs = TypedDict("TrialOutputs", _FIGURES)  # type: ignore[misc]

ARRAYS = {
    "time": ArrayOf(("time",), "s", "of the frames"),
    "angles": ArrayOf(("time", "angle"), "rad", "joint angles in the order of the model's file"),
    "forces": ArrayOf(("time", "joint", "axis"), "N", "joint forces, laboratory axes"),
    "torques": ArrayOf(("time", "joint", "axis"), "N m", "joint torques, laboratory axes"),
    "residual_forces": ArrayOf(("time", "axis"), "N", "on the root"),
    "residual_torques": ArrayOf(("time", "axis"), "N m", "on the root"),
    "distances": ArrayOf(("time",), "m", "RMS distance of landmarks from the measured ones"),
    "violations": ArrayOf(("time",), "m", "norm of the constraints"),
    "frame_iterations": ArrayOf(("time",), "", "of the search for consistency"),
    "status": ArrayOf(("time",), "", "of each frame; below 100 it has a result"),
    "torque_sizes": ArrayOf(("time", "joint"), "N m/kg", f"norms of joint torques, larger side: {', '.join(JOINTS)}"),
    "force_sizes": ArrayOf(("time", "joint"), "", f"norms of joint forces in body weights: {', '.join(JOINTS)}"),
    "sticks": ArrayOf(("time", "stick", "end", "axis"), "m", "lines from joint to joint"),
}


@model("wholebody_trial", version=1, arrays=ARRAYS)
class WholebodyTrial:
    """Inverse dynamics of the whole body in natural coordinates, from markers and force plates.

    Landmarks, gaps, filters, kinematic consistency, joint forces and torques, residual loads (Nunes 2017). Unless the
    design says otherwise: preparation filtered_consistent, cut-off 6 Hz, weighting lengths, contact weight 1, body
    wholebody21. A scenario with files is a trial of a laboratory; without them it is the bundled synthetic push-up,
    whose truth is known, with closed or open grip. Torque actuators give the least joint forces: muscles add to them.
    """

    marker_set: Annotated[InputFile | None, Q("", "landmarks by the markers of the files; names alike without")] = None
    cycles: Annotated[int, Q("", "of the bundled push-up", ge=1, le=100)] = 2
    rate: Annotated[float, Q("Hz", "of the bundled push-up", ge=20, le=1000)] = 50.0
    skin: Annotated[float, Q("m", "motion of markers on the skin in the bundled push-up", ge=0)] = 0.005
    noise: Annotated[float, Q("m", "white noise of markers in the bundled push-up", ge=0)] = 0.0003
    noise_above: Annotated[float, Q("Hz", "from which joint torques are noise", gt=0)] = 8.0
    inverse: Annotated[
        Literal["newton", "lagrange", "velocity_transformation"], Q("", "method of inverse dynamics; they agree")
    ] = "velocity_transformation"

    def check(self) -> None:
        """Raise `InvalidSetting` for a marker set that cannot be read."""
        _ = self._markers

    def prepare(self) -> None:
        """Read the marker set."""
        _ = self._markers

    @cached_property
    def _markers(self) -> MarkerSet:
        if self.marker_set is None:
            return OWN_NAMES
        try:
            return read_marker_set(self.marker_set.content, self.marker_set.name)
        except StudyError as error:
            first = error.issues[0]
            raise InvalidSetting("marker_set", f"line {first.line}, column {first.column}: {first.message}") from None

    def evaluate(
        self, design: Preparing, scenario: TrialOf, arrays: Set[str] = frozenset()
    ) -> tuple[TrialOutputs, dict[str, Array]]:
        """Analyse the trial."""
        body = _scaled(_model(design.get("body", "wholebody21")), design)
        try:
            subject, recording, truth = self._trial(body, design, scenario)
            settings = Settings(
                preparation=design.get("preparation", "filtered_consistent"),
                cutoff=float(design.get("cutoff", 6.0)),
                weighting=design.get("weighting", "lengths"),
                contact_weight=float(design.get("contact_weight", 1.0)),
                hold_contacts=design.get("hold_contacts", "no") == "yes",
                inverse=self.inverse,
            )
            markers = self._markers if "recording" in scenario else OWN_NAMES
            hidden = design.get("hidden", "none")
            seen = recording if hidden == "none" else _without(recording, hidden)
            found = analyse(subject, seen, settings, markers)
        except (RecordingError, SubjectError, ValueError) as error:
            raise InvalidDesign(str(error)) from None
        if not found.known.any():
            counts = ", ".join(str(status) for status in np.unique(found.status))
            raise Diverged(f"no frame has joint loads (statuses {counts})", reason="no_frames")
        outputs = self._outputs(found, recording, truth, _rebuilt_error(found, recording, seen))
        return outputs, self._arrays(found, arrays)

    def _trial(self, body: Model, design: Preparing, scenario: TrialOf) -> tuple[Subject, Recording, JointLoads | None]:
        if "recording" in scenario:
            static = scenario.get("static")
            if static is None:
                raise ValueError("a trial from a file needs the file of a static posture: static")
            recording = _read(scenario["recording"])
            mass = scenario.get("mass") or recording.parameters.get("Bodymass")
            if mass is None:
                raise ValueError("the recording does not tell the mass of the subject; give mass")
            return static_subject(body, _read(static), self._markers, float(mass)), recording, None
        made = pushup(
            design.get("grip", "closed"),
            cycles=self.cycles,
            rate=self.rate,
            skin=self.skin,
            noise=self.noise,
            seed=int(scenario.get("seed", 1)),
        )
        mass = float(scenario.get("mass", made.subject.mass))
        return make_subject(body, made.subject.landmarks, mass), made.recording, made.loads

    def _outputs(self, found: Analysis, recording: Recording, truth: JointLoads | None, rebuilt: float) -> TrialOutputs:
        inner = found.known.copy()
        inner[:_ENDS] = inner[-_ENDS:] = False
        force = np.linalg.norm(found.loads.residual_force[inner], axis=1)
        torque = np.linalg.norm(found.loads.residual_torque[inner], axis=1)
        search = found.consistency
        figures = {
            "used": float(found.known.mean()),
            "marker_distance": rms(found.landmark_distance[inner]),
            "violation": rms(found.violation[inner]),
            "iterations": 0.0 if search is None else float(search.iterations[search.usable].mean()),
            "residual_force": rms(force),
            "residual_force_peak": peak(force),
            "residual_torque": rms(torque),
            "residual_torque_peak": peak(torque),
            "torque_noise": torque_noise(found, recording.rate, min(self.noise_above, 0.45 * recording.rate)),
            "rebuilt_error": rebuilt,
            "force_error": 0.0 if truth is None else _error(found.loads, truth, 0, inner),
            "torque_error": 0.0 if truth is None else _error(found.loads, truth, 1, inner),
            **joint_figures(found, inner),
        }
        return TrialOutputs(**figures)  # type: ignore[typeddict-item, no-any-return]

    def _arrays(self, found: Analysis, wanted: Set[str]) -> dict[str, Array]:
        search = found.consistency
        frames = len(found.status)
        forces, torques = joint_sizes(found)
        made = {
            "time": found.motion.time,
            "angles": found.angles.values,
            "forces": found.loads.force,
            "torques": found.loads.torque,
            "residual_forces": found.loads.residual_force,
            "residual_torques": found.loads.residual_torque,
            "distances": found.landmark_distance,
            "violations": found.violation,
            "frame_iterations": np.zeros(frames) if search is None else search.iterations.astype(float),
            "status": found.status.astype(float),
            "torque_sizes": torques,
            "force_sizes": forces,
            "sticks": sticks(found),
        }
        return {name: made[name] for name in wanted}


def _without(recording: Recording, marker: str) -> Recording:
    """The recording with one marker missing in the middle half of its frames."""
    hidden = recording.marker(marker).copy()
    hidden[_middle(recording)] = np.nan
    markers = recording.markers.copy()
    markers[:, recording.marker_names.index(marker)] = hidden
    return replace(recording, markers=markers)


def _middle(recording: Recording) -> slice:
    frames = len(recording.time)
    return slice(frames // 4, frames - frames // 4)


def _rebuilt_error(found: Analysis, recording: Recording, seen: Recording) -> float:
    """RMS distance m of landmarks that were hidden from where they were measured."""
    squares = []
    for j, name in enumerate(recording.marker_names):
        hidden = np.isfinite(recording.markers[:, j, 0]) & ~np.isfinite(seen.markers[:, j, 0])
        if hidden.any() and name in found.landmarks.positions:
            away = found.landmarks.positions[name][hidden] - recording.markers[hidden, j]
            squares.append((away**2).sum(axis=1))
    if squares and not np.isfinite(np.concatenate(squares)).any():
        raise Diverged(
            "the hidden marker cannot be rebuilt: its segment has fewer than three other landmarks off a line",
            reason="not_rebuilt",
        )
    return float(np.sqrt(np.nanmean(np.concatenate(squares)))) if squares else 0.0


def _error(found: JointLoads, truth: JointLoads, part: int, inner: NDArray[np.bool_]) -> float:
    """RMS difference of the joints that both have."""
    both = [joint for joint in truth.joints if joint in found.joints]
    return rms(np.stack([(found.at(joint)[part] - truth.at(joint)[part])[inner] for joint in both]))


def _model(name: str) -> Model:
    if name not in bundled():
        raise InvalidDesign(f"there is no model '{name}'; there are {', '.join(bundled())}")
    return load_model(name)


def _scaled(body: Model, design: Mapping[str, Any]) -> Model:
    """The model with the masses of groups of segments scaled; tensors that are given scale with the mass."""
    segments = dict(body.segments)
    for group, beginnings in _GROUPS.items():
        factor = float(design.get(group, 1.0))
        for name, segment in segments.items():
            if factor != 1.0 and name.startswith(beginnings):
                i = segment.inertia
                changed = replace(
                    i,
                    mass=None if i.mass is None else factor * i.mass,
                    mass_percent=None if i.mass_percent is None else factor * i.mass_percent,
                    mass_less=factor * i.mass_less,
                    tensor=None if i.tensor is None else tuple(factor * value for value in i.tensor),  # type: ignore[arg-type]
                )
                segments[name] = replace(segment, inertia=changed)
    made = replace(body, segments=segments)
    object.__setattr__(made, "mirrored", body.mirrored)
    return made


@lru_cache(maxsize=16)
def _read_content(name: str, digest: str, file: InputFile) -> Recording:
    return read_recording(file)


def _read(file: InputFile) -> Recording:
    """A recording, read once per content."""
    return _read_content(file.name, file.digest, file)
