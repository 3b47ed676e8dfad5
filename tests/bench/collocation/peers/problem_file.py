"""A problem as `portable.py` wrote it, and what a script prints of it: one line of JSON.

``SCRIPT FILE N SECONDS``: a uniform mesh of N intervals, at most so many seconds for each solve.
"""

import json
import sys
import time

import casadi
import numpy as np


class Given:
    """The file, with its functions (CasADi) of (x, u, p, t)."""

    def __init__(self, path):
        with open(path) as file:
            self.__dict__.update(json.load(file))
        for name in ("rates", "integrand", "final_cost", "path"):
            setattr(self, name, casadi.Function.deserialize(getattr(self, name)))
        functions = (self.rates, self.integrand, self.path)
        self.timed = [f.name() for f in functions if f.jac_sparsity(0, 3).nnz()]
        self.paths = self.path.numel_out(0)
        self.fixed_tf = self.tf[0] if self.tf[0] == self.tf[1] else None

    def box(self, name):
        """Lower and upper bound, infinite ones where there is none."""
        low, high = self.bounds[name]
        return -np.inf if low is None else low, np.inf if high is None else high

    def at(self, guess, fractions):
        """Values by name of a guess at fractions of the time."""
        nodes = np.linspace(0.0, 1.0, len(next(iter(guess["values"].values()))))
        return {name: np.interp(fractions, nodes, values) for name, values in guess["values"].items()}


def arguments():
    """The problem, the intervals and the seconds for each solve."""
    return Given(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])


def answered(published, build, solve):
    """Build, solve from every guess, and print: seconds of building with the first solve, the median of the seconds of
    the others, objectives (none for a failed solve)."""
    began = time.process_time()
    built = build()
    objectives, seconds = [], []
    for guess in published.guesses:
        start = time.process_time()
        try:
            objectives.append(solve(built, guess))
        except Exception as error:  # whatever a peer raises of a solve that fails
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            objectives.append(None)
        seconds.append(time.process_time() - start)
        if len(seconds) == 1:
            first = time.process_time() - began
    repeated = float(np.median(seconds[1:])) if len(seconds) > 1 else None
    print(json.dumps({"objectives": objectives, "first_seconds": first, "repeat_seconds": repeated}), flush=True)
