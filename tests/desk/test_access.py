"""Who is answered."""

import os
from pathlib import Path

import pytest

from designopt.desk import access as module
from designopt.desk.access import Access, another_user


def test_a_token_opens_one_session():
    access = Access(4000)
    token = access.address.partition("token=")[2]
    session = access.enter(token)
    assert session is not None
    assert access.knows(session)
    assert access.enter(token) is None
    assert token not in access.address


@pytest.mark.parametrize("given", ["", "x", "é", "token"])
def test_what_is_no_token_opens_nothing(given):
    access = Access(4000)
    assert access.enter(given) is None
    assert not access.knows(given)


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


ROW = "   0: 0100007F:{there:04X} 0100007F:{here:04X} 01 00000000:00000000 00:00000000 00000000 {user:>5} 0 1 1 0\n"


@pytest.mark.parametrize(("user", "other"), [(0, False), (1, True)])
def test_the_kernel_says_whose_connection_it_is(tmp_path: Path, monkeypatch, user, other):
    table = tmp_path / "tcp"
    own = os.getuid()
    lines = [
        ROW.format(there=4000, here=51000, user=own),  # our end of it
        ROW.format(there=51000, here=4001, user=own),
        ROW.format(there=51000, here=4000, user=own + user),
    ]
    table.write_text(
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n" + "".join(lines)
    )
    monkeypatch.setattr(module, "CONNECTIONS", (tmp_path / "none", table))
    assert another_user(51000, 4000) is other
    assert not another_user(52000, 4000)  # nobody's, as far as the table says
