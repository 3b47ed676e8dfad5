"""Reading of recorded gait: both formats, the fit, and every refusal of section 9 of the specification."""

import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from designopt_knee.gait import SIGNALS, Gait, bundled_text, read_gait
from designopt_knee.gait_heads import CYCLE_COLUMNS
from gait_tables import PERIOD, SPEED, cycle, text_of

import designopt
from designopt.plugin import InvalidSetting

_PAGE = Path(__file__).parents[2] / "docs" / "four_bar_knee.md"


def test_bundled_gait_names_its_source_and_licence():
    text = bundled_text()
    assert "Creative Commons Attribution 3.0" in text
    assert "Delp, Loan, Hoy, Zajac" in text
    assert "Changes:" in text


def test_bundled_gait_has_the_recorded_peak_and_hip_height(gait):
    phase = np.arange(200) / 200
    assert np.degrees(gait.series("knee", phase)).max() == pytest.approx(68.6, abs=0.05)
    height = gait.series("hip_y", phase)
    assert (height.min(), height.max()) == pytest.approx((0.932, 0.969), abs=1e-3)
    assert (gait.period, gait.belt_speed, gait.harmonics) == (PERIOD, SPEED, 8)


def test_bundled_gait_is_the_recorded_coefficient_file(gait, gait_folder):
    text = (gait_folder / "treadmill_1p0_fourier.csv").read_text(encoding="utf-8")
    recorded = read_gait(text, period=PERIOD, belt_speed=SPEED)
    for signal in SIGNALS:
        assert np.array_equal(recorded.coefficients[signal], gait.coefficients[signal])


def test_fit_of_the_recorded_cycle_gives_the_recorded_coefficients(gait, gait_folder):
    fitted = read_gait((gait_folder / "treadmill_1p0_cycle.csv").read_text(encoding="utf-8"))
    assert (fitted.period, fitted.belt_speed) == (PERIOD, SPEED)
    assert fitted.warnings == ()
    for signal in SIGNALS:  # the file is rounded to 1e-5 m and 1e-3 deg
        assert np.abs(fitted.coefficients[signal] - gait.coefficients[signal]).max() < 1e-5
        assert fitted.residuals[signal] < 1e-5


def test_fit_of_exact_samples_is_exact_and_its_residual_vanishes(gait):
    fitted = read_gait(text_of(cycle(gait)))
    for signal in SIGNALS:
        assert fitted.coefficients[signal] == pytest.approx(gait.coefficients[signal], abs=1e-12)
        assert fitted.residuals[signal] < 1e-12


def test_the_speed_over_ground_is_fitted_with_the_series_to_all_samples(gait):
    """An error of 4 mm in the last sample moves the trend by its weight in the least squares, not by all of it."""
    phase = np.linspace(0.0, 1.0, 101)
    forward = gait.series("hip_x", phase) + 1.2 * phase
    forward[-1] += 4e-3
    waves = np.exp(2j * np.pi * phase[:, None] * np.arange(1, 9))
    weight = np.linalg.pinv(np.column_stack([np.ones(101), waves.real, waves.imag, phase]))[-1, -1]
    fitted = read_gait(text_of(cycle(gait, hip_x_m=forward), comment="# no speed"))
    assert 0.1 < weight < 0.6
    assert fitted.belt_speed * PERIOD == pytest.approx(1.2 + 4e-3 * weight, abs=1e-9)


def test_residual_tells_what_too_few_harmonics_leave_out(gait):
    fitted = read_gait(text_of(cycle(gait)), harmonics=3)
    left = gait.coefficients["knee"][7:]
    # The end point counts twice, hence the tolerance.
    assert fitted.residuals["knee"] == pytest.approx(np.sqrt(0.5 * np.sum(left**2)), rel=0.02)
    assert fitted.harmonics == 3


def test_uneven_phase_is_fitted_too(gait):
    phase = np.linspace(0.0, 1.0, 101)
    phase = phase + 0.004 * np.sin(2 * np.pi * phase)
    fitted = read_gait(text_of(cycle(gait, at=phase)))
    assert fitted.coefficients["knee"] == pytest.approx(gait.coefficients["knee"], abs=1e-10)


