"""Landmarks from the markers of a laboratory: a marker set as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
from designopt_recordings.recording import Recording

from designopt.arrays import Floats
from designopt.plugin import InputFile, closest
from designopt.plugin import Quantity as Q
from designopt.study.language.checking.values import check, checker
from designopt.study.language.errors import StudyError
from designopt.study.language.findings import issues
from designopt.study.language.yaml import parse_bytes
from designopt_wholebody.model.schema import BodyModel
from designopt_wholebody.trial.functional import carried, functional_joint, in_cluster


@dataclass(frozen=True)
class Offset:
    """A landmark beside markers: their mean, shifted by `by` metres along the direction between two markers."""

    at: Annotated[tuple[str, ...], Q("", "markers of which the mean is taken")]
    along: Annotated[tuple[str, str], Q("", "from the first marker to the second")]
    by: Annotated[float, Q("m", "shift")]


@dataclass(frozen=True)
class InsideLandmark:
    """A landmark in axes of markers: their mean, shifted by `by` metres forwards, upwards and to the right.

    To the right is the direction between two markers; forwards the one between two others, made perpendicular to it.
    """

    at: Annotated[tuple[str, ...], Q("", "markers of which the mean is taken")]
    right: Annotated[tuple[str, str], Q("", "from the first marker to the second")]
    forward: Annotated[tuple[str, str], Q("", "from the first marker to the second")]
    by: Annotated[tuple[float, float, float], Q("m", "forwards, upwards, to the right")]


@dataclass(frozen=True)
class HipCentre:
    """The centre of a hip by regression on the size of the pelvis, in its axes from the middle of the anterior spines.

    Sizes are medians over the recording of the width between the anterior spines and the depth to the middle of the
    posterior ones (or the sacrum), and of the length of the leg along its markers.
    """

    hip_centre: Annotated[
        Literal["harrington", "harrington_leg", "bell"],
        Q("", "Harrington et al. (2007) by the pelvis or by pelvis and leg, Bell et al. (1990)"),
    ]
    side: Annotated[Literal["right", "left"], Q("", "of the hip")]
    anterior: Annotated[tuple[str, str], Q("", "markers on the anterior superior iliac spines, left and right")]
    posterior: Annotated[tuple[str, ...], Q("", "markers on the posterior ones, or on the sacrum")]
    leg: Annotated[
        tuple[str, ...],
        Q("", "for harrington_leg: markers from the anterior spine to the medial malleolus, by the knee if it bends"),
    ] = ()

    def __post_init__(self) -> None:
        if (self.hip_centre == "harrington_leg") != bool(self.leg) or len(self.leg) == 1:
            raise ValueError(
                "harrington_leg, and no other regression, has a leg: markers from the anterior spine to the malleolus"
            )

    def offset(self, width: float, depth: float, leg: float = 0.0) -> tuple[float, float, float]:
        """m forwards, upwards and to the right for a pelvis of `width` and `depth` m and a `leg` of m.

        Harrington, Zavatsky, Lawson, Yuan & Theologis, J. Biomech. 40 (2007) 595 (each by one size, or by several with
        the leg's); Bell, Pedersen & Brand, J. Biomech. 23 (1990) 617.
        """
        sign = 1.0 if self.side == "right" else -1.0
        if self.hip_centre == "harrington_leg":
            down, out = 0.16 * width + 0.04 * leg + 0.0071, 0.28 * depth + 0.16 * width + 0.0079
            return -0.24 * depth - 0.0099, -down, sign * out
        if self.hip_centre == "bell":
            return -0.19 * width, -0.30 * width, sign * 0.36 * width
        return -0.24 * depth - 0.0099, -0.30 * width - 0.0109, sign * (0.33 * width + 0.0073)


@dataclass(frozen=True)
class FunctionalLandmark:
    """The centre of a joint, or a point on its axis, by a recorded movement (`functional_joint`); the proximal markers
    carry it. On an axis it is the point nearest to the marker `near`, shifted by `by` m along the axis, whose direction
    is the one nearest to that between the two markers `along`."""

    functional: Annotated[Literal["centre", "axis"], Q("", "of a ball joint, or of a hinge")]
    proximal: Annotated[tuple[str, ...], Q("", "three or more markers fixed to the proximal segment")]
    distal: Annotated[tuple[str, ...], Q("", "three or more markers fixed to the distal segment")]
    near: Annotated[str, Q("", "of an axis: a marker beside the landmark")] = ""
    along: Annotated[tuple[str, str] | None, Q("", "of an axis: from the first marker to the second")] = None
    by: Annotated[float, Q("m", "of an axis: shift along it")] = 0.0

    def __post_init__(self) -> None:
        if (self.functional == "axis") != bool(self.near):
            raise ValueError("a point on an axis, and no centre, has near: the marker beside it")
        if (self.along is None) != (self.by == 0.0) or (self.by and not self.near):
            raise ValueError("a shift along an axis has both by (m) and along (two markers)")


@dataclass(frozen=True, eq=False)
class CarriedLandmark:
    """A landmark at `point` (3,) m in the axes of `markers` with the shape `reference` (k, 3) m."""

    markers: tuple[str, ...]
    reference: Floats
    point: Floats


#: A marker, several of which the mean is the landmark, or a place beside or among them.
Placed = str | tuple[str, ...] | Offset | InsideLandmark | HipCentre | FunctionalLandmark


@dataclass(frozen=True)
class MarkerSet:
    """Where the landmarks of a model are by the markers of a recording.

    Landmarks that are not named have the names of markers. Markers of technical `clusters` are further landmarks of
    their segments: they carry, by rigid fits, the landmarks whose markers only the `static` posture has (CAST:
    Cappozzo, Catani, Della Croce & Leardini, Clin. Biomech. 10 (1995) 171).
    """

    marker_set: Annotated[str, Q("", "name")]
    landmarks: Annotated[Mapping[str, Placed], Q("", "by name")] = field(default_factory=dict)
    description: Annotated[str, Q("", "of the laboratory's markers")] = ""
    clusters: Annotated[Mapping[str, tuple[str, ...]], Q("", "markers fixed to a segment, by segment")] = field(
        default_factory=dict
    )
    static: Annotated[tuple[str, ...], Q("", "markers that a trial may lack: those of the static posture alone")] = ()

    def calibrate(self, movement: Recording | None) -> MarkerSet:
        """The set with its functional joints at the places that a `movement` gives, on the markers that carry them.

        Raises `ValueError` for a missing movement, and for one that does not determine them.
        """
        functional = {
            name: landmark for name, landmark in self.landmarks.items() if isinstance(landmark, FunctionalLandmark)
        }
        if functional and movement is None:
            raise ValueError(
                f"landmark '{next(iter(functional))}' is functional: name a recording of its joint's movement with"
                " functional"
            )
        joints: dict[str, CarriedLandmark] = {}
        for name, landmark in functional.items():
            assert movement is not None
            try:
                joints[name] = _calibrate(landmark, movement)
            except ValueError as error:
                raise ValueError(f"marker set '{self.marker_set}': landmark '{name}': {error}") from None
        return replace(self, landmarks={**self.landmarks, **joints})  # type: ignore[dict-item]

    def with_clusters(self, model: BodyModel) -> BodyModel:
        """The model with the markers of the clusters as landmarks. Raises `ValueError` for an unknown segment."""
        segments, landmarks = dict(model.segments), dict(model.landmarks)
        for name, members in self.clusters.items():
            if name not in segments:
                near = closest(name, segments)
                hint = f"; did you mean '{near}'?" if near else f" ({', '.join(segments)})"
                raise ValueError(f"marker set '{self.marker_set}': the model has no segment '{name}'{hint}")
            origin = landmarks.get(segments[name].points[0], (0.0, 0.0, 0.0))
            landmarks |= {marker: origin for marker in members if marker not in landmarks}
            segments[name] = replace(segments[name], landmarks=(*segments[name].landmarks, *members))
        extended_model = replace(model, segments=segments, landmarks=landmarks)
        object.__setattr__(extended_model, "mirrored", model.mirrored)
        return extended_model

    def place_landmarks(self, recording: Recording, names: tuple[str, ...]) -> dict[str, Floats]:
        """(n, 3) positions m of the `names` landmarks in the recording; NaN for missing markers.

        Landmarks by markers of the static posture that the recording lacks are left out. Raises `ValueError` for other
        markers of this set that it lacks.
        """
        positions: dict[str, Floats] = {}
        absent = set(self.static) - set(recording.marker_names)
        for name in names:
            if name in self.landmarks:
                if absent & set(_markers_of(self.landmarks[name])):
                    continue
                positions[name] = self._position(recording, name, self.landmarks[name])
            elif name in recording.marker_names:
                positions[name] = recording.marker(name)
        return positions

    def _position(self, recording: Recording, landmark: str, source: Placed | CarriedLandmark) -> Floats:
        def marker(name: str) -> Floats:
            if name not in recording.marker_names:
                near = closest(name, recording.marker_names)
                hint = f"; did you mean '{near}'?" if near else ""
                raise ValueError(f"marker set '{self.marker_set}': no marker '{name}' for landmark '{landmark}'{hint}")
            return recording.marker(name)

        if isinstance(source, str):
            return marker(source)
        if isinstance(source, tuple):
            return np.asarray(np.mean([marker(name) for name in source], axis=0))
        if isinstance(source, HipCentre):
            left, right = (marker(name) for name in source.anterior)
            middle = 0.5 * (left + right)
            ahead = middle - np.mean([marker(name) for name in source.posterior], axis=0)
            width, depth = (_size(line) for line in (right - left, ahead))
            leg = sum(_size(marker(b) - marker(a)) for a, b in pairwise(source.leg))
            return _offset_position(middle, right - left, ahead, source.offset(width, depth, leg))
        if isinstance(source, CarriedLandmark):
            return carried(source.reference, np.stack([marker(name) for name in source.markers], axis=1), source.point)
        if isinstance(source, FunctionalLandmark):
            raise ValueError(f"landmark '{landmark}' is functional: call calibrated with a recording of its movement")
        middle = np.mean([marker(name) for name in source.at], axis=0)
        if isinstance(source, Offset):
            return np.asarray(middle + source.by * _unit(marker(source.along[1]) - marker(source.along[0])))
        right, ahead = (marker(pair[1]) - marker(pair[0]) for pair in (source.right, source.forward))
        return _offset_position(middle, right, ahead, source.by)


def _calibrate(source: FunctionalLandmark, movement: Recording) -> CarriedLandmark:
    """The landmark on the proximal markers."""
    joint = functional_joint(movement, source.proximal, source.distal, hinge=source.functional == "axis")
    if not source.near:
        return CarriedLandmark(source.proximal, joint.shape, joint.point)
    for name in (source.near, *(source.along or ())):
        if name not in movement.marker_names:
            raise ValueError(f"the movement has no marker '{name}'")
    cluster = np.stack([movement.marker(name) for name in source.proximal], axis=1)
    beside = in_cluster(joint.shape, cluster, movement.marker(source.near))
    point = joint.point + ((beside - joint.point) @ joint.axis) * joint.axis
    if source.along is not None:
        first, second = (in_cluster(joint.shape, cluster, movement.marker(name)) for name in source.along)
        point = point + np.sign((second - first) @ joint.axis) * source.by * joint.axis
    return CarriedLandmark(source.proximal, joint.shape, np.asarray(point))


def _markers_of(source: Placed | CarriedLandmark) -> tuple[str, ...]:
    """The markers by which a landmark is placed."""
    if isinstance(source, str):
        return (source,)
    if isinstance(source, tuple):
        return source
    if isinstance(source, HipCentre):
        return (*source.anterior, *source.posterior, *source.leg)
    if isinstance(source, CarriedLandmark):
        return source.markers
    if isinstance(source, FunctionalLandmark):
        return source.proximal
    directions = (source.along,) if isinstance(source, Offset) else (source.right, source.forward)
    return (*source.at, *(marker for pair in directions for marker in pair))


def _offset_position(middle: Floats, right: Floats, forward: Floats, by: tuple[float, float, float]) -> Floats:
    """(n, 3) places beside `middle` by m forwards, upwards and to the right; forwards is made perpendicular."""
    right = _unit(right)
    ahead = _unit(forward - np.einsum("fi,fi->f", forward, right)[:, None] * right)
    x, y, z = by
    return np.asarray(middle + x * ahead + y * np.cross(right, ahead) + z * right)


def _size(lines: Floats) -> float:
    """Median length (m) of lines (n, 3); NaN where none is complete."""
    lengths = np.linalg.norm(lines, axis=1)
    finite = lengths[np.isfinite(lengths)]
    return float(np.median(finite)) if len(finite) else float("nan")


def _unit(lines: Floats) -> Floats:
    """(n, 3) directions of lines; NaN for those without length."""
    length = np.linalg.norm(lines, axis=1, keepdims=True)
    return np.asarray(lines / np.where(length > 0.0, length, np.nan))


#: Markers with the names of landmarks.
OWN_NAMES = MarkerSet("own_names")


def bundled_marker_sets() -> tuple[str, ...]:
    """Names of the marker sets that come with the package; in own_names markers are called as landmarks."""
    folder = files("designopt_wholebody.trial").joinpath("marker_sets")
    return (OWN_NAMES.marker_set, *sorted(p.name.removesuffix(".yaml") for p in folder.iterdir()))


def bundled_marker_set(name: str) -> MarkerSet:
    """A bundled marker set; raises `KeyError` with a sentence for an unknown name."""
    names = bundled_marker_sets()
    if name not in names:
        near = closest(name, names)
        hint = f"did you mean '{near}'?" if near else f"known: {', '.join(names)}"
        raise KeyError(f"there is no marker set '{name}'; {hint}")
    if name == OWN_NAMES.marker_set:
        return OWN_NAMES
    file = files("designopt_wholebody.trial").joinpath("marker_sets", f"{name}.yaml")
    return read_marker_set(file.read_bytes(), f"{name}.yaml")


def read_marker_set(content: bytes, name: str) -> MarkerSet:
    """The marker set in a file called `name`; raises `StudyError` with lines and columns of all that is wrong."""
    root = parse_bytes(content, name)

    def no_files(name: str) -> InputFile:
        raise ValueError(f"a marker set takes no other files; '{name}' cannot be read")

    marker_set, findings = check(checker(MarkerSet), root.data(), no_files)
    if findings:
        raise StudyError(issues(findings, root))
    assert isinstance(marker_set, MarkerSet)
    return marker_set
