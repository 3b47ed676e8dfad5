"""One peer on the work of the benchmark, in a separate process: ``python peers.py NAME COUNT PAUSE FOLDER``.

Every peer evaluates `COUNT` random designs of two parameters on two workers with an objective that sleeps for `PAUSE`
seconds (not at all for 0), and prints one line of JSON: evaluations a second after its start-up, and whether what it
keeps on the disk survives its own death.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
from pathlib import Path

WORKERS = 2


def objective(a: float, b: float, pause: float) -> float:
    """The same work for everybody."""
    if pause:
        time.sleep(pause)
    return a * a + b * b


# ---------------------------------------------------------------------------------------------------------- Optuna


def _optuna_storage(kind: str, folder: Path):
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if kind == "sqlite":
        return optuna.storages.RDBStorage(
            f"sqlite:///{folder}/optuna.db", engine_kwargs={"connect_args": {"timeout": 60}}
        )
    return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(f"{folder}/optuna.log"))


def _optuna_worker(kind: str, folder: Path, count: int, pause: float, ready) -> None:
    import optuna

    study = optuna.study_from_file(
        study_name="s", storage=_optuna_storage(kind, folder), sampler=optuna.samplers.RandomSampler()
    )
    ready.wait()
    study.optimize(
        lambda t: objective(t.suggest_float("a", -5, 5), t.suggest_float("b", -5, 5), pause), n_trials=count // WORKERS
    )


def _optuna(kind: str, count: int, pause: float, folder: Path) -> tuple[float, bool]:
    import optuna

    optuna.create_study(study_name="s", storage=_optuna_storage(kind, folder))
    ready = multiprocessing.Barrier(WORKERS + 1)
    arguments = (kind, folder, count, pause, ready)
    processes = [multiprocessing.Process(target=_optuna_worker, args=arguments) for _ in range(WORKERS)]
    for process in processes:
        process.start()
    ready.wait()
    began = time.perf_counter()
    for process in processes:
        process.join()
    seconds = time.perf_counter() - began
    stored_study = optuna.study_from_file(study_name="s", storage=_optuna_storage(kind, folder))
    assert len(stored_study.get_trials(states=[optuna.trial.TrialState.COMPLETE])) == count // WORKERS * WORKERS
    return seconds, True


def optuna_sqlite(count: int, pause: float, folder: Path) -> tuple[float, bool]:
    """Optuna, two processes on one SQLite storage."""
    return _optuna("sqlite", count, pause, folder)


def optuna_journal(count: int, pause: float, folder: Path) -> tuple[float, bool]:
    """Optuna, two processes on one journal file."""
    return _optuna("journal", count, pause, folder)


# ----------------------------------------------------------------------------------------------------------- pymoo


def pymoo_dask(count: int, pause: float, folder: Path) -> tuple[float, bool]:
    """pymoo's NSGA-II whose problem is evaluated by its Dask runner; it keeps nothing on the disk."""
    from distributed import Client, LocalCluster
    from pymoo.algorithms.moo.nsga2 import NSGA2
    from pymoo.core.problem import ElementwiseProblem
    from pymoo.optimize import minimize
    from pymoo.parallelization.dask import DaskParallelization

    class Sphere(ElementwiseProblem):
        def _evaluate(self, x, out, *args, **kwargs):
            out["F"] = objective(float(x[0]), float(x[1]), pause)

    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        problem = Sphere(n_var=2, n_obj=1, xl=-5.0, xu=5.0, elementwise_runner=DaskParallelization(client))
        began = time.perf_counter()
        result = minimize(problem, NSGA2(pop_size=100), ("n_eval", count), seed=1)
        seconds = time.perf_counter() - began
        assert result.algorithm.evaluator.n_eval >= count
    return seconds, False


# ------------------------------------------------------------------------------------------------------------ Xopt


def _xopt_objective(inputs: dict, pause: float = 0.0) -> dict:
    return {"f": objective(inputs["a"], inputs["b"], pause)}


def xopt(count: int, pause: float, folder: Path) -> tuple[float, bool]:
    """Xopt with a pool of two processes; it writes its whole state after every step."""
    import warnings
    from concurrent.futures import ProcessPoolExecutor

    warnings.simplefilter("ignore")
    from xopt import Evaluator, Xopt
    from xopt.generators.random import RandomGenerator
    from xopt.vocs import VOCS

    vocs = VOCS(variables={"a": [-5, 5], "b": [-5, 5]}, objectives={"f": "MINIMIZE"})
    with ProcessPoolExecutor(WORKERS) as pool:
        list(pool.map(abs, range(WORKERS)))
        evaluator = Evaluator(
            function=_xopt_objective, function_kwargs={"pause": pause}, executor=pool, max_workers=WORKERS
        )
        x = Xopt(
            vocs=vocs, generator=RandomGenerator(vocs=vocs), evaluator=evaluator, dump_file=str(folder / "xopt.yaml")
        )
        began = time.perf_counter()
        while x.data is None or len(x.data) < count:
            x.step()
        seconds = time.perf_counter() - began
    return seconds, True


# ----------------------------------------------------------------------------------------------------- libEnsemble


def _libensemble_sim(H, persis_info, sim_specs, _):
    import numpy as np

    out = np.zeros(len(H), dtype=sim_specs["out"])
    for i, x in enumerate(H["x"]):
        out["f"][i] = objective(float(x[0]), float(x[1]), sim_specs["user"]["pause"])
    return out, persis_info


def _libensemble_gen(H, persis_info, gen_specs, _):
    import numpy as np

    out = np.zeros(gen_specs["user"]["batch"], dtype=gen_specs["out"])
    out["x"] = np.random.default_rng(len(H)).uniform(-5, 5, (len(out), 2))
    return out, persis_info


def libensemble(count: int, pause: float, folder: Path) -> tuple[float, bool]:
    """libEnsemble with local processes; its history goes to the disk every ten simulations."""
    import warnings

    warnings.simplefilter("ignore")
    from libensemble.libE import libE

    os.chdir(folder)
    history, _, flag = libE(
        {"sim_f": _libensemble_sim, "in": ["x"], "out": [("f", float)], "user": {"pause": pause}},
        {"gen_f": _libensemble_gen, "in": [], "out": [("x", float, (2,))], "user": {"batch": 200}},
        {"sim_max": count},
        libE_specs={
            "comms": "local", "nworkers": WORKERS, "gen_on_manager": True, "save_every_k_sims": 10,
            "disable_log_files": True, "safe_mode": False,
        },
    )  # fmt: skip
    assert flag == 0
    assert history["sim_ended"].sum() >= count
    return float(history["sim_ended_time"].max() - history["sim_started_time"][history["sim_started"]].min()), True


PEERS = {f.__name__: f for f in (optuna_sqlite, optuna_journal, pymoo_dask, xopt, libensemble)}

if __name__ == "__main__":
    name, count, pause, folder = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4])
    seconds, durable = PEERS[name](count, pause, folder)
    print(json.dumps({"peer": name, "rate": count / seconds, "durable": durable}))
