"""Searches of other packages as a solver: each runs in a Python of its own (`peers.py`), controlled line by line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np

from designopt import Quantity, solver
from designopt.problem import Evaluate, Outcomes, Problem

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@solver("peer", version=1)
class Peer:
    """Search with another package, in the search coordinates of the space (logarithms on a log scale).

    A design that fails gets the worst values that were seen and breaks every limit. Equalities are limits of their
    distance. The Python with the packages is in the environment variable DESIGNOPT_PEERS.
    """

    needs_budget: ClassVar[bool] = True

    method: Annotated[
        Literal["optuna_tpe", "optuna_gp", "optuna_nsga2", "botorch", "smac", "pymoo"], Quantity("", "the search")
    ]
    most: Annotated[int, Quantity("", "designs that a search plans for", ge=1)] = 200
    limit: Annotated[float, Quantity("s", "time after which a run is ended", gt=0.0)] = 3600.0

    def solve(self, problem: Problem, evaluate: Evaluate, rng: np.random.Generator, start: Outcomes) -> str | None:
        """Let the other process ask for designs until the budget is spent, or the time."""
        python = sys.executable if self.method == "pymoo" else os.environ.get("DESIGNOPT_PEERS")
        if not python:
            raise RuntimeError(f"{self.method}: name a Python that has it in the environment variable DESIGNOPT_PEERS")
        space, equal = problem.space, np.array([limit.equality for limit in problem.limits], dtype=bool)
        statement = {"lower": space.lower.tolist(), "upper": space.upper.tolist()}
        statement |= {"objectives": len(problem.objectives), "limits": len(problem.limits)}
        seed = str(int(rng.integers(2**31)))
        command = [python, str(Path(__file__).with_name("peers.py")), self.method, seed, str(self.most)]
        ends, worst = time.monotonic() + self.limit, np.full(len(problem.objectives), -np.inf)
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, **_ONE_THREAD},
        ) as process:  # fmt: skip
            assert process.stdin
            assert process.stdout
            try:
                process.stdin.write(json.dumps(statement) + "\n")
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
                        return f"ended after {self.limit:g} s"
            except BrokenPipeError:
                pass
            finally:
                process.kill()
        return None
