"""The cart-pole by OpenSim Moco: ``python moco_cart_pole.py N REPEATS [VARIANT]``.

The model is a cart on a slider and a point mass on a massless rod of 0.5 m on a pin, so its equations are Kelly's; the
scheme is Hermite-Simpson with a linear control, Moco's default. Moco differentiates the model by finite differences
and IPOPT approximates the Hessian by L-BFGS, its default too; with the exact Hessian, by differences again, N = 50 was
not done after nine minutes. Moco transcribes again in every solve. Variants: forward differences and a tolerance of
1e-4, the fastest setting that reaches the optimum of the mesh to seven digits; Moco's own settings (central
differences, IPOPT's tolerance 1e-8). Both on one thread.
"""

import time
from importlib.metadata import version

import opensim
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
)
from report import answer, arguments, measured

SETTINGS = {"forward": ("forward", 1e-4), "default": ("central", 1e-8)}
STATES = {
    "q1": "/jointset/slider/q1/value",
    "q2": "/jointset/pin/q2/value",
    "v1": "/jointset/slider/q1/speed",
    "v2": "/jointset/pin/q2/speed",
}
#: Moco needs bounds on every state; these are far from the motion (angles to 3.2 rad, rates to 8.2 rad/s).
WIDE = 100.0


def model() -> opensim.Model:
    built = opensim.Model()
    built.setName("cart_pole")
    built.set_gravity(opensim.Vec3(0.0, -GRAVITY, 0.0))
    nothing, origin = opensim.Inertia(0.0), opensim.Vec3(0.0)
    cart = opensim.Body("cart", CART_MASS, origin, nothing)
    pole = opensim.Body("pole", POLE_MASS, origin, nothing)
    slider = opensim.SliderJoint("slider", built.getGround(), cart)
    pin = opensim.PinJoint("pin", cart, origin, origin, pole, opensim.Vec3(0.0, LENGTH, 0.0), origin)
    slider.updCoordinate(0).setName("q1")
    pin.updCoordinate(0).setName("q2")
    force = opensim.CoordinateActuator("q1")
    force.setName("u")
    force.setOptimalForce(1.0)
    force.setMinControl(-FORCE_LIMIT)
    force.setMaxControl(FORCE_LIMIT)
    for body in (cart, pole):
        built.addBody(body)
    for joint in (slider, pin):
        built.addJoint(joint)
    built.addForce(force)
    built.finalizeConnections()
    return built


def study(intervals: int, variant: str) -> opensim.MocoStudy:
    built = opensim.MocoStudy()
    problem = built.updProblem()
    problem.setModel(model())
    problem.setTimeBounds(0.0, DURATION)
    for name, path in STATES.items():
        limit = TRACK_LIMIT if name == "q1" else WIDE
        problem.setStateInfo(
            path,
            opensim.MocoBounds(-limit, limit),
            opensim.MocoInitialBounds(START[name]),
            opensim.MocoFinalBounds(END[name]),
        )
    problem.setControlInfo("/forceset/u", opensim.MocoBounds(-FORCE_LIMIT, FORCE_LIMIT))
    problem.addGoal(opensim.MocoControlGoal("effort"))
    differences, tolerance = SETTINGS[variant]
    solver = built.initCasADiSolver()
    solver.set_num_mesh_intervals(intervals)
    solver.set_transcription_scheme("hermite-simpson")
    solver.set_optim_hessian_approximation("limited-memory")
    solver.set_optim_finite_difference_scheme(differences)
    solver.set_optim_convergence_tolerance(tolerance)
    solver.set_optim_constraint_tolerance(tolerance)
    solver.set_parallel(0)
    solver.set_verbosity(0)
    guess = solver.createGuess("bounds")
    last = guess.getNumTimes() - 1
    for name, path in STATES.items():
        values = opensim.Vector(last + 1, 0.0)
        for k in range(last + 1):
            values.set(k, START[name] + (END[name] - START[name]) * k / last)
        guess.setState(path, values)
    guess.setControl("/forceset/u", opensim.Vector(last + 1, 0.0))
    solver.setGuess(guess)
    return built


if __name__ == "__main__":
    intervals, repeats, variant = arguments(tuple(SETTINGS))
    opensim.Logger.setLevelString("error")
    began = time.perf_counter()
    built = study(intervals, variant)
    build = time.perf_counter() - began
    solutions = []
    seconds = measured(lambda: solutions.append(built.solve()), repeats)
    last = solutions[-1]
    success = last.success()
    if not success:
        last.unseal()
    answer(
        peer="moco",
        version=version("opensim"),
        variant=variant,
        scheme=f"Hermite-Simpson, control linear in the interval; {SETTINGS[variant][0]} differences",
        order=4,
        intervals=intervals,
        guess=GUESS,
        solver="IPOPT, L-BFGS",
        tolerance=SETTINGS[variant][1],
        success=success,
        objective=float(last.getObjective()),
        iterations=int(last.getNumIterations()),
        build_seconds=build,
        **seconds,
    )
