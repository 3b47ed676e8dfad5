"""Sources of an executor's workers, and workers of an existing scheduler."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import logging
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import dask
from distributed import Client

from designopt.store.errors import WorkersError
from designopt.workers.carriers.carrier import Carrier, Ends
from designopt.workers.carriers.tasks import Tasks
from designopt.workers.remote.dask_worker import RunGuard

#: Time-out of the connection to a scheduler (s).
CONNECT_WAIT = 10
#: Time-out for ending workers (s).
CLOSE_WAIT = 30

#: The status of a worker that accepts no more work.
LEAVING = "closing_gracefully"

#: Dask's settings for schedulers started by this process.
SETTINGS: Mapping[str, Any] = {
    "distributed.scheduler.worker-ttl": None,  # a model may hold the interpreter's lock for long
    "distributed.worker.profile.enabled": False,
    "distributed.worker.use-file-locking": False,
    "distributed.admin.tick.interval": "1s",  # clock interval of each server in this process; the default is 20 ms
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.worker.http.routes": [],  # no web pages about the run: they would be open to all users
    "distributed.scheduler.http.routes": [],
}
#: Options of schedulers started by this process.
SCHEDULER_OPTIONS = {"allowed_failures": 0, "dashboard": False, "dashboard_address": "127.0.0.1:0"}


class Connection(Protocol):
    """Workers, as seen by the executor."""

    client: Any
    #: Whether the workers are processes of this machine for this run alone.
    local: bool

    @property
    def most_workers(self) -> int | None:
        """Total number of workers once all are connected; None if unknown."""

    def tend(self, workers: Mapping[str, str], in_flight: int) -> Sequence[tuple[str, str]]:
        """Called once per second with the connected workers (name and status) and the maximum number of chunks in
        flight since.

        Returns messages for the user. Raises `WorkersError` if no workers can be expected.
        """

    def carrier(self, ends: Ends) -> Carrier:
        """The transport of chunks to the workers; ends are put into `ends`."""

    def leave(self) -> None:
        """Actions before the connection closes."""

    def close(self) -> None:
        """End the workers, or restore their state."""


class ExistingScheduler:
    """Workers of the existing scheduler at `address` (or described in that file)."""

    local = False
    most_workers = None

    def __init__(self, run: str, address: str, path: Path, *, insecure: bool, folder: Path | None = None) -> None:
        self._run = run
        self._exits = contextlib.ExitStack()
        self._exits.enter_context(suppress_messages("distributed"))
        self.client: Any
        try:
            try:
                address = _address(address, folder)
                _refuse_open(address, path, insecure=insecure)
                _check_certificates(address, path)
                self.client = Client(address, set_as_default=False, timeout=CONNECT_WAIT)  # type: ignore[no-untyped-call]
            except (OSError, TimeoutError, ValueError, KeyError, TypeError, RecursionError) as error:
                raise WorkersError(_unreachable(address, error), path) from error
            self._exits.callback(self.client.close)
            self._count_workers(address, path)
            try:
                self.client.register_plugin(RunGuard(run, self.client.id))
            except Exception as error:
                text = f"scheduler {address}: cannot load designopt ({error!r}); install the same version there"
                raise WorkersError(text, path) from error
        except BaseException:
            self._exits.close()
            raise

    def _count_workers(self, address: str, path: Path) -> None:
        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        if not workers:
            raise WorkersError(f"scheduler {address} has no workers; start some with: dask worker {address}", path)
        threads = {w["nthreads"] for w in workers.values()}
        if threads != {1}:
            raise WorkersError(
                f"scheduler {address}: workers have {max(threads)} threads, models need workers with one thread; "
                f"start them with: dask worker {address} --nthreads 1 --nworkers {max(threads)}",
                path,
            )

    def tend(self, workers: Mapping[str, str], in_flight: int) -> Sequence[tuple[str, str]]:
        """No effect: others manage them."""
        return []

    def carrier(self, ends: Ends) -> Tasks:
        """Tasks, because others share the scheduler."""
        return Tasks(self._run, self.client, ends)

    def leave(self) -> None:
        """Remove the plugins of the run from the workers."""
        self.client.unregister_worker_plugin(f"designopt-{self._run}")
        self.client.unregister_worker_plugin(f"designopt-supervisor-{self._run}", nanny=True)

    def close(self) -> None:
        """Restore the state of the cluster: the guard on the scheduler detects the end of the client."""
        self._exits.close()


def _address(address_or_file: str, folder: Path | None) -> str:
    """The address itself, or that in a scheduler file (relative to this directory or to the study's `folder`)."""
    name = address_or_file.removeprefix("file:").strip()
    if name == address_or_file and not name.endswith(".json"):
        return address_or_file
    file = Path(name)
    if folder is not None and not file.is_file():
        file = folder / file
    return str(json.loads(file.read_text())["address"])


def _refuse_open(address: str, path: Path, *, insecure: bool) -> None:
    """Dask's messages are pickles: anyone who reaches the scheduler can run any code."""
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
            f"scheduler {address} is on another host and not encrypted: anyone there could run code here; "
            "use tls:// with certificates, or allow it with --insecure",
            path,
        )


def _check_certificates(address: str, path: Path) -> None:
    """TLS is mutual: this side needs the authority's certificate, its own, and its key."""
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
def suppress_messages(name: str) -> Iterator[None]:
    """Suppress messages of this logger."""
    loggers = [logging.getLogger(name), logging.getLogger(f"{name}.client")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
