"""Wires with virtual links: files with naming rules, the published numbers, equilibria, and bad input."""

from importlib.resources import files
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
from designopt_mechanics.anatomy.companion import Anatomy, ElasticStrand, bundled, bundled_geometry, read_companion
from designopt_mechanics.anatomy.equilibrium import Equilibrium
from designopt_mechanics.anatomy.geometry import FixedPoint, Geometry, Strand
from designopt_mechanics.anatomy.model import WirePatterns
from designopt_mechanics.anatomy.vrml import read_vrml
from designopt_mechanics.report.wires import wire_tensions
from designopt_mechanics.tree_rows import TreeRows

import designopt
from designopt.plugin import InputFile, InvalidSetting
from designopt.study.language.errors import StudyError

STUDIES = Path(__file__).parents[3] / "studies"
FOLDER = files("designopt_mechanics.anatomy").joinpath("patterns")


def text(name: str) -> str:
    return FOLDER.joinpath(name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def forked() -> Anatomy:
    """Test E1 of the specification of wires: a forked flexor."""
    return bundled("biceps")


def test_lengths_and_their_derivatives_are_those_of_the_specification(forked: Anatomy) -> None:
    """Section 9.2."""
    rows = TreeRows(forked.tree, wires=forked.wires, compiled=False)
    z = [[1.0, 0.3, 0.004, 0.05, -0.25]]
    reference = [0.2203935784, 0.1913112647, 0.0876013699, 0.0930000000]
    assert np.abs(rows.lengths([forked.tree.reference])[0] - reference).max() < 1e-10
    assert np.abs(rows.lengths(z)[0] - [0.2028089316, 0.1736692258, 0.0706529589, 0.0739922967]).max() < 1e-10
    J_L = [
        [0.0, 0.0, -0.0390360029, 0.2146980160, -0.9759000729],
        [0.0, 0.0, 0.1094033782, 0.1727421762, -0.9788723315],
        [-0.0512422596, -0.0018848749, -0.1601137493, -0.0384976267, 0.9863475655],
        [-0.0535815056, 0.0, 0.1892088855, -0.0942244945, 0.9774056181],
    ]
    assert np.abs(-rows.moment_arms(z)[0].T - J_L).max() < 1e-10


@pytest.mark.parametrize("start", [None, [0.05, 0.0, -0.2], [-0.05, 0.1, -0.28]])
def test_the_fork_finds_its_equilibrium_from_any_start(forked: Anatomy, start: Any) -> None:
    equilibrium = Equilibrium(forked).at([1.0, 0.3], [80.0, 50.0], start)
    assert np.abs(equilibrium.pose - [0.0059173257, 0.0406163058, -0.2314482061]).max() < 1e-9
    assert np.abs(equilibrium.tensions[2:] - [98.0236969638, 32.5184366552]).max() < 1e-7
    assert np.abs(equilibrium.tau - [6.5009289613, 0.2248439800]).max() < 1e-8
    assert np.abs(equilibrium.resultant).max() < 1e-9


def test_the_moments_are_minus_the_derivative_of_the_potential_and_the_pose_follows_its_implicit_derivative(
    forked: Anatomy,
) -> None:
    balance, h = Equilibrium(forked), 1e-5
    balanced = balance.at([1.0, 0.3], [80.0, 50.0])
    for k in range(2):
        step = h * np.eye(2)[k]
        low, high = (balance.at([1.0, 0.3] + side * step, [80.0, 50.0], balanced.pose) for side in (-1.0, 1.0))
        assert np.abs((high.pose - low.pose) / (2.0 * h) - balanced.follows[:, k]).max() < 1e-6
        energies = []
        for side in (low, high):
            energy = 80.0 * side.lengths[0] + 50.0 * side.lengths[1]
            for i, law in enumerate(forked.laws.values()):
                if isinstance(law, ElasticStrand):
                    energy += float(ca.evalf(ca.SX(law.energy(ca.SX(side.lengths[i])))))
            energies.append(energy)
        assert -(energies[1] - energies[0]) / (2.0 * h) == pytest.approx(balanced.tau[k], abs=1e-7)


def test_a_symmetric_fork_shares_the_pull_as_statics_says() -> None:
    """Section 9.1: 100 N upwards, tendons of 0.05 m to points at +-0.03 m: 62.5 N each, 0.04 m above the anchors."""
    link = np.eye(4)
    link[:3, 3] = (0.0, 0.0, 0.04)
    wires = (
        Strand("C_Mus_Up", (FixedPoint("base", (0.0, 0.0, 10.0)), FixedPoint("knot", (0.0, 0.0, 0.04)))),
        Strand("L_Ten_One", (FixedPoint("knot", (0.0, 0.0, 0.04)), FixedPoint("base", (0.03, 0.0, 0.0)))),
        Strand("R_Ten_Two", (FixedPoint("knot", (0.0, 0.0, 0.04)), FixedPoint("base", (-0.03, 0.0, 0.0)))),
    )
    geometry = Geometry({"base": np.eye(4)}, {"knot": link}, wires)
    slack = 0.05 - (62.5 / 1e5 - 1e5 * 1e-4**2 / (4.0 * 62.5))  # the smooth law pulls 62.5 N at 0.05 m
    companion = f"""\
bones: {{base: {{joint: {{parent: ground, axes: [[0, 0, 1]]}}, mass: 1, inertia: [1, 1, 1]}}}}
laws:
  C_Mus_Up: {{max: 200}}
  L_Ten_One: {{stiffness: 1.0e5, slack_length: {slack!r}}}
  R_Ten_Two: {{stiffness: 1.0e5, slack_length: {slack!r}}}
"""
    equilibrium = Equilibrium(read_companion(companion.encode(), "y.yaml", geometry)).at([0.0], [100.0])
    assert equilibrium.tensions[1:] == pytest.approx([62.5, 62.5], rel=1e-9)
    assert equilibrium.pose[2] == pytest.approx(0.04, abs=1e-12)


def test_ranges_of_joints_are_those_of_their_coordinates() -> None:
    companion = COMPANION.replace("axes: [[1, 0, 0]]}", "axes: [[1, 0, 0]], range: [-10 deg, 2.4]}", 1)
    anatomy = read_companion(companion.encode(), "ranges.yaml", bundled_geometry("biceps"))
    coordinate = next(c for c in anatomy.tree.coordinates if c.name == "ulna_1")
    assert (coordinate.low, coordinate.high) == pytest.approx((np.radians(-10.0), 2.4))
    assert "'gravity' is not stated: [0, 0, -9.81] m/s^2 is assumed" in anatomy.warnings


def test_placements_compose_as_in_vrml() -> None:
    """p' = T C R S C^-1 p along world, section, wire and point; turned bones give local places."""
    geometry = read_vrml(b"""#VRML V2.0 utf8
DEF world Transform { translation 1 0 0 children [
  DEF bones Transform { children [
    DEF a Transform { rotation 0 0 1 1.5707963267948966 center 1 0 0 }
    DEF b Transform { } ] }
  DEF muscles Transform { scale 2 2 2 children [
    DEF L_Mus_m Transform { translation 0 0 1 children [
      DEF L_Mus_m_Org_a Transform { translation 1 2 3 }
      DEF L_Mus_m_End_b Transform { } ] } ] } ] }
""", "placed.wrl")  # fmt: skip
    assert np.allclose(geometry.bones["a"][:3, 3], [2.0, -1.0, 0.0])
    assert geometry.wires[0].points[0].position == pytest.approx((3.0, 4.0, 8.0))
    assert geometry.wires[0].points[1].position == pytest.approx((1.0, 0.0, 2.0))


def test_underscores_in_names_of_links_do_not_mislead() -> None:
    content = b"""#VRML V2.0 utf8
DEF world Transform { children [
  DEF bones Transform { children [ DEF one_bone Transform {} DEF two Transform {} ] }
  DEF muscles Transform { children [ DEF L_Mus_m2_1 Transform { children [
    DEF L_Mus_m2_1_Org_one_bone Transform { translation 0 0 1 } DEF L_Mus_m2_1_1_two Transform { translation 0 1 1 }
    DEF L_Mus_m2_1_End_two Transform {} ] } ] } ] }"""
    (wire,) = read_vrml(content, "x.wrl").wires
    assert wire.name == "L_Mus_m2_1"
    assert [p.link for p in wire.points] == ["one_bone", "two", "two"]


GOOD, COMPANION = text("biceps.wrl"), text("biceps.yaml")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("#VRML V2.0 utf8", "#VRML V1.0 ascii", "1:1: the first line must be '#VRML V2.0 utf8'"),
        ("DEF ulna ", "DEF humerus ", "6:9: 'humerus' is defined twice"),
        ("R_Mus_FlexorA Transform", "X_Mus_FlexorA Transform", "'X_Mus_FlexorA' is not a valid name of a wire"),
        ("DEF R_Mus_FlexorA T", "DEF R_Ten_FlexorA T", "'R_Ten_FlexorA' is listed under the muscles"),
        ("End_ulna", "End_ulnar", "no bone or virtual link 'ulnar'; did you mean 'ulna'?"),
        ("FlexorA_Org_", "FlexorA_Orig_", "'R_Mus_FlexorA_Orig_humerus' is not a point of 'R_Mus_FlexorA'"),
        ("FlexorA_1_", "FlexorA_2_", "the via points of 'R_Mus_FlexorA' are numbered [2], not 1, 2, ..."),
        ("FlexorA_1_humerus ", "FlexorA_Org_radius ", "'R_Mus_FlexorA' has a second point Org"),
        ("0.005 0.03 -0.27 } ] }\n  DEF mus", "0.005 0.03 nan } ] }\n  DEF mus", "nan is not a usable number"),
        (
            "0.005 0.03 -0.27 } ] }\n  DEF mus",
            "0.005 0.03 } ] }\n  DEF mus",
            "'translation' has 3 numbers; '}' is not one",
        ),
        ("] }\n] }\n", "] }\n", "is never closed"),
        ("DEF ligamenta", "DEF ligaments", "no section 'ligaments'; did you mean 'ligamenta'?"),
        ("DEF world", "ROUTE a.b TO c.d DEF world", "'ROUTE' is not accepted"),
        ("DEF ulna    Transform {", "DEF ulna Transform { scale 1 1 2", "'ulna' is scaled differently along its axes"),
        ("coordIndex [ 0 1 2 -1 ]", 'url "never', "never closed"),
    ],
)
def test_vrml_that_breaks_a_rule_is_refused_with_its_place(old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(StudyError) as raised:
        read_vrml(GOOD.replace(old, new, 1).encode(), "bad.wrl")
    (issue,) = raised.value.issues
    assert message in f"{issue.line}:{issue.column}: {issue.message}"
    assert issue.line
    assert issue.column


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  ulna:\n", "  ulnar:\n", "the geometry has no bone 'ulnar'; did you mean 'ulna'?"),
        ("parent: ulna", "parent: radius", "its parents form a loop"),
        ("mass: 0.9", "mass: 0", "a bone needs a mass"),
        ("R_Ten_ToUlna:", "R_Ten_ToUlnar:", "the geometry has no wire 'R_Ten_ToUlnar'; did you mean 'R_Ten_ToUlna'?"),
        ("{max: 600, tone: 1}", "{max: 600, tone: 700}", "a muscle needs 0 <= tone < max"),
        ("stiffness: 5.0e4", "stiffness: -1", "-1 N/m is not positive"),
        ("{kind: point}", "{kind: pin}", "'pin' is not one of point, rigid"),
        ("fork: {", "folk: {", "the geometry has no virtual link 'folk'; did you mean 'fork'?"),
        ("  R_Mus_FlexorB: {max: 400, tone: 1}\n", "", "wire 'R_Mus_FlexorB' has no law"),
        ("[0.006, 0.006, 0.0008]", "[0.006, 0.006, 0.08]", "no body has the principal moments"),
        ("axes: [[1, 0, 0]]}", "axes: [[1, 0, 0]], range: banana}", "must be a list"),
        ("axes: [[1, 0, 0]]}", "axes: [[1, 0, 0]], range: [0.1, 2]}", "0.1 to 2 does not contain 0"),
    ],
)
def test_companions_that_do_not_fit_are_refused_with_their_place(old: str, new: str, message: str) -> None:
    assert old in COMPANION
    with pytest.raises(StudyError) as raised:
        read_companion(COMPANION.replace(old, new, 1).encode(), "bad.yaml", bundled_geometry("biceps"))
    assert any(message in issue.message for issue in raised.value.issues), raised.value
    assert all(issue.line for issue in raised.value.issues)


