"""The paper's findings marked "yes" in section 7 of the specification, on real evaluations; minutes long."""

import numpy as np
import pytest
from designopt_knee.model import FourBarKnee

pytestmark = pytest.mark.slow

STIFFNESSES = np.arange(12000.0, 30001.0, 200.0)
RATIOS = (0.03, 0.05, 0.08, 0.10)
#: Critical stiffness (N/m) on the grid of 200 N/m for each of RATIOS, prototype of the specification.
CRITICAL = (16600.0, 16400.0, 15600.0, 15000.0)


@pytest.fixture(scope="module")
def sweep(knee):
    """Outputs by damping ratio, in the order of STIFFNESSES."""
    return {
        ratio: [knee.evaluate({"stiffness": k, "damping_ratio": ratio}, {}, set())[0] for k in STIFFNESSES]
        for ratio in RATIOS
    }


def critical(outputs):
    """Smallest stiffness of the grid from which on every one gives period T."""
    irregular = np.flatnonzero([o["period_n"] != 1.0 for o in outputs])
    return STIFFNESSES[irregular[-1] + 1]


def column(outputs, name):
    return np.array([o[name] for o in outputs])


@pytest.mark.parametrize(("ratio", "expected"), list(zip(RATIOS, CRITICAL, strict=True)))
def test_critical_stiffness_is_found_on_the_grid(sweep, ratio, expected):
    assert critical(sweep[ratio]) == expected


def test_second_window_of_double_period_opens_at_high_damping(knee):
    """Found here, not in the specification: beyond its four damping ratios the critical stiffness rises again."""
    for stiffness, ratio, double in ((18000.0, 0.10, False), (18600.0, 0.11, True), (18000.0, 0.12, True)):
        outputs, _ = knee.evaluate({"stiffness": stiffness, "damping_ratio": ratio}, {}, set())
        assert outputs["period_n"] == (2.0 if double else 1.0)


def test_critical_stiffness_falls_as_damping_grows(sweep):
    assert (np.diff([critical(sweep[ratio]) for ratio in RATIOS]) < 0.0).all()


def test_period_doubles_at_the_papers_low_stiffness(sweep):
    outputs = sweep[0.05][list(STIFFNESSES).index(14000.0)]
    assert outputs["period_n"] == 2.0


def test_periods_are_mixed_below_the_critical_stiffness(sweep):
    below = column(sweep[0.05], "period_n")[critical(sweep[0.05]) > STIFFNESSES]
    assert {2.0, 0.0} <= set(below)


@pytest.mark.parametrize("ratio", RATIOS)
def test_peak_flexion_falls_with_stiffness_above_the_critical_one(sweep, ratio):
    peaks = column(sweep[ratio], "peak_flexion")[critical(sweep[ratio]) <= STIFFNESSES]
    assert peaks[0] - peaks[-1] > 3.0
    assert np.diff(peaks).max() < 0.3  # deg per 200 N/m


@pytest.mark.parametrize(
    ("stiffness", "peak"), [(16400.0, 58.6), (18000.0, 55.5), (20000.0, 53.3), (24000.0, 51.3), (30000.0, 50.8)]
)
def test_peak_flexion_has_the_tabulated_values(sweep, stiffness, peak):
    outputs = sweep[0.05][list(STIFFNESSES).index(stiffness)]
    assert outputs["peak_flexion"] == pytest.approx(peak, abs=0.15)


@pytest.mark.parametrize("ratio", RATIOS)
def test_correlation_above_0_9_is_reached_in_period_t(sweep, ratio):
    simple = column(sweep[ratio], "period_n") == 1.0
    assert column(sweep[ratio], "rho")[simple].max() > 0.9


@pytest.mark.parametrize("ratio", [0.03, 0.05, 0.10])
def test_raised_hip_restores_period_t_at_every_stiffness(knee, ratio):
    for stiffness in np.arange(12000.0, 20001.0, 500.0):
        design = {"stiffness": stiffness, "damping_ratio": ratio}
        assert knee.evaluate(design, {"hip_hike": 1.006}, set())[0]["period_n"] == 1.0, stiffness


def test_half_the_raise_is_enough_where_the_level_walk_doubles(knee):
    design = {"stiffness": 14000.0, "damping_ratio": 0.05}
    outputs, _ = knee.evaluate(design, {"hip_hike": 1.003}, set())
    assert outputs["period_n"] == 1.0
    assert outputs["rho"] == pytest.approx(0.989, abs=2e-3)


def test_printed_shank_terms_move_the_best_stiffness_down(knee):
    printed = FourBarKnee(shank_mass_terms="as_printed")
    printed.prepare()
    grid = np.arange(7000.0, 20001.0, 1000.0)

    def best(model):
        rho = [model.evaluate({"stiffness": k, "damping_ratio": 0.03}, {}, set())[0]["rho"] for k in grid]
        return grid[int(np.argmax(rho))], max(rho)

    stiffness, rho = best(printed)
    assert 8000.0 <= stiffness <= 10000.0
    assert 0.97 <= rho <= 0.995  # irregular walks are among these: not to the last digit
    assert best(knee)[0] == pytest.approx(14000.0, abs=1000.0)
