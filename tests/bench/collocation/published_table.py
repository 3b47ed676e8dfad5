"""The table of published problems: designopt, dymos, opty, rockit and a program written by hand, from the same guesses.

``python published_table.py FILE [WAY ...]`` writes a CSV file with a row for each problem and way; rows that are there
are kept, for another one delete it. Peers run in processes of their own, as in `peer_runs`. Every way has a uniform
mesh of 50 intervals, a tolerance of 1e-8, one thread, and at most 30 s for a solve.
"""

import csv
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "collocation" / "problems"))

import numpy as np
from by_hand import ByHand
from portable import portable
from published import PUBLISHED

from designopt.collocation import Guess, Options, Program, SampledTrajectory, solve

HERE = Path(__file__).resolve().parent
INTERVALS, GUESSES, SECONDS = 50, 3, 30.0
#: An objective that is further from the optimum than this, relative, is another optimum, or none.
REACHED = 0.02
#: The problems, with what their cost is: an integral, the duration, or a function of the end.
COSTS = {
    "block": "integral",
    "double integrator": "duration",
    "brachistochrone": "duration",
    "cart-pole": "integral",
    "van der pol": "integral",
    "oscillator": "duration",
    "bryson-denham": "integral",
    "lander": "integral",
    "linear tangent": "duration",
    "damped to rest": "integral",
    "goddard": "final",
    "sliding mass": "duration",
    "car": "duration",
    "robot arm": "duration",
    "hyper-sensitive": "integral",
    "hyper-sensitive, 1000 s": "integral",
    "quarter car": "integral",
    "struck": "integral",
    "four peaks": "integral",
    "catalyst": "final",
    "totally singular": "integral",
    "third on a bound": "integral",
    "damped start": "integral",
}
PEERS = ("dymos", "opty", "rockit")
WAYS = ("designopt", "by hand", *PEERS)
COLUMNS = ("problem", "way", "digits", "first_seconds", "repeat_seconds", "reached", "guesses")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def run(name: str, way: str) -> dict[str, Any]:
    """One problem by one way: a row of the table."""
    description = portable(PUBLISHED[name].problem(), COSTS[name], GUESSES)
    solved = {"designopt": _designopt, "by hand": _by_hand}
    answer = _peer(way, description) if way in PEERS else solved[way](name, description)
    optimum = PUBLISHED[name].optimum
    apart = [math.inf if f is None else abs(f - optimum) / (abs(optimum) or 1.0) for f in answer["objectives"]]
    reached = sum(a <= REACHED for a in apart)
    digits = "" if apart[0] > REACHED else f"{min(-math.log10(max(apart[0], 1e-12)), 12.0):.1f}"
    return {
        "problem": name,
        "way": way,
        "digits": digits,
        "first_seconds": _short(answer["first_seconds"]),
        "repeat_seconds": _short(answer["repeat_seconds"]),
        "reached": reached,
        "guesses": len(apart),
    }


def _short(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.3g}"


def _guesses(description: Mapping[str, Any], phase: str) -> list[Guess]:
    guesses = []
    for guess in description["guesses"]:
        values = {name: np.array(v) for name, v in guess["values"].items()}
        fractions = np.linspace(0.0, 1.0, len(next(iter(values.values()))))
        guesses.append(Guess({phase: SampledTrajectory(fractions, values, 0.0, guess["tf"])}, guess["parameters"]))
    return guesses


def _designopt(name: str, description: Mapping[str, Any]) -> dict[str, Any]:
    """The default options; repeated solves are those of a program that is built once."""
    problem = PUBLISHED[name].problem()
    options = Options(intervals=INTERVALS, check=False)
    guesses = _guesses(description, problem.phases[0].name)
    began = time.process_time()
    first = solve(problem, options)
    seconds = time.process_time() - began
    objectives = [first.objective if first.success else None]
    program, repeats = Program(problem, options), []
    program.solve()
    for guess in guesses[1:]:
        began = time.process_time()
        program.solve(guess=guess)
        repeats.append(time.process_time() - began)
        solution = solve(problem, options, guess)
        objectives.append(solution.objective if solution.success else None)
    return {"objectives": objectives, "first_seconds": seconds, "repeat_seconds": statistics.median(repeats)}


def _by_hand(name: str, description: Mapping[str, Any]) -> dict[str, Any]:
    problem = PUBLISHED[name].problem()
    guesses = [(g.phases[problem.phases[0].name], g.parameters) for g in _guesses(description, problem.phases[0].name)]
    began = time.process_time()
    program = ByHand(problem, INTERVALS, COSTS[name], abs(PUBLISHED[name].optimum) or 1.0)
    objectives = [program.solve_from(*guesses[0])]
    first, repeats = time.process_time() - began, []
    for guess in guesses[1:]:
        began = time.process_time()
        objectives.append(program.solve_from(*guess))
        repeats.append(time.process_time() - began)
    return {"objectives": objectives, "first_seconds": first, "repeat_seconds": statistics.median(repeats)}


def _peer(way: str, description: Mapping[str, Any]) -> dict[str, Any]:
    python = os.environ.get(f"DESIGNOPT_PEER_{way.upper()}", sys.executable)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "problem.json"
        file.write_text(json.dumps(description))
        command = [python, str(HERE / "peers" / f"{way}_problem.py"), str(file), str(INTERVALS), str(SECONDS)]
        limit = SECONDS * (GUESSES + 2)
        environment = {**os.environ, **ONE_THREAD}
        try:
            completed = subprocess.run(
                command, capture_output=True, text=True, timeout=2.0 * limit, cwd=folder, env=environment
            )
        except subprocess.TimeoutExpired:  # where the limit of a solve is not looked at
            return {"objectives": [None] * GUESSES, "first_seconds": None, "repeat_seconds": None}
    if completed.returncode or not completed.stdout.strip():
        raise RuntimeError(f"{way} of this problem: {completed.stderr.strip().splitlines()[-1:]}")
    answer: dict[str, Any] = json.loads(completed.stdout.splitlines()[-1])
    return answer


def main() -> None:
    """Write the table."""
    target, ways = Path(sys.argv[1]), sys.argv[2:] or list(WAYS)
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    if target.exists():
        with target.open(newline="") as file:
            rows = {(row["problem"], row["way"]): dict(row) for row in csv.DictReader(file)}
    for name in COSTS:
        for way in (w for w in ways if (name, w) not in rows):
            rows[name, way] = row = run(name, way)
            print(row, flush=True)
            with target.open("w", newline="") as file:  # as far as it came
                writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows[n, w] for n in COSTS for w in WAYS if (n, w) in rows)


if __name__ == "__main__":
    main()
