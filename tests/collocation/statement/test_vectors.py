"""Vectors of variables and tables of signals: one entry for all muscles, the same problem as with one for each."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

from designopt.collocation import (
    Constraint,
    Integral,
    Options,
    Phase,
    ProblemError,
    Program,
    Signal,
    SignalTable,
    TrajectoryProblem,
)
from designopt.dynamics import Simulator, System, Variable, Vector

MUSCLES = ("soleus", "vastus", "iliopsoas")
STRENGTH = np.array([3.0, 5.0, 2.0])
TIMES = np.linspace(0.0, 1.0, 21)
ARMS = np.column_stack([0.05 + 0.01 * np.sin(TIMES), 0.04 + 0 * TIMES, -0.03 + 0.01 * TIMES])
NEEDED = 0.05 + 0.03 * np.sin(3.0 * TIMES)

ACTIVATION = Vector("a", MUSCLES, "", 0.0, 1.0)
EXCITATION = Vector("e", MUSCLES, "", 0.0, 1.0)
ARM = Vector("arm", MUSCLES, "m")
FORCE = Vector("force", MUSCLES, "N")


def sharing():
    """Activations follow excitations with 50 ms; arms are measured."""
    a, e, arm, needed, tau = ca.SX.sym("a", 3), ca.SX.sym("e", 3), ca.SX.sym("arm", 3), ca.SX.sym("m"), ca.SX.sym("tau")
    return System.from_expressions(
        "sharing",
        states=[(ACTIVATION, a, (e - a) / tau)],
        controls=[(EXCITATION, e)],
        parameters=[(Variable("tau", "s", 0.01, 0.1), tau)],
        data=[(ARM, arm), (Variable("needed", "N m"), needed)],
        outputs=[(FORCE, STRENGTH * a), (Variable("missing", "N m"), ca.dot(arm, STRENGTH * a) - needed)],
    )


def one_by_one():
    """The same in scalars."""
    scalars = {n: ca.SX.sym(n) for n in (*ACTIVATION.names, *EXCITATION.names, *ARM.names, "needed", "tau")}
    pairs = list(zip(ACTIVATION.variables, EXCITATION.variables, strict=True))
    forces = [float(s) * scalars[n] for s, n in zip(STRENGTH, ACTIVATION.names, strict=True)]
    moment = sum(scalars[n] * f for n, f in zip(ARM.names, forces, strict=True))
    return System.from_expressions(
        "sharing",
        states=[(a, scalars[a.name], (scalars[e.name] - scalars[a.name]) / scalars["tau"]) for a, e in pairs],
        controls=[(e, scalars[e.name]) for _, e in pairs],
        parameters=[(Variable("tau", "s", 0.01, 0.1), scalars["tau"])],
        data=[
            *((v, scalars[v.name]) for v in ARM.variables), (Variable("needed", "N m"), scalars["needed"])
        ],
        outputs=[
            *((v, f) for v, f in zip(FORCE.variables, forces, strict=True)),
            (Variable("missing", "N m"), moment - scalars["needed"]),
        ],
    )  # fmt: skip


def with_vectors():
    phase = Phase(
        sharing(), tf=1.0, initial={"a": (0.0, 0.5)}, bounds={"e": (0.01, 1.0)}, guess={"a": (0.2, 0.2)},
        data={"arm": SignalTable(TIMES, ARMS, MUSCLES), "needed": Signal(TIMES, NEEDED)},
        path={
            "moment": Constraint(lambda v: v["missing"], -0.02, 0.02), "calm": Constraint(lambda v: v["a"], high=0.95),
        },
        integrals={"effort": Integral(lambda v: ca.sumsqr(v["e"]) + 0.1 * ca.sum1(v["force"]))},
    )  # fmt: skip
    balance = Constraint(lambda e: e.initial["e"] - e.initial["a"], 0.0, 0.0)
    return TrajectoryProblem([phase], lambda e: e.integral["effort"], {"balance": balance}, parameters={"tau": 0.05})


def with_scalars():
    phase = Phase(
        one_by_one(), tf=1.0,
        initial=dict.fromkeys(ACTIVATION.names, (0.0, 0.5)), bounds=dict.fromkeys(EXCITATION.names, (0.01, 1.0)),
        guess=dict.fromkeys(ACTIVATION.names, (0.2, 0.2)),
        data={
            **{n: Signal(TIMES, column) for n, column in zip(ARM.names, ARMS.T, strict=True)},
            "needed": Signal(TIMES, NEEDED),
        },
        path={
            "moment": Constraint(lambda v: v["missing"], -0.02, 0.02),
            "calm": Constraint(lambda v: ca.vertcat(*(v[n] for n in ACTIVATION.names)), high=0.95),
        },
        integrals={
            "effort": Integral(
                lambda v: sum(v[n] ** 2 for n in EXCITATION.names) + 0.1 * sum(v[n] for n in FORCE.names)
            )
        },
    )  # fmt: skip
    pairs = list(zip(EXCITATION.names, ACTIVATION.names, strict=True))
    balance = Constraint(lambda e: ca.vertcat(*(e.initial[u] - e.initial[a] for u, a in pairs)), 0.0, 0.0)
    return TrajectoryProblem([phase], lambda e: e.integral["effort"], {"balance": balance}, parameters={"tau": 0.05})


@pytest.mark.parametrize("scheme", ["radau", "hermite_simpson"])
def test_a_problem_with_vectors_is_the_one_with_a_scalar_for_each_component(scheme):
    solution, scalar_solution = (
        Program(p(), Options(scheme=scheme, intervals=10)).solve() for p in (with_vectors, with_scalars)
    )
    assert solution.success, solution.message
    assert solution.objective == pytest.approx(scalar_solution.objective, rel=1e-9)
    a = ACTIVATION.columns_of(solution.phase.values)
    assert a.shape == (len(solution.phase.times), 3)
    np.testing.assert_allclose(a, ACTIVATION.columns_of(scalar_solution.phase.values), atol=1e-7)
    np.testing.assert_allclose(EXCITATION.columns_of(solution.phase.values)[0], a[0], atol=1e-7)
    # the moment that is needed is there, to the 0.02 N m that are allowed
    arms = np.column_stack([Signal(TIMES, column).at(solution.phase.times) for column in ARMS.T])
    missing = np.einsum("nk,nk->n", arms, STRENGTH * a) - Signal(TIMES, NEEDED).at(solution.phase.times)
    assert np.abs(missing).max() < 0.02 + 1e-7


def test_a_simulation_takes_vectors_by_name():
    simulator = Simulator(sharing(), rtol=1e-9, atol=1e-11, compiled=False)
    run = simulator.run(
        {"a": [0.1, 0.2, 0.3]}, [0.0, 0.1], p={"tau": 0.05}, u={"e": 0.5}, q={"arm": ARMS[0], "needed": 0.0}
    )
    np.testing.assert_allclose(run.x[-1], 0.5 + (np.array([0.1, 0.2, 0.3]) - 0.5) * np.exp(-2.0), rtol=1e-7)
    assert [v.name for v in simulator.system.outputs] == [*FORCE.names, "missing"]
    with pytest.raises(ValueError, match=r"sharing: a has shape \(2,\), not \(3,\)"):
        simulator.run({"a": [0.1, 0.2]}, [0.0, 0.1])


def test_bounds_of_components_are_distinguished():
    phase = Phase(
        sharing(), tf=1.0, data={"arm": ARMS[0], "needed": 0.0},
        bounds={"e": {"soleus": (0.1, 0.2)}, "a": [[0.0, 0.5], [0.1, 0.6], [0.2, 0.7]]},
        initial={"a": np.array([0.3, 0.4, 0.5]), "a_vastus": 0.45}, final={"e": 0.1},
    )  # fmt: skip
    assert phase.bounds["e_soleus"] == (0.1, 0.2)
    assert "e_vastus" not in phase.bounds
    assert phase.bounds["a_iliopsoas"] == (0.2, 0.7)
    assert phase.initial == {"a_soleus": 0.3, "a_vastus": 0.45, "a_iliopsoas": 0.5}
    assert phase.final == dict.fromkeys(EXCITATION.names, 0.1)
    assert phase.data["arm_iliopsoas"] == ARMS[0, 2]


def test_a_table_of_signals_gives_data_entries_their_columns():
    table = SignalTable(TIMES, np.column_stack([NEEDED, ARMS]), ("needed", *ARM.names))
    phase = replace(with_vectors().phases[0], data={"measured": table})
    assert set(phase.data) == {"needed", *ARM.names}
    np.testing.assert_allclose(phase.data["arm_vastus"].at([0.33]), Signal(TIMES, ARMS[:, 1]).at([0.33]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bounds": {"e": np.ones((2, 2))}}, r"bounds: e has 3 components, but is given an array of shape \(2, 2"),
        ({"initial": {"a": {"gluteus": 0.1}}}, "motion: initial: a has no component 'gluteus'; it has soleus, vastus"),
        ({"data": {"arm": SignalTable(TIMES, ARMS[:, :2], MUSCLES[:2])}}, "table of signals has no 'iliopsoas'"),
    ],
)  # fmt: skip
def test_mismatches_of_a_vector_are_reported(changes, message):
    with pytest.raises(ProblemError, match=message):
        replace(with_vectors().phases[0], **changes)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SignalTable(TIMES, ARMS.T, MUSCLES), r"have shape \(3, 21\), not \(21, 3\)"),
        (lambda: SignalTable(TIMES, ARMS, ("a", "b", "a")), "names 'a' more than once"),
        (lambda: SignalTable(TIMES, np.where(ARMS > 0.055, np.nan, ARMS), MUSCLES), "a number in 'soleus' that is not"),
        (lambda: Vector("v", (), ""), "vector 'v' has no components"),
        (lambda: Vector("v", ("left knee",), ""), "'v_left knee' is not a valid name"),
    ],
)
def test_invalid_tables_and_vectors_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_columns_of_another_size_and_two_vectors_of_one_name_are_refused():
    x = ca.SX.sym("x", 2)
    with pytest.raises(ValueError, match="system 's': vector 'a' is 2 x 1, not a column of 3"):
        System.from_expressions("s", states=[(ACTIVATION, x, x)])
    y = ca.SX.sym("y", 3)
    with pytest.raises(ValueError, match="system 's': there are two vectors 'a'"):
        System.from_expressions("s", states=[(ACTIVATION, y, y)], outputs=[(ACTIVATION, y)])
