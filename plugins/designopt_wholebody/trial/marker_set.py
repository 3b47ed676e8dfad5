"""Landmarks from the markers of a laboratory: a marker set as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Annotated

import numpy as np
from designopt_recordings.recording import Recording

from designopt.arrays import Array
from designopt.plugin import InputFile, closest
from designopt.plugin import Quantity as Q
from designopt.study.language.checking.values import check, checker
from designopt.study.language.errors import StudyError
from designopt.study.language.findings import issues
from designopt.study.language.yaml import parse_bytes


@dataclass(frozen=True)
class Offset:
    """A landmark beside markers: their mean, shifted by `by` metres along the direction between two markers."""

    at: Annotated[tuple[str, ...], Q("", "markers of which the mean is taken")]
    along: Annotated[tuple[str, str], Q("", "from the first marker to the second")]
    by: Annotated[float, Q("m", "shift")]


@dataclass(frozen=True)
class Inside:
    """A landmark in axes of markers: their mean, shifted by `by` metres forwards, upwards and to the right.

    To the right is the direction between two markers; forwards the one between two others, made perpendicular to it.
    Joint centres by regression (Harrington et al. 2007) are stated so.
    """

    at: Annotated[tuple[str, ...], Q("", "markers of which the mean is taken")]
    right: Annotated[tuple[str, str], Q("", "from the first marker to the second")]
    forward: Annotated[tuple[str, str], Q("", "from the first marker to the second")]
    by: Annotated[tuple[float, float, float], Q("m", "forwards, upwards, to the right")]


#: A marker, several of which the mean is the landmark, or a place beside or among them.
Placed = str | tuple[str, ...] | Offset | Inside


@dataclass(frozen=True)
class MarkerSet:
    """Where the landmarks of a model are by the markers of a recording.

    Landmarks that are not named have the names of markers.
    """

    marker_set: Annotated[str, Q("", "name")]
    landmarks: Annotated[Mapping[str, Placed], Q("", "by name")] = field(default_factory=dict)
    description: Annotated[str, Q("", "of the laboratory's markers")] = ""

    def placed(self, recording: Recording, names: tuple[str, ...]) -> dict[str, Array]:
        """(n, 3) positions m of the `names` landmarks in the recording; NaN for missing markers.

        Raises `ValueError` for a marker of this set that the recording lacks.
        """
        placed: dict[str, Array] = {}
        for name in names:
            if name in self.landmarks:
                placed[name] = self._position(recording, name, self.landmarks[name])
            elif name in recording.marker_names:
                placed[name] = recording.marker(name)
        return placed

    def _position(self, recording: Recording, landmark: str, placed: Placed) -> Array:
        def marker(name: str) -> Array:
            if name not in recording.marker_names:
                near = closest(name, recording.marker_names)
                hint = f"; did you mean '{near}'?" if near else ""
                raise ValueError(f"marker set '{self.marker_set}': no marker '{name}' for landmark '{landmark}'{hint}")
            return recording.marker(name)

        if isinstance(placed, str):
            return marker(placed)
        if isinstance(placed, tuple):
            return np.asarray(np.mean([marker(name) for name in placed], axis=0))
        middle = np.mean([marker(name) for name in placed.at], axis=0)
        if isinstance(placed, Offset):
            return np.asarray(middle + placed.by * _unit(marker(placed.along[1]) - marker(placed.along[0])))
        right = _unit(marker(placed.right[1]) - marker(placed.right[0]))
        ahead = marker(placed.forward[1]) - marker(placed.forward[0])
        ahead = _unit(ahead - np.einsum("fi,fi->f", ahead, right)[:, None] * right)
        x, y, z = placed.by
        return np.asarray(middle + x * ahead + y * np.cross(right, ahead) + z * right)


def _unit(lines: Array) -> Array:
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
