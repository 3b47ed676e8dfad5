"""The arm of five degrees of freedom, twenty wires and one virtual link of the specification of wires, section 9.3."""

import numpy as np
from designopt_mechanics.anatomy.companion import Anatomy, read_companion
from designopt_mechanics.anatomy.geometry import FixedPoint, Geometry, Strand

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


def fixed(text: str) -> FixedPoint:
    if text == "V":
        return FixedPoint("knot", LINK)
    position = np.array([float(v) for v in text[2:-1].split(",")]) + ORIGINS[text[0]]
    x, y, z = position.tolist()
    return FixedPoint(BONES[text[0]], (x, y, z))


def reference_arm() -> Anatomy:
    wires, laws = [], []
    for line in MUSCLES.splitlines():
        name, most, *points = line.split()
        wires.append(Strand(f"R_Mus_{name}", tuple(fixed(p) for p in points)))
        tone = 1 if name.startswith("Biceps") else 0
        laws.append(f"  R_Mus_{name}: {{max: {most}, tone: {tone}}}\n")
    wires.append(Strand("R_Ten_Radius", (fixed("V"), fixed("R(-.012,.01,-.045)"))))
    wires.append(Strand("R_Ten_Ulna", (fixed("V"), fixed("U(-.01,.025,-.09)"))))
    bones, knot = {}, np.eye(4)
    for letter, bone in BONES.items():
        bones[bone] = np.eye(4)
        bones[bone][:3, 3] = ORIGINS[letter]
    knot[:3, 3] = LINK
    geometry = Geometry(bones, {"knot": knot}, tuple(wires))
    return read_companion((COMPANION + "".join(laws)).encode(), "arm.yaml", geometry)
