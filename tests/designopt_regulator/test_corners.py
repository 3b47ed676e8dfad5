"""Loops and settings at the edges: slow and resonant loops, hidden modes, numbers beyond all use, mixed company."""

import re
from dataclasses import replace

import numpy as np
import pytest
from designopt_regulator.controllers.pid import pid as feedback
from designopt_regulator.frequency.sampled_loop import frequency_response, measures
from designopt_regulator.linear_loop.continuous import Loop
from designopt_regulator.linear_loop.model import LinearLoop
from designopt_regulator.linear_loop.plant_setting import LinearPlant
from designopt_regulator.plants.linear import Plant, ipdt, transfer_function
from designopt_regulator.vehicle.equations import Vehicle
from designopt_regulator.vehicle.model import TrackedVehicle
from designopt_regulator.vehicle.simulation import Schedule

from designopt.plugin import Diverged, InputFile, InvalidDesign, InvalidSetting, Use, find
from designopt.plugin.declared import with_declared
from designopt.study.language.errors import StudyError
from designopt.study.load import study_from_text

PID = {"kp": 1.5, "ti": 8.0, "td": 0.6, "tf": 0.1, "b": 1.0, "tt": 3.0}


def sampled(plant, sample_time, **pid):
    return measures(
        plant.A[None],
        plant.B[None],
        plant.C[None],
        plant.delay / sample_time,
        feedback(sample_time=sample_time, **{"tf": 0.0, **pid}),
    )


def resonance(damping, frequency=3.0):
    return [1.0, 2.0 * damping * frequency, frequency**2]


# ------------------------------------------------------------------------------------------- where the grid is coarse


@pytest.mark.parametrize("rate", [1e-3, 1e-4, 1e-6])
def test_a_slow_loop_that_is_sampled_fast_has_its_crossover_and_margins(rate):
    """P around an integrator: it crosses at kp k, with the margin 90 deg less the delay and half a sample."""
    measures = sampled(ipdt(rate, 1.0), 0.1, kp=1.0)
    np.testing.assert_allclose(measures.crossover, rate, rtol=1e-6)
    np.testing.assert_allclose(measures.pm, np.pi / 2 - 1.05 * rate, rtol=1e-6)
    np.testing.assert_allclose(measures.delay_margin, np.pi / 2 / rate - 1.05, rtol=1e-5)
    np.testing.assert_allclose(measures.mt, 1.0, rtol=1e-6)


@pytest.mark.parametrize(("gain", "kp", "ti"), [(1.0, 0.1, np.inf), (0.1, 0.6, np.inf), (1.0, 0.05, 100.0)])
def test_a_loop_that_integrates_follows_at_rest_whatever_the_grid_begins_with(gain, kp, ti):
    measures = sampled(ipdt(gain, 0.0), 0.05, kp=kp, ti=ti)
    assert measures.stable[0]
    assert measures.mt[0] >= 1.0


@pytest.mark.parametrize("damping", [1e-2, 1e-3, 1e-4, 1e-5])
def test_the_peak_of_a_resonance_between_points_of_the_grid_is_found(damping):
    plant = transfer_function([1.0], resonance(damping))
    pid = {"kp": 5.0 * damping, "ti": 100.0}
    measures = sampled(plant, 0.05, **pid)
    w = 3.0 * (1.0 + damping * np.linspace(-60.0, 60.0, 40_001))
    L = frequency_response(
        plant.A[None], plant.B[None], plant.C[None], 0.0, feedback(sample_time=0.05, **{"tf": 0.0, **pid}), w
    )[0]
    np.testing.assert_allclose(measures.ms, (1.0 / np.abs(1.0 + L)).max(), rtol=1e-5)
    crossing = np.flatnonzero((np.diff(np.sign(L.imag)) != 0.0) & (L.real[1:] < 0.0))
    np.testing.assert_allclose(measures.gm, np.min(-1.0 / L.real[crossing]), rtol=2e-2)


def test_two_resonances_side_by_side_are_seen_in_a_continuous_loop():
    """Between two points of a grid of 2 % the argument would turn by a whole turn, unseen."""
    for kp in (1e-3, 1e-2, 1e-1):
        for bottom in ([resonance(1e-3), resonance(1e-3, 3.03)], [resonance(1e-4), resonance(1e-4, 3.03)]):
            exact = transfer_function([1.0], np.polymul(*bottom))
            M, N, K, *_ = Loop(exact, kp, 100.0).equations()
            stable = bool((np.linalg.eigvals(M + np.outer(N, K)).real < 0.0).all())
            assert Loop(exact, kp, 100.0).stable == stable
            late = Plant(exact.A, exact.B, exact.C, np.asarray(1e-7))  # too short to change the answer
            assert Loop(late, kp, 100.0).stable == stable


