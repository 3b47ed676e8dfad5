"""Checks of every request, and the arguments that handlers read from it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from tornado.web import HTTPError, RequestHandler

from designopt.desk.access import another_user
from designopt.desk.desk import Desk
from designopt.desk.runs import Runs
from designopt.desk.views import Refusal
from designopt.store.safe_files import ForeignFile

T = TypeVar("T")

FRAMED = "frame-ancestors 'self'; connect-src 'none'; form-action 'none'; base-uri 'none'"


class Handler(RequestHandler):
    """Base of all handlers."""

    desk: Desk
    POLICY = FRAMED
    #: Whether a request is allowed without a session: for the page and its files, which contain no data.
    PUBLIC = False

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
        if not isinstance(address, tuple) or another_user(address, access.port):
            raise HTTPError(403, reason="Another user")
        refusal = access.refusal(
            self.request.method or "", self.request.host, headers.get("Origin"), headers.get("Sec-Fetch-Site")
        )
        if refusal:
            raise HTTPError(403, log_message=refusal, reason="Refused")
        if not self.PUBLIC and not access.knows(headers.get("Authorization", "")):
            raise HTTPError(403, reason="No session")

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        error = (kwargs.get("exc_info") or (None, None, None))[1]
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        if isinstance(error, Refusal):
            self.set_status(409)
            self.finish(str(error))
        elif status_code == 403:
            self.finish("Access denied. Open the latest address printed by `designopt desk`.")
        else:
            self.finish(str(error) if isinstance(error, WrongRequest) else self._reason)

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        if not isinstance(value, Refusal | HTTPError):
            super().log_exception(typ, value, tb)

    @property
    def store(self) -> Path:
        """The store named by the request."""
        return self.entry(self.desk.folder.store, self.get_query_argument("store"))

    @staticmethod
    def entry(look: Callable[[str], T], name: str) -> T:
        """The entry of the folder at `name`; answers 404 if there is none."""
        try:
            return look(name)
        except KeyError as error:
            raise UnknownAddress(str(error.args[0])) from None
        except OSError as error:
            raise unusable(error, name) from None

    @property
    def row(self) -> int:
        """The design named by the request."""
        return self.number(self.get_query_argument("row"))

    @staticmethod
    def number(text: Any) -> int:
        if not str(text).isascii() or not str(text).isdigit() or len(str(text)) > 9:
            raise WrongRequest("give the number of the design")
        return int(text)

    @property
    def changes(self) -> list[str]:
        """The requested changes, as KEY=VALUE texts."""
        return [text for text in self.get_query_arguments("set") if text]

    def body(self, *names: str) -> list[Any]:
        """The texts and numbers with these names in the request's JSON. Raises `WrongRequest`."""
        if not self.request.headers.get("Content-Type", "").startswith("application/json"):
            raise WrongRequest("the body has to be JSON")
        try:
            data = json.loads(self.request.body)
            values = [data[name] for name in names]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise WrongRequest(f"the body has to be a JSON object with {', '.join(names)}") from None
        if not all(isinstance(value, str | int) for value in values):
            raise WrongRequest("expected texts and numbers")
        return values

    @property
    def runs(self) -> Runs:
        """The runs; answers 403 if this desk is read-only."""
        if self.desk.runs is None:
            raise Refusal("this desk is read-only; start it with: designopt desk --run")
        return self.desk.runs

    def json(self, value: Any) -> None:
        self.set_header("Content-Type", "application/json; charset=utf-8")
        self.finish(json.dumps(value))


def unusable(error: OSError, name_in_folder: str) -> Refusal:
    """The refusal of a file or folder at `name_in_folder` that cannot be read or written."""
    name = Path(error.filename).name if isinstance(error, ForeignFile) else name_in_folder
    return Refusal(f"{name}: {error.strerror or error}")


class WrongRequest(HTTPError):
    """An invalid request; the text explains the mistake."""

    def __init__(self, text: str, status: int = 400, reason: str = "Wrong request") -> None:
        super().__init__(status, reason=reason)
        self._text = text

    def __str__(self) -> str:
        return self._text


class UnknownAddress(WrongRequest):
    """A request for something that does not exist; the text suggests alternatives."""

    def __init__(self, text: str) -> None:
        super().__init__(text, 404, "Nothing of that name")
