"""Plants from ramps, pseudo-random binary sequences and frequency responses: their numbers come back."""

from pathlib import Path

import numpy as np
import pytest
from designopt_regulator.identification.frequency_fit import ResponseData, fit_response, read_response
from designopt_regulator.identification.step_fit import StepData, fit_step, read_step
from designopt_regulator.identification.table import BadData
from designopt_regulator.linear_loop.model import LinearLoop, LinearPlant
from designopt_regulator.plants import linear as plants
from designopt_regulator.report.identification import fit_section
from prbs_plant import DELAY, FAST, GAIN, SLOW, text
from scipy.signal import lsim, max_len_seq

from designopt.plugin import InputFile

TIME = np.arange(0.0, 100.0, 0.2)
LATE = 5  # samples: 1 s
NUMBERS = {
    "fopdt": {"gain": -2.0, "time_constant": 4.0, "delay": 1.0},
    "sopdt": {"gain": 2.0, "time_constant": 4.0, "time_constant_2": 1.5, "delay": 1.0},
    "ipdt": {"gain": 0.3, "delay": 1.0},
}
SYSTEMS = {"fopdt": ([-2.0], [4.0, 1.0]), "sopdt": ([2.0], [6.0, 5.5, 1.0]), "ipdt": ([0.3], [1.0, 0.0])}


def record(model, inputs, interpolated):
    """SciPy's answer to the input, five samples late."""
    late = np.concatenate([np.full(LATE, inputs[0]), inputs[:-LATE]])
    _, y, _ = lsim(SYSTEMS[model], late - late[0], TIME, interp=interpolated)
    return StepData(TIME, inputs, 20.0 + y, ("", ""))


@pytest.mark.parametrize("model", NUMBERS)
def test_a_plant_comes_back_from_ramps(model):
    """Up, level, down: straight between samples; taken as held it would come out half a sample late."""
    ramps = np.interp(TIME, [0.0, 10.0, 30.0, 50.0, 70.0, 100.0], [0.0, 0.0, 3.0, 3.0, -1.0, -1.0])
    fit = fit_step(record(model, ramps, True), model, "linear")
    assert fit.parameters == pytest.approx(NUMBERS[model], rel=1e-5)
    wrong = fit_step(record(model, ramps, True), model, "held")
    assert wrong.parameters["delay"] == pytest.approx(0.9, abs=0.02)


@pytest.mark.parametrize("model", NUMBERS)
def test_a_plant_comes_back_from_a_pseudo_random_binary_sequence(model):
    sequence = np.repeat(max_len_seq(7)[0].astype(float), 4)[: len(TIME) - 10]
    inputs = np.concatenate([np.zeros(10), 2.0 * sequence - 1.0])
    fit = fit_step(record(model, inputs, False), model)
    assert fit.parameters == pytest.approx(NUMBERS[model], rel=1e-5)


FREQUENCIES = np.geomspace(0.02, 3.0, 25)


def response_file(model, *, hertz=False, noise=0.0):
    G = getattr(plants, model)(**NUMBERS[model]).response(FREQUENCIES)
    G = G * np.exp(noise * np.random.default_rng(1).standard_normal((2, 25)).T @ [1.0, 1j])
    w = FREQUENCIES / (2.0 * np.pi) if hertz else FREQUENCIES
    rows = [f"{f!r},{abs(g)!r},{float(np.degrees(np.angle(g)))!r}" for f, g in zip(w.tolist(), G.tolist(), strict=True)]
    head = f"frequency [{'Hz' if hertz else 'rad/s'}],magnitude [degC/%],phase [deg]"
    return InputFile("response.csv", "\n".join(["# by formula", head, *rows]).encode())


@pytest.mark.parametrize("hertz", [False, True])
@pytest.mark.parametrize("model", NUMBERS)
def test_a_plant_comes_back_from_its_frequency_response(model, hertz):
    fit = fit_response(read_response(response_file(model, hertz=hertz)), model)
    assert fit.parameters == pytest.approx(NUMBERS[model], rel=1e-6)
    assert fit.residual < 1e-7
    assert fit.explained_variance == pytest.approx(1.0)


def test_a_magnitude_in_decibels_is_that_of_the_ratio():
    plain = read_response(response_file("fopdt"))
    rows = [
        f"{w!r},{float(20.0 * np.log10(abs(g)))!r},{float(np.degrees(np.angle(g)))!r}"
        for w, g in zip(plain.frequency.tolist(), plain.response.tolist(), strict=True)
    ]
    text = "\n".join(["frequency [rad/s],magnitude [dB],phase [deg]", *rows])
    decibels = read_response(InputFile("response.csv", text.encode()))
    assert decibels.response == pytest.approx(plain.response, rel=1e-12)


