"""Rods of variable length: the recursion is Lagrange's equation, with the published numbers."""

from typing import Any

import casadi as ca
import numpy as np
import pytest
from designopt_mechanics.rods.basis import objects
from designopt_mechanics.rods.dynamics import inverse_dynamics
from designopt_mechanics.rods.outputs import elastic_forces, energies, places, velocities
from designopt_mechanics.rods.tree import Rod, RodError, RodTree
from scipy.integrate import solve_ivp

#: Acceptance between independent formulations (specification of rods, section 7).
EQUAL = 1e-10


def random_rods(seed: int, n: int, *, chain: bool = False) -> RodTree:
    rng = np.random.default_rng(seed)
    rods = []
    for i in range(n):
        parent = "ground" if i == 0 else f"r{i - 1 if chain else int(rng.integers(0, i))}"
        com = rng.uniform(0.2, 0.8)
        sign = 1 if chain else int(rng.choice([-1, 1]))
        mass, spread = rng.uniform(0.5, 3.0), com**2 + rng.uniform(0.0, 0.1)
        rods.append(Rod(f"r{i}", parent, mass, com, spread, Ix=0.05, Iy=0.03, sign=sign))
    return RodTree(tuple(rods), (0.4, -9.6, 1.2))


def state(seed: int, n: int, rows: int = 1) -> Any:
    rng = np.random.default_rng(50 + seed)
    angles = [rng.uniform(-3.0, 3.0, (rows, n)), rng.uniform(-1.2, 1.2, (rows, n)), rng.uniform(0.3, 1.2, (rows, n))]
    q = np.concatenate(angles, axis=1)
    dq, d2q = rng.uniform(-1.0, 1.0, (2, rows, 3 * n))
    return (q, dq, d2q) if rows > 1 else (q[0], dq[0], d2q[0])


def relative(computed: Any, expected: Any) -> float:
    return float(np.abs(np.asarray(computed) - expected).max() / np.abs(expected).max())


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_recursion_is_lagranges_equation(n: int) -> None:
    """Energies of masses spread along rods, differentiated by CasADi; nothing of the recursion is used."""
    for chain in (True, False):
        tree = random_rods(n, n, chain=chain)
        q, dq, d2q = (ca.SX.sym(name, 3 * n) for name in ("q", "dq", "d2q"))
        phi, psi, length = q[:n], q[n : 2 * n], q[2 * n :]
        T, V = ca.SX(0.0), ca.SX(0.0)
        for i, rod in enumerate(tree.rods):
            u = ca.vertcat(ca.cos(psi[i]) * ca.cos(phi[i]), ca.cos(psi[i]) * ca.sin(phi[i]), ca.sin(psi[i]))
            near, k = ca.SX.zeros(3), tree.parents[i]
            while k >= 0:
                v = ca.vertcat(ca.cos(psi[k]) * ca.cos(phi[k]), ca.cos(psi[k]) * ca.sin(phi[k]), ca.sin(psi[k]))
                near += tree.rods[k].sign * length[k] * v
                k = tree.parents[k]
            rho = rod.sign * length[i] * u
            centre = ca.jtimes(near + rod.com * rho, q, dq)
            stretch = ca.jtimes(rho, q, dq)
            T += 0.5 * rod.mass * (ca.dot(centre, centre) + (rod.second - rod.com**2) * ca.dot(stretch, stretch))
            V -= rod.mass * ca.dot(ca.SX(list(tree.gravity)), near + rod.com * rho)
            T += 0.5 * (rod.Ix * dq[i] ** 2 + rod.Iy * dq[n + i] ** 2)
        p = ca.gradient(T, dq)
        lagrange = ca.jtimes(p, q, dq) + ca.jtimes(p, dq, d2q) - ca.gradient(T - V, q)
        at = state(n, n)
        expected, kinetic, height = (
            np.asarray(r, float).ravel() for r in ca.Function("f", [q, dq, d2q], [lagrange, T, V])(*at)
        )
        assert relative(inverse_dynamics(tree, *at), expected) < EQUAL
        energy = energies(tree, at[0], at[1])
        assert energy.kinetic == pytest.approx(float(kinetic[0]), rel=1e-12)
        assert energy.weight == pytest.approx(float(height[0]), rel=1e-12)


def test_rows_of_states_and_expressions_are_computed_by_the_same_formulas() -> None:
    tree = random_rods(3, 4)
    at = state(3, 4, rows=6)
    columns = [ca.SX.sym(name, 12) for name in ("q", "dq", "d2q")]
    forces = inverse_dynamics(tree, *(objects(column) for column in columns))
    formulas = ca.Function("inverse", columns, [ca.vertcat(*forces)])
    expected = [np.asarray(formulas(*row), float).ravel() for row in zip(*at, strict=True)]
    assert relative(inverse_dynamics(tree, *at), expected) < 1e-13


# ------------------------------------------------------------------------------------------------- published numbers

