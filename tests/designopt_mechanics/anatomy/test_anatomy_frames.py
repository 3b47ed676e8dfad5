"""An anatomy over frames: arrays, loads from outside, frozen links, and motions replayed from their tensions."""

from typing import Any

import casadi as ca
import numpy as np
import pytest
from designopt_mechanics.anatomy.companion import Anatomy, Muscle
from designopt_mechanics.anatomy.forward import Forward
from designopt_mechanics.anatomy.frames import AnatomyFrames, AnatomyRows
from designopt_mechanics.anatomy.inverse import Inverse, Shared
from designopt_mechanics.moment_balance import MomentBalance
from designopt_mechanics.sharing.muscles import Muscles
from designopt_mechanics.sharing.statement.criteria import Power
from designopt_mechanics.sharing.statement.formulation import Terms
from designopt_mechanics.sharing.static.share import share
from designopt_mechanics.sharing.status import SharingStatus
from designopt_mechanics.state import TreeState
from designopt_mechanics.tree import Point
from designopt_mechanics.wires import lengths
from reference_arm import motion, reference_arm

TIMES = np.linspace(0.0, 1.0, 51)


@pytest.fixture(scope="module")
def arm() -> Anatomy:
    return reference_arm()


@pytest.fixture(scope="module")
def solved(arm: Anatomy) -> list[Shared]:
    """The 51 frames of the specification, section 9.3, with free links (P2)."""
    inverse, frames = Inverse(arm), []
    for t in TIMES:
        frames.append(inverse.at(*motion(float(t)), frames[-1] if frames else None))
    return frames


def all_frames(arm: Anatomy, solved: list[Shared]) -> AnatomyFrames:
    q, dq, ddq = (np.array(part) for part in zip(*(motion(float(t)) for t in TIMES), strict=True))
    poses, tensions = np.array([f.pose for f in solved]), np.array([f.tensions for f in solved])
    return AnatomyRows(arm, compiled=False).at(q, dq, ddq, poses, tensions)


def test_the_arrays_of_a_trial_are_those_of_its_single_frames(arm: Anatomy, solved: list[Shared]) -> None:
    trial = all_frames(arm, solved)
    assert trial.jacobian.shape == (51, 20, 8)
    assert np.abs(trial.moments - [f.tau for f in solved]).max() < 1e-10
    assert np.abs(trial.forces - trial.moments).max() < 1e-6
    assert np.abs(trial.resultants).max() < 1e-6
    names = [f.name for f in arm.tree.frames]
    single = np.array([[f.contact[n] for n in names] for f in solved])
    assert np.abs(trial.joints - single).max() < 1e-8
    turned = np.einsum("nfrc,nfr->nfc", trial.axes, trial.joints[:, :, 3:])
    assert np.abs(trial.joints_own[:, :, 3:] - turned).max() < 1e-12
    s = TreeState.symbols(arm.tree)
    dl = ca.Function("dl", [s.z, s.dz], [s.rate(lengths(s, arm.wires)), s.velocity(Point("radius"))])
    z, dz = np.concatenate([motion(0.2)[0], solved[10].pose]), np.concatenate([motion(0.2)[1], np.zeros(3)])
    rate, speed = (np.asarray(r, float).ravel() for r in dl(z, dz))
    assert trial.rates[10] == pytest.approx(rate, abs=1e-12)
    assert trial.velocities[10, names.index("radius")] == pytest.approx(speed, abs=1e-12)
    assert trial.power == pytest.approx(-trial.tensions * trial.rates, rel=1e-12)


def test_a_load_moves_inverse_and_forward_dynamics_as_virtual_work_says(arm: Anatomy) -> None:
    """J' w, required 1e-10 (specification of wires, section 10)."""
    q, dq, ddq = (part[None] for part in motion(0.2))
    rows, rest, none = AnatomyRows(arm, ["radius"], compiled=False), np.zeros((1, 3)), np.zeros((1, 20))
    force, at = np.array([12.0, -7.0, 30.0]), (0.01, 0.03, -0.2)
    s = TreeState.symbols(arm.tree)
    position = s.position(Point("radius", at))
    work = ca.Function("J", [s.z], [position, ca.densify(ca.jacobian(position, s.z))])
    point, J = (np.asarray(r, float) for r in work(np.concatenate([q[0], rest[0]])))
    load = np.concatenate([force, np.cross(point.ravel(), force)])
    moved = rows.at(q, dq, ddq, rest, none).moments - rows.at(q, dq, ddq, rest, none, {"radius": load}).moments
    assert np.abs(moved[0] - (J.T @ force)[:5]).max() < 1e-10
    forward = Forward(arm, ["radius"])
    pull = [law.min_tension + 20.0 for law in arm.laws.values() if isinstance(law, Muscle)]
    free = forward.accelerations(q[0], dq[0], pull)
    changed = forward.accelerations(q[0], dq[0], pull, loads={"radius": load}) - free
    still = np.zeros((1, 5))
    lifted = rows.at(q, still, np.array([changed]), rest, none).moments - rows.at(q, still, still, rest, none).moments
    assert np.abs(lifted[0] - (J.T @ force)[:5]).max() < 1e-10
    shared = Inverse(arm, ["radius"]).at(*motion(0.2), loads={"radius": 0.2 * load})
    assert np.abs(shared.tau - rows.at(q, dq, ddq, rest, none, {"radius": 0.2 * load}).moments).max() < 1e-10


