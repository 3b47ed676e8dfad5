"""A published problem by dymos: ``python dymos_problem.py FILE N SECONDS``. Gauss-Lobatto of order 3, a component with
CasADi's values and partial derivatives of the equations at all nodes, the total Jacobian coloured.

With IPOPT and L-BFGS: by pyOptSparse where that is installed (it is not on the Python package index), else by a driver
of a few lines around cyipopt that asks OpenMDAO for the same values and total derivatives.
"""

import signal

import casadi
import cyipopt
import dymos
import numpy as np
import openmdao.api as om
from openmdao.core.driver import Driver
from problem_file import answered, arguments

try:
    import pyoptsparse
except ImportError:
    pyoptsparse = None

published, intervals, limit = arguments()
COST = "cost_so_far"
OBJECTIVE = {"duration": "time", "integral": COST, "final": "final_cost"}[published.cost]
PATHS = [f"path_{k}" for k in range(published.paths)]
SETTINGS = {"print_level": 0, "sb": "yes", "tol": 1e-8, "max_iter": 3000}


class Ipopt(Driver):
    """Values and total derivatives of the model for cyipopt."""

    def __init__(self):
        super().__init__()
        self.supports._read_only = False
        for what in ("optimization", "equality_constraints", "inequality_constraints", "linear_constraints"):
            self.supports[what] = True

    def run(self):
        model = self._problem().model
        names, rows = list(self._designvars), list(self._cons)
        [cost] = self._objs
        first = self.get_design_var_values()
        self._get_coloring(run_model=True)
        cache = {}

        def at(x):
            if "x" not in cache or not np.array_equal(cache["x"], x):
                self._vectors["design_var"].set_data(x, driver_scaling=True)
                self._set_design_vars(driver_scaling=True)
                model.run_solve_nonlinear()
                cache.clear()
                cache["x"] = x.copy()

        def totals(x):
            at(x)
            if "J" not in cache:
                cache["J"] = np.array(self._compute_totals(of=[cost, *rows], wrt=names, return_format="array"))
            return cache["J"]

        class Callbacks:
            def objective(self, x):
                at(x)
                return float(driver.get_objective_values()[cost][0])

            def gradient(self, x):
                return totals(x)[0]

            def constraints(self, x):
                at(x)
                values = driver.get_constraint_values()
                return np.concatenate([values[n].ravel() for n in rows]) if rows else np.empty(0)

            def jacobian(self, x):
                return totals(x)[1:].ravel()

        driver = self
        boxes = [self._limits(self._designvars[n], first[n].size) for n in names]
        sides = [self._limits(self._cons[n], self.get_constraint_values()[n].size) for n in rows]
        low, high = (np.concatenate([box[k] for box in boxes]) for k in (0, 1))
        below, above = (np.concatenate([side[k] for side in sides] or [np.empty(0)]) for k in (0, 1))
        program = cyipopt.Problem(len(low), len(below), Callbacks(), low, high, below, above)
        for name, value in {**SETTINGS, "max_cpu_time": limit, "hessian_approximation": "limited-memory"}.items():
            program.add_option(name, value)
        x, info = program.solve(np.clip(np.concatenate([first[n].ravel() for n in names]), low, high))
        at(x)
        self.result.success = info["status"] in (0, 1)
        return not self.result.success

    @staticmethod
    def _limits(meta, size):
        if meta.get("equals") is not None:
            return (np.broadcast_to(meta["equals"], size),) * 2
        return tuple(np.broadcast_to(np.clip(meta[side], -2e19, 2e19), size) for side in ("lower", "upper"))