TWO = RodTree((Rod("a", mass=2.0, com=0.4, Ix=0.05, Iy=0.04), Rod("b", "a", mass=1.0, com=0.5, Ix=0.02, Iy=0.03)))
Q = np.array([0.3, -0.5, 0.2, 0.7, 0.8, 0.6])
DQ = np.array([0.5, -0.4, 0.3, 0.2, 0.1, -0.15])
D2Q = np.array([1.0, -2.0, 0.5, 0.25, -0.3, 0.4])


def mass_matrix(tree: RodTree, q: Any) -> Any:
    """The forces of unit accelerations less those at rest."""
    still = np.zeros(3 * tree.n)
    columns = [inverse_dynamics(tree, q, still, unit) for unit in np.eye(3 * tree.n)]
    return np.column_stack(columns) - inverse_dynamics(tree, q, still, still)[:, None]


def accelerations(tree: RodTree, q: Any, dq: Any, forces: Any) -> Any:
    """Those that need `forces`."""
    return np.linalg.solve(mass_matrix(tree, q), forces - inverse_dynamics(tree, q, dq, np.zeros(3 * tree.n)))


def test_two_rods_have_the_numbers_of_the_specification() -> None:
    """V1 of section 7."""
    M = [
        [0.8614561638668, 0.1253396993240, 0.0, 0.1087011792045, 0.0, -0.2150909785884],
        [0.0, 0.07264852143051, -0.02616065994435, 0.0, 0.1613182339413, 0.0],
        [0.0, 0.0, 0.8848, 0.2013036424254, 0.0, 0.2102044648120],
        [0.0, 0.0, 0.0, 0.12, -0.08638000978564, 0.0],
        [0.0, 0.0, 0.0, 0.0, 1.32, 0.3251175219965],
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.25],
    ]
    assert np.abs(np.triu(mass_matrix(TWO, Q)) - M).max() < 1e-12
    still = [0.108985215097, -0.020170488841, 13.919427325978, 2.303713173640, 3.189254115186, 3.066174106394]
    moving = [0.660900883682, -0.101603632532, 14.548556342398, 2.568980176993, 2.579069653655, 2.958650103612]
    assert np.abs(inverse_dynamics(TWO, Q, DQ, np.zeros(6)) - still).max() < 1e-11
    assert np.abs(inverse_dynamics(TWO, Q, DQ, D2Q) - moving).max() < 1e-11
    energy = energies(TWO, Q, DQ)
    assert energy.kinetic == pytest.approx(0.15975760808657, rel=1e-12)
    assert energy.weight == pytest.approx(4.702415088083878, rel=1e-13)
    forward = [26.697829608577, 20.284660431660, -46.643748911168, 10.443087545450, -38.557385218081, 124.066776015067]
    assert np.abs(accelerations(TWO, Q, DQ, [0.1, -0.2, 0.3, 0.4, -5.0, 6.0]) - forward).max() < 1e-9


def test_a_branch_with_reversed_limbs_has_the_weights_of_the_specification() -> None:
    """V4 of section 7."""
    masses, parts = (4.0, 8.0, 40.0, 8.0, 4.0), (0.55, 0.55, 0.5, 0.45, 0.45)
    rods = [Rod(f"r{i}", p, m, n, sign=s) for i, (p, m, n, s) in enumerate(
        zip(("ground", "r0", "r1", "r1", "r3"), masses, parts, (1, 1, 1, -1, -1), strict=True))]  # fmt: skip
    tree = RodTree(tuple(rods))
    mu = [[61.21, 56.4, 20, -7.6, -1.8], [0, 54.42, 20, -7.6, -1.8], [0, 0, 10, 0, 0], [0, 0, 0, 5.62, 1.8],
          [0, 0, 0, 0, 0.81]]  # fmt: skip
    assert np.abs(np.triu(tree.mu) - mu).max() < 1e-13


def test_a_reversed_rod_is_one_that_points_the_other_way() -> None:
    turned = RodTree(tuple(Rod(f"r{i}", "ground" if i == 0 else f"r{i - 1}", 1.0 + i, 0.4) for i in range(3)))
    signs = (1, -1, -1)
    reversed_ = RodTree(
        tuple(Rod(r.name, r.parent, r.mass, r.com, sign=s) for r, s in zip(turned.rods, signs, strict=True))
    )
    q, _, _ = state(9, 3)
    turned_state = q.copy()
    turned_state[1:3] += np.pi
    turned_state[4:6] *= -1.0
    assert np.abs(np.array(places(reversed_, q)) - np.array(places(turned, turned_state))).max() < 1e-15


def integrated(tree: RodTree, q: Any, dq: Any, duration: float, rtol: float) -> Any:
    n = 3 * tree.n

    def rates(_: float, x: Any) -> Any:
        pull = np.concatenate([np.zeros(2 * tree.n), elastic_forces(tree, x[:n], x[n:])])
        return np.concatenate([x[n:], accelerations(tree, x[:n], x[n:], pull)])

    solution = solve_ivp(rates, (0.0, duration), [*q, *dq], method="DOP853", rtol=rtol, atol=rtol)
    return solution.y[:n, -1], solution.y[n:, -1]


