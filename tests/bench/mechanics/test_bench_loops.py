"""Loops of ten bodies: inverse and forward dynamics against multipliers with MuJoCo's matrices, called from Python.

Both read the same MJCF. MuJoCo has no exact constraints, so its mass matrix, bias and Jacobians enter the equations of
multipliers, which NumPy solves for every frame: M qdd + h = J' lambda + B u, J qdd = -dJ/dt qd. Process time, medians.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from designopt_mechanics.mechanism.equations import mechanism_system
from designopt_mechanics.mechanism.forces import LoopForces, MotionRows
from designopt_mechanics.mechanism.loops import LoopSolver
from designopt_mechanics.robot_files.reading import read_robot

from designopt.arrays import Floats
from designopt.dynamics.compile import find_compiler
from designopt.dynamics.rows import Rows

mujoco = pytest.importorskip("mujoco", reason="the peer of the comparison is not installed")

pytestmark = [
    pytest.mark.bench,
    pytest.mark.skipif(find_compiler() is None, reason="no C compiler: what is compared is compiled code"),
]

ROWS, REPEATS = 500, 7


def train(stages: int = 4) -> str:
    """A crank that moves four-bar linkages one after the other, and a pendulum on the last rocker: ten bodies."""

    def link(name: str, at: str, end: str, inner: str = "") -> str:
        hinge = f'<joint name="{name}" axis="0 -1 0"/><geom type="capsule" fromto="0 0 0 {end}" size="0.01"/>'
        return f'<body name="{name}" pos="{at}">{hinge}{inner}</body>'

    bodies = link("crank", "0 0 0", "0.1 0 0", link("c1", "0.1 0 0", "0.3 0 0.1"))
    x, z = 0.4, -0.2
    for i in range(1, stages + 1):
        last = i == stages
        hung = link("bob", "0 0 0.15", "0 0 -0.2") if last else link(f"c{i + 1}", "0 0 0.15", "0.3 0 0.1")
        bodies += link(f"r{i}", f"{x:g} 0 {z:g}", "0 0 0.3", hung)
        x, z = x + 0.3, z - 0.05
    pins = [f'<connect name="p{i}" body1="c{i}" body2="r{i}" anchor="0.3 0 0.1"/>' for i in range(1, stages + 1)]
    return f"<mujoco><worldbody>{bodies}</worldbody><equality>{''.join(pins)}</equality></mujoco>"


class Multipliers:
    """The engine's matrices in the equations of multipliers; `order` are our coordinates in its order."""

    def __init__(self, text: str, names: tuple[str, ...], pins: Any) -> None:
        self.model = mujoco.MjModel.from_xml_string(text)
        self.data = mujoco.MjData(self.model)
        self.order = [names.index(self.model.joint(j).name) for j in range(self.model.njnt)]
        self.pins = [
            [(self.model.body(p.frame).id, np.array(p.position)) for p in (pin.first, pin.second)] for pin in pins
        ]
        self.M = np.zeros((self.model.nv, self.model.nv))

    def state(self, z: Floats, dz: Floats) -> tuple[Floats, Floats, Floats]:
        """Bias h, Jacobian J (k, m) in the plane and its rate times the speeds (k,)."""
        model, data = self.model, self.data
        data.qpos[:], data.qvel[:] = z[self.order], dz[self.order]
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_fwdVelocity(model, data)
        mujoco.mj_fullM(model, data, self.M)
        blocks, turned, jacobian = [], [], np.zeros((3, model.nv))
        for ends in self.pins:
            parts = []
            for body, local in ends:
                at = data.xpos[body] + data.xmat[body].reshape(3, 3) @ local
                slopes, rates = jacobian.copy(), jacobian.copy()
                mujoco.mj_jac(model, data, slopes, None, at, body)
                mujoco.mj_jacDot(model, data, rates, None, at, body)
                parts.append((slopes, rates @ data.qvel))
            blocks.append((parts[0][0] - parts[1][0])[[0, 2]])
            turned.append((parts[0][1] - parts[1][1])[[0, 2]])
        return data.qfrc_bias.copy(), np.vstack(blocks), np.concatenate(turned)

    def inverse(self, z: Floats, dz: Floats, ddz: Floats, driven: list[int]) -> tuple[Floats, Floats]:
        """Efforts of the driven coordinates and multipliers."""
        h, J, _ = self.state(z, dz)
        B = np.eye(len(z))[:, [self.order.index(d) for d in driven]]
        solution = np.linalg.solve(np.hstack([B, J.T]), self.M @ ddz[self.order] + h)
        return solution[: len(driven)], solution[len(driven) :]

    def forward(self, z: Floats, dz: Floats, effort: Floats) -> Floats:
        """Accelerations in the engine's order."""
        h, J, turned = self.state(z, dz)
        k = len(J)
        A = np.block([[self.M, J.T], [J, np.zeros((k, k))]])
        return np.linalg.solve(A, np.concatenate([effort[self.order] - h, -turned]))[: len(z)]


