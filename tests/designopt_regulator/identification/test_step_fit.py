"""Plants from measured steps: their numbers come back, intervals are honest, files of no use are refused."""

import re

import numpy as np
import pytest
import scipy.optimize
from designopt_regulator.identification.frequency_fit import ResponseData, fit_response
from designopt_regulator.identification.step_fit import StepData, fit_step, read_step
from designopt_regulator.identification.table import BadData
from designopt_regulator.linear_loop.model import LinearLoop, LinearPlant
from scipy.signal import lsim

from designopt.plugin import InputFile, InvalidSetting
from designopt.study.language.checking.settings import validate

TIME = np.arange(0.0, 60.0, 0.25)
INPUT = np.where(TIME >= 2.0, 1.5, 0.0) - np.where(TIME >= 35.0, 0.5, 0.0)
CASES = {
    "fopdt": (("fopdt", {"gain": 2.0, "time_constant": 8.0, "delay": 1.25}), ([2.0], [8.0, 1.0])),
    "sopdt": (
        ("sopdt", {"gain": -3.0, "time_constant": 6.0, "time_constant_2": 2.0, "delay": 1.25}),
        ([-3.0], [12.0, 8.0, 1.0]),
    ),
    "ipdt": (("ipdt", {"gain": 0.2, "delay": 1.25}), ([0.2], [1.0, 0.0])),
}


def measured(system, noise=0.0, seed=0):
    """SciPy's answer of the system to the held input, five samples late, about an output of 5."""
    late = np.concatenate([np.zeros(5), INPUT[:-5]])
    _, y, _ = lsim(system, late, TIME, interp=False)
    return StepData(TIME, INPUT, 5.0 + y + noise * np.random.default_rng(seed).normal(size=len(TIME)), ("", ""))


@pytest.mark.parametrize("case", CASES)
def test_the_numbers_of_a_plant_come_back_from_its_step(case):
    (model, numbers), system = CASES[case]
    fit = fit_step(measured(system), model)
    assert fit.parameters == pytest.approx(numbers, rel=1e-6)
    assert fit.offset == pytest.approx(5.0, abs=1e-6)
    assert fit.residual < 1e-6
    assert fit.explained_variance == pytest.approx(1.0, abs=1e-9)
    assert float(fit.plant().delay) == fit.parameters["delay"]


@pytest.mark.parametrize("case", ["fopdt", "ipdt"])
def test_intervals_hold_the_true_numbers_as_often_as_they_say(case):
    """95 % in 60 samples of noise: fewer than 48 for one number would happen once in 100 000."""
    (model, numbers), system = CASES[case]
    inside = dict.fromkeys(numbers, 0)
    for seed in range(60):
        fit = fit_step(measured(system, 0.02, seed), model)
        assert fit.residual == pytest.approx(0.02, rel=0.25)
        for name, value in numbers.items():
            inside[name] += abs(fit.parameters[name] - value) < fit.confidence[name]
    assert min(inside.values()) >= 48


def test_a_model_that_is_too_simple_leaves_a_residual():
    simple, right = (fit_step(measured(CASES["sopdt"][1]), model) for model in ("fopdt", "sopdt"))
    assert simple.residual > 100.0 * right.residual
    assert simple.explained_variance < 1.0 - 1e-5


@pytest.mark.parametrize("instant", [30.5, 34.0, 37.0, 39.9])
def test_the_interval_of_the_delay_covers_a_step_between_two_samples(instant):
    """A heater logged every 10 s, switched at any instant: gain 2, time constant 100 s, delay 25 s."""
    time = np.arange(0.0, 900.0, 10.0)
    output = 2.0 * -np.expm1(-np.maximum(time - instant - 25.0, 0.0) / 100.0)
    data = StepData(time, np.where(time >= instant, 1.0, 0.0), output, ("", ""))
    by_default, unknown, piecewise_constant = (
        fit_step(data, "fopdt", between) for between in (None, "unknown", "held")
    )
    for fit in (by_default, unknown):
        shorter, longer = fit.deviations("delay")
        assert -shorter * (1.0 + 1e-6) <= 25.0 - fit.parameters["delay"] <= longer * (1.0 + 1e-6)
    assert by_default.deviations("delay") == pytest.approx((0.0, 10.0), abs=0.01)  # it can only be longer
    assert (
        piecewise_constant.parameters["delay"]
        == by_default.parameters["delay"]
        == pytest.approx(25.0 - (40.0 - instant), abs=1e-3)
    )
    assert piecewise_constant.confidence["delay"] < 0.01
    assert unknown.parameters["delay"] == pytest.approx(piecewise_constant.parameters["delay"] + 5.0)
    assert unknown.deviations("delay") == pytest.approx((5.0, 5.0), abs=0.01)


