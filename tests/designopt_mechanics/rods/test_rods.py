"""Rods of variable length: closed form, recursion, general core and YAML files are one mechanics, as published."""

import math
import re
from typing import Any

import casadi as ca
import numpy as np
import pytest
from designopt_mechanics.dynamics import recursion
from designopt_mechanics.rods.basis import objects, symbols
from designopt_mechanics.rods.dynamics import forward_dynamics, inverse_dynamics, motion
from designopt_mechanics.rods.matrices import bias, mass_matrix, matrices, weight_forces
from designopt_mechanics.rods.outputs import (
    elastic_forces,
    energies,
    places,
    velocities,
)
from designopt_mechanics.rods.reading import read_rods
from designopt_mechanics.rods.tree import Rod, RodError, RodTree, SingularConfiguration
from designopt_mechanics.rods.written import equations
from designopt_mechanics.state import TreeState
from rods_as_tree import as_tree
from scipy.integrate import solve_ivp

from designopt.study.language.errors import StudyError

#: Acceptance between independent formulations (specification of rods, section 7).
EQUAL = 1e-10


def random_rods(seed: int, n: int, inertia: Any = "coordinate", *, chain: bool = False) -> RodTree:
    rng = np.random.default_rng(seed)
    rods = []
    for i in range(n):
        parent = "ground" if i == 0 else f"r{i - 1 if chain else int(rng.integers(0, i))}"
        com = rng.uniform(0.2, 0.8)
        more = {"Ix": 0.05, "Iy": 0.03} if inertia == "coordinate" else {"It": 0.06, "Ia": 0.01}
        sign = 1 if chain else int(rng.choice([-1, 1]))
        rods.append(Rod(f"r{i}", parent, rng.uniform(0.5, 3.0), com, com**2 + rng.uniform(0.0, 0.1), sign=sign, **more))
    return RodTree(tuple(rods), (0.4, -9.6, 1.2), inertia)


def state(seed: int, n: int, rows: int = 1) -> Any:
    rng = np.random.default_rng(50 + seed)
    angles = [rng.uniform(-3.0, 3.0, (rows, n)), rng.uniform(-1.2, 1.2, (rows, n)), rng.uniform(0.3, 1.2, (rows, n))]
    q = np.concatenate(angles, axis=1)
    dq, d2q = rng.uniform(-1.0, 1.0, (2, rows, 3 * n))
    return (q, dq, d2q) if rows > 1 else (q[0], dq[0], d2q[0])


def relative(computed: Any, expected: Any) -> float:
    return float(np.abs(np.asarray(computed) - expected).max() / np.abs(expected).max())