@pytest.mark.parametrize("sample_time", [None, 0.05])
def test_a_loop_that_is_negative_at_rest_has_its_gain_margin_there(sample_time):
    plant = transfer_function([-0.5], [1.0, 1.0])
    measures = Loop(plant, 1.0).margins() if sample_time is None else sampled(plant, sample_time, kp=1.0)
    assert measures is not None
    np.testing.assert_allclose(measures.gm, 2.0, rtol=1e-5)
    np.testing.assert_allclose(measures.ms, 2.0, rtol=1e-5)


# --------------------------------------------------------------------------------------------- never a false margin


@pytest.mark.parametrize(
    ("numerator", "denominator"),
    [
        ([1.0, 0.0], [1.0, 2.0, 1.0]),  # the I is cancelled
        ([1.0, -1.0], [1.0, 0.0, -1.0]),  # a hidden unstable mode
        ([1.0, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0]),  # a hidden oscillation
        ([-1.0], [1.0, 1.0]),  # a pole that comes to lie at 0, without I
        ([1.0], [1.0, 0.0, 0.0]),
        ([1.0], [1.0, 0.0, 1.0]),
    ],
)
def test_a_loop_that_is_not_stable_has_no_margins_and_no_traceback(numerator, denominator):
    for design in ({"kp": 1.0}, {"kp": 1.0, "ti": 2.0}):
        plant = transfer_function(numerator, denominator)
        loop = Loop(plant, design["kp"], design.get("ti", np.inf))
        M, N, K, *_ = loop.equations()
        if np.linalg.eigvals(M + np.outer(N, K)).real.max() < -1e-9:
            continue
        model = LinearLoop(plant=LinearPlant(type="transfer_function", numerator=numerator, denominator=denominator))
        with pytest.raises(Diverged, match="unstable"):
            model.evaluate(design, {}, frozenset())


@pytest.mark.parametrize("delay", [0.0, 4.0])
def test_a_plant_that_oscillates_for_ever_has_margins_where_its_loop_is_stable(delay):
    plant = transfer_function([1.0], [1.0, 0.0, 1.0], delay)
    loop = Loop(plant, 0.1) if delay else Loop(plant, 0.1, td=1.0)
    w = np.linspace(0.5, 2.0, 600_002)
    measures = loop.margins()
    assert measures is not None
    np.testing.assert_allclose(measures.ms, (1.0 / np.abs(1.0 + loop.response(w))).max(), rtol=1e-6)


def test_a_loop_too_fast_beside_its_delay_is_reported_and_leaves_the_others_alone():
    model = LinearLoop(plant=LinearPlant(type="fopdt", time_constant=1.0, delay=1.0))
    usual = {"kp": 0.5, "ti": 1.0, "td": 0.3, "tf": 0.1}
    alone, (wild, beside) = (
        model.evaluate(usual, {}, frozenset()),
        model.batch([{**usual, "tf": 1e-9}, usual], [{}, {}], frozenset()),
    )
    assert isinstance(wild, Diverged)
    assert "too fast beside its delay" in str(wild)
    assert beside == alone


# ------------------------------------------------------------------------------------------------- numbers of no use


@pytest.mark.parametrize("name", ["kp", "ti", "td", "tf"])
@pytest.mark.parametrize("value", [1e300, 1e-300, np.inf, np.nan, -1.0])
def test_numbers_beyond_all_use_are_refused_by_name(name, value):
    scenario = {"terrain": "paved", "speed": 5.0}
    for model, conditions in (
        (TrackedVehicle(), scenario),
        (LinearLoop(plant=LinearPlant(type="fopdt", time_constant=1.0)), {}),
        (LinearLoop(plant=LinearPlant(type="fopdt", time_constant=1.0), sample_time=0.1, horizon=5.0), {}),
    ):
        design = {key: PID[key] for key in ("kp", "ti", "td", "tf", "b")}
        with pytest.raises(InvalidDesign, match=f"{name}: "):
            model.evaluate({**design, name: value}, conditions, frozenset())


@pytest.mark.parametrize("number", ["gain", "time_constant"])
def test_numbers_of_a_plant_beyond_all_use_are_refused(number):
    with pytest.raises(InvalidSetting, match=f"plant.{number}.*beyond what can be computed"):
        LinearLoop(plant=LinearPlant(**{"type": "fopdt", "time_constant": 1.0, number: 1e300})).check()