def test_the_tensions_make_the_accelerations_of_the_motion(arm: Anatomy, solved: list[Shared]) -> None:
    """Round trip over 51 frames; required 1e-6 rad/s^2."""
    forward, worst = Forward(arm), 0.0
    for t, frame in zip(TIMES, solved, strict=True):
        q, dq, ddq = motion(float(t))
        worst = max(worst, float(np.abs(forward.accelerations(q, dq, frame.tensions[:18], frame.pose) - ddq).max()))
    assert worst < 1e-6


def test_replayed_tensions_make_the_motion(arm: Anatomy, solved: list[Shared]) -> None:
    """Open loop, cubic between the frames: 1e-3 rad required at 1 s, 1.2e-5 obtained in the specification."""
    q, dq, _ = motion(0.0)
    replayed = Forward(arm).replay(TIMES, [f.tensions[:18] for f in solved], q, dq, rtol=1e-8)
    assert np.abs(replayed.q[-1] - motion(1.0)[0]).max() < 1e-4
    assert np.abs(replayed.pose[-1] - solved[-1].pose).max() < 1e-4


def muscles(arm: Anatomy, frames: int) -> Muscles:
    """All wires with what they may pull; tendons up to 2 kN."""
    most = np.array([law.max_tension if isinstance(law, Muscle) else 2000.0 for law in arm.laws.values()])
    tone = np.array([law.min_tension if isinstance(law, Muscle) else 0.0 for law in arm.laws.values()])
    return Muscles(tuple(w.name for w in arm.wires), np.tile(most, (frames, 1)), lower=tone / most)


def frozen(arm: Anatomy, solved: list[Shared], shift: float, elastic: Any = "free") -> MomentBalance:
    q, dq, ddq = (np.array(part) for part in zip(*(motion(float(t)) for t in TIMES), strict=True))
    poses = np.array([f.pose for f in solved])
    poses[:, 0] += shift
    return AnatomyRows(arm, compiled=False).frozen(TIMES, q, dq, ddq, poses, elastic=elastic)


def test_at_the_pose_of_free_links_frozen_ones_share_the_same_cost(arm: Anatomy, solved: list[Shared]) -> None:
    """Equal to 8e-7 in the specification: with the tendons' tensions by their law, squares of muscles alone."""
    balance = frozen(arm, solved, 0.0, "law")
    all_wires = muscles(arm, 51)
    muscle_wires = Muscles(balance.columns, all_wires.strength[:, :18], lower=all_wires.lower[:, :18])
    sharing = share(balance, muscle_wires, Terms(criterion=Power(2.0)))
    assert sharing.feasible.all()
    costs = np.array([f.cost for f in solved])
    assert (sharing.activations**2).sum(axis=1) == pytest.approx(costs, rel=1e-5)


def test_a_linear_cost_uses_few_muscles(arm: Anatomy, solved: list[Shared]) -> None:
    """At most as many above their bounds as there are rows; squares use more (10 against 6 in the specification)."""
    balance, wires = frozen(arm, solved, 0.0), muscles(arm, 51)
    linear = share(balance, wires, Terms(criterion=Power(1.0)))
    square = share(balance, wires, Terms(criterion=Power(2.0)))
    assert linear.feasible.all()
    used = [(sharing.activations > sharing.muscles.lower + 1e-6).sum(axis=1) for sharing in (linear, square)]
    assert used[0].max() <= len(balance.rows)
    assert used[0].mean() < used[1].mean()


def test_a_frozen_pose_displaced_by_5_mm_is_found_infeasible_in_every_frame(arm: Anatomy, solved: list[Shared]) -> None:
    """51 of 51 frames (specification of wires, sections 5 and 9.3), with the rows that are short."""
    balance = frozen(arm, solved, 0.005)
    sharing = share(balance, muscles(arm, 51))
    assert (sharing.status == SharingStatus.INFEASIBLE).all()
    assert (sharing.deficit > 0.0).all()
    short = np.abs(sharing.shortfall).max(axis=0)
    assert {balance.rows[int(short.argmax())]} <= set(arm.links)


def test_mismatched_input_is_refused(arm: Anatomy) -> None:
    rows, five = AnatomyRows(arm, ["radius"], compiled=False), np.zeros((2, 5))
    with pytest.raises(ValueError, match=r"pose has shape \(2, 2\), not \(2, 3\)"):
        rows.at(five, five, five, np.zeros((2, 2)), np.zeros((2, 20)))
    with pytest.raises(ValueError, match=r"'ulna' is not among the loaded frames \(radius\)"):
        rows.at(five, five, five, np.zeros((2, 3)), np.zeros((2, 20)), {"ulna": np.zeros(6)})
    with pytest.raises(ValueError, match="loads on 'radius' are"):
        rows.at(five, five, five, np.zeros((2, 3)), np.zeros((2, 20)), {"radius": np.full(6, np.nan)})
    with pytest.raises(ValueError, match=r"muscles must be \(n, 18\)"):
        Forward(arm).replay([0.0, 1.0], np.zeros((2, 3)), np.zeros(5), np.zeros(5))
