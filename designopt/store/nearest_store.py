"""Suggestions for a name that is not a store."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from designopt.plugin import closest

#: Maximum number of suggestions, and of searched entries of a folder.
NAMED, LOOKED_AT = 6, 2000
#: Bytes of a study file in which its name is searched.
HEAD = 8192
_STUDY = re.compile(r"^study[ \t]*:[ \t]*(\S+)", re.MULTILINE)


def nearest_store(path: Path) -> str:
    """``; did you mean 'results/one.study'?``, or the stores below or beside `path`, or what a benchmark has instead
    of one; "" without any."""
    if (path / "scores.csv").is_file() and (run := min(path.glob("*/*/*.study"), default=None)):
        figures = "'designopt benchmark FILE --figure convergence.pdf' writes its figures"
        return f"; of a benchmark, whose page is {path / 'report.html'}: {figures}, and each run is a store: {run}"
    folders = [path] if path.is_dir() else [path.parent, path.parent / "results"]
    paths = {store.name: store for folder in folders for store in stores_in(folder)}
    of_study = [store for store in paths.values() if _study_name(store) == path.name.removesuffix(".study")]
    if of_study:
        return f"; the study '{path.name.removesuffix('.study')}' has the store '{of_study[0]}'"
    near = closest(path.name, paths)
    return suggestion("", map(str, paths.values())) if near is None else f"; did you mean '{paths[near]}'?"


def suggestion(name: str, stores: Iterable[str]) -> str:
    """``; did you mean 'one'?`` from the `stores`, or their names; "" without any."""
    names = list(stores)
    if near := closest(name, names):
        return f"; did you mean '{near}'?"
    remainder = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"; stores here: {', '.join(names[:NAMED])}{remainder}" if names else ""


def _study_name(store: Path) -> str:
    """The name that the study file of a store states, "" if it cannot be read."""
    try:
        head = (store / "study.yaml").read_bytes()[:HEAD].decode(errors="replace")
    except OSError:
        return ""
    match = _STUDY.search(head)
    return match[1].strip("'\"") if match else ""


def stores_in(folder: Path) -> list[Path]:
    """The stores in `folder`, by name; none if it cannot be read."""
    try:
        entries = sorted(folder.iterdir())[:LOOKED_AT]
        return [entry for entry in entries if not entry.is_symlink() and (entry / "journal.db").is_file()]
    except OSError:
        return []