@pytest.mark.parametrize("inertia", ["coordinate", "axisymmetric"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_closed_form_is_lagranges_equation(n: int, inertia: Any) -> None:
    """Energies of masses spread along rods, differentiated by CasADi; nothing of the closed form is used."""
    for chain in (True, False):
        tree = random_rods(n, n, inertia, chain=chain)
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
            dphi, dpsi, C, S = dq[i], dq[n + i], ca.cos(psi[i]), ca.sin(psi[i])
            if inertia == "coordinate":
                T += 0.5 * (rod.Ix * dphi**2 + rod.Iy * dpsi**2)
            else:
                T += 0.5 * (rod.It * (dpsi**2 + C**2 * dphi**2) + rod.Ia * S**2 * dphi**2)
        p = ca.gradient(T, dq)
        lagrange = ca.jtimes(p, q, dq) + ca.jtimes(p, dq, d2q) - ca.gradient(T - V, q)
        at = state(n, n)
        expected, kinetic, height = (
            np.asarray(r, float).ravel() for r in ca.Function("f", [q, dq, d2q], [lagrange, T, V])(*at)
        )
        closed = mass_matrix(tree, at[0]) @ at[2] + bias(tree, at[0], at[1])
        assert relative(closed, expected) < EQUAL
        assert relative(inverse_dynamics(tree, *at), expected) < EQUAL
        energy = energies(tree, at[0], at[1])
        assert energy.kinetic == pytest.approx(float(kinetic[0]), rel=1e-12)
        assert energy.weight == pytest.approx(float(height[0]), rel=1e-12)


@pytest.mark.parametrize("inertia", ["coordinate", "axisymmetric"])
@pytest.mark.parametrize("n", [1, 3, 5, 30, 100])
def test_closed_form_recursion_and_forward_dynamics_agree_on_trees_with_mixed_signs(n: int, inertia: Any) -> None:
    tree = random_rods(n, n, inertia)
    q, dq, d2q = state(n, n)
    forces = inverse_dynamics(tree, q, dq, d2q)
    assert relative(mass_matrix(tree, q) @ d2q + bias(tree, q, dq), forces) < EQUAL
    assert np.abs(forward_dynamics(tree, q, dq, forces) - d2q).max() < EQUAL


@pytest.mark.parametrize("inertia", ["coordinate", "axisymmetric"])
def test_rods_are_data_of_the_general_core(inertia: Any) -> None:
    tree = random_rods(7, 4, inertia)
    s = TreeState.symbols(as_tree(tree))
    assert s.tree.names == tree.names
    at = state(7, 4)
    core = ca.Function("core", [s.z, s.dz, s.ddz], [recursion.inverse_dynamics(s, tree.gravity)])
    assert relative(inverse_dynamics(tree, *at), np.asarray(core(*at), float).ravel()) < EQUAL


def test_rows_of_states_and_expressions_are_computed_by_the_same_formulas() -> None:
    tree = random_rods(3, 4)
    q, dq, d2q = state(3, 4, rows=6)
    forces = inverse_dynamics(tree, q, dq, d2q)
    assert relative(forward_dynamics(tree, q, dq, forces), d2q) < EQUAL
    assert relative(bias(tree, q, dq), [bias(tree, *row) for row in zip(q, dq, strict=True)]) < 1e-14
    (zc, z), (dzc, dz), (fc, f) = (symbols(tree, name) for name in ("q", "dq", "f"))
    formulas = ca.Function(
        "made", [zc, dzc, fc], [ca.vertcat(*forward_dynamics(tree, z, dz, f)), ca.vertcat(*bias(tree, z, dz))]
    )
    for i in range(6):
        accelerations, still = (np.asarray(r, float).ravel() for r in formulas(q[i], dq[i], forces[i]))
        assert relative(accelerations, d2q[i]) < EQUAL
        assert relative(still, bias(tree, q[i], dq[i])) < 1e-12


# ------------------------------------------------------------------------------------------------- published numbers

TWO = RodTree((Rod("a", mass=2.0, com=0.4, Ix=0.05, Iy=0.04), Rod("b", "a", mass=1.0, com=0.5, Ix=0.02, Iy=0.03)))
Q = np.array([0.3, -0.5, 0.2, 0.7, 0.8, 0.6])
DQ = np.array([0.5, -0.4, 0.3, 0.2, 0.1, -0.15])
D2Q = np.array([1.0, -2.0, 0.5, 0.25, -0.3, 0.4])


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
    assert np.abs(bias(TWO, Q, DQ) - still).max() < 1e-11
    assert np.abs(inverse_dynamics(TWO, Q, DQ, D2Q) - moving).max() < 1e-11
    energy = energies(TWO, Q, DQ)
    assert energy.kinetic == pytest.approx(0.15975760808657, rel=1e-12)
    assert energy.weight == pytest.approx(4.702415088083878, rel=1e-13)
    forward = [26.697829608577, 20.284660431660, -46.643748911168, 10.443087545450, -38.557385218081, 124.066776015067]
    assert np.abs(forward_dynamics(TWO, Q, DQ, [0.1, -0.2, 0.3, 0.4, -5.0, 6.0]) - forward).max() < 1e-9
    blocks = matrices(TWO, Q)
    assert (
        np.abs(blocks["G_phi"] - [[-0.164490307791, -0.105572172351], [-0.025407614901, -0.044345237849]]).max() < 1e-12
    )
    assert blocks["F_l"][0, 1] == pytest.approx(0.268863723236, abs=1e-12)


def test_the_matrices_keep_their_identities() -> None:
    tree = random_rods(4, 5)
    blocks = matrices(tree, state(4, 5)[0])
    for one, transposed in (("B_phi", "A_psi"), ("C_phi", "A_l"), ("C_psi", "B_l")):
        assert np.allclose(blocks[one], blocks[transposed].T, atol=1e-14)
    for name in ("A_phi", "B_psi", "C_l"):
        assert np.allclose(blocks[name], blocks[name].T, atol=1e-14)
    for name in ("D_phi", "G_psi", "F_l"):
        assert np.allclose(blocks[name], -blocks[name].T, atol=1e-14)
    assert np.allclose(blocks["D_phi"], blocks["E_phi"], atol=1e-14)
    assert np.allclose(blocks["D_l"], -blocks["F_phi"].T, atol=1e-14)
    assert np.linalg.eigvalsh(mass_matrix(tree, state(4, 5)[0])).min() > 0.0


def test_a_branch_with_reversed_limbs_has_the_weights_of_the_specification() -> None:
    """V4 of section 7."""
    masses, parts = (4.0, 8.0, 40.0, 8.0, 4.0), (0.55, 0.55, 0.5, 0.45, 0.45)
    rods = [Rod(f"r{i}", p, m, n, sign=s) for i, (p, m, n, s) in enumerate(
        zip(("ground", "r0", "r1", "r1", "r3"), masses, parts, (1, 1, 1, -1, -1), strict=True))]  # fmt: skip
    tree = RodTree(tuple(rods))
    mu = [[61.21, 56.4, 20, -7.6, -1.8], [0, 54.42, 20, -7.6, -1.8], [0, 0, 10, 0, 0], [0, 0, 0, 5.62, 1.8],
          [0, 0, 0, 0, 0.81]]  # fmt: skip
    assert np.abs(np.triu(tree.mu) - mu).max() < 1e-13
    assert np.abs(tree.nu - [62.2, 56.4, 20.0, -7.6, -1.8]).max() < 1e-13


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
        return np.concatenate([x[n:], forward_dynamics(tree, x[:n], x[n:], pull)])

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


# -------------------------------------------------------------------------------------------------- forces on rods


def test_the_load_in_a_joint_is_the_force_on_what_hangs_on_it() -> None:
    tree = random_rods(6, 4)
    q, dq, d2q = state(6, 4)
    result = motion(tree, q, dq, d2q)
    m = tree.column("mass")
    assert np.allclose(result.loads[0], (m[:, None] * (result.centres - np.array(tree.gravity))).sum(0), atol=1e-12)


def test_a_moving_anchor_adds_its_acceleration_to_all() -> None:
    tree = random_rods(8, 3)
    q, dq, d2q = state(8, 3)
    anchor = np.array([0.3, 2.0, -1.0])
    forces = inverse_dynamics(tree, q, dq, d2q, anchor)
    lifted = RodTree(tree.rods, tuple(np.array(tree.gravity) - anchor))
    assert relative(forces, inverse_dynamics(lifted, q, dq, d2q)) < 1e-13
    assert np.abs(forward_dynamics(tree, q, dq, forces, anchor) - d2q).max() < EQUAL


def test_rods_of_fixed_length_keep_it_and_tell_their_axial_force() -> None:
    tree = RodTree(tuple(
        Rod(f"r{i}", f"r{i - 1}" if i else "ground", 1.0, 0.5, Ix=0.1, Iy=0.1, length="fixed" if i != 1 else "free")
        for i in range(3)
    ))  # fmt: skip
    q, dq, _ = state(2, 3)
    dq[[6, 8]] = 0.0
    prescribed = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, np.nan, 2.0, np.nan])
    accelerations = forward_dynamics(tree, q, dq, prescribed)
    assert accelerations[6] == accelerations[8] == 0.0
    forces = inverse_dynamics(tree, q, dq, accelerations)
    assert np.allclose(np.delete(forces, [6, 8]), np.delete(prescribed, [6, 8]), atol=1e-12)
    assert np.isfinite(forces).all()


