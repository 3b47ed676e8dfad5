"""The peers solve the same cart-pole: each reaches the reference optimum of its scheme. Run: pytest -m bench -s.

References: the spec of direct collocation, section 12 (58.80766746 is the converged optimum, recomputed with four
codes; 58.8095736 and 58.8076422 are Hermite-Simpson at N = 50 with the control linear and free at the midpoint).
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from peer_runs import peer_run

pytestmark = pytest.mark.bench

CONVERGED = 58.80766746

#: Peer, variant, the reference at N = 50 and the relative tolerance: 1e-7 where the discretisation is the same (the
#: references have nine digits), else the error of the scheme, measured and rounded up.
AT_50 = [
    ("moco", "forward", 58.8095736, 1e-7),
    ("moco", "default", 58.8095736, 1e-8),
    ("dymos", "gauss_lobatto", CONVERGED, 1e-5),
    ("dymos", "gauss_lobatto_free", 58.8076422, 1e-8),
    ("dymos", "radau", CONVERGED, 1e-5),
    ("rockit", "legendre_2", CONVERGED, 1e-5),
    ("rockit", "radau_3", CONVERGED, 3e-5),
    ("rockit", "radau_4", CONVERGED, 3e-5),
    ("rockit", "rk4", CONVERGED, 3e-4),
    ("rockit", "legendre_3_quadratic", CONVERGED, 1e-6),
]


@pytest.mark.parametrize(("name", "variant", "reference", "tolerance"), AT_50)
def test_a_peer_reaches_the_reference_at_fifty_intervals(name, variant, reference, tolerance):
    run = peer_run(name, 50, 3, variant)
    print(f"\n{run}")
    assert run.success
    assert run.objective == pytest.approx(reference, rel=tolerance)


def test_the_midpoint_rule_of_opty_converges_with_order_two():
    errors = []
    for intervals in (100, 200):
        run = peer_run("opty", intervals, 3)
        print(f"\n{run}")
        assert run.success
        errors.append(abs(run.objective - CONVERGED))
    assert 3.5 < errors[0] / errors[1] < 4.5
