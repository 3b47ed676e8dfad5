"""How long the command line takes to answer, against the same interpreter starting with the same command library.

Both with their bytecode in place, as an installation leaves it: the peers' libraries always have theirs.
"""

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.bench

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "studies" / "knee_damper.yaml"


#: An interpreter that may keep bytecode; where it may not, every command recompiles the sources of the suite.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT, env=ENVIRONMENT)
    return time.perf_counter() - start


@pytest.mark.parametrize(
    ("arguments", "target", "peer_imports", "ratio_limit"),
    [
        (["--help"], 0.2, "click", 2.5),
        (["list"], 0.2, "click", 2.5),
        (["validate", str(STUDY)], 0.5, "click, pydantic, yaml, numpy", 4.0),
    ],
    ids=["help", "list", "validate"],
)
def test_the_command_line_answers_at_once(
    arguments: list[str],
    target: float,
    peer_imports: str,
    ratio_limit: float,
    capsys: pytest.CaptureFixture[str],
    record_property: Callable[[str, object], None],
) -> None:
    designopt = shutil.which("designopt", path=str(Path(sys.executable).parent))
    assert designopt
    ours, floor = [], []
    seconds([designopt, *arguments])  # writes the bytecode
    for _ in range(9):  # in turn, so that a change of the machine's speed meets both
        ours.append(seconds([designopt, *arguments]))
        floor.append(seconds([sys.executable, "-c", f"import {peer_imports}"]))
    median, ratio = statistics.median(ours), statistics.median(a / b for a, b in zip(ours, floor, strict=True))
    with capsys.disabled():
        print(
            f"\ndesignopt {arguments[0]}: median {median:.3f} s (target {target} s), "
            f"{ratio:.2f} times an interpreter that imports {peer_imports} ({statistics.median(floor):.3f} s)"
        )
    record_property(f"designopt {arguments[0]} / interpreter that imports {peer_imports}", ratio)
    assert ratio < ratio_limit
