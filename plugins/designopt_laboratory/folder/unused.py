"""Files of a folder that its study does not use, and why."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import PurePath

from designopt_laboratory.folder.contents import FolderContents

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


def unused(contents: FolderContents, used: Collection[str]) -> list[str]:
    """A sentence on each file that is none of `used`; many files with the same reason and suffix share one."""
    kinds = {name: kind for kind, names in _kinds(contents).items() for name in names}
    reasons: dict[tuple[str, str], list[str]] = {}
    for file in contents.files:
        if file not in used:
            reason = contents.unused.get(file) or _reason(file, kinds.get(file, ""), contents)
            reasons.setdefault((reason, PurePath(file).suffix), []).append(file)
    sentences = []
    for (reason, _), files in reasons.items():
        more = len(files) - _NAMED
        listed = files if more <= 0 else [", ".join(files[:_NAMED]) + f" and {more} more"]
        sentences += [f"not used: {name}: {reason}" for name in listed]
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
