"""Other users of the machine: they are refused, whatever address they come from, and cannot use up the connections."""

import contextlib
import json
import os
import resource
import socket
import subprocess
import sys
import time

import pytest
from serving import desk

from designopt.desk import entrance

#: A user without rights, in most systems called nobody.
NOBODY = 65534
#: Requests with the token, as the page of the desk sends them, and without it; prints the statuses.
REQUESTS = """
import http.client, json, os, socket, sys
user, family, source, host, port, token = *map(int, sys.argv[1:3]), *sys.argv[3:5], int(sys.argv[5]), sys.argv[6]
os.setgroups([])
os.setgid(user)
os.setuid(user)
origin = f"http://127.0.0.1:{port}"
headers = {"Host": f"127.0.0.1:{port}", "Origin": origin, "Content-Type": "application/json"}
for method, path, body in (("GET", f"/?token={token}", None), ("POST", "/enter", json.dumps({"token": token}))):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.sock = socket.socket(family)
    connection.sock.bind((source, 0))
    connection.sock.connect((host, port))
    connection.request(method, path, body, headers)
    print(connection.getresponse().status)
    connection.close()
"""
needs_two_users = pytest.mark.skipif(
    not sys.platform.startswith("linux") or os.geteuid() != 0, reason="needs Linux and the right to be another user"
)


@pytest.fixture
def client(tmp_path):
    (tmp_path / "folder").mkdir()
    with desk(tmp_path / "folder") as client:
        yield client


def statuses(user, *arguments):
    """The answers to `REQUESTS` of a user."""
    command = [sys.executable, "-I", "-c", REQUESTS, *map(str, (user, *arguments))]
    return subprocess.run(command, cwd="/", capture_output=True, text=True, check=True).stdout.split()


@needs_two_users
@pytest.mark.parametrize(
    ("family", "source", "host"),
    [
        (socket.AF_INET, "127.0.0.1", "127.0.0.1"),
        (socket.AF_INET, "127.0.0.2", "127.0.0.1"),
        (socket.AF_INET, "127.8.8.8", "127.0.0.1"),
        (socket.AF_INET6, "::ffff:127.0.0.1", "::ffff:127.0.0.1"),
        (socket.AF_INET6, "::ffff:127.0.0.2", "::ffff:127.0.0.1"),
    ],
)
def test_another_user_with_the_token_is_refused_and_ours_is_not(client, family, source, host):
    if family == socket.AF_INET6 and not os.path.exists("/proc/net/tcp6"):
        pytest.skip("needs IPv6")
    token = client.addresses[-1].partition("token=")[2]
    requests = (int(family), source, host, client.port, token)
    assert statuses(NOBODY, *requests) == ["403", "403"]
    assert statuses(os.geteuid(), *requests) == ["200", "200"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")
def test_a_connection_whose_owner_is_not_listed_is_refused(client, monkeypatch):
    monkeypatch.setattr("designopt.desk.access.CONNECTIONS", {})
    assert client.get("/state").status == 403


def closed(connection):
    """Whether the desk has closed the connection."""
    connection.settimeout(0.05)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def eventually(condition):
    end = time.monotonic() + 60
    while not (value := condition()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return value


def test_idle_connections_of_others_are_few_and_hinder_nobody(tmp_path, monkeypatch):
    with contextlib.ExitStack() as stack, desk(tmp_path) as client:
        with monkeypatch.context() as patch:
            patch.setattr(entrance, "another_user", lambda peer, port: True)
            idle = [stack.enter_context(socket.create_connection(("127.0.0.1", client.port))) for _ in range(40)]
            eventually(lambda: sum(map(closed, idle)) == 40 - entrance.STRANGERS)
        assert client.get("/state").status == 200


def test_all_connections_are_limited_and_end_when_nothing_is_sent(tmp_path, monkeypatch):
    monkeypatch.setattr(entrance, "MOST", 6)
    monkeypatch.setattr("designopt.desk.server.WAITING", 1.0)
    with contextlib.ExitStack() as stack, desk(tmp_path) as client:
        idle = [stack.enter_context(socket.create_connection(("127.0.0.1", client.port))) for _ in range(20)]
        headers = f"POST /enter HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nContent-Length: 9\r\n\r\n".encode()
        for connection, start in zip(idle, (b"GET / HT", headers, b""), strict=False):
            connection.sendall(start)  # headers without an end, no body, nothing
        eventually(lambda: all(map(closed, idle)))
        assert client.get("/state").status == 200


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs a list of the open descriptors")
def test_a_lack_of_descriptors_is_waited_out_without_a_message(tmp_path, monkeypatch, caplog, capfd):
    monkeypatch.setattr(entrance, "PAUSE", 0.05)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with desk(tmp_path) as client, contextlib.ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        waiting = socket.socket()
        stack.callback(waiting.close)
        highest = max(map(int, os.listdir("/proc/self/fd")))
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, hard))
        for _ in range(10):  # the desk closes the connection of its client a little later
            with contextlib.suppress(OSError):
                while True:
                    stack.callback(os.close, os.dup(0))
            time.sleep(0.05)
        waiting.connect(("127.0.0.1", client.port))
        waiting.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\n\r\n".encode())
        waiting.settimeout(0.5)
        with pytest.raises(TimeoutError):
            waiting.recv(1)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        waiting.settimeout(60)
        assert waiting.recv(15) == b"HTTP/1.1 200 OK"
    assert caplog.text == ""
    assert capfd.readouterr().err == ""


def test_the_limit_is_well_below_that_of_the_process(tmp_path):
    (descriptors, _) = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        assert entrance.Entrance(None, listening)._limit <= max(1, descriptors // 4) or descriptors < 0


def test_a_session_is_not_in_a_cookie_and_a_request_needs_its_header(client):
    """A browser sends the cookies of 127.0.0.1 to every port of it."""
    entered = client.post("/enter", token=client.addresses[-1].partition("token=")[2])
    assert not any("Set-Cookie" in client.get(path).headers for path in ("/", "/state"))
    assert "Set-Cookie" not in entered.headers
    session = json.loads(entered.body)
    for headers in ({"Cookie": f"session={session}; designopt-desk={session}"}, {"Authorization": f"Basic {session}"}):
        assert client.ask("GET", "/state", headers={"Authorization": None} | headers).status == 403
    assert client.ask("GET", "/state", headers={"Authorization": f"Bearer {session}"}).status == 200
