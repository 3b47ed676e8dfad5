"""The command line as tests use it: in this process where the process is not the point, else in one of its own."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from designopt.cli import main
from designopt.plugin import discovery


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    returncode: int
    stdout: str
    stderr: str


def designopt(folder: Path, *arguments: str) -> Done:
    """``designopt ARGUMENTS`` in `folder`; then what plugin files declare is forgotten, as by a process."""
    declared = dict(discovery._declared)
    try:
        with contextlib.chdir(folder):
            done = CliRunner().invoke(main, list(arguments))
    finally:
        discovery._declared.clear()
        discovery._declared.update(declared)
        for name in [name for name in sys.modules if name.startswith("designopt_plugin_")]:
            del sys.modules[name]
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Done(done.exit_code, done.stdout, done.stderr)


def process(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "designopt", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
