"""Names of recorded markers and of those on a model: which belong together, and names that a study replaces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import SequenceMatcher

from designopt_recordings.recording import Recording

from designopt_muscle.markers.status import MarkerError

#: Likeness (0 to 1) of two names from which one suggests the other, and that of a name which contains the other.
_ALIKE, _CONTAINED = 0.6, 0.9
#: The side of the body at the begin or end of a name.
_SIDE = re.compile(r"^(right|left|r|l)|[\W_](right|left|r|l)$")
#: Suggestions that a message lists.
_NAMED = 8


def suggest_names(recorded_names: Iterable[str], on_model: Iterable[str]) -> dict[str, str]:
    """The name on the model that each of some `recorded_names` probably means; names without a likely one are left out.

    Spelling, case, punctuation and a subject in front (``ana:RASI``) may differ, but not the side of the body. Each
    name on the model is suggested once.
    """
    pairs = [(_likeness(a, b), a, b) for a in recorded_names for b in on_model]
    partner: dict[str, str] = {}
    for likeness, a, b in sorted(pairs, key=lambda pair: (-pair[0], pair[1:])):
        if likeness >= _ALIKE and a not in partner and b not in partner.values():
            partner[a] = b
    return partner


def _likeness(name: str, candidate: str) -> float:
    parts = [re.split(r"[\W_]+", text.rpartition(":")[2].casefold()) for text in (name, candidate)]
    a, b = ("".join(words) for words in parts)
    if not a or not b or {a[0], b[0]} == {"r", "l"} or {words[-1] for words in parts} == {"r", "l"}:
        return 0.0  # of different sides
    short, long = sorted((a, b), key=len)
    return max(SequenceMatcher(None, a, b).ratio(), _CONTAINED if len(short) > 2 and short in long else 0.0)


def are_opposite(name: str, candidate: str) -> bool:
    """Whether two names mean the same spot on the two sides of the body: ``R.Toe`` and ``L.Toe``, ``toe_r`` and
    ``toe_l``."""
    first, second = (_SIDE.sub("", text.rpartition(":")[2].casefold()) for text in (name, candidate))
    return name != candidate and first == second != ""


def suggestion(recorded_names: Iterable[str], on_model: Iterable[str]) -> str:
    """``; did you mean 'R.ASIS' for 'RASI'?`` or "", for some names in the order of `recorded_names`."""
    names = list(recorded_names)
    partner = suggest_names(names, on_model)
    pairs = [f"'{partner[name]}' for '{name}'" for name in names if name in partner]
    remainder = [f"{len(pairs) - _NAMED} more"] if len(pairs) > _NAMED else []
    return f"; did you mean {', '.join([*pairs[:_NAMED], *remainder])}?" if pairs else ""


def renamed(recording: Recording, names: Mapping[str, str]) -> Recording:
    """The recording with the names of `names` (recorded name: name on the model) in place of the recorded ones.

    Raises `MarkerError` where two markers then have the same name.
    """
    marker_names = tuple(names.get(name, name) for name in recording.marker_names)
    for name, new in zip(recording.marker_names, marker_names, strict=True):
        if name != new and marker_names.count(new) > 1:
            raise MarkerError(f"'{name}' is to be renamed to '{new}', but there is another marker of this name")
    return replace(recording, marker_names=marker_names)
