"""The local scheduler and its workers answer nobody but the run that started them."""

import asyncio
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from distributed import Client
from distributed.core import connect

from designopt.workers.pools.certificates import temporary_security
from designopt.workers.pools.local import LocalWorkers


@pytest.fixture(scope="module")
def addresses():
    """Every address that a run on local workers listens at: scheduler, workers, their nannies; and their pages."""
    local = LocalWorkers("0", 1, Path("s"))
    try:
        (worker,) = local.client.scheduler_info(n_workers=-1)["workers"].items()
        places = [local.cluster.scheduler_address, worker[0], worker[1]["nanny"]]
        pages = [("127.0.0.1", port) for port in worker[1]["services"].values()]
        pages += [("127.0.0.1", port) for port in local.client.scheduler_info()["services"].values()]
        yield places, pages
    finally:
        local.close()


async def _answer(address, timeout=60, **options):
    comm = await connect(address, timeout=timeout, **options)
    await comm.write({"op": "identity", "reply": True})
    answer = await comm.read()
    await comm.close()
    return answer


@pytest.mark.parametrize("number", [0, 1, 2], ids=["scheduler", "worker", "nanny"])
@pytest.mark.parametrize("who", ["plain", "own certificate"])
def test_nobody_without_the_certificate_of_the_run_is_answered(addresses, number, who):
    address = addresses[0][number]
    assert address.startswith("tls://127.0.0.1:")
    options = {}
    if who == "plain":
        address = address.replace("tls://", "tcp://")
    else:
        options = temporary_security().get_connection_args("client")
    with pytest.raises((OSError, TimeoutError)):
        asyncio.run(_answer(address, timeout=5, **options))


def test_a_client_without_the_certificate_cannot_run_code(addresses):
    with pytest.raises((OSError, TimeoutError)):
        Client(addresses[0][0].replace("tls://", "tcp://"), timeout=2, set_as_default=False)
    with pytest.raises((OSError, TimeoutError)):
        Client(addresses[0][0], security=temporary_security(), timeout=2, set_as_default=False)


def test_the_run_itself_is_answered():
    local = LocalWorkers("1", 1, Path("s"))
    try:
        assert list(local.client.run(lambda: 7).values()) == [7]
        options = local.cluster.security.get_connection_args("client")
        assert asyncio.run(_answer(local.cluster.scheduler_address, **options))["type"] == "Scheduler"
    finally:
        local.close()


def test_no_pages_about_the_run_are_served(addresses):
    assert addresses[1]
    for host, port in addresses[1]:
        for path in ("health", "metrics", "info/main/workers.html", "api/v1/retire_workers", "json/identity.json"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(f"http://{host}:{port}/{path}", timeout=60)
