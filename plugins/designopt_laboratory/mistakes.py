"""Mistakes in the settings of a laboratory's study, all of them: unusable files, unknown names, contradictions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

from designopt_mechanics.robot_files.xml import ModelError, parse
from designopt_muscle.markers.tasks import read_ik_setup
from designopt_muscle.models.emg import MeasuredActivity
from designopt_muscle.models.errors import TrialError, readable
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
from designopt_laboratory.trial.subject import markers_on


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


def setting_mistakes(settings: LaboratorySettings) -> list[InvalidSetting]:
    """The mistakes in the settings of a model, at the entry or key that each is in."""
    mistakes = [*_unusable_files(settings), *_contradictions(settings)]
    try:
        skeleton = read_model(settings.model.content)
    except ModelError as error:
        return [InvalidSetting("model", f"{settings.model.name}: {error}"), *mistakes]
    return [*_last_step(settings, skeleton), *_names(settings, skeleton), *_feet(settings, skeleton), *mistakes]


def marker_mistakes(settings: LaboratorySettings, conditions: Mapping[str, Any]) -> list[InvalidSetting]:
    """Markers in the settings that the model of a trial does not have. Raises `TrialError` for unusable files."""
    if conditions.get("recording") is None or not (
        settings.marker_weights or settings.weighted_markers or settings.rename_markers
    ):
        return []
    subject = conditions.get("subject_model")
    model, marker_set = subject or settings.model, None if subject else settings.marker_set
    names = [marker.name for marker in markers_on(model, marker_set)]
    sentence = f"is not a marker of {(marker_set or model).name}"
    return [
        *_unknown("marker_weights", settings.marker_weights, names, sentence),
        *_unknown("weighted_markers", settings.weighted_markers, names, sentence),
        *(
            InvalidSetting("rename_markers", f"'{new}' {sentence}{nearest_or_all(new, names)}", key=name)
            for name, new in settings.rename_markers.items()
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


def _unusable_files(settings: LaboratorySettings) -> Iterator[InvalidSetting]:
    """Set-up files that are not what their setting says."""
    readers: tuple[tuple[str, InputFile | None, Callable[[bytes], object]], ...] = (
        ("scaling", settings.scaling, read_scale_setup),
        ("tasks", settings.tasks, read_ik_setup),
        ("marker_set", settings.marker_set, read_markers),
    )
    for setting, file, reader in readers:
        try:
            _ = None if file is None else reader(file.content)
        except ModelError as error:
            yield InvalidSetting(setting, f"{getattr(file, 'name', setting)}: {error}")


def _contradictions(settings: LaboratorySettings) -> Iterator[InvalidSetting]:
    """Two ways to scale, and a window without a duration."""
    for setting in ("scale_to_static", "measurements", "scale_factors"):
        if settings.scaling is not None and getattr(settings, setting):
            yield InvalidSetting(setting, "the set-up 'scaling' says how to scale: give one of the two")
    if settings.functional_joints and not (settings.scaling or settings.scale_to_static or settings.measurements):
        yield InvalidSetting(
            "functional_joints",
            "they are markers of the static pose: scale to it by scaling, scale_to_static or measurements",
        )
    if settings.window is not None and not settings.window[0] < settings.window[1]:
        yield InvalidSetting("window", f"from {settings.window[0]:g} to {settings.window[1]:g} s is empty")


def _last_step(settings: LaboratorySettings, skeleton: OsimModel) -> Iterator[InvalidSetting]:
    """A model that lacks what the last step needs."""
    if settings.until != "angles" and not sum(body.mass for body in skeleton.bodies) > 0.0:
        yield InvalidSetting("model", f"{settings.model.name} has no mass; the last step can be angles")
    if STEPS.index(settings.until) >= STEPS.index("forces") and not skeleton.muscles:
        yield InvalidSetting("until", f"{settings.model.name} has no muscle; the last step can be angles or moments")


def _names(settings: LaboratorySettings, skeleton: OsimModel) -> Iterator[InvalidSetting]:
    """Joints, coordinates, muscles and bodies that the model does not have."""
    bodies = [body.name for body in skeleton.bodies]
    reserve = settings.reserve if isinstance(settings.reserve, dict) else {}
    yield from _unknown("joints", settings.joints or [], [j.name for j in skeleton.joints], "is not a joint")
    yield from _unknown("coordinate_weights", settings.coordinate_weights, skeleton.free, "is not a free coordinate")
    yield from _unknown("reserve", reserve, skeleton.free, "is not a free coordinate")
    tracked_muscles = settings.emg.track if settings.emg else {}
    yield from _unknown("emg.track", tracked_muscles, [m.name for m in skeleton.muscles], "is not a muscle")
    yield from _unknown("scale_factors", settings.scale_factors, bodies, "is not a body of the model")
    for name, mistake in hinge_mistakes(skeleton, settings.functional_joints):
        yield InvalidSetting("functional_joints", mistake, key=name)
    yield from _scaled_bodies(settings, ["ground", *bodies])
    axes = ["child", "parent", "ground", *bodies]
    if settings.reaction_axes not in axes:
        near = nearest_or_all(settings.reaction_axes, axes)
        yield InvalidSetting("reaction_axes", f"'{settings.reaction_axes}' is not a body of the model{near}")
    yield from _measurements(settings, bodies)


def _scaled_bodies(settings: LaboratorySettings, bodies: list[str]) -> Iterator[InvalidSetting]:
    """Bodies with a factor by hand in a scaling set-up that the model does not have."""
    if settings.scaling is None:
        return
    try:
        manual = read_scale_setup(settings.scaling.content).manual
    except ModelError:  # a mistake of its own
        return
    sentence = "has a factor in <ScaleSet>, but is not a body of the model"
    for mistake in _unknown("scaling", manual, bodies, sentence):
        yield InvalidSetting("scaling", f"{settings.scaling.name}: {mistake.message}")


def _measurements(settings: LaboratorySettings, bodies: list[str]) -> Iterator[InvalidSetting]:
    """Measurements without pairs or bodies, and their markers, bodies and axes that are not there."""
    if not settings.measurements:
        return
    source, setting = (settings.model, "model") if settings.marker_set is None else (settings.marker_set, "marker_set")
    try:
        markers = [marker.name for marker in read_markers(source.content)]
        markers += [marker for name, joint in settings.functional_joints.items() for marker in joint.names(name)]
    except ModelError as error:
        if setting == "model":  # a marker set is read above
            yield InvalidSetting(setting, f"{source.name}: {error}")
        return
    for number, measurement in enumerate(settings.measurements):
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


def _feet(settings: LaboratorySettings, skeleton: OsimModel) -> Iterator[InvalidSetting]:
    """Bodies of feet that are not there, or of the other side."""
    bodies = [body.name for body in skeleton.bodies]
    for side, body in (settings.feet or {}).items():
        if side not in SIDES:
            yield InvalidSetting("feet", f"'{side}' is no side; write right and left", key=side)
        elif body not in bodies:
            near = nearest_or_all(body, sorted(bodies))
            yield InvalidSetting(f"feet.{side}", f"'{body}' is not a body of the model{near}")
        elif side_of(body)[1] not in ("", side):
            yield InvalidSetting(f"feet.{side}", f"'{body}' is by its name a body of the other side")
