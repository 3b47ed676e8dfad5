"""Columns of a trial's tables against the coordinates of its model: misspelt ones, ones of no use, missing ones."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

from designopt_recordings.table import TimeTable

from designopt_muscle.models.errors import TrialError
from designopt_muscle.osim.model import OsimModel

#: Similarity (Ratcliff and Obershelp) from which a name counts as misspelt.
_SIMILAR = 0.85
#: Most names in a note.
_NAMED = 8
_SIDE = re.compile(r"_?(l|r|left|right)$", re.IGNORECASE)
_MOMENT = re.compile(r"_(moment|force)$")
#: Endings of a moment and of what is written in its place.
_ENDING = re.compile(r"_(moment|force|torque)s?$", re.IGNORECASE)


def present_coordinates(table: TimeTable, names: Iterable[str]) -> set[str]:
    """The coordinates that have a column: under their name, or at the end of a path ``.../name/value``."""
    ends = set()
    for label in table.names:
        parts = label.split("/")
        ends.add(parts[-2] if len(parts) > 1 and parts[-1] == "value" else parts[-1])
    return ends & set(names)


def motion_notes(table: TimeTable, file: str, model: OsimModel, *, moments: bool) -> list[str]:
    """Notes on a motion: columns that match nothing in the model, coordinates that stay at their defaults.

    With `moments` its columns of net moments belong to it. Raises `TrialError` for a column whose name is nearly that
    of a coordinate without one.
    """
    locked_names = {c.name for c in model.coordinates if c.locked}
    missing = [
        name for name in model.free if name not in present_coordinates(table, model.free) and name not in locked_names
    ]
    unknown_labels = [label for label in _unknown_labels(table, model) if not (_MOMENT.search(label) and moments)]
    _refuse_misspelt(file, unknown_labels, missing, "", model)
    notes = _unused_note(file, unknown_labels, model)
    if missing:
        notes.append(f"{file}: no column for {_list_text(missing)} of the model: left at the default value")
    return notes


def moment_notes(table: TimeTable, file: str, model: OsimModel, moving: Iterable[str], *, motion: bool) -> list[str]:
    """Notes on a table of net moments: columns that match nothing, and coordinates in `moving` without a moment.

    `motion` says that it is the table of the motion, whose other columns have their own notes. Raises `TrialError` as
    `motion_notes`.
    """
    locked_names = {c.name for c in model.coordinates if c.locked}
    moment_names = {_MOMENT.sub("", label) for label in table.names if _MOMENT.search(label)}
    missing = [name for name in model.free if name in moving and name not in moment_names and name not in locked_names]
    unknown_labels = _unknown_labels(table, model)
    _refuse_misspelt(file, unknown_labels, missing, "_moment", model)
    notes = _unused_note(file, [label for label in unknown_labels if _MOMENT.search(label) or not motion], model)
    if missing:
        notes.append(f"{file}: no net moment about {_list_text(missing)}: not balanced")
    return notes


def _unknown_labels(table: TimeTable, model: OsimModel) -> list[str]:
    """Labels in which no part is a name of the model, with or without the ending of a moment."""
    names = {*model.names, *(m.name for m in model.muscles), *(a.name for a in model.actuators)}
    return [
        label
        for label in table.names
        if not any(part in names or _MOMENT.sub("", part) in names for part in label.split("/"))
    ]


def _refuse_misspelt(file: str, labels: list[str], missing: list[str], ending: str, model: OsimModel) -> None:
    for label in labels:
        stem = _ENDING.sub("", label.removesuffix("/value").split("/")[-1])
        for name in missing:
            if _is_misspelt(stem, name) or (ending and (stem == name or _is_misspelt(label, name + ending))):
                raise TrialError(
                    f"{file}: column '{label}' is not of the model '{model.name}'; did you mean '{name}{ending}', which"
                    " has no column? Rename or remove it"
                )


def _is_misspelt(word: str, name: str) -> bool:
    """Whether `word` is `name` misspelt; the name of the other side is not."""
    if _SIDE.sub("", word) == _SIDE.sub("", name):
        return False
    return SequenceMatcher(None, word.lower(), name.lower(), autojunk=False).ratio() >= _SIMILAR


def _unused_note(file: str, labels: list[str], model: OsimModel) -> list[str]:
    return [f"{file}: of no use to the model '{model.name}': {_list_text(labels)}"] if labels else []


def _list_text(names: list[str]) -> str:
    ending = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + ending
