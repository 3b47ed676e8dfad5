"""Where the search for a trajectory begins."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from designopt.collocation.solve.first_values import algebraic_values, unknown_rates
from designopt.collocation.statement.problem import Phase, ProblemError, TrajectoryProblem, ends
from designopt.collocation.transcription.boxes import Boxes
from designopt.collocation.transcription.functions import Statement
from designopt.collocation.transcription.layout import Layout

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


class Course(Protocol):
    """The course of all variables of a phase over the fractions 0..1 of its time, which runs from `t0` to `tf`."""

    @property
    def t0(self) -> float: ...

    @property
    def tf(self) -> float: ...

    def at(self, fractions: Vector) -> Mapping[str, Vector]:
        """Values (n,) by the names of the variables; those that it leaves out are guessed."""
        ...


@dataclass(frozen=True, eq=False)
class Sampled:
    """A course given by `values` (n,) of some variables at `fractions` (n,), linear between them."""

    fractions: Vector
    values: Mapping[str, Vector]
    t0: float
    tf: float

    def at(self, fractions: Vector) -> Mapping[str, Vector]:
        """As `Course.at`."""
        return {n: np.asarray(np.interp(fractions, self.fractions, v)) for n, v in self.values.items()}

    def only(self, names: Iterable[str]) -> Sampled:
        """The course of these variables alone."""
        return replace(self, values={name: self.values[name] for name in names})


def sampled(times: ArrayLike, values: Mapping[str, ArrayLike]) -> Sampled:
    """A course from arrays (n,) over `times` (n,). Raises `ProblemError` (bad_guess) for arrays that make no sense."""
    t = np.asarray(times, float)
    if t.ndim != 1 or len(t) < 2 or not np.isfinite(t).all() or not (np.diff(t) > 0).all():
        raise ProblemError("bad_guess", "times", "at least two finite numbers, each larger than the one before")
    arrays = {name: np.asarray(v, float) for name, v in values.items()}
    for name, array in arrays.items():
        if array.shape != t.shape or not np.isfinite(array).all():
            raise ProblemError("bad_guess", name, f"{len(t)} finite numbers are needed, as many as there are times")
    return Sampled((t - t[0]) / (t[-1] - t[0]), arrays, float(t[0]), float(t[-1]))


@dataclass(frozen=True)
class Guess:
    """Courses by the names of phases and values of parameters; what is left out is guessed as `default_course` does."""

    phases: Mapping[str, Course] = field(default_factory=dict)
    parameters: Mapping[str, float] = field(default_factory=dict)


def default_course(phase: Phase, course: Course | None = None, before: float = 0.0) -> Sampled:
    """The lines of `phase.guess`, or straight ones between fixed ends, else the middle of finite bounds or 0 in them.

    The times are those of `course`, if there is one; else the middle of their ranges, and the beginning of a phase that
    follows another is `before`.
    """
    for name, stated in phase.guess.items():
        if np.shape(stated) != (2,) or not all(isinstance(value, Real) for value in stated):
            text = f"is {stated!r}: give its first and its last value, (from, to)"
            raise ProblemError("bad_guess", f"{phase.name}: guess.{name}", text)
    values = {}
    for v in phase.system.states:
        box = phase.bounds.get(v.name, (v.low, v.high))
        start, end = (_fixed(side.get(v.name)) for side in (phase.initial, phase.final))
        known = [value for value in (start, end) if value is not None]
        line = [middle(box)] * 2 if start is None and end is None else [known[0], known[-1]]
        values[v.name] = np.clip(np.array(phase.guess.get(v.name, line), float), *box)
    others = (*phase.system.controls, *phase.system.algebraic)
    if phase.system.residual_form is not None:
        others += phase.system.residual_form.unknowns
    for v in others:
        level = np.array(phase.guess.get(v.name, (0.0, 0.0)), float)
        values[v.name] = np.clip(level, *phase.bounds.get(v.name, (v.low, v.high)))
    if unknown := sorted(set(phase.guess) - set(values)):
        text = f"there is no such variable; there are {', '.join(values)}"
        raise ProblemError("bad_guess", f"{phase.name}: guess.{unknown[0]}", text)
    t0, tf = (course.t0, course.tf) if course else _default_times(phase, before)
    return Sampled(np.array([0.0, 1.0]), values, t0, tf)


def _default_times(phase: Phase, before: float) -> tuple[float, float]:
    tf = middle(ends(phase.tf))
    if phase.t0 is None:
        return before, max(tf, before + 1e-3)
    t0 = middle(ends(phase.t0))
    # ranges with one middle: as far apart as they allow
    return (t0, tf) if t0 < tf else (ends(phase.t0)[0], ends(phase.tf)[1])


def initial_point(
    statement: Statement, problem: TrajectoryProblem, places: Layout, boxes: Boxes, guess: Guess
) -> Vector:
    """All variables (n,) at `guess`, not scaled, within their boxes.

    Unknown rates that it leaves out are the slopes of the guessed states, algebraic variables solve their equations
    where that is possible. Raises `ProblemError` (bad_guess) for names that are not there and numbers that are not
    finite.
    """
    point = np.zeros(places.size)
    _check(problem, guess)
    first = {**problem.guess, **guess.parameters}
    for name, index in places.parameters.items():
        box = (boxes.low[index], boxes.high[index])
        point[index] = np.clip(first.get(name, middle(box)), *box)
    parameters = {name: float(point[index]) for name, index in places.parameters.items()}
    before = 0.0
    for i, (phase, place) in enumerate(zip(problem.phases, places.phases, strict=True)):
        given = guess.phases.get(phase.name)
        default = default_course(phase, given, before)
        before = default.tf
        fractions = place.mesh.fractions
        stated = {**default.only(phase.guess).at(fractions), **(_values(phase, given, fractions) if given else {})}
        values = {**default.at(fractions), **stated}
        if statement.points[i].form:
            slopes = unknown_rates(phase, values, fractions, default.tf - default.t0)
            values.update({name: course for name, course in slopes.items() if name not in stated})
        if any(v.name not in stated for v in phase.system.algebraic):
            solved = algebraic_values(phase, values, parameters, fractions, default.t0, default.tf)
            values.update({name: course for name, course in solved.items() if name not in stated})
        for j, name in enumerate(statement.points[i].names):
            course = values[name]
            if not np.isfinite(course).all():
                raise ProblemError("bad_guess", f"{phase.name}: {name}", "is not finite everywhere")
            if j < statement.points[i].nx:
                point[place.states[:, j]] = course
            else:
                point[place.point[:, j]] = course[place.mesh.first :]
        for index, time in ((place.t0, default.t0), (place.tf, default.tf)):
            if index >= 0:
                point[index] = time
    low, high = boxes.low, boxes.high
    return np.asarray(np.clip(point, low, high))


def _values(phase: Phase, course: Course, fractions: Vector) -> Mapping[str, Vector]:
    """What a given course says of the phase's variables."""
    form = phase.system.residual_form
    unknowns = form.unknowns if form else ()
    known = [v.name for v in (*phase.system.states, *phase.system.controls, *phase.system.algebraic, *unknowns)]
    values = course.at(fractions)
    if unknown := sorted(set(values) - set(known)):
        text = f"there is no such variable; there are {', '.join(known)}"
        raise ProblemError("bad_guess", f"{phase.name}: {unknown[0]}", text)
    for name, array in values.items():
        if np.shape(array) != fractions.shape:
            text = f"has the shape {np.shape(array)}, not that of the fractions, {fractions.shape}"
            raise ProblemError("bad_guess", f"{phase.name}: {name}", text)
    return values


