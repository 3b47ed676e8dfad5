"""Files that a study may name: those below its folder, and below data roots given by the user."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Protocol

from designopt.files import LARGEST, InputFile, InputFileError, root_of
from designopt.study.language.findings import nearest

#: Maximum size of a file in the study's folder (bytes): models read some of them when a study is checked.
LARGEST_BESIDE = 32 * 2**20
#: Maximum number of folder entries searched for a pattern, and of matching files.
MOST_ENTRIES, MOST_FILES = 200_000, 10_000
#: Maximum length of a pattern, and maximum number of ``**`` in it.
LONGEST, MOST_DEEP = 400, 3


class Files(Protocol):
    """Returns the files named by a study. Raises `ValueError` with the reason for the user."""

    def __call__(self, name: str) -> InputFile:
        """The file `name`."""

    def matching(self, pattern: str) -> list[str]:
        """The names of files that match `pattern`, in order: ``*``, ``?``, ``[a-z]``, and ``**`` for any folders."""


class NoFiles:
    """Files of a study without a folder: there are none."""

    def __call__(self, name: str) -> InputFile:
        """Raises `ValueError`."""
        raise ValueError(f"'{name}' cannot be read: the study has no folder")

    def matching(self, pattern: str) -> list[str]:
        """Raises `ValueError`."""
        raise ValueError(f"'{pattern}' cannot be searched for: the study has no folder")


NO_FILES = NoFiles()


class FilesByName:
    """Files given by name, for a study without a folder."""

    def __init__(self, files: Mapping[str, bytes | InputFile]) -> None:
        self._files = files

    def __call__(self, name: str) -> InputFile:
        """The file given under this name. Raises `ValueError` for an unknown one."""
        if name not in self._files:
            raise ValueError(f"file '{name}' is not among the files of this study{nearest(name, self._files)}")
        file = self._files[name]
        return file if isinstance(file, InputFile) else InputFile(name, file)

    def matching(self, pattern: str) -> list[str]:
        """The names that match."""
        parts = _parts(pattern)
        return sorted(name for name in self._files if _matches(name.split("/"), parts))


class FolderFiles:
    """The files below the study's folder `base`, and as ``NAME:file`` those below the data root of that name."""

    def __init__(self, base: Path, roots: Mapping[str, Path] | None = None) -> None:
        self._base = base
        self._roots = roots or {}

    def __call__(self, name: str) -> InputFile:
        """The file, which is not read yet. Raises `ValueError`."""
        folder, relative = self._folder(name)
        try:
            target = (folder / relative).resolve()
            if not target.is_relative_to(folder):
                base = f"data root '{root_of(name)}'" if root_of(name) else "study's folder"
                raise ValueError(f"'{name}' lies outside the {base}")
            return InputFile.at(target, name, largest=LARGEST if root_of(name) else LARGEST_BESIDE)
        except FileNotFoundError:
            entries = [p.name for p in target.parent.iterdir()] if target.parent.is_dir() else []
            near = nearest(target.name, entries)
            raise ValueError(f"file '{name}' does not exist{near} (looked for in {target.parent})") from None
        except InputFileError as error:
            larger = "" if root_of(name) else "; larger ones belong below a data root (--data NAME=FOLDER)"
            raise ValueError(f"{error}{larger if 'at most' in str(error) else ''}") from None
        except (OSError, RuntimeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ValueError(f"file '{name[:80]}' cannot be read: {reason}") from None

    def matching(self, pattern: str) -> list[str]:
        """The names of matching regular files; links to folders are not followed. Raises `ValueError`."""
        folder, relative = self._folder(pattern)
        prefix = pattern[: len(pattern) - len(relative)]
        parts = _parts(relative)
        start = list(itertools.takewhile(lambda part: not any(c in part for c in "*?["), parts[:-1]))
        matching_names: list[str] = []
        entry_count = 0
        for current, folders, files in os.walk(folder.joinpath(*start), followlinks=False):
            below = Path(current).relative_to(folder).parts
            entry_count += len(folders) + len(files)
            if entry_count > MOST_ENTRIES:
                raise ValueError(f"'{pattern}' searches more than {MOST_ENTRIES} files; begin it with a folder")
            if "**" not in parts and len(below) + 1 >= len(parts):
                folders.clear()
            matching_names += [prefix + "/".join((*below, name)) for name in files if _matches((*below, name), parts)]
            if len(matching_names) > MOST_FILES:
                raise ValueError(f"'{pattern}' matches more than {MOST_FILES} files")
        return sorted(matching_names)

    def _folder(self, name: str) -> tuple[Path, str]:
        """The folder to which a name is relative, and the rest of the name."""
        root = root_of(name)
        relative = name[len(root) + 1 :] if root else name
        outside = not relative or "\0" in name or "\\" in name or Path(relative).is_absolute()
        if outside or re.match(r"^[A-Za-z]:", name):
            elsewhere = "; for a file elsewhere write NAME:file, and give --data NAME=FOLDER" if name else ""
            raise ValueError(f"{name!r} is not a file name relative to the study file{elsewhere}")
        if not root:
            return self._base.resolve(), relative
        if root not in self._roots:
            suggestion = nearest(root, self._roots) or f"; give its folder with --data {root}=FOLDER"
            raise ValueError(f"there is no data root '{root}'{suggestion}")
        return self._roots[root].resolve(), relative


def _matches(names: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether the path `names` matches the `parts` of a pattern; wildcards do not match hidden names."""
    if not parts or not names:
        return not parts and not names
    if parts[0] == "**" and len(parts) > 1:
        return any(_matches(names[i:], parts[1:]) for i in range(len(names)))
    hidden = names[0].startswith(".") and not parts[0].startswith(".")
    return not hidden and fnmatchcase(names[0], parts[0]) and _matches(names[1:], parts[1:])


def _parts(pattern: str) -> tuple[str, ...]:
    """The parts of a pattern. Raises `ValueError` for one that leads out of the folder or costs too much."""
    parts = PurePosixPath(pattern).parts
    if ".." in parts:
        raise ValueError(f"'{pattern[:80]}' lies outside its folder")
    if len(pattern) > LONGEST or parts.count("**") > MOST_DEEP:
        raise ValueError(f"a pattern has at most {LONGEST} characters and at most {MOST_DEEP} times '**'")
    return parts