FREE_Q = [0.2, 0.5, -0.3, 1.0, 0.1, -0.2, 0.4, 0.6, 0.8, 0.7, 0.5, 0.6]
FREE_DQ = [0.3, -0.2, 0.5, 0.1, -0.4, 0.2, 0.3, -0.1, 0.05, -0.02, 0.1, 0.0]
FREE_MASSES = ((2.0, 0.3), (1.5, 0.5), (1.0, 0.6), (0.5, 0.45))


def free_rods(**more: Any) -> RodTree:
    springs = zip((200.0, 150.0, 100.0, 80.0), (0.8, 0.7, 0.5, 0.6), strict=True)
    rods = [
        Rod(f"r{i}", f"r{i - 1}" if i else "ground", m, n, stiffness=k if more else 0.0, rest_length=l0, **more)
        for i, ((m, n), (k, l0)) in enumerate(zip(FREE_MASSES, springs, strict=True))
    ]
    return RodTree(tuple(rods))


def test_without_drives_point_masses_fly_as_free_particles() -> None:
    """V2 of section 7: 3 n coordinates of n particles; the specification asks for 1e-9, the issue for 1e-12."""
    tree = free_rods()
    q, dq = np.array(FREE_Q), np.array(FREE_DQ)
    _, start = places(tree, q)
    _, speed = velocities(tree, q, dq)
    end, _ = integrated(tree, q, dq, 0.5, 1e-13)
    _, positions = places(tree, end)
    flown = start + 0.5 * speed + 0.125 * np.array(tree.gravity)
    assert np.abs(positions - flown).max() < 1e-12
    published = [[0.238934774, 0.084983167, -1.249301429], [1.115727686, 0.418612533, -1.337326687],
             [1.729054036, 0.535297321, -1.201609478], [2.040230126, 0.722811876, -0.946994176]]  # fmt: skip
    assert np.abs(positions - published).max() < 1e-9


def test_the_energy_of_elastic_rods_is_kept_through_the_singular_coordinates() -> None:
    """V3 of section 7: the rods pass |cos psi| = 1.1e-4."""
    tree = free_rods(Ix=0.05, Iy=0.05)
    before = energies(tree, np.array(FREE_Q), np.array(FREE_DQ))
    total = before.kinetic + before.weight + before.elastic
    assert total == pytest.approx(2.80042105395, rel=1e-10)
    after = energies(tree, *integrated(tree, FREE_Q, FREE_DQ, 1.0, 1e-11))
    assert after.kinetic + after.weight + after.elastic == pytest.approx(total, rel=1e-8)


def test_a_moving_anchor_adds_its_acceleration_to_all() -> None:
    tree = random_rods(8, 3)
    q, dq, d2q = state(8, 3)
    anchor = np.array([0.3, 2.0, -1.0])
    forces = inverse_dynamics(tree, q, dq, d2q, anchor)
    lifted = RodTree(tree.rods, tuple(np.array(tree.gravity) - anchor))
    assert relative(forces, inverse_dynamics(lifted, q, dq, d2q)) < 1e-13


# --------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("rods", "message"),
    [
        ([Rod("a", "b"), Rod("b")], "rod 'a', parent: 'b' is attached to it or comes after it"),
        ([Rod("a"), Rod("b", "aa")], "rod 'b', parent: no rod 'aa'; did you mean 'a'"),
        ([Rod("a"), Rod("a")], "rod 'a', name: is given twice"),
        ([Rod("a", mass=0.0)], "rod 'a', mass: 0 is not positive"),
        ([Rod("a", mass=np.nan)], "rod 'a', mass: nan is not finite"),
        ([Rod("a", com=1.2)], r"rod 'a', com: 1\.2 is not between 0 and 1"),
        ([Rod("a", com=1e308)], "rod 'a', second: inf is not finite"),
        ([Rod("a", spread=0.1)], r"rod 'a', spread: 0\.1 is less than com\^2"),
        ([Rod("a", stiffness=-1.0)], "rod 'a', stiffness: -1 is negative"),
        ([Rod("a", sign=2)], "rod 'a', sign: 2 is neither 1 nor -1"),
        ([Rod("a", rest_length=0.0)], "rod 'a', rest_length: 0 is not positive"),
        ([Rod("a", com=0.0)], "rod 'a', com: 0 without inertia"),
        ([], "rods: there are none"),
    ],
)
def test_rods_that_cannot_be_are_refused(rods: list[Rod], message: str) -> None:
    with pytest.raises(RodError, match=message):
        RodTree(tuple(rods))


def test_coordinates_of_another_number_of_rods_are_refused() -> None:
    with pytest.raises(ValueError, match=r"coordinates of 2 rods have shape \(\.\.\., 6\), not \(5,\)"):
        inverse_dynamics(TWO, Q[:5], DQ, D2Q)
