"""Temporary files of evaluations: in a folder of their worker process, removed with it.

An evaluation that is killed cannot remove its files. The supervisor of its worker removes the folder with the worker's
notes; without a supervisor, the shell that waits for the end of the coordinator does (`children.OrphanGuard`).
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

#: Environment variable with the folder for temporary files, for this process and the programs that it starts.
VARIABLE = "TMPDIR"

#: The usual value of the variable and folder of this process, while another one is in use.
_usual: tuple[str | None, str] | None = None


def usual_folder() -> Path:
    """The folder for temporary files of this process outside of evaluations."""
    return Path(_usual[1] if _usual is not None else tempfile.gettempdir())


def use_folder(folder: Path) -> None:
    """From now on temporary files of this process and its children go to `folder`, which is created."""
    global _usual
    folder.mkdir(mode=0o700, exist_ok=True)
    if _usual is None:
        _usual = os.environ.get(VARIABLE), tempfile.gettempdir()
    os.environ[VARIABLE] = tempfile.tempdir = str(folder)


def use_usual_folder(folder: Path) -> None:
    """From now on temporary files go to the usual folder of this process again, unless `folder` is not in use."""
    global _usual
    if _usual is None or tempfile.tempdir != str(folder):
        return
    (variable, tempfile.tempdir), _usual = _usual, None
    if variable is None:
        os.environ.pop(VARIABLE, None)
    else:
        os.environ[VARIABLE] = variable
