"""Searches of other packages, controlled line by line: run by a Python that has them installed.

    python peers.py METHOD SEED EVALUATIONS < values > designs

The first line read is the problem: ``{"lower": [...], "upper": [...], "objectives": m, "limits": k}``. Then each line
written is a design, and each line read what came of it: ``[[objectives], [limits]]``, limits at most 0 where they hold.
Every method starts from its own first designs.
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

#: Designs that are chosen together where a method can, as by the solvers here.
BATCH = 4
#: The population of evolutionary searches, as here for so few evaluations.
POPULATION = 20


@dataclass(frozen=True)
class Asked:
    """A problem on the other side of the pipe."""

    lower: list[float]
    upper: list[float]
    objectives: int
    limits: int

    def __call__(self, x: np.ndarray) -> tuple[list[float], list[float]]:
        print(json.dumps([float(v) for v in x]), flush=True)
        F, G = json.loads(sys.stdin.readline())
        return F, G


def optuna_sampler(name: str) -> Callable[[Asked, int, int], None]:
    """Optuna's samplers TPE, GP and NSGA-II, with limits by `constraints_func`."""

    def search(p: Asked, seed: int, evaluations: int) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)

        def limits(trial: optuna.trial.FrozenTrial) -> list[float]:
            return trial.user_attrs["limits"]

        options = {"constraints_func": limits} if p.limits else {}
        if name == "gp":
            sampler = optuna.samplers.GPSampler(seed=seed, **options)
        elif name == "nsga2":
            sampler = optuna.samplers.NSGAIISampler(seed=seed, population_size=POPULATION, **options)
        else:
            sampler = optuna.samplers.TPESampler(seed=seed, **options)
        study = optuna.create_study(sampler=sampler, directions=["minimize"] * p.objectives)

        def objective(trial: optuna.Trial) -> tuple[float, ...]:
            x = [trial.suggest_float(f"x{i}", *ends) for i, ends in enumerate(zip(p.lower, p.upper, strict=True))]
            F, G = p(np.array(x))
            trial.set_user_attr("limits", G)
            return tuple(F)

        study.optimize(objective, n_trials=evaluations)

    return search


def botorch(p: Asked, seed: int, evaluations: int) -> None:
    """qLogNEHVI (Daulton, Balandat & Bakshy 2021; Ament et al. 2023) with a process for each output, as in BoTorch's
    tutorial of constrained multi-objective optimization; qLogNEI with one objective.

    So that five runs are affordable: each process is fitted by itself, from the hyperparameters before (an eighth of
    the time of a common fit from the start), and all of them are one batched model of independent outputs for the
    acquisition, which is that of a `ModelListGP` (to 1e-10) in half its time. The acquisition takes 64 samples and is
    maximised from 64 raw and 4 refined starts with at most 30 steps: its values are within half a per cent of those of
    twice the samples and starts and 200 steps.
    """
    import torch
    from botorch.acquisition.logei import qLogNoisyExpectedImprovement
    from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
    from botorch.acquisition.multi_objective.objective import IdentityMCMultiOutputObjective
    from botorch.acquisition.objective import GenericMCObjective
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.models.transforms import Standardize
    from botorch.optim import optimize_acqf
    from botorch.sampling import SobolQMCNormalSampler
    from botorch.utils.multi_objective import infer_reference_point, is_non_dominated
    from gpytorch.mlls import ExactMarginalLogLikelihood
    from torch.quasirandom import SobolEngine

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    d, m = len(p.lower), p.objectives
    lower, upper = torch.tensor(p.lower, dtype=torch.double), torch.tensor(p.upper, dtype=torch.double)
    U = SobolEngine(d, scramble=True, seed=seed).draw(max(2 * d + 2, 8)).double()

    def evaluated(U: torch.Tensor) -> torch.Tensor:
        rows = []
        for u in U:
            F, G = p((lower + (upper - lower) * u).numpy())
            rows.append([-v for v in F] + G)
        return torch.tensor(rows, dtype=torch.double)

    def learnt(model: SingleTaskGP) -> dict[str, torch.Tensor]:
        return {name: parameter.detach() for name, parameter in model.named_parameters()}

    states: dict[int, dict[str, torch.Tensor]] = {}

    def fitted(U: torch.Tensor, Y: torch.Tensor) -> SingleTaskGP:
        for j in range(Y.shape[1]):
            one = SingleTaskGP(U, Y[:, j : j + 1], outcome_transform=Standardize(1))
            one.load_state_dict(states.get(j, {}), strict=False)
            fit_gpytorch_mll(ExactMarginalLogLikelihood(one.likelihood, one))
            states[j] = learnt(one)
        model = SingleTaskGP(U, Y, outcome_transform=Standardize(Y.shape[1]))
        parts = learnt(model)
        together = {name: torch.stack([states[j][name] for j in range(Y.shape[1])]) for name in parts}
        model.load_state_dict({name: t.reshape(parts[name].shape) for name, t in together.items()}, strict=False)
        return model.eval()

    Y = evaluated(U)
    while len(Y) < evaluations:
        model = fitted(U, Y)
        limits = [lambda Z, j=j: Z[..., j] for j in range(m, m + p.limits)] or None
        feasible = (Y[:, m:] <= 0).all(dim=1)
        F = Y[feasible, :m] if feasible.any() else Y[:, :m]
        general = {
            "X_baseline": U,
            "sampler": SobolQMCNormalSampler(torch.Size([64]), seed=seed),
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
            raw_samples=64,
            sequential=True,
            options={"maxiter": 30},
        )
        new = new[: evaluations - len(Y)]
        U, Y = torch.cat([U, new]), torch.cat([Y, evaluated(new)])


