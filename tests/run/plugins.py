"""Models and solvers of the tests of runs. Loaded as a plugin file, as a user's own script would be."""

import ctypes
import math
import os
import signal
import sys
import time
from pathlib import Path
from typing import Annotated, TypedDict

import numpy as np

from designopt.plugin import Array, Diverged, Fidelity, InvalidDesign, Quantity, model, objective, solver


class Bowl(TypedDict):
    height: Annotated[float, Quantity("m", "height over the origin")]
    slope: Annotated[float, Quantity("", "steepness")]


@model("bowl", version=1)
def bowl(design, scenario, *, pause: float = 0.0) -> Bowl:
    """A paraboloid, shifted by the scenario."""
    if pause:
        time.sleep(pause)
    a, b, shift = design["a"], design.get("b", 0.0), scenario.get("shift", 0.0)
    return {"height": (a - shift) ** 2 + b**2, "slope": abs(a - shift) + abs(b - 1.0)}


@model("rough_bowl", version=1, fidelity=Fidelity({"digits": 1}, cost=0.1))
def rough_bowl(design, scenario, *, digits: int = 9) -> Bowl:
    """A paraboloid, rounded; there is none far from the origin."""
    a, b, shift = design["a"], design["b"], scenario.get("shift", 0.0)
    if a > 1.9:
        raise Diverged("too far")
    return {"height": round((a - shift) ** 2 + (b - 0.5) ** 2, digits), "slope": abs(a - shift) + abs(b - 1.0)}


@model("interrupted", version=1)
def interrupted(design, scenario) -> Bowl:
    """Asked to stop twice, the second time while CasADi looks at an argument; then an hour long."""
    import casadi
    from interrupting import Interrupting

    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.3)  # two that come together are one
    casadi.vec(Interrupting(3.0))
    for _ in range(360_000):
        time.sleep(0.01)
    return {"height": 0.0, "slope": 0.0}


class Threads(TypedDict):
    threads: float
    named: float


@model("threads", version=1)
def threads(design, scenario) -> Threads:
    """How many threads linear algebra has here, and has in libraries that are not loaded yet."""
    import threadpoolctl

    most = max(pool["num_threads"] for pool in threadpoolctl.threadpool_info())
    return {"threads": float(most), "named": float(os.environ.get("OPENBLAS_NUM_THREADS", "0"))}


class Log(TypedDict):
    value: float
    square: float


@model("wave", version=1, arrays={"signal": Array(("time",), "m"), "time": Array(("time",), "s")})
class Wave:
    """A signal; counts how often it was prepared in the file `log`."""

    log: str = ""

    def prepare(self):
        self.time = np.linspace(0.0, 1.0, 11)

    def evaluate(self, design, scenario, arrays) -> tuple[Log, dict]:
        signal = design["a"] * np.sin(self.time)
        have = {"signal": signal, "time": self.time}
        if self.log:
            with Path(self.log).open("a") as stream:
                stream.write("x")
        outputs = {"value": float(signal.max()), "square": (design["a"] - 0.25) ** 2}
        return outputs, {name: have[name] for name in arrays}


@objective("signal_mean", version=1)
def signal_mean(signal, value, *, gain: float = 1.0) -> Annotated[float, Quantity("m", "mean of the signal")]:
    """Mean of the signal."""
    return gain * float(np.mean(signal)) + 0.0 * value


class Speechless(Exception):
    """An error whose text is an error."""

    def __str__(self):
        raise RuntimeError