def test_trend_over_ground_is_removed_and_becomes_the_speed(gait):
    columns = cycle(gait)
    columns["hip_x_m"] = columns["hip_x_m"] + 1.3 * columns["time_s"]
    fitted = read_gait(text_of(columns, comment="# walked over ground"))
    assert fitted.belt_speed == pytest.approx(1.3, rel=1e-9)
    assert fitted.period == pytest.approx(PERIOD, rel=1e-12)
    assert fitted.coefficients["hip_x"] == pytest.approx(gait.coefficients["hip_x"], abs=1e-9)


def test_settings_supply_what_the_file_lacks_and_replace_what_it_says(gait):
    silent = text_of(cycle(gait), comment="# a treadmill")
    assert read_gait(silent, belt_speed=0.9).belt_speed == 0.9
    assert read_gait(text_of(cycle(gait)), period=1.1, belt_speed=1.2).period == 1.1
    with pytest.raises(InvalidSetting, match="belt_speed"):
        read_gait(silent)


def test_coefficient_file_without_period_or_speed_asks_for_them():
    text = "\n".join(line for line in bundled_text().splitlines() if "period_s" not in line)
    with pytest.raises(InvalidSetting, match="period"):
        read_gait(text, belt_speed=SPEED)
    with pytest.raises(InvalidSetting, match="belt_speed"):
        read_gait(text, period=PERIOD)
    assert read_gait(text, period=PERIOD, belt_speed=SPEED, harmonics=4).harmonics == 4


def without(columns, name):
    return {k: v for k, v in columns.items() if k != name}


def bad(gait, name, index, value):
    columns = cycle(gait)
    columns[name] = columns[name].copy()
    columns[name][index] = value
    return columns


def twice(values):
    return np.append(np.tile(values[:-1:2], 2), values[0])


