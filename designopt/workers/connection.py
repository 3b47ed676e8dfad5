"""Where an executor's workers come from: processes of this machine, or a scheduler that runs already."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import logging
import multiprocessing.spawn
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import dask
from distributed import Client, LocalCluster

from designopt.store.errors import WorkersError
from designopt.workers.certificates import temporary_security
from designopt.workers.dask_worker import RunGuard

#: Seconds within which a scheduler must answer.
CONNECT_WAIT = 10
#: Seconds within which workers are ended.
CLOSE_WAIT = 30

#: The status of a worker that takes no more work.
LEAVING = "closing_gracefully"

#: Dask's settings for schedulers that this process starts.
SETTINGS: Mapping[str, Any] = {
    "distributed.scheduler.worker-ttl": None,  # a model may hold the interpreter's lock for long
    "distributed.worker.profile.enabled": False,
    "distributed.worker.use-file-locking": False,
    "distributed.worker.http.routes": [],  # no pages about the run: they would be open to everybody
    "distributed.scheduler.http.routes": [],
}
#: Options of schedulers that this process starts.
SCHEDULER_OPTIONS = {"allowed_failures": 0, "dashboard": False, "dashboard_address": "127.0.0.1:0"}
#: Dask forgets a local worker for good that is not up again so long after its death. One that dies often is not up at
#: that moment by chance, and a cluster without workers has no room for work.
_KEEP_WORKERS = {"distributed.deploy.lost-worker-timeout": "100000 h"}


class Connection(Protocol):
    """Workers, from the side of the executor."""

    client: Any
    #: Whether the workers are processes of this machine that nobody else uses.
    local: bool

    @property
    def most_workers(self) -> int | None:
        """How many workers there are when all are up; None when nobody knows."""

    def tend(self, workers: Mapping[str, str], in_flight: int) -> Sequence[tuple[str, str]]:
        """Called once a second with the workers that are up (name and status) and the most chunks in flight since.

        Returns what the user should know. Raises `WorkersError` when there is no hope for workers.
        """

    def leave(self) -> None:
        """What is to be done while the connection still stands."""

    def close(self) -> None:
        """End the workers, or leave them as they were found."""


class Local:
    """Workers of this run alone, one thread each, that end with this process; nobody else can connect to them."""

    local = True

    def __init__(self, workers: int) -> None:
        self._environment = dict(os.environ)
        self._exits = contextlib.ExitStack()
        self._exits.enter_context(_without_main_module())
        self._exits.enter_context(silent("distributed"))
        self._exits.enter_context(dask.config.set(_KEEP_WORKERS))
        try:
            self.cluster = self._start(workers)
        except RuntimeError:  # a worker was killed before it was up
            self.cluster = self._start(workers)
        self.client: Any = Client(self.cluster, set_as_default=False)  # type: ignore[no-untyped-call]

    @staticmethod
    def _start(workers: int) -> Any:
        with dask.config.set(SETTINGS):
            return LocalCluster(  # type: ignore[no-untyped-call]
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                protocol="tls://",
                security=temporary_security(),
                dashboard_address=None,
                silence_logs=logging.CRITICAL + 1,
                scheduler_kwargs=dict(SCHEDULER_OPTIONS),
            )

    @property
    def most_workers(self) -> int:
        """As many as were started."""
        return len(self.cluster.workers)

    def tend(self, workers: Mapping[str, str], in_flight: int) -> Sequence[tuple[str, str]]:
        """Nannies see to these workers."""
        return []

    def leave(self) -> None:
        """Nothing remains."""

    def close(self) -> None:
        """End the workers; one that does not answer is killed by its nanny, which takes a while."""
        self.client.close()
        with contextlib.suppress(TimeoutError):
            self.cluster.close(timeout=CLOSE_WAIT)
        self._exits.close()
        for name in os.environ.keys() - self._environment.keys():  # Dask sets the thread limits of its children here
            del os.environ[name]
        os.environ.update(self._environment)


class Existing:
    """Workers of the scheduler at `address` (or described in that file), which runs already."""

    local = False
    most_workers = None

    def __init__(self, run: str, address: str, path: Path, *, insecure: bool, folder: Path | None = None) -> None:
        self._run = run
        self._exits = contextlib.ExitStack()
        self._exits.enter_context(silent("distributed"))
        self.client: Any
        try:
            try:
                address = _address(address, folder)
                _refuse_open(address, path, insecure=insecure)
                _look_at_certificates(address, path)
                self.client = Client(address, set_as_default=False, timeout=CONNECT_WAIT)  # type: ignore[no-untyped-call]
            except (OSError, TimeoutError, ValueError, KeyError, TypeError, RecursionError) as error:
                raise WorkersError(_unreachable(address, error), path) from error
            self._exits.callback(self.client.close)
            self._look_at_workers(address, path)
            try:
                self.client.register_plugin(RunGuard(run, self.client.id))
            except Exception as error:
                text = f"scheduler {address}: cannot load designopt ({error!r}); install the same version there"
                raise WorkersError(text, path) from error
        except BaseException:
            self._exits.close()
            raise

    def _look_at_workers(self, address: str, path: Path) -> None:
        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        if not workers:
            raise WorkersError(f"scheduler {address} has no workers; start some with: dask worker {address}", path)
        threads = {w["nthreads"] for w in workers.values()}
        if threads != {1}:
            raise WorkersError(
                f"scheduler {address}: workers have {max(threads)} threads, models need one to themselves; "
                f"start them with: dask worker {address} --nthreads 1 --nworkers {max(threads)}",
                path,
            )

    def tend(self, workers: Mapping[str, str], in_flight: int) -> Sequence[tuple[str, str]]:
        """They are somebody else's."""
        return []

    def leave(self) -> None:
        """Take the plugins of the run out of the workers."""
        self.client.unregister_worker_plugin(f"designopt-{self._run}")
        self.client.unregister_worker_plugin(f"designopt-exit-codes-{self._run}", nanny=True)

    def close(self) -> None:
        """Leave the cluster as it was found: the guard on the scheduler sees the client go."""
        self._exits.close()