def test_rods_of_fixed_length_feel_a_moving_anchor_as_another_gravity() -> None:
    tree = RodTree(
        (Rod("upper", length="fixed", Ix=0.1, Iy=0.1), Rod("lower", "upper", sign=-1, Ix=0.1, Iy=0.1)), (0.4, -9.6, 1.2)
    )
    q, dq, _ = state(4, 2)
    dq[4] = 0.0
    anchor = np.array([0.3, 2.0, -1.0])
    lifted = RodTree(tree.rods, tuple(np.array(tree.gravity) - anchor))
    forces = np.arange(6.0)
    accelerations = forward_dynamics(tree, q, dq, forces, anchor)
    assert relative(accelerations, forward_dynamics(lifted, q, dq, forces)) < 1e-12
    needed = inverse_dynamics(tree, q, dq, accelerations, anchor)
    assert np.allclose(np.delete(needed, 4), np.delete(forces, 4), atol=1e-11)


# ------------------------------------------------------------------------------------------------- written equations


@pytest.mark.parametrize(
    "tree",
    [
        TWO,
        random_rods(2, 3),
        random_rods(5, 4, "axisymmetric"),
        RodTree((Rod("a"), Rod("b", "a", sign=-1), Rod("c", "a", spread=1.0 / 3.0)), (0.0, -9.81, 0.0)),
    ],
    ids=["two", "three", "four", "branch"],
)
def test_the_equations_written_out_evaluate_to_the_equations_of_motion(tree: RodTree) -> None:
    n = tree.n
    q, dq, d2q = state(3, n)
    values: dict[str, Any] = {
        "cos": math.cos,
        "sin": math.sin,
        **dict(zip(("gx", "gy", "gz"), tree.gravity, strict=True)),
    }
    drives = np.random.default_rng(4).normal(size=(3, n))
    for i, rod in enumerate(tree.rods):
        values |= {f"m{i + 1}": rod.mass, f"n{i + 1}": rod.com, f"c2_{i + 1}": rod.second, f"k{i + 1}": 7.0,
                   f"d{i + 1}": 3.0, f"l0_{i + 1}": 0.4, f"Ix{i + 1}": rod.Ix, f"Iy{i + 1}": rod.Iy,
                   f"It{i + 1}": rod.It, f"Ia{i + 1}": rod.Ia}  # fmt: skip
        for k, kind in enumerate(("phi", "psi", "l")):
            values |= {
                f"{kind}{i + 1}": q[k * n + i],
                f"d{kind}{i + 1}": dq[k * n + i],
                f"d2{kind}{i + 1}": d2q[k * n + i],
            }
            values[f"{('Mphi', 'Mpsi', 'N')[k]}{i + 1}"] = drives[k, i]
    onto_children = np.array([drives[:2, list(kids)].sum(axis=1) for kids in tree.children]).T
    right = np.concatenate([*(drives[:2] - onto_children), drives[2]])
    right[2 * n :] += -7.0 * (q[2 * n :] - 0.4) - 3.0 * dq[2 * n :]
    left = inverse_dynamics(tree, q, dq, d2q)
    for k, text in enumerate(equations(tree)):
        one, formula = text.split(" = ")
        assert eval(one, {"__builtins__": {}}, values) == pytest.approx(left[k], rel=1e-12, abs=1e-12)
        assert eval(formula, {"__builtins__": {}}, values) == pytest.approx(right[k], rel=1e-12)


