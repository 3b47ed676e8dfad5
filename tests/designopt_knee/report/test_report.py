"""The knee's parts of a report, on a made-up scan whose periods, peaks and angles are known."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from designopt_knee import linkage
from designopt_knee.parameters import PARAMETER_SETS, complete
from designopt_knee.report.angle import design_words, knee_angle, overlaid
from designopt_knee.report.centre import instant_centre
from designopt_knee.report.families import damper_families
from designopt_knee.report.periods import critical_stiffness, critical_value, hip_hiking, period_map, share
from designopt_knee.report.spectrum import spectrum
from designopt_knee.report.walking import knee_angle as angle_of_walk
from designopt_knee.report.walking import leg_walking
from knee_results import CRITICAL, RATIOS, SAMPLES, STIFFNESS, MadeUp, made_up, walk
from valid_figures import check_with_plotly

from designopt import define
from designopt.report.notable import unusual
from designopt.report.page.page import render
from designopt.report.section import Figure, Section
from designopt.space import Space
from designopt.store.views.presentation import figures_of_part
from designopt.study.study import DesignVariable


@pytest.fixture(scope="module")
def result() -> MadeUp:
    return made_up()


def figure(section: Section | None, title: str) -> Figure:
    assert section is not None
    return next(f for f in section.figures if f.title == title)


PARTS = (knee_angle, spectrum, period_map, critical_stiffness, damper_families, instant_centre, leg_walking)


@pytest.mark.parametrize("part", PARTS)
def test_every_part_says_that_the_geometry_is_a_substitute(part: Any, result: MadeUp) -> None:
    notes = " ".join(part(result).notes)
    assert "substitute_v1" in notes
    assert "in pattern, not in numbers" in notes
    assert "Ground forces are not predictions" in notes


@pytest.mark.parametrize("part", [*PARTS, hip_hiking])
def test_every_figure_is_valid_plotly(part: Any) -> None:
    section = part(made_up(scenarios=("flat", "raised")))
    assert section.figures
    for chart in section.figures:
        check_with_plotly(chart.plot)
        assert all(set(v) <= {"data", "layout", "frames"} for v in chart.variants.values())


@pytest.mark.parametrize("part", [knee_angle, leg_walking])
def test_without_arrays_a_part_says_how_to_get_them(part: Any) -> None:
    section = part(made_up(array_names=frozenset()))
    assert "execution: {arrays:" in section.introduction
    assert not section.figures


def test_without_arrays_the_scans_show_what_the_figures_tell() -> None:
    bare = made_up(array_names=frozenset())
    assert [f.title for f in spectrum(bare).figures] == ["Subharmonic lines over stiffness"]  # type: ignore[union-attr]
    assert [f.title for f in period_map(bare).figures] == ["Period over stiffness and damping"]  # type: ignore[union-attr]
    assert "knee_peaks: all" in period_map(bare).notes[0]  # type: ignore[union-attr]


def test_the_band_is_stated_to_be_chosen_and_lies_around_the_recorded_angle(result: MadeUp) -> None:
    section = knee_angle(result, band=3.0)
    assert section is not None
    assert "±3 deg" in section.introduction
    assert "not a measured spread" in section.introduction
    band = section.figures[0].plot["data"][0]
    recorded = section.figures[0].plot["data"][-1]
    n = len(recorded["x"])
    np.testing.assert_allclose(band["y"][:n], recorded["y"] + 3.0)
    np.testing.assert_allclose(band["y"][n:][::-1], recorded["y"] - 3.0)
    assert (recorded["x"][0], recorded["x"][-1]) == (0.0, pytest.approx(100.0))


def test_an_analysis_of_listed_designs_draws_them_and_a_scan_without_objectives_says_why_it_draws_none(
    tmp_path: Path,
) -> None:
    designs = [{"name": name, "stiffness": 16000.0, "damping_ratio": c} for name, c in (("mine", 0.05), ("soft", 0.04))]
    arrays = dict.fromkeys(("phase", "knee_angle", "knee_angle_recorded"), "all")
    sections = {"study": "angles", "model": {"use": "four_bar_knee"}, "execution": {"executor": "serial"}}
    sections["execution"] |= {"arrays": arrays}
    analysis = define(**sections, solver={"use": "evaluate", "designs": designs}).run(tmp_path / "s")
    (chart,) = knee_angle(analysis).figures  # type: ignore[union-attr]
    assert [trace["name"].partition(":")[0] for trace in chart.plot["data"][1:3]] == ["mine", "soft"]
    space = {"stiffness": [16000, 17000], "damping_ratio": 0.05}
    scan = define(**sections, space=space, solver={"use": "full_factorial", "levels": 2}).run(tmp_path / "t")
    with pytest.raises(ValueError, match="it draws chosen designs, and a study without objectives has none"):
        figures_of_part(scan, "knee_angle", {})


def test_designs_are_named_by_the_parameters_that_vary(result: MadeUp) -> None:
    assert design_words(result, 1) == "k 13 kN/m, c/k 0.03 s"
    lengths = (
        DesignVariable("shank_offset", "real", low=-20.0, high=20.0, unit="mm"),
        DesignVariable("stiffness", "fixed", values=(16.0,), unit="kN/m"),
        DesignVariable("damping_ratio", "real", low=0.01, high=0.2, unit="s"),
    )
    problem = replace(result.problem, space=Space(lengths))
    assert design_words(replace(result, problem=problem), 1) == "c/k 0.03 s, shank_offset 13 mm"


def test_cycles_lie_one_over_the_other_without_a_line_between_them() -> None:
    phase = np.linspace(15, 17, 9)
    x, y = overlaid(phase, phase)
    np.testing.assert_allclose(x, [0, 25, 50, 75, 100, np.nan, 0, 25, 50, 75, 100, np.nan, 0])
    np.testing.assert_allclose(y, [15, 15.25, 15.5, 15.75, 16, np.nan, 16, 16.25, 16.5, 16.75, 17, np.nan, 17])


@pytest.mark.parametrize(
    ("period", "expected"),
    [
        ([2, 1, 2, 1, 1], (4.0, 3.0)),
        ([1, 1, 1, 1, 1], (1.0, np.nan)),
        ([1, 1, 1, 1, 3], (np.nan, 5.0)),
        ([0, np.nan, 1, 1, 1], (3.0, 2.0)),
        ([1, 1, 1, np.nan, 1], (5.0, 4.0)),
    ],
    ids=["mixed band", "all T", "none at the end", "irregular and failed", "a failure counts as not T"],
)
def test_critical_stiffness_is_the_smallest_from_which_on_all_are_of_period_t(period: Any, expected: Any) -> None:
    np.testing.assert_equal(critical_value(np.arange(1.0, 6.0), np.array(period, dtype=float)), expected)


def test_the_table_of_critical_stiffness_states_the_step_of_the_grid(result: MadeUp) -> None:
    section = critical_stiffness(result)
    assert section is not None
    assert section.tables[0].rows == (
        ("0.03 s", 17.0, 16.0, 1.0, ""),
        ("0.05 s", 16.0, 15.0, 1.0, ""),
        ("0.1 s", 15.0, 14.0, 1.0, ""),
    )
    assert section.tables[0].columns[3] == "grid step there [kN/m]"


def test_a_raised_hip_is_compared_scenario_by_scenario() -> None:
    result = made_up(scenarios=("flat", "raised"))
    section = hip_hiking(result)
    assert section is not None
    assert section.findings == (
        "flat: 71 % of the scanned designs have period T.",
        "raised: 100 % of the scanned designs have period T.",
    )
    table = critical_stiffness(result).tables[0]  # type: ignore[union-attr]
    assert table.rows[3][:3] == ("raised", "0.03 s", 12.0)
    assert "at or below the smallest" in table.rows[3][-1]
    assert hip_hiking(made_up()) is None


def test_the_period_map_has_the_scan_and_leaves_failures_blank(result: MadeUp) -> None:
    z = figure(period_map(result), "Period over stiffness and damping").plot["data"][0]["z"]
    assert np.isnan(z[0, 0])
    for q, ratio in enumerate(RATIOS.tolist()):
        expected = np.where(CRITICAL[ratio] > STIFFNESS, 2.0, 1.0)
        np.testing.assert_array_equal(z[q, 1:], expected[1:])


def test_cells_of_the_period_map_are_named_as_in_its_legend(result: MadeUp) -> None:
    data = figure(period_map(result), "Period over stiffness and damping").plot["data"][0]
    named = dict(zip(np.ravel(data["z"]).tolist(), np.ravel(data["text"]).tolist(), strict=True))
    assert {n: named[n] for n in (1.0, 2.0)} == {1.0: "T", 2.0: "2T"}


@pytest.mark.parametrize(
    ("part", "text"), [(0.0, "0 %"), (0.001, "<1 %"), (0.25, "25 %"), (0.999, ">99 %"), (1.0, "100 %")]
)
def test_a_small_share_is_not_nothing(part: float, text: str) -> None:
    assert share(part) == text


def test_peaks_split_in_two_below_the_critical_stiffness(result: MadeUp) -> None:
    chart = figure(period_map(result), "Peaks of the last cycles over stiffness")
    peaks = chart.plot["data"][0] | chart.variants[(1,)]["data"]["0"]
    for k in STIFFNESS.tolist():
        different = np.unique(peaks["y"][peaks["x"] == k].round(6))
        assert len(different) == (2 if k < CRITICAL[0.05] else 1)


def test_the_spectrum_map_shows_the_half_line_where_the_period_is_two(result: MadeUp) -> None:
    chart = figure(spectrum(result), "Spectrum over stiffness")
    z = chart.variants[(2,)]["data"]["0"]["z"]
    half = z[5]  # bins of 1/12: the sixth is 1/2
    np.testing.assert_allclose(half, np.where(CRITICAL[0.1] > STIFFNESS, np.log10(2.5), -2.0))
    assert chart.choices[0].options == ("0.03 s (recommended)", "0.05 s", "0.1 s")


def test_a_sweep_begins_with_the_damping_ratio_of_the_recommended_design(
    result: MadeUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = int(np.flatnonzero(result.outcomes.X[:, 1] == 0.1)[0])
    monkeypatch.setattr(MadeUp, "recommended", lambda self: ("compromise", row))
    chart = figure(spectrum(result), "Spectrum over stiffness")
    assert chart.choices[0].label == "Sweep at damping_ratio"
    assert chart.choices[0].options == ("0.1 s (recommended)", "0.03 s", "0.05 s")
    half = chart.plot["data"][0]["z"][5]
    np.testing.assert_allclose(half, np.where(CRITICAL[0.1] > STIFFNESS, np.log10(2.5), -2.0))


def test_the_leg_keeps_its_shape_and_the_ground_passes_below(result: MadeUp) -> None:
    section = leg_walking(result)
    assert section is not None
    plot = section.figures[0].plot
    assert plot["layout"]["yaxis"]["scaleanchor"] == "x"
    assert len(plot["frames"]) == 80
    moving = plot["frames"][0]["traces"]
    thigh = moving[1]
    assert plot["data"][thigh]["line"]["width"] == 9
    for frame in plot["frames"]:
        x, y = frame["data"][1]["x"], frame["data"][1]["y"]
        length = np.hypot(x[1] - x[0], y[1] - y[0])
        assert length == pytest.approx(PARAMETER_SETS["substitute_v1"]["thigh_length"].value, abs=2e-4)
    assert section.figures[0].choices[0].options == (
        "side by side",
        "best mismatch, compromise (recommended)",
        "best flexion",
    )
    assert len(section.figures[0].variants[(1,)]["frames"][0]["traces"]) == len(moving) // 2
    marks = [frame["data"][0]["x"][0] for frame in plot["frames"][:4]]
    assert marks == sorted(marks, reverse=True)  # backwards past the camera
    assert all(len(frame["data"]) == len(moving) for frame in plot["frames"])


def test_the_knee_angle_of_the_drawn_joints_is_the_linkages(result: MadeUp) -> None:
    base = {name: parameter.value for name, parameter in PARAMETER_SETS["substitute_v1"].items()}
    g = complete(base, {}, {"stiffness": 16000.0, "damping_ratio": 0.05})
    phase = np.arange(0, 401, 4) / SAMPLES
    eta = -0.02 - 0.55 * np.sin(np.pi * np.clip((phase % 1 - 0.5) / 0.45, 0, 1)) ** 2
    np.testing.assert_allclose(angle_of_walk(walk(16.0)), -np.degrees(linkage.relative_angles(g, eta)[1]), atol=1e-9)


def test_a_walk_of_one_cycle_is_drawn_as_one_curve_and_the_slider_ends_with_the_second_cycle(result: MadeUp) -> None:
    section = leg_walking(result)
    assert section is not None
    plot = section.figures[0].plot
    labels = [step["label"] for step in plot["layout"]["sliders"][0]["steps"]]
    assert (labels[0], labels[-1]) == ("0 %", "200 %")
    curve = next(t for t in plot["data"] if t.get("yaxis") == "y2" and t.get("mode") == "lines")
    x, y = (np.array(curve[name], dtype=float) for name in "xy")
    gap = int(np.flatnonzero(np.isnan(x))[0])
    np.testing.assert_allclose(x[gap + 1 : -1], x[:gap], atol=1e-9)
    np.testing.assert_allclose(y[gap + 1 : -1], y[:gap], atol=1e-9)
    assert (x[-1], y[-1]) == (pytest.approx(100.0), pytest.approx(y[0]))


def test_a_study_without_a_scan_is_reported_what_is_needed(result: MadeUp) -> None:
    few = result.table["outcomes"].take(np.array([3, 17]))
    scattered = MadeUp(result.path, result.study, result.problem, {"outcomes": few, "status": result.status[[3, 17]]})
    for part in (period_map, critical_stiffness):
        assert "needs a scan" in part(scattered).introduction  # type: ignore[union-attr]


def test_the_leg_walks_in_a_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "report")
    from browser import errors, headless_browser, open_page, wait_until

    result = made_up(scenarios=("flat", "raised"))
    page = tmp_path / "knee.html"
    parts = [part(result) for part in (*PARTS, hip_hiking)]
    page.write_text(render(result, [section for section in parts if section]), encoding="utf-8")
    with headless_browser(tmp_path / "profile") as browser:
        open_page(browser, page)
        assert errors(browser) == []
        leg = "document.querySelector('[id^=the-leg]')"
        shank = f"return {leg}.querySelectorAll('.scatterlayer .trace path.js-line')[6].getAttribute('d')"
        before = browser.execute_script(shank)
        browser.find_element("css selector", "[id^=the-leg] .updatemenu-button").click()
        wait_until(lambda: browser.execute_script(shank) != before, "the leg moves")
        moved = browser.execute_script(shank)
        wait_until(lambda: browser.execute_script(shank) not in (before, moved), "the leg moves on")
        browser.find_elements("css selector", "[id^=the-leg] .updatemenu-button")[2].click()
        still = wait_until(lambda: _unchanged(browser, shank), "the leg stands still after pause")
        assert still
        assert errors(browser) == []


def _unchanged(browser: Any, script: str) -> bool:
    import time

    first = browser.execute_script(script)
    time.sleep(0.3)
    return bool(browser.execute_script(script) == first)


def scuff_warning(part: Any, result: MadeUp) -> str:
    """The note of a part that warns of the toe; "" without one."""
    return next((note for note in part(result).notes if note.startswith("Warning: the toe")), "")


def test_a_result_whose_toe_scuffs_is_warned_of_in_every_part() -> None:
    for part in PARTS:
        note = scuff_warning(part, made_up(clearance=0.001))
        assert "comes closer to the ground than 5 mm in swing, or scuffs: best mismatch" in note
        assert "limit toe_clearance, or use the parameter set substitute_v2" in note


@pytest.mark.parametrize(("clearance", "value"), [(0.235, "0.235"), (-0.02, "-0.02")])
def test_a_knee_whose_toe_is_far_above_or_below_the_ground_does_not_do_its_job(clearance: float, value: str) -> None:
    assert not [clause for clause in unusual(made_up(clearance=0.012)) if "toe_clearance" in clause]
    (clause,) = [clause for clause in unusual(made_up(clearance=clearance)) if "toe_clearance" in clause]
    assert clause.startswith(f"the recommended design has toe_clearance {value} m, beyond 0 to 0.1 m (lowest toe")
    assert clause.endswith("no feasible design is within: check the inputs, widen the space")


def test_a_knee_that_walks_unlike_the_recording_is_told_the_likely_mistakes() -> None:
    result = made_up(clearance=0.012)
    result.outcomes.figures["rho"][:] = 0.4
    (clause,) = [clause for clause in unusual(result) if "rho" in clause]
    assert (
        "no feasible design is within: check the inputs (does thigh_deg count from the vertical, not from a" in clause
    )
    result.outcomes.figures["rho"][np.flatnonzero(result.outcomes.feasible)[:3]] = 0.95  # a limit of rho leaves them
    assert not [clause for clause in unusual(result) if "thigh_deg" in clause]


def test_a_toe_that_clears_the_ground_is_not_warned_of() -> None:
    for part in PARTS:
        assert scuff_warning(part, made_up(clearance=0.012)) == ""


def test_one_scenario_in_which_a_chosen_design_scuffs_is_enough_for_the_warning() -> None:
    result = made_up(scenarios=("flat", "raised"), clearance=0.012)
    chosen = set(result.chosen().values())
    clearance = result.outcomes.figures["toe_clearance"]
    clearance[[i for i in range(len(clearance)) if i not in chosen]] = 0.0  # others may scuff
    assert scuff_warning(knee_angle, result) == ""
    clearance[result.chosen()["best flexion"], 1] = 0.0
    warned = scuff_warning(knee_angle, result)
    assert "scuffs: best flexion" in warned
    assert "mismatch" not in warned


def test_each_damping_is_a_family_whose_joined_points_have_period_t(result: MadeUp) -> None:
    section = damper_families(result)
    assert section is not None
    assert [f.title for f in section.figures][:2] == ["Correlation with the recorded knee angle", "Largest knee angle"]
    data = figure(section, "Largest knee angle").plot["data"]
    assert [t["name"] for t in data[::2]] == ["c/k 0.03 s", "c/k 0.05 s", "c/k 0.1 s"]
    for once, multiple, ratio in zip(data[::2], data[1::2], RATIOS.tolist(), strict=True):
        simple = CRITICAL[ratio] <= STIFFNESS
        assert once["y"][simple] == pytest.approx(70.0 - 1.2 * (STIFFNESS[simple] - 12.0))
        assert np.isnan(once["y"][~simple]).all()
        assert np.isnan(multiple["y"][simple]).all()
        assert np.isfinite(multiple["y"][~simple][1:]).all()  # the first one failed at the smallest ratio
        assert multiple["mode"] == "markers"


def test_the_path_of_the_instant_centre_is_drawn_once_per_leg(result: MadeUp) -> None:
    """Against the specification's places, mm from A: at 10, 30, 60 and 110 deg."""
    section = instant_centre(result)
    assert section is not None
    path, marks, linkage_, load = section.figures[0].plot["data"]
    assert path["name"] == "all chosen designs"
    for flexion, point in ((10, (8, 54)), (30, (11, 17)), (60, (-3, -2)), (110, (-19, 7))):
        assert (round(path["x"][flexion]), round(path["y"][flexion])) == point
    assert marks["text"] == ["0", "10", "20", "30", "60", "110"]
    assert linkage_["text"] == ["A", "B", "C", "D", ""]
    # The load line passes before the centre of the straight knee by what the table says.
    (row,) = section.tables[0].rows
    at = np.interp(path["y"][0], load["y"], load["x"])
    assert at - path["x"][0] == pytest.approx(row[2], rel=5e-3)
    assert row[1] == pytest.approx(path["y"][0])
    assert row[3] < 0.0  # no hip moment is needed


def test_legs_of_different_lengths_have_paths_of_their_own() -> None:
    shorter = made_up()
    space = (
        replace(shorter.study.space[0], name="cd_length", low=0.078, high=0.082, unit="m", factor=1.0, scale="linear"),
    )
    fixed = DesignVariable("stiffness", "fixed", values=(16000.0,), unit="N/m")
    problem = replace(shorter.problem, space=Space((*space, shorter.study.space[1], fixed)))
    X = shorter.outcomes.X.copy()
    X[:, 0] = 0.078 + 0.004 * (X[:, 0] - 12.0) / 12.0
    table = {**shorter.table, "outcomes": replace(shorter.outcomes, X=X)}
    section = instant_centre(replace(shorter, problem=problem, table=table))
    assert section is not None
    names = [t["name"] for t in section.figures[0].plot["data"] if t["mode"] == "lines" and t.get("showlegend") is None]
    assert len(names) == len(section.tables[0].rows) == 2
    assert names[0].startswith("best mismatch")
