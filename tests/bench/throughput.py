"""Trivial evaluations by the hundred thousand: common parts of the runner's benchmarks.

As a script, ``python throughput.py run|resume STORE COUNT``: one session on two workers; prints a line of JSON with its
seconds and the peak of its resident memory. With ``start`` or ``start-spawned`` on six workers, which are forked or
start each from nothing; `workers` is their processor time. ``first-dask STORE WORKERS`` and ``first-serial STORE 1``
give the seconds from the call of the run to its first result.
"""

import contextlib
import importlib.util
import json
import resource
import sqlite3
import statistics
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace

from designopt.plugin import solver
from designopt.run.runner import run_study
from designopt.study.study import Stage
from designopt.workers.pools import forking


def _cases() -> ModuleType:
    folder = Path(__file__).parents[1] / "run"
    spec = importlib.util.spec_from_file_location("run_cases", folder / "run_cases.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["run_cases"] = module
    spec.loader.exec_module(module)
    return module


cases = _cases()


@solver("uniform", version=1)
class Uniform:
    """Request `count` random designs, `batch` at a time; record start and end times."""

    count: int
    batch: int
    seconds = 0.0

    def solve(self, problem, evaluate, rng, start):
        space = problem.space
        X = space.from_search(space.lower + rng.random((self.count, len(space.lower))) * (space.upper - space.lower))
        evaluate(X[:1])  # workers start and the model is built here
        began = time.perf_counter()
        for i in range(1, self.count, self.batch):
            evaluate(X[i : i + self.batch])
        Uniform.seconds = time.perf_counter() - began


def rate(tmp_path, repeats, count, batch, execution, settings=None):
    """Evaluations a second of the solver's loop, medians of `repeats` runs; the last result."""
    rates = []
    for i in range(repeats):
        stage = Stage("s", cases.Use(Uniform.__designopt__, {"count": count + 1, "batch": batch}))
        study = cases.make_study(stages=(stage,), execution=execution, settings=settings or {})
        result = run_study(study, tmp_path / f"{count}-{batch}-{i}")
        assert result.counts["evaluations"] == count + 1
        rates.append(count / Uniform.seconds)
    return statistics.median(rates), result


def first_result(executor, store, workers):
    """Seconds from the call of a run to the first result in its journal; a design takes 20 ms."""
    stage = Stage("s", cases.use("solver", "random", samples=50))
    execution = {"executor": executor} | ({"workers": workers} if executor == "dask" else {})
    study = cases.make_study(stages=(stage,), execution=execution, settings={"pause": 0.02})
    began = time.time()
    run_study(study, store)
    with contextlib.closing(sqlite3.connect(store / "journal.db")) as db:
        return db.execute("SELECT MIN(finished) FROM evaluation").fetchone()[0] - began


if __name__ == "__main__":
    mode, store, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    if mode.startswith("first-"):
        print(json.dumps({"seconds": first_result(mode.removeprefix("first-"), store, count)}))
        sys.exit()
    stage = Stage("s", cases.Use(Uniform.__designopt__, {"count": count, "batch": count}))
    if mode == "start-spawned":
        forking.ForkServer = lambda: SimpleNamespace(process="of another library")
    workers = 6 if mode.startswith("start") else 2
    study = cases.make_study(stages=(stage,), execution={"executor": "dask", "workers": workers})
    began = time.perf_counter()
    run_study(study, store, resume=mode == "resume")
    seconds = time.perf_counter() - began
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    summary = {"seconds": seconds, "megabytes": megabytes, "workers": used.ru_utime + used.ru_stime}
    print(json.dumps(summary))
