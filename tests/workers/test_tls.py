"""Runs over TLS: scheduler and workers are separate processes, also in network namespaces of their own."""

import contextlib
import os
import shutil
import subprocess
import sys

import dask
import distributed  # noqa: F401  (its settings must be there before some are changed for a while)
import numpy as np
import pytest
from dask_processes import Cluster, certificates, end, free_port, started, wait_for
from run_cases import PLUGINS, Recorder, dump, listed, make_study

from designopt.run.runner import run_study
from designopt.store.errors import WorkersError
from designopt.store.result import Result

pytest.importorskip("cryptography")


def study(values, pause=0.0, **execution):
    return make_study(
        settings={"pause": pause}, names=("a",), low=-100, high=100, stages=(listed(values),), execution=execution
    )


def options(files):
    return ("--tls-ca-file", files[0], "--tls-cert", files[1], "--tls-key", files[2])


def configured(files):
    """The certificates in this process's configuration of Dask."""
    names = ("ca-file", "client.cert", "client.key")
    return dask.config.set({f"distributed.comm.tls.{n}": str(f) for n, f in zip(names, files, strict=True)})


@pytest.fixture(scope="module")
def trusted(tmp_path_factory):
    return certificates(tmp_path_factory.mktemp("tls") / "ours")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, trusted):
    processes = Cluster(tmp_path_factory.mktemp("cluster"), "--nthreads", "1", "--nworkers", "2", tls=options(trusted))
    try:
        with configured(trusted):
            processes.wait_for(2)
        yield processes
    finally:
        processes.close()


def test_a_run_over_tls_gives_the_same_journal_by_address_and_by_file(cluster, trusted, tmp_path):
    values = np.linspace(-1, 1, 50)
    expected = dump(run_study(study(values, executor="serial"), tmp_path / "serial"))
    with configured(trusted):
        assert dump(run_study(study(values), tmp_path / "address", scheduler=cluster.address)) == expected
        assert dump(run_study(study(values, scheduler=str(cluster.file)), tmp_path / "file")) == expected


STUDY = """\
study: over_tls
model: {use: bowl}
space: {a: {low: -1, high: 1}}
objectives: [{name: height, minimize: height}]
solver: {use: full_factorial, levels: 5}
execution: {scheduler: "file: scheduler.json"}
"""


def test_the_environment_names_the_certificates_and_a_scheduler_file_lies_beside_the_study(cluster, trusted, tmp_path):
    shutil.copy(cluster.file, tmp_path)
    (tmp_path / "study.yaml").write_text(STUDY)
    names = ("CA_FILE", "CLIENT__CERT", "CLIENT__KEY")
    settings = {f"DASK_DISTRIBUTED__COMM__TLS__{n}": str(f) for n, f in zip(names, trusted, strict=True)}
    command = [sys.executable, "-m", "designopt", "run", tmp_path / "study.yaml", "-o", tmp_path / "s"]
    command += ["--plugin", PLUGINS]
    process = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, timeout=600)
    assert process.returncode == 0, process.stdout + process.stderr
    assert Result.open(tmp_path / "s").sessions[0]["executor"] == "dask"


def test_a_certificate_of_another_authority_is_refused_in_a_sentence(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr("designopt.workers.pools.connection.CONNECT_WAIT", 8)
    strange = certificates(tmp_path / "theirs")
    with configured(strange), pytest.raises(WorkersError, match="signed by the same authority") as caught:
        run_study(study([0.0]), tmp_path / "s", scheduler=cluster.address)
    assert "\n" not in str(caught.value)


def test_certificates_that_are_not_named_or_not_there_are_asked_for(trusted, tmp_path):
    with pytest.raises(WorkersError, match=r"needs certificates: set distributed\.comm\.tls .*COMM__TLS__CA_FILE"):
        run_study(study([0.0]), tmp_path / "s", scheduler="tls://192.0.2.7:8786")
    absent = (*trusted[:2], tmp_path / "key.pem")
    with configured(absent), pytest.raises(WorkersError, match=r"key\.pem cannot be read .*client\.key"):
        run_study(study([0.0]), tmp_path / "t", scheduler="tls://192.0.2.7:8786")


def test_an_open_scheduler_is_refused_on_any_address_but_loopback(tmp_path):
    for host in ("192.0.2.7", "[2001:db8::1]", "node17"):
        with pytest.raises(WorkersError, match="not encrypted"):
            run_study(study([0.0]), tmp_path / "s", scheduler=f"tcp://{host}:8786")


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def two_hosts():
    """Namespaces near (10.213.78.1, which this process reaches as well) and far (10.213.78.2)."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    near, far = (f"designopt-{name}-{os.getpid()}" for name in ("near", "far"))
    link = f"dsg{os.getpid()}"[:13]
    try:
        for name in (near, far):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("link", "add", link, "type", "veth", "peer", "name", "home", "netns", near)
        ip("-n", near, "link", "add", "away", "type", "veth", "peer", "name", "home", "netns", far)
        ip("addr", "add", "10.213.77.1/30", "dev", link)
        ip("link", "set", link, "up")
        for space, device, address in ((near, "home", "77.2"), (near, "away", "78.1"), (far, "home", "78.2")):
            ip("-n", space, "addr", "add", f"10.213.{address}/30", "dev", device)
            ip("-n", space, "link", "set", device, "up")
        ip("route", "add", "10.213.78.1/32", "via", "10.213.77.2")
        ip("-n", near, "route", "add", "default", "via", "10.213.77.1")
    except subprocess.CalledProcessError as error:
        for name in (near, far):
            with contextlib.suppress(subprocess.CalledProcessError):
                ip("netns", "del", name)
        pytest.skip(f"this machine has no network namespaces: {error.stderr.decode().strip()}")
    yield near, far
    for name in (near, far):
        ip("netns", "del", name)


@pytest.mark.slow
def test_a_host_that_drops_off_the_network_loses_and_doubles_nothing(two_hosts, trusted, tmp_path):
    near, far = two_hosts
    port = free_port()
    environment = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "12s"}

    def begin(space, *arguments):
        within = ("ip", "netns", "exec", space)
        return started(*arguments, *options(trusted), folder=tmp_path, within=within, **environment)

    address = f"tls://10.213.78.1:{port}"
    worker = ("worker", address, "--nthreads", "1", "--host")
    processes = [begin(near, "scheduler", "--host", "10.213.78.1", "--protocol", "tls", "--port", port)]
    processes += [begin(near, *worker, "10.213.78.1"), begin(far, *worker, "10.213.78.2")]
    values = np.linspace(-1, 1, 100)

    class Cutting(Recorder):
        def update(self, snapshot):
            super().update(snapshot)
            if snapshot.evaluations >= 20 and not hasattr(self, "cut"):
                self.cut = True
                ip("-n", near, "link", "set", "away", "down")

    try:
        with configured(trusted):
            wait_for(address, 2)
            result = run_study(study(values, pause=0.1), tmp_path / "s", scheduler=address, progress=Cutting())
    finally:
        end(processes[::-1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.sleep", lambda seconds: None)
        expected = dump(run_study(study(values, pause=0.1, executor="serial"), tmp_path / "serial"))
    assert dump(result) == expected
    assert "worker_lost" in {event["kind"] for event in result.events}
