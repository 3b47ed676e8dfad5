"""What a worker has started is found when the worker has gone, and nothing else is."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest
from command import alive

from designopt.workers.supervision import children

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc")

#: A worker of two runs forks while it is at the one, at the other and at none.
WORKER = """
import os, sys, time
from designopt.workers.supervision.watch import Watch
mine, other = Watch("r1", "tls://host:1", "address"), Watch("r2", "tls://host:1", "address")
def start():
    child = os.fork()
    if child == 0:
        time.sleep(1000.0)
    return child
with mine.owning():
    first = start()
with other.owning():
    second = start()
print(first, second, start(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def started():
    """Ends what a test has left."""
    pids = []
    yield pids
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def test_a_fork_belongs_to_the_run_that_the_worker_was_at(tmp_path, started):
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER], env=os.environ | {"TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    first_run, second_run, neither = (int(text) for text in worker.stdout.readline().split())
    started += [first_run, second_run, neither, worker.pid]
    children.end_marked("r2", "tls://host:2")
    assert [alive(pid) for pid in (first_run, second_run, neither)] == [True] * 3
    children.end_marked("r2", "tls://host:1")  # the worker itself as well
    assert worker.wait(60) == -signal.SIGKILL
    worker.stdin.close()
    worker.stdout.close()
    end = time.monotonic() + 60.0
    while alive(second_run):
        assert time.monotonic() < end
        time.sleep(0.01)
    assert [alive(pid) for pid in (first_run, neither)] == [True] * 2


def _program(name):
    environment = dict(os.environ)
    children.mark("r", name)
    try:
        return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True)
    finally:
        children.unmark("r")
        assert dict(os.environ) == environment


def test_programs_of_one_worker_end_and_those_of_its_neighbour_go_on(started):
    first, second, third = (_program(name) for name in ("tls://host:1", "tls://host:10", "tls://host:2"))
    started += [first.pid, second.pid, third.pid]
    children.end_marked("r", "tls://host:1")
    assert first.wait(60) == -signal.SIGKILL
    assert [alive(second.pid), alive(third.pid)] == [True, True]
    children.end_marked("r")
    assert [second.wait(60), third.wait(60)] == [-signal.SIGKILL] * 2


def test_descendants_end_in_whatever_session_and_with_whatever_environment(tmp_path, started):
    script = (
        "import subprocess, sys, time; stay = [sys.executable, '-c', 'import time; time.sleep(1000)'];"
        "print(subprocess.Popen(stay, env={}, start_new_session=True).pid, flush=True); time.sleep(1000)"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    started += [parent.pid, child]
    children.end_descendants(parent.pid)
    assert [alive(parent.pid), alive(child)] == [True, False]
    parent.kill()
    parent.communicate()


def test_a_child_of_a_process_whose_first_thread_has_ended_ends_too(started):
    """Such a process looks dead while another thread runs, and its children are not orphans yet."""
    worker_script = (
        "import ctypes, os, subprocess, sys, threading, time;"
        "threading.Thread(target=time.sleep, args=(1000,)).start();"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'], env={});"
        "print(os.getpid(), child.pid, flush=True); ctypes.CDLL(None).pthread_exit(None)"
    )
    script = (
        f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {worker_script!r}]); time.sleep(1000)"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    worker, child = (int(pid) for pid in parent.stdout.readline().split())
    started += [parent.pid, worker, child]
    end = time.monotonic() + 60.0
    while alive(worker):
        assert time.monotonic() < end
        time.sleep(0.01)
    assert alive(child)
    children.end_descendants(parent.pid)
    assert not alive(child)
    parent.kill()
    parent.communicate()