# ------------------------------------------------------------------------------------------------------------- model


def test_more_activation_pulls_harder_and_leaves_nothing_on_the_links() -> None:
    model = WirePatterns()
    weak, strong = (model.evaluate({"activation": a}, {"pattern": "biceps"})[0] for a in (0.1, 0.5))
    assert strong["peak_moment"] > 3.0 * weak["peak_moment"]
    assert strong["contact_force"] > weak["contact_force"]
    assert strong["resultant"] < 1e-8
    assert strong["link_travel"] > 0.0


def test_a_pattern_has_jacobian_poses_resultants_and_joint_forces_as_arrays() -> None:
    names = frozenset({"tensions", "moments", "jacobian", "poses", "resultants", "joint_forces"})
    _, arrays = WirePatterns().evaluate({"activation": 0.3, "angle": 0.8}, {"pattern": "biceps"}, names)
    assert set(arrays) == names
    forces = -np.einsum("nwz,nw->nz", arrays["jacobian"], arrays["tensions"])
    joints = arrays["moments"].shape[1]
    assert forces[:, :joints] == pytest.approx(arrays["moments"], rel=1e-12)
    assert forces[:, joints:] == pytest.approx(arrays["resultants"], abs=1e-10)
    assert np.abs(arrays["resultants"]).max() < 1e-8
    assert arrays["joint_forces"].shape[2] == 6


