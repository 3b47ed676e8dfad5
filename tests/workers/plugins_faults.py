"""Models that do to their process what models must not do. Loaded as a plugin file."""

import contextlib
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TypedDict

import numpy as np

from designopt.plugin import Array, model


class _Nameless(type):
    @property
    def __name__(cls):
        raise RuntimeError("no name")


class Nameless(Exception, metaclass=_Nameless):
    """An error whose class does not tell its name, and whose text ends the interpreter."""

    def __str__(self):
        raise SystemExit("no text")


class Value(TypedDict):
    value: float


def _exit_soon(seconds):
    def end():
        time.sleep(seconds)
        os._exit(9)

    threading.Thread(target=end, daemon=True).start()


#: A program that stays.
STAY = [sys.executable, "-c", "import time; time.sleep(1000)"]


def _note(log, pid):
    with Path(log).open("a") as stream:
        stream.write(f"{pid}\n")


def _fork(log):
    child = os.fork()
    if child == 0:
        time.sleep(1000.0)
        os._exit(0)
    _note(log, child)


def _leave(log, *command):
    """As a daemon: in a session of its own, with a parent that has gone, and with `command` without environment."""
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            _note(log, os.getpid())
            if command:
                os.execve(command[0], command, {})
            time.sleep(1000.0)
        os._exit(0)
    os.waitpid(child, 0)


def _temporary_files():
    """A folder with a file, below another one by a program; returns the first."""
    folder = tempfile.mkdtemp()
    (Path(folder) / "large.sto").write_bytes(bytes(10_000))
    subprocess.run(["mktemp", "-d"], check=True, stdout=subprocess.DEVNULL)
    return folder


def _start(log, **options):
    _note(log, subprocess.Popen(STAY, **options).pid)


@model("unruly", version=1, arrays={"curve": Array(("time",), "m")})
class Unruly:
    """Good everywhere but within `width` of `at`, where it does what `kind` says; `log` is a file to tell in."""

    kind: str
    at: float = 50.0
    width: float = 0.5
    log: str = ""
    pause: float = 0.0

    def evaluate(self, design, scenario, arrays) -> tuple[Value, dict]:
        if self.pause:
            time.sleep(self.pause)
        have = {"curve": np.full(3, design["a"])}
        if abs(design["a"] - self.at) < self.width:
            have = self._misbehave(have)
        return {"value": 2.0 * design["a"]}, {name: have[name] for name in arrays}

    def _misbehave(self, have):
        match self.kind:
            case "exits soon":
                _exit_soon(0.002)
            case "exits later":
                _exit_soon(0.15)
            case "warns":
                logging.getLogger("designopt.dynamics.compile").warning("compiling some large system once")
            case "closes files":
                os.closerange(3, 1024)
            case "breaks numpy":
                np.empty = None
            case "breaks pickle":
                import pickle

                pickle.loads = None
            case "stops itself":
                os.kill(os.getpid(), signal.SIGSTOP)
            case "unblocks the watch":
                import faulthandler

                faulthandler.cancel_dump_traceback_later()
                faulthandler.disable()
                time.sleep(1000.0)
            case "nameless":
                raise Nameless
            case "array of locks":
                have = {"curve": np.array([threading.Lock()] * 3, dtype=object)}
            case "prints and fails":
                print("x" * 20_000_000)
                print("the last words")
                raise ValueError("no")
            case "prints":
                os.write(2, b"below python\n")
                print("fine")
            case "prints and exits":
                print("before the end")
                os._exit(3)
            case "kills its group":
                os.killpg(0, signal.SIGKILL)
            case "eats descriptors":
                with contextlib.suppress(OSError):
                    while True:
                        os.open(os.devnull, os.O_RDONLY)
            case "forks":
                _fork(self.log)
                _start(self.log)
                _start(self.log, start_new_session=True)
                _start(self.log, start_new_session=True, env={})
                _leave(self.log)
                _leave(self.log, *STAY)
            case "tells":
                self._tell()
            case "leaves files and hangs":
                with Path(self.log).open("a") as stream:
                    stream.write(f"{_temporary_files()}\n")
                time.sleep(1000.0)
            case "leaves files":
                _temporary_files()
        return have

    def _tell(self):
        import designopt

        for step in range(20 if not self.log else 10_000):  # with a log until that is there
            designopt.progress(step % 20 / 20.0, f"step {step}")
            time.sleep(0.15)
            if self.log and Path(self.log).exists():
                return


@model("stubborn", version=1)
class Stubborn:
    """Does in its set-up or its evaluation what `kind` says."""

    kind: str

    def check(self):
        if self.kind == "exits in check":
            os._exit(7)
        if self.kind == "hangs in check":
            time.sleep(1000.0)
        if self.kind == "is killed in check":
            os.kill(os.getpid(), signal.SIGKILL)

    def prepare(self):
        if self.kind == "exits in prepare":
            os._exit(7)

    def trajectory_problem(self, scenario):
        if self.kind == "hangs in trajectory_problem":
            time.sleep(1000.0)
        os._exit(7)

    def evaluate(self, design, scenario) -> Value:
        if self.kind == "takes long":
            Path("at_work").touch()
            time.sleep(1000.0)
        if self.kind == "raises":
            raise ValueError("no wheels")
        if self.kind == "is not finite":
            return {"value": float("nan")}
        return {"value": design["a"]}