def steps(time=1.0, size=1.0, offset=0.0):
    """A first-order step response, time constant 4 s and delay 1 s, in other units."""
    t = 0.5 * np.arange(60)
    y = np.where(t > 6.0, -np.expm1(-(t - 6.0) / 4.0), 0.0)
    rows = zip((time * t).tolist(), (size * (t >= 5.0)).tolist(), (size * y + offset).tolist(), strict=True)
    return InputFile("step.csv", "\n".join(["time,input,output", *(",".join(map(repr, row)) for row in rows)]).encode())


@pytest.mark.parametrize("changes", [{"size": 1e300}, {"size": 1e-300}, {"time": 1e300}, {"time": 1e-200}])
def test_data_beyond_all_use_are_refused_with_line_and_column(changes):
    plant = LinearPlant(type="data", file=steps(**changes))
    column = "time" if "time" in changes else "(in|out)put"
    with pytest.raises(InvalidSetting, match=rf"plant.file: step.csv:\d+: column '{column}': .*take another unit"):
        LinearLoop(plant=plant).check()


def test_a_plant_whose_output_lies_far_from_0_is_fitted_as_well():
    fit = LinearPlant(type="data", file=steps(offset=1e8)).fit()
    assert [fit.parameters[name] for name in ("gain", "time_constant", "delay")] == pytest.approx([1, 4, 1], abs=1e-6)
    assert 0.0 < fit.confidence["time_constant"] < 1e-6
    assert fit.offset == pytest.approx(1e8, abs=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"step": np.pi}, "step: 180 deg must be less than 180 deg"),
        ({"step": -4.0}, "step: .*less than 180 deg"),
        ({"sample_time": 1e-5}, "sample_time: .*integration steps of the horizon"),
    ],
)
def test_settings_of_the_vehicle_without_an_answer_are_refused(settings, message):
    with pytest.raises(InvalidSetting, match=message):
        TrackedVehicle(**settings).check()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"horizon": 0.05}, "horizon: .*at least two samples"),
        ({"horizon": 1.02}, "horizon: .*not a whole number of samples of 0.05 s; the nearest is 1 s"),
        ({"horizon": 5e4}, "sample_time: .*points of the horizon"),
    ],
)
def test_settings_of_a_sampled_loop_without_an_answer_are_refused(settings, message):
    plant = LinearPlant(type="fopdt", time_constant=1.0)
    with pytest.raises(InvalidSetting, match=message):
        LinearLoop(plant=plant, sample_time=0.05, **settings).check()


def test_a_delay_of_very_many_samples_is_refused_before_it_fills_the_memory():
    vehicle = TrackedVehicle()
    for delay in ({"delay": 1000.0}, {"delay_samples": 20_000}):
        (mistake,) = vehicle.check_scenario({"terrain": "paved", "speed": 5.0, **delay})
        assert "more than 1000 samples" in str(mistake)
    plant = LinearPlant(type="fopdt", time_constant=1.0, delay=100.0)
    loop = LinearLoop(plant=plant, sample_time=0.05, horizon=400.0)
    with pytest.raises(InvalidSetting, match=r"sample_time: .*more than 1000 samples"):
        loop.check()
    loop = LinearLoop(plant=replace(plant, delay=40.0), sample_time=0.05, horizon=400.0)
    loop.check()
    assert not list(loop.check_scenario({"delay_factor": 1.0}))
    (mistake,) = loop.check_scenario({"delay_factor": 1.5})
    assert "delay_factor: the plant's delay is more than 1000 samples" in str(mistake)
    with pytest.raises(InvalidDesign, match="delay_factor: "):
        loop.evaluate({"kp": 0.5}, {"delay_factor": 1.5}, frozenset())


@pytest.mark.parametrize("name", ["rate_gain", "max_rate"])
def test_an_inner_loop_beyond_all_use_is_refused(name):
    with pytest.raises(InvalidDesign, match=f"{name}: 1e.300 is beyond what can be computed"):
        TrackedVehicle().evaluate(
            {**PID, "rate_gain": 0.3, "max_rate": 2.0, name: 1e300},
            {"terrain": "paved", "speed": 5.0},
            frozenset(),
        )