@model("trouble", version=1, unchecked=True)
def trouble(design, scenario, *, kind: str, at: float = 50.0, width: float = 0.5, pause: float = 0.0):
    """Good everywhere but within `width` of `at`, where it does what `kind` says."""
    a = design["a"]
    if pause:
        time.sleep(pause)
    if abs(a - at) < width:
        if kind == "exit":
            os._exit(7)
        if kind == "segfault":
            ctypes.string_at(0)
        if kind == "sleep":
            time.sleep(1000.0)
        if kind == "spin":
            ctypes.PyDLL(None).sleep(1000)  # holds the interpreter lock
        if kind == "sys_exit":
            sys.exit("no licence")
        if kind == "raise":
            raise ZeroDivisionError("no wheels")
        if kind == "interrupt":
            raise KeyboardInterrupt
        if kind == "generator":
            raise GeneratorExit
        if kind == "speechless":
            raise Speechless
        if kind == "surrogate":
            raise ValueError("file \udcff")
        if kind == "diverge":
            raise Diverged("fell over", reason="fall")
        if kind == "refuse":
            raise InvalidDesign("a must not be here")
        if kind == "nan":
            return {"value": math.nan, "other": 1.0}
    return {"value": a * 2.0, "other": 1.0}


@model("broken", version=1)
class Broken:
    """Cannot be set up."""

    def prepare(self):
        raise OSError("no table")

    def evaluate(self, design, scenario) -> Log:
        return {"value": 0.0, "square": 0.0}


@model("fragile", version=1)
class Fragile:
    """Ends its process when it is set up."""

    def prepare(self):
        os._exit(3)

    def evaluate(self, design, scenario) -> Log:
        return {"value": 0.0, "square": 0.0}


@solver("listed", version=1)
class Listed:
    """Asks for `values` of the first parameter, `batch` at a time."""

    values: list[float]
    batch: int = 0

    def solve(self, problem, evaluate, rng, start):
        X = np.array(self.values, float)[:, None]
        size = self.batch or len(X)
        for begin in range(0, len(X), size):
            evaluate(X[begin : begin + size])


@solver("endless", version=1)
class Endless:
    """Asks for the same design for ever."""

    def solve(self, problem, evaluate, rng, start):
        while True:
            evaluate(problem.space.lower[None])


@solver("walk", version=1)
class Walk:
    """A small evolution: mutates the best of what it knows; batches of `size`, `rounds` times."""

    size: int = 10
    rounds: int = 10
    bias: float = 0.0

    def solve(self, problem, evaluate, rng, start):
        space = problem.space
        best = space.to_search(start.X)[:1] if len(start) else (space.lower + space.upper)[None] / 2.0
        rank = np.inf
        for _ in range(self.rounds):
            S = best + (rng.normal(size=(self.size, len(space.free))) + self.bias) * (space.upper - space.lower) / 10.0
            outcomes = evaluate(space.from_search(S))
            order = outcomes.rank_violation + outcomes.objectives[:, 0].clip(max=1e9)
            if order.min() < rank:
                rank, best = order.min(), space.to_search(outcomes.X[[int(order.argmin())]])


@model("flaky", version=1)
def flaky(design, scenario, *, log: str, fails: int = 1) -> Bowl:
    """Raises so many times for each design, as a file for each in the folder `log` counts."""
    counter = Path(log) / f"{design['a']!r}"
    times = len(counter.read_text()) if counter.exists() else 0
    with counter.open("a") as stream:
        stream.write("x")
    if times < fails:
        raise OSError(f"licence server is busy ({times})")
    return {"height": design["a"] ** 2, "slope": 1.0}


@model("uneven", version=1)
def uneven(design, scenario, *, longest: float = 0.05) -> Bowl:
    """A paraboloid whose evaluation takes a time of its own for each design, the first ones of a row the longest."""
    a, b = design["a"], design.get("b", 0.0)
    time.sleep(longest * (1.0 - abs(math.sin(50.0 * (a + b)))))
    return {"height": a**2 + b**2, "slope": abs(a) + abs(b - 1.0)}


@model("picky", version=1)
def picky(design, scenario, *, pause: float = 0.0) -> Bowl:
    """A paraboloid that refuses designs below its middle."""
    if pause:
        time.sleep(pause)
    if design["a"] < 0.0:
        raise InvalidDesign(f"a = {design['a']} must not be negative")
    return {"height": design["a"] ** 2, "slope": 1.0}


