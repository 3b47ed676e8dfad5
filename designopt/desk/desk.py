"""Shared state of the handlers: the folder, the processes for views, the cached pages."""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from designopt.desk import views
from designopt.desk.access import Access
from designopt.desk.folder import Folder
from designopt.desk.runs import Runs
from designopt.desk.views import Refusal
from designopt.plugin import with_modules
from designopt.store import safe_files

#: Number of processes for views, time limit of a view, and validity of a folder listing (s).
VIEWERS, LONGEST, FRESH = 2, 120.0, 0.5
#: Maximum number of cached pages.
KEPT = 8


@dataclass
class Desk:
    """Shared state of the handlers. `runs` is None for a read-only desk."""

    folder: Folder
    access: Access
    runs: Runs | None
    plugin_files: Sequence[str]
    data: Mapping[str, str]
    on_open: Callable[[], None]

    def __post_init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._pages: dict[str, str] = {}
        self.run_stores: dict[str, Path] = {}
        self._looking = threading.Lock()
        self._look: tuple[float, dict[str, Any]] = (-1.0, {})

    async def view(self, make: Callable[..., Any], *arguments: Any) -> Any:
        """The value of `make`, a function of `views`, computed in another process. Raises `Refusal`."""
        if self._pool is None:
            prepare_arguments = (self._plugin_contents(), self.data)
            self._pool = ProcessPoolExecutor(
                VIEWERS, get_context("spawn"), initializer=views.prepare, initargs=prepare_arguments
            )
        pool = self._pool
        try:
            return await asyncio.wait_for(asyncio.wrap_future(pool.submit(make, *arguments)), LONGEST)
        except TimeoutError:
            self._end(pool)
            raise Refusal(f"this took more than {LONGEST:g} s and was terminated") from None
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise  # the desk is closed
            raise Refusal("this was terminated with another view that took too long; try again") from None
        except BrokenProcessPool:
            self._end(pool)
            raise Refusal("the process for this view ended early; try again") from None

    def _plugin_contents(self) -> dict[str, bytes]:
        """Contents of the plugin files by path. Raises `Refusal`, also for a link in a path, which had none."""
        try:
            contents: dict[str, bytes] = {}
            for file in self.plugin_files:
                content = _without_links(Path(file))
                contents.update(
                    with_modules(file, content, lambda path: _without_links(path) if path.exists() else None)
                )
            return contents
        except OSError as error:
            raise Refusal(f"{error.filename}: {error.strerror}") from None

    def _end(self, pool: ProcessPoolExecutor) -> None:
        """End a pool with its work; the next view starts another one."""
        if self._pool is pool:
            self._pool = None
        for process in list((pool._processes or {}).values()):
            process.kill()
        pool.shutdown(wait=False, cancel_futures=True)

    def keep(self, page: str) -> str:
        """Cache a computed page until it is fetched; returns its name, which is a secret."""
        name = secrets.token_urlsafe(16)
        self._pages[name] = page
        while len(self._pages) > KEPT:
            del self._pages[next(iter(self._pages))]
        return name

    def take_page(self, name: str) -> str:
        """A cached page, once. Raises `KeyError`, with a sentence, if it has expired or was fetched."""
        if name not in self._pages:
            raise KeyError("this page is no longer kept: recompute it")
        return self._pages.pop(name)

    def close(self) -> None:
        """End the processes for views. Runs continue."""
        if self.runs is not None:
            self.runs.leave()
        if self._pool is not None:
            self._end(self._pool)

    async def state(self) -> dict[str, Any]:
        """All stores and studies, at most `FRESH` seconds old."""
        return await asyncio.to_thread(self._fresh_state)

    def _fresh_state(self) -> dict[str, Any]:
        with self._looking:
            look_time, state = self._look
            if time.monotonic() - look_time > FRESH:
                stores, studies = self.folder.look()
                state = {
                    "folder": str(self.folder.root),
                    "run": self.runs is not None,
                    "stores": [store.as_data() for store in stores],
                    "studies": studies,
                }
                self._look = (time.monotonic(), state)
            return state


def _without_links(path: Path) -> bytes:
    with safe_files.open_without_links(path) as stream:
        return stream.read()