def smac(p: Asked, seed: int, evaluations: int) -> None:
    """SMAC3's facade for hyperparameters (random forest), with ParEGO for several objectives.

    It knows no limits: a design that breaks some costs the worst of all known values, and more by the sum of its
    violations.
    """
    from ConfigSpace import ConfigurationSpace, Float
    from smac import HyperparameterOptimizationFacade, Scenario
    from smac.multi_objective.parego import ParEGO
    from smac.runhistory.dataclasses import TrialInfo, TrialValue

    d, m = len(p.lower), p.objectives
    names = [f"f{j}" for j in range(m)] if m > 1 else "cost"
    space = ConfigurationSpace(seed=seed)
    space.add([Float(f"x{i:02d}", (p.lower[i], p.upper[i])) for i in range(d)])
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(
            space, objectives=names, n_trials=evaluations, deterministic=True, seed=seed, output_directory=folder
        )
        several = {"multi_objective_algorithm": ParEGO(scenario)} if m > 1 else {}
        facade = HyperparameterOptimizationFacade(
            scenario, lambda config, seed=0: 0.0, logging_level=False, overwrite=True, **several
        )
        worst, best = np.full(m, -np.inf), np.full(m, np.inf)
        costs: dict[tuple[float, ...], list[float]] = {}
        count = 0
        while count < evaluations:
            info: TrialInfo = facade.ask()
            x = tuple(float(info.config[f"x{i:02d}"]) for i in range(d))
            if x not in costs:
                F, G = p(np.array(x))
                count += 1
                worst, best = np.maximum(worst, F), np.minimum(best, F)
                violation = float(np.maximum(G, 0.0).sum()) if G else 0.0
                width = np.where(worst > best, worst - best, 1.0)
                cost = worst + width * violation / (1.0 + violation) if violation else np.array(F)
                costs[x] = cost.tolist()
            facade.tell(info, TrialValue(cost=costs[x] if m > 1 else costs[x][0]), save=False)


def pymoo(p: Asked, seed: int, evaluations: int) -> None:
    """pymoo's NSGA-II, its genetic algorithm with one objective."""
    from pymoo.algorithms.moo.nsga2 import NSGA2
    from pymoo.algorithms.soo.nonconvex.ga import GA
    from pymoo.core.problem import ElementwiseProblem
    from pymoo.optimize import minimize

    class Wrapped(ElementwiseProblem):
        def __init__(self) -> None:
            super().__init__(
                n_var=len(p.lower),
                n_obj=p.objectives,
                n_ieq_constr=p.limits,
                xl=np.array(p.lower),
                xu=np.array(p.upper),
            )

        def _evaluate(self, x, out, *args, **kwargs) -> None:
            out["F"], out["G"] = (np.array(v) for v in p(x))

    method = NSGA2(pop_size=POPULATION) if p.objectives > 1 else GA(pop_size=POPULATION)
    minimize(Wrapped(), method, ("n_eval", evaluations), seed=seed)


METHODS = {
    "optuna_tpe": optuna_sampler("tpe"),
    "optuna_gp": optuna_sampler("gp"),
    "optuna_nsga2": optuna_sampler("nsga2"),
    "botorch": botorch,
    "smac": smac,
    "pymoo": pymoo,
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    method, seed, evaluations = sys.argv[1:4]
    METHODS[method](Asked(**json.loads(sys.stdin.readline())), int(seed), int(evaluations))
