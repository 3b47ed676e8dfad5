"""Workers on this machine for one run alone: start, replacement and end."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing.spawn
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import dask
from distributed import Client, LocalCluster, Status

from designopt.counts import plural
from designopt.store.errors import WorkersError
from designopt.workers.carriers.carrier import Ends
from designopt.workers.carriers.streams import Streams
from designopt.workers.pools.certificates import temporary_security
from designopt.workers.pools.connection import CLOSE_WAIT, SCHEDULER_OPTIONS, SETTINGS, suppress_messages
from designopt.workers.pools.forking import fork_workers
from designopt.workers.pools.scratch import scratch_folder
from designopt.workers.pools.shortage import (
    NO_THREADS,
    needed_files,
    no_shared_memory,
    without_files,
    without_threads,
)
from designopt.workers.private_names import start_missing_workers
from designopt.workers.supervision import children
from designopt.workers.supervision.watch import remaining

#: Attempts to start all workers.
STARTS = 5
#: Time for a leaving worker to end (s).
LEAVE_WAIT = 10.0
#: Time after which Dask forgets a local worker that is not restarted. One that dies often may be down at that moment by
#: chance, and a cluster without workers has no room for work.
_KEEP_WORKERS = {"distributed.deploy.lost-worker-timeout": "100000 h"}


#: One run at a time changes Dask's settings for the start of its workers.
_starting = threading.Lock()


class LocalWorkers:
    """Workers of `run` alone, one thread each, that end with this process; other users cannot connect to them.

    `path` is the run's store. Raises `WorkersError` if they cannot be started.
    """

    local = True

    def __init__(self, run: str, workers: int, path: Path) -> None:
        self._run = run
        self._path = path
        self._leaving: dict[Any, float] = {}
        self._exits = contextlib.ExitStack()
        try:
            self._exits.enter_context(_together)
            self._allow_files(workers)
            if reason := no_shared_memory():
                raise WorkersError(reason, path)
            self._scratch = self._exits.enter_context(scratch_folder(run))
            self._exits.callback(self._clean_up)
            self.cluster, self.client = self._start(workers)
        except BaseException as error:
            self._exits.close()
            if without_threads(error):
                raise WorkersError(NO_THREADS, path) from error
            raise

    def _start(self, workers: int) -> tuple[Any, Any]:
        """Start scheduler, workers and a client. In Dask a worker killed during its start breaks the others, so all of
        them are started again."""
        for attempt in range(1, STARTS + 1):
            cluster: Any = None
            try:
                cluster = _cluster(workers, self._scratch)
                scheduler = cluster.scheduler
                inside = next(
                    listener.contact_address for listener in scheduler.listeners if listener.prefix == "inproc"
                )
                client: Any = Client(inside, loop=cluster.loop, security=cluster.security, set_as_default=False)  # type: ignore[no-untyped-call]
                return cluster, client
            except Exception as error:
                if cluster is not None:
                    with contextlib.suppress(Exception):
                        cluster.close(timeout=CLOSE_WAIT)
                if without_threads(error):
                    raise
                if attempt == STARTS or without_files(error):
                    raise WorkersError(self._not_started(workers, error), self._path) from error
        raise AssertionError("unreachable")

    def _not_started(self, workers: int, error: Exception) -> str:
        if without_files(error):
            return self._too_few_files(workers)
        return (
            f"{plural(workers, 'worker')} could not be started in {STARTS} attempts ({type(error).__name__}: "
            f"{error}); if memory is short, use fewer (--workers)"
        )

    def _allow_files(self, workers: int) -> None:
        """Raise the limit of open files to the maximum, and reject a number of workers that exceeds it."""
        try:
            import resource
        except ImportError:  # a system without such limits
            return
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        need = needed_files(workers)
        with_open = need + _open_files()
        if soft != resource.RLIM_INFINITY and soft < with_open:
            limit = with_open if hard == resource.RLIM_INFINITY else min(with_open, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, limit), hard))
            _together.at_end(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
            if limit < need:
                raise WorkersError(self._too_few_files(workers), self._path)

    def _too_few_files(self, workers: int) -> str:
        need = needed_files(workers)
        return (
            f"about {need} open files are needed for {plural(workers, 'worker')}, and the system allows fewer "
            "(ulimit -n shows the limit); "
            "raise it, or use fewer workers (--workers) or none (--executor serial)"
        )

    @property
    def most_workers(self) -> int:
        """The number of started workers."""
        return len(self.cluster.worker_spec)

    def tend(self, workers: Mapping[str, str], in_flight: int) -> Sequence[tuple[str, str]]:
        """Nannies supervise their workers; a nanny that has left with its worker is replaced."""
        up = [nanny.status in (Status.running, Status.init, Status.starting) for nanny in self._nannies()]
        if not all(up) or len(up) < self.most_workers:
            self.cluster.loop.add_callback(self._replace)
        return []

    def _nannies(self) -> list[Any]:
        return list(self.cluster.workers.values())

    async def _replace(self) -> None:
        time_now = time.monotonic()
        gone = [name for name, nanny in self.cluster.workers.items() if nanny.status in (Status.closed, Status.failed)]
        for nanny in self._nannies():
            if nanny.status in (Status.closing_gracefully, Status.closing):
                since = self._leaving.setdefault(nanny, time_now)
                if time_now - since > LEAVE_WAIT and nanny.pid:
                    os.kill(nanny.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
        for name in gone:
            self._leaving.pop(self.cluster.workers.pop(name), None)
        if len(self.cluster.workers) < self.most_workers:
            with contextlib.suppress(Exception):  # it is tried again, until the run ends
                await start_missing_workers(self.cluster)

    def carrier(self, ends: Ends) -> Streams:
        """Messages on the streams to the workers."""
        return Streams(self._run, self.cluster, ends)

    def leave(self) -> None:
        """No effect."""

    def close(self) -> None:
        """End the workers; the nanny kills an unresponsive one, which takes some time."""
        leaders = [int(text) for notes in remaining(self._run) if (text := _text(notes / "pid")).isdigit()]
        with contextlib.suppress(OSError, TimeoutError):
            self.client.close()
        with contextlib.suppress(OSError, TimeoutError, AssertionError):  # of a nanny whose worker is starting
            self.cluster.close(timeout=CLOSE_WAIT)
        for leader in leaders:
            children.end_group(leader)
        self._exits.close()

    def _clean_up(self) -> None:
        """Remove files of killed workers, and processes started by models."""
        children.end_marked(self._run)
        for notes in remaining(self._run):
            shutil.rmtree(notes, ignore_errors=True)


def _cluster(workers: int, scratch: Path) -> Any:
    """Workers reach the scheduler by TLS; the client, in the same process, without a socket. Dask's temporary files are
    in `scratch`."""
    listens: dict[str, Any] = {"host": ["127.0.0.1", None], "protocol": ["tls://", "inproc://"]}
    listens |= {"port": [0, 0], "interface": [None, None]}
    with _starting, dask.config.set({**SETTINGS, "temporary-directory": str(scratch)}):
        return LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            local_directory=str(scratch),
            protocol="tls://",
            security=temporary_security(),
            dashboard_address=None,
            silence_logs=logging.CRITICAL + 1,
            scheduler_kwargs={**SCHEDULER_OPTIONS, **listens},
        )


def _open_files() -> int:
    """Number of files that this process has already open, in a notebook for example, if the system gives it."""
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 0


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""


@contextlib.contextmanager
def _with_its_environment() -> Iterator[None]:
    """Restore what Dask sets here for its children: thread limits, hash seed and the number of this process. Other
    changes made meanwhile stay."""
    names = ["PYTHONHASHSEED", "__DASK_PARENT_PID", *dask.config.get("distributed.nanny.pre-spawn-environ")]
    before = {name: os.environ.get(name) for name in names}
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextlib.contextmanager
def _without_main_module() -> Iterator[None]:
    """Start worker processes without running the user's script again.

    Python's ``spawn`` imports the main module into each child. Workers do not need it, and a script that calls `run`
    without a guard would start more workers in each of them.
    """
    original = multiprocessing.spawn.get_preparation_data

    def prepare(name: str) -> dict[str, Any]:
        data: dict[str, Any] = original(name)
        if name.startswith("Dask Worker process"):
            data.pop("init_main_from_name", None)
            data.pop("init_main_from_path", None)
        return data

    multiprocessing.spawn.get_preparation_data = prepare
    try:
        yield
    finally:
        multiprocessing.spawn.get_preparation_data = original


class SharedChanges:
    """The first user makes the `changes`, in their order; the last one reverts them.

    Runs in threads of one process begin and end independently, without reverting changes that another one needs.
    """

    def __init__(self, *changes: Callable[[], contextlib.AbstractContextManager[Any]]) -> None:
        self._changes = changes
        self._lock = threading.Lock()
        self._inside = 0
        self._exits = contextlib.ExitStack()

    def __enter__(self) -> SharedChanges:
        with self._lock:
            if self._inside == 0:
                with contextlib.ExitStack() as exits:
                    for change in self._changes:
                        exits.enter_context(change())
                    self._exits = exits.pop_all()
            self._inside += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._exits.close()

    def at_end(self, call: Callable[..., object], *arguments: Any) -> None:
        """Register `call` to revert another change; only while in use."""
        with self._lock:
            self._exits.callback(call, *arguments)


_together = SharedChanges(
    _with_its_environment,
    _without_main_module,
    fork_workers,
    lambda: suppress_messages("distributed"),
    lambda: suppress_messages("asyncio"),  # about Dask tasks interrupted by the death of a worker
    lambda: dask.config.set(_KEEP_WORKERS),
)
