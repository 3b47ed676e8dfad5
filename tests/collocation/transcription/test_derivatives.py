"""The program's functions equal those of a second program that plain loops write out, and finite differences."""

import math
from dataclasses import replace

import benchmark_problems as problems
import casadi as ca
import numpy as np
import pytest
from scipy.sparse import coo_array

from designopt.collocation import Constraint, Integral, Mesh, Phase, Signal, TrajectoryProblem
from designopt.collocation.statement.mesh import hermite_simpson, radau, trapezoidal
from designopt.collocation.transcription.boxes import boxes
from designopt.collocation.transcription.functions.functions import PerPoint, SideBySide, map_side_by_side, state
from designopt.collocation.transcription.layout import layout
from designopt.collocation.transcription.transcription import constant_matrix, transcribe
from designopt.dynamics.system import System, Variable

NODES = np.array([0.0, 0.15, 0.4, 0.75, 1.0])

MESHES = {
    "trapezoidal": Mesh.at(trapezoidal(), NODES),
    "hermite_simpson": Mesh.at(hermite_simpson(), NODES),
    "hermite_simpson linear": Mesh.at(hermite_simpson(linear_midpoint=True), NODES),
    "radau 1": Mesh.at(radau(1), NODES),
    "radau 4": Mesh.at(radau(4), NODES),
    "radau 3": Mesh.at(radau(3), NODES),
    "radau of two degrees": Mesh(NODES, (radau(2), radau(4), radau(4), radau(2))),
}


def mechanism():
    """Two coordinates with a full mass matrix, an algebraic variable, two parameters, two data entries, and time."""
    names = "x angle v omega a alpha u z k c g push t"
    x, angle, v, omega, a, alpha, u, z, k, c, g, push, t = (ca.SX.sym(n) for n in names.split())
    first = (2.0 + ca.cos(angle)) * a + alpha - u * push + z + 0.1 * ca.sin(t) * v
    second = a + (3.0 + k * x**2) * alpha + g * ca.sin(angle) + c * omega
    return System.from_expressions(
        "mechanism",
        states=[
            (Variable("x", "m"), x, v),
            (Variable("angle", "rad", -3.0, 3.0), angle, omega),
            (Variable("v", "m/s"), v, a),
            (Variable("omega", "rad/s"), omega, alpha),
        ],
        controls=[(Variable("u", "N"), u)],
        algebraic=[(Variable("z", "N"), z, z + 0.1 * z**3 - k * x * ca.cos(angle))],
        parameters=[(Variable("k", "N/m", 0.5, 4.0), k), (Variable("c", "N s", 0.1, 2.0), c)],
        data=[(Variable("g", "m/s^2"), g), (Variable("push", ""), push)],
        unknowns=[(Variable("a", "m/s^2"), a, first), (Variable("alpha", "rad/s^2"), alpha, second)],
        outputs=[(Variable("tip", "m"), x + ca.sin(angle))],
        time=t,
    )


PUSH = {"g": 9.81, "push": Signal(np.linspace(0.0, 1.0, 6), np.array([1.0, 1.3, 0.8, 1.1, 1.6, 0.9]), of_duration=True)}
PATH = {
    "reach": Constraint(lambda v: ca.vertcat(v["x"] ** 2 + v["k"] * v["u"], v["tip"] * v["z"]), -1.0, 8.0),
    "clock": Constraint(lambda v: v.time * v["angle"] + v["push"], -9.0, 9.0),
}
KEPT = Integral(lambda v: v["u"] ** 2 * v["k"] + v.time * v["x"], -1.0, 30.0)  # has limits
DIRECT = Integral(lambda v: v["x"] ** 2 + v["angle"] * v["u"] + v["c"] * v["z"] ** 2)  # stands in the cost, times 3
SQUARED = Integral(lambda v: v["v"] ** 2 + v["push"] * v["omega"] ** 2)  # stands in the cost, but not linearly


