"""The server of the desk: on loopback only, for one user, with answers that are made elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from importlib.resources import files
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from tornado.httpserver import HTTPServer
from tornado.web import Application, HTTPError, RequestHandler

from designopt.desk import views
from designopt.desk.access import Access, another_user
from designopt.desk.folder import Folder
from designopt.desk.runs import Runs
from designopt.desk.views import Refused
from designopt.store.safe_files import replacing

T = TypeVar("T")

#: Bytes that a request may have, and a study file that is saved.
LARGEST = 4 * 2**20
#: Seconds that open connections have to close at the end.
CLOSING = 5.0
#: Processes that make views, seconds that one may take, and seconds for which a look at the folder holds.
VIEWERS, LONGEST, FRESH = 2, 120.0, 0.5
#: Pages of computed designs that can be had again.
KEPT = 8
#: Other pages can neither frame these nor be loaded by them.
_PAGE = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'; "
    "img-src 'self' data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
_FRAMED = "frame-ancestors 'self'; connect-src 'none'; form-action 'none'; base-uri 'none'"
_STATIC = {"desk.js": "text/javascript", "desk.css": "text/css"}


@dataclass
class Desk:
    """What handlers share. `runs` is None for a desk that only shows."""

    folder: Folder
    access: Access
    runs: Runs | None
    plugin_files: Sequence[str]
    data: Mapping[str, str]
    opened: Callable[[], None]

    def __post_init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._computed: dict[str, str] = {}
        self.started: dict[str, Path] = {}
        self._looking = threading.Lock()
        self._look: tuple[float, dict[str, Any]] = (-1.0, {})

    async def view(self, make: Callable[..., Any], *arguments: Any) -> Any:
        """The value of `make`, a function of `views`, computed in another process."""
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                VIEWERS, get_context("spawn"), initializer=views.prepare, initargs=(tuple(self.plugin_files), self.data)
            )
        pool = self._pool
        try:
            return await asyncio.wait_for(asyncio.wrap_future(pool.submit(make, *arguments)), LONGEST)
        except TimeoutError:
            self._end(pool)
            raise Refused(f"this took more than {LONGEST:g} s and was ended") from None
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise  # the desk is closed
            raise Refused("this was ended with another view that took too long; try again") from None
        except BrokenProcessPool:
            self._end(pool)
            raise Refused("the process that makes this ended before it was done; try again") from None

    def _end(self, pool: ProcessPoolExecutor) -> None:
        """End a pool with what it is at; the next view begins another one."""
        if self._pool is pool:
            self._pool = None
        for process in list((pool._processes or {}).values()):
            process.kill()
        pool.shutdown(wait=False, cancel_futures=True)

    def keep(self, page: str) -> str:
        """The name by which a page that was computed can be had for a while."""
        name = secrets.token_urlsafe(16)
        self._computed[name] = page
        while len(self._computed) > KEPT:
            del self._computed[next(iter(self._computed))]
        return name

    def computed(self, name: str) -> str:
        """A page that was kept; `KeyError` with a sentence when it is no longer."""
        if name not in self._computed:
            raise KeyError("this page is not kept any more: compute it again")
        return self._computed[name]

    def close(self) -> None:
        """End the processes that make views. Runs go on."""
        if self.runs is not None:
            self.runs.leave()
        if self._pool is not None:
            self._end(self._pool)

    async def state(self) -> dict[str, Any]:
        """All stores and studies, not older than `FRESH` seconds."""
        return await asyncio.to_thread(self._looked)

    def _looked(self) -> dict[str, Any]:
        with self._looking:
            then, state = self._look
            if time.monotonic() - then > FRESH:
                stores, studies = self.folder.look()
                state = {
                    "folder": str(self.folder.root),
                    "run": self.runs is not None,
                    "stores": [store.as_data() for store in stores],
                    "studies": studies,
                }
                self._look = (time.monotonic(), state)
            return state


class _Handler(RequestHandler):
    """Answers to whoever may ask."""

    desk: Desk
    POLICY = _FRAMED

    def initialize(self, desk: Desk) -> None:
        self.desk = desk

    def set_default_headers(self) -> None:
        self.set_header("Content-Security-Policy", self.POLICY)
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Referrer-Policy", "no-referrer")
        self.set_header("Cache-Control", "no-store")
        self.set_header("Cross-Origin-Resource-Policy", "same-origin")
        self.clear_header("Server")

    def prepare(self) -> None:
        access, headers = self.desk.access, self.request.headers
        context = getattr(self.request.connection, "context", None)
        address = getattr(context, "address", None)
        if isinstance(address, tuple) and another_user(int(address[1]), access.port):
            raise HTTPError(403, reason="Another user")
        said = access.refusal(
            self.request.method or "", self.request.host, headers.get("Origin"), headers.get("Sec-Fetch-Site")
        )
        if said:
            raise HTTPError(403, log_message=said, reason="Refused")
        if not access.knows(self.get_cookie(access.cookie) or "") and not self.enters():
            raise HTTPError(403, reason="No session")

    def enters(self) -> bool:
        """Whether this request may be made without a session."""
        return False

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        error = (kwargs.get("exc_info") or (None, None, None))[1]
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        if isinstance(error, Refused):
            self.set_status(409)
            self.finish(str(error))
        elif status_code == 403:
            self.finish("This desk does not answer here. Open the address that `designopt desk` has printed last.")
        else:
            self.finish(str(error) if isinstance(error, _Wrong | _Unknown) else self._reason)

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        if not isinstance(value, Refused | HTTPError):
            super().log_exception(typ, value, tb)

    @property
    def store(self) -> Path:
        """The store that the request names."""
        return self.found(self.desk.folder.store, self.get_query_argument("store"))

    @staticmethod
    def found(look: Callable[[str], T], place: str) -> T:
        """What the folder has at `place`; answers 404 for anything else."""
        try:
            return look(place)
        except KeyError as error:
            raise _Unknown(str(error.args[0])) from None

    @property
    def row(self) -> int:
        """The design that the request names."""
        return self.number(self.get_query_argument("row"))

    @staticmethod
    def number(text: Any) -> int:
        if not str(text).isascii() or not str(text).isdigit() or len(str(text)) > 9:
            raise _Wrong("a design is named by its number")
        return int(text)

    @property
    def changes(self) -> list[str]:
        """What is asked otherwise, as KEY=VALUE texts."""
        return [text for text in self.get_query_arguments("set") if text]

    def body(self, *names: str) -> list[Any]:
        """The texts and numbers of these names in the request's JSON."""
        if not self.request.headers.get("Content-Type", "").startswith("application/json"):
            raise _Wrong("the body has to be JSON")
        try:
            data = json.loads(self.request.body)
            values = [data[name] for name in names]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise _Wrong(f"the body has to be a JSON object with {', '.join(names)}") from None
        if not all(isinstance(value, str | int) for value in values):
            raise _Wrong("texts and numbers are expected")
        return values

    @property
    def runs(self) -> Runs:
        """The runs; answers 403 where this desk only shows."""
        if self.desk.runs is None:
            raise Refused("this desk only shows; start it with: designopt desk --run")
        return self.desk.runs

    def json(self, value: Any) -> None:
        self.set_header("Content-Type", "application/json; charset=utf-8")
        self.finish(json.dumps(value))


