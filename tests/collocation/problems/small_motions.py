"""Small motions that end as they are meant to, and how they are solved."""

from dataclasses import replace

import benchmark_problems as problems
import casadi as ca

from designopt.collocation import Integral, Options, Phase, Program, TrajectoryProblem


def block(**changes):
    problem = problems.block_move()
    return replace(problem, phases=[replace(problem.phases[0], **changes)])


def motion(rate, *, final=1.0, initial=0.0, duration=1.0, cost=lambda v: v["u"] ** 2, **more):
    """One state with `rate`, from `initial` to `final` with the least `cost`."""
    return TrajectoryProblem(
        [
            Phase(
                problems.system("body", {"x": rate}, ["u"]),
                tf=duration,
                initial={"x": initial},
                final={} if final is None else {"x": final},
                integrals={"cost": Integral(cost)},
                **more,
            )
        ],
        cost=lambda e: e.integral["cost"],
    )


def unending():
    """A rate that jumps back in the middle of the way: the search goes to and fro, for 4000 iterations and more."""
    return motion(lambda s: ca.if_else(s["x"] > 0.5, -1.0, 1.0) + 0.1 * s["u"], duration=2.0, bounds={"u": (-1.0, 1.0)})


def solve(problem, guess=None, **options):
    return Program(problem, Options(**options), guess).solve(guess=guess)