def one_phase(t0, tf):
    """A problem that uses everything one phase can have."""
    phase = Phase(
        mechanism(), t0=t0, tf=tf, initial={"x": 0.1}, path=PATH, data=PUSH,
        integrals={"kept": KEPT, "direct": DIRECT, "squared": SQUARED},
    )  # fmt: skip
    return TrajectoryProblem(
        [phase],
        cost=lambda e: 3.0 * e.integral["direct"] + e.integral["squared"] ** 2 + e["k"] * e.final["x"] ** 2 * e.tf,
        constraints={
            "ends": Constraint(lambda e: e.final["x"] * e.initial["v"] - e["c"] * e.duration * e.data["g"], -9.0, 9.0),
            "two": Constraint(lambda e: ca.vertcat(e.integral["kept"] * e["k"], e.final["omega"] ** 3), -9.0, 9.0),
            "held": Constraint(
                lambda e: ca.vertcat(e.initial["u"] * e.final["z"], e.initial["z"] ** 2 - e["c"] * e.final["u"]),
                -9.0,
                9.0,
            ),
        },
    )


def two_phases(t0, tf):
    """Two phases that share a time and the parameters and are joined at their ends."""
    system = mechanism()
    phases = [
        Phase(system, name="first", t0=t0, tf=(0.5, 1.5), data=PUSH, path=PATH, integrals={"direct": DIRECT}),
        Phase(system, name="second", t0=None, tf=tf, data=PUSH, integrals={"kept": KEPT, "direct": DIRECT}),
    ]

    def cost(e):
        first, second = e.phase["first"], e.phase["second"]
        return 3.0 * first.integral["direct"] + 3.0 * second.integral["direct"] + e["k"] * second.duration * first.tf

    def joined(e):
        first, second = e.phase["first"], e.phase["second"]
        same = [second.initial[n] - e["k"] * first.final[n] for n in (*first.final, "u")]
        return ca.vertcat(*same, first.tf * second.integral["kept"])

    return TrajectoryProblem(phases, cost, {"joined": Constraint(joined, 0.0, 0.0)})


PROBLEMS = {
    "fixed times": lambda: one_phase(0.3, 2.0),
    "free end": lambda: one_phase(0.3, (1.0, 3.0)),
    "free start": lambda: one_phase((0.0, 0.5), 2.0),
    "free times": lambda: one_phase((0.0, 0.5), (1.0, 3.0)),
    "linked phases": lambda: two_phases((0.0, 0.2), (1.6, 3.0)),
    "linked phases with a fixed end": lambda: two_phases(0.0, 3.0),
}


class Case:
    """A program at a random point: `transcription`, scaled `x`, numbers `p`, multipliers."""

    def __init__(self, problem, mesh, *, residual):
        statement = state(problem, residual=residual)
        self.problem, self.problem_functions = problem, statement
        self.meshes = statement.meshes([mesh] * len(problem.phases))
        self.layout = layout(problem, statement.points, self.meshes, statement.integral_variables)
        rng = np.random.default_rng(7)
        n = self.layout.size
        self.scale, self.shift = rng.uniform(0.5, 2.0, n), rng.uniform(-0.3, 0.3, n)
        self.transcription = transcribe(statement, self.meshes, self.scale, self.shift, 0.7, self.layout)
        self.p = boxes(statement, problem, self.layout, self.transcription.blocks).parameters
        real = rng.uniform(0.2, 0.9, n)
        for indices in self.layout.phases:
            for name, index in indices.times.items():
                real[index] = {"t0": 0.15, "tf": 1.1}[name]
        if len(problem.phases) == 2 and "tf" in self.layout.phases[1].times:
            real[self.layout.phases[1].times["tf"]] = 2.3
        self.x = (real - self.shift) / self.scale
        self.lam = rng.uniform(-1.0, 1.0, len(self.transcription.row_scale))


@pytest.fixture(scope="module")
def cases():
    cache = {}

    def case(problem, mesh, form):
        key = problem, mesh, form
        if key not in cache:
            cache[key] = Case(PROBLEMS[problem](), MESHES[mesh], residual=form == "residual")
        return cache[key]

    return case


#: All schemes on the two problems that have everything; the others differ from them in their times alone.
COMBINATIONS = [
    (problem, mesh, form)
    for problem in PROBLEMS
    for mesh in MESHES
    for form in ("explicit", "residual")
    if problem in ("free times", "linked phases") or mesh == "hermite_simpson"
]
every_combination = pytest.mark.parametrize(("problem", "mesh", "form"), COMBINATIONS)


