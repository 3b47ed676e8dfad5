"""Statement of a trajectory problem: phases of systems, limits and cost.

Functions of named symbols define every quantity: along a phase ``v["angle"]`` (states, controls, algebraic variables,
unknown rates, parameters, data and outputs of the phase's system, and ``v.time``), at the ends ``e.initial["angle"]``,
``e.final["torque"]`` (all variables of a phase), ``e.t0``, ``e.tf``, ``e.integral["effort"]``, ``e["stiffness"]``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from reprlib import repr as short
from typing import Any

import numpy as np

from designopt.collocation.statement.guess import PhaseGuess
from designopt.collocation.statement.stated_values import (
    Box,
    ProblemError,
    ends,
    held_values,
    stated_box,
    stated_table,
    stated_time,
)
from designopt.collocation.statement.symbols import Ends
from designopt.collocation.statement.terms import Constraint, Integral, Peak
from designopt.dynamics.signals import Signal, columns
from designopt.dynamics.system import System, Variable
from designopt.dynamics.variable import Vector
from designopt.lazy import casadi as ca

#: Named entries of a phase and of a problem.
PHASE_TABLES = (
    "bounds",
    "initial",
    "final",
    "path",
    "integrals",
    "data",
    "guess",
    "held_controls",
    "samples",
    "scales",
)
PROBLEM_TABLES = ("constraints", "parameters", "guess", "terms", "figures", "peaks")


@dataclass(frozen=True)
class Phase:
    """A time interval with one system.

    `t0` and `tf` (s) are numbers or ranges; a `t0` of None is the end of the previous phase. `bounds` replace the
    ranges of the system's variables (states, controls, algebraic variables, unknown rates); `initial` and `final` fix
    or bound them at the ends, those that are not states by constraints that the problem adds ("initial torque of
    motion"). `path` constraints hold at every collocation point, those of `samples` at their own times. `data` gives
    every data entry of the system a number or a `Signal`. `guess` has first and last values of variables: the initial
    guess is linear between them. `held` controls are constant on equal pieces of the phase, as with a digital
    controller: their number, or the fixed values on the pieces. `scales` are sizes of variables, where those of their
    ranges do not suit; scales of the options have precedence. `start` returns first trajectories for values of the
    parameters, computed when a solve begins without a guess of this phase; with a random generator, other ones for a
    further start. `guess_duration` (s) is the first one of a free duration, by default that of the middles of `t0` and
    `tf`; further starts vary it by up to a factor of 3. `kink_sources` are parts of a model's own equations that have
    kinks, such as lengths along a line: warnings of kinks name them. A vector of the system may replace its components
    everywhere, and a `SignalTable` its columns.
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
    held_controls: Mapping[str, int | Sequence[float]] = field(default_factory=dict)
    samples: Mapping[str, Constraint] = field(default_factory=dict)
    scales: Mapping[str, float] = field(default_factory=dict)
    start: Callable[[Mapping[str, float], np.random.Generator | None], PhaseGuess] | None = None
    guess_duration: float | None = None
    kink_sources: Sequence[str] = ()

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """All variables along the phase; a program may eliminate the unknown rates."""
        system, form = self.system, self.system.residual_form
        return (*system.states, *(form.unknowns if form else ()), *system.controls, *system.algebraic)

    @cached_property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """The range of each variable along the phase: the stated one, else that of the system."""
        return {v.name: self.bounds.get(v.name, (v.low, v.high)) for v in self.variables}

    @cached_property
    def initial_ranges(self) -> dict[str, tuple[float, float]]:
        """`initial`, numbers as ranges of equal ends."""
        return {name: ends(box) for name, box in self.initial.items()}

    @cached_property
    def final_ranges(self) -> dict[str, tuple[float, float]]:
        """`final`, numbers as ranges of equal ends."""
        return {name: ends(box) for name, box in self.final.items()}

    @cached_property
    def t0_range(self) -> tuple[float, float] | None:
        """The range of `t0`; None if it is the free end of the previous phase."""
        return None if self.t0 is None else ends(self.t0)

    @cached_property
    def tf_range(self) -> tuple[float, float]:
        """The range of `tf`."""
        return ends(self.tf)

    @property
    def free_times(self) -> tuple[bool, bool]:
        """Whether `t0` and `tf` are variables of the program, or `t0` one of the previous phase."""
        t0, tf = self.t0_range, self.tf_range
        return t0 is None or t0[0] != t0[1], tf[0] != tf[1]

    @property
    def pieces(self) -> dict[str, int]:
        """Number of pieces of each held control."""
        return {n: hold if isinstance(hold, int) else len(hold) for n, hold in self.held_controls.items()}

    @property
    def is_sampled(self) -> bool:
        """Whether the phase has sums or constraints at samples."""
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
        for name in ("bounds", "initial", "final", "guess", "held_controls", "data"):
            entries = getattr(self, name)
            try:
                vectors_apart = (
                    spread_data(entries, vectors)
                    if name == "data"
                    else spread(entries, vectors, pair=name != "held_controls")
                )
            except (ValueError, KeyError) as error:
                raise ProblemError("bad_bounds", f"{self.name}: {name}", str(error.args[0])) from error
            object.__setattr__(self, name, vectors_apart)
        object.__setattr__(
            self, "held_controls", {name: held_values(entries) for name, entries in self.held_controls.items()}
        )
        for name, scale in self.scales.items():
            if not isinstance(scale, Real) or not 0.0 < float(scale) < float("inf"):
                text = f"must be positive and finite, not {short(scale)}"
                raise ProblemError("bad_statement", f"{self.name}: scales.{name}", text)
        for name in ("t0", "tf"):
            if name == "tf" or self.t0 is not None:
                object.__setattr__(self, name, stated_time(f"{self.name}: {name}", getattr(self, name)))
        for side in ("bounds", "initial", "final"):
            entries = getattr(self, side).items()
            ranges = {name: stated_box(f"{self.name}: {side}.{name}", box) for name, box in entries}
            if side == "bounds":
                ranges = {name: ends(box) for name, box in ranges.items()}
            object.__setattr__(self, side, ranges)


@dataclass(frozen=True)
class Duration:
    """The value of the constraint that a problem adds to prevent a negative duration of a phase."""

    phase: str

    def __call__(self, e: Ends) -> Any:
        """tf - t0 (s)."""
        return e.phase[self.phase].duration


@dataclass(frozen=True)
class EndValue:
    """The value of the constraint that a problem adds to limit a variable other than a state at an end of a phase."""

    phase: str
    side: str
    name: str

    def __call__(self, e: Ends) -> Any:
        """The variable at that end."""
        of_phase = e.phase[self.phase]
        return (of_phase.initial if self.side == "initial" else of_phase.final)[self.name]


def is_added(constraint: Constraint) -> bool:
    """Whether a problem has added a constraint itself."""
    return isinstance(getattr(constraint, "value", None), Duration | EndValue)


class ContinuedTime(float):
    """A time that is the fixed end of the previous phase."""


@dataclass(frozen=True)
class TrajectoryProblem:
    """Minimise `cost` over the trajectories of all phases and the parameters.

    `cost` and `constraints` are functions of `Ends`; `terms` names parts of the cost for display, `figures` other
    quantities. `parameters` gives every parameter of the systems (shared by name) a number or a range; omitted ones
    have the range of their variable. `guess` gives parameters an initial value, by default the middle of the range.
    `extra` are parameters of the cost and the constraints alone. `peaks` are figures that studies and `with_peaks` add
    on request. Phases whose ranges of times overlap get a constraint "duration of <name>" against negative durations.
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

    def __post_init__(self) -> None:
        for name, kind in (("phases", Phase), ("extra", Variable)):
            entries: Any = getattr(self, name)
            object.__setattr__(self, name, tuple(entries) if isinstance(entries, Iterable) else ())
            if not isinstance(entries, Iterable) or not all(isinstance(each, kind) for each in getattr(self, name)):
                raise ProblemError("bad_statement", name, f"is {short(entries)}: give a list of {kind.__name__}(...)")
        for name in PROBLEM_TABLES:
            object.__setattr__(self, name, stated_table(name, getattr(self, name)))
        vectors = {v.name: v for phase in self.phases for v in phase.system.vectors}
        for table, pair in (("parameters", True), ("guess", False)):
            try:
                object.__setattr__(self, table, spread(getattr(self, table), vectors, pair=pair))
            except ValueError as error:
                raise ProblemError("bad_bounds", table, str(error)) from error
        ranges = {name: stated_box(f"parameters.{name}", box) for name, box in self.parameters.items()}
        object.__setattr__(self, "parameters", ranges)
        phases: list[Phase] = []
        begins: list[tuple[float, float]] = []
        for phase in self.phases:
            if phase.t0 is None or isinstance(phase.t0, ContinuedTime):
                if not phases:
                    raise ProblemError("bad_bounds", f"{phase.name}: t0", "there is no phase before it: give a number")
                before = phases[-1].tf_range
                phase = replace(phase, t0=None if before[0] < before[1] else ContinuedTime(before[0]))
            phases.append(phase)
            begins.append(phase.t0_range or phases[-2].tf_range)
        object.__setattr__(self, "phases", tuple(phases))
        # constraints against negative durations
        later = {
            f"duration of {phase.name}": Constraint(Duration(phase.name), 0.0, unit="s")
            for phase, begin in zip(phases, begins, strict=True)
            if begin[1] > phase.tf_range[0] and (begin[0] < begin[1] or phase.free_times[1])
        }
        at_ends = {name: c for phase in phases for name, c in _held_at_ends(phase)}
        stated_constraints = {name: c for name, c in self.constraints.items() if not is_added(c)}
        object.__setattr__(self, "constraints", {**stated_constraints, **at_ends, **later})

    @cached_property
    def parameter_ranges(self) -> dict[str, tuple[float, float]]:
        """The range of each parameter: the stated one, else that of its variable."""
        return {v.name: ends(self.parameters.get(v.name, (v.low, v.high))) for v in self.variables}

    @property
    def scaled_names(self) -> tuple[str, ...]:
        """Names of all variables that have a scale."""
        names = [name for phase in self.phases for name in phase.ranges]
        limits = [(n, r) for phase in self.phases for n, r in (("t0", phase.t0_range), ("tf", phase.tf_range))]
        times = [name for name, range_ in limits if range_ is not None and range_[0] != range_[1]]
        return tuple(dict.fromkeys((*names, *self.parameter_ranges, *times)))

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """The parameters of all systems, each once, then the extra ones."""
        variable_of: dict[str, Variable] = {}
        for phase in self.phases:
            for v in phase.system.parameters:
                variable_of.setdefault(v.name, v)
        for v in self.extra:
            variable_of.setdefault(v.name, v)
        return tuple(variable_of.values())


def _held_at_ends(phase: Phase) -> Iterator[tuple[str, Constraint]]:
    """The constraints, by name, on variables other than states at the ends of a phase."""
    units = {v.name: v.unit for v in phase.variables if v not in phase.system.states}
    for side, ranges in (("initial", phase.initial_ranges), ("final", phase.final_ranges)):
        for name, limits in ranges.items():
            if name in units:
                yield (
                    f"{side} {name} of {phase.name}",
                    Constraint(EndValue(phase.name, side, name), *limits, units[name]),
                )


def linked(first: Phase, second: Phase, names: Sequence[str] | None = None) -> Constraint:
    """The states `names` (default: all that both phases have) begin in `second` where they end in `first`.

    Raises `ProblemError` for a name that is not a state of both, and without any.
    """
    states = [tuple(v.name for v in phase.system.states) for phase in (first, second)]
    common = [name for name in states[0] if name in states[1]] if names is None else list(names)
    position = f"linked: {first.name}, {second.name}"
    if not common:
        raise ProblemError(
            "bad_statement", position, "the phases have no state in common: give the names, or a Constraint"
        )
    for name in common:
        for phase, present in zip((first, second), states, strict=True):
            if name not in present:
                text = f"'{name}' is not a state of '{phase.name}', which has {', '.join(present)}"
                raise ProblemError("bad_statement", position, text)

    def value(e: Ends) -> Any:
        return ca.vertcat(*(e.phase[second.name].initial[n] - e.phase[first.name].final[n] for n in common))

    return Constraint(value, 0.0, 0.0, states=tuple(common))


def periodic(
    names: Sequence[str], *, mirror: Mapping[str, str] | None = None, signs: Mapping[str, float] | None = None,
    offsets: Mapping[str, float] | None = None,
) -> Constraint:  # fmt: skip
    """A periodic motion of one phase: final[name] = sign * initial[mirror of name] + offset. Raises `ProblemError` for
    inconsistent names."""
    mirror, signs, offsets = mirror or {}, signs or {}, offsets or {}
    for label, entries in (("mirror", mirror), ("signs", signs), ("offsets", offsets)):
        if unknown := sorted(set(entries) - set(names)):
            text = f"it is not among the periodic variables {', '.join(names)}: name it there or leave it out here"
            raise ProblemError("bad_statement", f"periodic: {label}.{unknown[0]}", text)

    def value(e: Ends) -> Any:
        return ca.vertcat(
            *(e.final[n] - signs.get(n, 1.0) * e.initial[mirror.get(n, n)] - offsets.get(n, 0.0) for n in names)
        )

    return Constraint(value, 0.0, 0.0)


Vectors = Mapping[str, Vector]


def spread(entries: Mapping[str, Any], vectors: Vectors, *, pair: bool) -> dict[str, Any]:
    """`entries` with an entry for each component in place of those of vectors.

    The value of a vector is one for all components (a number, or with `pair` a range of two), a mapping by component,
    or for k components an array (k,), with `pair` also (k, 2). The entry of a component by its own name takes
    precedence. Raises `ValueError` for another shape.
    """
    spread_entries: dict[str, Any] = {}
    for name, value in entries.items():
        if name in vectors:
            spread_entries.update(_components(vectors[name], value, pair))
    spread_entries.update({name: value for name, value in entries.items() if name not in vectors})
    return spread_entries


def _components(vector: Vector, value: Any, pair: bool) -> dict[str, Any]:
    if isinstance(value, Mapping):
        if unknown := [part for part in value if part not in vector.parts]:
            raise ValueError(f"{vector.name} has no component '{unknown[0]}'; it has {', '.join(vector.parts)}")
        return {f"{vector.name}_{part}": entry for part, entry in value.items()}
    if isinstance(value, Signal) or np.ndim(value) == 0 or (pair and isinstance(value, tuple)):
        return dict.fromkeys(vector.names, value)
    array = np.asarray(value, float)
    if array.shape == (len(vector.parts),):
        return dict(zip(vector.names, array.tolist(), strict=True))
    if pair and array.shape == (len(vector.parts), 2):
        return {n: tuple(row) for n, row in zip(vector.names, array.tolist(), strict=True)}
    raise ValueError(f"{vector.name} has {len(vector.parts)} components, but is given an array of shape {array.shape}")


def spread_data(entries: Mapping[str, Any], vectors: Vectors) -> dict[str, Any]:
    """Data of a phase with an entry for each component and for each column of a `SignalTable`.

    A table is entered under the name of a vector, with its components as columns, or under any other name, with data
    entries as columns.
    """
    return spread(columns(entries, list(vectors.values())), vectors, pair=False)
