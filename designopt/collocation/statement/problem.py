"""What is asked of a trajectory problem: phases of systems, what limits them, what it costs.

Every quantity is stated by a function of named symbols: on the way ``v["angle"]`` (states, controls, algebraic
variables, unknown rates, parameters, data and outputs of the phase's system, and ``v.time``), at the ends
``e.initial["angle"]``, ``e.final["torque"]`` (all variables on the way), ``e.t0``, ``e.tf``, ``e.integral["effort"]``,
``e["stiffness"]``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral as Whole
from numbers import Real
from reprlib import repr as short
from typing import Any, Literal

import numpy as np

from designopt.collocation.statement.complementary import Complementary
from designopt.collocation.statement.delay import Delay
from designopt.collocation.statement.vectors import spread, spread_data
from designopt.dynamics.system import System, Variable, Vector
from designopt.lazy import casadi as ca

#: A value that is fixed, or the range in which it is free.
Box = float | tuple[float, float]


class ProblemError(ValueError):
    """A statement that cannot be solved as it stands: `status` as in `Status`, `where` the field it is about."""

    def __init__(self, status: str, where: str, message: str) -> None:
        super().__init__(f"{where}: {message}")
        self.status = status
        self.where = where


def stated_table(where: str, given: Any) -> Any:
    """The mapping that was `given`, an empty one for None. Raises `ProblemError` (bad_statement) for anything else."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        text = f"is {short(given)}: give a mapping by names, as {{name: ...}}, or leave it out"
        raise ProblemError("bad_statement", where, text)
    return given


class Named(Mapping[str, Any]):
    """Entries by name; a name that is not there is named together with those that are."""

    def __init__(self, named: Mapping[str, Any], what: str = "entry") -> None:
        self._named, self._what = named, what

    def __getitem__(self, name: str) -> Any:
        try:
            return self._named[name]
        except KeyError:
            there = ", ".join(self._named) or "none"
            raise KeyError(f"there is no {self._what} '{name}'; there are {there}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._named)

    def __len__(self) -> int:
        return len(self._named)


class Symbols(Named):
    """Named scalar expressions of a point in time; `time` is its own (s)."""

    def __init__(self, named: Mapping[str, Any], time: Any, what: str = "variable") -> None:
        super().__init__(named, what)
        self.time = time


class EndVariables(Symbols):
    """The states at an end of a phase, and by their names also its controls, algebraic variables and unknown rates.

    A scheme without a point at the left end of a phase (`radau`) gets one there when the problem names one of these:
    the equations and path constraints hold there too, and controls are those of the polynomial of the first interval.
    """

    def __init__(self, named: Mapping[str, Any], time: Any, states: Sequence[str], vectors: Sequence[Vector]) -> None:
        super().__init__({**named, **stacked(named, vectors)}, time)
        self._states = tuple(states)

    def __iter__(self) -> Iterator[str]:
        return iter(self._states)

    def __len__(self) -> int:
        return len(self._states)


def stacked(named: Mapping[str, Any], vectors: Sequence[Vector]) -> dict[str, Any]:
    """The columns of those `vectors` whose components are all among the `named` expressions, by their names."""
    return {v.name: ca.vertcat(*(named[n] for n in v.names)) for v in vectors if all(n in named for n in v.names)}


@dataclass(frozen=True)
class PhaseEnds:
    """What is known of a phase at its ends: variables, times, integrals, and the data that are numbers."""

    initial: EndVariables
    final: EndVariables
    t0: Any
    tf: Any
    integral: Mapping[str, Any]
    data: Mapping[str, Any]

    @property
    def duration(self) -> Any:
        """tf - t0."""
        return self.tf - self.t0


class Ends:
    """The ends of all phases: ``e.phase["flight"].final["height"]``, and parameters ``e["stiffness"]``.

    Of a problem with one phase `initial`, `final`, `t0`, `tf`, `duration`, `integral` and `data` are that one's.
    """

    def __init__(self, phases: Mapping[str, PhaseEnds], parameters: Mapping[str, Any]) -> None:
        self.phase = phases
        self.parameters = parameters

    def __getitem__(self, name: str) -> Any:
        return self.parameters[name]

    def __getattr__(self, name: str) -> Any:
        phases = self.__dict__.get("phase", {})
        if name.startswith("_") or len(phases) != 1:
            raise AttributeError(f"there are several phases: say which, e.phase[...].{name}")
        return getattr(next(iter(phases.values())), name)


def _check_limits(low: object, high: object) -> None:
    for name, limit in (("low", low), ("high", high)):
        if not isinstance(limit, Real):
            raise ValueError(f"{name} is {limit!r}: give a number, an infinite one where there is no limit")


@dataclass(frozen=True, eq=False)
class Samples:
    """Given `times` (n,) of a phase: in s, or fractions 0..1 of it (`of_duration`), which free ends need.

    `data` are numbers (n,) of each sample, such as what was measured, by names that functions of the samples may use
    beside those of the phase. They may change from solve to solve, the times may not. Raises `ValueError` for arrays
    that make no sense.
    """

    times: Any
    data: Mapping[str, Any] = field(default_factory=dict)
    of_duration: bool = False

    def __post_init__(self) -> None:
        times = np.atleast_1d(np.asarray(self.times, float))
        if times.ndim != 1 or not len(times) or not np.isfinite(times).all():
            raise ValueError("times of samples are a row of finite numbers, one at least")
        data = {name: np.asarray(given, float) for name, given in self.data.items()}
        for name, values in data.items():
            if values.shape not in ((), times.shape) or not np.isfinite(values).all():
                raise ValueError(f"{name}: {len(times)} finite numbers are needed, as many as there are times, or one")
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "data", data)


