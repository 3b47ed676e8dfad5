"""A desk for tests, served in this process on a thread of its own, and requests to it."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from designopt.desk.server import serve

#: A study of springs and dampers; ``solver:`` begins the lines that follow the objectives.
SPRINGS = """\
study: springs
title: Springs and dampers
model: {use: quarter_car}
space:
  stiffness: [10 kN/m, 50 kN/m]
  damping: [500, 3000]
objectives:
  - {name: ride, minimize: cost}
  - {name: stroke, minimize: peak_travel}
solver: {use: sobol, samples: SAMPLES}
execution: {executor: serial}
"""
#: Seconds to wait for an answer.
PATIENCE = 120.0


@dataclass(frozen=True)
class Answer:
    """What the server said."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Client:
    """A browser without a page: it keeps the session of the first address."""

    folder: Path
    addresses: list[str] = field(default_factory=list)
    session: str = ""

    @property
    def port(self) -> int:
        return int(urlsplit(self.addresses[0]).port or 0)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str | None] = {}) -> Answer:
        """A request with the session and the headers of the desk's own page; None leaves a header out."""
        usual = {"Host": f"127.0.0.1:{self.port}", "Authorization": f"Bearer {self.session}"}
        if method != "GET":
            usual |= {"Origin": self.origin, "Content-Type": "application/json"}
        sent_headers = {name: value for name, value in {**usual, **headers}.items() if value is not None}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, sent_headers)
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def get(self, path: str, **query: Any) -> Answer:
        return self.ask("GET", f"{path}?{urlencode(query, doseq=True)}")

    def page(self, path: str, **query: Any) -> Answer:
        """The page that the server computes for `path`, as a frame gets it: without the session."""
        name = self.get(path, **query)
        assert name.status == 200, name.text
        return self.ask("GET", f"/computed?page={name.json}", headers={"Authorization": None})

    def post(self, path: str, **values: Any) -> Answer:
        return self.ask("POST", path, json.dumps(values).encode())


@contextmanager
def desk(folder: Path, **options: Any) -> Iterator[Client]:
    """A desk of `folder` and a client with a session."""
    client, ready, ended = Client(folder), threading.Event(), {}

    def announce(address: str) -> None:
        client.addresses.append(address)
        ready.set()

    async def main() -> None:
        ended["loop"], ended["until"] = asyncio.get_running_loop(), asyncio.Event()
        await serve(folder, announce=announce, until=ended["until"], **options)

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    try:
        assert ready.wait(PATIENCE)
        entered = client.post("/enter", token=client.addresses[0].partition("token=")[2])
        assert entered.status == 200
        client.session = entered.json
        yield client
    finally:
        ended["loop"].call_soon_threadsafe(ended["until"].set)
        thread.join(PATIENCE)
        assert not thread.is_alive()
