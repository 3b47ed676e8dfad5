"""Sharing on wires with virtual links: the reference arm of the specification of wires, section 9.3."""

import re
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from designopt_mechanics.anatomy.companion import Muscle, read_companion
from designopt_mechanics.anatomy.equilibrium import Equilibrium, tensions_and_potential
from designopt_mechanics.anatomy.vrml import read_vrml
from designopt_mechanics.dynamics.recursion import inverse_dynamics
from designopt_mechanics.sharing.statement.criteria import MinMax, Power
from designopt_mechanics.sharing.statement.formulation import Terms
from designopt_mechanics.state import TreeState
from designopt_mechanics.wires import lengths, moment_arms
from designopt_muscle.models.trial import bundled_file
from designopt_muscle.models.wire_sharing import WireSharingModel
from designopt_muscle.wires.posture import WireRows
from designopt_muscle.wires.share import JointMotion, share_wires

import designopt
from designopt.plugin import Diverged, InputFile, InvalidSetting
from designopt.report import write_report
from designopt.testing.models import check_model

STUDIES = Path(__file__).parents[3] / "studies"
TIME = np.linspace(0.0, 1.0, 51)


@pytest.fixture(scope="module")
def arm():
    geometry = read_vrml(bundled_file("wire_arm.wrl").content, "wire_arm.wrl")
    return read_companion(bundled_file("wire_arm.yaml").content, "wire_arm.yaml", geometry)


def motion(t):
    """Joints with rates and accelerations (n, 5) of the specification's motion."""
    a, w = np.array([0.3, 0.35, 0.2, 0.6, 0.3]), np.array([2.0, 3.0, 1.0, 2.5, 4.0])
    s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    return a * s + np.array([0.0, 0.25, 0.0, 0.9, 0.0]), a * w * c, -a * w**2 * s


@pytest.fixture(scope="module")
def shared(arm):
    return share_wires(arm, JointMotion(TIME, *motion(TIME)))


def tension(arm, shared, name, frame):
    return shared.tensions[frame, [wire.name for wire in arm.wires].index(name)]


def test_costs_tensions_and_joint_forces_are_those_of_the_specification(arm, shared):
    """Required 1e-3 relative; no failure in 51 frames."""
    assert (shared.sharing.status == 0).all()
    assert shared.sharing.cost[[0, 10, 25, 40, 50]] == pytest.approx(
        [0.005189, 0.008903, 0.014057, 0.012014, 0.008729], rel=1e-3
    )
    names = ["R_Mus_BicepsLong", "R_Mus_BicepsShort", "R_Ten_Radius", "R_Ten_Ulna"]
    assert [tension(arm, shared, n, 10) for n in names] == pytest.approx([6.458, 10.466, 13.452, 4.054], rel=1e-3)
    contact = [np.linalg.norm(shared.contact[bone][10]) for bone in ("humerus", "ulna", "radius")]
    assert contact == pytest.approx([61.479, 37.942, 23.737], rel=1e-3)


def test_answers_are_those_of_the_nonlinear_program_with_the_pose_as_unknown(arm, shared):
    """IPOPT on tensions and pose together (formulation P2), to its tolerance."""
    muscles, m = [law for law in arm.laws.values() if isinstance(law, Muscle)], len(arm.joints)
    most, tone = np.array([law.max_tension for law in muscles]), np.array([law.min_tension for law in muscles])
    z, dq, ddq = ca.SX.sym("z", len(arm.tree.names)), ca.SX.sym("dq", m), ca.SX.sym("ddq", m)
    share, still = ca.SX.sym("share", len(muscles)), ca.SX.zeros(z.numel() - m)
    state = TreeState(arm.tree, z, ca.vertcat(dq, still), ca.vertcat(ddq, still))
    tensions, _ = tensions_and_potential(arm, lengths(state, arm.wires), share * most)
    needed = ca.vertcat(inverse_dynamics(state, arm.gravity)[:m], still)
    x, p = ca.vertcat(share, z[m:]), ca.vertcat(z[:m], dq, ddq)
    program = {"x": x, "p": p, "f": ca.sumsqr(share), "g": moment_arms(state, arm.wires) @ tensions - needed}
    quiet = {"print_level": 0, "sb": "yes", "tol": 1e-10, "bound_relax_factor": 0.0}
    solver = ca.nlpsol("p2", "ipopt", program, {"print_time": False, "ipopt": quiet})
    tensions_at = ca.Function("tensions", [x, p], [tensions])
    low = np.concatenate([tone / most, np.full(still.numel(), -np.inf)])
    high = np.concatenate([np.ones(len(most)), np.full(still.numel(), np.inf)])
    for frame in (0, 17, 50):
        data, start = np.concatenate([part[0] for part in motion(TIME[[frame]])]), arm.tree.reference[m:]
        x0 = np.concatenate([np.maximum(0.05, tone / most), start])
        solution = solver(x0=x0, p=data, lbx=low, ubx=high, lbg=0.0, ubg=0.0)
        assert solver.stats()["success"]
        assert shared.sharing.cost[frame] == pytest.approx(float(solution["f"]), rel=2e-6)
        assert shared.tensions[frame] == pytest.approx(np.asarray(tensions_at(solution["x"], data)).ravel(), abs=1e-3)
        assert shared.pose[frame] == pytest.approx(np.asarray(solution["x"]).ravel()[len(most) :], abs=1e-6)


def test_nothing_is_left_on_the_link_and_the_joints_get_the_moments_of_the_motion(arm, shared):
    balance = Equilibrium(arm)
    needed = WireRows(arm).required_moments(*motion(TIME))
    for frame in (5, 30):
        equilibrium = balance.at(motion(TIME[[frame]])[0][0], shared.sharing.forces[frame], shared.pose[frame])
        assert np.abs(equilibrium.resultant).max() < 1e-8
        assert np.abs(equilibrium.pose - shared.pose[frame]).max() < 1e-8
        assert equilibrium.tau == pytest.approx(needed[frame], abs=1e-7)