class Dynamics(om.ExplicitComponent):
    """Rates of the states, the integrand and the final part of the cost, and path constraints, at all nodes."""

    def initialize(self):
        self.options.declare("num_nodes", types=int)

    def setup(self):
        count = self.options["num_nodes"]
        tables = (published.states, published.controls, published.parameters, ["time"])
        symbols = [casadi.SX.sym("s", len(table)) for table in tables]
        functions = (published.rates, published.integrand, published.final_cost, published.path)
        results = casadi.vertcat(*(f(*symbols) for f in functions))
        J = casadi.jacobian(results, casadi.vertcat(*symbols))
        self.of_tables = tables
        self.of_names = [name for table in tables for name in table]
        self.of_outputs = [*(f"rate_{n}" for n in published.states), "integrand", "final_cost", *PATHS]
        self.all_values = casadi.Function("f", symbols, [casadi.densify(results)]).map(count)
        self.all_partials = casadi.Function("J", symbols, [casadi.vec(casadi.densify(J))]).map(count)
        rows, columns = J.sparsity().row(), J.sparsity().get_col()
        self.all_pairs = sorted({(r, c) for r, c in zip(rows, columns, strict=True)})
        for name in self.of_names:
            self.add_input(name, np.zeros(count))  # parameters too: dymos gives each node a copy
        for name in self.of_outputs:
            self.add_output(name, np.zeros(count))
        nodes = np.arange(count)
        for r, c in self.all_pairs:
            self.declare_partials(self.of_outputs[r], self.of_names[c], rows=nodes, cols=nodes)

    def columns(self, inputs):
        count = self.options["num_nodes"]
        return (np.array([inputs[n] for n in names]).reshape(len(names), count) for names in self.of_tables)

    def compute(self, inputs, outputs):
        values = np.asarray(self.all_values(*self.columns(inputs)), float)
        for name, row in zip(self.of_outputs, values, strict=True):
            outputs[name] = row

    def compute_partials(self, inputs, partials):
        J = np.asarray(self.all_partials(*self.columns(inputs)), float)
        J = J.reshape(len(self.of_names), len(self.of_outputs), -1)  # columns first
        for r, c in self.all_pairs:
            partials[self.of_outputs[r], self.of_names[c]] = J[c, r]


def build():
    built = om.Problem(reports=False)
    if pyoptsparse:
        built.driver = om.pyOptSparseDriver(optimizer="IPOPT", print_results=False)
        built.driver.opt_settings.update(SETTINGS)
    else:
        built.driver = Ipopt()
    built.driver.declare_coloring(show_summary=False)
    phase = dymos.Phase(
        ode_class=Dynamics, transcription=dymos.GaussLobatto(num_segments=intervals, order=3, compressed=True)
    )
    trajectory = built.model.add_subsystem("trajectory", dymos.Trajectory())
    trajectory.add_phase("phase", phase)
    if published.fixed_tf is None:
        phase.set_time_options(fix_initial=True, duration_bounds=tuple(published.tf), targets=["time"])
    else:
        phase.set_time_options(fix_initial=True, fix_duration=True, targets=["time"])
    for name in published.states:
        low, high = (None if not np.isfinite(end) else end for end in published.box(name))
        ends = {"fix_initial": name in published.initial, "fix_final": name in published.final}
        phase.add_state(name, rate_source=f"rate_{name}", targets=[name], lower=low, upper=high, **ends)
    if published.cost == "integral":
        phase.add_state(COST, rate_source="integrand", fix_initial=True)
    for name in published.controls:
        low, high = (None if not np.isfinite(end) else end for end in published.box(name))
        phase.add_control(name, targets=[name], lower=low, upper=high, continuity=True, rate_continuity=False)
    for name in published.parameters:
        low, high = published.box(name)
        phase.add_parameter(name, opt=True, lower=low, upper=high, targets=[name], static_target=False)
    for name in PATHS:
        phase.add_path_constraint(name, lower=0.0)
    phase.add_objective(OBJECTIVE, loc="final")
    built.setup(check=False)
    return built, phase


def solve(transcription, guess):
    built, phase = transcription
    signal.signal(signal.SIGPROF, out_of_time)
    signal.setitimer(signal.ITIMER_PROF, limit)  # seconds of the processor
    try:
        return solved(built, phase, guess)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


def out_of_time(*_):
    raise TimeoutError(f"more than {limit:g} s")


def solved(built, phase, guess):
    fractions = np.linspace(0.0, 1.0, intervals + 1)
    values = published.at(guess, fractions)
    phase.set_time_val(0.0, guess["tf"])
    times = guess["tf"] * fractions
    for name in published.states:
        phase.set_state_val(name, values[name], time_vals=times)
    for name in published.controls:
        phase.set_control_val(name, values[name], time_vals=times)
    for name in published.parameters:
        phase.set_parameter_val(name, guess["parameters"][name])
    if published.cost == "integral":
        phase.set_state_val(COST, [0.0, 0.0])
    built.run_driver()
    if not built.driver.result.success:
        return None
    return float(built.get_val(f"trajectory.phase.timeseries.{OBJECTIVE}")[-1, 0])


answered(published, build, solve)