@dataclass(frozen=True)
class Constraint:
    """``low <= value(symbols) <= high``; equal ends make an equality. `value` gives a scalar or a column.

    As a path constraint `value` takes `Symbols`, between ends it takes `Ends`; one of `Phase.samples` holds `at` these.
    `unit` is that of the value and limits.
    """

    value: Callable[[Any], Any]
    low: float = -math.inf
    high: float = math.inf
    unit: str = ""
    at: Samples | None = None

    def __post_init__(self) -> None:
        _check_limits(self.low, self.high)


@dataclass(frozen=True)
class Integral:
    """The integral of `value(symbols)` over a phase; with finite limits it is a constraint. `unit` is its own.

    `at` samples it is the sum of their values instead.
    """

    value: Callable[[Symbols], Any]
    low: float = -math.inf
    high: float = math.inf
    unit: str = ""
    at: Samples | None = None

    def __post_init__(self) -> None:
        _check_limits(self.low, self.high)


@dataclass(frozen=True)
class Peak:
    """The largest value of `value(symbols)` on the way of a `phase`, the smallest, or the largest `size`, by `of`.

    It is looked for `at` samples, at all collocation points without any. A figure that a problem may take in
    (`with_peaks`, which names its `state`). `unit` is that of the value. Raises `ValueError` for another word.
    """

    value: Callable[[Symbols], Any]
    of: Literal["largest", "smallest", "size"] = "largest"
    unit: str = ""
    phase: str = "motion"
    at: Samples | None = None
    state: str = ""

    def __post_init__(self) -> None:
        if self.of not in (known := ("largest", "smallest", "size")):
            raise ValueError(f"a peak of {self.of!r}: one of {', '.join(known)}")


#: What a phase, and a problem, state by names.
PHASE_TABLES = ("bounds", "initial", "final", "path", "integrals", "data", "guess", "held", "samples", "delays")
PROBLEM_TABLES = ("constraints", "parameters", "guess", "terms", "figures", "peaks", "complementary")


