"""Suggestions for a name that is not a store."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from designopt.plugin import closest

#: Maximum number of suggestions, and of searched entries of a folder.
NAMED, LOOKED_AT = 6, 2000


def nearest_store(path: Path) -> str:
    """``; did you mean 'results/one.study'?``, or the stores below or beside `path`; "" without any."""
    folders = [path] if path.is_dir() else [path.parent, path.parent / "results"]
    paths = {store.name: store for folder in folders for store in _stores(folder)}
    near = closest(path.name, paths)
    return suggestion("", map(str, paths.values())) if near is None else f"; did you mean '{paths[near]}'?"


def suggestion(name: str, stores: Iterable[str]) -> str:
    """``; did you mean 'one'?`` from the `stores`, or their names; "" without any."""
    names = list(stores)
    if near := closest(name, names):
        return f"; did you mean '{near}'?"
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"; stores here: {', '.join(names[:NAMED])}{more}" if names else ""


def _stores(folder: Path) -> list[Path]:
    """The stores in `folder`, by name; none if it cannot be read."""
    try:
        entries = sorted(folder.iterdir())[:LOOKED_AT]
        return [entry for entry in entries if not entry.is_symlink() and (entry / "journal.db").is_file()]
    except OSError:
        return []
