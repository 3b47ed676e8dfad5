"""IPOPT, set up for a program: its settings, and the functions and derivatives that are handed to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from designopt.collocation.solve.interrupt import watcher
from designopt.collocation.statement.options import Options
from designopt.collocation.transcription.transcription import Transcription
from designopt.lazy import casadi as ca

#: A warm start with multipliers begins so close to bounds and so deep in the barrier.
WARM = {
    "warm_start_init_point": "yes",
    "warm_start_bound_push": 1e-8,
    "warm_start_bound_frac": 1e-8,
    "warm_start_slack_bound_push": 1e-8,
    "warm_start_slack_bound_frac": 1e-8,
    "warm_start_mult_bound_push": 1e-8,
    "mu_init": 1e-5,
}

#: A scaled variable that grows beyond this runs away. With IPOPT's own 1e20 many a search without a bound makes no
#: more progress at 1e11 to 1e18 and ends at the limit of iterations.
RUNAWAY = 1e10


def ipopt(
    made: Transcription, nlp: Mapping[str, Any], options: Options, *, warm: bool, watched: bool
) -> tuple[Any, Any]:
    """The solver (CasADi function) of a program with the expressions `nlp`, and what watches its iterations.

    With `warm` it starts from multipliers too; without `watched` there is nothing to watch it (None).
    """
    # with IPOPT's own mumps_permuting_scaling MUMPS takes a hundred times as long for the differential form
    settings: dict[str, Any] = {
        "print_level": 0,
        "sb": "yes",
        "tol": options.tolerance,
        "acceptable_tol": options.acceptable_tolerance,
        "max_iter": options.max_iterations,
        "mumps_permuting_scaling": 0,
        "diverging_iterates_tol": RUNAWAY,
        **(WARM if warm else {}),
    }
    if options.time_limit is not None:
        settings["max_wall_time"] = options.time_limit
    given: dict[str, Any] = {"grad_f": made.gradient, "jac_g": made.jacobian}
    if options.hessian == "exact":
        given["hess_lag"] = made.hessian
    else:
        settings["hessian_approximation"] = "limited-memory"
    watch = watcher((made.layout.size, len(made.row_scale), made.parameter_size)) if watched else None
    if watch is not None:
        given["iteration_callback"] = watch
    around: dict[str, Any] = {
        "print_time": False,
        "ipopt": settings,
        "calc_lam_p": False,
        "no_nlp_grad": True,
        "show_eval_warnings": False,
    }
    return ca.nlpsol("program", "ipopt", dict(nlp), {**around, **given}), watch
