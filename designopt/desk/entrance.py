"""Connections to the desk: a limited number, and few of other users, so that nobody uses up the descriptors."""

from __future__ import annotations

import asyncio
import resource
import socket

from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream

from designopt.desk.access import another_user

#: Maximum number of open connections, and of those of other users, which get only a refusal.
MOST, STRANGERS = 128, 4
#: Time without accepting after an error, such as no free descriptor (s).
PAUSE = 1.0


class Entrance:
    """Accepts connections on the socket `listening` for `server`; those above the limits are closed at once."""

    def __init__(self, server: HTTPServer, listening: socket.socket) -> None:
        listening.setblocking(False)
        self._server = server
        self._listening = listening
        self._port = int(listening.getsockname()[1])
        self._streams: dict[IOStream, bool] = {}  # open connections, and whether they are of another user
        (descriptors, _) = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._limit = MOST if descriptors == resource.RLIM_INFINITY else min(MOST, descriptors // 4)
        self._pause: asyncio.TimerHandle | None = None

    def open(self) -> None:
        """Accept connections from now on."""
        self._pause = None
        asyncio.get_running_loop().add_reader(self._listening, self._accept)

    def close(self) -> None:
        """Accept no more connections."""
        if self._pause is not None:
            self._pause.cancel()
        asyncio.get_running_loop().remove_reader(self._listening)
        self._listening.close()

    def _accept(self) -> None:
        try:
            connection, peer = self._listening.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError:
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._listening)
            self._pause = loop.call_later(PAUSE, self.open)
            return
        self._streams = {stream: stranger for stream, stranger in self._streams.items() if not stream.closed()}
        stranger = another_user(peer, self._port)
        if len(self._streams) >= self._limit or (stranger and sum(self._streams.values()) >= STRANGERS):
            connection.close()
            return
        stream = IOStream(connection)
        self._streams[stream] = stranger
        self._server.handle_stream(stream, peer)