def test_slopes_are_those_of_the_moments_with_the_links_following(arm):
    rows = WireRows(arm)
    q = motion(TIME[[12]])[0]
    pull = np.linspace(5.0, 90.0, 18)[None]
    at = rows.posture(q, pull)
    for j in (2, 16, 17):
        step = np.eye(18)[[j]] * 1e-2
        ahead, behind = (rows.posture(q, pull + s * step, at.pose).moments for s in (1, -1))
        assert at.slopes[0, :, j] == pytest.approx((ahead - behind)[0] / 2e-2, abs=1e-8)


@pytest.mark.parametrize("criterion", [Power(3.0), MinMax()])
def test_other_criteria_are_shared_in_the_same_way(arm, shared, criterion):
    wire_shares = share_wires(arm, JointMotion(TIME[::5], *motion(TIME[::5])), Terms(criterion))
    assert (wire_shares.sharing.status == 0).all()
    peaks = wire_shares.sharing.activations.max(axis=1)
    if isinstance(criterion, MinMax):
        assert (peaks <= shared.sharing.activations[::5].max(axis=1) + 1e-6).all()
    else:
        cubes = (shared.sharing.activations[::5] ** 3).sum(axis=1)
        assert (wire_shares.sharing.cost <= cubes + 1e-9).all()


def test_a_motion_that_is_too_fast_is_infeasible_with_what_is_missing(arm):
    q, dq, ddq = motion(TIME[:3])
    ddq = np.array(ddq)
    ddq[1] = 3000.0
    dq = np.array(dq)
    dq[2] = np.nan
    fast = JointMotion(TIME[:3], q, dq, ddq)
    wire_shares = share_wires(arm, fast)
    assert wire_shares.sharing.status.tolist() == [0, 100, 120]
    assert np.abs(wire_shares.sharing.shortfall[1]).max() > 1.0
    assert np.isnan(wire_shares.tensions[2]).all()
    helped = share_wires(arm, fast, reserve=100.0)
    assert helped.sharing.status.tolist() == [0, 20, 120]


def test_the_model_keeps_the_rules():
    check_model(
        WireSharingModel,
        settings={},
        designs=[{}, {"strength": 0.8, "criterion": "minmax"}, {"exponent": 3.0}],
        scenarios=[{}],
        refused=[],
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"geometry": bundled_file("wire_arm.wrl")}, "give both or none"),
        (
            {"geometry": InputFile("a.wrl", b"#VRML V2.0 utf8\nDEF {"), "companion": bundled_file("wire_arm.yaml")},
            "a.wrl:",
        ),
        ({"geometry": bundled_file("wire_arm.wrl"), "companion": InputFile("a.yaml", b"bones: {}\n")}, "a.yaml:1"),
    ],
)
def test_files_that_make_no_anatomy_are_refused_with_their_place(settings, message):
    with pytest.raises(InvalidSetting, match=message):
        WireSharingModel(**settings).check()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"time,elbow\n0,1\n1,2\n", "t.csv.*humerus_1"),
        (b"time,humerus_1,humerus_2,humerus_3,ulna_1,radius_1\n0,1,1,1,1,x\n", "t.csv"),
        (bundled_file("wire_arm.csv").content.replace(b"0.04,", b"0.02,"), "t.csv"),
    ],
)
def test_motions_that_cannot_be_used_are_refused_with_the_file(content, message):
    with pytest.raises(Diverged, match=message):
        WireSharingModel().evaluate({}, {"motion": InputFile("t.csv", content)})


def test_the_study_runs_and_its_report_has_the_moving_arm(tmp_path):
    result = designopt.load(STUDIES / "wire_sharing.yaml").run(tmp_path / "arm.study")
    figures = result.outcomes.figures
    assert figures["infeasible_frames"].max() == 0.0
    assert figures["peak_activation"][2, 0] < figures["peak_activation"][0, 0]
    page = write_report(result, tmp_path / "arm.html").read_text(encoding="utf-8")
    assert "The arm" in page
    assert "Balance about ulna_1" in page


def test_noise_of_an_unfiltered_motion_is_a_remark():
    lines = bundled_file("wire_arm.csv").content.decode().splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("time"))
    values = np.array([[float(cell) for cell in line.split(",")] for line in lines[head + 1 :]])
    values[:, 1:] += np.radians(0.5) * np.random.default_rng(0).standard_normal(values[:, 1:].shape)
    rows = (",".join(repr(float(cell)) for cell in row) for row in values)
    noisy = {"motion": InputFile("arm.csv", "\n".join([*lines[: head + 1], *rows]).encode())}
    (note,) = WireSharingModel().remarks(noisy)
    assert re.match(r"arm.csv: .* has noise of about 0\.\d+ deg, .* Set a cutoff \(Hz\)$", note)
    assert WireSharingModel(cutoff=6.0).remarks(noisy) == WireSharingModel().remarks({}) == []


def test_a_dropped_row_of_an_unfiltered_motion_is_a_remark():
    lines = bundled_file("wire_arm.csv").content.decode().splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("time"))
    time = float(lines[head + 10].split(",")[0])
    content = "\n".join(line for i, line in enumerate(lines) if i != head + 11).encode()
    (note,) = WireSharingModel().remarks({"motion": InputFile("arm.csv", content)})
    assert f"and a sample seems to be missing, the first after {time:g} s: check the times" in note
    (note,) = WireSharingModel(cutoff=6.0).remarks({"motion": InputFile("arm.csv", content)})
    assert "resampled" in note
