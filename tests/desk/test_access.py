"""Who is answered."""

import os
import sys
from pathlib import Path

import pytest

from designopt.desk import access as module
from designopt.desk.access import Access, another_user


def test_a_token_opens_one_session():
    access = Access(4000)
    token = access.address.partition("token=")[2]
    session = access.enter(token)
    assert session is not None
    assert access.knows(f"Bearer {session}")
    assert not access.knows(session)
    assert access.enter(token) is None
    assert token not in access.address


@pytest.mark.parametrize("token", ["", "x", "é", "token"])
def test_an_invalid_token_opens_no_session(token):
    access = Access(4000)
    assert access.enter(token) is None
    assert not access.knows(f"Bearer {token}")


@pytest.mark.parametrize(
    ("method", "host", "origin", "site", "refused"),
    [
        ("GET", "127.0.0.1:4000", None, None, False),
        ("GET", "localhost:4000", None, "same-origin", False),
        ("GET", "127.0.0.1:4000", None, "none", False),
        ("POST", "127.0.0.1:4000", "http://127.0.0.1:4000", "same-origin", False),
        ("GET", "127.0.0.1:4001", None, None, True),
        ("GET", "evil.example:4000", None, None, True),
        ("GET", "127.0.0.1:4000", None, "cross-site", True),
        ("GET", "127.0.0.1:4000", None, "same-site", True),
        ("GET", "127.0.0.1:4000", "http://127.0.0.1:4001", None, True),
        ("POST", "127.0.0.1:4000", None, None, True),
        ("POST", "127.0.0.1:4000", "null", None, True),
        ("POST", "127.0.0.1:4000", "https://127.0.0.1:4000", None, True),
    ],
)
def test_requests_of_other_pages_and_hosts_are_refused(method, host, origin, site, refused):
    assert bool(Access(4000).refusal(method, host, origin, site)) is refused


ROW = "   0: {peer} {end} 01 00000000:00000000 00:00000000 00000000 {user:>5}        0 {inode} 1 00 20 4 30 10 -1\n"
HERE, THERE = "0100007F:0FA0", "0200007F:C738"  # 127.0.0.1:4000 and 127.0.0.2:51000
MAPPED = "0000000000000000FFFF0000"


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch):
    """Lists of connections as a kernel of a little-endian machine writes them."""
    tables = {tmp_path / "tcp": "", tmp_path / "tcp6": MAPPED}
    for table in tables:
        table.write_text("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n")
    monkeypatch.setattr(module, "CONNECTIONS", tables)
    monkeypatch.setattr(module, "KERNEL", tmp_path)
    monkeypatch.setattr(sys, "byteorder", "little")
    return tmp_path


def add(table: Path, *rows: str) -> None:
    table.write_text(table.read_text() + "".join(rows))


@pytest.mark.parametrize(("difference", "refused"), [(0, False), (1, True)])
@pytest.mark.parametrize(("name", "prefix"), [("tcp", ""), ("tcp6", MAPPED)])
def test_the_owner_of_a_connection_is_found_by_both_of_its_ends(kernel, name, prefix, difference, refused):
    user = os.getuid()
    add(
        kernel / name,
        ROW.format(peer=prefix + HERE, end=prefix + THERE, user=user, inode=7),  # our end of it
        ROW.format(peer=prefix + "0100007F:C738", end=prefix + HERE, user=user + 1 - difference, inode=8),
        ROW.format(peer=prefix + THERE, end=prefix + "0200007F:0FA0", user=user + 1 - difference, inode=9),
        ROW.format(peer=prefix + THERE, end=prefix + HERE, user=user + difference, inode=10),
    )
    assert another_user(("127.0.0.2", 51000), 4000) is refused


def test_a_connection_without_an_owner_is_that_of_another_user(kernel):
    peer = ("127.0.0.2", 51000)
    assert another_user(peer, 4000)
    add(kernel / "tcp", ROW.format(peer=THERE, end=HERE, user=os.getuid(), inode=0))  # closed by its process
    assert another_user(peer, 4000)


def test_a_system_without_lists_of_connections_refuses_nobody(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CONNECTIONS", {tmp_path / "none": ""})
    monkeypatch.setattr(module, "KERNEL", tmp_path / "none")
    assert not another_user(("127.0.0.1", 51000), 4000)
