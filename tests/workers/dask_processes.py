"""A scheduler and workers as separate processes, with or without TLS, and certificates for them."""

import contextlib
import datetime
import os
import signal
import socket
import subprocess
import sys
import time

#: Most of the time these processes wait: by Dask's defaults they look at clocks and at themselves meanwhile, which
#: takes more of the processor than what tests ask of them.
IDLE = {
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "10s",
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def started(*arguments, folder, within=(), **environment):
    """`dask` with these arguments as a process; `within` is the beginning of its command line."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    command = [*within, sys.executable, "-m", "dask", *map(str, arguments), "--no-dashboard"]
    return subprocess.Popen(command, env={**os.environ, **IDLE, **environment}, start_new_session=True, **quiet)


def end(processes):
    """Kills them and their children in order of their list: an orderly end of a worker takes ten seconds."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Cluster:
    """A scheduler on this machine with workers; `tls` are the options of certificates."""

    def __init__(self, folder, *worker_options, tls=()):
        self.port = free_port()
        self.address = f"{'tls' if tls else 'tcp'}://127.0.0.1:{self.port}"
        self.file = folder / "scheduler.json"
        self.folder = folder
        self.tls = tls
        address = ["--host", "127.0.0.1", *tls]
        protocol = ["--protocol", "tls"] if tls else []
        arguments = ["scheduler", *address, *protocol, "--port", self.port, "--scheduler-file", self.file]
        self.processes = [started(*arguments, folder=folder)]
        self.add_worker(*worker_options)

    def add_worker(self, *options, **environment):
        arguments = ["worker", self.address, "--host", "127.0.0.1", *self.tls, *options]
        self.processes.append(started(*arguments, folder=self.folder, **environment))

    def wait_for(self, workers, security=None):
        wait_for(self.address, workers, security)

    def close(self):
        end(self.processes[::-1])


@contextlib.contextmanager
def running_cluster(folder, *worker_options, workers):
    """A `Cluster` with its workers there, until the context ends."""
    cluster = Cluster(folder, *worker_options)
    try:
        cluster.wait_for(workers)
        yield cluster
    finally:
        cluster.close()


def wait_for(address, workers, security=None):
    """Until so many workers are at the scheduler."""
    from distributed import Client

    deadline = time.monotonic() + 400
    while True:
        try:
            with Client(address, timeout=20, set_as_default=False, security=security) as client:
                client.wait_for_workers(workers, timeout=300)
                return
        except (OSError, TimeoutError):
            assert time.monotonic() < deadline, "the scheduler did not start"


def certificates(folder):
    """An authority and a certificate with key signed by it, as files in `folder`; returns (ca, cert, key)."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    folder.mkdir()
    authority, signing_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issued = datetime.datetime.now(datetime.UTC)

    def signed(name, key, may_sign):
        builder = x509.CertificateBuilder().serial_number(x509.random_serial_number()).public_key(key.public_key())
        builder = builder.subject_name(named(name)).issuer_name(named("authority"))
        builder = builder.not_valid_before(issued - datetime.timedelta(hours=1))
        builder = builder.not_valid_after(issued + datetime.timedelta(days=1))
        builder = builder.add_extension(x509.BasicConstraints(ca=may_sign, path_length=None), critical=True)
        return builder.sign(authority, hashes.SHA256())

    def named(name):
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])

    pem = serialization.Encoding.PEM
    private = signing_key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    contents = {
        "ca.pem": signed("authority", authority, True).public_bytes(pem),
        "cert.pem": signed("designopt", signing_key, False).public_bytes(pem),
        "key.pem": private,
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return tuple(folder / name for name in contents)
