"""Walks on the way to others as files, which the workers of a machine and later runs share."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from designopt.collocation import Solution
from designopt.collocation.solution.saving import load_solution, save_solution
from designopt.collocation.solution.solution import versions
from designopt.dynamics.compile import cache_dir, find_compiler

#: Packages whose sources decide what a walk is.
PACKAGES = (
    "designopt.collocation", "designopt.dynamics", "designopt_knee", "designopt_mechanics", "designopt_muscle",
    "designopt_walking",
)  # fmt: skip
#: Days after its last use in which a file is removed.
KEPT_DAYS = 30.0


class SharedWalks:
    """Solutions in the cache of designopt, by their names within an `identity`: model, device, limits, cost, solver.

    A file has the bits that each worker would compute: its name is a digest of the identity and of `software`, so that
    nothing is read that other sources or another solver computed. Files that cannot be read or written are passed
    over.
    """

    def __init__(self, identity: str) -> None:
        self._identity = identity
        self._folder = cache_dir() / "walks"
        _remove_unused(self._folder)

    def solution(self, name: str, solve: Callable[[], Solution]) -> Solution:
        """The solution of this name: from its file, else of `solve`, which is then stored. `solve` raises an exception
        where it was interrupted: what was solved from an interrupted walk is another one."""
        digest = hashlib.blake2b(f"{self._identity}\0{software()}\0{name}".encode(), digest_size=16)
        file = self._folder / f"{digest.hexdigest()}.npz"
        with suppress(OSError, ValueError):
            solution = load_solution(file)
            with suppress(OSError):  # a file that another user owns, or that was removed meanwhile
                os.utime(file)
            return solution
        solution = solve()
        with suppress(OSError):
            _store(solution, file)
        return solution


@lru_cache(maxsize=1)
def software() -> str:
    """A digest of the sources of `PACKAGES`, with the versions of libraries, the processor and whether there is a
    compiler, without which another solver works."""
    digest = hashlib.blake2b(digest_size=16)
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        assert spec is not None
        for folder in spec.submodule_search_locations or ():
            for file in sorted(Path(folder).rglob("*.[pc]*")):
                if file.suffix in (".py", ".c"):
                    digest.update(file.read_bytes())
    return f"{digest.hexdigest()} {versions()} {platform.machine()} {find_compiler() is not None}"


def _store(solution: Solution, file: Path) -> None:
    """Write the file under another name first, so that no worker reads a part of it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, suffix=".part")
    os.close(handle)
    try:
        save_solution(solution, name)
        os.replace(name, file)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def _remove_unused(folder: Path) -> None:
    oldest = time.time() - KEPT_DAYS * 86400.0
    with suppress(OSError):
        for file in folder.iterdir():
            if file.stat().st_mtime < oldest:
                file.unlink()
