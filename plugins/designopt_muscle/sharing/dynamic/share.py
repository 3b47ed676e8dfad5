"""Share the moments of a motion with activation and tendon dynamics, over all its frames at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from designopt.collocation import Guess, Options, Program
from designopt.collocation.statement.given import Box
from designopt.collocation.statement.scheme import SchemeName
from designopt_muscle.sharing.dynamic.equations import DynamicTrial
from designopt_muscle.sharing.dynamic.first import guess_of, static_sharing
from designopt_muscle.sharing.dynamic.problem import first_values, mesh_of, problem
from designopt_muscle.sharing.dynamic.sharing import DynamicSharing, read


def share_dynamic(
    trial: DynamicTrial,
    parameters: Mapping[str, Box] | None = None,
    *,
    scheme: SchemeName = "hermite_simpson",
    tolerance: float = 1e-8,
    iterations: int = 500,
) -> DynamicSharing:
    """Excitations, activations and tendon forces that balance the moments of `trial` at the least cost.

    The frames of the trial are the points of a mesh of equal intervals: with `hermite_simpson` mesh points and the
    midpoints between them, in turn. `parameters` have numbers, or ranges from which they are chosen together with the
    motion; those of the trial's device and factors are neutral otherwise. The search begins at the static solution,
    which is kept: it is what is left where there is no dynamic one.

    Raises `ValueError` for frames that are no such mesh and parameters that are not there.
    """
    return share_trials([trial], parameters, scheme=scheme, tolerance=tolerance, iterations=iterations)[0]


def share_trials(
    trials: Sequence[DynamicTrial],
    parameters: Mapping[str, Box] | None = None,
    *,
    scheme: SchemeName = "hermite_simpson",
    tolerance: float = 1e-8,
    iterations: int = 500,
) -> tuple[DynamicSharing, ...]:
    """`share_dynamic` for several trials in one program: they have the parameters in common, and their costs add up.

    With ranges for factors and signals to track this is a calibration. The objective of each result is its own part.
    """
    meshes = [mesh_of(scheme, trial.balance.time) for trial in trials]
    stated = problem(trials, parameters)
    values = first_values(stated)
    statics = [static_sharing(trial, values) for trial in trials]
    names = [phase.name for phase in stated.phases]
    each = list(zip(names, trials, statics, strict=True))
    first = Guess({name: guess_of(trial, static, values) for name, trial, static in each})
    options = Options(scheme=scheme, tolerance=tolerance, max_iterations=iterations, check=False)
    program = Program(stated, options, first, meshes=meshes)
    solution = program.solve(guess=first)
    return tuple(read(trial, program, solution, static, name) for name, trial, static in each)
