"""Mistakes in the settings of a laboratory's study, all of them: unusable files, unknown names, contradictions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

from designopt_mechanics.robot_files.xml import ModelError, parse
from designopt_muscle.markers.tasks import read_ik_setup
from designopt_muscle.models.emg import MeasuredActivity
from designopt_muscle.models.errors import TrialError
from designopt_muscle.osim.markers import read_markers
from designopt_muscle.osim.model import OsimModel
from designopt_muscle.osim.read import read_model
from designopt_muscle.scaling.setup import Measurement, read_scale_setup
from designopt_recordings.files.read import read_recording, read_table

from designopt.plugin import InputFile, InvalidSetting
from designopt.study.language.findings import nearest_or_all
from designopt_laboratory.curves.curves import side_of
from designopt_laboratory.trial.feet import SIDES
from designopt_laboratory.trial.functional import FunctionalJoint, hinge_mistakes
from designopt_laboratory.trial.steps import STEPS, Step
from designopt_laboratory.trial.subject import markers_on, readable


class LaboratorySettings(Protocol):
    """The settings of ``laboratory_trial`` that are checked."""

    model: InputFile
    scaling: InputFile | None
    measurements: list[Measurement]
    scale_to_static: bool
    scale_factors: dict[str, tuple[float, float, float]]
    functional_joints: dict[str, FunctionalJoint]
    marker_set: InputFile | None
    tasks: InputFile | None
    marker_weights: dict[str, float]
    rename_markers: dict[str, str]
    weighted_markers: list[str]
    coordinate_weights: dict[str, float]
    until: Step
    window: tuple[float, float] | None
    feet: dict[str, str] | None
    reserve: float | dict[str, float]
    emg: MeasuredActivity | None
    joints: list[str] | None
    reaction_axes: str


def setting_mistakes(trial: LaboratorySettings) -> list[InvalidSetting]:
    """The mistakes in the settings of a model, at the entry or key that each is in."""
    mistakes = [*_unusable(trial), *_contradictions(trial)]
    try:
        skeleton = read_model(trial.model.content)
    except ModelError as error:
        return [InvalidSetting("model", f"{trial.model.name}: {error}"), *mistakes]
    return [*_last_step(trial, skeleton), *_names(trial, skeleton), *_feet(trial, skeleton), *mistakes]


def marker_mistakes(trial: LaboratorySettings, conditions: Mapping[str, Any]) -> list[InvalidSetting]:
    """Markers in the settings that the model of a trial does not have. Raises `TrialError` for unusable files."""
    if conditions.get("recording") is None or not (
        trial.marker_weights or trial.weighted_markers or trial.rename_markers
    ):
        return []
    subject = conditions.get("subject_model")
    model, marker_set = subject or trial.model, None if subject else trial.marker_set
    names = [marker.name for marker in markers_on(model, marker_set)]
    sentence = f"is not a marker of {(marker_set or model).name}"
    return [
        *_unknown("marker_weights", trial.marker_weights, names, sentence),
        *_unknown("weighted_markers", trial.weighted_markers, names, sentence),
        *(
            InvalidSetting("rename_markers", f"'{new}' {sentence}{nearest_or_all(new, names)}", key=name)
            for name, new in trial.rename_markers.items()
            if new not in names
        ),
    ]


def unusable_files(conditions: Mapping[str, Any]) -> list[InvalidSetting]:
    """The files of a trial that cannot be read, each with its reason."""
    readers: dict[str, Callable[[InputFile], object]] = {
        "recording": read_recording,
        "static": read_recording,
        "motion": read_table,
        "targets": read_table,
        "reactions": read_table,
        "external_loads": lambda file: parse(file.content),
        "emg": lambda file: (read_recording if file.name.lower().endswith(".c3d") else read_table)(file),
        "subject_model": lambda file: read_model(file.content),
    }
    files = [(name, reader, conditions[name]) for name, reader in readers.items() if conditions.get(name) is not None]
    files += [("functional", read_recording, file) for file in conditions.get("functional", ())]
    mistakes = []
    for name, reader, file in files:
        try:
            with readable(file):
                reader(file)
        except TrialError as error:
            mistakes.append(InvalidSetting(name, str(error)))
    return mistakes


def _unknown(setting: str, entries: Iterable[str], names: Iterable[str], sentence: str) -> Iterator[InvalidSetting]:
    """A mistake for each entry or key of a setting that is none of `names`."""
    for number, name in enumerate(entries):
        if name not in names:
            message = f"'{name}' {sentence}{nearest_or_all(name, sorted(names))}"
            if isinstance(entries, list):
                yield InvalidSetting(f"{setting}.{number}", message)
            else:
                yield InvalidSetting(setting, message, key=name)


def _unusable(trial: LaboratorySettings) -> Iterator[InvalidSetting]:
    """Set-up files that are not what their setting says."""
    readers: tuple[tuple[str, InputFile | None, Callable[[bytes], object]], ...] = (
        ("scaling", trial.scaling, read_scale_setup),
        ("tasks", trial.tasks, read_ik_setup),
        ("marker_set", trial.marker_set, read_markers),
    )
    for setting, file, reader in readers:
        try:
            _ = None if file is None else reader(file.content)
        except ModelError as error:
            yield InvalidSetting(setting, f"{getattr(file, 'name', setting)}: {error}")


def _contradictions(trial: LaboratorySettings) -> Iterator[InvalidSetting]:
    """Two ways to scale, and a window without a duration."""
    for setting in ("scale_to_static", "measurements", "scale_factors"):
        if trial.scaling is not None and getattr(trial, setting):
            yield InvalidSetting(setting, "the set-up 'scaling' says how to scale: give one of the two")
    if trial.functional_joints and not (trial.scaling or trial.scale_to_static or trial.measurements):
        yield InvalidSetting(
            "functional_joints",
            "they are markers of the static pose: scale to it by scaling, scale_to_static or measurements",
        )
    if trial.window is not None and not trial.window[0] < trial.window[1]:
        yield InvalidSetting("window", f"from {trial.window[0]:g} to {trial.window[1]:g} s is empty")


def _last_step(trial: LaboratorySettings, skeleton: OsimModel) -> Iterator[InvalidSetting]:
    """A model that lacks what the last step needs."""
    if trial.until != "angles" and not sum(body.mass for body in skeleton.bodies) > 0.0:
        yield InvalidSetting("model", f"{trial.model.name} has no mass; the last step can be angles")
    if STEPS.index(trial.until) >= STEPS.index("forces") and not skeleton.muscles:
        yield InvalidSetting("until", f"{trial.model.name} has no muscle; the last step can be angles or moments")


def _names(trial: LaboratorySettings, skeleton: OsimModel) -> Iterator[InvalidSetting]:
    """Joints, coordinates, muscles and bodies that the model does not have."""
    bodies = [body.name for body in skeleton.bodies]
    reserve = trial.reserve if isinstance(trial.reserve, dict) else {}
    yield from _unknown("joints", trial.joints or [], [j.name for j in skeleton.joints], "is not a joint")
    yield from _unknown("coordinate_weights", trial.coordinate_weights, skeleton.free, "is not a free coordinate")
    yield from _unknown("reserve", reserve, skeleton.free, "is not a free coordinate")
    tracked_muscles = trial.emg.track if trial.emg else {}
    yield from _unknown("emg.track", tracked_muscles, [m.name for m in skeleton.muscles], "is not a muscle")
    yield from _unknown("scale_factors", trial.scale_factors, bodies, "is not a body of the model")
    for name, mistake in hinge_mistakes(skeleton, trial.functional_joints):
        yield InvalidSetting("functional_joints", mistake, key=name)
    yield from _scaled_bodies(trial, ["ground", *bodies])
    axes = ["child", "parent", "ground", *bodies]
    if trial.reaction_axes not in axes:
        near = nearest_or_all(trial.reaction_axes, axes)
        yield InvalidSetting("reaction_axes", f"'{trial.reaction_axes}' is not a body of the model{near}")
    yield from _measurements(trial, bodies)


def _scaled_bodies(trial: LaboratorySettings, bodies: list[str]) -> Iterator[InvalidSetting]:
    """Bodies with a factor by hand in a scaling set-up that the model does not have."""
    if trial.scaling is None:
        return
    try:
        manual = read_scale_setup(trial.scaling.content).manual
    except ModelError:  # a mistake of its own
        return
    sentence = "has a factor in <ScaleSet>, but is not a body of the model"
    for mistake in _unknown("scaling", manual, bodies, sentence):
        yield InvalidSetting("scaling", f"{trial.scaling.name}: {mistake.message}")


def _measurements(trial: LaboratorySettings, bodies: list[str]) -> Iterator[InvalidSetting]:
    """Measurements without pairs or bodies, and their markers, bodies and axes that are not there."""
    if not trial.measurements:
        return
    source, setting = (trial.model, "model") if trial.marker_set is None else (trial.marker_set, "marker_set")
    try:
        markers = [marker.name for marker in read_markers(source.content)]
        markers += [marker for name, joint in trial.functional_joints.items() for marker in joint.names(name)]
    except ModelError as error:
        if setting == "model":  # a marker set is read above
            yield InvalidSetting(setting, f"{source.name}: {error}")
        return
    for number, measurement in enumerate(trial.measurements):
        position = f"measurements.{number}"
        if not measurement.pairs or not measurement.bodies:
            missing = "bodies" if measurement.pairs else "pairs"
            yield InvalidSetting(f"{position}.{missing}", f"'{measurement.name}' has none")
        for row, pair in enumerate(measurement.pairs):
            yield from _unknown(f"{position}.pairs.{row}", list(pair), markers, f"is not a marker of {source.name}")
        yield from _unknown(f"{position}.bodies", measurement.bodies, bodies, "is not a body of the model")
        for body, axes in measurement.bodies.items():
            if body in bodies and (not axes or set(axes) - set("XYZ") or len(set(axes)) < len(axes)):
                yield InvalidSetting(
                    f"{position}.bodies.{body}", f"'{axes}' are not axes: write XYZ or some of the three letters"
                )


def _feet(trial: LaboratorySettings, skeleton: OsimModel) -> Iterator[InvalidSetting]:
    """Bodies of feet that are not there, or of the other side."""
    bodies = [body.name for body in skeleton.bodies]
    for side, body in (trial.feet or {}).items():
        if side not in SIDES:
            yield InvalidSetting("feet", f"'{side}' is no side; write right and left", key=side)
        elif body not in bodies:
            near = nearest_or_all(body, sorted(bodies))
            yield InvalidSetting(f"feet.{side}", f"'{body}' is not a body of the model{near}")
        elif side_of(body)[1] not in ("", side):
            yield InvalidSetting(f"feet.{side}", f"'{body}' is by its name a body of the other side")
