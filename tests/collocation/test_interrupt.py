"""A request to stop ends a solve, which keeps what it has; threads do not disturb each other."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import benchmark_problems as problems
import numpy as np
import pytest
from small_motions import solve, unending

from designopt.collocation import Options, Program, Status, solve_design

pytestmark = pytest.mark.usefixtures("silent")


@pytest.fixture
def handled():
    """Ctrl-C as in a terminal; a shell lets what it starts in the background ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt_from(handler, number=signal.SIGINT):
    """Sends the signal to this process when the solver has taken it over from `handler` and goes through iterations."""

    def send():
        while signal.getsignal(number) is handler:
            time.sleep(0.005)
        time.sleep(0.2)
        if signal.getsignal(number) is not handler:
            os.kill(os.getpid(), number)

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    return thread


def test_a_request_to_stop_ends_the_solve_with_its_last_iterate(handled):
    before = signal.getsignal(signal.SIGINT)
    thread = interrupt_from(before)
    program = Program(unending(), Options(max_iterations=10**6))
    found = program.solve()
    thread.join()

    assert found.status is Status.CANCELLED
    assert not found.success
    assert 0 < found.iterations < 10**6
    assert np.abs(found.phase.values["x"] - found.phase.times / 2.0).max() > 1e-6  # it is not the guess
    assert "Guess.of" in found.message
    assert signal.getsignal(signal.SIGINT) is before


def test_what_the_handler_of_the_host_raises_reaches_it():
    class Break(KeyboardInterrupt):
        pass

    def receive(number, frame):
        raise Break

    before = signal.signal(signal.SIGTERM, receive)
    try:
        thread = interrupt_from(receive, signal.SIGTERM)
        with pytest.raises(Break):
            solve(unending(), max_iterations=10**6)
        thread.join()
        assert signal.getsignal(signal.SIGTERM) is receive
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_host_that_only_notes_the_request_lets_the_solve_end():
    noted = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: noted.append(number))
    receive = signal.getsignal(signal.SIGTERM)
    try:
        thread = interrupt_from(receive, signal.SIGTERM)
        found = solve(unending(), time_limit=1.0, max_iterations=10**6)
        thread.join()
    finally:
        signal.signal(signal.SIGTERM, before)

    assert found.status is Status.TIME_LIMIT
    assert noted == [signal.SIGTERM]


def test_a_solve_in_another_thread_handles_no_signals():
    found = []
    thread = threading.Thread(target=lambda: found.append(solve(problems.block_move(), intervals=5)))
    thread.start()
    thread.join()

    assert found[0].status is Status.SOLVED


def test_threads_may_share_a_program():
    """In a process of its own: without their waiting for each other it is killed by a violation of memory."""
    script = """
import sys
import threading
sys.path.insert(0, sys.argv[1])
import small_motions
from designopt.collocation import Options, Program
program = Program(small_motions.problems.block_move(), Options(intervals=20))
found = []
def work():
    for _ in range(10):
        found.append(round(program.solve().objective, 6))
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(found), set(found))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(Path(__file__).parent)], capture_output=True, text=True, timeout=60
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "40 {12.0}\n", "")


def test_a_design_whose_solve_is_stopped_is_no_failed_design(handled):
    thread = interrupt_from(signal.getsignal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt, match="Stopped on request"):
        solve_design(unending(), {}, Options(max_iterations=10**6))
    thread.join()


def test_ctrl_c_in_a_terminal_leaves_the_program_in_charge():
    script = """
import signal
import sys
import threading
import time
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, sys.argv[1])
import small_motions
from designopt.collocation import Options, Program
program = Program(small_motions.unending(), Options(max_iterations=10**6))
def say_when_the_solver_has_taken_over():
    while signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        time.sleep(0.005)
    print("solving", flush=True)
threading.Thread(target=say_when_the_solver_has_taken_over, daemon=True).start()
print(program.solve().status.name, flush=True)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(Path(__file__).parent)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() == b"solving\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)

    assert (out, err, process.returncode) == (b"CANCELLED\n", b"", 0)