@every_combination
def test_the_program_equals_one_written_out_in_loops(cases, problem, mesh, form):
    case = cases(problem, mesh, form)
    transcription = case.transcription
    x, p = ca.MX.sym("x", case.layout.size), ca.MX.sym("p", len(case.p))
    cost, rows = written_out(case, x, p)
    f, g = 0.7 * cost, rows / transcription.row_scale
    lam, sigma = ca.MX.sym("lam", g.numel()), 1.3
    H, gradient = ca.hessian(sigma * f + ca.dot(lam, g), x)
    expected = ca.Function("expected", [x, p, lam], [f, g, ca.gradient(f, x), ca.jacobian(g, x), ca.triu(H), gradient])
    f, g, grad, J, H, _ = (np.array(entry, float) for entry in expected(case.x, case.p, case.lam))

    assert_same(transcription.objective(case.x, case.p), f)
    assert_same(transcription.constraints(case.x, case.p), g)
    assert_same(transcription.gradient(case.x, case.p)[1], grad)
    assert_same(transcription.jacobian(case.x, case.p)[1], J)
    assert_same(transcription.hessian(case.x, case.p, 1.3, case.lam), H)


@every_combination
def test_derivatives_equal_finite_differences(cases, problem, mesh, form):
    case = cases(problem, mesh, form)
    transcription, n, step = case.transcription, case.layout.size, 1e-5
    beside = case.x[:, None] + step * np.hstack([np.eye(n), -np.eye(n)])
    f, g = (
        np.array(function.map(2 * n)(beside, case.p), float)
        for function in (transcription.objective, transcription.constraints)
    )
    grad, J = (
        np.array(function(case.x, case.p)[1], float) for function in (transcription.gradient, transcription.jacobian)
    )

    assert_close(grad, (f[:, :n] - f[:, n:]).T / (2.0 * step))
    assert_close(J, (g[:, :n] - g[:, n:]) / (2.0 * step))

    def of_lagrangian(x):
        return 1.3 * np.array(transcription.gradient(x, case.p)[1], float) + np.array(
            ca.mtimes(transcription.jacobian(x, case.p)[1].T, case.lam), float
        )

    upper = np.array(transcription.hessian(case.x, case.p, 1.3, case.lam), float)
    columns = [(of_lagrangian(beside[:, i]) - of_lagrangian(beside[:, n + i])) / (2.0 * step) for i in range(n)]
    assert_close(upper + np.triu(upper, 1).T, np.hstack(columns))


def test_an_integrand_without_variables_is_in_the_cost():
    clock = problems.block_move().phases[0]
    clock = replace(clock, tf=3.0, integrals={"clock": Integral(lambda v: v.time + 1.0)})
    case = Case(TrajectoryProblem([clock], lambda e: e.integral["clock"]), MESHES["radau 4"], residual=True)

    assert float(case.transcription.objective(case.x, case.p)) == pytest.approx(0.7 * (0.5 * 3.0**2 + 3.0))
    assert not np.array(case.transcription.gradient(case.x, case.p)[1]).any()


def test_the_matrices_grow_with_the_intervals_not_with_their_square():
    short, long = (
        Case(one_phase(0.0, 1.0), Mesh.uniform(hermite_simpson(), intervals), residual=True).transcription
        for intervals in (20, 80)
    )

    for function, result in (("jacobian", 1), ("hessian", 0)):
        few, many = (getattr(transcription, function).sparsity_out(result).nnz() for transcription in (short, long))
        assert few < many < 4.0 * few


@pytest.mark.parametrize("shape", [(1, 1), (7, 5), (65536, 3), (70000, 65537), (3, 200000)])
def test_entries_of_a_matrix_are_put_in_their_places_and_added(shape):
    rng = np.random.default_rng(3)
    rows, columns = (rng.integers(0, count, 500) for count in shape)
    rows[:9], columns[:9], values = shape[0] - 1, shape[1] - 1, rng.uniform(size=500)

    matrix = constant_matrix(rows, columns, values, shape)

    expected = coo_array((values, (rows, columns)), shape=shape).tocsc()  # adds what falls on one place
    expected.sort_indices()
    assert matrix.shape == shape
    assert matrix.row() == expected.indices.tolist()
    assert matrix.colind() == expected.indptr.tolist()
    np.testing.assert_allclose(matrix.nonzeros(), expected.data, rtol=1e-14)


def assert_same(actual, expected):
    actual = np.array(actual, float)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12 * max(1.0, np.abs(expected).max()))


