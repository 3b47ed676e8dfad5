"""Sixty ways in which an evaluation can go wrong. Loaded as a plugin file.

`KINDS` says of each what it does, and in which classes its design may end: a class in brackets beside ``ok`` where the
harm may come to light after the result.
"""

import builtins
import ctypes
import gc
import json
import logging
import math
import os
import pickle
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from typing import TypedDict

import numpy as np

from designopt.plugin import Array, Diverged, InvalidDesign, model

GOOD = {"value": 100.0}


class Silent(Exception):
    def __str__(self):
        raise RuntimeError("no text")


class LongText(Exception):
    def __str__(self):
        return "x" * 50_000_000


class _NamelessClass(type):
    @property
    def __name__(cls):
        raise RuntimeError("no name")


class Nameless(Exception, metaclass=_NamelessClass):
    pass


class Unpicklable(Exception):
    def __reduce__(self):
        raise TypeError("never")


class EvilNumber(float):
    def __float__(self):
        raise RuntimeError("no number")


def _raise(error):
    raise error


def _later(seconds, action):
    def act():
        time.sleep(seconds)
        action()

    threading.Thread(target=act, daemon=True).start()


def _grow():
    resource.setrlimit(resource.RLIMIT_AS, (2**31, resource.getrlimit(resource.RLIMIT_AS)[1]))
    blocks = []
    while True:
        blocks.append(bytearray(2**26))


def _deep(n):
    return _deep(n + 1)


def _deadlock():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def _fork_and_answer():
    if os.fork() == 0:
        time.sleep(600.0)
        os._exit(0)


def _double_fork():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600.0)
        os._exit(0)
    os.wait()


def _stay():
    """A program that stays, and says whose it is where others look for it."""
    return [sys.executable, "-c", "import time; time.sleep(600)", tempfile.gettempdir()]


def _start(**options):
    subprocess.Popen(_stay(), **options)


def _start_daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 1024)
            os.execve(sys.executable, _stay(), {})
        os._exit(0)
    os.wait()


def _handle_everything():
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)


def _in_main_thread(action):
    """Signal handlers can only be set there; an evaluation runs in another one."""
    try:
        action()
    except ValueError:
        return


def _chdir():
    os.chdir(tempfile.mkdtemp())


def _remove_cwd():
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    os.rmdir(folder)


def _close_standard():
    for descriptor in (0, 1, 2):
        os.close(descriptor)


def _replace_standard():
    sys.stdout = sys.stderr = None


def _print_much():
    for _ in range(40):
        print("x" * 500_000)


def _fill_notes():
    os.write(1, b"y" * 20_000_000)


def _trace():
    sys.settrace(lambda *_: _raise(RuntimeError("traced")))


def _many_threads():
    for _ in range(50):
        threading.Thread(target=time.sleep, args=(600.0,), daemon=True).start()


def _stack_overflow():
    sys.setrecursionlimit(10**9)
    _deep(0)


def _fatal(number):
    signal.raise_signal(number)
    time.sleep(0.5)


def _free_twice():
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    block = libc.malloc(64)
    libc.free(block)
    libc.free(block)


