"""Input and result of a simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from designopt.arrays import Floats
from designopt.dynamics.signals import Signal
from designopt.dynamics.variable import Variable


class SimulationStatus(Enum):
    """How a simulation ended; the value is the sentence for the user."""

    DONE = "The simulation reached its end."
    GUARD = "The simulation stopped where a guard of the system reached zero: the equations are not valid beyond it."
    STEP_LIMIT = "The simulation ended after the maximum number of steps; allow more steps or larger tolerances."
    STEP_TOO_SMALL = (
        "The step needed for the tolerances is below the resolution of time; allow larger ones, or smooth the system."
    )
    NONFINITE = (
        "The right-hand side is not finite (NaN or infinite) at or next to the last state, however short the step; "
        "check the parameters and the initial state."
    )


@dataclass(frozen=True, eq=False)
class RunInput:
    """Checked input of a simulation: the states `x0` (nx,) at the first of the `times` (n,), and arrays of parameters
    `p`, data `q` and controls `u` in the order of the tables, without those that follow `signals`.

    `first_step`, `step` and `transition` are those of `Simulator.run`.
    """

    x0: Floats
    times: Floats
    p: Floats
    q: Floats
    u: Floats
    first_step: float | None
    step: float | None
    signals: Sequence[Signal]
    transition: bool


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A simulated motion at the requested times.

    `t` (n,) in s, states `x` (n, nx) and outputs `y` (n, ny) contain the requested times reached; the last row of a run
    that ended early is its end. `message` gives the status with time and values. `steps` (accepted), `rejected` and
    `evaluations` of the right-hand side are counts; `last_step` (s) is the best first step of a continued run; `guard`
    is the name of the guard that ended the run. `transition` (nx, nx) is dx/dx0 at the end of a complete run with
    ``transition=True``. ``trajectory["speed"]`` (n,) is a state or an output by name; `names` lists them, `units` has
    their units.
    """

    status: SimulationStatus
    message: str
    t: Floats
    x: Floats
    y: Floats
    steps: int
    rejected: int
    evaluations: int
    last_step: float
    guard: str | None = None
    transition: Floats | None = None
    states: tuple[Variable, ...] = ()
    outputs: tuple[Variable, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the states, then of the outputs."""
        return tuple(self.units)

    @property
    def units(self) -> dict[str, str]:
        """Units by the names of states and outputs."""
        return {v.name: v.unit for v in (*self.states, *self.outputs)}

    def __getitem__(self, name: str) -> Floats:
        for table, values in ((self.states, self.x), (self.outputs, self.y)):
            for i, variable in enumerate(table):
                if variable.name == name:
                    return values[:, i]
        raise KeyError(f"there is no state and no output '{name}'; known: {', '.join(self.names)}")


def describe(status: SimulationStatus, names: Sequence[str], t: float, x: Floats, guard: str | None) -> str:
    """The message of a trajectory that ended with `status` at time `t` in the state `x`."""
    if status is SimulationStatus.DONE:
        return str(status.value)
    state_text = ", ".join(f"{name} = {value:.6g}" for name, value in zip(names, x, strict=True))
    guard_text = f" Guard: {guard}." if guard else ""
    return f"{status.value}{guard_text} Last point: t = {t:.6g}, {state_text}."
