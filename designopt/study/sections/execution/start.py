"""Second pass over `start_from`: an earlier stage, or the store of another study."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from designopt.study.language.findings import Path, nearest, nearest_or_all
from designopt.study.sections.context import Context
from designopt.study.study import StartFrom


def start_from(
    ctx: Context, section: Mapping[str, Any] | None, names: Sequence[str | None], position: int
) -> StartFrom | None:
    """The starting designs of the stage at `position`; `names` are those of all stages, None for an invalid one."""
    if section is None:
        return None
    path: Path = ("stages", position, "start_from")
    if "stage" in section and "store" in section:
        ctx.add(path, "give 'stage' or 'store', not both", key="store")
    elif "stage" in section:
        _check_stage(ctx, section["stage"], names, position, (*path, "stage"))
    elif "store" not in section and not ctx.unknown_key(path):
        ctx.add(path, "'stage' or 'store' is missing")
    if "best" in section and "nondominated" in section:
        ctx.add(path, "give 'nondominated' or 'best', not both", key="best")
    store = None
    if section.get("store") is not None and "stage" not in section:
        store = _store(ctx, section["store"], (*path, "store"))
    if not ctx.sound(path):
        return None
    if "best" in section:
        return StartFrom(section.get("stage"), "best", section["best"], store)
    count = section.get("nondominated", "all")
    return StartFrom(section.get("stage"), "nondominated", None if count == "all" else count, store)


def _check_stage(ctx: Context, stage: str | None, names: Sequence[str | None], position: int, path: Path) -> None:
    earlier = [name for name in names[:position] if name]
    if stage is None or stage in earlier:
        return
    if stage == names[position]:
        reason = "a stage cannot start from itself"
    elif stage in names:
        reason = f"stage '{stage}' comes later"
    else:
        reason = f"no stage named '{stage}'{nearest_or_all(stage, earlier)}"
    if None not in names[:position] or stage in names:
        ctx.add(path, reason)


def _store(ctx: Context, name: str, path: Path) -> str | None:
    """The absolute path of the store `name`; None, with a finding, if it cannot be read."""
    base = ctx.folder
    if not name or not name.isprintable() or "\\" in name:
        ctx.add(path, f"{name[:80]!r} is not the name of a folder")
        return None
    absolute = os.path.isabs(name)
    if absolute and not ctx.on_command_line(path):
        ctx.add(path, "a store is a path relative to the study file and below its folder; give others with --set")
        return None
    if not absolute and base is None:
        ctx.add(path, f"'{name[:80]}' cannot be read: the study has no folder")
        return None
    try:
        folder = pathlib.Path(name) if absolute or base is None else base.resolve() / name
        target = folder.resolve()
        if base is not None and not absolute and not target.is_relative_to(base.resolve()):
            ctx.add(path, f"'{name[:80]}' lies outside the study's folder; give such a store with --set")
            return None
        if not target.is_dir():
            parent = target.parent
            folders = [p.name for p in parent.iterdir() if p.is_dir()] if parent.is_dir() else []
            ctx.add(path, f"there is no folder '{name[:80]}'{nearest(target.name, folders)}")
            return None
        lacking = [file for file in ("journal.db", "problem.json") if not (target / file).is_file()]
    except (OSError, RuntimeError) as error:
        ctx.add(path, f"'{name[:80]}' cannot be read: {getattr(error, 'strerror', None) or error}")
        return None
    if lacking:
        ctx.add(path, f"'{name[:80]}' is not a store: it has no {lacking[0]}")
        return None
    return str(target)