def test_a_record_in_the_way_of_a_spreadsheet_is_read():
    """Semicolons, decimal commas, columns by their own names among others."""
    rows = "\n".join(
        f"{i};{str(0.5 * i).replace('.', ',')};{int(i > 3)};{str(20.5 + i).replace('.', ',')}" for i in range(12)
    )
    file = InputFile("log.csv", f"Nr;Zeit [min];Heizung [%];PT 100 [degC]\n{rows}\n".encode())
    data = read_step(file, ("Zeit", "Heizung [%]", "PT 100"))
    assert data.time[1] == pytest.approx(30.0)
    assert data.output[1] == 21.5
    assert data.units == ("%", "degC")
    with pytest.raises(BadData, match=r"column 'input' \('Heater'; the file has Nr, Zeit \[min\], .*\) is missing"):
        read_step(file, ("Zeit", "Heater", "PT 100"))
    with_title = InputFile("log.csv", b"Logger XR-20, channel 1\n" + file.content)
    with pytest.raises(BadData, match="line 2 has these heads: begin the lines above it with #"):
        read_step(with_title, ("Zeit", "Heizung", "PT 100"))
    with pytest.raises(BadData, match=r"in this order: columns: \[Nr, Zeit, Heizung, PT 100\]"):
        read_step(file)
    tabs = InputFile(
        "log.txt", ("time\tinput\toutput\n" + "\n".join(f"{i}\t{int(i > 3)}\t{i},5" for i in range(12))).encode()
    )
    assert read_step(tabs).output[3] == 3.5
    wrong = InputFile(
        "log.csv", ("time;input;output\n" + "\n".join(f"{i};{int(i > 3)};1.234,5" for i in range(12))).encode()
    )
    with pytest.raises(BadData, match=r"log.csv:2: column 'output': '1.234,5' is not a finite number"):
        read_step(wrong)


@pytest.mark.parametrize(
    ("cell", "way_out"),
    [
        ("s", r"units stand in the heads, as in Zeit \[s\]; other lines begin with #"),
        ("[min]", r"as in Zeit \[min\]; "),
        ("28.11.2026 10:00:05", r"write the time since the start as a number, with its unit in the head: time \[s\]"),
    ],
)
def test_a_line_of_units_and_times_of_day_are_answered_with_the_head_of_the_file_and_the_way_out(cell, way_out):
    file = InputFile("log.csv", f"Zeit;Heizung;PT 100\n{cell};%;°C\n0;1;2\n".encode())
    message = rf"^log.csv:2: column 'Zeit': '{re.escape(cell)}' is not a finite number; .*{way_out}"
    with pytest.raises(BadData, match=message):
        read_step(file, ("Zeit", "Heizung", "PT 100"))


def test_stated_units_are_those_of_a_record_without_any():
    rows = "\n".join(f"{t},{float(t >= 40)},{-np.expm1(-max(t - 65, 0) / 100.0)}" for t in range(0, 900, 10))
    plain, headed = (InputFile("r.csv", f"time,input,{head}\n{rows}\n".encode()) for head in ("output", "output [K]"))
    stated = LinearPlant(type="data", file=plain, units=("%", "degC"))
    assert stated.data().units == stated.signal_units == ("%", "degC")
    assert "degC/%" in stated.remarks()[0]
    with pytest.raises(InvalidSetting, match="'K' in a head of its columns, not 'degC'; remove 'units'"):
        LinearPlant(type="data", file=headed, units=("%", "degC")).data()


def test_the_fitted_plant_is_a_remark_with_its_intervals():
    rows = "\n".join(
        f"{t};{40.0 + 10.0 * (t >= 40)};{60.0 + 20.0 * -np.expm1(-max(t - 65, 0) / 100.0)}" for t in range(0, 900, 10)
    )
    file = InputFile("heater.csv", f"t [s];u [%];T [degC]\n{rows}\n".encode())
    plant = LinearPlant(type="data", file=file, columns=("t", "u", "T"))
    loop = LinearLoop(plant=plant, sample_time=1.0, limits=(-40.0, 60.0), horizon=900.0)
    fitted, delay, rest = loop.remarks({})
    assert fitted.startswith("fitted plant: fopdt with gain 2 ± ")
    assert "degC/%" in fitted
    assert re.search(r"delay 25 \(− \S+, \+ 10\) s", fitted), fitted
    assert "up to 10 s before the sample that shows it" in delay
    assert "from rest (input 40 %, output 60 degC): the command may lie between 0 and 100 %" in rest
    from_store = LinearPlant(type="data", file=file, columns=["t", "u", "T"])  # JSON has lists only
    assert from_store.numbers_of_rules == plant.numbers_of_rules
    piecewise_constant = LinearPlant(type="data", file=file, columns=("t", "u", "T"), between="held")
    assert len(LinearLoop(plant=piecewise_constant).remarks({})) == 1
    with pytest.raises(InvalidSetting, match="name three columns"):
        LinearPlant(type="data", file=file, columns=("t", "u")).plant()