@dataclass(frozen=True)
class Phase:
    """One stretch of time with one system.

    `t0` and `tf` are numbers or ranges; a `t0` of None is the end of the phase before. `bounds` replace the ranges of
    the system's variables (states, controls, algebraic variables, unknown rates); `initial` and `final` hold them at
    the ends, those that are no states by constraints that the problem adds ("initial torque of motion"). `path`
    constraints hold at every collocation point, those of `samples` at their own times. `data` gives every data entry of
    the system a number or a `Signal`. `guess` has first and last values of variables: the search begins on straight
    lines between them. `held` controls are constant over so many equal pieces of the phase, as those of a digital
    controller; a row of values is given them on its pieces. `delays` are controls that are none: each is what another
    variable was some time ago. A vector of the system may stand for its components
    everywhere, and a `SignalTable` for its columns.
    """

    system: System
    tf: Box
    t0: Box | None = 0.0
    name: str = "motion"
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    initial: Mapping[str, Box] = field(default_factory=dict)
    final: Mapping[str, Box] = field(default_factory=dict)
    path: Mapping[str, Constraint] = field(default_factory=dict)
    integrals: Mapping[str, Integral] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    guess: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    held: Mapping[str, int | Sequence[float]] = field(default_factory=dict)
    samples: Mapping[str, Constraint] = field(default_factory=dict)
    delays: Mapping[str, Delay] = field(default_factory=dict)

    @property
    def pieces(self) -> dict[str, int]:
        """How many pieces each held control has."""
        return {n: held if isinstance(held, int) else len(held) for n, held in self.held.items()}

    @property
    def is_sampled(self) -> bool:
        """Whether something is summed, or holds, at samples."""
        return bool(self.samples) or any(integral.at is not None for integral in self.integrals.values())

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise ProblemError("bad_statement", "name", f"is {short(self.name)}: give the phase a word for a name")
        if not isinstance(self.system, System):
            text = f"is {short(self.system)}: give a System, as System.from_expressions(...)"
            raise ProblemError("bad_statement", f"{self.name}: system", text)
        for name in PHASE_TABLES:
            object.__setattr__(self, name, stated_table(f"{self.name}: {name}", getattr(self, name)))
        vectors = {v.name: v for v in self.system.vectors}
        for name in ("bounds", "initial", "final", "guess", "held", "data"):
            given = getattr(self, name)
            try:
                stated = spread_data(given, vectors) if name == "data" else spread(given, vectors, pair=name != "held")
            except (ValueError, KeyError) as error:
                raise ProblemError("bad_bounds", f"{self.name}: {name}", str(error.args[0])) from error
            object.__setattr__(self, name, stated)
        object.__setattr__(self, "held", {name: _stated_held(given) for name, given in self.held.items()})
        for name in ("t0", "tf"):
            if name == "tf" or self.t0 is not None:
                object.__setattr__(self, name, _stated_box(f"{self.name}: {name}", getattr(self, name)))
        for side in ("bounds", "initial", "final"):
            given = getattr(self, side).items()
            stated = {name: _stated_box(f"{self.name}: {side}.{name}", box) for name, box in given}
            if side == "bounds":
                stated = {name: ends(box) for name, box in stated.items()}
            object.__setattr__(self, side, stated)


@dataclass(frozen=True)
class Duration:
    """The value of the constraint that a problem adds to keep a phase from running backwards."""

    phase: str

    def __call__(self, e: Ends) -> Any:
        """tf - t0."""
        return e.phase[self.phase].duration


@dataclass(frozen=True)
class EndValue:
    """The value of the constraint that a problem adds to hold a variable that is no state at an end of a phase."""

    phase: str
    side: str
    name: str

    def __call__(self, e: Ends) -> Any:
        """The variable there."""
        of_phase = e.phase[self.phase]
        return (of_phase.initial if self.side == "initial" else of_phase.final)[self.name]


def is_added(constraint: Constraint) -> bool:
    """Whether a problem adds a constraint itself."""
    return isinstance(getattr(constraint, "value", None), Duration | EndValue)


class Continued(float):
    """A time that is not given but the number at which the phase before ends."""


