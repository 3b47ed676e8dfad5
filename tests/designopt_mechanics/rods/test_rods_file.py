"""Rods from YAML: the branch of the specification is read, mistakes are told with line and column."""

import numpy as np
import pytest
from designopt_mechanics.rods.reading import read_rods

from designopt.study.language.errors import StudyError

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
