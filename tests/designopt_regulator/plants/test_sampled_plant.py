"""Plants with a held input as difference equations: outputs that are late by whole samples and by parts of them."""

import numpy as np
import pytest
from designopt_regulator.plants.linear import transfer_function
from designopt_regulator.plants.sampled_plant import hold
from scipy.signal import cont2discrete

T = 0.1
Z = np.exp(1j * np.array([0.01, 0.4, 1.5, 3.0]))


def just_before(plant, z):
    """The zero-order hold of SciPy, measured just before the input changes: what passes at once is a sample late."""
    A, B, *_ = cont2discrete((plant.A, plant.B[:, None], plant.C[None], [[0.0]]), T)
    states = np.linalg.solve(z[:, None, None] * np.eye(len(A)) - A, B)[..., 0]
    return states @ plant.C + float(plant.D) / z


@pytest.mark.parametrize("samples", [1, 3, 6, 7])
@pytest.mark.parametrize("off", [-1e-12, 0.0, 1e-12])
def test_a_delay_of_whole_samples_stays_so_whatever_its_last_digits_are(samples, off):
    """0.3 / 0.1 is less than 3, 0.7 / 0.1 less than 7: what passes at once would come a sample early."""
    plant = transfer_function([1.0, 2.0, 5.0], [1.0, 0.6, 4.0], round(samples * T, 1) * (1.0 + off))
    late = hold(plant, T)

    assert late.outputs[0].samples == samples + 1
    np.testing.assert_allclose(late.responses(Z)[0], just_before(plant, Z) * Z**-samples, rtol=1e-9)


def test_an_output_within_a_sample_is_late_by_its_own_delay():
    """Against steps: the response of the plant at the times k T - delay."""
    plant = transfer_function([2.0], [0.5, 1.0], 0.13)
    late = hold(plant, T, [(plant.C, 0.0, 0.27)])
    x, outputs = np.zeros(1), []
    for _ in range(12):
        outputs.append([float(out.P @ x + out.q) for out in late.outputs])
        x = x + late.R @ x + late.G
    for j, delay in enumerate((0.13, 0.27)):
        times = (np.arange(12) + late.outputs[j].samples) * T - delay
        np.testing.assert_allclose(np.array(outputs)[:, j], 2.0 * -np.expm1(-times / 0.5), rtol=1e-9)
