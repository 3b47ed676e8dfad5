"""Cycles and curves: foot strikes by plates and feet, normalised curves by side, pooled, and tested for differences."""

import numpy as np
import pytest
import walking_laboratory as laboratory
from designopt_laboratory.curves.curves import CurveBlock, cycle_curves, side_of
from designopt_laboratory.curves.differences import curve_difference
from designopt_laboratory.curves.pool import normal_walk, pool_curves
from designopt_laboratory.trial.strikes import trial_cycles
from designopt_muscle.models.errors import TrialError
from designopt_recordings.signals.cycles import Cycle

from designopt.plugin import Diverged, InputFile, InvalidSetting

WALK = laboratory.walk(cycles=2.4)


@pytest.fixture(scope="module")
def cycles(analysed):
    names = ("cycle_sides", "cycle_times", "curves", "curve_names", "curve_kinds", "curve_units", "labels")
    return {source: analysed(WALK, *names, until="moments", cycles=source)[1] for source in ("plates", "feet")}


def test_strikes_by_the_feet_are_near_those_of_the_plates(cycles):
    by_plates, by_feet = cycles["plates"], cycles["feet"]
    assert list(by_plates["cycle_sides"]).count("right") >= 1
    assert list(by_plates["cycle_sides"]).count("left") >= 1
    for start, end in by_plates["cycle_times"]:
        assert end - start == pytest.approx(1.1, abs=0.03)  # s, the walker's
        if start > 0.1:  # the motion of the feet has no maximum at its first frame
            assert np.abs(by_feet["cycle_times"][:, 0] - start).min() < 0.1


def test_a_curve_is_that_of_its_side_and_has_the_shape_of_the_motion(cycles):
    arrays = cycles["plates"]
    names, kinds, sides = (list(arrays[name]) for name in ("curve_names", "curve_kinds", "cycle_sides"))
    knee = next(i for i, key in enumerate(zip(kinds, names, strict=True)) if key == ("angle", "knee_angle_r"))
    right = np.array([side == "right" for side in sides])
    assert np.isnan(arrays["curves"][~right, :, knee]).all()
    mean = arrays["curves"][right, :, knee].mean(axis=0)
    assert np.abs(mean - normal_walk("knee_angle", mean)).max() < 8.0  # deg: the filter and four harmonics
    pools = {(c.kind, c.name): c for c in pool_curves([arrays])}
    assert [one.side for one in pools["angle", "knee_angle"].sets] == ["right", "left"]
    assert [one.side for one in pools["angle", "pelvis_tilt"].sets] == [""]


@pytest.mark.parametrize(
    ("name", "base", "side"),
    [
        ("knee_angle_r", "knee_angle", "right"), ("hip_l_x", "hip_x", "left"), ("glut_med1_r", "glut_med1", "right"),
        ("knee_angle_r_beta", "knee_angle_beta", "right"), ("l_knee", "knee", "left"),
        ("pelvis_tilt", "pelvis_tilt", ""), ("lumbar_rotation", "lumbar_rotation", ""),
    ],
)  # fmt: skip
def test_the_side_is_read_from_a_name(name, base, side):
    assert side_of(name) == (base, side)


def test_a_gap_costs_only_the_curves_and_cycles_that_have_it():
    time = np.arange(0.0, 3.0, 0.01)
    wave = np.sin(2.0 * np.pi * time)
    broken = np.where((time > 1.2) & (time < 1.3), np.nan, wave)
    block = CurveBlock("angle", ("a_r", "b_r"), ("deg", "deg"), np.column_stack([wave, broken]))
    curves = cycle_curves(time, [block], [("right", Cycle(k, k + 0.9)) for k in (0.0, 1.0, 2.0)])
    assert np.isfinite(curves.values[:, :, 0]).all()
    assert np.isnan(curves.values[:, :, 1]).all(axis=1).tolist() == [False, True, False]
    assert curves.values[0, :, 0] == pytest.approx(np.sin(2.0 * np.pi * np.linspace(0.0, 0.9, 101)), abs=1e-6)


SOURCES = {"events": {}, "plates": {"right": (0.1,), "left": (0.6, 1.7)}, "feet": {"right": (0.1, 1.2)}}


def test_the_first_source_with_a_cycle_in_the_window_is_taken():
    side_cycles = trial_cycles("auto", SOURCES, (0.0, 2.0))
    assert side_cycles.cycles == (("right", Cycle(0.1, 1.2)), ("left", Cycle(0.6, 1.7)))
    assert [note.rpartition(" by ")[2] for note in side_cycles.notes] == ["the motion of the feet", "force plates"]
    right = trial_cycles("auto", SOURCES, (0.1, 1.2))
    assert right.cycles == (("right", Cycle(0.1, 1.2)),)
    assert right.notes[1] == "no cycle of the left side: foot strikes by force plates at 0.600 s"
    assert not trial_cycles("auto", {}, (0.0, 2.0)).cycles


