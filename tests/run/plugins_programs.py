"""A solver that has programs solved, without anything heavy. Loaded as a plugin file, as a user's script would be."""

import os
import time
from pathlib import Path

import numpy as np

from designopt.plugin import InvalidSetting, solver
from designopt.problem import ProgramSolution


class Halves:
    """Solving means: half of the design, and half of what the one before gave."""

    def __init__(self, settings):
        self.settings = settings

    def solve(self, x, seed, before):
        settings = self.settings
        if settings.log:
            with Path(settings.log).open("a") as stream:
                stream.write(f"{x[0]:g} {seed}\n")
        time.sleep(settings.pause)
        if x[0] == settings.fatal:
            os._exit(7)
        if x[0] == settings.bug:
            raise RuntimeError("a bug")
        if x[0] == settings.endless:
            time.sleep(1000.0)
        value = 0.5 * float(x[0]) + 0.5 * (before or 0.0) + seed
        ok = x[0] != settings.fails
        figures = {"optimum(a)": value, "program(objective)": value**2}
        reason = "solved" if ok else "stuck"
        return ProgramSolution(
            ok, figures, {"course": np.full(3, value)}, reason, f"at {value:g}", value if ok else None
        )


@solver("halving", version=1)
class Halving:
    """Has programs solved from `values` in chains of `length`, and asks for the designs that they give."""

    values: list[float]
    length: int = 3
    seed: int = 0
    pause: float = 0.0
    fatal: float = 99.0
    bug: float = 99.0
    endless: float = 99.0
    fails: float = 99.0
    log: str = ""

    def check(self, problem):
        if not self.values:
            raise InvalidSetting("values", "at least one")

    def program(self, problem):
        return Halves(self)

    def solve(self, problem, evaluate, rng, start):
        X = np.array(self.values, float)[:, None]
        outcomes = evaluate.programs(X, [i // self.length for i in range(len(X))], [self.seed] * len(X))
        evaluate(outcomes.figures["optimum(a)"][outcomes.ok][:, None])
        if not outcomes.ok.all():
            evaluate.note("programs_failed", f"{int((~outcomes.ok).sum())} programs failed")
        return ", ".join(outcomes.reasons)
