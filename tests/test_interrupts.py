"""A request to stop that arrives inside a conversion of CasADi is kept."""

import signal
import subprocess
import sys
import time

import casadi as ca
import click
import pytest
from click.testing import CliRunner
from interrupting import Interrupting

from designopt.cli import _Commands
from designopt.cli.exit import INTERRUPTED
from designopt.interrupts import HostHandlers, StopRequests, handler_of_host

pytestmark = pytest.mark.usefixtures("handled")


def wait_a_minute():
    for _ in range(6000):
        time.sleep(0.01)


@pytest.mark.filterwarnings("ignore:Exception ignored in PyObject_HasAttrString")  # Python 3.13 says so, too
def test_casadi_hides_exceptions_of_its_conversions():
    """The reason for `HostHandlers`: were this to change, it could go."""
    assert float(ca.evalf(ca.vec(Interrupting(3.0)))) == 3.0


def test_a_request_inside_a_conversion_comes_afterwards(monkeypatch):
    monkeypatch.setattr("designopt.interrupts.AGAIN", 0.5)  # not before the value is stored, on a busy machine either
    values = []

    @HostHandlers()
    def convert():
        values.append(float(ca.evalf(ca.vec(Interrupting(3.0)))))
        wait_a_minute()

    with pytest.raises(KeyboardInterrupt):
        convert()
    assert values == [3.0]


def test_a_function_may_be_decorated_and_call_itself():
    @HostHandlers()
    def recurse(depth):
        ca.vec(Interrupting(3.0))
        wait_a_minute() if not depth else recurse(depth - 1)

    with pytest.raises(KeyboardInterrupt):
        recurse(1)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_elsewhere_a_request_is_answered_at_once():
    with pytest.raises(KeyboardInterrupt), HostHandlers():
        signal.raise_signal(signal.SIGINT)


def test_the_handler_of_the_host_is_known_and_put_back():
    with HostHandlers():
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        assert handler_of_host(signal.getsignal(signal.SIGINT)) is signal.default_int_handler
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_request_reaches_the_outer_solver_and_without_a_solver_the_host_again():
    with HostHandlers(), StopRequests() as outer:
        with StopRequests():
            signal.raise_signal(signal.SIGINT)
        assert outer.is_requested
        outer.is_requested = False
        signal.raise_signal(signal.SIGINT)
        assert outer.is_requested
    with HostHandlers():
        with StopRequests():
            pass
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_a_command_that_is_interrupted_while_it_builds_a_model_ends():
    @click.group(cls=_Commands)
    def commands():
        pass

    @commands.command()
    def work():
        ca.vec(Interrupting(3.0))
        wait_a_minute()

    completed = CliRunner().invoke(commands, ["work"])
    assert (completed.exit_code, completed.stderr) == (INTERRUPTED, "interrupted\n")


#: A command that is asked to stop once more while what is left to do at its end is done.
ASKED_AGAIN = """
import atexit, os, signal, sys
from designopt.cli.separate import separately

def work(tell):
    atexit.register(os.kill, os.getpid(), signal.SIGINT)
    if sys.argv[1] == "interrupted":
        os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
separately(work, None, stay=True)
"""


@pytest.mark.parametrize(("word", "code"), [("interrupted", INTERRUPTED), ("done", 0)])
def test_a_stop_request_at_the_end_does_not_change_the_exit_code(word, code):
    completed = subprocess.run([sys.executable, "-c", ASKED_AGAIN, word], capture_output=True, text=True, timeout=300)
    assert completed.returncode == code, completed.stderr
    assert completed.stderr == ("interrupted\n" if word == "interrupted" else "")
