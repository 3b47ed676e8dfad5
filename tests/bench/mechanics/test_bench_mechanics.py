"""Mechanics against the literal form of the paper, by the number of rods, beside Pinocchio. Run: pytest -m bench -s.

Pinocchio is no dependency: install it (``pip install pin scipy``) and name its Python in the environment variable
DESIGNOPT_PEERS_MECHANICS.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
from designopt_mechanics.andrews import mechanism
from designopt_mechanics.andrews.systems import system as andrews_system
from designopt_mechanics.exoskeleton.walker import system as exoskeleton
from designopt_mechanics.rods.basis import objects
from designopt_mechanics.rods.dynamics import inverse_dynamics
from designopt_mechanics.rods.outputs import energies
from designopt_mechanics.rods.tree import Rod, RodTree
from designopt_mechanics.shoulder.chain import GRAVITY, shoulder
from designopt_mechanics.state import TreeState
from designopt_mechanics.tree_rows import TreeRows

from designopt.dynamics import Simulator
from designopt.dynamics.compile import find_compiler

sys.path.insert(0, str(Path(__file__).parents[2] / "designopt_mechanics" / "dynamics"))

import kronecker

pytestmark = [
    pytest.mark.bench,
    pytest.mark.skipif(find_compiler() is None, reason="no C compiler: what is compared is compiled code"),
]

PEER = os.environ.get("DESIGNOPT_PEERS_MECHANICS", "")
SCRIPT = Path(__file__).parent / "peers" / "pinocchio_runs.py"


def best(call: Callable[[], Any], repeats: int = 1, batches: int = 5) -> float:
    """Seconds of one call, the best of some batches."""
    seconds = []
    for _ in range(batches):
        begin = time.perf_counter()
        for _ in range(repeats):
            call()
        seconds.append((time.perf_counter() - begin) / repeats)
    return min(seconds)


def peer(*arguments: str) -> Any:
    """Output of the peer's process."""
    if not PEER:
        pytest.skip("no Pinocchio: set DESIGNOPT_PEERS_MECHANICS to a Python that has it")
    completed = subprocess.run([PEER, str(SCRIPT), *arguments], capture_output=True, text=True, timeout=300)
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout.splitlines()[-1])


def test_inverse_dynamics_of_the_shoulder_is_400_times_the_literal_form(record_property: Any) -> None:
    """14 joints, 3 coordinates: rows of compiled code against the Kronecker products of the paper."""
    tree = shoulder("original")
    s = TreeState.symbols(tree)
    bodies = []
    for number, frame in enumerate(tree.frames):
        body, motion = frame.body, frame.motions[0]
        origin = np.array(frame.position)
        length = float(np.linalg.norm(origin))
        bodies.append({
            "parent": number, "type": "R", "Vd": origin / length if length else np.array([1.0, 0.0, 0.0]), "d": length,
            "Vth": motion.axis, "theta": 0.0, "mass": body.mass if body else 0.0,
            "com": body.centre if body else np.zeros(3), "inertia": body.inertia if body else np.zeros((3, 3)),
        })  # fmt: skip
    f = ca.vertcat(*(frame.motions[0].angle(s.named) for frame in tree.frames))
    g = np.asarray(ca.Function("g", [s.z], [ca.densify(ca.jacobian(f, s.z))])(np.zeros(3)), float)
    rng = np.random.default_rng(0)
    z, dz, ddz = rng.uniform(-1.0, 1.0, (3, 2000, 3))
    rows = TreeRows(tree, GRAVITY)
    torques = rows.inverse_dynamics(z, dz, ddz)
    values = g @ z[0]

    def literal() -> Any:
        M, N, G = kronecker.equations(bodies, values, g, np.zeros((14, 3, 3)), dz[0], GRAVITY)
        return M @ ddz[0] + N @ dz[0] - G

    assert np.abs(literal() - torques[0]).max() < 1e-12
    ours, theirs = best(lambda: rows.inverse_dynamics(z, dz, ddz)) / 2000, best(literal, 3)
    record_property("ratio_to_literal", theirs / ours)
    record_property("inverse_dynamics_us", 1e6 * ours)
    print(
        f"\nshoulder, inverse dynamics: {1e6 * ours:.2f} us, literal {1e6 * theirs:.0f} us, ratio {theirs / ours:.0f}"
    )
    assert theirs / ours >= 400


def chain(n: int) -> RodTree:
    """Rods with all mass at the tip."""
    return RodTree(tuple(Rod(f"r{i}", f"r{i - 1}" if i else "ground", 1.0, 1.0) for i in range(n)))