def test_a_muscle_that_would_push_is_refused(forked: Anatomy) -> None:
    with pytest.raises(ValueError, match=r"muscle 'R_Mus_FlexorB' has a tension of -5 N; a muscle only pulls"):
        Equilibrium(forked).at([1.0, 0.3], [80.0, -5.0])


def test_files_of_ones_own_are_taken_or_refused_with_their_place() -> None:
    geometry, companion = InputFile("my.wrl", GOOD.encode()), InputFile("my.yaml", COMPANION.encode())
    model = WirePatterns(geometry=geometry, companion=companion)
    model.check()
    assert model.evaluate({}, {})[0] == WirePatterns().evaluate({}, {"pattern": "biceps"})[0]
    with pytest.raises(InvalidSetting, match="belong together"):
        WirePatterns(geometry=geometry).check()
    with pytest.raises(InvalidSetting, match=r"my\.wrl:1:1: the first line"):
        WirePatterns(geometry=InputFile("my.wrl", b"x"), companion=companion).check()


def test_the_bundled_study_runs_and_its_report_draws_it(tmp_path: Path) -> None:
    result = designopt.load(STUDIES / "wire_patterns.yaml", overrides=["stages.0.solver.levels=2"]).run(
        tmp_path / "w.study"
    )
    assert len(result.outcomes.X) == 4
    assert result.outcomes.feasible.all()
    section = wire_tensions(result)
    assert section is not None
    assert len(section.figures) == 2
