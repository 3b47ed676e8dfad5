"""The arm of five degrees of freedom, twenty wires and one virtual link of the specification of wires, section 9.3."""

from __future__ import annotations

import numpy as np
import pytest
from designopt_mechanics.anatomy.companion import Anatomy, read_companion
from designopt_mechanics.anatomy.equilibrium import Equilibrium
from designopt_mechanics.anatomy.geometry import Geometry, Held, Strand
from designopt_mechanics.anatomy.inverse import Infeasible, Inverse

ORIGINS = {"S": (0.0, 0.0, 0.0), "H": (0.0, 0.0, 0.0), "U": (0.0, 0.0, -0.30), "R": (0.02, 0.0, -0.31)}
BONES = {"S": "scapula", "H": "humerus", "U": "ulna", "R": "radius"}
LINK = (0.005, 0.03, -0.25)
#: Greatest force (N) and points of the muscles; V is the virtual link.
MUSCLES = """\
DeltoidAnt 900 S(.05,.07,.03) H(.02,.025,-.13)
DeltoidMid 1100 S(.04,0,.05) H(.035,0,-.02) H(.02,0,-.13)
DeltoidPost 700 S(.03,-.08,.03) H(.02,-.02,-.13)
PectoralisUp 700 S(-.12,.10,-.02) H(.005,.02,-.07)
PectoralisLow 700 S(-.13,.10,-.14) H(.005,.02,-.08)
LatissimusDorsi 900 S(-.10,-.11,-.20) H(-.01,-.01,-.06)
Supraspinatus 500 S(-.08,-.03,.04) H(.025,0,.02)
Subscapularis 1000 S(-.10,-.02,-.03) H(0,.025,0)
Infraspinatus 1000 S(-.09,-.06,-.03) H(.02,-.02,.01)
TeresMinor 350 S(-.05,-.05,-.06) H(.02,-.02,-.02)
TricepsLong 800 S(-.02,-.02,-.03) H(0,-.025,-.20) H(0,-.032,-.295) U(0,-.025,.012)
TricepsLat 700 H(.01,-.015,-.08) H(0,-.032,-.295) U(0,-.025,.012)
Brachialis 900 H(0,.015,-.17) U(0,.012,-.035)
Brachioradialis 270 H(.02,.012,-.21) R(.012,.02,-.10) R(.01,.005,-.21)
PronatorTeres 560 H(-.03,.01,-.27) R(.012,.006,-.11)
Supinator 480 U(.01,-.02,-.02) R(.012,-.008,-.04) R(.008,.012,-.07)
BicepsLong 620 S(0,.01,.03) H(.012,.028,.005) V
BicepsShort 430 S(.01,.06,0) V
"""
COMPANION = """\
bones:
  scapula: {joint: {parent: ground}, mass: 1}
  humerus:
    joint: {parent: scapula, center: [0, 0, 0], axes: [[0, 0, 1], [1, 0, 0], [0, 1, 0]]}
    mass: 2.0
    com: [0, 0, -0.14]
    inertia: [0.015, 0.015, 0.002]
  ulna:
    joint: {parent: humerus, center: [0, 0, -0.30], axes: [[1, 0, 0]]}
    mass: 0.9
    com: [0, 0, -0.11]
    inertia: [0.006, 0.006, 0.0008]
  radius:
    joint: {parent: ulna, center: [0.02, 0, -0.31], axes: [[0, 0, -1]]}
    mass: 1.0
    com: [0, 0, -0.17]
    inertia: [0.012, 0.012, 0.001]
laws:
  R_Ten_Radius: {stiffness: 5.0e4, slack_length: 0.060}
  R_Ten_Ulna: {stiffness: 1.0e4, slack_length: 0.072}
"""


def held(text: str) -> Held:
    if text == "V":
        return Held("knot", LINK)
    place = np.array([float(v) for v in text[2:-1].split(",")]) + ORIGINS[text[0]]
    x, y, z = place.tolist()
    return Held(BONES[text[0]], (x, y, z))


