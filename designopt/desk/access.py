"""Access control: only the browser with the address printed by the desk, on this machine, for this user."""

from __future__ import annotations

import hmac
import os
import secrets
from pathlib import Path

#: The kernel's lists of connections, with the user at each end.
CONNECTIONS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


class Access:
    """Tokens and sessions of a desk that listens on `port`.

    A token opens one session: the page requested with it sets a cookie, and the token becomes invalid. A new one
    replaces it, for another browser.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.cookie = f"designopt-desk-{port}"
        self.hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
        self._token = secrets.token_urlsafe(32)
        self._sessions: list[str] = []

    @property
    def address(self) -> str:
        """The address that gives a browser access, once."""
        return f"http://127.0.0.1:{self.port}/?token={self._token}"

    def enter(self, token: str) -> str | None:
        """The session opened by `token`, the value of the cookie; None if it is invalid."""
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            return None
        self._token = secrets.token_urlsafe(32)
        self._sessions.append(secrets.token_urlsafe(32))
        return self._sessions[-1]

    def knows(self, session: str) -> bool:
        """Whether a cookie belongs to a session."""
        return any(hmac.compare_digest(session.encode(), known.encode()) for known in self._sessions)

    def refusal(self, method: str, host: str, origin: str | None, site: str | None) -> str:
        """Why a request with these headers is rejected, for any sender; "" if it is not.

        Another host is a name that someone maps to this machine; another origin, a page that sends requests in the
        reader's name (`site` is the header ``Sec-Fetch-Site``).
        """
        if host not in self.hosts:
            return "the host is not this desk"
        if origin is not None and origin not in [f"http://{h}" for h in self.hosts]:
            return "the request comes from another page"
        if method not in ("GET", "HEAD") and origin is None:
            return "the request does not say where it comes from"
        if site not in (None, "same-origin", "none"):
            return "the request comes from another page"
        return ""


def another_user(port: int, ours: int) -> bool:
    """Whether the connection from `port` of this machine to our port `ours` belongs to another user, on Linux."""
    ends = (f"0100007F:{port:04X}", f"0100007F:{ours:04X}")  # 127.0.0.1 in the kernel's notation
    for table in CONNECTIONS:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if (fields[1][-13:], fields[2][-13:]) == ends:
                return int(fields[7]) != os.getuid()
    return False