def test_times_in_another_unit_and_columns_in_another_order():
    rows = "\n".join(f"{y}, {1e3 * t}, {u}" for t, u, y in zip(TIME, INPUT, TIME, strict=True))
    data = read_step(InputFile("s.csv", f"output [deg], time [ms], input [%]\n{rows}\n".encode()))
    np.testing.assert_allclose(data.time, TIME)
    assert data.units == ("%", "deg")
    np.testing.assert_array_equal(data.output, TIME)


GOOD = ["time [s],input,output", *(f"{i},{int(i > 2)},{max(0, i - 3)}" for i in range(12))]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({0: "time [s],input,speed"}, r"step.csv:1: column 3 'speed' is not one of time, input, output"),
        ({0: "time [s],input,input"}, r"step.csv:1: column 3 'input' is given twice"),
        ({0: "time [dayz],input,output"}, r"step.csv:1: column 'time': unknown unit"),
        ({0: "time [kg],input,output"}, r"step.csv:1: column 'time': 'kg' cannot be converted to 's'"),
        ({0: "time [s];input;output"}, r"step.csv:2: has 1 values, line 1 has 3 columns"),
        ({5: "4,1"}, r"step.csv:6: has 2 values, line 1 has 3 columns"),
        ({5: '4,"1,1'}, r"step.csv: is not CSV"),
        ({5: "4,one,1"}, r"step.csv:6: column 'input': 'one' is not a finite number"),
        ({5: "4,1,nan"}, r"step.csv:6: column 'output': 'nan' is not a finite number"),
        ({5: "3,1,1"}, r"step.csv:6: column 'time': 3 does not come after 3"),
        (dict.fromkeys(range(6, 13), ""), r"has 5 samples; a fit needs 10"),
        ({i: f"{i},0,{i}" for i in range(1, 13)}, r"column 'input' never changes"),
        ({i: f"{i},{i},0" for i in range(1, 13)}, r"column 'output' never changes"),
    ],
)
def test_a_file_that_is_of_no_use_is_refused_with_line_and_column(change, message):
    lines = [change.get(i, line) for i, line in enumerate(GOOD)]
    with pytest.raises(BadData, match=message):
        read_step(InputFile("step.csv", "\n".join(lines).encode()))
    with pytest.raises(InvalidSetting, match=message):
        LinearLoop(plant=LinearPlant(type="data", file=InputFile("step.csv", "\n".join(lines).encode()))).check()


def test_a_missing_column_and_an_empty_file_are_refused():
    with pytest.raises(BadData, match="column 'output' is missing"):
        read_step(InputFile("step.csv", b"time,input\n0,0\n"))
    with pytest.raises(BadData, match="is empty"):
        read_step(InputFile("step.csv", b""))
    with pytest.raises(BadData, match="UTF-8"):
        read_step(InputFile("step.csv", b"\xff\xfe\x00"))


def csv_of(data):
    columns = (data.time.tolist(), data.input.tolist(), data.output.tolist())
    rows = "\n".join(f"{t!r},{u!r},{y!r}" for t, u, y in zip(*columns, strict=True))
    return f"time [s],input,output\n{rows}\n".encode()


def test_a_study_names_the_file_and_tunes_the_fitted_plant():
    files = {"step.csv": InputFile("step.csv", csv_of(measured(CASES["fopdt"][1])))}
    use, findings = validate(
        LinearLoop.__designopt__,
        {"plant": {"type": "data", "file": "step.csv"}},
        files.__getitem__,
    )
    assert not findings
    fitted = use.build()
    fitted.check()
    reference = LinearLoop(plant=LinearPlant(type="fopdt", gain=2.0, time_constant=8.0, delay=1.25))
    design = {"kp": 1.0, "ti": 6.0}
    one, expected = (model.evaluate(design, {}, frozenset())[0] for model in (fitted, reference))
    assert one == pytest.approx(expected, rel=1e-4)


def test_a_poor_fit_is_warned_about():
    data = measured(CASES["fopdt"][1], 4.0)
    model = LinearLoop(plant=LinearPlant(type="data", file=InputFile("step.csv", csv_of(data))))
    with pytest.warns(UserWarning, match="explains only"):
        model.check()


W = np.geomspace(0.01, 1.0, 20)
FITS = {
    "step": lambda: fit_step(measured(CASES["fopdt"][1], 0.02), "fopdt"),
    "response": lambda: fit_response(ResponseData(W, 2.0 / (8j * W + 1.0) * np.exp(-1.3j * W), ""), "fopdt"),
}


@pytest.mark.parametrize("fit", FITS)
def test_a_search_that_does_not_converge_is_no_answer(fit, monkeypatch):
    search = scipy.optimize.least_squares
    monkeypatch.setattr(scipy.optimize, "least_squares", lambda *a, **more: search(*a, **{**more, "max_nfev": 1}))
    with pytest.raises(BadData, match="converge"):
        FITS[fit]()