_Lock = threading.Lock
FAILS, DIES, SLOW = {"error"}, {"crashed"}, {"timeout"}
FINE_OR_DIES = {"ok", "crashed"}
#: name: (what it does and returns, statuses in which its design may end)
KINDS = {
    # --- what it raises
    "raises": (lambda: _raise(ValueError("no")), FAILS),
    "raises a base": (lambda: _raise(BaseException("no")), FAILS),
    "raises without text": (lambda: _raise(Silent()), FAILS),
    "raises without name": (lambda: _raise(Nameless()), FAILS),
    "raises a long text": (lambda: _raise(LongText()), FAILS),
    "raises what cannot be sent": (lambda: _raise(Unpicklable()), FAILS),
    "raises a group": (lambda: _raise(ExceptionGroup("g", [ValueError("a"), OSError("b")])), FAILS),
    "raises surrogates": (lambda: _raise(ValueError("file \udcff")), FAILS),
    "exits the interpreter": (lambda: sys.exit(0), FAILS),
    "exits with a text": (lambda: sys.exit("no licence"), FAILS),
    "interrupts": (lambda: _raise(KeyboardInterrupt()), FAILS),
    "stops an iteration": (lambda: _raise(StopIteration()), FAILS),
    "ends a generator": (lambda: _raise(GeneratorExit()), FAILS),
    "runs out of memory": (lambda: _raise(MemoryError()), FAILS),
    "recurses": (lambda: _deep(0), FAILS),
    "diverges": (lambda: _raise(Diverged("fell over", reason="fall")), {"diverged"}),
    "diverges without words": (lambda: _raise(Diverged(Silent())), {"diverged"}),
    "refuses": (lambda: _raise(InvalidDesign("not here")), {"invalid"}),
    "warns as an error": (lambda: (warnings.simplefilter("error"), warnings.warn("no", stacklevel=1)), FAILS),
    # --- what it returns
    "returns none": (lambda: {"value": None}, FAILS),
    "returns nothing": (lambda: {}, FAILS),
    "returns no mapping": (lambda: 7, FAILS),
    "returns a text": (lambda: {"value": "seven"}, FAILS),
    "returns not a number": (lambda: {"value": math.nan}, {"nonfinite"}),
    "returns infinity": (lambda: {"value": -math.inf}, {"nonfinite"}),
    "returns a complex number": (lambda: {"value": 1.0 + 2.0j}, FAILS),
    "returns an array": (lambda: {"value": np.ones(3)}, FAILS),
    "returns an evil number": (lambda: {"value": EvilNumber(1.0)}, FAILS),
    "returns a huge integer": (lambda: {"value": 10**400}, FAILS),
    "returns an array of objects": (lambda: (GOOD, {"curve": np.array([_Lock()] * 3, object)}), FAILS),
    "returns a ragged array": (lambda: (GOOD, {"curve": [[1.0], [1.0, 2.0]]}), FAILS),
    "returns no array": (lambda: (GOOD, {}), FAILS),
    # --- how it dies
    "exits": (lambda: os._exit(0), DIES),
    "exits with a code": (lambda: os._exit(7), DIES),
    "exits soon": (lambda: _later(0.002, lambda: os._exit(9)), FINE_OR_DIES),
    "exits later": (lambda: _later(0.2, lambda: os._exit(9)), FINE_OR_DIES),
    "reads address zero": (lambda: ctypes.string_at(0), DIES),
    "reads it soon": (lambda: _later(0.002, lambda: ctypes.string_at(0)), FINE_OR_DIES),
    "aborts": (lambda: os.abort(), DIES),
    "frees twice": (_free_twice, DIES),
    "is killed": (lambda: _fatal(signal.SIGKILL), DIES),
    "is terminated": (lambda: _fatal(signal.SIGTERM), {"ok", "crashed"}),
    "kills its group": (lambda: os.killpg(0, signal.SIGKILL), DIES),
    "overflows the stack": (_stack_overflow, {"crashed", "error", "timeout"}),
    "eats memory": (_grow, {"error", "crashed"}),
    # --- how it hangs
    "sleeps": (lambda: time.sleep(600.0), SLOW),
    "holds the interpreter": (lambda: ctypes.PyDLL(None).sleep(600), SLOW),
    "spins": (lambda: _spin(), SLOW),
    "deadlocks": (_deadlock, SLOW),
    "stops itself": (lambda: (os.kill(os.getpid(), signal.SIGSTOP), time.sleep(0.5)), DIES),
    # --- what it does to its process
    "breaks numpy": (lambda: setattr(np, "empty", None), FINE_OR_DIES),
    "breaks pickle": (lambda: setattr(pickle, "loads", None), FINE_OR_DIES),
    "breaks json": (lambda: setattr(json, "dumps", None), {"ok"}),
    "breaks len": (lambda: setattr(builtins, "len", None), FINE_OR_DIES | {"error", "lost_worker", "timeout"}),
    "breaks os": (lambda: setattr(os, "getpid", None), FINE_OR_DIES | {"lost_worker"}),
    "closes its files": (lambda: os.closerange(3, 1024), FINE_OR_DIES),
    "closes standard output": (_close_standard, FINE_OR_DIES | {"error"}),
    "has no standard output": (_replace_standard, {"ok"}),
    "prints much": (_print_much, {"ok"}),
    "writes much": (_fill_notes, {"ok"}),
    "ignores signals": (lambda: _in_main_thread(_handle_everything), {"ok"}),
    "goes elsewhere": (_chdir, {"ok"}),
    "goes nowhere": (_remove_cwd, {"ok"}),
    "switches off logs": (lambda: logging.disable(logging.CRITICAL), {"ok"}),
    "switches off collection": (lambda: gc.disable(), {"ok"}),
    "traces": (_trace, {"ok", "error"}),
    "starts threads": (_many_threads, {"ok"}),
    "forks": (_fork_and_answer, {"ok"}),
    "forks away": (_double_fork, {"ok"}),
    "starts a process": (lambda: _start(), {"ok"}),
    "starts a session": (lambda: _start(start_new_session=True), {"ok"}),
    "starts a session without environment": (lambda: _start(start_new_session=True, env={}), {"ok"}),
    "starts a daemon": (_start_daemon, {"ok"}),
    "opens sockets": (lambda: [socket.socket() for _ in range(100)], {"ok"}),
    "changes the seed": (lambda: np.random.seed(0), {"ok"}),
    "changes the environment": (lambda: os.environ.clear(), {"ok"}),
}


def _spin():
    while True:
        pass


class Value(TypedDict):
    value: float


@model("bad", version=1, arrays={"curve": Array(("time",), "m")})
class Bad:
    """Good everywhere but at 50, where it does what `kind` says."""

    kind: str

    def evaluate(self, design, scenario, arrays) -> tuple[Value, dict]:
        have = {"curve": np.full(3, design["a"])}
        answer = {"value": 2.0 * design["a"]}
        if design["a"] == 50.0:
            what = KINDS[self.kind][0]()
            if isinstance(what, tuple) and len(what) == 2 and isinstance(what[1], dict):
                return what
            if isinstance(what, (dict, int)) and self.kind.startswith("returns"):
                answer = what
        return answer, {name: have[name] for name in arrays}