class _Unknown(HTTPError):
    """Something that is not there; the text says so, and what may have been meant."""

    def __init__(self, text: str) -> None:
        super().__init__(404, reason="Nothing of that name")
        self._text = text

    def __str__(self) -> str:
        return self._text


class _Wrong(HTTPError):
    """A request that is wrong in itself; the text says in what."""

    def __init__(self, text: str) -> None:
        super().__init__(400, reason="Wrong request")
        self._text = text

    def __str__(self) -> str:
        return self._text


class _Page(_Handler):
    POLICY = _PAGE

    def enters(self) -> bool:
        token = self.get_query_argument("token", "")
        session = self.desk.access.enter(token) if token else None
        if session is None:
            return False
        self.set_cookie(self.desk.access.cookie, session, httponly=True, samesite="Strict", path="/")
        self.desk.opened()
        return True

    def get(self) -> None:
        if self.get_query_argument("token", ""):
            self.redirect("/")  # the token is void, and stays out of the history
            return
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish((files("designopt.desk") / "desk.html").read_bytes())


class _Static(_Handler):
    def get(self, name: str) -> None:
        self.set_header("Content-Type", f"{_STATIC[name]}; charset=utf-8")
        self.finish((files("designopt.desk") / name).read_bytes())


class _Plotly(_Handler):
    def get(self) -> None:
        from plotly.offline import get_plotlyjs

        self.set_header("Content-Type", "text/javascript; charset=utf-8")
        self.set_header("Cache-Control", "private, max-age=86400")
        self.finish(get_plotlyjs())