def test_in_latex_the_equations_have_balanced_braces_and_as_many_terms() -> None:
    for text, tex in zip(equations(TWO), equations(TWO, "latex"), strict=True):
        assert tex.count("{") == tex.count("}")
        assert len(re.split(r" [+-] ", text)) == len(re.split(r" [+-] ", tex))
    assert equations(TWO, "latex")[-1].endswith(r"N_{2} - k_{2}\,(l_{2} - l_{0,2}) - d_{2}\,\dot{l}_{2}")


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
        ([Rod("a", Ia=0.1)], "rod 'a', Ia: does not belong to inertia 'coordinate'"),
        ([Rod("a", rest_length=0.0)], "rod 'a', rest_length: 0 is not positive"),
        ([Rod("a", com=0.0)], "rod 'a', com: 0 without inertia"),
        ([], "rods: there are none"),
    ],
)
def test_rods_that_cannot_be_are_refused(rods: list[Rod], message: str) -> None:
    with pytest.raises(RodError, match=message):
        RodTree(tuple(rods))


def test_an_upright_rod_is_refused_by_forward_dynamics_alone() -> None:
    q = Q.copy()
    q[3] = np.pi / 2.0
    with pytest.raises(SingularConfiguration, match="rod 'b': cos psi is below 1e-06"):
        forward_dynamics(TWO, q, DQ, np.zeros(6))
    assert np.isfinite(inverse_dynamics(TWO, q, DQ, D2Q)).all()
    with pytest.raises(ValueError, match=r"coordinates of 2 rods have shape \(\.\.\., 6\), not \(5,\)"):
        bias(TWO, Q[:5], DQ)