REFUSED = {
    "missing column": (lambda g: without(cycle(g), "foot_deg"), "column 'foot_deg' is missing"),
    "extra column": (lambda g: cycle(g, emg=np.zeros(101)), "column 'emg' is unknown"),
    "NaN": (
        lambda g: bad(g, "knee_deg", 7, np.nan),
        r"sample 8 \(line 10\): knee_deg is 'nan', not a finite number; close gaps of the recording first",
    ),
    "too few samples": (lambda g: cycle(g, samples=19), "19 samples; at least 20"),
    "phase not from 0": (lambda g: bad(g, "phase", 0, 0.005), "phase must increase"),
    "phase not to 1": (lambda g: bad(g, "phase", -1, 0.999), "phase must increase"),
    "phase not increasing": (lambda g: bad(g, "phase", 5, 0.03), "phase must increase"),
    "time not increasing": (lambda g: bad(g, "time_s", 5, 0.0), "time_s must increase: sample 6"),
    "time in ms": (
        lambda g: cycle(g, time_s=1e3 * cycle(g)["time_s"]),
        "time_s spans 1232 and the period is 1.232 s; convert it from milliseconds",
    ),
    "times of another period": (
        lambda g: cycle(g, time_s=1.06 * cycle(g)["time_s"]),
        r"time_s spans 1\.30592 s, but the file states period_s=1\.232; correct one of them",
    ),
    "time apart from the phase": (
        lambda g: bad(g, "time_s", 5, cycle(g)["time_s"][[5, 6]].mean()),
        r"time_s does not advance .* sample 6 \(line 8\) is",
    ),
    "missing samples": (
        lambda g: {name: np.delete(values, np.arange(40, 50)) for name, values in cycle(g).items()},
        "between the samples 40 and 41 11 % of the cycle are missing; 8 harmonics need steps of at most 6.25 %",
    ),
    "open angle": (lambda g: bad(g, "thigh_deg", -1, 25.0), "column 'thigh_deg': first and last row differ"),
    "open height": (lambda g: bad(g, "hip_y_m", -1, 0.95), "column 'hip_y_m': first and last row differ"),
    "moving hip on a treadmill": (lambda g: bad(g, "hip_x_m", -1, 0.60), "hip_x_m moves"),
    "hip that drifts on a treadmill": (
        lambda g: cycle(g, hip_x_m=cycle(g)["hip_x_m"] + 0.06 * cycle(g)["phase"]),
        r"hip_x_m moves 0\.060 m .*; take the drift on the belt off, in proportion to the phase",
    ),
    "over ground with a belt speed": (
        lambda g: cycle(g, hip_x_m=cycle(g)["hip_x_m"] + 1.3 * cycle(g)["time_s"]),
        r"hip_x_m moves 1\.602 m .*; over ground, leave the belt speed out",
    ),
    "angle too large": (
        lambda g: bad(g, "shank_deg", 9, 190.0),
        r"'shank_deg': an angle of more than 180 deg, 190 in sample 10 \(line 12\); write",
    ),
    "mark of a gap": (
        lambda g: bad(g, "knee_deg", 30, 9999.0),
        r"9999 in sample 31 \(line 33\); close gaps of the rec",
    ),
    "time twice": (
        lambda g: bad(g, "time_s", 31, cycle(g)["time_s"][30]),
        r"time_s must increase: sample 32 \(line 34\) \(0.3696 s\) is not later than the one before",
    ),
    "phase twice": (lambda g: bad(g, "phase", 31, 0.3), r"; sample 32 \(line 34\) is not after the one before"),
    "exchanged over ground": (
        lambda g: cycle(g, hip_x_m=cycle(g)["hip_y_m"], hip_y_m=cycle(g)["hip_x_m"] + 1.3 * cycle(g)["time_s"]),
        r"hip_y_m advances by 1\.602 m in the cycle, and hip_x_m ends where it began; exchange them",
    ),
    "hip too high": (lambda g: cycle(g, hip_y_m=cycle(g)["hip_y_m"] + 0.4), "hip height 1.3"),
    "lengths in millimetres": (
        lambda g: {n: v * 1000.0 if n.endswith("_m") else v for n, v in cycle(g).items()},
        r"column 'hip_y_m' is 9\d\d\S* on average, .* from millimetres \(divide by 1000\)",
    ),
    "height in centimetres": (
        lambda g: cycle(g, hip_y_m=1e2 * cycle(g)["hip_y_m"]),
        r"column 'hip_y_m' is 95\S* on average, .*; convert hip_y_m from centimetres \(divide by 100\)",
    ),
    "forward motion in millimetres": (
        lambda g: cycle(g, hip_x_m=1e3 * cycle(g)["hip_x_m"]),
        r"column 'hip_x_m' moves by 30\.17 to and fro, .* from millimetres \(divide by 1000\)",
    ),
    "forward motion in centimetres": (
        lambda g: cycle(g, hip_x_m=1e2 * cycle(g)["hip_x_m"]),
        r"column 'hip_x_m' moves by 3\.017 to and fro, .* from centimetres \(divide by 100\)",
    ),
    "height from its mean": (
        lambda g: cycle(g, hip_y_m=cycle(g)["hip_y_m"] - cycle(g)["hip_y_m"].mean()),
        r"is outside 0\.3 to 1\.3 m; heights count from the ground, upwards",
    ),
    "two cycles": (
        lambda g: cycle(g, **{n: twice(v) for n, v in cycle(g).items() if n not in ("phase", "time_s")}),
        "both halves of the cycle bend the knee alike: are they two cycles",
    ),
    "lengths in centimetres": (
        lambda g: {n: v * 100.0 if n.endswith("_m") else v for n, v in cycle(g).items()},
        r"from centimetres \(divide by 100\)",
    ),
    "phase in percent": (lambda g: cycle(g, phase=100.0 * cycle(g)["phase"]), r"divide it by 100 \(it is in percent\)"),
    "phase in samples": (lambda g: cycle(g, phase=50.0 * cycle(g)["phase"]), "it ends at 50: divide it by 50$"),
    "hip too low": (lambda g: cycle(g, hip_y_m=cycle(g)["hip_y_m"] - 0.7), "hip height 0.2"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_cycle_file_is_refused_by_name(gait, case):
    columns, message = REFUSED[case]
    with pytest.raises(InvalidSetting, match=message) as caught:
        read_gait(text_of(columns(gait)))
    assert caught.value.name == "gait"


def german(text, separator, decimal=","):
    """`text` with other separators and decimal signs, as spreadsheets save it."""
    head, *rows = text.replace(",", separator).split("\n", 2)
    return "\n".join(line.replace(".", decimal) for line in (head, *rows))


@pytest.mark.parametrize(("separator", "decimal"), [(";", ","), (";", "."), ("\t", ","), ("\t", ".")])
def test_semicolons_tabs_and_decimal_commas_are_read(gait, separator, decimal):
    read = read_gait(german(text_of(cycle(gait)), separator, decimal))
    assert (read.period, read.belt_speed) == (PERIOD, SPEED)
    for signal in SIGNALS:
        assert read.coefficients[signal] == pytest.approx(gait.coefficients[signal], abs=1e-12)


def test_empty_cells_at_the_end_and_spaces_in_a_comment_are_those_of_spreadsheets(gait):
    comment = f"# period_s = {PERIOD}, belt_speed_m_s = {SPEED}"
    padded = "\n".join(f"{line},,," for line in text_of(cycle(gait), comment).splitlines())
    assert np.array_equal(read_gait(padded).data(), read_gait(text_of(cycle(gait))).data())


def test_words_may_precede_the_statements_of_a_comment(gait):
    comment = f"# patient B, period_s={PERIOD} belt_speed_m_s={SPEED} (slow)"
    assert np.array_equal(read_gait(text_of(cycle(gait), comment)).data(), read_gait(text_of(cycle(gait))).data())


_LABORATORY = "Cycle [%],Time [s],AP [mm],hip_y_m,Thigh,shank_deg,foot_deg,Knee Flex [deg],ankle_deg"
FILES_REFUSED = {
    "decimal commas between commas": (
        lambda text: german(text, ",", ","),
        r"sample 1 \(line 3\): 18 values, not 9; do numbers have decimal commas\? Then separate columns by semicolons",
    ),
    "columns separated by blanks": (
        lambda text: text.replace(",", " "),
        "the line 'phase time_s .*' names one column; separate columns by commas, semicolons or tabs",
    ),
    "empty cell": (
        lambda text: re.sub(r"^(0\.07,.*,)[^,]+(,[^,]+)$", r"\1\2", text, flags=re.MULTILINE),
        r"sample 8 \(line 10\): knee_deg is empty; close gaps of the recording first",
    ),
    "words": (lambda text: text.replace("\n0.0,0.0,", "\n0.0,start,"), r"sample 1 \(line 3\): time_s is 'start'"),
    "time in ms without a period": (
        lambda text: re.sub(r"^(\d\S*?),([^,]+)", lambda m: f"{m[1]},{1e3 * float(m[2])}", text, flags=re.MULTILINE)
        .replace("period_s", "was"),
        r"column 'time_s' \(s\): 1232 s is not the period of a gait cycle .* from milliseconds",
    ),
    "dash": (
        lambda text: re.sub(r"^(0\.07,.*,)[^,]+(,[^,]+)$", r"\1-\2", text, flags=re.MULTILINE),
        r"sample 8 \(line 10\): knee_deg is '-', not a finite number; close gaps of the recording first",
    ),
    "row of units": (
        lambda text: text.replace("\n0.0,0.0,", "\n-,s,m,m,deg,deg,deg,deg,deg\n0.0,0.0,"),
        r"line 3: '-,s,m,m,deg,.*' has no number; if these are units, remove the line, and write them into the heads",
    ),
    "speed in other words": (
        lambda text: text.replace("belt_speed_m_s=", "belt speed: "),
        r"into the file \(line 1, 'speed: 1.015', does not state it in that form\)",
    ),
    "heads of a laboratory": (
        lambda text: text.replace(text.splitlines()[1], _LABORATORY),
        r"columns 'phase', 'time_s', 'hip_x_m', 'thigh_deg', 'knee_deg' are missing; did you mean 'Time \[s\]' for"
        r" time_s, 'Thigh' for thigh_deg, 'Knee Flex \[deg\]' for knee_deg\?; the file has 'Cycle \[%\]', 'AP",
    ),
    "head with another name": (
        lambda text: text.replace("thigh_deg", "hip_deg"),
        "column 'thigh_deg' is missing; the file has 'hip_deg'; the columns are",
    ),
    "head that is unknown": (lambda text: text.replace("knee_deg,", "knee_deg,hip,"), "column 'hip' is unknown"),
    "head twice": (
        lambda text: text.replace("knee_deg,", "knee_deg,knee [deg],"),
        r"column 'knee \[deg\]' is there twice",
    ),
    "unit of another quantity": (
        lambda text: text.replace("hip_y_m", "hip_y [deg]"),
        r"column 'hip_y \[deg\]': .*cannot be converted",
    ),
    "no speed": (
        lambda text: text.replace("belt_speed", "was"),
        r"belt_speed: .* set belt_speed \(m/s\), or write # belt_speed_m_s=\.\.\. into the file",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FILES_REFUSED)
def test_a_file_that_cannot_be_read_names_line_column_and_remedy(gait, case):
    changed, message = FILES_REFUSED[case]
    text = text_of(cycle(gait))
    assert changed(text) != text
    with pytest.raises(InvalidSetting, match=message):
        read_gait(changed(text))


def test_heads_may_have_their_units_as_those_of_recordings(gait):
    columns = cycle(gait)
    heads = {"time_s": "time [ms]", "hip_x_m": "hip_x [mm]", "hip_y_m": "hip_y [cm]", "knee_deg": "knee [rad]"}
    factors = {"time_s": 1e3, "hip_x_m": 1e3, "hip_y_m": 1e2, "knee_deg": np.radians(1.0)}
    changed = {heads.get(name, name): values * factors.get(name, 1.0) for name, values in columns.items()}
    for signal, coefficients in read_gait(text_of(changed)).coefficients.items():
        assert coefficients == pytest.approx(gait.coefficients[signal], abs=1e-9)


def test_a_coefficient_file_that_states_the_period_in_other_words_is_cited():
    text = bundled_text().replace("# period_s=1.232 belt_speed_m_s=1.015", "# T = 1.232 s, belt speed 1.015 m/s")
    with pytest.raises(InvalidSetting, match=r"period: .* \(line \d+, 'T = 1.232 s, belt speed .*'.*; give it here"):
        read_gait(text)


def test_backward_walk_is_refused(gait):
    columns = cycle(gait)
    columns["hip_x_m"] = columns["hip_x_m"] - columns["time_s"]
    with pytest.raises(InvalidSetting, match="backward"):
        read_gait(text_of(columns, comment="#"))


@pytest.mark.parametrize(("harmonics", "samples"), [(10, 21), (50, 101)])
def test_too_many_harmonics_for_the_samples_are_refused(gait, harmonics, samples):
    with pytest.raises(InvalidSetting, match=f"harmonics: {harmonics} are too many for {samples} samples"):
        read_gait(text_of(cycle(gait, samples=samples)), harmonics=harmonics)


def test_more_harmonics_than_the_coefficient_file_holds_are_refused():
    with pytest.raises(InvalidSetting, match="the gait file has 8"):
        read_gait(bundled_text(), harmonics=9)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("signal,unit,c0,c1", "signal,unit,c0,c2", "the columns of a coefficient file"),
        ("knee,rad,", "knee,grad,", "row 'knee': unit 'grad'"),
        ("knee,rad,", "elbow,rad,", "row 'elbow' is unknown"),
        ("knee,rad,", "thigh,rad,", "row 'thigh' is unknown or given twice"),
        ("3.77281866e-01", "nan", "row 'knee': c0 is 'nan', not a finite number"),
        ("3.77281866e-01", "much", "row 'knee': c0 is 'much', not a finite number"),
        ("3.77281866e-01,", "", "row 'knee': 16 values, not 17"),
        ("3.77281866e-01", "21.6", "more than 180 deg"),
        ("9.50855959e-01", "950.855959", "hip height"),
        ("period_s=1.232", "period_s=-1", "period: -1.0 must be greater than 0"),
        ("period_s=1.232", "period_s=fast", r"line \d+: period_s is 'fast', not a finite number"),
        (
            "period_s=1.232",
            "period_s=1232",
            r"period: 1232 s is not the period .* from milliseconds \(divide by 1000\)",
        ),
        ("period_s=1.232", "period_s=60", r"period: 60 s is not the period of a gait cycle \(0.3 to 10 s\)$"),
        ("belt_speed_m_s=1.015", "belt_speed_m_s=-1", "belt_speed"),
    ],
)
def test_coefficient_file_is_refused_by_name(old, new, message):
    assert old in bundled_text()
    with pytest.raises(InvalidSetting, match=message):
        read_gait(bundled_text().replace(old, new))


def test_missing_row_and_empty_file_are_refused():
    with pytest.raises(InvalidSetting, match="row 'knee' is missing"):
        read_gait("\n".join(line for line in bundled_text().splitlines() if not line.startswith("knee")))
    with pytest.raises(InvalidSetting, match="no samples"):
        read_gait("# nothing here\n")


def test_a_coefficient_file_in_radians_under_degrees_is_refused():
    text = re.sub(r"^(thigh|knee|ankle),rad,", r"\1,deg,", bundled_text(), flags=re.MULTILINE)
    with pytest.raises(InvalidSetting, match=r"stays below 2 deg .*convert from radians"):
        read_gait(text)


def test_columns_may_come_in_any_order(gait):
    columns = cycle(gait)
    shuffled = {name: columns[name] for name in reversed(CYCLE_COLUMNS)}
    assert read_gait(text_of(shuffled)).coefficients["thigh"] == pytest.approx(gait.coefficients["thigh"], abs=1e-12)


def test_the_recipe_writes_the_mean_cycle_of_a_recording_of_many_strides(
    gait: Gait, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten strides at 80 Hz that begin in mid-stride, with noise of 1 mm and 0.3 deg, a third of it in the mean."""
    time = np.arange(0.0, 10.2 * gait.period, 0.0125)
    phase = time / gait.period + 0.3
    noise = np.random.default_rng(0).normal(size=(5, len(time)))
    columns = [
        values + 1e-3 * error if signal.startswith("hip") else np.degrees(values) + 0.3 * error
        for signal, error in zip(SIGNALS, noise, strict=True)
        for values in [gait.series(signal, phase)]
    ]
    table = np.stack([time, *columns, phase % 1.0 < 0.6, np.full_like(time, 1.25)], axis=1)
    head = "# inDegrees=yes\ntime," + ",".join(SIGNALS) + ",switch,belt_speed"
    monkeypatch.chdir(tmp_path)
    np.savetxt("strides.csv", table, "%.6f", delimiter=",", header=head, comments="")
    recipe, _ = re.findall(r"```python\n(.*?)```", _PAGE.read_text(), flags=re.DOTALL)
    exec(compile(recipe, _PAGE.name, "exec"), {})
    mean = read_gait(Path("my_cycle.csv").read_text())
    assert mean.warnings == ()
    assert mean.period == pytest.approx(gait.period, abs=2e-3)
    assert mean.belt_speed == 1.25
    share = np.linspace(0.0, 1.0, 101)
    for (
        signal
    ) in SIGNALS:  # a strike is found up to one frame late: 1 % of the cycle, 3.3 deg where the knee is fastest
        tolerance = 3e-3 if signal.startswith("hip") else np.radians(3.3)
        np.testing.assert_allclose(mean.series(signal, share), gait.series(signal, share), atol=tolerance)


def test_the_scenarios_of_the_page_run_and_its_recipe_writes_the_curve_of_the_recommended_knee_in_degrees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (scenarios,) = re.findall(r"```yaml\n(.*?)```", _PAGE.read_text(), flags=re.DOTALL)
    study = {
        **yaml.safe_load(scenarios),
        "study": "my_knee",
        "model": {"use": "four_bar_knee", "parameter_set": "substitute_v2"},
        "space": {"stiffness": {"low": 15e3, "high": 17e3, "unit": "N/m"}, "damping_ratio": 0.05},
        "solver": {"use": "evaluate", "designs": [{"name": "firm", "stiffness": 16e3}]},
        "execution": {"arrays": dict.fromkeys(("phase", "knee_angle", "knee_angle_recorded"), "all")},
        "report": {"tolerances": {"neighbours": 0}},
    }
    Path("my_knee.yaml").write_text(yaml.safe_dump(study))
    designopt.load("my_knee.yaml").run("results/my_knee.study", executor="serial")
    _, recipe = re.findall(r"```python\n(.*?)```", _PAGE.read_text(), flags=re.DOTALL)
    exec(compile(recipe, _PAGE.name, "exec"), {})
    curve = np.loadtxt("knee_curve.csv", delimiter=",", skiprows=1)
    assert (curve[0, 0], curve[-1, 0], len(curve)) == (0.0, 1.0, 201)
    assert curve[:, 2].max() == pytest.approx(68.6, abs=0.1)
    assert 50.0 < curve[:, 1].max() < 90.0
