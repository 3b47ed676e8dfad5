"""A request to stop ends a solve, which keeps what it has; threads do not disturb each other."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import benchmark_problems as problems
import casadi as ca
import numpy as np
import pytest
from interrupting import Interrupting
from small_motions import unending

from designopt.collocation import Options, Program, Status, TrajectoryProblem, solve, solve_design
from designopt.collocation.solve import solver
from designopt.interrupts import StopRequests, handler_of_host

pytestmark = pytest.mark.usefixtures("silent")

PROBLEMS = str(Path(__file__).parents[1] / "problems")


def interrupted(number=signal.SIGINT):
    """Sends the signal to this process when the solver has taken it over and goes through iterations."""

    def send():
        while not taken_over(number):
            time.sleep(0.005)
        time.sleep(0.2)
        if taken_over(number):
            os.kill(os.getpid(), number)

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    return thread


def taken_over(number=signal.SIGINT):
    """Whether the solver receives the signal."""
    return isinstance(getattr(handler_of_host(signal.getsignal(number)), "__self__", None), StopRequests)


def test_a_request_to_stop_ends_the_solve_with_its_last_iterate(handled):
    before = signal.getsignal(signal.SIGINT)
    thread = interrupted()
    program = Program(unending(), Options(max_iterations=10**6))
    solution = program.solve()
    thread.join()

    assert solution.status is Status.CANCELLED
    assert not solution.success
    assert 0 < solution.iterations < 10**6
    assert np.abs(solution.phase.values["x"] - solution.phase.times / 2.0).max() > 1e-6  # it is not the guess
    assert "Guess.from_solution" in solution.message
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("do", [Program, solve])
def test_a_request_while_a_program_is_built_is_not_lost_in_a_conversion(handled, do):
    def cost(ends):
        ca.vec(Interrupting(1.0))
        for _ in range(6000):
            time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt):
        do(TrajectoryProblem(problems.block_move().phases, cost=cost))


def test_a_request_between_the_two_solvers_ends_the_solve(handled, monkeypatch):
    """While IPOPT is built after the first search has failed."""

    def requested(*arguments, **more):
        os.kill(os.getpid(), signal.SIGINT)
        return build(*arguments, **more)

    build = solver.ipopt
    monkeypatch.setattr(solver, "ipopt", requested)
    solution = Program(unending(), Options(max_iterations=10**6)).solve()
    assert solution.status is Status.CANCELLED
    assert solution.iterations > 0  # of the first search


def test_exceptions_of_the_hosts_signal_handler_reach_the_host():
    class Break(KeyboardInterrupt):
        pass

    def receive(number, frame):
        raise Break

    before = signal.signal(signal.SIGTERM, receive)
    try:
        thread = interrupted(signal.SIGTERM)
        with pytest.raises(Break):
            solve(unending(), Options(max_iterations=10**6))
        thread.join()
        assert signal.getsignal(signal.SIGTERM) is receive
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_handler_that_returns_lets_the_solve_end():
    noted = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: noted.append(number))
    try:
        thread = interrupted(signal.SIGTERM)
        solution = Program(unending(), Options(time_limit=1.0, max_iterations=10**6)).solve()
        thread.join()
    finally:
        signal.signal(signal.SIGTERM, before)

    assert solution.status is Status.TIME_LIMIT
    assert noted == [signal.SIGTERM]


def test_a_solve_in_another_thread_handles_no_signals():
    solutions = []
    thread = threading.Thread(
        target=lambda: solutions.append(Program(problems.block_move(), Options(intervals=5)).solve())
    )
    thread.start()
    thread.join()

    assert solutions[0].status is Status.SOLVED


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
    process = subprocess.run(
        [sys.executable, "-c", script, PROBLEMS],
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert (process.returncode, process.stdout, process.stderr) == (0, "40 {12.0}\n", "")


def test_a_design_whose_solve_is_stopped_is_no_failed_design(handled):
    thread = interrupted()
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
from designopt.interrupts import StopRequests, handler_of_host
program = Program(small_motions.unending(), Options(max_iterations=10**6))
def say_when_the_solver_has_taken_over():
    watched = 0  # times in a row, longer than the first search takes before IPOPT is built
    while watched < 100:
        handler = handler_of_host(signal.getsignal(signal.SIGINT))
        in_charge = isinstance(getattr(handler, "__self__", None), StopRequests)
        watched = watched + 1 if in_charge else 0
        time.sleep(0.005)
    print("solving", flush=True)
threading.Thread(target=say_when_the_solver_has_taken_over, daemon=True).start()
print(program.solve().status.name, flush=True)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script, PROBLEMS],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"solving\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)

    assert (out, err, process.returncode) == (b"CANCELLED\n", b"", 0)
