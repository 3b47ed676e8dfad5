"""Problems whose optimum has a singular arc, on which the control does not stand in the cost."""

from benchmark_problems import point_mass, system

from designopt.collocation import Integral, Phase, TrajectoryProblem


def damped_to_rest() -> TrajectoryProblem:
    """A block with |u| <= 1 keeps its squares small, without a cost of the force: after one switch a singular arc
    on v = -x (Aly, Int. J. Control 28 (1978) 259)."""
    slowed = Phase(
        point_mass(1.0, 1.0),
        tf=5.0,
        initial={"x": 0.0, "v": 1.0},
        integrals={"squares": Integral(lambda v: 0.5 * (v["x"] ** 2 + v["v"] ** 2))},
    )
    return TrajectoryProblem([slowed], cost=lambda e: e.integral["squares"])


def catalyst() -> TrajectoryProblem:
    """The best mixture of two catalysts: -0.0480556 (COPS, problem 14), with a singular arc between two bounds."""
    reaction = system(
        "reaction",
        {
            "a": lambda s: s["mix"] * (10.0 * s["b"] - s["a"]),
            "b": lambda s: s["mix"] * (s["a"] - 10.0 * s["b"]) - (1.0 - s["mix"]) * s["b"],
        },
        ["mix"],
        bounds={"mix": (0.0, 1.0)},
    )
    bed = Phase(reaction, tf=1.0, initial={"a": 1.0, "b": 0.0})
    return TrajectoryProblem([bed], cost=lambda e: -1.0 + e.final["a"] + e.final["b"])
