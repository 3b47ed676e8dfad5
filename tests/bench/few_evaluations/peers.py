"""Searches of other packages on the problems beside this file: run by a Python that has them installed.

    python peers.py METHOD PROBLEM SEED EVALUATIONS

prints the designs that were asked for, one JSON list after the other. Every method starts from its own random designs
and evaluates four designs at a time where it can, as the solvers here do.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable

import numpy as np
from problems import PROBLEMS, TestProblem

BATCH = 4


def optuna_sampler(name: str) -> Callable[[TestProblem, int, int], list[list[float]]]:
    """Optuna's samplers TPE, GP and NSGA-II, with limits by `constraints_func`."""

    def search(p: TestProblem, seed: int, evaluations: int) -> list[list[float]]:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)

        def limits(trial: optuna.trial.FrozenTrial) -> list[float]:
            return trial.user_attrs["limits"]

        known = {"constraints_func": limits} if p.limits else {}
        if name == "gp":
            sampler = optuna.samplers.GPSampler(seed=seed, **known)
        elif name == "nsga2":
            sampler = optuna.samplers.NSGAIISampler(seed=seed, population_size=20, **known)
        else:
            sampler = optuna.samplers.TPESampler(seed=seed, **known)
        study = optuna.create_study(sampler=sampler, directions=["minimize"] * p.objectives)
        asked = []

        def objective(trial: optuna.Trial) -> tuple[float, ...]:
            x = [
                trial.suggest_int(f"x{i}", int(low), int(high))
                if i in p.integers
                else trial.suggest_float(f"x{i}", low, high)
                for i, (low, high) in enumerate(zip(p.lower, p.upper, strict=True))
            ]
            F, G = p.function(np.array(x, dtype=float))
            trial.set_user_attr("limits", G)
            asked.append([float(v) for v in x])
            return tuple(F)

        study.optimize(objective, n_trials=evaluations)
        return asked

    return search


def botorch(p: TestProblem, seed: int, evaluations: int) -> list[list[float]]:
    """qLogNEHVI (Daulton, Balandat & Bakshy 2021; Ament et al. 2023) with a process for each output, as in BoTorch's
    tutorial of constrained multi-objective optimization; qLogNEI with one objective."""
    import torch
    from botorch.acquisition.logei import qLogNoisyExpectedImprovement
    from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
    from botorch.acquisition.multi_objective.objective import IdentityMCMultiOutputObjective
    from botorch.acquisition.objective import GenericMCObjective
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import ModelListGP, SingleTaskGP
    from botorch.models.transforms import Standardize
    from botorch.optim import optimize_acqf
    from botorch.sampling import SobolQMCNormalSampler
    from botorch.utils.multi_objective import infer_reference_point, is_non_dominated
    from gpytorch.mlls import SumMarginalLogLikelihood
    from torch.quasirandom import SobolEngine

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    d, m = len(p.lower), p.objectives
    lower, upper = torch.tensor(p.lower, dtype=torch.double), torch.tensor(p.upper, dtype=torch.double)
    U = SobolEngine(d, scramble=True, seed=seed).draw(max(2 * d + 2, 8)).double()
    asked: list[list[float]] = []

    def evaluated(U: torch.Tensor) -> torch.Tensor:
        rows = []
        for u in U:
            x = (lower + (upper - lower) * u).numpy().copy()
            x[list(p.integers)] = np.round(x[list(p.integers)])
            asked.append(x.tolist())
            F, G = p.function(x)
            rows.append([-v for v in F] + G)
        return torch.tensor(rows, dtype=torch.double)

    Y = evaluated(U)
    while len(asked) < evaluations:
        models = [SingleTaskGP(U, Y[:, j : j + 1], outcome_transform=Standardize(1)) for j in range(Y.shape[1])]
        model = ModelListGP(*models)
        fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
        limits = [lambda Z, j=j: Z[..., j] for j in range(m, m + p.limits)] or None
        feasible = (Y[:, m:] <= 0).all(dim=1)
        F = Y[feasible, :m] if feasible.any() else Y[:, :m]
        general = {
            "X_baseline": U,
            "sampler": SobolQMCNormalSampler(torch.Size([128]), seed=seed),
            "constraints": limits,
            "prune_baseline": True,
        }
        if m > 1:
            acquisition = qLogNoisyExpectedHypervolumeImprovement(
                model,
                ref_point=infer_reference_point(F[is_non_dominated(F)]).tolist(),
                objective=IdentityMCMultiOutputObjective(outcomes=list(range(m))),
                **general,
            )
        else:
            acquisition = qLogNoisyExpectedImprovement(
                model, objective=GenericMCObjective(lambda Z, X=None: Z[..., 0]), **general
            )
        new, _ = optimize_acqf(
            acquisition,
            bounds=torch.stack([torch.zeros(d), torch.ones(d)]).double(),
            q=BATCH,
            num_restarts=4,
            raw_samples=128,
            sequential=True,
        )
        new = new[: evaluations - len(asked)]
        U, Y = torch.cat([U, new]), torch.cat([Y, evaluated(new)])
    return asked[:evaluations]


METHODS = {
    "optuna_tpe": optuna_sampler("tpe"),
    "optuna_gp": optuna_sampler("gp"),
    "optuna_nsga2": optuna_sampler("nsga2"),
    "botorch": botorch,
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    method, name, seed, evaluations = sys.argv[1:5]
    for x in METHODS[method](PROBLEMS[name], int(seed), int(evaluations)):
        print(json.dumps(x))