def test_forces_of_the_weight_are_what_the_bias_has_at_rest() -> None:
    assert np.abs(bias(TWO, Q, 0.0 * DQ) + weight_forces(TWO, Q)).max() < 1e-14


def test_objects_of_a_column_are_its_entries() -> None:
    column = ca.SX.sym("x", 3)
    assert [str(e) for e in objects(column)] == ["x_0", "x_1", "x_2"]


GOOD = """\
model: rod_tree
gravity: [0, -9.81, 0]
rods:
  - {name: shank, mass: 4.0, com: 0.55, Ix: 0.05, Iy: 0.05, rest_length: 450 mm, stiffness: 80 kN/m}
  - {name: thigh, parent: shank, mass: 8.0, com: 0.55}
  - {name: torso, parent: thigh, mass: 40.0, com: 0.5, length: fixed, rest_length: 0.5}
  - {name: swing_thigh, parent: thigh, mass: 8.0, com: 0.45, sign: -1}
  - {name: swing_shank, parent: swing_thigh, mass: 4.0, com: 0.45, sign: -1}
"""


def test_a_file_gives_the_rods_it_states() -> None:
    """The branch V4 of section 7, whose weights are published."""
    tree = read_rods(GOOD.encode(), "rods.yaml")
    assert np.abs(tree.nu - [62.2, 56.4, 20.0, -7.6, -1.8]).max() < 1e-13
    assert tree.rods[0].rest_length == pytest.approx(0.45)
    assert tree.rods[0].stiffness == pytest.approx(8e4)
    assert tree.rods[2].length == "fixed"
    assert tree.gravity == (0.0, -9.81, 0.0)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("mass: 4.0, com: 0.55", "mass: -4.0, com: 0.55", "4:25: rods.0.mass: mass: -4 is not positive"),
        ("parent: shank", "parent: shnk", "5:27: rods.1.parent: parent: no rod 'shnk'; did you mean 'shank'?"),
        ("sign: -1}\n  - {name: swing_shank", "sign: 2}\n  - {name: swing_shank", "rods.3.sign: 2 is neither 1 nor -1"),
        ("com: 0.5, length", "com: 1.5, length", "rods.2.com: com: 1.5 is not between 0 and 1"),
        ("length: fixed", "length: stiff", "'stiff' is not one of free, fixed"),
        ("Ix: 0.05", "Ia: 0.05", "rods.0.Ia: Ia: does not belong to inertia 'coordinate'"),
        ("Iy: 0.05", "Iz: 0.05", "no entry 'Iz' here"),
        ("80 kN/m", "80 kN", "rods.0.stiffness"),
        ("name: thigh, parent", "name: shank, parent", "rods.1.name: name: is given twice"),
        ("model: rod_tree", "model: rods", "1:8: model: 'rods' is not one of rod_tree"),
    ],
)
def test_mistakes_are_reported_with_their_place(old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(StudyError) as raised:
        read_rods(GOOD.replace(old, new, 1).encode(), "rods.yaml")
    messages = [f"{i.line}:{i.column}: {i.path}: {i.message}" for i in raised.value.issues]
    assert any(message in line for line in messages), messages
