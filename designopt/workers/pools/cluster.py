"""Workers started by a batch system: a pool of jobs that is kept full until the work is done.

dask-jobqueue writes the job script and starts the scheduler in this process. This module manages the jobs: the scaling
of dask-jobqueue does not detect that a job with several workers has ended, and measures demand by the queue of the
scheduler, which is bounded here.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import re
import shlex
import shutil
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
from distributed import Client

from designopt.store.errors import WorkersError, resume_command
from designopt.study.study import Cluster
from designopt.workers.carriers.carrier import Ends
from designopt.workers.carriers.tasks import Tasks
from designopt.workers.pools.batch import SYSTEMS, BatchError, BatchSystem
from designopt.workers.pools.certificates import temporary_security
from designopt.workers.pools.connection import CLOSE_WAIT, LEAVING, SCHEDULER_OPTIONS, SETTINGS, suppress_messages
from designopt.workers.pools.scratch import scratch_folder
from designopt.workers.remote import dask_worker
from designopt.workers.remote.dask_worker import RETIREMENT
from designopt.workers.supervision.supervisor import SLACK

#: Interval between checks of the pool, and between queries of the batch system (s).
ROUND, QUESTION = 1.0, 15.0
#: Time for the first worker of a running job to connect (s).
ARRIVAL = 300.0
#: Maximum number of consecutive jobs that end before one of their workers connects.
FAILED_JOBS = 3
#: Interval between messages about pending jobs, and before a rejected job is submitted again (s).
MESSAGE, AGAIN = 300.0, 60.0
#: Time with little work after which a pool releases a job (s).
SLACK_TIME = 60.0
#: Time after which a worker that cannot reach its scheduler ends (s).
DEATH_TIMEOUT = 60

_PLACEHOLDER = "--name dummy-name"  # dask-jobqueue's name of the worker in a displayed job script

#: Characters that mean nothing else to a shell and to batch systems, in settings and in the path of a store.
_SETTING, _PATH = re.compile(r"\w[\w.:@/+,=-]*"), re.compile(r"[\w.@/+,=-]+")


@dataclass(frozen=True)
class Retirement:
    """When the workers of a job leave, in seconds since its start: `begin` without stagger, `stagger`, and `end`."""

    begin: float
    stagger: float
    end: float

    @classmethod
    def for_walltime(cls, walltime: float, timeout: float | None) -> Retirement:
        """A tenth of the wall time (at most 10 min), or one time-out, for active evaluations; the same for the
        stagger."""
        closing = min(30.0, 0.1 * walltime)
        usual = min(600.0, 0.1 * walltime)
        drain = max(usual, SLACK * (timeout or 0.0))
        return cls(walltime - closing - drain, usual, walltime - closing)

    def line(self, number: int) -> str:
        """Shell line for the job with this number: workers read their end time from it."""
        share = (number * 0.6180339887) % 1.0  # golden section: spreads any number of jobs evenly
        begin = int(self.begin - share * self.stagger)
        return f'export {RETIREMENT}="$(( $(date +%s) + {begin} )) $(( $(date +%s) + {int(self.end)} ))"'


@dataclass
class _Job:
    """A job of the pool: its worker names begin with `name`."""

    name: str
    number: str
    submission_time: float
    running: float | None = None
    had_workers: bool = False
    leaving: bool = False


class Jobs:
    """A scheduler in this process, and workers in batch jobs. See `designopt.workers.pools.connection.Connection`."""

    local = False
    most_workers = None

    def __init__(self, run: str, cluster: Cluster, path: Path, *, timeout: float | None) -> None:
        self._run = run
        self._cluster_section = cluster
        self._path = path
        self._system = SYSTEMS[cluster.use]
        self._timeout = timeout
        self._logs = path / "logs"
        self._target = cluster.jobs
        self._jobs: list[_Job] = []
        self._job_count = 0
        self._present: Counter[str] = Counter()
        self._going: set[str] = set()
        self._slack_since = time.monotonic()
        self._notices: deque[tuple[str, str]] = deque()
        self._error: WorkersError | None = None
        self._failed_starts = 0
        self._last_message = ("", -MESSAGE)
        self._answer_time = time.monotonic()
        self._refusal_time = -AGAIN
        self._closing = threading.Event()
        self._exits = contextlib.ExitStack()
        _check(cluster, self._system, path, timeout)
        try:
            self._start()
            self._submit_one()
        except BatchError as error:
            self._exits.close()
            raise WorkersError(f"the job was rejected: {error}", path) from error
        except BaseException:
            self._exits.close()
            raise
        self._tell_waiting()
        self._keeper = threading.Thread(target=self._keep, name="designopt-jobs", daemon=True)
        self._keeper.start()

    def _start(self) -> None:
        """The scheduler, with certificates of the same lifetime."""
        self._exits.enter_context(suppress_messages("distributed"))
        self._exits.enter_context(suppress_messages("dask_jobqueue"))
        try:
            self._logs.mkdir(exist_ok=True)
            self._exits.callback(self._remove_empty_logs)
            scratch = self._exits.enter_context(scratch_folder(self._run))
            security = self._exits.enter_context(_temporary_security(self._path.resolve() / "tls"))
        except OSError as error:
            raise WorkersError(f"{error.filename}: cannot be written: {error.strerror}", self._path) from error
        section = self._cluster_section
        configuration = dask.config.get(f"jobqueue.{section.use}", None) or {}
        prologue = configuration.get("job-script-prologue") or []
        temporary = _temporary_folder(configuration.get("local-directory") or "${TMPDIR:-/tmp}")
        worker_settings = [f"export {_variable(name)}={value}" for name, value in SETTINGS.items() if value is not None]
        threads = [f"export {name}_NUM_THREADS=1" for name in ("OMP", "OPENBLAS", "MKL")]
        try:
            with dask.config.set({**SETTINGS, "temporary-directory": str(scratch)}):
                self._cluster = _cluster_class(section.use)(
                    cores=section.cores,
                    processes=section.cores,
                    memory=f"{section.memory}B",
                    walltime=_clock(section.walltime),
                    queue=section.queue,
                    account=section.account,
                    interface=section.interface,
                    job_script_prologue=[*worker_settings, *threads, *prologue, *temporary],
                    python=configuration.get("python") or shlex.quote(sys.executable),
                    local_directory='"$TMPDIR"',
                    job_name="designopt",
                    log_directory=str(self._logs.resolve()),
                    worker_extra_args=["--no-dashboard"],
                    death_timeout=DEATH_TIMEOUT,
                    scheduler_options={
                        "port": 0,
                        **(configuration.get("scheduler-options") or {}),
                        **SCHEDULER_OPTIONS,
                    },
                    protocol="tls://",
                    security=security,
                    silence_logs=logging.CRITICAL + 1,
                )
        except (OSError, ValueError, RuntimeError) as error:
            interface = f"interface '{section.interface}'" if section.interface else "this machine"
            raise WorkersError(f"the scheduler cannot be started on {interface}: {error}", self._path) from error
        self._exits.callback(self._close_cluster)
        self.client: Any = Client(self._cluster, set_as_default=False)  # type: ignore[no-untyped-call]
        self._exits.callback(self.client.close)

    def _remove_empty_logs(self) -> None:
        """Remove the folder of logs if no job has written to it, so that a new store whose first job is rejected can be
        removed."""
        with contextlib.suppress(OSError):
            self._logs.rmdir()

    def _close_cluster(self) -> None:
        with contextlib.suppress(TimeoutError):
            self._cluster.close(timeout=CLOSE_WAIT)

    # ----------------------------------------------------------------------------------- side of the coordinator

    def tend(self, workers: Mapping[str, str], in_flight: int) -> Sequence[tuple[str, str]]:
        """Pass the connected workers and the demand to the pool. Raises `WorkersError`."""
        self._present = Counter(self._job_of(name) for name in workers)
        self._going = {self._job_of(name) for name, status in workers.items() if status == LEAVING}
        if self._error is not None:
            raise self._error
        self._adapt(len(workers), in_flight)
        return [self._notices.popleft() for _ in range(len(self._notices))]

    def _job_of(self, worker: str) -> str:
        return worker if self._cluster_section.cores == 1 else worker.rpartition("-")[0]

    def _adapt(self, workers: int, in_flight: int) -> None:
        """More jobs if all slots are taken, one less if the chunks in flight need one less for a while."""
        minimum = self._cluster_section.minimum
        if minimum is None or not workers:
            return
        time_now = time.monotonic()
        if in_flight >= 2 * workers and self._target < self._cluster_section.jobs:
            self._target = min(self._cluster_section.jobs, 2 * self._target)
        if in_flight > workers - self._cluster_section.cores:
            self._slack_since = time_now
        elif time_now - self._slack_since > SLACK_TIME and self._target > max(1, minimum):
            self._slack_since = time_now
            self._target -= 1

    def carrier(self, ends: Ends) -> Tasks:
        """Tasks: workers leave before the time of their batch job is used up, and Dask moves their chunks."""
        return Tasks(self._run, self.client, ends)

    def leave(self) -> None:
        """No effect: workers end with their scheduler."""

    def close(self) -> None:
        """End the scheduler and all jobs."""
        self._closing.set()
        self._keeper.join()
        self._exits.close()
        with contextlib.suppress(BatchError):
            self._system.cancel([job.number for job in self._jobs])

    # ------------------------------------------------------------------------------------------ side of the pool

    def _keep(self) -> None:
        while not self._closing.wait(ROUND):
            try:
                self._look()
                self._fill()
                self._give_back()
                self._tell_waiting()
            except WorkersError as error:
                self._error = error
                return
            except Exception as error:
                remedy = f"continue with: {resume_command(self._path)}"
                self._error = WorkersError(f"the job pool failed: {error!r}; {remedy}", self._path)
                return

    def _look(self) -> None:
        """Remaining jobs according to the batch system."""
        time_now = time.monotonic()
        present = self._present
        for job in self._jobs:
            job.had_workers = job.had_workers or present[job.name] > 0
            job.leaving = job.leaving or job.name in self._going  # another one is submitted at once
        self._failed_starts = 0 if present else self._failed_starts
        is_missing = any(job.had_workers and not present[job.name] for job in self._jobs)
        if time_now - self._answer_time < (2.0 * ROUND if is_missing else QUESTION):
            return
        self._answer_time = time_now
        states = self._system.states([job.number for job in self._jobs])
        if states is None:
            return
        for job in list(self._jobs):
            state = states.get(job.number)
            if state is None and not present[job.name] and time_now - job.submission_time > ROUND:
                self._jobs.remove(job)
                self._ended(job)
            elif state == "running":
                job.running = job.running or time_now
        late = [job for job in self._jobs if job.running and not job.had_workers and time_now - job.running > ARRIVAL]
        if late and not any(job.had_workers for job in self._jobs):
            raise self._job_error(
                f"job {late[0].number} has run for {ARRIVAL:.0f} s without a worker; can its workers reach "
                f"{self._cluster.scheduler_address}? (execution.cluster.interface names the network)"
            )

    def _ended(self, job: _Job) -> None:
        if job.had_workers:
            return
        self._failed_starts += 1
        if self._failed_starts >= FAILED_JOBS:
            raise self._job_error(f"{self._failed_starts} jobs ended before a worker appeared")

    def _job_error(self, text: str) -> WorkersError:
        last_words = self._last_words()
        parts = [text, *([f"the end of {last_words[0]}:\n{last_words[1]}\n"] if last_words else [])]
        text = "; ".join([*parts, f"their output is in {self._logs}", f"the queue shows with: {self._system.look}"])
        return WorkersError(f"{text}; continue with: {resume_command(self._path)}", self._path)

    def _last_words(self) -> tuple[str, str] | None:
        """The end of the newest error file of a job."""
        files = [file for file in self._logs.glob("*") if file.is_file() and file.stat().st_size]
        for file in sorted(files, key=lambda file: file.stat().st_mtime, reverse=True):
            lines = file.read_text(errors="replace").splitlines()[-5:]
            return file.name, "\n".join(f"  {line}" for line in lines)
        return None

    def _fill(self) -> None:
        """Submit missing jobs."""
        while len([job for job in self._jobs if not job.leaving]) < self._target and not self._closing.is_set():
            if time.monotonic() - self._refusal_time < AGAIN:
                return
            try:
                self._submit_one()
            except BatchError as error:
                self._refusal_time = time.monotonic()
                if not self._jobs:
                    raise self._job_error(f"the job was rejected: {error}") from error
                text = (
                    f"a job was rejected ({error}); {len(self._jobs)} of {self._target} are running, it will be "
                    "resubmitted"
                )
                self._notices.append(("job_refused", text))

    def _submit_one(self) -> None:
        self._job_count += 1
        name = f"designopt-{self._run}-{self._job_count}"
        retirement = Retirement.for_walltime(self._cluster_section.walltime, self._timeout).line(self._job_count)
        lines = str(self._cluster.job_script()).replace(_PLACEHOLDER, f"--name {name}").splitlines()
        first = 1 + max(i for i, line in enumerate(lines) if line.startswith(("#!", "#SBATCH", "#PBS")))
        script = self._logs / f"{name}.sh"
        try:
            script.write_text("\n".join([*lines[:first], retirement, *lines[first:], ""]))
            number = self._system.submit(script.resolve())
        except OSError as error:
            raise BatchError(f"{script} cannot be written: {error.strerror}") from error
        finally:
            script.unlink(missing_ok=True)
        self._jobs.append(_Job(name, number, time.monotonic()))

    def _give_back(self) -> None:
        """End surplus jobs: pending ones first; of others the workers leave after their chunks."""
        staying = sorted(
            (job for job in self._jobs if not job.leaving), key=lambda job: (job.had_workers, -job.submission_time)
        )
        for job in staying[: max(0, len(staying) - self._target)]:
            job.leaving = True
            if not job.had_workers:
                with contextlib.suppress(BatchError):
                    self._system.cancel([job.number])
                self._jobs.remove(job)
                continue
            worker_items = self.client.scheduler_info(n_workers=-1)["workers"].items()
            workers = [address for address, worker in worker_items if self._job_of(str(worker["name"])) == job.name]
            with contextlib.suppress(OSError, TimeoutError):
                self.client.run(dask_worker.retire, self._run, SLACK * (self._timeout or 600.0), workers=workers)

    def _tell_waiting(self) -> None:
        """Report the number of jobs while there are no workers."""
        if self._present:
            self._last_message = ("", -MESSAGE)
            return
        running = sum(job.running is not None for job in self._jobs)
        text = f"{len(self._jobs)} submitted, {running} running"
        time_now = time.monotonic()
        if text != self._last_message[0] or time_now - self._last_message[1] > MESSAGE:
            self._last_message = (text, time_now)
            self._notices.append(("waiting_for_jobs", f"{text} ({self._system.look} shows the queue)"))


def _check(cluster: Cluster, system: BatchSystem, path: Path, timeout: float | None) -> None:
    """Reject invalid settings at once."""
    try:
        import dask_jobqueue  # noqa: F401
    except ImportError as error:
        text = f"execution.cluster needs {error.name}: pip install 'designopt[cluster]'"
        raise WorkersError(text, path) from error
    if command := system.missing_command():
        raise WorkersError(
            f"execution.cluster: {system.name} needs the command {command}, which is not on the path; "
            "run the study on a login node of the cluster, or with --workers on this machine",
            path,
        )
    for name in ("queue", "account", "interface"):
        value = getattr(cluster, name)
        if value is not None and not _SETTING.fullmatch(value):
            text = "is not one word: use letters, digits and _ . : @ / + , = -"
            raise WorkersError(f"execution.cluster.{name}: {value!r} {text}", path)
    if not _PATH.fullmatch(absolute := str(path.resolve())):
        wrong = next(character for character in absolute if not _PATH.fullmatch(character))
        raise WorkersError(
            f"execution.cluster: the path of the store contains {wrong!r}, which batch systems and shells do not take "
            f"as part of a name: {absolute!r}; give another one with -o, of letters, digits and _ . @ / + , = -",
            path,
        )
    longest = cluster.walltime / 3.0
    if timeout is not None and SLACK * timeout > longest:
        raise WorkersError(
            f"execution.timeout is {timeout:g} s, too long for jobs of {cluster.walltime:g} s: "
            "a worker must finish its evaluation before its job ends; set walltime to at least "
            f"{3.0 * SLACK * timeout:g} s",
            path,
        )


@contextlib.contextmanager
def _temporary_security(folder: Path) -> Iterator[Any]:
    """Certificates in files readable by batch jobs of the same user, for the lifetime of the scheduler."""
    from distributed.security import Security

    shutil.rmtree(folder, ignore_errors=True)  # of a killed run
    folder.mkdir(mode=0o700)
    security = temporary_security()
    files = {"ca.pem": security.tls_ca_file, "cert.pem": security.tls_worker_cert, "key.pem": security.tls_worker_key}
    try:
        for name, text in files.items():
            (folder / name).touch(mode=0o600)
            (folder / name).write_text(text)
        roles = {
            f"tls_{role}_{part}": str(folder / f"{part}.pem")
            for role in ("client", "scheduler", "worker")
            for part in ("cert", "key")
        }
        yield Security(require_encryption=True, tls_ca_file=str(folder / "ca.pem"), **roles)  # type: ignore[no-untyped-call]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _temporary_folder(above: str) -> list[str]:
    """Lines of a job script: a folder for temporary files of the job in the folder `above` (in terms of the shell),
    removed at its end. Without the second trap the shell would end before its workers."""
    return [
        f'mkdir -p "{above}" && TMPDIR="$(mktemp -d "{above}/designopt-XXXXXXXX")" || exit 1; export TMPDIR',
        """trap 'rm -rf -- "$TMPDIR"' EXIT; trap : HUP INT TERM""",
    ]


def _cluster_class(use: str) -> Any:
    return getattr(importlib.import_module("dask_jobqueue"), {"slurm": "SLURMCluster", "pbs": "PBSCluster"}[use])


def _variable(name: str) -> str:
    """The environment variable for a setting of Dask."""
    return "DASK_" + name.upper().replace(".", "__").replace("-", "_")


def _clock(seconds: float) -> str:
    """Hours, minutes and seconds in the form of batch systems."""
    total = int(seconds)
    return f"{total // 3600:02d}:{total // 60 % 60:02d}:{total % 60:02d}"
