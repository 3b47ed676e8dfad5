"""A batch system for tests: jobs are processes of this machine that are killed at their wall time.

Run as one of its commands: python fake_batch.py sbatch SCRIPT. Its state is the folder FAKE_BATCH: a file for each job
with the number of its process group; a file `closed` there keeps jobs waiting, `refuse` holds what sbatch complains of.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path


def install(folder, python=sys.executable):
    """Write the commands into `folder`/bin; returns what is to be set in the environment."""
    commands = folder / "bin"
    commands.mkdir()
    for name in ("sbatch", "squeue", "scancel", "qsub", "qstat", "qdel"):
        (commands / name).write_text(f'#!/bin/sh\nexec {python} -S {__file__} {name} "$@"\n')
        (commands / name).chmod(0o755)
    state = folder / "state"
    state.mkdir()
    return {"PATH": f"{commands}{os.pathsep}{os.environ['PATH']}", "FAKE_BATCH": str(state)}


def jobs(state):
    """Numbers of jobs that have not ended, and of their process groups."""
    groups = {}
    for file in sorted(state.glob("*.job")):
        group = int(file.read_text())
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, 0)
            groups[file.stem] = group
    return groups


def submit(state, script):
    if (state / "refuse").exists():
        print("sbatch: error:", (state / "refuse").read_text(), file=sys.stderr)
        return 1
    text = Path(script).read_text()
    number = str(len(list(state.glob("*.sh"))) + 100)
    batch_script = state / f"{number}.sh"
    batch_script.write_text(text)
    hours, minutes, seconds = (int(t) for t in re.search(r"(\d+):(\d+):(\d+)", text).groups())
    command = [sys.executable, "-S", __file__, "keep", str(batch_script), str(3600 * hours + 60 * minutes + seconds)]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (state / f"{number}.job").write_text(str(process.pid))
    print(f"Submitted batch job {number}" if "#SBATCH" in text else f"{number}.server")
    return 0


def keep(script, walltime):
    """The job itself: runs the script, and ends its process group at the wall time."""
    state = Path(script).parent
    while (state / "closed").exists():
        time.sleep(0.05)
    where = re.search(r"^#(?:SBATCH|PBS) -e (.*)$", Path(script).read_text(), re.MULTILINE).group(1)
    number = Path(script).stem
    with Path(where.replace("%J", number) + ("" if "%J" in where else f"{number}.ER")).open("w") as out:
        process = subprocess.Popen(["bash", script], stdout=out, stderr=out)
    try:
        process.wait(timeout=float(walltime))
    except subprocess.TimeoutExpired:
        Path(script).with_suffix(".killed").touch()
        os.killpg(os.getpgid(0), signal.SIGKILL)


def main():
    name, *rest = sys.argv[1:]
    if name == "keep":
        keep(*rest)
        return 0
    state = Path(os.environ["FAKE_BATCH"])
    if name in ("sbatch", "qsub"):
        return submit(state, rest[-1])
    going = jobs(state)
    waits = (state / "closed").exists()
    if name == "squeue":
        for number in going:
            print(number, "PENDING" if waits else "RUNNING")
        return 0
    if name == "qstat":
        print("Job id            Name             User              Time Use S Queue")
        print("----------------  ---------------- ----------------  -------- - -----")
        unknown = [number for number in rest if number.split(".")[0] not in going]
        for number in set(rest) - set(unknown):
            print(f"{number}        designopt        me                00:00:00 {'Q' if waits else 'R'} workq")
        for number in unknown:
            print(f"qstat: Unknown Job Id {number}", file=sys.stderr)
        return 153 if unknown else 0
    for number in rest:
        with contextlib.suppress(KeyError, ProcessLookupError):
            os.killpg(going[number.split(".")[0]], signal.SIGTERM)
    return 0


if __name__ == "__main__":
    sys.exit(main())
