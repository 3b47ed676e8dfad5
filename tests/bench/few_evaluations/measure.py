"""Runs searches on the problems and records the result of every design: one file for each problem, search and seed.

    python measure.py FOLDER --searches gp nsga2 ... --problems bnh ... --seeds 0 1 --evaluations 200 --limit 600

What is complete in the folder is not computed again; a run that is ended after `limit` seconds keeps its first designs.
The searches of other packages need a Python that has them in the environment variable DESIGNOPT_PEERS. `table.py` makes
the table of shares from the folder.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

import numpy as np
from problems import PROBLEMS, TWELVE, posed

from designopt.problem import Outcomes, Problem, StageEnded
from designopt.solvers.evolution.many_objectives import NSGA2
from designopt.solvers.evolution.single_objective import Genetic
from designopt.solvers.surrogate.solver import GaussianProcessSearch
from designopt.testing import InProcess, no_outcomes
from designopt.workers.executor import Chunk, ChunkResult

OWN = ("gp", "nsga2")
PEERS = ("optuna_tpe", "optuna_nsga2", "pymoo", "smac", "optuna_gp", "botorch")


class Written(InProcess):
    """Evaluations that leave a line each in `file`: objectives (none where it failed), whether all limits hold, and
    the processor time of the search before it."""

    def __init__(self, problem: Problem, evaluations: int, file: IO[str]) -> None:
        super().__init__(problem, evaluations)
        self._file = file
        self._last = time.process_time()

    def computed(self, chunk: Chunk) -> ChunkResult:
        began = time.process_time()
        result = super().computed(chunk)
        self._last += time.process_time() - began
        return result

    def record(self, outcomes: Outcomes, relation_violation: np.ndarray) -> None:
        super().record(outcomes, relation_violation)
        spent = time.process_time() - self._last
        for i in range(len(outcomes)):
            F = outcomes.objectives[i]
            row = {"f": F.tolist() if np.isfinite(F).all() else None, "ok": bool(outcomes.feasible[i])}
            self._file.write(json.dumps({**row, "s": round(spent / len(outcomes), 6)}) + "\n")
        self._file.flush()
        self._last = time.process_time()


def solver(name: str, problem: Problem) -> Any:
    """A solver of this package as a study with so few evaluations has it."""
    if name == "nsga2":
        return NSGA2(population=20) if len(problem.objectives) > 1 else Genetic(population=20)
    return GaussianProcessSearch()


def own(name: str, problem: Problem, seed: int, evaluate: Written) -> None:
    """Search with a solver of this package."""
    with contextlib.suppress(StageEnded):
        solver(name, problem).solve(problem, evaluate, np.random.default_rng(seed), no_outcomes(problem))


def peer(name: str, problem: Problem, seed: int, evaluations: int, evaluate: Written, limit: float) -> None:
    """Search with another package, in the search coordinates of the space (logarithms on a log scale).

    A design that fails gets the worst values that were seen and breaks every limit. Equalities are limits of their
    distance.
    """
    python = os.environ["DESIGNOPT_PEERS"] if name != "pymoo" else sys.executable
    space, equal = problem.space, np.array([limit.equality for limit in problem.limits], dtype=bool)
    asked = {"lower": space.lower.tolist(), "upper": space.upper.tolist()}
    asked |= {"objectives": len(problem.objectives), "limits": len(problem.limits)}
    command = [python, str(Path(__file__).with_name("peers.py")), name, str(seed), str(evaluations)]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    ends = time.monotonic() + limit
    worst = np.full(len(problem.objectives), -np.inf)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, **threads},
    ) as process:  # fmt: skip
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()
        for line in process.stdout:
            x = np.clip(json.loads(line), space.lower, space.upper)
            outcomes = evaluate(space.from_search(x[None]))
            F, G = outcomes.objectives[0], np.empty(0)
            if len(equal):
                G = problem.constraint_values(outcomes.figures)[0]
                G = np.where(equal, np.abs(G) - 1e-6, G)
            if np.isfinite(F).all() and np.isfinite(G).all():
                worst = np.maximum(worst, F)
            else:
                F, G = np.where(np.isfinite(worst), worst, 1e3), np.ones(len(G))
            process.stdin.write(json.dumps([F.tolist(), G.tolist()]) + "\n")
            process.stdin.flush()
            if time.monotonic() > ends:
                process.kill()
                break


def measure(folder: Path, name: str, search: str, seed: int, evaluations: int, limit: float) -> None:
    """One run, unless it is recorded or was stopped before."""
    path = folder / f"{name}-{search}-{seed}.jsonl"
    if path.exists() and len(path.read_text().splitlines()) >= evaluations:
        return
    problem = posed(name)
    began, children = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with path.open("w", encoding="utf-8") as file:
        evaluate = Written(problem, evaluations, file)
        if search in OWN:
            own(search, problem, seed, evaluate)
        else:
            with contextlib.suppress(StageEnded, BrokenPipeError):
                peer(search, problem, seed, evaluations, evaluate, limit)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent = after.ru_utime + after.ru_stime - children.ru_utime - children.ru_stime
            file.write(json.dumps({"processor_s": round(spent, 3)}) + "\n")
    print(f"{name} {search} {seed}: {len(evaluate.X)} designs, {time.monotonic() - began:.0f} s", flush=True)


def main() -> None:
    """Run the requested searches, seed by seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--searches", nargs="+", default=[*OWN, *PEERS], choices=[*OWN, *PEERS])
    parser.add_argument("--problems", nargs="+", default=list(TWELVE), choices=list(PROBLEMS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(5)))
    parser.add_argument("--evaluations", type=int, default=200)
    parser.add_argument("--limit", type=float, default=800.0)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for seed in given.seeds:
        for search in given.searches:
            for name in given.problems:
                measure(given.folder, name, search, seed, given.evaluations, given.limit)


if __name__ == "__main__":
    main()
