"""Commands of batch systems: submit a job, cancel jobs, and list pending and running ones."""

from __future__ import annotations

import getpass
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

#: Time-out of a command of the batch system (s).
ANSWER_WAIT = 60.0

JobState = Literal["waiting", "running"]


class BatchError(Exception):
    """A command of the batch system is missing, failed or timed out."""


@dataclass(frozen=True)
class BatchSystem:
    """The commands of one kind of batch system.

    `look` is the user's command for the queue. `states` gives which of some jobs are pending or running; ended ones are
    omitted, and None means that the batch system does not answer.
    """

    name: str
    submit_command: str
    cancel_command: str
    look: str
    states: Callable[[Sequence[str]], Mapping[str, JobState] | None]

    def submit(self, script: Path) -> str:
        """Submit `script`; returns the number of the job. Raises `BatchError`."""
        out = _call([self.submit_command, str(script)])
        job_number = re.search(r"\d+(\[\])?(\.[\w.-]+)?", out)
        if job_number is None:
            raise BatchError(f"{self.submit_command} did not return a job number but: {out.strip()!r}")
        return job_number.group(0)

    def cancel(self, jobs: Sequence[str]) -> None:
        """End jobs; ended ones are ignored."""
        if jobs:
            _run([self.cancel_command, *jobs])

    def missing_command(self) -> str:
        """The first command that is not on the path; "" if all are."""
        commands = (self.submit_command, self.cancel_command, self.look.split()[0])
        return next((c for c in commands if shutil.which(c) is None), "")


def _slurm_states(jobs: Sequence[str]) -> Mapping[str, JobState] | None:
    """The states from squeue, which lists jobs that have not ended."""
    answer = _try(["squeue", "--noheader", "--user", getpass.getuser(), "--format", "%i %T"])
    if answer is None or answer.returncode != 0:
        return None
    states = dict(line.split()[:2] for line in answer.stdout.splitlines() if len(line.split()) >= 2)
    going = {"RUNNING", "COMPLETING", "STOPPED", "SUSPENDED", "SIGNALING", "STAGE_OUT"}
    return {job: "running" if states[job] in going else "waiting" for job in jobs if job in states}


def _pbs_states(jobs: Sequence[str]) -> Mapping[str, JobState] | None:
    """The states from qstat, whose second to last column is the state; it reports errors for ended jobs."""
    states: dict[str, JobState] = {}
    answer = _try(["qstat", *jobs])
    if answer is None:
        return None
    end_words = re.compile(r"unknown job|has finished|does not exist", re.IGNORECASE)
    strange = [line for line in answer.stderr.splitlines() if line.strip() and not end_words.search(line)]
    if answer.returncode != 0 and (strange or not answer.stderr.strip()):
        return None
    for line in answer.stdout.splitlines():
        fields = line.split()
        if len(fields) < 5 or not fields[0][0].isdigit():
            continue
        for job in jobs:
            if job.split(".")[0] == fields[0].split(".")[0] and fields[-2] not in "CFX":
                states[job] = "running" if fields[-2] in "RE" else "waiting"
    return states


#: Batch systems by their name in a study.
SYSTEMS: Mapping[str, BatchSystem] = {
    "slurm": BatchSystem("SLURM", "sbatch", "scancel", "squeue --me", _slurm_states),
    "pbs": BatchSystem("PBS", "qsub", "qdel", "qstat -u $USER", _pbs_states),
}


def _try(command: Sequence[str]) -> subprocess.CompletedProcess[str] | None:
    try:
        return _run(command)
    except BatchError:
        return None


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:  # in its own session: Ctrl-C on the terminal is for the coordinator only
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ANSWER_WAIT,
            start_new_session=True,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise BatchError(f"{command[0]} did not answer for {ANSWER_WAIT:.0f} s") from error
    except OSError as error:
        raise BatchError(f"{command[0]} cannot be run: {error.strerror}") from error


def _call(command: Sequence[str]) -> str:
    answer = _run(command)
    if answer.returncode != 0:
        message = " ".join((answer.stderr or answer.stdout).split()) or f"exit code {answer.returncode}"
        raise BatchError(f"{command[0]}: {message.removeprefix(f'{command[0]}: ')}")
    return answer.stdout
