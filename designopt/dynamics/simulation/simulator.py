"""Simulation of a system: compiled if possible, else interpreted with equivalent results."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol, TypedDict, get_args

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats
from designopt.dynamics.compile import CompilerError
from designopt.dynamics.signals import Signal, SignalTable, columns
from designopt.dynamics.simulation.lsoda import InterpretedLsoda
from designopt.dynamics.simulation.rosenbrock import CompiledRosenbrock
from designopt.dynamics.simulation.tableau import METHODS
from designopt.dynamics.simulation.trajectory import RunInput, Trajectory
from designopt.dynamics.system import System

Method = Literal["auto", "rosenbrock4", "lsoda"]

logger = logging.getLogger(__name__)


class Engine(Protocol):
    """An integrator of one system with one method and fixed tolerances."""

    def run(self, run_input: RunInput) -> Trajectory:
        """The trajectory of `Simulator.run`."""
        ...

    def run_several(self, run_inputs: Sequence[RunInput]) -> list[Trajectory]:
        """The trajectories of `Simulator.run_several`."""
        ...


class _OptionalArguments(TypedDict, total=False):
    p: ArrayLike | Mapping[str, float]
    q: ArrayLike | Mapping[str, float]
    u: ArrayLike | Mapping[str, float]
    first_step: float | None
    step: float | None
    signals: Mapping[str, Signal | SignalTable] | SignalTable | None
    transition: bool


class RunArguments(_OptionalArguments):
    """The arguments of `Simulator.run` by name."""

    x0: ArrayLike | Mapping[str, float]
    times: ArrayLike


#: LSODA controls the error of each of its many small steps. For the accuracy of a Rosenbrock method it needs tolerances
#: smaller by this factor (measured: four-bar knee; tests/dynamics compare the two).
_LSODA_TIGHTER = 0.1


class Simulator:
    """Integrates a `System` over time.

    `method`: ``rosenbrock4`` (adaptive, linearly implicit, L-stable, order 4), ``lsoda``
    (interpreted multistep method of SciPy) or ``auto`` (``rosenbrock4``). The local error of component i is kept below
    about ``atol[i] + rtol[i] |x[i]|``; both tolerances are scalars or (nx,). A run ends after `max_steps` steps.

    The Rosenbrock methods need a C compiler. With ``compiled="auto"`` and none (or one that fails, which is logged)
    ``lsoda`` replaces them at a tenth of the tolerances. ``compiled=True`` raises `CompilerError` instead;
    ``compiled=False`` does not look for a compiler. The attributes `method` and `compiled` state the method in use and
    whether it is machine code.

    `signals` names controls and data entries (or vectors of them) that follow measured signals given to `run`: cubic
    splines over the time of the run. df/dt, which the methods need, includes their rates.

    Raises `ValueError` for unknown methods, invalid tolerances and systems with algebraic variables.
    """

    def __init__(
        self,
        system: System,
        method: Method = "auto",
        rtol: ArrayLike = 1e-6,
        atol: ArrayLike = 1e-8,
        max_steps: int = 100_000,
        compiled: Literal["auto"] | bool = "auto",
        signals: Sequence[str] = (),
    ) -> None:
        if method not in get_args(Method):
            raise ValueError(f"method must be one of {', '.join(get_args(Method))}, not '{method}'")
        if compiled not in ("auto", True, False):
            raise ValueError(f"compiled must be 'auto', True or False, not {compiled!r}")
        if method == "lsoda" and compiled is True:
            raise ValueError("method 'lsoda' runs interpreted: leave compiled at 'auto'")
        if system.algebraic:
            raise ValueError(f"system '{system.name}' has algebraic variables, which a simulation does not solve for")
        if max_steps < 1:
            raise ValueError(f"max_steps must be at least 1, not {max_steps}")
        nx = len(system.states)
        tolerances = (_tolerance("rtol", rtol, nx), _tolerance("atol", atol, nx))
        self.system = system
        self.signals = _signal_names(system, signals)
        engine = None
        if method != "lsoda" and compiled is not False:
            name = "rosenbrock4" if method == "auto" else method
            engine = _compiled_engine(system, name, tolerances, max_steps, self.signals, is_required=compiled is True)
        self.compiled = engine is not None
        self.method: str = name if self.compiled else "lsoda"
        if engine is None:
            tighter = 1.0 if method == "lsoda" else _LSODA_TIGHTER
            engine = InterpretedLsoda(system, tighter * tolerances[0], tighter * tolerances[1], max_steps, self.signals)
        self._engine = engine

    def run(
        self,
        x0: ArrayLike | Mapping[str, float],
        times: ArrayLike,
        p: ArrayLike | Mapping[str, float] = (),
        q: ArrayLike | Mapping[str, float] = (),
        u: ArrayLike | Mapping[str, float] = (),
        *,
        first_step: float | None = None,
        step: float | None = None,
        signals: Mapping[str, Signal | SignalTable] | SignalTable | None = None,
        transition: bool = False,
    ) -> Trajectory:
        """Integrate from `x0` at ``times[0]`` to ``times[-1]``; the trajectory has states and outputs at `times` (n,)
        in s.

        States, parameters, data and controls (constant) are arrays in the order of the system's tables or mappings by
        name. `first_step` (s) continues a run from its `Trajectory.last_step`. `step` (s) fixes the step length and
        turns error control off (Rosenbrock methods only). `signals` maps names to signals, tables by the name of their
        vector or any other; controls and data that follow a signal are omitted from `u` and `q`. With `transition` the
        variational equation is integrated too (order 4, with the steps of the motion): `Trajectory.transition` is
        dx/dx0 at the end.

        The status of the trajectory gives the end of the run, never an exception. Raises `ValueError` for invalid
        input.
        """
        arguments: RunArguments = {
            "x0": x0, "times": times, "p": p, "q": q, "u": u, "first_step": first_step, "step": step,
            "signals": signals, "transition": transition,
        }  # fmt: skip
        return self._with_declarations(self._engine.run(self._run_input(arguments)))

    def run_several(self, runs: Sequence[RunArguments]) -> list[Trajectory]:
        """The trajectories of several `runs`, each with the arguments of `run` by name.

        Compiled runs go on side by side in the lanes of the processor's vectors, each with its own steps: with the
        numbers that it has alone, bit by bit, in less time. Raises `ValueError` for invalid input.
        """
        run_inputs = [self._run_input(arguments) for arguments in runs]
        return [self._with_declarations(trajectory) for trajectory in self._engine.run_several(run_inputs)]

    def prepare_several(self) -> None:
        """Compile what `run_several` needs now, not at its first call."""
        if isinstance(self._engine, CompiledRosenbrock):
            self._engine.prepare_several()

    def _with_declarations(self, trajectory: Trajectory) -> Trajectory:
        return replace(trajectory, states=self.system.states, outputs=self.system.outputs)

    def _run_input(self, arguments: RunArguments) -> RunInput:
        at = np.array(arguments["times"], dtype=np.float64)  # a copy: the trajectory keeps it
        if at.ndim != 1 or len(at) < 2 or not np.isfinite(at).all() or not (np.diff(at) > 0).all():
            raise ValueError("times must be at least two finite numbers, each larger than the one before")
        first_step, step = arguments.get("first_step"), arguments.get("step")
        for name, value in (("first_step", first_step), ("step", step)):
            if value is not None and not 0.0 < value < np.inf:
                raise ValueError(f"{name} must be a positive duration, not {value!r}")
        system = self.system
        x = system.values("states", arguments["x0"])
        signals = self._ordered_signals(arguments.get("signals"), at)
        q, u = (
            system.values(table, entries, without=self.signals)
            for table, entries in (("data", arguments.get("q", ())), ("controls", arguments.get("u", ())))
        )
        p = system.values("parameters", arguments.get("p", ()))
        return RunInput(x, at, p, q, u, first_step, step, signals, arguments.get("transition", False))

    def _ordered_signals(
        self, signals: Mapping[str, Signal | SignalTable] | SignalTable | None, times: Floats
    ) -> list[Signal]:
        """The signals in the order of their names."""
        name = self.system.name
        signal_of = columns({"": signals} if isinstance(signals, SignalTable) else signals or {}, self.system.vectors)
        if missing := [n for n in self.signals if n not in signal_of]:
            raise ValueError(f"{name}: no signal for {', '.join(map(repr, missing))}")
        if unknown := [n for n in signal_of if n not in self.signals]:
            raise ValueError(f"{name}: '{unknown[0]}' is not among the simulator's signals: {', '.join(self.signals)}")
        for n in self.signals:
            if signal_of[n].of_duration:
                raise ValueError(f"{name}: the signal of {n} is defined over a fraction of the duration: give it times")
            try:
                signal_of[n].at(times[[0, -1]])
            except ValueError as error:
                raise ValueError(f"{name}: {n}: {error}") from None
        return [signal_of[n] for n in self.signals]


#: Number of output times if only the end is given.
SAMPLES = 301


def simulate(
    system: System,
    x0: ArrayLike | Mapping[str, float],
    times: ArrayLike,
    *,
    u: ArrayLike | Mapping[str, float | Signal] = (),
    p: ArrayLike | Mapping[str, float] = (),
    q: ArrayLike | Mapping[str, float | Signal] = (),
    rtol: ArrayLike = 1e-6,
    atol: ArrayLike = 1e-8,
) -> Trajectory:
    """The motion of `system` from the states `x0`, at `times` (n,) in s; a single number is the end of a motion from 0.

    States, controls `u`, parameters `p` and data `q` are mappings by name or arrays in the order of the tables; a
    control or a data entry may be a `Signal`. Tolerances are those of `Simulator`, which has more settings and is
    reusable for many motions. The status of the trajectory gives the end of the motion. Raises `ValueError` for invalid
    input.
    """
    signals: dict[str, Signal] = {}
    numbers: list[Any] = []
    for entries in (u, q):
        if isinstance(entries, Mapping):
            signals |= {n: value for n, value in entries.items() if isinstance(value, Signal)}
            entries = {n: value for n, value in entries.items() if not isinstance(value, Signal)}
        numbers.append(entries)
    try:
        end = np.asarray(times, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"times must be the end (s) or increasing times, not {times!r}") from None
    if end.ndim == 0 and not 0.0 < end < np.inf:
        raise ValueError(f"the end of a motion that begins at 0 s must be a positive number of seconds, not {times!r}")
    at = np.linspace(0.0, end, SAMPLES) if end.ndim == 0 else end
    simulator = Simulator(system, rtol=rtol, atol=atol, signals=tuple(signals))
    return simulator.run(x0, at, u=numbers[0], p=p, q=numbers[1], signals=signals)


def _compiled_engine(
    system: System,
    method: str,
    tolerances: tuple[Floats, Floats],
    max_steps: int,
    signals: Sequence[str],
    *,
    is_required: bool,
) -> Engine | None:
    """The compiled engine; None, which is logged, if there is no compiler or it fails, unless `is_required`."""
    try:
        return CompiledRosenbrock(system, METHODS[method], *tolerances, max_steps, signals)
    except CompilerError as error:
        if is_required:
            raise
        logger.warning("%s runs interpreted, many times slower: %s", system.name, error)
        return None


def _signal_names(system: System, quantity_names: Sequence[str]) -> tuple[str, ...]:
    """The controls and data entries among `quantity_names`, vectors replaced by their components."""
    vectors = {v.name: v.names for v in system.vectors}
    names = [n for name in quantity_names for n in vectors.get(name, (name,))]
    entry_names = [v.name for v in (*system.controls, *system.data)]
    for n in names:
        if n not in entry_names or names.count(n) > 1:
            text = (
                "named twice"
                if n in entry_names
                else f"not a control or data entry; known: {', '.join(entry_names) or 'none'}"
            )
            raise ValueError(f"system '{system.name}': the signal '{n}' is {text}")
    return tuple(names)


def _tolerance(name: str, tolerance: ArrayLike, nx: int) -> Floats:
    array = np.asarray(tolerance, dtype=np.float64)
    if array.shape not in ((), (nx,)):
        raise ValueError(f"{name} is a number or has shape ({nx},), not {array.shape}")
    if not (np.isfinite(array).all() and (array > 0.0).all()):
        raise ValueError(f"{name} must be positive and finite")
    return np.ascontiguousarray(np.broadcast_to(array, (nx,)))
