"""Entry points of installed distributions, read from the folders on the import path.

`importlib.metadata` reads the same but imports the email package, zipfile and sockets, which takes as long as all other
imports of the command line. It serves path entries that are not folders.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SEPARATORS = re.compile(r"[-_.]+")


@dataclass(frozen=True)
class EntryPoint:
    """``name = module:attribute`` in a group, of a distribution."""

    group: str
    name: str
    module: str
    attribute: str
    distribution: str
    version: str

    def load(self) -> Any:
        """Import the module and return the object."""
        target: Any = importlib.import_module(self.module)
        for part in self.attribute.split("."):
            target = getattr(target, part) if part else target
        return target


def entry_points(path: Sequence[str], prefix: str) -> Iterator[EntryPoint]:
    """The entry points of groups whose name begins with `prefix`; of several distributions with one name, the first on
    the path."""
    earlier: set[str] = set()
    for entry in path:
        folder = entry or os.curdir
        if os.path.isfile(folder):
            yield from _in_archive(folder, prefix, earlier)
            continue
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            continue
        for name in names:
            stem, kind = os.path.splitext(name)
            if kind not in (".dist-info", ".egg-info"):
                continue
            distribution = _SEPARATORS.sub("-", stem.partition("-")[0]).lower()
            if distribution not in earlier:
                earlier.add(distribution)
                yield from _in_folder(Path(folder, name), prefix)


def _in_folder(info: Path, prefix: str) -> Iterator[EntryPoint]:
    try:
        text = (info / "entry_points.txt").read_text(encoding="utf-8", errors="replace")
    except OSError:  # most have none
        return
    if f"[{prefix}" not in text:
        return
    about = {"Name": "?", "Version": "?"}
    for file in ("METADATA", "PKG-INFO"):
        if (info / file).is_file():
            head = (info / file).read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
            fields = [line.partition(":") for line in head.splitlines()]
            about |= {key: value.strip() for key, _, value in reversed(fields) if key in about}
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            group = line.strip("[]").strip()
        elif group.startswith(prefix) and line and line[0] not in "#;":
            name, _, value = line.partition("=")
            module, _, attribute = value.partition("[")[0].partition(":")
            yield EntryPoint(group, name.strip(), module.strip(), attribute.strip(), about["Name"], about["Version"])


def _in_archive(archive: str, prefix: str, earlier: set[str]) -> Iterator[EntryPoint]:
    """The entry points in a zip archive on the path."""
    from importlib.metadata import distributions

    for distribution_info in distributions(path=[archive]):
        distribution = _SEPARATORS.sub("-", distribution_info.name).lower()
        if distribution not in earlier:
            earlier.add(distribution)
            for e in distribution_info.entry_points:
                if e.group.startswith(prefix):
                    yield EntryPoint(
                        e.group, e.name, e.module, e.attr, distribution_info.name, distribution_info.version
                    )
