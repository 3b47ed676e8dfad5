"""Access control: only the browser with the address printed by the desk, on this machine, for this user."""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import sys
from pathlib import Path

#: The address on which the desk listens.
LISTENING = "127.0.0.1"
#: A folder that only Linux has, and its lists of connections with the user at each end; in the second list, addresses
#: of IPv4 follow the words of the prefix ``::ffff:0:0/96``.
KERNEL = Path("/proc/self")
CONNECTIONS = {
    Path("/proc/net/tcp"): "",
    Path("/proc/net/tcp6"): f"{0:016X}{int.from_bytes(bytes((0, 0, 255, 255)), sys.byteorder):08X}",
}


class Access:
    """Tokens and sessions of a desk that listens on `port`.

    A token opens one session: the page sends it, receives the session's key, and the token becomes invalid. A new one
    replaces it, for another browser. The page keeps the key in its session storage, which other ports cannot read
    (cookies ignore ports), and sends it in a header with every request.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.hosts = (f"{LISTENING}:{port}", f"localhost:{port}")
        self._token = secrets.token_urlsafe(32)
        self._sessions: list[str] = []

    @property
    def address(self) -> str:
        """The address that gives a browser access, once."""
        return f"http://{LISTENING}:{self.port}/?token={self._token}"

    def enter(self, token: str) -> str | None:
        """The key of the session opened by `token`; None if it is invalid."""
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            return None
        self._token = secrets.token_urlsafe(32)
        self._sessions.append(secrets.token_urlsafe(32))
        return self._sessions[-1]

    def knows(self, authorization: str) -> bool:
        """Whether the header ``Authorization`` has the key of a session."""
        scheme, _, key = authorization.partition(" ")
        keys = (hmac.compare_digest(key.encode(), session.encode()) for session in self._sessions)
        return scheme == "Bearer" and any(keys)

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


def another_user(peer: tuple[str, int], port: int) -> bool:
    """Whether the connection from `peer` (address and port on this machine) to our `port` is of another user.

    True also for a connection whose owner the kernel does not list. False on a system without such lists.
    """
    local, remote = _in_kernel_notation(*peer), _in_kernel_notation(LISTENING, port)
    for table, prefix in CONNECTIONS.items():
        try:
            text = table.read_text()
        except OSError:
            continue
        _, _, entry = text.partition(f" {prefix}{local} {prefix}{remote} ")
        fields = entry.split(maxsplit=7)  # state, queues, timer, retransmissions, user, timeout, inode
        if len(fields) > 6 and fields[6] != "0":  # a socket that its process has closed has no inode, and no owner
            return int(fields[4]) != os.getuid()
    return KERNEL.exists()


def _in_kernel_notation(address: str, port: int) -> str:
    """An end of a connection in the kernel's lists: the address as a number in the byte order of this machine."""
    return f"{int.from_bytes(socket.inet_aton(address), sys.byteorder):08X}:{port:04X}"
