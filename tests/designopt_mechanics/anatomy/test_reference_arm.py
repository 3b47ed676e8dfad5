"""Equilibria and tensions of the arm of section 9.3 of the specification of wires."""

import numpy as np
import pytest
from designopt_mechanics.anatomy.companion import Anatomy
from designopt_mechanics.anatomy.equilibrium import Equilibrium
from designopt_mechanics.anatomy.inverse import Infeasible, Inverse
from reference_arm import motion, reference_arm


@pytest.fixture(scope="module")
def arm() -> Anatomy:
    return reference_arm()


@pytest.mark.parametrize("start", [None, [0.05, 0.05, -0.2], [-0.05, 0.15, -0.25], [0.0, 0.1, -0.3]])
def test_the_link_is_in_equilibrium_where_the_specification_has_it(arm: Anatomy, start: list[float] | None) -> None:
    balance = Equilibrium(arm)
    pull = [60.0 if n.endswith("BicepsLong") else 40.0 if n.endswith("BicepsShort") else 0.0 for n in balance.muscles]
    equilibrium = balance.at(motion(0.0)[0], pull, start)
    assert np.abs(equilibrium.pose - [0.003146784, 0.122784344, -0.243293649]).max() < 2e-9
    assert equilibrium.tensions[-2:] == pytest.approx([59.1667, 44.9775], abs=5e-5)
    assert equilibrium.steps <= 20


def test_tensions_and_joint_forces_at_a_fifth_of_a_second_are_those_of_the_specification(arm: Anatomy) -> None:
    """Required 1e-3 relative."""
    frame = Inverse(arm).at(*motion(0.2))
    assert np.abs(frame.tau - [0.0207, 5.1514, 0.2034, 2.5186, -0.0022]).max() < 1e-3
    assert frame.cost == pytest.approx(0.008903, rel=1e-3)
    tensions = dict(zip((w.name for w in arm.wires), frame.tensions, strict=True))
    heads = [
        tensions["R_Mus_BicepsLong"],
        tensions["R_Mus_BicepsShort"],
        tensions["R_Ten_Radius"],
        tensions["R_Ten_Ulna"],
    ]
    assert heads == pytest.approx([6.458, 10.466, 13.452, 4.054], rel=1e-3)
    contact = [np.linalg.norm(frame.contact[bone][:3]) for bone in ("humerus", "ulna", "radius")]
    assert contact == pytest.approx([61.479, 37.942, 23.737], rel=1e-3)


def test_all_frames_of_the_motion_are_solved_and_their_tensions_make_the_motion(arm: Anatomy) -> None:
    """Costs at four times, no failure in 51 frames, and the equilibrium pose under the found tensions is the same."""
    inverse, balance, last = Inverse(arm), Equilibrium(arm), None
    costs = []
    for t in np.linspace(0.0, 1.0, 51):
        last = inverse.at(*motion(float(t)), last)
        costs.append(last.cost)
        assert last.residual < 1e-6
    assert [costs[i] for i in (0, 25, 40, 50)] == pytest.approx([0.005189, 0.014057, 0.012014, 0.008729], rel=1e-3)
    assert last is not None
    repeated = balance.at(motion(1.0)[0], last.tensions[:-2], last.pose)
    assert np.abs(repeated.pose - last.pose).max() < 1e-7
    assert np.abs(repeated.tau - last.tau).max() < 1e-6


def test_a_motion_that_the_wires_cannot_carry_is_refused_with_the_joint(arm: Anatomy) -> None:
    q, dq, _ = motion(0.2)
    with pytest.raises(Infeasible, match=r"the wires do not carry the motion: at joint '\w+' \S+ N m are missing$"):
        Inverse(arm).at(q, dq, np.full(5, 3000.0))