@pytest.mark.parametrize("source", ["plates", "feet"])
def test_a_cycle_counts_that_lies_in_the_window_to_a_frame(analysed, cycles, source):
    start, end = cycles[source]["cycle_times"][0]
    _, arrays = analysed(WALK, "cycle_times", until="moments", cycles=source, window=(start + 1e-4, end - 1e-4))
    assert arrays["cycle_times"] == pytest.approx(np.array([[start, end]]))
    with pytest.raises(Diverged, match=f"walk: cycles: {source}: no cycle"):
        analysed(WALK, "cycle_times", until="moments", cycles=source, window=(start + 0.1, end))


def test_a_source_of_strikes_without_a_cycle_is_an_error_with_its_strikes(analysed):
    with pytest.raises(TrialError, match=r"walk: cycles: plates: .*right side: .* at 0\.100 s.*'cycles: auto'"):
        trial_cycles("plates", SOURCES, (0.0, 1.5), "walk")
    for source, settings in (("events", {}), ("plates", {"reactions": None})):
        trial = {"recording": InputFile("walk.trc", WALK.trc()), "reactions": InputFile("walk.mot", WALK.mot())}
        trial = {name: file for name, file in (trial | settings).items() if file is not None}
        with pytest.raises(InvalidSetting, match=f"walk: cycles: {source}: "):
            analysed(trial, until="angles", cycles=source)


def trial(subject, group, offset, seed):
    values = offset + 0.1 * np.random.default_rng(seed).standard_normal((4, 101, 1)).cumsum(axis=1)
    return {
        "labels": np.array([subject, group, "walk"]), "curves": values, "cycle_sides": np.array(["right"] * 4),
        "curve_kinds": np.array(["angle"]), "curve_names": np.array(["knee_r"]), "curve_units": np.array(["deg"]),
    }  # fmt: skip


def test_several_subjects_are_summarised_by_their_means_and_one_by_its_cycles():
    trials = [
        trial("ana", "old", 1.0, 1),
        trial("ana", "old", 2.0, 2),
        trial("ben", "old", 5.0, 3),
        trial("cy", "", 0, 4),
    ]
    sets = {one.group: one for one in pool_curves(trials)[0].sets}
    assert sets["old"].curves.shape == (2, 101)
    assert sets["old"].of_subjects
    ana = np.concatenate([t["curves"][:, :, 0] for t in trials[:2]]).mean(axis=0)
    assert sets["old"].curves[0] == pytest.approx(ana)
    assert sets[""].curves.shape == (4, 101)
    assert not sets[""].of_subjects


def smooth(count, seed):
    from scipy.ndimage import gaussian_filter1d

    return gaussian_filter1d(np.random.default_rng(seed).standard_normal((count, 101)), 8.0, axis=1)


@pytest.mark.parametrize("paired", [False, True])
def test_a_difference_is_found_where_it_is(paired):
    bump = np.exp(-0.5 * ((np.arange(101) - 40) / 6.0) ** 2)
    difference = curve_difference(smooth(9, 1) + 1.5 * bump, smooth(9, 2), paired=paired)
    ((first, last),) = difference.ranges()
    assert 25 < first < 40 < last < 55
    assert difference.difference[40] == pytest.approx(1.5, abs=0.3)


def test_curves_without_a_difference_are_called_different_as_rarely_as_stated():
    falses = [curve_difference(smooth(6, k), smooth(6, 1000 + k), level=0.2).significant.any() for k in range(40)]
    assert 0.07 < np.mean(falses) < 0.37  # 0.2, two standard errors of 40


def test_few_curves_have_a_smallest_p_that_no_difference_falls_below():
    for paired, least in ((True, 2.0 / 16.0), (False, 2.0 / 70.0)):
        difference = curve_difference(smooth(4, 1) + 100.0, smooth(4, 2), paired=paired)
        assert difference.least_p == pytest.approx(least)
        assert difference.p.min() == pytest.approx(least)


def test_too_few_curves_are_not_tested():
    with pytest.raises(ValueError, match="needs at least 3"):
        curve_difference(smooth(2, 1), smooth(6, 2))
    with pytest.raises(ValueError, match="make no pairs"):
        curve_difference(smooth(5, 1), smooth(6, 2), paired=True)