@solver("follower", version=1)
class Follower:
    """Asks ahead: mutates the best of what it was told, in ever smaller steps. Notes the conversation in `log`."""

    count: int = 40
    look_ahead: int = 4
    log: str = ""

    def solve(self, problem, evaluate, rng, start):
        space = problem.space
        state = {"rank": np.inf, "best": (space.lower + space.upper)[None] / 2.0, "asked": 0, "told": 0}

        def ask():
            if state["asked"] == self.count:
                return np.empty((0, len(space.free)))
            note(f"ask {state['asked']}")
            state["asked"] += 1
            step = rng.normal(size=(1, len(space.free))) / (1.0 + 0.1 * state["asked"])
            return space.from_search(state["best"] + step * (space.upper - space.lower) / 5.0)

        def tell(outcomes):
            note(f"tell {state['told']}")
            state["told"] += 1
            rank = float(outcomes.rank_violation[0] + outcomes.objectives[0, 0].clip(max=1e9))
            if rank < state["rank"]:
                state["rank"], state["best"] = rank, space.to_search(outcomes.X)

        def note(text):
            if self.log:
                with Path(self.log).open("a") as stream:
                    stream.write(text + "\n")

        evaluate.ahead(ask, tell, self.look_ahead)


@model("rows", version=1, arrays={"signal": Array(("time",), "m")})
class Rows:
    """Computes many designs at once; notes how many in the file `log`. Refuses a < -1, diverges beyond 1."""

    batch_size = 8

    log: str = ""
    fatal: float = math.inf
    bug: float = math.inf

    def evaluate(self, design, scenario, arrays) -> tuple[Log, dict]:
        (answer,) = self.batch([design], [scenario], arrays)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def batch(self, designs, scenarios, arrays):
        if self.log:
            with Path(self.log).open("a") as stream:
                stream.write(f"{len(designs)}\n")
        a = np.array([design["a"] for design in designs])
        if (a == self.fatal).any():
            os._exit(3)
        if (a == self.bug).any():
            raise RuntimeError("a bug")
        value = a + np.array([scenario.get("shift", 0.0) for scenario in scenarios])
        signals = {"signal": value[:, None] * np.arange(3.0)}
        return [
            InvalidDesign("too low")
            if x < -1.0
            else Diverged("too high", reason="high")
            if x > 1.0
            else ({"value": v, "square": v * v}, {name: signals[name][i] for name in arrays})
            for i, (x, v) in enumerate(zip(a.tolist(), value.tolist(), strict=True))
        ]


@solver("stubborn", version=1)
class Stubborn:
    """Requests designs in batches, one by one (`ahead`) or cheaply, and does not end as `kind` says."""

    kind: str
    request: str = "batch"
    before: int = 1000

    def solve(self, problem, evaluate, rng, start):
        requests, caught = 0, Exception if self.kind == "catches exceptions" else BaseException
        while True:
            try:
                while requests < self.before:
                    requests += 1
                    self._request(problem, evaluate, rng)
                self._hang()
            except caught:
                if self.kind == "hangs":
                    self._hang()

    def _request(self, problem, evaluate, rng):
        X = rng.uniform(problem.space.lower, problem.space.upper, (1, len(problem.space.free)))
        match self.request:
            case "batch":
                evaluate(X)
            case "ahead":
                evaluate.ahead(lambda: rng.uniform(-1.0, 1.0, X.shape), lambda outcomes: None, 1)
            case "slow ask":
                evaluate.ahead(lambda: self._after_pause(X), lambda outcomes: None, 1)
            case "cheap":
                evaluate.cheap(X)

    def _after_pause(self, X):
        for _ in range(300):
            time.sleep(0.01)
        return X

    def _hang(self):
        for _ in range(3000):
            time.sleep(0.01)
