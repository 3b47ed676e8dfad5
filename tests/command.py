"""The command line as tests use it: in this process where the process is not the point, else in one of its own."""

from __future__ import annotations

import contextlib
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from designopt.cli import main
from designopt.plugin import discovery


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    returncode: int
    stdout: str
    stderr: str


@contextlib.contextmanager
def _only_installed_plugins() -> Iterator[None]:
    installed = {listed.entry.module.partition(".")[0] for listed in discovery.installed_plugins()}
    modules = {
        key: str(plugin.target.__module__).partition(".")[0] for key, plugin in discovery._declared_plugins.items()
    }
    available = {key: plugin for key, plugin in discovery._declared_plugins.items() if modules[key] in installed}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discovery, "_declared_plugins", available)
        patch.setattr(discovery, "_plain", {})
        try:
            yield
        finally:
            for name in [name for name in sys.modules if name.startswith(discovery.FILES)]:
                del sys.modules[name]


def designopt(folder: Path, *arguments: str) -> Done:
    """``designopt ARGUMENTS`` in `folder`, as by a process: it knows no plugins of other tests, and what plugin files
    declare is forgotten."""
    with _only_installed_plugins(), contextlib.chdir(folder):
        answer = CliRunner().invoke(main, list(arguments))
    if answer.exception is not None and not isinstance(answer.exception, SystemExit):
        raise answer.exception
    return Done(answer.exit_code, answer.stdout, answer.stderr)


def process(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "designopt", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def can_build_wheels() -> bool:
    """Whether pip can build with what is installed here; else it fetches the build's requirements from the index."""
    return importlib.util.find_spec("setuptools") is not None and importlib.util.find_spec("wheel") is not None


def alive(pid: int) -> bool:
    """Whether the process is there and has not ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False