@dataclass(frozen=True)
class TrajectoryProblem:
    """Minimise `cost` over the trajectories of all phases and the parameters.

    `cost` and `constraints` are functions of `Ends`; `terms` names parts of the cost that are to be shown, `figures`
    whatever else is. `parameters` gives every parameter of the systems (shared by name) a number or a range; those
    that it leaves out have the range of their variable. `guess` gives parameters a first value, else it is the middle
    of the range. `extra` are parameters that no system has: unknowns of the cost and the constraints alone. `peaks` are
    figures that studies and `with_peaks` take in where they are asked for, `complementary` are pairs of which one is
    zero at any time, as contacts, that `solve_complementary` and studies solve for. Phases whose ranges of times
    overlap get a constraint "duration of <name>", which keeps them from running backwards.
    """

    phases: Sequence[Phase]
    cost: Callable[[Ends], Any]
    constraints: Mapping[str, Constraint] = field(default_factory=dict)
    parameters: Mapping[str, Box] = field(default_factory=dict)
    guess: Mapping[str, float] = field(default_factory=dict)
    terms: Mapping[str, Callable[[Ends], Any]] = field(default_factory=dict)
    figures: Mapping[str, Callable[[Ends], Any]] = field(default_factory=dict)
    extra: tuple[Variable, ...] = ()
    peaks: Mapping[str, Peak] = field(default_factory=dict)
    complementary: Mapping[str, Complementary] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, kind in (("phases", Phase), ("extra", Variable)):
            given: Any = getattr(self, name)
            object.__setattr__(self, name, tuple(given) if isinstance(given, Iterable) else ())
            if not isinstance(given, Iterable) or not all(isinstance(each, kind) for each in getattr(self, name)):
                raise ProblemError("bad_statement", name, f"is {short(given)}: give a list of {kind.__name__}(...)")
        for name in PROBLEM_TABLES:
            object.__setattr__(self, name, stated_table(name, getattr(self, name)))
        vectors = {v.name: v for phase in self.phases for v in phase.system.vectors}
        for table, pair in (("parameters", True), ("guess", False)):
            try:
                object.__setattr__(self, table, spread(getattr(self, table), vectors, pair=pair))
            except ValueError as error:
                raise ProblemError("bad_bounds", table, str(error)) from error
        stated = {name: _stated_box(f"parameters.{name}", box) for name, box in self.parameters.items()}
        object.__setattr__(self, "parameters", stated)
        phases: list[Phase] = []
        begins: list[tuple[float, float]] = []
        for phase in self.phases:
            if phase.t0 is None or isinstance(phase.t0, Continued):
                if not phases:
                    raise ProblemError("bad_bounds", f"{phase.name}: t0", "there is no phase before it: give a number")
                before = ends(phases[-1].tf)
                phase = replace(phase, t0=None if before[0] < before[1] else Continued(before[0]))
            phases.append(phase)
            begins.append(ends(phases[-2].tf if phase.t0 is None else phase.t0))
        object.__setattr__(self, "phases", tuple(phases))
        # what might run backwards is kept from it
        later = {
            f"duration of {phase.name}": Constraint(Duration(phase.name), 0.0, unit="s")
            for phase, begin in zip(phases, begins, strict=True)
            if begin[1] > ends(phase.tf)[0] and max(begin[1] - begin[0], ends(phase.tf)[1] - ends(phase.tf)[0]) > 0.0
        }
        held = {name: c for phase in phases for name, c in _held_at_ends(phase)}
        own = {name: c for name, c in self.constraints.items() if not is_added(c)}
        object.__setattr__(self, "constraints", {**own, **held, **later})

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The parameters of all systems, each once, then the extra ones."""
        found: dict[str, Variable] = {}
        for phase in self.phases:
            for v in phase.system.parameters:
                found.setdefault(v.name, v)
        for v in self.extra:
            found.setdefault(v.name, v)
        return tuple(found.values())


def _held_at_ends(phase: Phase) -> Iterator[tuple[str, Constraint]]:
    """The constraints, by name, that hold variables of a phase that are no states at its ends."""
    form = phase.system.residual_form
    others = (*phase.system.controls, *phase.system.algebraic, *(form.unknowns if form else ()))
    units = {v.name: v.unit for v in others}
    for side, given in (("initial", phase.initial), ("final", phase.final)):
        for name, box in given.items():
            if name in units:
                yield (
                    f"{side} {name} of {phase.name}",
                    Constraint(EndValue(phase.name, side, name), *ends(box), units[name]),
                )


def ends(box: Box) -> tuple[float, float]:
    """Lower and upper end of a box."""
    low, high = box if isinstance(box, tuple) else (box, box)
    return float(low), float(high)


def _stated_held(given: Any) -> Any:
    """A number of pieces, or the values on them as a tuple; what is neither is left to the check of the statement."""
    if isinstance(given, Whole) and not isinstance(given, bool):
        return int(given)
    is_row = isinstance(given, tuple | list) or getattr(given, "ndim", 0) == 1
    return tuple(float(v) if isinstance(v, Real) else v for v in given) if is_row else given


def _stated_box(where: str, given: Any) -> Box:
    """A box as it was given, with two numbers of any kind as a tuple. Raises `ProblemError` (bad_bounds)."""
    if isinstance(given, Real):
        return given if isinstance(given, float) else float(given)
    pair = list(given) if isinstance(given, tuple | list) or getattr(given, "ndim", 0) == 1 else []
    if len(pair) != 2 or not all(isinstance(end, Real) for end in pair):
        raise ProblemError("bad_bounds", where, f"is {given!r}: give a number or a range, (low, high)")
    return float(pair[0]), float(pair[1])


def periodic(
    names: Sequence[str], *, mirror: Mapping[str, str] | None = None, signs: Mapping[str, float] | None = None,
    offsets: Mapping[str, float] | None = None,
) -> Constraint:  # fmt: skip
    """A motion of one phase that begins as it ends: final[name] = sign * initial[mirror of name] + offset."""
    mirror, signs, offsets = mirror or {}, signs or {}, offsets or {}
    for label, given in (("mirror", mirror), ("signs", signs), ("offsets", offsets)):
        if unknown := sorted(set(given) - set(names)):
            text = f"it is not among the periodic variables {', '.join(names)}: name it there or leave it out here"
            raise ProblemError("bad_statement", f"periodic: {label}.{unknown[0]}", text)

    def value(e: Ends) -> Any:
        return ca.vertcat(
            *(e.final[n] - signs.get(n, 1.0) * e.initial[mirror.get(n, n)] - offsets.get(n, 0.0) for n in names)
        )

    return Constraint(value, 0.0, 0.0)
