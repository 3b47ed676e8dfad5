"""IPOPT for a program: its settings, functions and derivatives, and the callback that ends it on request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from designopt.collocation.linear import library
from designopt.collocation.statement.options import Options
from designopt.collocation.statement.stated_values import ProblemError
from designopt.collocation.transcription.transcription import Transcription
from designopt.evaluation_progress import progress
from designopt.interrupts import StopRequests
from designopt.lazy import casadi as ca

#: Magnitude of a scaled variable that diverges. With IPOPT's own 1e20 many unbounded runs stall at 1e11 to 1e18 and end
#: at the iteration limit.
RUNAWAY = 1e10


class Start(NamedTuple):
    """Type of start: cold; `warm`, with multipliers; or a continuation that `finishes` a run.

    A warm start has the barrier parameter `barrier`. A continuation also multiplies the cost by `cost_factor` and ends
    at `tolerance`, with exact bounds; other starts ignore both. An `adaptive` start is cold, by IPOPT with its adaptive
    barrier (Nocedal, Wächter, Waltz, SIAM J. Optim. 19 (2009) 1674). `iterations` and `seconds` (s), which another
    solver has used from the same guess, are deducted from the limits.
    """

    warm: bool = False
    finishes: bool = False
    barrier: float = 1e-5
    cost_factor: float = 1.0
    tolerance: float = 0.0
    iterations: int = 0
    seconds: float = 0.0
    adaptive: bool = False


COLD, WARM, ADAPTIVE = Start(), Start(warm=True), Start(adaptive=True)

#: Relative initial distance from bounds of a warm run: of a new one, and of a continuation.
PUSH = {False: 1e-8, True: 1e-12}
#: Maximum iterations of a continuation, and its share of the time limit.
MOST_TO_FINISH, SHARE_TO_FINISH = 200, 0.5
#: IPOPT accepts no time limit of zero.
MIN_SECONDS = 1e-3


def ipopt(
    transcription: Transcription, nlp: Mapping[str, Any], options: Options, start: Start, *, with_callback: bool
) -> tuple[Any, Any]:
    """The solver (CasADi function) of a program with the expressions `nlp`, and its iteration callback (None unless
    `with_callback`).
    """
    # with IPOPT's own mumps_permuting_scaling MUMPS takes a hundred times as long for some programs
    settings: dict[str, Any] = {
        "print_level": 0,
        "sb": "yes",
        "tol": options.tolerance,
        "acceptable_tol": options.acceptable_tolerance,
        "mumps_permuting_scaling": 0,
        "diverging_iterates_tol": RUNAWAY,
    }
    settings |= limits(start, options)
    start_settings = _start_settings(start, options)
    settings |= library.settings(options.compile, options.ipopt)
    settings |= start_settings | {
        name: value for name, value in options.ipopt.items() if not (start.finishes and name in start_settings)
    }
    solver_options: dict[str, Any] = {"grad_f": transcription.gradient, "jac_g": transcription.jacobian}
    if options.hessian == "exact":
        solver_options["hess_lag"] = transcription.hessian
    else:
        settings["hessian_approximation"] = "limited-memory"
    watch = (
        watcher((transcription.layout.size, len(transcription.row_scale), transcription.parameter_size))
        if with_callback
        else None
    )
    if watch is not None:
        solver_options["iteration_callback"] = watch
    around: dict[str, Any] = {
        "print_time": False,
        "ipopt": settings,
        "calc_lam_p": False,
        "no_nlp_grad": True,
        "show_eval_warnings": False,
    }
    return ca.nlpsol("program", "ipopt", dict(nlp), {**around, **solver_options}), watch


def linear_solver(options: Options) -> str:
    """The name of the solver of linear systems."""
    solver_name = str(options.ipopt.get("linear_solver", "mumps"))
    return library.NAME if library.settings(options.compile, options.ipopt) else solver_name


def check_settings(settings: Mapping[str, float | int | str]) -> None:
    """Raises `ProblemError` (bad_statement) for settings that IPOPT does not have, or invalid values."""
    x: Any = ca.MX.sym("x")
    problem: dict[str, Any] = {"x": x, "f": x**2}
    for name, value in settings.items():
        quiet: dict[str, Any] = {"print_time": False, "ipopt": {"print_level": 0, "sb": "yes", name: value}}
        try:
            ca.nlpsol("settings", "ipopt", problem, quiet)
        except RuntimeError as error:
            text = f"IPOPT rejects {value!r}: see its list of options"
            raise ProblemError("bad_statement", f"ipopt.{name}", text) from error


def _start_settings(start: Start, options: Options) -> dict[str, Any]:
    """The settings of a run with an adaptive barrier, or that starts with multipliers."""
    if start.adaptive:
        return {"mu_strategy": "adaptive"}
    if not start.warm:
        return {}
    push = PUSH[start.finishes]
    settings = {
        "warm_start_init_point": "yes",
        "warm_start_bound_push": push,
        "warm_start_bound_frac": push,
        "warm_start_slack_bound_push": push,
        "warm_start_slack_bound_frac": push,
        "warm_start_mult_bound_push": push,
        "mu_init": start.barrier,
    }
    if not start.finishes:
        return settings
    return settings | {
        "tol": start.tolerance,
        "compl_inf_tol": start.tolerance,
        "obj_scaling_factor": start.cost_factor,
        "bound_relax_factor": 0.0,
        **limits(start, options),
    }


def limits(start: Start, options: Options) -> dict[str, Any]:
    """Limits of iterations and time of a run: the remainder of those of the options."""
    limit, seconds = options.max_iterations - start.iterations, options.time_limit
    run_limits = {"max_iter": min(limit, MOST_TO_FINISH) if start.finishes else max(limit, 0)}
    if seconds is None:
        return run_limits
    left = SHARE_TO_FINISH * seconds if start.finishes else max(seconds - start.seconds, MIN_SECONDS)
    return {**run_limits, "max_wall_time": left}


def watcher(sizes: tuple[int, int, int]) -> Any:
    """A callback that reports every iteration of the solver as progress, and ends the solver on request.

    `sizes` are the numbers of variables, rows and parameters. While the solver runs, its attributes `stopping` and
    `iterations` are a `StopRequests` and the number of iterations so far.
    """
    n, m, p = sizes
    counts = {"f": 1, "x": n, "lam_x": n, "g": m, "lam_g": m, "lam_p": p}

    class Watcher(ca.Callback):
        stopping: StopRequests | None = None
        iterations = 0

        def __init__(self) -> None:
            ca.Callback.__init__(self)
            self.construct("watcher", {})

        def get_n_in(self) -> int:
            return int(ca.nlpsol_n_out())

        def get_n_out(self) -> int:
            return 1

        def get_name_in(self, i: int) -> str:
            return str(ca.nlpsol_out(i))

        def get_name_out(self, i: int) -> str:
            return "stop"

        def get_sparsity_in(self, i: int) -> Any:
            return ca.Sparsity.dense(counts[ca.nlpsol_out(i)], 1)

        def has_eval_buffer(self) -> bool:
            return True

        def eval_buffer(self, arguments: Any, results: Any) -> int:
            progress(None, f"iteration {self.iterations}")
            self.iterations += 1
            stop = self.stopping is not None and self.stopping.is_requested
            memoryview(results[0]).cast("d")[0] = float(stop)
            return 0

    return Watcher()