def median(call: Callable[[], Any]) -> float:
    """Seconds of processor time of one call."""
    spans = []
    for _ in range(REPEATS):
        begin = time.process_time()
        call()
        spans.append(time.process_time() - begin)
    return float(np.median(spans))


@pytest.fixture(scope="module")
def moving() -> tuple[LoopSolver, MotionRows, Multipliers]:
    """Random states that close the loops."""
    text = train()
    mechanism = read_robot(text.encode(), "train.xml").mechanism
    assert len(mechanism.tree.frames) == 10
    loops = LoopSolver(mechanism)
    p: list[float] = []
    time_ = np.linspace(0.0, 1.0, ROWS)
    z = loops.follow(loops.start(p), np.column_stack([0.4 * np.sin(7.0 * time_), 0.5 * np.cos(5.0 * time_)]), p)
    assert z.is_closed.all()
    rng = np.random.default_rng(0)
    dz = loops.rates(z.z, rng.normal(size=(ROWS, 2)), p)
    motion = MotionRows(time_, z.z, dz, loops.accelerations(z.z, dz, rng.normal(size=(ROWS, 2)), p))
    return loops, motion, Multipliers(text, mechanism.tree.names, mechanism.meets)


def test_inverse_dynamics_of_ten_bodies_with_loops_is_20_times_that_of_multipliers(
    moving: tuple[LoopSolver, MotionRows, Multipliers], record_property: Any
) -> None:
    loops, motion, peer = moving
    forces = LoopForces(loops)
    driven = [int(i) for i in loops.independent]
    solved = forces.solve(motion, [])

    def theirs() -> list[tuple[Floats, Floats]]:
        return [peer.inverse(z, dz, ddz, driven) for z, dz, ddz in zip(motion.z, motion.dz, motion.ddz, strict=True)]

    efforts = np.array([u for u, _ in theirs()])
    np.testing.assert_allclose(solved.efforts, efforts, atol=1e-9)
    cuts = np.linalg.norm(np.array([m for _, m in theirs()]).reshape(ROWS, -1, 2), axis=2)
    np.testing.assert_allclose(np.linalg.norm(solved.cuts.reshape(ROWS, -1, 2), axis=2), cuts, atol=1e-9)
    one, by_kkt = median(lambda: forces.solve(motion, [])), median(theirs)
    record_property("ratio_to_multipliers", by_kkt / one)
    record_property("inverse_dynamics_us", 1e6 * one / ROWS)
    print(
        f"\ninverse dynamics: {1e6 * one / ROWS:.1f} us, multipliers {1e6 * by_kkt / ROWS:.1f} us, {by_kkt / one:.1f}"
    )
    assert by_kkt / one >= 20.0


def test_forward_dynamics_of_ten_bodies_with_loops_is_5_times_that_of_multipliers(
    moving: tuple[LoopSolver, MotionRows, Multipliers], record_property: Any
) -> None:
    loops, motion, peer = moving
    m = len(loops.mechanism.tree.names)
    rates = Rows(mechanism_system(loops).rhs)
    x, nothing = np.hstack([motion.z, motion.dz]), np.zeros(0)

    def ours() -> Floats:
        return rates(x, nothing, nothing, nothing, nothing, 0.0)[0][:, m:]

    def theirs() -> list[Floats]:
        return [peer.forward(z, dz, np.zeros(m)) for z, dz in zip(motion.z, motion.dz, strict=True)]

    np.testing.assert_allclose(ours()[:, peer.order], np.array(theirs()), rtol=1e-8, atol=1e-7)
    one, by_kkt = median(ours), median(theirs)
    record_property("ratio_to_multipliers", by_kkt / one)
    record_property("forward_dynamics_us", 1e6 * one / ROWS)
    print(
        f"\nforward dynamics: {1e6 * one / ROWS:.1f} us, multipliers {1e6 * by_kkt / ROWS:.1f} us, {by_kkt / one:.1f}"
    )
    assert by_kkt / one >= 5.0
