"""Judges hostile study files, ``hostile_runner.py EVERY``: one of so many cases. Prints a JSON object for each.

Every case runs in a child of this process, which has imported what `designopt validate` needs: what is counted is the
time of the processor and the memory that the file costs.
"""

import json
import os
import resource
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import designopt_knee.model
import numpy
import pydantic
from hostile import Case, cases

import designopt.api
import designopt.study.load
from designopt.cli import main
from designopt.study.language import units

IMPORTED = (designopt_knee.model, numpy, pydantic, designopt.api, designopt.study.load)

#: A child is ended after so many seconds of the processor, and of the clock.
HANGS, WAITS = 10, 600.0


def judged(case: Case, folder: Path) -> dict[str, object]:
    """How the case ended, what it cost, and the end of what it said."""
    path, output = case.write(folder), folder / "said.txt"
    child = os.fork()
    if child == 0:
        os._exit(_validate(path, output, case))
    deadline = time.monotonic() + WAITS
    while True:
        ended, status, used = os.wait4(child, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > deadline:
            os.kill(child, 9)
        time.sleep(0.005)
    return {
        "name": case.name,
        "code": os.waitstatus_to_exitcode(status),
        "wanted": 0 if case.sound else 2,
        "seconds": used.ru_utime + used.ru_stime,
        "megabytes": used.ru_maxrss / 1024.0,
        "said": output.read_text(errors="replace")[-600:],
    }


def _validate(path: Path, output: Path, case: Case) -> int:
    """The exit code of the command, all that it says in the file `said`."""
    resource.setrlimit(resource.RLIMIT_CPU, (HANGS, HANGS))
    with output.open("w") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    os.close(0)
    try:
        main(args=["validate", str(path), *case.arguments])
    except SystemExit as ended:
        return int(ended.code or 0)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    return 77


if __name__ == "__main__":
    units.check("parsec")  # loads pint
    for position, one in enumerate(cases()):
        if position % int(sys.argv[1]) == 0:
            with tempfile.TemporaryDirectory() as temporary:
                print(json.dumps(judged(one, Path(temporary))), flush=True)