def test_intervals_of_a_noisy_response_hold_its_numbers():
    fit = fit_response(read_response(response_file("sopdt", noise=0.03)), "sopdt")
    for name, value in NUMBERS["sopdt"].items():
        assert abs(fit.parameters[name] - value) < 2.0 * fit.confidence[name]
        assert fit.confidence[name] < 0.3 * value
    assert fit.residual == pytest.approx(0.03 * np.sqrt(2.0), rel=0.4)


def test_a_loop_is_tuned_around_a_measured_frequency_response():
    plant = LinearPlant(type="frequency_response", file=response_file("fopdt"))
    model = LinearLoop(plant=plant)
    model.check()
    reference = LinearLoop(plant=LinearPlant(type="fopdt", **NUMBERS["fopdt"]))
    design = {"kp": 0.8, "ti": 4.0}
    one, expected = (m.evaluate(design, {}, frozenset())[0] for m in (model, reference))
    assert one == pytest.approx(expected, rel=1e-5)
    section = fit_section(model)
    assert section is not None
    assert "25 frequencies" in section.findings[0]
    measured, curve = section.figure.plot["data"][1], section.figure.plot["data"][3]
    assert measured["y"] == pytest.approx(np.interp(measured["x"], curve["x"], curve["y"]), abs=0.5)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("frequency [rad/s],magnitude\n1,2", "column 'phase' is missing"),
        ("frequency [kg],magnitude,phase [deg]\n1,2,3", "column 'frequency'"),
        ("frequency,magnitude,phase\n1,-2,3", ":2: column 'magnitude': '-2' is not a number above 0"),
        ("frequency,magnitude,phase\n1,2,x", ":2: column 'phase': 'x' is not a finite number"),
        ("frequency,magnitude,phase\n2,2,0\n1,2,0", ":3: column 'frequency': 1 is not above the one before"),
        ("frequency,magnitude,phase\n1,2,0\n2,2,0", "has 2 rows; a fit needs 5"),
        ("frequency,magnitude,phase\n1,2", ":2: has 2 values"),
    ],
)
def test_files_of_no_use_are_refused_with_their_line(text, words):
    with pytest.raises(BadData, match=words):
        read_response(InputFile("f.csv", text.encode()))


def test_the_bundled_record_is_the_formulas_and_gives_its_numbers():
    path = Path(__file__).parents[3] / "studies" / "identified_plant.csv"
    assert path.read_text() == text()
    fit = fit_step(read_step(InputFile(path.name, path.read_bytes())), "sopdt")
    expected = {"gain": GAIN, "time_constant": SLOW, "time_constant_2": FAST, "delay": DELAY}
    for name, value in expected.items():
        assert abs(fit.parameters[name] - value) < 2.0 * fit.confidence[name]
        assert fit.confidence[name] < 0.2 * abs(value)


@pytest.mark.parametrize(
    ("gain", "delay", "rows", "noise"), [(-2.0, 3.0, 40, 0.0), (2.0, 36.0, 60, 0.0), (2.0, 12.0, 40, 0.1)]
)
def test_a_long_delay_comes_back_from_a_response_whose_phase_it_turns_several_times(gain, delay, rows, noise):
    w = np.geomspace(1e-3, 3.0, rows)
    numbers = {"gain": gain, "time_constant": 20.0, "time_constant_2": 5.0, "delay": delay}
    scatter = np.exp(noise * np.random.default_rng(2).standard_normal((2, rows)).T @ [1.0, 1j])
    fit = fit_response(ResponseData(w, plants.sopdt(**numbers).response(w) * scatter, ""), "sopdt")
    assert fit.parameters == pytest.approx(numbers, rel=1e-6 + 1.5 * noise)
    assert fit.residual <= 1e-6 + 2.0 * noise


def test_the_fitted_numbers_of_a_frequency_response_are_remarked_and_a_poor_fit_warned_of():
    plant = LinearPlant(type="frequency_response", file=response_file("fopdt"))
    (remark,) = plant.remarks()
    assert remark.startswith("fitted plant: fopdt with gain -2 ± ")
    assert " degC/%, time_constant 4 ± " in remark
    assert remark.endswith("relative error 0.0 % (root mean square)")
    poor = LinearPlant(type="frequency_response", file=response_file("sopdt", noise=0.4), model="sopdt")
    with pytest.warns(UserWarning, match=r"differs by \d+ % \(root mean square\) from the measured frequency response"):
        LinearLoop(plant=poor).check()
