"""Tables with the mistakes that laboratories make: radians, signs, the other leg, exchanged columns, lost frames."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from designopt_knee.gait import Gait, read_gait
from designopt_knee.model import FourBarKnee
from designopt_knee.parameters import quantities
from gait_tables import Columns, cycle, text_of, with_joints, with_links

from designopt.arrays import Floats
from designopt.plugin import InputFile, InvalidSetting
from designopt.study.language import units

LINKS, JOINTS = ("thigh", "shank", "foot"), ("thigh", "knee", "ankle")
ANGLES = ("thigh", "shank", "foot", "knee", "ankle")
CHAINS = {JOINTS: with_links, LINKS: with_joints}


def half_off(values: Floats) -> Floats:
    return np.append(np.roll(values[:-1], 50), values[50])


def changed(columns: Columns, names: Sequence[str], change: Callable[[Floats], Floats]) -> Columns:
    return {**columns, **{f"{name}_deg": change(columns[f"{name}_deg"]) for name in names}}


def exchanged(columns: Columns, first: str, second: str) -> Columns:
    return {**columns, f"{first}_deg": columns[f"{second}_deg"], f"{second}_deg": columns[f"{first}_deg"]}


def subsets(names: Sequence[str], largest: int) -> Iterator[tuple[str, ...]]:
    for count in range(1, largest + 1):
        yield from combinations(names, count)


def listed(names: Sequence[str]) -> str:
    *first, last = (f"{name}_deg" for name in names)
    return f"{', '.join(first)} and {last}" if first else last


def answer(columns: Columns, **settings: object) -> str:
    """What the model says of the table: its error, or its remarks."""
    file = InputFile("cycle.csv", text_of(columns).encode())
    try:
        model = FourBarKnee(gait=file, **settings)  # type: ignore[arg-type]
        model.check()
        return "\n".join(model.remarks({}))
    except InvalidSetting as error:
        return str(error)


def test_columns_in_radians_are_named_alone_and_in_all_combinations(gait: Gait) -> None:
    for names in subsets(ANGLES, 5):
        with pytest.raises(InvalidSetting, match=r"stays below 2 deg .*convert from radians") as caught:
            read_gait(text_of(changed(cycle(gait), names, np.radians)))
        assert all(f"{name}_deg" in str(caught.value) for name in names)


def test_radians_at_the_source_of_the_table_are_named(gait: Gait) -> None:
    for chain, computed in CHAINS.items():
        for names in subsets(chain, 3):
            message = answer(computed(changed(cycle(gait), names, np.radians)))
            assert "convert from radians" in message
            assert all(f"{name}_deg" in message for name in names)
    in_radians = with_links(changed(cycle(gait), ["ankle"], np.radians))
    (warning,) = read_gait(text_of(in_radians)).warnings
    assert "an ankle that moves does not stay below 2 deg (ankle_deg -0.126 to 0.202); if it moves, convert" in warning
    assert answer(with_links(changed(cycle(gait), ["ankle"], np.zeros_like))) == ""  # not recorded


@pytest.mark.parametrize(
    ("change", "clause"), [(np.negative, "{} {have} the opposite sign"), (half_off, "{}, half a cycle off, {are} of")]
)
def test_columns_that_contradict_the_others_are_named(
    gait: Gait, change: Callable[[Floats], Floats], clause: str
) -> None:
    for names in subsets(ANGLES, 2):
        verbs = {"have": "has", "are": "is"} if len(names) == 1 else {"have": "have", "are": "are"}
        with pytest.raises(InvalidSetting) as caught:
            read_gait(text_of(changed(cycle(gait), names, change)))
        assert str(caught.value).removeprefix("gait: ").startswith(clause.format(listed(names), **verbs))


def test_exchanged_columns_are_named(gait: Gait) -> None:
    for names in combinations(ANGLES, 2):
        with pytest.raises(InvalidSetting, match=f"{listed(names)} are exchanged; exchange them again"):
            read_gait(text_of(exchanged(cycle(gait), *names)))


def test_a_mistake_at_the_source_is_named_where_the_leg_does_not_walk(gait: Gait) -> None:
    """Joints agree with their links; only the posture tells which of them is wrong."""
    for chain, computed in CHAINS.items():
        for names in subsets(chain, 2):
            has, are = ("has", "is") if len(names) == 1 else ("have", "are")
            reverse = answer(computed(changed(cycle(gait), names, np.negative)))
            assert f"does not walk: {listed(names)} {has} the opposite sign" in reverse
            other_leg = answer(computed(changed(cycle(gait), names, half_off)))
            assert f"does not walk: {listed(names)}, half a cycle off, {are} of the other leg" in other_leg
        for names in combinations(chain, 2):
            assert f"{listed(names)} are exchanged" in answer(computed(exchanged(cycle(gait), *names)))


def test_a_reversed_thigh_is_an_error_that_says_what_to_compute_again(gait: Gait) -> None:
    assert answer(with_links(changed(cycle(gait), ["thigh"], np.negative))) == (
        "gait: the recorded leg does not walk: thigh_deg has the opposite sign (positive: lower end forward); reverse"
        " it, and compute shank_deg and foot_deg from thigh_deg, knee_deg and ankle_deg; then the foot stands, and"
        " moves with the belt"
    )


def test_a_reversed_knee_and_a_walk_seen_from_the_other_side_are_named(gait: Gait) -> None:
    knee = answer(with_links(changed(cycle(gait), ["knee"], np.negative)))
    assert "the knee is between -68.6 and 4.38 deg; the recorded leg does not walk: knee_deg has the opposite" in knee
    columns = changed(cycle(gait), ANGLES, np.negative)
    assert "does not walk: thigh_deg, knee_deg and ankle_deg have the opposite sign" in answer(columns)
    mirrored = answer({**columns, "hip_x_m": -columns["hip_x_m"]})
    assert "does not walk: hip_x_m, thigh_deg, knee_deg and ankle_deg have the opposite sign" in mirrored


def test_no_mistake_is_named_where_legs_speeds_postures_and_starts_are_wrong(gait: Gait) -> None:
    rng = np.random.default_rng(0)
    for shift in (0, 20, 50, 80):
        shifted = {n: v if n in ("phase", "time_s") else np.append(np.roll(v[:-1], shift), v[-1 - shift])
                   for n, v in cycle(gait).items()}  # fmt: skip
        for _ in range(5):
            offsets, factor, speed = rng.normal(0.0, 8.0, 3), rng.uniform(0.8, 1.2), rng.uniform(0.6, 1.8)
            turned = [f"{name}_deg" for name in JOINTS]
            columns = {n: shifted[n] + offset for n, offset in zip(turned, offsets, strict=True)}
            columns = with_links({**shifted, **columns})
            lengths = {"thigh_length": 0.385 * factor, "shank_length": 0.475 * factor}
            assert "does not walk" not in answer(columns, parameters=lengths, belt_speed=speed)


def test_a_constant_difference_is_another_posture(gait: Gait) -> None:
    columns = changed(cycle(gait), ["ankle"], lambda values: values + 12.0)
    (warning,) = read_gait(text_of(columns)).warnings
    assert warning.startswith(
        "gait: ankle_deg differs from foot_deg - shank_deg by up to 12.0 deg; one of them counts from another posture,"
        " +12.0 deg away (at 0, 25, 50, 75 % of the cycle ankle_deg is 9, 17, 24, 14, foot_deg - shank_deg -3, 5, 12, 2"
    )
    horizontal = answer(changed(cycle(gait), ["thigh"], lambda values: values + 90.0))
    assert "knee_deg differs from thigh_deg - shank_deg by up to 90.0 deg; one of them counts" in horizontal


def lost(columns: Columns, rows: slice) -> Columns:
    """The table without `rows`, its phases numbered again."""
    left = {name: np.delete(values, rows) for name, values in columns.items()}
    phase = np.linspace(0.0, 1.0, len(left["phase"]))
    return {**left, "phase": phase, "time_s": phase * columns["time_s"][-1]}


def spoilt(columns: Columns, rows: slice, value: float) -> Columns:
    values = columns["knee_deg"].copy()
    values[rows] = value
    return with_links({**columns, "knee_deg": values})


@pytest.mark.parametrize(
    ("change", "sample"),
    [
        (lambda columns: lost(columns, slice(60, 70)), 61),
        (lambda columns: spoilt(columns, slice(66, 76), 0.0), 76),
        (lambda columns: spoilt(columns, slice(70, 71), 100.0), 71),
        (lambda columns: spoilt(columns, slice(60, 80), columns["knee_deg"][60]), 81),
    ],
    ids=["frames lost", "gap of zeros", "outlier", "value held"],
)
def test_lost_frames_and_filled_gaps_are_a_remark(
    gait: Gait, change: Callable[[Columns], Columns], sample: int
) -> None:
    (warning,) = read_gait(text_of(change(cycle(gait)))).warnings
    assert f"knee_deg of sample {sample} by " in warning
    assert "is it an outlier, the edge of a filled gap, or are frames missing there?" in warning


def test_a_gap_in_a_single_column_is_no_angle_from_another_posture(gait: Gait) -> None:
    knee = cycle(gait)["knee_deg"].copy()
    knee[70] = 0.0
    (warning, _) = read_gait(text_of({**cycle(gait), "knee_deg": knee})).warnings
    assert "by up to 66.4 deg in 1 sample from sample 71 (line 73) on: is it an outlier, or a filled gap?" in warning


def test_noise_of_one_stride_and_few_harmonics_are_none(gait: Gait) -> None:
    rng = np.random.default_rng(0)
    noise = {name: 0.6 * rng.normal(size=101) for name in ("thigh_deg", "knee_deg", "ankle_deg")}
    noisy = with_links({**cycle(gait), **{name: cycle(gait)[name] + error for name, error in noise.items()}})
    closed = {name: np.append(values[:-1], values[0] if name[:2] not in ("ph", "ti") else values[-1])
              for name, values in noisy.items()}  # fmt: skip
    assert read_gait(text_of(closed)).warnings == ()
    assert read_gait(text_of(cycle(gait)), harmonics=3).warnings == ()


@pytest.mark.parametrize(("least", "noted"), [(0.008, False), (0.012, True), (0.02, True)])
def test_a_limit_of_the_toe_near_that_of_the_recorded_swing_is_a_remark(gait: Gait, least: float, noted: bool) -> None:
    file = InputFile("cycle.csv", text_of(cycle(gait)).encode())
    knee = FourBarKnee(gait=file, parameter_set="substitute_v2")
    sentences = " ".join(knee.study_remarks(["stiffness"], {"toe_clearance": (least, None)}))
    assert ("recorded swing itself the toe of this leg is 15.5 mm above the ground at 87 % of" in sentences) == noted
    assert ("leaves little room" in sentences, "lower the limit" in sentences) == (least == 0.012, least == 0.02)
    longer = replace(knee, parameters={"foot_length": 0.23})
    too_long = replace(knee, parameters={"thigh_length": 0.395})
    remark = " ".join(too_long.study_remarks(["stiffness"], {"toe_clearance": (0.01, None)}))
    assert "the linkage (0.112 m) and shank_length is 0.982 m long, and the hip at most 0.969 m high" in remark
    straight, remark = longer.study_remarks(["stiffness"], {"toe_clearance": (0.01, None)})
    assert "(centre_offset; at least 1 mm" in straight  # the longer heel moves the line from the hip
    assert "is to be at least 10 mm" in remark
    assert knee.study_remarks(["foot_length"], {"toe_clearance": (0.02, None)}) == []
    assert knee.study_remarks([], {"rho": (None, None)}) == []
    long_foot = replace(knee, parameters={"foot_length": 0.42})
    assert "mm below the ground at" in " ".join(long_foot.study_remarks(["stiffness"], {"toe_clearance": (0.01, None)}))


def test_a_thigh_longer_than_the_shank_is_a_remark(gait: Gait) -> None:
    file = InputFile("cycle.csv", text_of(cycle(gait)).encode())
    knee = FourBarKnee(gait=file, parameter_set="substitute_v2")
    assert knee.remarks({}) == []
    changed = replace(knee, parameters={"thigh_length": 0.475, "shank_length": 0.385})
    remarks = changed.remarks({})
    assert any("thigh_length 0.475 m (hip to E) is longer than shank_length 0.385 m" in remark for remark in remarks)


def test_masses_that_no_leg_has_are_a_remark(gait: Gait) -> None:
    file = InputFile("cycle.csv", text_of(cycle(gait)).encode())
    knee = FourBarKnee(gait=file, parameter_set="substitute_v2", parameters={"shank_mass": 2.5e-3, "foot_mass": 6.0})
    assert knee.remarks({}) == [
        "parameters: shank_mass is 0.0025 kg, and that of a person 0.2 to 15 kg: is it in another unit?",
        "parameters: foot_mass is 6 kg, and that of a person 0.05 to 5 kg: is it in another unit?",
    ]


@pytest.mark.parametrize(
    ("name", "value", "unit"),
    [
        ("thigh_length", 41.0, "cm"),
        ("thigh_length", 410.0, "mm"),
        ("foot_length", 27.0, "cm"),
        ("shank_mass", 2500.0, "g"),
        ("foot_mass", 1000.0, "g"),
        ("shank_inertia", 250.0, "kg cm^2"),
    ],
)
def test_a_number_of_the_leg_in_another_unit_is_an_error_before_all_others(name: str, value: float, unit: str) -> None:
    with pytest.raises(InvalidSetting, match=re.escape(f": is it in {unit}? Write '{value:g} {unit}'")) as caught:
        FourBarKnee(parameters={name: value}).check()  # type: ignore[misc]
    assert caught.value.name == f"parameters.{name}"
    with pytest.raises(InvalidSetting) as caught:
        FourBarKnee().check_scenario({name: value})  # type: ignore[misc]
    assert caught.value.name == name
    converted = units.convert(value, unit, quantities()[name].unit)
    FourBarKnee(parameters={name: converted}).check()  # type: ignore[misc]


def test_the_mass_of_a_person_is_none_of_a_shank() -> None:
    with pytest.raises(InvalidSetting, match=r"78 kg, and that of a leg is 0\.2 to 15 kg$"):
        FourBarKnee(parameters={"shank_mass": 78.0}).check()


def test_a_hip_that_was_not_recorded_is_a_remark(gait: Gait) -> None:
    for name in ("hip_x_m", "hip_y_m"):
        columns = cycle(gait)
        still = {**columns, name: np.full(101, columns[name].mean())}
        assert f"{name} does not change in the cycle" in answer(still, parameter_set="substitute_v2")


def test_angles_that_alone_begin_at_the_other_heel_strike_may_be_shifted_alone(gait: Gait) -> None:
    remark = answer(changed(cycle(gait), ANGLES, half_off))
    assert "so that the row there is the first (only the angles, if hip_x_m and hip_y_m already begin at it)" in remark


def test_a_mistake_that_no_damper_survives_is_an_error(gait: Gait) -> None:
    file = InputFile("cycle.csv", text_of(with_links(changed(cycle(gait), ["ankle"], np.negative))).encode())
    with pytest.raises(InvalidSetting, match=r"does not walk: ankle_deg has the opposite sign"):
        FourBarKnee(gait=file).check()
