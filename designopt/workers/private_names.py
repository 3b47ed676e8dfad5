"""All names that multiprocessing and distributed keep private and that runs need, each with its reason.

`tests/workers/test_private_names.py` tells which of them an installed release lacks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ForkServerProcess:
    """Access to a process from which multiprocessing forks others: process, socket, and the file whose end ends it."""

    pid: int
    address: str
    alive: int


class ForkServer:
    """The fork server of this process.

    The public functions start it and state its modules, but have no access to its process, which a run keeps for the
    next one, or replaces: `_forkserver`, its `_forkserver_pid`, `_forkserver_address`, `_forkserver_alive_fd` and
    `_preload_modules`.
    """

    def __init__(self) -> None:
        from multiprocessing import forkserver

        self._server: Any = forkserver._forkserver

    @property
    def process(self) -> ForkServerProcess | None:
        """The running process; None before the first start."""
        server = self._server
        if server._forkserver_pid is None:
            return None
        return ForkServerProcess(server._forkserver_pid, server._forkserver_address, server._forkserver_alive_fd)

    @process.setter
    def process(self, process: ForkServerProcess | None) -> None:
        server = self._server
        server._forkserver_pid = process and process.pid
        server._forkserver_address = process and process.address
        server._forkserver_alive_fd = process and process.alive

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules that the process loads at its start."""
        return tuple(self._server._preload_modules)

    @modules.setter
    def modules(self, modules: Sequence[str]) -> None:
        self._server._preload_modules = list(modules)

    def ensure_running(self) -> None:
        """Start the process, unless it runs."""
        self._server.ensure_running()

    @contextlib.contextmanager
    def started_by(self, start: Callable[[Callable[[], None]], None]) -> Iterator[None]:
        """Inside, `start` is called with the original function wherever multiprocessing starts the process."""
        original = self._server.ensure_running
        self._server.ensure_running = lambda: start(original)
        try:
            yield
        finally:
            del self._server.ensure_running


@contextlib.contextmanager
def without_preload_of_dask() -> Iterator[None]:
    """Inside, Dask leaves the modules of the fork server alone; its own list has all packages that it could work with,
    and an empty public setting means that list: `distributed.utils._forkserver_preload_set`."""
    from distributed import utils

    is_set = utils._forkserver_preload_set
    utils._forkserver_preload_set = True
    try:
        yield
    finally:
        utils._forkserver_preload_set = is_set


def socket_folder_settings() -> dict[str, Any]:
    """Settings of multiprocessing for this process; ``tempdir`` is the folder of its sockets.

    Nothing public changes that folder after an import: `current_process()._config`.
    """
    from multiprocessing import current_process

    settings: dict[str, Any] = current_process()._config  # type: ignore[attr-defined]
    return settings


@contextlib.contextmanager
def exit_of_worker_first(nanny: Any, handle: Callable[[int], Awaitable[None]]) -> Iterator[None]:
    """Inside, `handle` receives the exit code of the worker of `nanny` before the nanny replaces it; never if the nanny
    belongs to another release of Dask, on a cluster, that lacks the name. Runs that share a cluster have a handler each
    and end in any order.

    Plugins of a nanny are not told that its worker has ended: ``Nanny._on_worker_exit``.
    """
    original, is_active = getattr(nanny, "_on_worker_exit", None), True
    if original is None:
        yield
        return

    async def handle_first(code: int) -> Any:
        if is_active:
            await handle(code)
        return await original(code)

    nanny._on_worker_exit = handle_first
    try:
        yield
    finally:
        is_active = False
        if nanny._on_worker_exit is handle_first:  # else a later run calls it
            nanny._on_worker_exit = original


async def start_missing_workers(cluster: Any) -> None:
    """Start the workers of a local cluster that its specification has and that are gone.

    The public `scale` does nothing while the number is unchanged: ``SpecCluster._correct_state``.
    """
    await cluster._correct_state()
