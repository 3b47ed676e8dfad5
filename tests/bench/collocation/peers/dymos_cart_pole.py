"""The cart-pole by dymos with IPOPT: ``python dymos_cart_pole.py N REPEATS [VARIANT]``.

The dynamics are an OpenMDAO component with analytic sparse partial derivatives, the total Jacobian is coloured (in the
first solve), the cost is a state as is dymos' way. pyOptSparse hands IPOPT no Hessian, so it is approximated by L-BFGS.
Variants: Gauss-Lobatto of order 3 (Hermite-Simpson) with the control's rate continuous, dymos' default and here the
fastest; the same with a free control; Radau of order 3.
"""

import time
from importlib.metadata import version

import cyipopt  # noqa: F401  (that its absence is named: OpenMDAO would say it in other words, and too late)
import dymos
import numpy as np
import openmdao.api as om
import pyoptsparse  # noqa: F401
from cart_pole import (
    CART_MASS,
    DURATION,
    END,
    FORCE_LIMIT,
    GRAVITY,
    GUESS,
    LENGTH,
    POLE_MASS,
    START,
    TRACK_LIMIT,
    accelerations,
)
from report import answer, arguments, measured

SCHEMES = {
    "gauss_lobatto": lambda n: dymos.GaussLobatto(num_segments=n, order=3, compressed=True),
    "gauss_lobatto_free": lambda n: dymos.GaussLobatto(num_segments=n, order=3, compressed=True),
    "radau": lambda n: dymos.Radau(num_segments=n, order=3, compressed=True),
}
ORDERS = {"gauss_lobatto": 4, "gauss_lobatto_free": 4, "radau": 5}
SETTINGS = {"print_level": 0, "sb": "yes", "tol": 1e-8, "max_iter": 2000}
INPUTS = {"q2": "rad", "v2": "rad/s", "u": "N"}
OUTPUTS = {"a1": "m/s**2", "a2": "rad/s**2", "power": "N**2"}
STATES = {"q1": ("m", "v1"), "q2": ("rad", "v2"), "v1": ("m/s", "a1"), "v2": ("rad/s", "a2")}


class Dynamics(om.ExplicitComponent):
    """Accelerations and the integrand of the cost at all nodes."""

    def initialize(self):
        self.options.declare("num_nodes", types=int)

    def setup(self):
        count = self.options["num_nodes"]
        for name, units in INPUTS.items():
            self.add_input(name, np.zeros(count), units=units)
        for name, units in OUTPUTS.items():
            self.add_output(name, np.zeros(count), units=units)
        nodes = np.arange(count)
        for output in ("a1", "a2"):
            for name in INPUTS:
                self.declare_partials(output, name, rows=nodes, cols=nodes)
        self.declare_partials("power", "u", rows=nodes, cols=nodes)

    def compute(self, inputs, outputs):
        outputs["a1"], outputs["a2"] = accelerations(inputs["q2"], inputs["v2"], inputs["u"], np.sin, np.cos)
        outputs["power"] = inputs["u"] ** 2

    def compute_partials(self, inputs, partials):
        u, v = inputs["u"], inputs["v2"]
        s, c = np.sin(inputs["q2"]), np.cos(inputs["q2"])
        a1, a2 = accelerations(inputs["q2"], v, u, np.sin, np.cos)
        inertia = CART_MASS + POLE_MASS * s**2
        slope, total = 2.0 * POLE_MASS * s * c, CART_MASS + POLE_MASS
        torque = LENGTH * POLE_MASS * (c**2 - s**2) * v**2 - u * s + total * GRAVITY * c
        push = LENGTH * POLE_MASS * c * v**2 + POLE_MASS * GRAVITY * (c**2 - s**2)
        partials["a1", "q2"] = (push - a1 * slope) / inertia
        partials["a1", "v2"] = 2.0 * LENGTH * POLE_MASS * s * v / inertia
        partials["a1", "u"] = 1.0 / inertia
        partials["a2", "q2"] = (-torque / LENGTH - a2 * slope) / inertia
        partials["a2", "v2"] = -2.0 * POLE_MASS * c * s * v / inertia
        partials["a2", "u"] = -c / (LENGTH * inertia)
        partials["power", "u"] = 2.0 * u


def problem(intervals: int, variant: str) -> tuple[om.Problem, dymos.Phase]:
    built = om.Problem(reports=False)
    built.driver = om.pyOptSparseDriver(optimizer="IPOPT", print_results=False)
    built.driver.opt_settings.update(SETTINGS)
    built.driver.declare_coloring(show_summary=False)
    phase = dymos.Phase(ode_class=Dynamics, transcription=SCHEMES[variant](intervals))
    trajectory = built.model.add_subsystem("trajectory", dymos.Trajectory())
    trajectory.add_phase("phase", phase)
    phase.set_time_options(fix_initial=True, fix_duration=True, units="s")
    for name, (units, rate) in STATES.items():
        options = {"targets": [name]} if name in INPUTS else {}
        if name == "q1":
            options = {"lower": -TRACK_LIMIT, "upper": TRACK_LIMIT}
        phase.add_state(name, units=units, shape=(1,), rate_source=rate, fix_initial=True, fix_final=True, **options)
    phase.add_state("cost", units="N**2*s", shape=(1,), rate_source="power", fix_initial=True)
    phase.add_control(
        "u", units="N", shape=(1,), targets=["u"], lower=-FORCE_LIMIT, upper=FORCE_LIMIT,
        continuity=True, rate_continuity=variant != "gauss_lobatto_free",
    )  # fmt: skip
    phase.add_objective("cost", loc="final")
    built.setup(check=False)
    phase.set_time_val(0.0, DURATION)
    guess(phase)
    built.final_setup()
    return built, phase


def guess(phase: dymos.Phase) -> None:
    for name in STATES:
        phase.set_state_val(name, [START[name], END[name]])
    phase.set_state_val("cost", [0.0, 0.0])
    phase.set_control_val("u", [0.0, 0.0])


if __name__ == "__main__":
    intervals, repeats, variant = arguments(tuple(SCHEMES))
    began = time.perf_counter()
    built, phase = problem(intervals, variant)
    build = time.perf_counter() - began

    def solve() -> None:
        guess(phase)
        built.run_driver()

    seconds = measured(solve, repeats)
    answer(
        peer="dymos",
        version=f"{version('dymos')} (OpenMDAO {version('openmdao')}, pyOptSparse {version('pyoptsparse')})",
        variant=variant,
        scheme="nodes of the segments; cost as a state; coloured in the first solve",
        order=ORDERS[variant],
        intervals=intervals,
        guess=GUESS,
        solver="IPOPT, L-BFGS",
        tolerance=SETTINGS["tol"],
        success=bool(built.driver.result.success),
        objective=float(built.get_val("trajectory.phase.timeseries.cost")[-1, 0]),
        iterations=int(built.driver.pyopt_solution.userSensCalls) - 1,
        build_seconds=build,
        **seconds,
    )
