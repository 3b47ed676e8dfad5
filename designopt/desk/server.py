"""The server of the desk: on loopback only, for one user; other processes compute the answers."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tornado.httpserver import HTTPServer
from tornado.web import Application, RequestHandler

from designopt.desk import page_handlers, store_handlers, study_handlers
from designopt.desk.access import LISTENING, Access
from designopt.desk.desk import Desk
from designopt.desk.entrance import Entrance
from designopt.desk.folder import Folder
from designopt.desk.runs import Runs

#: Time for open connections to close at the end (s).
CLOSING = 5.0
#: Maximum time for the headers of a request, also the next one of an open connection, and for its body (s).
WAITING = 30.0

_ROUTES: tuple[tuple[str, type[RequestHandler]], ...] = (
    ("/", page_handlers.PageHandler),
    ("/enter", page_handlers.EnterHandler),
    (r"/(desk\.js|desk\.css)", page_handlers.StaticHandler),
    (r"/plotly\.js", page_handlers.PlotlyHandler),
    ("/state", store_handlers.StateHandler),
    ("/report", store_handlers.ReportHandler),
    ("/compare", store_handlers.CompareHandler),
    ("/question", store_handlers.QuestionHandler),
    ("/progress", store_handlers.ProgressHandler),
    ("/designs", store_handlers.DesignsHandler),
    ("/design", store_handlers.DesignHandler),
    ("/printed", study_handlers.PrintedHandler),
    ("/compute", store_handlers.ComputeHandler),
    ("/computed", store_handlers.ComputedHandler),
    ("/study", study_handlers.StudyHandler),
    ("/check", study_handlers.CheckHandler),
    ("/save", study_handlers.SaveHandler),
    ("/start", study_handlers.StartHandler),
    ("/stop", study_handlers.StopHandler),
    ("/resume", study_handlers.ResumeHandler),
)


async def serve(
    folder: Path,
    *,
    port: int = 0,
    run: bool = False,
    plugin_files: Sequence[str] = (),
    allow: Sequence[str] = (),
    data: Mapping[str, str] | None = None,
    announce: Callable[[str], None],
    until: asyncio.Event | None = None,
) -> None:
    """Serve the desk of `folder` on loopback until the task is cancelled, or `until` is set.

    `port` 0 selects a free one. `announce` is called with the address that gives a browser access, and with a new one
    after each use. With `run` studies can be changed, started and stopped. Raises `OSError` if the port is in use.
    """
    listening = socket.create_server((LISTENING, port))
    access = Access(int(listening.getsockname()[1]))
    roots = dict(data or {})
    plugin_files = [str(Path(file).resolve()) for file in plugin_files]
    runs = Runs(folder.resolve(), plugin_files, roots, allow) if run else None
    desk = Desk(Folder(folder), access, runs, plugin_files, roots, lambda: announce(access.address))
    application = Application(
        [(pattern, handler, {"desk": desk}) for pattern, handler in _ROUTES],
        default_handler_class=page_handlers.MissingHandler,
        default_handler_args={"desk": desk},
        log_function=lambda handler: None,
    )
    server = HTTPServer(
        application,
        max_body_size=study_handlers.LARGEST,
        max_header_size=65536,
        idle_connection_timeout=WAITING,
        body_timeout=WAITING,
    )
    entrance = Entrance(server, listening)
    entrance.open()
    announce(access.address)
    try:
        await (until or asyncio.Event()).wait()
    finally:
        entrance.close()
        desk.close()
        with contextlib.suppress(TimeoutError):  # a browser keeps its connections as long as possible
            await asyncio.wait_for(server.close_all_connections(), CLOSING)