def _address(given: str, folder: Path | None) -> str:
    """The address itself, or that in a scheduler file (relative to this directory or to the study's `folder`)."""
    name = given.removeprefix("file:").strip()
    if name == given and not name.endswith(".json"):
        return given
    file = Path(name)
    if folder is not None and not file.is_file():
        file = folder / file
    return str(json.loads(file.read_text())["address"])


def _refuse_open(address: str, path: Path, *, insecure: bool) -> None:
    """Dask's messages are pickles: whoever reaches the scheduler can run anything."""
    parts = urlsplit(address)
    if insecure or parts.scheme in ("tls", "wss", "inproc"):
        return
    host = parts.hostname or ""
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = host == socket.gethostname() and socket.gethostbyname(host).startswith("127.")
    if not loopback:
        raise WorkersError(
            f"scheduler {address} is on another host and not encrypted: anybody there could run code here; "
            "use tls:// with certificates, or allow it with --insecure",
            path,
        )


def _look_at_certificates(address: str, path: Path) -> None:
    """TLS goes both ways: this side needs the authority's certificate, one of its own, and its key."""
    if urlsplit(address).scheme not in ("tls", "wss"):
        return
    names = ("ca-file", "client.cert", "client.key")
    files = {name: dask.config.get(f"distributed.comm.tls.{name}", None) for name in names}
    if not files["ca-file"] or not files["client.cert"]:
        raise WorkersError(
            f"scheduler {address} needs certificates: set distributed.comm.tls (ca-file, client.cert, client.key) in"
            " Dask's configuration, or DASK_DISTRIBUTED__COMM__TLS__CA_FILE, ..__CLIENT__CERT and ..__CLIENT__KEY",
            path,
        )
    for name, file in files.items():
        if file and "\n" not in file and not os.access(file, os.R_OK):
            raise WorkersError(
                f"scheduler {address}: {file} cannot be read (distributed.comm.tls.{name} of Dask's configuration)",
                path,
            )


def _unreachable(address: str, error: BaseException) -> str:
    text = f"scheduler {address} cannot be reached: {error}"
    if urlsplit(address).scheme in ("tls", "wss"):
        return f"{text}; is it running, and are its certificate and this side's signed by the same authority (ca-file)?"
    return f"{text}; is it running?"


@contextlib.contextmanager
def _without_main_module() -> Iterator[None]:
    """Worker processes start without running the user's script again.

    Python's ``spawn`` imports the main module into each child. Workers have no use for it, and a script that calls
    `run` without a guard would start workers of its own in each of them.
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


@contextlib.contextmanager
def silent(name: str) -> Iterator[None]:
    """Nothing of this logger is shown."""
    loggers = [logging.getLogger(name), logging.getLogger(f"{name}.client")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
