"""Continuous controllers around plants that pass a step at once, and with sections, against closed loops of SciPy."""

import numpy as np
import pytest
from designopt_regulator.controllers.sections import lead, notch
from designopt_regulator.linear_loop.continuous import Loop
from designopt_regulator.linear_loop.model import LinearLoop, LinearPlant
from designopt_regulator.linear_loop.step_response import step_responses
from designopt_regulator.plants.linear import state_space, transfer_function
from scipy.signal import StateSpace, TransferFunction, step

from designopt.plugin import InvalidDesign, InvalidSetting

KP, TI, TD, TF, B = 0.7, 1.3, 0.4, 0.2, 0.6


def polynomials(sections):
    """Numerators of K and of the set-point's path over their common denominator."""
    top = KP * np.array([TI * (TF + TD), TI + TF, 1.0])
    of_r = KP * np.polymul([B * TI, 1.0], [TF, 1.0])
    bottom = TI * np.array([TF, 1.0, 0.0])
    for section in sections:
        top, of_r = np.polymul(top, section.numerator), np.polymul(of_r, section.numerator)
        bottom = np.polymul(bottom, section.denominator)
    return top, of_r, bottom


@pytest.mark.parametrize("sections", [(), (lead(2.0, 3.0), notch(3.0, 0.5, 0.1))], ids=["PID", "sections"])
@pytest.mark.parametrize("top", [[2.0, 1.0, 3.0], [1.0, 3.0]], ids=["feedthrough", "strictly proper"])
def test_responses_are_those_of_the_closed_loops_transfer_functions(sections, top):
    bottom = [1.0, 2.0, 1.5]
    loop = Loop(transfer_function(top, bottom), KP, TI, TD, TF, B, sections)
    assert loop.stable
    setpoint, load = step_responses(loop)
    K, of_r, under = polynomials(sections)
    denominator = np.polyadd(np.polymul(under, bottom), np.polymul(K, top))
    time = np.linspace(0.0, 12.0, 400)[1:]
    for response, output, command in (
        (setpoint, np.polymul(of_r, top), np.polymul(of_r, bottom)),
        (load, np.polymul(under, top), -np.polymul(K, top)),
    ):
        for which, numerator in ((response.error, output), (response.command, command)):
            _, expected = step(TransferFunction(numerator, denominator), T=np.concatenate([[0.0], time]))
            samples = response.at(time, which)
            if which is response.error:
                samples = (1.0 if response is setpoint else 0.0) - samples
            np.testing.assert_allclose(samples, expected[1:], atol=1e-8)


def test_a_proportional_loop_around_a_plant_with_feedthrough_by_hand():
    """k (s + 2)/(s + 1) closed: (k s + 2 k)/((1 + k) s + 1 + 2 k): from k/(1 + k) to 2 k/(1 + 2 k), with one pole."""
    k = 3.0
    model = LinearLoop(plant=LinearPlant(type="transfer_function", numerator=(1.0, 2.0), denominator=(1.0, 1.0)))
    outputs, arrays = model.evaluate({"kp": k}, {}, frozenset({"time", "output", "command"}))
    rate, begin, end = (1.0 + 2.0 * k) / (1.0 + k), k / (1.0 + k), 2.0 * k / (1.0 + 2.0 * k)
    during = arrays["time"] < 1.0
    expected = end + (begin - end) * np.exp(-rate * arrays["time"])
    np.testing.assert_allclose(arrays["output"][during], expected[during], rtol=1e-10)
    assert outputs["residual_error"] == pytest.approx(1.0 - end, rel=1e-12)
    assert outputs["peak_command"] == pytest.approx(k * (1.0 - begin), rel=1e-9)
    # 1 + L is least at rest; far up L is k, and the slightest delay turns it about -1
    assert outputs["ms"] == pytest.approx(1.0 / (1.0 + k), rel=1e-9)
    assert outputs["delay_margin"] == 0.0
    assert outputs["gs_peak"] == pytest.approx(2.0 / (1.0 + 2.0 * k), rel=1e-6)
    assert outputs["ks_peak"] == pytest.approx(k / (1.0 + k), rel=1e-6)


def test_matrices_with_feedthrough_are_the_same_plant():
    A, b, c, d = [0.0, 1.0, -2.0, -3.0], [0.0, 1.0], [1.0, 0.5], 0.4
    plant = state_space(A, b, c, 0.0, d)
    G = StateSpace(np.reshape(A, (2, 2)), np.reshape(b, (2, 1)), [c], [[d]])
    w = np.array([0.1, 1.0, 10.0])
    np.testing.assert_allclose(plant.response(w), G.freqresp(w)[1], rtol=1e-12)
    from_matrices = LinearPlant(type="state_space", A=tuple(A), B=tuple(b), C=tuple(c), D=d)
    np.testing.assert_allclose(from_matrices.plant().response(w), G.freqresp(w)[1], rtol=1e-12)


@pytest.mark.parametrize("kp", [1.0, 1.0 + 1e-14])
def test_a_loop_in_which_no_command_agrees_with_its_output_is_refused(kp):
    model = LinearLoop(
        plant=LinearPlant(type="transfer_function", numerator=(1.0, 2.0), denominator=(1.0, 1.0)), action="direct"
    )
    with pytest.raises(InvalidDesign, match="the algebraic loop has no solution"):
        model.evaluate({"kp": kp}, {}, frozenset())


def test_a_refused_design_leaves_the_others_of_its_batch_alone():
    model = LinearLoop(
        plant=LinearPlant(type="transfer_function", numerator=(1.0, 2.0), denominator=(1.0, 1.0)), action="direct"
    )
    first, second = model.batch([{"kp": 1.0}, {"kp": 0.3}], [{}, {}], frozenset())
    assert isinstance(first, InvalidDesign)
    assert second == model.batch([{"kp": 0.3}], [{}], frozenset())[0]


def test_feedthrough_behind_a_delay_asks_for_a_sampled_controller():
    plant = LinearPlant(type="transfer_function", numerator=(1.0, 2.0), denominator=(1.0, 1.0), delay=0.1)
    with pytest.raises(InvalidSetting, match="needs a sample_time"):
        LinearLoop(plant=plant).check()


def test_an_unfiltered_derivative_of_an_output_that_jumps_is_refused():
    plant = LinearPlant(type="transfer_function", numerator=(1.0, 2.0), denominator=(1.0, 1.0))
    with pytest.raises(InvalidDesign, match="needs a filter"):
        LinearLoop(plant=plant).evaluate({"kp": 1.0, "td": 0.1}, {}, frozenset())


def test_sections_have_the_gain_and_phase_that_name_them():
    """A notch lets `depth` through at its frequency and, of depth 0, half the power at both ends of its width."""
    w, width = 5.0, 0.3
    at = np.array([w, w * (np.hypot(1.0, 0.5 * width) - 0.5 * width), w * (np.hypot(1.0, 0.5 * width) + 0.5 * width)])
    assert np.abs(notch(w, width, 0.2).value(1j * at))[0] == pytest.approx(0.2, rel=1e-12)
    np.testing.assert_allclose(
        np.abs(notch(w, width, 0.0).value(1j * at)), [0.0, np.sqrt(0.5), np.sqrt(0.5)], atol=1e-12
    )
    turned = lead(w, 4.0).value(1j * np.array([w, 0.9 * w, 1.1 * w]))
    assert np.angle(turned)[0] == pytest.approx(np.arcsin(3.0 / 5.0), rel=1e-12)
    assert np.angle(turned).argmax() == 0
    assert abs(lead(w, 4.0).value(np.array([1e9j]))[0]) == pytest.approx(4.0, rel=1e-6)
