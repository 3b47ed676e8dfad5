"""Points of a sweep: combinations of the fixed parameters of a program, ordered along a path."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.collocation.solve.guess.warm import nearest_neighbour_path
from designopt.plugin import InvalidSetting, closest
from designopt.problem import Problem
from designopt.study.language import units
from designopt.study.study import DesignVariable

#: Maximum number of programs: the time for the path grows with its square.
MOST_POINTS = 10_000


def levels(problem: Problem, sweep: Mapping[str, Any]) -> dict[str, list[float]]:
    """The column entries of each fixed parameter: those of `sweep` (a list, or their number), all values of other
    integers and choices. Raises `InvalidSetting`."""
    free = {p.name: p for p in problem.space.free}
    for name in sweep:
        if name not in free:
            near = closest(name, free)
            hint = f"; did you mean '{near}'?" if near else ""
            raise InvalidSetting(
                f"sweep.{name}", f"there is no free parameter '{name}'{hint} (known: {', '.join(free)})"
            )
    entries = {}
    for name, p in free.items():
        if name in sweep:
            entries[name] = _stated_levels(p, sweep[name])
        elif p.kind != "real":
            entries[name] = _sweep_values(p)
    _check_count(entries, math.prod(len(values) for values in entries.values()))
    return entries


def _check_count(names: Iterable[str], count: int) -> None:
    if count > MOST_POINTS:
        text = (
            f"the values of {', '.join(names)} make {count} programs; at most {MOST_POINTS} are allowed; "
            f"give fewer levels"
        )
        raise InvalidSetting("sweep", text)


def points(
    problem: Problem, grid: Mapping[str, Sequence[float]], first: Floats, optimum_names: Sequence[str]
) -> Floats:
    """All combinations (n, d) of the values of `grid`, the other entries from `first` (d,), along a path of small
    steps. Combinations that differ only in inactive parameters count once; those that violate a relation between fixed
    parameters are dropped. Raises `InvalidSetting` if none remains."""
    space = problem.space
    columns = [space.names.index(name) for name in grid]
    rows = []
    for values in itertools.product(*grid.values()):
        x = first.copy()
        x[columns] = values
        rows.append(x)
    X = space.impute(np.array(rows))
    _, first_rows = np.unique(X, axis=0, return_index=True)
    X = X[np.sort(first_rows)]
    relations = tuple(r for r in space.relations if not r.names & set(optimum_names))
    X = X[type(space)(space.parameters, relations).relation_violation(X) == 0.0]
    if not len(X):
        raise InvalidSetting("use", "no combination of the fixed parameters satisfies the relations")
    return np.asarray(X[nearest_neighbour_path(space.to_search(X))])


def _stated_levels(p: DesignVariable, setting: int | Sequence[Any]) -> list[float]:
    setting_name = f"sweep.{p.name}"
    if isinstance(setting, int):
        if p.kind == "choice":
            raise InvalidSetting(setting_name, "all values of a choice are taken; list some to have fewer")
        if setting < 2:
            raise InvalidSetting(
                setting_name, f"at least 2 levels are needed, not {setting}; for a single level, fix the value"
            )
        _check_count([p.name], setting)  # before the numbers are created
        spread = np.geomspace if p.scale == "log" else np.linspace
        values = np.clip(spread(p.low, p.high, setting), p.low, p.high)
        return list(dict.fromkeys((np.rint(values) if p.kind == "int" else values).tolist()))
    if not len(setting):
        raise InvalidSetting(setting_name, "a level is needed")
    return list(dict.fromkeys(_entry(p, value, setting_name) for value in setting))


def _entry(p: DesignVariable, value: Any, setting_name: str) -> float:
    if p.kind == "choice":
        for i, choice in enumerate(p.values):
            if value == choice and isinstance(value, bool) == isinstance(choice, bool):
                return float(i)
        raise InvalidSetting(setting_name, f"{value!r} is not one of {', '.join(map(str, p.values))}")
    try:
        amount = units.parse_amount(value) if isinstance(value, str) else units.Amount(float(value))
        number = amount.value_in(p.unit)
    except units.UnitError as error:
        raise InvalidSetting(setting_name, str(error)) from None
    if isinstance(value, bool) or (p.kind == "int" and number != round(number)):
        raise InvalidSetting(setting_name, f"{value!r} is not an integer" if p.kind == "int" else "a number is needed")
    if not p.low <= number <= p.high:
        raise InvalidSetting(setting_name, f"{number:g} is outside the range {p.low:g} to {p.high:g}")
    return float(number)


def _sweep_values(p: DesignVariable) -> list[float]:
    if p.kind == "choice":
        return [float(i) for i in range(len(p.values))]
    return [float(i) for i in range(int(p.low), min(int(p.high), int(p.low) + MOST_POINTS) + 1)]
