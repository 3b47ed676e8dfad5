"""Several structures fitted to one record and compared."""

from dataclasses import replace

import numpy as np
import pytest
from designopt_regulator.identification.step_fit import StepData, fit_step, predict
from designopt_regulator.identification.structures import (
    best_structure,
    compare_file,
    compare_response_file,
    criterion,
    record_remarks,
)
from designopt_regulator.linear_loop.plant_setting import LinearPlant
from designopt_regulator.plants import linear as plants

from designopt.plugin import InputFile

PLANTS = {
    "fopdt": {"gain": 2.0, "time_constant": 20.0, "delay": 5.0},
    "sopdt": {"gain": 2.0, "time_constant": 20.0, "time_constant_2": 12.0, "delay": 5.0},
    "ipdt": {"gain": 0.05, "delay": 5.0},
}


#: Structures that contain another one as a limit.
CONTAIN = {"fopdt": {"sopdt"}, "sopdt": set(), "ipdt": {"fopdt", "sopdt"}}


def record(model: str, noise: float = 0.01) -> InputFile:
    """Two steps on a plant at rest, with white noise."""
    time = np.arange(0.0, 300.0, 2.0)
    u = np.where(time < 10.0, 0.0, np.where(time < 160.0, 1.0, -0.5))
    data = StepData(time, u, np.where(time < 10.0, 0.0, 1.0 + time), ("%", "degC"))
    fit = fit_step(data, model)
    fit.parameters.update(PLANTS[model])
    y = predict(data, fit, "held") - fit.offset + np.random.default_rng(1).normal(0.0, noise, len(time))
    rows = "\n".join(f"{t},{a},{b}" for t, a, b in zip(time, u, y, strict=True))
    return InputFile("record.csv", f"time [s],input [%],output [degC]\n{rows}\n".encode())


@pytest.mark.parametrize("model", list(PLANTS))
def test_the_structure_of_the_plant_is_found_and_predicts_best(model: str) -> None:
    file = record(model)
    compared = compare_file(file, "held")
    assert best_structure(compared) == model
    chosen = next(c for c in compared if c.model == model)
    assert chosen.prediction == pytest.approx(0.01, rel=0.5)
    wrong = [c for c in compared if c.model not in {model, *CONTAIN[model]}]
    assert all(c.difference > 10.0 and c.prediction > 2.0 * chosen.prediction for c in wrong)
    plant = LinearPlant(type="data", file=file, model="auto", between="held")
    assert plant.fit().model == model
    assert plant.fit().parameters == pytest.approx(PLANTS[model], rel=0.1)
    assert f"'model: auto' took {model}" in plant.remarks()[-1]


def test_the_record_of_another_structure_is_remarked() -> None:
    plant = LinearPlant(type="data", file=record("sopdt"), between="held")
    assert plant.fit().model == "fopdt"
    assert "'model: auto' would take sopdt" in plant.remarks()[-1]


def test_a_frequency_response_shows_its_structure() -> None:
    w = np.geomspace(0.005, 0.5, 30)
    rng = np.random.default_rng(2)
    G = plants.sopdt(**PLANTS["sopdt"]).response(w) * np.exp(rng.normal(0.0, 0.01, 30) + 1j * rng.normal(0.0, 0.01, 30))
    rows = "\n".join(f"{a},{abs(g)},{np.degrees(np.angle(g))}" for a, g in zip(w, G, strict=True))
    file = InputFile("r.csv", f"frequency [rad/s],magnitude,phase [deg]\n{rows}\n".encode())
    assert best_structure(compare_response_file(file)) == "sopdt"
    assert LinearPlant(type="frequency_response", file=file, model="auto").response_fit().model == "sopdt"


def test_the_criterion_is_akaikes_with_correction() -> None:
    """Burnham & Anderson (2002), equation 2.4: n log(RSS/n) + 2 K + 2 K (K + 1) / (n - K - 1)."""
    assert criterion(20, 0.5, 3) == pytest.approx(20 * np.log(0.25) + 6 + 24 / 16)
    assert criterion(4, 0.5, 3) == np.inf


@pytest.mark.parametrize(
    ("edit", "remark"),
    [
        (lambda t, u, y: (t, u, np.where(t < 10.0, 0.05 * t, y)), "moves by 0.4 degC before the input changes"),
        (lambda t, u, y: (t, u, -y), "falls when the input rises"),
        (lambda t, u, y: (t[:20], u[:20], y[:20]), "time constants after the last change"),
        (lambda t, u, y: (t[::20], u[::20], y[::20]), "samples in a time constant"),
        (lambda t, u, y: (t, u, y), ""),
        (
            lambda t, u, y: tuple(np.delete(v, 60) for v in (t, u, y)),
            "a sample seems to be missing, the first after 118",
        ),
        (lambda t, u, y: tuple(np.delete(v, [60, 61, 90]) for v in (t, u, y)), "3 samples seem to be missing"),
        (lambda t, u, y: (np.where(t == 120.0, 119.0, t), u, y), "2 samples are not"),
    ],
)
def test_what_a_look_at_the_record_shows_is_remarked(edit, remark: str) -> None:
    time = np.arange(0.0, 400.0, 2.0)
    u = np.where(time < 10.0, 0.0, 1.0)
    y = np.where(time < 15.0, 0.0, 2.0 * -np.expm1(-np.maximum(time - 15.0, 0.0) / 20.0))
    data = StepData(*edit(time, u, y), ("%", "degC"))
    sentences = record_remarks(data, fit_step(data, "fopdt"))
    assert [s for s in sentences if remark in s] if remark else sentences == []
    assert "no unit" in record_remarks(replace(data, time_unit=""), fit_step(data, "fopdt"))[0]