class _State(_Handler):
    async def get(self) -> None:
        self.json(await self.desk.state())


class _Report(_Handler):
    async def get(self) -> None:
        parts = self.get_query_arguments("part")
        self.finish(await self.desk.view(views.report, self.store, parts, self.changes))


class _Compare(_Handler):
    async def get(self) -> None:
        stores = [self.found(self.desk.folder.store, place) for place in self.get_query_arguments("store")]
        self.finish(await self.desk.view(views.compared, stores))


class _Question(_Handler):
    async def get(self) -> None:
        self.json(await self.desk.view(views.question, self.store))


class _Progress(_Handler):
    async def get(self) -> None:
        self.json(await self.desk.view(views.progress, self.store))


class _Designs(_Handler):
    async def get(self) -> None:
        self.json(await self.desk.view(views.designs, self.store, self.changes))


class _Design(_Handler):
    async def get(self) -> None:
        self.json(await self.desk.view(views.design, self.store, self.row, self.changes))


class _Printed(_Handler):
    def get(self) -> None:
        place = self.get_query_argument("store")
        try:
            store = self.desk.folder.store(place)
        except KeyError:  # it could not begin, perhaps
            store = self.desk.started.get(place) or self.store
        self.json(self.runs.printed(store) if self.desk.runs else "")


class _Compute(_Handler):
    async def post(self) -> None:
        place, row = self.body("store", "row")
        store = self.found(self.desk.folder.store, str(place))
        messages, arrays = await asyncio.to_thread(self.runs.compute, store, self.number(row))
        page = await self.desk.view(views.arrays_page, store, self.number(row), arrays, messages)
        self.json(self.desk.keep(page))


class _Computed(_Handler):
    def get(self) -> None:
        self.finish(self.found(self.desk.computed, self.get_query_argument("page")))


class _Study(_Handler):
    async def get(self) -> None:
        path = self.found(self.desk.folder.study, self.get_query_argument("file"))
        try:
            if path.stat().st_size > LARGEST:
                raise Refused(f"{path.name} is larger than a study file can be")
            content, stamp = path.read_bytes(), str(path.stat().st_mtime_ns)
        except OSError as error:
            raise Refused(f"{path.name} cannot be read: {error.strerror}") from None
        try:
            store = await self.desk.view(views.default_store, path)
        except Refused:  # what is wrong is shown beside the text
            store = f"results/{path.stem}.study"
        self.json({"text": content.decode(errors="replace"), "stamp": stamp, "store": store})


class _Check(_Handler):
    async def post(self) -> None:
        place, text = self.body("file", "text")
        path = self.found(self.desk.folder.study, str(place))
        self.json(await self.desk.view(views.checked, path, str(text)))