@pytest.mark.parametrize(
    ("settings", "conditions", "name", "substeps"),
    [
        ({}, {"lag": 0.002}, "lag", 10),
        ({"sample_time": 0.1, "substeps": 4}, {"terrain": "turf", "speed": 0.1}, "speed", 5),
        ({"vehicle": Vehicle(yaw_inertia=10.0)}, {}, "speed", 200),
    ],
)
def test_motions_too_quick_for_the_integration_steps_are_refused_with_enough_substeps(
    settings, conditions, name, substeps
):
    """The method would diverge, or oscillate between the clips with figures that look like figures."""
    scenario = {"terrain": "paved", "speed": 5.0, **conditions}
    (mistake,) = TrackedVehicle(**settings).check_scenario(scenario)
    match = re.fullmatch(
        rf"{name}: integration steps of \S+ s are too long for it; take 'substeps: (\d+)'", str(mistake)
    )
    assert match is not None
    assert int(match[1]) >= substeps
    enough, finer = (TrackedVehicle(**{**settings, "substeps": n * int(match[1])}) for n in (1, 4))
    iae = [model.evaluate(PID, scenario, frozenset())[0]["iae"] for model in (enough, finer)]
    assert iae[0] == pytest.approx(iae[1], rel=2e-3)


# ------------------------------------------------------------------------------------------------------ any company


@pytest.mark.parametrize("schedule", [None, Schedule(reference_speed=3.0)])
def test_designs_with_and_without_a_rate_loop_have_the_same_bits_in_any_company(schedule):
    model = TrackedVehicle(gain_schedule=schedule)
    designs = [PID, {**PID, "rate_gain": 0.3, "max_rate": 2.0}, {**PID, "kp": 0.8}]
    scenarios = [{"terrain": "paved", "speed": 5.0}, {"terrain": "turf", "speed": 2.0, "delay_samples": 2}]
    rows = [(design, scenario) for design in designs for scenario in scenarios]
    together = model.batch([d for d, _ in rows], [s for _, s in rows], frozenset())
    assert together == [model.evaluate(design, scenario, frozenset()) for design, scenario in rows]


INNER = LinearPlant(type="fopdt", gain=2.0, time_constant=3.0, delay=0.5, units=("%", "l/min"))
HEATED = LinearPlant(type="fopdt", gain=0.1, time_constant=60.0, delay=5.0, units=("l/min", "degC"))


@pytest.mark.parametrize(
    ("settings", "units"),
    [
        ({"plant": HEATED}, {"kp": "(l/min)/degC", "ki": "(l/min)/(degC s)", "kd": "(l/min) s/degC"}),
        ({"plant": HEATED, "inner_plant": INNER, "sample_time": 1.0}, {"kp_inner": "%/(l/min)", "command": "%"}),
        ({"plant": HEATED}, {"iae_load": "degC s", "tv": "l/min", "effort": "l^2 s/min^2", "gs_peak": "degC/(l/min)"}),
        ({"plant": HEATED}, {"noise_gain": "(l/min)/degC", "overshoot": "", "residual_error": "", "rise": "s"}),
        ({"plant": replace(HEATED, units=None)}, {"kp": "", "output": "", "iae_load": "s"}),
    ],
)
def test_gains_and_signals_have_units_where_those_of_the_plant_are_stated(settings, units):
    plugin = with_declared(Use(find("model", "linear_loop"), settings)).plugin
    numbers = {**plugin.inputs, **plugin.outputs}
    quantities = {**{name: field.quantity for name, field in numbers.items()}, **plugin.arrays}
    assert {name: quantities[name].unit for name in units} == units


def test_a_gain_in_another_unit_than_that_of_its_plant_is_an_error():
    text = """study: heater
model: {use: linear_loop, plant: {type: fopdt, gain: 1, time_constant: 10, delay: 1, units: [bar, degC]}}
space: {kp: {low: 0.1, high: 1, unit: bar/K}, ti: {low: 5, high: 20, unit: s}}
objectives: [{name: error, minimize: iae_load, unit: K min}]
solver: {use: sobol, samples: 2}
"""
    study = study_from_text(text, "heater.yaml")
    assert study.space[0].unit == "bar/K"
    with pytest.raises(StudyError, match="'degC s' cannot be converted to 's'"):
        study_from_text(text.replace("K min", "s"), "heater.yaml")
    with pytest.raises(StudyError, match="unit"):
        study_from_text(text.replace("bar/K", "bar"), "heater.yaml")
    with pytest.raises(StudyError, match="two units"):
        study_from_text(text.replace("[bar, degC]", "[bar]"), "heater.yaml")
