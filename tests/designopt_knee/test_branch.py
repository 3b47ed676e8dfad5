"""Motions of period T over stiffness: where they end, and the figures along them."""

import numpy as np
import pytest
from designopt_knee.branch import ARRAYS, CONTACTS, LOSSES, FourBarKneeBranch, interval
from designopt_knee.model import FourBarKnee

from designopt.plugin import Diverged, InvalidDesign, InvalidSetting


def prepared(**settings):
    branch = FourBarKneeBranch(**settings)
    branch.check()
    branch.prepare()
    return branch


@pytest.fixture(scope="module")
def doubling():
    """c/k 0.10 from 14.6 kN/m down: outputs and arrays. The last bits move the loss by 3 N/m in one of four runs."""
    branch = prepared(highest_stiffness=14600.0, lowest_stiffness=13800.0, step=100.0)
    return branch.evaluate({"damping_ratio": 0.10 * (1.0 + 1e-12)}, {}, set(ARRAYS))


def test_the_period_doubles_where_a_multiplier_passes_minus_one(doubling):
    """Followed from 14.6 and from 14.4 kN/m: 14 261.1 and 14 260.9 N/m."""
    outputs, arrays = doubling
    assert outputs["loss"] == 1.0
    assert outputs["critical_stiffness"] == pytest.approx(14261.0, abs=6.0)
    assert outputs["critical_multiplier"] == pytest.approx(-1.0, abs=0.02)
    assert (np.diff(arrays["branch_multiplier"]) < 0.003).all()  # the accuracy of a multiplier


@pytest.mark.parametrize(("stiffness", "period"), [(14400.0, 1.0), (14100.0, 2.0)])
def test_walks_on_both_sides_have_one_and_two_cycles(stiffness, period):
    knee = FourBarKnee()
    knee.prepare()
    outputs, _ = knee.evaluate({"stiffness": stiffness, "damping_ratio": 0.10}, {}, set())
    assert outputs["period_n"] == period


def test_the_branch_holds_stable_motions_alone_and_falls(doubling):
    outputs, arrays = doubling
    assert set(arrays) == set(ARRAYS)
    assert (arrays["branch_modulus"] < 1.0).all()
    assert (np.diff(arrays["branch_stiffness"]) < 0.0).all()
    assert arrays["branch_stiffness"][-1] - outputs["critical_stiffness"] <= 5.0
    assert outputs["best_rho"] == arrays["branch_rho"].max()


def test_a_motion_of_the_branch_is_the_walk_at_its_stiffness():
    branch = prepared(highest_stiffness=18200.0, lowest_stiffness=18000.0, step=100.0)
    outputs, arrays = branch.evaluate({"damping_ratio": 0.05}, {}, set(ARRAYS))
    knee = FourBarKnee()
    knee.prepare()
    walked, _ = knee.evaluate({"stiffness": 18000.0, "damping_ratio": 0.05}, {}, set())
    assert arrays["branch_stiffness"][-1] == 18000.0
    assert arrays["branch_rho"][-1] == pytest.approx(walked["rho"], abs=1e-4)
    assert arrays["branch_peak"][-1] == pytest.approx(walked["peak_flexion"], abs=0.01)
    assert outputs["loss"] == 0.0
    assert outputs["critical_stiffness"] == 18000.0


def test_at_low_damping_the_motion_ends_at_a_contact():
    """c/k 0.05: the leading multiplier stays inside the unit circle until the motion jumps at 15.9 kN/m."""
    branch = prepared(highest_stiffness=16400.0, lowest_stiffness=15000.0, step=250.0)
    outputs, arrays = branch.evaluate({"damping_ratio": 0.05}, {}, {"branch_modulus"})
    assert LOSSES[int(outputs["loss"])] == "contact"
    assert outputs["critical_stiffness"] == pytest.approx(15908.0, abs=8.0)
    # Beyond it the heel touches once more, or no longer lifts, around 38 % of the cycle.
    assert CONTACTS[int(outputs["loss_contact"])] == "heel"
    assert outputs["loss_phase"] == pytest.approx(0.378, abs=0.01)
    assert arrays["branch_modulus"].max() < 0.9


#: At 0.07 and at half of its neighbours to 1e-10 the branch ends at a contact at 15 459 N/m.
@pytest.mark.parametrize(
    ("ratio", "highest", "lost", "kind"),
    [
        (0.03, 16700.0, 16588.0, "contact"),
        pytest.param(0.07 * (1.0 + 1e-12), 15600.0, 15149.0, "flip", marks=pytest.mark.slow),
    ],
)
def test_an_unstable_motion_close_by_and_noise_are_no_loss(ratio, highest, lost, kind):
    """Newton's method alone ends these at 16.62 and 15.5 kN/m, where walks stay on the motion."""
    branch = prepared(highest_stiffness=highest, lowest_stiffness=14000.0)
    outputs, _ = branch.evaluate({"damping_ratio": ratio}, {}, set())
    assert LOSSES[int(outputs["loss"])] == kind
    assert outputs["critical_stiffness"] == pytest.approx(lost, abs=10.0)
    assert (outputs["loss_phase"] > 0.0) == (kind == "contact")


def test_walks_that_do_not_settle_at_the_highest_stiffness_are_a_status():
    with pytest.raises(Diverged) as caught:
        prepared(highest_stiffness=14000.0).evaluate({"damping_ratio": 0.05}, {}, set())
    assert caught.value.reason == "no_motion"


def test_stiffness_is_not_part_of_a_design():
    branch = prepared(highest_stiffness=18200.0, lowest_stiffness=18000.0)
    with pytest.raises(InvalidDesign, match="damping"):
        branch.evaluate({"damping_ratio": -0.1}, {}, set())
    assert "stiffness" not in FourBarKneeBranch.__designopt__.inputs


def test_an_empty_range_is_refused():
    with pytest.raises(InvalidSetting) as caught:
        FourBarKneeBranch(highest_stiffness=12000.0, lowest_stiffness=12000.0).check()
    assert caught.value.name == "lowest_stiffness"


def test_the_robust_interval_ends_where_the_figure_has_fallen_by_the_margin():
    values = np.array([4.0, 3.0, 2.0, 1.0])
    assert interval(values, np.array([0.90, 0.98, 0.99, 0.985]), 0.02) == pytest.approx((1.0, 3.125))
    assert interval(values, np.array([0.9, 0.9, 0.9, 0.9]), 0.01) == (1.0, 4.0)
    assert interval(values, np.array([0.99, 0.97, 0.99, 0.97]), 0.01) == pytest.approx((3.5, 4.0))


def test_steps_end_exactly_at_the_lowest_value():
    branch = prepared(highest_stiffness=18200.0, lowest_stiffness=18000.0, step=130.0)
    _, arrays = branch.evaluate({"damping_ratio": 0.05}, {}, {"branch_stiffness"})
    assert arrays["branch_stiffness"] == pytest.approx([18200.0, 18070.0, 18000.0])