@pytest.fixture(scope="module")
def arm() -> Anatomy:
    return reference_arm()


def reference_arm() -> Anatomy:
    wires, laws = [], []
    for line in MUSCLES.splitlines():
        name, most, *points = line.split()
        wires.append(Strand(f"R_Mus_{name}", tuple(held(p) for p in points)))
        tone = 1 if name.startswith("Biceps") else 0
        laws.append(f"  R_Mus_{name}: {{max: {most}, tone: {tone}}}\n")
    wires.append(Strand("R_Ten_Radius", (held("V"), held("R(-.012,.01,-.045)"))))
    wires.append(Strand("R_Ten_Ulna", (held("V"), held("U(-.01,.025,-.09)"))))
    bones, knot = {}, np.eye(4)
    for letter, bone in BONES.items():
        bones[bone] = np.eye(4)
        bones[bone][:3, 3] = ORIGINS[letter]
    knot[:3, 3] = LINK
    geometry = Geometry(bones, {"knot": knot}, tuple(wires))
    return read_companion((COMPANION + "".join(laws)).encode(), "arm.yaml", geometry)


def motion(t: float) -> list[np.ndarray]:
    """Joints of the specification's motion with rates and accelerations."""
    a, w = np.array([0.3, 0.35, 0.2, 0.6, 0.3]), np.array([2.0, 3.0, 1.0, 2.5, 4.0])
    s, c = np.sin(w * t), np.cos(w * t)
    return [a * s + np.array([0.0, 0.25, 0.0, 0.9, 0.0]), a * w * c, -a * w**2 * s]


@pytest.mark.parametrize("start", [None, [0.05, 0.05, -0.2], [-0.05, 0.15, -0.25], [0.0, 0.1, -0.3]])
def test_the_link_is_in_equilibrium_where_the_specification_has_it(arm: Anatomy, start: list[float] | None) -> None:
    balance = Equilibrium(arm)
    pull = [60.0 if n.endswith("BicepsLong") else 40.0 if n.endswith("BicepsShort") else 0.0 for n in balance.muscles]
    found = balance.at(motion(0.0)[0], pull, start)
    assert np.abs(found.pose - [0.003146784, 0.122784344, -0.243293649]).max() < 2e-9
    assert found.tensions[-2:] == pytest.approx([59.1667, 44.9775], abs=5e-5)
    assert found.steps <= 20


def test_tensions_and_joint_forces_at_a_fifth_of_a_second_are_those_of_the_specification(arm: Anatomy) -> None:
    """Required 1e-3 relative."""
    found = Inverse(arm).at(*motion(0.2))
    assert np.abs(found.tau - [0.0207, 5.1514, 0.2034, 2.5186, -0.0022]).max() < 1e-3
    assert found.cost == pytest.approx(0.008903, rel=1e-3)
    of = dict(zip((w.name for w in arm.wires), found.tensions, strict=True))
    heads = [of["R_Mus_BicepsLong"], of["R_Mus_BicepsShort"], of["R_Ten_Radius"], of["R_Ten_Ulna"]]
    assert heads == pytest.approx([6.458, 10.466, 13.452, 4.054], rel=1e-3)
    contact = [np.linalg.norm(found.contact[bone][:3]) for bone in ("humerus", "ulna", "radius")]
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
    again = balance.at(motion(1.0)[0], last.tensions[:-2], last.pose)
    assert np.abs(again.pose - last.pose).max() < 1e-7
    assert np.abs(again.tau - last.tau).max() < 1e-6


def test_a_motion_that_the_wires_cannot_carry_is_refused_with_the_joint(arm: Anatomy) -> None:
    q, dq, _ = motion(0.2)
    with pytest.raises(Infeasible, match="the wires do not carry the motion: at '"):
        Inverse(arm).at(q, dq, np.full(5, 3000.0))