class _Save(_Handler):
    def post(self) -> None:
        _ = self.runs
        place, text, stamp = self.body("file", "text", "stamp")
        path = self.found(self.desk.folder.study, str(place))
        try:
            if str(path.stat().st_mtime_ns) != str(stamp):
                raise Refused(f"{path.name} has changed on the disk since it was opened here; open it again")
            ends = b"\r\n" if b"\r\n" in path.read_bytes() else b"\n"  # a page knows one kind of line ends
            with replacing(path, path.with_name(f".{path.name}.{os.getpid()}.part")) as stream:
                stream.write(str(text).encode(errors="replace").replace(b"\r\n", b"\n").replace(b"\n", ends))
            self.json({"stamp": str(path.stat().st_mtime_ns)})
        except OSError as error:
            raise Refused(f"{path.name} cannot be written: {error.strerror}") from None


class _Start(_Handler):
    async def post(self) -> None:
        runs = self.runs
        place, name = self.body("file", "store")
        root = self.desk.folder.root
        if "\0" in str(name):
            raise _Wrong("a name of a folder has no NUL")
        store = (root / str(name)).resolve()
        if not str(name).strip() or store == root or not store.is_relative_to(root):
            raise Refused("the results have to be in a folder of their own below that of the desk")
        path = self.found(self.desk.folder.study, str(place))
        await asyncio.to_thread(runs.start, path, store)
        place = store.relative_to(root).as_posix()
        self.desk.started[place] = store
        self.json({"store": place})


class _Stop(_Handler):
    def post(self) -> None:
        (place,) = self.body("store")
        self.runs.stop(self.found(self.desk.folder.store, str(place)))
        self.json({})


class _Resume(_Handler):
    async def post(self) -> None:
        (place,) = self.body("store")
        await asyncio.to_thread(self.runs.resume, self.found(self.desk.folder.store, str(place)))
        self.json({})


_ROUTES: tuple[tuple[str, type[_Handler]], ...] = (
    ("/", _Page),
    (r"/(desk\.js|desk\.css)", _Static),
    (r"/plotly\.js", _Plotly),
    ("/state", _State),
    ("/report", _Report),
    ("/compare", _Compare),
    ("/question", _Question),
    ("/progress", _Progress),
    ("/designs", _Designs),
    ("/design", _Design),
    ("/printed", _Printed),
    ("/compute", _Compute),
    ("/computed", _Computed),
    ("/study", _Study),
    ("/check", _Check),
    ("/save", _Save),
    ("/start", _Start),
    ("/stop", _Stop),
    ("/resume", _Resume),
)


class _Missing(_Handler):
    def prepare(self) -> None:
        super().prepare()
        raise HTTPError(404, reason="Nothing here")


async def serve(
    folder: Path,
    *,
    port: int = 0,
    run: bool = False,
    plugin_files: Sequence[str] = (),
    data: Mapping[str, str] | None = None,
    announce: Callable[[str], None],
    until: asyncio.Event | None = None,
) -> None:
    """Serve the desk of `folder` on loopback until the task is cancelled, or `until` is set.

    `port` 0 takes a free one. `announce` is called with the address that lets a browser in, and again with a new one
    whenever it has been used. With `run` studies can be changed, started and stopped. Raises `OSError` when the port
    is taken.
    """
    listening = socket.create_server(("127.0.0.1", port))
    listening.setblocking(False)
    access = Access(int(listening.getsockname()[1]))
    given = dict(data or {})
    runs = Runs(folder.resolve(), plugin_files, given) if run else None
    desk = Desk(Folder(folder), access, runs, plugin_files, given, lambda: announce(access.address))
    application = Application(
        [(pattern, handler, {"desk": desk}) for pattern, handler in _ROUTES],
        default_handler_class=_Missing,
        default_handler_args={"desk": desk},
        log_function=lambda handler: None,
    )
    server = HTTPServer(application, max_body_size=LARGEST, max_header_size=65536, idle_connection_timeout=300)
    server.add_socket(listening)
    announce(access.address)
    try:
        await (until or asyncio.Event()).wait()
    finally:
        server.stop()
        desk.close()
        with contextlib.suppress(TimeoutError):  # a browser keeps its connections as long as it is let
            await asyncio.wait_for(server.close_all_connections(), CLOSING)
