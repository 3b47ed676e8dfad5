"""What the files of a folder are: models, set-ups, static poses, trials, ground reactions."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePath

import numpy as np
from designopt_mechanics.robot_files.xml import ModelError, parse
from designopt_muscle.models.columns import present_coordinates
from designopt_muscle.osim.model import OsimModel
from designopt_muscle.osim.read import read_model
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.read import read_recording, read_table
from designopt_recordings.loads.tables import ground_reactions
from designopt_recordings.recording import Recording

from designopt.plugin import InputFile

#: Roots of OpenSim's set-up files, and what they are here.
_SETUPS = {
    "ScaleTool": "scaling",
    "InverseKinematicsTool": "tasks",
    "IKTaskSet": "tasks",
    "InverseDynamicsTool": "filter",
    "ExternalLoads": "external_loads",
    "MarkerSet": "marker_set",
}
#: Roots of others, and why they are not read.
_OTHER_SETUPS = {
    "ForceSet": "actuators are the setting reserve here",
    "AnalyzeTool": "criterion and cut-off are inputs of designs here",
}
_STATIC = re.compile(
    r"static|stat(?=[_\W\d]|$)|standing|t[_-]?pose|neutral|calib|(?<![a-z])cal(?=[_\W\d]|$)", re.IGNORECASE
)
_FUNCTIONAL = re.compile(r"functional|(?<![a-z])(func|star_?arc|circumduction)(?![a-z])", re.IGNORECASE)
#: Travel of the median marker (m) below which a recording without a telling name is a static pose.
_STILL = 0.05
#: Folders that are not searched, and the largest number of files that are.
_SKIPPED, _MOST = {"results", "__pycache__"}, 2000
#: Ends of the names of studies and their stores, which are no files of a laboratory.
_STUDIES = (".study", ".yaml", ".yml")
#: Columns of a table that must be coordinates of the model, for it to be a motion.
_COORDINATES = 3


@dataclass(frozen=True, eq=False)
class FolderContents:
    """All `files` below a folder, and by kind, as paths relative to it; `recordings` are of `statics`, `movements` of
    functional joints and `trials`.

    `reactions` are tables of ground reactions, `motions` tables of coordinates, `setups` by kind OpenSim's XML files;
    `unused_files` says why a file is of no use.
    """

    files: list[str] = field(default_factory=list)
    models: dict[str, OsimModel] = field(default_factory=dict)
    setups: dict[str, list[str]] = field(default_factory=dict)
    statics: list[str] = field(default_factory=list)
    movements: list[str] = field(default_factory=list)
    trials: list[str] = field(default_factory=list)
    recordings: dict[str, Recording] = field(default_factory=dict)
    reactions: list[str] = field(default_factory=list)
    motions: list[str] = field(default_factory=list)
    loads_tables: dict[str, str] = field(default_factory=dict)
    unused_files: dict[str, str] = field(default_factory=dict)


def contents_of(folder: Path) -> FolderContents:
    """The files below `folder`, read to tell what they are. Raises `ValueError` for a folder with too many files."""
    files = _files(folder)
    contents = FolderContents(files)
    if len(files) > _MOST:
        raise ValueError(f"{folder} has {len(files)} files; name the folder of one study, with at most {_MOST}")
    for name in files:
        if name.lower().endswith(".osim"):
            _model(folder, name, contents)
    for name in files:
        suffix = Path(name).suffix.lower()
        if suffix in (".c3d", ".trc"):
            _recording(folder, name, contents)
        elif suffix == ".xml":
            _setup(folder, name, contents)
        elif suffix in (".mot", ".sto", ".csv"):
            _table(folder, name, contents)
        elif suffix != ".osim":
            contents.unused_files[name] = f"files {suffix or 'without a suffix'} are not read here"
    _leave_out_still_trials(contents)
    return contents


def _leave_out_still_trials(contents: FolderContents) -> None:
    """Leave out recordings without motion in a folder where another recording has the name of a static pose."""
    static_names = {_folder(name): name for name in contents.statics if _STATIC.search(Path(name).stem)}
    for name in [n for n in contents.statics if not _STATIC.search(Path(n).stem) and _folder(n) in static_names]:
        contents.statics.remove(name)
        contents.unused_files[name] = f"nothing moves in it, and the static pose is {static_names[_folder(name)]}"


def unreadable_statics(contents: FolderContents) -> dict[str, str]:
    """Unusable recordings with the names of static poses, in folders without another static pose, with the reasons."""
    with_static = {_folder(name) for name in contents.statics}
    recordings = [name for name in contents.unused_files if Path(name).suffix.lower() in (".c3d", ".trc")]
    return {
        name: contents.unused_files[name]
        for name in recordings
        if _STATIC.search(Path(name).stem) and _folder(name) not in with_static
    }


def _files(folder: Path) -> list[str]:
    names = []
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        hidden = any(part.startswith(".") or part in _SKIPPED or part.endswith(_STUDIES) for part in parts)
        if path.is_file() and not hidden:
            names.append("/".join(parts))
    return names


def _model(folder: Path, name: str, contents: FolderContents) -> None:
    try:
        contents.models[name] = read_model((folder / name).read_bytes())
    except ModelError as error:
        contents.unused_files[name] = f"cannot be used as a model: {error}"


def _recording(folder: Path, name: str, contents: FolderContents) -> None:
    try:
        recording = read_recording(InputFile.at(folder / name, name))
    except RecordingError as error:
        contents.unused_files[name] = str(error).removeprefix(f"{name}: ")
        return
    if not recording.marker_names:
        contents.unused_files[name] = "has no markers"
        return
    if not np.isfinite(recording.markers).all(axis=2).any():
        contents.unused_files[name] = "has no marker in any frame"
        return
    contents.recordings[name] = recording
    if _FUNCTIONAL.search(Path(name).stem):
        contents.movements.append(name)
    else:
        (contents.statics if _is_static(name, recording) else contents.trials).append(name)


def _is_static(name: str, recording: Recording) -> bool:
    if _STATIC.search(Path(name).stem):
        return True
    with np.errstate(all="ignore"):
        finite = recording.markers[:, np.isfinite(recording.markers).any(axis=(0, 2))]
        travel = np.nanmax(finite, axis=0) - np.nanmin(finite, axis=0)
    return bool(np.median(np.linalg.norm(travel, axis=1)) < _STILL)


def _setup(folder: Path, name: str, contents: FolderContents) -> None:
    try:
        root = parse((folder / name).read_bytes())
    except ModelError as error:
        contents.unused_files[name] = str(error)
        return
    for tag, kind in _SETUPS.items():
        element = root.find(tag) if root.tag == "OpenSimDocument" else None
        if element is not None:
            contents.setups.setdefault(kind, []).append(name)
            if tag == "ExternalLoads":
                contents.loads_tables[name] = Path(element.word("datafile").replace("\\", "/")).name
            return
    why = next((reason for tag, reason in _OTHER_SETUPS.items() if root.find(tag) is not None), "")
    contents.unused_files[name] = why or f"no set-up that is read here ({', '.join(_SETUPS)})"


def _table(folder: Path, name: str, contents: FolderContents) -> None:
    try:
        table = read_table(InputFile.at(folder / name, name))
    except RecordingError as error:
        contents.unused_files[name] = str(error).removeprefix(f"{name}: ")
        return
    if ground_reactions(table) or name.split("/")[-1] in contents.loads_tables.values():
        contents.reactions.append(name)
    elif any(len(present_coordinates(table, model.free)) >= _COORDINATES for model in contents.models.values()):
        contents.motions.append(name)
    else:
        contents.unused_files[name] = "neither coordinates of a model nor ground reactions"


def in_same_folder(name: str, candidates: Iterable[str]) -> list[str]:
    """The candidates in the folder of a trial; those in folders above it if that has none."""
    folder, candidate_names = PurePath(name).parent, list(candidates)
    within = [c for c in candidate_names if PurePath(c).parent == folder]
    return within or [c for c in candidate_names if folder.is_relative_to(PurePath(c).parent)]


def partner(name: str, candidates: Iterable[str], trials: Collection[str]) -> str | None:
    """The candidate whose name is most like that of a trial: in the same folder, or the nearest above, with the longest
    common beginning; None where none shares a word with it, unless it is the only one for a single trial, and where
    another one of the `trials` there is more like it.
    """
    folder, near = _folder(name), in_same_folder(name, candidates)
    if not near:
        return None
    rivals = [trial for trial in trials if _folder(trial) == folder]
    if len(near) == 1 and len(rivals) < 2:
        return near[0]
    best = min(near, key=lambda c: (-_common_letters(name, c), len(c), c))
    likest = max(_common_letters(trial, best) for trial in (name, *rivals))
    return best if _common_letters(name, best) == likest and likest >= min(3, len(Path(name).stem)) else None


def _folder(name: str) -> str:
    return name.rpartition("/")[0]


def _common_letters(file: str, another: str) -> int:
    """Letters at the beginning that the names of two files share."""
    pairs = zip(Path(file).stem.lower(), Path(another).stem.lower(), strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


#: Files of a kind that are named one by one.
_NAMED = 3
#: Why a file of a kind has no effect.
_REASONS = {
    "models": "another model is used",
    "scaling": "another set-up scales the model, or there is no static pose",
    "tasks": "another file has the weights of the markers",
    "marker_set": "another file has the markers on the bodies",
    "statics": "no trial needs this static pose: the model is not scaled, or another one is nearer",
    "movements": "no ball joint of a model that is scaled has three markers of each side in it and in the static pose",
    "trials": "is no scenario",
    "motions": "the trials have markers",
    "reactions": "no trial has a name like this, or the trials have force plates",
    "filter": "another set-up has the cut-off, or no moments are computed",
}


def unused_files(contents: FolderContents, used_files: Collection[str]) -> list[str]:
    """A sentence on each file that is none of `used_files`; many files with the same reason and suffix share one."""
    kinds = {name: kind for kind, names in _kinds(contents).items() for name in names}
    reasons: dict[tuple[str, str], list[str]] = {}
    for file in contents.files:
        if file not in used_files:
            reason = contents.unused_files.get(file) or _reason(file, kinds.get(file, ""), contents)
            reasons.setdefault((reason, PurePath(file).suffix), []).append(file)
    sentences = []
    for (reason, _), files in reasons.items():
        remaining_count = len(files) - _NAMED
        file_names = files if remaining_count <= 0 else [", ".join(files[:_NAMED]) + f" and {remaining_count} more"]
        sentences += [f"not used: {name}: {reason}" for name in file_names]
    return sentences


def _kinds(contents: FolderContents) -> dict[str, Collection[str]]:
    return {
        "models": contents.models, "statics": contents.statics, "movements": contents.movements,
        "trials": contents.trials, "reactions": contents.reactions, "motions": contents.motions, **contents.setups,
    }  # fmt: skip


def _reason(file: str, kind: str, contents: FolderContents) -> str:
    if kind != "external_loads":
        return _REASONS.get(kind, "has nothing that is read here")
    table = contents.loads_tables[file]
    if not any(PurePath(name).name == table for name in contents.reactions):
        return f"assigns {table or 'a table without a name'} to bodies, which is not in the folder as ground reactions"
    return "no trial has a name like this, or the trials have force plates"
