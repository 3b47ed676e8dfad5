"""One run of a script for the cart-pole in a separate process, and its output.

opensim must not meet casadi's wheel in one process, so an environment variable names its Python: DESIGNOPT_PEER_MOCO.
Without it the Python of the tests is used. How to install it: README.md beside this file.
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent / "peers"
#: One thread for everybody's linear algebra, as the targets are for one thread.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@dataclass(frozen=True)
class PeerRun:
    """Output of a peer's script: seconds of wall clock, or of the processor where the name says so.

    `build_seconds` ends when the first solve may begin. `repeat_seconds` is the median of the solves after the first,
    each from the guess.
    """

    peer: str
    version: str
    variant: str
    scheme: str
    order: int
    intervals: int
    guess: str
    solver: str
    tolerance: float
    success: bool
    objective: float
    iterations: int
    build_seconds: float
    first_seconds: float
    repeat_seconds: float
    repeat_cpu_seconds: float

    def __str__(self) -> str:
        return (
            f"{self.peer + ' ' + self.variant:<29}N={self.intervals:<4}{self.objective:>14.8f}{self.iterations:>5} it."
            f"  build {self.build_seconds:7.3f}  first {self.first_seconds:7.3f}"
            f"  repeat {self.repeat_seconds:7.4f} s ({self.repeat_cpu_seconds:.4f} s of the processor)"
        )


def peer_run(name: str, intervals: int, repeats: int, variant: str | None = None) -> PeerRun:
    """Solve the cart-pole with `name` (moco or designopt) on a uniform mesh of `intervals`.

    Args:
        repeats: Solves after the first one.
        variant: Of the peer's script; its default is the peer's fastest way to an accurate answer.

    Skips the test, and says why, when the peer is not installed; fails when its script fails.
    """
    variable = f"DESIGNOPT_PEER_{name.upper()}"
    script = SCRIPTS / f"{name}_cart_pole.py"
    command = [os.environ.get(variable, sys.executable), str(script), str(intervals), str(repeats)]
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.run(
            [*command, *([variant] if variant else [])],
            capture_output=True, text=True, timeout=900, cwd=folder, env={**os.environ, **ONE_THREAD},
        )  # fmt: skip
    if "ModuleNotFoundError" in process.stderr:
        pytest.skip(f"{process.stderr.strip().splitlines()[-1]}; install {name}, or set {variable} (see the README.md)")
    assert process.returncode == 0, process.stderr
    return PeerRun(**json.loads(process.stdout.splitlines()[-1]))