def test_the_recursion_is_built_faster_than_lagranges_equation_is_differentiated(record_property: Any) -> None:
    """The table of methods: seconds to build the equations of n rods, and operations of the result."""
    print("\n n   recursion           Lagrange")
    for n in (2, 5, 10, 20):
        tree = chain(n)
        zc, dzc, ac = (ca.SX.sym(name, 3 * n) for name in ("z", "dz", "a"))
        z, dz, a = (objects(column) for column in (zc, dzc, ac))
        begin = time.perf_counter()
        recursion = ca.Function("recursion", [zc, dzc, ac], [ca.cse(ca.vertcat(*inverse_dynamics(tree, z, dz, a)))])
        one = time.perf_counter() - begin
        begin = time.perf_counter()
        energy = energies(tree, z, dz)
        momentum = ca.gradient(energy.kinetic, dzc)
        rate = ca.jtimes(momentum, zc, dzc) + ca.jtimes(momentum, dzc, ac)
        lagrange = ca.Function("l", [zc, dzc, ac], [ca.cse(rate - ca.gradient(energy.kinetic - energy.weight, zc))])
        by_lagrange = time.perf_counter() - begin
        sizes = recursion.n_instructions(), lagrange.n_instructions()
        print(f"{n:2d}   {one:6.3f} s {sizes[0]:7d}   {by_lagrange:6.3f} s {sizes[1]:7d}")
        record_property(f"operations_ratio_{n}", sizes[1] / sizes[0])
        assert sizes[0] < sizes[1]


def test_eleven_rods_are_built_in_four_times_the_time_of_five(record_property: Any) -> None:
    five, eleven = (best(lambda s=size: exoskeleton(s, limit=200.0), batches=3) for size in (5, 11))
    record_property("build_ratio", eleven / five)
    print(f"\nexoskeleton, cold build: 5 rods {five:.3f} s, 11 rods {eleven:.3f} s, ratio {eleven / five:.2f}")
    assert eleven / five <= 4.0


def test_andrews_mechanism_is_5_times_as_fast_as_constrained_dynamics(tmp_path: Path, record_property: Any) -> None:
    """30 ms to 2.5e-8 of the worst angle, one coordinate against seven with constraints."""
    system = andrews_system("joint_functions")
    end = np.array([mechanism.END[n] for n in mechanism.ANGLES])
    start, p, q = [mechanism.START["beta"], 0.0], {"stiffness": mechanism.STIFFNESS}, {"torque": mechanism.TORQUE}
    for tolerance in (1e-7, 5e-8, 2e-8, 1e-8, 3e-9):
        simulator = Simulator(system, rtol=tolerance, atol=0.1 * tolerance)
        run = simulator.run(start, [0.0, 0.03], p=p, q=q)
        if np.abs(run.y[-1, :7] / end - 1.0).max() <= 2.5e-8:
            break
    milliseconds = 1e3 * best(lambda: simulator.run(start, [0.0, 0.03], p=p, q=q), 3)
    error = float(np.abs(run.y[-1, :7] / end - 1.0).max())
    record_property("milliseconds", milliseconds)
    print(f"\nAndrews, 30 ms: {milliseconds:.2f} ms, worst relative error {error:.1e}")
    assert error <= 2.5e-8
    bodies = [
        {"name": name, "parent": parent, "joint": joint, "centre": centre,
         "mass": mechanism.MASSES[int(name[1:]) - 1], "inertia": mechanism.INERTIAS[int(name[1:]) - 1]}
        for name, (parent, _, joint, centre) in mechanism._BODIES.items()
    ]  # fmt: skip
    names = [variable for _, variable, _, _ in mechanism._BODIES.values()]
    peer_model = {
        "bodies": bodies,
        "ends": [{"frame": e.frame, "place": e.position} for e in mechanism.ENDS],
        "start": [mechanism.START[n] for n in names],
        "spring": {"frame": "k3", "anchor": mechanism.SPRING.points[0].position,
                   "place": mechanism.SPRING.points[1].position,
                   "stiffness": mechanism.STIFFNESS, "rest": mechanism.REST},
        "torque": mechanism.TORQUE,
        "rtol": 1e-8,
    }  # fmt: skip
    (tmp_path / "andrews.json").write_text(json.dumps(peer_model))
    answer = peer(str(tmp_path / "andrews.json"))
    theirs = np.array([answer["angles"][names.index(n)] for n in mechanism.ANGLES])
    print(f"Pinocchio: {answer['ms']:.1f} ms, worst relative error {np.abs(theirs / end - 1.0).max():.1e}")
    assert np.abs(theirs / end - 1.0).max() < 1e-4  # the same mechanism
    record_property("ratio_to_pinocchio", answer["ms"] / milliseconds)
    assert answer["ms"] / milliseconds >= 5.0