def assert_close(actual, differences):
    """To 1e-6 of the largest entry: central differences with a step of 1e-5 are good to about 1e-9."""
    np.testing.assert_allclose(actual, differences, rtol=1e-6, atol=1e-6 * max(1.0, np.abs(differences).max()))


# ---- the same program in plain loops, from the equations of the schemes in Betts 2010 and Hairer and Wanner 1996


def written_out(case, x, p):
    """The cost and the rows in the order of the program's blocks, of scaled variables and numbers; not scaled."""
    X = ca.DM(case.shift) + ca.DM(case.scale) * x
    problem, at = case.problem, 0
    rows, named = [], {}
    parameters = {v.name: X[case.layout.parameters[v.name]] for v in problem.variables}
    for i, (phase, indices, mesh) in enumerate(zip(problem.phases, case.layout.phases, case.meshes, strict=True)):
        system, form = phase.system, case.problem_functions.points[i].form
        g, at = p[at], at + 1  # the only data entry that is a number
        times = []
        for name in ("t0", "tf"):
            if name in indices.times:
                times.append(X[indices.times[name]])
            else:
                times.append(p[at])
                at += 1
        t0, tf = times
        count = mesh.slots - mesh.first
        push = [p[at + k] for k in range(count)]
        at += count
        points = []
        for slot in range(mesh.slots):
            states = ca.vertcat(*(X[int(j)] for j in indices.states[slot]))
            if slot < mesh.first:
                points.append({"x": states})
                continue
            inner_variables = [X[int(j)] for j in indices.point[slot - mesh.first]][4:]
            s = ca.vertcat(*inner_variables[:2]) if form else None
            u, z = inner_variables[-2:]
            time = t0 + float(mesh.fractions[slot]) * (tf - t0)
            q, k = ca.vertcat(g, push[slot - mesh.first]), ca.vertcat(parameters["k"], parameters["c"])
            rates = system.rhs(states, u, z, k, q, time) if form is None else ca.vertcat(states[2:], s)
            residual = ca.MX(0, 1) if form is None else form.residual(states, s, u, z, k, q, time)
            v = Named(
                {**dict(zip(("x", "angle", "v", "omega"), ca.vertsplit(states), strict=True)), **parameters,
                 "u": u, "z": z, "push": q[1], "tip": states[0] + ca.sin(states[1])}, time,
            )  # fmt: skip
            points.append({
                "x": states, "f": rates, "F": residual, "a": system.algebraic_residual(states, u, z, k, q, time),
                "c": [constraint.value(v) for constraint in phase.path.values()], "u": u, "z": z,
                "L": {name: integral.value(v) for name, integral in phase.integrals.items()},
            })  # fmt: skip
        defects, integrals = of_intervals(mesh, points, tf - t0, list(phase.integrals))
        some = points[mesh.first :]
        rows += defects
        rows += [point["F"] for point in some] + [point["a"] for point in some]
        for k in range(len(phase.path)):
            rows += [point["c"][k] for point in some]
        if mesh.schemes[0].name == "hermite_simpson" and len(mesh.schemes[0].control_rows):
            for base in mesh.bases[:-1]:
                rows.append(points[base + 1]["u"] - (points[base]["u"] + points[base + 2]["u"]) / 2.0)
        if mesh.left_point:
            tau = radau_points(mesh.schemes[0].degree)
            weights = np.linalg.solve(np.vander(tau, increasing=True).T, np.eye(len(tau))[0])  # the polynomial at 0
            rows.append(points[0]["u"] - sum(w * point["u"] for w, point in zip(weights, points[1:], strict=False)))
        for j, name in enumerate(phase.integrals):
            if (i, j) in case.layout.integrals:
                variable = X[case.layout.integrals[i, j]]
                rows.append(variable - integrals[name])
                integrals[name] = variable
        names = ("x", "angle", "v", "omega")
        first, last = (EndNames(zip(names, ca.vertsplit(points[k]["x"]), strict=True)) for k in (0, -1))
        for name in ("u", "z"):
            first.uncounted[name] = points[0][name] if mesh.first == 0 else None
            last.uncounted[name] = points[-1][name]
        named[phase.name] = Plain(
            initial=first, final=last, t0=t0, tf=tf, duration=tf - t0, integral=integrals, data={"g": g}
        )
    e = PlainEnds(named, parameters)
    rows += [constraint.value(e) for constraint in problem.constraints.values()]
    return problem.cost(e), ca.vertcat(*rows)


