"""Computations over simulated runs, several of them side by side: each is a generator that yields the runs it needs."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from designopt.dynamics.simulation.simulator import RunArguments, Simulator
from designopt.dynamics.simulation.trajectory import Trajectory

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class NextRun:
    """A run that a computation needs: `arguments` of `simulator`."""

    simulator: Simulator
    arguments: RunArguments


#: A computation that yields the runs it needs, one after the other, and is sent their trajectories.
OverRuns = Generator[NextRun, Trajectory, T]


def run_alone(computation: OverRuns[T]) -> T:
    """The result of a computation, run by run. Raises what the computation raises."""
    (result,) = side_by_side([computation])
    if isinstance(result, Exception):
        raise result
    return result


def side_by_side(computations: Sequence[OverRuns[T]]) -> list[T | Exception]:
    """The results of several computations, or the exceptions that they raise, with their runs in lanes.

    Each has the result that it has alone. Of several simulators, that which most computations wait for runs next.
    """
    results: dict[int, T | Exception] = {}
    waiting: dict[int, NextRun] = {}

    def advance(i: int, trajectory: Any) -> None:
        try:
            waiting[i] = computations[i].send(trajectory)
        except StopIteration as end:
            results[i] = end.value
        except Exception as error:
            results[i] = error

    for i in range(len(computations)):
        advance(i, None)
    while waiting:
        groups: dict[Simulator, list[int]] = {}
        for i, next_run in waiting.items():
            groups.setdefault(next_run.simulator, []).append(i)
        simulator, ready = max(groups.items(), key=lambda group: len(group[1]))
        trajectories = simulator.run_several([waiting.pop(i).arguments for i in ready])
        for i, trajectory in zip(ready, trajectories, strict=True):
            advance(i, trajectory)
    return [results[i] for i in range(len(computations))]
