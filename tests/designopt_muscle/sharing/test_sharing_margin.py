"""How far frames are from the edge of what the muscles can do."""

from dataclasses import replace

import numpy as np
import pytest
from designopt_mechanics.moment_balance import MomentBalance
from designopt_mechanics.sharing.muscles import Muscles
from designopt_mechanics.sharing.statement.criteria import MinMax, Power, Reserves
from designopt_mechanics.sharing.statement.formulation import Terms
from designopt_mechanics.sharing.static.diagnose import margins
from designopt_mechanics.sharing.static.share import share
from designopt_mechanics.sharing.status import SharingStatus
from designopt_muscle.models.static_sharing import StaticSharing
from opensim_cases import case


def flexors(moments, *, passive=0.0, status=None):
    """Two flexors with arms of 3 and 2 cm and 100 and 300 N: up to 9 N m about the elbow; nothing about the wrist."""
    n = len(moments)
    balance = MomentBalance(
        time=np.arange(n) / 100.0,
        rows=("elbow", "wrist"),
        columns=("long", "short"),
        arms=np.tile([[0.03, 0.02], [0.0, 0.0]], (n, 1, 1)),
        moments=np.column_stack([moments, np.ones(n)]),
        row_units=("N m", "N m"),
        status=np.zeros(n, dtype=int) if status is None else np.array(status),
    )
    strength = np.tile([100.0, 300.0], (n, 1))
    return balance, Muscles(("long", "short"), strength, passive * strength)


def test_the_margin_is_what_is_left_of_the_strength():
    """9 N m are there: 4.5 leave half of the strength, 9 nothing, 18 lack as much again; nothing extends the elbow."""
    balance, muscles = flexors([4.5, 9.0, 18.0, -1.0])
    sharing = share(balance, muscles, reserves=Reserves(np.array([0.0, 5.0])))
    assert margins(sharing) == pytest.approx([0.5, 0.0, -1.0, -np.inf], abs=1e-8)


def test_reserves_do_not_count_where_muscles_are():
    balance, muscles = flexors([4.5, 18.0])
    for exponent in (1.0, 2.0):
        sharing = share(balance, muscles, reserves=Reserves(np.array([50.0, 50.0]), p=exponent))
        assert (sharing.status < 100).all()
        assert margins(sharing) == pytest.approx([0.5, -1.0], abs=1e-8)


def test_passive_forces_weaken_with_their_muscle():
    """With a tenth of the strength as passive force 9.9 N m are there."""
    balance, muscles = flexors([4.95], passive=0.1)
    assert margins(share(balance, muscles, reserves=Reserves(np.array([0.0, 1.0])))) == pytest.approx([0.5], abs=1e-8)


def test_frames_without_numbers_have_no_margin():
    balance, muscles = flexors([4.5, 4.5], status=[0, 120])
    margin = margins(share(balance, muscles))
    assert margin[0] == pytest.approx(0.5)
    assert np.isnan(margin[1])


@pytest.mark.parametrize("criterion", [Power(2.0), Power(1.0), MinMax()])
def test_margins_of_the_weakened_arm_part_its_infeasible_frames(opensim, criterion):
    """arm26 at 0.15 of its strength: 50 frames lack some, by the strength factor that was found for them alone; muscles
    that lose their margin but for a thousandth still balance, and a thousandth more and they do not."""
    problem = case(opensim, "arm26")
    weak = problem.muscles.scaled(0.15)
    sharing = share(problem.balance, weak, Terms(criterion))
    margin = margins(sharing)
    short = sharing.status == SharingStatus.INFEASIBLE
    assert short.sum() == 50
    np.testing.assert_array_equal(margin < 0, short)
    np.testing.assert_allclose(1.0 - margin[short], sharing.strength_factor[short], rtol=1e-9)
    for more, enough in ((1.001, True), (0.999, False)):
        edge = replace(weak, strength=weak.strength * (more * (1.0 - margin))[:, None])
        feasible = share(problem.balance, edge, Terms(criterion)).feasible
        assert feasible.all() if enough else not feasible.any()


def test_a_study_gives_the_margin_of_every_frame_and_twice_the_strength_halves_what_is_needed():
    study = StaticSharing(assisted="hip_flexion")
    (one, first), (doubled, second) = (study.evaluate({"strength": s}, {}, frozenset({"margin"})) for s in (1.0, 2.0))
    assert one["infeasible_frames"] == doubled["infeasible_frames"] == 0.0
    np.testing.assert_allclose(2.0 * (1.0 - second["margin"]), 1.0 - first["margin"], atol=1e-8)
    weak, _ = study.evaluate({"strength": 0.1}, {}, frozenset())
    assert 0.1 * weak["strength_needed"] == pytest.approx(1.0 - first["margin"].min(), rel=1e-6)