class EndNames(dict):
    """States by name, and others that are there but not counted."""

    def __init__(self, states):
        super().__init__(states)
        self.uncounted = {}

    def __missing__(self, name):
        return self.uncounted[name]


def of_intervals(mesh, points, duration, names):
    """Defects interval by interval, and integrals."""
    defects, integrals = [], dict.fromkeys(names, 0.0)
    for k, scheme in enumerate(mesh.schemes):
        h = float(mesh.nodes[k + 1] - mesh.nodes[k]) * duration
        piece = points[mesh.bases[k] : mesh.bases[k + 1] + 1]
        if scheme.name == "trapezoidal":
            (a, b), weights = piece, [0.5, 0.5]
            defects.append(b["x"] - a["x"] - h / 2.0 * (a["f"] + b["f"]))
        elif scheme.name == "hermite_simpson":
            (a, m, b), weights = piece, [1 / 6, 4 / 6, 1 / 6]
            defects.append(m["x"] - (a["x"] + b["x"]) / 2.0 - h / 8.0 * (a["f"] - b["f"]))
            defects.append(b["x"] - a["x"] - h / 6.0 * (a["f"] + 4.0 * m["f"] + b["f"]))
        else:
            tau = radau_points(scheme.degree)
            D = slopes(np.concatenate([[0.0], tau]))[1:]
            A = np.linalg.inv(D[:, 1:])
            weights = [0.0, *A[-1]]
            for j in range(scheme.degree):
                inner = sum(A[j, r] * piece[r + 1]["f"] for r in range(scheme.degree))
                defects.append(piece[j + 1]["x"] - piece[0]["x"] - h * inner)
        for name in names:
            integrals[name] += h * sum(w * point["L"][name] for w, point in zip(weights, piece, strict=True) if w)
    return defects, integrals


def radau_points(degree):
    """Roots of P_{d-1} - P_d on (0, 1], Legendre polynomials shifted to [0, 1]."""
    legendre = np.polynomial.legendre.Legendre
    difference = legendre.basis(degree - 1) - legendre.basis(degree)
    roots = np.sort(difference.roots().real)
    for _ in range(3):  # to the last digit
        roots = roots - difference(roots) / difference.deriv()(roots)
    return (roots + 1.0) / 2.0


def slopes(tau):
    """Derivative at tau_j of the Lagrange polynomial r on tau, from its product formula."""
    n = len(tau)
    D = np.zeros((n, n))
    for r in range(n):
        below = math.prod(tau[r] - tau[m] for m in range(n) if m != r)
        for j in range(n):
            for left_out in range(n):
                if left_out != r:
                    D[j, r] += math.prod(tau[j] - tau[m] for m in range(n) if m not in (r, left_out)) / below
    return D


class Named(dict):
    """Symbols of a point with its time."""

    def __init__(self, named, time):
        super().__init__(named)
        self.time = time


class Plain:
    def __init__(self, **named):
        self.__dict__.update(named)


class PlainEnds:
    def __init__(self, phases, parameters):
        self.phase, self.parameters = phases, parameters

    def __getitem__(self, name):
        return self.parameters[name]

    def __getattr__(self, name):
        (only,) = self.phase.values()
        return getattr(only, name)


@pytest.mark.parametrize("count", [5, 16, 33, 48])
def test_functions_in_blocks_of_points_have_the_numbers_of_each_point(count):
    x, y = ca.SX.sym("x", 3), ca.SX.sym("y", 2)
    function = ca.Function("point", [x, y], [ca.vertcat(ca.sin(x), x[0] * y[1])])
    X, Y = ca.MX.sym("X", 3, count), ca.MX.sym("Y", 2, count)
    together = ca.Function("together", [X, Y], [map_side_by_side(function, SideBySide([X, Y], count))])
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((3, count)), rng.standard_normal((2, count))
    expected = np.hstack([np.asarray(function(a[:, k], b[:, k]), float) for k in range(count)])
    np.testing.assert_array_equal(np.asarray(together(a, b), float), expected)
    [by_row] = PerPoint(function, count)(a.T, b.T)
    np.testing.assert_array_equal(by_row, expected.T)
    [by_row] = PerPoint(function, count)(a.T, b[:, 0])
    np.testing.assert_array_equal(by_row[0], expected[:, 0])
    assert by_row.shape == (count, 4)