def _check(problem: TrajectoryProblem, guess: Guess) -> None:
    names = [phase.name for phase in problem.phases]
    if unknown := sorted(set(guess.phases) - set(names)):
        raise ProblemError("bad_guess", unknown[0], f"there is no such phase; there are {', '.join(names)}")
    for name, course in guess.phases.items():
        if not (math.isfinite(course.t0) and math.isfinite(course.tf) and course.t0 < course.tf):
            raise ProblemError("bad_guess", name, f"runs from {course.t0} to {course.tf}")
    parameters = [v.name for v in problem.variables]
    for where, given in (("guess", problem.guess), ("parameters", guess.parameters)):
        for name, value in given.items():
            if name not in parameters:
                text = f"there is no such parameter; there are {', '.join(parameters) or 'none'}"
                raise ProblemError("bad_guess", f"{where}.{name}", text)
            if not isinstance(value, Real) or not math.isfinite(value):
                raise ProblemError("bad_guess", f"{where}.{name}", f"is {value!r}, not a finite number")


def _fixed(box: float | tuple[float, float] | None) -> float | None:
    if box is None:
        return None
    low, high = ends(box)
    return low if low == high else None


def middle(box: tuple[float, float]) -> float:
    low, high = box
    if math.isfinite(low) and math.isfinite(high):
        return 0.5 * (low + high)
    return float(np.clip(0.0, low, high))
